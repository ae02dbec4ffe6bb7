//! The axiomatic model: executions as partial orders.
//!
//! An execution is an order of `events` that contains what the axioms demand (`relations`) and says
//! of any two accesses to the same atom, one of them a write, which came first. Memory being multi-copy
//! atomic, such an order fixes every value. The checker enumerates all that have no cycle and in which
//! every wait is satisfied. It shares with the explorer the program and how packets are cut into bursts,
//! nothing else.

mod events;
mod relations;

use super::axioms::Axioms;
use super::bursts::Bursts;
use super::outcome::Outcome;
use super::program::Program;
use events::{Event, Events};
use relations::Order;
use std::collections::BTreeSet;

pub use events::TooManyEvents;

/// What the axioms allow of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Every outcome in which everything has been executed.
    pub outcomes: BTreeSet<Outcome>,
    /// Orders looked at.
    pub candidates: u64,
    /// All orders were looked at; if not, the bound was hit.
    pub exhaustive: bool,
    /// Two accesses to the same memory, one of them a write, come in one order in some execution and in
    /// the other order in another. Semaphores do not count: they are made for it.
    pub racy: bool,
}

/// Enumerates what the axioms allow, looking at `max_candidates` orders at most.
///
/// # Errors
/// [`TooManyEvents`] for a program that is too large.
pub fn allowed(
    program: &Program,
    axioms: Axioms,
    max_candidates: u64,
) -> Result<Allowed, TooManyEvents> {
    let bursts = Bursts::of(program);
    let events = Events::of(program, &bursts)?;
    let conflicts = events.conflicts();
    let mut check = Check {
        seen: vec![[false; 2]; conflicts.len()],
        conflicts,
        events: &events,
        max_candidates,
        found: Allowed {
            exhaustive: true,
            ..Allowed::default()
        },
    };
    if let Some(order) = relations::demanded(&events, axioms) {
        check.orient(0, order);
    }
    let both = |(conflict, seen): (&(usize, usize), &[bool; 2])| {
        *seen == [true; 2] && events.share_memory(*conflict)
    };
    check.found.racy = check.conflicts.iter().zip(&check.seen).any(both);
    Ok(check.found)
}

struct Check<'a> {
    events: &'a Events<'a>,
    /// Pairs of accesses whose order decides a value.
    conflicts: Vec<(usize, usize)>,
    /// Which orders of each of them some execution has.
    seen: Vec<[bool; 2]>,
    max_candidates: u64,
    found: Allowed,
}

impl Check<'_> {
    /// Decides the conflicts from `from` on, either way round where the order leaves it open.
    fn orient(&mut self, from: usize, order: Order) {
        let open = |(a, b): &(usize, usize)| !order.holds(*a, *b) && !order.holds(*b, *a);
        let Some(n) = (from..self.conflicts.len()).find(|n| open(&self.conflicts[*n])) else {
            self.candidate(&order);
            return;
        };
        if self.found.candidates >= self.max_candidates {
            self.found.exhaustive = false;
            return;
        }
        let (a, b) = self.conflicts[n];
        let mut other = order.clone();
        other.add(b, a);
        let mut order = order;
        order.add(a, b);
        self.orient(n + 1, order);
        self.orient(n + 1, other);
    }

    /// Takes the values that an order gives, if its waits are satisfied.
    fn candidate(&mut self, order: &Order) {
        self.found.candidates += 1;
        let mut sequence: Vec<usize> = (0..self.events.list.len()).collect();
        // What comes later has more before it: a linear extension.
        sequence.sort_by_key(|event| order.count_before(*event));
        let program = self.events.program;
        let mut outcome = Outcome {
            registers: vec![0; program.register_count()],
            memory: program.initial(),
        };
        let mut lane = vec![0; self.events.bursts.lane];
        for event in sequence {
            let event: Event = self.events.list[event];
            if !self.events.happen(event, &mut outcome, &mut lane) {
                return;
            }
        }
        self.found.outcomes.insert(outcome);
        for ((a, b), seen) in self.conflicts.iter().zip(&mut self.seen) {
            seen[usize::from(order.holds(*b, *a))] = true;
        }
    }
}
