//! A scenario resolved for one arch: names looked up, places turned into addresses, files read,
//! every step tried on a scratch memory. What is a [`Plan`] can be run.

mod expects;
mod faults;
mod regions;
mod scope;
pub(super) mod sequencers;
mod steps;
mod waits;

pub(super) use faults::FaultPlan;
pub(super) use scope::Scope;

use super::ast::{Ast, Only};
use super::diag::{Document, Reported, ScenarioError};
use super::fill::Fill;
use super::host_side::HostAction;
use super::place::Region;
use crate::arch::Arch;
use crate::config::Config;
use crate::sim::Duration;
use crate::system::SequencerOp;
use crate::units::Addr;
use std::ops::Range;
use std::path::PathBuf;

/// A scenario ready to run.
#[derive(Debug)]
pub struct Plan {
    /// The scenario file.
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) config: Config,
    pub(super) seed: u64,
    /// Contents of memory before the first step.
    pub(super) contents: Vec<Content>,
    pub(super) prings: Vec<PringPlan>,
    pub(super) steps: Vec<Step>,
    pub(super) sequencers: Vec<SequencerPlan>,
    pub(super) faults: Vec<FaultPlan>,
    pub(super) expects: Vec<Expect>,
}

/// A region and what it holds at the start.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub region: Region,
    pub fill: Fill,
}

/// A program that runs beside the host.
#[derive(Debug)]
pub(super) struct SequencerPlan {
    pub name: String,
    pub program: Vec<SequencerOp>,
    /// The line of each operation.
    pub lines: Vec<usize>,
}

/// A ring in device memory.
#[derive(Clone, Debug)]
pub(super) struct PringPlan {
    pub name: String,
    /// Line of the file, counted from 1.
    pub line: usize,
    pub direction: crate::arch::regs::Direction,
    pub at: Addr,
    pub descriptors: u32,
    /// Descriptors that a file holds.
    pub bytes: Vec<u8>,
}

/// One host step.
#[derive(Debug)]
pub(super) struct Step {
    /// Index of the `[[step]]` in the file; repetitions share it.
    pub source: usize,
    /// Line of the file, counted from 1.
    pub line: usize,
    pub label: Option<String>,
    /// The operation, as the file names it.
    pub call: &'static str,
    /// What it works on.
    pub detail: String,
    pub action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    Host(HostAction),
    Wait {
        on: WaitOn,
        timeout: Duration,
    },
    /// The oldest interrupt, when it is there.
    Interrupt {
        timeout: Duration,
    },
    Observe {
        name: String,
        region: Region,
    },
    ReadRegister {
        name: String,
        at: Addr,
    },
}

impl Action {
    /// Whether it rings a doorbell by writing its register.
    fn rings_by_register(&self) -> bool {
        matches!(
            self,
            Action::Host(HostAction::WriteRegister { doorbell: true, .. })
        )
    }

    /// Whether it adds descriptors to a vring.
    fn adds_to(&self, name: &str) -> bool {
        match self {
            Action::Host(
                HostAction::AddTransfer { vring, .. }
                | HostAction::AddEvent { vring, .. }
                | HostAction::AddSemaphoreInc { vring, .. },
            ) => vring == name,
            Action::Host(HostAction::Authoring(action)) => action.adds_to(name),
            _ => false,
        }
    }
}

/// What a host wait waits for.
#[derive(Clone, Debug)]
pub(super) enum WaitOn {
    Condition(crate::system::Condition),
    For(Duration),
    /// Index into [`Plan::sequencers`].
    Sequencer(usize),
}

/// One expectation.
#[derive(Debug)]
pub(super) struct Expect {
    /// Line of the file, counted from 1.
    pub line: usize,
    /// What is expected, in words.
    pub text: String,
    pub check: Check,
}

#[derive(Debug)]
pub(super) enum Check {
    Bytes {
        of: Subject,
        equal: bool,
        wanted: Wanted,
    },
    /// The value of an event or a semaphore, read at this address.
    Cell {
        at: Addr,
        value: i32,
    },
    NoErrors,
    Errors {
        engine: crate::arch::EngineId,
        m2s: u32,
        s2m: u32,
    },
    Time(Bounds),
    Elapsed {
        steps: Range<usize>,
        bounds: Bounds,
        longer_than: Option<Range<usize>>,
    },
}

/// Bytes that an expectation looks at.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    /// Memory at the end.
    Memory(Region),
    /// What a host step or a sequencer saw.
    Observation(String),
}

#[derive(Clone, Debug)]
pub(super) enum Wanted {
    Fill(Fill),
    Region(Region),
    Sha256([u8; 32]),
}

/// A range of simulated time, ends included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub min: Option<Duration>,
    pub max: Option<Duration>,
}

/// Resolves a scenario for the arch of `config`.
pub(super) fn resolve(
    document: &Document,
    ast: &Ast,
    config: Config,
    seed: u64,
) -> Result<Plan, ScenarioError> {
    document.conclude(build(document, ast, config, seed))
}

fn build(document: &Document, ast: &Ast, config: Config, seed: u64) -> Result<Plan, Reported> {
    let arch = config.arch();
    if !ast.runs_on.contains(&arch) {
        let legal: Vec<&str> = ast.runs_on.iter().map(|arch| arch.name()).collect();
        let message = format!(
            "config {} is for {arch}; this scenario runs on {}",
            config.origin,
            legal.join(", ")
        );
        return Err(document.report(&ast.runs_on.mark, message));
    }
    let mut scope = Scope::new(document, &config, seed)?;
    let contents = regions::memory(&mut scope, &ast.memory);
    let prings = regions::prings(&mut scope, &ast.prings);
    // Whatever names a region would only repeat that the region is wrong.
    let (contents, prings) = (contents?, prings?);
    let names = sequencers::names(&mut scope, ast);
    let tried = steps::steps(&mut scope, ast, &prings);
    names?;
    let tried = tried?;
    let sequencers = sequencers::programs(&mut scope, ast, &tried.host)?;
    waits::check(&scope, &tried, &sequencers, &contents);
    let faults = faults::faults(&scope, ast);
    let expects = expects::expects(&scope, ast, &tried.steps, &contents)?;
    let faults = faults?;
    Ok(Plan {
        path: document.path().to_path_buf(),
        name: ast.name.clone(),
        description: ast.description.clone(),
        config,
        seed,
        contents,
        prings,
        steps: tried
            .steps
            .into_iter()
            .map(|planned| planned.step)
            .collect(),
        sequencers: sequencers
            .into_iter()
            .map(|planned| SequencerPlan {
                name: planned.name,
                program: planned.program,
                lines: planned
                    .marks
                    .iter()
                    .map(|mark| document.line(mark))
                    .collect(),
            })
            .collect(),
        faults,
        expects,
    })
}

/// Whether a part of the scenario counts on this arch.
fn applies(only: &Only, arch: Arch) -> bool {
    only.as_ref().is_none_or(|arches| arches.contains(&arch))
}
