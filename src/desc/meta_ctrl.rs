//! `meta_ctrl`, word 1 of a Tx descriptor, as plain copies and CRC packets use it
//! (`docs/hardware.md`, "Descriptor"). Other operations lay their own words over it: see
//! [`OpWord`](super::OpWord).

use bitfield_struct::bitfield;

/// Which unit of the stream processor handles a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SsmaeOp {
    /// Data reshaping engine: striding split, transpose, replication.
    Dre,
    /// Copy and CRC; the class of a plain copy.
    Cme,
    /// Compute engine: ADD, MIN/MAX, FMA and their combinations.
    Cce,
    /// A code with no meaning.
    Reserved(u8),
}

impl SsmaeOp {
    /// Meaning of a 3-bit code.
    pub const fn from_bits(raw: u8) -> SsmaeOp {
        match raw {
            1 => SsmaeOp::Dre,
            2 => SsmaeOp::Cme,
            4 => SsmaeOp::Cce,
            raw => SsmaeOp::Reserved(raw),
        }
    }

    /// The 3-bit code.
    pub const fn into_bits(self) -> u8 {
        match self {
            SsmaeOp::Dre => 1,
            SsmaeOp::Cme => 2,
            SsmaeOp::Cce => 4,
            SsmaeOp::Reserved(raw) => raw,
        }
    }
}

/// What `op_type` asks of the CME.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CmeOp {
    /// Copy.
    Copy,
    /// CRC-32.
    Crc32,
    /// CRC-32C.
    Crc32c,
    /// 16-bit checksum.
    Checksum16,
    /// 32-bit checksum.
    Checksum32,
    /// CRC-16.
    Crc16,
    /// Adler-32.
    Adler32,
    /// CRC-8.
    Crc8,
}

impl CmeOp {
    /// Every operation, in code order.
    const ALL: [CmeOp; 8] = [
        CmeOp::Copy,
        CmeOp::Crc32,
        CmeOp::Crc32c,
        CmeOp::Checksum16,
        CmeOp::Checksum32,
        CmeOp::Crc16,
        CmeOp::Adler32,
        CmeOp::Crc8,
    ];

    /// Meaning of the three low bits of a code.
    pub const fn from_bits(raw: u8) -> CmeOp {
        CmeOp::ALL[(raw & 7) as usize]
    }

    /// The 3-bit code.
    pub const fn into_bits(self) -> u8 {
        self as u8
    }
}

/// Control word of a Tx descriptor of the CME class. Bits 0x04000000 and 0x10000000 mean something
/// else here (write barrier, notification mask) than in `len_ctrl` (FIRST, INT_EN).
#[bitfield(u32)]
#[derive(PartialEq, Eq, Hash)]
pub struct MetaCtrl {
    /// Last buffer of the block.
    pub is_last_block: bool,
    /// First buffer of the block.
    pub is_first_block: bool,
    /// Without a meaning in this class.
    reserved_2: bool,
    /// Slot of the CRC cache.
    #[bits(3)]
    pub cached_crc_iv_index: u8,
    /// Swap the bytes of the result.
    pub swap_result_bytes: bool,
    /// Swap the bits of the result.
    pub swap_result_bits: bool,
    /// Swap the bytes of the interim value.
    pub swap_interim_bytes: bool,
    /// Swap the bits of the interim value.
    pub swap_interim_bits: bool,
    /// Swap the bytes of the source.
    pub swap_source_bytes: bool,
    /// Swap the bits of the source.
    pub swap_source_bits: bool,
    /// Swap the bytes of the initial value.
    pub swap_init_bytes: bool,
    /// Swap the bits of the initial value.
    pub swap_init_bits: bool,
    /// Compare the CRC with an expected one.
    pub validate_crc: bool,
    /// Start from the cached CRC.
    pub use_stored_crc_iv: bool,
    /// Write the CRC out.
    pub send_crc_result: bool,
    /// Keep the CRC in the cache.
    pub store_crc_result: bool,
    /// Keep the source's CRC in the cache.
    pub store_source_crc: bool,
    /// Write the source's data out: what makes a copy of a CME packet.
    pub copy_source_data: bool,
    /// Operation, a [`CmeOp`] in this class.
    #[bits(3)]
    pub op_type: u8,
    /// Class of the word.
    #[bits(3)]
    pub ssmae_op: SsmaeOp,
    /// WRITE_BARRIER: later writes wait for the writes up to this packet.
    pub write_barrier: bool,
    /// Without a meaning.
    reserved_27: bool,
    /// Notification mask, V4 only.
    pub notification_mask: bool,
    /// Without a meaning.
    #[bits(3)]
    reserved_31_29: u8,
}

impl MetaCtrl {
    /// `meta_ctrl` of every plain copy.
    pub const PLAIN_COPY: MetaCtrl = MetaCtrl::new()
        .with_ssmae_op(SsmaeOp::Cme)
        .with_copy_source_data(true)
        .with_is_first_block(true)
        .with_is_last_block(true);

    /// Whether the word is of the CME class: a copy or a CRC.
    pub const fn is_cme(self) -> bool {
        matches!(self.ssmae_op(), SsmaeOp::Cme)
    }

    /// Operation, if the word is of the CME class.
    pub const fn cme_op(self) -> Option<CmeOp> {
        if self.is_cme() {
            Some(CmeOp::from_bits(self.op_type()))
        } else {
            None
        }
    }

    /// Whether a bit without a meaning in this class is set.
    pub const fn has_reserved_bits(self) -> bool {
        self.reserved_2() || self.reserved_27() || self.reserved_31_29() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_bits() {
        let zero = MetaCtrl::new();
        for (bits, value) in [
            (MetaCtrl::PLAIN_COPY, 0x0108_0003),
            (zero.with_is_last_block(true), 0x0000_0001),
            (zero.with_is_first_block(true), 0x0000_0002),
            (zero.with_cached_crc_iv_index(7), 0x0000_0038),
            (zero.with_swap_result_bytes(true), 0x0000_0040),
            (zero.with_swap_result_bits(true), 0x0000_0080),
            (zero.with_swap_interim_bytes(true), 0x0000_0100),
            (zero.with_swap_interim_bits(true), 0x0000_0200),
            (zero.with_swap_source_bytes(true), 0x0000_0400),
            (zero.with_swap_source_bits(true), 0x0000_0800),
            (zero.with_swap_init_bytes(true), 0x0000_1000),
            (zero.with_swap_init_bits(true), 0x0000_2000),
            (zero.with_validate_crc(true), 0x0000_4000),
            (zero.with_use_stored_crc_iv(true), 0x0000_8000),
            (zero.with_send_crc_result(true), 0x0001_0000),
            (zero.with_store_crc_result(true), 0x0002_0000),
            (zero.with_store_source_crc(true), 0x0004_0000),
            (zero.with_copy_source_data(true), 0x0008_0000),
            (zero.with_op_type(7), 0x0070_0000),
            (zero.with_ssmae_op(SsmaeOp::Dre), 0x0080_0000),
            (zero.with_ssmae_op(SsmaeOp::Cme), 0x0100_0000),
            (zero.with_ssmae_op(SsmaeOp::Cce), 0x0200_0000),
            (zero.with_write_barrier(true), 0x0400_0000),
            (zero.with_notification_mask(true), 0x1000_0000),
        ] {
            assert_eq!(bits.into_bits(), value, "{bits:?}");
        }
    }

    #[test]
    fn cme_operations() {
        assert_eq!(MetaCtrl::PLAIN_COPY.cme_op(), Some(CmeOp::Copy));
        assert_eq!(
            MetaCtrl::from_bits(0x0120_0000).cme_op(),
            Some(CmeOp::Crc32c)
        );
        assert_eq!(MetaCtrl::from_bits(0x0170_0000).cme_op(), Some(CmeOp::Crc8));
        assert_eq!(MetaCtrl::from_bits(0x0210_0000).cme_op(), None);
        for raw in 0..8 {
            assert_eq!(CmeOp::from_bits(raw).into_bits(), raw);
            assert_eq!(SsmaeOp::from_bits(raw).into_bits(), raw);
        }
    }

    proptest! {
        #[test]
        fn fields_hold_every_bit(raw: u32) {
            let from = MetaCtrl::from_bits(raw);
            let again = MetaCtrl::new()
                .with_is_last_block(from.is_last_block())
                .with_is_first_block(from.is_first_block())
                .with_reserved_2(from.reserved_2())
                .with_cached_crc_iv_index(from.cached_crc_iv_index())
                .with_swap_result_bytes(from.swap_result_bytes())
                .with_swap_result_bits(from.swap_result_bits())
                .with_swap_interim_bytes(from.swap_interim_bytes())
                .with_swap_interim_bits(from.swap_interim_bits())
                .with_swap_source_bytes(from.swap_source_bytes())
                .with_swap_source_bits(from.swap_source_bits())
                .with_swap_init_bytes(from.swap_init_bytes())
                .with_swap_init_bits(from.swap_init_bits())
                .with_validate_crc(from.validate_crc())
                .with_use_stored_crc_iv(from.use_stored_crc_iv())
                .with_send_crc_result(from.send_crc_result())
                .with_store_crc_result(from.store_crc_result())
                .with_store_source_crc(from.store_source_crc())
                .with_copy_source_data(from.copy_source_data())
                .with_op_type(from.op_type())
                .with_ssmae_op(from.ssmae_op())
                .with_write_barrier(from.write_barrier())
                .with_reserved_27(from.reserved_27())
                .with_notification_mask(from.notification_mask())
                .with_reserved_31_29(from.reserved_31_29());
            prop_assert_eq!(again.into_bits(), raw);
        }
    }
}
