//! The meta descriptor of a compute packet (`docs/hardware.md`, "Op words"): a
//! [`TxMetaDesc`](super::TxMetaDesc) whose `meta_ctrl` is a [`ComputeMetaWord`], whose `meta1` is
//! an [`OperandWord`] and whose `meta2` is the fp32 scale of FMA, the constant of MIN/MAX, else 0.
//!
//! Its `len_ctrl` has META and an index in the RING_ID bits. What the sources call its write
//! barrier bit lies where `len_ctrl` has FIRST, and is read as FIRST: modelled (C).

use super::DType;
use bitfield_struct::bitfield;

/// Op of a compute meta descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetaOp {
    /// Member of a combination.
    ComboMember,
    /// Extended replication, and how often: the runtime has the count in the low half of the word (B), our
    /// builder 0 there and the count in the operand word (C).
    ExtendedReplication(u16),
    /// Seeds the queue's stochastic rounding.
    SeedInit,
    /// Constant of MIN/MAX, of the given type.
    Constant(DType),
    /// Gradient compression.
    Gradient,
    /// No known op.
    Reserved(u32),
}

/// Word 1 of a compute meta descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ComputeMetaWord {
    /// What the descriptor is for.
    pub op: MetaOp,
    /// More descriptors follow.
    pub more_follow: bool,
}

const MORE_FOLLOW: u32 = 0x4000_0000;
const COMBO_MEMBER: u32 = 0x0400_0000;
const EXTENDED_REPLICATION: u32 = 0x04a0_0000;
const CONSTANT_OR_SEED: u32 = 0x0600_0000;
const GRADIENT: u32 = 0x0650_0001;
/// Where the type of a constant lies.
const CONSTANT_DTYPE_SHIFT: u32 = 20;

impl ComputeMetaWord {
    /// Decodes the word.
    pub fn decode(raw: u32) -> ComputeMetaWord {
        let base = raw & !MORE_FOLLOW;
        let constant_dtype = (base >> CONSTANT_DTYPE_SHIFT) as u8 & 0xf;
        let op = match base {
            COMBO_MEMBER => MetaOp::ComboMember,
            _ if base & !0xffff == EXTENDED_REPLICATION => MetaOp::ExtendedReplication(base as u16),
            CONSTANT_OR_SEED => MetaOp::SeedInit,
            GRADIENT => MetaOp::Gradient,
            _ => match DType::from_field(constant_dtype) {
                Some(dtype) if base == MetaOp::Constant(dtype).base() => MetaOp::Constant(dtype),
                _ => MetaOp::Reserved(base),
            },
        };
        ComputeMetaWord {
            op,
            more_follow: raw & MORE_FOLLOW != 0,
        }
    }

    /// The word as it lies in the descriptor.
    pub fn encode(self) -> u32 {
        self.op.base() | if self.more_follow { MORE_FOLLOW } else { 0 }
    }
}

impl MetaOp {
    /// How many destinations an extended replication asks for, beside its operand word; `None` for
    /// another op.
    pub fn destinations(self, operands: OperandWord) -> Option<u32> {
        match self {
            MetaOp::ExtendedReplication(0) => Some(operands.value()),
            MetaOp::ExtendedReplication(count) => Some(count.into()),
            _ => None,
        }
    }

    fn base(self) -> u32 {
        match self {
            MetaOp::ComboMember => COMBO_MEMBER,
            MetaOp::ExtendedReplication(count) => EXTENDED_REPLICATION | u32::from(count),
            MetaOp::SeedInit => CONSTANT_OR_SEED,
            MetaOp::Constant(dtype) => {
                CONSTANT_OR_SEED | u32::from(dtype.code()) << CONSTANT_DTYPE_SHIFT
            }
            MetaOp::Gradient => GRADIENT,
            MetaOp::Reserved(raw) => raw,
        }
    }
}

/// Where an operand of FMA comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FmaSelector {
    /// The accumulator.
    StoredBuffer,
    /// This source.
    InputBuffer,
    /// The scale.
    Scale,
    /// A code with no meaning.
    Reserved(u8),
}

impl FmaSelector {
    /// Meaning of a 2-bit code.
    pub const fn from_bits(raw: u8) -> FmaSelector {
        match raw {
            0 => FmaSelector::StoredBuffer,
            1 => FmaSelector::InputBuffer,
            2 => FmaSelector::Scale,
            raw => FmaSelector::Reserved(raw),
        }
    }

    /// The 2-bit code.
    pub const fn into_bits(self) -> u8 {
        match self {
            FmaSelector::StoredBuffer => 0,
            FmaSelector::InputBuffer => 1,
            FmaSelector::Scale => 2,
            FmaSelector::Reserved(raw) => raw,
        }
    }
}

/// Word 2 of a compute meta descriptor. `new()` selects `acc = source * scale + acc`.
#[bitfield(u32)]
#[derive(PartialEq, Eq, Hash)]
pub struct OperandWord {
    /// Length in bytes, or semaphore.
    #[bits(24)]
    pub value: u32,
    /// First factor.
    #[bits(2, default = FmaSelector::InputBuffer)]
    pub a: FmaSelector,
    /// Second factor.
    #[bits(2, default = FmaSelector::Scale)]
    pub b: FmaSelector,
    /// Summand.
    #[bits(2, default = FmaSelector::StoredBuffer)]
    pub c: FmaSelector,
    /// Without a meaning.
    #[bits(2)]
    reserved_31_30: u8,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_words() {
        for (raw, op, more_follow) in [
            (0x0400_0000, MetaOp::ComboMember, false),
            (0x4400_0000, MetaOp::ComboMember, true),
            (0x04a0_0000, MetaOp::ExtendedReplication(0), false),
            (0x44a0_0008, MetaOp::ExtendedReplication(8), true),
            (0x0600_0000, MetaOp::SeedInit, false),
            (0x06a0_0000, MetaOp::Constant(DType::Fp32), false),
            (0x0650_0000, MetaOp::Constant(DType::Uint16), false),
            (0x0650_0001, MetaOp::Gradient, false),
            (0x0650_0002, MetaOp::Reserved(0x0650_0002), false),
        ] {
            let word = ComputeMetaWord { op, more_follow };
            assert_eq!(ComputeMetaWord::decode(raw), word, "{raw:#x}");
            assert_eq!(word.encode(), raw);
        }
        assert_eq!(
            OperandWord::new().with_value(0x1000).into_bits(),
            0x0900_1000
        );
    }

    proptest! {
        #[test]
        fn decoding_loses_nothing(raw: u32) {
            prop_assert_eq!(ComputeMetaWord::decode(raw).encode(), raw);
            let from = OperandWord::from_bits(raw);
            let again = OperandWord::new()
                .with_value(from.value())
                .with_a(from.a())
                .with_b(from.b())
                .with_c(from.c())
                .with_reserved_31_30(from.reserved_31_30());
            prop_assert_eq!(again.into_bits(), raw);
        }

        #[test]
        fn constants_lose_nothing(dtype in 0u32..16, low in 0u32..4) {
            let raw = 0x0600_0000 | dtype << 20 | low;
            prop_assert_eq!(ComputeMetaWord::decode(raw).encode(), raw);
        }
    }
}
