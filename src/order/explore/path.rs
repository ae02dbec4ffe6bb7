//! Paths: an execution as a flat list of decisions, which can be stored, replayed and read.

use super::machine::{Action, Machine, State};
use crate::order::axioms::Axioms;
use crate::order::bursts::ReadBurst;
use crate::order::outcome::Outcome;
use crate::order::program::{Op, Program, Span};
use serde::{Deserialize, Serialize};

/// An execution, action by action. Serialises as the list of its actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Path(pub Vec<Action>);

/// A path that is no execution of the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The program is too large to be explored.
    #[error(transparent)]
    TooLarge(#[from] super::TooLarge),
    /// The program has no such action.
    #[error("step {step}: the program does not have {action}")]
    Unknown {
        /// Counted from 1.
        step: usize,
        /// The action.
        action: Action,
    },
    /// The axioms do not let it happen there.
    #[error("step {step}: {what} is not possible here")]
    NotEnabled {
        /// Counted from 1.
        step: usize,
        /// The action, in words.
        what: String,
    },
    /// Not everything has been executed at its end.
    #[error("the path ends after {0} steps, before everything has been executed")]
    Short(usize),
}

impl Path {
    /// Executes the path; returns each step in words, and how it ends.
    ///
    /// # Errors
    /// [`PathError`] if it is no complete execution of the program under the axioms.
    pub fn replay(
        &self,
        program: &Program,
        axioms: Axioms,
    ) -> Result<(Vec<String>, Outcome), PathError> {
        let machine = Machine::new(program, axioms)?;
        let mut state = machine.start();
        let mut told = Vec::new();
        for (n, action) in self.0.iter().enumerate() {
            let step = n + 1;
            let Some(index) = machine.index(*action) else {
                return Err(PathError::Unknown {
                    step,
                    action: *action,
                });
            };
            let before = state.clone();
            let enabled = machine.enabled(index, &state);
            machine.apply(index, &mut state);
            let what = machine.tell(*action, &before, &state);
            if !enabled {
                return Err(PathError::NotEnabled { step, what });
            }
            told.push(what);
        }
        if state.done != machine.all() {
            return Err(PathError::Short(self.0.len()));
        }
        let outcome = Outcome {
            registers: state.registers,
            memory: state.memory,
        };
        Ok((told, outcome))
    }
}

impl Machine<'_> {
    /// An action in words.
    fn tell(&self, action: Action, before: &State, after: &State) -> String {
        match action {
            Action::Read(n) => self.tell_read(&self.bursts.reads[n], before),
            Action::Visible(n) => {
                let write = &self.bursts.writes[n];
                let who = self.packet(write.queue, write.packet);
                let what = match (write.adds, write.embedded) {
                    (_, true) => "embedded increment visible:",
                    (true, _) => "increment visible:",
                    _ => "write visible:",
                };
                let sow = if write.sow { "  (SOW)" } else { "" };
                let value = values(&after.memory, write.to);
                format!(
                    "{who}  {what} {} = {value}{sow}",
                    self.program.name_of(write.to)
                )
            }
            Action::Observe { observer, step } => {
                let name = &self.program.observers[observer].name;
                format!("{name}  {}", self.tell_op(self.op(observer, step), after))
            }
        }
    }

    fn tell_read(&self, read: &ReadBurst, before: &State) -> String {
        let span = self.source(read, before);
        let what = if read.fetch {
            "descriptor fetched:"
        } else {
            "read satisfied:"
        };
        let who = self.packet(read.queue, read.packet);
        let value = values(&before.memory, span);
        format!("{who}  {what} {} = {value}", self.program.name_of(span))
    }

    fn tell_op(&self, op: Op, after: &State) -> String {
        let name = |first| self.program.name_of(Span { first, count: 1 });
        match op {
            Op::Read { span, .. } => {
                let value = values(&after.memory, span);
                format!("reads {} = {value}", self.program.name_of(span))
            }
            Op::Wait { atom, op } => format!("waited for {} {}", name(atom), op.test()),
            Op::Set { atom, value } => format!("stores {} = {value}", name(atom)),
            Op::Add { atom, by } => format!("adds {by} to {}", name(atom)),
            Op::Ring { queue } => format!("rings {}", self.program.queues[queue].name),
            Op::Completion { queue, packets } => {
                let queue = &self.program.queues[queue].name;
                format!("sees {packets} packets of {queue} complete")
            }
        }
    }

    fn packet(&self, queue: usize, packet: usize) -> String {
        let queue = &self.program.queues[queue];
        let descs = &queue.packets[packet].descs;
        let label = descs.iter().find(|desc| !desc.label.is_empty());
        match label {
            Some(desc) => format!("{} {}", queue.name, desc.label),
            None => format!("{} packet {packet}", queue.name),
        }
    }
}

/// The values of a run of atoms: one if all are the same.
fn values(memory: &[u32], span: Span) -> String {
    let values = memory.get(span.atoms()).unwrap_or_default();
    match values {
        [first, rest @ ..] if rest.iter().all(|value| value == first) => {
            (*first as i32).to_string()
        }
        values => format!("{values:?}"),
    }
}
