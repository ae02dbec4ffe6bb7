//! Floating-point formats shorter than fp32: one codec for all of them, generic over the widths of
//! exponent and mantissa.
//!
//! Encoding differs from decoding's inverse only in what it adds before it cuts bits off: half a unit
//! for round to nearest even, a random part of a unit for stochastic rounding. Everything is selects
//! and shifts, so that loops over slices vectorise.

/// Bits of fp32's mantissa.
const F32_MANTISSA: u32 = 23;
/// Exponent bias of fp32.
const F32_BIAS: u32 = 127;
/// Bits of an fp32 without its sign.
const F32_MAGNITUDE: u32 = 0x7fff_ffff;
/// Magnitude of fp32's infinity; what is above is NaN.
const F32_INFINITY: u32 = 0x7f80_0000;
/// fp32's quiet NaN, positive and without payload.
const F32_NAN: u32 = 0x7fc0_0000;

/// A format of 1 sign bit, `EXPONENT` and `MANTISSA` bits.
pub trait Format {
    /// Bits of the exponent.
    const EXPONENT: u32;
    /// Bits of the mantissa.
    const MANTISSA: u32;
    /// Whether the largest exponent holds infinity and NaNs, as IEEE 754 has it. If not, it holds
    /// numbers, and only the code of all ones is NaN.
    const IEEE: bool = true;

    /// Bits without the sign.
    const WIDTH: u32 = Self::EXPONENT + Self::MANTISSA;
    /// Exponent bias.
    const BIAS: u32 = (1 << (Self::EXPONENT - 1)) - 1;
    /// Every bit but the sign.
    const MAGNITUDE: u32 = (1 << Self::WIDTH) - 1;
    /// Lowest code that is no finite number: infinity, or the only NaN.
    const SPECIAL: u32 = if Self::IEEE {
        ((1 << Self::EXPONENT) - 1) << Self::MANTISSA
    } else {
        Self::MAGNITUDE
    };
    /// The quiet NaN, positive and without payload.
    const NAN: u32 = if Self::IEEE {
        Self::SPECIAL | 1 << (Self::MANTISSA - 1)
    } else {
        Self::MAGNITUDE
    };
}

/// bfloat16.
pub struct Bfloat16;
/// IEEE half precision.
pub struct Fp16;
/// fp8 with 3 exponent bits.
pub struct E3m4;
/// fp8 with 4 exponent bits, infinity and NaNs as IEEE 754 has them.
pub struct E4m3;
/// fp8 with 4 exponent bits as the OCP specification has it: no infinity, one NaN.
pub struct E4m3Ocp;
/// fp8 with 5 exponent bits.
pub struct E5m2;

impl Format for Bfloat16 {
    const EXPONENT: u32 = 8;
    const MANTISSA: u32 = 7;
}

impl Format for Fp16 {
    const EXPONENT: u32 = 5;
    const MANTISSA: u32 = 10;
}

impl Format for E3m4 {
    const EXPONENT: u32 = 3;
    const MANTISSA: u32 = 4;
}

impl Format for E4m3 {
    const EXPONENT: u32 = 4;
    const MANTISSA: u32 = 3;
}

impl Format for E4m3Ocp {
    const EXPONENT: u32 = 4;
    const MANTISSA: u32 = 3;
    const IEEE: bool = false;
}

impl Format for E5m2 {
    const EXPONENT: u32 = 5;
    const MANTISSA: u32 = 2;
}

/// The value of a code, exactly. A NaN keeps its payload.
#[inline(always)]
pub fn decode<F: Format>(code: u32) -> f32 {
    let sign = code >> F::WIDTH << 31;
    let magnitude = code & F::MAGNITUDE;
    let widened = magnitude << (F32_MANTISSA - F::MANTISSA);
    if F::BIAS == F32_BIAS {
        return f32::from_bits(widened | sign);
    }
    // Read as fp32 the code has the wrong bias; a power of two sets it right, subnormals included.
    let unbias = f32::from_bits((2 * F32_BIAS - F::BIAS) << F32_MANTISSA);
    let number = (f32::from_bits(widened) * unbias).to_bits();
    let special = if magnitude < F::SPECIAL {
        0
    } else {
        F32_INFINITY
    };
    f32::from_bits(number | special | sign)
}

/// What happens to a number too large for the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// It becomes infinity; NaN where there is no infinity.
    Special,
    /// It becomes the largest finite number, and so does infinity.
    Saturate,
}

/// An fp32 with the quiet NaN for every NaN. What NaN arithmetic yields depends on the machine.
#[inline(always)]
pub fn quiet(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & F32_MAGNITUDE > F32_INFINITY {
        F32_NAN
    } else {
        bits
    })
}

/// The nearest code; of two equally near ones the even one.
#[inline(always)]
pub fn encode<F: Format>(value: f32, overflow: Overflow) -> u32 {
    encode_with::<F>(value, overflow, |significand, cut| {
        // Nothing is left of 24 bits when more than 25 go.
        let cut = cut.min(25);
        let addend = (1 << (cut - 1)) - 1 + (significand >> cut & 1);
        significand.wrapping_add(addend) >> cut
    })
}

/// One of the two codes around the value: the chance of each is its nearness to it, in steps of
/// 2^-32, for a uniformly random `random`.
#[inline(always)]
pub fn encode_stochastic<F: Format>(value: f32, overflow: Overflow, random: u32) -> u32 {
    encode_with::<F>(value, overflow, |significand, cut| {
        let fixed_point = u64::from(significand) << 32 >> cut.min(63);
        ((fixed_point + u64::from(random)) >> 32) as u32
    })
}

/// Encodes with `round(significand, cut)`, which takes `cut` bits off a significand.
#[inline(always)]
fn encode_with<F: Format>(value: f32, overflow: Overflow, round: impl Fn(u32, u32) -> u32) -> u32 {
    let bits = value.to_bits();
    let cut = F32_MANTISSA - F::MANTISSA;
    if F::BIAS == F32_BIAS {
        // Nothing to shift, nothing that is too large or too small: sign, exponent and mantissa round
        // as one, a carry out of the mantissa being a step of the exponent.
        let code = round(bits, cut);
        return if value.is_nan() { F::NAN } else { code };
    }
    let sign = bits >> 31 << F::WIDTH;
    let magnitude = bits & F32_MAGNITUDE;
    let rebias = F32_BIAS - F::BIAS;
    let exponent = magnitude >> F32_MANTISSA;
    // A number below the smallest normal one of the format loses its exponent and more bits for it.
    let normal = exponent > rebias;
    let significand = if normal {
        magnitude
    } else {
        magnitude & ((1 << F32_MANTISSA) - 1) | 1 << F32_MANTISSA
    };
    let denormal_cut = cut + (rebias + 1).saturating_sub(exponent);
    let rounded = round(significand, if normal { cut } else { denormal_cut });
    let code = rounded - if normal { rebias << F::MANTISSA } else { 0 };
    let largest = F::SPECIAL - u32::from(overflow == Overflow::Saturate);
    let code = code.min(largest);
    // Where there is no infinity, what is too large is NaN.
    if value.is_nan() || code == F::NAN {
        F::NAN
    } else {
        code | sign
    }
}
