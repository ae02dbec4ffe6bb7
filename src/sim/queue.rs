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

struct Entry<E> {
    at: Instant,
    /// Class in the upper half, component in the lower.
    order: u64,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (Instant, u64, u64) {
        (self.at, self.order, self.sequence)
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
/// sequence makes every key unique, so the order is total and does not depend on how the heap
/// breaks ties. O(log n) for both operations.
pub struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    /// Next sequence number of each component.
    sequences: Vec<u64>,
    now: Instant,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue {
            heap: BinaryHeap::new(),
            sequences: Vec::new(),
            now: Instant::START,
        }
    }
}

impl<E> EventQueue<E> {
    /// An empty queue at [`Instant::START`].
    pub fn new() -> Self {
        Self::default()
    }

    /// A new component; its events follow those of earlier components among equals.
    pub fn add_component(&mut self) -> ComponentId {
        let id = ComponentId(u32::try_from(self.sequences.len()).expect("fewer than 2^32 parts"));
        self.sequences.push(0);
        id
    }

    /// The time of the event popped last.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Adds an event.
    ///
    /// # Panics
    /// If `at` lies in the past or `component` is not of this queue: both are faults of the
    /// simulator, never of its input.
    pub fn schedule(&mut self, at: Instant, class: EventClass, component: ComponentId, event: E) {
        assert!(
            at >= self.now,
            "event at {at:?} scheduled at {:?}",
            self.now
        );
        let next = &mut self.sequences[component.0 as usize];
        let sequence = *next;
        *next += 1;
        self.heap.push(Entry {
            at,
            order: (class as u64) << 32 | u64::from(component.0),
            sequence,
            event,
        });
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Takes the next event and moves time to it.
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let entry = self.heap.pop()?;
        self.now = entry.at;
        Some((entry.at, entry.event))
    }

    /// Moves time forward over a stretch in which nothing happens.
    ///
    /// # Panics
    /// If an event would be skipped or time would go back: a fault of the simulator.
    pub fn advance_to(&mut self, at: Instant) {
        assert!(
            at >= self.now,
            "time would go back to {at:?} from {:?}",
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
