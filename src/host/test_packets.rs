//! Packets for tests.

use crate::desc::{Buffer, CmeMeta, CopyPacket, MetaCtrl, RingId};
use crate::units::Addr;

pub(super) fn buffer(at: u64, len: u64) -> Buffer {
    Buffer { at: Addr(at), len }
}

/// The packet as a checksum: a CRC-32 from the stored value, with copy.
pub(super) fn checksum(mut packet: CopyPacket) -> CopyPacket {
    packet.meta_ctrl = MetaCtrl::from_bits(0x0118_8003);
    packet.meta = Some(CmeMeta {
        index: RingId::FIRST_LAP,
        meta_ctrl: MetaCtrl::PLAIN_COPY,
        meta1: 0,
        meta2: 0,
    });
    packet
}
