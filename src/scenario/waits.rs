//! Waits that nothing can end, found before anything runs.
//!
//! The host and the sequencers each go through their operations as far as waits let them. A wait
//! lets pass if something that was reached could produce what it waits for: a store, or a doorbell
//! on a queue whose ring writes there. How often it is produced is not counted, so that what is
//! reported is certain to hang, and what is not reported may still time out.

use super::host_side::HostSide;
use super::place::{Cell, QueueAt, Region};
use super::scope::{Content, Scope};
use super::sequencers::SequencerPlan;
use super::stage::{Effect, WaitOn};
use super::steps::PlannedStep;
use crate::arch::EventBlock;
use crate::arch::regs::Direction;
use crate::document::Mark;
use crate::memory::PhysicalMemory;
use crate::system::{Condition, SequencerOp, WaitOp};
use crate::units::Addr;
use std::collections::{BTreeMap, BTreeSet};

/// Where each queue writes, as its Rx ring says whenever the queue is let run.
#[derive(Default)]
pub(super) struct Outputs(BTreeMap<QueueAt, BTreeSet<Region>>);

impl Outputs {
    /// Looks at the queue that a step sets up or lets run.
    pub fn note(&mut self, effect: &Effect<'_>, host: &HostSide, memory: &PhysicalMemory) {
        if let Effect::Queue { queue, .. } = effect {
            self.look(*queue, host, memory);
        }
    }

    /// Looks at every queue: a sequencer may let it run later.
    pub fn note_all(&mut self, host: &HostSide, memory: &PhysicalMemory) {
        for queue in host.queues() {
            self.look(queue, host, memory);
        }
    }

    fn look(&mut self, queue: QueueAt, host: &HostSide, memory: &PhysicalMemory) {
        let writes = host.writes_of(queue, memory);
        self.0.entry(queue).or_default().extend(writes);
    }

    fn of(&self, queue: QueueAt) -> impl Iterator<Item = &Region> {
        self.0.get(&queue).into_iter().flatten()
    }
}

/// The host or a sequencer, as far as waiting goes.
struct Agent<'a> {
    name: String,
    ops: Vec<(Act, &'a Mark)>,
    reached: usize,
}

/// What one operation does, as far as waiting goes.
enum Act {
    /// Stores to these places.
    Stores(Vec<Region>),
    /// Lets a queue run.
    Runs(QueueAt),
    /// Goes on only once one of these places has been stored to.
    Needs { one_of: Vec<Region>, what: String },
    /// Goes on only once the agent of this index is done.
    NeedsEnd(usize),
}

/// Reports every wait at which the host or a sequencer must hang.
pub(super) fn check(
    scope: &Scope<'_>,
    steps: &[PlannedStep],
    outputs: &Outputs,
    sequencers: &[SequencerPlan],
) {
    // A doorbell rung through its register lets run what the plan does not know.
    let unseen = |step: &PlannedStep| matches!(step.step.effect(), Effect::RingsByRegister);
    if steps.iter().any(unseen) {
        return;
    }
    let mut agents = vec![Agent {
        name: "the host".to_string(),
        ops: host_ops(scope, steps),
        reached: 0,
    }];
    agents.extend(sequencers.iter().map(|sequencer| Agent {
        name: format!("sequencer \"{}\"", sequencer.name),
        ops: sequencer_ops(scope, sequencer),
        reached: 0,
    }));
    run(&mut agents, outputs);
    for agent in &agents {
        let Some((act, mark)) = agent.ops.get(agent.reached) else {
            continue;
        };
        let (what, why) = match act {
            Act::NeedsEnd(other) => {
                let other = &agents[*other];
                (
                    format!("the end of {}", other.name),
                    blocked(scope, other, "which"),
                )
            }
            Act::Needs { one_of, what } => {
                let producers = producers(scope, &agents, outputs, one_of);
                let why = match producers.is_empty() {
                    true => "which this scenario never changes".to_string(),
                    false => producers.join("; "),
                };
                (what.clone(), why)
            }
            Act::Stores(_) | Act::Runs(_) => continue,
        };
        scope.report(
            mark,
            format!("{} waits forever for {what}, {why}", agent.name),
        );
    }
}

/// Lets every agent go as far as it can.
fn run(agents: &mut [Agent<'_>], outputs: &Outputs) {
    let mut stored: Vec<Region> = Vec::new();
    loop {
        let mut moved = false;
        for index in 0..agents.len() {
            while let Some((act, _)) = agents[index].ops.get(agents[index].reached) {
                match act {
                    Act::Stores(regions) => stored.extend(regions),
                    Act::Runs(queue) => stored.extend(outputs.of(*queue)),
                    Act::Needs { one_of, .. } => {
                        let met = |place| stored.iter().any(|region| region.overlaps(place));
                        if !one_of.iter().any(met) {
                            break;
                        }
                    }
                    Act::NeedsEnd(other) => {
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
        rest.iter().any(|(act, _)| match act {
            Act::Stores(regions) => regions.iter().any(wanted),
            Act::Runs(queue) => outputs.of(*queue).any(wanted),
            Act::Needs { .. } | Act::NeedsEnd(_) => false,
        })
    };
    agents
        .iter()
        .filter(|agent| could(agent))
        .map(|agent| {
            blocked(
                scope,
                agent,
                &format!("which {} changes only later; it", agent.name),
            )
        })
        .collect()
}

/// Where an agent is stuck.
fn blocked(scope: &Scope<'_>, agent: &Agent<'_>, who: &str) -> String {
    match agent.ops.get(agent.reached) {
        Some((_, mark)) => format!("{who} is itself waiting at {}", scope.document.place(mark)),
        None => format!("{who} has ended by then"),
    }
}

fn host_ops<'a>(scope: &Scope<'_>, steps: &'a [PlannedStep]) -> Vec<(Act, &'a Mark)> {
    let act = |step: &PlannedStep| match step.step.effect() {
        Effect::Stores(region) => Some(Act::Stores(vec![region])),
        Effect::Drives(region) => Some(Act::Stores(region.into_iter().collect())),
        Effect::Queue { queue, runs: true } => Some(Act::Runs(queue)),
        Effect::Waits(on) => wait(scope, on),
        Effect::Queue { .. } | Effect::RingsByRegister | Effect::Nothing => None,
    };
    steps
        .iter()
        .filter_map(|step| Some((act(step)?, &step.mark)))
        .collect()
}

fn wait(scope: &Scope<'_>, on: &WaitOn) -> Option<Act> {
    match on {
        WaitOn::Sequencer(index) => Some(Act::NeedsEnd(index + 1)),
        WaitOn::Condition(Condition::Semaphore { block, index, test }) => {
            (!test.passes(0)).then(|| cell(scope, *block, *index))
        }
        WaitOn::Condition(Condition::Word { at, value }) => {
            let word = Region { at: *at, bytes: 4 };
            let there = holds(&word, *value, &scope.contents, scope.seed);
            (!there).then(|| Act::Needs {
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

fn sequencer_ops<'a>(scope: &Scope<'_>, sequencer: &'a SequencerPlan) -> Vec<(Act, &'a Mark)> {
    let acts = |op: &SequencerOp| match op {
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
                    Some(Act::Stores(cells(scope, *block, *semaphore)))
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
            vec![Act::Stores(cells(scope, *block, *semaphore))]
        }
        SequencerOp::Doorbell {
            engine,
            queue,
            direction: Direction::M2s,
            count: 1..,
        } => {
            let (engine, queue) = (*engine, *queue);
            vec![Act::Runs(QueueAt { engine, queue })]
        }
        SequencerOp::Write { at, bytes } => {
            let bytes = bytes.len() as u64;
            vec![Act::Stores(vec![Region { at: *at, bytes }])]
        }
        SequencerOp::Doorbell { .. } | SequencerOp::Delay(_) | SequencerOp::Read { .. } => {
            Vec::new()
        }
    };
    let ops = sequencer.program.iter().zip(&sequencer.marks);
    ops.flat_map(|(op, mark)| acts(op).into_iter().map(move |act| (act, mark)))
        .collect()
}

fn cell(scope: &Scope<'_>, block: u32, index: u32) -> Act {
    Act::Needs {
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
