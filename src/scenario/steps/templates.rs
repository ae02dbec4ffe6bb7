//! Templates of rings, and rings built from them.

use super::step::{Step, names};
use crate::document::{Tables, keys};
use crate::host::{DevmemLoad, MemRefTable, Tensor, TensorSet, devmem_load_template};
use crate::scenario::given::Stretch;
use crate::scenario::host_side::{HostError, HostSide};
use crate::scenario::stage::Stage;
use crate::scenario::words::Name;

names! {
    DevmemLoadTemplate => "devmem_load_template";
    BuildFromTemplate => "build_from_template";
}

keys! {
    /// A template that loads tensors into device memory.
    pub(super) struct DevmemLoadTemplate {
        template: Name,
        loads: Tables<TensorPart>,
    }

    /// Part of a tensor of a template.
    pub(super) struct TensorPart {
        staged: Stretch,
        var_id: u32,
        offset: u64 = 0,
    }

    /// A vring from a template, with the tensors of an execution.
    pub(super) struct BuildFromTemplate {
        template: Name,
        vring: Name,
        tensors: Tables<NamedTensor>,
    }

    /// A tensor of an execution.
    pub(super) struct NamedTensor {
        var_id: u32,
        name: String,
        at: Stretch,
    }
}

impl Step for DevmemLoadTemplate {
    fn detail(&self) -> String {
        self.template.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let load = |part: &TensorPart| DevmemLoad {
            staged: part.staged.at,
            var_id: part.var_id,
            offset: part.offset,
            bytes: part.staged.bytes,
        };
        let loads: Vec<DevmemLoad> = self.loads.0.iter().map(load).collect();
        let template = devmem_load_template(host.arch(), &self.template, &loads)?;
        host.add_template(template)
    }
}

impl Step for BuildFromTemplate {
    fn detail(&self) -> String {
        format!("{} -> {}", *self.template, *self.vring)
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let (mut names, mut set) = (MemRefTable::default(), TensorSet::default());
        for tensor in &self.tensors.0 {
            names.insert(tensor.var_id, tensor.name.clone());
            let (pa, size) = (tensor.at.at, tensor.at.bytes);
            set.insert(tensor.name.clone(), Tensor { pa, size });
        }
        let template = host.template(&self.template)?;
        let ring = template.build_from_template(&names, &set)?;
        host.add_vring(ring.named(self.vring.to_string())?)
    }
}
