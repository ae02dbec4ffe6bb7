//! The engine against hand-written rings.

mod common;

use common::{DST, MS, Program, Rig, SRC, config, pattern};
use proptest::prelude::*;
use udma_sim::arch::regs::{
    Direction, OutstandingM2s, OutstandingS2mWr, QueueStatus, global, queue,
};
use udma_sim::arch::{Arch, EngineId, QueueId};
use udma_sim::desc::{BarrierMode, CopyFlags, Descriptor, RingId, build_copy};
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, WaitOutcome};
use udma_sim::units::Addr;

#[test]
fn a_copy_arrives() {
    for arch in Arch::ALL {
        for len in [1u32, 4, 31, 32, 33, 255, 256, 257, 4096, 65535, 65536] {
            for (src, dst) in [(SRC, DST), (SRC + 3, DST + 13)] {
                let mut rig = Rig::new(arch);
                let data = pattern(len as usize, 1);
                rig.poke(src, &data);
                let mut program = Program::default();
                program.copy(arch, src, dst, len, BarrierMode::None);
                rig.start(0, 0, &program);
                rig.idle();
                assert_eq!(rig.peek(dst, len as usize), data, "{arch} {len} {src:x}");
                assert!(rig.peek(dst + u64::from(len), 8) == [0; 8]);
                assert!(rig.peek(dst - 8, 8) == [0; 8]);
                let counters = rig.system.counters();
                assert_eq!(counters.bytes_written, u64::from(len));
                assert_eq!(counters.packets, 1);
            }
        }
    }
}

/// Sources and destinations of `n` copies that share no byte.
fn place(n: u64) -> (u64, u64) {
    (0x100_0000 + n * 0x2_0000, 0x1_0000_0000 + n * 0x2_0000)
}

#[test]
fn sixteen_queues_of_four_engines_at_once() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        for engine in 0..4 {
            for q in 0..16u8 {
                let mut program = Program::default();
                for k in 0..3u64 {
                    let n = u64::from(engine) * 48 + u64::from(q) * 3 + k;
                    let (src, dst) = place(n);
                    rig.poke(src, &pattern(5000, n as u8));
                    program.copy(arch, src + k, dst + 2 * k, 4990, BarrierMode::None);
                }
                rig.start(engine, q, &program);
            }
        }
        rig.idle();
        for n in 0..192 {
            let (_, dst) = place(n);
            let k = n % 3;
            let data = &pattern(5000, n as u8)[k as usize..][..4990];
            assert!(rig.peek(dst + 2 * k, 4990) == data, "{arch} copy {n}");
        }
        let counters = rig.system.counters();
        assert_eq!(counters.packets, 192);
        assert_eq!(counters.bytes_read, 192 * 4990);
        assert_eq!(counters.bytes_written, 192 * 4990);
        assert_eq!(
            (counters.tx_descriptors, counters.rx_descriptors),
            (192, 192)
        );
    }
}

/// One packet of several Tx descriptors fills Rx descriptors of other lengths; the last one is not
/// filled, and the next packet starts on a fresh one.
#[test]
fn packets_fill_rx_descriptors_in_ring_order() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    let data = pattern(3000, 9);
    rig.poke(SRC, &data);
    let mut program = Program::default();
    for (offset, len) in [(0u64, 1000u32), (1000, 1), (1001, 1999)] {
        program.copy(arch, SRC + offset, 0, len, BarrierMode::None);
    }
    program.copy(arch, SRC, DST + 0x4000, 100, BarrierMode::None);
    for (n, desc) in program.tx.iter_mut().enumerate().take(3) {
        desc.words[0] = desc
            .len_ctrl()
            .with_first(n == 0)
            .with_last(n == 2)
            .into_bits();
    }
    let flag = program.rx.pop().unwrap();
    program.rx.clear();
    let mut rx = Program::default();
    for (dst, len) in [(DST, 1500u32), (DST + 2048, 1), (DST + 4000, 4000)] {
        rx.copy(arch, 0, dst, len, BarrierMode::None);
    }
    program.rx = rx.rx;
    program.rx.push(flag);
    rig.start(0, 0, &program);
    rig.idle();
    assert!(rig.peek(DST, 1500) == data[..1500]);
    assert!(rig.peek(DST + 2048, 1) == data[1500..1501]);
    assert!(rig.peek(DST + 4000, 1499) == data[1501..]);
    assert!(rig.peek(DST + 4000 + 1499, 8) == [0; 8]);
    assert!(rig.peek(DST + 0x4000, 100) == data[..100]);
    let counters = rig.system.counters();
    assert_eq!(
        (
            counters.packets,
            counters.tx_descriptors,
            counters.rx_descriptors
        ),
        (2, 4, 4)
    );
    assert_eq!(counters.rx_bytes_unused, 4000 - 1499);
}

#[test]
fn a_late_rx_ring_stalls_the_queue_and_then_it_proceeds() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    rig.poke(SRC, &pattern(200_000, 3));
    let mut program = Program::default();
    for n in 0..4u64 {
        program.copy(
            arch,
            SRC + n * 50_000,
            DST + n * 50_000,
            50_000,
            BarrierMode::None,
        );
    }
    rig.init(0, 0, 32);
    // The queue may wait for ever, as drivers have it.
    for direction in Direction::ALL {
        let timeout = direction.global_reg(global::comp_ack_timeout(direction));
        rig.reg(0, timeout, 0);
    }
    rig.write_ring(0, 0, Direction::M2s, &program.tx);
    rig.write_ring(0, 0, Direction::S2m, &program.rx);
    rig.doorbell(0, 0, Direction::M2s, 4);
    let WaitOutcome::Stuck(waiters) = rig.wait(Condition::Idle) else {
        panic!("not stuck");
    };
    assert_eq!(waiters.len(), 1);
    assert_eq!(
        waiters[0].to_string(),
        "e0 queue 0 waits for Rx descriptors, tx slot 0, since cycle 264"
    );
    // The FIFO is full and no more: 2296 beats on V3.
    assert_eq!(rig.system.counters().bytes_read, 2296 * 32);
    for _ in 0..4 {
        rig.doorbell(0, 0, Direction::S2m, 1);
    }
    rig.idle();
    assert!(rig.peek(DST, 200_000) == pattern(200_000, 3));
}

#[test]
fn q_dmb_shows_while_the_queue_is_suspended() {
    let arch = Arch::V2;
    let mut rig = Rig::new(arch);
    let mut program = Program::default();
    program.copy(arch, SRC, DST, 65536, BarrierMode::Dmb);
    program.copy(arch, SRC, DST, 65536, BarrierMode::None);
    rig.start(0, 0, &program);
    let status = Direction::M2s.queue_reg(QueueId(0), queue::STATUS);
    let mut seen = [false; 2];
    for _ in 0..20 {
        let value = QueueStatus::from_bits(rig.read_reg(0, status));
        seen[usize::from(value.q_dmb())] |= value.q_used() > 0;
    }
    assert_eq!(
        seen,
        [true, true],
        "suspended for the first packet, not for the second"
    );
    rig.idle();
    let value = QueueStatus::from_bits(rig.read_reg(0, status));
    assert_eq!((value.q_dmb(), value.q_used()), (false, 0));
}

#[test]
fn pointers_wrap_with_their_phase() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    rig.init(0, 3, 32);
    let (tx, rx): (Vec<_>, Vec<_>) = (1..=5u8)
        .flat_map(|lap| (0..32).map(move |_| lap))
        .map(|lap| {
            let ring = RingId::from_bits(lap);
            let flags = CopyFlags::default();
            build_copy(
                arch,
                Addr(SRC),
                Addr(DST),
                4,
                ring,
                BarrierMode::None,
                flags,
            )
            .unwrap()
        })
        .map(|(tx, rx)| (Descriptor::from(tx), Descriptor::from(rx)))
        .unzip();
    for lap in 0..5 {
        for part in 0..2 {
            let at = lap * 32 + part * 16;
            let slots = |all: &[Descriptor]| all[at..at + 16].to_vec();
            for (direction, descs) in [(Direction::S2m, slots(&rx)), (Direction::M2s, slots(&tx))] {
                let base = common::ring_base(0, 3, direction).0 + part as u64 * 256;
                let bytes: Vec<u8> = descs.iter().flat_map(|desc| desc.to_bytes()).collect();
                rig.poke(base, &bytes);
                rig.doorbell(0, 3, direction, 16);
            }
            rig.idle();
        }
        for direction in Direction::ALL {
            for register in [queue::DRHP, queue::DRTP, queue::DCP] {
                let value = rig.read_reg(0, direction.queue_reg(QueueId(3), register));
                // Lap n ends at slot 0 of lap n + 1, whose phase is n + 2 modulo 4.
                assert_eq!(
                    value,
                    ((lap as u32 + 2) % 4) << 30,
                    "lap {lap} {register:#x}"
                );
            }
        }
    }
    assert_eq!(
        rig.system.engine_status(EngineId(0)).unwrap().causes,
        [0, 0]
    );
    assert_eq!(rig.system.counters().packets, 160);
}

#[test]
fn packet_limits_come_from_the_registers() {
    let arch = Arch::V3;
    let limit = arch.spec().limits.tx_descs_per_packet as usize;
    for (descs, bytes, bit) in [
        (limit, 4u32, 0u32),
        (limit + 1, 4, 1 << 14),
        (15, 65536, 0),
        (16, 65536, 1 << 13),
    ] {
        let mut rig = Rig::new(arch);
        let mut program = Program::default();
        for n in 0..descs as u64 {
            program.copy(arch, SRC, DST + n * 65536, bytes, BarrierMode::None);
        }
        for (n, desc) in program.tx.iter_mut().enumerate() {
            desc.words[0] = (desc.len_ctrl().with_first(n == 0))
                .with_last(n == descs - 1)
                .into_bits();
        }
        if bytes == 4 {
            // One Rx descriptor for all: there is a limit to those too.
            program.rx.truncate(1);
            let word = &mut program.rx[0].words[0];
            *word = *word & !0xffff | (4 * descs as u32);
        }
        rig.start(0, 0, &program);
        rig.pass(MS);
        let status = rig.system.engine_status(EngineId(0)).unwrap();
        assert_eq!(
            status.causes,
            [bit, 0],
            "{descs} descriptors of {bytes} bytes"
        );
        assert_eq!(status.counters.packets, u64::from(bit == 0));
    }
}

/// A DMA write to a doorbell register rings it; a DMA read of a register returns its value.
#[test]
fn registers_can_be_reached_by_dma() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    let other = arch.spec().map.engine_base(EngineId(1)).unwrap().0;
    rig.poke(SRC, &pattern(64, 1));
    let mut chained = Program::default();
    chained.copy(arch, SRC, DST, 64, BarrierMode::None);
    rig.init(1, 0, 32);
    rig.write_ring(1, 0, Direction::M2s, &chained.tx);
    rig.write_ring(1, 0, Direction::S2m, &chained.rx);
    rig.poke(SRC + 0x1000, &1u32.to_le_bytes());
    let mut program = Program::default();
    for direction in [Direction::S2m, Direction::M2s] {
        let bell = other + direction.queue_reg(QueueId(0), queue::DRTP_INC);
        program.copy(arch, SRC + 0x1000, bell, 4, BarrierMode::None);
    }
    let length = other + Direction::M2s.queue_reg(QueueId(0), queue::DRL);
    program.copy(arch, length, DST + 0x1000, 4, BarrierMode::None);
    rig.start(0, 0, &program);
    rig.idle();
    assert!(rig.peek(DST, 64) == pattern(64, 1));
    assert!(rig.peek(DST + 0x1000, 4) == 32u32.to_le_bytes());
}

/// A13: fewer reads or writes in flight make a long copy slower, never wrong.
#[test]
fn outstanding_limits_bound_what_is_in_flight() {
    let arch = Arch::V3;
    let cycles = |reads: u8, writes: u8| {
        let mut rig = Rig::new(arch);
        rig.reg(
            0,
            Direction::M2s.global_reg(global::M2S_OSTAND_CFG),
            OutstandingM2s::new()
                .with_data_rd(reads)
                .with_desc_rd(128)
                .into_bits(),
        );
        rig.reg(
            0,
            Direction::S2m.global_reg(global::S2M_OSTAND_CFG_WR),
            OutstandingS2mWr::new().with_data_wr(writes).into_bits(),
        );
        rig.poke(SRC, &pattern(65536, 1));
        let mut program = Program::default();
        program.copy(arch, SRC, DST, 65536, BarrierMode::None);
        rig.start(0, 0, &program);
        rig.idle();
        assert!(rig.peek(DST, 65536) == pattern(65536, 1));
        rig.system.cycles().0
    };
    let full = cycles(128, 128);
    // 65536 bytes are 2048 beats.
    assert!((2048..2048 + 1200).contains(&full), "{full}");
    // One by one, each of 256 bursts takes at least the way there and back and the memory's own latency.
    let config = config(arch, &[]);
    let (hbm, timing) = (&config.values.fabric.hbm, &config.memory.timing);
    let memory_ns = 1e9 / config.memory.device.clock.0 as f64;
    let one_by_one = |access: Duration, latency: u32| {
        let way = (hbm.request + access + hbm.response).as_ns_f64();
        let ns = way + f64::from(latency + timing.burst) * memory_ns;
        (256.0 * ns * config.values.clock.udma.0 as f64 / 1e9) as u64
    };
    let reads = one_by_one(hbm.read, timing.read_latency);
    let writes = one_by_one(hbm.write, timing.write_latency);
    assert!(reads > 3 * full && cycles(1, 128) > reads, "{reads}");
    assert!(writes > 2 * full && cycles(128, 1) > writes, "{writes}");
    assert!(cycles(4, 128) > cycles(8, 128));
}

#[test]
fn doorbells_beyond_the_ring_are_ignored_and_counted() {
    let arch = Arch::V2;
    let mut rig = Rig::new(arch);
    let mut program = Program::default();
    for _ in 0..32 {
        program.copy(arch, SRC, DST, 4, BarrierMode::None);
    }
    rig.init(0, 0, 32);
    rig.write_ring(0, 0, Direction::M2s, &program.tx);
    rig.write_ring(0, 0, Direction::S2m, &program.rx);
    rig.doorbell(0, 0, Direction::S2m, 33);
    rig.doorbell(0, 0, Direction::M2s, 0xffff_ffff);
    rig.idle();
    let counters = rig.system.counters();
    assert_eq!((counters.packets, counters.doorbells), (32, 2));
    assert_eq!(counters.doorbell_overflow, 1 + 0xff_ffff - 32);
    // A queue nobody configured has no ring: everything is ignored.
    rig.doorbell(0, 1, Direction::M2s, 5);
    rig.idle();
    assert_eq!(rig.system.counters().packets, 32);
}

/// A ring made shorter than what its doorbells cover has no room.
#[test]
fn a_ring_that_shrinks_under_its_descriptors_takes_no_more() {
    let mut rig = Rig::new(Arch::V3);
    let register = |offset| Direction::M2s.queue_reg(QueueId(0), offset);
    rig.reg(0, register(queue::DRL), 32);
    rig.doorbell(0, 0, Direction::M2s, 20);
    rig.reg(0, register(queue::DRL), 16);
    rig.doorbell(0, 0, Direction::M2s, 1);
    let status = QueueStatus::from_bits(rig.read_reg(0, register(queue::STATUS)));
    assert_eq!((status.q_used(), status.q_full()), (20, true));
    assert_eq!(rig.system.counters().doorbell_overflow, 1);
}

#[test]
fn reserved_barrier_bits_are_ignored_and_counted() {
    let arch = Arch::V2;
    let mut rig = Rig::new(arch);
    let mut program = Program::default();
    for _ in 0..2 {
        program.copy(arch, SRC, DST, 4, BarrierMode::None);
    }
    program.rx[0].words[0] |= 1 << 29;
    program.rx[1].words[0] |= 1 << 30;
    rig.start(0, 0, &program);
    rig.idle();
    let counters = rig.system.counters();
    assert_eq!(
        (
            counters.reserved_bits,
            counters.strong_order_writes,
            counters.dmb
        ),
        (2, 0, 0)
    );
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut rig = Rig::with(
            config(Arch::V3, &[("jitter = \"0ns\"", "jitter = \"1us\"")]),
            seed,
        );
        for engine in 0..2 {
            for q in 0..8 {
                let mut program = Program::default();
                for n in 0..4 {
                    program.copy(
                        Arch::V3,
                        SRC + n * 99,
                        DST + n * 999,
                        900,
                        BarrierMode::None,
                    );
                }
                rig.start(engine, q, &program);
            }
        }
        rig.idle();
        (rig.system.now(), rig.system.counters())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

proptest! {
    /// Whatever bits are in the rings and whatever is written to the registers: no panic, and the
    /// machine comes to rest.
    #[test]
    fn garbage_never_panics(
        arch in prop::sample::select(Arch::ALL.to_vec()),
        tx in prop::collection::vec(any::<[u32; 4]>(), 32),
        rx in prop::collection::vec(any::<[u32; 4]>(), 32),
        near in any::<bool>(),
        registers in prop::collection::vec((0u64..0x1_0000, any::<u32>()), 0..40),
        strobes in prop::collection::vec((0u8..3, any::<bool>(), any::<u32>(), 0u64..3000), 0..12),
        mask in any::<[u32; 2]>(),
    ) {
        let mut rig = Rig::new(arch);
        let descs = |words: &[[u32; 4]], mask: u32| -> Vec<Descriptor> {
            words
                .iter()
                .map(|words| {
                    let mut words = *words;
                    if near {
                        // Mostly well-formed, so that the later stations see it too.
                        words[0] = words[0] & 0xffff | words[0] & 0x6100_0000 | 0x0d00_0000;
                        words[1] = 0x0108_0003 | words[1] & 0x0400_0000;
                        words[3] &= mask & 0xf;
                    }
                    Descriptor { words }
                })
                .collect()
        };
        let program = Program { tx: descs(&tx, 3), rx: descs(&rx, 7) };
        for (direction, mask) in Direction::ALL.into_iter().zip(mask) {
            rig.reg(0, direction.global_reg(global::ERR_LOG_MASK), mask);
        }
        rig.start(0, 0, &program);
        rig.start(0, 1, &program);
        for (register, value) in registers {
            rig.reg(0, register * 4, value);
        }
        for (q, rx, value, wait) in strobes {
            let direction = if rx { Direction::S2m } else { Direction::M2s };
            rig.reg(0, direction.queue_reg(QueueId(q), queue::sw_ctrl(direction)), value);
            rig.doorbell(0, q, direction, value & 0x3f);
            rig.pass(Duration::from_ns(wait));
        }
        rig.pass(Duration::from_ns(300_000));
        let counters = rig.system.counters();
        prop_assert!(counters.bytes_written <= counters.bytes_read);
    }

    /// Copies that share no byte arrive whole, whatever the latencies and barriers.
    #[test]
    fn disjoint_copies_arrive(
        seed: u64,
        arch in prop::sample::select(vec![Arch::V3, Arch::V4]),
        copies in prop::collection::vec((0u32..3, 0u8..4, 1u32..6000, 0usize..4, 0u64..300, 0u64..300), 1..40),
    ) {
        let config = config(arch, &[("jitter = \"0ns\"", "jitter = \"2us\"")]);
        let mut rig = Rig::with(config, seed);
        let mut programs = std::collections::BTreeMap::<(u32, u8), Program>::new();
        for (n, &(engine, q, len, barrier, s, d)) in copies.iter().enumerate() {
            let (src, dst) = place(n as u64);
            rig.poke(src + s, &pattern(len as usize, n as u8));
            let barrier = [
                BarrierMode::None,
                BarrierMode::Dmb,
                BarrierMode::WriteBarrier,
                BarrierMode::StrongOrder,
            ][barrier];
            let program = programs.entry((engine, q)).or_default();
            program.copy(arch, src + s, dst + d, len, barrier);
        }
        for ((engine, q), program) in &programs {
            rig.start(*engine, *q, program);
        }
        rig.idle();
        for (n, &(_, _, len, _, _, d)) in copies.iter().enumerate() {
            let (_, dst) = place(n as u64);
            prop_assert_eq!(rig.peek(dst + d, len as usize), pattern(len as usize, n as u8));
        }
    }
}
