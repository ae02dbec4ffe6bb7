//! Waits that nothing can end, found before anything runs.
//!
//! The host and the sequencers each go through their operations as far as waits let them. A wait
//! lets pass if something that was reached could produce what it waits for: a store, or a doorbell
//! on a queue whose ring writes there. How often it is produced is not counted, so that what is
//! reported is certain to hang, and what is not reported may still time out.

use super::super::diag::Mark;
use super::super::host_side::{HostAction, HostSide};
use super::super::place::{Cell, Region};
use super::scope::Scope;
use super::sequencers::PlannedSequencer;
use super::steps::{PlannedStep, Tried};
use super::{Action, Content, WaitOn};
use crate::arch::regs::Direction;
use crate::arch::{EngineId, EventBlock};
use crate::memory::PhysicalMemory;
use crate::system::{Condition, SequencerOp, WaitOp};
use crate::units::Addr;
use std::collections::{BTreeMap, BTreeSet};

/// Where each queue writes, as its Rx ring says whenever the queue is let run.
#[derive(Default)]
pub(super) struct Outputs(BTreeMap<(EngineId, u8), BTreeSet<Region>>);

impl Outputs {
    /// Looks at the queue that a step sets up or lets run.
    pub fn note(&mut self, action: &HostAction, host: &HostSide, memory: &PhysicalMemory) {
        if let HostAction::InitQueue { engine, queue, .. }
        | HostAction::Doorbell { engine, queue, .. }
        | HostAction::Trigger { engine, queue, .. } = action
        {
            self.look(*engine, *queue, host, memory);
        }
    }

    /// Looks at every queue: a sequencer may let it run later.
    pub fn note_all(&mut self, host: &HostSide, memory: &PhysicalMemory) {
        for (engine, queue) in host.queues() {
            self.look(engine, queue, host, memory);
        }
    }

    fn look(&mut self, engine: EngineId, queue: u8, host: &HostSide, memory: &PhysicalMemory) {
        let writes = host.writes_of(engine, queue, memory);
        self.0.entry((engine, queue)).or_default().extend(writes);
    }

    fn of(&self, engine: EngineId, queue: u8) -> impl Iterator<Item = &Region> {
        self.0.get(&(engine, queue)).into_iter().flatten()
    }
}

/// The host or a sequencer, as far as waiting goes.
struct Agent<'a> {
    name: String,
    ops: Vec<(Effect, &'a Mark)>,
    reached: usize,
}

enum Effect {
    /// Stores to these places.
    Stores(Vec<Region>),
    /// Lets a queue run.
    Runs(EngineId, u8),
    /// Goes on only once one of these places has been stored to.
    Needs { one_of: Vec<Region>, what: String },
    /// Goes on only once the agent of this index is done.
    NeedsEnd(usize),
}

/// Reports every wait at which the host or a sequencer must hang.
pub(super) fn check(
    scope: &Scope<'_>,
    tried: &Tried,
    sequencers: &[PlannedSequencer],
    contents: &[Content],
) {
    // A doorbell rung through its register lets run what the plan does not know.
    if tried
        .steps
        .iter()
        .any(|step| step.step.action.rings_by_register())
    {
        return;
    }
    let outputs = &tried.outputs;
    let mut agents = vec![Agent {
        name: "the host".to_string(),
        ops: host_ops(scope, &tried.steps, contents),
        reached: 0,
    }];
    agents.extend(sequencers.iter().map(|sequencer| Agent {
        name: format!("sequencer \"{}\"", sequencer.name),
        ops: sequencer_ops(scope, sequencer),
        reached: 0,
    }));
    run(&mut agents, outputs);
    for agent in &agents {
        let Some((effect, mark)) = agent.ops.get(agent.reached) else {
            continue;
        };
        let (what, why) = match effect {
            Effect::NeedsEnd(other) => {
                let other = &agents[*other];
                (
                    format!("the end of {}", other.name),
                    blocked(scope, other, "which"),
                )
            }
            Effect::Needs { one_of, what } => {
                let producers = producers(scope, &agents, outputs, one_of);
                let why = match producers.is_empty() {
                    true => "which nothing in this scenario changes".to_string(),
                    false => producers.join("; "),
                };
                (what.clone(), why)
            }
            Effect::Stores(_) | Effect::Runs(..) => continue,
        };
        scope.report(
            mark,
            format!("{} waits here for ever for {what}, {why}", agent.name),
        );
    }
}

/// Lets every agent go as far as it can.
fn run(agents: &mut [Agent<'_>], outputs: &Outputs) {
    let mut stored: Vec<Region> = Vec::new();
    loop {
        let mut moved = false;
        for index in 0..agents.len() {
            while let Some((effect, _)) = agents[index].ops.get(agents[index].reached) {
                match effect {
                    Effect::Stores(regions) => stored.extend(regions),
                    Effect::Runs(engine, queue) => stored.extend(outputs.of(*engine, *queue)),
                    Effect::Needs { one_of, .. } => {
                        let met = |place| stored.iter().any(|region| region.overlaps(place));
                        if !one_of.iter().any(met) {
                            break;
                        }
                    }
                    Effect::NeedsEnd(other) => {
                        if agents[*other].reached < agents[*other].ops.len() {
                            break;
                        }
                    }
                }
                agents[index].reached += 1;
                moved = true;
            }
        }
        if !moved {
            return;
        }
    }
}

/// What could produce one of the places, had its agent not been stuck before.
fn producers(
    scope: &Scope<'_>,
    agents: &[Agent<'_>],
    outputs: &Outputs,
    one_of: &[Region],
) -> Vec<String> {
    let wanted = |region: &Region| one_of.iter().any(|place| place.overlaps(region));
    let could = |agent: &Agent<'_>| {
        let rest = agent.ops.get(agent.reached..).unwrap_or(&[]);
        rest.iter().any(|(effect, _)| match effect {
            Effect::Stores(regions) => regions.iter().any(wanted),
            Effect::Runs(engine, queue) => outputs.of(*engine, *queue).any(wanted),
            Effect::Needs { .. } | Effect::NeedsEnd(_) => false,
        })
    };
    agents
        .iter()
        .filter(|agent| could(agent))
        .map(|agent| {
            blocked(
                scope,
                agent,
                &format!("which {} changes later; it", agent.name),
            )
        })
        .collect()
}

/// Where an agent is stuck.
fn blocked(scope: &Scope<'_>, agent: &Agent<'_>, who: &str) -> String {
    match agent.ops.get(agent.reached) {
        Some((_, mark)) => format!("{who} itself waits at {}", scope.document.place(mark)),
        None => format!("{who} is done by then"),
    }
}

fn host_ops<'a>(
    scope: &Scope<'_>,
    steps: &'a [PlannedStep],
    contents: &[Content],
) -> Vec<(Effect, &'a Mark)> {
    let effect = |step: &PlannedStep| match &step.step.action {
        Action::Host(HostAction::Write { region, .. }) => Some(Effect::Stores(vec![*region])),
        Action::Host(HostAction::Driver(action)) => {
            Some(Effect::Stores(action.writes().into_iter().collect()))
        }
        Action::Host(HostAction::Doorbell {
            engine,
            queue,
            direction: Direction::M2s,
            count: 1..,
        }) => Some(Effect::Runs(*engine, *queue)),
        Action::Host(HostAction::Trigger {
            engine,
            queue,
            tx: 1..,
            ..
        }) => Some(Effect::Runs(*engine, *queue)),
        Action::Wait { on, .. } => wait(scope, on, contents),
        Action::Host(_)
        | Action::Observe { .. }
        | Action::Interrupt { .. }
        | Action::ReadRegister { .. } => None,
    };
    steps
        .iter()
        .filter_map(|step| Some((effect(step)?, &step.mark)))
        .collect()
}

fn wait(scope: &Scope<'_>, on: &WaitOn, contents: &[Content]) -> Option<Effect> {
    match on {
        WaitOn::Sequencer(index) => Some(Effect::NeedsEnd(index + 1)),
        WaitOn::Condition(Condition::Semaphore { block, index, test }) => {
            (!test.passes(0)).then(|| cell(scope, *block, *index))
        }
        WaitOn::Condition(Condition::Word { at, value }) => {
            let word = Region { at: *at, bytes: 4 };
            let there = holds(&word, *value, contents, scope.seed);
            (!there).then(|| Effect::Needs {
                one_of: vec![word],
                what: format!("the word at {at} to become {value:#x}"),
            })
        }
        WaitOn::Condition(_) | WaitOn::For(_) => None,
    }
}

/// Whether memory could hold a word before the first step.
fn holds(word: &Region, value: u32, contents: &[Content], seed: u64) -> bool {
    match contents
        .iter()
        .find(|content| content.region.overlaps(word))
    {
        None => value == 0,
        Some(content) => match word.at.offset_from(content.region.at) {
            Some(offset) if content.region.contains(word) => {
                content.fill.read(seed, offset, 4) == value.to_le_bytes()
            }
            // Half inside: not worth telling apart.
            _ => true,
        },
    }
}

fn sequencer_ops<'a>(
    scope: &Scope<'_>,
    sequencer: &'a PlannedSequencer,
) -> Vec<(Effect, &'a Mark)> {
    let effects = |op: &SequencerOp| match op {
        SequencerOp::Wait {
            block,
            semaphore,
            op,
        } => {
            let there = op.test().passes(0);
            let needs = (!there).then(|| cell(scope, *block, *semaphore));
            let stores = match op {
                WaitOp::Ge(_) | WaitOp::Eq(_) => None,
                WaitOp::GeAndDec(_) | WaitOp::EqAndInc(_) | WaitOp::EqAndClear(_) => {
                    Some(Effect::Stores(cells(scope, *block, *semaphore)))
                }
            };
            needs.into_iter().chain(stores).collect()
        }
        SequencerOp::Inc {
            block, semaphore, ..
        }
        | SequencerOp::Dec {
            block, semaphore, ..
        }
        | SequencerOp::Set {
            block, semaphore, ..
        } => {
            vec![Effect::Stores(cells(scope, *block, *semaphore))]
        }
        SequencerOp::Doorbell {
            engine,
            queue,
            direction: Direction::M2s,
            count: 1..,
        } => vec![Effect::Runs(*engine, queue.0)],
        SequencerOp::Write { at, bytes } => {
            let bytes = bytes.len() as u64;
            vec![Effect::Stores(vec![Region { at: *at, bytes }])]
        }
        SequencerOp::Doorbell { .. } | SequencerOp::Delay(_) | SequencerOp::Read { .. } => {
            Vec::new()
        }
    };
    let ops = sequencer.program.iter().zip(&sequencer.marks);
    ops.flat_map(|(op, mark)| effects(op).into_iter().map(move |effect| (effect, mark)))
        .collect()
}

fn cell(scope: &Scope<'_>, block: u32, index: u32) -> Effect {
    Effect::Needs {
        one_of: cells(scope, block, index),
        what: format!(
            "semaphore {}",
            Cell::of_block(&scope.spec.map, block, index)
        ),
    }
}

/// The cells through which a semaphore changes.
fn cells(scope: &Scope<'_>, block: u32, index: u32) -> Vec<Region> {
    let windows = [
        EventBlock::SEM_SET,
        EventBlock::SEM_INC,
        EventBlock::SEM_DEC,
    ];
    let region = |window| {
        let at: Option<Addr> = scope.spec.map.semaphore(block, window, index);
        at.map(|at| Region {
            at,
            bytes: EventBlock::CELL_BYTES,
        })
    };
    windows.into_iter().filter_map(region).collect()
}
