//! Stochastic rounding: unbiased, within stated confidence, and never further than a neighbour.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use udma_sim::desc::DType;
use udma_sim::device::compute::{Fp8, Reduction};
use udma_sim::sim::stream;

/// Draws of one experiment.
const DRAWS: usize = 100_000;
/// Standard deviations that a mean may be off: a chance of 6e-5 for a wrong alarm, and the streams are
/// fixed.
const SIGMAS: f64 = 4.0;

/// Rounds fp32 values to a type and back.
fn round(values: &[f32], to: DType, random: Option<&mut ChaCha8Rng>) -> Vec<f64> {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let narrow = Reduction::cast(DType::Fp32, to, Fp8::DEFAULT);
    let mut codes = vec![0; narrow.result_bytes(bytes.len())];
    narrow.run(&bytes, random, &mut codes);
    let wide = Reduction::cast(to, DType::Fp32, Fp8::DEFAULT);
    let mut back = vec![0; wide.result_bytes(codes.len())];
    wide.run(&codes, None, &mut back);
    back.chunks(4)
        .map(|raw| f32::from_le_bytes(raw.try_into().unwrap()).into())
        .collect()
}

/// Checks that many roundings of `value`, which lies between two neighbours of the type, yield only
/// those and `value` on average.
fn check(to: DType, value: f32, below: f64, above: f64) {
    let mut random = stream(7, to.name());
    let rounded = round(&vec![value; DRAWS], to, Some(&mut random));
    assert!(
        rounded
            .iter()
            .all(|rounded| [below, above].contains(rounded)),
        "{} {value}: neither {below} nor {above}",
        to.name()
    );
    let share = (f64::from(value) - below) / (above - below);
    let ups = rounded.iter().filter(|rounded| **rounded == above).count() as f64;
    let expected = share * DRAWS as f64;
    let sigma = (expected * (1.0 - share)).sqrt().max(1.0);
    assert!(
        (ups - expected).abs() < SIGMAS * sigma,
        "{} {value}: up {ups} times of {DRAWS}, expected {expected}",
        to.name()
    );
}

#[test]
fn the_chance_of_a_neighbour_is_its_nearness() {
    use DType::*;
    for (to, value, below, above) in [
        (Bfloat16, 1.0 + 0.3 / 128.0, 1.0, 1.0 + 1.0 / 128.0),
        (Bfloat16, -(1.0 + 0.9 / 128.0), -1.0, -(1.0 + 1.0 / 128.0)),
        (Fp16, 1000.1, 1000.0, 1000.5),
        // Below the smallest subnormal of fp16: to 0 or to 2^-24.
        (Fp16, 2.0f32.powi(-26), 0.0, 2.0f64.powi(-24)),
        (Fp16, 2.0f32.powi(-33), 0.0, 2.0f64.powi(-24)),
        (Fp8E3, 3.0625, 3.0, 3.125),
        (Fp8E4, 17.0, 16.0, 18.0),
        (Fp8E4, 0.0005, 0.0, 2.0f64.powi(-9)),
        (Fp8E5, -0.9, -0.875, -1.0),
        (Int8, 2.25, 2.0, 3.0),
        (Int8, -2.25, -3.0, -2.0),
        (Uint16, 1000.75, 1000.0, 1001.0),
        (Int32, 0.001, 0.0, 1.0),
    ] {
        check(to, value, below, above);
    }
}

#[test]
fn random_values_are_unbiased_in_the_mean() {
    for to in [
        DType::Bfloat16,
        DType::Fp16,
        DType::Fp8E4,
        DType::Fp8E5,
        DType::Int16,
    ] {
        let mut random = stream(11, to.name());
        let scale = if to == DType::Int16 { 1000.0 } else { 8.0 };
        let values: Vec<f32> = (0..DRAWS)
            .map(|_| (random.next_u32() as f32 / u32::MAX as f32 - 0.5) * scale)
            .collect();
        let rounded = round(&values, to, Some(&mut random));
        let errors = values
            .iter()
            .zip(&rounded)
            .map(|(value, rounded)| rounded - f64::from(*value));
        let (sum, squares) = errors.fold((0.0, 0.0), |(sum, squares), error: f64| {
            (sum + error, squares + error * error)
        });
        assert!(
            sum.abs() < SIGMAS * squares.sqrt(),
            "{}: mean error {} with deviation {}",
            to.name(),
            sum / DRAWS as f64,
            (squares / DRAWS as f64).sqrt()
        );
    }
}

#[test]
fn what_the_type_holds_never_moves() {
    for to in DType::all() {
        let mut random = stream(3, "exact");
        let values = [0.0, 1.0, 2.0, 8.0, 3.0];
        for _ in 0..200 {
            let rounded = round(&values, to, Some(&mut random));
            assert_eq!(rounded, values.map(f64::from), "{}", to.name());
        }
    }
    let mut random = stream(3, "specials");
    let specials = [f32::INFINITY, f32::NEG_INFINITY, 1e30];
    let rounded = round(&specials, DType::Fp8E5, Some(&mut random));
    assert_eq!(rounded, [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY]);
    assert!(round(&[f32::NAN], DType::Fp16, Some(&mut random))[0].is_nan());
}

#[test]
fn the_stream_decides_and_fp32_draws_nothing() {
    let values: Vec<f32> = (0..500).map(|n| n as f32 * 0.013).collect();
    let run = |seed| round(&values, DType::Fp8E4, Some(&mut stream(seed, "queue")));
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    let mut random = stream(1, "queue");
    round(&values, DType::Fp32, Some(&mut random));
    assert_eq!(random.next_u32(), stream(1, "queue").next_u32());
}
