//! The handle of a live device.

use super::watchdog::Watchdog;
use super::worker::{Asked, BACKLOG, Command, Question, Shared, Worker};
use crate::arch::ArchSpec;
use crate::host::{Bus, BusError, BusReason, TimedBus};
use crate::sim::Instant;
use crate::system::{Condition, Interrupt, System, Waiter};
use crate::units::Addr;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A machine that runs on a thread of its own. Clone it for every host thread: each clone is a
/// handle to the same machine, the last one that is dropped stops it and waits for its thread.
///
/// Simulated time passes as fast as the simulation can while the machine has work, or while a host
/// [sleeps](LiveDevice::sleep); else it stands still. Accesses of one handle take effect in order:
/// memory at once, register writes posted, register reads and waits after the writes before them.
#[derive(Clone)]
pub struct LiveDevice {
    owner: Arc<Owner>,
}

struct Owner {
    /// `None` only while it is dropped.
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
    /// The threads of interrupt handlers.
    handlers: Mutex<Vec<JoinHandle<()>>>,
    shared: Arc<Mutex<Shared>>,
    spec: &'static ArchSpec,
    /// Number of the next question.
    next_id: AtomicU64,
}

impl Drop for Owner {
    /// Nobody is left who waits: the thread sees the channel closed and ends, and then the handlers'
    /// threads do.
    fn drop(&mut self) {
        drop(self.commands.take());
        for thread in self
            .thread
            .take()
            .into_iter()
            .chain(self.handlers.get_mut().drain(..))
        {
            // A handler may have been the last to use the device: this is its thread.
            if thread.thread().id() != std::thread::current().id() {
                // If it panicked, that has been printed, and everybody who asked was told.
                let _ = thread.join();
            }
        }
    }
}

/// Why a wait ended without what it waited for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiveError {
    /// The wall-clock time allowed for it passed.
    #[error("waited {timeout:?} for {waits_for}{}", List(.waiters))]
    TimedOut {
        /// How long.
        timeout: Duration,
        /// What for.
        waits_for: String,
        /// Who else has work left and waits for what.
        waiters: Vec<Waiter>,
    },
    /// The device's thread has ended.
    #[error("the device has stopped")]
    Stopped,
}

/// Waiters after a colon, if there are any.
struct List<'a>(&'a [Waiter]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, waiter) in self.0.iter().enumerate() {
            write!(f, "{}{waiter}", if n == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

impl LiveDevice {
    /// Hands a machine to a thread that runs it.
    ///
    /// # Errors
    /// If the operating system gives no thread.
    pub fn start(system: System, watchdog: Watchdog) -> io::Result<LiveDevice> {
        let spec = system.arch().spec();
        let (commands, inbox) = bounded(BACKLOG);
        let asleep = false;
        let shared = Arc::new(Mutex::new(Shared { system, asleep }));
        let worker = Worker::new(inbox, watchdog);
        let machine = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("udma-sim device".to_string())
            .spawn(move || worker.run(machine))?;
        Ok(LiveDevice {
            owner: Arc::new(Owner {
                commands: Some(commands),
                thread: Some(thread),
                handlers: Mutex::default(),
                shared,
                spec,
                next_id: AtomicU64::new(0),
            }),
        })
    }

    /// Waits until a condition holds; register writes this handle made before count as made.
    ///
    /// # Errors
    /// [`LiveError::TimedOut`] if `timeout` passes first, by the wall clock.
    pub fn wait(&self, until: &Condition, timeout: Duration) -> Result<(), LiveError> {
        self.ask(Some(timeout), |reply| Question::Holds(until.clone(), reply))
    }

    /// Waits until so much simulated time has passed.
    ///
    /// # Errors
    /// [`LiveError::Stopped`].
    pub fn sleep(&self, length: crate::sim::Duration) -> Result<(), LiveError> {
        self.ask(None, |reply| Question::Passed(length, reply))
    }

    /// Takes the next interrupt; each goes to one of the handles that wait.
    ///
    /// # Errors
    /// [`LiveError::TimedOut`] if `timeout` passes first, by the wall clock.
    pub fn next_interrupt(&self, timeout: Duration) -> Result<Interrupt, LiveError> {
        self.ask(Some(timeout), Question::Interrupt)
    }

    /// Calls `handler` for every interrupt from now on, as an interrupt service routine: on a thread of its
    /// own, one interrupt after the other, with a handle to the device. The machine runs on meanwhile. Handlers come
    /// before those who wait for the [next interrupt](LiveDevice::next_interrupt); a new one takes the place of the
    /// one before. One that panics is out, other hosts go on.
    ///
    /// # Errors
    /// If the operating system gives no thread, or the device has stopped.
    pub fn on_interrupt(
        &self,
        mut handler: impl FnMut(&mut LiveDevice, Interrupt) + Send + 'static,
    ) -> io::Result<()> {
        let (sender, interrupts) = bounded(BACKLOG);
        // The handler alone does not keep the device alive.
        let owner = Arc::downgrade(&self.owner);
        let serve = move || {
            for interrupt in &interrupts {
                let Some(owner) = owner.upgrade() else {
                    return;
                };
                let mut device = LiveDevice { owner };
                handler(&mut device, interrupt);
                if interrupts.is_empty() {
                    // More may have found no room here.
                    let _ = device.send(Command::Wake);
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("udma-sim interrupts".to_string())
            .spawn(serve)?;
        self.owner.handlers.lock().push(thread);
        self.send(Command::Deliver(sender))
            .map_err(io::Error::other)
    }

    /// Simulated time.
    pub fn now(&self) -> Instant {
        self.inspect(System::now)
    }

    /// Looks at the machine, which stands still meanwhile. Posted register writes may not have
    /// arrived. `look` must not use a handle of the same device: it would wait for itself.
    pub fn inspect<R>(&self, look: impl FnOnce(&System) -> R) -> R {
        look(&self.owner.shared.lock().system)
    }

    fn send(&self, command: Command) -> Result<(), LiveError> {
        let commands = self.owner.commands.as_ref().ok_or(LiveError::Stopped)?;
        commands.send(command).map_err(|_| LiveError::Stopped)
    }

    fn ask<T>(
        &self,
        timeout: Option<Duration>,
        question: impl FnOnce(Sender<T>) -> Question,
    ) -> Result<T, LiveError> {
        let id = self.owner.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = bounded(1);
        let thread = std::thread::current();
        let host = match thread.name() {
            Some(name) => name.to_string(),
            None => format!("{:?}", thread.id()),
        };
        let question = question(reply);
        self.send(Command::Ask(Asked { id, host, question }))?;
        let Some(timeout) = timeout else {
            return answer.recv().map_err(|_| LiveError::Stopped);
        };
        match answer.recv_timeout(timeout) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) => self.give_up(id, timeout, &answer),
            Err(RecvTimeoutError::Disconnected) => Err(LiveError::Stopped),
        }
    }

    /// Takes a question back, unless it is answered at the last moment.
    fn give_up<T>(&self, id: u64, timeout: Duration, answer: &Receiver<T>) -> Result<T, LiveError> {
        let (reply, withdrawn) = bounded(1);
        self.send(Command::Cancel { id, reply })?;
        match withdrawn.recv() {
            Ok((waits_for, waiters)) => Err(LiveError::TimedOut {
                timeout,
                waits_for,
                waiters,
            }),
            Err(_) => answer.try_recv().map_err(|_| LiveError::Stopped),
        }
    }

    /// Refuses what is not a register, without asking the machine.
    fn check_register(&self, at: Addr) -> Result<(), BusError> {
        if !at.is_aligned(REGISTER_BYTES) {
            return Err(refused(at, BusReason::Misaligned));
        }
        match self.owner.spec.map.has_register(at) {
            true => Ok(()),
            false => Err(refused(at, BusReason::NoRegister)),
        }
    }
}

/// Bytes of a register.
const REGISTER_BYTES: u64 = 4;

fn refused(at: Addr, reason: BusReason) -> BusError {
    BusError {
        at,
        len: REGISTER_BYTES,
        reason,
    }
}

impl Bus for LiveDevice {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        self.owner.shared.lock().system.read_mem(at, out)
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        let asleep = {
            let mut shared = self.owner.shared.lock();
            shared.system.write_mem(at, bytes)?;
            std::mem::take(&mut shared.asleep)
        };
        if asleep {
            // It may be what somebody waits for. Whether the thread still runs shows elsewhere.
            let _ = self.send(Command::Wake);
        }
        Ok(())
    }

    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        self.check_register(at)?;
        self.ask(None, |reply| Question::Register(at, reply))
            .map_err(|_| refused(at, BusReason::Stopped))?
    }

    /// Posted: returns before the device has it.
    fn write_reg(&mut self, at: Addr, value: u32) -> Result<(), BusError> {
        self.check_register(at)?;
        self.send(Command::Write { at, value })
            .map_err(|_| refused(at, BusReason::Stopped))
    }
}

impl TimedBus for LiveDevice {
    /// [`LiveDevice::sleep`]; on a device that has stopped it returns at once.
    fn sleep(&mut self, time: crate::sim::Duration) {
        let _ = LiveDevice::sleep(self, time);
    }
}
