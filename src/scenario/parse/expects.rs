//! `[[expect]]`: what must hold once the steps are done.

use super::super::ast::{ContentDecl, ExpectDecl, RangeDecl, WantedDecl, WhatDecl};
use super::super::diag::Reported;
use super::super::error_name;
use super::super::fill::{Affirmed, FillDecl, HashText};
use super::super::reader::{FromValue, Reader, Value, hint};
use super::{exactly_one, only};
use crate::arch::regs::{M2sError, S2mError};

const KINDS: [&str; 8] = [
    "memory",
    "observation",
    "semaphore",
    "event",
    "no_errors",
    "errors",
    "time",
    "elapsed",
];

pub(super) fn expect(table: &Reader<'_>) -> Result<ExpectDecl, Reported> {
    let only = only(table);
    let kind = exactly_one(table, "an expectation", &KINDS)?;
    let what = match kind {
        "memory" => {
            let (at, size) = (table.req("memory"), table.opt("size"));
            let wanted = wanted(table);
            at.and_then(|at| {
                Ok(WhatDecl::Memory {
                    at,
                    size: size?,
                    wanted: wanted?,
                })
            })
        }
        "observation" => {
            let name = table.req("observation");
            let wanted = wanted(table);
            name.and_then(|name| {
                Ok(WhatDecl::Observation {
                    name,
                    wanted: wanted?,
                })
            })
        }
        "semaphore" => {
            let (cell, value) = (table.req("semaphore"), table.req("equals"));
            cell.and_then(|cell| {
                Ok(WhatDecl::Semaphore {
                    cell,
                    value: value?.value,
                })
            })
        }
        "event" => {
            let (cell, value) = (table.req("event"), table.req("equals"));
            cell.and_then(|cell| {
                Ok(WhatDecl::Event {
                    cell,
                    value: value?.value,
                })
            })
        }
        "no_errors" => table
            .req::<Affirmed>("no_errors")
            .map(|_| WhatDecl::NoErrors),
        "errors" => errors(table),
        "time" => table.req_table("time").and_then(|inner| {
            let range = range(&inner, true);
            inner.finish()?;
            range.map(WhatDecl::Time)
        }),
        _ => elapsed(table),
    };
    table.finish()?;
    Ok(ExpectDecl {
        mark: table.mark().clone(),
        only: only?,
        what: what?,
    })
}

fn wanted(table: &Reader<'_>) -> Result<WantedDecl, Reported> {
    let key = exactly_one(table, "a comparison", &["equals", "differs"])?;
    let inner = table.req_table(key)?;
    let content = content(&inner);
    inner.finish()?;
    Ok(WantedDecl {
        equal: key == "equals",
        content: content?,
    })
}

fn content(table: &Reader<'_>) -> Result<ContentDecl, Reported> {
    let keys = [
        "zero", "byte", "counter", "hex", "file", "array", "initial", "region", "sha256",
    ];
    match exactly_one(table, "a content", &keys)? {
        "initial" => table.req("initial").map(ContentDecl::Initial),
        "region" => table.req("region").map(ContentDecl::Region),
        "sha256" => Ok(ContentDecl::Sha256(
            table.req::<HashText>("sha256")?.value.0,
        )),
        _ => FillDecl::read(table).map(ContentDecl::Fill),
    }
}

fn errors(table: &Reader<'_>) -> Result<WhatDecl, Reported> {
    let inner = table.req_table("errors")?;
    let engine = inner.req("engine");
    let m2s = inner.or::<Vec<M2sError>>("m2s", Vec::new());
    let s2m = inner.or::<Vec<S2mError>>("s2m", Vec::new());
    inner.finish()?;
    Ok(WhatDecl::Errors {
        engine: engine?,
        m2s: m2s?,
        s2m: s2m?,
    })
}

/// Errors go by the name of their bit, such as `ring_id`.
macro_rules! error_from_value {
    ($error:ty) => {
        impl FromValue for $error {
            const EXPECTED: &'static str = "the name of an error bit, such as \"ring_id\"";

            fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
                let Some(text) = value.text()? else {
                    return Ok(None);
                };
                let named = |error: &&$error| error_name(error) == text;
                match <$error>::ALL.iter().find(named) {
                    Some(error) => Ok(Some(*error)),
                    None => {
                        let known: Vec<String> = <$error>::ALL.iter().map(error_name).collect();
                        let hint = hint(&text, known.iter().map(String::as_str));
                        Err(format!("no error bit \"{text}\" on this half{hint}"))
                    }
                }
            }
        }
    };
}

error_from_value!(M2sError);
error_from_value!(S2mError);

/// `min` and `max`, at least one where a range is needed.
fn range(table: &Reader<'_>, needed: bool) -> Result<RangeDecl, Reported> {
    let (min, max) = (table.opt("min"), table.opt("max"));
    let range = RangeDecl {
        min: min?,
        max: max?,
    };
    if needed && range.min.is_none() && range.max.is_none() {
        return Err(table.report("nothing is expected; write min, max or both"));
    }
    Ok(range)
}

fn elapsed(table: &Reader<'_>) -> Result<WhatDecl, Reported> {
    let inner = table.req_table("elapsed")?;
    let (from, to) = (inner.req("from"), inner.req("to"));
    let longer_than = match inner.table("longer_than") {
        Ok(Some(other)) => {
            let (from, to) = (other.req("from"), other.req("to"));
            other.finish().and_then(|()| Ok(Some((from?, to?))))
        }
        Ok(None) => Ok(None),
        Err(reported) => Err(reported),
    };
    let range = range(&inner, !inner.has("longer_than"));
    inner.finish()?;
    Ok(WhatDecl::Elapsed {
        from: from?,
        to: to?,
        range: range?,
        longer_than: longer_than?,
    })
}
