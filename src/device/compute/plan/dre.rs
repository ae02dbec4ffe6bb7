//! Plans of the reshaping engine: striding split, replication, transposes.

use super::{Operation, Packet, refuse};
use crate::arch::ArchSpec;
use crate::desc::{
    OpWord, OtherOp, Permutation, ReplicationWord, StridingSplitWord, TransposeDims, TransposeWord,
    check_copies, check_transpose_dims, check_transpose_size, check_transpose_tile,
};
use crate::device::compute::refusal::{Reason, Refusal};
use crate::device::compute::reshape::{Split, Transpose};

/// A unit of a split is as many elements as the shape index says, one if it says 0: modelled (C).
pub(super) fn split(
    packet: &Packet,
    word: StridingSplitWord,
    spec: &ArchSpec,
) -> Result<Operation, Refusal> {
    packet.no_metas("striding split")?;
    packet.one_operation(spec)?;
    let here = |reason| refuse(packet.first, reason);
    let dtype = word.dtype().ok_or(here(Reason::NoDtype("element")))?;
    let elements = word.shape_index().max(1);
    if word.shape_above_one() != (elements > 1) {
        return Err(here(Reason::ShapeFlag));
    }
    let pieces = usize::from(word.split_count());
    if pieces == 0 {
        return Err(here(Reason::NoPieces));
    }
    let unit_bytes = usize::from(elements) * dtype.bytes() as usize;
    let (bytes, unit) = (packet.source_bytes(), (unit_bytes * pieces) as u64);
    if !bytes.is_multiple_of(unit) {
        return Err(here(Reason::Ragged { bytes, unit }));
    }
    Ok(Operation::Split(Split { pieces, unit_bytes }))
}

pub(super) fn replicate(
    packet: &Packet,
    word: ReplicationWord,
    spec: &ArchSpec,
) -> Result<Operation, Refusal> {
    packet.no_metas("replication")?;
    packet.one_operation(spec)?;
    let copies = u32::from(word.count());
    check_copies(copies.into(), spec).map_err(|rule| refuse(packet.first, rule.into()))?;
    Ok(Operation::Replicate { copies })
}

pub(super) fn transpose(
    packet: &Packet,
    word: TransposeWord,
    spec: &ArchSpec,
) -> Result<Operation, Refusal> {
    packet.one_operation(spec)?;
    let mut metas = packet.metas();
    let (at, meta) = metas
        .next()
        .filter(|(at, _)| *at < packet.first)
        .ok_or(refuse(
            packet.first,
            Reason::MissingMeta("the meta descriptor with the dimensions"),
        ))?;
    if let Some((index, _)) = metas.next() {
        return Err(refuse(index, Reason::SecondMeta("meta descriptor")));
    }
    let in_word = |reason: Reason| refuse(packet.first, reason);
    let in_meta = |reason: Reason| refuse(at, reason);
    if super::operation_of(meta.meta_ctrl) != super::operation_of(packet.word()) {
        let first = OpWord::Transpose(word).encode().into_bits();
        let found = meta.meta_ctrl.into_bits();
        return Err(in_meta(OtherOp { first, found }.into()));
    }
    let index = word.output_shape_index();
    let permutation = Permutation::from_index(index).ok_or(in_word(Reason::Permutation(index)))?;
    let dims = TransposeDims::from_words(meta.meta1, meta.meta2);
    let element_bytes = word.element_bytes();
    let dtype =
        check_transpose_dims(dims, element_bytes.into()).map_err(|error| in_meta(error.into()))?;
    if word.dtype() != Some(dtype) {
        return Err(in_word(Reason::ElementDtype {
            bytes: element_bytes,
            dtype: word.dtype(),
        }));
    }
    if word.shape_above_one() != (dims.elements() > 1) {
        return Err(in_word(Reason::ShapeFlag));
    }
    if spec.caps.state_buffer_transpose {
        check_transpose_tile(permutation, dims, element_bytes.into())
            .map_err(|error| in_meta(error.into()))?;
    }
    let wanted = dims.elements() * u64::from(element_bytes);
    check_transpose_size("source", packet.source_bytes(), wanted)
        .map_err(|error| in_word(error.into()))?;
    Ok(Operation::Transpose(Transpose {
        dims,
        permutation,
        element_bytes: element_bytes.into(),
    }))
}
