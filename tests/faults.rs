//! Faults injected on purpose, AXI timeouts, starvation: what the device does and what notices.

mod common;

use common::{DST, MS, Program, Rig, SRC, config, pattern};
use udma_sim::arch::regs::{
    self, Direction, M2sError, QueueSwCtrl, S2mError, UdmaState, general, global, queue,
};
use udma_sim::arch::{Arch, EngineId, QueueId};
use udma_sim::desc::BarrierMode;
use udma_sim::device::{ErrorBit, Fault, FaultKind, When};
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, WaitOutcome};

const LEN: u32 = 4096;

fn fault(kind: FaultKind, nth: u64) -> Fault {
    Fault {
        engine: EngineId(0),
        queue: QueueId(2),
        kind,
        when: When::Nth(nth),
    }
}

/// Four copies of 4 KiB on queue 2 with one fault; runs a millisecond.
fn run(arch: Arch, fault: Fault, setup: impl FnOnce(&mut Rig)) -> Rig {
    let mut rig = Rig::new(arch);
    rig.poke(SRC, &pattern(4 * LEN as usize, 7));
    setup(&mut rig);
    rig.system.inject(fault).unwrap();
    let mut program = Program::default();
    for n in 0..4 {
        let at = n * u64::from(LEN);
        program.copy(arch, SRC + at, DST + at, LEN, BarrierMode::None);
    }
    rig.start(0, 2, &program);
    rig.pass(MS);
    assert_eq!(rig.system.faults_struck(), 1);
    rig
}

fn mask_all(rig: &mut Rig) {
    for direction in Direction::ALL {
        rig.reg(0, direction.global_reg(global::ERR_LOG_MASK), u32::MAX);
    }
}

fn axi_timeout(rig: &mut Rig, cycles: u32) {
    rig.reg(0, regs::GEN + general::AXI_CFG_1, cycles);
}

/// Every error bit of both halves can be reported by the block that sees it, and then aborts or not,
/// as the mask says.
#[test]
fn every_error_bit_is_reachable() {
    let m2s = M2sError::ALL.iter().map(|error| ErrorBit::M2s(*error));
    let s2m = S2mError::ALL.iter().map(|error| ErrorBit::S2m(*error));
    for bit in m2s.chain(s2m) {
        for masked in [false, true] {
            let rig = run(Arch::V3, fault(FaultKind::Report(bit), 1), |rig| {
                if masked {
                    mask_all(rig);
                }
            });
            let status = rig.system.engine_status(EngineId(0)).unwrap();
            let half = bit.direction() as usize;
            assert_eq!(status.causes[half], bit.mask(), "{bit:?}");
            assert_eq!(status.causes[1 - half], 0, "{bit:?}");
            let state = if masked {
                UdmaState::Normal
            } else {
                UdmaState::Abort
            };
            assert_eq!(status.states, [state; 2], "{bit:?}");
            assert_eq!(
                status.counters.packets,
                if masked { 4 } else { status.counters.packets }
            );
            assert_eq!(rig.system.injections()[0].noticed, Some(bit));
        }
    }
}

#[test]
fn axi_errors_raise_their_response_bit() {
    for arch in Arch::ALL {
        for (kind, causes) in [
            (FaultKind::FetchError(Direction::M2s), [1 << 11, 0]),
            (FaultKind::FetchError(Direction::S2m), [0, 1 << 9]),
            (FaultKind::ReadError, [1 << 8, 0]),
            (FaultKind::WriteError, [0, 1 << 1]),
        ] {
            let rig = run(arch, fault(kind, 0), |rig| rig.detect_axi_errors(0));
            let status = rig.system.engine_status(EngineId(0)).unwrap();
            let [m2s, s2m] = status.causes;
            assert_eq!(
                [m2s & causes[0], s2m & causes[1]],
                causes,
                "{arch} {kind:?}"
            );
            assert_eq!(status.states, [UdmaState::Abort; 2]);
            let noticed = rig.system.injections()[0].noticed.unwrap();
            assert_eq!(noticed.mask(), causes[0] | causes[1]);
        }
    }
}

/// A flipped data bit is copied faithfully and noticed by nobody on the device; a flipped descriptor
/// bit is noticed if the bit is one that the device checks.
#[test]
fn flipped_bits() {
    let mut rig = run(Arch::V3, fault(FaultKind::FlipData { bit: 11 }, 3), |_| {});
    let mut expected = pattern(4 * LEN as usize, 7);
    expected[3 * 256 + 1] ^= 1 << 3;
    assert!(rig.peek(DST, 4 * LEN as usize) == expected);
    assert_eq!(rig.system.injections()[0].noticed, None);

    let ring_id = FaultKind::FlipDescriptor {
        direction: Direction::M2s,
        bit: 24,
    };
    let rig = run(Arch::V3, fault(ring_id, 2), |_| {});
    let noticed = rig.system.injections()[0].noticed;
    assert_eq!(noticed, Some(ErrorBit::M2s(M2sError::RingId)));

    let address = FaultKind::FlipDescriptor {
        direction: Direction::S2m,
        bit: 64 + 20,
    };
    let mut rig = run(Arch::V3, fault(address, 0), |_| {});
    assert_eq!(rig.system.injections()[0].noticed, None);
    assert!(rig.peek(DST ^ 1 << 20, LEN as usize) == pattern(LEN as usize, 7));
    assert!(rig.peek(DST, LEN as usize).iter().all(|byte| *byte == 0));
}

/// Without an AXI timeout a lost answer hangs the queue; with one it is an error.
#[test]
fn lost_answers_hang_or_time_out() {
    for (kind, bit) in [
        (FaultKind::LostRead, ErrorBit::M2s(M2sError::DataTimeout)),
        (FaultKind::LostAck, ErrorBit::S2m(S2mError::DataTimeout)),
    ] {
        let mut rig = run(Arch::V3, fault(kind, 5), |_| {});
        let status = rig.system.engine_status(EngineId(0)).unwrap();
        assert_eq!(status.causes, [0, 0]);
        let WaitOutcome::Stuck(waiters) = rig.wait(Condition::Idle) else {
            panic!("not stuck");
        };
        let said = match kind {
            FaultKind::LostRead => "waits for the data of a read at 0x100500, tx slot 0,",
            _ => "waits for the acknowledgement of a write at 0x200500, rx slot 0,",
        };
        assert!(waiters[0].to_string().contains(said), "{}", waiters[0]);

        for masked in [false, true] {
            let rig = run(Arch::V3, fault(kind, 5), |rig| {
                axi_timeout(rig, 10_000);
                if masked {
                    mask_all(rig);
                }
            });
            let injection = rig.system.injections()[0];
            assert_eq!(injection.noticed, Some(bit));
            let status = rig.system.engine_status(EngineId(0)).unwrap();
            assert_eq!(status.errors.len(), 1);
            assert_eq!(status.errors[0].fatal, !masked);
        }
    }
}

/// A timeout shorter than the memory's latency: a driver that programs it so sees every kind.
#[test]
fn a_timeout_below_the_latency_fails_the_first_access() {
    let rig = {
        let mut rig = Rig::new(Arch::V2);
        rig.detect_axi_errors(0);
        axi_timeout(&mut rig, 20);
        let mut program = Program::default();
        program.copy(Arch::V2, SRC, DST, LEN, BarrierMode::None);
        rig.start(0, 0, &program);
        rig.pass(MS);
        rig
    };
    let status = rig.system.engine_status(EngineId(0)).unwrap();
    let prefetch = M2sError::PrefetchTimeout.mask() | S2mError::PrefetchTimeout.mask();
    assert!(
        status.causes.iter().any(|causes| causes & prefetch != 0),
        "{status:?}"
    );
    assert_eq!(status.counters.packets, 0);
}

#[test]
fn a_late_acknowledge_costs_time_only() {
    let plain = run(
        Arch::V3,
        fault(FaultKind::LateAck(Duration::ZERO), 0),
        |_| {},
    );
    let finished = |mut rig: Rig| {
        assert!(rig.peek(DST, 4 * LEN as usize) == pattern(4 * LEN as usize, 7));
        rig.system.counters().packets
    };
    assert_eq!(finished(plain), 4);
    // With a DMB behind it the whole queue waits.
    let elapsed = |by: u64| {
        let mut rig = Rig::new(Arch::V3);
        let late = FaultKind::LateAck(Duration::from_ns(by));
        rig.system.inject(fault(late, 0)).unwrap();
        let mut program = Program::default();
        program.copy(Arch::V3, SRC, DST, 64, BarrierMode::Dmb);
        program.copy(Arch::V3, SRC, DST, 64, BarrierMode::None);
        rig.start(0, 2, &program);
        rig.idle();
        rig.system.now()
    };
    let delay = elapsed(50_000) - elapsed(0);
    // What comes after it may meet a refresh of HBM, or miss one.
    let memory = &config(Arch::V3, &[]).memory;
    let refresh_ns = f64::from(memory.timing.refresh) * 1e9 / memory.device.clock.0 as f64;
    let slack = refresh_ns + 10.0;
    assert!((delay.as_ns_f64() - 50_000.0).abs() < slack, "{delay}");
}

#[test]
fn a_stuck_queue_leaves_the_others_alone() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    rig.system.inject(fault(FaultKind::StuckQueue, 1)).unwrap();
    let mut program = Program::default();
    for _ in 0..3 {
        program.copy(arch, SRC, DST, 64, BarrierMode::None);
    }
    rig.start(0, 2, &program);
    rig.start(0, 3, &program);
    let WaitOutcome::Stuck(waiters) = rig.wait(Condition::Idle) else {
        panic!("not stuck");
    };
    assert_eq!(waiters.len(), 1);
    assert_eq!(
        waiters[0].to_string(),
        "e0 queue 2 is stuck because of an injected fault"
    );
    assert_eq!(rig.system.counters().packets, 4);
}

#[test]
fn a_fault_needs_a_queue_that_exists() {
    let mut rig = Rig::new(Arch::V2);
    for (engine, queue) in [(34, 0), (0, 16)] {
        let fault = Fault {
            engine: EngineId(engine),
            queue: QueueId(queue),
            ..fault(FaultKind::ReadError, 0)
        };
        let refused = rig.system.inject(fault).unwrap_err().to_string();
        assert_eq!(
            refused,
            format!("v2 does not have queue {queue} of engine {engine}")
        );
    }
}

/// Data that finds no Rx descriptor: a hint at once, an error of both halves after the acknowledge
/// timeouts, which a driver switches off.
#[test]
fn starvation_hints_and_then_times_out() {
    let run = |timeouts: [u32; 2]| {
        let mut rig = Rig::new(Arch::V3);
        for (direction, cycles) in Direction::ALL.into_iter().zip(timeouts) {
            rig.reg(
                0,
                direction.global_reg(global::comp_ack_timeout(direction)),
                cycles,
            );
        }
        let mut program = Program::default();
        program.copy(Arch::V3, SRC, DST, LEN, BarrierMode::None);
        rig.init(0, 0, 32);
        rig.write_ring(0, 0, Direction::M2s, &program.tx);
        rig.doorbell(0, 0, Direction::M2s, 1);
        rig.pass(MS);
        rig.system.engine_status(EngineId(0)).unwrap()
    };
    let hint = S2mError::NoDescHint.mask();
    let off = run([0, 0]);
    assert_eq!(off.causes, [0, hint]);
    assert_eq!((off.errors.len(), off.states[0]), (0, UdmaState::Normal));
    assert_eq!(
        run([1000, 0]).causes,
        [M2sError::StreamTimeout.mask(), hint]
    );
    assert_eq!(
        run([0, 1000]).causes,
        [0, hint | S2mError::NoDescTimeout.mask()]
    );
    // At reset both are on, at 100000 cycles.
    let reset = run([100_000, 100_000]);
    assert_eq!(reset.states, [UdmaState::Abort; 2]);
}

/// The Rx ring is reset under a packet in flight: its completion matches no descriptor.
#[test]
fn a_reset_under_a_packet_is_a_completion_mismatch() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    let mut program = Program::default();
    program.copy(arch, SRC, DST, 65536, BarrierMode::None);
    rig.start(0, 0, &program);
    let during = rig.system.now() + Duration::from_ns(2_000);
    rig.wait(Condition::Until(during));
    let reset = QueueSwCtrl::new().with_rst_q(true).into_bits();
    rig.reg(
        0,
        Direction::S2m.queue_reg(QueueId(0), queue::S2M_SW_CTRL),
        reset,
    );
    rig.wait(Condition::Until(during + Duration::from_ns(1_000)));
    // A fresh ring takes the rest of the packet.
    rig.doorbell(0, 0, Direction::S2m, 1);
    rig.wait(Condition::Until(during + MS));
    let status = rig.system.engine_status(EngineId(0)).unwrap();
    assert_ne!(
        status.causes[0] & M2sError::CompPktMismatch.mask(),
        0,
        "{status:?}"
    );
}
