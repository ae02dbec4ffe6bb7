//! What a driver should not do to a queue that has descriptors outstanding, and did.

use crate::arch::regs::Direction;
use crate::arch::{EngineId, QueueId};
use crate::sim::Instant;
use std::fmt;

/// A change to one half of a queue that had descriptors outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyChange {
    /// The engine.
    pub engine: EngineId,
    /// The queue.
    pub queue: QueueId,
    /// Which half.
    pub direction: Direction,
    /// What was changed.
    pub change: Change,
    /// Descriptors outstanding at that time.
    pub outstanding: u64,
    /// When.
    pub at: Instant,
}

/// What was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The base of the ring.
    Base,
    /// The length of the ring.
    Length,
    /// Prefetch or scheduling was switched off.
    Disabled,
    /// The half was reset.
    Reset,
}

impl fmt::Display for BusyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.change {
            Change::Base => "the ring was moved",
            Change::Length => "the ring's length was changed",
            Change::Disabled => "prefetch or scheduling was disabled",
            Change::Reset => "the queue was reset",
        };
        let (engine, queue, n) = (self.engine, self.queue, self.outstanding);
        let ring = self.direction.ring_name();
        let s = if n == 1 { "" } else { "s" };
        write!(
            f,
            "{engine} queue {queue}: {done} with {n} outstanding {ring} descriptor{s}"
        )
    }
}
