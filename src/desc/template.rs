//! The symbolic `buf_ptr` of a template vring (`docs/hardware.md`, "Descriptor").

use crate::units::Addr;
use bitfield_struct::bitfield;

/// A `buf_ptr` that names a tensor and an offset in it, until the template is resolved.
#[bitfield(u64)]
#[derive(PartialEq, Eq, Hash)]
pub struct TemplatePtr {
    /// Bytes from the tensor's start.
    #[bits(36)]
    pub offset: u64,
    /// Which tensor.
    #[bits(19)]
    pub var_id: u32,
    /// Without a meaning.
    #[bits(6)]
    reserved_60_55: u8,
    /// Set on a symbolic pointer, clear on a physical address.
    pub is_template: bool,
    /// Without a meaning.
    #[bits(2)]
    reserved_63_62: u8,
}

/// A symbol that the encoding has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplatePtrError {
    /// The variable id needs more than 19 bits.
    #[error("template var_id {0} does not fit 19 bits; the maximum is 524287")]
    VarId(u32),
    /// The offset needs more than 36 bits.
    #[error("template offset {0:#x} does not fit 36 bits; the maximum is 0xfffffffff")]
    Offset(u64),
}

impl TemplatePtr {
    /// The symbolic pointer `offset` bytes into tensor `var_id`.
    ///
    /// # Errors
    /// [`TemplatePtrError`] for what the fields cannot hold.
    pub fn symbol(var_id: u32, offset: u64) -> Result<TemplatePtr, TemplatePtrError> {
        TemplatePtr::new()
            .with_is_template(true)
            .with_var_id_checked(var_id)
            .map_err(|()| TemplatePtrError::VarId(var_id))?
            .with_offset_checked(offset)
            .map_err(|()| TemplatePtrError::Offset(offset))
    }
}

impl From<Addr> for TemplatePtr {
    fn from(buf_ptr: Addr) -> TemplatePtr {
        TemplatePtr::from_bits(buf_ptr.0)
    }
}

impl From<TemplatePtr> for Addr {
    fn from(pointer: TemplatePtr) -> Addr {
        Addr(pointer.into_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_bits() {
        let bits = |var_id, offset| TemplatePtr::symbol(var_id, offset).unwrap().into_bits();
        assert_eq!(bits(0, 0), 0x2000_0000_0000_0000);
        assert_eq!(bits(1, 0), 0x2000_0010_0000_0000);
        assert_eq!(bits(524287, 0xf_ffff_ffff), 0x207f_ffff_ffff_ffff);
        assert!(!TemplatePtr::from(Addr(0x8040_0000_1000)).is_template());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(
            TemplatePtr::symbol(524288, 0),
            Err(TemplatePtrError::VarId(524288))
        );
        assert_eq!(
            TemplatePtr::symbol(0, 1 << 36),
            Err(TemplatePtrError::Offset(1 << 36))
        );
    }

    proptest! {
        #[test]
        fn symbols_round_trip(var_id in 0u32..1 << 19, offset in 0u64..1 << 36) {
            let pointer = TemplatePtr::from(Addr::from(TemplatePtr::symbol(var_id, offset).unwrap()));
            prop_assert_eq!((pointer.var_id(), pointer.offset()), (var_id, offset));
            prop_assert!(pointer.is_template());
        }

        #[test]
        fn every_pointer_survives(raw: u64) {
            prop_assert_eq!(Addr::from(TemplatePtr::from(Addr(raw))), Addr(raw));
        }
    }
}
