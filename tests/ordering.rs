//! The ordering model (`docs/ordering.md`) on the timing engine: each shape of the catalogue that
//! needs no compute, in every barrier mode and on every arch, over many seeds of random latencies. A
//! forbidden outcome never appears; an allowed one appears for at least one seed.

mod common;

use common::{MS, Program, Rig, config, ring_base};
use udma_sim::arch::regs::{self, Direction, RateLimitMask, RingPointer};
use udma_sim::arch::{Arch, EngineId, QueueId};
use udma_sim::config::Config;
use udma_sim::desc::BarrierMode::{
    self, Dmb, None as Plain, StrongOrder as Sow, WriteBarrier as Wb,
};
use udma_sim::desc::{CopyFlags, Descriptor, EmbeddedSemaphore, RingId, RxDesc, build_copy};
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, SemTest, SequencerOp, WaitOp, WaitOutcome};
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

/// Seeds that a forbidden outcome must survive, and seeds within which an allowed one must appear.
const FORBIDDEN_SEEDS: u64 = 48;
const ALLOWED_SEEDS: u64 = 1000;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Expect {
    Allowed,
    Forbidden,
}
use Expect::{Allowed, Forbidden};

/// Runs a shape with the given barrier on each of its packets; true if the outcome in question appeared.
type Shape = fn(&mut Rig, &[BarrierMode]) -> bool;

fn check(name: &str, shape: Shape, rows: &[(&[BarrierMode], Expect)]) {
    for arch in Arch::ALL {
        for (barriers, expect) in rows {
            if arch == Arch::V2 && barriers.contains(&Sow) {
                continue;
            }
            let seeds = match expect {
                Allowed => ALLOWED_SEEDS,
                Forbidden => FORBIDDEN_SEEDS,
            };
            let seen = (0..seeds).find(|seed| {
                let edits = [("jitter = \"0ns\"", "jitter = \"3us\"")];
                let mut rig = Rig::with(config(arch, &edits), *seed);
                rig.poke(ONE, &1u32.to_le_bytes());
                rig.poke(TWO, &2u32.to_le_bytes());
                shape(&mut rig, barriers)
            });
            assert_eq!(
                seen.is_some(),
                *expect == Allowed,
                "{name} on {arch} with {barriers:?}: {expect:?}, but first seen for seed {seen:?} \
                 of {seeds}"
            );
        }
    }
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

/// x:=1; y:=1 ‖ H: r1=y, r2=x. Outcome: r1=1, r2=0.
fn mp(rig: &mut Rig, b: &[BarrierMode]) -> bool {
    let program = copies(rig.arch, &[(ONE, X, b[0]), (ONE, Y, b[1])]);
    rig.start(0, 0, &program);
    wait_word(rig, Y);
    word(rig, X) == 0
}

#[test]
fn message_passing() {
    check(
        "MP",
        mp,
        &[
            (&[Plain, Plain], Allowed),
            (&[Dmb, Plain], Forbidden),
            (&[Wb, Plain], Forbidden),
            (&[Plain, Sow], Forbidden),
        ],
    );
}

#[test]
fn message_passing_with_the_barrier_on_the_wrong_packet() {
    check(
        "MP+wrong",
        mp,
        &[
            (&[Plain, Dmb], Allowed),
            (&[Plain, Wb], Allowed),
            (&[Sow, Plain], Allowed),
        ],
    );
}

/// The DMB pause stays masked, as the register resets.
fn mp_masked(rig: &mut Rig, b: &[BarrierMode]) -> bool {
    let program = copies(rig.arch, &[(ONE, X, b[0]), (ONE, Y, b[1])]);
    rig.init(0, 0, 32);
    rig.reg(
        0,
        Direction::M2s.queue_reg(QueueId(0), regs::queue::M2S_RATE_LIMIT_MASK),
        RateLimitMask::new().into_bits(),
    );
    rig.write_ring(0, 0, Direction::M2s, &program.tx);
    rig.write_ring(0, 0, Direction::S2m, &program.rx);
    rig.doorbell(0, 0, Direction::S2m, 2);
    rig.doorbell(0, 0, Direction::M2s, 2);
    wait_word(rig, Y);
    let stale = word(rig, X) == 0;
    rig.idle();
    let counters = rig.system.counters();
    assert_eq!((counters.dmb, counters.dmb_masked), (0, 1));
    stale
}

#[test]
fn a_masked_dmb_does_nothing() {
    check("MP+masked", mp_masked, &[(&[Dmb, Plain], Allowed)]);
}

fn big_then_inc(rig: &mut Rig, chunks: &[BarrierMode], inc: BarrierMode) -> bool {
    let arch = rig.arch;
    let ones = vec![1; BIG as usize];
    let mut program = Program::default();
    for (n, barrier) in chunks.iter().enumerate() {
        let offset = n as u64 * u64::from(BIG);
        rig.poke(BIG_SRC, &ones);
        program.copy(arch, BIG_SRC, BIG_DST + offset, BIG, *barrier);
    }
    program.inc(arch, 5, inc);
    rig.start(0, 0, &program);
    wait_semaphore(rig, 1);
    rig.peek(BIG_DST, BIG as usize * chunks.len()).contains(&0)
}

#[test]
fn message_passing_over_a_semaphore() {
    check(
        "MP+sem",
        |rig, b| big_then_inc(rig, &b[..1], b[1]),
        &[
            (&[Plain, Plain], Allowed),
            (&[Dmb, Plain], Forbidden),
            (&[Wb, Plain], Forbidden),
            (&[Plain, Sow], Forbidden),
        ],
    );
}

#[test]
fn a_barrier_on_the_first_of_three_chunks_is_not_enough() {
    check(
        "MP+chunk",
        |rig, b| big_then_inc(rig, &b[..3], b[3]),
        &[
            (&[Dmb, Plain, Plain, Plain], Allowed),
            (&[Wb, Plain, Plain, Plain], Allowed),
            (&[Plain, Plain, Dmb, Plain], Forbidden),
            (&[Plain, Plain, Wb, Plain], Forbidden),
            (&[Plain, Plain, Plain, Sow], Forbidden),
        ],
    );
}

/// x:=1 in three chunks; marker→m ‖ H: poll m in host memory, read x.
#[test]
fn message_passing_over_a_marker() {
    fn shape(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        let arch = rig.arch;
        let marker = arch.spec().map.host.0;
        rig.poke(BIG_SRC, &vec![1; BIG as usize]);
        let mut program = Program::default();
        for (n, barrier) in b[..3].iter().enumerate() {
            program.copy(arch, BIG_SRC, BIG_DST + n as u64 * 65536, BIG, *barrier);
        }
        program.copy(arch, ONE, marker, 4, b[3]);
        rig.start(0, 0, &program);
        wait_word(rig, marker);
        rig.peek(BIG_DST, 3 * BIG as usize).contains(&0)
    }
    check(
        "MP+marker",
        shape,
        &[
            (&[Plain; 4], Allowed),
            (&[Plain, Plain, Dmb, Plain], Forbidden),
            (&[Plain, Plain, Wb, Plain], Forbidden),
            (&[Plain, Plain, Plain, Sow], Forbidden),
        ],
    );
}

/// One packet of five descriptors with the DMB on its FIRST one, then the semaphore.
#[test]
fn a_dmb_on_any_descriptor_holds_for_the_packet() {
    fn shape(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        let arch = rig.arch;
        rig.poke(BIG_SRC, &vec![1; 8192]);
        let mut program = Program::default();
        for n in 0..5u64 {
            let barrier = if n == 0 { b[0] } else { Plain };
            program.copy(arch, BIG_SRC, BIG_DST + n * 8192, 8192, barrier);
        }
        for (n, desc) in program.tx.iter_mut().enumerate() {
            let len_ctrl = desc.len_ctrl().with_first(n == 0).with_last(n == 4);
            desc.words[0] = len_ctrl.with_concat(n < 4).into_bits();
        }
        program.inc(arch, 5, Plain);
        rig.start(0, 0, &program);
        wait_semaphore(rig, 1);
        let stale = rig.peek(BIG_DST, 5 * 8192).contains(&0);
        rig.idle();
        assert_eq!(rig.system.counters().packets, 2);
        stale
    }
    check(
        "MP+meta",
        shape,
        &[(&[Plain], Allowed), (&[Dmb], Forbidden)],
    );
}

/// Eight no-op self-copies between data and flag do not help.
#[test]
fn padding_is_no_barrier() {
    fn shape(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        let mut list = vec![(ONE, X, b[0])];
        list.extend([(R0, R0, Plain); 8]);
        list.push((ONE, Y, b[1]));
        let program = copies(rig.arch, &list);
        rig.start(0, 0, &program);
        wait_word(rig, Y);
        word(rig, X) == 0
    }
    check(
        "MP+pad",
        shape,
        &[
            (&[Plain, Plain], Allowed),
            (&[Dmb, Plain], Forbidden),
            (&[Wb, Plain], Forbidden),
            (&[Plain, Sow], Forbidden),
        ],
    );
}

/// The data packet sits in the last slot of the ring, the flag in the first slot of the next lap. The
/// data goes to slow host memory, so that the flag overtakes it wherever it may.
#[test]
fn barriers_hold_across_the_wrap() {
    let overtakes = |arch: Arch, b: [BarrierMode; 2]| {
        let mut rig = Rig::with(slow_host(arch, &[]), 0);
        rig.poke(ONE, &1u32.to_le_bytes());
        let x = arch.spec().map.host.0;
        let mut list = vec![(R0, R0, Plain); 31];
        list.push((ONE, x, b[0]));
        let program = copies(arch, &list);
        rig.start(0, 0, &program);
        // Slot 0 can be rewritten once the first lap has been fetched: it has when the packet before
        // the data is complete.
        wait_current(&mut rig, 31);
        let (tx, rx) = second_lap(arch, ONE, Y, b[1]);
        rig.write_ring(0, 0, Direction::M2s, &[tx]);
        rig.write_ring(0, 0, Direction::S2m, &[rx]);
        rig.doorbell(0, 0, Direction::S2m, 1);
        rig.doorbell(0, 0, Direction::M2s, 1);
        wait_word(&mut rig, Y);
        word(&mut rig, x) == 0
    };
    for arch in Arch::ALL {
        assert!(overtakes(arch, [Plain, Plain]), "{arch}");
        assert!(!overtakes(arch, [Dmb, Plain]), "{arch}");
        assert!(!overtakes(arch, [Wb, Plain]), "{arch}");
        assert!(arch == Arch::V2 || !overtakes(arch, [Plain, Sow]), "{arch}");
    }
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

fn second_lap(arch: Arch, src: u64, dst: u64, barrier: BarrierMode) -> (Descriptor, Descriptor) {
    let (tx, rx) = build_copy(
        arch,
        Addr(src),
        Addr(dst),
        4,
        RingId::FIRST_LAP.next(),
        barrier,
        CopyFlags::default(),
    )
    .unwrap();
    (tx.into(), rx.into())
}

/// Until the current pointer of both rings has left every slot below `slot` behind.
fn wait_current(rig: &mut Rig, slot: u32) {
    for direction in Direction::ALL {
        let current = direction.queue_reg(QueueId(0), regs::queue::DCP);
        let passed = |pointer: RingPointer| pointer.index() >= slot || pointer.ring_id() != 1;
        while !passed(RingPointer::from_bits(rig.read_reg(0, current))) {}
    }
}

#[test]
fn read_after_write_needs_a_dmb() {
    fn shape(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        let program = copies(rig.arch, &[(ONE, X, b[0]), (X, Y, b[1])]);
        rig.start(0, 0, &program);
        rig.idle();
        word(rig, Y) == 0
    }
    check(
        "RAW",
        shape,
        &[
            (&[Plain, Plain], Allowed),
            (&[Dmb, Plain], Forbidden),
            (&[Wb, Plain], Allowed),
            (&[Sow, Sow], Allowed),
        ],
    );
}

#[test]
fn write_after_read_and_write_after_write_need_nothing() {
    fn war(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        let program = copies(rig.arch, &[(X, Y, b[0]), (ONE, X, b[1])]);
        rig.start(0, 0, &program);
        rig.idle();
        word(rig, Y) == 1
    }
    fn waw(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        let program = copies(rig.arch, &[(ONE, X, b[0]), (TWO, X, b[1])]);
        rig.start(0, 0, &program);
        rig.idle();
        word(rig, X) == 1
    }
    fn waw_overlap(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        rig.poke(ONE, &[0xa; 8]);
        rig.poke(TWO, &[0xb; 8]);
        let mut program = Program::default();
        program.copy(rig.arch, ONE, X, 8, b[0]);
        program.copy(rig.arch, TWO, X + 4, 8, b[1]);
        rig.start(0, 0, &program);
        rig.idle();
        rig.peek(X + 4, 4).contains(&0xa)
    }
    let rows: [(&[BarrierMode], Expect); 4] = [
        (&[Plain, Plain], Forbidden),
        (&[Dmb, Plain], Forbidden),
        (&[Wb, Plain], Forbidden),
        (&[Plain, Sow], Forbidden),
    ];
    check("WAR", war, &rows);
    check("WAW", waw, &rows);
    check("WAW+overlap", waw_overlap, &rows);
}

fn two_queues(
    rig: &mut Rig,
    first: &[(u64, u64, BarrierMode)],
    second: &[(u64, u64, BarrierMode)],
) {
    let arch = rig.arch;
    let (first, second) = (copies(arch, first), copies(arch, second));
    rig.start(0, 0, &first);
    rig.start(0, 1, &second);
    rig.idle();
}

#[test]
fn two_writes_in_opposite_orders() {
    fn shape(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        two_queues(
            rig,
            &[(ONE, X, b[0]), (ONE, Y, b[1])],
            &[(TWO, Y, b[2]), (TWO, X, b[3])],
        );
        word(rig, X) == 1 && word(rig, Y) == 2
    }
    check(
        "2+2W",
        shape,
        &[
            (&[Plain; 4], Allowed),
            (&[Dmb, Plain, Dmb, Plain], Forbidden),
            (&[Wb, Plain, Wb, Plain], Forbidden),
            (&[Plain, Sow, Plain, Sow], Forbidden),
        ],
    );
}

#[test]
fn store_buffering_needs_a_dmb() {
    fn shape(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        rig.poke(R0, &[9; 4]);
        rig.poke(R1, &[9; 4]);
        two_queues(
            rig,
            &[(ONE, X, b[0]), (Y, R0, b[1])],
            &[(ONE, Y, b[2]), (X, R1, b[3])],
        );
        word(rig, R0) == 0 && word(rig, R1) == 0
    }
    check(
        "SB",
        shape,
        &[
            (&[Plain; 4], Allowed),
            (&[Dmb, Plain, Dmb, Plain], Forbidden),
            (&[Wb, Plain, Wb, Plain], Allowed),
            (&[Plain, Sow, Plain, Sow], Allowed),
        ],
    );
}

#[test]
fn load_buffering_cannot_happen() {
    fn shape(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        two_queues(
            rig,
            &[(X, R0, b[0]), (ONE, Y, b[1])],
            &[(Y, R1, b[2]), (ONE, X, b[3])],
        );
        word(rig, R0) == 1 && word(rig, R1) == 1
    }
    check(
        "LB",
        shape,
        &[(&[Plain; 4], Forbidden), (&[Wb; 4], Forbidden)],
    );
}

#[test]
fn write_then_flag_against_read_flag_then_write() {
    fn shape(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        two_queues(
            rig,
            &[(TWO, X, b[0]), (ONE, Y, b[1])],
            &[(Y, R0, Plain), (ONE, X, Plain)],
        );
        word(rig, R0) == 1 && word(rig, X) == 2
    }
    check(
        "S",
        shape,
        &[
            (&[Plain, Plain], Allowed),
            (&[Dmb, Plain], Forbidden),
            (&[Wb, Plain], Forbidden),
            (&[Plain, Sow], Forbidden),
        ],
    );
}

/// Q0: x:=1, inc s ‖ a sequencer waits for s and rings Q1: y:=x. Outcome: y=0.
#[test]
fn a_sequencer_hop() {
    fn shape(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        let arch = rig.arch;
        let consumer = copies(arch, &[(X, Y, Plain)]);
        rig.init(1, 0, 32);
        rig.write_ring(1, 0, Direction::M2s, &consumer.tx);
        rig.write_ring(1, 0, Direction::S2m, &consumer.rx);
        let bell = |direction| SequencerOp::Doorbell {
            engine: EngineId(1),
            queue: QueueId(0),
            direction,
            count: 1,
        };
        let wait = SequencerOp::Wait {
            block: 0,
            semaphore: 5,
            op: WaitOp::GeAndDec(1),
        };
        let program = vec![wait, bell(Direction::S2m), bell(Direction::M2s)];
        rig.system.start_sequencer("hop", program).unwrap();
        let mut producer = copies(arch, &[(ONE, X, b[0])]);
        producer.inc(arch, 5, b[1]);
        rig.start(0, 0, &producer);
        rig.idle();
        assert_eq!(rig.system.semaphore(0, 5), 0);
        word(rig, Y) == 0
    }
    check(
        "hop",
        shape,
        &[
            (&[Plain, Plain], Allowed),
            (&[Dmb, Plain], Forbidden),
            (&[Wb, Plain], Forbidden),
            (&[Plain, Sow], Forbidden),
        ],
    );
}

/// Q0: x:=1 ‖ H reads x, rings Q1: y:=1 ‖ H2 reads y, then x.
#[test]
fn a_value_observed_orders() {
    fn shape(rig: &mut Rig, _: &[BarrierMode]) -> bool {
        let flag = copies(rig.arch, &[(ONE, Y, Plain)]);
        rig.init(0, 1, 32);
        rig.write_ring(0, 1, Direction::M2s, &flag.tx);
        rig.write_ring(0, 1, Direction::S2m, &flag.rx);
        let data = copies(rig.arch, &[(ONE, X, Plain)]);
        rig.start(0, 0, &data);
        wait_word(rig, X);
        rig.doorbell(0, 1, Direction::S2m, 1);
        rig.doorbell(0, 1, Direction::M2s, 1);
        wait_word(rig, Y);
        word(rig, X) == 0
    }
    check("WRC", shape, &[(&[], Forbidden)]);
}

#[test]
fn two_engines_each_guard_their_own() {
    fn shape(rig: &mut Rig, b: &[BarrierMode]) -> bool {
        let arch = rig.arch;
        for (engine, cell) in [(0, X), (1, Y)] {
            let mut program = copies(arch, &[(ONE, cell, b[0])]);
            program.inc(arch, 5, b[1]);
            rig.start(engine, 0, &program);
        }
        wait_semaphore(rig, 2);
        word(rig, X) == 0 || word(rig, Y) == 0
    }
    check(
        "two engines",
        shape,
        &[
            (&[Plain, Plain], Allowed),
            (&[Dmb, Plain], Forbidden),
            (&[Wb, Plain], Forbidden),
            (&[Plain, Sow], Forbidden),
        ],
    );
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
        let later = rig.system.now() + Duration::from_ns(5_000);
        assert_eq!(rig.wait(Condition::Until(later)), WaitOutcome::Met);
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
    for seed in 0..FORBIDDEN_SEEDS {
        let arch = Arch::V4;
        let edits = [("jitter = \"0ns\"", "jitter = \"3us\"")];
        let mut rig = Rig::with(config(arch, &edits), seed);
        rig.poke(ONE, &1u32.to_le_bytes());
        rig.poke(BIG_SRC, &vec![1; BIG as usize]);
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
        rig.wait(Condition::Until(rig.system.now() + MS));
        assert_eq!(word(&mut rig, X), 1);
        let status = rig.system.engine_status(EngineId(0)).unwrap();
        (rig.system.semaphore(0, 5), status.causes)
    };
    assert_eq!(run(Arch::V3, 0), (0, [0, 0]));
    assert_eq!(run(Arch::V4, 0), (1, [0, 0]));
    assert_eq!(run(Arch::V4, 24), (0, [0, 1 << 1]));
}
