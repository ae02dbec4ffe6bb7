//! Completion rings: a record for each descriptor, phases, heads, coalescing.

mod common;

use common::{DST, MS, Program, Rig, SRC, config, pattern};
use udma_sim::arch::regs::{
    self, CompCfg, Direction, QueueSwCtrl, RingPointer, global, iofic, queue,
};
use udma_sim::arch::{Arch, EngineId, QueueId};
use udma_sim::desc::BarrierMode;
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, WaitOutcome};
use udma_sim::units::Addr;

/// Completion rings of both halves: a record for each descriptor, phases, lengths, heads, and the
/// packet's own writes visible before its records.
#[test]
fn completion_rings_record_every_descriptor() {
    const TX_RING: u64 = 0x1_0000;
    const RX_RING: u64 = 0x2_0000;
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        rig.poke(SRC, &pattern(65536, 6));
        for (direction, base) in [(Direction::M2s, TX_RING), (Direction::S2m, RX_RING)] {
            rig.reg(
                0,
                direction.queue_reg(QueueId(5), queue::CRBP_LOW),
                base as u32,
            );
            let on = CompCfg::new().with_en_comp_ring_update(true).into_bits();
            rig.reg(
                0,
                direction.queue_reg(QueueId(5), queue::comp_cfg(direction)),
                on,
            );
        }
        rig.reg(0, Direction::S2m.global_reg(global::S2M_COMP_CFG_1C), 2);
        // A packet of two Tx descriptors that fills one Rx descriptor and part of another, then a
        // packet of 64 KiB.
        let mut program = Program::default();
        for (src, dst, len) in [
            (SRC, DST, 100),
            (SRC + 100, DST + 4096, 60),
            (SRC, DST + 8192, 65536),
        ] {
            program.copy(arch, src, dst, len, BarrierMode::None);
        }
        program.tx[0].words[0] &= !(1 << 27);
        program.tx[1].words[0] &= !(1 << 26);
        program.rx[0].words[0] = program.rx[0].words[0] & !0xffff | 90;
        program.rx[1].words[0] = program.rx[1].words[0] & !0xffff | 200;
        rig.start(0, 5, &program);
        let record = |n: u64| Condition::Word {
            at: Addr(RX_RING + 8 * n),
            value: if n == 2 { 0x4d00_0000 } else { 0x4500_0000 },
        };
        assert_eq!(rig.wait(record(2)), WaitOutcome::Met);
        assert!(rig.peek(DST + 8192, 65536) == pattern(65536, 6), "{arch}");
        rig.idle();
        let words = |rig: &mut Rig, at: u64, count: usize| -> Vec<u32> {
            let bytes = rig.peek(at, 4 * count);
            bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|word| u32::from_le_bytes(*word))
                .collect()
        };
        // FIRST 0x04…, LAST 0x08…, BUF1_USED 0x40…, phase 1 0x01….
        assert_eq!(
            words(&mut rig, TX_RING, 4),
            [0x0500_0000, 0x0900_0000, 0x0d00_0000, 0]
        );
        assert_eq!(
            words(&mut rig, RX_RING, 8),
            [0x4500_0000, 90, 0x4900_0000, 70, 0x4d00_0000, 0, 0, 0]
        );
        for direction in Direction::ALL {
            for register in [queue::CRHP, queue::CRHP_INTERNAL] {
                let head = rig.read_reg(0, direction.queue_reg(QueueId(5), register));
                assert_eq!(head, 0x4000_0003, "{arch} {direction:?}");
            }
        }
    }
}

#[test]
fn completion_rings_wrap_with_their_phase_and_report_bad_addresses() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    let on = CompCfg::new().with_en_comp_ring_update(true).into_bits();
    rig.reg(
        0,
        Direction::S2m.queue_reg(QueueId(0), queue::CRBP_LOW),
        0x2_0000,
    );
    rig.reg(
        0,
        Direction::S2m.queue_reg(QueueId(0), queue::S2M_COMP_CFG),
        on,
    );
    let mut program = Program::copies(arch, 32, 64);
    rig.start(0, 0, &program);
    rig.idle();
    for desc in program.tx.iter_mut().chain(&mut program.rx) {
        desc.words[0] = desc.words[0] & !(3 << 24) | 2 << 24;
    }
    rig.write_ring(0, 0, Direction::M2s, &program.tx);
    rig.write_ring(0, 0, Direction::S2m, &program.rx);
    rig.doorbell(0, 0, Direction::S2m, 3);
    rig.doorbell(0, 0, Direction::M2s, 3);
    rig.idle();
    // Records of 4 words, the reset size; the second lap has phase 2.
    let phase = |rig: &mut Rig, n: u64| rig.peek(0x2_0000 + 16 * n + 3, 1)[0] & 3;
    assert_eq!(phase(&mut rig, 2), 2);
    assert_eq!(phase(&mut rig, 3), 1);
    assert_eq!(phase(&mut rig, 31), 1);
    let head = rig.read_reg(0, Direction::S2m.queue_reg(QueueId(0), queue::CRHP));
    assert_eq!(head, 0x8000_0003);

    let mut rig = Rig::new(arch);
    rig.reg(
        0,
        Direction::S2m.queue_reg(QueueId(0), queue::CRBP_HIGH),
        0xffff_0000,
    );
    rig.start(0, 0, &Program::copies(arch, 1, 64));
    rig.pass(MS);
    let status = rig.system.engine_status(EngineId(0)).unwrap();
    assert_eq!(status.causes, [0, 1 << 14]);
}

const RING: u64 = 0x2_0000;

/// A machine whose queue 0 has an Rx completion ring at [`RING`], records of 16 bytes and a descriptor
/// ring of 32, and waits so many cycles for records to coalesce.
fn coalescing(arch: Arch, cycles: u32, disabled: bool) -> Rig {
    let wait = format!("completion_coalesce_cycles = {cycles}");
    let edits = [("completion_coalesce_cycles = 64", wait.as_str())];
    let mut rig = Rig::with(config(arch, &edits), 0);
    let register = |offset| Direction::S2m.queue_reg(QueueId(0), offset);
    rig.reg(0, register(queue::CRBP_LOW), RING as u32);
    let cfg = CompCfg::new()
        .with_en_comp_ring_update(true)
        .with_dis_comp_coal(disabled);
    rig.reg(0, register(queue::S2M_COMP_CFG), cfg.into_bits());
    rig.init(0, 0, 32);
    let mut program = Program::copies(arch, 32, 64);
    // The sixth packet interrupts.
    program.rx[5].words[0] |= 1 << 28;
    rig.write_ring(0, 0, Direction::M2s, &program.tx);
    rig.write_ring(0, 0, Direction::S2m, &program.rx);
    rig
}

/// Lets the next packets complete; returns how many records were issued and are visible, by the head
/// registers, and how many lie in memory.
fn run(rig: &mut Rig, packets: u32) -> [u32; 3] {
    for direction in [Direction::S2m, Direction::M2s] {
        rig.doorbell(0, 0, direction, packets);
    }
    rig.pass(Duration::from_ns(20_000));
    let head = |rig: &mut Rig, register| {
        let value = rig.read_reg(0, Direction::S2m.queue_reg(QueueId(0), register));
        let pointer = RingPointer::from_bits(value);
        pointer.index() + 32 * (u32::from(pointer.ring_id()) - 1)
    };
    let heads = [queue::CRHP_INTERNAL, queue::CRHP].map(|register| head(rig, register));
    let records = rig.peek(RING, 32 * 16);
    let there = records.chunks(16).filter(|record| record[3] != 0).count();
    [heads[0], heads[1], there as u32]
}

/// Records wait until their write reaches a burst boundary (16 of them) or the end of the ring, or one of
/// them interrupts; the internal head runs ahead meanwhile.
#[test]
fn records_are_written_together() {
    for arch in Arch::ALL {
        let mut rig = coalescing(arch, 1_000_000, false);
        rig.reg(0, regs::GEN + iofic::GROUP_BYTES + iofic::MASK, 0);
        assert_eq!(run(&mut rig, 5), [5, 0, 0], "{arch}");
        assert_eq!(rig.system.take_interrupt(), None);
        assert_eq!(run(&mut rig, 1), [6, 6, 6], "the interrupt does not wait");
        assert_eq!(rig.system.take_interrupt().map(|i| i.group), Some(1));
        assert_eq!(run(&mut rig, 9), [15, 6, 6]);
        assert_eq!(run(&mut rig, 1), [16, 16, 16], "a boundary");
        assert_eq!(run(&mut rig, 15), [31, 16, 16]);
        assert_eq!(run(&mut rig, 1), [32, 32, 32], "the end of the ring");
    }
}

#[test]
fn coalescing_can_be_switched_off() {
    let mut rig = coalescing(Arch::V3, 1_000_000, true);
    assert_eq!(run(&mut rig, 3), [3, 3, 3]);
    assert_eq!(run(&mut rig, 8), [11, 11, 11]);
}

/// Records that nobody joins are written when they have waited long enough, and the machine is not idle
/// before.
#[test]
fn records_wait_no_longer_than_they_should() {
    let arch = Arch::V3;
    let cycles = |wait: u32, disabled: bool| {
        let mut rig = coalescing(arch, wait, disabled);
        for direction in [Direction::S2m, Direction::M2s] {
            rig.doorbell(0, 0, direction, 1);
        }
        rig.idle();
        assert_eq!(rig.peek(RING, 4), [0, 0, 0, 0x4d]);
        rig.system.cycles().0
    };
    let alone = cycles(64, true);
    assert_eq!(cycles(0, false), alone);
    assert_eq!(cycles(64, false), alone + 64);
    assert_eq!(cycles(5_000, false), alone + 5_000);
}

/// A reset of the ring takes no record back that was issued, and the next one starts afresh.
#[test]
fn gathered_records_survive_a_reset() {
    let mut rig = coalescing(Arch::V3, 1_000_000, false);
    assert_eq!(run(&mut rig, 3), [3, 0, 0]);
    for direction in Direction::ALL {
        let reset = QueueSwCtrl::new().with_rst_q(true).into_bits();
        rig.reg(
            0,
            direction.queue_reg(QueueId(0), queue::sw_ctrl(direction)),
            reset,
        );
    }
    // The next record does not continue them: they are sent.
    assert_eq!(run(&mut rig, 1), [1, 0, 3]);
    assert_eq!(run(&mut rig, 5), [6, 6, 6]);
}
