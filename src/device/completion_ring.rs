//! Completion ring of one queue and half: a record for each descriptor of a completed packet,
//! written to host or device memory.
//!
//! The record is the public headers' (A): word 0 holds ERROR 31, BUF1_USED 30, LAST 27, FIRST 26 and
//! the ring's phase 25:24; on Rx, word 1 holds the bytes written. A Tx record is 4 bytes, an Rx
//! record what the completion controller is set to. The ring is as long as the descriptor ring.

use crate::arch::regs::RingPointer;
use crate::desc::RingId;
use crate::sim::Instant;
use crate::units::Addr;
use std::collections::VecDeque;

/// Bytes of the longest record.
const MAX_RECORD: usize = 32;
/// Bytes of a Tx record.
pub(super) const TX_RECORD: u32 = 4;

const BUF1_USED: u32 = 1 << 30;
const LAST: u32 = 1 << 27;
const FIRST: u32 = 1 << 26;
const RING_ID_SHIFT: u32 = 24;

/// A record on its way to memory.
#[derive(Clone, Copy)]
pub(super) struct Record {
    /// Where it goes.
    pub at: Addr,
    bytes: [u8; MAX_RECORD],
    len: usize,
    /// The last of a packet that asked for an interrupt.
    pub interrupt: bool,
    /// Whether the ring was reset after the record was issued: it no longer moves the head.
    stale: bool,
}

impl Record {
    /// What is written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A completion ring.
#[derive(Default)]
pub(super) struct CompletionRing {
    /// Whether completions are written. A base of 0 means nobody set the ring up (C): S2M resets to
    /// writing completions, and a driver that uses none may leave it so.
    pub enabled: bool,
    /// Physical address of record 0.
    pub base: Addr,
    /// Records in the ring.
    pub length: u32,
    /// Bytes of a record.
    pub record_bytes: u32,
    /// Records issued and visible, since the last reset.
    issued: u64,
    visible: u64,
    /// Records on their way, oldest first.
    pub records: VecDeque<Record>,
    /// When the youngest of them is visible: records become visible in order.
    pub visible_until: Instant,
}

impl CompletionRing {
    /// Whether packets leave records.
    pub fn is_on(&self) -> bool {
        self.enabled && self.base != Addr(0) && self.length > 0
    }

    /// The record for a descriptor: first or last of its packet, and the bytes it wrote (Rx).
    pub fn issue(&mut self, first: bool, last: bool, written: Option<u32>) -> Record {
        let slot = self.issued % u64::from(self.length.max(1));
        let mut word = u32::from(self.ring_id(self.issued).into_bits()) << RING_ID_SHIFT;
        word |= if first { FIRST } else { 0 } | if last { LAST } else { 0 };
        word |= if written.is_some() { BUF1_USED } else { 0 };
        let mut bytes = [0; MAX_RECORD];
        bytes[..4].copy_from_slice(&word.to_le_bytes());
        // LENGTH as a descriptor has it: 16 bits, 65536 as 0.
        bytes[4..6].copy_from_slice(&(written.unwrap_or(0) as u16).to_le_bytes());
        let offset = slot * u64::from(self.record_bytes);
        self.issued += 1;
        Record {
            at: Addr(self.base.0.wrapping_add(offset)),
            bytes,
            len: self.record_bytes as usize,
            interrupt: false,
            stale: false,
        }
    }

    /// The oldest record has reached memory.
    pub fn land(&mut self) -> Option<Record> {
        let record = self.records.pop_front()?;
        self.visible += u64::from(!record.stale);
        Some(record)
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

    /// Back to record 0 of the first lap. Records on their way still land.
    pub fn reset(&mut self) {
        (self.issued, self.visible) = (0, 0);
        self.records
            .iter_mut()
            .for_each(|record| record.stale = true);
    }
}
