//! What an engine has asked to be told later, in the order it happens.

use crate::arch::QueueId;
use crate::arch::regs::Direction;
use crate::sim::{EventClass, Instant};

/// What an engine asked to be told later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// Its clocked work.
    Wake {
        /// The cycle.
        cycle: u64,
    },
    /// A descriptor burst is sampled.
    Fetch {
        /// Which ring of the queue.
        direction: Direction,
        /// The queue.
        queue: QueueId,
    },
    /// A data read is sampled.
    Read {
        /// Number of the burst.
        burst: u64,
    },
    /// Completion records become visible.
    Completion {
        /// Which half's.
        direction: Direction,
        /// The queue.
        queue: QueueId,
    },
    /// Completion records have waited for others long enough.
    Gathered {
        /// Which half's.
        direction: Direction,
        /// The queue.
        queue: QueueId,
    },
    /// A notification becomes visible.
    Notification,
    /// A data write becomes visible.
    Write {
        /// The queue.
        queue: QueueId,
        /// Number of the burst in the queue.
        burst: u64,
    },
}

impl EngineEvent {
    /// Its place among the events of one instant.
    #[inline]
    pub fn class(self) -> EventClass {
        match self {
            EngineEvent::Wake { .. } | EngineEvent::Gathered { .. } => EventClass::Clocked,
            EngineEvent::Fetch { .. } | EngineEvent::Read { .. } => EventClass::Sample,
            EngineEvent::Write { .. }
            | EngineEvent::Completion { .. }
            | EngineEvent::Notification => EventClass::Visible,
        }
    }
}

/// Classes of an engine's events, in their order within an instant.
const CLASSES: [EventClass; 3] = [EventClass::Visible, EventClass::Sample, EventClass::Clocked];

/// An engine's events in the order (time, class, sequence), and its next wake-up.
pub(super) struct Agenda {
    /// Events of each class, the next one first. They come nearly in the order they happen: most go to
    /// the end, others a few places before it.
    lists: [List; CLASSES.len()],
    /// When the first of each list happens; never, if there is none.
    fronts: [Instant; CLASSES.len()],
    /// When the engine works next, and the cycle; never, if it does not. Clocked, after all events.
    wake: (Instant, u64),
}

impl Default for Agenda {
    fn default() -> Agenda {
        Agenda {
            lists: Default::default(),
            fronts: [Instant::NEVER; CLASSES.len()],
            wake: (Instant::NEVER, 0),
        }
    }
}

impl Agenda {
    /// Adds an event, after those of its class and instant. O(events of its class that happen later).
    #[inline]
    pub fn push(&mut self, at: Instant, event: EngineEvent) {
        let index = index_of(event.class());
        self.fronts[index] = self.fronts[index].min(at);
        self.lists[index].push(at, event);
    }

    /// When the engine works next.
    #[inline]
    pub fn wakes_at(&self) -> Instant {
        self.wake.0
    }

    /// Makes the engine work at a clock edge, that of `cycle`, unless it does so earlier.
    #[inline]
    pub fn wake_at(&mut self, edge: Instant, cycle: u64) {
        if edge < self.wake.0 {
            self.wake = (edge, cycle);
        }
    }

    /// When the next event happens, and its class.
    #[inline]
    pub fn next(&self) -> Option<(Instant, EventClass)> {
        let [mut at, sample, clocked] = self.fronts;
        let clocked = clocked.min(self.wake.0);
        let mut class = EventClass::Visible;
        if sample < at {
            (at, class) = (sample, EventClass::Sample);
        }
        if clocked < at {
            (at, class) = (clocked, EventClass::Clocked);
        }
        (at < Instant::NEVER).then_some((at, class))
    }

    /// Takes the next event of a class.
    #[inline]
    pub fn pop(&mut self, class: EventClass) -> Option<EngineEvent> {
        let index = index_of(class);
        if class == EventClass::Clocked && self.wake.0 < self.fronts[index] {
            let (_, cycle) = std::mem::replace(&mut self.wake, (Instant::NEVER, 0));
            return Some(EngineEvent::Wake { cycle });
        }
        let (event, next) = self.lists[index].pop()?;
        self.fronts[index] = next;
        Some(event)
    }
}

/// Events in order. Side by side, unlike in a ring buffer: one that comes late is moved to its place over
/// those before it.
#[derive(Default)]
struct List {
    events: Vec<(Instant, EngineEvent)>,
    /// How many of them have happened.
    over: usize,
}

impl List {
    /// Adds an event after those of its instant.
    #[inline]
    fn push(&mut self, at: Instant, event: EngineEvent) {
        if self.events.len() == self.events.capacity() && self.over > self.events.len() / 2 {
            self.forget();
        }
        self.events.push((at, event));
        let events = &mut self.events[self.over..];
        let mut place = events.len() - 1;
        while place > 0 && events[place - 1].0 > at {
            events[place] = events[place - 1];
            place -= 1;
        }
        events[place] = (at, event);
    }

    /// Makes room by forgetting what has happened.
    #[cold]
    fn forget(&mut self) {
        self.events.drain(..self.over);
        self.over = 0;
    }

    /// Takes the next event, and says when the one after it happens.
    #[inline]
    fn pop(&mut self) -> Option<(EngineEvent, Instant)> {
        let (_, event) = *self.events.get(self.over)?;
        self.over += 1;
        let next = self.events.get(self.over);
        Some((event, next.map_or(Instant::NEVER, |(at, _)| *at)))
    }
}

/// The place of a class among [`CLASSES`].
#[inline]
fn index_of(class: EventClass) -> usize {
    match class {
        EventClass::Visible => 0,
        EventClass::Sample => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a stable sort.
        #[test]
        fn events_come_in_the_order_of_time_class_and_sequence(
            events in prop::collection::vec((0u64..20, 0usize..3), 0..100),
        ) {
            let mut agenda = Agenda::default();
            let mut expected = Vec::new();
            for (n, (at, class)) in events.into_iter().enumerate() {
                let (queue, burst) = (QueueId(0), n as u64);
                let event = match CLASSES[class] {
                    EventClass::Visible => EngineEvent::Write { queue, burst },
                    EventClass::Sample => EngineEvent::Read { burst },
                    _ => EngineEvent::Gathered {
                        direction: Direction::M2s,
                        queue,
                    },
                };
                prop_assert_eq!(event.class(), CLASSES[class]);
                agenda.push(Instant::from_fs(at), event);
                expected.push((Instant::from_fs(at), CLASSES[class], event));
            }
            expected.sort_by_key(|(at, class, _)| (*at, *class));
            for (at, class, event) in expected {
                prop_assert_eq!(agenda.next(), Some((at, class)));
                prop_assert_eq!(agenda.pop(class), Some(event));
            }
            prop_assert_eq!(agenda.next(), None);
        }

        /// The engine works at the earliest edge asked for, after what has gathered by then.
        #[test]
        fn it_wakes_once(edges in prop::collection::vec(0u64..20, 1..10), gathered in 0u64..20) {
            let mut agenda = Agenda::default();
            let event = EngineEvent::Gathered {
                direction: Direction::S2m,
                queue: QueueId(3),
            };
            for cycle in &edges {
                agenda.wake_at(Instant::from_fs(*cycle), *cycle);
            }
            agenda.push(Instant::from_fs(gathered), event);
            let cycle = *edges.iter().min().unwrap();
            let mut expected = [(gathered, event), (cycle, EngineEvent::Wake { cycle })];
            expected.sort_by_key(|(at, _)| *at);
            for (at, event) in expected {
                let class = EventClass::Clocked;
                prop_assert_eq!(agenda.next(), Some((Instant::from_fs(at), class)));
                prop_assert_eq!(agenda.pop(class), Some(event));
            }
            prop_assert_eq!(agenda.next(), None);
        }
    }
}
