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

/// A file that an option names, made before the run so that a path that is no good ends it early.
#[derive(Clone)]
struct Output {
    option: &'static str,
    path: PathBuf,
}

impl Output {
    /// Opens the file and empties it.
    fn create(
        option: &'static str,
        path: Option<&Path>,
    ) -> Result<Option<(Output, File)>, Unwritable> {
        Output::open(option, path, true)
    }

    /// Opens the file, to be read as well.
    fn open(
        option: &'static str,
        path: Option<&Path>,
        truncate: bool,
    ) -> Result<Option<(Output, File)>, Unwritable> {
        let Some(path) = path else { return Ok(None) };
        let output = Output {
            option,
            path: path.to_path_buf(),
        };
        let mut options = File::options();
        options.read(true).write(true).create(true);
        let file = output.check(options.truncate(truncate).open(path))?;
        Ok(Some((output, file)))
    }

    fn check<T>(&self, result: io::Result<T>) -> Result<T, Unwritable> {
        result.map_err(|reason| Unwritable {
            option: self.option,
            path: self.path.clone(),
            reason,
        })
    }
}

/// An observer that writes a file.
type Writing<O> = Option<(Output, Shared<O>)>;

/// Watches a run for the options given.
pub struct Watchers {
    print_stats: bool,
    stats_csv: Option<(Output, File)>,
    timeline_file: Option<(Output, File)>,
    vcd_file: Option<(Output, File)>,
    record_file: Option<(Output, File)>,
    /// What a recording says of the run; the machine is still to come.
    run: (Scenario, Config, u64),
    stats: Option<Shared<Collector>>,
    timeline: Writing<Timeline<BufWriter<File>>>,
    waves: Writing<Waves<BufWriter<File>>>,
    record: Writing<Recorder>,
    end: End,
}

impl Watchers {
    /// For a run of a scenario with a config and a seed.
    pub fn new(options: &Options, run: (Scenario, Config, u64)) -> Result<Watchers, Unwritable> {
        Ok(Watchers {
            print_stats: options.stats,
            stats_csv: Output::create("--stats-csv", options.stats_csv.as_deref())?,
            timeline_file: Output::create("--timeline", options.timeline.as_deref())?,
            vcd_file: Output::create("--vcd", options.vcd.as_deref())?,
            // The recorder empties it, once nobody else records to it.
            record_file: Output::open("--record", options.record.as_deref(), false)?,
            run,
            stats: None,
            timeline: None,
            waves: None,
            record: None,
            end: End::default(),
        })
    }

    /// Writes what is to be written once the run is over. Returns the statistics for the report.
    pub fn finish(self) -> Result<Option<Stats>, Unwritable> {
        let end = &self.end;
        if let Some((output, timeline)) = self.timeline {
            output.check(timeline.with(|timeline| timeline.finish(end)))?;
        }
        if let Some((output, waves)) = self.waves {
            output.check(waves.with(|waves| waves.finish(end)))?;
        }
        if let Some((output, record)) = self.record {
            output.check(record.with(|record| record.finish(end)))?;
        }
        let stats = self.stats.map(|stats| stats.with(|stats| stats.stats(end)));
        if let (Some((output, file)), Some(stats)) = (self.stats_csv, &stats) {
            output.check(stats.to_csv(&file))?;
        }
        Ok(stats.filter(|_| self.print_stats))
    }
}

impl Watch for Watchers {
    fn begin(&mut self, system: &mut System) -> io::Result<()> {
        let machine = Machine::of(system);
        if self.print_stats || self.stats_csv.is_some() {
            self.stats = Some(attach(system, Collector::new(machine.clone())));
        }
        if let Some((output, file)) = self.timeline_file.take() {
            let timeline = Timeline::new(machine.clone(), BufWriter::new(file));
            self.timeline = Some((output, attach(system, timeline)));
        }
        if let Some((output, file)) = self.vcd_file.take() {
            let waves = output.check(Waves::new(machine.clone(), BufWriter::new(file)));
            let waves = attach(system, waves.map_err(io::Error::other)?);
            self.waves = Some((output, waves));
        }
        if let Some((output, file)) = self.record_file.take() {
            let (scenario, config, seed) = &self.run;
            let header = Header {
                version: env!("CARGO_PKG_VERSION").to_string(),
                scenario_path: scenario.path().display().to_string(),
                scenario: scenario.text().to_string(),
                files: (scenario.files().into_iter())
                    .map(|(name, bytes)| (name, bytes.to_vec()))
                    .collect(),
                config_name: config.origin.clone(),
                config: config.source.clone(),
                seed: *seed,
                machine,
            };
            let recorder = output.check(Recorder::new(file, &header));
            let recorder = attach(system, recorder.map_err(io::Error::other)?);
            self.record = Some((output, recorder));
        }
        Ok(())
    }

    fn end(&mut self, system: &System) {
        self.end = End::of(system);
    }
}
