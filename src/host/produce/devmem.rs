//! Device-memory load: tensors that lie staged in host or device memory are copied to where an
//! execution wants them. The ring is a template: each tensor is a variable, resolved per execution.

use super::ProduceError;
use crate::arch::Arch;
use crate::desc::TemplatePtr;
use crate::host::vring::Vring;
use crate::units::Addr;

/// One tensor, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevmemLoad {
    /// Where it lies staged.
    pub staged: Addr,
    /// Variable of the tensor that is to hold it.
    pub var_id: u32,
    /// Where in the tensor it goes.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A template that copies each load into its tensor, in order.
///
/// # Errors
/// [`ProduceError`] for a variable or an offset that the symbol has no room for, and for what a vring
/// refuses.
pub fn devmem_load_template(
    arch: Arch,
    name: &str,
    loads: &[DevmemLoad],
) -> Result<Vring, ProduceError> {
    let max_var_id = loads.iter().map(|load| load.var_id).max().unwrap_or(0);
    let mut vring = Vring::new_template(arch, name, max_var_id)?;
    for load in loads {
        let tensor = TemplatePtr::symbol(load.var_id, load.offset)?;
        vring.add_desc_transfer(load.staged, tensor.into(), load.bytes)?;
    }
    Ok(vring)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desc::RxDesc;
    use crate::host::{MemRefTable, Tensor, TensorSet};

    #[test]
    fn loads_go_to_their_tensors() {
        let load = |staged, var_id, offset, bytes| DevmemLoad {
            staged: Addr(staged),
            var_id,
            offset,
            bytes,
        };
        let loads = [load(0x1000, 4, 0, 64), load(0x2000, 9, 0x100, 70_000)];
        let template = devmem_load_template(Arch::V2, "load_0", &loads).unwrap();
        assert_eq!(template.rx().max_var_id(), 9);
        let mut names = MemRefTable::default();
        names.insert(4, "bias");
        names.insert(9, "weights");
        let mut tensors = TensorSet::default();
        tensors.insert(
            "bias",
            Tensor {
                pa: Addr(0x10_0000),
                size: 64,
            },
        );
        tensors.insert(
            "weights",
            Tensor {
                pa: Addr(0x20_0000),
                size: 0x100 + 70_000,
            },
        );
        let ring = template.build_from_template(&names, &tensors).unwrap();
        let ends: Vec<u64> = ring
            .rx()
            .runs()
            .flatten()
            .map(|desc| RxDesc::from(*desc).buf1_ptr.0)
            .collect();
        assert_eq!(ends, [0x10_0000, 0x20_0100, 0x21_0100]);
        assert!(devmem_load_template(Arch::V2, "l", &[load(0, 1 << 19, 0, 4)]).is_err());
    }
}
