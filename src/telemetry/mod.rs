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
use crate::system::{Observer, System};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;

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
pub type Shared<O> = Arc<Mutex<O>>;

/// Lets an observer watch a machine, and keeps a hand on it.
pub fn attach<O: Observer + 'static>(system: &mut System, observer: O) -> Shared<O> {
    let shared = Arc::new(Mutex::new(observer));
    system.observe(shared.clone());
    shared
}
