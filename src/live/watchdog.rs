//! The watchdog: who waits for what when nothing gets on.

use crate::system::{System, Waiter};
use std::fmt;
use std::time::Duration;

/// A host that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWait {
    /// The name of its thread, or its number.
    pub host: String,
    /// What for.
    pub waits_for: String,
}

/// What a watchdog found: hosts wait, and nothing has happened for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StallReport {
    /// How long nothing has happened, by the wall clock.
    pub quiet: Duration,
    /// Simulated time.
    pub now: crate::sim::Duration,
    /// Hosts, and what each waits for.
    pub hosts: Vec<HostWait>,
    /// Queues and sequencers with work left, and what each waits for.
    pub device: Vec<Waiter>,
}

impl fmt::Display for StallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no progress for {:?}; simulated time is {}",
            self.quiet, self.now
        )?;
        for HostWait { host, waits_for } in &self.hosts {
            write!(f, "\n  host {host} waits for {waits_for}")?;
        }
        for waiter in &self.device {
            write!(f, "\n  {waiter}")?;
        }
        if self.device.is_empty() {
            write!(f, "\n  the device has no work")?;
        }
        Ok(())
    }
}

/// When to say that nothing gets on, and to whom.
pub struct Watchdog {
    /// How long, by the wall clock, hosts may wait without anything happening.
    pub period: Duration,
    /// Gets the report, once for each stall.
    pub report: Box<dyn FnMut(&StallReport) + Send>,
}

impl Default for Watchdog {
    /// After ten seconds, to standard error: a hang must be seen, logs or none.
    fn default() -> Watchdog {
        Watchdog {
            period: Duration::from_secs(10),
            report: Box::new(|stall| eprintln!("{stall}")),
        }
    }
}

impl Watchdog {
    /// Says who waits for what.
    pub(super) fn bark(&mut self, system: &System, hosts: Vec<HostWait>) {
        let report = StallReport {
            quiet: self.period,
            now: system.now() - crate::sim::Instant::START,
            hosts,
            device: system.waiters(),
        };
        (self.report)(&report);
    }
}
