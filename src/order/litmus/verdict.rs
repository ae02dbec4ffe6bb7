//! What the explorer and the timing engine say to a litmus test.

use super::{Answer, Case};
use crate::config::Config;
use crate::order::explore::{Exploration, Options, Path, TooLarge, explore};
use crate::order::timed::{self, TimedError};
use crate::sim::Duration;

/// What the explorer says.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The answer; `None` if the bound was hit before the outcome was found: that proves nothing.
    pub answer: Option<Answer>,
    /// An execution that ends in the outcome.
    pub witness: Option<Path>,
    /// Explored executions that end in the outcome, and others.
    pub executions: (u64, u64),
    /// The search.
    pub exploration: Exploration,
}

/// Explores a case.
///
/// # Errors
/// [`TooLarge`].
pub fn verdict(case: &Case, options: Options) -> Result<Verdict, TooLarge> {
    let exploration = explore(&case.program, options)?;
    let mut executions = (0, 0);
    let mut witness = None;
    for (outcome, ending) in &exploration.endings {
        if case.asked.holds(outcome) {
            executions.0 += ending.executions;
            witness.get_or_insert_with(|| ending.witness.clone());
        } else {
            executions.1 += ending.executions;
        }
    }
    let answer = match (&witness, exploration.exhaustive) {
        (Some(_), _) => Some(Answer::Allowed),
        (None, true) => Some(Answer::Forbidden),
        (None, false) => None,
    };
    Ok(Verdict {
        answer,
        witness,
        executions,
        exploration,
    })
}

/// What the timing engine showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedVerdict {
    /// Runs, each with its own seed.
    pub runs: u64,
    /// Runs that ended in the outcome.
    pub seen: u64,
    /// The first seed that did.
    pub first: Option<u64>,
}

impl TimedVerdict {
    /// Runs a case with seeds `0..seeds`.
    ///
    /// # Errors
    /// [`TimedError`].
    pub fn of(
        case: &Case,
        config: &Config,
        seeds: u64,
        jitter: Duration,
    ) -> Result<TimedVerdict, TimedError> {
        let mut found = TimedVerdict {
            runs: seeds,
            seen: 0,
            first: None,
        };
        for seed in 0..seeds {
            let outcome = timed::run(&case.program, config, seed, jitter)?;
            if case.asked.holds(&outcome) {
                found.seen += 1;
                found.first.get_or_insert(seed);
            }
        }
        Ok(found)
    }

    /// Whether that is what an answer promises: never, or at least once.
    pub fn agrees(&self, expected: Answer) -> bool {
        (self.seen > 0) == (expected == Answer::Allowed)
    }
}
