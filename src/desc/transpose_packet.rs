//! The builders of transpose packets (`docs/hardware.md`, "Transpose").
//!
//! On the Tx ring lie a meta descriptor with the dimensions and a data descriptor, both with the op
//! word. V2 writes the result to one Rx descriptor; from V3 on the Rx descriptor's address is a
//! packed [`TransposeTarget`] and the result goes to the State Buffer, a row to each partition.

use super::{
    Buffer, BuildError, BuiltPacket, DType, LenCtrl, MAX_TRANSPOSE_ELEMENT_BYTES, MetaCtrl, OpWord,
    Permutation, RingId, RxDesc, TransposeDims, TransposeTarget, TransposeWord, TxDesc, TxMetaDesc,
};
use crate::arch::{Arch, StateBuffer};
use crate::units::Addr;

/// Most bytes of a transpose: 0x4000 elements of one byte, fewer of longer ones. How the limit
/// scales with the element is modelled (C).
pub const MAX_TRANSPOSE_BYTES: u64 = 0x4000;

/// Rows of the tile that a transpose into the State Buffer reads.
pub const TRANSPOSE_TILE_ROWS: u16 = 16;

/// Bytes that the destination of a transpose into the State Buffer is aligned to.
pub const TRANSPOSE_ALIGN_BYTES: u64 = 32;

/// A transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransposePacket {
    /// What is read: the elements of all dimensions, Z the fastest.
    pub source: Buffer,
    /// What is written, as many bytes.
    pub destination: Buffer,
    /// Dimensions of the source.
    pub dims: TransposeDims,
    /// Bytes of an element, 1 to 8; 2 or 4 from V3 on.
    pub element_bytes: u32,
    /// What goes where.
    pub permutation: Permutation,
}

/// Why a transpose was not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransposeError {
    /// An element of no known size.
    #[error(
        "elements have {0} bytes; a transpose moves elements of 1 to {MAX_TRANSPOSE_ELEMENT_BYTES} bytes"
    )]
    Element(u32),
    /// A dimension of 0.
    #[error("dimensions {0:?}: no dimension may be 0")]
    ZeroDim([u16; 4]),
    /// Too many elements.
    #[error("{elements} elements of {element_bytes} bytes; a transpose takes at most {limit}")]
    Elements {
        /// Elements of all dimensions.
        elements: u64,
        /// Bytes of an element.
        element_bytes: u32,
        /// Most elements of that size.
        limit: u64,
    },
    /// A source or a destination of another size than the dimensions say.
    #[error("the {end} has {bytes} bytes; the dimensions require {wanted}")]
    Size {
        /// `source` or `destination`.
        end: &'static str,
        /// Bytes it has.
        bytes: u64,
        /// Bytes it should have.
        wanted: u64,
    },
    /// A destination outside the State Buffer.
    #[error(
        "destination {0} is not in a State Buffer; this device transposes only into State Buffers"
    )]
    NotStateBuffer(Addr),
    /// W or Z moves.
    #[error("{0} moves W or Z; this device only swaps X and Y: WYXZ")]
    MovesWOrZ(&'static str),
    /// An element that this device does not transpose.
    #[error("elements have {0} bytes; this device transposes elements of 2 or 4 bytes")]
    ElementOfState(u32),
    /// A tile that this device does not transpose.
    #[error(
        "dimensions {dims:?}; this device transposes a single tile: W = Z = 1, X = {TRANSPOSE_TILE_ROWS} rows, Y = 1 to {columns} columns for {element_bytes}-byte elements"
    )]
    Tile {
        /// Dimensions asked for.
        dims: [u16; 4],
        /// Bytes of an element.
        element_bytes: u32,
        /// Most columns.
        columns: u16,
    },
    /// A destination that is not aligned.
    #[error("destination {0} is not a multiple of {TRANSPOSE_ALIGN_BYTES} bytes")]
    Unaligned(Addr),
    /// The result leaves the State Buffer.
    #[error(
        "{rows} rows starting at partition {partition}, with {bytes} bytes at offset {offset:#x} of each, leave the State Buffer: it has {partitions} partitions of {populated} bytes"
    )]
    LeavesStateBuffer {
        /// Partition of the first row.
        partition: u64,
        /// Rows of the result.
        rows: u64,
        /// Offset in each partition.
        offset: u64,
        /// Bytes of a row.
        bytes: u64,
        /// Partitions of the State Buffer.
        partitions: u32,
        /// Bytes of a partition.
        populated: u64,
    },
    /// A length that no descriptor holds.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Most columns of a tile: the State Buffer's partitions, half for 4-byte elements.
const fn tile_columns(element_bytes: u32) -> u16 {
    if element_bytes == 2 { 128 } else { 64 }
}

/// Builds a transpose: the generic one on V2, the one into a State Buffer from V3 on.
///
/// # Errors
/// [`TransposeError`] with what `arch` does not take.
pub fn build_transpose_packet(
    arch: Arch,
    packet: &TransposePacket,
    ring: RingId,
) -> Result<BuiltPacket, TransposeError> {
    let (dims, element_bytes) = (packet.dims, packet.element_bytes);
    let dtype = check_transpose_dims(dims, element_bytes)?;
    let to_state_buffer = arch.spec().caps.state_buffer_transpose;
    if to_state_buffer {
        check_transpose_tile(packet.permutation, dims, element_bytes)?;
    }
    let wanted = dims.elements() * u64::from(element_bytes);
    check_transpose_size("source", packet.source.len, wanted)?;
    let target = match to_state_buffer {
        true => state_buffer_target(arch, packet, wanted)?.addr(),
        false => {
            check_transpose_size("destination", packet.destination.len, wanted)?;
            packet.destination.at
        }
    };
    let word = TransposeWord::new()
        .with_element_bytes(packet.element_bytes as u8)
        .with_shape_above_one(packet.dims.elements() > 1)
        .with_output_shape_index(packet.permutation.index())
        .with_dtype(Some(dtype));
    let meta_ctrl: MetaCtrl = OpWord::Transpose(word).encode();
    let (meta1, meta2) = packet.dims.to_words();
    let len_ctrl = LenCtrl::new().with_ring_id(ring);
    let meta = TxMetaDesc {
        len_ctrl: len_ctrl.with_meta(true),
        meta_ctrl,
        meta1,
        meta2,
    };
    let len_ctrl = len_ctrl
        .with_byte_len(packet.source.len as u32)
        .map_err(BuildError::from)?;
    let tx = TxDesc {
        len_ctrl,
        meta_ctrl,
        buf_ptr: packet.source.at,
    };
    let rx = RxDesc {
        len_ctrl,
        buf2_ptr_lo: 0,
        buf1_ptr: target,
    };
    let mut built = BuiltPacket {
        tx: vec![meta.into(), tx.into()],
        rx: vec![rx.into()],
    };
    built.delimit();
    Ok(built)
}

/// Whether the source or the destination of a transpose is as large as its dimensions require.
///
/// # Errors
/// [`TransposeError::Size`].
pub fn check_transpose_size(
    end: &'static str,
    bytes: u64,
    wanted: u64,
) -> Result<(), TransposeError> {
    match bytes == wanted {
        true => Ok(()),
        false => Err(TransposeError::Size { end, bytes, wanted }),
    }
}

/// Whether any generation transposes such a source; the type of the elements.
///
/// # Errors
/// [`TransposeError`]: elements of no known size, a dimension of 0, too many elements.
pub fn check_transpose_dims(
    dims: TransposeDims,
    element_bytes: u32,
) -> Result<DType, TransposeError> {
    let dtype =
        DType::of_element_bytes(element_bytes).ok_or(TransposeError::Element(element_bytes))?;
    if dims.0.contains(&0) {
        return Err(TransposeError::ZeroDim(dims.0));
    }
    let elements = dims.elements();
    let limit = MAX_TRANSPOSE_BYTES / u64::from(element_bytes);
    if elements > limit {
        return Err(TransposeError::Elements {
            elements,
            element_bytes,
            limit,
        });
    }
    Ok(dtype)
}

/// Whether a generation that transposes into State Buffers only takes a transpose.
///
/// # Errors
/// [`TransposeError`]: W or Z moves, elements of neither 2 nor 4 bytes, no tile.
pub fn check_transpose_tile(
    permutation: Permutation,
    dims: TransposeDims,
    element_bytes: u32,
) -> Result<(), TransposeError> {
    if permutation.moves_w_or_z() {
        return Err(TransposeError::MovesWOrZ(permutation.name()));
    }
    if !matches!(element_bytes, 2 | 4) {
        return Err(TransposeError::ElementOfState(element_bytes));
    }
    let columns = tile_columns(element_bytes);
    let [w, rows, tile_columns, z] = dims.0;
    if (w, rows, z) != (1, TRANSPOSE_TILE_ROWS, 1) || tile_columns > columns {
        return Err(TransposeError::Tile {
            dims: dims.0,
            element_bytes,
            columns,
        });
    }
    Ok(())
}

/// Whether the result of a transpose lies inside a State Buffer: `rows` rows of `bytes` bytes, one to
/// each partition from `partition` on, at the same offset. `at` is the destination as a plain address.
///
/// # Errors
/// [`TransposeError`]: not aligned, or beyond the end.
pub fn check_transpose_place(
    buffer: &StateBuffer,
    at: Addr,
    (partition, offset): (u64, u64),
    (rows, bytes): (u64, u64),
) -> Result<(), TransposeError> {
    if !at.is_aligned(TRANSPOSE_ALIGN_BYTES) {
        return Err(TransposeError::Unaligned(at));
    }
    let fits =
        partition + rows <= u64::from(buffer.partitions) && offset + bytes <= buffer.populated;
    if !fits {
        return Err(TransposeError::LeavesStateBuffer {
            partition,
            rows,
            offset,
            bytes,
            partitions: buffer.partitions,
            populated: buffer.populated,
        });
    }
    Ok(())
}

/// What a transpose into a State Buffer insists on, whose result has `wanted` bytes; returns the packed
/// destination.
fn state_buffer_target(
    arch: Arch,
    packet: &TransposePacket,
    wanted: u64,
) -> Result<TransposeTarget, TransposeError> {
    let (dims, element_bytes, at) = (packet.dims, packet.element_bytes, packet.destination.at);
    let map = &arch.spec().map;
    let buffer: StateBuffer = map.state_buffer;
    let window = map.tpb.iter().find_map(|base| {
        let offset = at.offset_from(*base)?;
        (offset < buffer.window()).then_some((*base, offset))
    });
    let (base, offset) = window.ok_or(TransposeError::NotStateBuffer(at))?;
    check_transpose_size("destination", packet.destination.len, wanted)?;
    let (partition, offset) = (offset / buffer.stride, offset % buffer.stride);
    // A column of the tile is a row of the result.
    let [_, rows, columns, _] = dims.0;
    let result = (
        u64::from(columns),
        u64::from(rows) * u64::from(element_bytes),
    );
    check_transpose_place(&buffer, at, (partition, offset), result)?;
    Ok(TransposeTarget::new()
        .with_transposing(true)
        .with_rows_less_one(TRANSPOSE_TILE_ROWS as u8 - 1)
        .with_four_byte(element_bytes == 4)
        .with_window(base)
        .with_partition(partition as u8)
        .with_offset(offset as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 0x20_0000_0000;

    fn packet(dims: [u16; 4], element_bytes: u32, name: &str, destination: u64) -> TransposePacket {
        let dims = TransposeDims(dims);
        let len = dims.elements().saturating_mul(element_bytes.into());
        TransposePacket {
            source: Buffer {
                at: Addr(0x1000),
                len,
            },
            destination: Buffer {
                at: Addr(destination),
                len,
            },
            dims,
            element_bytes,
            permutation: Permutation::from_name(name).unwrap(),
        }
    }

    fn build(arch: Arch, packet: &TransposePacket) -> Result<BuiltPacket, TransposeError> {
        build_transpose_packet(arch, packet, RingId::FIRST_LAP)
    }

    #[test]
    fn golden_v2() {
        let built = build(Arch::V2, &packet([2, 3, 4, 5], 3, "XYWZ", 0x9000)).unwrap();
        let words: Vec<_> = built.tx.iter().map(|desc| desc.words).collect();
        assert_eq!(
            words,
            [
                [0x8580_0000, 0x0099_0b23, 0x0003_0002, 0x0005_0004],
                [0x0900_0168, 0x0099_0b23, 0x1000, 0],
            ]
        );
        assert_eq!(built.rx[0].words, [0x0100_0168, 0, 0x9000, 0]);
    }

    #[test]
    fn golden_v3() {
        // Partition 3, offset 0x40 of the second core's buffer.
        let destination = 0x30_0000_0000 + (3 << 18) + 0x40;
        let built = build(Arch::V3, &packet([1, 16, 64, 1], 4, "WYXZ", destination)).unwrap();
        assert_eq!(built.tx[1].words, [0x0900_1000, 0x0099_0224, 0x1000, 0]);
        assert_eq!(
            built.rx[0].words,
            [0x0100_1000, 0, 0x0c00_4000, 0x020f_0034]
        );
        assert!(build(Arch::V4, &packet([1, 16, 64, 1], 4, "WYXZ", destination)).is_ok());
    }

    #[test]
    fn every_permutation_and_element_size_on_v2() {
        for permutation in Permutation::all() {
            for element_bytes in 1..=8 {
                let packet = packet([2, 3, 4, 5], element_bytes, permutation.name(), 0x9000);
                assert!(build(Arch::V2, &packet).is_ok());
            }
        }
        for element_bytes in [0, 9, u32::MAX] {
            let mut packet = packet([1, 1, 1, 1], 1, "WZXY", 0x9000);
            packet.element_bytes = element_bytes;
            assert_eq!(
                build(Arch::V2, &packet),
                Err(TransposeError::Element(element_bytes))
            );
        }
    }

    #[test]
    fn dimensions_that_no_device_takes() {
        let refused =
            |dims, element_bytes| build(Arch::V2, &packet(dims, element_bytes, "WZYX", 0));
        assert_eq!(
            refused([1, 0, 2, 2], 1),
            Err(TransposeError::ZeroDim([1, 0, 2, 2]))
        );
        assert!(refused([0x4000, 1, 1, 1], 1).is_ok());
        assert!(matches!(
            refused([0x4001, 1, 1, 1], 1),
            Err(TransposeError::Elements {
                elements: 0x4001,
                limit: 0x4000,
                ..
            })
        ));
        assert!(refused([0x80, 0x40, 1, 1], 2).is_ok());
        assert!(matches!(
            refused([0x80, 0x41, 1, 1], 2),
            Err(TransposeError::Elements { limit: 0x2000, .. })
        ));
        assert!(refused([65535; 4], 8).is_err());
        let mut packet = packet([2, 2, 2, 2], 2, "WZYX", 0);
        packet.destination.len = 33;
        assert_eq!(
            build(Arch::V2, &packet).unwrap_err().to_string(),
            "the destination has 33 bytes; the dimensions require 32"
        );
    }

    #[test]
    fn each_v3_restriction_has_its_reason() {
        let good = packet([1, 16, 128, 1], 2, "WYXZ", WINDOW);
        assert!(build(Arch::V3, &good).is_ok());
        let refused = |packet: TransposePacket| build(Arch::V3, &packet).unwrap_err();

        let hbm = packet([1, 16, 128, 1], 2, "WYXZ", 0x9000);
        assert_eq!(refused(hbm), TransposeError::NotStateBuffer(Addr(0x9000)));
        for permutation in Permutation::all().filter(|permutation| permutation.name() != "WYXZ") {
            let moved = TransposePacket {
                permutation,
                ..good
            };
            assert_eq!(
                refused(moved),
                TransposeError::MovesWOrZ(permutation.name())
            );
        }
        for element_bytes in [1, 3, 5, 6, 7, 8] {
            let other = packet([1, 16, 64, 1], element_bytes, "WYXZ", WINDOW);
            assert_eq!(
                refused(other),
                TransposeError::ElementOfState(element_bytes)
            );
        }
        for (dims, element_bytes, columns) in [
            ([2, 16, 8, 1], 2, 128),
            ([1, 16, 8, 2], 2, 128),
            ([1, 15, 8, 1], 2, 128),
            ([1, 17, 8, 1], 2, 128),
            ([1, 16, 129, 1], 2, 128),
            ([1, 16, 65, 1], 4, 64),
        ] {
            let tile = packet(dims, element_bytes, "WYXZ", WINDOW);
            assert_eq!(
                refused(tile),
                TransposeError::Tile {
                    dims,
                    element_bytes,
                    columns
                }
            );
        }
        let unaligned = packet([1, 16, 8, 1], 2, "WYXZ", WINDOW + 16);
        assert_eq!(
            refused(unaligned),
            TransposeError::Unaligned(Addr(WINDOW + 16))
        );
        for at in [(1 << 18), (127 << 18) + 32, 224 * 1024] {
            let outside = packet([1, 16, 128, 1], 2, "WYXZ", WINDOW + at);
            assert!(
                matches!(refused(outside), TransposeError::LeavesStateBuffer { .. }),
                "{at:#x}"
            );
        }
        let last = packet(
            [1, 16, 1, 1],
            2,
            "WYXZ",
            WINDOW + (127 << 18) + 224 * 1024 - 32,
        );
        assert!(build(Arch::V3, &last).is_ok());
    }
}
