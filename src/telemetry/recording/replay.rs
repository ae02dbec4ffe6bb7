//! A run beside its recording: whether the same things happen at the same times.

use super::damage::Damage;
use super::{Recording, Transaction};
use crate::sim::Instant;
use crate::system::{Activity, Observer};
use crate::telemetry::End;

/// The first difference between a recording and a run. What is `None` has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// Transactions before it, which are the same.
    pub same: u64,
    /// What the recording has next.
    pub recorded: Option<Transaction>,
    /// What the run did next.
    pub happened: Option<(Instant, Activity)>,
}

/// What comparing came to.
#[derive(Debug)]
pub struct Outcome {
    /// Transactions that are the same.
    pub same: u64,
    /// The first one that is not.
    pub divergence: Option<Divergence>,
    /// From where on the recording could not be read; what the run did then was not compared.
    pub damage: Option<Damage>,
}

/// Compares a run with a recording as it goes.
pub struct Comparison {
    recording: Recording,
    outcome: Outcome,
}

impl Comparison {
    /// With a recording of which nothing has been read.
    pub fn new(recording: Recording) -> Comparison {
        Comparison {
            recording,
            outcome: Outcome {
                same: 0,
                divergence: None,
                damage: None,
            },
        }
    }

    /// The run has ended.
    pub fn finish(mut self, end: &End) -> Outcome {
        self.compare(None);
        let decided = self.outcome.divergence.is_some() || self.outcome.damage.is_some();
        if !decided && self.recording.end() != Some(end) {
            // The same things happened, then one of them waited longer.
            self.diverge(None, None);
        }
        self.outcome
    }

    fn compare(&mut self, happened: Option<(Instant, &Activity)>) {
        if self.outcome.divergence.is_some() || self.outcome.damage.is_some() {
            return;
        }
        match (self.recording.next(), happened) {
            (Some(Err(damage)), _) => self.outcome.damage = Some(damage),
            (Some(Ok(recorded)), Some((at, activity)))
                if recorded.at == at && recorded.activity == *activity =>
            {
                self.outcome.same += 1;
            }
            (None, None) => {}
            (recorded, happened) => {
                let recorded = recorded.and_then(Result::ok);
                self.diverge(recorded, happened);
            }
        }
    }

    fn diverge(&mut self, recorded: Option<Transaction>, happened: Option<(Instant, &Activity)>) {
        self.outcome.divergence = Some(Divergence {
            same: self.outcome.same,
            recorded,
            happened: happened.map(|(at, activity)| (at, activity.clone())),
        });
    }
}

/// Until it is taken out to be finished.
impl Observer for Option<Comparison> {
    fn observe(&mut self, at: Instant, activity: &Activity) {
        if let Some(comparison) = self {
            comparison.compare(Some((at, activity)));
        }
    }
}
