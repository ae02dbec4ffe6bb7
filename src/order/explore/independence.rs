//! Which actions are independent: the one table that partial-order reduction rests on.
//!
//! | | reads an atom | stores to it | adds to it |
//! |---|---|---|---|
//! | **reads an atom** | independent | dependent | dependent |
//! | **stores to it** | dependent | dependent | dependent |
//! | **adds to it** | dependent | dependent | independent |
//!
//! Actions that share no atom are independent: what else they have in common (a queue's order, an
//! observer's program, a doorbell) is in [`Machine::needs`](super::machine::Machine), which only ever
//! grows to be fulfilled. A wait reads its atom, also in order to be enabled.

use super::machine::{Action, Machine, Set};
use crate::order::bursts::Source;
use crate::order::program::{Op, Span};
use crate::system::WaitOp;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Reads,
    Stores,
    Adds,
}

fn independent(a: Access, b: Access) -> bool {
    matches!(
        (a, b),
        (Access::Reads, Access::Reads) | (Access::Adds, Access::Adds)
    )
}

fn footprint(machine: &Machine<'_>, action: Action) -> Vec<(Span, Access)> {
    let atom = |first| Span { first, count: 1 };
    // The lane lies behind memory. Dataflow orders what happens to it, as long as it is in force.
    let lane = |place: usize, count| Span {
        first: machine.program.atoms() + place,
        count,
    };
    match action {
        Action::Read(n) => {
            let read = &machine.bursts.reads[n];
            let (cells, count) = match read.source {
                Source::Fixed(span) => (vec![span], span.count),
                Source::Through(_) => (machine.program.pointees(), 1),
            };
            let read_cells = cells.into_iter().map(|cell| (cell, Access::Reads));
            read_cells
                .chain([(lane(read.lane, count), Access::Stores)])
                .collect()
        }
        Action::Visible(n) => {
            let write = &machine.bursts.writes[n];
            let access = match write.adds {
                true => Access::Adds,
                false => Access::Stores,
            };
            let feeds = write.feeds.iter();
            let taken = feeds.map(|feed| (lane(*feed, write.to.count), Access::Reads));
            taken.chain([(write.to, access)]).collect()
        }
        Action::Observe { observer, step } => match machine.op(observer, step) {
            Op::Read { span, .. } => vec![(span, Access::Reads)],
            Op::Wait { atom: at, op } => {
                let access = match op {
                    WaitOp::Ge(_) | WaitOp::Eq(_) => Access::Reads,
                    _ => Access::Stores,
                };
                vec![(atom(at), access)]
            }
            Op::Set { atom: at, .. } => vec![(atom(at), Access::Stores)],
            Op::Add { atom: at, .. } => vec![(atom(at), Access::Adds)],
            Op::Ring { .. } | Op::Completion { .. } => Vec::new(),
        },
    }
}

/// For each action, the actions it is dependent with.
pub(super) fn dependent(machine: &Machine<'_>) -> Vec<Set> {
    let actions = machine.actions.iter();
    let footprints: Vec<_> = actions.map(|a| footprint(machine, *a)).collect();
    let depends = |a: usize, b: usize| {
        a != b
            && footprints[a].iter().any(|(here, x)| {
                (footprints[b].iter())
                    .any(|(there, y)| here.overlaps(*there) && !independent(*x, *y))
            })
    };
    let set = |a| {
        (0..footprints.len())
            .filter(|b| depends(a, *b))
            .fold(0, |set, b| set | 1 << b)
    };
    (0..footprints.len()).map(set).collect()
}
