//! What a page shows of a run, gathered as it goes, in bounded memory.

use crate::arch::{EngineId, QueueId};
use crate::device::EngineActivity;
use crate::sim::{Duration, Instant};
use crate::system::{Activity, Observer};
use crate::telemetry::Machine;
use crate::telemetry::stats::Collector;

/// Stretches of time that the throughput is shown for, at most.
const MOST_STRETCHES: usize = 400;

/// Their length at first; it doubles whenever there are too many.
const FIRST_STRETCH: Duration = Duration::from_ns(25);

/// Packets that are shown one by one: the first ones.
const MOST_PACKETS: usize = 4_000;

/// Bytes over time.
pub(super) struct Series {
    /// Length of a stretch.
    pub stretch: Duration,
    /// Bytes read and written in each.
    pub bytes: Vec<[u64; 2]>,
}

impl Series {
    fn add(&mut self, at: Instant, write: bool, bytes: u32) {
        while at.as_fs() / self.stretch.as_fs() >= MOST_STRETCHES as u64 {
            self.stretch = self.stretch + self.stretch;
            let sum = |pair: &[[u64; 2]]| {
                let second = pair.get(1).copied().unwrap_or_default();
                [pair[0][0] + second[0], pair[0][1] + second[1]]
            };
            self.bytes = self.bytes.chunks(2).map(sum).collect();
        }
        let index = (at.as_fs() / self.stretch.as_fs()) as usize;
        if self.bytes.len() <= index {
            self.bytes.resize(index + 1, [0; 2]);
        }
        self.bytes[index][usize::from(write)] += u64::from(bytes);
    }
}

/// A packet on the page.
pub(super) struct PacketSpan {
    pub engine: EngineId,
    pub queue: QueueId,
    pub number: u64,
    pub bytes: u64,
    pub span: (Instant, Instant),
    /// DMB, computation, or none of them.
    pub kind: &'static str,
}

/// Gathers what a page shows.
pub struct Profile {
    pub(super) collector: Collector,
    pub(super) series: Series,
    pub(super) packets: Vec<PacketSpan>,
    /// When the last thing was told.
    last: Instant,
}

impl Profile {
    /// Of a machine that has not run yet.
    pub fn new(machine: Machine) -> Profile {
        Profile {
            collector: Collector::new(machine),
            series: Series {
                stretch: FIRST_STRETCH,
                bytes: Vec::new(),
            },
            packets: Vec::new(),
            last: Instant::START,
        }
    }

    /// When the last thing happened that it was told of.
    pub fn last(&self) -> Instant {
        self.last
    }
}

impl Observer for Profile {
    fn observe(&mut self, at: Instant, activity: &Activity) {
        self.collector.observe(at, activity);
        self.last = at;
        let Activity::Engine { engine, what } = activity else {
            return;
        };
        match what {
            EngineActivity::Read { access, .. } => {
                self.series.add(access.answered, false, access.len);
            }
            EngineActivity::Write { access, .. } => {
                self.series.add(access.answered, true, access.len);
            }
            EngineActivity::Packet {
                queue,
                number,
                bytes,
                started,
                dmb,
                computed,
                ..
            } if self.packets.len() < MOST_PACKETS => self.packets.push(PacketSpan {
                engine: *engine,
                queue: *queue,
                number: *number,
                bytes: *bytes,
                span: (*started, at),
                kind: match (dmb, computed) {
                    (true, _) => "dmb",
                    (_, true) => "computation",
                    _ => "copy",
                },
            }),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_byte_is_lost_when_stretches_double(
            adds in prop::collection::vec((0u64..1 << 45, any::<bool>(), 0u32..5000), 0..200)
        ) {
            let mut series = Series { stretch: FIRST_STRETCH, bytes: Vec::new() };
            let mut totals = [0; 2];
            for (at, write, bytes) in adds {
                series.add(Instant::from_fs(at), write, bytes);
                totals[usize::from(write)] += u64::from(bytes);
            }
            prop_assert!(series.bytes.len() <= MOST_STRETCHES);
            for (half, total) in totals.into_iter().enumerate() {
                let sum: u64 = series.bytes.iter().map(|bytes| bytes[half]).sum();
                prop_assert_eq!(sum, total);
            }
        }
    }
}
