//! Why a litmus test cannot be made a scenario.

use crate::config::ConfigError;
use crate::scenario::file::ScenarioError;
use crate::scenario::run::RunError;

/// Seeds that are tried until an allowed outcome appears, and that a forbidden one must survive.
pub(super) const ALLOWED_SEEDS: u64 = 2000;
pub(super) const FORBIDDEN_SEEDS: u64 = 10;

/// Why a litmus test cannot be made a scenario.
#[derive(Debug, thiserror::Error)]
pub enum EmitError {
    /// Scenario files have no words for it.
    #[error("a scenario cannot express {0}")]
    NotExpressible(String),
    /// The config cannot be used with other latencies.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The scenario is none.
    #[error("the generated scenario is invalid: {0}")]
    Refused(#[from] ScenarioError),
    /// The scenario cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A run did not come to its end.
    #[error("seed {seed}: {why}")]
    Stopped {
        /// Its seed.
        seed: u64,
        /// Why.
        why: String,
    },
    /// An allowed outcome did not appear.
    #[error("the outcome is allowed, but none of {ALLOWED_SEEDS} seeds shows it")]
    NotSeen,
    /// A forbidden outcome appeared.
    #[error("seed {0} shows the outcome, which is forbidden")]
    Forbidden(u64),
}
