//! A set of queues of one engine, so that arbiters look only at queues with work.

use crate::arch::QueueId;

/// Queues by number, below 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueSet(u32);

impl QueueSet {
    pub fn insert(&mut self, q: QueueId) {
        self.0 |= 1 << q.0;
    }

    pub fn remove(&mut self, q: QueueId) {
        self.0 &= !(1 << q.0);
    }

    /// Puts `q` in or takes it out.
    pub fn set(&mut self, q: QueueId, member: bool) {
        match member {
            true => self.insert(q),
            false => self.remove(q),
        }
    }

    #[inline]
    pub fn contains(self, q: QueueId) -> bool {
        self.0 >> q.0 & 1 == 1
    }

    /// Those of its queues that pass a test.
    pub fn filter(self, test: impl Fn(QueueId) -> bool) -> QueueSet {
        let mut passed = QueueSet::default();
        self.iter()
            .filter(|q| test(*q))
            .for_each(|q| passed.insert(q));
        passed
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its queues in round-robin order: those above `last` first, `last` itself at the end.
    #[inline]
    pub fn after(self, last: QueueId) -> impl Iterator<Item = QueueId> {
        let first = u32::from(last.0) + 1;
        let turned = bits(self.0.rotate_right(first));
        turned.map(move |place| QueueId((place + first as u8) % u32::BITS as u8))
    }

    /// Its queues in ascending order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = QueueId> {
        bits(self.0).map(QueueId)
    }
}

/// The numbers of the bits that are set, lowest first.
#[inline]
fn bits(mut set: u32) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        if set == 0 {
            return None;
        }
        let lowest = set.trailing_zeros() as u8;
        set &= set - 1;
        Some(lowest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_robin_visits_each_once(raw: u32, last in 0u8..32) {
            let set = QueueSet(raw);
            let expected: Vec<QueueId> = (1..=32)
                .map(|step| (last + step) % 32)
                .filter(|q| raw >> q & 1 == 1)
                .map(QueueId)
                .collect();
            prop_assert_eq!(set.after(QueueId(last)).collect::<Vec<_>>(), expected);
            let ascending = (0..32).filter(|q| raw >> q & 1 == 1).map(QueueId);
            prop_assert!(set.iter().eq(ascending));
        }

        #[test]
        fn members(raw: u32, q in 0u8..32) {
            let (mut set, q) = (QueueSet(raw), QueueId(q));
            set.set(q, true);
            prop_assert!(set.iter().any(|member| member == q) && !set.is_empty());
            set.set(q, false);
            prop_assert!(set.iter().all(|member| member != q));
        }
    }
}
