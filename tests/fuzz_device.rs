//! The fuzz target's harness on the stable toolchain: the kept corpus, and random bytes from a seed.
//!
//! The long version takes as many operations as asked for:
//! `UDMA_SIM_FUZZ_OPERATIONS=5000000 cargo test --release --test fuzz_device -- --ignored --nocapture`.

#[path = "../fuzz/harness.rs"]
mod harness;

use harness::Machine;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs;
use udma_sim::arch::Arch;

/// Bytes fed at once.
const PIECE: usize = 4096;

/// Bytes of this process that are in memory.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

/// Feeds random bytes until so many operations are done; returns them and the machine.
fn feed(arch: Arch, seed: u64, operations: u64, mut after: impl FnMut(&Machine)) -> Machine {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut machine = Machine::new(arch, seed);
    let mut bytes = [0; PIECE];
    while machine.operations < operations {
        rng.fill_bytes(&mut bytes);
        machine.feed(&bytes[..rng.random_range(1..=PIECE)]);
        after(&machine);
    }
    machine
}

#[test]
fn the_corpus_does_no_harm() {
    let mut inputs: Vec<_> = (fs::read_dir("fuzz/corpus/device").unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(inputs.len() >= 4, "{inputs:?}");
    for input in inputs {
        let bytes = fs::read(&input).unwrap();
        for arch in Arch::ALL {
            let mut machine = Machine::new(arch, 0);
            machine.feed(&bytes);
            assert!(machine.operations > 0, "{}", input.display());
        }
    }
}

#[test]
fn random_use_does_no_harm_and_is_repeatable() {
    for (seed, arch) in (0..).zip(Arch::ALL) {
        let [first, again] = [0, 1].map(|_| feed(arch, seed, 10_000, |_| {}).summary());
        assert_eq!(first, again, "{arch}");
    }
}

/// One machine for each generation, used for ever: no panic, no hang, no growth.
#[test]
#[ignore = "takes long; see the head of the file"]
#[cfg(target_os = "linux")]
fn long_random_use_does_no_harm() {
    let asked = std::env::var("UDMA_SIM_FUZZ_OPERATIONS").ok();
    let operations = asked.map_or(3_000_000, |text| text.parse::<u64>().unwrap());
    let seed = std::env::var("UDMA_SIM_FUZZ_SEED").map_or(1, |text| text.parse().unwrap());
    for arch in Arch::ALL {
        // What the machine has touched by then is all it ever will.
        let mut settled = None;
        let each = operations / 3;
        let machine = feed(arch, seed, each, |machine| {
            if settled.is_none() && machine.operations > each / 10 {
                settled = Some(resident());
            }
        });
        let (settled, end) = (settled.unwrap(), resident());
        println!(
            "{arch}: {} operations, {} MiB then {} MiB",
            machine.operations,
            settled >> 20,
            end >> 20
        );
        println!("{arch}: {}", machine.summary());
        assert!(
            end < settled + (64 << 20),
            "grew from {settled} to {end} bytes"
        );
    }
}
