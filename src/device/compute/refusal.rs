//! Why a packet's operation is not executed, or did not come out right.

use super::crc::CrcMismatch;
use crate::arch::Arch;
use crate::arch::regs::M2sError;
use crate::desc::{CCE_GRANULE_BYTES, DType, MAX_CCE_SOURCES, TransposeError};

/// A packet that the stream processor refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("descriptor {desc} of the packet: {reason}")]
pub struct Refusal {
    /// The descriptor at fault, counted in the packet from 0.
    pub desc: usize,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a packet's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Meta descriptors and nothing else.
    #[error("the packet has no data descriptor")]
    NoData,
    /// An op word nobody knows.
    #[error("op word {0:#010x} has no known operation")]
    UnknownOp(u32),
    /// A combination by op word.
    #[error("EXT, the combination of two operations in an op word, is not modelled")]
    Ext,
    /// Gradient compression.
    #[error("GCE, gradient compression, is a codec in silicon and not modelled")]
    Gce,
    /// Data descriptors of one packet ask for different things.
    #[error("op word {found:#010x} in a packet of {first:#010x}")]
    OtherOp {
        /// Word of the packet's first data descriptor.
        first: u32,
        /// Word of this one.
        found: u32,
    },
    /// A meta descriptor of no known kind.
    #[error("meta descriptor {0:#010x} is of no known kind")]
    UnknownMeta(u32),
    /// A meta descriptor that the operation does not take.
    #[error("{0} does not take this meta descriptor")]
    UnexpectedMeta(&'static str),
    /// A meta descriptor for the second time.
    #[error("a second {0}")]
    SecondMeta(&'static str),
    /// A meta descriptor that is not where it must be.
    #[error("{0} must precede the sources")]
    LateMeta(&'static str),
    /// A meta descriptor that the operation needs.
    #[error("{0} is missing")]
    MissingMeta(&'static str),
    /// A packet that ends where more was announced.
    #[error("the packet ends here, but more descriptors were to follow")]
    MoreAnnounced,
    /// The last source is not marked.
    #[error("no last bit in the last source's op word")]
    NoLast,
    /// A source before the last one is marked.
    #[error("last bit before the last source")]
    EarlyLast,
    /// A source that is not as long as the others.
    #[error("a source of {bytes} bytes; the last source has {wanted}")]
    SourceLength {
        /// Bytes up to the end of this descriptor.
        bytes: u64,
        /// Bytes of the last source.
        wanted: u64,
    },
    /// A length in a meta descriptor that is not the source's.
    #[error("the meta descriptor says {said} bytes; the source has {bytes}")]
    MetaLength {
        /// Length in the meta descriptor.
        said: u32,
        /// Bytes of a source.
        bytes: u64,
    },
    /// Too many sources.
    #[error("{0} sources; a reduction takes 1 to {MAX_CCE_SOURCES}")]
    Sources(usize),
    /// A type field that holds no type.
    #[error("the op word has no {0} dtype")]
    NoDtype(&'static str),
    /// In and out types of different classes.
    #[error(
        "in dtype {} and out dtype {}: both must be of int32, uint32, fp32, fp32r, or neither",
        .in_dtype.name(), .out_dtype.name()
    )]
    Class {
        /// Type read.
        in_dtype: DType,
        /// Type written.
        out_dtype: DType,
    },
    /// A type that has no size in reductions.
    #[error("{} cannot be reduced", .0.name())]
    Unsized(DType),
    /// A scale that is not fp32.
    #[error("a scale of type {}; it must be fp32", .0.map_or("0", DType::name))]
    ScaleDtype(Option<DType>),
    /// A selector without a meaning.
    #[error("{0} is not an FMA operand selector; the selectors are 0 to 2")]
    Selector(u8),
    /// A constant whose type is longer than the word that holds it.
    #[error("a constant of type {}; a meta descriptor holds 4 bytes", .0.name())]
    ConstantDtype(DType),
    /// Two statements about a constant's type.
    #[error(
        "the op word has {word} for the low bits of the constant's dtype, its meta descriptor {meta}"
    )]
    ConstantDtypes {
        /// Bits in the op word.
        word: u8,
        /// Bits in the meta descriptor.
        meta: u8,
    },
    /// A source that is not a whole number of elements.
    #[error("{bytes} bytes are no whole number of {unit}-byte units")]
    Ragged {
        /// Bytes of the source.
        bytes: u64,
        /// Bytes of an element, or of what must stay together.
        unit: u64,
    },
    /// A reduction's source that is no multiple of 32 bytes.
    #[error("a source of {0} bytes; it must be a multiple of {CCE_GRANULE_BYTES}")]
    Granule(u64),
    /// Too many elements.
    #[error("{elements} elements; {arch} takes at most {limit} in a CCE packet")]
    Elements {
        /// Generation of the device.
        arch: Arch,
        /// Elements of a source.
        elements: u64,
        /// Most elements.
        limit: u32,
    },
    /// Several destinations on V2.
    #[error("CCE replication not supported for v1/v2 archs")]
    Replication,
    /// Too few or too many destinations.
    #[error("{copies} destinations; a packet has 1 to {limit}")]
    Copies {
        /// Destinations asked for.
        copies: u32,
        /// Most destinations.
        limit: u32,
    },
    /// More bytes than a packet may have.
    #[error("{bytes} bytes of result; a packet has at most {limit}")]
    ResultLength {
        /// Bytes of the result.
        bytes: u64,
        /// Most bytes.
        limit: u64,
    },
    /// No piece to split into.
    #[error("a split into 0 pieces")]
    NoPieces,
    /// A flag that says something else than the shape.
    #[error("the flag for shapes of more than one element is wrong")]
    ShapeFlag,
    /// An operation number that is no permutation.
    #[error("{0} is not a transpose; there are 12")]
    Permutation(u8),
    /// Two statements about the size of an element.
    #[error("elements of {bytes} bytes, but dtype {}", .dtype.map_or("0", DType::name))]
    ElementDtype {
        /// Bytes in the op word.
        bytes: u8,
        /// Type in the op word.
        dtype: Option<DType>,
    },
    /// A source of another size than its dimensions say.
    #[error("a source of {bytes} bytes; the dimensions ask for {wanted}")]
    TransposeLength {
        /// Bytes of the source.
        bytes: u64,
        /// Bytes of the dimensions.
        wanted: u64,
    },
    /// A transpose that the device does not do.
    #[error(transparent)]
    Transpose(#[from] TransposeError),
    /// Checksum options on a plain copy.
    #[error("a copy with checksum options")]
    CopyOptions,
    /// The first data descriptor is not marked.
    #[error("is_first_block is not set on the first data descriptor")]
    NoFirstBlock,
    /// No data descriptor is marked as last.
    #[error("is_last_block is not set on any data descriptor")]
    NoLastBlock,
    /// A value that is not as long as the checksum.
    #[error("the {what} has {bytes} bytes; the checksum has {wanted}")]
    ValueLength {
        /// `initial value` or `expected value`.
        what: &'static str,
        /// Bytes it has.
        bytes: u32,
        /// Bytes it should have.
        wanted: u32,
    },
    /// A checksum that is not the expected one.
    #[error(transparent)]
    Mismatch(#[from] CrcMismatch),
}

impl Reason {
    /// The error bit that it raises: what is too long has bits of its own, the rest is an error of the
    /// stream. Modelled (C).
    pub const fn bit(self) -> M2sError {
        match self {
            Reason::Elements { .. }
            | Reason::ResultLength { .. }
            | Reason::Transpose(TransposeError::Elements { .. }) => M2sError::PktLenOverflow,
            Reason::Sources(_) | Reason::Copies { .. } => M2sError::MaxDescCount,
            _ => M2sError::StreamResponse,
        }
    }
}
