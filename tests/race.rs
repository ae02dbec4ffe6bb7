//! The race detector on small programs: what each barrier orders, and what nothing does.

use udma_sim::arch::{Arch, EngineId};
use udma_sim::desc::BarrierMode::{self, Dmb, StrongOrder as Sow, WriteBarrier};
use udma_sim::order::race::{Detector, PacketAccess, Thread};
use udma_sim::units::Addr;

const X: (Addr, u64) = (Addr(0x1000), 4096);
const Y: (Addr, u64) = (Addr(0x9000), 4096);
const ONE: (Addr, u64) = (Addr(0x20000), 4096);
const S: (u32, u32) = (0, 5);

fn copy(from: (Addr, u64), to: (Addr, u64), barrier: BarrierMode) -> PacketAccess {
    PacketAccess {
        reads: vec![from],
        writes: vec![to],
        dmb: barrier == Dmb,
        write_barrier: barrier == WriteBarrier,
        sow: barrier == Sow,
        ..PacketAccess::default()
    }
}

fn inc(barrier: BarrierMode) -> PacketAccess {
    PacketAccess {
        increments: vec![S],
        sow: barrier == Sow,
        ..PacketAccess::default()
    }
}

/// A detector with a host, and queues rung by it.
fn start(arch: Arch, masked: bool) -> (Detector, Thread, Vec<Thread>) {
    let mut detector = Detector::new(arch, 10);
    let host = detector.agent("host");
    let queues = (0..2)
        .map(|q| detector.queue(EngineId(0), q, masked))
        .collect();
    (detector, host, queues)
}

/// x := 1 with `data`, inc s with `signal`; the host waits and reads x.
fn message(arch: Arch, data: BarrierMode, signal: BarrierMode, masked: bool) -> Detector {
    let (mut detector, host, queues) = start(arch, masked);
    detector.doorbell(host, queues[0]);
    detector.packet(queues[0], &copy(ONE, X, data));
    detector.packet(queues[0], &inc(signal));
    detector.wait_semaphore(host, S, 0);
    detector.access(host, X.0, X.1, false);
    detector
}

#[test]
fn a_message_needs_a_barrier_in_its_place() {
    let races = |data, signal| message(Arch::V3, data, signal, false).races().len();
    assert_eq!(races(BarrierMode::None, BarrierMode::None), 1);
    assert_eq!(races(Dmb, BarrierMode::None), 0);
    assert_eq!(races(WriteBarrier, BarrierMode::None), 0);
    assert_eq!(races(BarrierMode::None, Sow), 0);
    assert_eq!(
        races(Sow, BarrierMode::None),
        1,
        "SOW on the data looks the wrong way"
    );
    assert_eq!(
        message(Arch::V3, Dmb, BarrierMode::None, true)
            .races()
            .len(),
        1,
        "masked"
    );
}

#[test]
fn the_fix_is_that_of_the_generation() {
    let fix = |arch| {
        message(arch, BarrierMode::None, BarrierMode::None, false).races()[0]
            .fix
            .clone()
    };
    assert_eq!(
        fix(Arch::V2),
        "DMB or WRITE_BARRIER on packet 0, the last before the signal"
    );
    assert_eq!(
        fix(Arch::V3),
        "SOW on the Rx descriptor of packet 1 (slot 0), the signal"
    );
}

#[test]
fn a_race_names_both_sides_and_the_bytes_they_share() {
    let (mut detector, host, queues) = start(Arch::V3, false);
    detector.doorbell(host, queues[0]);
    detector.packet(queues[0], &copy(ONE, X, BarrierMode::None));
    detector.access(host, Addr(0x1800), 0x10000, true);
    let races = detector.races();
    assert_eq!(races.len(), 1);
    assert_eq!(races[0].bytes, (Addr(0x1800), Addr(0x2000)));
    assert_eq!(races[0].first.who, "e0 queue 0 slot 0 (packet 0)");
    assert_eq!((races[0].first.write, races[0].second.write), (true, true));
    assert_eq!(races[0].second.who, "host");
}

#[test]
fn within_a_queue_only_a_read_after_a_write_can_race_and_only_dmb_helps() {
    let raw = |barrier, masked| {
        let (mut detector, host, queues) = start(Arch::V3, masked);
        detector.doorbell(host, queues[0]);
        detector.packet(queues[0], &copy(ONE, X, barrier));
        detector.packet(queues[0], &copy(X, Y, Sow));
        detector.races().len()
    };
    assert_eq!(raw(Dmb, false), 0);
    for barrier in [BarrierMode::None, WriteBarrier, Sow] {
        assert_eq!(raw(barrier, false), 1);
    }
    assert_eq!(raw(Dmb, true), 1);
    let (mut detector, host, queues) = start(Arch::V3, false);
    detector.doorbell(host, queues[0]);
    detector.packet(queues[0], &copy(X, Y, BarrierMode::None));
    detector.packet(queues[0], &copy(ONE, X, BarrierMode::None));
    detector.packet(queues[0], &copy(ONE, X, BarrierMode::None));
    assert!(detector.races().is_empty(), "WAR and WAW need nothing");
}

/// Two queues increment one semaphore: a wait for one increment shows neither for sure, a wait for
/// both shows both.
#[test]
fn a_wait_shows_what_must_have_come() {
    let races = |missing| {
        let (mut detector, host, queues) = start(Arch::V3, false);
        for (queue, cell) in queues.iter().zip([X, Y]) {
            detector.doorbell(host, *queue);
            detector.packet(*queue, &copy(ONE, cell, BarrierMode::None));
            detector.packet(*queue, &inc(Sow));
        }
        detector.wait_semaphore(host, S, missing);
        detector.access(host, X.0, X.1, false);
        detector.access(host, Y.0, Y.1, false);
        detector.races().len()
    };
    assert_eq!((races(0), races(1)), (0, 2));
}

#[test]
fn a_doorbell_hands_on_what_its_ringer_knows() {
    for (waits, races) in [(true, 0), (false, 1)] {
        let (mut detector, host, queues) = start(Arch::V3, false);
        detector.doorbell(host, queues[0]);
        detector.packet(queues[0], &copy(ONE, X, BarrierMode::None));
        if waits {
            detector.wait_queue(host, queues[0]);
        }
        detector.doorbell(host, queues[1]);
        detector.packet(queues[1], &copy(X, Y, BarrierMode::None));
        assert_eq!(detector.races().len(), races);
    }
}

#[test]
fn races_beyond_the_most_are_counted() {
    let (mut detector, host, queues) = start(Arch::V3, false);
    detector.doorbell(host, queues[0]);
    for n in 0..25 {
        let at = (Addr(0x10_0000 + n * 4096), 4096);
        detector.packet(queues[0], &copy(ONE, at, BarrierMode::None));
    }
    detector.access(host, Addr(0x10_0000), 25 * 4096, false);
    assert_eq!((detector.races().len(), detector.more), (10, 15));
}
