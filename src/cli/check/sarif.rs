//! The report as SARIF 2.1.0, which code hosts show beside the lines it is about.

use super::{Found, barrier_name};
use serde_json::{Value, json};
use std::path::Path;
use udma_sim::order::race::{Origin, Race};
use udma_sim::scenario::Superfluous;
use udma_sim::units::counted;

pub(super) fn sarif(scenario: &Path, found: &[Found]) -> Value {
    let location = |origin: &Option<Origin>, message: &str| {
        let line = origin.as_ref().map_or(1, |origin| origin.line);
        json!({
            "physicalLocation": {
                "artifactLocation": { "uri": scenario.display().to_string() },
                "region": { "startLine": line },
            },
            "message": { "text": message },
        })
    };
    let race = |arch: &str, race: &Race| {
        json!({
            "ruleId": "race",
            "level": "error",
            "message": { "text": format!("{arch}: {race}") },
            "locations": [location(&race.first.origin, &race.first.who)],
            "relatedLocations": [location(&race.second.origin, &race.second.who)],
        })
    };
    let superfluous = |arch: &str, barriers: &Superfluous| {
        let (kind, count) = (barrier_name(barriers.kind), barriers.count);
        let cost = match barriers.cycles {
            Some(cycles) => {
                let by = counted(cycles.unsigned_abs(), "cycle");
                let how = if cycles < 0 { "longer" } else { "shorter" };
                format!("; without them the run is {by} {how}")
            }
            None => String::new(),
        };
        json!({
            "ruleId": "superfluous-barrier",
            "level": "note",
            "message": { "text": format!("{arch}: {count} redundant {kind}{cost}") },
            "locations": [location(&barriers.origin, &barriers.first)],
        })
    };
    let mut results = Vec::new();
    for found in found {
        let arch = found.arch.name();
        results.extend(found.races.races.iter().map(|found| race(arch, found)));
        let barriers = found.superfluous.iter().flatten();
        results.extend(barriers.map(|barriers| superfluous(arch, barriers)));
    }
    let rule = |id: &str, text: &str| json!({ "id": id, "shortDescription": { "text": text } });
    json!({
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [{
            "tool": { "driver": {
                "name": "udma-sim",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": [
                    rule("race", "unordered accesses to the same bytes"),
                    rule("superfluous-barrier", "barriers whose removal changes no ordering"),
                ],
            } },
            "results": results,
        }],
    })
}
