//! Templates: vrings whose addresses are symbols, resolved for each execution against the tensors of
//! that execution.
//!
//! A symbol names a variable and an offset (`docs/hardware.md`, "Descriptor"). The model says which
//! tensor a variable is ([`MemRefTable`]), the execution says where that tensor lies
//! ([`TensorSet`]).

use super::pages::{PagesError, VringPages};
use super::vring::Vring;
use crate::arch::regs::Direction;
use crate::desc::{Descriptor, RxDesc, TemplatePtr, TxDesc};
use crate::units::Addr;
use std::collections::BTreeMap;

/// Names of the variables of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemRefTable {
    names: BTreeMap<u32, String>,
}

impl MemRefTable {
    /// Names a variable; a second name replaces the first.
    pub fn insert(&mut self, var_id: u32, name: impl Into<String>) {
        self.names.insert(var_id, name.into());
    }

    /// Name of a variable.
    pub fn name(&self, var_id: u32) -> Option<&str> {
        self.names.get(&var_id).map(String::as_str)
    }
}

/// A tensor in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Physical address of its first byte.
    pub pa: Addr,
    /// Bytes.
    pub size: u64,
}

/// The tensors of one execution, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorSet {
    tensors: BTreeMap<String, Tensor>,
}

impl TensorSet {
    /// Adds a tensor; a second of its name replaces the first.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) {
        self.tensors.insert(name.into(), tensor);
    }

    /// The tensor of a name.
    pub fn get(&self, name: &str) -> Option<Tensor> {
        self.tensors.get(name).copied()
    }
}

/// Why a template was not resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The vring is no template.
    #[error("vring {0} is not a template")]
    NoTemplate(String),
    /// A symbol of a variable that the template has not.
    #[error(
        "vring {vring} {half} descriptor {idx} of {used}: var_id {var_id} exceeds the template's max_var_id {max_var_id}"
    )]
    VarId {
        /// Name of the vring.
        vring: String,
        /// `tx` or `rx`.
        half: &'static str,
        /// The descriptor.
        idx: u32,
        /// Descriptors of the half.
        used: u32,
        /// Variable of the symbol.
        var_id: u32,
        /// Largest variable of the template.
        max_var_id: u32,
    },
    /// The model does not name the variable.
    #[error(
        "vring {vring} {half} descriptor {idx} of {used}: no memory reference {var_id} in the model"
    )]
    NoMemRef {
        /// Name of the vring.
        vring: String,
        /// `tx` or `rx`.
        half: &'static str,
        /// The descriptor.
        idx: u32,
        /// Descriptors of the half.
        used: u32,
        /// Variable of the symbol.
        var_id: u32,
    },
    /// The execution has no such tensor.
    #[error(
        "vring {vring} {half} descriptor {idx} of {used}: Failed to find tensor {tensor} in tensor set"
    )]
    NoTensor {
        /// Name of the vring.
        vring: String,
        /// `tx` or `rx`.
        half: &'static str,
        /// The descriptor.
        idx: u32,
        /// Descriptors of the half.
        used: u32,
        /// Name of the tensor.
        tensor: String,
    },
    /// The descriptor reaches beyond its tensor.
    #[error(
        "vring {vring} {half} descriptor {idx} of {used}: {len} bytes at offset {offset:#x} exceed tensor {tensor}, which has {size} bytes at {pa}"
    )]
    OutOfTensor {
        /// Name of the vring.
        vring: String,
        /// `tx` or `rx`.
        half: &'static str,
        /// The descriptor.
        idx: u32,
        /// Descriptors of the half.
        used: u32,
        /// Name of the tensor.
        tensor: String,
        /// Offset of the symbol.
        offset: u64,
        /// Bytes of the descriptor.
        len: u32,
        /// Bytes of the tensor.
        size: u64,
        /// Address of the tensor.
        pa: Addr,
    },
    /// The process has no memory for the concrete vring.
    #[error(transparent)]
    Pages(#[from] PagesError),
}

impl Vring {
    /// Whether the vring is a template.
    pub fn is_template(&self) -> bool {
        self.tx.is_template() || self.rx.is_template()
    }

    /// Resolves a template: a vring of the same descriptors in which every symbol has become the
    /// address of its tensor plus the offset. The template stays as it is and can be resolved again
    /// with other tensors. Each variable is looked up once.
    ///
    /// # Errors
    /// [`TemplateError`] naming the first descriptor that cannot be resolved.
    pub fn build_from_template(
        &self,
        mem_refs: &MemRefTable,
        tensors: &TensorSet,
    ) -> Result<Vring, TemplateError> {
        if !self.is_template() {
            return Err(TemplateError::NoTemplate(self.name.clone()));
        }
        let mut found = FoundTensors {
            mem_refs,
            tensors,
            found: BTreeMap::new(),
        };
        let mut concrete = self.clone();
        for direction in Direction::ALL {
            let half = concrete.half_mut(direction);
            let max_var_id = half.max_var_id();
            half.set_template(None);
            let place = HalfOf {
                vring: &self.name,
                half: direction.ring_name(),
                used: half.used_desc_count(),
                max_var_id,
            };
            resolve(half, direction, &place, &mut found)?;
        }
        Ok(concrete)
    }
}

/// What messages say of the half at work.
struct HalfOf<'a> {
    vring: &'a str,
    half: &'static str,
    used: u32,
    max_var_id: u32,
}

/// Tensors by variable, as far as they have been looked up.
struct FoundTensors<'a> {
    mem_refs: &'a MemRefTable,
    tensors: &'a TensorSet,
    found: BTreeMap<u32, (&'a str, Tensor)>,
}

impl<'a> FoundTensors<'a> {
    fn get(
        &mut self,
        var_id: u32,
        idx: u32,
        place: &HalfOf,
    ) -> Result<(&'a str, Tensor), TemplateError> {
        if let Some(found) = self.found.get(&var_id) {
            return Ok(*found);
        }
        let (vring, half, used) = (place.vring.to_string(), place.half, place.used);
        if var_id > place.max_var_id {
            let max_var_id = place.max_var_id;
            return Err(TemplateError::VarId {
                vring,
                half,
                idx,
                used,
                var_id,
                max_var_id,
            });
        }
        let Some(name) = self.mem_refs.name(var_id) else {
            return Err(TemplateError::NoMemRef {
                vring,
                half,
                idx,
                used,
                var_id,
            });
        };
        let Some(tensor) = self.tensors.get(name) else {
            let tensor = name.to_string();
            return Err(TemplateError::NoTensor {
                vring,
                half,
                idx,
                used,
                tensor,
            });
        };
        self.found.insert(var_id, (name, tensor));
        Ok((name, tensor))
    }
}

/// Replaces the symbols of a half.
fn resolve(
    half: &mut VringPages,
    direction: Direction,
    place: &HalfOf,
    found: &mut FoundTensors,
) -> Result<(), TemplateError> {
    for (idx, desc) in (0..).zip(half.runs_mut().flatten()) {
        if direction == Direction::M2s && desc.len_ctrl().meta() {
            continue;
        }
        // The address lies in the same place in both views.
        let symbol = TemplatePtr::from(RxDesc::from(*desc).buf1_ptr);
        if !symbol.is_template() {
            continue;
        }
        let (name, tensor) = found.get(symbol.var_id(), idx, place)?;
        let (offset, len) = (symbol.offset(), desc.len_ctrl().byte_len());
        let pa = offset
            .checked_add(u64::from(len))
            .filter(|end| *end <= tensor.size)
            .and_then(|_| tensor.pa.checked_add(offset))
            .ok_or_else(|| TemplateError::OutOfTensor {
                vring: place.vring.to_string(),
                half: place.half,
                idx,
                used: place.used,
                tensor: name.to_string(),
                offset,
                len,
                size: tensor.size,
                pa: tensor.pa,
            })?;
        *desc = with_address(*desc, direction, pa);
    }
    Ok(())
}

fn with_address(desc: Descriptor, direction: Direction, at: Addr) -> Descriptor {
    match direction {
        Direction::M2s => TxDesc {
            buf_ptr: at,
            ..TxDesc::from(desc)
        }
        .into(),
        Direction::S2m => RxDesc {
            buf1_ptr: at,
            ..RxDesc::from(desc)
        }
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::host::VringError;

    fn symbol(var_id: u32, offset: u64) -> Addr {
        TemplatePtr::symbol(var_id, offset).unwrap().into()
    }

    fn template() -> Vring {
        let mut vring = Vring::new_template(Arch::V3, "load_0", 3).unwrap();
        vring
            .add_desc_transfer(symbol(1, 0), symbol(2, 0x40), 70_000)
            .unwrap();
        vring
            .add_desc_transfer(Addr(0x1234), symbol(1, 8), 8)
            .unwrap();
        vring
    }

    fn mem_refs() -> MemRefTable {
        let mut table = MemRefTable::default();
        table.insert(1, "weights");
        table.insert(2, "staged");
        table
    }

    fn tensors(weights: u64, staged: u64) -> TensorSet {
        let mut set = TensorSet::default();
        set.insert(
            "weights",
            Tensor {
                pa: Addr(weights),
                size: 70_000,
            },
        );
        set.insert(
            "staged",
            Tensor {
                pa: Addr(staged),
                size: 70_064,
            },
        );
        set
    }

    fn ends(vring: &Vring) -> Vec<(u64, u64)> {
        let tx = vring
            .tx()
            .runs()
            .flatten()
            .map(|desc| TxDesc::from(*desc).buf_ptr.0);
        let rx = vring
            .rx()
            .runs()
            .flatten()
            .map(|desc| RxDesc::from(*desc).buf1_ptr.0);
        tx.zip(rx).collect()
    }

    #[test]
    fn two_resolutions_are_independent() {
        let template = template();
        assert!(template.is_template());
        assert_eq!(
            (template.tx().max_var_id(), template.rx().max_var_id()),
            (3, 3)
        );
        let before = ends(&template);
        assert_eq!(before[1], (0x2000_0010_0001_0000, 0x2000_0020_0001_0040));

        let first = template
            .build_from_template(&mem_refs(), &tensors(0x10_0000, 0x20_0000))
            .unwrap();
        let mut second = template
            .build_from_template(&mem_refs(), &tensors(0x8000_0000, 0x0))
            .unwrap();
        second.addr_rewrite(Addr(0), u64::MAX, Addr(0)).unwrap();
        second.add_desc_transfer(Addr(0), Addr(0), 4).unwrap();
        assert_eq!(
            ends(&first),
            [
                (0x10_0000, 0x20_0040),
                (0x11_0000, 0x21_0040),
                (0x1234, 0x10_0008)
            ]
        );
        assert_eq!(
            ends(&second)[..3],
            [
                (0x8000_0000, 0x40),
                (0x8001_0000, 0x1_0040),
                (0x1234, 0x8000_0008)
            ]
        );
        assert_eq!(ends(&template), before);
        assert!(!first.is_template() && !second.is_template());
        assert_eq!(first.total_tx_size(), 70_008);
    }

    #[test]
    fn max_var_id_is_enforced_when_authored_and_when_resolved() {
        let mut template = template();
        let refused = template
            .add_desc_transfer(symbol(4, 0), Addr(0), 4)
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "vring load_0: var_id 4 exceeds the template's max_var_id 3"
        );
        assert_eq!(template.tx().used_desc_count(), 3);
        template
            .add_desc_transfer(symbol(3, 0), Addr(0), 4)
            .unwrap();
        template.tx.set_template(Some(2));
        let refused = template
            .build_from_template(&mem_refs(), &tensors(0, 0))
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "vring load_0 tx descriptor 3 of 4: var_id 3 exceeds the template's max_var_id 2"
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let template = template();
        let mut set = TensorSet::default();
        set.insert(
            "weights",
            Tensor {
                pa: Addr(0),
                size: 70_000,
            },
        );
        let refused = template.build_from_template(&mem_refs(), &set).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "vring load_0 rx descriptor 0 of 3: Failed to find tensor staged in tensor set"
        );
        let refused = template
            .build_from_template(&MemRefTable::default(), &set)
            .unwrap_err();
        assert!(matches!(
            refused,
            TemplateError::NoMemRef {
                var_id: 1,
                idx: 0,
                half: "tx",
                ..
            }
        ));
        set.insert(
            "staged",
            Tensor {
                pa: Addr(0x100),
                size: 70_063,
            },
        );
        let refused = template.build_from_template(&mem_refs(), &set).unwrap_err();
        assert!(matches!(
            refused,
            TemplateError::OutOfTensor {
                idx: 1,
                half: "rx",
                ..
            }
        ));
        let concrete = Vring::new(Arch::V3, "v").unwrap();
        assert_eq!(
            concrete.build_from_template(&mem_refs(), &set).unwrap_err(),
            TemplateError::NoTemplate("v".into())
        );
    }

    #[test]
    fn a_symbol_needs_a_template_and_room_for_its_offset() {
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        let refused = vring.add_desc_transfer(symbol(0, 0), Addr(0), 4);
        assert!(matches!(
            refused,
            Err(VringError::NoTemplate { var_id: 0, .. })
        ));
        let mut template = template();
        let top = symbol(1, 0xf_ffff_fff0);
        assert!(template.add_desc_transfer(top, Addr(0), 16).is_ok());
        let refused = template.add_desc_transfer(top, Addr(0), 17);
        assert!(matches!(refused, Err(VringError::PastEnd { .. })));
    }
}
