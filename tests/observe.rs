//! What an observer is told, against what the counters say.

mod common;

use common::{Program, Rig, config};
use proptest::prelude::*;
use udma_sim::arch::Arch;
use udma_sim::arch::regs::Direction;
use udma_sim::desc::BarrierMode;
use udma_sim::device::{EngineActivity as Done, Station, StationState};
use udma_sim::sim::{Duration, Instant};
use udma_sim::system::{Activity, Observer};
use udma_sim::telemetry::attach;

#[derive(Default)]
struct Log(Vec<(Instant, Activity)>);

impl Observer for Log {
    fn observe(&mut self, at: Instant, activity: &Activity) {
        self.0.push((at, activity.clone()));
    }
}

/// Copies on several queues, watched.
fn watched(arch: Arch, copies: &[(u8, u32, u8)]) -> (Rig, Vec<(Instant, Activity)>) {
    let mut rig = Rig::with(config(arch, &[]), 0);
    let log = attach(&mut rig.system, Log::default());
    for q in 0..4 {
        let mut program = Program::default();
        for (n, (queue, len, barrier)) in copies.iter().enumerate() {
            if *queue == q {
                let barrier = [
                    BarrierMode::None,
                    BarrierMode::Dmb,
                    BarrierMode::WriteBarrier,
                ][usize::from(*barrier)];
                let at = n as u64 * 0x2_0000;
                program.copy(arch, 0x100_0000 + at, 0x800_0000 + at, *len, barrier);
            }
        }
        if copies.iter().any(|(queue, ..)| *queue == q) {
            rig.start(0, q, &program);
        }
    }
    rig.idle();
    let log = log.with(|log| std::mem::take(&mut log.0));
    (rig, log)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every request that was issued completes once, and the stations' times add up to all time.
    #[test]
    fn all_that_happens_is_told_once(
        copies in prop::collection::vec((0u8..4, 1u32..20_000, 0u8..3), 1..12),
        arch in prop::sample::select(&Arch::ALL),
    ) {
        let (rig, log) = watched(arch, &copies);
        let counters = rig.system.counters();
        let done = |pick: &dyn Fn(&Done) -> u64| -> u64 {
            let engine = |activity: &Activity| match activity {
                Activity::Engine { what, .. } => pick(what),
                _ => 0,
            };
            log.iter().map(|(_, activity)| engine(activity)).sum()
        };
        let bytes: u64 = copies.iter().map(|(_, len, _)| u64::from(*len)).sum();
        prop_assert_eq!(counters.bytes_read, bytes);
        prop_assert_eq!(done(&|what| match what {
            Done::Read { access, .. } => access.len.into(),
            _ => 0,
        }), bytes);
        prop_assert_eq!(done(&|what| match what {
            Done::Write { access, .. } => access.len.into(),
            _ => 0,
        }), bytes);
        prop_assert_eq!(done(&|what| match what {
            Done::Packet { bytes, .. } => *bytes,
            _ => 0,
        }), bytes);
        prop_assert_eq!(
            done(&|what| u64::from(matches!(what, Done::Packet { .. }))),
            counters.packets
        );
        prop_assert_eq!(
            done(&|what| u64::from(matches!(what, Done::Doorbell { .. }))),
            counters.doorbells
        );
        prop_assert_eq!(done(&|what| match what {
            Done::Fetch { access, direction: Direction::M2s, .. } => access.len.into(),
            _ => 0,
        }), 16 * copies.len() as u64);

        let now = rig.system.now();
        let [engine] = &rig.system.station_times()[..] else {
            panic!("one engine is in use");
        };
        for station in Station::ALL {
            let times = engine.times[station as usize];
            prop_assert_eq!(times.total(), now - Instant::START);
            // What was told of each state, and the stretch that has not ended.
            for state in StationState::ALL {
                let mut told = Duration::ZERO;
                for (at, activity) in &log {
                    match activity {
                        Activity::Engine { what: Done::Station { station: s, state: t, since, .. }, .. }
                            if (*s, *t) == (station, state) => told = told + (*at - *since),
                        _ => {}
                    }
                }
                let (last, since) = engine.now[station as usize];
                if last == state {
                    told = told + (now - since);
                }
                prop_assert_eq!(times.get(state), told, "{:?} {:?}", station, state);
            }
            prop_assert!(times.get(StationState::Busy) > Duration::ZERO);
        }
    }
}

/// A DMB after each copy shows as such: that is what costs the time.
#[test]
fn a_barrier_shows_as_the_wait_it_is() {
    let stalled = |barrier: u8, station: Station, state: StationState| {
        let copies = [(0, 4096, barrier); 8];
        let (rig, _) = watched(Arch::V3, &copies);
        rig.system.station_times()[0].times[station as usize].get(state)
    };
    let none = stalled(0, Station::Read, StationState::Dmb);
    let dmb = stalled(1, Station::Read, StationState::Dmb);
    assert_eq!(none, Duration::ZERO);
    assert!(dmb > Duration::from_ns(8 * 100), "{dmb}");
    let none = stalled(0, Station::Write, StationState::Acknowledge);
    let barrier = stalled(2, Station::Write, StationState::Acknowledge);
    assert_eq!(none, Duration::ZERO);
    assert!(barrier > Duration::ZERO, "{barrier}");
}
