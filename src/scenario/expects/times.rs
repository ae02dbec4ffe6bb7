//! Expectations of times: of the whole run, and between two steps.

use super::{Bounds, Check, Expected};
use crate::document::{At, Keys, Read, Table, Under, keys};
use crate::scenario::quantity::Span;
use crate::scenario::scope::{Context, Scope};
use std::ops::Range;

keys! {
    struct Time {
        time: Under<TimeRange>,
    }

    struct RangeKeys {
        min: Option<At<Span>>,
        max: Option<At<Span>>,
    }

    struct Elapsed {
        elapsed: Under<ElapsedKeys>,
    }

    struct Labels {
        from: At<String>,
        to: At<String>,
    }

    struct LongerThan {
        longer_than: Option<Under<Labels>>,
    }
}

/// Adds the keys of these expectations.
pub(super) fn keys(known: &mut Vec<&'static str>) {
    <Time as Keys<()>>::names(known);
    <Elapsed as Keys<()>>::names(known);
}

pub(super) fn time(table: &Table<'_>, context: Context<'_>) -> Read<Expected> {
    let range = Time::read(table, ())?.time.0;
    let (text, bounds) = range.0.bounds(context.scope()?)?;
    Ok(Expected {
        text: format!("the run takes {text}"),
        check: Check::Time(bounds),
    })
}

/// `min` and `max`, at least one of them.
#[derive(Debug)]
struct TimeRange(RangeKeys);

impl<C> Keys<C> for TimeRange {
    fn read(table: &Table<'_>, _: C) -> Read<Self> {
        let range = RangeKeys::read(table, ())?;
        match (&range.min, &range.max) {
            (None, None) => Err(table.report("no bounds given; write min, max or both")),
            _ => Ok(TimeRange(range)),
        }
    }

    fn names(known: &mut Vec<&'static str>) {
        <RangeKeys as Keys<()>>::names(known);
    }
}

impl RangeKeys {
    fn bounds(&self, scope: &Scope<'_>) -> Read<(String, Bounds)> {
        let duration =
            |span: &Option<At<Span>>| span.as_ref().map(|span| span.duration(&scope.clock));
        let bounds = Bounds {
            min: duration(&self.min),
            max: duration(&self.max),
        };
        if let (Some(min), Some(max), Some(place)) = (bounds.min, bounds.max, &self.min)
            && min > max
        {
            return Err(scope.report(&place.mark, "is greater than max"));
        }
        let text = match (&self.min, &self.max) {
            (Some(min), Some(max)) => format!("{} to {}", min.value, max.value),
            (Some(min), None) => format!("at least {}", min.value),
            (None, Some(max)) => format!("at most {}", max.value),
            (None, None) => String::new(),
        };
        Ok((text, bounds))
    }
}

/// The time between two steps: within a range, longer than that between two others, or both.
#[derive(Debug)]
struct ElapsedKeys {
    labels: Labels,
    range: RangeKeys,
    longer_than: Option<Labels>,
}

impl<C> Keys<C> for ElapsedKeys {
    fn read(table: &Table<'_>, _: C) -> Read<Self> {
        let labels = Labels::read(table, ());
        let longer_than = LongerThan::read(table, ());
        let range = match table.has("longer_than") {
            true => RangeKeys::read(table, ()),
            false => TimeRange::read(table, ()).map(|range| range.0),
        };
        Ok(ElapsedKeys {
            labels: labels?,
            range: range?,
            longer_than: longer_than?.longer_than.map(|labels| labels.0),
        })
    }

    fn names(known: &mut Vec<&'static str>) {
        <Labels as Keys<()>>::names(known);
        <LongerThan as Keys<()>>::names(known);
        <RangeKeys as Keys<()>>::names(known);
    }
}

pub(super) fn elapsed(table: &Table<'_>, context: Context<'_>) -> Read<Expected> {
    let keys = Elapsed::read(table, ())?.elapsed.0;
    let scope = context.scope()?;
    let steps = keys.labels.steps(scope)?;
    let (text, bounds) = keys.range.bounds(scope)?;
    let mut texts = vec![text];
    let longer_than = match &keys.longer_than {
        Some(other) => {
            let (from, to) = (&other.from.value, &other.to.value);
            texts.push(format!("longer than \"{from}\" to \"{to}\""));
            Some(other.steps(scope)?)
        }
        None => None,
    };
    texts.retain(|text| !text.is_empty());
    let Labels { from, to } = &keys.labels;
    Ok(Expected {
        text: format!(
            "\"{}\" to \"{}\" takes {}",
            from.value,
            to.value,
            texts.join(" and ")
        ),
        check: Check::Elapsed {
            steps,
            bounds,
            longer_than,
        },
    })
}

impl Labels {
    /// The steps from the first one with label `from` to the last one with label `to`.
    fn steps(&self, scope: &Scope<'_>) -> Read<Range<usize>> {
        let Labels { from, to } = self;
        let has = |label: &At<String>, step: &Option<String>| step.as_ref() == Some(&label.value);
        let unknown = |label| scope.unknown(label, "step labelled", scope.labels.keys());
        let steps = &scope.steps;
        let first = steps.iter().position(|step| has(from, step));
        let last = steps.iter().rposition(|step| has(to, step));
        let first = first.ok_or_else(|| unknown(from));
        let last = last.ok_or_else(|| unknown(to));
        let (first, last) = (first?, last?);
        if first > last {
            let message = format!("step \"{}\" is before step \"{}\"", to.value, from.value);
            return Err(scope.report(&to.mark, message));
        }
        Ok(first..last + 1)
    }
}
