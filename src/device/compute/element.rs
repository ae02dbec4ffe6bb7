//! The data types as elements of byte slices: each converts to fp32 and from fp32, which is how every
//! change of type happens (`docs/compute.md`, "Numbers").

use super::float::{
    Bfloat16, E3m4, E4m3, E4m3Ocp, E5m2, Fp16, Overflow, decode, encode, encode_stochastic, quiet,
};
use crate::config::{ComputeConfig, E4m3Flavour, Fp8Overflow};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// How fp8 types behave: set by the control that V4 has, fixed below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fp8 {
    /// E4M3 as the OCP specification has it (largest 448, no infinity) rather than as IEEE 754 would
    /// (largest 240).
    pub ocp_e4m3: bool,
    /// What becomes of numbers too large.
    pub overflow: Overflow,
}

impl Fp8 {
    /// IEEE-like E4M3, too large numbers become infinite: V2 and V3, and V4 out of reset. Modelled (C).
    pub const DEFAULT: Fp8 = Fp8 {
        ocp_e4m3: false,
        overflow: Overflow::Special,
    };
}

impl From<&ComputeConfig> for Fp8 {
    fn from(config: &ComputeConfig) -> Fp8 {
        Fp8 {
            ocp_e4m3: config.fp8_e4 == E4m3Flavour::Ocp,
            overflow: match config.fp8_overflow {
                Fp8Overflow::Special => Overflow::Special,
                Fp8Overflow::Saturate => Overflow::Saturate,
            },
        }
    }
}

/// A data type as an element in memory.
pub trait Element {
    /// The bytes of one element.
    type Raw: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Copy + 'static;

    /// The value as fp32, the nearest if it has none.
    fn load(raw: Self::Raw) -> f32;
    /// The nearest value of the type. An integer type's nearest value is also what is out of its
    /// range; NaN is its 0.
    fn store(value: f32, overflow: Overflow) -> Self::Raw;
    /// One of the two values around `value`, the nearer one more often.
    fn store_stochastic(value: f32, overflow: Overflow, random: u32) -> Self::Raw;
}

/// fp32, and fp32r, which has its layout and its values: modelled (C).
pub struct Fp32;

impl Element for Fp32 {
    type Raw = U32;

    #[inline(always)]
    fn load(raw: U32) -> f32 {
        f32::from_bits(raw.get())
    }

    #[inline(always)]
    fn store(value: f32, _: Overflow) -> U32 {
        U32::new(quiet(value).to_bits())
    }

    #[inline(always)]
    fn store_stochastic(value: f32, overflow: Overflow, _: u32) -> U32 {
        Fp32::store(value, overflow)
    }
}

/// The native type of the same bytes.
macro_rules! native {
    (U16) => {
        u16
    };
    ($raw:ident) => {
        $raw
    };
}

/// Codes of a format shorter than fp32: `raw` holds one, `overflow` says what happens to numbers
/// too large for it.
macro_rules! float_elements {
    ($($format:ident in $raw:ident, |$given:ident| $overflow:expr;)*) => {$(
        impl Element for $format {
            type Raw = $raw;

            #[inline(always)]
            fn load(raw: $raw) -> f32 {
                decode::<$format>(u32::from(raw))
            }

            #[inline(always)]
            fn store(value: f32, $given: Overflow) -> $raw {
                $raw::from(encode::<$format>(value, $overflow) as native!($raw))
            }

            #[inline(always)]
            fn store_stochastic(value: f32, $given: Overflow, random: u32) -> $raw {
                let code = encode_stochastic::<$format>(value, $overflow, random);
                $raw::from(code as native!($raw))
            }
        }
    )*};
}

float_elements! {
    Bfloat16 in U16, |_given| Overflow::Special;
    Fp16 in U16, |_given| Overflow::Special;
    E3m4 in u8, |given| given;
    E4m3 in u8, |given| given;
    E4m3Ocp in u8, |given| given;
    E5m2 in u8, |given| given;
}

/// An integer type, which is also a type to accumulate in.
pub trait Integer: Element {
    /// The value.
    type Value: Copy + Default + Ord;

    /// The value of an element.
    fn get(raw: Self::Raw) -> Self::Value;
    /// The element of a value.
    fn put(value: Self::Value) -> Self::Raw;
    /// Two's complement sum, wrapping around.
    fn sum(a: Self::Value, b: Self::Value) -> Self::Value;
}

/// The nearest integer of a type of up to 32 bits.
macro_rules! nearest_32 {
    ($value:expr, $type:ident) => {{
        let lowest = ($type::MIN as i64).unsigned_abs() as u32;
        nearest($value, lowest, $type::MAX as u32) as $type
    }};
}

/// The nearest integer of a longer type.
macro_rules! nearest_64 {
    ($value:expr, $type:ident) => {
        $value.round_ties_even() as $type
    };
}

/// The integer nearest to the value, even if two are, between `-lowest` and `highest`; 0 for NaN. What
/// a cast does, but in operations that exist on vectors.
#[inline(always)]
fn nearest(value: f32, lowest: u32, highest: u32) -> u32 {
    const MANTISSA_BITS: u32 = 23;
    /// Exponent field of 2^23, from which on every fp32 is an integer.
    const WHOLE: u32 = 127 + MANTISSA_BITS;
    const MANTISSA: u32 = (1 << MANTISSA_BITS) - 1;
    let magnitude = value.abs();
    let bits = magnitude.to_bits();
    let exponent = bits >> MANTISSA_BITS;
    // Adding 2^23 rounds to an integer and leaves it in the low bits.
    let whole = (1u32 << MANTISSA_BITS) as f32;
    let small = (magnitude + whole).to_bits().wrapping_sub(whole.to_bits());
    let large = (bits & MANTISSA | 1 << MANTISSA_BITS) << exponent.saturating_sub(WHOLE).min(8);
    let integer = if exponent < WHOLE { small } else { large };
    let integer = if exponent > WHOLE + 8 {
        u32::MAX
    } else {
        integer
    };
    let integer = if value.is_nan() { 0 } else { integer };
    if value.is_sign_negative() {
        integer.min(lowest).wrapping_neg()
    } else {
        integer.min(highest)
    }
}

macro_rules! integer_elements {
    ($($(#[$doc:meta])* $element:ident: $value:ident in $raw:ident, $nearest:ident;)*) => {$(
        $(#[$doc])*
        pub struct $element;

        impl Element for $element {
            type Raw = $raw;

            #[inline(always)]
            fn load(raw: $raw) -> f32 {
                <$element as Integer>::get(raw) as f32
            }

            #[inline(always)]
            fn store(value: f32, _: Overflow) -> $raw {
                <$element as Integer>::put($nearest!(value, $value))
            }

            #[inline(always)]
            fn store_stochastic(value: f32, _: Overflow, random: u32) -> $raw {
                <$element as Integer>::put(round_stochastic(value, random) as $value)
            }
        }

        impl Integer for $element {
            type Value = $value;

            #[inline(always)]
            fn get(raw: $raw) -> $value {
                <$value>::from_le_bytes(zerocopy::transmute!(raw))
            }

            #[inline(always)]
            fn put(value: $value) -> $raw {
                zerocopy::transmute!(value.to_le_bytes())
            }

            #[inline(always)]
            fn sum(a: $value, b: $value) -> $value {
                a.wrapping_add(b)
            }
        }
    )*};
}

integer_elements! {
    /// 8-bit signed.
    Int8: i8 in u8, nearest_32;
    /// 8-bit unsigned.
    Uint8: u8 in u8, nearest_32;
    /// 16-bit signed.
    Int16: i16 in U16, nearest_32;
    /// 16-bit unsigned.
    Uint16: u16 in U16, nearest_32;
    /// 32-bit signed.
    Int32: i32 in U32, nearest_32;
    /// 32-bit unsigned.
    Uint32: u32 in U32, nearest_32;
    /// 64-bit signed.
    Int64: i64 in U64, nearest_64;
    /// 64-bit unsigned.
    Uint64: u64 in U64, nearest_64;
}

/// One of the two whole numbers around the value, the nearer one more often.
#[inline(always)]
fn round_stochastic(value: f32, random: u32) -> f32 {
    let below = value.floor();
    // Exact, and less than 1.
    let share = f64::from(value - below) * f64::from(1u32 << 16) * f64::from(1u32 << 16);
    below + f32::from(u8::from(f64::from(random) < share))
}

/// Evaluates an expression for the element type of a data type.
macro_rules! with_element {
    ($dtype:expr, $fp8:expr, $element:ident => $body:expr) => {{
        use $crate::device::compute::{element, float};
        macro_rules! of {
            ($type:ty) => {{
                type $element = $type;
                $body
            }};
        }
        match $dtype {
            DType::Fp32 | DType::Fp32r => of!(element::Fp32),
            DType::Bfloat16 => of!(float::Bfloat16),
            DType::Fp16 => of!(float::Fp16),
            DType::Fp8E3 => of!(float::E3m4),
            DType::Fp8E4 if $fp8.ocp_e4m3 => of!(float::E4m3Ocp),
            DType::Fp8E4 => of!(float::E4m3),
            DType::Fp8E5 => of!(float::E5m2),
            DType::Int8 => of!(element::Int8),
            DType::Uint8 => of!(element::Uint8),
            DType::Int16 => of!(element::Int16),
            DType::Uint16 => of!(element::Uint16),
            DType::Int32 => of!(element::Int32),
            DType::Uint32 => of!(element::Uint32),
            DType::Int64 => of!(element::Int64),
            DType::Uint64 => of!(element::Uint64),
        }
    }};
}

pub(super) use with_element;
