//! A queue's life: what is prefetched and how, switching off in the midst of work, strobes, triggers of one
//! side.

mod common;

use common::{DST, MS, Program, Rig, SRC, pattern};
use std::time::Instant;
use udma_sim::arch::regs::{Direction, QueueCfg, QueueStatus, QueueSwCtrl, RingPointer, queue};
use udma_sim::arch::{Arch, EngineId, QueueId};
use udma_sim::desc::BarrierMode;
use udma_sim::device::{Fault, FaultKind, When};
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, WaitOutcome};

fn head(rig: &mut Rig, direction: Direction, q: u8) -> u32 {
    let value = rig.read_reg(0, direction.queue_reg(QueueId(q), queue::DRHP));
    RingPointer::from_bits(value).index()
}

/// Writes the enables of one half of a queue.
fn enable(rig: &mut Rig, direction: Direction, q: u8, prefetch: bool, schedule: bool) {
    let cfg = QueueCfg::new()
        .with_en_pref(prefetch)
        .with_en_scheduling(schedule);
    rig.reg(
        0,
        direction.queue_reg(QueueId(q), queue::CFG),
        cfg.into_bits(),
    );
}

/// The FIFO holds 1024 descriptors of all queues together, 128 of one, in bursts of 8.
#[test]
fn the_prefetch_fifo_is_shared() {
    for arch in Arch::ALL {
        for (queues, each) in [(1u8, 128), (4, 128), (16, 64)] {
            let mut rig = Rig::new(arch);
            let program = Program::copies(arch, 256, 64);
            for q in 0..queues {
                rig.init(0, q, 512);
                enable(&mut rig, Direction::M2s, q, true, false);
                rig.write_ring(0, q, Direction::M2s, &program.tx);
                rig.doorbell(0, q, Direction::M2s, 256);
            }
            rig.pass(Duration::from_ns(1_000_000));
            let heads: Vec<u32> = (0..queues)
                .map(|q| head(&mut rig, Direction::M2s, q))
                .collect();
            assert_eq!(heads.iter().sum::<u32>(), each * u32::from(queues));
            assert!(heads.iter().all(|head| head % 8 == 0), "{arch} {heads:?}");
            assert!(heads.iter().all(|head| *head <= 128), "{arch} {heads:?}");
        }
    }
}

/// 64 descriptors come in exactly 8 bursts: a fault in the eighth strikes, one in the ninth does not.
#[test]
fn bursts_have_eight_descriptors() {
    let arch = Arch::V3;
    for (nth, strikes) in [(7, 1), (8, 0)] {
        let mut rig = Rig::new(arch);
        let fault = Fault {
            engine: EngineId(0),
            queue: QueueId(0),
            kind: FaultKind::FetchError(Direction::M2s),
            when: When::Nth(nth),
        };
        rig.system.inject(fault).unwrap();
        rig.start(0, 0, &Program::copies(arch, 64, 64));
        rig.pass(MS);
        assert_eq!(rig.system.faults_struck(), strikes, "burst {nth}");
    }
}

/// A queue that is switched off in the midst of work ends what it has begun and keeps the rest.
#[test]
fn a_queue_switched_off_keeps_its_work() {
    for arch in Arch::ALL {
        for direction in Direction::ALL {
            let mut rig = Rig::new(arch);
            let data = pattern(8 * 65536, 2);
            rig.poke(SRC, &data);
            rig.start(0, 0, &Program::copies(arch, 8, 65536));
            rig.pass(Duration::from_ns(4_000));
            enable(&mut rig, direction, 0, true, false);
            rig.pass(Duration::from_ns(300_000));
            let done = rig.system.counters().packets;
            assert!((0..8).contains(&done), "{arch} {direction:?}: {done}");
            enable(&mut rig, direction, 0, true, true);
            rig.idle();
            assert_eq!(rig.system.counters().packets, 8);
            assert!(rig.peek(DST, data.len()) == data, "{arch} {direction:?}");
        }
    }
}

/// Without prefetch nothing is fetched; doorbells are kept until it is on.
#[test]
fn prefetch_off_keeps_the_doorbells() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    let program = Program::copies(arch, 20, 64);
    rig.init(0, 0, 32);
    for direction in Direction::ALL {
        enable(&mut rig, direction, 0, false, true);
    }
    rig.write_ring(0, 0, Direction::M2s, &program.tx);
    rig.write_ring(0, 0, Direction::S2m, &program.rx);
    rig.doorbell(0, 0, Direction::S2m, 20);
    rig.doorbell(0, 0, Direction::M2s, 20);
    rig.pass(Duration::from_ns(100_000));
    let heads = Direction::ALL.map(|direction| head(&mut rig, direction, 0));
    assert_eq!((heads, rig.system.counters().packets), ([0, 0], 0));
    for direction in Direction::ALL {
        enable(&mut rig, direction, 0, true, true);
    }
    rig.idle();
    assert_eq!(rig.system.counters().packets, 20);
}

/// The strobe of the DMB ends the suspension, and the next packet need not wait.
#[test]
fn the_dmb_strobe_ends_a_suspension() {
    let arch = Arch::V3;
    let cycles = |strobe: bool| {
        let mut rig = Rig::new(arch);
        rig.poke(SRC, &pattern(2 * 65536, 6));
        let mut program = Program::copies(arch, 2, 65536);
        program.tx[0].words[0] |= 1 << 30;
        rig.start(0, 0, &program);
        rig.pass(Duration::from_ns(2_000));
        let status = |rig: &mut Rig| {
            QueueStatus::from_bits(
                rig.read_reg(0, Direction::M2s.queue_reg(QueueId(0), queue::STATUS)),
            )
        };
        assert!(status(&mut rig).q_dmb());
        if strobe {
            let dmb = QueueSwCtrl::new().with_rst_dmb(true).into_bits();
            rig.reg(
                0,
                Direction::M2s.queue_reg(QueueId(0), queue::M2S_SW_CTRL),
                dmb,
            );
            assert!(!status(&mut rig).q_dmb());
        }
        rig.idle();
        assert!(rig.peek(DST, 2 * 65536) == pattern(2 * 65536, 6));
        rig.system.cycles().0
    };
    assert!(cycles(true) < cycles(false));
}

/// An Rx doorbell alone prefetches; data moves when the Tx doorbell comes, however the lengths compare.
#[test]
fn an_rx_trigger_alone_is_a_prefetch() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        rig.poke(SRC, &pattern(6000, 9));
        let program = Program::copies(arch, 1, 6000);
        // Rx descriptors of 1000 and 9000 bytes: the packet needs both and does not fill the second.
        let mut rx = Program::default();
        for (at, len) in [(DST, 1000), (DST + 1000, 9000)] {
            rx.copy(arch, SRC, at, len, BarrierMode::None);
        }
        rig.init(0, 0, 32);
        rig.write_ring(0, 0, Direction::M2s, &program.tx);
        rig.write_ring(0, 0, Direction::S2m, &rx.rx);
        rig.doorbell(0, 0, Direction::S2m, 2);
        assert_eq!(rig.wait(Condition::Idle), WaitOutcome::Met, "{arch}");
        rig.pass(Duration::from_ns(10_000));
        assert_eq!(head(&mut rig, Direction::S2m, 0), 2);
        assert_eq!(rig.system.counters().bytes_written, 0);
        rig.doorbell(0, 0, Direction::M2s, 1);
        rig.idle();
        assert!(rig.peek(DST, 6000) == pattern(6000, 9));
        assert_eq!(rig.system.counters().rx_bytes_unused, 4000);
    }
}

/// All 132 engines with 16 queues each, ready for doorbells, in less than a second of the wall clock: the
/// best of three tries, as others may use the machine.
#[test]
fn a_full_v3_device_is_up_in_a_second() {
    let arch = Arch::V3;
    let tries = (0..3).map(|_| {
        let begun = Instant::now();
        let mut rig = Rig::new(arch);
        for engine in 0..arch.spec().limits.engines() {
            for q in 0..16 {
                rig.init(engine, q, 32);
            }
        }
        assert_eq!(rig.wait(Condition::Idle), WaitOutcome::Met);
        begun.elapsed()
    });
    let best = tries.min().unwrap();
    assert!(best.as_secs_f64() < 1.0, "{best:?}");
    println!("132 engines of 16 queues are up after {best:?}");
}
