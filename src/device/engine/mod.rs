//! One UDMA engine: its stations over what they share, the clock that moves them, and what happens to it.

mod control;
mod reset;
mod stalls;

use super::activity::{EngineActivity, Station, StationClock, StationState, StationTimes};
use super::agenda::EngineEvent;
use super::busy_change::BusyChange;
use super::completion::Completion;
use super::completion_ring::CompletionRing;
use super::context::{Ctx, RegisterRead};
use super::core::Core;
use super::counters::Counters;
use super::error::DeviceError;
use super::faults::{Fault, Injection};
use super::needs::Needs;
use super::prefetch::Prefetcher;
use super::read::{Reader, Turn as ReadTurn};
use super::request::{InFlight, Times};
use super::schedule::Scheduler;
use super::stream::StreamProcessor;
use super::write::Writer;
use crate::arch::regs::{Direction, Halves, UdmaState};
use crate::arch::{ArchSpec, EngineId, QueueId};
use crate::config::Config;
use crate::sim::{ComponentId, EventClass, Instant, Turn};
use crate::units::Cycles;

/// One UDMA engine.
pub struct Engine {
    core: Core,
    prefetchers: Halves<Prefetcher>,
    scheduler: Scheduler,
    reader: Reader,
    stream: StreamProcessor,
    writer: Writer,
    completion: Completion,
    /// What the read and the write station are at.
    stations: [StationClock; 2],
    /// How many of its errors an observer has been told.
    errors_told: usize,
    busy_changes: Vec<BusyChange>,
}

impl Engine {
    /// An engine fresh from reset.
    pub fn new(id: EngineId, spec: &'static ArchSpec, config: &Config) -> Engine {
        let core = Core::new(id, spec, config);
        let queues = spec.limits.queues_per_engine;
        Engine {
            prefetchers: Halves::each(Prefetcher::new),
            scheduler: Scheduler::new(&core),
            reader: Reader::default(),
            stream: StreamProcessor::new(&config.values.compute, queues),
            writer: Writer::new(config.values.ordering.sow_scope),
            completion: Completion::default(),
            stations: Default::default(),
            errors_told: 0,
            busy_changes: Vec::new(),
            core,
        }
    }

    /// What it has done so far.
    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// The first occurrence of each error, in the order they happened.
    pub fn errors(&self) -> &[DeviceError] {
        &self.core.errors
    }

    /// The first changes to queues that had descriptors outstanding.
    pub fn busy_changes(&self) -> &[BusyChange] {
        &self.busy_changes
    }

    /// Arms a fault; `seed` is the run's, `index` numbers the faults of the machine.
    pub fn inject(&mut self, fault: Fault, seed: u64, index: usize) {
        let faults = self.core.faults.get_or_insert_default();
        faults.arm(fault, seed, index);
    }

    /// A record of the faults that struck, the first ones, and how many there were.
    pub fn injections(&self) -> (&[Injection], u64) {
        match &self.core.faults {
            Some(faults) => (faults.injections(), faults.struck()),
            None => (&[], 0),
        }
    }

    /// Error bits raised so far in one half.
    pub fn causes(&self, direction: Direction) -> u32 {
        self.core.interrupts.error_causes(direction)
    }

    /// State of one half.
    pub fn state(&self, direction: Direction) -> UdmaState {
        self.core.halves[direction].state
    }

    /// Whether every descriptor that the doorbells of queue `q` covered on the Tx side has been
    /// completed, and its completion records and notifications have landed. Rx descriptors that wait for data do not count as work.
    pub fn queue_is_idle(&self, q: QueueId) -> bool {
        self.core.queues.get(q).is_none_or(|queue| {
            let completions = queue.halves.iter().map(|half| &half.completions);
            queue.halves.m2s.ring.outstanding() == 0
                && queue.packets.is_empty()
                && completions.into_iter().all(CompletionRing::is_quiet)
                && self.completion.notifications.is_quiet(q)
                && !self.writer.has_strays(q)
        })
    }

    /// Whether all queues are idle.
    pub fn is_idle(&self) -> bool {
        let work = &self.core.work;
        work.armed.is_empty()
            && work.in_flight.is_empty()
            && work.records == 0
            && !self.writer.has_any_strays()
    }

    /// When the next event happens that the engine asked for, and its class.
    pub fn next_event(&self) -> Option<(Instant, EventClass)> {
        self.core.agenda.next()
    }

    /// Handles the events that the engine asked for, in their order, as long as their turn as `part` is
    /// not after `until` (that of somebody else's next event, or one of its own that is stale) and HBM does not
    /// act before. Stops early when somebody else must act on what it did, or may have waited for it. A
    /// read that fell on a UDMA register is handed back for [`Engine::answer_register_read`]. `ctx.now` is
    /// the time of the last event.
    pub fn run(&mut self, until: Turn, part: ComponentId, ctx: &mut Ctx) -> Option<RegisterRead> {
        let last = until.at();
        while let Some((at, class)) = self.core.agenda.next() {
            if at >= last && (at > last || Turn::new(at, class, part) > until)
                || at >= ctx.fabric.next_event()
            {
                break;
            }
            let event = self.core.agenda.pop(class)?;
            ctx.now = at;
            let question = self.handle(event, ctx);
            if question.is_some() || ctx.out.progress {
                return question;
            }
        }
        None
    }

    fn handle(&mut self, event: EngineEvent, ctx: &mut Ctx) -> Option<RegisterRead> {
        let core = &mut self.core;
        let mut question = None;
        match event {
            EngineEvent::Wake { cycle } => self.work(cycle, ctx),
            EngineEvent::Fetch { direction, queue } => {
                self.prefetchers[direction].fetched(core, queue, ctx);
            }
            EngineEvent::Read { burst } => question = self.reader.sample(core, burst, ctx),
            EngineEvent::Write { queue, burst } => self.writer.land(core, queue, burst, ctx),
            EngineEvent::Completion { direction, queue } => {
                self.completion.land(core, direction, queue, ctx);
            }
            EngineEvent::Gathered { direction, queue } => {
                self.completion
                    .gathered_long_enough(core, direction, queue, ctx);
            }
            EngineEvent::Notification => self.completion.notifications.land(core, ctx),
        }
        self.report(ctx);
        question
    }

    /// The answer to a read that [`Engine::run`] handed back.
    pub fn answer_register_read(&mut self, burst: u64, value: u32, ctx: &mut Ctx) {
        self.reader.answer(&mut self.core, burst, value, ctx);
    }

    /// The times of an access have become known.
    pub fn timed(&mut self, access: InFlight, times: Times, ctx: &mut Ctx) {
        let core = &mut self.core;
        match access {
            InFlight::Read { burst } => self.reader.timed(core, burst, times),
            InFlight::Write { queue, burst } => self.writer.timed(core, queue, burst, times, ctx),
            InFlight::Fetch {
                direction,
                queue,
                fetch,
            } => self.prefetchers[direction].timed(core, queue, fetch, times),
        }
    }

    /// Sends what became known during a call: interrupts to the host, errors to an observer.
    #[inline]
    fn report(&mut self, ctx: &mut Ctx) {
        let errors = ctx.out.observed && self.errors_told < self.core.errors.len();
        if self.core.interrupts.changed || errors {
            self.report_changes(ctx);
        }
    }

    #[cold]
    fn report_changes(&mut self, ctx: &mut Ctx) {
        self.core.interrupts.take(&mut ctx.out.interrupts);
        ctx.out.progress |= !ctx.out.interrupts.is_empty();
        if ctx.out.observed {
            for error in &self.core.errors[self.errors_told..] {
                ctx.out.tell(|| EngineActivity::Error {
                    queue: error.queue,
                    text: error.to_string(),
                });
            }
            self.errors_told = self.core.errors.len();
        }
    }

    /// One clock edge on which a station can act: back to front, so that what a station frees is
    /// there for the one before it.
    fn work(&mut self, cycle: u64, ctx: &mut Ctx) {
        if self.core.aborted() {
            for station in Station::ALL {
                self.enter_state(station, StationState::Idle, ctx);
            }
            return;
        }
        let mut needs = Needs::default();
        self.retire(ctx);
        self.writer.issue(&mut self.core, cycle, &mut needs, ctx);
        self.read(cycle, &mut needs, ctx);
        for direction in Direction::ALL {
            let prefetcher = &mut self.prefetchers[direction];
            if !prefetcher.fetchable.is_empty() {
                prefetcher.issue(&mut self.core, cycle, &mut needs, ctx);
            }
        }
        if self.core.limits.axi_timeout > 0 {
            self.check_timeouts(cycle, &mut needs);
        }
        self.sleep(needs, ctx);
    }

    /// Takes note of everything that has arrived by now.
    fn retire(&mut self, ctx: &mut Ctx) {
        let core = &mut self.core;
        while let Some(arrival) = self.reader.next_arrival(ctx) {
            self.stream.take_in(core, arrival, ctx.now);
        }
        self.completion.retire(core, &mut self.stream.buffers, ctx);
        if !core.work.lost.is_empty() {
            self.notice_lost(ctx);
        }
    }

    /// Reads on, in the next packet if there is nothing left of the last.
    fn read(&mut self, cycle: u64, needs: &mut Needs, ctx: &mut Ctx) {
        let core = &mut self.core;
        match self.reader.turn(core, cycle, needs) {
            ReadTurn::Wait => return,
            ReadTurn::Read => {}
            ReadTurn::Schedule => {
                let (stream, job) = (&mut self.stream, &mut self.reader.job);
                if !self
                    .scheduler
                    .schedule(core, stream, job, cycle, needs, ctx)
                {
                    return;
                }
                // The write station has not seen a packet that starts now, and waits for its data.
                needs.read = true;
            }
        }
        self.reader.issue(core, cycle, needs, ctx);
    }

    /// AXI accesses that are not answered in time. Bursts are answered in order, so the oldest of
    /// each kind tells.
    #[inline(never)]
    fn check_timeouts(&mut self, cycle: u64, needs: &mut Needs) {
        let core = &mut self.core;
        self.reader.check_timeout(core, cycle, needs);
        for q in core.work.in_flight.iter() {
            self.writer.check_timeout(core, q, cycle, needs);
        }
        for direction in Direction::ALL {
            let fetching = core.halves[direction].fetches > 0;
            for q in core.queues.ids() {
                if fetching {
                    self.prefetchers[direction].check_timeout(core, q, cycle, needs);
                }
                if core.work.records > 0 {
                    (self.completion).check_timeout(core, direction, q, cycle, needs);
                }
            }
        }
    }

    /// Makes sure that the engine works when one of its stations can go on.
    fn sleep(&mut self, needs: Needs, ctx: &mut Ctx) {
        let core = &mut self.core;
        if needs.cycle < u64::MAX {
            let edge = ctx.clock.edge(Cycles(needs.cycle));
            core.agenda.wake_at(edge, needs.cycle);
        }
        let mut next = needs
            .at
            .min(self.completion.next_retirement(core, needs.ack));
        if needs.read {
            next = next.min(self.reader.oldest_ready_at());
        }
        core.wake_by(next, ctx);
        (core.waits_for_read, core.waits_for_ack) = (needs.read, needs.ack);
        for station in Station::ALL {
            if let Some(state) = needs.stations[station as usize] {
                self.enter_state(station, state, ctx);
            }
        }
    }

    fn enter_state(&mut self, station: Station, state: StationState, ctx: &mut Ctx) {
        let clock = &mut self.stations[station as usize];
        let next = state;
        if let Some((state, since)) = clock.enter(state, ctx.now) {
            ctx.out.tell(|| EngineActivity::Station {
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
}
