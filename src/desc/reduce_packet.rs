//! The builder of compute packets: ADD, MIN, MAX and FMA over up to 32 sources (`docs/hardware.md`,
//! "Op words", "Data types").
//!
//! Shape of a packet on the Tx ring, modelled (C), each line there if the packet needs it:
//!
//! * a meta descriptor with the seed of stochastic rounding, in `meta2`;
//! * a meta descriptor [`MetaOp::ExtendedReplication`] with the number of destinations in the value
//!   of `meta1`: the result is written so many times, one behind the other, into the Rx descriptors;
//! * a meta descriptor [`MetaOp::Constant`] with the constant of MIN/MAX in `meta2`;
//! * for each source, FMA's meta descriptor ([`MetaOp::ComboMember`], selectors in `meta1`, scale in
//!   `meta2`), then one data descriptor with the op word; the last source's word has `last`.
//!
//! Each destination is one Rx descriptor.

use super::build::check_gates;
use super::copy_packet::check_packet_limits;
use super::op::{AddWord, CceType, FmaWord, MinMaxWord, OpWord};
use super::{
    BarrierMode, BuildError, BuiltPacket, CceRule, CceShape, CceTypes, ComputeMetaWord, DType,
    FmaSelector, LenCtrl, MetaOp, OperandWord, PacketLimitError, RingId, RxDesc, TxDesc,
    TxMetaDesc, check_constant_dtype, check_copies, check_scale_dtype, check_selectors,
    check_sources,
};
use crate::arch::Arch;
use crate::units::Addr;

/// Operation of the compiler's own numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum KbinOp {
    /// Copy.
    Copy = 0,
    /// Fused multiply and add.
    Fma = 1,
    /// Sum.
    Add = 2,
    /// Minimum.
    Min = 3,
    /// Maximum.
    Max = 4,
    /// Transpose.
    Transpose = 5,
}

impl KbinOp {
    /// The compute operation it is; `None` for a copy and a transpose.
    pub const fn cce_type(self) -> Option<CceType> {
        match self {
            KbinOp::Fma => Some(CceType::Fma),
            KbinOp::Add => Some(CceType::Add),
            KbinOp::Min => Some(CceType::Min),
            KbinOp::Max => Some(CceType::Max),
            KbinOp::Copy | KbinOp::Transpose => None,
        }
    }
}

/// What MIN and MAX compare with beside their sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CceConstant {
    /// Its type.
    pub dtype: DType,
    /// Its value, in the low bytes.
    pub bits: u32,
}

/// What an operation needs beside its sources.
#[derive(Clone, Copy, Debug)]
pub struct CceInfo<'a> {
    /// FMA: one scale per source.
    pub scales: &'a [f32],
    /// FMA: type of the scales; must be fp32.
    pub scale_dtype: DType,
    /// FMA: which operands are multiplied and added.
    pub selectors: [FmaSelector; 3],
    /// MIN and MAX: a constant.
    pub constant: Option<CceConstant>,
}

impl<'a> CceInfo<'a> {
    /// `acc = source * scale + acc`, an fp32 scale per source.
    pub fn scaled(scales: &'a [f32]) -> CceInfo<'a> {
        let default = OperandWord::new();
        CceInfo {
            scales,
            scale_dtype: DType::Fp32,
            selectors: [default.a(), default.b(), default.c()],
            constant: None,
        }
    }

    /// Compares with a constant.
    pub fn constant(constant: CceConstant) -> CceInfo<'a> {
        CceInfo {
            constant: Some(constant),
            ..CceInfo::scaled(&[])
        }
    }
}

/// A reduction.
#[derive(Clone, Debug)]
pub struct CcePacket<'a> {
    /// Sources, 1 to 32, of `elements` elements each.
    pub sources: &'a [Addr],
    /// Where the result goes; more than one from V3 on.
    pub destinations: &'a [Addr],
    /// Elements of a source.
    pub elements: u32,
    /// Type read.
    pub in_dtype: DType,
    /// Type accumulated in.
    pub acc_dtype: DType,
    /// Type written. FMA has no place for it and writes the type it reads.
    pub out_dtype: DType,
    /// Needed by FMA and by a constant.
    pub cce_info: Option<CceInfo<'a>>,
    /// DMB goes on the first Tx descriptor, a write barrier on the last, SOW on the last Rx one.
    pub barrier: BarrierMode,
    /// Round the result stochastically.
    pub stochastic_rounding: bool,
    /// Seed the queue's generator first.
    pub seed: Option<u32>,
}

impl<'a> CcePacket<'a> {
    /// A reduction that reads, accumulates and writes one type.
    pub fn new(
        sources: &'a [Addr],
        destinations: &'a [Addr],
        elements: u32,
        dtype: DType,
    ) -> CcePacket<'a> {
        CcePacket {
            sources,
            destinations,
            elements,
            in_dtype: dtype,
            acc_dtype: dtype,
            out_dtype: dtype,
            cce_info: None,
            barrier: BarrierMode::None,
            stochastic_rounding: false,
            seed: None,
        }
    }
}

/// Why a reduction was not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CceError {
    /// An operation that is no reduction.
    #[error("unsupported op! ({0})")]
    Op(u32),
    /// Nowhere to write.
    #[error("no destination given")]
    NoDestination,
    /// FMA without its information.
    #[error("FMA needs scales, one for each source; none given")]
    NoInfo,
    /// Not one scale per source.
    #[error("{scales} scales for {sources} sources; FMA needs one per source")]
    Scales {
        /// Scales given.
        scales: usize,
        /// Sources given.
        sources: usize,
    },
    /// FMA cannot convert.
    #[error("FMA writes the type it reads, {}; out dtype {} is not possible", .in_dtype.name(), .out_dtype.name())]
    FmaOut {
        /// Type read.
        in_dtype: DType,
        /// Type that was to be written.
        out_dtype: DType,
    },
    /// The device would refuse it too.
    #[error(transparent)]
    Rule(#[from] CceRule),
    /// Too many descriptors.
    #[error(transparent)]
    Limit(#[from] PacketLimitError),
    /// The generation cannot do it.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Builds a reduction. The descriptors' ring id is `ring`, meta descriptors included: it is what the
/// sources call their index.
///
/// # Errors
/// [`CceError`] for what `arch` or the operation does not take.
pub fn build_cce_packet(
    arch: Arch,
    op: CceType,
    packet: &CcePacket,
    ring: RingId,
) -> Result<BuiltPacket, CceError> {
    let builder = Builder::check(arch, op, packet, ring)?;
    let mut built = BuiltPacket::default();
    builder.push_tx(&mut built)?;
    builder.push_rx(&mut built)?;
    built.delimit();
    // A write barrier is in the last op word already.
    if packet.barrier != BarrierMode::WriteBarrier {
        built.set_barrier(packet.barrier);
    }
    Ok(built)
}

struct Builder<'p> {
    op: CceType,
    packet: &'p CcePacket<'p>,
    ring: RingId,
    types: CceTypes,
    source_bytes: u32,
    out_bytes: u32,
}

impl<'p> Builder<'p> {
    fn check(
        arch: Arch,
        op: CceType,
        packet: &'p CcePacket<'p>,
        ring: RingId,
    ) -> Result<Builder<'p>, CceError> {
        check_gates(arch, packet.barrier, false)?;
        let min_max = matches!(op, CceType::Min | CceType::Max);
        if !min_max && !matches!(op, CceType::Add | CceType::Fma) {
            return Err(CceError::Op(op.into_bits().into()));
        }
        let sources = packet.sources.len();
        check_sources(sources)?;
        match packet.destinations.len() as u64 {
            0 => return Err(CceError::NoDestination),
            1 => {}
            copies => check_copies(copies, arch.spec())?,
        }
        let constant = packet.cce_info.and_then(|info| info.constant);
        if let Some(constant) = constant {
            if !min_max {
                return Err(CceRule::Constant(op.into_bits()).into());
            }
            check_constant_dtype(constant.dtype)?;
        }
        if op == CceType::Fma {
            Self::check_fma(packet)?;
        }
        let types = CceTypes {
            in_dtype: packet.in_dtype,
            acc_dtype: packet.acc_dtype,
            out_dtype: packet.out_dtype,
        };
        let elements = packet.elements;
        let source_bytes = u64::from(elements) * u64::from(types.in_dtype.bytes());
        let shape = CceShape {
            op,
            sources,
            descriptors: sources,
            constant: constant.is_some(),
            source_bytes,
            types,
        };
        let types = shape.check(arch.spec())?;
        let metas = usize::from(packet.seed.is_some())
            + usize::from(packet.destinations.len() > 1)
            + usize::from(constant.is_some())
            + if op == CceType::Fma { sources } else { 0 };
        let rx_count = packet.destinations.len() as u64;
        check_packet_limits(arch, (sources + metas) as u64, rx_count)?;
        Ok(Builder {
            op,
            packet,
            ring,
            types,
            // At most the largest packet of elements of 8 bytes.
            source_bytes: source_bytes as u32,
            out_bytes: elements * packet.out_dtype.bytes(),
        })
    }

    fn check_fma(packet: &CcePacket) -> Result<(), CceError> {
        let info = packet.cce_info.ok_or(CceError::NoInfo)?;
        let (scales, sources) = (info.scales.len(), packet.sources.len());
        if scales != sources {
            return Err(CceError::Scales { scales, sources });
        }
        check_selectors(info.selectors)?;
        check_scale_dtype(Some(info.scale_dtype))?;
        let (in_dtype, out_dtype) = (packet.in_dtype, packet.out_dtype);
        if in_dtype != out_dtype {
            return Err(CceError::FmaOut {
                in_dtype,
                out_dtype,
            });
        }
        Ok(())
    }

    fn push_tx(&self, built: &mut BuiltPacket) -> Result<(), CceError> {
        let none = OperandWord::from_bits(0);
        let constant = self.packet.cce_info.and_then(|info| info.constant);
        if let Some(seed) = self.packet.seed {
            self.push_meta(built, MetaOp::SeedInit, none, seed);
        }
        let copies = self.packet.destinations.len() as u32;
        if copies > 1 {
            let operands = none.with_value(copies);
            self.push_meta(built, MetaOp::ExtendedReplication(0), operands, 0);
        }
        if let Some(constant) = constant {
            let op = MetaOp::Constant(constant.dtype);
            self.push_meta(built, op, none, constant.bits);
        }
        let last = self.packet.sources.len() - 1;
        for (index, at) in self.packet.sources.iter().enumerate() {
            if let (CceType::Fma, Some(info)) = (self.op, &self.packet.cce_info) {
                let [a, b, c] = info.selectors;
                let operands = none
                    .with_value(self.source_bytes)
                    .with_a(a)
                    .with_b(b)
                    .with_c(c);
                let scale = info.scales.get(index).copied().unwrap_or_default();
                self.push_meta(built, MetaOp::ComboMember, operands, scale.to_bits());
            }
            let tx = TxDesc {
                len_ctrl: self.len_ctrl(self.source_bytes)?,
                meta_ctrl: self.word(index == last, constant).encode(),
                buf_ptr: *at,
            };
            built.tx.push(tx.into());
        }
        Ok(())
    }

    fn push_rx(&self, built: &mut BuiltPacket) -> Result<(), CceError> {
        for at in self.packet.destinations {
            let rx = RxDesc {
                len_ctrl: self.len_ctrl(self.out_bytes)?,
                buf2_ptr_lo: 0,
                buf1_ptr: *at,
            };
            built.rx.push(rx.into());
        }
        Ok(())
    }

    fn len_ctrl(&self, bytes: u32) -> Result<LenCtrl, CceError> {
        let len_ctrl = LenCtrl::new().with_ring_id(self.ring).with_byte_len(bytes);
        Ok(len_ctrl.map_err(BuildError::from)?)
    }

    /// A meta descriptor; more descriptors follow every one of them.
    fn push_meta(&self, built: &mut BuiltPacket, op: MetaOp, operands: OperandWord, meta2: u32) {
        let word = ComputeMetaWord {
            op,
            more_follow: true,
        };
        let meta = TxMetaDesc {
            len_ctrl: LenCtrl::new().with_meta(true).with_ring_id(self.ring),
            meta_ctrl: super::MetaCtrl::from_bits(word.encode()),
            meta1: operands.into_bits(),
            meta2,
        };
        built.tx.push(meta.into());
    }

    /// Op word of a source.
    fn word(&self, last: bool, constant: Option<CceConstant>) -> OpWord {
        let CceTypes {
            in_dtype,
            acc_dtype,
            out_dtype,
        } = self.types;
        let barrier = last && self.packet.barrier == BarrierMode::WriteBarrier;
        let flag = self.packet.stochastic_rounding;
        match self.op {
            CceType::Fma => OpWord::Fma(
                FmaWord::new()
                    .with_flag(flag)
                    .with_barrier(barrier)
                    .with_last(last)
                    .with_in_dtype(Some(in_dtype))
                    .with_scale_dtype(Some(DType::Fp32))
                    .with_acc_dtype(Some(acc_dtype)),
            ),
            CceType::Min | CceType::Max => OpWord::MinMax(
                MinMaxWord::new()
                    .with_sub_op(self.op)
                    .with_flag(flag)
                    .with_use_constant(constant.is_some())
                    .with_op_type(constant.map_or(0, |constant| constant.dtype.code() & 7))
                    .with_barrier(barrier)
                    .with_last(last)
                    .with_in_dtype(Some(in_dtype))
                    .with_out_dtype(Some(out_dtype))
                    .with_acc_dtype(Some(acc_dtype)),
            ),
            _ => OpWord::Add(
                AddWord::new()
                    .with_flag(flag)
                    .with_barrier(barrier)
                    .with_last(last)
                    .with_in_dtype(Some(in_dtype))
                    .with_out_dtype(Some(out_dtype))
                    .with_acc_dtype(Some(acc_dtype)),
            ),
        }
    }
}

#[cfg(test)]
mod tests;
