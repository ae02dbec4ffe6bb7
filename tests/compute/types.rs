//! Which data types an op word may name, all of them, and what becomes of the elements; every choice of
//! FMA operands.

use crate::support::{META, bf16, execute, plan_of, ring, setup};
use crate::vectors::reduce;
use udma_sim::arch::Arch;
use udma_sim::desc::{CceRule, DType};
use udma_sim::device::compute::{Fold, Fp8, QueueState, Reason, Reduction, plan};

/// Bytes in which every value of a byte comes up, at several offsets.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 89 + n / 7 * 31) as u8).collect()
}

fn dtype(code: u32) -> Option<DType> {
    DType::all().find(|dtype| u32::from(dtype.code()) == code)
}

/// The op word of an ADD: last, in, out and accumulation dtype by their codes.
fn add(last: bool, in_code: u32, out_code: u32, acc_code: u32) -> u32 {
    0x0200_0000 | u32::from(last) << 7 | in_code << 8 | out_code << 12 | acc_code << 16
}

/// The three nibbles are independent: all 4096 combinations, each executed or refused as the rules say,
/// which are typed here by hand.
#[test]
fn every_combination_of_dtypes_in_a_reduction() {
    let wide = |code| (8..=11).contains(&code);
    let mut legal = 0;
    for (in_code, out_code, acc_code) in (0..4096u32).map(|n| (n & 15, n >> 4 & 15, n >> 8)) {
        let words = [false, true].map(|last| [64, add(last, in_code, out_code, acc_code), 0, 0]);
        let planned = plan(&ring(&words), &setup(Arch::V3));
        // In dtype 0 stands for the out dtype; 11, fp32r, has no size in a reduction.
        let read = if in_code == 0 { out_code } else { in_code };
        let fits = read != 0 && out_code != 0 && acc_code != 0;
        let sized = read != 11 && out_code != 11;
        let what = format!("in {in_code}, out {out_code}, accumulation {acc_code}");
        if !(fits && sized && wide(read) == wide(out_code)) {
            let reason = planned.expect_err(&what).reason;
            let expected = match reason {
                Reason::NoDtype(_) => !fits,
                Reason::Cce(CceRule::Unsized(dtype)) => fits && dtype == DType::Fp32r,
                Reason::Cce(CceRule::Class { .. }) => fits && sized,
                _ => false,
            };
            assert!(expected, "{what}: {reason}");
            continue;
        }
        legal += 1;
        let sources = bytes(128);
        let result = execute(&planned.expect(&what), &sources, &mut QueueState::default());
        let reduction = Reduction {
            in_dtype: dtype(read).unwrap(),
            acc_dtype: dtype(acc_code).unwrap(),
            out_dtype: dtype(out_code).unwrap(),
            fp8: Fp8::DEFAULT,
            fold: Fold::Add { sources: 2 },
        };
        assert_eq!(result, reduce(&reduction, &sources), "{what}");
    }
    // 11 narrow types with each other and 3 wide ones, in dtype 0 beside each, 15 to accumulate in.
    assert_eq!(legal, 15 * (11 * 11 + 3 * 3 + 11 + 3));
}

/// A cast takes every pair of types, and goes through fp32.
#[test]
fn every_pair_of_dtypes_casts_through_fp32() {
    let fp32 =
        |from, bytes: &[u8]| reduce(&Reduction::cast(from, DType::Fp32, Fp8::DEFAULT), bytes);
    for (from, to) in DType::all().flat_map(|from| DType::all().map(move |to| (from, to))) {
        let (in_code, out_code) = (from.code().into(), to.code().into());
        let source = bytes(256);
        let word = add(true, in_code, out_code, 10);
        let plan = plan_of(Arch::V2, &ring(&[[256, word, 0, 0]]));
        let result = execute(&plan, &source, &mut QueueState::default());
        let what = format!("{} to {}", from.name(), to.name());
        if from == to && from.bytes() == 1 {
            assert_eq!(result, source, "{what}: it travels as uint16");
            continue;
        }
        let narrow = Reduction::cast(DType::Fp32, to, Fp8::DEFAULT);
        assert_eq!(result, reduce(&narrow, &fp32(from, &source)), "{what}");
    }
}

/// All 27 choices of the three operands, each for two sources with scales of their own.
#[test]
fn every_choice_of_fma_operands() {
    let sources = [[1.5f32, -2.0, 7.0, 0.25], [3.0, 5.0, -0.5, 11.0]];
    let scales = [0.75f32, -4.0];
    // 16 elements of bfloat16 a source: a multiple of 32 bytes.
    let packed = sources.map(|values| bf16(&values.repeat(4))).concat();
    for selectors in 0..27u32 {
        let [a, b, c] = [selectors % 3, selectors / 3 % 3, selectors / 9];
        let operands = a << 24 | b << 26 | c << 28;
        let mut words = Vec::new();
        for (n, scale) in scales.iter().enumerate() {
            let word = 0x021a_a601 | (n as u32) << 7;
            words.push([META, 0x0400_0000, operands, scale.to_bits()]);
            words.push([32, word, 0x1000, 0]);
        }
        let plan = plan_of(Arch::V3, &ring(&words));
        let result = execute(&plan, &packed, &mut QueueState::default());
        let expected = [0, 1, 2, 3].map(|element| {
            (0..2).fold(0.0f32, |acc, n| {
                // 0 the stored buffer, 1 the input buffer, 2 the scale.
                let pick = |selector| [acc, sources[n][element], scales[n]][selector as usize];
                pick(a) * pick(b) + pick(c)
            })
        });
        assert_eq!(result, bf16(&expected.repeat(4)), "operands {a} {b} {c}");
    }
}
