//! What a driver should not do to a queue that has descriptors outstanding, and did.

use super::engine::Engine;
use crate::arch::EngineId;
use crate::arch::regs::{Direction, UdmaState};
use crate::sim::Instant;
use std::fmt;

/// A change to one half of a queue that had descriptors outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyChange {
    /// The engine.
    pub engine: EngineId,
    /// The queue.
    pub queue: u8,
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
            Change::Disabled => "prefetch or scheduling was switched off",
            Change::Reset => "the queue was reset",
        };
        let (engine, queue, n) = (self.engine, self.queue, self.outstanding);
        let ring = self.direction.ring_name();
        let s = if n == 1 { "" } else { "s" };
        write!(
            f,
            "{engine} queue {queue}: {done} with {n} {ring} descriptor{s} outstanding"
        )
    }
}

/// Changes an engine keeps a record of: a host that does nothing else must not fill memory.
const RECORDS: usize = 64;

impl Engine {
    /// One half of queue `q` is being changed: takes note if it has work. It has none on an engine that aborted, or
    /// that was stopped when the queue had no packet in flight.
    pub(super) fn note_change(&mut self, direction: Direction, q: u8, change: Change, at: Instant) {
        let queue = &self.queues[usize::from(q)];
        let outstanding = queue.rings[direction as usize].outstanding();
        let stopped = match self.states {
            [UdmaState::Idle, UdmaState::Idle] => queue.packets.is_empty(),
            states => states.contains(&UdmaState::Abort),
        };
        if outstanding == 0 || stopped {
            return;
        }
        let busy_change = BusyChange {
            engine: self.id,
            queue: q,
            direction,
            change,
            outstanding,
            at,
        };
        tracing::warn!("{busy_change}");
        self.counters.busy_changes += 1;
        if self.busy_changes.len() < RECORDS {
            self.busy_changes.push(busy_change);
        }
    }

    /// The first changes to queues that had descriptors outstanding.
    pub fn busy_changes(&self) -> &[BusyChange] {
        &self.busy_changes
    }
}
