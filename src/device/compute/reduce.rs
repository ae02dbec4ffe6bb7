//! The CCE's arithmetic: sources are read in the in dtype, folded in the accumulation dtype, and the
//! result leaves in the out dtype; the three are independent (`docs/compute.md`, "Reductions").

use super::element::{Element, Fp8, Integer, with_element};
use super::kernels::{elements, elements_mut, float, fold, integer, map, maximum, minimum, values};
use crate::desc::DType;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::iter::repeat;

/// Elements worked on at a time: a chunk of accumulators in fp32 fits into a first-level cache.
const CHUNK: usize = 1024;

/// Smallest or largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// A constant that takes part in a MIN or MAX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its type.
    pub dtype: DType,
    /// Its bytes, and zeros behind them.
    pub bytes: [u8; 8],
}

impl Constant {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.dtype.bytes() as usize]
    }
}

/// What an operand of an FMA is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The accumulator.
    Accumulator,
    /// The source.
    Source,
    /// The scale.
    Scale,
}

/// `acc = a * b + c` with one rounding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fma {
    /// First factor.
    pub a: Operand,
    /// Second factor.
    pub b: Operand,
    /// Summand.
    pub c: Operand,
    /// The scale.
    pub scale: f32,
}

impl Fma {
    /// `acc = source * scale + acc`, what the builders ask for.
    pub const fn scaled(scale: f32) -> Fma {
        Fma {
            a: Operand::Source,
            b: Operand::Scale,
            c: Operand::Accumulator,
            scale,
        }
    }

    #[inline(always)]
    fn apply(self, acc: f32, source: f32) -> f32 {
        let pick = |operand| match operand {
            Operand::Accumulator => acc,
            Operand::Source => source,
            Operand::Scale => self.scale,
        };
        pick(self.a).mul_add(pick(self.b), pick(self.c))
    }
}

/// What is done with the sources.
#[derive(Clone, Debug, PartialEq)]
pub enum Fold {
    /// Their sum, in order.
    Add {
        /// How many there are.
        sources: usize,
    },
    /// The smallest or largest of them and the constants.
    Extreme {
        /// Which.
        extreme: Extreme,
        /// How many sources there are.
        sources: usize,
        /// The constants.
        constants: Vec<Constant>,
    },
    /// An FMA for each, from an accumulator of 0.
    Fma(Vec<Fma>),
}

/// A reduction of equally long sources to one result.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduction {
    /// Type of the sources.
    pub in_dtype: DType,
    /// Type of the accumulator.
    pub acc_dtype: DType,
    /// Type of the result.
    pub out_dtype: DType,
    /// What fp8 types do.
    pub fp8: Fp8,
    /// What is done.
    pub fold: Fold,
}

impl Reduction {
    /// A cast: a reduction of one source, through fp32.
    pub fn cast(from: DType, to: DType, fp8: Fp8) -> Reduction {
        Reduction {
            in_dtype: from,
            acc_dtype: DType::Fp32,
            out_dtype: to,
            fp8,
            fold: Fold::Add { sources: 1 },
        }
    }

    /// How many sources there are.
    pub fn source_count(&self) -> usize {
        match &self.fold {
            Fold::Add { sources } | Fold::Extreme { sources, .. } => *sources,
            Fold::Fma(steps) => steps.len(),
        }
    }

    /// Bytes of the result of sources with `bytes` bytes in all.
    pub fn result_bytes(&self, bytes: usize) -> usize {
        let elements = bytes / self.source_count().max(1) / self.in_dtype.bytes() as usize;
        elements * self.out_dtype.bytes() as usize
    }

    /// Reduces `sources`, which lie one behind the other, to `result`, which has
    /// [`Reduction::result_bytes`]. With `random` the result is rounded stochastically: one draw for
    /// each element of a type other than fp32.
    pub fn run(&self, sources: &[u8], mut random: Option<&mut ChaCha8Rng>, result: &mut [u8]) {
        let in_bytes = self.in_dtype.bytes() as usize;
        let out_bytes = self.out_dtype.bytes() as usize;
        let source_bytes = sources.len() / self.source_count().max(1);
        let mut acc = [0.0; CHUNK];
        let mut scratch = [0.0; CHUNK];
        for (number, result) in result.chunks_mut(CHUNK * out_bytes).enumerate() {
            let elements = result.len() / out_bytes;
            let mut chunk = Chunk {
                sources,
                source_bytes,
                offset: number * CHUNK * in_bytes,
                bytes: elements * in_bytes,
                acc: &mut acc[..elements],
                scratch: &mut scratch[..elements],
            };
            self.run_chunk(&mut chunk, random.as_deref_mut(), result);
        }
    }

    fn run_chunk(&self, chunk: &mut Chunk, random: Option<&mut ChaCha8Rng>, result: &mut [u8]) {
        use super::element::*;
        match self.acc_dtype {
            DType::Int8 => self.run_integer::<Int8>(chunk, random, result),
            DType::Uint8 => self.run_integer::<Uint8>(chunk, random, result),
            DType::Int16 => self.run_integer::<Int16>(chunk, random, result),
            DType::Uint16 => self.run_integer::<Uint16>(chunk, random, result),
            DType::Int32 => self.run_integer::<Int32>(chunk, random, result),
            DType::Uint32 => self.run_integer::<Uint32>(chunk, random, result),
            DType::Int64 => self.run_integer::<Int64>(chunk, random, result),
            DType::Uint64 => self.run_integer::<Uint64>(chunk, random, result),
            _ => {
                self.run_float(chunk);
                self.store(chunk.acc, random, result);
            }
        }
    }

    /// Accumulates in a floating-point type.
    fn run_float(&self, chunk: &mut Chunk) {
        match &self.fold {
            Fold::Add { .. } => self.fold_floats(chunk, |_| |acc, value| acc + value),
            Fold::Extreme {
                extreme, constants, ..
            } => {
                let constants = constants
                    .iter()
                    .map(|constant| self.rounded(self.constant(*constant)));
                match extreme {
                    Extreme::Min => {
                        self.fold_floats(chunk, |_| minimum);
                        constants.for_each(|value| fold(chunk.acc, repeat(value), minimum));
                    }
                    Extreme::Max => {
                        self.fold_floats(chunk, |_| maximum);
                        constants.for_each(|value| fold(chunk.acc, repeat(value), maximum));
                    }
                }
            }
            Fold::Fma(steps) if steps.iter().all(|fma| *fma == Fma::scaled(fma.scale)) => {
                self.fold_floats(chunk, |source| {
                    let scale = steps[source].scale;
                    move |acc, value: f32| value.mul_add(scale, acc)
                });
            }
            Fold::Fma(steps) => self.fold_floats(chunk, |source| {
                let fma = steps[source];
                move |acc, value| fma.apply(acc, value)
            }),
        }
    }

    /// Folds all sources with the `step` of each: in fp32, rounded to the accumulation type after
    /// every step.
    fn fold_floats<S>(&self, chunk: &mut Chunk, step: impl Fn(usize) -> S)
    where
        S: Fn(f32, f32) -> f32,
    {
        let from_zero = matches!(self.fold, Fold::Fma(_));
        if from_zero {
            chunk.acc.fill(0.0);
        }
        if matches!(self.acc_dtype, DType::Fp32 | DType::Fp32r) {
            with_element!(self.in_dtype, self.fp8, In => {
                fold_wide::<In, S>(chunk, self.source_count(), from_zero, step);
            });
            return;
        }
        for source in 0..self.source_count() {
            self.load(source, chunk);
            self.round(chunk.scratch);
            let values = chunk.scratch.iter().copied();
            if source == 0 && !from_zero {
                map(chunk.acc, values, |value| value);
            } else {
                fold(chunk.acc, values, step(source));
            }
            self.round(chunk.acc);
        }
    }

    /// Accumulates in an integer type: sums wrap around, an FMA is computed in fp32.
    fn run_integer<A: Integer>(
        &self,
        chunk: &mut Chunk,
        random: Option<&mut ChaCha8Rng>,
        result: &mut [u8],
    ) {
        let mut acc = [A::Value::default(); CHUNK];
        let acc = &mut acc[..chunk.acc.len()];
        match &self.fold {
            Fold::Add { .. } => self.fold_integers::<A, _>(chunk, acc, |_| A::sum),
            Fold::Extreme {
                extreme, constants, ..
            } => {
                let least = *extreme == Extreme::Min;
                let pick = move |a: A::Value, b| if (b < a) == least { b } else { a };
                self.fold_integers::<A, _>(chunk, acc, |_| pick);
                for constant in constants {
                    let value = if constant.dtype == self.acc_dtype {
                        let raw = elements::<A>(constant.bytes()).first();
                        raw.map(|raw| A::get(*raw)).unwrap_or_default()
                    } else {
                        integer::<A>(self.constant(*constant))
                    };
                    fold(acc, repeat(value), pick);
                }
            }
            Fold::Fma(steps) => self.fold_integers::<A, _>(chunk, acc, |source| {
                let fma = steps[source];
                move |acc, value| integer::<A>(fma.apply(float::<A>(acc), float::<A>(value)))
            }),
        }
        let acc = acc.iter().copied();
        if self.out_dtype == self.acc_dtype {
            map(elements_mut::<A>(result), acc, A::put);
        } else {
            map(chunk.scratch, acc, float::<A>);
            self.store(chunk.scratch, random, result);
        }
    }

    fn fold_integers<A: Integer, S>(
        &self,
        chunk: &mut Chunk,
        acc: &mut [A::Value],
        step: impl Fn(usize) -> S,
    ) where
        S: Fn(A::Value, A::Value) -> A::Value,
    {
        let from_zero = matches!(self.fold, Fold::Fma(_));
        for source in 0..self.source_count() {
            let assign = source == 0 && !from_zero;
            if self.in_dtype == self.acc_dtype {
                let values = elements::<A>(chunk.source(source)).iter();
                fold_or_assign(acc, values.map(|raw| A::get(*raw)), assign, step(source));
            } else {
                self.load(source, chunk);
                let values = chunk.scratch.iter();
                let values = values.map(|value| integer::<A>(*value));
                fold_or_assign(acc, values, assign, step(source));
            }
        }
    }

    fn constant(&self, constant: Constant) -> f32 {
        with_element!(constant.dtype, self.fp8, In => {
            values::<In>(constant.bytes()).next().unwrap_or_default()
        })
    }

    /// The part of a source in fp32.
    fn load(&self, source: usize, chunk: &mut Chunk) {
        let bytes = chunk.source(source);
        with_element!(self.in_dtype, self.fp8, In => {
            map(chunk.scratch, values::<In>(bytes), |value| value);
        });
    }

    /// A value of the accumulation type.
    fn rounded(&self, mut value: f32) -> f32 {
        self.round(std::slice::from_mut(&mut value));
        value
    }

    /// Rounds to the accumulation type.
    fn round(&self, values: &mut [f32]) {
        let overflow = self.fp8.overflow;
        with_element!(self.acc_dtype, self.fp8, Acc => {
            fold(values, repeat(()), move |value, ()| Acc::load(Acc::store(value, overflow)));
        });
    }

    /// Writes the result.
    fn store(&self, values: &[f32], random: Option<&mut ChaCha8Rng>, result: &mut [u8]) {
        let overflow = self.fp8.overflow;
        let exact = matches!(self.out_dtype, DType::Fp32 | DType::Fp32r);
        let values = values.iter().copied();
        match random.filter(|_| !exact) {
            None => with_element!(self.out_dtype, self.fp8, Out => {
                map(elements_mut::<Out>(result), values, move |value| Out::store(value, overflow));
            }),
            Some(random) => with_element!(self.out_dtype, self.fp8, Out => {
                for (raw, value) in elements_mut::<Out>(result).iter_mut().zip(values) {
                    *raw = Out::store_stochastic(value, overflow, random.next_u32());
                }
            }),
        }
    }
}

/// Folds with an accumulator of fp32, two sources at a time: it is loaded and stored half as often.
fn fold_wide<In: Element, S>(
    chunk: &mut Chunk,
    sources: usize,
    from_zero: bool,
    step: impl Fn(usize) -> S,
) where
    S: Fn(f32, f32) -> f32,
{
    for source in (0..sources).step_by(2) {
        let assign = source == 0 && !from_zero;
        let bytes = chunk.source(source);
        if source + 1 == sources {
            fold_or_assign(chunk.acc, values::<In>(bytes), assign, step(source));
            continue;
        }
        let pairs = values::<In>(bytes).zip(values::<In>(chunk.source(source + 1)));
        let (first, second) = (step(source), step(source + 1));
        if assign {
            map(chunk.acc, pairs, move |(a, b)| second(a, b));
        } else {
            fold(chunk.acc, pairs, move |acc, (a, b)| {
                second(first(acc, a), b)
            });
        }
    }
}

fn fold_or_assign<A: Copy>(
    acc: &mut [A],
    values: impl Iterator<Item = A>,
    assign: bool,
    step: impl Fn(A, A) -> A,
) {
    if assign {
        map(acc, values, |value| value);
    } else {
        fold(acc, values, step);
    }
}

/// Part of every source, and the room it is worked on in.
struct Chunk<'a> {
    sources: &'a [u8],
    /// Bytes of each source.
    source_bytes: usize,
    /// Where the part starts in each.
    offset: usize,
    /// Its bytes.
    bytes: usize,
    acc: &'a mut [f32],
    scratch: &'a mut [f32],
}

impl<'a> Chunk<'a> {
    /// The part of one source.
    fn source(&self, index: usize) -> &'a [u8] {
        let start = index * self.source_bytes + self.offset;
        self.sources.get(start..start + self.bytes).unwrap_or(&[])
    }
}
