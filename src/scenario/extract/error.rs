//! Why a scenario cannot be checked for races.

use crate::host::PringError;
use std::path::PathBuf;

/// Why a scenario cannot be checked for races.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// Memory for the rings could not be mapped.
    #[error("cannot map memory: {0}")]
    Memory(#[from] std::io::Error),
    /// A ring could not be set up.
    #[error(transparent)]
    Ring(#[from] PringError),
    /// A step that the check cannot follow.
    #[error("{path}:{line}: {call}: {what}", path = path.display())]
    Step {
        /// The scenario file.
        path: PathBuf,
        /// Line of the step, or of the sequencer's instruction.
        line: usize,
        /// What it does.
        call: String,
        /// Why it cannot be followed.
        what: String,
    },
}
