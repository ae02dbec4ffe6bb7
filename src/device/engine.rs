//! One UDMA engine: its registers, its queues, and the clock that moves its stations.

use super::arbiter::{Arbiter, Mode, Share};
use super::completion_ring::{CompletionRing, TX_RECORD};
use super::compute::{self, Fp8};
use super::error::{DeviceError, ErrorBit};
use super::fabric::{BEAT_BYTES, Fabric};
use super::faults::{Fault, FaultKind, Faults, Injection, Site};
use super::interrupts::Interrupts;
use super::lane::Lane;
use super::prefetch::Prefetcher;
use super::queue_set::QueueSet;
use super::rate_limit::{RateLimit, TokenBucket};
use super::read::Reader;
use super::registers::Registers;
use super::ring::Ring;
use super::stream::Computation;
use super::write::{RxCursor, WriteBurst, Writer};
use crate::arch::regs::{
    self, CfgLen, ChangeState, CompCfg, DataCfg, DescPrefCfg, DescPrefCfg2, DescPrefCfg3,
    Direction, DwrrCfg, OutstandingM2s, OutstandingS2mWr, QueueCfg, QueueDwrrCfg1, QueueStatus,
    QueueSwCtrl, RateLimitCfg1, RateLimitMask, RateLimiterCfg, StreamCfg, UdmaState, UdmaStateReg,
    general, global, queue, rate_limit,
    table::{Access, Place},
};
use crate::arch::{ArchSpec, EngineId};
use crate::config::{Config, EngineConfig, SowScope};
use crate::desc::{Descriptor, PacketTracker};
use crate::memory::{Effects, PhysicalMemory};
use crate::sim::{Clock, EventClass, Instant};
use crate::units::{Addr, Cycles};
use std::collections::VecDeque;
use std::fmt;

/// What an engine asked to be told later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// Its clocked work.
    Wake,
    /// A descriptor burst is sampled.
    Fetch {
        /// Which ring of the queue.
        direction: Direction,
        /// The queue.
        queue: u8,
    },
    /// A data read is sampled.
    Read {
        /// Number of the burst.
        burst: u64,
    },
    /// A completion record becomes visible.
    Completion {
        /// Which half's.
        direction: Direction,
        /// The queue.
        queue: u8,
    },
    /// A data write becomes visible.
    Write {
        /// The queue.
        queue: u8,
        /// Number of the burst in the queue.
        burst: u64,
    },
}

impl EngineEvent {
    /// Its place among the events of one instant.
    pub fn class(self) -> EventClass {
        match self {
            EngineEvent::Wake => EventClass::Clocked,
            EngineEvent::Fetch { .. } | EngineEvent::Read { .. } => EventClass::Sample,
            EngineEvent::Write { .. } | EngineEvent::Completion { .. } => EventClass::Visible,
        }
    }
}

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
    /// Events of the called engine.
    pub events: Vec<(Instant, EngineEvent)>,
    /// Cells that changed.
    pub effects: Vec<Effects>,
    /// Registers its writes reached.
    pub register_writes: Vec<RegisterWrite>,
    /// Main interrupt groups that became pending.
    pub interrupts: Vec<u8>,
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

/// What an engine has done since it was switched on. Bytes and counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Doorbell writes that arrived, both directions.
    pub doorbells: u64,
    /// Tx descriptors completed.
    pub tx_descriptors: u64,
    /// Rx descriptors completed.
    pub rx_descriptors: u64,
    /// Packets completed.
    pub packets: u64,
    /// Data bytes sampled at their source.
    pub bytes_read: u64,
    /// Data bytes visible at their destination.
    pub bytes_written: u64,
    /// Packets whose DMB suspended their queue.
    pub dmb: u64,
    /// Packets with a write barrier.
    pub write_barriers: u64,
    /// Rx descriptors with strong-ordered writes.
    pub strong_order_writes: u64,
    /// Embedded semaphore updates (V4).
    pub embedded_updates: u64,
    /// Bytes of Rx descriptors left over when their packet ended.
    pub rx_bytes_unused: u64,
    /// Packets whose DMB did nothing because the queue's DMB pause is masked (the reset state).
    pub dmb_masked: u64,
    /// Reserved barrier bits ignored: SOW where it does not exist, DMB on an Rx descriptor.
    pub reserved_bits: u64,
    /// Descriptors of doorbells that exceeded the ring and were ignored.
    pub doorbell_overflow: u64,
}

impl Counters {
    /// Adds another engine's counts.
    pub fn add(&mut self, other: &Counters) {
        let Counters {
            doorbells,
            tx_descriptors,
            rx_descriptors,
            packets,
            bytes_read,
            bytes_written,
            dmb,
            write_barriers,
            strong_order_writes,
            embedded_updates,
            rx_bytes_unused,
            dmb_masked,
            reserved_bits,
            doorbell_overflow,
        } = other;
        self.doorbells += doorbells;
        self.tx_descriptors += tx_descriptors;
        self.rx_descriptors += rx_descriptors;
        self.packets += packets;
        self.bytes_read += bytes_read;
        self.bytes_written += bytes_written;
        self.dmb += dmb;
        self.write_barriers += write_barriers;
        self.strong_order_writes += strong_order_writes;
        self.embedded_updates += embedded_updates;
        self.rx_bytes_unused += rx_bytes_unused;
        self.dmb_masked += dmb_masked;
        self.reserved_bits += reserved_bits;
        self.doorbell_overflow += doorbell_overflow;
    }
}

/// Why a queue with work does not get on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The engine.
    pub engine: EngineId,
    /// The queue.
    pub queue: u8,
    /// What it waits for.
    pub reason: StallReason,
}

/// What a queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallReason {
    /// Its engine aborted on an error.
    Aborted,
    /// Its engine is not in the normal state.
    NotStarted,
    /// Prefetch of a ring is off.
    PrefetchOff(Direction),
    /// Scheduling (M2S) or streaming (S2M) is off.
    SchedulingOff(Direction),
    /// A packet without its LAST descriptor.
    PacketIncomplete,
    /// Rx descriptors for a packet's data.
    RxDescriptors,
    /// An injected fault holds it for ever.
    Stuck,
    /// Nothing known: transfers are under way.
    Busy,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} queue {} ", self.engine, self.queue)?;
        match self.reason {
            StallReason::Aborted => f.write_str("belongs to an engine that aborted on an error"),
            StallReason::NotStarted => {
                f.write_str("belongs to an engine that was never put into the normal state")
            }
            StallReason::PrefetchOff(direction) => {
                write!(f, "has prefetch of its {} ring off", direction.ring_name())
            }
            StallReason::SchedulingOff(Direction::M2s) => f.write_str("has scheduling off"),
            StallReason::SchedulingOff(Direction::S2m) => f.write_str("has streaming off"),
            StallReason::PacketIncomplete => {
                f.write_str("waits for the LAST Tx descriptor of a packet")
            }
            StallReason::RxDescriptors => f.write_str("waits for Rx descriptors"),
            StallReason::Stuck => f.write_str("is stuck: an injected fault"),
            StallReason::Busy => f.write_str("is busy"),
        }
    }
}

/// A packet between its first read and its completion.
pub(super) struct Packet {
    pub tx_descs: u32,
    pub rx_descs: u32,
    /// Bytes written to each of them, if the queue has a completion ring.
    pub rx_written: Vec<u32>,
    /// Resets of the rings seen when the packet began.
    pub epochs: [u32; 2],
    /// Suspends the queue until it is complete.
    pub dmb: bool,
    /// Holds back later packets' writes.
    pub write_barrier: bool,
    /// Whether a Tx, or an Rx, descriptor asks for an interrupt on completion.
    pub interrupt: [bool; 2],
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
    /// Packets in flight, oldest first.
    pub packets: VecDeque<Packet>,
    /// How many of them, from the front, have issued all their writes.
    pub written: usize,
    /// Packets completed before the first in `packets`.
    pub completed: u64,
    /// The Rx descriptor being filled.
    pub rx: Option<RxCursor>,
    /// The cell that the embedded update of a filled Rx descriptor increments next.
    pub update: Option<Addr>,
    /// Writes not yet acknowledged, oldest first, and the number of the oldest.
    pub writes: VecDeque<WriteBurst>,
    pub first_write: u64,
    /// No write is issued before all writes below this number are acknowledged.
    pub fence: u64,
    /// The same for every queue of the engine; empty unless SOW has engine scope.
    pub engine_fence: Vec<u64>,
    /// For each channel, when this queue's last write there becomes visible (A3).
    pub visible_floor: Vec<Instant>,
    /// Suspended on a DMB.
    pub suspended: bool,
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
    fn new() -> Queue {
        Queue {
            rings: Default::default(),
            lane: Lane::default(),
            whole_packets: 0,
            tracker: PacketTracker::new(0),
            arriving_bytes: 0,
            packets: VecDeque::new(),
            written: 0,
            completed: 0,
            rx: None,
            update: None,
            writes: VecDeque::new(),
            first_write: 0,
            fence: 0,
            engine_fence: Vec::new(),
            visible_floor: Vec::new(),
            suspended: false,
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

    /// Number of the next write burst.
    pub fn next_write(&self) -> u64 {
        self.first_write + self.writes.len() as u64
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
#[derive(Default)]
pub(super) struct Needs {
    /// A cycle at which one of them can act.
    pub cycle: Option<u64>,
    /// An instant at which something fetched arrives.
    pub at: Option<Instant>,
    /// The oldest read's data.
    pub read: bool,
    /// The oldest write's acknowledge of some queue.
    pub ack: bool,
}

impl Needs {
    pub fn cycle(&mut self, cycle: u64) {
        self.cycle = Some(self.cycle.map_or(cycle, |other| other.min(cycle)));
    }

    pub fn at(&mut self, at: Instant) {
        self.at = Some(self.at.map_or(at, |other| other.min(at)));
    }
}

/// One UDMA engine.
pub struct Engine {
    pub(super) id: EngineId,
    pub(super) spec: &'static ArchSpec,
    pub(super) timing: EngineConfig,
    pub(super) sow_scope: SowScope,
    pub(super) fp8: Fp8,
    pub(super) cce_beat_cycles: u32,
    pub(super) registers: Registers,
    pub(super) limits: Limits,
    pub(super) states: [UdmaState; 2],
    pub(super) interrupts: Interrupts,
    /// Descriptor of the first error of M2S and S2M since their logs were cleared.
    error_logs: [Option<Descriptor>; 2],
    pub(super) prefetchers: [Prefetcher; 2],
    pub(super) queues: Vec<Queue>,
    /// Queues with Tx descriptors that a doorbell covered and that are not completed.
    pub(super) armed: QueueSet,
    /// Queues with packets in flight.
    pub(super) in_flight: QueueSet,
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) arbiter: Arbiter,
    pub(super) shares: Vec<Share>,
    pub(super) stream_tokens: TokenBucket,
    /// Packets in flight, and completion records on their way, all queues.
    pub(super) packets_in_flight: usize,
    pub(super) completions_in_flight: usize,
    /// Buffers of compute packets, to use again.
    pub(super) buffers: Vec<Vec<u8>>,
    /// The wake-up that counts; one scheduled for another time is stale.
    wake_at: Option<Instant>,
    /// Whether the last wake-up ended waiting for a read or an acknowledge.
    waits: Needs,
    /// Faults to inject; nothing on a machine without any.
    faults: Option<Box<Faults>>,
    pub(super) counters: Counters,
    errors: Vec<DeviceError>,
}

impl Engine {
    /// An engine fresh from reset.
    pub fn new(id: EngineId, spec: &'static ArchSpec, config: &Config) -> Engine {
        let queues = spec.limits.queues_per_engine;
        let mut engine = Engine {
            id,
            spec,
            timing: config.values.engine.clone(),
            sow_scope: config.values.ordering.sow_scope,
            fp8: Fp8::from(&config.values.compute),
            cce_beat_cycles: config.values.compute.cce_beat_cycles,
            registers: Registers::new(spec),
            limits: Limits::default(),
            states: [UdmaState::Idle; 2],
            interrupts: Interrupts::default(),
            error_logs: [None; 2],
            prefetchers: Default::default(),
            queues: (0..queues).map(|_| Queue::new()).collect(),
            armed: QueueSet::default(),
            in_flight: QueueSet::default(),
            reader: Reader::default(),
            writer: Writer::default(),
            arbiter: Arbiter::default(),
            shares: vec![Share::default(); queues as usize],
            stream_tokens: TokenBucket::default(),
            packets_in_flight: 0,
            completions_in_flight: 0,
            buffers: Vec::new(),
            wake_at: None,
            waits: Needs::default(),
            faults: None,
            counters: Counters::default(),
            errors: Vec::new(),
        };
        engine.reload_limits();
        for q in 0..queues as u8 {
            engine.reload_queue(q);
        }
        engine
    }

    /// What it has done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The first occurrence of each error, in the order they happened.
    pub fn errors(&self) -> &[DeviceError] {
        &self.errors
    }

    /// Arms a fault; `seed` is the run's, `index` numbers the faults of the machine.
    pub fn inject(&mut self, fault: Fault, seed: u64, index: usize) {
        let faults = self.faults.get_or_insert_default();
        faults.arm(fault, seed, index);
    }

    /// A record of the faults that struck, the first ones, and how many there were.
    pub fn injections(&self) -> (&[Injection], u64) {
        match &self.faults {
            Some(faults) => (faults.injections(), faults.struck()),
            None => (&[], 0),
        }
    }

    /// Queue `q` passes a site: the fault that strikes there.
    pub(super) fn strike(&mut self, site: Site, q: u8, now: Instant) -> Option<FaultKind> {
        self.faults.as_mut()?.strike(site, q, now)
    }

    /// Error bits raised so far in one half.
    pub fn causes(&self, direction: Direction) -> u32 {
        self.interrupts.error_causes(direction)
    }

    /// State of one half.
    pub fn state(&self, direction: Direction) -> UdmaState {
        self.states[direction as usize]
    }

    /// Whether every descriptor that the doorbells of queue `q` covered on the Tx side has been
    /// completed, and its completion records have landed. Rx descriptors that wait for data do not count as work.
    pub fn queue_is_idle(&self, q: u8) -> bool {
        self.queues.get(usize::from(q)).is_none_or(|queue| {
            queue.rings[0].outstanding() == 0
                && queue.packets.is_empty()
                && queue.completions.iter().all(|ring| ring.records.is_empty())
        })
    }

    /// Whether all queues are idle.
    pub fn is_idle(&self) -> bool {
        self.armed.is_empty() && self.in_flight.is_empty() && self.completions_in_flight == 0
    }

    /// What each queue that is not idle waits for.
    pub fn stalls(&self) -> impl Iterator<Item = Stall> {
        let busy = (0..self.queues.len() as u8).filter(|q| !self.queue_is_idle(*q));
        busy.map(|q| Stall {
            engine: self.id,
            queue: q,
            reason: self.stall_reason(&self.queues[usize::from(q)]),
        })
    }

    fn stall_reason(&self, queue: &Queue) -> StallReason {
        use Direction::{M2s, S2m};
        if self.states.contains(&UdmaState::Abort) {
            return StallReason::Aborted;
        }
        if self.states.iter().any(|state| *state != UdmaState::Normal) {
            return StallReason::NotStarted;
        }
        if queue.stuck {
            return StallReason::Stuck;
        }
        let rx = &queue.rings[S2m as usize];
        let starved = queue.packets.len() > queue.written && queue.rx.is_none();
        if starved && rx.fifo.is_empty() && rx.fetches.is_empty() {
            match (rx.to_fetch(), queue.prefetch_on[S2m as usize]) {
                (0, _) => return StallReason::RxDescriptors,
                (_, false) => return StallReason::PrefetchOff(S2m),
                _ => {}
            }
        }
        if queue.packets.is_empty() {
            let tx = &queue.rings[M2s as usize];
            return match (tx.to_fetch() > 0, queue.prefetch_on[0], queue.stream_on[0]) {
                (true, false, _) => StallReason::PrefetchOff(M2s),
                (_, _, false) => StallReason::SchedulingOff(M2s),
                _ => StallReason::PacketIncomplete,
            };
        }
        if !queue.stream_on[S2m as usize] {
            return StallReason::SchedulingOff(S2m);
        }
        StallReason::Busy
    }

    /// Reads a register; a reserved offset reads 0.
    pub fn read_register(&mut self, offset: u64) -> u32 {
        let Some((place, row)) = self.registers.locate(offset) else {
            self.note_reserved(offset, "read");
            return 0;
        };
        if row.access == Access::Command {
            return 0;
        }
        match place {
            Place::Queue(direction, q, within) => {
                let queue = &self.queues[usize::from(q)];
                let ring = &queue.rings[direction as usize];
                match within {
                    queue::STATUS => self.queue_status(queue, direction),
                    queue::DRHP => ring.head_pointer(),
                    queue::DRTP => ring.tail_pointer(),
                    queue::DCP => ring.current_pointer(),
                    queue::M2S_TDRDTP if direction == Direction::M2s => ring.data_tail_pointer(),
                    queue::CRHP => queue.completions[direction as usize].head_pointer(),
                    queue::CRHP_INTERNAL => {
                        queue.completions[direction as usize].internal_head_pointer()
                    }
                    queue::M2S_TX_PKT if direction == Direction::M2s => queue.packet_count,
                    queue::S2M_RX_PKT if direction == Direction::S2m => queue.packet_count,
                    _ => self.registers.get(offset),
                }
            }
            Place::Global(direction, within) => self.read_global(direction, within, offset),
            Place::Interrupt(group, within) => self.interrupts.read(group, within),
            Place::General(_) | Place::GeneralEx(_) => self.registers.get(offset),
        }
    }

    fn read_global(&self, direction: Direction, within: u64, offset: u64) -> u32 {
        match within {
            global::STATE => {
                let state = self.states[direction as usize];
                // The data path of a disabled half runs until what is in flight has drained.
                let data = match state {
                    UdmaState::Idle if !self.in_flight.is_empty() => UdmaState::Normal,
                    state => state,
                };
                UdmaStateReg::new()
                    .with_comp_ctrl(data)
                    .with_stream_if(data)
                    .with_data(data)
                    .with_desc_pref(state)
                    .into_bits()
            }
            global::ERR_LOG..global::ERR_LOG_CLEAR => {
                let word = (within - global::ERR_LOG) / 4;
                self.error_logs[direction as usize].map_or(0, |desc| desc.words[word as usize])
            }
            global::STATISTICS.. if within < global::STATISTICS + 4 * global::STATISTICS_WORDS => {
                self.statistics(direction)[((within - global::STATISTICS) / 4) as usize]
            }
            _ => self.registers.get(offset),
        }
    }

    /// The statistics words of one half: a configuration word (M2S) or nothing; packets (M2S) or
    /// dropped packets (S2M: none ever are); bytes, low and high; descriptors fetched; packets and
    /// descriptors completed; packets acknowledged. Counters wrap.
    fn statistics(&self, direction: Direction) -> [u32; global::STATISTICS_WORDS as usize] {
        let c = &self.counters;
        let (packets, bytes, descriptors) = match direction {
            Direction::M2s => (c.packets, c.bytes_read, c.tx_descriptors),
            Direction::S2m => (0, c.bytes_written, c.rx_descriptors),
        };
        let fetched = self.prefetchers[direction as usize].fetched;
        [
            0,
            packets as u32,
            bytes as u32,
            (bytes >> 32) as u32,
            fetched as u32,
            c.packets as u32,
            descriptors as u32,
            c.packets as u32,
        ]
    }

    fn note_reserved(&mut self, offset: u64, access: &str) {
        if self.registers.note_reserved(offset) {
            tracing::warn!(engine = %self.id, offset = format!("{offset:#x}"), "{access} of a reserved register");
        }
    }

    fn queue_status(&self, queue: &Queue, direction: Direction) -> u32 {
        let ring = &queue.rings[direction as usize];
        // At most the ring's length, which fits into 24 bits.
        let used = ring.outstanding() as u32;
        QueueStatus::new()
            .with_q_used(used)
            .with_prefetch(!ring.fetches.is_empty())
            .with_scheduler(!queue.packets.is_empty())
            .with_q_dmb(direction == Direction::M2s && queue.suspended)
            .with_q_full(ring.is_full())
            .into_bits()
    }

    /// Writes a register.
    pub fn write_register(&mut self, offset: u64, value: u32, ctx: &mut Ctx) {
        let Some((place, row)) = self.registers.locate(offset) else {
            self.note_reserved(offset, "write");
            return;
        };
        if row.access == Access::ReadOnly {
            return;
        }
        match place {
            Place::Queue(direction, q, within) => {
                let cycle = ctx.clock.cycle_at(ctx.now).0;
                self.write_queue_register(direction, q, within, offset, value, cycle);
            }
            Place::Global(
                Direction::M2s,
                global::M2S_RATE_LIMITER_CTRL..=global::M2S_RATE_LIMITER_CTRL_END,
            ) => {
                let cycle = ctx.clock.cycle_at(ctx.now).0;
                self.stream_tokens.reset(cycle);
                self.queues
                    .iter_mut()
                    .for_each(|queue| queue.tokens.reset(cycle));
            }
            Place::Global(Direction::M2s, global::M2S_STREAM_RATE_LIMIT_SW_CTRL) => {
                self.stream_tokens.reset(ctx.clock.cycle_at(ctx.now).0);
            }
            Place::Global(Direction::M2s, global::M2S_DWRR_DEFICIT) => {
                self.registers.set(offset, value);
                self.arbiter.set_deficits(i64::from(value & DEFICIT_MASK));
            }
            Place::Global(direction, global::CHANGE_STATE) => {
                self.change_state(direction, ChangeState::from_bits(value));
            }
            Place::Global(direction, global::ERR_LOG_CLEAR) => {
                self.error_logs[direction as usize] = None;
            }
            Place::Global(..) => {
                self.registers.set(offset, value);
                self.reload_limits();
                for q in 0..self.queues.len() as u8 {
                    self.reload_queue(q);
                }
            }
            Place::Interrupt(group, within) => self.interrupts.write(group, within, value),
            Place::General(_) | Place::GeneralEx(_) => {
                self.registers.set(offset, value);
                self.reload_limits();
            }
        }
        ctx.out.interrupts.extend(self.interrupts.take());
        self.wake_by(ctx.now, ctx);
    }

    fn write_queue_register(
        &mut self,
        direction: Direction,
        q: u8,
        within: u64,
        offset: u64,
        value: u32,
        cycle: u64,
    ) {
        let ring = &mut self.queues[usize::from(q)].rings[direction as usize];
        match within {
            queue::DRTP_INC => {
                let refused = ring.ring_doorbell(value & DOORBELL_MASK);
                let (armed, fetchable) = (ring.outstanding() > 0, ring.to_fetch() > 0);
                if direction == Direction::M2s {
                    self.armed.set(usize::from(q), armed);
                }
                self.prefetchers[direction as usize]
                    .fetchable
                    .set(usize::from(q), fetchable);
                self.counters.doorbells += 1;
                self.counters.doorbell_overflow += u64::from(refused);
                if refused > 0 {
                    tracing::warn!(
                        engine = %self.id, queue = q, ring = direction.ring_name(), refused,
                        "doorbell exceeds the ring"
                    );
                }
            }
            queue::M2S_TDRDTP_INC if direction == Direction::M2s => {
                ring.ring_data_doorbell(value & DOORBELL_MASK);
            }
            queue::M2S_RATE_LIMIT_SW_CTRL if direction == Direction::M2s => {
                self.queues[usize::from(q)].tokens.reset(cycle);
            }
            queue::M2S_DWRR_SW_CTRL if direction == Direction::M2s => {
                self.arbiter.ran_dry(usize::from(q));
            }
            within if within == queue::sw_ctrl(direction) => {
                self.reset_queue(direction, q, QueueSwCtrl::from_bits(value));
            }
            _ => {
                self.registers.set(offset, value);
                self.reload_queue(q);
            }
        }
    }

    /// Reset strobes. Any pointer strobe takes the whole ring back to its first lap: the sources
    /// give the bits, drivers set them together, what one alone does is modelled (C).
    fn reset_queue(&mut self, direction: Direction, q: u8, strobes: QueueSwCtrl) {
        let queue = &mut self.queues[usize::from(q)];
        if strobes.rst_dmb() || strobes.rst_q() {
            queue.suspended = false;
        }
        let pointers = strobes.rst_tail() || strobes.rst_head() || strobes.rst_current();
        if !pointers && !strobes.rst_q() {
            return;
        }
        let ring = &mut queue.rings[direction as usize];
        self.prefetchers[direction as usize].held -= ring.held();
        ring.reset();
        self.prefetchers[direction as usize]
            .fetchable
            .remove(usize::from(q));
        queue.completions[direction as usize].reset();
        match direction {
            Direction::M2s => {
                queue.stream = compute::QueueState::default();
                self.armed.remove(usize::from(q));
                self.reader.schedulable.remove(usize::from(q));
                queue.whole_packets = 0;
                queue.tracker = PacketTracker::new(self.limits.packet_descriptors);
                queue.arriving_bytes = 0;
            }
            Direction::S2m => queue.rx = None,
        }
    }

    /// State commands. What each does to work in progress is modelled (C):
    ///
    /// * *abort* freezes both halves.
    /// * *disable* stops M2S from starting packets and S2M from filling Rx descriptors; what is in
    ///   flight drains. On an aborted engine it drops the work in progress of both halves: the way
    ///   back from an abort is *disable*, resetting the queues, *normal*.
    /// * *normal* runs the half, unless it is aborted.
    fn change_state(&mut self, direction: Direction, command: ChangeState) {
        let aborted = self.states.contains(&UdmaState::Abort);
        if command.abort() {
            self.states = [UdmaState::Abort; 2];
        } else if command.dis() {
            if aborted {
                self.drop_work();
                self.states = [UdmaState::Idle; 2];
            }
            self.states[direction as usize] = UdmaState::Idle;
        } else if command.normal() && !aborted {
            self.states[direction as usize] = UdmaState::Normal;
        }
    }

    /// Forgets packets, reads and writes in flight. Their descriptors stay outstanding until their
    /// queue is reset; writes that are on their way are lost.
    fn drop_work(&mut self) {
        self.reader.drop_work();
        self.writer.outstanding = 0;
        for queue in &mut self.queues {
            queue.first_write = queue.next_write();
            queue.writes.clear();
            queue.completed += queue.packets.len() as u64;
            queue.packets.clear();
            queue.written = 0;
            queue.rx = None;
            queue.update = None;
            queue.suspended = false;
            queue.starved = None;
            queue.lane = Lane::default();
        }
        self.in_flight = QueueSet::default();
        self.packets_in_flight = 0;
    }

    fn reload_limits(&mut self) {
        use Direction::{M2s, S2m};
        let get = |direction, offset| self.registers.global(direction, offset);
        let m2s = OutstandingM2s::from_bits(get(M2s, global::M2S_OSTAND_CFG));
        let s2m_reads = OutstandingM2s::from_bits(get(S2m, global::S2M_OSTAND_CFG_RD));
        let s2m = OutstandingS2mWr::from_bits(get(S2m, global::S2M_OSTAND_CFG_WR));
        let wide = get(S2m, global::S2M_OSTAND_CFG_WR_2) & WIDE_OUTSTANDING_MASK;
        let data = DataCfg::from_bits(get(M2s, global::M2S_DATA_CFG));
        let dwrr = DwrrCfg::from_bits(get(M2s, global::M2S_DWRR));
        let streams = Direction::ALL.map(|direction| {
            let stream = get(direction, global::stream_cfg(direction));
            (StreamCfg::from_bits(stream), direction)
        });
        let fetch = Direction::ALL.map(|direction| {
            let most = u64::from(get(direction, global::DESC_RD_CFG_3) & BURST_MASK);
            let config = u64::from(self.timing.descriptor_burst);
            let most = if most == 0 { config } else { most.min(config) };
            (
                most,
                DescPrefCfg3::from_bits(get(direction, global::DESC_PREF_CFG_3)),
            )
        });
        let length = CfgLen::from_bits(get(M2s, global::M2S_CFG_LEN));
        let descriptors = DescPrefCfg2::from_bits(get(M2s, global::DESC_PREF_CFG_2));
        self.limits = Limits {
            data_reads: usize::from(m2s.data_rd()),
            descriptor_reads: [usize::from(m2s.desc_rd()), usize::from(s2m_reads.desc_rd())],
            // The wide register, where it is programmed, replaces the narrow one (C).
            writes: match wide {
                0 => usize::from(s2m.data_wr()),
                wide => wide as usize,
            },
            // A FIFO that could not hold two reads would never fill a write burst (C).
            fifo_bytes: (u64::from(data.data_fifo_depth()) * u64::from(BEAT_BYTES))
                .max(2 * u64::from(self.timing.burst_bytes)),
            packet_bytes: u64::from(length.max_pkt_size()),
            encode_64k: length.encode_64k(),
            stream_disabled: streams.map(|(stream, _)| stream.disable()),
            prefetch_stopped: streams
                .map(|(stream, direction)| direction == S2m && stream.stop_prefetch()),
            packet_descriptors: u32::from(descriptors.max_desc_per_pkt()),
            packets: usize::from(data.max_pkt_limit()),
            burst_bytes: Direction::ALL.map(|direction| self.burst_bytes(direction)),
            fetch_most: fetch.map(|(most, _)| most),
            fetch_least_above: fetch.map(|(_, rules)| u64::from(rules.min_burst_above_thr())),
            fetch_least_below: fetch.map(|(_, rules)| u64::from(rules.min_burst_below_thr())),
            prefetch_threshold: fetch.map(|(_, rules)| usize::from(rules.pref_thr())),
            arbitration: Mode {
                dwrr: dwrr.en_dwrr(),
                packets: dwrr.pkt_mode_en(),
                inc_factor: dwrr.inc_factor(),
            },
            stream_rate_limit: self.rate_limit(global::M2S_STREAM_RATE_LIMIT),
            rate_limit_packets: RateLimiterCfg::from_bits(get(M2s, global::M2S_RATE_LIMITER))
                .pkt_mode_en(),
            ack_timeout: [
                u64::from(get(M2s, global::M2S_COMP_ACK_TIMEOUT)),
                u64::from(get(S2m, global::S2M_COMP_ACK_TIMEOUT)),
            ],
            axi_timeout: u64::from(self.registers.get(regs::GEN + general::AXI_CFG_1)),
        };
        for queue in &mut self.queues {
            if !queue.tracker.inside() {
                queue.tracker = PacketTracker::new(self.limits.packet_descriptors);
            }
        }
    }

    /// Longest data burst: what the half's register asks for, no more than the config allows.
    fn burst_bytes(&self, direction: Direction) -> u32 {
        let beats = self.registers.global(direction, global::DATA_BURST_CFG) & BURST_MASK;
        match beats.checked_ilog2() {
            None => self.timing.burst_bytes,
            Some(power) => self.timing.burst_bytes.min(BEAT_BYTES << power),
        }
    }

    /// The rate limiter whose first word is at M2S offset `offset`.
    fn rate_limit(&self, offset: u64) -> RateLimit {
        let get = |offset| self.registers.get(Direction::M2s.block() + offset);
        let cfg = RateLimitCfg1::from_bits(get(offset + rate_limit::CFG_1));
        let common = RateLimiterCfg::from_bits(get(global::M2S_RATE_LIMITER));
        let long = get(offset + rate_limit::CYCLE) & rate_limit::CYCLE_MASK;
        let tokens = |word| i64::from(get(offset + word) & rate_limit::TOKEN_SIZE_MASK);
        RateLimit {
            enabled: cfg.en(),
            paused: cfg.pause(),
            burst_bits: 8 * i64::from(cfg.max_burst_size()),
            // A cycle of no length is taken for one of length 1 (C).
            short_cycles: u64::from(common.short_cycle_size().max(1)),
            long_shorts: u64::from(long.max(1)),
            short_bits: tokens(rate_limit::TOKEN_SIZE_2),
            long_bits: tokens(rate_limit::TOKEN_SIZE_1),
        }
    }

    fn reload_queue(&mut self, q: u8) {
        let share = |offset| self.registers.queue(Direction::M2s, q, offset);
        let dwrr = QueueDwrrCfg1::from_bits(share(queue::M2S_DWRR_CFG_1));
        self.shares[usize::from(q)] = Share {
            // Classes exist where the generation has them; elsewhere it is plain round robin.
            qos: match self.spec.caps.queue_qos {
                true => (share(queue::M2S_DWRR_CFG_2) & BYTE_MASK) as u8,
                false => 0,
            },
            strict: dwrr.strict(),
            weight: (share(queue::M2S_DWRR_CFG_3) & BYTE_MASK) as u8,
            max_deficit: i64::from(dwrr.max_deficit_cnt()),
        };
        let bank = Direction::M2s.queue_reg(q, queue::M2S_RATE_LIMIT);
        let limit = self.rate_limit(bank - Direction::M2s.block());
        let mask = RateLimitMask::from_bits(share(queue::M2S_RATE_LIMIT_MASK));
        self.queues[usize::from(q)].rate_limit = RateLimit {
            enabled: limit.enabled && !mask.internal_rate_limiter(),
            ..limit
        };
        for direction in Direction::ALL {
            let get = |offset| self.registers.queue(direction, q, offset);
            let queue = &mut self.queues[usize::from(q)];
            let ring = &mut queue.rings[direction as usize];
            ring.base = Addr(
                u64::from(get(queue::DRBP_HIGH)) << 32
                    | u64::from(get(queue::DRBP_LOW) & RING_BASE_MASK),
            );
            ring.length = get(queue::DRL) & RING_LENGTH_MASK;
            let completions = &mut queue.completions[direction as usize];
            completions.enabled =
                CompCfg::from_bits(get(queue::comp_cfg(direction))).en_comp_ring_update();
            completions.base = Addr(
                u64::from(get(queue::CRBP_HIGH)) << 32
                    | u64::from(get(queue::CRBP_LOW) & RING_BASE_MASK),
            );
            completions.length = ring.length;
            completions.record_bytes = match direction {
                Direction::M2s => TX_RECORD,
                Direction::S2m => {
                    let words = self.registers.global(direction, global::S2M_COMP_CFG_1C);
                    4 * (words & RECORD_WORDS_MASK).clamp(2, 8)
                }
            };
            let cfg = QueueCfg::from_bits(get(queue::CFG));
            let enabled = self
                .registers
                .global(direction, global::pref_queue_en(direction));
            queue.prefetch_on[direction as usize] = cfg.en_pref() && enabled >> q & 1 == 1;
            queue.stream_on[direction as usize] = cfg.en_scheduling();
            queue.allow_small[direction as usize] = cfg.allow_lt_min_pref();
            queue.fifo_depth[direction as usize] =
                usize::from(DescPrefCfg::from_bits(get(queue::DESC_PREF_CFG)).fifo_depth());
            if direction == Direction::M2s {
                queue.dmb_masked =
                    RateLimitMask::from_bits(get(queue::M2S_RATE_LIMIT_MASK)).internal_pause_dmb();
            }
        }
    }

    /// An event the engine asked for. A read that fell on a UDMA register is handed back for
    /// [`Engine::answer_register_read`].
    pub fn handle(&mut self, event: EngineEvent, ctx: &mut Ctx) -> Option<RegisterRead> {
        match event {
            EngineEvent::Wake if self.wake_at == Some(ctx.now) => {
                self.wake_at = None;
                self.work(ctx);
            }
            EngineEvent::Wake => {}
            EngineEvent::Fetch { direction, queue } => self.fetched(direction, queue, ctx),
            EngineEvent::Read { burst } => {
                let question = self.sample_read(burst, ctx);
                ctx.out.interrupts.extend(self.interrupts.take());
                return question;
            }
            EngineEvent::Write { queue, burst } => self.land_write(queue, burst, ctx),
            EngineEvent::Completion { direction, queue } => {
                self.land_completion(direction, queue, ctx);
            }
        }
        ctx.out.interrupts.extend(self.interrupts.take());
        None
    }

    /// One clock edge on which a station can act: back to front, so that what a station frees is
    /// there for the one before it.
    fn work(&mut self, ctx: &mut Ctx) {
        if self.states.contains(&UdmaState::Abort) {
            return;
        }
        let cycle = ctx.clock.cycle_at(ctx.now).0;
        let mut needs = Needs::default();
        self.retire(ctx);
        self.issue_write(cycle, &mut needs, ctx);
        self.issue_read(cycle, &mut needs, ctx);
        for direction in Direction::ALL {
            self.issue_fetch(direction, cycle, &mut needs, ctx);
        }
        if self.limits.axi_timeout > 0 {
            self.check_timeouts(cycle, &mut needs);
        }
        if let Some(cycle) = needs.cycle {
            self.wake_by(ctx.clock.edge(Cycles(cycle)), ctx);
        }
        if let Some(at) = needs.at {
            self.wake_by(at, ctx);
        }
        if needs.read
            && let Some(at) = self.reader.oldest_ready_at()
        {
            self.wake_by(at, ctx);
        }
        if let Some(at) = self.next_retirement(needs.ack) {
            self.wake_by(at, ctx);
        }
        self.waits = needs;
    }

    /// Makes sure the engine works at the first clock edge at or after `at`.
    pub(super) fn wake_by(&mut self, at: Instant, ctx: &mut Ctx) {
        let edge = ctx.clock.next_edge(at);
        if self.wake_at.is_none_or(|wake| edge < wake) {
            self.wake_at = Some(edge);
            ctx.out.events.push((edge, EngineEvent::Wake));
        }
    }

    /// Whether the engine waits for its oldest read's data.
    pub(super) fn waits_for_read(&self) -> bool {
        self.waits.read
    }

    /// Whether some queue of the engine waits for its oldest write's acknowledge.
    pub(super) fn waits_for_ack(&self) -> bool {
        self.waits.ack
    }

    /// Sets an error bit; unless it is masked, aborts the engine: nothing more is issued, what was
    /// issued still lands. Either the half's `err_log_mask` or the abort mask of its error group
    /// masks it: drivers set both.
    pub(super) fn raise(
        &mut self,
        bit: ErrorBit,
        queue: u8,
        slot: u32,
        at: Addr,
        desc: Descriptor,
    ) {
        self.raise_because(bit, queue, slot, at, desc, None);
    }

    /// As [`Engine::raise`], with what the stream processor found wrong.
    pub(super) fn raise_because(
        &mut self,
        bit: ErrorBit,
        queue: u8,
        slot: u32,
        at: Addr,
        desc: Descriptor,
        reason: Option<compute::Reason>,
    ) {
        let direction = bit.direction();
        let first = self.interrupts.error_causes(direction) & bit.mask() == 0;
        let abort_masked = self.interrupts.set_error(direction, bit.mask());
        let masked = self.registers.global(direction, global::ERR_LOG_MASK) & bit.mask() != 0;
        let fatal = !masked && !abort_masked;
        if fatal {
            self.states = [UdmaState::Abort; 2];
        }
        self.error_logs[direction as usize].get_or_insert(desc);
        if let Some(faults) = &mut self.faults {
            faults.notice(queue, bit);
        }
        if first && self.errors.len() < MOST_ERRORS {
            let error = DeviceError {
                engine: self.id,
                bit,
                queue,
                slot,
                at,
                fatal,
                reason,
            };
            tracing::warn!("{error}");
            self.errors.push(error);
        }
    }

    /// How long after its last beat's cycle a read or write of `len` bytes keeps the data path.
    pub(super) fn beats(len: u32) -> u32 {
        len.div_ceil(BEAT_BYTES)
    }

    /// Length of the burst that starts at `at`: up to the next multiple of the burst size, at most
    /// `most` bytes.
    pub(super) fn burst_len(&self, direction: Direction, at: Addr, most: u32) -> u32 {
        let burst = self.limits.burst_bytes[direction as usize];
        // A power of two.
        let into = (at.0 & u64::from(burst - 1)) as u32;
        most.min(burst - into)
    }
}

/// Errors an engine keeps a record of: a host that clears causes for ever must not fill memory.
const MOST_ERRORS: usize = 1024;
/// Field [23:0] of a doorbell and of a ring length.
const DOORBELL_MASK: u32 = 0xff_ffff;
const RING_LENGTH_MASK: u32 = 0xff_ffff;
/// Ring bases are 64-byte aligned; the low bits do not exist.
const RING_BASE_MASK: u32 = !0x3f;
/// Field [7:0] of the burst registers, and of a queue's class and weight.
const BURST_MASK: u32 = 0xff;
const BYTE_MASK: u32 = 0xff;
/// Field [23:0] of `dwrr_deficit`.
const DEFICIT_MASK: u32 = 0xff_ffff;
/// Field [3:0] of the S2M completion controller: words of a record, 2 to 8.
const RECORD_WORDS_MASK: u32 = 0xf;
/// Field [9:0] of `ostand_cfg_wr_2`.
const WIDE_OUTSTANDING_MASK: u32 = 0x3ff;
