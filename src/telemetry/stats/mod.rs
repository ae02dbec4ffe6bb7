//! Statistics of a run: how busy each part was, what it waited for, what it moved and how long that
//! took.

mod latency;
mod summary;

pub use latency::{Latencies, Latency};
pub use summary::{ChannelStats, EngineStats, QueueStats, StationStats, Stats};

use super::{End, Machine};
use crate::arch::regs::Direction;
use crate::arch::{EngineId, QueueId};
use crate::device::{Access, EngineActivity, Station, StationState};
use crate::sim::{Duration, Instant};
use crate::system::{Activity, Observer};
use std::collections::BTreeMap;

/// What queues have latencies of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A burst of descriptors: from its issue until they are at the engine.
    Fetch,
    /// A read burst: from its issue until the data is at the engine.
    Read,
    /// A write burst: from its last beat until the engine has the acknowledge.
    Write,
    /// A packet: from when it is scheduled until it is complete.
    Packet,
}

impl Step {
    /// All of them.
    pub const ALL: [Step; 4] = [Step::Fetch, Step::Read, Step::Write, Step::Packet];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Step::Fetch => "fetch",
            Step::Read => "read",
            Step::Write => "write",
            Step::Packet => "packet",
        }
    }
}

/// What one queue has done.
#[derive(Default)]
pub(crate) struct QueueTally {
    doorbells: [u64; 2],
    packets: u64,
    descriptors: [u64; 2],
    bytes_read: u64,
    bytes_written: u64,
    pub latencies: [Latencies; Step::ALL.len()],
    /// Until when it had packets, and how long in all.
    in_use_until: Instant,
    in_use: Duration,
    /// How long DMBs suspended it.
    suspended: Duration,
    /// How long write barriers and strong-order writes held its next write.
    held: Duration,
}

impl QueueTally {
    fn latency(&mut self, step: Step, latency: Duration) {
        self.latencies[step as usize].add(latency);
    }
}

/// What one engine has done.
#[derive(Default)]
pub(crate) struct EngineTally {
    states: [[Duration; StationState::ALL.len()]; Station::ALL.len()],
    pub queues: BTreeMap<QueueId, QueueTally>,
}

/// What one channel has done.
#[derive(Clone, Copy, Default)]
struct ChannelTally {
    /// Reads and writes.
    accesses: [u64; 2],
    bytes: [u64; 2],
    busy: Duration,
}

/// Gathers statistics.
pub struct Collector {
    machine: Machine,
    pub(crate) engines: BTreeMap<EngineId, EngineTally>,
    channels: Vec<ChannelTally>,
}

impl Collector {
    /// Of a machine that has not run yet.
    pub fn new(machine: Machine) -> Collector {
        Collector {
            channels: vec![ChannelTally::default(); machine.channels.len()],
            machine,
            engines: BTreeMap::new(),
        }
    }

    /// What it comes to.
    pub fn stats(&self, end: &End) -> Stats {
        Stats::new(self, end)
    }

    fn channel(&mut self, access: &Access, write: bool) {
        let Some(channel) = self.channels.get_mut(access.channel as usize) else {
            return;
        };
        channel.accesses[usize::from(write)] += 1;
        channel.bytes[usize::from(write)] += u64::from(access.len);
        channel.busy = channel.busy + (access.times.served - access.times.served_from);
    }

    fn engine(&mut self, at: Instant, engine: EngineId, what: &EngineActivity) {
        use EngineActivity::*;
        match what {
            Fetch { access, .. } | Read { access, .. } => self.channel(access, false),
            Write { access, .. } => self.channel(access, true),
            _ => {}
        }
        let engine = self.engines.entry(engine).or_default();
        match what {
            Doorbell {
                direction, queue, ..
            } => engine.queue(*queue).doorbells[*direction as usize] += 1,
            Fetch { queue, access, .. } => {
                let latency = access.answered - access.issued;
                engine.queue(*queue).latency(Step::Fetch, latency);
            }
            Read { queue, access, .. } => {
                let queue = engine.queue(*queue);
                queue.bytes_read += u64::from(access.len);
                queue.latency(Step::Read, access.answered - access.issued);
            }
            Write { queue, access, .. } => {
                let queue = engine.queue(*queue);
                queue.bytes_written += u64::from(access.len);
                queue.latency(Step::Write, access.answered - access.issued);
            }
            Packet {
                queue,
                descriptors,
                started,
                dmb,
                ..
            } => {
                let queue = engine.queue(*queue);
                queue.packets += 1;
                for direction in Direction::ALL {
                    let half = direction as usize;
                    queue.descriptors[half] += u64::from(descriptors[half]);
                }
                queue.latency(Step::Packet, at - *started);
                // Packets of a queue start and end in order.
                let from = queue.in_use_until.max(*started);
                queue.in_use = queue.in_use + (at - from);
                queue.in_use_until = at;
                if *dmb {
                    queue.suspended = queue.suspended + (at - *started);
                }
            }
            Station {
                station,
                state,
                since,
                ..
            } => {
                let time = &mut engine.states[*station as usize][*state as usize];
                *time = *time + (at - *since);
            }
            Barrier { queue, since, .. } => {
                let queue = engine.queue(*queue);
                queue.held = queue.held + (at - *since);
            }
            Descriptor { .. } | Completion { .. } | Error { .. } => {}
        }
    }
}

impl EngineTally {
    fn queue(&mut self, queue: QueueId) -> &mut QueueTally {
        self.queues.entry(queue).or_default()
    }
}

impl Observer for Collector {
    fn observe(&mut self, at: Instant, activity: &Activity) {
        if let Activity::Engine { engine, what } = activity {
            self.engine(at, *engine, what);
        }
    }
}
