//! Completion ring of one queue and half: a record for each descriptor of a completed packet,
//! written to host or device memory.
//!
//! A Tx record is 4 bytes, an Rx record what the completion controller is set to. The ring is as long as the descriptor
//! ring.
//!
//! Records of consecutive slots are coalesced into one write, unless the queue's register says not
//! to. When a write is sent is modelled (C): when it reaches a multiple of the burst length or the end
//! of the ring, when a record interrupts, and when its first record has waited long enough.

use crate::arch::regs::RingPointer;
use crate::desc::{CompletionRecord, RingId};
use crate::sim::Instant;
use crate::units::Addr;
use std::collections::VecDeque;

/// Records that go to memory in one write.
pub(super) struct RecordBurst {
    /// Where it goes.
    pub at: Addr,
    /// What is written.
    pub bytes: Vec<u8>,
    /// How many records that is.
    pub records: usize,
    /// Packets that asked for an interrupt end in it.
    pub interrupt: bool,
    /// Whether the ring was reset after the records were issued: they no longer move the head.
    stale: bool,
    /// When it is sent, full or not.
    due: Instant,
    /// Cycle in which it was sent; never once it has been reported as timed out.
    pub sent_at: u64,
}

/// What there is to say of a descriptor.
#[derive(Clone, Copy)]
pub(super) struct Completed {
    /// First and last of its packet.
    pub first: bool,
    pub last: bool,
    /// Bytes written, on Rx.
    pub written: Option<u32>,
    /// It is the last of a packet that asked for an interrupt.
    pub interrupt: bool,
}

/// A completion ring.
#[derive(Default)]
pub(super) struct CompletionRing {
    /// Whether completions are written. A base of 0 means nobody set the ring up (C): S2M resets to
    /// writing completions, and a driver that uses none may leave it so.
    pub enabled: bool,
    /// Whether the head counts completed descriptors where there is no ring.
    pub reports_head: bool,
    /// Whether several records may go in one write.
    pub coalesces: bool,
    /// Physical address of record 0.
    pub base: Addr,
    /// Records in the ring.
    pub length: u32,
    /// Bytes of a record.
    pub record_bytes: u32,
    /// Records issued and visible, since the last reset.
    issued: u64,
    visible: u64,
    /// Records that wait for others to join them.
    gathered: Option<RecordBurst>,
    /// Writes on their way, oldest first.
    pub on_the_way: VecDeque<RecordBurst>,
    /// When the youngest of them is visible: records become visible in order.
    pub visible_until: Instant,
}

impl CompletionRing {
    /// Whether packets leave records.
    pub fn is_on(&self) -> bool {
        self.enabled && self.base != Addr(0) && self.length > 0
    }

    /// Whether no record waits for others.
    pub fn has_sent_all(&self) -> bool {
        self.gathered.is_none()
    }

    /// Whether no record is gathered or on its way.
    pub fn is_quiet(&self) -> bool {
        self.gathered.is_none() && self.on_the_way.is_empty()
    }

    /// Issues the record of a descriptor. It joins those that wait if it continues them; if not, they are
    /// handed back to be sent. A new burst is due at `due`. Whether it is full says [`Self::take_full`].
    pub fn issue(&mut self, completed: Completed, due: Instant) -> Option<RecordBurst> {
        let slot = self.issued % u64::from(self.length.max(1));
        let at = Addr((self.base.0).wrapping_add(slot * u64::from(self.record_bytes)));
        let record = CompletionRecord {
            ring_id: self.ring_id(self.issued),
            first: completed.first,
            last: completed.last,
            written: completed.written,
        };
        self.issued += 1;
        let continues = |burst: &RecordBurst| {
            !burst.stale && burst.at.0.wrapping_add(burst.bytes.len() as u64) == at.0
        };
        let before = (self.gathered).take_if(|burst| !continues(burst));
        let burst = self.gathered.get_or_insert_with(|| RecordBurst {
            at,
            bytes: Vec::new(),
            records: 0,
            interrupt: false,
            stale: false,
            due,
            sent_at: 0,
        });
        burst
            .bytes
            .extend_from_slice(&record.to_bytes()[..self.record_bytes as usize]);
        burst.records += 1;
        burst.interrupt |= completed.interrupt;
        before
    }

    /// The records that wait, if they must not wait for more: bursts have up to `burst_bytes`, a power
    /// of two, and end at multiples of it.
    pub fn take_full(&mut self, burst_bytes: u32) -> Option<RecordBurst> {
        let wraps = self.issued.is_multiple_of(u64::from(self.length.max(1)));
        let alone = !self.coalesces || wraps;
        self.gathered.take_if(|burst| {
            let end = burst.at.0.wrapping_add(burst.bytes.len() as u64);
            let next = end.wrapping_add(u64::from(self.record_bytes)) - 1;
            let boundary = !u64::from(burst_bytes - 1);
            alone || burst.interrupt || burst.at.0 & boundary != next & boundary
        })
    }

    /// The records that wait, if they have waited long enough.
    pub fn take_due(&mut self, now: Instant) -> Option<RecordBurst> {
        self.gathered.take_if(|burst| burst.due <= now)
    }

    /// The oldest write has reached memory.
    pub fn land(&mut self) -> Option<RecordBurst> {
        let burst = self.on_the_way.pop_front()?;
        if !burst.stale {
            self.visible += burst.records as u64;
        }
        Some(burst)
    }

    fn ring_id(&self, nth: u64) -> RingId {
        let lap = nth / u64::from(self.length.max(1));
        (0..lap % 4).fold(RingId::FIRST_LAP, |id, _| id.next())
    }

    fn pointer(&self, nth: u64) -> u32 {
        RingPointer::new()
            .with_index((nth % u64::from(self.length.max(1))) as u32)
            .with_ring_id(self.ring_id(nth).into_bits())
            .into_bits()
    }

    /// The head register: the next record to become visible.
    pub fn head_pointer(&self) -> u32 {
        self.pointer(self.visible)
    }

    /// The internal head register: the next record to be issued.
    pub fn internal_head_pointer(&self) -> u32 {
        self.pointer(self.issued)
    }

    /// Counts descriptors that leave no record.
    pub fn count(&mut self, descriptors: u64) {
        if self.reports_head {
            self.issued += descriptors;
            self.visible += descriptors;
        }
    }

    /// Back to record 0 of the first lap. Records that were issued still land.
    pub fn reset(&mut self) {
        (self.issued, self.visible) = (0, 0);
        (self.gathered.iter_mut().chain(&mut self.on_the_way)).for_each(|burst| burst.stale = true);
    }
}
