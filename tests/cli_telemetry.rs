//! What `udma-sim run` tells beside its report: against the report, and against itself.

mod common;

use common::cli::{stderr, stdout, text, udma_sim};
use serde_json::Value;
use std::collections::BTreeMap;

fn sum(list: &Value, figure: &str) -> f64 {
    let figures = list.as_array().unwrap().iter();
    figures.map(|row| row[figure].as_f64().unwrap()).sum()
}

/// The statistics of a scenario, and the rest of its report.
fn stats(scenario: &str) -> (Value, Value) {
    let run = udma_sim(&["run", scenario, "--json", "--stats"]).success();
    let mut report: Value = serde_json::from_str(&stdout(&run)).unwrap();
    let stats = report.as_object_mut().unwrap().remove("stats").unwrap();
    (stats, report)
}

/// Only HBM has rows. A copy of 1 MiB visits each channel 128 times with 8 accesses of 32 bytes, and stays in two
/// rows for 8 visits.
#[test]
fn rows_are_told_of_hbm() {
    let (stats, _) = stats("traces/quickstart.toml");
    let (mut activates, mut accesses) = (0.0, 0.0);
    for channel in stats["channels"].as_array().unwrap() {
        let name = channel["channel"].as_str().unwrap();
        assert_eq!(
            channel.get("row_hits").is_some(),
            name.starts_with("HBM"),
            "{name}"
        );
        let Some(hits) = channel.get("row_hits").map(|hits| hits.as_f64().unwrap()) else {
            continue;
        };
        assert!((0.9..1.0).contains(&hits), "{name}: {hits}");
        activates += channel["activates"].as_f64().unwrap();
        accesses += channel["bytes_read"].as_f64().unwrap() / 32.0;
        accesses += channel["bytes_written"].as_f64().unwrap() / 32.0;
        assert!(channel["refreshes"].as_f64().unwrap() > 0.0, "{name}");
    }
    // One of 32 accesses opens a row; a refresh makes another one do so.
    assert!(
        activates > accesses / 32.0 && activates < accesses / 16.0,
        "{activates} {accesses}"
    );
}

#[test]
fn statistics_agree_with_the_report() {
    for scenario in [
        "traces/quickstart.toml",
        "traces/queues.toml",
        "traces/all-reduce.toml",
    ] {
        let plain = udma_sim(&["run", scenario, "--json"]).success();
        let (stats, report) = stats(scenario);
        let plain: Value = serde_json::from_str(&stdout(&plain)).unwrap();
        assert_eq!(report, plain, "{scenario}: watching changed the run");
        let time = stats["time_ns"].as_f64().unwrap();
        assert!((time - report["time_ns"].as_f64().unwrap()).abs() < 0.001);
        let mut queues = Vec::new();
        for engine in stats["engines"].as_array().unwrap() {
            queues.extend(engine["queues"].as_array().unwrap().clone());
            for station in engine["stations"].as_array().unwrap() {
                let states = station["states_ns"].as_object().unwrap();
                let spent: f64 = states.values().map(|ns| ns.as_f64().unwrap()).sum();
                assert!((spent - time).abs() < 0.01, "{scenario}: {station}");
            }
        }
        let queues = Value::from(queues);
        for (figure, total) in [
            ("packets", "packets"),
            ("tx_descriptors", "tx_descriptors"),
            ("rx_descriptors", "rx_descriptors"),
            ("bytes_read", "bytes_read"),
            ("bytes_written", "bytes_written"),
        ] {
            let total = report["totals"][total].as_f64().unwrap();
            assert_eq!(sum(&queues, figure), total, "{scenario}: {figure}");
        }
        let fetched = 16.0 * (sum(&queues, "tx_descriptors") + sum(&queues, "rx_descriptors"));
        let read = fetched + sum(&queues, "bytes_read");
        assert_eq!(sum(&stats["channels"], "bytes_read"), read, "{scenario}");
        for queue in queues.as_array().unwrap() {
            assert_eq!(queue["packet"]["count"], queue["packets"]);
            for step in ["fetch", "read", "write", "packet"] {
                let latency = |figure: &str| queue[step][figure].as_f64().unwrap();
                let order =
                    ["min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"].map(latency);
                assert!(order.is_sorted(), "{scenario}: {queue}");
                assert!(latency("min_ns") > 0.0);
            }
            // A packet takes longer than any of its bursts.
            assert!(queue["packet"]["max_ns"].as_f64() > queue["write"]["min_ns"].as_f64());
        }
        for channel in stats["channels"].as_array().unwrap() {
            let busy = channel["utilisation"].as_f64().unwrap();
            assert!(busy > 0.0 && busy < 1.0, "{channel}");
        }
    }
}

/// Each barrier costs what it is known to cost, and shows where it costs it.
#[test]
fn statistics_tell_barriers_apart() {
    let (stats, _) = stats("traces/dmb-vs-sow.toml");
    let queues = stats["engines"][1]["queues"].as_array().unwrap();
    let dmb: Vec<f64> = queues.iter().map(|q| q["dmb"].as_f64().unwrap()).collect();
    assert_eq!((dmb[0], dmb[2], dmb[3]), (0.0, 0.0, 0.0));
    assert!(dmb[1] > 0.1, "{dmb:?}");
    let held: Vec<f64> = queues.iter().map(|q| q["held"].as_f64().unwrap()).collect();
    assert_eq!((held[0], held[1]), (0.0, 0.0));
    // They stop less than a DMB does: reads go on meanwhile.
    for held in &held[2..] {
        assert!(*held > 0.05 && *held < dmb[1], "{held} {dmb:?}");
    }
    let stations = &stats["engines"][1]["stations"];
    assert!(stations[0]["states_ns"]["dmb"].as_f64().unwrap() > 1000.0);
    assert!(stations[1]["states_ns"]["acknowledge"].as_f64().unwrap() > 1000.0);
}

#[test]
fn the_csv_holds_the_figures_of_the_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stats.csv");
    udma_sim(&["run", "traces/queues.toml", "--stats-csv", text(&path)]).success();
    let (stats, _) = stats("traces/queues.toml");
    let mut reader = csv::Reader::from_path(&path).unwrap();
    assert_eq!(
        reader.headers().unwrap(),
        &["kind", "name", "figure", "value"][..]
    );
    let rows: BTreeMap<[String; 3], f64> = (reader.deserialize())
        .map(|row| row.unwrap())
        .map(|(kind, name, figure, value)| ([kind, name, figure], value))
        .collect();
    let mut compared = 0;
    let mut compare = |kind: &str, name: &str, figure: &str, value: &Value| {
        let key = [kind, name, figure].map(String::from);
        assert_eq!(rows.get(&key).copied(), value.as_f64(), "{key:?}");
        compared += 1;
    };
    compare("run", "", "time_ns", &stats["time_ns"]);
    for engine in stats["engines"].as_array().unwrap() {
        let id = format!("e{}", engine["engine"]);
        for station in engine["stations"].as_array().unwrap() {
            let name = format!("{id} {}", station["station"].as_str().unwrap());
            compare("station", &name, "utilisation", &station["utilisation"]);
            for (state, ns) in station["states_ns"].as_object().unwrap() {
                compare("station", &name, &format!("{state}_ns"), ns);
            }
        }
        for queue in engine["queues"].as_array().unwrap() {
            let name = format!("{id} q{}", queue["queue"]);
            for (figure, value) in queue.as_object().unwrap() {
                match value {
                    Value::Object(latency) => {
                        for (part, value) in latency {
                            compare("queue", &name, &format!("{figure}_{part}"), value);
                        }
                    }
                    _ if figure == "queue" => {}
                    value => compare("queue", &name, figure, value),
                }
            }
        }
    }
    for channel in stats["channels"].as_array().unwrap() {
        for (figure, value) in channel.as_object().unwrap() {
            if figure != "channel" {
                compare(
                    "channel",
                    channel["channel"].as_str().unwrap(),
                    figure,
                    value,
                );
            }
        }
    }
    assert_eq!(compared, rows.len());
}

/// Statistics follow the report, whose own bytes stay as they are.
#[test]
fn statistics_are_appended_to_the_text() {
    let plain = stdout(&udma_sim(&["run", "traces/quickstart.toml"]).success());
    let with = stdout(&udma_sim(&["run", "traces/quickstart.toml", "--stats"]).success());
    let appended = with.strip_prefix(&plain).unwrap();
    for line in [
        "\nstations, % of ",
        "\ne0 read ",
        "\ne0 q0 packet ",
        "\nHBM 0 ",
    ] {
        assert!(appended.contains(line), "{line:?} in {appended}");
    }
}

/// A path that is no good is told before anything runs.
#[test]
fn paths_that_cannot_be_written_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for option in ["--stats-csv", "--timeline", "--vcd", "--record"] {
        for path in [
            folder.path().to_path_buf(),
            folder.path().join("no/such/folder/out"),
        ] {
            let run = udma_sim(&["run", "traces/quickstart.toml", option, text(&path)]);
            let run = run.code(2).stdout_eq("");
            let error = stderr(&run);
            assert!(
                error.starts_with(&format!("error: cannot write {}: ", text(&path)))
                    && error.contains(&format!("{option} takes the path of a file")),
                "{error}"
            );
        }
    }
}
