//! `udma-sim run --vcd`: the file, parsed, against the report and the recording of the same run.

mod common;

use common::cli::{stdout, text, udma_sim};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use vcd::{Command, IdCode, ScopeItem, TimescaleUnit, Value};

/// What a signal held, from when on.
type Changes = Vec<(u64, Held)>;

#[derive(Clone, Debug, PartialEq)]
enum Held {
    Bit(bool),
    Number(u64),
    Text(String),
}

/// Every signal by its path.
fn waves(scenario: &str) -> (BTreeMap<String, Changes>, Json) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.vcd");
    let run = ["run", scenario, "--json", "--stats", "--vcd", text(&path)];
    let report = serde_json::from_str(&stdout(&udma_sim(&run))).unwrap();
    let mut parser = vcd::Parser::new(BufReader::new(File::open(&path).unwrap()));
    let header = parser.parse_header().unwrap();
    assert_eq!(header.timescale, Some((1, TimescaleUnit::PS)));
    let mut names: BTreeMap<IdCode, String> = BTreeMap::new();
    fn declare(items: &[ScopeItem], path: &str, names: &mut BTreeMap<IdCode, String>) {
        for item in items {
            match item {
                ScopeItem::Scope(scope) => {
                    declare(&scope.items, &format!("{path}{}/", scope.identifier), names);
                }
                ScopeItem::Var(var) => {
                    let old = names.insert(var.code, format!("{path}{}", var.reference));
                    assert_eq!(old, None, "one signal, one number");
                }
                _ => {}
            }
        }
    }
    declare(&header.items, "", &mut names);
    let mut signals: BTreeMap<String, Changes> = BTreeMap::new();
    let mut now = None;
    for command in parser {
        let (id, held) = match command.unwrap() {
            Command::Timestamp(at) => {
                assert!(now.is_none_or(|now| at > now), "time goes back to {at}");
                now = Some(at);
                continue;
            }
            Command::ChangeScalar(id, value) => (id, Held::Bit(value == Value::V1)),
            Command::ChangeVector(id, value) => {
                let bits = value.iter().map(|bit| u64::from(bit == Value::V1));
                (
                    id,
                    Held::Number(bits.fold(0, |number, bit| number << 1 | bit)),
                )
            }
            Command::ChangeString(id, text) => (id, Held::Text(text)),
            other => panic!("{other:?}"),
        };
        let signal = signals.entry(names[&id].clone()).or_default();
        signal.push((now.expect("a time first"), held));
    }
    assert_eq!(signals.len(), names.len(), "every signal changes");
    (signals, report)
}

/// Total time in which `holds` of what a signal holds, in nanoseconds.
fn time(changes: &Changes, end: f64, holds: impl Fn(&Held) -> bool) -> f64 {
    let ends = changes.iter().skip(1).map(|(at, _)| *at as f64);
    let ends = ends.chain([end * 1e3]);
    let stretches = changes
        .iter()
        .zip(ends)
        .filter(|((_, held), _)| holds(held));
    stretches
        .map(|((at, _), end)| end - *at as f64)
        .sum::<f64>()
        / 1e3
}

#[test]
fn waves_agree_with_the_statistics() {
    for scenario in [
        "traces/queues.toml",
        "traces/dmb-vs-sow.toml",
        "traces/quickstart.toml",
    ] {
        let (signals, report) = waves(scenario);
        let stats = &report["stats"];
        let end = stats["time_ns"].as_f64().unwrap();
        for engine in stats["engines"].as_array().unwrap() {
            let id = format!("e{}", engine["engine"]);
            for station in engine["stations"].as_array().unwrap() {
                let signal =
                    &signals[&format!("{id}/{}_station", station["station"].as_str().unwrap())];
                for (state, ns) in station["states_ns"].as_object().unwrap() {
                    let shown = time(signal, end, |held| *held == Held::Text(state.clone()));
                    let ns = ns.as_f64().unwrap();
                    // Idle until its first change, and whole picoseconds.
                    assert!(
                        state == "idle" || (shown - ns).abs() < 0.001 * (1 + signal.len()) as f64,
                        "{scenario} {id} {state}: {shown} instead of {ns}"
                    );
                }
            }
            for queue in engine["queues"].as_array().unwrap() {
                let of = |name: &str| &signals[&format!("{id}/q{}/{name}", queue["queue"])];
                assert_eq!(of("tx_doorbell").len() as u64, queue["tx_doorbells"]);
                assert_eq!(of("rx_doorbell").len() as u64, queue["rx_doorbells"]);
                let packets = queue["packets"].as_u64().unwrap();
                assert_eq!(of("packets").last().unwrap().1, Held::Number(packets));
                for (name, step) in [
                    ("reads_outstanding", "read"),
                    ("writes_outstanding", "write"),
                ] {
                    let changes = of(name);
                    assert_eq!(
                        changes.len() as u64,
                        2 * queue[step]["count"].as_u64().unwrap()
                    );
                    assert_eq!(changes.last().unwrap().1, Held::Number(0));
                    let most = |held: &Held| matches!(held, Held::Number(n) if *n <= 128);
                    assert!(
                        changes.iter().all(|(_, held)| most(held)),
                        "{scenario} {id} {name}"
                    );
                }
            }
        }
        for channel in stats["channels"].as_array().unwrap() {
            let name = channel["channel"].as_str().unwrap().replace(' ', "_");
            let busy = time(&signals[&format!("memory/{name}")], end, |held| {
                *held == Held::Bit(true)
            });
            let share = channel["utilisation"].as_f64().unwrap();
            let accesses = channel["reads"].as_u64().unwrap() + channel["writes"].as_u64().unwrap();
            let slack = end * 1e-6 + 0.002 * accesses as f64;
            // An HBM controller may take the accesses of two bursts in turn: both are at it at a time.
            let least = if name.starts_with("HBM") { 0.9 } else { 1.0 };
            let most = share * end;
            assert!(
                (least * most - slack..most + slack).contains(&busy),
                "{scenario} {name}: {busy} of {end}, {share}"
            );
        }
    }
}

#[test]
fn semaphores_have_signals() {
    let (signals, _) = waves("traces/quickstart.toml");
    let values: Vec<&Held> = signals["semaphores/s0_7"]
        .iter()
        .map(|(_, held)| held)
        .collect();
    assert_eq!(values, [&Held::Number(1)]);
}
