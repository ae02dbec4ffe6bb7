//! The loops that do the arithmetic. Each is one pass over a chunk that stays in the first-level cache,
//! compiled for the vector instructions of several machines; which of them runs changes no bit.

use super::element::{Element, Integer};
use super::float::Overflow;
use fearless_simd::{Level, Simd, dispatch};
use zerocopy::FromBytes;

/// The elements in some bytes, which are a whole number of them.
pub fn elements<E: Element>(bytes: &[u8]) -> &[E::Raw] {
    <[E::Raw]>::ref_from_bytes(bytes).unwrap_or(&[])
}

/// As [`elements`], to fill.
pub fn elements_mut<E: Element>(bytes: &mut [u8]) -> &mut [E::Raw] {
    <[E::Raw]>::mut_from_bytes(bytes).unwrap_or(&mut [])
}

/// The values of the elements in some bytes.
pub fn values<E: Element>(bytes: &[u8]) -> impl Iterator<Item = f32> {
    elements::<E>(bytes).iter().map(|raw| E::load(*raw))
}

/// Does the work with the widest vector instructions that the machine has.
#[inline(always)]
fn vectorized(work: impl FnOnce()) {
    dispatch!(Level::new(), simd => simd.vectorize(work))
}

/// Replaces each `to` by `convert` of its `from`.
pub fn map<A, B>(to: &mut [A], from: impl Iterator<Item = B>, convert: impl Fn(B) -> A) {
    vectorized(
        #[inline(always)]
        move || {
            for (to, from) in to.iter_mut().zip(from) {
                *to = convert(from);
            }
        },
    );
}

/// Folds each value into its accumulator.
pub fn fold<A: Copy, B>(acc: &mut [A], values: impl Iterator<Item = B>, step: impl Fn(A, B) -> A) {
    vectorized(
        #[inline(always)]
        move || {
            for (acc, value) in acc.iter_mut().zip(values) {
                *acc = step(*acc, value);
            }
        },
    );
}

/// The nearest integer that the type has.
#[inline(always)]
pub fn integer<A: Integer>(value: f32) -> A::Value {
    A::get(A::store(value, Overflow::Special))
}

/// The nearest fp32.
#[inline(always)]
pub fn float<A: Integer>(value: A::Value) -> f32 {
    A::load(A::put(value))
}

/// Numbers in order as integers, -0 below +0.
#[inline(always)]
fn ordered(value: f32) -> i32 {
    let bits = value.to_bits() as i32;
    bits ^ (bits >> 31) & i32::MAX
}

/// The smaller number; NaN if either is.
#[inline(always)]
pub fn minimum(a: f32, b: f32) -> f32 {
    let less = if ordered(b) < ordered(a) { b } else { a };
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else {
        less
    }
}

/// The larger number; NaN if either is.
#[inline(always)]
pub fn maximum(a: f32, b: f32) -> f32 {
    let more = if ordered(b) > ordered(a) { b } else { a };
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else {
        more
    }
}
