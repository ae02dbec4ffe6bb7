//! The litmus catalogue on the timing engine: over seeds of random latencies a forbidden outcome never
//! appears and an allowed one appears at least once. And random programs through all three models: a
//! slice of what `udma-sim differential` does at length.

use std::path::Path;
use udma_sim::arch::Arch;
use udma_sim::config::Config;
use udma_sim::order::litmus::{Answer, Litmus};
use udma_sim::order::random::{BURST_BYTES, Comparison, Effort, Size, compare, program};
use udma_sim::order::timed::{self, JITTER};

/// Seeds that a forbidden outcome must survive, and within which an allowed one must appear.
const FORBIDDEN_SEEDS: u64 = 48;
const ALLOWED_SEEDS: u64 = 1000;

fn config(arch: Arch) -> Config {
    Config::builtin(arch.spec().code_name).unwrap().unwrap()
}

#[test]
fn the_timing_engine_agrees_with_the_catalogue() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus");
    for test in Litmus::load_all(&folder).unwrap() {
        for case in &test.cases {
            let config = config(case.arch);
            let seeds = match case.expected {
                Answer::Allowed => ALLOWED_SEEDS,
                Answer::Forbidden => FORBIDDEN_SEEDS,
            };
            let mut seen = None;
            for seed in 0..seeds {
                match timed::run(&case.program, &config, seed, JITTER) {
                    Ok(outcome) if case.asked.holds(&outcome) => {
                        seen = Some(seed);
                        break;
                    }
                    Ok(_) => {}
                    Err(error) => panic!("{}: {error}", test.name),
                }
            }
            assert_eq!(
                seen.is_some(),
                case.expected == Answer::Allowed,
                "{} [{}] on {}: first seen for seed {seen:?}",
                test.name,
                case.barrier(),
                case.arch
            );
        }
    }
}

#[test]
fn random_programs_agree_in_all_three() {
    let size = Size {
        queues: 3,
        packets: 4,
        compute: false,
    };
    let effort = Effort {
        states: 20_000,
        candidates: 10_000,
        runs: 6,
    };
    agree(0, 60, size, effort, 60);
}

#[test]
fn random_programs_with_compute_agree_in_both_models() {
    let size = Size {
        queues: 2,
        packets: 3,
        compute: true,
    };
    let effort = Effort {
        states: 20_000,
        candidates: 10_000,
        runs: 0,
    };
    agree(10_000, 60, size, effort, 60);
}

fn agree(first: u64, programs: u64, size: Size, effort: Effort, at_least: u64) {
    let mut compared = 0;
    for arch in Arch::ALL {
        let mut config = config(arch);
        config.values.engine.burst_bytes = BURST_BYTES;
        for seed in first..first + programs {
            let found = compare(&program(seed, arch, size), &config, effort).unwrap();
            match found {
                Comparison::Agree { .. } => compared += 1,
                Comparison::TooLarge => {}
                wrong => panic!("{arch}, seed {seed}: {wrong:?}"),
            }
        }
    }
    assert!(
        compared >= at_least,
        "only {compared} programs were small enough"
    );
}
