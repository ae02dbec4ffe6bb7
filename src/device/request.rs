//! An access to memory as the fabric sees it: what an engine asks for, and its way there and back.

use crate::arch::QueueId;
use crate::arch::regs::Direction;
use crate::dram::Kind as Way;
use crate::sim::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Bytes that cross an engine's data path in one UDMA cycle (A: 256-bit beats).
pub const BEAT_BYTES: u32 = 32;

/// Longest burst any config allows, in bytes.
pub(super) const MAX_BURST_BYTES: usize = 4096;

/// Who waits for an access: the burst, fetch or write that an engine has in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// A data read.
    Read {
        /// Number of the burst.
        burst: u64,
    },
    /// A data write.
    Write {
        /// The queue.
        queue: QueueId,
        /// Number of the burst in the queue.
        burst: u64,
    },
    /// A descriptor fetch.
    Fetch {
        /// Which ring of the queue.
        direction: Direction,
        /// The queue.
        queue: QueueId,
        /// Number of the fetch in the ring.
        fetch: u64,
    },
}

/// An access that an engine issues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub access: InFlight,
    pub kind: Way,
    /// When a read is issued, or when the last beat of a write leaves the engine.
    pub issued: Instant,
    /// Bytes.
    pub len: u32,
}

impl Request {
    /// Beats that it keeps a data path.
    pub fn beats(&self) -> u32 {
        beats(self.len)
    }
}

/// Beats of a read or write of `len` bytes.
pub(super) fn beats(len: u32) -> u32 {
    len.div_ceil(BEAT_BYTES)
}

/// The way of one access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// It is at its channel,
    pub arrived: Instant,
    /// which is at it from here on, at the latest,
    pub served_from: Instant,
    /// until here.
    pub served: Instant,
    /// A read takes the bytes from memory; every read after a write, by anyone, returns its bytes.
    pub done: Instant,
    /// From then until the engine has the data or the acknowledge.
    pub response: Duration,
}
