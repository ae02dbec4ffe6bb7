//! The race check on scenarios of many descriptors: what it finds, and that it costs memory by the
//! descriptor. Alone in its process, so that nothing else moves the resident set while it is measured.

#![cfg(target_os = "linux")]

#[path = "common/million.rs"]
mod million;

use std::path::Path;
use std::time::Instant;
use udma_sim::config::Config;
use udma_sim::scenario::{Plan, Races, Scenario};

/// Most bytes that were in memory at once.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

fn plan(descriptors: u64, sow: bool) -> Plan {
    let text = million::scenario(descriptors, sow);
    let scenario = Scenario::parse(Path::new("many.toml"), text).unwrap();
    let config = Config::builtin("cayman").unwrap().unwrap();
    scenario.plan(config, 0).unwrap()
}

#[test]
fn a_million_descriptors_on_sixteen_queues() {
    let few = plan(16 * 65, false).races().unwrap();
    // One round in each queue: each of its 64 chunks is looked at.
    assert_eq!(few.races.len() as u64 + few.more, 64 * million::QUEUES);
    let some = plan(50_000, true).superfluous().unwrap().unwrap();
    // The host waits for the last increment of each queue: its barrier is needed, the others are not.
    assert_eq!(some.len(), 1);
    assert_eq!(some[0].of - some[0].count, million::QUEUES);

    let started = Instant::now();
    let plan = plan(1_000_000, true);
    let planned = started.elapsed();
    let Races { races, packets, .. } = plan.races().unwrap();
    let checked = started.elapsed() - planned;
    let peak = peak() >> 20;
    println!("planned in {planned:?}, checked in {checked:?}, {peak} MiB at most");
    assert!(packets >= 1_000_000, "{packets}");
    assert_eq!(races, []);
    assert!(peak < 1024, "{peak} MiB");
}
