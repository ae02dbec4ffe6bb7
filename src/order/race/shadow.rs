//! Shadow memory: for every range of addresses that was accessed alike, who accessed it last. Ranges are
//! split where accesses begin and end, so the cost is in accesses, not in bytes.

use std::collections::BTreeMap;

/// An access: a thread's packet or epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Access {
    pub thread: u32,
    pub index: u32,
    pub write: bool,
    /// What the program calls it.
    pub tag: u32,
}

struct Range {
    end: u64,
    accesses: Vec<Access>,
}

/// Ranges by first byte; they do not overlap.
#[derive(Default)]
pub(super) struct Shadow {
    ranges: BTreeMap<u64, Range>,
}

impl Shadow {
    /// Notes an access to `start..end`. `conflict` is told of every earlier access to the same bytes, and
    /// says whether that one happens before this one.
    pub fn access(
        &mut self,
        (start, end): (u64, u64),
        access: Access,
        mut before: impl FnMut(Access, (u64, u64)) -> bool,
    ) {
        self.split(start);
        self.split(end);
        let starts: Vec<u64> = self.ranges.range(start..end).map(|(at, _)| *at).collect();
        let mut covered = start;
        for at in starts {
            if covered < at {
                self.insert(covered, at, access);
            }
            if let Some(range) = self.ranges.get_mut(&at) {
                covered = range.end;
                let bytes = (at, range.end);
                range.accesses.retain(|old| {
                    // Two reads never conflict; of one thread's, the last stands for all.
                    if !old.write && !access.write {
                        return old.thread != access.thread;
                    }
                    let ordered = before(*old, bytes);
                    !(ordered && access.write)
                });
                range.accesses.push(access);
            }
        }
        if covered < end {
            self.insert(covered, end, access);
        }
    }

    /// The writes that a byte shows.
    pub fn writes_at(&self, at: u64) -> Vec<Access> {
        match self.ranges.range(..=at).next_back() {
            Some((_, range)) if at < range.end => {
                let accesses = range.accesses.iter();
                accesses.filter(|access| access.write).copied().collect()
            }
            _ => Vec::new(),
        }
    }

    fn insert(&mut self, start: u64, end: u64, access: Access) {
        let accesses = vec![access];
        self.ranges.insert(start, Range { end, accesses });
    }

    fn split(&mut self, at: u64) {
        let Some((_, range)) = self.ranges.range_mut(..at).next_back() else {
            return;
        };
        if range.end <= at {
            return;
        }
        let (end, accesses) = (range.end, range.accesses.clone());
        range.end = at;
        self.ranges.insert(at, Range { end, accesses });
    }
}
