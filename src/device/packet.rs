//! A packet between its first read and its completion.

use super::computation::Computation;
use crate::arch::regs::Halves;
use crate::sim::Instant;

/// A packet between its first read and its completion.
pub(super) struct Packet {
    /// Slot of its first Tx descriptor.
    pub slot: u32,
    /// Bytes of all its writes.
    pub bytes: u32,
    /// When it was scheduled.
    pub started: Instant,
    pub tx_descs: u32,
    pub rx_descs: u32,
    /// Bytes written to each of them, if the queue has a completion ring.
    pub rx_written: Vec<u32>,
    /// Suspends the queue until it is complete.
    pub dmb: bool,
    /// Holds back later packets' writes.
    pub write_barrier: bool,
    /// Whether a Tx, or an Rx, descriptor asks for an interrupt on completion.
    pub interrupt: Halves<bool>,
    /// The slot of its first descriptor, if one of them asks for a notification.
    pub notification: Option<u32>,
    /// Bytes not yet issued as writes.
    pub to_write: u32,
    /// Writes issued and not yet visible.
    pub invisible: u32,
    /// An embedded semaphore update of its Rx descriptor is not yet issued.
    pub update_due: bool,
    /// When the last of its visible writes is acknowledged; its start until there is one.
    pub acknowledged_at: Instant,
    /// What is computed of its data; nothing for a plain copy.
    pub computation: Option<Box<Computation>>,
}

impl Packet {
    /// A packet without descriptors that is scheduled now.
    pub fn new(now: Instant) -> Packet {
        Packet {
            slot: 0,
            bytes: 0,
            started: now,
            tx_descs: 0,
            rx_descs: 0,
            rx_written: Vec::new(),
            dmb: false,
            write_barrier: false,
            interrupt: Halves::default(),
            notification: None,
            to_write: 0,
            invisible: 0,
            update_due: false,
            acknowledged_at: now,
            computation: None,
        }
    }

    /// Whether its result is still to be computed.
    #[inline]
    pub fn computing(&self) -> bool {
        let computation = self.computation.as_ref();
        computation.is_some_and(|computation| computation.result.is_none())
    }

    /// Bytes of its result that wait to be written; nothing if they are in the lane.
    #[inline]
    pub fn result_left(&self) -> Option<u64> {
        let computation = self.computation.as_ref().filter(|held| !held.passes)?;
        let result = computation.result.as_ref().map_or(0, Vec::len);
        Some(result as u64 - u64::from(computation.taken))
    }

    /// Takes bytes of its result for a write burst; returns where they are, or nothing if they are in the
    /// lane.
    #[inline]
    pub fn take(&mut self, len: u32) -> Option<u32> {
        let computation = self.computation.as_mut().filter(|held| !held.passes)?;
        let start = computation.taken;
        computation.taken += len;
        Some(start)
    }

    /// When it is complete; never, as long as not all its writes are visible.
    #[inline]
    pub fn complete_at(&self) -> Instant {
        let written = self.invisible == 0 && self.to_write == 0 && !self.update_due;
        match written && !self.computing() {
            true => self.acknowledged_at,
            false => Instant::NEVER,
        }
    }
}
