//! Data bursts under way, and what an observer is told when they are over.

use super::activity::{Access, EngineActivity};
use super::context::Outbox;
use super::error::Origin;
use super::request::Times;
use crate::arch::QueueId;
use crate::arch::regs::Direction;
use crate::desc::Descriptor;
use crate::sim::Instant;
use crate::units::Addr;

/// A data burst under way.
pub(super) struct Burst {
    pub at: Addr,
    pub len: u32,
    /// Its descriptor and that one's slot in the ring, and whether it is its last burst.
    pub desc: Descriptor,
    pub slot: u32,
    pub last: bool,
    /// When a read was issued, or the last beat of a write left the engine; the channel it went to, and its way
    /// once that is known.
    pub issued: Instant,
    pub channel: u32,
    pub times: Times,
    /// Cycle of its issue; never once it has been reported as timed out.
    pub issued_at: u64,
    /// It has reached its target and will never be answered: an injected fault.
    pub lost: bool,
    /// When the engine has the data or the acknowledge; never, as long as that is not known.
    pub answered: Instant,
}

impl Burst {
    /// Whether it has reached its target.
    pub fn has_landed(&self) -> bool {
        self.lost || self.answered < Instant::NEVER
    }

    /// What an error of it is about.
    pub fn origin(&self, queue: QueueId) -> Origin {
        Origin {
            queue,
            slot: self.slot,
            at: self.at,
            desc: self.desc,
        }
    }

    /// What an observer is told of it.
    fn access(&self) -> Access {
        Access {
            at: self.at,
            len: self.len,
            channel: self.channel,
            issued: self.issued,
            times: self.times,
            answered: self.answered,
        }
    }

    /// It is over: tells an observer that its descriptor is, if it was the last.
    fn end(&self, direction: Direction, queue: QueueId, begun: &mut Begun, out: &mut Outbox) {
        let since = *begun.since.get_or_insert(self.issued);
        begun.bytes += self.len;
        if !self.last {
            return;
        }
        let bytes = std::mem::take(begun).bytes;
        out.tell(|| EngineActivity::Descriptor {
            direction,
            queue,
            slot: self.slot,
            desc: self.desc,
            bytes,
            since,
        });
    }
}

/// A descriptor whose bursts are ending: when the first was issued, and the bytes of those that are over.
#[derive(Clone, Copy, Default)]
pub(super) struct Begun {
    since: Option<Instant>,
    bytes: u32,
}

/// Where a read burst's bytes go.
#[derive(Clone, Copy)]
pub(super) enum ReadData {
    /// Into the queue's lane, at this stream offset.
    Lane(u64),
    /// Into the stream processor: among the source bytes of a packet, by its number in the queue.
    Source { packet: u64, offset: u32 },
    /// Past the stream processor into the lane, at this stream offset: data of a checksum with copy.
    Passing { packet: u64, at: u64 },
    /// Nowhere: its queue was reset.
    Dropped,
}

/// A read burst in flight.
pub(super) struct ReadBurst {
    pub queue: QueueId,
    pub data: ReadData,
    pub burst: Burst,
}

impl ReadBurst {
    /// Tells an observer that it is over, and its descriptor if that is.
    #[cold]
    pub fn tell(&self, begun: &mut Begun, out: &mut Outbox) {
        let (queue, burst) = (self.queue, &self.burst);
        out.tell(|| EngineActivity::Read {
            queue,
            slot: burst.slot,
            access: burst.access(),
        });
        burst.end(Direction::M2s, queue, begun, out);
    }
}

/// Data that enters the stream: what the read station hands to the stream processor.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    pub queue: QueueId,
    /// Where its bytes are.
    pub data: ReadData,
    pub len: u32,
}

/// Where a write burst's bytes come from.
#[derive(Clone, Copy)]
pub(super) enum WriteData {
    /// The queue's lane, at this stream offset.
    Lane(u64),
    /// The packet's result, at this offset.
    Result(u32),
    /// The word 1: an embedded semaphore update.
    Increment,
}

/// A write burst that is not yet acknowledged: what the write station hands to completion.
pub(super) struct WriteBurst {
    /// It is of a transpose flush: the bytes go nowhere.
    pub flush: bool,
    pub data: WriteData,
    /// Number of its packet in the queue.
    pub packet: u64,
    pub burst: Burst,
}

impl WriteBurst {
    /// Tells an observer that it is over, and its descriptor if that is.
    #[cold]
    pub fn tell(&self, queue: QueueId, begun: &mut Begun, out: &mut Outbox) {
        let burst = &self.burst;
        out.tell(|| EngineActivity::Write {
            queue,
            slot: burst.slot,
            packet: self.packet,
            access: burst.access(),
        });
        if !matches!(self.data, WriteData::Increment) {
            burst.end(Direction::S2m, queue, begun, out);
        }
    }
}
