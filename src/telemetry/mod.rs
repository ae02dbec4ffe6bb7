//! What watching a run gives: statistics, timelines, waves, recordings, a page.
//! Everything here is an [`Observer`] of a
//! machine, so nothing of it changes a byte or a cycle (`docs/telemetry.md`).

pub mod page;
pub mod recording;
mod reorder;
pub mod stats;
pub mod timeline;
pub mod waves;

use crate::arch::{Arch, EngineId};
use crate::device::{Station, StationState};
use crate::dram::Counts;
use crate::sim::Instant;
use crate::system::{Activity, Observer, System};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is known of a machine before it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its generation.
    pub arch: Arch,
    /// Name of every memory channel, by number.
    pub channels: Vec<String>,
    /// Name of every sequencer, by number.
    pub sequencers: Vec<String>,
}

impl Machine {
    /// What a system says of itself.
    pub fn of(system: &System) -> Machine {
        Machine {
            arch: system.arch(),
            channels: system.channel_names(),
            sequencers: system.sequencer_names(),
        }
    }
}

/// Where a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The time.
    pub at: Instant,
    /// What the stations of the engines in use were at, and since when.
    pub stations: Vec<(EngineId, [(StationState, Instant); Station::ALL.len()])>,
    /// What the controllers of the HBM channels have done, which are the first channels of the machine.
    pub hbm: Vec<Counts>,
}

impl End {
    /// Where a system is.
    pub fn of(system: &System) -> End {
        let engines = system.station_times().into_iter();
        End {
            at: system.now(),
            stations: engines.map(|times| (times.engine, times.now)).collect(),
            hbm: system.hbm_counts(),
        }
    }
}

/// An observer that its owner can ask while the machine holds it too.
#[derive(Debug, Default)]
pub struct Shared<O>(Arc<Mutex<O>>);

impl<O> Shared<O> {
    /// What `look` says of the observer. The machine must not run meanwhile on the same thread.
    pub fn with<R>(&self, look: impl FnOnce(&mut O) -> R) -> R {
        look(&mut self.0.lock())
    }
}

impl<O> Clone for Shared<O> {
    fn clone(&self) -> Shared<O> {
        Shared(Arc::clone(&self.0))
    }
}

impl<O: Observer> Observer for Shared<O> {
    fn observe(&mut self, at: Instant, activity: &Activity) {
        self.0.lock().observe(at, activity);
    }
}

/// Lets an observer watch a machine, and keeps a hand on it.
pub fn attach<O: Observer + 'static>(system: &mut System, observer: O) -> Shared<O> {
    let shared = Shared(Arc::new(Mutex::new(observer)));
    system.observe(shared.clone());
    shared
}
