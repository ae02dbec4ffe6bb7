//! Plans of the CME: checksums. The packet is laid out as the engine's public ancestor lays it out: a meta
//! descriptor with the exclusive-ors, the initial value unless a stored one is used, the expected
//! value if the result is validated, the data (`docs/compute.md`, "Checksums").

use super::{Operation, Packet, bytes_of, refuse};
use crate::desc::{CmeOp, MetaCtrl};
use crate::device::compute::crc::{Checksum, CrcCopy, SOURCE_SWAP_BYTES, Swap};
use crate::device::compute::refusal::{Reason, Refusal};

/// Whether a word asks for something that only a checksum has.
pub(super) fn has_checksum_options(word: MetaCtrl) -> bool {
    word.validate_crc()
        || word.use_stored_crc_iv()
        || word.send_crc_result()
        || word.store_crc_result()
        || word.store_source_crc()
}

pub(super) fn plan(packet: &Packet, word: MetaCtrl) -> Result<Operation, Refusal> {
    let in_word = |reason| refuse(packet.first, reason);
    let Some(checksum) = Checksum::of(CmeOp::from_bits(word.op_type())) else {
        packet.no_metas("a copy")?;
        packet.one_operation()?;
        return Err(in_word(Reason::CopyOptions));
    };
    let mut metas = packet.metas();
    let (_, meta) = metas
        .next()
        .filter(|(at, _)| *at < packet.first)
        .ok_or(in_word(Reason::MissingMeta(
            "the meta descriptor that leads a checksum",
        )))?;
    if let Some((index, _)) = metas.next() {
        return Err(refuse(index, Reason::SecondMeta("meta descriptor")));
    }
    check_words(packet, word)?;
    let swap = |bytes, bits| Swap { bytes, bits };
    let crc = CrcCopy {
        checksum,
        slot: word.cached_crc_iv_index().into(),
        from_stored: word.use_stored_crc_iv(),
        validate: word.validate_crc(),
        copy: word.copy_source_data(),
        send: word.send_crc_result(),
        store_result: word.store_crc_result(),
        store_initial: word.store_source_crc(),
        xor_in: meta.meta1,
        xor_out: meta.meta2,
        swap_initial: swap(word.swap_init_bytes(), word.swap_init_bits()),
        swap_source: swap(word.swap_source_bytes(), word.swap_source_bits()),
        swap_stored: swap(word.swap_interim_bytes(), word.swap_interim_bits()),
        swap_result: swap(word.swap_result_bytes(), word.swap_result_bits()),
    };
    check_values(packet, &crc)?;
    Ok(Operation::Crc(crc))
}

/// The first data descriptor has the op word; the others repeat it or have nothing but block marks.
fn check_words(packet: &Packet, word: MetaCtrl) -> Result<(), Refusal> {
    let plain = |word: MetaCtrl| word.with_write_barrier(false).with_notification_mask(false);
    let mark = |word: MetaCtrl| {
        MetaCtrl::new()
            .with_is_first_block(word.is_first_block())
            .with_is_last_block(word.is_last_block())
    };
    for (index, tx) in packet.data() {
        let found = plain(tx.meta_ctrl);
        if found != plain(word) && found != mark(found) {
            let reason = Reason::OtherOp {
                first: word.into_bits(),
                found: tx.meta_ctrl.into_bits(),
            };
            return Err(refuse(index, reason));
        }
    }
    if !word.is_first_block() {
        return Err(refuse(packet.first, Reason::NoFirstBlock));
    }
    if !packet.data().any(|(_, tx)| tx.meta_ctrl.is_last_block()) {
        return Err(refuse(packet.first, Reason::NoLastBlock));
    }
    Ok(())
}

/// Initial and expected value are descriptors of their own, as long as the checksum; data follows.
fn check_values(packet: &Packet, crc: &CrcCopy) -> Result<(), Refusal> {
    let wanted = crc.checksum.bytes();
    let mut data = packet.data();
    let values = [
        ("initial value", !crc.from_stored),
        ("expected value", crc.validate),
    ];
    for (what, _) in values.into_iter().filter(|(_, there)| *there) {
        let (index, bytes) = data.next().map_or((packet.first, 0), |(index, tx)| {
            (index, tx.len_ctrl.byte_len())
        });
        if bytes != wanted {
            let reason = Reason::ValueLength {
                what,
                bytes,
                wanted,
            };
            return Err(refuse(index, reason));
        }
    }
    let bytes: u64 = data.map(|(_, tx)| bytes_of(tx)).sum();
    let unit = SOURCE_SWAP_BYTES as u64;
    if crc.swap_source.bytes && !bytes.is_multiple_of(unit) {
        return Err(refuse(packet.first, Reason::Ragged { bytes, unit }));
    }
    Ok(())
}
