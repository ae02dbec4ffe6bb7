//! What the host stores to memory, and looks at.

use super::step::{Step, names};
use crate::document::{At, Read, keys};
use crate::scenario::given::{Area, Filled};
use crate::scenario::host_side::{HostError, HostSide};
use crate::scenario::scope::Scope;
use crate::scenario::stage::{Effect, Stage};
use crate::scenario::words::Name;
use crate::units::Bytes;

names! {
    Write => "write";
    Observe => "observe";
}

keys! {
    pub(super) struct Write {
        at: Filled,
    }

    pub(super) struct Observe {
        name: At<Name>,
        at: Area,
    }
}

impl Step for Write {
    fn detail(&self) -> String {
        let Filled {
            written, region, ..
        } = &self.at;
        format!("{written}, {}", Bytes(region.bytes))
    }

    fn effect(&self) -> Effect<'_> {
        Effect::Stores(self.at.region)
    }

    fn perform(&self, _: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        Ok(self.at.fill.store(stage, self.at.region, self.at.seed)?)
    }
}

impl Step for Observe {
    fn detail(&self) -> String {
        let Area {
            written, region, ..
        } = &self.at;
        let name = &self.name.value.0;
        format!("{written} as \"{name}\", {}", Bytes(region.bytes))
    }

    fn declare(&self, scope: &mut Scope<'_>) -> Read<()> {
        scope.observe(&self.name, &self.at.mark, &self.at.region)
    }

    fn perform(&self, _: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        stage.observe(&self.name, self.at.region)
    }
}
