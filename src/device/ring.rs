//! One direction of one queue: the ring's pointers and its slice of the prefetch FIFO.

use super::request::Times;
use super::window::Window;
use crate::arch::regs::RingPointer;
use crate::desc::{DESC_BYTES, Descriptor, RingId};
use crate::sim::Instant;
use crate::units::Addr;
use std::collections::VecDeque;

/// A descriptor in the prefetch FIFO.
#[derive(Clone, Copy, Debug)]
pub struct Prefetched {
    /// Its 16 bytes.
    pub desc: Descriptor,
    /// Its number since the last reset, and its slot in the ring.
    pub nth: u64,
    pub slot: u32,
    /// When the engine has it.
    pub ready_at: Instant,
    /// Last of its packet (Tx).
    pub closes: bool,
}

/// A burst of descriptors on its way from ring memory.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// First descriptor, counted since the last reset, and where it is read.
    pub first: u64,
    pub at: Addr,
    /// Descriptors.
    pub count: u32,
    /// Whether the ring was reset after the fetch was issued: what arrives is dropped.
    pub stale: bool,
    /// When it was issued, the channel it went to, and its way once that is known.
    pub issued: Instant,
    pub channel: u32,
    pub times: Option<Times>,
    /// Cycle of its issue; never once it has been reported as timed out.
    pub issued_at: u64,
}

/// A ring and its pointers.
///
/// The pointers count descriptors since the last reset and never wrap, so that a ring whose every
/// descriptor is outstanding is not taken for an empty one; the registers show them modulo the
/// length. `current ≤ head ≤ tail ≤ head + length`.
#[derive(Default)]
pub struct Ring {
    /// Physical address of descriptor 0.
    pub base: Addr,
    /// Descriptors in the ring.
    pub length: u32,
    tail: u64,
    head: u64,
    current: u64,
    /// The independent data tail (Tx, V3 and later): once it has been rung, packets start only below
    /// it.
    data_tail: Option<u64>,
    /// When its doorbell was last rung.
    pub rung_at: Option<Instant>,
    /// Descriptors that wait for the scheduler or the write path.
    pub fifo: VecDeque<Prefetched>,
    /// Bursts on their way; they are sampled in this order.
    pub fetches: Window<Fetch>,
    /// Descriptors of those that are not stale.
    coming: usize,
    /// Number of the oldest of which it is not known when it is sampled.
    fetches_timed: u64,
    /// When the last burst issued is sampled.
    pub sampled_until: Instant,
}

impl Ring {
    /// Doorbell: `count` more descriptors are valid. Returns how many of them the ring has no room
    /// for; those are ignored (C: the driver must not do it).
    pub fn ring_doorbell(&mut self, count: u32) -> u32 {
        // A length that shrank under descriptors already covered leaves no room.
        let room = u64::from(self.length).saturating_sub(self.tail - self.head);
        let taken = u64::from(count).min(room);
        self.tail += taken;
        count - taken as u32
    }

    /// Doorbell of the data tail: `count` more descriptors may be executed. That it gates only once
    /// it has been rung is modelled (C): no source says how it is switched on.
    pub fn ring_data_doorbell(&mut self, count: u32) {
        let tail = self.data_tail.unwrap_or(0).saturating_add(u64::from(count));
        self.data_tail = Some(tail);
    }

    /// Whether the data tail lets a packet start whose last descriptor is `nth`.
    pub fn data_covers(&self, nth: u64) -> bool {
        self.data_tail.is_none_or(|tail| nth < tail)
    }

    /// Descriptors the doorbell has covered and no fetch has asked for.
    pub fn to_fetch(&self) -> u64 {
        self.tail - self.head
    }

    /// Descriptors the doorbell has covered and that are not completed.
    pub fn outstanding(&self) -> u64 {
        self.tail - self.current
    }

    /// Descriptors of this ring in the prefetch FIFO, or on their way to it.
    pub fn held(&self) -> usize {
        self.fifo.len() + self.coming
    }

    /// Most descriptors one fetch may ask for: up to the tail and to the end of the ring.
    pub fn contiguous(&self) -> u64 {
        match self.length {
            0 => 0,
            length => self
                .to_fetch()
                .min(u64::from(length) - self.head % u64::from(length)),
        }
    }

    /// The descriptor that the next fetch begins with, and its address.
    pub fn fetch_from(&self) -> (u64, Addr) {
        (self.head, self.slot_address(self.slot(self.head)))
    }

    /// Moves the head over descriptors that are being fetched; returns the number of the fetch.
    pub fn begin_fetch(&mut self, fetch: Fetch) -> u64 {
        self.head += u64::from(fetch.count);
        self.coming += fetch.count as usize;
        let number = self.fetches.next();
        self.fetches.push(fetch);
        number
    }

    /// A fetch has its times.
    pub fn fetch_timed(&mut self, fetch: u64, times: Times) {
        if let Some(fetch) = self.fetches.get_mut(fetch) {
            fetch.times = Some(times);
        }
    }

    /// When the oldest fetch that nobody knew it of yet is sampled, if that is known: not before the fetches
    /// ahead of it.
    pub fn next_fetch_sampled(&mut self) -> Option<Instant> {
        let fetch = self.fetches.get_mut(self.fetches_timed)?;
        let times = fetch.times.as_mut()?;
        self.sampled_until = self.sampled_until.max(times.done);
        times.done = self.sampled_until;
        self.fetches_timed += 1;
        Some(times.done)
    }

    /// The oldest fetch is sampled: takes it out.
    pub fn end_fetch(&mut self) -> Option<(Fetch, Times)> {
        let fetch = self.fetches.front().copied()?;
        let times = fetch.times?;
        self.fetches.pop_front();
        if !fetch.stale {
            self.coming -= fetch.count as usize;
        }
        Some((fetch, times))
    }

    /// Address of a slot.
    pub fn slot_address(&self, slot: u32) -> Addr {
        Addr(
            self.base
                .0
                .wrapping_add(u64::from(slot) * DESC_BYTES as u64),
        )
    }

    /// Slot of the `nth` descriptor since the reset.
    pub fn slot(&self, nth: u64) -> u32 {
        match self.length {
            0 => 0,
            length => (nth % u64::from(length)) as u32,
        }
    }

    /// The phase that the `nth` descriptor since the reset must carry.
    pub fn ring_id(&self, nth: u64) -> RingId {
        let lap = match self.length {
            0 => 0,
            length => nth / u64::from(length),
        };
        // A phase has four values: the lap modulo four decides.
        (0..lap % 4).fold(RingId::FIRST_LAP, |id, _| id.next())
    }

    /// `count` descriptors are completed.
    pub fn complete(&mut self, count: u32) {
        self.current += u64::from(count);
    }

    /// Back to slot 0 of the first lap; what was fetched is dropped, now or when it arrives.
    pub fn reset(&mut self) {
        self.fifo.clear();
        self.fetches.iter_mut().for_each(|fetch| fetch.stale = true);
        self.coming = 0;
        (self.tail, self.head, self.current) = (0, 0, 0);
        self.data_tail = None;
    }

    /// What a pointer register shows.
    fn pointer(&self, nth: u64) -> u32 {
        RingPointer::new()
            .with_index(self.slot(nth))
            .with_ring_id(self.ring_id(nth).into_bits())
            .into_bits()
    }

    /// The head register.
    pub fn head_pointer(&self) -> u32 {
        self.pointer(self.head)
    }

    /// The tail register.
    pub fn tail_pointer(&self) -> u32 {
        self.pointer(self.tail)
    }

    /// The data tail register.
    pub fn data_tail_pointer(&self) -> u32 {
        self.pointer(self.data_tail.unwrap_or(0))
    }

    /// The current register: the oldest descriptor that is not completed (C).
    pub fn current_pointer(&self) -> u32 {
        self.pointer(self.current)
    }

    /// Whether every slot is outstanding.
    pub fn is_full(&self) -> bool {
        self.length > 0 && self.outstanding() >= u64::from(self.length)
    }
}
