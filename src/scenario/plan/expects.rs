//! Expectations: what is compared with what, and how the report names it.

use super::super::ast::{Ast, ContentDecl, ExpectDecl, RangeDecl, WantedDecl, WhatDecl};
use super::super::diag::{At, Mark, Reported};
use super::super::error_name;
use super::super::place::{Region, Window};
use super::super::quantity::Span;
use super::scope::Scope;
use super::steps::PlannedStep;
use super::{Bounds, Check, Content, Expect, Subject, Wanted, applies};
use crate::arch::regs::{M2sError, S2mError};
use crate::units::Bytes;
use std::ops::Range;

pub(super) fn expects(
    scope: &Scope<'_>,
    ast: &Ast,
    steps: &[PlannedStep],
    contents: &[Content],
) -> Result<Vec<Expect>, Reported> {
    let mut verdict = Ok(());
    let mut expects = Vec::new();
    for decl in ast
        .expects
        .iter()
        .filter(|decl| applies(&decl.only, scope.spec.arch))
    {
        match expect(scope, decl, steps, contents) {
            Ok(expect) => expects.push(expect),
            Err(reported) => verdict = Err(reported),
        }
    }
    verdict.map(|()| expects)
}

fn expect(
    scope: &Scope<'_>,
    decl: &ExpectDecl,
    steps: &[PlannedStep],
    contents: &[Content],
) -> Result<Expect, Reported> {
    let (text, check) = match &decl.what {
        WhatDecl::Memory { at, size, wanted } => {
            let region = scope.region(at, size.as_ref())?;
            scope.plain(&at.mark, &region)?;
            let subject = Subject::Memory(region);
            let what = format!("{} ({})", at.value, Bytes(region.bytes));
            compared(scope, &what, subject, region.bytes, wanted, contents)?
        }
        WhatDecl::Observation { name, wanted } => {
            let bytes = scope.observations.get(&name.value);
            let bytes = *bytes
                .ok_or_else(|| scope.unknown(name, "observation", scope.observations.keys()))?;
            let subject = Subject::Observation(name.value.clone());
            let what = format!("observation \"{}\" ({})", name.value, Bytes(bytes));
            compared(scope, &what, subject, bytes, wanted, contents)?
        }
        WhatDecl::Semaphore { cell, value } => {
            let (at, value) = (scope.semaphore(cell, Window::Read)?, *value);
            let text = format!("semaphore {} is {value}", cell.value);
            (text, Check::Cell { at, value })
        }
        WhatDecl::Event { cell, value } => {
            let (at, value) = (scope.event(cell)?, *value);
            (
                format!("event {} is {value}", cell.value),
                Check::Cell { at, value },
            )
        }
        WhatDecl::NoErrors => ("no engine reports an error".to_string(), Check::NoErrors),
        WhatDecl::Errors { engine, m2s, s2m } => {
            let names = |names: Vec<String>| match names.is_empty() {
                true => "no error".to_string(),
                false => names.join(", "),
            };
            let text = format!(
                "{} reports {} on m2s, {} on s2m",
                engine.value,
                names(m2s.iter().map(error_name).collect()),
                names(s2m.iter().map(error_name).collect())
            );
            let check = Check::Errors {
                engine: scope.engine(engine)?,
                m2s: m2s
                    .iter()
                    .fold(0, |bits, error: &M2sError| bits | error.mask()),
                s2m: s2m
                    .iter()
                    .fold(0, |bits, error: &S2mError| bits | error.mask()),
            };
            (text, check)
        }
        WhatDecl::Time(range) => {
            let (text, bounds) = bounds(scope, range)?;
            (format!("the run takes {text}"), Check::Time(bounds))
        }
        WhatDecl::Elapsed {
            from,
            to,
            range,
            longer_than,
        } => {
            let between = self::between(scope, from, to, steps)?;
            let (text, bounds) = bounds(scope, range)?;
            let mut texts = vec![text];
            let longer_than = match longer_than {
                Some((from, to)) => {
                    texts.push(format!(
                        "longer than \"{}\" to \"{}\"",
                        from.value, to.value
                    ));
                    Some(self::between(scope, from, to, steps)?)
                }
                None => None,
            };
            texts.retain(|text| !text.is_empty());
            let text = format!(
                "\"{}\" to \"{}\" takes {}",
                from.value,
                to.value,
                texts.join(" and ")
            );
            let check = Check::Elapsed {
                steps: between,
                bounds,
                longer_than,
            };
            (text, check)
        }
    };
    let line = scope.document.line(&decl.mark);
    Ok(Expect { line, text, check })
}

fn compared(
    scope: &Scope<'_>,
    what: &str,
    of: Subject,
    bytes: u64,
    wanted: &WantedDecl,
    contents: &[Content],
) -> Result<(String, Check), Reported> {
    let fits = |own: Option<u64>, mark: &Mark| match own {
        Some(own) if own != bytes => {
            let message = format!("has {own} bytes; {what} is compared with it");
            Err(scope.report(mark, message))
        }
        _ => Ok(()),
    };
    let (text, content) = match &wanted.content {
        ContentDecl::Fill(fill) => {
            let resolved = fill.resolve(scope.document, "");
            let resolved = resolved.map_err(|message| scope.report(&fill.mark, message))?;
            fits(resolved.own_bytes(), &fill.mark)?;
            (fill.to_string(), Wanted::Fill(resolved))
        }
        ContentDecl::Initial(name) => {
            let region = scope.regions.get(&name.value);
            let region =
                region.ok_or_else(|| scope.unknown(name, "buffer", scope.regions.keys()))?;
            fits(Some(region.bytes), &name.mark)?;
            let content = contents.iter().find(|content| content.region == *region);
            let content = content.ok_or_else(|| {
                let message = format!(
                    "\"{}\" is a pring; only [[memory]] has an initial content",
                    name.value
                );
                scope.report(&name.mark, message)
            })?;
            (
                format!("what {} started with", name.value),
                Wanted::Fill(content.fill.clone()),
            )
        }
        ContentDecl::Region(at) => {
            let size = At {
                value: Bytes(bytes),
                mark: at.mark.clone(),
            };
            let region: Region = scope.region(at, Some(&size))?;
            scope.plain(&at.mark, &region)?;
            (format!("{} at the end", at.value), Wanted::Region(region))
        }
        ContentDecl::Sha256(hash) => (
            format!("sha256 {}", hex::encode(hash)),
            Wanted::Sha256(*hash),
        ),
    };
    let relation = if wanted.equal {
        "equals"
    } else {
        "differs from"
    };
    let check = Check::Bytes {
        of,
        equal: wanted.equal,
        wanted: content,
    };
    Ok((format!("{what} {relation} {text}"), check))
}

fn bounds(scope: &Scope<'_>, range: &RangeDecl) -> Result<(String, Bounds), Reported> {
    let duration = |span: &Option<At<Span>>| span.as_ref().map(|span| span.duration(&scope.clock));
    let bounds = Bounds {
        min: duration(&range.min),
        max: duration(&range.max),
    };
    if let (Some(min), Some(max), Some(place)) = (bounds.min, bounds.max, &range.min)
        && min > max
    {
        return Err(scope.report(&place.mark, "is more than max"));
    }
    let text = match (&range.min, &range.max) {
        (Some(min), Some(max)) => format!("{} to {}", min.value, max.value),
        (Some(min), None) => format!("at least {}", min.value),
        (None, Some(max)) => format!("at most {}", max.value),
        (None, None) => String::new(),
    };
    Ok((text, bounds))
}

/// The steps from the first one with label `from` to the last one with label `to`.
fn between(
    scope: &Scope<'_>,
    from: &At<String>,
    to: &At<String>,
    steps: &[PlannedStep],
) -> Result<Range<usize>, Reported> {
    let has =
        |label: &At<String>, step: &PlannedStep| step.step.label.as_ref() == Some(&label.value);
    let unknown = |label| scope.unknown(label, "step labelled", scope.labels.keys());
    let first = steps
        .iter()
        .position(|step| has(from, step))
        .ok_or_else(|| unknown(from));
    let last = steps
        .iter()
        .rposition(|step| has(to, step))
        .ok_or_else(|| unknown(to));
    let (first, last) = (first?, last?);
    if first > last {
        let message = format!("step \"{}\" comes before step \"{}\"", to.value, from.value);
        return Err(scope.report(&to.mark, message));
    }
    Ok(first..last + 1)
}
