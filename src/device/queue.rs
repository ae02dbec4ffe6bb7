//! A queue and its packets, the limits that the registers set, and what the stations wait for.

use super::activity::{Station, StationState};
use super::arbiter::Mode;
use super::burst::Begun;
use super::completion_ring::CompletionRing;
use super::compute;
use super::lane::Lane;
use super::rate_limit::{RateLimit, TokenBucket};
use super::reset::Lost;
use super::ring::Ring;
use super::stream::Computation;
use super::window::Window;
use super::write::{RxCursor, WriteBurst, WriteData};
use crate::desc::PacketTracker;
use crate::sim::Instant;
use crate::units::Addr;

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
    pub interrupt: [bool; 2],
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

/// One queue: a Tx ring, an Rx ring, and the packets between them.
pub(super) struct Queue {
    /// M2S, then S2M.
    pub rings: [Ring; 2],
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
    /// Since which cycle data waits for an Rx descriptor that nobody has announced, and whether the
    /// acknowledge timeout of M2S and S2M has been reported.
    pub starved: Option<(u64, [bool; 2])>,
    /// From the registers: what is switched on.
    pub prefetch_on: [bool; 2],
    pub stream_on: [bool; 2],
    pub dmb_masked: bool,
    /// From the registers: whether a fetch may be shorter than the prefetch rules say.
    pub allow_small: [bool; 2],
    /// From the registers: descriptors of the FIFO this queue may hold.
    pub fifo_depth: [usize; 2],
    /// Packets completed, as the register counts them.
    pub packet_count: u32,
    /// Completion rings of M2S and S2M.
    pub completions: [CompletionRing; 2],
    /// From the registers: the queue's rate limiter, and its tokens.
    pub rate_limit: RateLimit,
    pub tokens: TokenBucket,
    /// What its stream processor keeps from packet to packet.
    pub stream: compute::QueueState,
}

impl Queue {
    pub fn new() -> Queue {
        Queue {
            rings: Default::default(),
            lane: Lane::default(),
            whole_packets: 0,
            tracker: PacketTracker::new(0),
            arriving_bytes: 0,
            packets: Window::default(),
            written: 0,
            rx: None,
            update: None,
            writes: Window::default(),
            begun: Begun::default(),
            fence: 0,
            engine_fence: Vec::new(),
            held_since: None,
            visible_floor: Vec::new(),
            suspended: false,
            lost: None,
            stuck: false,
            starved: None,
            prefetch_on: [false; 2],
            stream_on: [false; 2],
            dmb_masked: true,
            allow_small: [false; 2],
            fifo_depth: [0; 2],
            packet_count: 0,
            completions: Default::default(),
            rate_limit: RateLimit::default(),
            tokens: TokenBucket::default(),
            stream: compute::QueueState::default(),
        }
    }
}

impl Queue {
    /// Bytes of the data FIFO that the queue's lane has reserved, and that hold results.
    pub fn fifo_bytes(&self) -> u64 {
        let issued = |write: &WriteBurst| match write.data {
            WriteData::Result(_) => u64::from(write.burst.len),
            _ => 0,
        };
        let results = self.packets.iter().filter_map(Packet::result_left);
        self.lane.reserved() + results.sum::<u64>() + self.writes.iter().map(issued).sum::<u64>()
    }
}

/// Engine-wide limits, from the registers.
#[derive(Default)]
pub(super) struct Limits {
    pub data_reads: usize,
    pub descriptor_reads: [usize; 2],
    pub writes: usize,
    pub fifo_bytes: u64,
    pub packet_bytes: u64,
    /// Whether a length of 0 means 65536; if not, it is an error (C).
    pub encode_64k: bool,
    /// M2S starts no packet, S2M takes no Rx descriptor.
    pub stream_disabled: [bool; 2],
    /// The half fetches no descriptor.
    pub prefetch_stopped: [bool; 2],
    pub packet_descriptors: u32,
    /// Packets in flight.
    pub packets: usize,
    /// Bytes of a data burst of M2S and S2M, a power of two.
    pub burst_bytes: [u32; 2],
    /// Descriptors of a fetch of M2S and S2M: at most; at least once the queue's FIFO holds
    /// `prefetch_threshold` descriptors; at least below that.
    pub fetch_most: [u64; 2],
    /// Whether a fetch ends at multiples of `fetch_most` in the ring.
    pub fetch_breaks: [bool; 2],
    pub fetch_least_above: [u64; 2],
    pub fetch_least_below: [u64; 2],
    pub prefetch_threshold: [usize; 2],
    /// How the queues share the stream, and the stream's own rate limiter.
    pub arbitration: Mode,
    pub stream_rate_limit: RateLimit,
    /// A packet costs a rate limiter one token.
    pub rate_limit_packets: bool,
    /// Cycles after which a packet whose data finds no Rx descriptor is an error of M2S and S2M;
    /// 0 for never.
    pub ack_timeout: [u64; 2],
    /// Cycles after which an AXI access that is not answered is an error; 0 for never.
    pub axi_timeout: u64,
}

/// What the stations wait for at the end of a wake-up.
pub(super) struct Needs {
    /// The cycle at which one of them can act; `u64::MAX` if that is not known.
    pub cycle: u64,
    /// When something fetched arrives; never, if none of them waits for it.
    pub at: Instant,
    /// The oldest read's data.
    pub read: bool,
    /// The oldest write's acknowledge of some queue.
    pub ack: bool,
    /// What the read and the write station are at; nothing if that is as before.
    pub stations: [Option<StationState>; 2],
}

impl Default for Needs {
    fn default() -> Needs {
        Needs {
            cycle: u64::MAX,
            at: Instant::NEVER,
            read: false,
            ack: false,
            stations: [None; 2],
        }
    }
}

impl Needs {
    pub fn cycle(&mut self, cycle: u64) {
        self.cycle = self.cycle.min(cycle);
    }

    /// A station is at this, unless it is at something that comes later in the list of states.
    pub fn station(&mut self, station: Station, state: StationState) {
        let known = &mut self.stations[station as usize];
        *known = (*known).max(Some(state));
    }

    pub fn at(&mut self, at: Instant) {
        self.at = self.at.min(at);
    }
}
