//! The rules of reductions, for who builds and who executes them (`docs/hardware.md`, "Data types"; the
//! limits are in `arch/`). Both check them in the order in which they come in a packet: number of sources,
//! destinations, constant, operands and scales, at last [`CceShape`].

use super::{CceType, DType, FmaSelector};
use crate::arch::{Arch, ArchSpec};

/// Most sources of a reduction.
pub const MAX_CCE_SOURCES: usize = 32;

/// A reduction's packets are a multiple of this many bytes.
pub const CCE_GRANULE_BYTES: u64 = 32;

/// Most bytes of a constant: the word of the meta descriptor that holds it.
const MAX_CONSTANT_BYTES: u32 = 4;

/// What a reduction may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CceRule {
    /// Several destinations on V2.
    #[error("CCE replication not supported for v1/v2 archs")]
    Replication,
    /// Too few or too many destinations.
    #[error("{copies} destinations; a packet takes 1 to {limit}")]
    Copies {
        /// Destinations asked for.
        copies: u64,
        /// Most destinations.
        limit: u32,
    },
    /// Too few or too many sources.
    #[error("{0} sources; a reduction takes 1 to {MAX_CCE_SOURCES}")]
    Sources(usize),
    /// A constant for an operation that takes none.
    #[error("CCE type {0} does not take a constant; only MIN and MAX do")]
    Constant(u8),
    /// A scale that is not fp32.
    #[error("a scale has type {}; it must be fp32", .0.map_or("0", DType::name))]
    ScaleDtype(Option<DType>),
    /// A selector without a meaning.
    #[error("{0} is not an FMA operand selector; the selectors are 0 to 2")]
    Selector(u8),
    /// A constant whose type is longer than the word that holds it.
    #[error("a constant of type {} does not fit: a meta descriptor holds {MAX_CONSTANT_BYTES} bytes", .0.name())]
    ConstantDtype(DType),
    /// A type that has no size in reductions.
    #[error("{} cannot be reduced", .0.name())]
    Unsized(DType),
    /// In and out types of different classes.
    #[error(
        "in dtype {} and out dtype {}: either both or neither must be among int32, uint32, fp32 and fp32r",
        .in_dtype.name(), .out_dtype.name()
    )]
    Class {
        /// Type read.
        in_dtype: DType,
        /// Type written.
        out_dtype: DType,
    },
    /// A source that is not a whole number of elements.
    #[error("a source has {bytes} bytes, not a multiple of {unit} bytes, the size of {}", .dtype.name())]
    Ragged {
        /// Bytes of the source.
        bytes: u64,
        /// Bytes of an element.
        unit: u32,
        /// Type read.
        dtype: DType,
    },
    /// Too few or too many elements.
    #[error("{elements} elements; {arch} takes 1 to {limit} in a CCE packet")]
    Elements {
        /// Generation of the device.
        arch: Arch,
        /// Elements of a source.
        elements: u64,
        /// Most elements.
        limit: u32,
    },
    /// A size that is not a multiple of 32 bytes.
    #[error("a source has {0} bytes; it must be a multiple of {CCE_GRANULE_BYTES}")]
    Granule(u64),
}

/// Whether in and out type of a reduction go together.
pub const fn same_cce_class(a: DType, b: DType) -> bool {
    const fn wide(dtype: DType) -> bool {
        matches!(dtype.code(), 8..=11)
    }
    wide(a) == wide(b)
}

/// Whether a packet is a cast: an ADD of one source computes nothing, so that the rules of reductions
/// (classes of types, sizes) do not hold for it. Modelled (C).
pub const fn is_cast(op: CceType, sources: usize) -> bool {
    matches!(op, CceType::Add) && sources == 1
}

/// The types of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CceTypes {
    /// Type read.
    pub in_dtype: DType,
    /// Type accumulated in.
    pub acc_dtype: DType,
    /// Type written.
    pub out_dtype: DType,
}

/// A reduction, as far as the rules about types and sizes care.
#[derive(Clone, Copy, Debug)]
pub struct CceShape {
    /// Operation.
    pub op: CceType,
    /// Sources.
    pub sources: usize,
    /// Data descriptors that the sources come in.
    pub descriptors: usize,
    /// Whether MIN or MAX compare with a constant too.
    pub constant: bool,
    /// Bytes of a source.
    pub source_bytes: u64,
    /// The types asked for.
    pub types: CceTypes,
}

impl CceShape {
    /// Checks types and size of the sources. Returns the types that the elements travel in.
    ///
    /// # Errors
    /// [`CceRule`] for what `spec` does not take.
    pub fn check(&self, spec: &ArchSpec) -> Result<CceTypes, CceRule> {
        let CceTypes {
            in_dtype,
            out_dtype,
            ..
        } = self.types;
        let cast = is_cast(self.op, self.sources);
        if !cast {
            for dtype in [in_dtype, out_dtype] {
                dtype.reduce_bytes().ok_or(CceRule::Unsized(dtype))?;
            }
            if !same_cce_class(in_dtype, out_dtype) {
                return Err(CceRule::Class {
                    in_dtype,
                    out_dtype,
                });
            }
        }
        let (bytes, unit) = (self.source_bytes, in_dtype.bytes());
        if !bytes.is_multiple_of(unit.into()) {
            return Err(CceRule::Ragged {
                bytes,
                unit,
                dtype: in_dtype,
            });
        }
        let limit = spec.limits.cce_elements_per_packet;
        let elements = match self.in_byte_pairs() {
            true => bytes.div_ceil(DType::Uint16.bytes().into()),
            false => bytes / u64::from(unit),
        };
        if !(1..=u64::from(limit)).contains(&elements) {
            return Err(CceRule::Elements {
                arch: spec.arch,
                elements,
                limit,
            });
        }
        if !cast && !bytes.is_multiple_of(CCE_GRANULE_BYTES) {
            return Err(CceRule::Granule(bytes));
        }
        Ok(self.travels_as())
    }

    /// Whether the elements travel in pairs: one descriptor of one-byte elements that leave as they came
    /// (B).
    fn in_byte_pairs(&self) -> bool {
        let CceTypes {
            in_dtype,
            out_dtype,
            ..
        } = self.types;
        let computes = self.op == CceType::Fma || self.constant || self.sources > 1;
        !computes && self.descriptors == 1 && in_dtype == out_dtype && in_dtype.bytes() == 1
    }

    /// Pairs of bytes are uint16 (B). Where the number is odd the last byte has no pair, and no length
    /// says half a uint16: they are then uint8, and pass untouched all the same (C).
    fn travels_as(&self) -> CceTypes {
        let even = self
            .source_bytes
            .is_multiple_of(DType::Uint16.bytes().into());
        let lane = match (self.in_byte_pairs(), even) {
            (false, _) => return self.types,
            (true, true) => DType::Uint16,
            (true, false) => DType::Uint8,
        };
        CceTypes {
            in_dtype: lane,
            acc_dtype: lane,
            out_dtype: lane,
        }
    }
}

/// Whether a reduction takes so many sources.
///
/// # Errors
/// [`CceRule::Sources`].
pub fn check_sources(sources: usize) -> Result<(), CceRule> {
    match (1..=MAX_CCE_SOURCES).contains(&sources) {
        true => Ok(()),
        false => Err(CceRule::Sources(sources)),
    }
}

/// Whether the generation writes a result so many times.
///
/// # Errors
/// [`CceRule::Replication`] and [`CceRule::Copies`].
pub fn check_copies(copies: u64, spec: &ArchSpec) -> Result<(), CceRule> {
    if !spec.caps.cce_replication {
        return Err(CceRule::Replication);
    }
    let limit = spec.limits.rx_descs_per_packet;
    match (1..=u64::from(limit)).contains(&copies) {
        true => Ok(()),
        false => Err(CceRule::Copies { copies, limit }),
    }
}

/// Whether FMA takes a scale of this type.
///
/// # Errors
/// [`CceRule::ScaleDtype`].
pub fn check_scale_dtype(dtype: Option<DType>) -> Result<(), CceRule> {
    match dtype {
        Some(DType::Fp32) => Ok(()),
        other => Err(CceRule::ScaleDtype(other)),
    }
}

/// Whether FMA's operand selectors have a meaning.
///
/// # Errors
/// [`CceRule::Selector`].
pub fn check_selectors(selectors: [FmaSelector; 3]) -> Result<(), CceRule> {
    selectors
        .into_iter()
        .try_for_each(|selector| match selector {
            FmaSelector::Reserved(raw) => Err(CceRule::Selector(raw)),
            _ => Ok(()),
        })
}

/// Whether MIN and MAX take a constant of this type.
///
/// # Errors
/// [`CceRule::ConstantDtype`].
pub fn check_constant_dtype(dtype: DType) -> Result<(), CceRule> {
    match dtype.bytes() <= MAX_CONSTANT_BYTES {
        true => Ok(()),
        false => Err(CceRule::ConstantDtype(dtype)),
    }
}
