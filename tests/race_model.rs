//! The race detector against the ordering model, on random programs: it reports a race if and only if the
//! axioms let two accesses to the same bytes come in either order. And what is free of races ends, in
//! every execution that the explorer finds and in every run of the timing engine, as it ends in order.

use std::collections::BTreeSet;
use udma_sim::arch::Arch;
use udma_sim::config::Config;
use udma_sim::order::axiomatic::allowed;
use udma_sim::order::axioms::Axioms;
use udma_sim::order::explore::{Options, explore};
use udma_sim::order::outcome::Outcome;
use udma_sim::order::program::{Dest, Program};
use udma_sim::order::race::{BarrierKind, Pair, in_order};
use udma_sim::order::random::{BURST_BYTES, Size, program};
use udma_sim::order::timed::{self, JITTER};

/// Orders that the axiomatic checker looks at, and states of the explorer: larger programs are left out.
const BOUND: u64 = 20_000;

/// How many seeds: so many times more as `UDMA_SIM_RACE_FACTOR` says.
fn seeds(few: u64) -> u64 {
    let factor = std::env::var("UDMA_SIM_RACE_FACTOR").ok();
    few * factor.map_or(1, |factor| factor.parse().expect("a number"))
}

/// Random programs, one a seed and generation. Bursts are one atom long: no execution may count on
/// what is visible at once only because of the length of a burst.
fn programs(seeds: u64, size: Size) -> impl Iterator<Item = (String, Arch, Program)> {
    let all = Arch::ALL
        .into_iter()
        .flat_map(move |arch| (0..seeds).map(move |seed| (arch, seed)));
    all.map(move |(arch, seed)| {
        let mut program = program(seed, arch, size);
        program.burst = 1;
        (format!("{arch}, seed {seed}"), arch, program)
    })
}

/// A program in a few lines, for messages.
fn told(program: &Program) -> String {
    let mut text = String::new();
    for queue in &program.queues {
        text += &format!(
            "\n{} (rung {}, dmb masked {}):",
            queue.name, queue.rung, queue.dmb_masked
        );
        for packet in &queue.packets {
            text += "\n  packet";
            for desc in &packet.descs {
                let from: Vec<String> = desc.from.iter().map(|s| program.name_of(*s)).collect();
                let to = match desc.to {
                    Dest::Store(span) => program.name_of(span),
                    Dest::Increment(_) => "s".to_string(),
                };
                let flags = [
                    (desc.dmb, "dmb"),
                    (desc.write_barrier, "wb"),
                    (desc.sow, "sow"),
                    (desc.embedded.is_some(), "embedded"),
                ];
                let flags = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name);
                let flags: Vec<&str> = flags.collect();
                text += &format!(" {} -> {to} {flags:?};", from.join(" + "));
            }
        }
    }
    for observer in &program.observers {
        text += &format!("\n{}: {:?}", observer.name, observer.ops);
    }
    text
}

#[test]
fn a_race_is_reported_if_and_only_if_the_axioms_leave_two_accesses_unordered() {
    let size = Size {
        queues: 2,
        packets: 3,
        compute: true,
    };
    let (mut racy, mut free) = (0, 0);
    for (name, arch, program) in programs(seeds(60), size) {
        let Some(run) = in_order(&program, arch) else {
            panic!("{name}: random programs never get stuck");
        };
        let Ok(truth) = allowed(&program, Axioms::ALL, BOUND) else {
            continue;
        };
        let races = run.detector.races(&|_| None);
        if truth.racy || truth.exhaustive {
            assert_eq!(
                !races.is_empty(),
                truth.racy,
                "{name}: {races:#?} in {}",
                told(&program)
            );
            match truth.racy {
                true => racy += 1,
                false => free += 1,
            }
        }
    }
    println!("{racy} programs with races, {free} without");
    assert!(racy > 40 && free > 40, "{racy} racy, {free} free");
}

/// A barrier is said to order something if and only if something races that did not before when it is
/// taken out.
#[test]
fn a_barrier_is_needed_if_and_only_if_it_prevents_a_race() {
    let size = Size {
        queues: 3,
        packets: 4,
        compute: true,
    };
    let kinds = [
        BarrierKind::Dmb,
        BarrierKind::WriteBarrier,
        BarrierKind::StrongOrder,
    ];
    let mut counts = [0; 2];
    for (name, arch, program) in programs(seeds(200), size) {
        let run = in_order(&program, arch).unwrap();
        let races: BTreeSet<Pair> = run.detector.pairs().collect();
        for (q, queue) in program.queues.iter().enumerate() {
            for (p, packet) in queue.packets.iter().enumerate() {
                for kind in kinds {
                    let has = match kind {
                        BarrierKind::Dmb => packet.dmb(),
                        BarrierKind::WriteBarrier => packet.write_barrier(),
                        BarrierKind::StrongOrder => packet.descs.iter().any(|desc| desc.sow),
                    };
                    if !has {
                        continue;
                    }
                    let mut without = program.clone();
                    for desc in &mut without.queues[q].packets[p].descs {
                        match kind {
                            BarrierKind::Dmb => desc.dmb = false,
                            BarrierKind::WriteBarrier => desc.write_barrier = false,
                            BarrierKind::StrongOrder => desc.sow = false,
                        }
                    }
                    let without = in_order(&without, arch).unwrap();
                    let worse = without.detector.pairs().any(|pair| !races.contains(&pair));
                    let needed = run.detector.needs(run.queues[q], p as u32, kind);
                    assert_eq!(
                        needed,
                        worse,
                        "{name}: {kind:?} of packet {p} of {}: {}",
                        queue.name,
                        told(&program)
                    );
                    counts[usize::from(needed)] += 1;
                }
            }
        }
    }
    println!("{} barriers needed, {} not", counts[1], counts[0]);
    assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
}

/// Programs that the detector finds free of races, with how they end in order.
fn free(seeds: u64, size: Size) -> Vec<(String, Arch, Program, Outcome)> {
    let mut free = Vec::new();
    for (name, arch, program) in programs(seeds, size) {
        let Some(run) = in_order(&program, arch) else {
            panic!("{name}: random programs never get stuck");
        };
        if run.detector.races(&|_| None).is_empty() {
            free.push((name, arch, program, run.outcome));
        }
    }
    free
}

#[test]
fn what_is_free_of_races_ends_in_every_execution_as_it_does_in_order() {
    let size = Size {
        queues: 3,
        packets: 4,
        compute: true,
    };
    let mut explored = 0;
    for (name, _, program, outcome) in free(seeds(250), size) {
        let options = Options {
            max_states: BOUND,
            ..Options::default()
        };
        if let Ok(found) = explore(&program, options) {
            let other = found.endings.keys().find(|found| **found != outcome);
            assert_eq!(other, None, "{name}: {}", told(&program));
            explored += u64::from(found.exhaustive);
        }
    }
    println!("{explored} programs explored in full");
    assert!(explored > 60, "{explored}");
}

#[test]
fn what_is_free_of_races_ends_in_every_run_as_it_does_in_order() {
    let size = Size {
        queues: 3,
        packets: 4,
        compute: false,
    };
    let mut runs = 0;
    for (name, arch, mut program, outcome) in free(seeds(150), size) {
        program.burst = 2;
        let mut config = Config::builtin(arch.spec().code_name).unwrap().unwrap();
        config.values.engine.burst_bytes = BURST_BYTES;
        for seed in 0..4 {
            let found = timed::run(&program, &config, seed, JITTER).unwrap();
            assert_eq!(found, outcome, "{name}, run {seed}: {}", told(&program));
            runs += 1;
        }
    }
    println!("{runs} runs");
    assert!(runs > 200, "{runs}");
}
