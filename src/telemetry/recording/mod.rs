//! Every transaction of a run in a file: checksummed blocks, appended as the run goes, readable up to
//! the last complete block whatever happens to the process (`docs/telemetry.md`, "Recordings").

mod block;
mod damage;
mod filter;
mod reader;
mod recorder;
mod replay;
mod window;

pub use damage::{Corruption, Damage};
pub use filter::{Filter, Kind, line};
pub use reader::{OpenError, Recording, is_recording};
pub use recorder::Recorder;
pub use replay::{Comparison, Divergence, Outcome};

use super::Machine;
use crate::sim::Instant;
use crate::system::Activity;
use serde::{Deserialize, Serialize};

/// Version of the format. Another one is needed whenever what a transaction holds changes.
pub const FORMAT: u32 = 2;

/// What was run: enough to run it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the simulator.
    pub version: String,
    /// Path of the scenario.
    pub scenario_path: String,
    /// Its text.
    pub scenario: String,
    /// The files that it names, with their content.
    pub files: Vec<(String, Vec<u8>)>,
    /// Name of the built-in config, or path of the file.
    pub config_name: String,
    /// Its text.
    pub config: String,
    /// Seed of the random streams.
    pub seed: u64,
    /// The machine.
    pub machine: Machine,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its number, counted from 0.
    pub number: u64,
    /// Where in the file the block begins that holds it.
    pub offset: u64,
    /// When it was told.
    pub at: Instant,
    /// What it was.
    pub activity: Activity,
}
