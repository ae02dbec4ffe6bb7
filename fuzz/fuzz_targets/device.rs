//! Whatever registers, rings and doorbells hold: no panic, no hang, no unbounded memory.
//!
//! `cargo +nightly fuzz run device`; the first byte picks the generation, the rest is for the harness.
#![no_main]

#[path = "../harness.rs"]
#[allow(dead_code, reason = "the test on the stable toolchain uses the rest")]
mod harness;

use libfuzzer_sys::fuzz_target;
use udma_sim::arch::Arch;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let arch = Arch::ALL[usize::from(*first) % Arch::ALL.len()];
    harness::Machine::new(arch, 0).feed(rest);
});
