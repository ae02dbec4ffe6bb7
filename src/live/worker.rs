//! The thread of a live device: takes commands in the order they were sent, lets time pass, answers
//! whoever waited for what then holds.

use super::watchdog::{HostWait, Watchdog};
use crate::device::Counters;
use crate::host::{Bus, BusError};
use crate::sim::{Duration, Instant};
use crate::system::{Condition, Interrupt, System, Waiter};
use crate::units::Addr;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time;

/// Instants handled before other threads get at the machine.
const SLICE: usize = 256;
/// Commands taken before time passes again.
pub(super) const BACKLOG: usize = 1024;

/// The machine, and whether its thread sleeps until a command comes.
pub(super) struct Shared {
    pub system: System,
    pub asleep: bool,
}

/// What hosts send.
pub(super) enum Command {
    /// A posted register write; the address is a register's.
    Write { at: Addr, value: u32 },
    /// Answer when it holds.
    Ask(Asked),
    /// The host no longer waits for what it asked under this number.
    Cancel { id: u64, reply: Sender<Withdrawn> },
    /// From now on send interrupts here.
    Deliver(Sender<Interrupt>),
    /// A store to memory happened while the thread slept.
    Wake,
}

/// A question that a host took back: what it was, and who else waits for what.
pub(super) type Withdrawn = (String, Vec<Waiter>);

/// A question and who asks it.
pub(super) struct Asked {
    pub id: u64,
    pub host: String,
    pub question: Question,
}

/// What hosts wait for, each with the way back.
pub(super) enum Question {
    /// Tell me when it holds.
    Holds(Condition, Sender<()>),
    /// Tell me when so much time has passed.
    Passed(Duration, Sender<()>),
    /// What does the register show?
    Register(Addr, Sender<Result<u32, BusError>>),
    /// Which interrupt is the next one?
    Interrupt(Sender<Interrupt>),
}

/// A question that the machine has.
struct Waiting {
    asked: Asked,
    /// The instant it waits for, of a question that waits for one.
    due: Option<Instant>,
}

pub(super) struct Worker {
    commands: Receiver<Command>,
    waiting: Vec<Waiting>,
    /// Where a handler waits for interrupts.
    handler: Option<Sender<Interrupt>>,
    watchdog: Watchdog,
    /// When something last happened, what the device had done then, and whether the quiet since
    /// was reported.
    lively_at: time::Instant,
    lively_counters: Counters,
    barked: bool,
}

impl Worker {
    pub fn new(commands: Receiver<Command>, watchdog: Watchdog) -> Worker {
        Worker {
            commands,
            waiting: Vec::new(),
            handler: None,
            watchdog,
            lively_at: time::Instant::now(),
            lively_counters: Counters::default(),
            barked: false,
        }
    }

    /// Runs until every handle is dropped.
    pub fn run(mut self, shared: Arc<Mutex<Shared>>) {
        loop {
            let mut machine = shared.lock();
            if !self.take_commands(&mut machine.system) {
                return;
            }
            let busy = self.slice(&mut machine.system);
            self.watch(&machine.system);
            machine.asleep = !busy;
            // Else the host threads that wait for the lock would seldom get it.
            MutexGuard::unlock_fair(machine);
            if busy {
                continue;
            }
            match self.commands.recv_timeout(self.watchdog.period) {
                Ok(command) => {
                    let mut machine = shared.lock();
                    machine.asleep = false;
                    self.obey(command, &mut machine.system);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Takes what has arrived. False if nobody is left who could send anything.
    fn take_commands(&mut self, system: &mut System) -> bool {
        for _ in 0..BACKLOG {
            match self.commands.try_recv() {
                Ok(command) => self.obey(command, system),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        true
    }

    fn obey(&mut self, command: Command, system: &mut System) {
        match command {
            Command::Write { at, value } => {
                if let Err(error) = system.write_reg(at, value) {
                    tracing::warn!("{error}");
                }
                self.note_life();
            }
            Command::Ask(asked) => {
                let due = match &asked.question {
                    Question::Holds(Condition::Until(at), _) => Some(*at),
                    Question::Passed(length, _) => Some((system.now() + *length).min(System::END)),
                    Question::Register(..) => Some(system.register_answer_at().min(System::END)),
                    Question::Holds(..) | Question::Interrupt(_) => None,
                };
                self.waiting.push(Waiting { asked, due });
                self.note_life();
            }
            Command::Cancel { id, reply } => {
                let is_it = |waiting: &Waiting| waiting.asked.id == id;
                if let Some(index) = self.waiting.iter().position(is_it) {
                    let withdrawn = self.waiting.remove(index).asked.question.to_string();
                    // There is room for the one value; without one the host sees the end of `reply`.
                    let _ = reply.try_send((withdrawn, system.waiters()));
                }
            }
            Command::Deliver(handler) => self.handler = Some(handler),
            Command::Wake => {}
        }
    }

    /// Lets a bit of time pass. False if nothing is left to do but to wait for a command.
    fn slice(&mut self, system: &mut System) -> bool {
        self.answer(system);
        for _ in 0..SLICE {
            // Without work time stands still, unless somebody waits for it to pass.
            let due = self.waiting.iter().filter_map(|waiting| waiting.due).min();
            let due = due.filter(|at| *at <= System::END);
            if !system.has_work() && due.is_none() {
                return false;
            }
            system.step(due.unwrap_or(System::END));
            self.answer(system);
        }
        true
    }

    /// Sends interrupts to the handler. One that is behind leaves them with the machine, where later ones of
    /// the same group join them; one that has gone leaves them to whoever asks.
    fn deliver(&mut self, system: &mut System) {
        while let Some(handler) = &self.handler
            && !handler.is_full()
            && let Some(interrupt) = system.take_interrupt()
        {
            if handler.send(interrupt).is_err() {
                self.handler = None;
            }
            self.note_life();
        }
    }

    /// Answers the questions that can be.
    fn answer(&mut self, system: &mut System) {
        self.deliver(system);
        let before = self.waiting.len();
        self.waiting.retain(|waiting| !answered(waiting, system));
        if self.waiting.len() < before {
            self.note_life();
        }
    }

    fn note_life(&mut self) {
        self.lively_at = time::Instant::now();
        self.barked = false;
    }

    /// Looks whether hosts wait while nothing happens.
    fn watch(&mut self, system: &System) {
        if self.waiting.is_empty() || self.lively_at.elapsed() < self.watchdog.period {
            return;
        }
        let counters = system.counters();
        if counters != self.lively_counters {
            self.lively_counters = counters;
            self.note_life();
            return;
        }
        if !self.barked {
            self.barked = true;
            let hosts = self.waiting.iter().map(|waiting| HostWait {
                host: waiting.asked.host.clone(),
                waits_for: waiting.asked.question.to_string(),
            });
            self.watchdog.bark(system, hosts.collect());
        }
    }
}

/// Answers a question if it can be answered now. There is room for the one answer; a host that has
/// gone meanwhile does not want to know.
fn answered(waiting: &Waiting, system: &mut System) -> bool {
    let due = waiting.due.is_none_or(|at| system.now() >= at);
    match &waiting.asked.question {
        _ if !due => return false,
        Question::Holds(condition, reply) => {
            if !system.holds(condition) {
                return false;
            }
            let _ = reply.try_send(());
        }
        Question::Passed(_, reply) => {
            let _ = reply.try_send(());
        }
        Question::Register(at, reply) => {
            let _ = reply.try_send(system.sample_register(*at));
        }
        Question::Interrupt(reply) => {
            let Some(interrupt) = system.take_interrupt() else {
                return false;
            };
            let _ = reply.try_send(interrupt);
        }
    }
    true
}

impl std::fmt::Display for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Question::Holds(condition, _) => condition.fmt(f),
            Question::Passed(length, _) => write!(f, "{length} to pass"),
            Question::Register(at, _) => write!(f, "the register at {at}"),
            Question::Interrupt(_) => Condition::Interrupt.fmt(f),
        }
    }
}
