//! The deterministic flavour: hosts take turns, and time passes only when all of them ask for it.
//!
//! A round begins when every host has asked for something. Requests are served in the order of the
//! hosts' numbers; a wait for something that does not hold yet keeps waiting. If nobody could be
//! served, time passes to the next instant at which something happens or a wait ends, and the round
//! is played again. Since nothing depends on which thread came first, two runs are the same, as
//! long as hosts tell each other things through the device only.

use super::LiveError;
use super::watchdog::{HostWait, Watchdog};
use crate::host::{Bus, BusError, BusReason, TimedBus};
use crate::sim::{Duration, Instant};
use crate::system::{Condition, Interrupt, System, WaitOutcome};
use crate::units::Addr;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parking_lot::Mutex;
use std::sync::Arc;

/// A machine whose hosts advance it together.
pub struct Lockstep;

impl Lockstep {
    /// Hands a machine to `hosts` hosts, numbered from 0. Each handle is one host, to be used by
    /// one thread; a host that is done drops its handle, or the others wait for it. The machine
    /// goes with the last one.
    pub fn start(system: System, hosts: usize, watchdog: Watchdog) -> Vec<LockstepHandle> {
        let table = Arc::new(Mutex::new(Table {
            system,
            hosts: (0..hosts).map(|_| Host::Away).collect(),
            watchdog,
        }));
        (0..hosts)
            .map(|number| LockstepHandle {
                table: Arc::clone(&table),
                number,
            })
            .collect()
    }
}

/// One host of a [`Lockstep`] machine.
pub struct LockstepHandle {
    table: Arc<Mutex<Table>>,
    number: usize,
}

/// The machine, and who sits around it.
struct Table {
    system: System,
    hosts: Vec<Host>,
    watchdog: Watchdog,
}

/// Where a host is.
enum Host {
    /// It does something of its own: nobody gets on until it asks.
    Away,
    /// It waits for its turn, to do something that takes no time.
    Acts(Box<dyn FnOnce(&mut System) + Send>),
    /// It lets time pass.
    Waits {
        until: Condition,
        deadline: Instant,
        reply: Sender<WaitOutcome>,
    },
    /// Its handle is dropped.
    Gone,
}

impl Table {
    /// Plays rounds as long as every host asks for something.
    fn play(&mut self) {
        loop {
            let mut here = (self.hosts.iter()).filter(|host| !matches!(host, Host::Gone));
            let any = here.clone().next().is_some();
            if !any || here.any(|host| matches!(host, Host::Away)) {
                return;
            }
            if !self.serve_round() {
                self.pass_time();
            }
        }
    }

    /// Serves whom it can, in order. True if there was somebody.
    fn serve_round(&mut self) -> bool {
        let mut any = false;
        for host in &mut self.hosts {
            match std::mem::replace(host, Host::Away) {
                Host::Acts(act) => {
                    act(&mut self.system);
                    any = true;
                }
                Host::Waits {
                    until,
                    deadline,
                    reply,
                } => {
                    let outcome = if self.system.holds(&until) {
                        WaitOutcome::Met
                    } else if self.system.now() >= deadline {
                        WaitOutcome::TimedOut(self.system.waiters())
                    } else {
                        *host = Host::Waits {
                            until,
                            deadline,
                            reply,
                        };
                        continue;
                    };
                    // There is room for the one value, and the host waits for it.
                    let _ = reply.try_send(outcome);
                    any = true;
                }
                still => *host = still,
            }
        }
        any
    }

    /// Everybody waits: lets time pass to the next instant at which something happens or a wait
    /// ends. If nothing will happen and nobody waits for an instant, all are stuck.
    fn pass_time(&mut self) {
        let mut horizon = System::END;
        let mut instants = false;
        for host in &self.hosts {
            if let Host::Waits {
                until, deadline, ..
            } = host
            {
                horizon = horizon.min(*deadline);
                if let Condition::Until(at) = until {
                    horizon = horizon.min(*at);
                    instants = true;
                }
            }
        }
        if instants || self.system.has_work() {
            self.system.step(horizon);
            return;
        }
        let waiters = self.system.waiters();
        for host in &mut self.hosts {
            if let Host::Waits { reply, .. } = host {
                // There is room for the one value, and the host waits for it.
                let _ = reply.try_send(WaitOutcome::Stuck(waiters.clone()));
                *host = Host::Away;
            }
        }
    }

    fn bark(&mut self) {
        let describe = |(number, host): (usize, &Host)| {
            let waits_for = match host {
                Host::Away => "its own thread, which holds up the others".to_string(),
                Host::Acts(_) => "its turn".to_string(),
                Host::Waits { until, .. } => until.to_string(),
                Host::Gone => return None,
            };
            let host = number.to_string();
            Some(HostWait { host, waits_for })
        };
        let hosts = self.hosts.iter().enumerate().filter_map(describe).collect();
        self.watchdog.bark(&self.system, hosts);
    }
}

impl LockstepHandle {
    /// This host's number: requests of one round are served in the order of the numbers.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Lets time pass until a condition holds, `timeout` of simulated time at most. If nothing is
    /// left that could happen and nobody waits for an instant, every host that waits is stuck.
    ///
    /// # Errors
    /// [`LiveError::Stopped`] if the machine failed.
    pub fn wait(&mut self, until: &Condition, timeout: Duration) -> Result<WaitOutcome, LiveError> {
        let deadline = (self.now()? + timeout).min(System::END);
        let (reply, outcome) = bounded(1);
        let until = until.clone();
        self.sit_down(Host::Waits {
            until,
            deadline,
            reply,
        });
        self.served(&outcome)
    }

    /// Lets so much simulated time pass.
    ///
    /// # Errors
    /// [`LiveError::Stopped`] if the machine failed.
    pub fn sleep(&mut self, length: Duration) -> Result<(), LiveError> {
        let until = (self.now()? + length).min(System::END);
        self.wait(&Condition::Until(until), length).map(|_| ())
    }

    /// Takes the oldest interrupt that no host has taken.
    ///
    /// # Errors
    /// [`LiveError::Stopped`] if the machine failed.
    pub fn take_interrupt(&mut self) -> Result<Option<Interrupt>, LiveError> {
        self.act(System::take_interrupt)
    }

    /// Simulated time.
    ///
    /// # Errors
    /// [`LiveError::Stopped`] if the machine failed.
    pub fn now(&mut self) -> Result<Instant, LiveError> {
        self.act(|system| system.now())
    }

    /// Looks at the machine, in this host's turn.
    ///
    /// # Errors
    /// [`LiveError::Stopped`] if the machine failed.
    pub fn inspect<R: Send + 'static>(
        &mut self,
        look: impl FnOnce(&System) -> R + Send + 'static,
    ) -> Result<R, LiveError> {
        self.act(|system| look(system))
    }

    /// Does something that takes no time, in this host's turn.
    fn act<R: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut System) -> R + Send + 'static,
    ) -> Result<R, LiveError> {
        let (reply, result) = bounded(1);
        self.sit_down(Host::Acts(Box::new(move |system| {
            // There is room for the one value, and the host waits for it.
            let _ = reply.try_send(act(system));
        })));
        self.served(&result)
    }

    fn sit_down(&mut self, host: Host) {
        let mut table = self.table.lock();
        table.hosts[self.number] = host;
        table.play();
    }

    /// Waits for the other hosts; after the watchdog's period says so, once.
    fn served<R>(&mut self, reply: &Receiver<R>) -> Result<R, LiveError> {
        let period = match reply.try_recv() {
            Ok(value) => return Ok(value),
            Err(_) => self.table.lock().watchdog.period,
        };
        match reply.recv_timeout(period) {
            Ok(value) => Ok(value),
            Err(RecvTimeoutError::Timeout) => {
                self.table.lock().bark();
                reply.recv().map_err(|_| LiveError::Stopped)
            }
            Err(RecvTimeoutError::Disconnected) => Err(LiveError::Stopped),
        }
    }

    /// As [`act`](Self::act), for an access.
    fn access<R: Send + 'static>(
        &mut self,
        at: Addr,
        len: u64,
        act: impl FnOnce(&mut System) -> Result<R, BusError> + Send + 'static,
    ) -> Result<R, BusError> {
        let reason = BusReason::Stopped;
        self.act(act).map_err(|_| BusError { at, len, reason })?
    }
}

impl Drop for LockstepHandle {
    fn drop(&mut self) {
        self.sit_down(Host::Gone);
    }
}

/// Bytes of a register.
const REGISTER_BYTES: u64 = 4;

impl Bus for LockstepHandle {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        let len = out.len();
        let bytes = self.access(at, len as u64, move |system| {
            let mut bytes = vec![0; len];
            system.read_mem(at, &mut bytes).map(|()| bytes)
        })?;
        out.copy_from_slice(&bytes);
        Ok(())
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        let bytes = bytes.to_vec();
        self.access(at, bytes.len() as u64, move |system| {
            system.write_mem(at, &bytes)
        })
    }

    /// Takes the configured round trip, as it does on a [`System`].
    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        let stopped = |_| BusError {
            at,
            len: REGISTER_BYTES,
            reason: BusReason::Stopped,
        };
        let due = self.access(at, REGISTER_BYTES, move |system| {
            system.check_register(at)?;
            Ok(system.register_answer_at().min(System::END))
        })?;
        self.wait(&Condition::Until(due), Duration::MAX)
            .map_err(stopped)?;
        self.access(at, REGISTER_BYTES, move |system| system.sample_register(at))
    }

    fn write_reg(&mut self, at: Addr, value: u32) -> Result<(), BusError> {
        self.access(at, REGISTER_BYTES, move |system| {
            system.write_reg(at, value)
        })
    }
}

impl TimedBus for LockstepHandle {
    /// [`LockstepHandle::sleep`]; if the machine failed it returns at once.
    fn sleep(&mut self, time: Duration) {
        let _ = LockstepHandle::sleep(self, time);
    }
}
