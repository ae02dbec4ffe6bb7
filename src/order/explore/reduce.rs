//! Partial-order reduction by strong stubborn sets: of the enabled actions only those are tried whose
//! order against the rest can matter. Every final state is still reached.

use super::independence::dependent;
use super::machine::{Action, Machine, Set, State};
use crate::order::program::Op;

/// What the reduction knows of a machine beforehand.
pub(super) struct Reduction {
    /// For each action, those it does not commute with and that can happen before it.
    rivals: Vec<Set>,
}

impl Reduction {
    pub fn new(machine: &Machine<'_>) -> Reduction {
        let dependent = dependent(machine);
        let mut before = machine.needs.clone();
        // Needs point to actions in no particular order: close them transitively.
        loop {
            let close = |set: &Set| bits(*set).fold(*set, |sum, n| sum | before[n]);
            let next: Vec<Set> = before.iter().map(close).collect();
            if next == before {
                break;
            }
            before = next;
        }
        let follows = |a: usize, b: usize| before[b] & (1 << a) != 0;
        let rivals = (0..dependent.len())
            .map(|a| {
                bits(dependent[a])
                    .filter(|b| !follows(a, *b))
                    .fold(0, |s, b| s | 1 << b)
            })
            .collect();
        Reduction { rivals }
    }

    /// The enabled actions to try: of the stubborn sets around each, the one with fewest.
    pub fn choose(&self, machine: &Machine<'_>, state: &State, enabled: Set) -> Set {
        let mut best = enabled;
        for seed in bits(enabled) {
            let chosen = self.closure(machine, state, enabled, seed) & enabled;
            if chosen.count_ones() < best.count_ones() {
                best = chosen;
            }
            if best.count_ones() == 1 {
                break;
            }
        }
        best
    }

    fn closure(&self, machine: &Machine<'_>, state: &State, enabled: Set, seed: usize) -> Set {
        let mut set: Set = 1 << seed;
        let mut open = set;
        while open != 0 {
            let n = open.trailing_zeros() as usize;
            open &= open - 1;
            let unmet = machine.needs[n] & !state.done;
            let more = if unmet != 0 {
                // It cannot happen before this one has.
                unmet & unmet.wrapping_neg()
            } else if enabled & (1 << n) != 0 || waits(machine, n) {
                self.rivals[n] & !state.done
            } else {
                0
            };
            let new = more & !set;
            set |= new;
            open |= new;
        }
        set
    }
}

/// Whether an action may be disabled for the value it waits for: whoever changes that is its rival.
fn waits(machine: &Machine<'_>, n: usize) -> bool {
    match machine.actions[n] {
        Action::Observe { observer, step } => {
            matches!(machine.op(observer, step), Op::Wait { .. })
        }
        _ => false,
    }
}

/// The members of a set, in order.
pub(super) fn bits(set: Set) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let n = rest.trailing_zeros();
        (rest != 0).then(|| {
            rest &= rest - 1;
            n as usize
        })
    })
}
