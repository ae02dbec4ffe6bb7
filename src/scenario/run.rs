//! Running a plan: contents into memory, sequencers started, step after step, expectations.

use super::check::Evidence;
use super::extract::Superfluous;
use super::faults::FaultPlan;
use super::host_side::{HostError, HostSide};
use super::place::Region;
use super::plan::Plan;
use super::report::{Report, StepReport, Totals, TouchedRegister};
use super::stage::{Stage, WaitOn};
use super::steps::PlannedStep;
use super::stripped::{Strip, Stripped};
use crate::device::{BusyChange, Counters};
use crate::host::{Bus, BusError, PringError, TimedBus};
use crate::sim::{Duration, Instant};
use crate::system::{
    Condition, Interrupt, NoSuchQueue, ProgramError, SequencerId, System, SystemError, WaitOutcome,
    Waiter, Watch,
};
use crate::units::{Addr, counted};
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
    #[error("cannot fill memory: {0}")]
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
            content.fill.store(&mut system, content.region, self.seed)?;
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
            machine: Machine {
                strip,
                system,
                sequencers,
                observations: BTreeMap::new(),
                interrupts: Vec::new(),
                progress: Reported {
                    done: 0,
                    steps: self.steps.len(),
                    call: progress,
                },
            },
            host,
            times: Vec::new(),
            reports: Vec::new(),
        };
        let stopped = run.steps();
        watch.end(&run.machine.system);
        Ok(run.report(stopped))
    }

    /// Runs the scenario with and without each group of superfluous barriers, and notes what they cost.
    ///
    /// # Errors
    /// As [`Plan::run`].
    pub fn measure(
        &self,
        superfluous: &mut [Superfluous],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), RunError> {
        if superfluous.iter().all(|barriers| barriers.masked) {
            return Ok(());
        }
        let with = self.trial(&Strip::default(), progress)?;
        for barriers in superfluous.iter_mut().filter(|barriers| !barriers.masked) {
            let without = self.trial(&barriers.strip, progress)?;
            if with.stopped.is_none() && without.stopped.is_none() {
                barriers.cycles = Some(with.cycles as i64 - without.cycles as i64);
            }
        }
        Ok(())
    }
}

struct Run<'a> {
    plan: &'a Plan,
    machine: Machine<'a>,
    host: HostSide,
    times: Vec<(Instant, Instant)>,
    /// One for each `[[step]]`, with its index in the file and the time it began.
    reports: Vec<(usize, Instant, StepReport)>,
}

/// The machine on which steps are done.
struct Machine<'a> {
    strip: &'a Strip,
    system: System,
    sequencers: Vec<SequencerId>,
    observations: BTreeMap<String, Vec<u8>>,
    /// Interrupts the host took, in order.
    interrupts: Vec<Interrupt>,
    progress: Reported<'a>,
}

/// Who is told how far a run has come.
struct Reported<'a> {
    done: usize,
    steps: usize,
    call: &'a mut dyn FnMut(Progress),
}

impl Machine<'_> {
    /// The bus, without the barriers that are left out.
    fn bus(&mut self) -> Stripped<'_> {
        Stripped {
            bus: &mut self.system,
            strip: self.strip,
        }
    }
}

impl Bus for Machine<'_> {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        self.bus().read_mem(at, out)
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        self.bus().write_mem(at, bytes)
    }

    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        self.bus().read_reg(at)
    }

    fn write_reg(&mut self, at: Addr, value: u32) -> Result<(), BusError> {
        self.bus().write_reg(at, value)
    }
}

impl TimedBus for Machine<'_> {
    fn sleep(&mut self, time: Duration) {
        self.bus().sleep(time);
    }
}

impl Stage for Machine<'_> {
    fn wait(&mut self, on: &WaitOn, timeout: Duration) -> Result<(), HostError> {
        self.wait_for(on, timeout).map_err(HostError::Stopped)
    }

    fn take_interrupt(&mut self) {
        self.interrupts.extend(self.system.take_interrupt());
    }

    fn observe(&mut self, name: &str, region: Region) -> Result<(), HostError> {
        let mut bytes = vec![0; region.bytes as usize];
        let read = self.system.memory().read(region.at, &mut bytes);
        read.map_err(|error| HostError::Stopped(error.to_string()))?;
        self.observations.insert(name.to_string(), bytes);
        Ok(())
    }

    fn observe_register(&mut self, name: &str, at: Addr) -> Result<(), HostError> {
        let bytes = self.system.read_reg(at)?.to_le_bytes().to_vec();
        self.observations.insert(name.to_string(), bytes);
        Ok(())
    }
}

impl Run<'_> {
    /// Does the steps in order. Returns why it did not get to the end, if so.
    fn steps(&mut self) -> Option<String> {
        for step in &self.plan.steps {
            let system = &self.machine.system;
            let (call, detail) = (step.call, &step.detail);
            tracing::info!(cycle = system.cycles().0, "{call} {detail}");
            let (began, before) = (system.now(), system.counters());
            let done = step.step.perform(&mut self.host, &mut self.machine);
            self.host.take_news();
            self.record(step, began, &before);
            if let Err(why) = done {
                return Some(format!("{call} {detail}: {why}"));
            }
        }
        None
    }
}

impl Machine<'_> {
    fn wait_for(&mut self, on: &WaitOn, timeout: Duration) -> Result<(), String> {
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
                    let met = "stuck: no work is left and the condition was not met";
                    let who = waiters.iter().map(ToString::to_string);
                    let told: Vec<String> = [met.to_string()].into_iter().chain(who).collect();
                    return Err(told.join("; "));
                }
                WaitOutcome::TimedOut(waiters) if slice == left => {
                    return Err(format!("timed out after {timeout}{}", told(&waiters)));
                }
                WaitOutcome::TimedOut(_) => (self.progress.call)(Progress {
                    done: self.progress.done,
                    steps: self.progress.steps,
                    now: self.system.now(),
                }),
            }
        }
    }
}

impl Run<'_> {
    /// Notes what a step did. Repetitions of a step are one entry.
    fn record(&mut self, step: &PlannedStep, began: Instant, before: &Counters) {
        let now = self.machine.system.now();
        self.times.push((began, now));
        self.machine.progress.done = self.times.len();
        let clock = self.machine.system.clock();
        let after = self.machine.system.counters();
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

    fn report(self, stopped: Option<String>) -> Report {
        let Machine {
            system,
            mut observations,
            interrupts,
            ..
        } = self.machine;
        for seen in system.observations() {
            observations.insert(seen.name.clone(), seen.bytes.clone());
        }
        let evidence = Evidence {
            system: &system,
            seed: self.plan.seed,
            observations: &observations,
            times: &self.times,
        };
        let expects = self.plan.expects.iter();
        let expectations: Vec<_> = expects.map(|expect| evidence.check(expect)).collect();
        let counters = system.counters();
        let time = system.now() - Instant::START;
        Report {
            scenario: self.plan.name.clone(),
            description: self.plan.description.clone(),
            arch: system.arch().to_string(),
            config: self.plan.config.origin.clone(),
            seed: self.plan.seed,
            passed: stopped.is_none() && expectations.iter().all(|e| e.passed),
            time_ns: time.as_ns_f64(),
            cycles: system.cycles().0,
            clock_hz: system.clock().frequency().0,
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
            warnings: warnings(&counters, &system),
            unmodelled_registers: unmodelled(&system),
            races: None,
            faults: {
                let injections = system.injections();
                let shown = injections.iter().map(ToString::to_string);
                let more = system.faults_struck() - injections.len() as u64;
                let more = (more > 0).then(|| format!("and {more} more"));
                shown.chain(more).collect()
            },
            interrupts: interrupts
                .iter()
                .map(|interrupt| {
                    let cycle = system.clock().cycle_at(interrupt.at).0;
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
            "byte",
            "of Rx descriptors unused when their packet ended",
        ),
        (
            counters.dmb_masked,
            "packet",
            "whose DMB had no effect: the queue's DMB pause is masked",
        ),
        (counters.reserved_bits, "reserved barrier bit", "ignored"),
        (
            counters.doorbell_overflow,
            "descriptor",
            "announced by doorbells ignored: the ring had no room",
        ),
        (
            counters.packets_dropped,
            "packet",
            "dropped because of a queue reset",
        ),
        (
            counters.notifications_lost,
            "notification",
            "lost: the notification queue was full",
        ),
    ];
    let told = told.into_iter().filter(|(count, ..)| *count > 0);
    let mut warnings: Vec<String> = told
        .map(|(count, noun, what)| format!("{} {what}", counted(count, noun)))
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
            "{} to queues with outstanding descriptors",
            counted(more, "more change")
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
