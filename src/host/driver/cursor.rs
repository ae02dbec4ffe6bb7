//! The indices of a ring that is filled and emptied lap after lap.

use crate::desc::RingId;
use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors that always stay free, so that the producer never catches up with the prefetch.
pub const GUARD_DESCS: u32 = 16;

/// Shortest ring that has room for the guard and a batch: modelled (C), the driver's has 4096.
const MIN_RING: u32 = 64;

/// Producer and consumer index of one ring. Any number of threads may reserve and acknowledge.
///
/// Both are kept as counts since the start, which never come round to an old value: index and phase
/// follow from them.
#[derive(Debug)]
pub struct RingCursor {
    size: u32,
    staged: AtomicU64,
    acked: AtomicU64,
}

/// Why the indices did not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// The ring's length does not wrap by a mask, or has no room for the guard.
    #[error(
        "a ring has {0} descriptors; the ring cycle needs a power of two from {MIN_RING} to 2^23"
    )]
    Size(u32),
    /// Not enough free descriptors.
    #[error(
        "{wanted} descriptors do not fit: a ring of {size} has {free} free, and {GUARD_DESCS} always stay free"
    )]
    Full {
        /// Descriptors asked for.
        wanted: u32,
        /// Descriptors of the ring.
        size: u32,
        /// Free ones.
        free: u32,
    },
    /// More acknowledged than staged.
    #[error("{acked} descriptors acknowledged, but only {outstanding} are outstanding")]
    Ack {
        /// Descriptors acknowledged.
        acked: u32,
        /// Descriptors staged and not yet acknowledged.
        outstanding: u32,
    },
}

/// Slots that were reserved and must be written: the token of one batch on one ring.
#[derive(Debug, PartialEq, Eq)]
pub struct Reservation {
    start: u32,
    count: u32,
    size: u32,
    phase: RingId,
}

impl Reservation {
    /// First slot.
    pub fn start(&self) -> u32 {
        self.start
    }

    /// Slots.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// How many of them lie before the ring's end.
    pub fn before_wrap(&self) -> u32 {
        self.count.min(self.size - self.start)
    }

    /// Ring id of the `n`th of them.
    pub fn phase(&self, n: u32) -> RingId {
        if n < self.before_wrap() {
            self.phase
        } else {
            self.phase.next()
        }
    }
}

impl RingCursor {
    /// The indices of an empty ring in its first lap.
    ///
    /// # Errors
    /// [`CursorError::Size`] unless `size` is a power of two from 64 on.
    pub fn new(size: u32) -> Result<RingCursor, CursorError> {
        if !size.is_power_of_two() || !(MIN_RING..=1 << 23).contains(&size) {
            return Err(CursorError::Size(size));
        }
        Ok(RingCursor {
            size,
            staged: AtomicU64::new(0),
            acked: AtomicU64::new(0),
        })
    }

    /// Slot of the next descriptor.
    pub fn next_desc_idx(&self) -> u32 {
        self.slot(self.staged.load(Ordering::Acquire))
    }

    /// Slot of the oldest descriptor that is not acknowledged.
    pub fn next_cdesc_idx(&self) -> u32 {
        self.slot(self.acked.load(Ordering::Acquire))
    }

    /// Ring id of the next descriptor.
    pub fn phase(&self) -> RingId {
        self.phase_of(self.staged.load(Ordering::Acquire))
    }

    /// Descriptors that can be staged now.
    pub fn free(&self) -> u32 {
        self.free_at(self.next_desc_idx())
    }

    fn slot(&self, count: u64) -> u32 {
        count as u32 & (self.size - 1)
    }

    /// 1 on the first lap, one more each time the index wraps to 0.
    fn phase_of(&self, count: u64) -> RingId {
        let laps = count >> self.size.trailing_zeros();
        RingId::from_bits(RingId::FIRST_LAP.into_bits().wrapping_add(laps as u8))
    }

    fn free_at(&self, next_desc_idx: u32) -> u32 {
        let guarded = next_desc_idx.wrapping_add(GUARD_DESCS);
        self.next_cdesc_idx().wrapping_sub(guarded) & (self.size - 1)
    }

    /// Takes the next `count` slots.
    ///
    /// # Errors
    /// [`CursorError::Full`]; the indices are then as they were.
    pub fn reserve(&self, count: u32) -> Result<Reservation, CursorError> {
        let mut staged = self.staged.load(Ordering::Acquire);
        loop {
            let start = self.slot(staged);
            let free = self.free_at(start);
            if count > free {
                let now = self.staged.load(Ordering::Acquire);
                if now != staged {
                    staged = now;
                    continue;
                }
                return Err(CursorError::Full {
                    wanted: count,
                    size: self.size,
                    free,
                });
            }
            let next = staged + u64::from(count);
            match self.staged.compare_exchange_weak(
                staged,
                next,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    return Ok(Reservation {
                        start,
                        count,
                        size: self.size,
                        phase: self.phase_of(staged),
                    });
                }
                Err(now) => staged = now,
            }
        }
    }

    /// Gives back the oldest `count` slots, by compare-and-swap.
    ///
    /// # Errors
    /// [`CursorError::Ack`] for more than are outstanding; the index is then as it was.
    pub fn ack(&self, count: u32) -> Result<(), CursorError> {
        let mut acked = self.acked.load(Ordering::Acquire);
        loop {
            // Read after `acked`: it can only have grown, so there are at least so many.
            let outstanding = self.staged.load(Ordering::Acquire) - acked;
            if u64::from(count) > outstanding {
                return Err(CursorError::Ack {
                    acked: count,
                    outstanding: outstanding as u32,
                });
            }
            let next = acked + u64::from(count);
            match self
                .acked
                .compare_exchange_weak(acked, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Ok(()),
                Err(now) => acked = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn sixteen_descriptors_always_stay_free() {
        let cursor = RingCursor::new(64).unwrap();
        assert_eq!(cursor.free(), 48);
        assert_eq!(
            cursor.reserve(49),
            Err(CursorError::Full {
                wanted: 49,
                size: 64,
                free: 48
            })
        );
        cursor.reserve(48).unwrap();
        assert_eq!(cursor.free(), 0);
        assert!(cursor.reserve(1).is_err());
        cursor.ack(1).unwrap();
        assert_eq!(cursor.free(), 1);
        assert_eq!(
            cursor.ack(48),
            Err(CursorError::Ack {
                acked: 48,
                outstanding: 47
            })
        );
    }

    #[test]
    fn the_phase_advances_when_the_index_wraps_to_0() {
        let cursor = RingCursor::new(64).unwrap();
        let mut phases = Vec::new();
        for _ in 0..10 {
            let taken = cursor.reserve(32).unwrap();
            phases.push(taken.phase(0).into_bits());
            assert_eq!((taken.before_wrap(), taken.phase(31)), (32, taken.phase(0)));
            cursor.ack(32).unwrap();
        }
        assert_eq!(phases, [1, 1, 2, 2, 3, 3, 0, 0, 1, 1]);
        assert_eq!(cursor.phase().into_bits(), 2);
        cursor.reserve(33).unwrap();
        cursor.ack(33).unwrap();
        let over = cursor.reserve(40).unwrap();
        assert_eq!((over.start(), over.before_wrap()), (33, 31));
        assert_eq!(
            (over.phase(30).into_bits(), over.phase(31).into_bits()),
            (2, 3)
        );
    }

    #[test]
    fn sizes_that_wrap_by_a_mask() {
        for size in [0, 32, 48, 63, 65, 96, 1 << 24] {
            assert_eq!(RingCursor::new(size).unwrap_err(), CursorError::Size(size));
        }
        for size in [64, 128, 4096, 1 << 23] {
            assert!(RingCursor::new(size).is_ok());
        }
    }

    /// Threads that acknowledge at once lose nothing and never run ahead of the producer.
    #[test]
    fn acks_from_many_threads_add_up() {
        const LAPS: u32 = 2000;
        let cursor = RingCursor::new(64).unwrap();
        let (send, receive) = std::sync::mpsc::channel::<u32>();
        let receive = std::sync::Mutex::new(receive);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let batch = receive.lock().unwrap().recv();
                        match batch {
                            Ok(count) => cursor.ack(count).unwrap(),
                            Err(_) => return,
                        }
                    }
                });
            }
            let (mut staged, mut size) = (0u32, 1);
            while staged < LAPS * 64 {
                match cursor.reserve(size) {
                    Ok(taken) => {
                        assert_eq!(taken.start(), staged % 64);
                        let lap = RingId::from_bits(((1 + staged / 64) % 4) as u8);
                        assert_eq!(taken.phase(0), lap);
                        staged += size;
                        send.send(size).unwrap();
                        size = size % 13 + 1;
                    }
                    Err(_) => std::thread::yield_now(),
                }
            }
            drop(send);
        });
        assert_eq!(cursor.next_desc_idx(), cursor.next_cdesc_idx());
        assert_eq!(cursor.free(), 48);
    }

    /// Threads that reserve at once get slots that do not overlap.
    #[test]
    fn reservations_from_many_threads_are_disjoint() {
        let cursor = RingCursor::new(4096).unwrap();
        let mut taken: Vec<(u32, u32)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=4)
                .map(|size| {
                    let cursor = &cursor;
                    scope.spawn(move || {
                        (0..100)
                            .map(|_| cursor.reserve(size).unwrap())
                            .map(|slots| (slots.start(), slots.count()))
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        taken.sort_unstable();
        let mut next = 0;
        for (start, count) in taken {
            assert_eq!(start, next);
            next += count;
        }
        assert_eq!(next, 1000);
    }

    proptest! {
        /// Against a queue of slots: laps, phases and free counts agree whatever the batches are.
        #[test]
        fn laps_agree_with_a_plain_queue(steps in prop::collection::vec((1u32..50, any::<bool>()), 1..400)) {
            let cursor = RingCursor::new(64).unwrap();
            let mut slots: VecDeque<u64> = VecDeque::new();
            let mut next = 0u64;
            for (count, reserve) in steps {
                if reserve {
                    let fits = slots.len() as u32 + count <= 48;
                    match cursor.reserve(count) {
                        Ok(taken) => {
                            prop_assert!(fits);
                            for n in 0..count {
                                let slot = (taken.start() + n) % 64;
                                prop_assert_eq!(u64::from(slot), next % 64);
                                prop_assert_eq!(u64::from(taken.phase(n).into_bits()), (1 + next / 64) % 4);
                                slots.push_back(next);
                                next += 1;
                            }
                        }
                        Err(error) => {
                            prop_assert!(!fits, "{}", error);
                        }
                    }
                } else {
                    let fits = count as usize <= slots.len();
                    prop_assert_eq!(cursor.ack(count).is_ok(), fits);
                    if fits {
                        slots.drain(..count as usize);
                    }
                }
                prop_assert_eq!(cursor.free(), 48 - slots.len() as u32);
            }
        }
    }
}
