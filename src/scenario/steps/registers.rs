//! Registers by their names.

use super::step::{Step, names};
use crate::document::{At, Read, keys};
use crate::scenario::given::Register;
use crate::scenario::host_side::{HostError, HostSide};
use crate::scenario::scope::Scope;
use crate::scenario::stage::{Effect, Stage};
use crate::scenario::words::Name;

/// Bytes of a register.
const REGISTER_BYTES: u64 = 4;

names! {
    WriteRegister => "write_register";
    ReadRegister => "read_register";
}

keys! {
    pub(super) struct WriteRegister {
        register: Register,
        value: u32,
    }

    pub(super) struct ReadRegister {
        register: Register,
        name: At<Name>,
    }
}

impl Step for WriteRegister {
    fn detail(&self) -> String {
        let Register { engine, name, .. } = &self.register;
        format!("{engine} {name} := {:#x}", self.value)
    }

    fn effect(&self) -> Effect<'_> {
        match self.register.name.ends_with(".drtp_inc") {
            true => Effect::RingsByRegister,
            false => Effect::Nothing,
        }
    }

    fn perform(&self, _: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        Ok(stage.write_reg(self.register.at, self.value)?)
    }
}

impl Step for ReadRegister {
    fn detail(&self) -> String {
        let Register { engine, name, .. } = &self.register;
        format!("{engine} {name} as \"{}\"", self.name.value.0)
    }

    fn declare(&self, scope: &mut Scope<'_>) -> Read<()> {
        scope.observed(&self.name, REGISTER_BYTES)
    }

    fn perform(&self, _: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        stage.observe_register(&self.name, self.register.at)
    }
}
