//! A queue that is reset and set up again while it works: what was issued lands where it was aimed, nothing of
//! the old program touches the new one, other queues do not notice.

mod common;

use common::{MS, Program, Rig, config, pattern};
use proptest::prelude::*;
use proptest::sample::Index;
use udma_sim::arch::regs::{
    ChangeState, Direction, M2sError, QueueCfg, QueueSwCtrl, RingPointer, UdmaState, global, queue,
};
use udma_sim::arch::{Arch, EngineId, QueueId};
use udma_sim::desc::{
    BarrierMode, CcePacket, CceType, DType, Descriptor, RingId, build_cce_packet,
};
use udma_sim::device::{Change, Fault, FaultKind, When};
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, WaitOutcome};
use udma_sim::units::Addr;

use Direction::{M2s, S2m};

/// What the old program reads and where it writes; the same of the new one, and of a queue beside it.
const OLD: (u64, u64) = (0x100_0000, 0x200_0000);
const NEW: (u64, u64) = (0x300_0000, 0x400_0000);
const BESIDE: (u64, u64) = (0x500_0000, 0x600_0000);
const AREA: usize = 1 << 20;
/// What destinations hold at first.
const BLANK: u8 = 0xee;
/// Rings of the new program.
const NEW_RINGS: [u64; 2] = [0x700_0000, 0x710_0000];
const QUEUE: u8 = 0;
const NEIGHBOUR: u8 = 5;

/// Stops one half of the queue and resets it.
fn strobe(rig: &mut Rig, direction: Direction) {
    let cfg = QueueCfg::new().into_bits();
    rig.reg(0, direction.queue_reg(QueueId(QUEUE), queue::CFG), cfg);
    let reset = QueueSwCtrl::new().with_rst_q(true).into_bits();
    let register = queue::sw_ctrl(direction);
    rig.reg(0, direction.queue_reg(QueueId(QUEUE), register), reset);
}

/// Gives one half of the queue its new ring and switches it on.
fn revive(rig: &mut Rig, direction: Direction, length: u32) {
    let base = NEW_RINGS[direction as usize];
    let on = QueueCfg::new().with_en_pref(true).with_en_scheduling(true);
    for (register, value) in [
        (queue::DRBP_LOW, base as u32),
        (queue::DRBP_HIGH, (base >> 32) as u32),
        (queue::DRL, length),
        (queue::CFG, on.into_bits()),
    ] {
        rig.reg(0, direction.queue_reg(QueueId(QUEUE), register), value);
    }
}

/// Copies of these lengths, one behind the other, with a barrier each.
fn copies(arch: Arch, (src, dst): (u64, u64), packets: &[(u32, BarrierMode)]) -> Program {
    let mut program = Program::default();
    let mut at = 0;
    for (len, barrier) in packets {
        let barrier = match barrier {
            BarrierMode::StrongOrder if arch == Arch::V2 => BarrierMode::WriteBarrier,
            barrier => *barrier,
        };
        program.copy(arch, src + at, dst + at, *len, barrier);
        at += u64::from(*len);
    }
    program
}

/// Sums of two sources each.
fn sums(arch: Arch, (src, dst): (u64, u64), packets: u64) -> Program {
    let mut program = Program::default();
    for n in 0..packets {
        let sources = [Addr(src + 8192 * n), Addr(src + 8192 * n + 4096)];
        let to = [Addr(dst + 2048 * n)];
        let mut packet = CcePacket::new(&sources, &to, 1024, DType::Bfloat16);
        packet.acc_dtype = DType::Fp32;
        program.packet(build_cce_packet(arch, CceType::Add, &packet, RingId::FIRST_LAP).unwrap());
    }
    program
}

/// Writes descriptors to the rings of the new program, and rings its doorbells.
fn run_new(rig: &mut Rig, program: &Program) {
    for (base, descs) in NEW_RINGS.into_iter().zip([&program.tx, &program.rx]) {
        let bytes: Vec<u8> = descs.iter().flat_map(|desc| desc.to_bytes()).collect();
        rig.poke(base, &bytes);
    }
    rig.doorbell(0, QUEUE, S2m, program.rx.len() as u32);
    rig.doorbell(0, QUEUE, M2s, program.tx.len() as u32);
    let outcome = rig.system.run_until(
        &Condition::QueueIdle {
            engine: EngineId(0),
            queue: QueueId(QUEUE),
        },
        MS,
    );
    assert_eq!(outcome, WaitOutcome::Met);
}

/// What the queue shows of its new program.
fn shown(rig: &mut Rig) -> Vec<u32> {
    let mut values = Vec::new();
    for direction in Direction::ALL {
        for register in [
            queue::DRHP,
            queue::DRTP,
            queue::DCP,
            queue::CRHP,
            queue::STATUS,
        ] {
            values.push(rig.read_reg(0, direction.queue_reg(QueueId(QUEUE), register)));
        }
    }
    values
}

fn fresh(arch: Arch) -> Rig {
    let mut rig = Rig::with(config(arch, &[]), 7);
    for (n, (src, dst)) in [OLD, NEW, BESIDE].into_iter().enumerate() {
        rig.poke(src, &pattern(AREA, 3 + 80 * n as u8));
        rig.poke(dst, &vec![BLANK; AREA]);
    }
    rig
}

/// The new program on a fresh machine: what it shows, and the bytes it leaves.
fn reference(arch: Arch, new: &Program, length: u32) -> (Vec<u32>, Vec<u8>) {
    let mut rig = fresh(arch);
    rig.init(0, QUEUE, 32);
    Direction::ALL
        .into_iter()
        .for_each(|direction| strobe(&mut rig, direction));
    Direction::ALL
        .into_iter()
        .for_each(|direction| revive(&mut rig, direction, length));
    run_new(&mut rig, new);
    (shown(&mut rig), rig.peek(NEW.1, AREA))
}

/// Bytes of the old program are where they were aimed or were never written.
fn assert_old_bytes(rig: &mut Rig, old: &Program, what: &str) {
    let reads: u64 = old
        .rx
        .iter()
        .map(|rx| u64::from(rx.len_ctrl().byte_len()))
        .sum();
    let (source, found) = (rig.peek(OLD.0, AREA), rig.peek(OLD.1, AREA));
    for (n, byte) in found.into_iter().enumerate() {
        let right = (n as u64) < reads && byte == source[n];
        assert!(byte == BLANK || right, "{what}: old byte {n} is {byte:#x}");
    }
}

fn assert_no_error(rig: &Rig, what: &str) {
    let status = rig.system.engine_status(EngineId(0)).unwrap();
    assert_eq!(status.causes[0], 0, "{what}: {:?}", status.errors);
    assert_eq!(status.states, [UdmaState::Normal; 2], "{what}");
}

const STEADY: &[(u32, BarrierMode)] = &[(65536, BarrierMode::None); 8];
const SMALL: &[(u32, BarrierMode)] = &[(64, BarrierMode::None); 128];
const ORDERED: &[(u32, BarrierMode)] = &[(30_000, BarrierMode::Dmb); 16];
const STRONG: &[(u32, BarrierMode)] = &[(5000, BarrierMode::StrongOrder); 64];
const FENCED: &[(u32, BarrierMode)] = &[(5000, BarrierMode::WriteBarrier); 64];
const AFTER: &[(u32, BarrierMode)] = &[
    (4096, BarrierMode::None),
    (65536, BarrierMode::Dmb),
    (3, BarrierMode::WriteBarrier),
    (20_001, BarrierMode::None),
    (512, BarrierMode::StrongOrder),
];

/// Both strobes in either order, at once or apart, once or twice, at any time of an old program of any kind.
#[test]
fn a_queue_starts_clean_whenever_and_however_it_was_reset() {
    let orders: [&[Direction]; 4] = [
        &[M2s, S2m],
        &[S2m, M2s],
        &[M2s, M2s, S2m, S2m],
        &[S2m, M2s, S2m],
    ];
    for arch in Arch::ALL {
        let new = copies(arch, NEW, AFTER);
        let (registers, bytes) = reference(arch, &new, 32);
        let mut times = [150u64, 420, 700, 1300, 2950, 7777].into_iter().cycle();
        for (kind, packets) in [STEADY, SMALL, ORDERED, STRONG, FENCED].iter().enumerate() {
            for order in orders {
                for apart in [0, 35, 3000] {
                    let at = times.next().unwrap();
                    let what =
                        format!("{arch}, program {kind}, {order:?} {apart} ns apart at {at} ns");
                    let mut rig = fresh(arch);
                    let old = copies(arch, OLD, packets);
                    let beside = copies(arch, BESIDE, STEADY);
                    rig.start(0, NEIGHBOUR, &beside);
                    rig.start(0, QUEUE, &old);
                    rig.pass(Duration::from_ns(at));
                    // M2S is stopped before anything is reset, as drivers do.
                    let off = QueueCfg::new().into_bits();
                    rig.reg(0, M2s.queue_reg(QueueId(QUEUE), queue::CFG), off);
                    for direction in order {
                        strobe(&mut rig, *direction);
                        rig.pass(Duration::from_ns(apart));
                    }
                    for direction in order {
                        revive(&mut rig, *direction, 32);
                    }
                    run_new(&mut rig, &new);
                    assert_no_error(&rig, &what);
                    assert_eq!(shown(&mut rig), registers, "{what}");
                    assert!(rig.peek(NEW.1, AREA) == bytes, "{what}");
                    rig.idle();
                    assert_old_bytes(&mut rig, &old, &what);
                    let moved = 8 * 65536;
                    assert!(
                        rig.peek(BESIDE.1, moved) == rig.peek(BESIDE.0, moved),
                        "{what}"
                    );
                }
            }
        }
    }
}

/// The same with compute packets on both sides.
#[test]
fn compute_packets_are_dropped_too() {
    for arch in Arch::ALL {
        let new = sums(arch, NEW, 8);
        let length = 32;
        let (registers, bytes) = reference(arch, &new, length);
        for at in [300, 500, 900, 1500, 2500] {
            for order in [[M2s, S2m], [S2m, M2s]] {
                let mut rig = fresh(arch);
                rig.start(0, QUEUE, &sums(arch, OLD, 20));
                rig.pass(Duration::from_ns(at));
                order
                    .into_iter()
                    .for_each(|direction| strobe(&mut rig, direction));
                order
                    .into_iter()
                    .for_each(|direction| revive(&mut rig, direction, length));
                run_new(&mut rig, &new);
                let what = format!("{arch} at {at} ns, {order:?}");
                assert_no_error(&rig, &what);
                assert_eq!(shown(&mut rig), registers, "{what}");
                assert!(rig.peek(NEW.1, AREA) == bytes, "{what}");
            }
        }
    }
}

/// Checksums with copy: their data passes through the lane, a result behind it.
fn checksums((src, dst): (u64, u64), packets: u64) -> Program {
    const FIRST: u32 = 0x0400_0000;
    const LAST: u32 = 0x0800_0000;
    // CRC-32C, copied, the result sent behind the data.
    let word = 0x0120_0003 | 1 << 19 | 1 << 16;
    let mut program = Program::default();
    for n in 0..packets {
        let (from, to) = (src + 16384 * n, dst + 16384 * n);
        let data = |len: u32, at: u64| [0x0100_0000 | len, word, at as u32, (at >> 32) as u32];
        let tx = [
            [0x0180_0000 | FIRST, 0, u32::MAX, u32::MAX],
            data(4, src),
            data(8192 | LAST, from),
        ];
        let rx = [0x0100_0000 | 8196, 0, to as u32, (to >> 32) as u32];
        program.tx.extend(tx.map(|words| Descriptor { words }));
        program.rx.push(Descriptor { words: rx });
    }
    program
}

/// Resets again and again leave no byte of the data FIFO taken: in the end it holds as much as at first.
#[test]
fn resets_do_not_wear_the_data_fifo_out() {
    for arch in Arch::ALL {
        let mut rig = fresh(arch);
        let programs = [
            copies(arch, OLD, STEADY),
            sums(arch, OLD, 20),
            checksums(OLD, 10),
        ];
        for round in 0..120u64 {
            rig.start(0, QUEUE, &programs[round as usize % 3]);
            rig.pass(Duration::from_ns(300 + 37 * round));
            Direction::ALL
                .into_iter()
                .for_each(|direction| strobe(&mut rig, direction));
            // The rings are written again once the reset has arrived: a read waits for it.
            rig.read_reg(0, M2s.queue_reg(QueueId(QUEUE), queue::CFG));
        }
        rig.idle();
        assert_no_error(&rig, "120 resets");
        let (begun, new) = (rig.system.cycles(), copies(arch, NEW, STEADY));
        rig.start(0, QUEUE, &new);
        rig.idle();
        let worn = rig.system.cycles().0 - begun.0;
        let mut fresh = fresh(arch);
        let begun = fresh.system.cycles();
        fresh.start(0, QUEUE, &new);
        fresh.idle();
        let first = fresh.system.cycles().0 - begun.0;
        // A refresh more or less.
        assert!(
            worn.abs_diff(first) < first / 20,
            "{arch}: {worn}, on a fresh engine {first}"
        );
    }
}

/// Something of the old program will never be answered: the queue, and the engine, work again.
#[test]
fn an_answer_that_never_comes_is_forgotten() {
    for arch in Arch::ALL {
        let new = copies(arch, NEW, AFTER);
        let (registers, bytes) = reference(arch, &new, 32);
        for kind in [FaultKind::LostAck, FaultKind::LostRead] {
            for nth in [0, 3, 200] {
                let mut rig = fresh(arch);
                let fault = Fault {
                    engine: EngineId(0),
                    queue: QueueId(QUEUE),
                    kind,
                    when: When::Nth(nth),
                };
                rig.system.inject(fault).unwrap();
                rig.start(0, QUEUE, &copies(arch, OLD, STEADY));
                let stuck = rig.wait(Condition::Idle);
                assert!(
                    matches!(stuck, WaitOutcome::Stuck(_)),
                    "{arch} {kind:?}: {stuck:?}"
                );
                Direction::ALL
                    .into_iter()
                    .for_each(|direction| strobe(&mut rig, direction));
                Direction::ALL
                    .into_iter()
                    .for_each(|direction| revive(&mut rig, direction, 32));
                run_new(&mut rig, &new);
                let what = format!("{arch}, {kind:?} {nth}");
                assert_no_error(&rig, &what);
                assert_eq!(shown(&mut rig), registers, "{what}");
                assert!(rig.peek(NEW.1, AREA) == bytes, "{what}");
                rig.idle();
            }
        }
    }
}

/// All queues at once.
#[test]
fn all_queues_are_reset_at_once() {
    for arch in Arch::ALL {
        let mut rig = fresh(arch);
        let old = copies(arch, OLD, &[(8192, BarrierMode::None); 16]);
        for q in 0..16 {
            rig.start(0, q, &old);
        }
        rig.pass(Duration::from_ns(2000));
        let reset = QueueSwCtrl::new().with_rst_q(true).into_bits();
        for q in 0..16 {
            for direction in Direction::ALL {
                let at = |register| direction.queue_reg(QueueId(q), register);
                rig.reg(0, at(queue::CFG), QueueCfg::new().into_bits());
                rig.reg(0, at(queue::sw_ctrl(direction)), reset);
            }
        }
        assert_eq!(rig.wait(Condition::Idle), WaitOutcome::Met, "{arch}");
        assert_old_bytes(&mut rig, &old, "all queues");
        let done = rig.system.counters();
        for q in 0..16 {
            let area = u64::from(q) * 65536;
            let (from, to) = (NEW.0 + area, NEW.1 + area);
            rig.start(
                0,
                q,
                &copies(arch, (from, to), &[(65536, BarrierMode::None)]),
            );
        }
        rig.idle();
        assert_no_error(&rig, "all queues");
        assert!(rig.peek(NEW.1, AREA) == rig.peek(NEW.0, AREA), "{arch}");
        assert_eq!(rig.system.counters().packets - done.packets, 16);
    }
}

/// M2S alone: the packets are dropped, their Rx descriptors spent; the next packet takes a fresh one.
#[test]
fn the_tx_half_alone_can_be_reset() {
    for arch in Arch::ALL {
        let mut rig = fresh(arch);
        rig.start(0, QUEUE, &copies(arch, OLD, STEADY));
        rig.pass(Duration::from_ns(3000));
        strobe(&mut rig, M2s);
        rig.idle();
        let current = |rig: &mut Rig| {
            let value = rig.read_reg(0, S2m.queue_reg(QueueId(QUEUE), queue::DCP));
            RingPointer::from_bits(value).index()
        };
        let spent = current(&mut rig);
        assert!((1..8).contains(&spent), "{arch}: {spent}");
        revive(&mut rig, M2s, 32);
        let one = copies(arch, (NEW.0, 0), &[(100, BarrierMode::None)]);
        let bytes: Vec<u8> = one.tx.iter().flat_map(|desc| desc.to_bytes()).collect();
        rig.poke(NEW_RINGS[0], &bytes);
        rig.doorbell(0, QUEUE, M2s, 1);
        rig.idle();
        assert_no_error(&rig, "the Tx half");
        let to = OLD.1 + u64::from(spent) * 65536;
        assert_eq!(rig.peek(to, 100), rig.peek(NEW.0, 100), "{arch}");
        assert_eq!(current(&mut rig), spent + 1);
    }
}

/// S2M alone under packets: M2S, if it runs, reports that they will never be acknowledged; if it is stopped, the
/// queue says so.
#[test]
fn the_rx_half_alone_leaves_packets_without_an_acknowledgement() {
    for arch in Arch::ALL {
        for stopped in [false, true] {
            let mut rig = fresh(arch);
            rig.start(0, QUEUE, &copies(arch, OLD, STEADY));
            rig.pass(Duration::from_ns(3000));
            if stopped {
                let off = QueueCfg::new().into_bits();
                rig.reg(0, M2s.queue_reg(QueueId(QUEUE), queue::CFG), off);
            }
            strobe(&mut rig, S2m);
            let outcome = rig.wait(Condition::Idle);
            let causes = rig.system.engine_status(EngineId(0)).unwrap().causes;
            let mismatch = M2sError::CompPktMismatch.mask();
            assert_eq!(causes[0], if stopped { 0 } else { mismatch }, "{arch}");
            let WaitOutcome::Stuck(waiters) = outcome else {
                panic!("{arch} {outcome:?}");
            };
            let said = waiters[0].to_string();
            if stopped {
                assert!(said.contains("whose Rx ring was reset;"), "{said}");
                strobe(&mut rig, M2s);
                rig.idle();
                assert_no_error(&rig, "both halves");
            } else {
                assert!(said.contains("aborted"), "{said}");
            }
        }
    }
}

/// Changes to a queue with work are told, with what was outstanding.
#[test]
fn changes_under_work_are_told() {
    let mut rig = fresh(Arch::V3);
    rig.start(0, QUEUE, &copies(Arch::V3, OLD, STEADY));
    rig.pass(Duration::from_ns(1000));
    rig.reg(0, M2s.queue_reg(QueueId(QUEUE), queue::DRL), 64);
    rig.reg(0, S2m.queue_reg(QueueId(QUEUE), queue::DRBP_HIGH), 1);
    Direction::ALL
        .into_iter()
        .for_each(|direction| strobe(&mut rig, direction));
    Direction::ALL
        .into_iter()
        .for_each(|direction| revive(&mut rig, direction, 32));
    rig.idle();
    let changes = rig.system.engine_status(EngineId(0)).unwrap().busy_changes;
    let told: Vec<_> = changes
        .iter()
        .map(|c| (c.direction, c.change, c.outstanding))
        .collect();
    assert_eq!(
        told,
        [
            (M2s, Change::Length, 8),
            (S2m, Change::Base, 8),
            (M2s, Change::Disabled, 8),
            (M2s, Change::Reset, 8),
            // The packet that was begun has spent its Rx descriptor.
            (S2m, Change::Disabled, 7),
            (S2m, Change::Reset, 7),
        ]
    );
    assert_eq!(
        changes[3].to_string(),
        "e0 queue 0: the queue was reset with 8 outstanding tx descriptors"
    );
}

/// What can happen to a queue.
#[derive(Clone, Debug)]
enum Happening {
    Doorbells(u32, u32),
    Wait(u64),
    Strobe(Direction, u32),
    Enable(Direction, bool, bool),
    State(Direction, u8),
    Move(Direction),
}

fn happening() -> impl Strategy<Value = Happening> {
    let half = || prop_oneof![Just(M2s), Just(S2m)];
    prop_oneof![
        4 => (0u32..9, 0u32..9).prop_map(|(tx, rx)| Happening::Doorbells(tx, rx)),
        6 => (1u64..3000).prop_map(Happening::Wait),
        2 => (half(), prop::sample::select(vec![1u32, 2, 4, 8, 0x100, 0x10f]))
            .prop_map(|(half, bits)| Happening::Strobe(half, bits)),
        2 => (half(), any::<bool>(), any::<bool>())
            .prop_map(|(half, pref, run)| Happening::Enable(half, pref, run)),
        1 => (half(), 1u8..3).prop_map(|(half, command)| Happening::State(half, command)),
        1 => half().prop_map(Happening::Move),
    ]
}

fn packet() -> impl Strategy<Value = (u32, BarrierMode)> {
    let barrier = prop::sample::select(vec![
        BarrierMode::None,
        BarrierMode::None,
        BarrierMode::Dmb,
        BarrierMode::WriteBarrier,
        BarrierMode::StrongOrder,
    ]);
    (prop_oneof![1u32..200, 1u32..20_000], barrier)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// After any history, a queue that is reset and set up again runs its next program as on a fresh machine, and a
    /// neighbour's program is not changed.
    #[test]
    fn the_next_program_runs_as_on_a_fresh_machine(
        arch in prop::sample::select(Arch::ALL.to_vec()),
        old in prop::collection::vec(packet(), 1..24),
        new in prop::collection::vec(packet(), 1..16),
        history in prop::collection::vec(happening(), 1..24),
        fault in prop::option::of((any::<Index>(), 0u64..100)),
        s2m_first in any::<bool>(),
        apart in prop_oneof![Just(0u64), 1u64..4000],
    ) {
        let new = copies(arch, NEW, &new);
        let (registers, bytes) = reference(arch, &new, 32);
        let mut rig = fresh(arch);
        if let Some((kind, nth)) = fault {
            let kinds = [FaultKind::LostAck, FaultKind::LostRead];
            let kind = *kind.get(&kinds);
            let (engine, queue, when) = (EngineId(0), QueueId(QUEUE), When::Nth(nth));
            rig.system.inject(Fault { engine, queue, kind, when }).unwrap();
        }
        // Errors of a spoiled history must not abort: the neighbour goes on.
        for direction in Direction::ALL {
            rig.reg(0, direction.global_reg(global::ERR_LOG_MASK), u32::MAX);
        }
        let old_program = copies(arch, OLD, &old);
        let neighbour = copies(arch, BESIDE, &[(30_000, BarrierMode::None); 8]);
        rig.start(0, NEIGHBOUR, &neighbour);
        rig.init(0, QUEUE, 32);
        rig.write_ring(0, QUEUE, M2s, &old_program.tx);
        rig.write_ring(0, QUEUE, S2m, &old_program.rx);
        for happening in &history {
            match *happening {
                Happening::Doorbells(tx, rx) => {
                    rig.doorbell(0, QUEUE, S2m, rx);
                    rig.doorbell(0, QUEUE, M2s, tx);
                }
                Happening::Wait(ns) => rig.pass(Duration::from_ns(ns)),
                Happening::Strobe(half, bits) => {
                    rig.reg(0, half.queue_reg(QueueId(QUEUE), queue::sw_ctrl(half)), bits);
                }
                Happening::Enable(half, prefetch, run) => {
                    let cfg = QueueCfg::new().with_en_pref(prefetch).with_en_scheduling(run);
                    rig.reg(0, half.queue_reg(QueueId(QUEUE), queue::CFG), cfg.into_bits());
                }
                Happening::State(half, command) => {
                    let command = ChangeState::new()
                        .with_normal(command == 1)
                        .with_dis(command == 2);
                    rig.reg(0, half.global_reg(global::CHANGE_STATE), command.into_bits());
                }
                Happening::Move(half) => {
                    let at = NEW_RINGS[half as usize] + 0x8_0000;
                    rig.reg(0, half.queue_reg(QueueId(QUEUE), queue::DRBP_LOW), at as u32);
                }
            }
        }
        let order = if s2m_first { [S2m, M2s] } else { [M2s, S2m] };
        for half in Direction::ALL {
            let off = QueueCfg::new().into_bits();
            rig.reg(0, half.queue_reg(QueueId(QUEUE), queue::CFG), off);
        }
        for half in order {
            strobe(&mut rig, half);
            rig.pass(Duration::from_ns(apart));
        }
        for half in order {
            revive(&mut rig, half, 32);
        }
        let normal = ChangeState::new().with_normal(true).into_bits();
        for half in Direction::ALL {
            rig.reg(0, half.global_reg(global::CHANGE_STATE), normal);
        }
        if fault.is_some() {
            rig.pass(Duration::from_ns(3000));
            // It was meant for the old program.
            prop_assume!(rig.system.faults_struck() == 1);
        }
        run_new(&mut rig, &new);
        prop_assert_eq!(shown(&mut rig), registers);
        prop_assert!(rig.peek(NEW.1, AREA) == bytes);
        let outcome = rig.wait(Condition::Idle);
        prop_assert_eq!(outcome, WaitOutcome::Met);
        let moved = 8 * 30_000;
        prop_assert!(rig.peek(BESIDE.1, moved) == rig.peek(BESIDE.0, moved));
    }
}
