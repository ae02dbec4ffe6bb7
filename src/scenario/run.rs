//! Running a plan: contents into memory, sequencers started, step after step, expectations.

use super::check::Evidence;
use super::fill::{CHUNK, Fill, chunks};
use super::host_side::HostSide;
use super::place::Region;
use super::plan::{Action, FaultPlan, Plan, Step, WaitOn};
use super::report::{Report, StepReport, Totals, TouchedRegister};
use super::stripped::{Strip, Stripped};
use crate::device::{BusyChange, Counters};
use crate::host::{Bus, BusError, PringError};
use crate::sim::{Duration, Instant};
use crate::system::{
    Condition, Interrupt, NoSuchQueue, ProgramError, SequencerId, System, SystemError, WaitOutcome,
    Waiter, Watch,
};
use crate::units::Addr;
use std::collections::BTreeMap;

/// Simulated time between two calls of the progress callback.
const SLICE: Duration = Duration::from_ns(100_000);

/// Why a plan did not run at all.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The machine could not be built.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A content did not fit into the machine's memory.
    #[error("cannot fill the memory: {0}")]
    Content(#[from] BusError),
    /// A ring could not be set up.
    #[error(transparent)]
    Ring(#[from] PringError),
    /// A fault names a queue that the machine does not have.
    #[error(transparent)]
    Fault(#[from] NoSuchQueue),
    /// A sequencer program cannot be executed on the machine.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Whoever wants to watch cannot.
    #[error(transparent)]
    Watch(std::io::Error),
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Steps done.
    pub done: usize,
    /// Steps in all.
    pub steps: usize,
    /// Simulated time.
    pub now: Instant,
}

/// Fills a region through a bus, a piece at a time.
pub(super) fn fill(
    bus: &mut dyn Bus,
    region: &Region,
    fill: &Fill,
    seed: u64,
) -> Result<(), BusError> {
    let mut stream = fill.bytes(seed);
    let mut buffer = vec![0; CHUNK];
    for (offset, bytes) in chunks(region.bytes) {
        stream.next(&mut buffer[..bytes]);
        bus.write_mem(Addr(region.at.0 + offset), &buffer[..bytes])?;
    }
    Ok(())
}

impl Plan {
    /// Runs the plan on a fresh machine. `progress` is called now and then; what it does cannot
    /// change the outcome.
    ///
    /// # Errors
    /// [`RunError`] if the machine cannot be set up. What goes wrong later is in the report.
    pub fn run(&self, progress: &mut dyn FnMut(Progress)) -> Result<Report, RunError> {
        self.run_watched(&mut (), progress)
    }

    /// As [`run`](Self::run), with somebody who watches the machine; that cannot change the outcome
    /// either.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_watched(
        &self,
        watch: &mut dyn Watch,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Report, RunError> {
        let mut report = self.timed(&Strip::default(), watch, progress)?;
        report.races = Some(self.race_verdict());
        Ok(report)
    }

    /// Runs the plan to see what would come of it: nothing of that is logged.
    pub(super) fn trial(
        &self,
        strip: &Strip,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Report, RunError> {
        let nobody = tracing::subscriber::NoSubscriber::default();
        tracing::subscriber::with_default(nobody, || self.timed(strip, &mut (), progress))
    }

    /// Runs the plan without some barrier bits in the descriptors that the host writes.
    fn timed(
        &self,
        strip: &Strip,
        watch: &mut dyn Watch,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Report, RunError> {
        let mut system = System::new(self.config.clone(), self.seed)?;
        for content in self
            .contents
            .iter()
            .filter(|content| !content.fill.is_zero())
        {
            fill(&mut system, &content.region, &content.fill, self.seed)?;
        }
        for fault in &self.faults {
            match fault {
                FaultPlan::Queue(fault) => system.inject(*fault)?,
                FaultPlan::SlowChannel { at, by } => system.slow_down(*at, *by),
            }
        }
        let bus = &mut Stripped {
            bus: &mut system,
            strip,
        };
        let host = HostSide::new(self.config.arch(), &self.prings, bus)?;
        let mut sequencers = Vec::new();
        for sequencer in &self.sequencers {
            let program = sequencer.program.clone();
            sequencers.push(system.start_sequencer(&sequencer.name, program)?);
        }
        watch.begin(&mut system).map_err(RunError::Watch)?;
        let mut run = Run {
            plan: self,
            strip,
            host,
            system,
            sequencers,
            observations: BTreeMap::new(),
            times: Vec::new(),
            reports: Vec::new(),
            interrupts: Vec::new(),
            progress,
        };
        let stopped = run.steps();
        watch.end(&run.system);
        Ok(run.report(stopped))
    }
}

struct Run<'a> {
    plan: &'a Plan,
    strip: &'a Strip,
    host: HostSide,
    system: System,
    sequencers: Vec<SequencerId>,
    observations: BTreeMap<String, Vec<u8>>,
    times: Vec<(Instant, Instant)>,
    /// One for each `[[step]]`, with its index in the file and the time it began.
    reports: Vec<(usize, Instant, StepReport)>,
    /// Interrupts the host took, in order.
    interrupts: Vec<Interrupt>,
    progress: &'a mut dyn FnMut(Progress),
}

impl Run<'_> {
    /// Does the steps in order. Returns why it did not get to the end, if so.
    fn steps(&mut self) -> Option<String> {
        for step in &self.plan.steps {
            tracing::info!(
                cycle = self.system.cycles().0,
                "{} {}",
                step.call,
                step.detail
            );
            let (began, before) = (self.system.now(), self.system.counters());
            let done = self.act(&step.action);
            self.record(step, began, &before);
            if let Err(why) = done {
                return Some(format!("{} {}: {why}", step.call, step.detail));
            }
        }
        None
    }

    fn act(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Host(action) => {
                let bus = &mut Stripped {
                    bus: &mut self.system,
                    strip: self.strip,
                };
                let done = self.host.perform(action, self.plan.seed, bus);
                done.map_err(|error| error.to_string())
            }
            Action::Wait { on, timeout } => self.wait(on, *timeout),
            Action::Interrupt { timeout } => {
                self.wait(&WaitOn::Condition(Condition::Interrupt), *timeout)?;
                self.interrupts.extend(self.system.take_interrupt());
                Ok(())
            }
            Action::ReadRegister { name, at } => {
                let value = self
                    .system
                    .read_reg(*at)
                    .map_err(|error| error.to_string())?;
                let bytes = value.to_le_bytes().to_vec();
                self.observations.insert(name.clone(), bytes);
                Ok(())
            }
            Action::Observe { name, region } => {
                let mut bytes = vec![0; region.bytes as usize];
                let read = self.system.memory().read(region.at, &mut bytes);
                read.map_err(|error| error.to_string())?;
                self.observations.insert(name.clone(), bytes);
                Ok(())
            }
        }
    }

    fn wait(&mut self, on: &WaitOn, timeout: Duration) -> Result<(), String> {
        let now = self.system.now();
        let (condition, timeout) = match on {
            WaitOn::Condition(condition) => (condition.clone(), timeout),
            WaitOn::For(time) => (Condition::Until(now + *time), *time),
            WaitOn::Sequencer(index) => match self.sequencers.get(*index) {
                Some(id) => (Condition::SequencerDone(*id), timeout),
                None => return Err("there is no such sequencer".to_string()),
            },
        };
        let deadline = now + timeout;
        loop {
            let left = deadline - self.system.now();
            let slice = left.min(SLICE);
            match self.system.run_until(&condition, slice) {
                WaitOutcome::Met => return Ok(()),
                WaitOutcome::Stuck(waiters) => {
                    let who = told(&waiters);
                    return Err(format!("stuck, nothing is left that could happen{who}"));
                }
                WaitOutcome::TimedOut(waiters) if slice == left => {
                    return Err(format!("timed out after {timeout}{}", told(&waiters)));
                }
                WaitOutcome::TimedOut(_) => (self.progress)(Progress {
                    done: self.times.len(),
                    steps: self.plan.steps.len(),
                    now: self.system.now(),
                }),
            }
        }
    }

    /// Notes what a step did. Repetitions of a step are one entry.
    fn record(&mut self, step: &Step, began: Instant, before: &Counters) {
        let now = self.system.now();
        self.times.push((began, now));
        let clock = self.system.clock();
        let after = self.system.counters();
        let cycles = clock.cycle_at(now).0 - clock.cycle_at(began).0;
        let packets = after.packets - before.packets;
        let bytes = after.bytes_written - before.bytes_written;
        match self.reports.last_mut() {
            Some((source, source_began, report)) if *source == step.source => {
                report.times += 1;
                report.cycles += cycles;
                report.packets += packets;
                report.bytes += bytes;
                report.gb_per_s = gb_per_s(report.bytes, now - *source_began);
            }
            _ => {
                let report = StepReport {
                    label: step.label.clone(),
                    call: step.call.to_string(),
                    detail: step.detail.clone(),
                    times: 1,
                    start_cycle: clock.cycle_at(began).0,
                    cycles,
                    packets,
                    bytes,
                    gb_per_s: gb_per_s(bytes, now - began),
                };
                self.reports.push((step.source, began, report));
            }
        }
    }

    fn report(mut self, stopped: Option<String>) -> Report {
        for seen in self.system.observations() {
            self.observations
                .insert(seen.name.clone(), seen.bytes.clone());
        }
        let evidence = Evidence {
            system: &self.system,
            seed: self.plan.seed,
            observations: &self.observations,
            times: &self.times,
        };
        let expects = self.plan.expects.iter();
        let expectations: Vec<_> = expects.map(|expect| evidence.check(expect)).collect();
        let counters = self.system.counters();
        let time = self.system.now() - Instant::START;
        Report {
            scenario: self.plan.name.clone(),
            description: self.plan.description.clone(),
            arch: self.system.arch().to_string(),
            config: self.plan.config.origin.clone(),
            seed: self.plan.seed,
            passed: stopped.is_none() && expectations.iter().all(|e| e.passed),
            time_ns: time.as_ns_f64(),
            cycles: self.system.cycles().0,
            clock_hz: self.system.clock().frequency().0,
            bytes: counters.bytes_written,
            gb_per_s: gb_per_s(counters.bytes_written, time),
            totals: totals(&counters),
            steps: self
                .reports
                .into_iter()
                .map(|(_, _, report)| report)
                .collect(),
            stopped,
            expectations,
            errors: evidence.errors().iter().map(ToString::to_string).collect(),
            warnings: warnings(&counters, &self.system),
            unmodelled_registers: unmodelled(&self.system),
            races: None,
            faults: {
                let injections = self.system.injections();
                let shown = injections.iter().map(ToString::to_string);
                let more = self.system.faults_struck() - injections.len() as u64;
                let more = (more > 0).then(|| format!("and {more} more"));
                shown.chain(more).collect()
            },
            interrupts: self
                .interrupts
                .iter()
                .map(|interrupt| {
                    let cycle = self.system.clock().cycle_at(interrupt.at).0;
                    format!(
                        "{} group {} at cycle {cycle}",
                        interrupt.engine, interrupt.group
                    )
                })
                .collect(),
            #[cfg(feature = "telemetry")]
            stats: None,
        }
    }
}

fn told(waiters: &[Waiter]) -> String {
    let waiters: Vec<String> = waiters.iter().map(ToString::to_string).collect();
    match waiters.is_empty() {
        true => String::new(),
        false => format!(": {}", waiters.join("; ")),
    }
}

/// 10^9 bytes per second, to three decimals.
fn gb_per_s(bytes: u64, time: Duration) -> f64 {
    match time {
        Duration::ZERO => 0.0,
        time => (bytes as f64 / time.as_ns_f64() * 1e3).round() / 1e3,
    }
}

fn totals(counters: &Counters) -> Totals {
    Totals {
        tx_descriptors: counters.tx_descriptors,
        rx_descriptors: counters.rx_descriptors,
        packets: counters.packets,
        bytes_read: counters.bytes_read,
        bytes_written: counters.bytes_written,
        dmb: counters.dmb,
        write_barriers: counters.write_barriers,
        strong_order_writes: counters.strong_order_writes,
    }
}

/// What the device let pass though it was hardly meant.
fn warnings(counters: &Counters, system: &System) -> Vec<String> {
    let told = [
        (
            counters.rx_bytes_unused,
            "bytes of Rx descriptors left over when their packet ended",
        ),
        (
            counters.dmb_masked,
            "packets whose DMB did nothing: the queue's DMB pause is masked",
        ),
        (counters.reserved_bits, "reserved barrier bits ignored"),
        (
            counters.doorbell_overflow,
            "descriptors of doorbells beyond the ring, ignored",
        ),
        (
            counters.packets_dropped,
            "packets dropped by a reset of their queue",
        ),
        (
            counters.notifications_lost,
            "notifications lost: software left no room in the queue",
        ),
    ];
    let told = told.into_iter().filter(|(count, _)| *count > 0);
    let mut warnings: Vec<String> = told
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let engines = system.engines_in_use().into_iter();
    let changes: Vec<BusyChange> = (engines.filter_map(|id| system.engine_status(id)))
        .flat_map(|status| status.busy_changes)
        .collect();
    for change in changes.iter().take(MOST_CHANGES) {
        let cycle = system.clock().cycle_at(change.at);
        warnings.push(format!("{change}, cycle {cycle}"));
    }
    let told = changes.len().min(MOST_CHANGES) as u64;
    if counters.busy_changes > told {
        let more = counters.busy_changes - told;
        warnings.push(format!(
            "{more} more changes to queues with descriptors outstanding"
        ));
    }
    warnings
}

/// Changes to busy queues that a report names one by one.
const MOST_CHANGES: usize = 16;

/// The registers that nothing models and somebody has touched.
fn unmodelled(system: &System) -> Vec<TouchedRegister> {
    let touched = system.unmodelled_registers().into_iter();
    touched
        .map(|register| TouchedRegister {
            at: register.at.to_string(),
            name: register.name,
            value: register.value,
            reads: register.reads,
            writes: register.writes,
        })
        .collect()
}
