//! The event queue: a total order that never looks at the payload.

use super::time::Instant;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Who scheduled an event. Ids are given out in a fixed order when the machine is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u32);

/// What kind of event goes first among those of one instant. The order is part of the model: a
/// write that becomes visible at an instant is seen by a read satisfied at that instant, and
/// whoever reacts to state reacts after it has settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventClass {
    /// A memory controller decides what it serves next.
    Memory,
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

/// Sorted runs kept beside the heap. A machine has a handful of delays (a read, a write, a wake-up,
/// to this target or that); events of one delay are scheduled in the order they happen.
const LANES: usize = 6;

/// Where the next event is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Lane(usize),
    Heap,
}

/// Pending events in the order (time, class, component, sequence within the component). The
/// sequence makes every key unique, so the order is total and does not depend on how they are
/// stored.
///
/// An event goes to the first lane whose last event it does not precede: O(1). What fits no lane goes
/// to a heap: O(log n).
pub struct EventQueue<E> {
    lanes: [VecDeque<Entry<E>>; LANES],
    heap: BinaryHeap<Entry<E>>,
    /// When the first event of each lane happens; never, if it is empty.
    fronts: [Instant; LANES],
    next: Option<Source>,
    /// Next sequence number of each component.
    sequences: Vec<u64>,
    now: Instant,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue {
            lanes: Default::default(),
            heap: BinaryHeap::new(),
            fronts: [Instant::NEVER; LANES],
            next: None,
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

    /// Registers someone who schedules events. The order of registration is the order of the
    /// components among equals.
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
        let entry = Entry {
            at,
            order: (class as u64) << 32 | u64::from(component.0),
            sequence,
            event,
        };
        let first = (self.front()).is_none_or(|front| entry.key() < front.key());
        let fits =
            |lane: &VecDeque<Entry<E>>| lane.back().is_none_or(|last| last.key() < entry.key());
        let source = match self.lanes.iter().position(fits) {
            Some(lane) => {
                if self.lanes[lane].is_empty() {
                    self.fronts[lane] = at;
                }
                self.lanes[lane].push_back(entry);
                Source::Lane(lane)
            }
            None => {
                self.heap.push(entry);
                Source::Heap
            }
        };
        if first {
            self.next = Some(source);
        }
    }

    /// The next event.
    fn front(&self) -> Option<&Entry<E>> {
        match self.next? {
            Source::Lane(lane) => self.lanes[lane].front(),
            Source::Heap => self.heap.peek(),
        }
    }

    /// Finds the next event.
    fn look(&self) -> Option<Source> {
        let mut best = self.heap.peek().map(|entry| (Source::Heap, entry));
        let mut best_at = best.map_or(Instant::NEVER, |(_, entry)| entry.at);
        for (lane, at) in self.fronts.iter().enumerate() {
            if *at > best_at {
                continue;
            }
            let Some(entry) = self.lanes[lane].front() else {
                continue;
            };
            if best.is_none_or(|(_, other)| entry.key() < other.key()) {
                best = Some((Source::Lane(lane), entry));
                best_at = *at;
            }
        }
        best.map(|(source, _)| source)
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Instant> {
        self.front().map(|entry| entry.at)
    }

    /// Takes the next event and moves time to it.
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let entry = match self.next? {
            Source::Lane(lane) => {
                let entry = self.lanes[lane].pop_front();
                let front = self.lanes[lane].front();
                self.fronts[lane] = front.map_or(Instant::NEVER, |entry| entry.at);
                entry
            }
            Source::Heap => self.heap.pop(),
        }?;
        self.next = self.look();
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
        self.next.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLASSES: [EventClass; 6] = [
        EventClass::Memory,
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
        assert_eq!(popped, [0, 1, 2, 3, 4, 5]);
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
            events in prop::collection::vec((0u64..50, 0usize..6, 0u32..4), 0..200),
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
