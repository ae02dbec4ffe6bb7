//! The race detector on small programs: what each barrier orders, and what nothing does.

use udma_sim::arch::{Arch, EngineId};
use udma_sim::desc::BarrierMode::{self, Dmb, StrongOrder as Sow, WriteBarrier};
use udma_sim::order::race::{Detector, PacketAccess, Race, Read, Thread, Write, WriteTo};
use udma_sim::units::Addr;

const X: (Addr, u64) = (Addr(0x1000), 4096);
const Y: (Addr, u64) = (Addr(0x9000), 4096);
const ONE: (Addr, u64) = (Addr(0x20000), 4096);
const S: (u32, u32) = (0, 5);

fn write(to: WriteTo, place: u64, barrier: BarrierMode) -> Write {
    Write {
        to,
        place,
        sow: barrier == Sow,
        embedded: None,
    }
}

fn copy(from: (Addr, u64), to: (Addr, u64), barrier: BarrierMode) -> PacketAccess {
    PacketAccess {
        reads: vec![Read {
            at: from.0,
            len: from.1,
            place: 0,
        }],
        writes: vec![write(WriteTo::Memory(to.0, to.1), 0, barrier)],
        dmb: barrier == Dmb,
        write_barrier: barrier == WriteBarrier,
        ..PacketAccess::default()
    }
}

fn inc(barrier: BarrierMode) -> PacketAccess {
    PacketAccess {
        writes: vec![write(WriteTo::Semaphore(S), 0, barrier)],
        ..PacketAccess::default()
    }
}

/// A detector with a host, and queues rung by it.
fn start(arch: Arch) -> (Detector, Thread, Vec<Thread>) {
    let mut detector = Detector::new(arch, 10);
    let host = detector.agent("host");
    let queues = (0..2).map(|q| detector.queue(EngineId(0), q)).collect();
    (detector, host, queues)
}

fn races(detector: &Detector) -> Vec<Race> {
    detector.races(&|_| None)
}

/// x := 1 with `data`, inc s with `signal`; the host waits and reads x.
fn message(arch: Arch, data: BarrierMode, signal: BarrierMode) -> Detector {
    let (mut detector, host, queues) = start(arch);
    detector.doorbell(host, queues[0]);
    detector.packet(queues[0], &copy(ONE, X, data));
    detector.packet(queues[0], &inc(signal));
    detector.wait_semaphore(host, S, 0);
    detector.access(host, 0, X, false);
    detector
}

#[test]
fn a_message_needs_a_barrier_in_its_place() {
    let races = |data, signal| races(&message(Arch::V3, data, signal)).len();
    assert_eq!(races(BarrierMode::None, BarrierMode::None), 1);
    assert_eq!(races(Dmb, BarrierMode::None), 0);
    assert_eq!(races(WriteBarrier, BarrierMode::None), 0);
    assert_eq!(races(BarrierMode::None, Sow), 0);
    assert_eq!(
        races(Sow, BarrierMode::None),
        1,
        "SOW on the data looks the wrong way"
    );
}

#[test]
fn the_fix_is_that_of_the_generation() {
    let fix = |arch| {
        let found = races(&message(arch, BarrierMode::None, BarrierMode::None));
        found[0].fix.clone()
    };
    assert_eq!(
        fix(Arch::V2),
        "DMB or WRITE_BARRIER on the last packet before the signal, packet 0 (slot 0)"
    );
    assert_eq!(
        fix(Arch::V3),
        "SOW on the Rx descriptor of the signal, packet 1 (slot 0)"
    );
}

#[test]
fn a_race_names_both_sides_and_the_bytes_they_share() {
    let (mut detector, host, queues) = start(Arch::V3);
    detector.doorbell(host, queues[0]);
    detector.packet(queues[0], &copy(ONE, X, BarrierMode::None));
    detector.access(host, 0, (Addr(0x1800), 0x10000), true);
    let races = races(&detector);
    assert_eq!(races.len(), 1);
    assert_eq!(races[0].bytes, (Addr(0x1800), Addr(0x2000)));
    assert_eq!(races[0].first.who, "e0 queue 0 slot 0 (packet 0)");
    assert_eq!((races[0].first.write, races[0].second.write), (true, true));
    assert_eq!(races[0].second.who, "host");
}

#[test]
fn within_a_queue_only_a_read_after_a_write_can_race_and_only_dmb_helps() {
    let raw = |barrier| {
        let (mut detector, host, queues) = start(Arch::V3);
        detector.doorbell(host, queues[0]);
        detector.packet(queues[0], &copy(ONE, X, barrier));
        detector.packet(queues[0], &copy(X, Y, Sow));
        races(&detector).len()
    };
    assert_eq!(raw(Dmb), 0);
    for barrier in [BarrierMode::None, WriteBarrier, Sow] {
        assert_eq!(raw(barrier), 1);
    }
    let (mut detector, host, queues) = start(Arch::V3);
    detector.doorbell(host, queues[0]);
    detector.packet(queues[0], &copy(X, Y, BarrierMode::None));
    detector.packet(queues[0], &copy(ONE, X, BarrierMode::None));
    detector.packet(queues[0], &copy(ONE, X, BarrierMode::None));
    assert!(races(&detector).is_empty(), "WAR and WAW need nothing");
}

/// Two queues increment one semaphore: a wait for one increment shows neither for sure, a wait for
/// both shows both.
#[test]
fn a_wait_shows_what_must_have_come() {
    let races = |missing| {
        let (mut detector, host, queues) = start(Arch::V3);
        for (queue, cell) in queues.iter().zip([X, Y]) {
            detector.doorbell(host, *queue);
            detector.packet(*queue, &copy(ONE, cell, BarrierMode::None));
            detector.packet(*queue, &inc(Sow));
        }
        detector.wait_semaphore(host, S, missing);
        detector.access(host, 0, X, false);
        detector.access(host, 0, Y, false);
        races(&detector).len()
    };
    assert_eq!((races(0), races(1)), (0, 2));
}

#[test]
fn a_doorbell_hands_on_what_its_ringer_knows() {
    for (waits, races) in [(true, 0), (false, 1)] {
        let (mut detector, host, queues) = start(Arch::V3);
        detector.doorbell(host, queues[0]);
        detector.packet(queues[0], &copy(ONE, X, BarrierMode::None));
        if waits {
            detector.wait_queue(host, queues[0]);
        }
        detector.doorbell(host, queues[1]);
        detector.packet(queues[1], &copy(X, Y, BarrierMode::None));
        assert_eq!(self::races(&detector).len(), races);
    }
}

#[test]
fn races_beyond_the_most_are_counted() {
    let (mut detector, host, queues) = start(Arch::V3);
    detector.doorbell(host, queues[0]);
    for n in 0..25 {
        let at = (Addr(0x10_0000 + n * 4096), 4096);
        detector.packet(queues[0], &copy(ONE, at, BarrierMode::None));
    }
    detector.access(host, 0, (Addr(0x10_0000), 25 * 4096), false);
    assert_eq!((races(&detector).len(), detector.more()), (10, 15));
}

/// A copy onto bytes that it is still to read, and a packet whose second descriptor reads what its first
/// writes: nothing within a packet holds a read back.
#[test]
fn a_packet_can_race_with_itself() {
    let found = |from: u64, to: u64| {
        let (mut detector, host, queues) = start(Arch::V3);
        detector.doorbell(host, queues[0]);
        let packet = copy((Addr(from), 4096), (Addr(to), 4096), Dmb);
        detector.packet(queues[0], &packet);
        races(&detector)
    };
    assert!(found(0x1000, 0x1000).is_empty(), "onto itself");
    assert!(
        found(0x1000, 0x0800).is_empty(),
        "towards what has been read"
    );
    let shifted = found(0x1000, 0x1800);
    assert_eq!(shifted.len(), 1, "towards what is still to be read");
    assert_eq!(shifted[0].bytes, (Addr(0x1800), Addr(0x2000)));
    assert!(shifted[0].fix.contains("in a separate packet"));

    let (mut detector, host, queues) = start(Arch::V3);
    detector.doorbell(host, queues[0]);
    let mut packet = copy(ONE, X, BarrierMode::None);
    packet.reads.push(Read {
        at: X.0,
        len: X.1,
        place: X.1,
    });
    packet
        .writes
        .push(write(WriteTo::Memory(Y.0, Y.1), X.1, Sow));
    detector.packet(queues[0], &packet);
    assert_eq!(races(&detector).len(), 1);
}

/// What an agent adds to a semaphore tells of what it did before, and a semaphore that is set forgets.
#[test]
fn agents_signal_too() {
    let found = |sets: bool, missing| {
        let (mut detector, host, _) = start(Arch::V3);
        let other = detector.agent("sequencer");
        detector.access(other, 0, X, true);
        detector.increment(other, S, 3);
        if sets {
            detector.set_semaphore(host, S, 3);
        }
        detector.wait_semaphore(host, S, missing);
        detector.access(host, 0, X, false);
        races(&detector).len()
    };
    assert_eq!(found(false, 2), 0, "one of the three has come, so all have");
    assert_eq!(found(false, 3), 1);
    assert_eq!(found(true, 0), 1);
}
