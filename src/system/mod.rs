//! One simulated machine: memory, engines, sequencers, a clock, and the loop that runs them.
//!
//! A [`System`] is driven from outside: the host stores to memory and registers, then lets time
//! pass with [`System::run_until`]. Everything that happens is an event, and all events have a total order, so
//! the same calls give the same run. Those of an engine wait in its agenda, the queue here has its next turn;
//! HBM's controllers act whenever nothing else happens before.
//!
//! ```
//! use udma_sim::arch::EventBlock;
//! use udma_sim::config::Config;
//! use udma_sim::host::Bus;
//! use udma_sim::sim::Duration;
//! use udma_sim::system::{Condition, SemTest, System, WaitOutcome};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::builtin("cayman").ok_or("no such config")??;
//! let mut system = System::new(config, 0)?;
//!
//! // Semaphore 3 of block 0 is to reach 2. Nothing is under way that could change it: the wait ends
//! // at once and names its waiters.
//! let two = Condition::Semaphore { block: 0, index: 3, test: SemTest::Ge(2) };
//! let timeout = Duration::from_ns(500);
//! assert!(matches!(system.run_until(&two, timeout), WaitOutcome::Stuck(_)));
//!
//! // A store to its window "increment" is posted, as one of any agent on the bus.
//! let map = &system.arch().spec().map;
//! let increment = map.semaphore(0, EventBlock::SEM_INC, 3).ok_or("no such semaphore")?;
//! system.write_mem(increment, &2i32.to_le_bytes())?;
//! assert_eq!(system.run_until(&two, timeout), WaitOutcome::Met);
//! assert_eq!(system.semaphore(0, 3), 2);
//! # Ok(())
//! # }
//! ```

mod condition;
#[cfg(debug_assertions)]
mod conservation;
mod host_bus;
mod observe;
mod sequencer;
mod status;

pub use condition::{Condition, SemTest, WaitOutcome, Waiter};
pub use observe::{Activity, EngineTimes, Observer, Watch};
pub use sequencer::{Observation, ProgramError, SequencerId, SequencerOp, WaitOp};
pub use status::{EngineStatus, UnmodelledRegister};

use crate::arch::{Arch, ArchSpec, EngineId, QueueId};
use crate::config::Config;
use crate::device::{Ctx, Engine, Fabric, Fault, InFlight, Outbox, RegisterRead, Times};
use crate::memory::{Effects, PhysicalMemory};
use crate::sim::{Clock, ComponentId, Duration, EventClass, EventQueue, Instant, Turn};
use crate::units::{Addr, Cycles};
use sequencer::Sequencer;
use std::collections::VecDeque;

/// What can happen in a machine.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// It is an engine's turn.
    Engine(EngineId, EventClass),
    /// A register write posted earlier arrives.
    Register { register: Posted, value: u32 },
    /// A sequencer's next step.
    Sequencer(SequencerId),
}

/// Where a register write goes.
#[derive(Clone, Copy, Debug)]
enum Posted {
    /// To an offset in an engine's window.
    Engine(EngineId, u64),
    /// To a word of memory: an event, a semaphore, or a register that nothing models.
    Word(Addr),
}

/// Why a machine could not be built.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// The operating system refused address space for the machine's memory.
    #[error("cannot map the memory of the simulated machine: {0}")]
    Memory(#[from] std::io::Error),
}

/// A queue that the device does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{arch} does not have queue {queue} of engine {}", engine.0)]
pub struct NoSuchQueue {
    /// The generation.
    pub arch: Arch,
    /// The engine asked for.
    pub engine: EngineId,
    /// The queue asked for.
    pub queue: QueueId,
}

/// An interrupt that a unit sent to the host: one message each time a main group becomes pending. A
/// message that the host has not taken stands for later ones of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// The engine.
    pub engine: EngineId,
    /// The main interrupt group.
    pub group: u8,
    /// When it was sent.
    pub at: Instant,
}

/// One simulated machine.
pub struct System {
    config: Config,
    spec: &'static ArchSpec,
    clock: Clock,
    events: EventQueue<Event>,
    memory: PhysicalMemory,
    fabric: Fabric,
    engines: Vec<Engine>,
    engine_parts: Vec<ComponentId>,
    /// The next turn of each engine that counts; one scheduled for another time is stale.
    engine_turns: Vec<Turn>,
    /// Engines that a register write has reached, in the order of their first one. The others are
    /// as they came out of reset.
    touched: Vec<EngineId>,
    host_part: ComponentId,
    /// Room for what the fabric tells.
    timed: Vec<(EngineId, InFlight, Times)>,
    /// Register writes on their way, and when the last of the host's arrives.
    posted: usize,
    host_posted_until: Instant,
    sequencers: Vec<Sequencer>,
    observations: Vec<Observation>,
    /// Interrupts the host has not taken yet.
    interrupts: VecDeque<Interrupt>,
    /// Reused by every call of an engine.
    outbox: Outbox,
    observers: Vec<Box<dyn Observer>>,
    seed: u64,
    faults_armed: usize,
}

impl System {
    /// A machine fresh from reset. `seed` seeds every random stream of the run.
    ///
    /// # Errors
    /// [`SystemError`] if its memory cannot be mapped.
    pub fn new(config: Config, seed: u64) -> Result<System, SystemError> {
        let spec = config.arch().spec();
        let mut events = EventQueue::new();
        let ids = (0..spec.map.engine_count()).map(EngineId);
        let engines: Vec<Engine> = ids.map(|id| Engine::new(id, spec, &config)).collect();
        let system = System {
            spec,
            clock: config.udma_clock(),
            memory: PhysicalMemory::new(spec, config.values.host.memory.0)?,
            fabric: Fabric::new(spec, &config, seed),
            host_part: events.add_component(),
            timed: Vec::new(),
            engine_parts: engines.iter().map(|_| events.add_component()).collect(),
            engine_turns: vec![Turn::NEVER; engines.len()],
            engines,
            touched: Vec::new(),
            events,
            posted: 0,
            host_posted_until: Instant::START,
            sequencers: Vec::new(),
            observations: Vec::new(),
            interrupts: VecDeque::new(),
            outbox: Outbox::default(),
            observers: Vec::new(),
            seed,
            faults_armed: 0,
            config,
        };
        #[cfg(debug_assertions)]
        let system = system.checked();
        Ok(system)
    }

    /// The machine's generation.
    pub fn arch(&self) -> Arch {
        self.spec.arch
    }

    /// The configuration it was built from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.events.now()
    }

    /// The time in whole UDMA cycles.
    pub fn cycles(&self) -> Cycles {
        self.clock.cycle_at(self.now())
    }

    /// The UDMA clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The machine's memory.
    pub fn memory(&self) -> &PhysicalMemory {
        &self.memory
    }

    /// Arms a fault. Faults are numbered in the order they are armed, which seeds their streams.
    ///
    /// # Errors
    /// [`NoSuchQueue`] if the device has no such engine or the engine no such queue.
    pub fn inject(&mut self, fault: Fault) -> Result<(), NoSuchQueue> {
        let engine = (self.engines.get_mut(fault.engine.0 as usize))
            .filter(|_| u32::from(fault.queue.0) < self.spec.limits.queues_per_engine)
            .ok_or(NoSuchQueue {
                arch: self.spec.arch,
                engine: fault.engine,
                queue: fault.queue,
            })?;
        engine.inject(fault, self.seed, self.faults_armed);
        self.faults_armed += 1;
        Ok(())
    }

    /// Makes each access to the memory channel that holds an address take longer by so much.
    pub fn slow_down(&mut self, at: Addr, by: Duration) {
        let route = self.fabric.route(&self.memory, at, 1);
        self.fabric.slow_down(route, by);
    }

    /// What sequencers have read, in the order they read it.
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// Takes the oldest interrupt that has not been taken.
    pub fn take_interrupt(&mut self) -> Option<Interrupt> {
        self.interrupts.pop_front()
    }

    /// The last instant that a machine reaches, a little over five hours after its start: time
    /// stands still there, and what would happen later never does.
    pub const END: Instant = Instant::from_fs(Instant::NEVER.as_fs() - 1);

    /// Lets time pass until a condition holds. It is looked at between instants: everything that
    /// happens at one instant has happened before.
    pub fn run_until(&mut self, until: &Condition, timeout: Duration) -> WaitOutcome {
        let deadline = (self.now() + timeout).min(System::END);
        let horizon = match until {
            Condition::Until(at) => deadline.min(*at),
            _ => deadline,
        };
        // Nothing but what engines complete, and what they do to others, can make any other condition true.
        let always = matches!(until, Condition::Word { .. });
        // A time is waited for by going there.
        let timed = matches!(until, Condition::Until(_));
        let test = |system: &System| !timed && system.holds(until);
        if self.holds(until) || self.advance(horizon, always, test) {
            return WaitOutcome::Met;
        }
        if !timed && self.events.is_empty() && self.fabric.next_event() == Instant::NEVER {
            return WaitOutcome::Stuck(self.waiters());
        }
        self.events.advance_to(horizon.max(self.now()));
        match self.holds(until) {
            true => WaitOutcome::Met,
            false => WaitOutcome::TimedOut(self.waiters()),
        }
    }

    /// Lets time pass up to the next instant at which something happens, which is then handled, but
    /// not past `horizon`. False if nothing happens until then: time is at `horizon`, or where it
    /// was if that is past.
    pub fn step(&mut self, horizon: Instant) -> bool {
        let horizon = horizon.min(System::END);
        let steps = self.advance(horizon, true, |_| true);
        if !steps {
            self.events.advance_to(horizon.max(self.now()));
        }
        steps
    }

    /// Whether anything is left that can happen without the host.
    pub fn has_work(&self) -> bool {
        self.next_at() <= System::END
    }

    /// When something happens next; [`Instant::NEVER`] if nothing does.
    fn next_at(&self) -> Instant {
        self.events.next_turn().at().min(self.fabric.next_event())
    }

    /// Lets time pass up to and including an instant.
    fn run_to(&mut self, end: Instant) {
        let end = end.min(System::END);
        self.advance(end, false, |_| false);
        self.events.advance_to(end.max(self.now()));
    }

    /// Handles events up to and including those of the instant `horizon`, until a test passes between two
    /// instants. Whether it has. Unless it is to be looked at `always`, that is done only after instants at which
    /// an engine completed something, or somebody else acted.
    fn advance(&mut self, horizon: Instant, always: bool, until: impl Fn(&System) -> bool) -> bool {
        // Where there is time for it, it is looked at always, to see that nothing is missed.
        let every_instant = always || cfg!(debug_assertions);
        self.outbox.progress = false;
        loop {
            let next = self.next_at();
            if next > horizon {
                return false;
            }
            let looked_at = every_instant || self.outbox.progress;
            let within = if looked_at { next } else { horizon };
            if self.fabric.next_event() == next {
                self.run_fabric(within.min(self.events.next_turn().at()));
            } else if let Some((at, event)) = self.events.pop() {
                self.handle(at, event, within);
            }
            let over = self.next_at() != self.now();
            if over && (self.outbox.progress || every_instant) {
                if until(self) {
                    debug_assert!(always || self.outbox.progress, "come true unnoticed");
                    return true;
                }
                self.outbox.progress = false;
            }
        }
    }

    /// Handles an event, and what else happens up to and including the instant `within`, as far as it is
    /// nobody else's.
    fn handle(&mut self, at: Instant, event: Event, within: Instant) {
        match event {
            Event::Engine(id, class) => {
                let turn = Turn::new(at, class, self.engine_parts[id.0 as usize]);
                if self.engine_turns[id.0 as usize] == turn {
                    self.run_engine(id, within);
                    // As long as this turn stood, no call of the engine has scheduled another.
                    self.engine_turns[id.0 as usize] = Turn::NEVER;
                    self.watch_engine(id);
                }
            }
            Event::Register { register, value } => {
                self.posted -= 1;
                match register {
                    Posted::Engine(engine, offset) => {
                        self.write_engine_register(engine, offset, value);
                    }
                    // Refused before it was posted if it could not be done.
                    Posted::Word(at) => {
                        if let Ok(effects) = self.memory.write(at, &value.to_le_bytes()) {
                            self.wake_sequencers(effects);
                        }
                    }
                }
                self.outbox.progress = true;
            }
            Event::Sequencer(id) => {
                self.step_sequencer(id);
                self.outbox.progress = true;
            }
        }
    }

    /// Lets HBM's controllers act, and engines know what became of their accesses. They do so up to and including
    /// the instant `within`, or until there is something to know.
    fn run_fabric(&mut self, within: Instant) {
        let mut timed = std::mem::take(&mut self.timed);
        let acted = self.fabric.advance(within, &mut timed);
        self.events.advance_to(acted);
        for (engine, access, times) in timed.drain(..) {
            self.call_engine(engine, |engine, ctx| engine.timed(access, times, ctx));
        }
        self.timed = timed;
    }

    /// It is an engine's turn, and HBM's in between, until somebody else's, and up to and including the instant
    /// `within`.
    fn run_engine(&mut self, id: EngineId, within: Instant) {
        let (index, part) = (id.0 as usize, self.engine_parts[id.0 as usize]);
        loop {
            let until = self.events.next_turn().min(Turn::after(within));
            let question = self.call_engine(id, |engine, ctx| engine.run(until, part, ctx));
            if let Some(question) = question {
                self.answer_register_read(id, question);
                return;
            }
            let next = self.engines[index].next_event();
            let within = next.map_or(until.at(), |(at, _)| at.min(until.at()));
            if self.outbox.progress || self.fabric.next_event() > within {
                return;
            }
            self.run_fabric(within);
        }
    }

    fn answer_register_read(&mut self, id: EngineId, question: RegisterRead) {
        let asked = self.engines.get_mut(question.engine.0 as usize);
        let value = asked.map_or(0, |engine| engine.read_register(question.offset));
        self.call_engine(id, |engine, ctx| {
            engine.answer_register_read(question.burst, value, ctx);
        });
    }

    fn write_engine_register(&mut self, id: EngineId, offset: u64, value: u32) {
        if !self.touched.contains(&id) {
            self.touched.push(id);
        }
        self.call_engine(id, |engine, ctx| engine.write_register(offset, value, ctx));
    }

    /// Calls an engine and acts on what it did to the world.
    ///
    /// # Panics
    /// If the device has no such engine: ids come from the address map.
    fn call_engine<R>(&mut self, id: EngineId, call: impl FnOnce(&mut Engine, &mut Ctx) -> R) -> R {
        let mut ctx = Ctx {
            now: self.events.now(),
            clock: &self.clock,
            memory: &mut self.memory,
            fabric: &mut self.fabric,
            out: &mut self.outbox,
        };
        let result = call(&mut self.engines[id.0 as usize], &mut ctx);
        let now = ctx.now;
        self.events.advance_to(now);
        self.watch_engine(id);
        if self.outbox.progress {
            self.deliver(id);
        }
        result
    }

    /// Makes sure an engine has its next turn.
    fn watch_engine(&mut self, id: EngineId) {
        let index = id.0 as usize;
        if let Some((at, class)) = self.engines[index].next_event() {
            let part = self.engine_parts[index];
            let turn = Turn::new(at, class, part);
            if turn < self.engine_turns[index] {
                self.engine_turns[index] = turn;
                self.events
                    .schedule(at, class, part, Event::Engine(id, class));
            }
        }
    }

    /// Acts on what an engine did to the world.
    fn deliver(&mut self, id: EngineId) {
        if !self.outbox.activities.is_empty() {
            self.tell_engine(id);
        }
        let mut groups = std::mem::take(&mut self.outbox.interrupts);
        for group in groups.drain(..) {
            if self.outbox.observed {
                self.tell(&Activity::Interrupt { engine: id, group });
            }
            let is_this = |waiting: &Interrupt| (waiting.engine, waiting.group) == (id, group);
            if !self.interrupts.iter().any(is_this) {
                self.interrupts.push_back(Interrupt {
                    engine: id,
                    group,
                    at: self.events.now(),
                });
            }
        }
        self.outbox.interrupts = groups;
        while let Some(effects) = self.outbox.effects.pop() {
            self.wake_sequencers(effects);
        }
        while let Some(write) = self.outbox.register_writes.pop() {
            self.write_engine_register(write.engine, write.offset, write.value);
        }
    }

    /// Sends a register write on its way; it arrives after `delay`.
    fn post_register(
        &mut self,
        from: ComponentId,
        delay: Duration,
        register: Posted,
        value: u32,
    ) -> Instant {
        let arrives = self.now() + delay;
        self.posted += 1;
        self.events.schedule(
            arrives,
            EventClass::Register,
            from,
            Event::Register { register, value },
        );
        arrives
    }

    /// Lets the sequencers that wait for cells of `effects` look again.
    fn wake_sequencers(&mut self, effects: Effects) {
        if self.outbox.observed {
            self.tell_semaphores(effects);
        }
        let Effects::Semaphores {
            block,
            first,
            count,
        } = effects
        else {
            return;
        };
        for index in 0..self.sequencers.len() {
            if self.sequencers[index].waits_for(block, first, count) {
                self.schedule_sequencer(SequencerId(index), self.config.values.sequencer.step);
            }
        }
    }
}
