//! A litmus test as a scenario: the same cells, rings and observers in the words of scenario files, with
//! latencies, doorbells and start times drawn from a seed under which the run shows the outcome asked.

mod error;
mod program;
mod text;

pub use error::EmitError;

use super::file::Scenario;
use crate::config::Config;
use crate::order::litmus::{Answer, Case};
use crate::order::outcome::Condition;
use crate::order::timed::JITTER;
use error::{ALLOWED_SEEDS, FORBIDDEN_SEEDS};
use program::{Program, Schedule};
use std::path::Path;
use text::Text;

/// A litmus test as a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The scenario file.
    pub text: String,
    /// The config file that it names.
    pub config_name: String,
    /// The text of that: the built-in config with random latencies.
    pub config: String,
    /// The seed it has.
    pub seed: u64,
    /// What it shows, in words.
    pub shows: String,
}

/// Makes a scenario of a case whose run shows the outcome asked, if that is allowed, or else that it does
/// not happen.
///
/// # Errors
/// [`EmitError`].
pub fn emit(name: &str, case: &Case, config: &Config) -> Result<Emitted, EmitError> {
    let config_name = format!("{}-jitter.toml", config.origin);
    let mut config = config.with_jitter(JITTER)?;
    config.origin.clone_from(&config_name);
    let program = Program::of(case)?;
    let text = Text {
        name,
        case,
        program: &program,
        config_name: &config_name,
    };
    let asked: Vec<&Condition> = case.asked.0.iter().flatten().collect();
    let wanted: Vec<(&Condition, bool)> =
        asked.iter().map(|condition| (*condition, true)).collect();
    let seeds = match case.expected {
        Answer::Allowed => ALLOWED_SEEDS,
        Answer::Forbidden => FORBIDDEN_SEEDS,
    };
    let mut otherwise = None;
    for seed in 0..seeds {
        let schedule = Schedule::draw(case, seed);
        let trial = text.scenario(&schedule, &wanted)?;
        let held = run(&trial, &config, seed)?;
        let mut from = 0;
        let mut refuting = Vec::new();
        let mut shown = None;
        for all in &case.asked.0 {
            let held = &held[from..from + all.len()];
            from += all.len();
            match held.iter().position(|held| !held) {
                Some(n) => refuting.push((&all[n], false)),
                None => shown = shown.or(Some(all)),
            }
        }
        match (shown, case.expected) {
            (Some(_), Answer::Forbidden) => return Err(EmitError::Forbidden(seed)),
            (Some(all), Answer::Allowed) => {
                let expects: Vec<_> = all.iter().map(|condition| (condition, true)).collect();
                return Ok(Emitted {
                    text: text.scenario(&schedule, &expects)?,
                    config_name,
                    config: config.source,
                    seed,
                    shows: format!("shows {}", case.asked),
                });
            }
            (None, _) => otherwise = otherwise.or(Some((schedule, refuting))),
        }
    }
    match (otherwise, case.expected) {
        (Some((schedule, expects)), Answer::Forbidden) => Ok(Emitted {
            text: text.scenario(&schedule, &expects)?,
            config_name,
            config: config.source,
            seed: schedule.seed,
            shows: format!("never shows {}", case.asked),
        }),
        _ => Err(EmitError::NotSeen),
    }
}

/// Which expectations a scenario's run meets.
fn run(text: &str, config: &Config, seed: u64) -> Result<Vec<bool>, EmitError> {
    let scenario = Scenario::parse(Path::new("litmus.toml"), text.to_string())?;
    let plan = scenario.plan(config.clone(), scenario.seed())?;
    let report = plan.trial(&Default::default(), &mut |_| ())?;
    match report.stopped {
        Some(why) => Err(EmitError::Stopped { seed, why }),
        None => Ok(report.expectations.iter().map(|e| e.passed).collect()),
    }
}
