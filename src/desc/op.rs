//! Op words: what word 1 of a Tx descriptor asks for, class by class (`docs/hardware.md`, "Op
//! words"). Every word keeps all 32 bits, so decoding loses nothing.

// The bitfield macro's `_checked` setters return `Result<_, ()>`.
#![allow(clippy::result_unit_err)]

use super::{DType, MetaCtrl, SsmaeOp};
use bitfield_struct::bitfield;

/// Descriptors of one packet ask for different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("op word {found:#010x} in a packet with op word {first:#010x}")]
pub struct OtherOp {
    /// Word of the packet's first data descriptor.
    pub first: u32,
    /// Word of this one.
    pub found: u32,
}

/// Kind of a compute operation, SDMA_CCETYPE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CceType {
    /// Sum.
    Add,
    /// Fused multiply and add.
    Fma,
    /// Maximum.
    Max,
    /// Minimum.
    Min,
    /// Combination.
    Ext,
    /// Gradient compression.
    Gce,
    /// A code with no meaning.
    Reserved(u8),
}

impl CceType {
    /// Meaning of a 3-bit code.
    pub const fn from_bits(raw: u8) -> CceType {
        match raw {
            0 => CceType::Add,
            1 => CceType::Fma,
            2 => CceType::Max,
            3 => CceType::Min,
            4 => CceType::Ext,
            5 => CceType::Gce,
            raw => CceType::Reserved(raw),
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            CceType::Add => "add",
            CceType::Fma => "fma",
            CceType::Max => "max",
            CceType::Min => "min",
            CceType::Ext => "ext",
            CceType::Gce => "gce",
            CceType::Reserved(_) => "unknown",
        }
    }

    /// The 3-bit code.
    pub const fn into_bits(self) -> u8 {
        match self {
            CceType::Add => 0,
            CceType::Fma => 1,
            CceType::Max => 2,
            CceType::Min => 3,
            CceType::Ext => 4,
            CceType::Gce => 5,
            CceType::Reserved(raw) => raw,
        }
    }
}

/// Declares an op word: its own 20 low bits and the twelve that all words share.
macro_rules! op_word {
    (
        $(#[$doc:meta])*
        $name:ident = $class:ident op $op:literal, reserved [$($reserved:ident),*] { $($interior:tt)* }
    ) => {
        $(#[$doc])*
        #[bitfield(u32)]
        #[derive(PartialEq, Eq, Hash)]
        pub struct $name {
            $($interior)*
            /// Operation within the class.
            #[bits(3, default = $op)]
            pub op_type: u8,
            /// Class.
            #[bits(3, default = SsmaeOp::$class)]
            pub ssmae_op: SsmaeOp,
            /// WRITE_BARRIER, as in `meta_ctrl`.
            pub write_barrier: bool,
            /// Without a meaning.
            reserved_27: bool,
            /// Notification mask, V4 only.
            pub notification_mask: bool,
            /// Without a meaning.
            #[bits(3)]
            reserved_31_29: u8,
        }

        impl $name {
            /// Whether a bit without a meaning in this word is set.
            pub const fn has_reserved_bits(self) -> bool {
                $(self.$reserved() as u32 != 0 ||)* self.reserved_27() || self.reserved_31_29() != 0
            }
        }
    };
}

op_word! {
    /// Striding split.
    StridingSplitWord = Dre op 0, reserved [reserved_4_3, reserved_7_6] {
        /// Pieces.
        #[bits(3)]
        pub split_count: u8,
        /// Without a meaning.
        #[bits(2)]
        reserved_4_3: u8,
        /// The shape has more than one element.
        pub shape_above_one: bool,
        /// Without a meaning.
        #[bits(2)]
        reserved_7_6: u8,
        /// Index of the shape.
        pub shape_index: u8,
        /// Type of the elements.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub dtype: Option<DType>,
    }
}

op_word! {
    /// Transpose.
    TransposeWord = Dre op 1, reserved [reserved_7_6] {
        /// Bytes of an element.
        #[bits(5)]
        pub element_bytes: u8,
        /// The shape has more than one element.
        pub shape_above_one: bool,
        /// Without a meaning.
        #[bits(2)]
        reserved_7_6: u8,
        /// Index of the output shape.
        pub output_shape_index: u8,
        /// Type of the elements.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub dtype: Option<DType>,
    }
}

op_word! {
    /// Replication.
    ReplicationWord = Dre op 2, reserved [reserved_19_16] {
        /// Copies.
        pub count: u16,
        /// Without a meaning.
        #[bits(4)]
        reserved_19_16: u8,
    }
}

op_word! {
    /// ADD: the sum of the packet's sources.
    AddWord = Cce op 0, reserved [reserved_3, reserved_5] {
        /// Kind: ADD.
        #[bits(3)]
        pub sub_op: CceType,
        /// Without a meaning.
        reserved_3: bool,
        /// Round the result stochastically: modelled (C).
        pub flag: bool,
        /// Without a meaning.
        reserved_5: bool,
        /// Write barrier of compute words.
        pub barrier: bool,
        /// Last source: flushes the accumulator.
        pub last: bool,
        /// Type read, where MIN, MAX and FMA have it; none: the type written. Modelled (C).
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub in_dtype: Option<DType>,
        /// Type written.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub out_dtype: Option<DType>,
        /// Type accumulated in.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub acc_dtype: Option<DType>,
    }
}

op_word! {
    /// MIN or MAX of the packet's sources, and of a constant. Its `op_type` bits hold the low three
    /// bits of the constant's type: modelled (C); the whole code is in the constant's meta
    /// descriptor.
    MinMaxWord = Cce op 0, reserved [reserved_3] {
        /// Kind: MIN or MAX.
        #[bits(3)]
        pub sub_op: CceType,
        /// Without a meaning.
        reserved_3: bool,
        /// Round the result stochastically: modelled (C).
        pub flag: bool,
        /// Compare with a constant too; forces the out type.
        pub use_constant: bool,
        /// Write barrier of compute words.
        pub barrier: bool,
        /// Last source: flushes the accumulator.
        pub last: bool,
        /// Type read.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub in_dtype: Option<DType>,
        /// Type written.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub out_dtype: Option<DType>,
        /// Type accumulated in.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub acc_dtype: Option<DType>,
    }
}

op_word! {
    /// FMA: `acc = source * scale + acc` with the default operands.
    FmaWord = Cce op 1, reserved [reserved_3, reserved_5] {
        /// Kind: FMA.
        #[bits(3, default = CceType::Fma)]
        pub sub_op: CceType,
        /// Without a meaning.
        reserved_3: bool,
        /// Round the result stochastically: modelled (C).
        pub flag: bool,
        /// Without a meaning.
        reserved_5: bool,
        /// Write barrier of compute words.
        pub barrier: bool,
        /// Last source: flushes the accumulator.
        pub last: bool,
        /// Type read.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub in_dtype: Option<DType>,
        /// Type of the scale.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub scale_dtype: Option<DType>,
        /// Type accumulated in.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub acc_dtype: Option<DType>,
    }
}

op_word! {
    /// EXT: a combination, such as a reduction replicated to several destinations.
    ExtWord = Cce op 4, reserved [reserved_11_3] {
        /// Kind of the operation combined.
        #[bits(3)]
        pub sub_op: CceType,
        /// Without a meaning.
        #[bits(9)]
        reserved_11_3: u16,
        /// Type between the two operations.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub middle_dtype: Option<DType>,
        /// Type accumulated in.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub acc_dtype: Option<DType>,
    }
}

op_word! {
    /// GCE: gradient compression. The codec is in silicon and not modelled.
    GceWord = Cce op 5, reserved [reserved_3, reserved_5] {
        /// Kind.
        #[bits(3, default = CceType::Gce)]
        pub sub_op: CceType,
        /// Without a meaning.
        reserved_3: bool,
        /// Meaning unknown.
        pub flag: bool,
        /// Without a meaning.
        reserved_5: bool,
        /// Write barrier of compute words.
        pub barrier: bool,
        /// Last source.
        pub last: bool,
        /// First type.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub in_dtype: Option<DType>,
        /// Second type.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub out_dtype: Option<DType>,
        /// Third type.
        #[bits(4, default = None, from = DType::from_field, into = DType::to_field)]
        pub acc_dtype: Option<DType>,
    }
}

/// Word 1 of a Tx data descriptor, by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpWord {
    /// Copy or CRC.
    Cme(MetaCtrl),
    /// Striding split.
    StridingSplit(StridingSplitWord),
    /// Transpose.
    Transpose(TransposeWord),
    /// Replication.
    Replication(ReplicationWord),
    /// ADD.
    Add(AddWord),
    /// MIN or MAX.
    MinMax(MinMaxWord),
    /// FMA.
    Fma(FmaWord),
    /// Combination.
    Ext(ExtWord),
    /// Gradient compression.
    Gce(GceWord),
    /// No known operation.
    Reserved(u32),
}

impl OpWord {
    /// Decodes the word of a data descriptor. ADD and MIN/MAX share their base word; the kind in
    /// the low three bits tells them apart: modelled (C).
    pub const fn decode(word: MetaCtrl) -> OpWord {
        let raw = word.into_bits();
        match (word.ssmae_op(), word.op_type()) {
            (SsmaeOp::Cme, _) => OpWord::Cme(word),
            (SsmaeOp::Dre, 0) => OpWord::StridingSplit(StridingSplitWord::from_bits(raw)),
            (SsmaeOp::Dre, 1) => OpWord::Transpose(TransposeWord::from_bits(raw)),
            (SsmaeOp::Dre, 2) => OpWord::Replication(ReplicationWord::from_bits(raw)),
            (SsmaeOp::Cce, op_type) => OpWord::decode_compute(raw, op_type),
            _ => OpWord::Reserved(raw),
        }
    }

    const fn decode_compute(raw: u32, op_type: u8) -> OpWord {
        let min_max = MinMaxWord::from_bits(raw);
        match (op_type, min_max.sub_op()) {
            (_, CceType::Min | CceType::Max) if op_type == 0 || min_max.use_constant() => {
                OpWord::MinMax(min_max)
            }
            (0, CceType::Add) => OpWord::Add(AddWord::from_bits(raw)),
            (1, _) => OpWord::Fma(FmaWord::from_bits(raw)),
            (4, _) => OpWord::Ext(ExtWord::from_bits(raw)),
            (5, _) => OpWord::Gce(GceWord::from_bits(raw)),
            _ => OpWord::Reserved(raw),
        }
    }

    /// The word as it lies in the descriptor.
    pub const fn encode(self) -> MetaCtrl {
        MetaCtrl::from_bits(match self {
            OpWord::Cme(word) => word.into_bits(),
            OpWord::StridingSplit(word) => word.into_bits(),
            OpWord::Transpose(word) => word.into_bits(),
            OpWord::Replication(word) => word.into_bits(),
            OpWord::Add(word) => word.into_bits(),
            OpWord::MinMax(word) => word.into_bits(),
            OpWord::Fma(word) => word.into_bits(),
            OpWord::Ext(word) => word.into_bits(),
            OpWord::Gce(word) => word.into_bits(),
            OpWord::Reserved(raw) => raw,
        })
    }

    /// Whether a bit without a meaning in the word's class is set; a reserved word is all of them.
    pub const fn has_reserved_bits(self) -> bool {
        match self {
            OpWord::Cme(word) => word.has_reserved_bits(),
            OpWord::StridingSplit(word) => word.has_reserved_bits(),
            OpWord::Transpose(word) => word.has_reserved_bits(),
            OpWord::Replication(word) => word.has_reserved_bits(),
            OpWord::Add(word) => word.has_reserved_bits(),
            OpWord::MinMax(word) => word.has_reserved_bits(),
            OpWord::Fma(word) => word.has_reserved_bits(),
            OpWord::Ext(word) => word.has_reserved_bits(),
            OpWord::Gce(word) => word.has_reserved_bits(),
            OpWord::Reserved(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(raw: u32) -> OpWord {
        OpWord::decode(MetaCtrl::from_bits(raw))
    }

    #[test]
    fn golden_base_words() {
        assert_eq!(StridingSplitWord::new().into_bits(), 0x080_0000);
        assert_eq!(TransposeWord::new().into_bits(), 0x090_0000);
        assert_eq!(ReplicationWord::new().into_bits(), 0x0a0_0000);
        assert_eq!(AddWord::new().into_bits(), 0x200_0000);
        assert_eq!(MinMaxWord::new().into_bits(), 0x200_0000);
        assert_eq!(FmaWord::new().into_bits(), 0x210_0001);
        assert_eq!(ExtWord::new().into_bits(), 0x240_0000);
        assert_eq!(GceWord::new().into_bits(), 0x250_0005);
    }

    #[test]
    fn golden_words() {
        let split = StridingSplitWord::new()
            .with_split_count(4)
            .with_shape_above_one(true)
            .with_shape_index(0x12)
            .with_dtype(Some(DType::Fp32));
        assert_eq!(split.into_bits(), 0x08a_1224);
        assert_eq!(decode(0x08a_1224), OpWord::StridingSplit(split));

        let transpose = TransposeWord::new()
            .with_element_bytes(2)
            .with_shape_above_one(true)
            .with_output_shape_index(0x34)
            .with_dtype(Some(DType::Bfloat16));
        assert_eq!(transpose.into_bits(), 0x096_3422);
        assert_eq!(decode(0x096_3422), OpWord::Transpose(transpose));

        let replication = ReplicationWord::new().with_count(8);
        assert_eq!(replication.into_bits(), 0x0a0_0008);
        assert_eq!(decode(0x0a0_0008), OpWord::Replication(replication));

        let add = AddWord::new()
            .with_last(true)
            .with_barrier(true)
            .with_flag(true)
            .with_out_dtype(Some(DType::Fp16))
            .with_acc_dtype(Some(DType::Fp32));
        assert_eq!(add.into_bits(), 0x20a_70d0);
        assert_eq!(decode(0x20a_70d0), OpWord::Add(add));

        let max = MinMaxWord::new()
            .with_sub_op(CceType::Max)
            .with_in_dtype(Some(DType::Int16))
            .with_out_dtype(Some(DType::Int32))
            .with_acc_dtype(Some(DType::Int32));
        assert_eq!(max.into_bits(), 0x208_8402);
        assert_eq!(decode(0x208_8402), OpWord::MinMax(max));

        let fma = FmaWord::new()
            .with_last(true)
            .with_in_dtype(Some(DType::Bfloat16))
            .with_scale_dtype(Some(DType::Fp32))
            .with_acc_dtype(Some(DType::Fp32));
        assert_eq!(fma.into_bits(), 0x21a_a681);
        assert_eq!(decode(0x21a_a681), OpWord::Fma(fma));

        let ext = ExtWord::new()
            .with_middle_dtype(Some(DType::Fp32))
            .with_acc_dtype(Some(DType::Fp32));
        assert_eq!(ext.into_bits(), 0x24a_a000);
        assert_eq!(decode(0x24a_a000), OpWord::Ext(ext));
    }

    #[test]
    fn copies_and_crcs_are_cme() {
        assert_eq!(decode(0x0108_0003), OpWord::Cme(MetaCtrl::PLAIN_COPY));
        assert!(matches!(decode(0x0120_0000), OpWord::Cme(_)));
    }

    #[test]
    fn a_min_max_constant_does_not_look_like_fma() {
        // uint32 is type 9; its low three bits in op_type equal FMA's code.
        assert!(matches!(decode(0x210_0022), OpWord::MinMax(_)));
        assert!(matches!(decode(0x210_0001), OpWord::Fma(_)));
    }

    #[test]
    fn unknown_words_stay_raw() {
        for raw in [0, 0x0200_0006, 0x0220_0000, 0x00b0_0000, 0x0380_0000] {
            assert_eq!(decode(raw), OpWord::Reserved(raw), "{raw:#x}");
        }
    }

    #[test]
    fn reserved_bits_are_seen() {
        assert!(!decode(0x0108_0003).has_reserved_bits());
        assert!(decode(0x0108_0007).has_reserved_bits());
        assert!(!decode(0x20a_70d0).has_reserved_bits());
        assert!(decode(0x20a_70d8).has_reserved_bits());
        assert!(!decode(0x08a_1224).has_reserved_bits());
        assert!(decode(0x08a_1224 | 1 << 27).has_reserved_bits());
        assert!(decode(0).has_reserved_bits());
    }

    proptest! {
        #[test]
        fn decoding_loses_nothing(raw: u32) {
            prop_assert_eq!(decode(raw).encode().into_bits(), raw);
        }

        #[test]
        fn compute_and_reshape_words_lose_nothing(low in 0u32..1 << 23, class in 1u32..=4) {
            let raw = low | class << 23;
            prop_assert_eq!(decode(raw).encode().into_bits(), raw);
        }

        #[test]
        fn fields_hold_every_bit(raw: u32) {
            let from = MinMaxWord::from_bits(raw);
            let again = MinMaxWord::new()
                .with_sub_op(from.sub_op())
                .with_reserved_3(from.reserved_3())
                .with_flag(from.flag())
                .with_use_constant(from.use_constant())
                .with_barrier(from.barrier())
                .with_last(from.last())
                .with_in_dtype(from.in_dtype())
                .with_out_dtype(from.out_dtype())
                .with_acc_dtype(from.acc_dtype())
                .with_op_type(from.op_type())
                .with_ssmae_op(from.ssmae_op())
                .with_write_barrier(from.write_barrier())
                .with_reserved_27(from.reserved_27())
                .with_notification_mask(from.notification_mask())
                .with_reserved_31_29(from.reserved_31_29());
            prop_assert_eq!(again.into_bits(), raw);
        }
    }
}
