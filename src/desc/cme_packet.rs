//! The rules of packets of the CME class, copies and checksums, for who builds and who executes them
//! (`docs/compute.md`, "Checksums").

use super::{CmeOp, Descriptor, MetaCtrl, OtherOp, TxDesc};

/// Bytes of the words whose bytes the swap of a checksum's source exchanges: modelled (C).
pub const SOURCE_SWAP_BYTES: u32 = 4;

/// What a packet of the CME class is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmePacket {
    /// A copy: what is read is written.
    Copy,
    /// A checksum.
    Checksum {
        /// Its op word, without block marks.
        word: MetaCtrl,
        /// Exclusive-or of the initial value.
        xor_in: u32,
        /// Exclusive-or of the result.
        xor_out: u32,
        /// Bytes of the data, the values that precede it not counted.
        data_bytes: u64,
        /// Bytes that it writes.
        result_bytes: u64,
    },
}

/// What is wrong with a packet of the CME class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CmeError {
    /// A copy with a meta descriptor.
    #[error("a copy does not take a meta descriptor")]
    CopyMeta,
    /// A copy with options of checksums.
    #[error("a copy does not take checksum options")]
    CopyOptions,
    /// A checksum without its meta descriptor.
    #[error("the meta descriptor that leads a checksum is missing")]
    MissingMeta,
    /// More than one meta descriptor.
    #[error("duplicate meta descriptor")]
    SecondMeta,
    /// Data descriptors of one packet ask for different things.
    #[error(transparent)]
    OtherOp(#[from] OtherOp),
    /// Data before the first block.
    #[error("is_first_block is not set on the first data descriptor")]
    NoFirstBlock,
    /// The end of a block that has no beginning.
    #[error("is_last_block outside a block; is_first_block must come first")]
    LastBeforeFirst,
    /// A block that begins inside another.
    #[error("is_first_block inside a block; is_last_block must end that block first")]
    SecondFirst,
    /// Data between blocks.
    #[error("data after is_last_block; is_first_block must begin another block")]
    OutsideBlock,
    /// A block that does not end.
    #[error("is_last_block is not set at the end of the last block")]
    NoLastBlock,
    /// A value that is not as long as the checksum.
    #[error("the {what} has {bytes} bytes, but the checksum has {wanted}")]
    ValueLength {
        /// `initial value` or `expected value`.
        what: &'static str,
        /// Bytes it has.
        bytes: u32,
        /// Bytes it should have.
        wanted: u32,
    },
    /// Data that a swap of bytes does not cut into words.
    #[error(
        "{0} bytes of data; with byte swap the length must be a multiple of {SOURCE_SWAP_BYTES}"
    )]
    Unswappable(u64),
}

impl CmeOp {
    /// Bytes of the checksum's value in memory; 0 for a copy.
    pub const fn value_bytes(self) -> u32 {
        match self {
            CmeOp::Copy => 0,
            CmeOp::Crc8 => 1,
            CmeOp::Crc16 | CmeOp::Checksum16 => 2,
            CmeOp::Crc32 | CmeOp::Crc32c | CmeOp::Checksum32 | CmeOp::Adler32 => 4,
        }
    }
}

impl TxDesc {
    /// Whether it is a data descriptor of a copy, whatever else its word asks for.
    pub fn is_copy(self) -> bool {
        !self.len_ctrl.meta() && self.meta_ctrl.cme_op() == Some(CmeOp::Copy)
    }

    /// Whether it is all that a plain copy is made of: a copy's data without options of checksums. A packet of nothing
    /// else needs no plan.
    pub fn is_plain_copy(self) -> bool {
        self.is_copy() && !self.meta_ctrl.has_checksum_options()
    }
}

impl MetaCtrl {
    /// Whether the word asks for something that only a checksum has.
    pub const fn has_checksum_options(self) -> bool {
        self.validate_crc()
            || self.use_stored_crc_iv()
            || self.send_crc_result()
            || self.store_crc_result()
            || self.store_source_crc()
    }

    /// The word without its block marks, barrier and mask: what all data descriptors of a packet share.
    const fn operation(self) -> MetaCtrl {
        self.with_is_first_block(false)
            .with_is_last_block(false)
            .with_write_barrier(false)
            .with_notification_mask(false)
    }
}

/// Reads a packet whose first data descriptor is of the CME class. All data descriptors must be.
///
/// # Errors
/// The descriptor at fault, counted from 0, and [`CmeError`].
pub fn check_cme_packet(descs: &[Descriptor]) -> Result<CmePacket, (usize, CmeError)> {
    let data = || {
        let descs = descs.iter().enumerate();
        descs
            .filter(|(_, desc)| !desc.len_ctrl().meta())
            .map(|(index, desc)| (index, TxDesc::from(*desc)))
    };
    let mut metas = (descs.iter().enumerate()).filter(|(_, desc)| desc.len_ctrl().meta());
    let (first, word) = data()
        .next()
        .map_or((0, MetaCtrl::PLAIN_COPY), |(index, tx)| {
            (index, tx.meta_ctrl)
        });
    let same = |tx: TxDesc| tx.meta_ctrl.operation() == word.operation();
    let other = |(index, tx): (usize, TxDesc)| {
        let (first, found) = (word.into_bits(), tx.meta_ctrl.into_bits());
        (index, OtherOp { first, found }.into())
    };
    let op = CmeOp::from_bits(word.op_type());
    if op == CmeOp::Copy {
        if let Some((index, _)) = metas.next() {
            return Err((index, CmeError::CopyMeta));
        }
        if let Some(found) = data().find(|(_, tx)| !same(*tx)) {
            return Err(other(found));
        }
        return match word.has_checksum_options() {
            true => Err((first, CmeError::CopyOptions)),
            false => Ok(CmePacket::Copy),
        };
    }
    let (_, meta) = metas
        .next()
        .filter(|(index, _)| *index < first)
        .ok_or((first, CmeError::MissingMeta))?;
    if let Some((index, _)) = metas.next() {
        return Err((index, CmeError::SecondMeta));
    }
    // The others repeat the word or have nothing but block marks.
    let silent = |tx: TxDesc| tx.meta_ctrl.operation() == MetaCtrl::from_bits(0);
    if let Some(found) = data().find(|(_, tx)| !same(*tx) && !silent(*tx)) {
        return Err(other(found));
    }
    let values = check_values(word, op, &mut data(), first)?;
    check_blocks(
        data().map(|(index, tx)| (index, tx.meta_ctrl)),
        values,
        first,
    )?;
    let data_bytes: u64 = data()
        .skip(values)
        .map(|(_, tx)| u64::from(tx.len_ctrl.byte_len()))
        .sum();
    if word.swap_source_bytes() && !data_bytes.is_multiple_of(SOURCE_SWAP_BYTES.into()) {
        return Err((first, CmeError::Unswappable(data_bytes)));
    }
    let copied = if word.copy_source_data() {
        data_bytes
    } else {
        0
    };
    let sent = if word.send_crc_result() {
        op.value_bytes()
    } else {
        0
    };
    Ok(CmePacket::Checksum {
        word: word.operation(),
        xor_in: meta.words[2],
        xor_out: meta.words[3],
        data_bytes,
        result_bytes: copied + u64::from(sent),
    })
}

/// Initial and expected value come before the data, each in a descriptor of its own and as long as the
/// checksum. Returns how many there are.
fn check_values(
    word: MetaCtrl,
    op: CmeOp,
    data: &mut dyn Iterator<Item = (usize, TxDesc)>,
    first: usize,
) -> Result<usize, (usize, CmeError)> {
    let wanted = op.value_bytes();
    let values = [
        ("initial value", !word.use_stored_crc_iv()),
        ("expected value", word.validate_crc()),
    ];
    let mut count = 0;
    for (what, _) in values.into_iter().filter(|(_, there)| *there) {
        let (index, bytes) = data
            .next()
            .map_or((first, 0), |(index, tx)| (index, tx.len_ctrl.byte_len()));
        if bytes != wanted {
            let error = CmeError::ValueLength {
                what,
                bytes,
                wanted,
            };
            return Err((index, error));
        }
        count += 1;
    }
    Ok(count)
}

/// The block marks: a block begins with is_first_block and ends with is_last_block, one behind the other;
/// the checksum goes on from block to block. Values may be outside the blocks. A word of nothing says
/// nothing: the engine's public ancestor marks the first descriptor as first and the first one of the data
/// as last, and has 0 in the rest (A). All else is modelled (C).
fn check_blocks(
    words: impl Iterator<Item = (usize, MetaCtrl)>,
    values: usize,
    first: usize,
) -> Result<(), (usize, CmeError)> {
    let (mut open, mut begun, mut last) = (false, false, first);
    for (n, (index, word)) in words.enumerate() {
        last = index;
        let says_nothing = word.operation() == MetaCtrl::from_bits(0) || n < values;
        match (word.is_first_block(), word.is_last_block()) {
            (true, _) if open => return Err((index, CmeError::SecondFirst)),
            (false, true) if !open => return Err((index, CmeError::LastBeforeFirst)),
            (false, false) if !open && !says_nothing => {
                return Err((
                    index,
                    match begun {
                        false => CmeError::NoFirstBlock,
                        true => CmeError::OutsideBlock,
                    },
                ));
            }
            (false, false) => {}
            (_, ends) => (open, begun) = (!ends, true),
        }
    }
    match (begun, open) {
        (false, _) => Err((first, CmeError::NoFirstBlock)),
        (true, true) => Err((last, CmeError::NoLastBlock)),
        (true, false) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CmeError::*;

    /// What a checksum of these block marks is refused for: `Some` repeats the op word, `None` does not.
    fn marks(words: &[(bool, u32)]) -> Result<(), (usize, CmeError)> {
        let data = words.iter().map(|(repeats, marks)| {
            let op = if *repeats { 0x0118_8000 } else { 0 };
            [64, op | marks, 0x1000, 0]
        });
        let meta = [0x0080_0000, 0, 0, 0];
        let descs: Vec<_> = std::iter::once(meta)
            .chain(data)
            .map(|words| Descriptor { words })
            .collect();
        check_cme_packet(&descs).map(|_| ())
    }

    #[test]
    fn block_marks() {
        let (first, middle, last, only) = (2, 0, 1, 3);
        let repeated = |marks_of: &[u32]| {
            let words: Vec<_> = marks_of.iter().map(|marks| (true, *marks)).collect();
            marks(&words)
        };
        for good in [
            &[only][..],
            &[only, only, only],
            &[first, last],
            &[first, middle, middle, last],
            &[first, last, only, first, middle, last],
        ] {
            assert_eq!(repeated(good), Ok(()), "{good:?}");
        }
        for (bad, desc, error) in [
            (&[middle][..], 1, NoFirstBlock),
            (&[last], 1, LastBeforeFirst),
            (&[last, first], 1, LastBeforeFirst),
            (&[first], 1, NoLastBlock),
            (&[first, middle], 2, NoLastBlock),
            (&[first, first, last], 2, SecondFirst),
            (&[first, only], 2, SecondFirst),
            (&[first, last, last], 3, LastBeforeFirst),
            (&[only, middle], 2, OutsideBlock),
        ] {
            assert_eq!(repeated(bad), Err((desc, error)), "{bad:?}");
        }
        // As the ancestor's driver has it: the op word once.
        assert_eq!(marks(&[(true, only), (false, 0), (false, 0)]), Ok(()));
        assert_eq!(marks(&[(true, first), (false, last), (false, 0)]), Ok(()));
        assert_eq!(marks(&[(true, first), (false, 0), (false, last)]), Ok(()));
        assert_eq!(
            marks(&[(true, first), (false, first), (false, last)]),
            Err((2, SecondFirst))
        );
    }
}
