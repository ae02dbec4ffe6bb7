//! Conversions between data types, against NumPy and ml_dtypes: all codes of every type of up to 16
//! bits, and what is around every rounding boundary.

use crate::vectors::{assert_elements, dtype, reduce, sections};
use std::collections::BTreeMap;
use udma_sim::desc::DType;
use udma_sim::device::compute::{Fp8, Overflow, Reduction};

const SHORT: [&str; 6] = [
    "bfloat16",
    "fp16",
    "fp8_e3",
    "fp8_e4",
    "fp8_e4_ocp",
    "fp8_e5",
];
const INTEGERS: [&str; 8] = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
];

/// Checks a cast between two types by name.
fn check(sections: &BTreeMap<String, Vec<u8>>, from: &str, to: &str, input: &[u8], expected: &str) {
    let ((from_dtype, a), (to_dtype, b)) = (dtype(from), dtype(to));
    let fp8 = Fp8 {
        ocp_e4m3: a.ocp_e4m3 || b.ocp_e4m3,
        overflow: Overflow::Special,
    };
    let got = reduce(&Reduction::cast(from_dtype, to_dtype, fp8), input);
    let what = format!("{from} to {to}");
    let size = to_dtype.bytes() as usize;
    assert_elements(&what, size, input, &got, &sections[expected]);
}

/// Every code of a type, in order.
fn all_codes(dtype: DType) -> Vec<u8> {
    match dtype.bytes() {
        1 => (0..=u8::MAX).collect(),
        _ => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
    }
}

#[test]
fn every_code_of_every_short_type_converts() {
    let sections = sections("casts.gz");
    let mut pairs = 0;
    for from in SHORT {
        let codes = all_codes(dtype(from).0);
        for to in SHORT.into_iter().chain(["fp32"]) {
            // One control decides for both sides, so the two flavours of E4M3 never meet.
            if from == to || [from, to].iter().all(|name| name.starts_with("fp8_e4")) {
                continue;
            }
            check(&sections, from, to, &codes, &format!("{from} {to}"));
            pairs += 1;
        }
    }
    assert_eq!(pairs, 6 * 6 - 2);
}

#[test]
fn values_around_every_rounding_boundary_round_to_nearest_even() {
    let sections = sections("casts.gz");
    for to in SHORT {
        let input = &sections[&format!("midpoints {to}")];
        check(
            &sections,
            "fp32",
            to,
            input,
            &format!("midpoints {to} rounded"),
        );
        let mut negative = input.clone();
        negative
            .iter_mut()
            .skip(3)
            .step_by(4)
            .for_each(|byte| *byte ^= 0x80);
        check(
            &sections,
            "fp32",
            to,
            &negative,
            &format!("midpoints {to} rounded negative"),
        );
    }
}

#[test]
fn floats_at_the_edges_convert_to_everything() {
    let sections = sections("casts.gz");
    for to in SHORT.into_iter().chain(["fp32"]).chain(INTEGERS) {
        check(
            &sections,
            "fp32",
            to,
            &sections["floats"],
            &format!("floats {to}"),
        );
    }
}

#[test]
fn integers_convert_to_the_nearest_fp32() {
    let sections = sections("casts.gz");
    for from in INTEGERS {
        let input = &sections[&format!("integers {from}")];
        check(
            &sections,
            from,
            "fp32",
            input,
            &format!("integers {from} fp32"),
        );
    }
}

#[test]
fn a_code_survives_the_way_through_fp32() {
    for name in SHORT {
        let (dtype, fp8) = dtype(name);
        let codes = all_codes(dtype);
        let got = reduce(&Reduction::cast(dtype, dtype, fp8), &codes);
        let size = dtype.bytes() as usize;
        for (code, got) in codes.chunks(size).zip(got.chunks(size)) {
            let wide = reduce(&Reduction::cast(dtype, DType::Fp32, fp8), code);
            let value = f32::from_le_bytes(wide.try_into().unwrap());
            assert!(value.is_nan() || code == got, "{name} {code:02x?}");
        }
    }
}

#[test]
fn half_agrees_with_the_crate_of_that_name() {
    let codes = all_codes(DType::Fp16);
    for (dtype, widen) in [
        (
            DType::Fp16,
            (|code| half::f16::from_bits(code).to_f32()) as fn(u16) -> f32,
        ),
        (DType::Bfloat16, |code| half::bf16::from_bits(code).to_f32()),
    ] {
        let got = reduce(&Reduction::cast(dtype, DType::Fp32, Fp8::DEFAULT), &codes);
        for (code, got) in (0..=u16::MAX).zip(got.chunks(4)) {
            let got = f32::from_le_bytes(got.try_into().unwrap());
            let expected = widen(code);
            assert!(
                got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(),
                "{} {code:#06x}: {got} and {expected}",
                dtype.name()
            );
        }
    }
}

#[test]
fn fp32r_has_the_values_of_fp32() {
    let codes = all_codes(DType::Fp16);
    let wide = reduce(
        &Reduction::cast(DType::Fp16, DType::Fp32, Fp8::DEFAULT),
        &codes,
    );
    for (from, to) in [(DType::Fp32, DType::Fp32r), (DType::Fp32r, DType::Fp32)] {
        assert_eq!(
            reduce(&Reduction::cast(from, to, Fp8::DEFAULT), &wide),
            wide
        );
    }
}

/// What becomes of one fp32.
fn to_fp8(dtype: DType, fp8: Fp8, value: f32) -> u8 {
    reduce(
        &Reduction::cast(DType::Fp32, dtype, fp8),
        &value.to_le_bytes(),
    )[0]
}

#[test]
fn saturation_keeps_fp8_finite() {
    let saturating = Fp8 {
        ocp_e4m3: false,
        overflow: Overflow::Saturate,
    };
    let ocp = Fp8 {
        ocp_e4m3: true,
        ..saturating
    };
    for (dtype, fp8, largest, code) in [
        (DType::Fp8E3, saturating, 15.5, 0x6f),
        (DType::Fp8E4, saturating, 240.0, 0x77),
        (DType::Fp8E4, ocp, 448.0, 0x7e),
        (DType::Fp8E5, saturating, 57344.0, 0x7b),
    ] {
        for value in [largest, largest * 1.5, 1e30, f32::INFINITY] {
            assert_eq!(to_fp8(dtype, fp8, value), code, "{dtype:?} {value}");
            assert_eq!(
                to_fp8(dtype, fp8, -value),
                code | 0x80,
                "{dtype:?} -{value}"
            );
        }
        let nan = to_fp8(dtype, fp8, f32::NAN);
        assert!(nan > code, "{dtype:?}: NaN stays NaN, not {nan:#x}");
    }
}

#[test]
fn golden_codes() {
    use DType::{Fp8E3, Fp8E4, Fp8E5};
    for (dtype, value, code) in [
        (Fp8E3, 1.0, 0x30),
        (Fp8E3, 15.5, 0x6f),
        (Fp8E3, 15.75, 0x70), // infinity
        (Fp8E3, 1.0 / 64.0, 0x01),
        (Fp8E3, 1.0 / 128.0, 0x00),
        (Fp8E4, 1.0, 0x38),
        (Fp8E4, 240.0, 0x77),
        (Fp8E4, 248.0, 0x78), // infinity
        (Fp8E4, -0.0, 0x80),
        (Fp8E5, 1.0, 0x3c),
        (Fp8E5, 57344.0, 0x7b),
        (Fp8E5, 61440.0, 0x7c), // infinity
        (Fp8E5, -1.5, 0xbe),
        (Fp8E5, f32::NAN, 0x7e),
        (Fp8E5, -f32::NAN, 0x7e),
    ] {
        let got = to_fp8(dtype, Fp8::DEFAULT, value);
        assert_eq!(got, code, "{dtype:?} {value}: {got:#x}");
    }
}
