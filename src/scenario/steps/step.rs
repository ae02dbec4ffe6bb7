//! What every type of step says of itself.

use crate::document::Read;
use crate::scenario::host_side::{HostError, HostSide};
use crate::scenario::scope::Scope;
use crate::scenario::stage::{Effect, Stage};
use std::fmt::Debug;

/// A step as it is planned: resolved for one arch.
pub(in crate::scenario) trait Step: Debug + Send + Sync {
    /// What it works on, in a few words.
    fn detail(&self) -> String;

    /// Makes known what later parts of the scenario may name.
    fn declare(&self, _scope: &mut Scope<'_>) -> Read<()> {
        Ok(())
    }

    /// What it does to others.
    fn effect(&self) -> Effect<'_> {
        Effect::Nothing
    }

    /// Does it; on a scratch memory to see whether it can be done, and in the run.
    fn perform(&self, host: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError>;
}

/// A type of step.
pub(super) trait Named {
    /// Its name, by the runtime's own where that has one.
    const NAME: &'static str;
}

/// Gives types of steps their names.
macro_rules! names {
    ($($step:ty => $name:literal;)*) => {$(
        impl $crate::scenario::steps::step::Named for $step {
            const NAME: &'static str = $name;
        }
    )*};
}
pub(super) use names;
