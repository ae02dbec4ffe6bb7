//! What a machine tells those who watch it. Watching changes nothing: not a byte, not a cycle.

use super::System;
use super::sequencer::SequencerId;
use crate::arch::{EngineId, QueueId};
use crate::device::{EngineActivity, Station, StationState, StationTimes};
use crate::dram::Counts;
use crate::memory::Effects;
use crate::sim::Instant;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io;

/// Something that happened in a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activity {
    /// An engine did something.
    Engine {
        /// Which one.
        engine: EngineId,
        /// What.
        what: EngineActivity,
    },
    /// An engine sent an interrupt.
    Interrupt {
        /// Which one.
        engine: EngineId,
        /// The main interrupt group.
        group: u8,
    },
    /// A store reached a semaphore.
    Semaphore {
        /// Index of the event/semaphore block.
        block: u32,
        /// Index of the semaphore in the block.
        semaphore: u32,
        /// What it holds now.
        value: i32,
    },
    /// A sequencer executed an instruction.
    Instruction {
        /// Which one.
        sequencer: SequencerId,
        /// Index of the instruction in its program.
        index: usize,
        /// Its name.
        name: Cow<'static, str>,
        /// When it came to it: later than that only if it waited for a semaphore.
        since: Instant,
    },
}

impl Activity {
    /// The engine that did it, if one did.
    pub fn engine(&self) -> Option<EngineId> {
        match self {
            Activity::Engine { engine, .. } | Activity::Interrupt { engine, .. } => Some(*engine),
            Activity::Semaphore { .. } | Activity::Instruction { .. } => None,
        }
    }

    /// The queue that did it, if one did.
    pub fn queue(&self) -> Option<QueueId> {
        match self {
            Activity::Engine { what, .. } => what.queue(),
            _ => None,
        }
    }
}

/// Somebody who watches a machine.
pub trait Observer: Send {
    /// Something happened, or was over, at `at`. Never earlier than what was told before.
    fn observe(&mut self, at: Instant, activity: &Activity);
}

/// Watches a run from its start to its end.
pub trait Watch {
    /// The machine is set up; nothing has happened yet.
    ///
    /// # Errors
    /// If watching is not possible: nothing is run then.
    fn begin(&mut self, system: &mut System) -> io::Result<()>;
    /// The run is over.
    fn end(&mut self, system: &System);
}

/// Nobody watches.
impl Watch for () {
    fn begin(&mut self, _: &mut System) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &System) {}
}

/// What one engine's stations have been at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineTimes {
    /// The engine.
    pub engine: EngineId,
    /// Of the read and of the write station: how long it was at what.
    pub times: [StationTimes; Station::ALL.len()],
    /// What it is at now, and since when.
    pub now: [(StationState, Instant); Station::ALL.len()],
}

impl System {
    /// Lets somebody watch from now on.
    pub fn observe(&mut self, observer: impl Observer + 'static) {
        self.observers.push(Box::new(observer));
        self.outbox.observed = true;
    }

    /// What the stations of the engines in use have been at until now, in engine order.
    pub fn station_times(&self) -> Vec<EngineTimes> {
        let now = self.now();
        let engines = self.engines_in_use().into_iter();
        engines
            .map(|id| {
                let engine = &self.engines[id.0 as usize];
                EngineTimes {
                    engine: id,
                    times: engine.station_times(now),
                    now: engine.station_states(),
                }
            })
            .collect()
    }

    /// Name of every sequencer, by number.
    pub fn sequencer_names(&self) -> Vec<String> {
        let names = self.sequencers.iter();
        names.map(|sequencer| sequencer.name.clone()).collect()
    }

    /// Name of every memory channel, by the number that [`Access`](crate::device::Access) gives.
    pub fn channel_names(&self) -> Vec<String> {
        self.fabric.channel_names()
    }

    /// What the controller of each HBM channel has done; these are the channels with the lowest numbers.
    pub fn hbm_counts(&self) -> Vec<Counts> {
        self.fabric.hbm_counts().copied().collect()
    }

    pub(super) fn tell(&mut self, activity: &Activity) {
        let now = self.events.now();
        for observer in &mut self.observers {
            observer.observe(now, activity);
        }
    }

    /// Tells what the engine called last did.
    pub(super) fn tell_engine(&mut self, engine: EngineId) {
        let mut activities = std::mem::take(&mut self.outbox.activities);
        for what in activities.drain(..) {
            self.tell(&Activity::Engine { engine, what });
        }
        self.outbox.activities = activities;
    }

    /// Tells which semaphores a store changed.
    pub(super) fn tell_semaphores(&mut self, effects: Effects) {
        let Effects::Semaphores {
            block,
            first,
            count,
        } = effects
        else {
            return;
        };
        for semaphore in first..first.saturating_add(count) {
            let value = self.semaphore(block, semaphore);
            self.tell(&Activity::Semaphore {
                block,
                semaphore,
                value,
            });
        }
    }
}
