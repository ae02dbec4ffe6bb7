//! `udma-sim check`: the races of a scenario, without running it.

use super::{print, refuse};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use udma_sim::arch::Arch;
use udma_sim::config::Config;
use udma_sim::order::race::{Race, Side};
use udma_sim::scenario::{Races, Scenario};

/// Exit status when something denied was found.
const DENIED: u8 = 1;

#[derive(clap::Args)]
pub struct Args {
    /// Scenario file
    scenario: PathBuf,

    /// Generations to check for; the one of the scenario's config if left out
    #[arg(long, value_name = "ARCH")]
    arch: Vec<Arch>,

    /// Exit with status 1 if there are any
    #[arg(long, value_enum)]
    deny: Option<Deny>,

    /// Print the report as JSON
    #[arg(long, conflicts_with = "sarif")]
    json: bool,

    /// Print the report as SARIF, which code hosts show
    #[arg(long)]
    sarif: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Deny {
    Races,
}

pub fn main(args: &Args) -> ExitCode {
    let found = match check(args) {
        Ok(found) => found,
        Err(error) => return refuse(error),
    };
    let printed = match (args.json, args.sarif) {
        (true, _) => print(format!("{:#}\n", report_json(&found))),
        (_, true) => print(format!("{:#}\n", sarif(&args.scenario, &found))),
        _ => print(text(&found)),
    };
    let any = found.iter().any(|(_, races)| !races.races.is_empty());
    match any && args.deny == Some(Deny::Races) {
        true => ExitCode::from(DENIED),
        false => printed,
    }
}

fn check(args: &Args) -> Result<Vec<(Arch, Races)>, Box<dyn Error>> {
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
        let races = scenario.plan(config, scenario.seed())?.races()?;
        found.push((arch, races));
    }
    Ok(found)
}

fn text(found: &[(Arch, Races)]) -> String {
    let mut text = String::new();
    for (arch, races) in found {
        for race in &races.races {
            text += &format!("{arch}: {race}\n\n");
        }
        text += &match (races.races.len(), races.more) {
            (0, _) => format!("{arch}: no races in {} packets\n", races.packets),
            (n, 0) => format!("{arch}: {n} races in {} packets\n", races.packets),
            (n, more) => format!(
                "{arch}: {n} races in {} packets, and {more} more that are not listed\n",
                races.packets
            ),
        };
    }
    if found.len() > 1 {
        text += &table(found);
    }
    text
}

/// Which race is there on which generation.
fn table(found: &[(Arch, Races)]) -> String {
    let mut rows: BTreeMap<String, Vec<Arch>> = BTreeMap::new();
    for (arch, races) in found {
        for race in &races.races {
            let row = format!("{} / {}", race.first.who, race.second.who);
            rows.entry(row).or_default().push(*arch);
        }
    }
    let mut table = String::from("\n");
    for (row, arches) in rows {
        for (arch, _) in found {
            let mark = if arches.contains(arch) {
                "RACE   "
            } else {
                "ordered"
            };
            let _ = write!(table, "{arch} {mark}  ");
        }
        table += &format!("{row}\n");
    }
    table
}

fn side(side: &Side) -> Value {
    json!({ "who": side.who, "step": side.step, "access": if side.write { "write" } else { "read" } })
}

fn race_json(race: &Race) -> Value {
    json!({
        "first": side(&race.first),
        "second": side(&race.second),
        "from": race.bytes.0.to_string(),
        "to": race.bytes.1.to_string(),
        "witness": race.witness,
        "fix": race.fix,
    })
}

fn report_json(found: &[(Arch, Races)]) -> Value {
    let reports = found.iter().map(|(arch, races)| {
        json!({
            "arch": arch.name(),
            "packets": races.packets,
            "races": races.races.iter().map(race_json).collect::<Vec<_>>(),
            "not_listed": races.more,
        })
    });
    Value::Array(reports.collect())
}

fn sarif(scenario: &Path, found: &[(Arch, Races)]) -> Value {
    let results = found.iter().flat_map(|(arch, races)| {
        races.races.iter().map(move |race| {
            json!({
                "ruleId": "race",
                "level": "error",
                "message": { "text": format!("{arch}: {race}") },
                "locations": [{ "physicalLocation": {
                    "artifactLocation": { "uri": scenario.display().to_string() }
                } }],
            })
        })
    });
    json!({
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [{
            "tool": { "driver": {
                "name": "udma-sim",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": [{
                    "id": "race",
                    "shortDescription": { "text": "two accesses to the same bytes that nothing orders" }
                }]
            } },
            "results": results.collect::<Vec<_>>(),
        }],
    })
}
