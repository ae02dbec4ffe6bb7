//! Why a packet's operation is not executed, or did not come out right.

use super::crc::CrcMismatch;
use crate::arch::Arch;
use crate::arch::regs::M2sError;
use crate::desc::{CceRule, CmeError, DType, OtherOp, TransposeError};

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
    #[error("op word {0:#010x} is not a known operation")]
    UnknownOp(u32),
    /// Two operations in one word.
    #[error(
        "EXT word {word:#010x} combines with {op} (middle dtype {}, accumulation dtype {}): not executed, since the order of the two operations and the location of the second one's operands are not public", .middle.name(), .acc.name()
    )]
    Ext {
        /// The word.
        word: u32,
        /// Operation that it names.
        op: &'static str,
        /// Type between the two operations.
        middle: DType,
        /// Type accumulated in.
        acc: DType,
    },
    /// An EXT word on a generation without combinations.
    #[error(
        "EXT word {word:#010x}: CCE concatenation not supported on {arch}; combinations need v3"
    )]
    ExtGeneration {
        /// The word.
        word: u32,
        /// Generation of the device.
        arch: Arch,
    },
    /// An EXT word with bits that have no meaning.
    #[error(
        "EXT word {0:#010x} has reserved bits set; only [2:0], [15:12] and [19:16] are defined"
    )]
    ExtReserved(u32),
    /// An EXT word whose operation cannot be part of a combination.
    #[error("EXT word {word:#010x} combines with {op}; the operations are add, fma, max and min")]
    ExtOp {
        /// The word.
        word: u32,
        /// Operation that it names.
        op: &'static str,
    },
    /// An EXT word with a type field that holds no type.
    #[error("EXT word {word:#010x} has no {what} dtype")]
    ExtNoDtype {
        /// The word.
        word: u32,
        /// Which.
        what: &'static str,
    },
    /// Gradient compression.
    #[error("GCE (gradient compression) is not modelled")]
    Gce,
    /// Data descriptors of one packet ask for different things.
    #[error(transparent)]
    OtherOp(#[from] OtherOp),
    /// A meta descriptor of no known kind.
    #[error("meta descriptor {0:#010x} is not of a known kind")]
    UnknownMeta(u32),
    /// A meta descriptor that the operation does not take.
    #[error("{0} does not take this meta descriptor")]
    UnexpectedMeta(&'static str),
    /// A meta descriptor for the second time.
    #[error("duplicate {0}")]
    SecondMeta(&'static str),
    /// A meta descriptor that is not where it must be.
    #[error("{0} must precede the sources")]
    LateMeta(&'static str),
    /// A meta descriptor that the operation needs.
    #[error("{0} is missing")]
    MissingMeta(&'static str),
    /// A packet that ends where more was announced.
    #[error("the packet ends here, but its meta descriptor announces more descriptors")]
    MoreAnnounced,
    /// The last source is not marked.
    #[error("the op word of the last source does not have the last bit")]
    NoLast,
    /// A source before the last one is marked.
    #[error("a source before the last one has the last bit")]
    EarlyLast,
    /// A source that is not as long as the others.
    #[error("a source has {bytes} bytes, but the last source has {wanted}")]
    SourceLength {
        /// Bytes up to the end of this descriptor.
        bytes: u64,
        /// Bytes of the last source.
        wanted: u64,
    },
    /// A length in a meta descriptor that is not the source's.
    #[error("the meta descriptor gives {said} bytes, but the source has {bytes}")]
    MetaLength {
        /// Length in the meta descriptor.
        said: u32,
        /// Bytes of a source.
        bytes: u64,
    },
    /// A type field that holds no type.
    #[error("the op word has no {0} dtype")]
    NoDtype(&'static str),
    /// A reduction that the rules of reductions forbid.
    #[error(transparent)]
    Cce(#[from] CceRule),
    /// Two statements about a constant's type.
    #[error(
        "the low bits of the constant's dtype are {word} in the op word, but {meta} in the meta descriptor"
    )]
    ConstantDtypes {
        /// Bits in the op word.
        word: u8,
        /// Bits in the meta descriptor.
        meta: u8,
    },
    /// Sources that cannot be dealt out to the pieces of a split.
    #[error("{bytes} bytes cannot be split: not a multiple of {unit} bytes (one unit per piece)")]
    Ragged {
        /// Bytes of the sources.
        bytes: u64,
        /// Bytes that must stay together.
        unit: u64,
    },
    /// More bytes than a packet may have.
    #[error("the result has {bytes} bytes; a packet has at most {limit}")]
    ResultLength {
        /// Bytes of the result.
        bytes: u64,
        /// Most bytes.
        limit: u64,
    },
    /// No piece to split into.
    #[error("cannot split into 0 pieces")]
    NoPieces,
    /// A flag that says something else than the shape.
    #[error("the flag \"shape > 1\" contradicts the shape index")]
    ShapeFlag,
    /// An operation number that is no permutation.
    #[error("{0} is not a transpose; there are 12")]
    Permutation(u8),
    /// Two statements about the size of an element.
    #[error("elements have {bytes} bytes, which does not match dtype {}", .dtype.map_or("0", DType::name))]
    ElementDtype {
        /// Bytes in the op word.
        bytes: u8,
        /// Type in the op word.
        dtype: Option<DType>,
    },
    /// A transpose that the device does not do.
    #[error(transparent)]
    Transpose(#[from] TransposeError),
    /// A copy or a checksum that is laid out wrongly.
    #[error(transparent)]
    Cme(CmeError),
    /// A checksum that is not the expected one.
    #[error(transparent)]
    Mismatch(#[from] CrcMismatch),
}

impl From<CmeError> for Reason {
    fn from(error: CmeError) -> Reason {
        match error {
            CmeError::OtherOp(other) => Reason::OtherOp(other),
            error => Reason::Cme(error),
        }
    }
}

impl Reason {
    /// The error bit that it raises: what is too long has bits of its own, the rest is an error of the
    /// stream. Modelled (C).
    pub const fn bit(self) -> M2sError {
        match self {
            Reason::Cce(CceRule::Elements { .. })
            | Reason::ResultLength { .. }
            | Reason::Transpose(TransposeError::Elements { .. }) => M2sError::PktLenOverflow,
            Reason::Cce(CceRule::Sources(_) | CceRule::Copies { .. }) => M2sError::MaxDescCount,
            _ => M2sError::StreamResponse,
        }
    }
}
