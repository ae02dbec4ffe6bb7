//! Happens-before, kept as prefixes: of each queue, up to which packet all writes are visible and all
//! reads satisfied; of each host thread or sequencer, how far it has come.

/// A kind of barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BarrierKind {
    /// DMB.
    Dmb,
    /// Write barrier.
    WriteBarrier,
    /// Strong-ordered writes.
    StrongOrder,
}

/// A barrier of a queue: its packet and its kind.
pub(super) type Barrier = (u32, BarrierKind);

/// A prefix of a queue's packets that something is known of, and what would be left of it without the
/// one barrier that it hangs on: that barrier is needed if the difference matters to anybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    known: u32,
    without: u32,
    by: Option<Barrier>,
}

impl Prefix {
    /// Known whatever the barriers.
    pub fn sure(known: u32) -> Prefix {
        Prefix {
            known,
            without: known,
            by: None,
        }
    }

    /// Known because of a barrier.
    pub fn because(known: u32, by: Barrier) -> Prefix {
        Prefix {
            known,
            without: 0,
            by: Some(by),
        }
    }

    /// Both are known: the longer one, and what is left of either without its barrier.
    pub fn join(self, other: Prefix) -> Prefix {
        let (long, short) = match self.known >= other.known {
            true => (self, other),
            false => (other, self),
        };
        let left = match short.by == long.by {
            true => short.without,
            false => short.known,
        };
        let without = match long.by {
            Some(_) => long.without.max(left),
            None => long.known,
        };
        Prefix {
            without,
            by: long.by.filter(|_| without < long.known),
            ..long
        }
    }

    /// As much longer as it takes to hold packet `index` too, if it holds all before that.
    pub fn with_next(self, index: u32) -> Prefix {
        let next = |n| if n == index { n + 1 } else { n };
        Prefix {
            known: next(self.known),
            without: next(self.without),
            by: self.by.filter(|_| self.without < self.known),
        }
    }

    /// Whether it holds a packet, and the barrier without which it would not.
    pub fn holds(self, index: u32) -> (bool, Option<Barrier>) {
        let held = index < self.known;
        (held, self.by.filter(|_| held && index >= self.without))
    }
}

/// What a point in the program knows to have happened of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Packets whose writes are visible.
    pub visible: Prefix,
    /// Reads of packets below this are satisfied.
    pub read: u32,
}

/// What a point in the program knows to have happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock(Vec<Seen>);

impl Clock {
    pub fn of(&self, thread: u32) -> Seen {
        self.0.get(thread as usize).copied().unwrap_or_default()
    }

    /// Learns of one thread.
    pub fn learn(&mut self, thread: u32, seen: Seen) {
        let thread = thread as usize;
        if self.0.len() <= thread {
            self.0.resize(thread + 1, Seen::default());
        }
        let known = &mut self.0[thread];
        known.visible = known.visible.join(seen.visible);
        known.read = known.read.max(seen.read);
    }

    /// Learns all that another point knows.
    pub fn join(&mut self, other: &Clock) {
        for (thread, seen) in other.0.iter().enumerate() {
            self.learn(thread as u32, *seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DMB: Barrier = (3, BarrierKind::Dmb);
    const SOW: Barrier = (5, BarrierKind::StrongOrder);

    #[test]
    fn a_prefix_hangs_on_a_barrier_until_something_else_gives_as_much() {
        let fence = Prefix::sure(2).join(Prefix::because(4, DMB));
        assert_eq!(fence.holds(1), (true, None));
        assert_eq!(fence.holds(3), (true, Some(DMB)));
        assert_eq!(fence.holds(4), (false, None));
        // A later barrier gives more; without it, the earlier one is left.
        let more = fence.join(Prefix::because(5, SOW));
        assert_eq!(more.holds(4), (true, Some(SOW)));
        assert_eq!(more.holds(3), (true, None));
        // Two barriers that give the same: neither is needed.
        let both = Prefix::because(4, DMB).join(Prefix::because(4, SOW));
        assert_eq!(both.holds(3), (true, None));
        // The same barrier heard of twice is still one.
        assert_eq!(fence.join(fence).holds(3), (true, Some(DMB)));
        assert_eq!(fence.join(Prefix::sure(4)).holds(3), (true, None));
    }

    #[test]
    fn the_next_packet_joins_a_prefix_that_reaches_it() {
        let fence = Prefix::because(4, DMB);
        assert_eq!(fence.with_next(4).holds(4), (true, Some(DMB)));
        assert_eq!(fence.with_next(5), fence);
    }
}
