//! Laws that no run may break, checked in every run of a build with debug assertions: time never
//! goes back; an engine moves at most one beat a cycle on each of its two data paths; a channel moves no more
//! in any window of time than its bandwidth allows; the stretches of an access's way follow each other and add
//! up.
//!
//! A broken law is a fault of the simulator, never of its input: it panics.

use super::System;
use super::observe::{Activity, Observer};
use crate::arch::EngineId;
use crate::device::{Access, BEAT_BYTES, EngineActivity, Station};
use crate::sim::{Clock, Duration, Instant};
use crate::units::Cycles;
use std::collections::{BTreeMap, VecDeque};

/// Intervals that do not overlap. Only the newest ones are kept: what is told comes at most a few
/// hundred accesses out of order.
#[derive(Default)]
struct Occupancy(BTreeMap<Instant, Instant>);

/// Intervals kept for certain.
const KEPT: usize = 4096;

impl Occupancy {
    /// Adds an interval; false if it overlaps one that is there.
    fn add(&mut self, from: Instant, until: Instant) -> bool {
        let before = self.0.range(..=from).next_back();
        let after = self.0.range(from..).next();
        let free = before.is_none_or(|(_, end)| *end <= from)
            && after.is_none_or(|(start, _)| until <= *start);
        self.0.insert(from, until);
        if self.0.len() > 2 * KEPT {
            let oldest = self.0.keys().nth(KEPT).copied();
            self.0 = oldest.map_or(BTreeMap::new(), |oldest| self.0.split_off(&oldest));
        }
        free
    }
}

/// The newest accesses to a channel: arrived, served, and how long it is busy with them.
#[derive(Default)]
struct Served(VecDeque<(Instant, Instant, Duration)>);

/// Accesses of a channel that are looked at together.
const WINDOW: usize = 16;

impl Served {
    /// Adds an access; false if the channel had to do more in some window than fits into it.
    fn add(&mut self, arrived: Instant, served: Instant, busy: Duration) -> bool {
        if self.0.len() == WINDOW {
            self.0.pop_front();
        }
        self.0.push_back((arrived, served, busy));
        // What arrived in a window and was served in it was all done in it.
        let fits = |from: Instant| {
            let inside = self.0.iter().filter(|(a, s, _)| *a >= from && *s <= served);
            let work = inside.fold(Duration::ZERO, |sum, (_, _, busy)| sum + *busy);
            work <= served - from
        };
        self.0
            .iter()
            .all(|(from, ..)| *from > arrived || fits(*from))
    }
}

/// The checker of one machine.
pub(super) struct Conservation {
    clock: Clock,
    /// How long a beat occupies each channel.
    channel_beats: Vec<Duration>,
    now: Instant,
    paths: BTreeMap<(EngineId, Station), Occupancy>,
    channels: BTreeMap<u32, Served>,
}

impl Conservation {
    pub fn new(clock: Clock, channel_beats: Vec<Duration>) -> Conservation {
        Conservation {
            clock,
            channel_beats,
            now: Instant::START,
            paths: BTreeMap::new(),
            channels: BTreeMap::new(),
        }
    }

    /// An access on the data path of an engine, which it occupied for its beats from `from` on.
    fn path(&mut self, engine: EngineId, station: Station, from: Instant, access: &Access) {
        // Edges are rounded up to a femtosecond each: a span between two may be one shorter.
        let beats = u64::from(access.len.div_ceil(BEAT_BYTES));
        let span = self.clock.span(Cycles(beats)).as_fs().saturating_sub(1);
        let path = self.paths.entry((engine, station)).or_default();
        assert!(
            path.add(from, from + Duration::from_fs(span)),
            "{engine}: more than one beat per cycle on the {} path: {access:?}",
            station.name(),
        );
    }

    fn access(&mut self, engine: EngineId, access: &Access) {
        let times = access.times;
        assert!(
            access.issued <= times.arrived
                && times.arrived <= times.served_from
                && times.served_from <= times.served
                && times.served <= times.done
                && times.done + times.response <= access.answered,
            "{engine}: the times of an access do not add up: {access:?}"
        );
        let beats = u64::from(access.len.div_ceil(BEAT_BYTES));
        let beat = self.channel_beats[access.channel as usize].as_fs();
        let busy = (times.served - times.served_from).as_fs();
        assert!(
            busy >= beat * beats,
            "{engine}: an access was served faster than its channel allows: {access:?}"
        );
        // HBM answers at edges of its clock, which are rounded up to a femtosecond, and a beat is rounded too.
        let busy = Duration::from_fs(busy.saturating_sub(beats + 1));
        let channel = self.channels.entry(access.channel).or_default();
        assert!(
            channel.add(times.arrived, times.served, busy),
            "{engine}: a channel moved more than its bandwidth allows: {access:?}"
        );
    }
}

impl System {
    /// The same machine, checked from now on.
    pub(super) fn checked(mut self) -> System {
        let beats = self.fabric.channel_beats();
        self.observe(Conservation::new(self.clock, beats));
        self
    }
}

impl Observer for Conservation {
    fn observe(&mut self, at: Instant, activity: &Activity) {
        assert!(
            at >= self.now,
            "time went backwards from {:?} to {at:?}",
            self.now
        );
        self.now = at;
        let Activity::Engine { engine, what } = activity else {
            return;
        };
        match what {
            EngineActivity::Fetch { access, .. } => self.access(*engine, access),
            EngineActivity::Read { access, .. } => {
                self.access(*engine, access);
                self.path(*engine, Station::Read, access.issued, access);
            }
            EngineActivity::Write { access, .. } => {
                self.access(*engine, access);
                let beats = u64::from(access.len.div_ceil(BEAT_BYTES));
                let left = self.clock.cycle_from(access.issued).0;
                let from = self.clock.edge(Cycles(left.saturating_sub(beats)));
                self.path(*engine, Station::Write, from, access);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Times;
    use proptest::prelude::*;

    proptest! {
        /// Against a search through all intervals.
        #[test]
        fn overlaps_are_found(intervals in prop::collection::vec((0u64..200, 1u64..8), 1..40)) {
            let mut occupancy = Occupancy::default();
            let mut all: Vec<(u64, u64)> = Vec::new();
            for (from, len) in intervals {
                let until = from + len;
                let free = all.iter().all(|(start, end)| until <= *start || *end <= from);
                let added = occupancy.add(Instant::from_fs(from), Instant::from_fs(until));
                prop_assert_eq!(added, free);
                if !free {
                    return Ok(());
                }
                all.push((from, until));
            }
        }
    }

    /// A machine of two channels that a read of 64 bytes may take 10 ns of each.
    fn told(accesses: &[(u64, u32, u64, u64)]) {
        let clock = Clock::new(crate::units::Hertz(1_000_000_000)).unwrap();
        let mut laws = Conservation::new(clock, vec![Duration::from_ns(5); 2]);
        for (issued, channel, from, until) in accesses {
            let at = |ns: u64| Instant::from_fs(ns * 1_000_000);
            let what = EngineActivity::Read {
                queue: crate::arch::QueueId(0),
                slot: 0,
                access: Access {
                    at: crate::units::Addr(0),
                    len: 64,
                    channel: *channel,
                    issued: at(*issued),
                    times: Times {
                        arrived: at(*from),
                        served_from: at(*from),
                        served: at(*until),
                        done: at(until + 1),
                        response: Duration::from_ns(1),
                    },
                    answered: at(until + 2),
                },
            };
            let engine = EngineId(0);
            laws.observe(at(until + 2), &Activity::Engine { engine, what });
        }
    }

    #[test]
    fn a_lawful_run_passes() {
        told(&[(0, 0, 5, 15), (2, 1, 5, 15), (4, 0, 15, 25)]);
    }

    #[test]
    #[should_panic(expected = "more than one beat per cycle")]
    fn a_read_path_is_not_faster_than_its_clock() {
        told(&[(0, 0, 5, 15), (1, 1, 5, 15)]);
    }

    #[test]
    #[should_panic(expected = "more than its bandwidth")]
    fn a_channel_serves_one_at_a_time() {
        told(&[(0, 0, 5, 15), (2, 0, 5, 24)]);
    }

    #[test]
    #[should_panic(expected = "faster than its channel")]
    fn a_channel_is_not_faster_than_its_bandwidth() {
        told(&[(0, 0, 5, 14)]);
    }

    #[test]
    #[should_panic(expected = "do not add up")]
    fn nothing_is_served_before_it_is_issued() {
        told(&[(6, 0, 5, 15)]);
    }

    #[test]
    #[should_panic(expected = "time went backwards")]
    fn time_never_goes_back() {
        told(&[(2, 0, 15, 25), (4, 1, 5, 15)]);
    }
}
