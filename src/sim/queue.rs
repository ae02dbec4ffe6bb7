//! The event queue: a total order that never looks at the payload.

use super::time::Instant;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Who scheduled an event. Ids are given out in a fixed order when the machine is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u32);

/// What kind of event goes first among those of one instant. The order is part of the model: a
/// write that becomes visible at an instant is seen by a read satisfied at that instant, and
/// whoever reacts to state reacts after it has settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventClass {
    /// A write becomes visible in memory.
    Visible,
    /// A read samples memory.
    Sample,
    /// A register write posted by the host or a sequencer arrives.
    Register,
    /// An engine's clocked work.
    Clocked,
    /// A sequencer's next step.
    Sequencer,
}

/// A place in the order of events: those that share one differ in nothing but their sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    at: Instant,
    /// Class in the upper half, component in the lower.
    order: u64,
}

impl Turn {
    /// After every event.
    pub const NEVER: Turn = Turn {
        at: Instant::NEVER,
        order: u64::MAX,
    };

    /// The turn of a component's events of one class at one instant.
    #[inline]
    pub const fn new(at: Instant, class: EventClass, component: ComponentId) -> Turn {
        Turn {
            at,
            order: (class as u64) << 32 | component.0 as u64,
        }
    }

    /// The instant.
    #[inline]
    pub const fn at(self) -> Instant {
        self.at
    }

    /// After every event of an instant, before those of later ones.
    pub const fn after(at: Instant) -> Turn {
        Turn {
            at,
            order: u64::MAX,
        }
    }
}

struct Entry<E> {
    turn: Turn,
    /// Grows with each event scheduled, by anybody: so it does within a component.
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (Turn, u64) {
        (self.turn, self.sequence)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    /// Reversed: the heap's greatest entry is the earliest event.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Pending events in the order (time, class, component, sequence within the component). The
/// sequence makes every key unique, so the order is total and does not depend on how they are
/// stored.
pub struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    components: u32,
    sequence: u64,
    now: Instant,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue {
            heap: BinaryHeap::new(),
            components: 0,
            sequence: 0,
            now: Instant::START,
        }
    }
}

impl<E> EventQueue<E> {
    /// An empty queue at [`Instant::START`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers someone who schedules events. The order of registration is the order of the
    /// components among equals.
    pub fn add_component(&mut self) -> ComponentId {
        let id = ComponentId(self.components);
        self.components = id.0.checked_add(1).expect("fewer than 2^32 parts");
        id
    }

    /// The time of the event popped last.
    #[inline]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Adds an event: O(log n).
    ///
    /// # Panics
    /// If `at` lies in the past: a fault of the simulator, never of its input.
    pub fn schedule(&mut self, at: Instant, class: EventClass, component: ComponentId, event: E) {
        assert!(
            at >= self.now,
            "event at {at:?} scheduled at {:?}",
            self.now
        );
        self.sequence += 1;
        self.heap.push(Entry {
            turn: Turn::new(at, class, component),
            sequence: self.sequence,
            event,
        });
    }

    /// The next event's turn; [`Turn::NEVER`] if there is none.
    #[inline]
    pub fn next_turn(&self) -> Turn {
        self.heap.peek().map_or(Turn::NEVER, |next| next.turn)
    }

    /// When the next event happens.
    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|next| next.turn.at)
    }

    /// Takes the next event and moves time to it: O(log n).
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let Entry { turn, event, .. } = self.heap.pop()?;
        self.now = turn.at;
        Some((turn.at, event))
    }

    /// Moves time forward over a stretch in which nothing happens.
    ///
    /// # Panics
    /// If an event would be skipped or time would go back: a fault of the simulator.
    pub fn advance_to(&mut self, at: Instant) {
        assert!(
            at >= self.now,
            "time would go backwards to {at:?} from {:?}",
            self.now
        );
        assert!(
            self.next_at().is_none_or(|next| next >= at),
            "an event would be skipped"
        );
        self.now = at;
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLASSES: [EventClass; 5] = [
        EventClass::Visible,
        EventClass::Sample,
        EventClass::Register,
        EventClass::Clocked,
        EventClass::Sequencer,
    ];

    #[test]
    fn classes_of_one_instant_have_a_stated_order() {
        let mut queue = EventQueue::new();
        let part = queue.add_component();
        for (n, class) in CLASSES.into_iter().enumerate().rev() {
            queue.schedule(Instant::from_fs(7), class, part, n);
        }
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, n)| n).collect();
        assert_eq!(popped, [0, 1, 2, 3, 4]);
    }

    #[test]
    #[should_panic(expected = "scheduled at")]
    fn the_past_is_closed() {
        let mut queue = EventQueue::new();
        let part = queue.add_component();
        queue.schedule(Instant::from_fs(7), EventClass::Clocked, part, ());
        queue.pop();
        queue.schedule(Instant::from_fs(6), EventClass::Clocked, part, ());
    }

    proptest! {
        /// Against a stable sort of the same events, and independent of how components interleave.
        #[test]
        fn order_is_total_and_time_monotone(
            events in prop::collection::vec((0u64..50, 0usize..5, 0u32..4), 0..200),
        ) {
            let mut queue = EventQueue::new();
            let parts: Vec<_> = (0..4).map(|_| queue.add_component()).collect();
            let mut expected = Vec::new();
            for (n, &(at, class, part)) in events.iter().enumerate() {
                queue.schedule(Instant::from_fs(at), CLASSES[class], parts[part as usize], n);
                expected.push((at, class, part, n));
            }
            expected.sort();

            let mut by_component = EventQueue::new();
            let parts: Vec<_> = (0..4).map(|_| by_component.add_component()).collect();
            for part in 0..4 {
                for (n, &(at, class, p)) in events.iter().enumerate() {
                    if p == part {
                        by_component.schedule(Instant::from_fs(at), CLASSES[class], parts[p as usize], n);
                    }
                }
            }

            let popped: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
            prop_assert!(popped.windows(2).all(|w| w[0].0 <= w[1].0));
            prop_assert!(popped.iter().map(|p| p.1).eq(expected.iter().map(|e| e.3)));
            let again: Vec<_> = std::iter::from_fn(|| by_component.pop()).collect();
            prop_assert_eq!(popped, again);
        }
    }
}
