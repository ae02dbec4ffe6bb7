//! The axioms by name (`docs/ordering.md`), and sets of them, so that each can be weakened to see
//! that some test notices.

use std::fmt;

/// An axiom of the ordering model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Axiom {
    /// A1: a write is issued after the reads that feed it are satisfied.
    Dataflow = 1,
    /// A2: a queue issues its writes in ring order.
    Stream,
    /// A3: a queue's writes to overlapping bytes become visible in issue order.
    Coherence,
    /// A4: a read is not held for an earlier packet's write of the same bytes. Without it, it is.
    NoInterlock,
    /// A5: writes of different bytes become visible in any order. Without it, in issue order.
    Independence,
    /// A6: DMB.
    Dmb,
    /// A7: write barrier.
    WriteBarrier,
    /// A8: strong-ordered write.
    StrongOrder,
    /// A9: packets complete in ring order.
    Completion,
    /// A10: a packet starts after its doorbell.
    Doorbell,
    /// A11: nothing is ordered across queues. Without it, a queue starts after the one before it.
    Across,
    /// A12: an embedded increment comes after all earlier writes of its queue.
    Embedded,
    /// A13: several packets of a queue are in flight. Without it, one.
    Bounds,
}

impl Axiom {
    /// Every axiom, in the order of their numbers.
    pub const ALL: [Axiom; 13] = [
        Axiom::Dataflow,
        Axiom::Stream,
        Axiom::Coherence,
        Axiom::NoInterlock,
        Axiom::Independence,
        Axiom::Dmb,
        Axiom::WriteBarrier,
        Axiom::StrongOrder,
        Axiom::Completion,
        Axiom::Doorbell,
        Axiom::Across,
        Axiom::Embedded,
        Axiom::Bounds,
    ];
}

impl fmt::Display for Axiom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "A{}", *self as u8)
    }
}

/// The axioms in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axioms(u16);

impl Axioms {
    /// The model: all of them.
    pub const ALL: Axioms = Axioms(u16::MAX);

    /// All but one. For mutation checks: nothing but a test has a use for it.
    #[must_use]
    pub fn without(self, axiom: Axiom) -> Axioms {
        Axioms(self.0 & !(1 << axiom as u8))
    }

    /// Whether an axiom is in force.
    pub fn has(self, axiom: Axiom) -> bool {
        self.0 & (1 << axiom as u8) != 0
    }
}
