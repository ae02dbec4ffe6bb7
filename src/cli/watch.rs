//! What `run` can tell beside its report: the options, and what watches the run for them.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use udma_sim::config::Config;
use udma_sim::scenario::Scenario;
use udma_sim::system::{System, Watch};
use udma_sim::telemetry::recording::{Header, Recorder};
use udma_sim::telemetry::stats::{Collector, Stats};
use udma_sim::telemetry::timeline::Timeline;
use udma_sim::telemetry::waves::Waves;
use udma_sim::telemetry::{End, Machine, Shared, attach};

#[derive(clap::Args)]
pub struct Options {
    /// Add statistics to the report: utilisation, stalls, latencies, memory
    #[arg(long)]
    stats: bool,

    /// Write the statistics as CSV, one figure per line
    #[arg(long, value_name = "FILE")]
    stats_csv: Option<PathBuf>,

    /// Write a timeline for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,

    /// Write a value change dump for waveform viewers
    #[arg(long, value_name = "FILE")]
    vcd: Option<PathBuf>,

    /// Record every transaction, for `udma-sim replay`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// A file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {reason}; {option} takes the path of a file", path.display())]
pub struct Unwritable {
    option: &'static str,
    path: PathBuf,
    reason: io::Error,
}

/// A file that an option names.
#[derive(Clone)]
struct Output {
    option: &'static str,
    path: PathBuf,
}

impl Output {
    fn check<T>(&self, result: io::Result<T>) -> Result<T, Unwritable> {
        result.map_err(|reason| Unwritable {
            option: self.option,
            path: self.path.clone(),
            reason,
        })
    }
}

/// Starts to watch a machine that has not run yet.
type Start = Box<dyn FnOnce(File, Machine, &mut System) -> io::Result<Finish>>;
/// Writes what is still to be written once the run is over.
type Finish = Box<dyn FnOnce(&Over) -> io::Result<()>>;

/// A run that is over.
struct Over<'a> {
    end: &'a End,
    /// If somebody asked for them.
    stats: Option<&'a Stats>,
}

/// What writes a file about a run.
struct Sink {
    output: Output,
    state: State,
}

enum State {
    /// The file is made before the run, so that an invalid path ends it early.
    Waiting(File, Start),
    Watching(Finish),
    Done,
}

impl Sink {
    /// Opens the file, to be read as well, and empties it unless `start` does.
    fn open(
        option: &'static str,
        path: &Path,
        truncate: bool,
        start: Start,
    ) -> Result<Sink, Unwritable> {
        let path = path.to_path_buf();
        let output = Output { option, path };
        let mut options = File::options();
        options.read(true).write(true).create(true);
        let file = output.check(options.truncate(truncate).open(&output.path))?;
        let state = State::Waiting(file, start);
        Ok(Sink { output, state })
    }

    fn begin(&mut self, system: &mut System) -> Result<(), Unwritable> {
        if let State::Waiting(file, start) = std::mem::replace(&mut self.state, State::Done) {
            let finish = self
                .output
                .check(start(file, Machine::of(system), system))?;
            self.state = State::Watching(finish);
        }
        Ok(())
    }

    fn finish(self, run: &Over) -> Result<(), Unwritable> {
        match self.state {
            State::Watching(finish) => self.output.check(finish(run)),
            State::Waiting(..) | State::Done => Ok(()),
        }
    }
}

/// The watchers gather the statistics, for the report too.
fn stats_csv(file: File, _: Machine, _: &mut System) -> io::Result<Finish> {
    Ok(Box::new(move |run| {
        run.stats.map_or(Ok(()), |stats| stats.to_csv(&file))
    }))
}

fn timeline(file: File, machine: Machine, system: &mut System) -> io::Result<Finish> {
    let timeline = attach(system, Timeline::new(machine, BufWriter::new(file)));
    Ok(Box::new(move |run| {
        timeline.with(|timeline| timeline.finish(run.end))
    }))
}

fn waves(file: File, machine: Machine, system: &mut System) -> io::Result<Finish> {
    let waves = attach(system, Waves::new(machine, BufWriter::new(file))?);
    Ok(Box::new(move |run| {
        waves.with(|waves| waves.finish(run.end))
    }))
}

/// A recording says of the run what it needs to be run again.
fn recording((scenario, config, seed): (Scenario, Config, u64)) -> Start {
    Box::new(move |file, machine, system| {
        let header = Header {
            version: env!("CARGO_PKG_VERSION").to_string(),
            scenario_path: scenario.path().display().to_string(),
            scenario: scenario.text().to_string(),
            files: (scenario.files().into_iter())
                .map(|(name, bytes)| (name, bytes.to_vec()))
                .collect(),
            config_name: config.origin,
            config: config.source,
            seed,
            machine,
        };
        let recorder = attach(system, Recorder::new(file, &header)?);
        Ok(Box::new(move |run| {
            recorder.with(|recorder| recorder.finish(run.end))
        }))
    })
}

/// Watches a run for the options given.
pub struct Watchers {
    /// Whether the report is to have statistics, and whether anything is.
    report_stats: bool,
    any_stats: bool,
    collector: Option<Shared<Collector>>,
    sinks: Vec<Sink>,
    end: End,
}

impl Watchers {
    /// For a run of a scenario with a config and a seed.
    pub fn new(options: &Options, run: (Scenario, Config, u64)) -> Result<Watchers, Unwritable> {
        let mut sinks = Vec::new();
        let mut add = |option, path: &Option<PathBuf>, truncate, start| -> Result<(), Unwritable> {
            if let Some(path) = path {
                sinks.push(Sink::open(option, path, truncate, start)?);
            }
            Ok(())
        };
        add("--stats-csv", &options.stats_csv, true, Box::new(stats_csv))?;
        add("--timeline", &options.timeline, true, Box::new(timeline))?;
        add("--vcd", &options.vcd, true, Box::new(waves))?;
        // The recorder empties it, once nobody else records to it.
        add("--record", &options.record, false, recording(run))?;
        Ok(Watchers {
            report_stats: options.stats,
            any_stats: options.stats || options.stats_csv.is_some(),
            collector: None,
            sinks,
            end: End::default(),
        })
    }

    /// Writes what is to be written once the run is over. Returns the statistics for the report.
    pub fn finish(self) -> Result<Option<Stats>, Unwritable> {
        let end = &self.end;
        let stats = (self.collector).map(|collector| collector.with(|all| all.stats(end)));
        for sink in self.sinks {
            let stats = stats.as_ref();
            sink.finish(&Over { end, stats })?;
        }
        Ok(stats.filter(|_| self.report_stats))
    }
}

impl Watch for Watchers {
    fn begin(&mut self, system: &mut System) -> io::Result<()> {
        if self.any_stats {
            let machine = Machine::of(system);
            self.collector = Some(attach(system, Collector::new(machine)));
        }
        for sink in &mut self.sinks {
            sink.begin(system).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn end(&mut self, system: &System) {
        self.end = End::of(system);
    }
}
