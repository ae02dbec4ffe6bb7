//! The record that a completed descriptor leaves in its completion ring (A: the public headers).

use super::RingId;
use bitfield_struct::bitfield;

/// First word of a completion record.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
struct Word0 {
    #[bits(24)]
    reserved_23_0: u32,
    #[bits(2)]
    ring_id: u8,
    first: bool,
    last: bool,
    #[bits(2)]
    reserved_29_28: u8,
    buf1_used: bool,
    error: bool,
}

/// A descriptor has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionRecord {
    /// Lap of the completion ring.
    pub ring_id: RingId,
    /// First of its packet.
    pub first: bool,
    /// Last of its packet.
    pub last: bool,
    /// Bytes written, on Rx.
    pub written: Option<u32>,
}

impl CompletionRecord {
    /// Bytes of a Tx record.
    pub const TX_BYTES: u32 = 4;
    /// Bytes of the longest record.
    pub const MAX_BYTES: usize = 32;

    /// The bytes as they lie in the ring, which takes as many of them as its records have.
    pub fn to_bytes(self) -> [u8; Self::MAX_BYTES] {
        let word0 = Word0::new()
            .with_ring_id(self.ring_id.into_bits())
            .with_first(self.first)
            .with_last(self.last)
            .with_buf1_used(self.written.is_some());
        let mut bytes = [0; Self::MAX_BYTES];
        bytes[..4].copy_from_slice(&word0.into_bits().to_le_bytes());
        // LENGTH as a descriptor has it: 16 bits, 65536 as 0.
        let length = self.written.unwrap_or(0) as u16;
        bytes[4..6].copy_from_slice(&length.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_records() {
        let tx = CompletionRecord {
            ring_id: RingId::FIRST_LAP,
            first: true,
            last: false,
            written: None,
        };
        assert_eq!(tx.to_bytes()[..8], [0, 0, 0, 0x05, 0, 0, 0, 0]);
        let rx = CompletionRecord {
            first: false,
            last: true,
            written: Some(0x1234),
            ..tx
        };
        assert_eq!(rx.to_bytes()[..8], [0, 0, 0, 0x49, 0x34, 0x12, 0, 0]);
    }
}
