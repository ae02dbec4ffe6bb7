//! Notifications end to end (V4): a packet that asks for one leaves it in the engine's queue, software
//! reads it there.

mod common;

use common::{DST, MS, Program, Rig, SRC, pattern};
use udma_sim::arch::regs::{self, Direction, M2sError, UdmaState, notific};
use udma_sim::arch::{Arch, EngineId, QueueId};
use udma_sim::desc::Notification;
use udma_sim::host::{Bus, NotificationError, NotificationReader};
use udma_sim::system::Condition;
use udma_sim::units::Addr;

const QUEUE: u64 = 0x30_0000;
/// The notification mask in `meta_ctrl`.
const NOTIFY: u32 = 1 << 28;

/// Copies of 64 bytes; those of `notified` ask for a notification.
fn copies(arch: Arch, count: u64, notified: &[usize]) -> Program {
    let mut program = Program::copies(arch, count, 64);
    for n in notified {
        program.tx[*n].words[1] |= NOTIFY;
    }
    program
}

fn init(rig: &mut Rig, bytes: u32) -> NotificationReader {
    let engine = EngineId(0);
    NotificationReader::init(&mut rig.system, Arch::V4, engine, Addr(QUEUE), bytes).unwrap()
}

fn take_all(rig: &mut Rig, reader: &mut NotificationReader) -> Vec<Notification> {
    std::iter::from_fn(|| reader.take(&mut rig.system).unwrap()).collect()
}

#[test]
fn packets_that_ask_for_it_are_notified_and_no_others() {
    let mut rig = Rig::new(Arch::V4);
    let mut reader = init(&mut rig, 256);
    assert_eq!(reader.take(&mut rig.system).unwrap(), None);
    rig.poke(SRC, &pattern(6 * 64, 1));
    // A packet of three descriptors, of which one asks, between packets of one.
    let mut program = copies(Arch::V4, 6, &[0, 3]);
    for (n, bits) in [(2, 1 << 26), (3, 0), (4, 1 << 27)] {
        let word = &mut program.tx[n].words[0];
        *word = *word & !(3 << 26) | bits;
    }
    rig.start(0, 5, &program);
    rig.idle();
    let now = rig.system.cycles().0;
    let got = take_all(&mut rig, &mut reader);
    let seen: Vec<_> = got.iter().map(|n| (n.queue, n.slot, n.packets)).collect();
    assert_eq!(seen, [(QueueId(5), 0, 1), (QueueId(5), 2, 3)]);
    assert!(
        got[0].cycle <= got[1].cycle && got[1].cycle <= now,
        "{got:?}"
    );
    assert_eq!(rig.system.counters().notifications, 2);
}

/// When software sees the notification it sees the packet's data, and that of every earlier packet of
/// the queue.
#[test]
fn the_data_is_there_before_the_notification() {
    let config = common::config(Arch::V4, &[("jitter = \"0ns\"", "jitter = \"2us\"")]);
    for seed in 0..20 {
        let mut rig = Rig::with(config.clone(), seed);
        let mut reader = init(&mut rig, 64);
        rig.poke(SRC, &pattern(8 * 64, 3));
        rig.start(0, 0, &copies(Arch::V4, 8, &[7]));
        let notified = Condition::Word {
            at: Addr(QUEUE + 4),
            value: 8,
        };
        rig.wait(notified);
        assert!(rig.peek(DST, 8 * 64) == pattern(8 * 64, 3), "seed {seed}");
        assert!(reader.take(&mut rig.system).unwrap().is_some());
    }
}

/// Lap after lap the phase turns, and software that keeps up misses nothing.
#[test]
fn the_queue_wraps() {
    let mut rig = Rig::new(Arch::V4);
    let mut reader = init(&mut rig, 64);
    rig.init(0, 0, 32);
    let mut slots = Vec::new();
    for lap in 0..4u32 {
        let mut program = copies(Arch::V4, 32, &(0..32).collect::<Vec<_>>());
        for desc in program.tx.iter_mut().chain(&mut program.rx) {
            desc.words[0] = desc.words[0] & !(3 << 24) | ((lap + 1) % 4) << 24;
        }
        rig.write_ring(0, 0, Direction::M2s, &program.tx);
        rig.write_ring(0, 0, Direction::S2m, &program.rx);
        // Of four entries three can be full.
        for batch in [3, 3, 3, 3, 2, 3, 3, 3, 3, 3, 3] {
            rig.doorbell(0, 0, Direction::S2m, batch);
            rig.doorbell(0, 0, Direction::M2s, batch);
            rig.idle();
            let got = take_all(&mut rig, &mut reader);
            assert_eq!(got.len(), batch as usize);
            slots.extend(got.iter().map(|notification| notification.slot));
        }
    }
    let expected: Vec<u32> = (0..4).flat_map(|_| 0..32).collect();
    assert_eq!(slots, expected);
    assert_eq!(rig.system.counters().notifications_lost, 0);
}

#[test]
fn without_room_notifications_are_lost_and_counted() {
    let mut rig = Rig::new(Arch::V4);
    let mut reader = init(&mut rig, 64);
    rig.start(0, 0, &copies(Arch::V4, 10, &(0..10).collect::<Vec<_>>()));
    rig.idle();
    assert_eq!(take_all(&mut rig, &mut reader).len(), 3);
    let counters = rig.system.counters();
    assert_eq!(
        (counters.notifications, counters.notifications_lost),
        (3, 7)
    );
    // There is room again.
    rig.start(0, 1, &copies(Arch::V4, 1, &[0]));
    rig.idle();
    assert_eq!(take_all(&mut rig, &mut reader).len(), 1);
}

/// A queue of no size is off: nothing is written, nothing is lost.
#[test]
fn a_queue_that_is_off_gets_nothing() {
    let mut rig = Rig::new(Arch::V4);
    rig.start(0, 0, &copies(Arch::V4, 2, &[0, 1]));
    rig.idle();
    let counters = rig.system.counters();
    assert_eq!(
        (counters.notifications, counters.notifications_lost),
        (0, 0)
    );
}

/// Before V4 the bit is nothing, and so is the notification block.
#[test]
fn earlier_generations_have_none() {
    for arch in [Arch::V2, Arch::V3] {
        let mut rig = Rig::new(arch);
        rig.start(0, 0, &copies(arch, 2, &[0, 1]));
        rig.idle();
        assert_eq!(rig.system.counters().notifications, 0);
        let engine = EngineId(0);
        let refused = NotificationReader::init(&mut rig.system, arch, engine, Addr(QUEUE), 64);
        assert_eq!(refused, Err(NotificationError::Arch(arch)));
    }
    let window = Arch::V3.spec().map.engine_base(EngineId(0)).unwrap();
    let head = Addr(window.0 + regs::NOTIFIC + notific::NQ_HEAD);
    let mut rig = Rig::new(Arch::V3);
    // It is there, and nothing acts on it.
    assert_eq!(rig.system.read_reg(head), Ok(0));
    assert_eq!(rig.system.unmodelled_registers()[0].at, head);
}

#[test]
fn a_queue_in_no_memory_is_a_completion_error() {
    let mut rig = Rig::new(Arch::V4);
    for (offset, value) in [(notific::NQ_BASE_HI, 0xffff_0000), (notific::NQ_SIZE, 64)] {
        rig.reg(0, regs::NOTIFIC + offset, value);
        assert_eq!(rig.read_reg(0, regs::NOTIFIC + offset), value);
    }
    rig.start(0, 0, &copies(Arch::V4, 1, &[0]));
    rig.pass(MS);
    let status = rig.system.engine_status(EngineId(0)).unwrap();
    assert_eq!(status.causes, [M2sError::CompResponse.mask(), 0]);
    assert_eq!(status.states, [UdmaState::Abort; 2]);
    assert_eq!(status.counters.notifications, 0);
}

#[test]
fn bad_queues_are_refused() {
    let mut rig = Rig::new(Arch::V4);
    let mut init = |engine, at, bytes| {
        let engine = EngineId(engine);
        NotificationReader::init(&mut rig.system, Arch::V4, engine, Addr(at), bytes).unwrap_err()
    };
    for bytes in [0, 16, 48, 100] {
        assert_eq!(init(0, QUEUE, bytes), NotificationError::Length(bytes));
    }
    assert_eq!(
        init(132, QUEUE, 64).to_string(),
        "engine e132 does not exist; the device has e0 to e131"
    );
    let refused = init(0, 0xffff_0000_0000_0000, 64);
    assert!(matches!(refused, NotificationError::Bus(_)), "{refused}");
}
