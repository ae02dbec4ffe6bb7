//! `udma-sim report`: a run, or a recording of one, as a page.

use super::run::NOT_PASSED;
use super::{BAD_INPUT, refuse};
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use udma_sim::config::Config;
use udma_sim::scenario::{Report, Scenario};
use udma_sim::system::{Observer, System, Watch};
use udma_sim::telemetry::page::{About, Profile};
use udma_sim::telemetry::recording::{Recording, is_recording};
use udma_sim::telemetry::{End, Machine, Shared, attach};

#[derive(clap::Args)]
pub struct Args {
    /// Scenario file to run, or recording made by `udma-sim run --record`
    #[arg(value_name = "SCENARIO|RECORDING")]
    input: PathBuf,

    /// HTML file to write
    #[arg(short, long, value_name = "FILE.html")]
    output: PathBuf,

    /// Built-in config or config file to use instead of the scenario's
    #[arg(long, value_name = "NAME|FILE")]
    config: Option<String>,

    /// Seed to use instead of the scenario's
    #[arg(long)]
    seed: Option<u64>,
}

pub fn main(args: &Args) -> ExitCode {
    let page = match is_recording(&args.input) {
        true if args.config.is_some() || args.seed.is_some() => Err(
            "--config and --seed apply only to scenarios: a recording contains its config and seed"
                .into(),
        ),
        true => recorded(&args.input),
        false => run(args),
    };
    let (page, status) = match page {
        Ok(page) => page,
        Err(error) => return refuse(error),
    };
    if let Err(reason) = fs::write(&args.output, page) {
        let path = args.output.display();
        return refuse(format!(
            "cannot write {path}: {reason}; --output takes the path of a file"
        ));
    }
    ExitCode::from(status)
}

/// A page, and the exit status for what it shows.
type Page = (String, u8);

fn run(args: &Args) -> Result<Page, Box<dyn Error>> {
    let scenario = Scenario::load(&args.input)?;
    let config = match &args.config {
        Some(name) => Config::load(name, Path::new(""))?,
        None => Config::load(scenario.config_name(), scenario.folder())?,
    };
    let plan = scenario.plan(config, args.seed.unwrap_or(scenario.seed()))?;
    let mut watch = Watching::default();
    let report = plan.run_watched(&mut watch, &mut |_| ())?;
    let profile = watch.profile.ok_or("the run did not start")?;
    let page = profile.with(|profile| profile.page(&watch.end, &about(&report)));
    Ok((page, if report.passed { 0 } else { NOT_PASSED }))
}

#[derive(Default)]
struct Watching {
    profile: Option<Shared<Profile>>,
    end: End,
}

impl Watch for Watching {
    fn begin(&mut self, system: &mut System) -> io::Result<()> {
        let profile = Profile::new(Machine::of(system));
        self.profile = Some(attach(system, profile));
        Ok(())
    }

    fn end(&mut self, system: &System) {
        self.end = End::of(system);
    }
}

fn about(report: &Report) -> About {
    let failed = report
        .expectations
        .iter()
        .filter(|expectation| !expectation.passed);
    let failed = failed.map(|failed| match &failed.found {
        Some(found) => format!("expected: {}; {found}", failed.expected),
        None => format!("expected: {}", failed.expected),
    });
    let stopped = report.stopped.iter().map(|why| format!("stopped: {why}"));
    let lists = [&report.errors, &report.faults, &report.warnings];
    About {
        title: report.scenario.clone(),
        description: report.description.clone(),
        facts: vec![
            ("generation", report.arch.clone()),
            ("config", report.config.clone()),
            ("seed", report.seed.to_string()),
        ],
        passed: Some(report.passed),
        notes: stopped
            .chain(failed)
            .chain(lists.into_iter().flatten().cloned())
            .collect(),
    }
}

fn recorded(path: &Path) -> Result<Page, Box<dyn Error>> {
    let mut recording = Recording::open(path)?;
    let header = recording.header().clone();
    let mut profile = Profile::new(header.machine.clone());
    let mut notes = Vec::new();
    for transaction in &mut recording {
        match transaction {
            Ok(transaction) => profile.observe(transaction.at, &transaction.activity),
            Err(damage) => notes.push(format!("{}: {damage}", path.display())),
        }
    }
    for note in &notes {
        eprintln!("error: {note}; the page shows everything before that");
    }
    let end = recording.end().cloned().unwrap_or(End {
        at: profile.last(),
        ..End::default()
    });
    let status = if notes.is_empty() { 0 } else { BAD_INPUT };
    let about = About {
        title: header.scenario_path.clone(),
        description: format!("recorded by udma-sim {}", header.version),
        facts: vec![
            ("generation", header.machine.arch.to_string()),
            ("config", header.config_name.clone()),
            ("seed", header.seed.to_string()),
        ],
        passed: None,
        notes,
    };
    Ok((profile.page(&end, &about), status))
}
