//! The races found so far.

use super::Thread;
use super::shadow::Access;
use std::collections::BTreeMap;

/// Two accesses that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// Whose the first is.
    pub first: Thread,
    /// Of which packet, or of which epoch of an agent.
    pub packet: u32,
    /// Whose the second is.
    pub second: Thread,
    /// Of which packet or epoch.
    pub other: u32,
    /// Which of them write.
    pub writes: (bool, bool),
}

/// The bytes of each race, for as many as are wanted.
pub(super) struct Found {
    races: BTreeMap<(Access, Access), (u64, u64)>,
    most: usize,
    /// Races beyond the most that are kept.
    pub more: u64,
}

impl Found {
    pub fn new(most: usize) -> Found {
        Found {
            races: BTreeMap::new(),
            most,
            more: 0,
        }
    }

    /// Every race, with its first byte and one past the last.
    pub fn races(&self) -> impl Iterator<Item = (&(Access, Access), &(u64, u64))> {
        self.races.iter()
    }

    /// Notes bytes on which two accesses race.
    pub fn record(&mut self, pair: (Access, Access), bytes: (u64, u64)) {
        let room = self.races.len() < self.most;
        match self.races.get_mut(&pair) {
            Some((first, last)) => {
                *first = bytes.0.min(*first);
                *last = bytes.1.max(*last);
            }
            None if room => {
                self.races.insert(pair, bytes);
            }
            None => self.more += 1,
        }
    }
}
