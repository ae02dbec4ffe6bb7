//! One UDMA engine: its registers, its queues, and the clock that moves its stations.

use super::activity::{Activity, Station, StationClock, StationState, StationTimes};
use super::agenda::Agenda;
use super::arbiter::{Arbiter, Share};
use super::busy_change::BusyChange;
use super::completion_ring::CompletionRing;
use super::compute::Reason;
use super::counters::Counters;
use super::error::{DeviceError, ErrorBit};
use super::fabric::{BEAT_BYTES, Fabric, InFlight, Request, Route, Times};
use super::faults::{Fault, FaultKind, Faults, Injection, Site};
use super::interrupts::Interrupts;
use super::notification::NotificationQueue;
use super::prefetch::Prefetcher;
use super::queue::{Limits, Needs, Queue};
use super::queue_set::QueueSet;
use super::rate_limit::TokenBucket;
use super::read::Reader;
use super::registers::Registers;
use super::reset::Stray;
use super::write::Writer;
use crate::arch::regs::{self, Direction, UdmaState, general, global};
use crate::arch::{ArchSpec, EngineId};
use crate::config::{AxiAbort, ComputeConfig, Config, EngineConfig, SowScope};
use crate::desc::Descriptor;
use crate::dram::Kind as Way;
use crate::memory::{Effects, PhysicalMemory};
use crate::sim::{Clock, ComponentId, EventClass, Instant, Turn};
use crate::units::{Addr, Cycles};
use std::collections::BTreeMap;

/// What an engine asked to be told later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// Its clocked work.
    Wake {
        /// The cycle.
        cycle: u64,
    },
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
    /// Completion records become visible.
    Completion {
        /// Which half's.
        direction: Direction,
        /// The queue.
        queue: u8,
    },
    /// Completion records have waited for others long enough.
    Gathered {
        /// Which half's.
        direction: Direction,
        /// The queue.
        queue: u8,
    },
    /// A notification becomes visible.
    Notification,
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
    #[inline]
    pub fn class(self) -> EventClass {
        match self {
            EngineEvent::Wake { .. } | EngineEvent::Gathered { .. } => EventClass::Clocked,
            EngineEvent::Fetch { .. } | EngineEvent::Read { .. } => EventClass::Sample,
            EngineEvent::Write { .. }
            | EngineEvent::Completion { .. }
            | EngineEvent::Notification => EventClass::Visible,
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
    pub activities: Vec<Activity>,
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
    pub(super) fn tell(&mut self, activity: impl FnOnce() -> Activity) {
        if self.observed {
            self.tell_observer(activity);
        }
    }

    #[cold]
    fn tell_observer(&mut self, activity: impl FnOnce() -> Activity) {
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

/// One UDMA engine.
pub struct Engine {
    pub(super) id: EngineId,
    pub(super) spec: &'static ArchSpec,
    pub(super) timing: EngineConfig,
    /// Cycles from one descriptor's first burst to the next one's, in either half: the credit of its header is back.
    pub(super) header_cycles: u64,
    pub(super) sow_scope: SowScope,
    pub(super) compute: ComputeConfig,
    pub(super) registers: Registers,
    pub(super) limits: Limits,
    pub(super) states: [UdmaState; 2],
    pub(super) interrupts: Interrupts,
    /// Descriptor of the first error of M2S and S2M since their logs were cleared.
    pub(super) error_logs: [Option<Descriptor>; 2],
    pub(super) prefetchers: [Prefetcher; 2],
    pub(super) queues: Vec<Queue>,
    /// Queues with Tx descriptors that a doorbell covered and that are not completed.
    pub(super) armed: QueueSet,
    /// Queues with packets in flight.
    pub(super) in_flight: QueueSet,
    /// Queues with packets that only M2S still knows.
    pub(super) lost: QueueSet,
    /// Writes whose queue was reset under them, by queue and number.
    pub(super) strays: BTreeMap<(u8, u64), Stray>,
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) arbiter: Arbiter,
    pub(super) shares: Vec<Share>,
    pub(super) stream_tokens: TokenBucket,
    pub(super) notifications: NotificationQueue,
    /// Packets in flight, and completion records and notifications on their way, all queues.
    pub(super) packets_in_flight: usize,
    pub(super) completions_in_flight: usize,
    /// Buffers of compute packets, to use again.
    pub(super) buffers: Vec<Vec<u8>>,
    pub(super) agenda: Agenda,
    /// Whether the engine waits for its oldest read's data, and whether some queue of it waits for its
    /// oldest write's acknowledge.
    pub(super) waits_for_read: bool,
    pub(super) waits_for_ack: bool,
    /// Faults to inject; nothing on a machine without any.
    pub(super) faults: Option<Box<Faults>>,
    pub(super) counters: Counters,
    stations: [StationClock; 2],
    errors: Vec<DeviceError>,
    pub(super) busy_changes: Vec<BusyChange>,
    /// How many of them an observer has been told.
    errors_told: usize,
}

impl Engine {
    /// An engine fresh from reset.
    pub fn new(id: EngineId, spec: &'static ArchSpec, config: &Config) -> Engine {
        let queues = spec.limits.queues_per_engine;
        let mut engine = Engine {
            id,
            spec,
            timing: config.values.engine.clone(),
            header_cycles: header_cycles(config),
            sow_scope: config.values.ordering.sow_scope,
            compute: config.values.compute.clone(),
            registers: Registers::new(spec),
            limits: Limits::default(),
            states: [config.values.engine.state_after_reset.into(); 2],
            interrupts: Interrupts::default(),
            error_logs: [None; 2],
            prefetchers: Default::default(),
            queues: (0..queues).map(|_| Queue::new()).collect(),
            armed: QueueSet::default(),
            in_flight: QueueSet::default(),
            lost: QueueSet::default(),
            strays: BTreeMap::new(),
            reader: Reader::default(),
            writer: Writer::default(),
            arbiter: Arbiter::default(),
            shares: vec![Share::default(); queues as usize],
            stream_tokens: TokenBucket::default(),
            notifications: NotificationQueue::default(),
            packets_in_flight: 0,
            completions_in_flight: 0,
            buffers: Vec::new(),
            agenda: Agenda::default(),
            waits_for_read: false,
            waits_for_ack: false,
            faults: None,
            counters: Counters::default(),
            stations: Default::default(),
            errors: Vec::new(),
            busy_changes: Vec::new(),
            errors_told: 0,
        };
        engine.reload_all();
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
    #[inline]
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
    /// completed, and its completion records and notifications have landed. Rx descriptors that wait for data do not count as work.
    pub fn queue_is_idle(&self, q: u8) -> bool {
        self.queues.get(usize::from(q)).is_none_or(|queue| {
            queue.rings[0].outstanding() == 0
                && queue.packets.is_empty()
                && queue.completions.iter().all(CompletionRing::is_quiet)
                && self.notifications.is_quiet(q)
                && !self.has_strays(q)
        })
    }

    /// Whether all queues are idle.
    pub fn is_idle(&self) -> bool {
        self.armed.is_empty()
            && self.in_flight.is_empty()
            && self.completions_in_flight == 0
            && self.strays.is_empty()
    }

    /// When the next event happens that the engine asked for, and its class.
    pub fn next_event(&self) -> Option<(Instant, EventClass)> {
        self.agenda.next()
    }

    /// Handles the events that the engine asked for, in their order, as long as their turn as `part` is
    /// not after `until` (that of somebody else's next event, or one of its own that is stale) and HBM does not
    /// act before. Stops early when somebody else must act on what it did, or may have waited for it. A
    /// read that fell on a UDMA register is handed back for [`Engine::answer_register_read`]. `ctx.now` is
    /// the time of the last event.
    pub fn run(&mut self, until: Turn, part: ComponentId, ctx: &mut Ctx) -> Option<RegisterRead> {
        let last = until.at();
        while let Some((at, class)) = self.agenda.next() {
            if at >= last && (at > last || Turn::new(at, class, part) > until)
                || at >= ctx.fabric.next_event()
            {
                break;
            }
            let event = self.agenda.pop(class)?;
            ctx.now = at;
            let question = self.handle(event, ctx);
            if question.is_some() || ctx.out.progress {
                return question;
            }
        }
        None
    }

    fn handle(&mut self, event: EngineEvent, ctx: &mut Ctx) -> Option<RegisterRead> {
        match event {
            EngineEvent::Wake { cycle } => self.work(cycle, ctx),
            EngineEvent::Fetch { direction, queue } => self.fetched(direction, queue, ctx),
            EngineEvent::Read { burst } => {
                let question = self.sample_read(burst, ctx);
                self.report(ctx);
                return question;
            }
            EngineEvent::Write { queue, burst } => self.land_write(queue, burst, ctx),
            EngineEvent::Completion { direction, queue } => {
                self.land_completion(direction, queue, ctx);
            }
            EngineEvent::Gathered { direction, queue } => {
                self.gathered_long_enough(direction, queue, ctx);
            }
            EngineEvent::Notification => self.land_notification(ctx),
        }
        self.report(ctx);
        None
    }

    /// Sends what became known during a call: interrupts to the host, errors to an observer.
    #[inline]
    pub(super) fn report(&mut self, ctx: &mut Ctx) {
        if self.interrupts.changed || ctx.out.observed && self.errors_told < self.errors.len() {
            self.report_changes(ctx);
        }
    }

    #[cold]
    fn report_changes(&mut self, ctx: &mut Ctx) {
        self.interrupts.take(&mut ctx.out.interrupts);
        ctx.out.progress |= !ctx.out.interrupts.is_empty();
        if ctx.out.observed {
            for error in &self.errors[self.errors_told..] {
                ctx.out.tell(|| Activity::Error {
                    queue: error.queue,
                    text: error.to_string(),
                });
            }
            self.errors_told = self.errors.len();
        }
    }

    /// One clock edge on which a station can act: back to front, so that what a station frees is
    /// there for the one before it.
    fn work(&mut self, cycle: u64, ctx: &mut Ctx) {
        if self.states.contains(&UdmaState::Abort) {
            for station in Station::ALL {
                self.enter_state(station, StationState::Idle, ctx);
            }
            return;
        }
        let mut needs = Needs::default();
        self.retire(ctx);
        self.issue_write(cycle, &mut needs, ctx);
        self.issue_read(cycle, &mut needs, ctx);
        for direction in Direction::ALL {
            if !self.prefetchers[direction as usize].fetchable.is_empty() {
                self.issue_fetch(direction, cycle, &mut needs, ctx);
            }
        }
        if self.limits.axi_timeout > 0 {
            self.check_timeouts(cycle, &mut needs);
        }
        if needs.cycle < u64::MAX {
            let edge = ctx.clock.edge(Cycles(needs.cycle));
            self.agenda.wake_at(edge, needs.cycle);
        }
        let mut next = needs.at.min(self.next_retirement(needs.ack));
        if needs.read {
            next = next.min(self.reader.oldest_ready_at());
        }
        self.wake_by(next, ctx);
        for station in Station::ALL {
            if let Some(state) = needs.stations[station as usize] {
                self.enter_state(station, state, ctx);
            }
        }
        (self.waits_for_read, self.waits_for_ack) = (needs.read, needs.ack);
    }

    fn enter_state(&mut self, station: Station, state: StationState, ctx: &mut Ctx) {
        let clock = &mut self.stations[station as usize];
        let next = state;
        if let Some((state, since)) = clock.enter(state, ctx.now) {
            ctx.out.tell(|| Activity::Station {
                station,
                state,
                since,
                next,
            });
        }
    }

    /// How long each of its stations has been at what, up to `now`.
    pub fn station_times(&self, now: Instant) -> [StationTimes; 2] {
        self.stations.map(|station| station.times(now))
    }

    /// What each of its stations is at, and since when.
    pub fn station_states(&self) -> [(StationState, Instant); 2] {
        self.stations.map(|station| station.now_at())
    }

    /// Makes sure the engine works at the first clock edge at or after `at`, unless that is never.
    #[inline]
    pub(super) fn wake_by(&mut self, at: Instant, ctx: &Ctx) {
        if at < self.agenda.wakes_at() {
            self.wake_at_edge(at, ctx.clock);
        }
    }

    #[inline(never)]
    fn wake_at_edge(&mut self, at: Instant, clock: &Clock) {
        let cycle = clock.cycle_from(at);
        self.agenda.wake_at(clock.edge(cycle), cycle.0);
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
    #[cold]
    pub(super) fn raise_because(
        &mut self,
        bit: ErrorBit,
        queue: u8,
        slot: u32,
        at: Addr,
        desc: Descriptor,
        reason: Option<Reason>,
    ) {
        let direction = bit.direction();
        let first = self.interrupts.error_causes(direction) & bit.mask() == 0;
        let abort_masked = self.interrupts.set_error(direction, bit.mask());
        let masked = self.registers.global(direction, global::ERR_LOG_MASK) & bit.mask() != 0;
        let fatal = !masked && !abort_masked && self.detects(bit);
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

    /// Whether the AXI masters report an error. Which word of a master's table decides follows from the name of its
    /// index, {parity, timeout, response} (A); that any value but 0 does is modelled (C).
    fn detects(&self, bit: ErrorBit) -> bool {
        let Some((master, kind)) = bit
            .axi()
            .filter(|_| self.timing.axi_abort == AxiAbort::DetectionTables)
        else {
            return true;
        };
        let table = general::AXI_ERROR_1 + master * general::AXI_MASTER_TABLE_BYTES;
        self.registers.get(regs::GEN + table + 4 * kind) != 0
    }

    /// Sends an access on its way. Returns its times if they are known now; if not, [`Engine::timed`] is told
    /// them.
    // In registers, as all of it down to the memory: a copy of what has just been stored stalls.
    #[inline(always)]
    pub(super) fn send(
        &self,
        (access, kind): (InFlight, Way),
        issued: Instant,
        (route, len): (Route, u32),
        ctx: &mut Ctx,
    ) -> Option<Times> {
        let request = Request {
            access,
            kind,
            issued,
            beats: Self::beats(len),
        };
        ctx.fabric.submit(self.id, request, route, len)
    }

    /// The times of an access have become known.
    pub fn timed(&mut self, access: InFlight, times: Times, ctx: &mut Ctx) {
        match access {
            InFlight::Read { burst } => self.read_timed(burst, times),
            InFlight::Write { queue, burst } => self.write_timed(queue, burst, times, ctx),
            InFlight::Fetch {
                direction,
                queue,
                fetch,
            } => self.fetch_timed(direction, queue, fetch, times),
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

/// The first cycle, counted from a header's, at which its credit is back.
fn header_cycles(config: &Config) -> u64 {
    let back = Instant::START + config.values.engine.header_credit;
    config.udma_clock().cycle_from(back).0
}

/// Errors an engine keeps a record of: a host that clears causes for ever must not fill memory.
const MOST_ERRORS: usize = 1024;
