//! The explorer: every execution that the axioms allow, at burst granularity.
//!
//! A depth-first search over the states of a `machine`, each visited once, with only those actions
//! tried in a state that `reduce` leaves. A search that was cut short says so: it proves nothing about
//! what it has not found.

mod independence;
mod machine;
mod path;
mod reduce;

pub use machine::{Action, MAX_ACTIONS, TooLarge};
pub use path::{Path, PathError};

use super::axioms::Axioms;
use super::outcome::Outcome;
use super::program::Program;
use machine::{Machine, Set, State};
use reduce::{Reduction, bits};
use std::collections::{BTreeMap, HashSet};

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The axioms in force.
    pub axioms: Axioms,
    /// Leave out orders that cannot matter.
    pub reduce: bool,
    /// Give up after so many states.
    pub max_states: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            axioms: Axioms::ALL,
            reduce: true,
            max_states: 4_000_000,
        }
    }
}

/// One way a program can end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Explored executions that end so.
    pub executions: u64,
    /// The first of them.
    pub witness: Path,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exploration {
    /// States visited.
    pub states: u64,
    /// Actions taken.
    pub transitions: u64,
    /// Ways to end in which everything has been executed.
    pub endings: BTreeMap<Outcome, Ending>,
    /// States in which an observer waits for ever.
    pub stuck: u64,
    /// The search saw everything; if not, it hit its bound.
    pub exhaustive: bool,
}

/// Searches a program.
///
/// # Errors
/// [`TooLarge`] for a program of more than [`MAX_ACTIONS`] bursts and observer steps.
pub fn explore(program: &Program, options: Options) -> Result<Exploration, TooLarge> {
    let machine = Machine::new(program, options.axioms)?;
    let reduction = options.reduce.then(|| Reduction::new(&machine));
    let mut search = Search {
        machine: &machine,
        reduction,
        visited: HashSet::new(),
        path: Vec::new(),
        max_states: options.max_states,
        found: Exploration {
            exhaustive: true,
            ..Exploration::default()
        },
    };
    search.visit(machine.start());
    Ok(search.found)
}

struct Search<'a> {
    machine: &'a Machine<'a>,
    reduction: Option<Reduction>,
    /// Asked for membership only: its order plays no part.
    visited: HashSet<State>,
    path: Vec<Action>,
    max_states: u64,
    found: Exploration,
}

impl Search<'_> {
    /// Explores everything that can follow a state. As deep as the program has actions.
    fn visit(&mut self, state: State) {
        let enabled = self.enabled(&state);
        if enabled == 0 {
            self.end(&state);
        }
        if self.visited.contains(&state) {
            return;
        }
        if self.found.states == self.max_states {
            self.found.exhaustive = false;
            return;
        }
        self.found.states += 1;
        let chosen = match &self.reduction {
            Some(reduction) => reduction.choose(self.machine, &state, enabled),
            None => enabled,
        };
        for index in bits(chosen) {
            self.found.transitions += 1;
            let mut next = state.clone();
            self.machine.apply(index, &mut next);
            self.path.push(self.machine.actions[index]);
            self.visit(next);
            self.path.pop();
        }
        self.visited.insert(state);
    }

    fn enabled(&self, state: &State) -> Set {
        let left = bits(self.machine.all() & !state.done);
        let enabled = left.filter(|index| self.machine.enabled(*index, state));
        enabled.fold(0, |set, index| set | 1 << index)
    }

    fn end(&mut self, state: &State) {
        if state.done != self.machine.all() {
            self.found.stuck += 1;
            return;
        }
        let outcome = Outcome {
            registers: state.registers.clone(),
            memory: state.memory.clone(),
        };
        let path = &self.path;
        let ending = (self.found.endings.entry(outcome)).or_insert_with(|| Ending {
            executions: 0,
            witness: Path(path.clone()),
        });
        ending.executions += 1;
    }
}
