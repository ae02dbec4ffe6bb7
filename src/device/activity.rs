//! What an engine tells an observer: transactions that are over, with all their times, and what its
//! two stations are at.

use super::request::Times;
use crate::arch::QueueId;
use crate::arch::regs::Direction;
use crate::desc::Descriptor;
use crate::sim::{Duration, Instant};
use crate::units::Addr;
use serde::{Deserialize, Serialize};

/// Something an engine did. Told when it is over: the time of telling is the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EngineActivity {
    /// A doorbell arrived.
    Doorbell {
        /// Which ring.
        direction: Direction,
        /// The queue.
        queue: QueueId,
        /// Descriptors added to the tail.
        count: u32,
    },
    /// A burst of descriptors was sampled.
    Fetch {
        /// Which ring.
        direction: Direction,
        /// The queue.
        queue: QueueId,
        /// Slot of the first descriptor.
        slot: u32,
        /// The access.
        access: Access,
    },
    /// The data of a read burst entered the stream.
    Read {
        /// The queue.
        queue: QueueId,
        /// Slot of its Tx descriptor.
        slot: u32,
        /// The access.
        access: Access,
    },
    /// A write burst was acknowledged.
    Write {
        /// The queue.
        queue: QueueId,
        /// Slot of its Rx descriptor.
        slot: u32,
        /// Number of its packet in the queue.
        packet: u64,
        /// The access.
        access: Access,
    },
    /// A descriptor is done with: the data of all its reads entered the stream, or all its writes were
    /// acknowledged; a META descriptor's packet was scheduled.
    Descriptor {
        /// Which ring.
        direction: Direction,
        /// The queue.
        queue: QueueId,
        /// Its slot in the ring.
        slot: u32,
        /// Its 16 bytes.
        desc: Descriptor,
        /// Bytes read or written: fewer than its length, if the packet ended in it.
        bytes: u32,
        /// When its first burst was issued.
        since: Instant,
    },
    /// A completion record became visible.
    Completion {
        /// Which half's.
        direction: Direction,
        /// The queue.
        queue: QueueId,
        /// Where it was written.
        at: Addr,
        /// Its bytes.
        len: u32,
    },
    /// A packet completed.
    Packet {
        /// The queue.
        queue: QueueId,
        /// Its number in the queue.
        number: u64,
        /// Slot of its first Tx descriptor.
        slot: u32,
        /// Descriptors, Tx and Rx.
        descriptors: [u32; 2],
        /// Bytes of all its writes.
        bytes: u64,
        /// When it was scheduled.
        started: Instant,
        /// Whether it suspended its queue until now.
        dmb: bool,
        /// Whether later packets' writes waited for it.
        write_barrier: bool,
        /// Whether the stream processor computed something.
        computed: bool,
    },
    /// A barrier held a queue's next write until now: earlier ones were not acknowledged.
    Barrier {
        /// The queue.
        queue: QueueId,
        /// Slot of the Rx descriptor that the write is of.
        slot: u32,
        /// Since when.
        since: Instant,
    },
    /// A station was at something until now.
    Station {
        /// Which one.
        station: Station,
        /// What it was at.
        state: StationState,
        /// Since when.
        since: Instant,
        /// What it is at now.
        next: StationState,
    },
    /// An error bit was raised for the first time.
    Error {
        /// The queue.
        queue: QueueId,
        /// The error in words.
        text: String,
    },
}

impl EngineActivity {
    /// The queue that did it; a station works for all of them.
    pub fn queue(&self) -> Option<QueueId> {
        match self {
            EngineActivity::Doorbell { queue, .. }
            | EngineActivity::Fetch { queue, .. }
            | EngineActivity::Read { queue, .. }
            | EngineActivity::Write { queue, .. }
            | EngineActivity::Descriptor { queue, .. }
            | EngineActivity::Completion { queue, .. }
            | EngineActivity::Packet { queue, .. }
            | EngineActivity::Barrier { queue, .. }
            | EngineActivity::Error { queue, .. } => Some(*queue),
            EngineActivity::Station { .. } => None,
        }
    }
}

/// A memory access of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// First byte.
    pub at: Addr,
    /// Bytes.
    pub len: u32,
    /// The channel that served it.
    pub channel: u32,
    /// When the engine issued it.
    pub issued: Instant,
    /// The way there and back.
    pub times: Times,
    /// When the engine had the data or the acknowledge. Later than `times` say if a fault delayed it.
    pub answered: Instant,
}

/// A part of the data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Station {
    /// M2S: cuts packets into read bursts.
    Read,
    /// S2M: fills Rx descriptors with write bursts.
    Write,
}

impl Station {
    /// Both, in the order of the data.
    pub const ALL: [Station; 2] = [Station::Read, Station::Write];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Station::Read => "read",
            Station::Write => "write",
        }
    }
}

/// What a station is at. If several hold, the last of this list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StationState {
    /// No work.
    #[default]
    Idle,
    /// Reads are on their way: the write station needs their data, the read station a free slot.
    Data,
    /// Descriptors are on their way, or a packet's last one is still to come.
    Descriptor,
    /// The data FIFO is full.
    Fifo,
    /// Writes are to be acknowledged first: a barrier, or no free slot.
    Acknowledge,
    /// A DMB suspends every queue that has work.
    Dmb,
    /// Rate limiters have no tokens for any queue that has work.
    RateLimit,
    /// It moves beats, or pays for a descriptor or a packet.
    Busy,
}

impl StationState {
    /// Every state.
    pub const ALL: [StationState; 8] = [
        StationState::Idle,
        StationState::Data,
        StationState::Descriptor,
        StationState::Fifo,
        StationState::Acknowledge,
        StationState::Dmb,
        StationState::RateLimit,
        StationState::Busy,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            StationState::Idle => "idle",
            StationState::Busy => "busy",
            StationState::Descriptor => "descriptor",
            StationState::Data => "data",
            StationState::Fifo => "fifo",
            StationState::Acknowledge => "acknowledge",
            StationState::Dmb => "dmb",
            StationState::RateLimit => "rate-limit",
        }
    }
}

/// How long a station has been at what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationTimes([Duration; StationState::ALL.len()]);

impl StationTimes {
    /// Time spent in a state.
    pub fn get(&self, state: StationState) -> Duration {
        self.0[state as usize]
    }

    /// All of it.
    pub fn total(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, time| sum + *time)
    }
}

/// Follows what a station is at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StationClock {
    state: StationState,
    since: Instant,
    times: StationTimes,
}

impl StationClock {
    /// The station is at `state` from `now` on. Returns what it was at, and since when, if that is
    /// something else.
    #[inline]
    pub fn enter(&mut self, state: StationState, now: Instant) -> Option<(StationState, Instant)> {
        if state == self.state {
            return None;
        }
        let was = (self.state, self.since);
        self.times = self.times(now);
        (self.state, self.since) = (state, now);
        Some(was)
    }

    /// What it is at, and since when.
    pub fn now_at(&self) -> (StationState, Instant) {
        (self.state, self.since)
    }

    /// Times up to `now`.
    pub fn times(&self, now: Instant) -> StationTimes {
        let mut times = self.times;
        let spent = &mut times.0[self.state as usize];
        *spent = *spent + (now - self.since);
        times
    }
}
