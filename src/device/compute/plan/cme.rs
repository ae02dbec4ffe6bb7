//! Plans of the CME: checksums. The packet is laid out as the engine's public ancestor lays it out: a meta
//! descriptor with the exclusive-ors, the initial value unless a stored one is used, the expected
//! value if the result is validated, the data (`docs/compute.md`, "Checksums").

use super::{Operation, Packet, refuse};
use crate::desc::{CmeOp, CmePacket, check_cme_packet};
use crate::device::compute::crc::{Checksum, CrcCopy, Swap};
use crate::device::compute::refusal::Refusal;

pub(super) fn plan(packet: &Packet) -> Result<Operation, Refusal> {
    let read =
        check_cme_packet(packet.descs).map_err(|(desc, error)| refuse(desc, error.into()))?;
    let checksum = Checksum::of(CmeOp::from_bits(packet.word().op_type()));
    let (
        CmePacket::Checksum {
            word,
            xor_in,
            xor_out,
            ..
        },
        Some(checksum),
    ) = (read, checksum)
    else {
        // Needs no plan, but has one.
        return Ok(Operation::Replicate { copies: 1 });
    };
    let swap = |bytes, bits| Swap { bytes, bits };
    Ok(Operation::Crc(CrcCopy {
        checksum,
        slot: word.cached_crc_iv_index().into(),
        from_stored: word.use_stored_crc_iv(),
        validate: word.validate_crc(),
        copy: word.copy_source_data(),
        send: word.send_crc_result(),
        store_result: word.store_crc_result(),
        store_initial: word.store_source_crc(),
        xor_in,
        xor_out,
        swap_initial: swap(word.swap_init_bytes(), word.swap_init_bits()),
        swap_source: swap(word.swap_source_bytes(), word.swap_source_bits()),
        swap_stored: swap(word.swap_interim_bytes(), word.swap_interim_bits()),
        swap_result: swap(word.swap_result_bytes(), word.swap_result_bits()),
    }))
}
