//! `udma-sim check`: the races of a scenario, and its barriers that order nothing.

mod sarif;
mod text;

use super::{print, refuse};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use udma_sim::arch::Arch;
use udma_sim::config::Config;
use udma_sim::order::race::{BarrierKind, Origin, Race, Side};
use udma_sim::scenario::{Races, Scenario, Superfluous};

/// Exit status when something denied was found.
const DENIED: u8 = 1;

#[derive(clap::Args)]
pub struct Args {
    /// Scenario file
    scenario: PathBuf,

    /// Generations to check [default: that of the scenario's config]
    #[arg(long, value_name = "ARCH")]
    arch: Vec<Arch>,

    /// Exit with status 1 if there are such findings
    #[arg(long, value_enum)]
    deny: Vec<Deny>,

    /// Do not run the scenario to measure the cost of redundant barriers
    #[arg(long)]
    untimed: bool,

    /// Print the report as JSON
    #[arg(long, conflicts_with = "sarif")]
    json: bool,

    /// Print the report as SARIF, for code hosts
    #[arg(long)]
    sarif: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Deny {
    /// Unordered accesses to the same bytes
    Races,
    /// Redundant barriers: removing them changes no ordering
    Superfluous,
}

/// What was found for one generation.
struct Found {
    arch: Arch,
    races: Races,
    /// `None` if there are too many races to tell.
    superfluous: Option<Vec<Superfluous>>,
}

pub fn main(args: &Args) -> ExitCode {
    let found = match check(args) {
        Ok(found) => found,
        Err(error) => return refuse(error),
    };
    let printed = match (args.json, args.sarif) {
        (true, _) => print(format!("{:#}\n", report_json(&found))),
        (_, true) => print(format!("{:#}\n", sarif::sarif(&args.scenario, &found))),
        _ => print(text::text(&found)),
    };
    let denied = |deny: &Deny| match deny {
        Deny::Races => found.iter().any(|found| !found.races.races.is_empty()),
        Deny::Superfluous => found.iter().any(|found| match &found.superfluous {
            None => true,
            Some(barriers) => !barriers.is_empty(),
        }),
    };
    match args.deny.iter().any(denied) {
        true => ExitCode::from(DENIED),
        false => printed,
    }
}

fn check(args: &Args) -> Result<Vec<Found>, Box<dyn Error>> {
    let scenario = Scenario::load(&args.scenario)?;
    let mut configs = Vec::new();
    for arch in &args.arch {
        configs.push(Config::load(arch.spec().code_name, Path::new(""))?);
    }
    if configs.is_empty() {
        configs.push(Config::load(scenario.config_name(), scenario.folder())?);
    }
    let mut found = Vec::new();
    for config in configs {
        let arch = config.arch();
        let plan = scenario.plan(config, scenario.seed())?;
        let races = plan.races()?;
        let mut superfluous = plan.superfluous()?;
        if let (Some(barriers), false) = (&mut superfluous, args.untimed) {
            plan.measure(barriers, &mut |_| ())?;
        }
        found.push(Found {
            arch,
            races,
            superfluous,
        });
    }
    Ok(found)
}

/// A barrier as reports call it.
fn barrier_name(kind: BarrierKind) -> &'static str {
    match kind {
        BarrierKind::Dmb => "DMB",
        BarrierKind::WriteBarrier => "WRITE_BARRIER",
        BarrierKind::StrongOrder => "SOW",
    }
}

fn origin_json(origin: &Option<Origin>) -> Value {
    let origin = origin.as_ref();
    json!({
        "line": origin.map(|origin| origin.line),
        "call": origin.map(|origin| origin.call.as_str()),
    })
}

fn side_json(side: &Side) -> Value {
    json!({
        "who": side.who,
        "from": origin_json(&side.origin),
        "access": if side.write { "write" } else { "read" },
    })
}

fn race_json(race: &Race) -> Value {
    json!({
        "first": side_json(&race.first),
        "second": side_json(&race.second),
        "from": race.bytes.0.to_string(),
        "to": race.bytes.1.to_string(),
        "witness": race.witness,
        "fix": race.fix,
    })
}

fn superfluous_json(barriers: &Superfluous) -> Value {
    json!({
        "barrier": barrier_name(barriers.kind),
        "from": origin_json(&barriers.origin),
        "first": barriers.first,
        "count": barriers.count,
        "of": barriers.of,
        "masked": barriers.masked,
        "cycles": barriers.cycles,
    })
}

fn report_json(found: &[Found]) -> Value {
    let reports = found.iter().map(|found| {
        let races = &found.races;
        let superfluous = found.superfluous.as_ref();
        json!({
            "arch": found.arch.name(),
            "packets": races.packets,
            "races": races.races.iter().map(race_json).collect::<Vec<_>>(),
            "not_listed": races.more,
            "left_out": races.left_out,
            "superfluous": superfluous.map(|all| all.iter().map(superfluous_json).collect::<Vec<_>>()),
        })
    });
    Value::Array(reports.collect())
}
