//! What surrounds an engine during a call, and what the call does to it.

use super::activity::EngineActivity;
use super::fabric::Fabric;
use crate::arch::EngineId;
use crate::memory::{Effects, PhysicalMemory, Target};
use crate::sim::{Clock, Instant};
use crate::units::Addr;

/// A write that landed in a UDMA register window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterWrite {
    /// The engine written to.
    pub engine: EngineId,
    /// Offset in its window.
    pub offset: u64,
    /// The value.
    pub value: u32,
}

/// A read that must be answered by a UDMA register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterRead {
    /// The read burst that waits for it.
    pub burst: u64,
    /// The engine asked.
    pub engine: EngineId,
    /// Offset in its window.
    pub offset: u64,
}

/// What an engine did to the world outside; whoever called it acts on it.
#[derive(Default)]
pub struct Outbox {
    /// Whether something has happened that somebody outside must act on or may have waited for: there is
    /// something in this box, a packet was completed, or a record or notification of one became visible.
    pub progress: bool,
    /// Cells that changed.
    pub effects: Vec<Effects>,
    /// Registers its writes reached.
    pub register_writes: Vec<RegisterWrite>,
    /// Main interrupt groups that became pending.
    pub interrupts: Vec<u8>,
    /// Whether anybody observes; if not, nothing is told.
    pub observed: bool,
    /// What it did.
    pub activities: Vec<EngineActivity>,
}

impl Outbox {
    /// Memory was written to.
    pub(super) fn wrote(&mut self, effects: Effects) {
        if effects != Effects::None {
            self.effects.push(effects);
            self.progress = true;
        }
    }

    /// Tells the observer, if there is one.
    pub(super) fn tell(&mut self, activity: impl FnOnce() -> EngineActivity) {
        if self.observed {
            self.tell_observer(activity);
        }
    }

    #[cold]
    fn tell_observer(&mut self, activity: impl FnOnce() -> EngineActivity) {
        self.activities.push(activity());
        self.progress = true;
    }
}

/// The surroundings of an engine during one call.
pub struct Ctx<'a> {
    /// The time.
    pub now: Instant,
    /// The UDMA clock.
    pub clock: &'a Clock,
    /// Memory.
    pub memory: &'a mut PhysicalMemory,
    /// The way there.
    pub fabric: &'a mut Fabric,
    /// What the call does to the outside.
    pub out: &'a mut Outbox,
}

/// The register that an access of exactly one register falls on.
pub(super) fn register_window(
    memory: &PhysicalMemory,
    at: Addr,
    len: u32,
) -> Option<(EngineId, u64)> {
    let place = memory.resolve(at, len.into()).ok()?;
    match place.target {
        Target::UdmaRegisters { engine } if len == 4 && place.offset.is_multiple_of(4) => {
            Some((engine, place.offset))
        }
        _ => None,
    }
}
