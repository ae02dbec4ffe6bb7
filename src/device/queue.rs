//! The queues of an engine and their packets, and how much is under way in all of them.

use super::burst::{Begun, ReadData, WriteBurst, WriteData};
use super::completion_ring::CompletionRing;
use super::lane::Lane;
use super::packet::Packet;
use super::queue_set::QueueSet;
use super::rate_limit::{RateLimit, TokenBucket};
use super::ring::Ring;
use super::window::Window;
use crate::arch::QueueId;
use crate::arch::regs::Halves;
use crate::desc::{Descriptor, PacketTracker};
use crate::sim::Instant;
use crate::units::Addr;
use std::ops::{Index, IndexMut};

/// What a queue has of each half.
#[derive(Default)]
pub(super) struct QueueHalf {
    pub ring: Ring,
    pub completions: CompletionRing,
    /// From the registers: whether descriptors are fetched, and whether packets proceed.
    pub prefetch_on: bool,
    pub stream_on: bool,
    /// From the registers: whether a fetch may be shorter than the prefetch rules say.
    pub allow_small: bool,
    /// From the registers: descriptors of the FIFO this queue may hold.
    pub fifo_depth: usize,
}

/// One queue: a Tx ring, an Rx ring, and the packets between them.
#[derive(Default)]
pub(super) struct Queue {
    /// What it has of each half.
    pub halves: Halves<QueueHalf>,
    pub lane: Lane,
    /// Whole packets in the Tx prefetch FIFO.
    pub whole_packets: u32,
    /// Follows the packet whose descriptors are arriving, and its bytes so far.
    pub tracker: PacketTracker,
    pub arriving_bytes: u64,
    /// Packets in flight.
    pub packets: Window<Packet>,
    /// Number of the oldest that has not issued all its writes.
    pub written: u64,
    /// The Rx descriptor being filled.
    pub rx: Option<RxCursor>,
    /// The cell that the embedded update of a filled Rx descriptor increments next.
    pub update: Option<Addr>,
    /// Writes not yet acknowledged.
    pub writes: Window<WriteBurst>,
    /// The Rx descriptor whose writes are being acknowledged, for an observer.
    pub begun: Begun,
    /// No write is issued before all writes below this number are acknowledged.
    pub fence: u64,
    /// The same for every queue of the engine; empty unless SOW has engine scope.
    pub engine_fence: Vec<u64>,
    /// Since when the next write waits for those, if it does.
    pub held_since: Option<Instant>,
    /// For each channel, when this queue's last write there becomes visible (A3).
    pub visible_floor: Vec<Instant>,
    /// Suspended on a DMB.
    pub suspended: bool,
    /// Packets that only M2S still knows.
    pub lost: Option<Lost>,
    /// Never scheduled again: an injected fault.
    pub stuck: bool,
    /// Data waits for an Rx descriptor that nobody has announced.
    pub starved: Option<Starved>,
    /// From the registers: the pause of a DMB is masked.
    pub dmb_masked: bool,
    /// Packets completed, as the register counts them.
    pub packet_count: u32,
    /// From the registers: the queue's rate limiter, and its tokens.
    pub rate_limit: RateLimit,
    pub tokens: TokenBucket,
}

/// The Rx descriptor being filled.
pub(super) struct RxCursor {
    /// Where its next byte goes, and how many bytes are left and written.
    pub at: Addr,
    pub left: u32,
    pub written: u32,
    /// Cycle of its first burst.
    pub began: u64,
    pub desc: Descriptor,
    pub slot: u32,
    /// The cell that its embedded semaphore update increments (V4).
    pub update: Option<Addr>,
    /// The row being written, if it writes a transpose.
    pub row: Option<Row>,
    /// It is a transpose flush: what is written goes nowhere.
    pub flush: bool,
}

/// A row of a transpose.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub bytes: u32,
    /// How many of them are left.
    pub left: u32,
}

/// Data that waits for an Rx descriptor.
#[derive(Clone, Copy)]
pub(super) struct Starved {
    /// Since which cycle.
    pub since: u64,
    /// Whether the acknowledge timeout of a half has been reported.
    pub reported: Halves<bool>,
}

/// Packets that the S2M half of a queue has forgotten and the M2S half has not: they will never be
/// acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    /// Slot of the first one's first Tx descriptor.
    pub slot: u32,
    /// Their Tx descriptors.
    pub tx_descs: u32,
    /// When they were lost.
    pub since: Instant,
    /// Whether M2S notices: not if an abort took them from both halves.
    pub noticed: bool,
}

impl Queue {
    /// Bytes that wait to be written by the packet whose turn it is.
    pub fn available(&self) -> u64 {
        let result = self.packets.get(self.written).and_then(Packet::result_left);
        result.unwrap_or(self.lane.available())
    }

    /// Bytes of the data FIFO that the queue's lane has reserved, and that hold results.
    pub fn fifo_bytes(&self) -> u64 {
        let issued = |write: &WriteBurst| match write.data {
            WriteData::Result(_) => u64::from(write.burst.len),
            _ => 0,
        };
        let results = self.packets.iter().filter_map(Packet::result_left);
        self.lane.reserved() + results.sum::<u64>() + self.writes.iter().map(issued).sum::<u64>()
    }

    /// Room for the `len` bytes of a read burst; two pieces where it wraps around.
    #[inline]
    pub fn room(&mut self, data: ReadData, len: u32) -> (&mut [u8], &mut [u8]) {
        match data {
            ReadData::Lane(at) | ReadData::Passing { at, .. } => self.lane.pieces_mut(at, len),
            ReadData::Source { packet, offset } => {
                (self.source_room(packet, offset, len), Default::default())
            }
            ReadData::Dropped => Default::default(),
        }
    }

    /// Room for the `len` source bytes at `offset` of a compute packet, by its number in the queue.
    fn source_room(&mut self, packet: u64, offset: u32, len: u32) -> &mut [u8] {
        let packet = self.packets.get_mut(packet);
        let computation = packet.and_then(|packet| packet.computation.as_mut());
        let (start, end) = (offset as usize, (offset + len) as usize);
        computation
            .and_then(|computation| computation.sources.get_mut(start..end))
            .unwrap_or_default()
    }

    /// The `len` bytes that a write burst of a packet writes; two pieces where they wrap around.
    #[inline]
    pub fn bytes(&self, data: WriteData, packet: u64, len: u32) -> (&[u8], &[u8]) {
        const ONE: [u8; 4] = 1u32.to_le_bytes();
        match data {
            WriteData::Lane(offset) => self.lane.pieces(offset, len),
            WriteData::Result(offset) => (self.result_bytes(packet, offset, len), &[]),
            WriteData::Increment => (&ONE, &[]),
        }
    }

    /// The `len` bytes at `offset` of a compute packet's result.
    fn result_bytes(&self, packet: u64, offset: u32, len: u32) -> &[u8] {
        let packet = self.packets.get(packet);
        let computation = packet.and_then(|packet| packet.computation.as_ref());
        let result = computation.and_then(|computation| computation.result.as_deref());
        let (start, end) = (offset as usize, (offset + len) as usize);
        result
            .and_then(|result| result.get(start..end))
            .unwrap_or_default()
    }
}

/// All queues of an engine.
pub(super) struct Queues(Vec<Queue>);

impl Queues {
    /// So many queues, out of reset.
    pub fn new(count: u32) -> Queues {
        Queues((0..count).map(|_| Queue::default()).collect())
    }

    /// A queue, if the engine has it.
    pub fn get(&self, q: QueueId) -> Option<&Queue> {
        self.0.get(q.index())
    }

    /// Every queue's number.
    pub fn ids(&self) -> impl Iterator<Item = QueueId> + use<> {
        QueueId::first(self.0.len() as u32)
    }

    /// Every queue, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Queue> {
        self.0.iter()
    }

    /// As [`Queues::iter`], to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Queue> {
        self.0.iter_mut()
    }
}

impl Index<QueueId> for Queues {
    type Output = Queue;

    #[inline(always)]
    fn index(&self, q: QueueId) -> &Queue {
        &self.0[q.index()]
    }
}

impl IndexMut<QueueId> for Queues {
    #[inline(always)]
    fn index_mut(&mut self, q: QueueId) -> &mut Queue {
        &mut self.0[q.index()]
    }
}

/// What is under way in all queues of an engine.
#[derive(Default)]
pub(super) struct Work {
    /// Queues with Tx descriptors that a doorbell covered and that are not completed.
    pub armed: QueueSet,
    /// Queues with a whole packet in their Tx FIFO.
    pub schedulable: QueueSet,
    /// Queues with packets in flight.
    pub in_flight: QueueSet,
    /// Queues with packets that only M2S still knows.
    pub lost: QueueSet,
    /// Packets in flight.
    pub packets: usize,
    /// Bytes of the data FIFO in use.
    pub fifo_bytes: u64,
    /// Write bursts not yet acknowledged.
    pub writes: usize,
    /// Completion records and notifications on their way.
    pub records: usize,
}
