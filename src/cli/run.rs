//! `udma-sim run`: one scenario, from file to report.

use super::watch::{self, Watchers};
use super::{print, print_json, refuse};
use indicatif::{ProgressBar, ProgressStyle};
use std::error::Error;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use udma_sim::config::Config;
use udma_sim::scenario::{Progress, Report, Scenario};

/// Exit status of a run that did not do what its scenario expects.
pub const NOT_PASSED: u8 = 1;

/// How long a run may take before it shows that it is alive.
const QUIET: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub struct Args {
    /// Scenario file
    scenario: PathBuf,

    /// Built-in config or config file to use instead of the scenario's
    #[arg(long, value_name = "NAME|FILE")]
    config: Option<String>,

    /// Seed to use instead of the scenario's
    #[arg(long)]
    seed: Option<u64>,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    watch: watch::Options,
}

pub fn main(args: &Args) -> ExitCode {
    let report = match run(args) {
        Ok(report) => report,
        Err(error) => return refuse(error),
    };
    let printed = match args.json {
        true => print_json(&report),
        false => print(&report),
    };
    match report.passed {
        true => printed,
        false => ExitCode::from(NOT_PASSED),
    }
}

fn run(args: &Args) -> Result<Report, Box<dyn Error>> {
    let scenario = Scenario::load(&args.scenario)?;
    let config = match &args.config {
        Some(name) => Config::load(name, Path::new(""))?,
        None => Config::load(scenario.config_name(), scenario.folder())?,
    };
    let seed = args.seed.unwrap_or(scenario.seed());
    let plan = scenario.plan(config.clone(), seed)?;
    let mut watchers = Watchers::new(&args.watch, (scenario, config, seed))?;
    let mut bar = Bar::new();
    let mut report = plan.run_watched(&mut watchers, &mut |progress| bar.show(progress))?;
    bar.clear();
    report.stats = watchers.finish()?;
    Ok(report)
}

/// Progress of a long run, on standard error, if somebody watches.
struct Bar {
    started: Instant,
    watched: bool,
    bar: Option<ProgressBar>,
}

impl Bar {
    fn new() -> Self {
        Bar {
            started: Instant::now(),
            watched: io::stdout().is_terminal(),
            bar: None,
        }
    }

    fn show(&mut self, progress: Progress) {
        if !self.watched || self.started.elapsed() < QUIET {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
            let bar = ProgressBar::new_spinner().with_elapsed(self.started.elapsed());
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        let us = progress.now.as_ns_f64() / 1e3;
        let (done, steps) = (progress.done, progress.steps);
        bar.set_message(format!(
            "step {} of {steps}, simulated {us:.0} us",
            done + 1
        ));
        bar.tick();
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
