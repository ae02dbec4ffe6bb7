//! The words of scenario files for what other modules have: directions, barriers, types, error bits.

use super::place::check_name;
use crate::arch::regs::{Direction, M2sError, S2mError};
use crate::desc::{BarrierMode, DType, KbinOp, Permutation};
use crate::document::{FromValue, Value, hint, named};
use crate::host::{PollMode, Step};

named! {
    Direction, Direction::ALL, Direction::ring_name,
        "\"tx\" or \"rx\"";
    BarrierMode, BarrierMode::ALL, barrier_name,
        "\"none\", \"dmb\", \"write_barrier\" or \"sow\"";
    KbinOp, [KbinOp::Add, KbinOp::Min, KbinOp::Max, KbinOp::Fma], kbin_name,
        "\"add\", \"min\", \"max\" or \"fma\"";
    DType, DType::all(), DType::name,
        "a data type, such as \"fp32\", \"bfloat16\" or \"int8\"";
    Permutation, Permutation::all(), Permutation::name,
        "one of the twelve permutations, such as \"WYXZ\"";
    PollMode, POLL_MODES, poll_name,
        "\"sync\", \"sync_device\", \"async\" or \"zero_copy\"";
}

/// A barrier mode as scenarios write it.
pub(super) fn barrier_name(mode: BarrierMode) -> &'static str {
    match mode {
        BarrierMode::None => "none",
        BarrierMode::Dmb => "dmb",
        BarrierMode::WriteBarrier => "write_barrier",
        BarrierMode::StrongOrder => "sow",
    }
}

fn kbin_name(op: KbinOp) -> &'static str {
    match op {
        KbinOp::Copy => "copy",
        KbinOp::Fma => "fma",
        KbinOp::Add => "add",
        KbinOp::Min => "min",
        KbinOp::Max => "max",
        KbinOp::Transpose => "transpose",
    }
}

const POLL_MODES: [PollMode; 4] = [
    PollMode::Synchronous,
    PollMode::SynchronousDevice,
    PollMode::Asynchronous,
    PollMode::ZeroCopy,
];

fn poll_name(mode: PollMode) -> &'static str {
    match mode {
        PollMode::Synchronous => "sync",
        PollMode::SynchronousDevice => "sync_device",
        PollMode::Asynchronous => "async",
        PollMode::ZeroCopy => "zero_copy",
    }
}

/// Errors go by the name of their bit, such as `ring_id`.
macro_rules! error_from_value {
    ($($error:ty;)*) => {$(
        impl FromValue for $error {
            const EXPECTED: &'static str = "the name of an error bit, such as \"ring_id\"";

            fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
                let Some(text) = value.text()? else {
                    return Ok(None);
                };
                let named = |error: &&$error| error.name() == text;
                match <$error>::ALL.iter().find(named) {
                    Some(error) => Ok(Some(*error)),
                    None => {
                        let hint = hint(&text, <$error>::ALL.iter().map(|error| error.name()));
                        Err(format!("unknown error bit \"{text}\" for this half{hint}"))
                    }
                }
            }
        }
    )*};
}

error_from_value! {
    M2sError;
    S2mError;
}

/// A name that may stand in a location.
#[derive(Debug)]
pub(super) struct Name(pub String);

impl FromValue for Name {
    const EXPECTED: &'static str = String::EXPECTED;

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let Some(name) = value.text()? else {
            return Ok(None);
        };
        check_name(&name).map(|()| Some(Name(name)))
    }
}

impl std::ops::Deref for Name {
    type Target = String;

    fn deref(&self) -> &String {
        &self.0
    }
}

/// `zero = true`; false would say nothing.
#[derive(Debug)]
pub(super) struct Affirmed;

impl FromValue for Affirmed {
    const EXPECTED: &'static str = "true";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        match value.raw.as_bool() {
            Some(false) => Err("must be true; to switch it off, omit the key".into()),
            answer => Ok(answer.map(|_| Affirmed)),
        }
    }
}

impl FromValue for Step {
    const EXPECTED: &'static str = "[count, step], the step in elements";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let Some(numbers) = Vec::<i32>::from_value(value)? else {
            return Ok(None);
        };
        match numbers[..] {
            [count, step] if count >= 0 => Ok(Some(Step {
                count: count.unsigned_abs(),
                step: step.into(),
            })),
            _ => Err(format!(
                "expected {}; the count must be 0 or more",
                Self::EXPECTED
            )),
        }
    }
}
