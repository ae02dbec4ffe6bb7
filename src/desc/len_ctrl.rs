//! `len_ctrl`, word 0 of every descriptor (`docs/hardware.md`, "Descriptor").

use bitfield_struct::bitfield;

/// Bytes of the longest descriptor; stored as length 0.
pub const MAX_DESC_BYTES: u32 = 65536;

/// The 2-bit phase that tells a descriptor of this lap from one left by an earlier lap. Modular:
/// it has a successor and no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RingId(u8);

impl RingId {
    /// Phase of a ring's first lap.
    pub const FIRST_LAP: RingId = RingId(1);

    /// The phase with the given two low bits.
    pub const fn from_bits(raw: u8) -> RingId {
        RingId(raw & 3)
    }

    /// The two bits.
    pub const fn into_bits(self) -> u8 {
        self.0
    }

    /// Phase of the next lap: plus one, modulo four.
    pub const fn next(self) -> RingId {
        RingId::from_bits(self.0 + 1)
    }
}

/// Length and control bits of a descriptor, Tx and Rx alike.
#[bitfield(u32)]
#[derive(PartialEq, Eq, Hash)]
pub struct LenCtrl {
    /// LENGTH as stored: bytes, 0 meaning 65536. See [`LenCtrl::byte_len`].
    pub length: u16,
    /// Bits without a meaning.
    #[bits(7)]
    pub reserved_22_16: u8,
    /// META: the descriptor carries words, not an address.
    pub meta: bool,
    /// RING_ID: phase of the lap.
    #[bits(2)]
    pub ring_id: RingId,
    /// FIRST descriptor of a packet.
    pub first: bool,
    /// LAST descriptor of a packet.
    pub last: bool,
    /// INT_EN: interrupt on completion.
    pub int_en: bool,
    /// STRONG_ORDER_WR (SOW): Rx only, V3 and later.
    pub strong_order_wr: bool,
    /// DMB: Tx only.
    pub dmb: bool,
    /// CONCAT: concatenate with the next descriptor. On an Rx descriptor of V4: carries an embedded
    /// semaphore update.
    pub concat: bool,
}

/// A length that no descriptor can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a length of {0} bytes; a descriptor moves 1 to 65536")]
pub struct LengthError(pub u32);

impl LenCtrl {
    /// Bytes the descriptor moves, 1..=65536.
    pub const fn byte_len(self) -> u32 {
        match self.length() {
            0 => MAX_DESC_BYTES,
            length => length as u32,
        }
    }

    /// With LENGTH set to move `bytes` bytes.
    ///
    /// # Errors
    /// [`LengthError`] outside 1..=65536.
    pub const fn with_byte_len(self, bytes: u32) -> Result<LenCtrl, LengthError> {
        match bytes {
            1..MAX_DESC_BYTES => Ok(self.with_length(bytes as u16)),
            MAX_DESC_BYTES => Ok(self.with_length(0)),
            _ => Err(LengthError(bytes)),
        }
    }

    /// `len_ctrl` of the meta descriptor that leads a CRC packet: FIRST and META, its index in the
    /// RING_ID bits.
    pub const fn leading_meta(index: RingId) -> LenCtrl {
        LenCtrl::new()
            .with_first(true)
            .with_meta(true)
            .with_ring_id(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_bits() {
        let zero = LenCtrl::new();
        for (bits, value) in [
            (zero.with_length(0xffff), 0x0000_ffff),
            (zero.with_meta(true), 0x0080_0000),
            (zero.with_ring_id(RingId::from_bits(3)), 0x0300_0000),
            (zero.with_first(true), 0x0400_0000),
            (zero.with_last(true), 0x0800_0000),
            (zero.with_int_en(true), 0x1000_0000),
            (zero.with_strong_order_wr(true), 0x2000_0000),
            (zero.with_dmb(true), 0x4000_0000),
            (zero.with_concat(true), 0x8000_0000),
            (zero.with_first(true).with_last(true), 0x0c00_0000),
            (LenCtrl::leading_meta(RingId::from_bits(0)), 0x0480_0000),
            (LenCtrl::leading_meta(RingId::FIRST_LAP), 0x0580_0000),
        ] {
            assert_eq!(bits.into_bits(), value, "{bits:?}");
        }
    }

    #[test]
    fn length_limits() {
        let zero = LenCtrl::new();
        assert_eq!(zero.with_byte_len(0), Err(LengthError(0)));
        assert_eq!(zero.with_byte_len(1).unwrap().into_bits(), 1);
        assert_eq!(zero.with_byte_len(65535).unwrap().into_bits(), 0xffff);
        assert_eq!(zero.with_byte_len(65536).unwrap().into_bits(), 0);
        assert_eq!(zero.with_byte_len(65537), Err(LengthError(65537)));
        assert_eq!(zero.byte_len(), 65536);
    }

    #[test]
    fn ring_ids_go_round() {
        let laps: Vec<u8> = std::iter::successors(Some(RingId::FIRST_LAP), |id| Some(id.next()))
            .map(RingId::into_bits)
            .take(5)
            .collect();
        assert_eq!(laps, [1, 2, 3, 0, 1]);
    }

    proptest! {
        #[test]
        fn fields_hold_every_bit(raw: u32) {
            let from = LenCtrl::from_bits(raw);
            let again = LenCtrl::new()
                .with_length(from.length())
                .with_reserved_22_16(from.reserved_22_16())
                .with_meta(from.meta())
                .with_ring_id(from.ring_id())
                .with_first(from.first())
                .with_last(from.last())
                .with_int_en(from.int_en())
                .with_strong_order_wr(from.strong_order_wr())
                .with_dmb(from.dmb())
                .with_concat(from.concat());
            prop_assert_eq!(again.into_bits(), raw);
        }

        #[test]
        fn byte_len_round_trips(bytes in 1u32..=65536) {
            prop_assert_eq!(LenCtrl::new().with_byte_len(bytes).unwrap().byte_len(), bytes);
        }
    }
}
