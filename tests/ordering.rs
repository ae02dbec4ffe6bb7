//! Ordering on the timing engine, as far as the litmus catalogue does not say it (`tests/litmus/`,
//! `docs/ordering.md`): counters, the prefetch window, config keys, embedded increments in detail.

mod common;

use common::{MS, Program, Rig, config, ring_base};
use udma_sim::arch::regs::{Direction, RateLimitMask};
use udma_sim::arch::{Arch, EngineId};
use udma_sim::config::Config;
use udma_sim::desc::BarrierMode::{
    self, Dmb, None as Plain, StrongOrder as Sow, WriteBarrier as Wb,
};
use udma_sim::desc::{EmbeddedSemaphore, RxDesc};
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, SemTest, WaitOutcome};
use udma_sim::units::Addr;

/// Cells in different HBM channels.
const X: u64 = 0x10_0000;
const Y: u64 = 0x10_0100;
const R0: u64 = 0x10_0200;
const R1: u64 = 0x10_0300;
/// Cells that hold 1 and 2.
const ONE: u64 = 0x10_0400;
const TWO: u64 = 0x10_0500;
/// A source of 64 KiB of ones, and its destination.
const BIG_SRC: u64 = 0x20_0000;
const BIG_DST: u64 = 0x30_0000;
const BIG: u32 = 65536;

/// Seeds that a forbidden outcome must survive.
const SEEDS: u64 = 48;

/// A machine whose latencies vary with the seed.
fn jittery(arch: Arch, seed: u64) -> Rig {
    let edits = [("jitter = \"0ns\"", "jitter = \"3us\"")];
    let mut rig = Rig::with(config(arch, &edits), seed);
    rig.poke(ONE, &1u32.to_le_bytes());
    rig.poke(BIG_SRC, &vec![1; BIG as usize]);
    rig
}

/// A config whose host memory takes writes very slowly.
fn slow_host(arch: Arch, edits: &[(&str, &str)]) -> Config {
    // The host's latencies are the only ones with this pair.
    let slow = [(
        "write = \"50ns\"\nresponse = \"180ns\"",
        "write = \"100us\"\nresponse = \"180ns\"",
    )];
    config(arch, &[&slow, edits].concat())
}

fn copies(arch: Arch, list: &[(u64, u64, BarrierMode)]) -> Program {
    let mut program = Program::default();
    for (src, dst, barrier) in list {
        program.copy(arch, *src, *dst, 4, *barrier);
    }
    program
}

fn word(rig: &mut Rig, at: u64) -> u32 {
    u32::from_le_bytes(rig.peek(at, 4).try_into().unwrap())
}

fn wait_word(rig: &mut Rig, at: u64) {
    let until = Condition::Word {
        at: Addr(at),
        value: 1,
    };
    assert_eq!(rig.wait(until), WaitOutcome::Met);
}

fn wait_semaphore(rig: &mut Rig, least: i32) {
    let until = Condition::Semaphore {
        block: 0,
        index: 5,
        test: SemTest::Ge(least),
    };
    assert_eq!(rig.wait(until), WaitOutcome::Met);
}

/// The counters tell a DMB whose pause is masked, as the register resets, from one that holds.
#[test]
fn a_masked_dmb_is_counted_as_such() {
    for arch in Arch::ALL {
        let works = RateLimitMask::new().with_internal_pause_dmb(false);
        for (mask, counted) in [(RateLimitMask::new(), (0, 1)), (works, (1, 0))] {
            let mut rig = Rig::new(arch);
            rig.mask = mask;
            rig.start(0, 0, &copies(arch, &[(ONE, X, Dmb), (ONE, Y, Plain)]));
            rig.idle();
            let counters = rig.system.counters();
            assert_eq!((counters.dmb, counters.dmb_masked), counted, "{arch}");
        }
    }
}

/// Three chunks, announced by a semaphore: on the last of them a barrier is enough. (On the first it is
/// not, says the catalogue.)
#[test]
fn a_barrier_on_the_last_of_three_chunks_is_enough() {
    for arch in Arch::ALL {
        for (last_chunk, inc) in [(Dmb, Plain), (Wb, Plain), (Plain, Sow)] {
            if arch == Arch::V2 && inc == Sow {
                continue;
            }
            for seed in 0..SEEDS {
                let mut rig = jittery(arch, seed);
                let mut program = Program::default();
                for (n, barrier) in [Plain, Plain, last_chunk].into_iter().enumerate() {
                    let to = BIG_DST + n as u64 * u64::from(BIG);
                    program.copy(arch, BIG_SRC, to, BIG, barrier);
                }
                program.inc(arch, 5, inc);
                rig.start(0, 0, &program);
                wait_semaphore(&mut rig, 1);
                let stale = rig.peek(BIG_DST, 3 * BIG as usize).contains(&0);
                assert!(!stale, "{arch}, {last_chunk:?}, {inc:?}, seed {seed}");
            }
        }
    }
}

/// Nothing orders a descriptor fetch against a DMA write to ring memory (A10): a packet that
/// rewrites the source of a later descriptor of its own ring may come too late, or in time.
#[test]
fn a_ring_that_rewrites_itself() {
    for (slot, rewritten) in [(1usize, false), (190, true)] {
        let arch = Arch::V3;
        let mut rig = Rig::with(config(arch, &[]), 0);
        rig.poke(ONE, &1u32.to_le_bytes());
        rig.poke(TWO, &2u32.to_le_bytes());
        let mut list = vec![(R0, R0, Plain); 200];
        list[slot] = (ONE, Y, Plain);
        let buf_ptr = ring_base(0, 0, Direction::M2s).0 + slot as u64 * 16 + 8;
        rig.poke(R1, &TWO.to_le_bytes());
        let mut program = copies(arch, &list);
        let mut patch = Program::default();
        patch.copy(arch, R1, buf_ptr, 8, Plain);
        (program.tx[0], program.rx[0]) = (patch.tx[0], patch.rx[0]);
        rig.start(0, 0, &program);
        assert_eq!(rig.system.run_until(&Condition::Idle, MS), WaitOutcome::Met);
        assert_eq!(
            word(&mut rig, Y),
            if rewritten { 2 } else { 1 },
            "slot {slot}"
        );
    }
}

/// With engine scope a strong-ordered write also waits for the other queues of its engine: here for
/// a write to slow host memory.
#[test]
fn sow_scope_is_a_config_key() {
    let overtakes = |scope: &str| {
        let edits = [("sow_scope = \"queue\"", scope)];
        let mut rig = Rig::with(slow_host(Arch::V3, &edits), 0);
        rig.poke(ONE, &1u32.to_le_bytes());
        let slow = rig.arch.spec().map.host.0;
        let data = copies(rig.arch, &[(ONE, slow, Plain)]);
        let flag = copies(rig.arch, &[(ONE, Y, Sow)]);
        rig.start(0, 1, &data);
        rig.pass(Duration::from_ns(5_000));
        rig.start(0, 0, &flag);
        wait_word(&mut rig, Y);
        word(&mut rig, slow) == 0
    };
    assert!(overtakes("sow_scope = \"queue\""));
    assert!(!overtakes("sow_scope = \"engine\""));
}

/// V4: x:=1 (64 KiB, then 4 bytes with an embedded increment of s) ‖ H: wait s ≥ 1, read both. Neither
/// the descriptor's own bytes nor an earlier packet's can be old (A12).
#[test]
fn an_embedded_increment_follows_every_earlier_write() {
    for seed in 0..SEEDS {
        let arch = Arch::V4;
        let mut rig = jittery(arch, seed);
        let mut program = Program::default();
        program.copy(arch, BIG_SRC, BIG_DST, BIG, Plain);
        program.copy(arch, ONE, X, 4, Plain);
        program.copy(arch, ONE, Y, 4, Plain);
        let update = EmbeddedSemaphore {
            set_sow: false,
            csr_index: 0,
            semaphore: 5,
        };
        program.rx[1] = update.put(RxDesc::from(program.rx[1])).into();
        rig.start(0, 0, &program);
        wait_semaphore(&mut rig, 1);
        assert_eq!(word(&mut rig, X), 1);
        assert!(!rig.peek(BIG_DST, BIG as usize).contains(&0));
        rig.idle();
        assert_eq!((rig.system.semaphore(0, 5), word(&mut rig, Y)), (1, 1));
        let counters = rig.system.counters();
        assert_eq!((counters.embedded_updates, counters.packets), (1, 3));
        assert_eq!(counters.bytes_written, u64::from(BIG) + 8);
    }
}

/// On other generations bit 31 of an Rx descriptor means nothing; on V4 an update that names no
/// semaphore is an AXI error.
#[test]
fn embedded_updates_exist_on_v4_only() {
    let run = |arch: Arch, csr_index| {
        let mut rig = Rig::new(arch);
        rig.poke(ONE, &1u32.to_le_bytes());
        let mut program = copies(arch, &[(ONE, X, Plain)]);
        let update = EmbeddedSemaphore {
            set_sow: false,
            csr_index,
            semaphore: 5,
        };
        program.rx[0] = update.put(RxDesc::from(program.rx[0])).into();
        rig.start(0, 0, &program);
        rig.pass(MS);
        assert_eq!(word(&mut rig, X), 1);
        let status = rig.system.engine_status(EngineId(0)).unwrap();
        (rig.system.semaphore(0, 5), status.causes)
    };
    assert_eq!(run(Arch::V3, 0), (0, [0, 0]));
    assert_eq!(run(Arch::V4, 0), (1, [0, 0]));
    assert_eq!(run(Arch::V4, 24), (0, [0, 1 << 1]));
}
