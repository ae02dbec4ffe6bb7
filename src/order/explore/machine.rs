//! The operational model: what an engine, an observer and memory do, one action at a time.
//!
//! An action is taken at one instant: a burst is satisfied or becomes visible, an observer executes an
//! instruction. Issue and completion change nothing that anybody sees; they are implied: a write counts
//! as issued once the data of its stream up to it has been read, a packet as complete once every write
//! up to its end is visible.

use crate::order::axioms::{Axiom, Axioms};
use crate::order::bursts::{Bursts, ReadBurst, Source, WriteBurst};
use crate::order::program::{Op, Program, Span};
use crate::system::WaitOp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A decision of a path: what happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A read burst is satisfied: its number in the program.
    Read(usize),
    /// A write burst becomes visible: its number in the program.
    Visible(usize),
    /// An observer executes its next instruction.
    Observe {
        /// Index of the observer.
        observer: usize,
        /// Index of the instruction.
        step: usize,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Read(burst) => write!(f, "Read({burst})"),
            Action::Visible(burst) => write!(f, "Visible({burst})"),
            Action::Observe { observer, step } => {
                write!(f, "Observe {{ observer: {observer}, step: {step} }}")
            }
        }
    }
}

/// A set of actions, by their index.
pub(super) type Set = u128;

/// Most actions of a program that the explorer takes.
pub const MAX_ACTIONS: usize = Set::BITS as usize;

/// A program with more actions than the explorer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program has {0} bursts and observer steps; the explorer takes at most {MAX_ACTIONS}")]
pub struct TooLarge(pub usize);

/// What is there between two actions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub done: Set,
    pub memory: Vec<u32>,
    /// What was read and is not yet written everywhere it goes.
    pub lane: Vec<u32>,
    pub registers: Vec<u32>,
}

/// A program made ready to be executed.
pub(super) struct Machine<'a> {
    pub program: &'a Program,
    pub bursts: Bursts,
    pub actions: Vec<Action>,
    /// For each action, the actions that must have happened before.
    pub needs: Vec<Set>,
    /// For each write burst, the places of the lane that nobody needs after it.
    last_use: Vec<Vec<usize>>,
}

impl<'a> Machine<'a> {
    pub fn new(program: &'a Program, axioms: Axioms) -> Result<Self, TooLarge> {
        let bursts = Bursts::of(program);
        let reads = (0..bursts.reads.len()).map(Action::Read);
        let writes = (0..bursts.writes.len()).map(Action::Visible);
        let steps = program.observers.iter().enumerate().flat_map(|(o, code)| {
            (0..code.ops.len()).map(move |step| Action::Observe { observer: o, step })
        });
        let actions: Vec<Action> = reads.chain(writes).chain(steps).collect();
        if actions.len() > MAX_ACTIONS {
            return Err(TooLarge(actions.len()));
        }
        let mut machine = Machine {
            program,
            last_use: last_uses(&bursts),
            bursts,
            needs: Vec::new(),
            actions,
        };
        let actions = machine.actions.iter();
        machine.needs = actions.map(|a| machine.needs_of(*a, axioms)).collect();
        Ok(machine)
    }

    pub fn start(&self) -> State {
        State {
            done: 0,
            memory: self.program.initial(),
            lane: vec![0; self.bursts.lane],
            registers: vec![0; self.program.register_count()],
        }
    }

    /// All actions.
    pub fn all(&self) -> Set {
        match self.actions.len() {
            MAX_ACTIONS => Set::MAX,
            n => (1 << n) - 1,
        }
    }

    fn needs_of(&self, action: Action, axioms: Axioms) -> Set {
        match action {
            Action::Read(n) => self.read_needs(n, axioms),
            Action::Visible(n) => self.write_needs(n, axioms),
            Action::Observe { observer, step } => {
                let op = self.program.observers[observer].ops[step];
                let before = match step.checked_sub(1) {
                    Some(step) => self.bit(Action::Observe { observer, step }),
                    None => 0,
                };
                match op {
                    Op::Completion { queue, packets } => {
                        before | self.completed(queue, packets, axioms)
                    }
                    _ => before,
                }
            }
        }
    }

    /// A burst starts when its doorbell has been rung and no DMB suspends its queue.
    fn read_needs(&self, n: usize, axioms: Axioms) -> Set {
        let read = &self.bursts.reads[n];
        let queue = &self.program.queues[read.queue];
        let mut needs = 0;
        if !queue.rung && axioms.has(Axiom::Doorbell) {
            needs |= self.rings(read.queue);
        }
        if !axioms.has(Axiom::Across) && read.queue > 0 {
            needs |= self.writes(|w| w.queue == read.queue - 1);
        }
        if read.fetch {
            return needs;
        }
        if let Source::Through(lane) = read.source {
            needs |= self.reads(|r| r.fetch && r.lane == lane);
        }
        if axioms.has(Axiom::Dmb) && !queue.dmb_masked {
            let last = queue.packets[..read.packet].iter().rposition(|p| p.dmb());
            needs |= last.map_or(0, |dmb| self.completed(read.queue, dmb + 1, axioms));
        }
        if !axioms.has(Axiom::Bounds) {
            needs |= self.completed(read.queue, read.packet, axioms);
        }
        if let (false, Source::Fixed(span)) = (axioms.has(Axiom::NoInterlock), read.source) {
            needs |= self
                .writes(|w| w.queue == read.queue && w.packet < read.packet && w.to.overlaps(span));
        }
        needs
    }

    /// A write is visible after it was issued, and not before the writes it must not overtake.
    fn write_needs(&self, n: usize, axioms: Axioms) -> Set {
        let write = &self.bursts.writes[n];
        let packets = &self.program.queues[write.queue].packets;
        let earlier = |other: &WriteBurst, index: usize| other.queue == write.queue && index < n;
        let mut needs = 0;
        if axioms.has(Axiom::Dataflow) {
            needs |= self.reads(|r| write.fed_by(r));
            if axioms.has(Axiom::Stream) {
                let before = (self.bursts.writes[..n].iter()).filter(|w| w.queue == write.queue);
                for other in before {
                    needs |= self.reads(|r| other.fed_by(r));
                }
            }
        }
        let barrier = packets[..write.packet]
            .iter()
            .rposition(|p| p.write_barrier());
        for (index, other) in self.bursts.writes.iter().enumerate() {
            if !earlier(other, index) {
                continue;
            }
            let coherence = axioms.has(Axiom::Coherence) && other.to.overlaps(write.to);
            let fenced = axioms.has(Axiom::WriteBarrier)
                && barrier.is_some_and(|barrier| other.packet <= barrier);
            let strong = write.sow && axioms.has(Axiom::StrongOrder);
            let embedded = write.embedded && axioms.has(Axiom::Embedded);
            let held = !axioms.has(Axiom::Independence);
            if coherence || fenced || strong || embedded || held {
                needs |= self.bit(Action::Visible(index));
            }
        }
        needs
    }

    /// What must have happened before the first `packets` packets of a queue are complete.
    fn completed(&self, queue: usize, packets: usize, axioms: Axioms) -> Set {
        let first = match axioms.has(Axiom::Completion) {
            true => 0,
            false => packets.saturating_sub(1),
        };
        self.writes(|w| w.queue == queue && (first..packets).contains(&w.packet))
    }

    fn rings(&self, queue: usize) -> Set {
        let rings = |action: &&Action| {
            matches!(**action, Action::Observe { observer, step }
            if self.program.observers[observer].ops[step] == Op::Ring { queue })
        };
        let actions = self.actions.iter().filter(rings);
        actions.fold(0, |set, action| set | self.bit(*action))
    }

    fn reads(&self, which: impl Fn(&ReadBurst) -> bool) -> Set {
        let chosen = (0..self.bursts.reads.len()).filter(|n| which(&self.bursts.reads[*n]));
        chosen.fold(0, |set, n| set | self.bit(Action::Read(n)))
    }

    fn writes(&self, which: impl Fn(&WriteBurst) -> bool) -> Set {
        let chosen = (0..self.bursts.writes.len()).filter(|n| which(&self.bursts.writes[*n]));
        chosen.fold(0, |set, n| set | self.bit(Action::Visible(n)))
    }

    fn bit(&self, action: Action) -> Set {
        match self.index(action) {
            Some(index) => 1 << index,
            None => 0,
        }
    }

    /// The index of an action; `None` if the program has no such one.
    pub fn index(&self, action: Action) -> Option<usize> {
        self.actions.iter().position(|known| *known == action)
    }

    /// What an observer's instruction is.
    pub fn op(&self, observer: usize, step: usize) -> Op {
        self.program.observers[observer].ops[step]
    }

    /// Whether an action can happen now.
    pub fn enabled(&self, index: usize, state: &State) -> bool {
        if self.needs[index] & !state.done != 0 || state.done & (1 << index) != 0 {
            return false;
        }
        match self.actions[index] {
            Action::Observe { observer, step } => match self.op(observer, step) {
                Op::Wait { atom, op } => op.test().passes(state.memory[atom] as i32),
                _ => true,
            },
            _ => true,
        }
    }

    /// Lets an enabled action happen.
    pub fn apply(&self, index: usize, state: &mut State) {
        state.done |= 1 << index;
        match self.actions[index] {
            Action::Read(n) => {
                let read = &self.bursts.reads[n];
                let span = self.source(read, state);
                for (k, atom) in span.atoms().enumerate() {
                    state.lane[read.lane + k] = state.memory[atom];
                }
            }
            Action::Visible(n) => {
                let write = &self.bursts.writes[n];
                for (k, atom) in write.to.atoms().enumerate() {
                    let value = write.value(&state.lane, k);
                    state.memory[atom] = match write.adds {
                        true => state.memory[atom].wrapping_add(value),
                        false => value,
                    };
                }
                // With dataflow in force nobody looks at these places again: states that differ in
                // them only are the same.
                for place in &self.last_use[n] {
                    state.lane[*place] = 0;
                }
            }
            Action::Observe { observer, step } => match self.op(observer, step) {
                Op::Read { span, register } => {
                    for (k, atom) in span.atoms().enumerate() {
                        state.registers[register + k] = state.memory[atom];
                    }
                }
                Op::Wait { atom, op } => {
                    let cell = &mut state.memory[atom];
                    *cell = match op {
                        WaitOp::Ge(_) | WaitOp::Eq(_) => *cell,
                        WaitOp::GeAndDec(value) => cell.wrapping_sub(value as u32),
                        WaitOp::EqAndInc(_) => cell.wrapping_add(1),
                        WaitOp::EqAndClear(_) => 0,
                    };
                }
                Op::Set { atom, value } => state.memory[atom] = value as u32,
                Op::Add { atom, by } => {
                    state.memory[atom] = state.memory[atom].wrapping_add(by as u32);
                }
                Op::Ring { .. } | Op::Completion { .. } => {}
            },
        }
    }

    /// What a read burst reads. A pointer that names no cell reads the first atom.
    pub fn source(&self, read: &ReadBurst, state: &State) -> Span {
        match read.source {
            Source::Fixed(span) => span,
            Source::Through(lane) => {
                let cell = self.program.cells.get(state.lane[lane] as usize);
                Span {
                    first: cell.map_or(0, |cell| cell.span.first),
                    count: 1,
                }
            }
        }
    }
}

/// For each write burst, the places of the lane it is the last to use, when writes of a packet that
/// share places happen in any order: none, unless it alone uses them.
fn last_uses(bursts: &Bursts) -> Vec<Vec<usize>> {
    let mut users = vec![0u32; bursts.lane];
    let places = |write: &WriteBurst| -> Vec<usize> {
        let runs = write.feeds.iter();
        runs.flat_map(|feed| *feed..*feed + write.to.count)
            .collect()
    };
    for write in &bursts.writes {
        places(write)
            .into_iter()
            .for_each(|place| users[place] += 1);
    }
    let writes = bursts.writes.iter();
    writes
        .map(|write| {
            places(write)
                .into_iter()
                .filter(|p| users[*p] == 1)
                .collect()
        })
        .collect()
}
