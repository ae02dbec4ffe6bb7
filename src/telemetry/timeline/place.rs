//! What has a track: where it stands and what it is called.

use crate::arch::regs::Direction;
use crate::arch::{EngineId, EventBlock, QueueId};
use crate::device::Station;
use crate::telemetry::Machine;

/// What has a track, in the order of the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Engine(EngineId),
    Station(EngineId, Station),
    Outstanding(EngineId, Burst),
    Throughput(EngineId),
    Queue(EngineId, QueueId),
    Packets(EngineId, QueueId),
    Dmb(EngineId, QueueId),
    Held(EngineId, QueueId),
    Descriptors(EngineId, QueueId, Direction),
    Fetches(EngineId, QueueId, Direction),
    Memory,
    Channel(u32),
    Sequencers,
    Sequencer(usize),
    Semaphores,
    Semaphore(u32, u32),
    SemaphoreValue(u32, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Burst {
    Fetch,
    Read,
    Write,
}

impl Burst {
    pub fn name(self) -> &'static str {
        match self {
            Burst::Fetch => "fetch",
            Burst::Read => "read",
            Burst::Write => "write",
        }
    }
}

/// How a track is shown.
pub(super) struct Described {
    /// Below which one.
    pub parent: Option<Place>,
    /// Its place among its siblings.
    pub rank: i32,
    pub name: String,
    /// The unit of its numbers, if it is a counter.
    pub unit: Option<&'static str>,
}

/// Ranks of the tracks at the top that are not engines: below every engine.
const MEMORY_RANK: i32 = 1 << 20;
const SEQUENCERS_RANK: i32 = MEMORY_RANK + 1;
const SEMAPHORES_RANK: i32 = MEMORY_RANK + 2;

impl Place {
    /// How it is shown on a machine.
    pub fn describe(self, machine: &Machine) -> Described {
        use Place::*;
        let named = |names: &[String], index: usize| {
            let name = names.get(index).cloned();
            name.unwrap_or_else(|| index.to_string())
        };
        let (parent, rank, name) = match self {
            Engine(engine) => (None, engine.0 as i32, engine.to_string()),
            Station(engine, station) => {
                let name = format!("{} station", station.name());
                (Some(Engine(engine)), station as i32, name)
            }
            Outstanding(engine, burst) => {
                let name = format!("{} bursts outstanding", burst.name());
                (Some(Engine(engine)), 2 + burst as i32, name)
            }
            Throughput(engine) => (Some(Engine(engine)), 5, "written".to_string()),
            Queue(engine, queue) => {
                let name = format!("queue {queue}");
                (Some(Engine(engine)), 6 + i32::from(queue.0), name)
            }
            Packets(engine, queue) => (Some(Queue(engine, queue)), 0, "packets".to_string()),
            Dmb(engine, queue) => (Some(Queue(engine, queue)), 1, "suspended".to_string()),
            Held(engine, queue) => (Some(Queue(engine, queue)), 2, "writes held".to_string()),
            Descriptors(engine, queue, direction) => {
                let name = format!("{} descriptors", direction.ring_name());
                (Some(Queue(engine, queue)), 3 + direction as i32, name)
            }
            Fetches(engine, queue, direction) => {
                let name = format!("{} fetches", direction.ring_name());
                (Some(Queue(engine, queue)), 5 + direction as i32, name)
            }
            Memory => (None, MEMORY_RANK, "memory".to_string()),
            Channel(channel) => {
                let name = named(&machine.channels, channel as usize);
                (Some(Memory), channel as i32, name)
            }
            Sequencers => (None, SEQUENCERS_RANK, "sequencers".to_string()),
            Sequencer(index) => {
                let name = named(&machine.sequencers, index);
                (Some(Sequencers), index as i32, name)
            }
            Semaphores => (None, SEMAPHORES_RANK, "semaphores".to_string()),
            Semaphore(block, semaphore) => {
                let rank = (block * EventBlock::CELLS + semaphore) as i32;
                (Some(Semaphores), rank, format!("{block}.{semaphore}"))
            }
            SemaphoreValue(block, semaphore) => {
                let name = format!("{block}.{semaphore} value");
                (Some(Semaphore(block, semaphore)), 0, name)
            }
        };
        let unit = match self {
            Outstanding(..) | SemaphoreValue(..) => Some(""),
            Throughput(_) => Some("GB/s"),
            _ => None,
        };
        Described {
            parent,
            rank,
            name,
            unit,
        }
    }
}
