//! The events of an execution, and what each does to values.

use crate::order::bursts::{Bursts, Source};
use crate::order::outcome::Outcome;
use crate::order::program::{CellKind, Op, Program};
use crate::system::WaitOp;

/// Something that happens at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A read burst is satisfied.
    Satisfied(usize),
    /// A write burst is issued.
    Issued(usize),
    /// A write burst becomes visible.
    Visible(usize),
    /// A packet of a queue completes.
    Complete { queue: usize, packet: usize },
    /// An observer's instruction.
    Instruction { observer: usize, step: usize },
}

/// A program with more events than the checker takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program has {0} events; the axiomatic checker takes at most {MAX_EVENTS}")]
pub struct TooManyEvents(pub usize);

pub(super) const MAX_EVENTS: usize = u128::BITS as usize;

/// All events of a program.
pub(super) struct Events<'a> {
    pub program: &'a Program,
    pub bursts: &'a Bursts,
    pub list: Vec<Event>,
}

impl<'a> Events<'a> {
    pub fn of(program: &'a Program, bursts: &'a Bursts) -> Result<Self, TooManyEvents> {
        let mut list: Vec<Event> = (0..bursts.reads.len()).map(Event::Satisfied).collect();
        for write in 0..bursts.writes.len() {
            list.extend([Event::Issued(write), Event::Visible(write)]);
        }
        for (queue, ring) in program.queues.iter().enumerate() {
            let packets = 0..ring.packets.len();
            list.extend(packets.map(|packet| Event::Complete { queue, packet }));
        }
        for (observer, code) in program.observers.iter().enumerate() {
            let steps = 0..code.ops.len();
            list.extend(steps.map(|step| Event::Instruction { observer, step }));
        }
        match list.len() {
            n if n > MAX_EVENTS => Err(TooManyEvents(n)),
            _ => Ok(Events {
                program,
                bursts,
                list,
            }),
        }
    }

    pub fn op(&self, observer: usize, step: usize) -> Op {
        self.program.observers[observer].ops[step]
    }

    /// Atoms that an event reads, and atoms that it writes.
    fn accesses(&self, event: Event) -> (Vec<usize>, Vec<usize>) {
        match event {
            Event::Satisfied(n) => match self.bursts.reads[n].source {
                Source::Fixed(span) => (span.atoms().collect(), Vec::new()),
                // It depends on the pointer: any of them.
                Source::Through(_) => {
                    let cells = self.program.pointees();
                    (
                        cells.iter().flat_map(|cell| cell.atoms()).collect(),
                        Vec::new(),
                    )
                }
            },
            Event::Visible(n) => (Vec::new(), self.bursts.writes[n].to.atoms().collect()),
            Event::Issued(_) | Event::Complete { .. } => (Vec::new(), Vec::new()),
            Event::Instruction { observer, step } => match self.op(observer, step) {
                Op::Read { span, .. } => (span.atoms().collect(), Vec::new()),
                Op::Wait { atom, op } => match op {
                    WaitOp::Ge(_) | WaitOp::Eq(_) => (vec![atom], Vec::new()),
                    _ => (vec![atom], vec![atom]),
                },
                Op::Set { atom, .. } | Op::Add { atom, .. } => (Vec::new(), vec![atom]),
                Op::Ring { .. } | Op::Completion { .. } => (Vec::new(), Vec::new()),
            },
        }
    }

    /// Whether an event only adds to what it writes, which commutes with other such events.
    fn adds(&self, event: Event) -> bool {
        match event {
            Event::Visible(n) => self.bursts.writes[n].adds,
            Event::Instruction { observer, step } => {
                matches!(self.op(observer, step), Op::Add { .. })
            }
            _ => false,
        }
    }

    /// Pairs of events whose order decides a value.
    pub fn conflicts(&self) -> Vec<(usize, usize)> {
        let accesses: Vec<_> = self.list.iter().map(|e| self.accesses(*e)).collect();
        let share = |a: &[usize], b: &[usize]| a.iter().any(|atom| b.contains(atom));
        let mut pairs = Vec::new();
        for a in 0..self.list.len() {
            for b in a + 1..self.list.len() {
                let ((reads_a, writes_a), (reads_b, writes_b)) = (&accesses[a], &accesses[b]);
                let both_add = self.adds(self.list[a]) && self.adds(self.list[b]);
                let writes = share(writes_a, writes_b) && !both_add;
                if writes || share(reads_a, writes_b) || share(writes_a, reads_b) {
                    pairs.push((a, b));
                }
            }
        }
        pairs
    }

    /// Whether two events access the same atom of memory, which is no semaphore.
    pub fn share_memory(&self, (a, b): (usize, usize)) -> bool {
        let atoms = |event: usize| {
            let (mut reads, writes) = self.accesses(self.list[event]);
            reads.extend(writes);
            reads
        };
        let others = atoms(b);
        let is_memory = |atom: &usize| {
            let cell = self.program.cell_of(*atom);
            cell.is_some_and(|cell| cell.kind != CellKind::Semaphore)
        };
        let mut shared = atoms(a).into_iter().filter(|atom| others.contains(atom));
        shared.any(|atom| is_memory(&atom))
    }

    /// Does what an event does to values; false if it is a wait for another value.
    pub fn happen(&self, event: Event, outcome: &mut Outcome, lane: &mut [u32]) -> bool {
        match event {
            Event::Satisfied(n) => {
                let read = &self.bursts.reads[n];
                let (first, count) = match read.source {
                    Source::Fixed(span) => (span.first, span.count),
                    Source::Through(place) => {
                        let cell = self.program.cells.get(lane[place] as usize);
                        (cell.map_or(0, |cell| cell.span.first), 1)
                    }
                };
                lane[read.lane..read.lane + count]
                    .copy_from_slice(&outcome.memory[first..first + count]);
            }
            Event::Visible(n) => {
                let write = &self.bursts.writes[n];
                for k in 0..write.to.count {
                    let value = write.value(lane, k);
                    let atom = &mut outcome.memory[write.to.first + k];
                    *atom = value.wrapping_add(if write.adds { *atom } else { 0 });
                }
            }
            Event::Issued(_) | Event::Complete { .. } => {}
            Event::Instruction { observer, step } => {
                return execute(self.op(observer, step), outcome);
            }
        }
        true
    }
}

fn execute(op: Op, outcome: &mut Outcome) -> bool {
    let memory = &mut outcome.memory;
    match op {
        Op::Read { span, register } => outcome.registers[register..register + span.count]
            .copy_from_slice(&memory[span.atoms()]),
        Op::Wait { atom, op } => {
            if !op.test().passes(memory[atom] as i32) {
                return false;
            }
            match op {
                WaitOp::Ge(_) | WaitOp::Eq(_) => {}
                WaitOp::GeAndDec(by) => memory[atom] = memory[atom].wrapping_sub(by as u32),
                WaitOp::EqAndInc(_) => memory[atom] = memory[atom].wrapping_add(1),
                WaitOp::EqAndClear(_) => memory[atom] = 0,
            }
        }
        Op::Set { atom, value } => memory[atom] = value as u32,
        Op::Add { atom, by } => memory[atom] = memory[atom].wrapping_add(by as u32),
        Op::Ring { .. } | Op::Completion { .. } => {}
    }
    true
}
