//! What the axioms demand, as a relation between events: one function, axiom by axiom, as
//! `docs/ordering.md` states them.

use super::events::{Event, Events};
use crate::order::axioms::{Axiom, Axioms};
use crate::order::bursts::Source;
use crate::order::program::Op;

/// A strict partial order of events, transitively closed.
#[derive(Clone)]
pub(super) struct Order {
    before: Vec<u128>,
    after: Vec<u128>,
}

impl Order {
    fn empty(events: usize) -> Order {
        Order {
            before: vec![0; events],
            after: vec![0; events],
        }
    }

    pub fn holds(&self, a: usize, b: usize) -> bool {
        self.after[a] & (1 << b) != 0
    }

    pub fn count_before(&self, event: usize) -> u32 {
        self.before[event].count_ones()
    }

    /// Puts `a` before `b`, which are not ordered the other way round.
    pub fn add(&mut self, a: usize, b: usize) {
        let below = self.before[a] | 1 << a;
        let above = self.after[b] | 1 << b;
        for event in 0..self.before.len() {
            if below & (1 << event) != 0 {
                self.after[event] |= above;
            }
            if above & (1 << event) != 0 {
                self.before[event] |= below;
            }
        }
    }
}

/// The least order that every execution contains; `None` if what is demanded is a cycle.
pub(super) fn demanded(events: &Events<'_>, axioms: Axioms) -> Option<Order> {
    let mut order = Order::empty(events.list.len());
    for (a, first) in events.list.iter().enumerate() {
        for (b, second) in events.list.iter().enumerate() {
            if a == b || !precedes(events, axioms, *first, *second) {
                continue;
            }
            if order.holds(b, a) {
                return None;
            }
            order.add(a, b);
        }
    }
    Some(order)
}

/// Queue and packet of a burst or of a completion.
struct Stage {
    queue: usize,
    packet: usize,
}

/// Whether some axiom in force, or the meaning of an event, puts `first` before `second`.
fn precedes(events: &Events<'_>, axioms: Axioms, first: Event, second: Event) -> bool {
    use Event::{Complete, Instruction, Issued, Satisfied, Visible};
    let (reads, writes) = (&events.bursts.reads, &events.bursts.writes);
    let queues = &events.program.queues;
    let stage = |event| match event {
        Satisfied(n) => Some(Stage {
            queue: reads[n].queue,
            packet: reads[n].packet,
        }),
        Issued(n) | Visible(n) => Some(Stage {
            queue: writes[n].queue,
            packet: writes[n].packet,
        }),
        Complete { queue, packet } => Some(Stage { queue, packet }),
        Instruction { .. } => None,
    };
    let is_fetch = |event| matches!(event, Satisfied(n) if reads[n].fetch);
    let starts = matches!(second, Satisfied(_) | Issued(_)) && !is_fetch(second);
    let (one, two) = match (stage(first), stage(second)) {
        (Some(one), Some(two)) => (one, two),
        (None, Some(two)) => {
            // A10: a doorbell comes before everything it covers.
            let Instruction { observer, step } = first else {
                return false;
            };
            return axioms.has(Axiom::Doorbell)
                && !queues[two.queue].rung
                && events.op(observer, step) == Op::Ring { queue: two.queue };
        }
        (Some(one), None) => {
            // The current pointer tells of completions.
            let (Complete { packet, .. }, Instruction { observer, step }) = (first, second) else {
                return false;
            };
            return matches!(events.op(observer, step), Op::Completion { queue, packets }
                if queue == one.queue && packet + 1 == packets);
        }
        (None, None) => {
            // An observer executes one instruction after the other.
            return matches!((first, second),
                (Instruction { observer: a, step: m }, Instruction { observer: b, step: n })
                if a == b && m < n);
        }
    };
    if one.queue != two.queue {
        return !axioms.has(Axiom::Across)
            && one.queue + 1 == two.queue
            && matches!(first, Visible(_))
            && matches!(second, Satisfied(_));
    }
    let (here, there) = (one.packet, two.packet);
    let packets = &queues[one.queue].packets;
    let between = |from: usize, to: usize| packets.get(from..to).unwrap_or_default();
    match (first, second) {
        // What a burst is: a write is issued, then visible; a descriptor is fetched, then read through.
        (Issued(m), Visible(n)) if m == n => true,
        (Satisfied(m), Satisfied(n)) if reads[m].fetch => {
            reads[n].source == Source::Through(reads[m].lane)
        }
        // A1.
        (Satisfied(m), Issued(n)) if writes[n].fed_by(&reads[m]) => axioms.has(Axiom::Dataflow),
        // A2.
        (Issued(m), Issued(n)) if m < n => axioms.has(Axiom::Stream),
        // A3, A5, A7, A8, A12: pairs of writes.
        (Visible(m), Visible(n)) if m < n => {
            let (earlier, later) = (&writes[m], &writes[n]);
            (axioms.has(Axiom::Coherence) && earlier.to.overlaps(later.to))
                || !axioms.has(Axiom::Independence)
                || (axioms.has(Axiom::WriteBarrier)
                    && between(here, there).iter().any(|p| p.write_barrier()))
                || (axioms.has(Axiom::StrongOrder) && later.sow)
                || (axioms.has(Axiom::Embedded) && later.embedded)
        }
        // A4 turned round: reads wait for earlier writes of the same bytes.
        (Visible(m), Satisfied(n)) if !axioms.has(Axiom::NoInterlock) && here < there => {
            match reads[n].source {
                Source::Fixed(span) => writes[m].to.overlaps(span) && !reads[n].fetch,
                Source::Through(_) => false,
            }
        }
        // A9: a packet completes after its own writes, and packets in ring order.
        (Visible(_), Complete { .. }) if here == there => true,
        (Complete { .. }, Complete { .. }) => here < there && axioms.has(Axiom::Completion),
        // A6: nothing of a later packet starts before a DMB packet is complete. A13 turned round: nor
        // before any earlier packet is.
        (Complete { .. }, _) if starts && here < there => {
            let dmb = packets[here].dmb() && !queues[one.queue].dmb_masked;
            (dmb && axioms.has(Axiom::Dmb)) || !axioms.has(Axiom::Bounds)
        }
        _ => false,
    }
}
