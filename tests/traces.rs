//! Every scenario in `traces/` runs on every arch it is legal on, and does the same each time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use udma_sim::arch::Arch;
use udma_sim::config::Config;
use udma_sim::scenario::{Report, Scenario};

fn scenarios() -> Vec<PathBuf> {
    let entries = fs::read_dir("traces")
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files
}

fn run(path: &Path, arch: Arch, seed: Option<u64>) -> Report {
    let scenario = Scenario::load(path).unwrap();
    let config = Config::load(arch.spec().code_name, Path::new("")).unwrap();
    let seed = seed.unwrap_or(scenario.seed());
    let plan = scenario.plan(config, seed).unwrap();
    plan.run(&mut |_| ()).unwrap()
}

#[test]
fn every_scenario_passes_on_every_arch_it_is_legal_on() {
    let mut ran = 0;
    for path in scenarios() {
        let arches = Scenario::load(&path).unwrap().runs_on().to_vec();
        for arch in arches {
            let report = run(&path, arch, None);
            assert!(report.passed, "{} on {arch}:\n{report}", path.display());
            assert!(
                report.bytes > 0 && !report.expectations.is_empty(),
                "{}",
                path.display()
            );
            assert_eq!(report.warnings, [""; 0], "{} on {arch}", path.display());
            ran += 1;
        }
    }
    assert!(ran >= 10, "only {ran} runs");
}

#[test]
fn the_scenarios_promised_are_there() {
    let names: BTreeSet<String> = scenarios()
        .iter()
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    for name in [
        "quickstart",
        "memcpy-host",
        "queues",
        "dmb-vs-sow",
        "raw-ring",
        "pseudo-dma",
        "packets",
        "devmem-load",
        "tables",
        "io-refill",
        "seeded-reduce",
        "driver",
        "all-reduce",
        "scaled-reduce",
        "cast-fp8",
        "k-cache",
        "crc-copy",
        "crc-caught",
        "notifications",
    ] {
        assert!(names.contains(name), "{name}");
    }
}

#[test]
fn a_file_is_named_after_its_scenario() {
    for path in scenarios() {
        let arch = Scenario::load(&path).unwrap().runs_on()[0];
        let report = run(&path, arch, None);
        assert_eq!(
            *report.scenario,
            *path.file_stem().unwrap().to_string_lossy()
        );
    }
}

#[test]
fn every_other_file_is_used_by_a_scenario() {
    let texts: Vec<String> = scenarios()
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    for entry in fs::read_dir("traces").unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let used = texts
            .iter()
            .any(|text| text.contains(&format!("\"{name}\"")));
        assert!(
            used || name.ends_with(".toml"),
            "no scenario uses traces/{name}"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let path = Path::new("traces/dmb-vs-sow.toml");
    let json = |seed| serde_json::to_string(&run(path, Arch::V3, Some(seed))).unwrap();
    assert_eq!(json(3), json(3));
    assert_ne!(json(3), json(4));
}

/// The stale read that the scenario is about is really there, and each barrier costs what it must.
#[test]
fn dmb_vs_sow_shows_the_stale_read_and_the_costs() {
    for arch in Arch::ALL {
        let report = run(Path::new("traces/dmb-vs-sow.toml"), arch, None);
        let seen = |mode: &str| {
            let name = format!("\"seen-{mode}\"");
            let expectation = report
                .expectations
                .iter()
                .find(|e| e.expected.contains(&name));
            expectation.map(|e| e.found.clone())
        };
        let stale = seen("none").flatten().unwrap();
        assert!(stale.contains("bytes differ"), "{arch}: {stale}");
        assert_eq!(seen("dmb"), Some(None), "{arch}");
        assert_eq!(seen("write_barrier"), Some(None), "{arch}");
        assert_eq!(seen("sow"), (arch != Arch::V2).then_some(None), "{arch}");

        let cycles = |label: &str| {
            let step = report
                .steps
                .iter()
                .find(|s| s.label.as_deref() == Some(label));
            step.map(|step| step.cycles)
        };
        let none = cycles("none done").unwrap();
        assert!(cycles("dmb done").unwrap() > 2 * none, "{arch}");
        assert!(
            cycles("write_barrier done").unwrap() < cycles("dmb done").unwrap(),
            "{arch}"
        );
    }
}
