//! Reductions against NumPy, and against a scalar loop written for clarity.

use crate::vectors::{assert_elements, dtype, reduce, sections};
use proptest::prelude::*;
use udma_sim::desc::DType;
use udma_sim::device::compute::{Constant, Extreme, Fma, Fold, Fp8, Operand, Overflow, Reduction};

#[test]
fn reductions_agree_with_numpy() {
    let sections = sections("reductions.gz");
    let mut cases = 0;
    for (name, result) in &sections {
        let Some(name) = name.strip_suffix(" result") else {
            continue;
        };
        let words: Vec<&str> = name.split(' ').collect();
        let [op, count, in_name, acc_name, out_name] = words[..] else {
            panic!("{name}");
        };
        let sources = count.parse().unwrap();
        let scales = &sections[&format!("{name} scales")];
        let scales = scales
            .chunks(4)
            .map(|raw| f32::from_le_bytes(raw.try_into().unwrap()));
        let extreme = |extreme| Fold::Extreme {
            extreme,
            sources,
            constants: vec![],
        };
        let reduction = Reduction {
            in_dtype: dtype(in_name).0,
            acc_dtype: dtype(acc_name).0,
            out_dtype: dtype(out_name).0,
            fp8: Fp8::DEFAULT,
            fold: match op {
                "add" => Fold::Add { sources },
                "min" => extreme(Extreme::Min),
                "max" => extreme(Extreme::Max),
                "fma" => Fold::Fma(scales.map(Fma::scaled).collect()),
                op => panic!("{op}"),
            },
        };
        let got = reduce(&reduction, &sections[&format!("{name} sources")]);
        let size = reduction.out_dtype.bytes() as usize;
        assert_elements(name, size, result, &got, result);
        cases += 1;
    }
    assert_eq!(cases, 22);
}

/// One element through a cast.
fn convert(from: DType, to: DType, fp8: Fp8, element: &[u8]) -> Vec<u8> {
    reduce(&Reduction::cast(from, to, fp8), element)
}

fn to_f32(dtype: DType, fp8: Fp8, element: &[u8]) -> f32 {
    let wide = convert(dtype, DType::Fp32, fp8, element);
    f32::from_le_bytes(wide.try_into().unwrap())
}

fn is_integer(dtype: DType) -> bool {
    dtype.name().contains("int")
}

fn to_integer(dtype: DType, element: &[u8]) -> i128 {
    let mut wide = [0; 16];
    wide[..element.len()].copy_from_slice(element);
    let value = i128::from_le_bytes(wide);
    let above = 128 - 8 * element.len();
    if dtype.name().starts_with('u') {
        value
    } else {
        value << above >> above
    }
}

/// The reduction of one element of every source, step by step.
fn reference(reduction: &Reduction, elements: &[&[u8]]) -> Vec<u8> {
    let fp8 = reduction.fp8;
    let acc_dtype = reduction.acc_dtype;
    let width = acc_dtype.bytes() as usize;
    let in_acc = |element: &&[u8]| {
        if reduction.in_dtype == acc_dtype && is_integer(acc_dtype) {
            element.to_vec()
        } else {
            convert(reduction.in_dtype, acc_dtype, fp8, element)
        }
    };
    let fold = |acc: &[u8], value: &[u8], source: usize| -> Vec<u8> {
        if let Fold::Fma(steps) = &reduction.fold {
            let (acc, value) = (to_f32(acc_dtype, fp8, acc), to_f32(acc_dtype, fp8, value));
            let step = steps[source];
            let pick = |operand| match operand {
                Operand::Accumulator => acc,
                Operand::Source => value,
                Operand::Scale => step.scale,
            };
            let result = pick(step.a).mul_add(pick(step.b), pick(step.c));
            return convert(DType::Fp32, acc_dtype, fp8, &result.to_le_bytes());
        }
        if is_integer(acc_dtype) {
            let (a, b) = (to_integer(acc_dtype, acc), to_integer(acc_dtype, value));
            let result = match &reduction.fold {
                Fold::Extreme {
                    extreme: Extreme::Min,
                    ..
                } => a.min(b),
                Fold::Extreme { .. } => a.max(b),
                _ => a + b,
            };
            return result.to_le_bytes()[..width].to_vec();
        }
        let (a, b) = (to_f32(acc_dtype, fp8, acc), to_f32(acc_dtype, fp8, value));
        let less = a < b || a == b && a.is_sign_negative();
        let result = match &reduction.fold {
            Fold::Add { .. } => a + b,
            _ if a.is_nan() || b.is_nan() => f32::NAN,
            Fold::Extreme { extreme, .. } if less == (*extreme == Extreme::Min) => a,
            _ => b,
        };
        convert(DType::Fp32, acc_dtype, fp8, &result.to_le_bytes())
    };
    let mut values = elements.iter().map(in_acc).enumerate();
    let start = match &reduction.fold {
        Fold::Fma(_) => vec![0; width],
        _ => values.next().unwrap().1,
    };
    let mut acc = values.fold(start, |acc, (source, value)| fold(&acc, &value, source));
    if let Fold::Extreme { constants, .. } = &reduction.fold {
        for constant in constants {
            let bytes = &constant.bytes[..constant.dtype.bytes() as usize];
            let value = match constant.dtype == acc_dtype && is_integer(acc_dtype) {
                true => bytes.to_vec(),
                false => convert(constant.dtype, acc_dtype, fp8, bytes),
            };
            acc = fold(&acc, &value, 0);
        }
    }
    match acc_dtype == reduction.out_dtype && is_integer(acc_dtype) {
        true => acc,
        false => convert(acc_dtype, reduction.out_dtype, fp8, &acc),
    }
}

fn assert_as_reference(reduction: &Reduction, sources: &[u8]) {
    let got = reduce(reduction, sources);
    let (size_in, size_out) = (
        reduction.in_dtype.bytes() as usize,
        reduction.out_dtype.bytes() as usize,
    );
    let source_bytes = sources.len() / reduction.source_count();
    for (index, got) in got.chunks(size_out).enumerate() {
        let elements: Vec<&[u8]> = sources
            .chunks(source_bytes)
            .map(|source| &source[index * size_in..][..size_in])
            .collect();
        let expected = reference(reduction, &elements);
        assert_eq!(
            got, expected,
            "{reduction:?}, element {index}: {elements:02x?}"
        );
    }
}

fn any_dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::all().collect::<Vec<_>>())
}

fn any_fp8() -> impl Strategy<Value = Fp8> {
    (any::<bool>(), any::<bool>()).prop_map(|(ocp_e4m3, saturate)| Fp8 {
        ocp_e4m3,
        overflow: if saturate {
            Overflow::Saturate
        } else {
            Overflow::Special
        },
    })
}

fn any_fma() -> impl Strategy<Value = Fma> {
    let operand = prop::sample::select(vec![Operand::Accumulator, Operand::Source, Operand::Scale]);
    let scale = prop_oneof![-4.0f32..4.0, any::<f32>()];
    ([operand.clone(), operand.clone(), operand], scale).prop_map(|([a, b, c], scale)| Fma {
        a,
        b,
        c,
        scale,
    })
}

fn any_fold(sources: usize) -> impl Strategy<Value = Fold> {
    let extreme = prop::sample::select(vec![Extreme::Min, Extreme::Max]);
    let constant =
        (any_dtype(), any::<[u8; 8]>()).prop_map(|(dtype, bytes)| Constant { dtype, bytes });
    let constants = prop::collection::vec(constant, 0..3);
    prop_oneof![
        Just(Fold::Add { sources }),
        (extreme, constants).prop_map(move |(extreme, constants)| Fold::Extreme {
            extreme,
            sources,
            constants
        }),
        prop::collection::vec(any_fma(), sources).prop_map(Fold::Fma),
        prop::collection::vec((-2.0f32..2.0).prop_map(Fma::scaled), sources).prop_map(Fold::Fma),
    ]
}

fn any_reduction() -> impl Strategy<Value = (Reduction, Vec<u8>)> {
    (any_dtype(), any_dtype(), any_dtype(), any_fp8(), 1usize..6)
        .prop_flat_map(|(in_dtype, acc_dtype, out_dtype, fp8, sources)| {
            any_fold(sources).prop_map(move |fold| Reduction {
                in_dtype,
                acc_dtype,
                out_dtype,
                fp8,
                fold,
            })
        })
        .prop_flat_map(|reduction| {
            let elements = 37;
            let bytes = elements * reduction.source_count() * reduction.in_dtype.bytes() as usize;
            (Just(reduction), prop::collection::vec(any::<u8>(), bytes))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_reduction_does_what_its_steps_do((reduction, sources) in any_reduction()) {
        assert_as_reference(&reduction, &sources);
    }
}

#[test]
fn chunks_join_without_a_seam() {
    for elements in [1, 1023, 1024, 1025, 2049] {
        let sources: Vec<u8> = (0..3 * 2 * elements)
            .map(|n: usize| (n * 31 % 251) as u8)
            .collect();
        let reduction = Reduction {
            in_dtype: DType::Bfloat16,
            acc_dtype: DType::Fp32,
            out_dtype: DType::Fp16,
            fp8: Fp8::DEFAULT,
            fold: Fold::Add { sources: 3 },
        };
        assert_as_reference(&reduction, &sources);
        let integers = Reduction {
            acc_dtype: DType::Int16,
            out_dtype: DType::Int16,
            in_dtype: DType::Int16,
            ..reduction
        };
        assert_as_reference(&integers, &sources);
    }
}

/// The only element of a reduction of single elements.
fn one(fold: Fold, values: &[f32]) -> u32 {
    let reduction = Reduction {
        in_dtype: DType::Fp32,
        acc_dtype: DType::Fp32,
        out_dtype: DType::Fp32,
        fp8: Fp8::DEFAULT,
        fold,
    };
    let sources: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    u32::from_le_bytes(reduce(&reduction, &sources).try_into().unwrap())
}

#[test]
fn zeros_and_nans() {
    let add = |values: &[f32]| {
        one(
            Fold::Add {
                sources: values.len(),
            },
            values,
        )
    };
    let extreme = |extreme, values: &[f32]| {
        let fold = Fold::Extreme {
            extreme,
            sources: values.len(),
            constants: vec![],
        };
        one(fold, values)
    };
    let (nan, negative_zero) = (0x7fc0_0000, 0x8000_0000);
    let payload = f32::from_bits(0xff80_1234);
    // A single source is a cast: it keeps its zero's sign. NaN loses sign and payload.
    assert_eq!(add(&[-0.0]), negative_zero);
    assert_eq!(add(&[payload]), nan);
    assert_eq!(add(&[-0.0, -0.0]), negative_zero);
    assert_eq!(add(&[-0.0, 0.0]), 0);
    assert_eq!(add(&[f32::INFINITY, f32::NEG_INFINITY]), nan);
    assert_eq!(add(&[1.0, payload, 1.0]), nan);
    for values in [[0.0, -0.0], [-0.0, 0.0]] {
        assert_eq!(extreme(Extreme::Min, &values), negative_zero);
        assert_eq!(extreme(Extreme::Max, &values), 0);
    }
    for values in [[payload, 1.0], [1.0, payload]] {
        assert_eq!(extreme(Extreme::Min, &values), nan);
        assert_eq!(extreme(Extreme::Max, &values), nan);
    }
    // An FMA starts from +0, so that a single -0 does not survive.
    assert_eq!(one(Fold::Fma(vec![Fma::scaled(1.0)]), &[-0.0]), 0);
    // Subnormals take part.
    assert_eq!(add(&[f32::from_bits(1), f32::from_bits(2)]), 3);
}

#[test]
fn an_fma_rounds_once() {
    // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: the last term survives only in a fused step.
    let value = 1.0 + 2.0f32.powi(-12);
    let square = |c| Fma {
        a: Operand::Source,
        b: Operand::Scale,
        c,
        scale: value,
    };
    let minus = Fma {
        a: Operand::Source,
        b: Operand::Scale,
        c: Operand::Accumulator,
        scale: 1.0,
    };
    let fold = Fold::Fma(vec![minus, square(Operand::Accumulator)]);
    let got = f32::from_bits(one(fold, &[-(1.0 + 2.0f32.powi(-11)), value]));
    assert_eq!(got, 2.0f32.powi(-24));
}

#[test]
fn integer_sums_wrap_and_conversions_saturate() {
    let run = |in_dtype, acc_dtype, out_dtype, sources: &[u8]| {
        let reduction = Reduction {
            in_dtype,
            acc_dtype,
            out_dtype,
            fp8: Fp8::DEFAULT,
            fold: Fold::Add { sources: 2 },
        };
        reduce(&reduction, sources)
    };
    use DType::{Int8, Int32, Uint8};
    assert_eq!(run(Int8, Int8, Int8, &[100, 100]), [200]);
    assert_eq!(run(Int8, Int32, Int8, &[100, 100]), [127]);
    assert_eq!(run(Uint8, Uint8, Uint8, &[200, 100]), [44]);
    assert_eq!(run(Uint8, Int32, Uint8, &[200, 100]), [255]);
    assert_eq!(run(Int8, Int32, Uint8, &[0x80, 0x80]), [0]);
}
