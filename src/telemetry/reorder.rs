//! Puts what is told when it is over into the order in which it happened.

use crate::sim::{Duration, Instant};
use std::collections::BTreeMap;

/// Things that happened less than this ago wait for others that happened earlier and are not told
/// yet. An access is told when it is answered, a read when its data enters the stream besides: this is
/// many times what that takes, unless a fault delays it.
const WINDOW: Duration = Duration::from_ns(20_000);

/// Things with their times, in order of time; of one time, in the order told.
pub struct Reorder<T> {
    waiting: BTreeMap<(Instant, u64), T>,
    told: u64,
}

impl<T> Default for Reorder<T> {
    fn default() -> Reorder<T> {
        Reorder {
            waiting: BTreeMap::new(),
            told: 0,
        }
    }
}

impl<T> Reorder<T> {
    /// One more, which happened or will happen at `at`.
    pub fn push(&mut self, at: Instant, thing: T) {
        self.waiting.insert((at, self.told), thing);
        self.told += 1;
    }

    /// The earliest one, once it has waited long enough at `now`. Later ones may still come before
    /// it if they were told too late.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, T)> {
        let ((at, _), _) = self.waiting.first_key_value()?;
        if *at + WINDOW > now {
            return None;
        }
        self.pop()
    }

    /// The earliest one.
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        let ((at, _), thing) = self.waiting.pop_first()?;
        Some((at, thing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_out_in_order_of_time() {
        let at = |ns: u64| Instant::START + Duration::from_ns(ns);
        let mut reorder = Reorder::default();
        for (ns, thing) in [(30, 'c'), (10, 'a'), (30, 'd'), (20, 'b')] {
            reorder.push(at(ns), thing);
        }
        assert_eq!(reorder.pop_due(at(10)), None);
        assert_eq!(reorder.pop_due(at(10) + WINDOW), Some((at(10), 'a')));
        assert_eq!(reorder.pop_due(at(10) + WINDOW), None);
        let rest: Vec<char> = std::iter::from_fn(|| reorder.pop())
            .map(|(_, t)| t)
            .collect();
        assert_eq!(rest, ['b', 'c', 'd']);
    }
}
