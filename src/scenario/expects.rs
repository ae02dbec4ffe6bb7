//! `[[expect]]`: what must hold once the steps are done, and how the report names it. The kinds are listed
//! in [`KINDS`], by the key that names them.

use super::fill::{Fill, FillDecl, HashText};
use super::given::{Area, Engine};
use super::place::{Cell, Location, Region, Window};
use super::quantity::Span;
use super::scope::{Context, Scope};
use super::words::{Affirmed, error_name};
use crate::arch::EngineId;
use crate::arch::regs::{M2sError, S2mError};
use crate::document::{At, Keys, Mark, NoValue, Read, Table, Under, keys};
use crate::sim::Duration;
use crate::units::{Addr, Bytes};
use std::ops::Range;

/// One expectation.
#[derive(Debug)]
pub(super) struct Expect {
    /// Line of the file, counted from 1.
    pub line: usize,
    /// What is expected, in words.
    pub text: String,
    pub check: Check,
}

#[derive(Debug)]
pub(super) enum Check {
    Bytes {
        of: Subject,
        equal: bool,
        wanted: Wanted,
    },
    /// The value of an event or a semaphore, read at this address.
    Cell {
        at: Addr,
        value: i32,
    },
    NoErrors,
    Errors {
        engine: EngineId,
        m2s: u32,
        s2m: u32,
    },
    Time(Bounds),
    Elapsed {
        steps: Range<usize>,
        bounds: Bounds,
        longer_than: Option<Range<usize>>,
    },
}

/// Bytes that an expectation looks at.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    /// Memory at the end.
    Memory(Region),
    /// What a host step or a sequencer saw.
    Observation(String),
}

/// What bytes are compared with.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    Fill(Fill),
    /// Memory at the end.
    Region(Region),
    Sha256([u8; 32]),
}

/// Bounds of a time, inclusive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub min: Option<Duration>,
    pub max: Option<Duration>,
}

/// What is expected, in words, and how it is checked.
struct Expected {
    text: String,
    check: Check,
}

/// A kind of expectation: the key that names it, and how it is read.
struct Kind {
    name: &'static str,
    read: fn(&Table<'_>, Context<'_>) -> Read<Expected>,
}

const KINDS: [Kind; 8] = [
    Kind {
        name: "memory",
        read: memory,
    },
    Kind {
        name: "observation",
        read: observation,
    },
    Kind {
        name: "semaphore",
        read: semaphore,
    },
    Kind {
        name: "event",
        read: event,
    },
    Kind {
        name: "no_errors",
        read: no_errors,
    },
    Kind {
        name: "errors",
        read: errors,
    },
    Kind {
        name: "time",
        read: time,
    },
    Kind {
        name: "elapsed",
        read: elapsed,
    },
];

keys! {
    struct Memory {
        memory: Area,
    }

    struct Observation {
        observation: At<String>,
    }

    struct Semaphore {
        semaphore: At<Cell>,
        equals: i32,
    }

    struct Event {
        event: At<Cell>,
        equals: i32,
    }

    struct NoErrors {
        no_errors: Affirmed,
    }

    struct Errors {
        errors: Under<ErrorBits>,
    }

    struct ErrorBits {
        engine: Engine,
        m2s: Vec<M2sError> = Vec::new(),
        s2m: Vec<S2mError> = Vec::new(),
    }

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

    struct Initial {
        initial: At<String>,
    }

    struct AtTheEnd {
        region: At<Location>,
    }

    struct Hash {
        sha256: HashText,
    }
}

/// Reads an `[[expect]]`; `None` if it does not count on the arch at hand.
pub(super) fn read(table: &Table<'_>, context: Context<'_>) -> Read<Option<Expect>> {
    let counts = context.counts(table);
    if counts == Ok(false) {
        return Ok(None);
    }
    let name = table.exactly_one("an expectation", &KINDS.map(|kind| kind.name))?;
    let kind = KINDS.iter().find(|kind| kind.name == name);
    let expected = (kind.ok_or(NoValue)?.read)(table, context);
    table.finish()?;
    counts?;
    let Expected { text, check } = expected?;
    let line = context.scope()?.document.line(table.mark());
    Ok(Some(Expect { line, text, check }))
}

/// Adds the keys of expectations.
pub(super) fn keys(known: &mut Vec<&'static str>) {
    known.extend(["only", "differs"]);
    <Memory as Keys<Context<'_>>>::names(known);
    <Observation as Keys<()>>::names(known);
    <Semaphore as Keys<()>>::names(known);
    <Event as Keys<()>>::names(known);
    <NoErrors as Keys<()>>::names(known);
    <Errors as Keys<Context<'_>>>::names(known);
    <Time as Keys<()>>::names(known);
    <Elapsed as Keys<()>>::names(known);
    <Initial as Keys<()>>::names(known);
    <AtTheEnd as Keys<()>>::names(known);
    <Hash as Keys<()>>::names(known);
}

fn memory(table: &Table<'_>, context: Context<'_>) -> Read<Expected> {
    let subject = Memory::read(table, context);
    let wanted = WantedKeys::read(table);
    let (Memory { memory }, wanted) = (subject?, wanted?);
    let scope = context.scope()?;
    scope.plain(&memory.mark, &memory.region)?;
    let bytes = memory.region.bytes;
    let subject = Compared {
        what: format!("{} ({})", memory.written, Bytes(bytes)),
        of: Subject::Memory(memory.region),
        bytes,
    };
    subject.with(&wanted, scope)
}

fn observation(table: &Table<'_>, context: Context<'_>) -> Read<Expected> {
    let name = Observation::read(table, ());
    let wanted = WantedKeys::read(table);
    let (name, wanted) = (name?.observation, wanted?);
    let scope = context.scope()?;
    let bytes = scope.observations.get(&name.value);
    let bytes =
        *bytes.ok_or_else(|| scope.unknown(&name, "observation", scope.observations.keys()))?;
    let subject = Compared {
        what: format!("observation \"{}\" ({})", name.value, Bytes(bytes)),
        of: Subject::Observation(name.value),
        bytes,
    };
    subject.with(&wanted, scope)
}

fn semaphore(table: &Table<'_>, context: Context<'_>) -> Read<Expected> {
    let Semaphore { semaphore, equals } = Semaphore::read(table, ())?;
    let at = context.scope()?.semaphore(&semaphore, Window::Read)?;
    Ok(Expected {
        text: format!("semaphore {} is {equals}", semaphore.value),
        check: Check::Cell { at, value: equals },
    })
}

fn event(table: &Table<'_>, context: Context<'_>) -> Read<Expected> {
    let Event { event, equals } = Event::read(table, ())?;
    let at = context.scope()?.event(&event)?;
    Ok(Expected {
        text: format!("event {} is {equals}", event.value),
        check: Check::Cell { at, value: equals },
    })
}

fn no_errors(table: &Table<'_>, _: Context<'_>) -> Read<Expected> {
    let NoErrors {
        no_errors: Affirmed,
    } = NoErrors::read(table, ())?;
    Ok(Expected {
        text: "no engine reports an error".to_string(),
        check: Check::NoErrors,
    })
}

fn errors(table: &Table<'_>, context: Context<'_>) -> Read<Expected> {
    let ErrorBits { engine, m2s, s2m } = Errors::read(table, context)?.errors.0;
    let names = |names: Vec<String>| match names.is_empty() {
        true => "no error".to_string(),
        false => names.join(", "),
    };
    let text = format!(
        "{} reports {} on m2s, {} on s2m",
        engine.written,
        names(m2s.iter().map(error_name).collect()),
        names(s2m.iter().map(error_name).collect())
    );
    let check = Check::Errors {
        engine: engine.id,
        m2s: m2s.iter().fold(0, |bits, error| bits | error.mask()),
        s2m: s2m.iter().fold(0, |bits, error| bits | error.mask()),
    };
    Ok(Expected { text, check })
}

fn time(table: &Table<'_>, context: Context<'_>) -> Read<Expected> {
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

fn elapsed(table: &Table<'_>, context: Context<'_>) -> Read<Expected> {
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

/// Whether contents must be equal or must differ somewhere, and from what.
struct WantedKeys {
    equal: bool,
    content: ContentKeys,
}

enum ContentKeys {
    Fill(At<FillDecl>),
    /// What a buffer was filled with at the start.
    Initial(At<String>),
    /// What lies somewhere else at the end.
    Region(At<Location>),
    Sha256([u8; 32]),
}

impl WantedKeys {
    fn read(table: &Table<'_>) -> Read<WantedKeys> {
        let key = table.exactly_one("a comparison", &["equals", "differs"])?;
        let inner = table.req_table(key)?;
        let content = ContentKeys::read(&inner);
        inner.finish()?;
        Ok(WantedKeys {
            equal: key == "equals",
            content: content?,
        })
    }
}

impl ContentKeys {
    fn read(table: &Table<'_>) -> Read<ContentKeys> {
        let keys = [
            "zero", "byte", "counter", "hex", "file", "array", "initial", "region", "sha256",
        ];
        match table.exactly_one("a content", &keys)? {
            "initial" => Initial::read(table, ()).map(|keys| ContentKeys::Initial(keys.initial)),
            "region" => AtTheEnd::read(table, ()).map(|keys| ContentKeys::Region(keys.region)),
            "sha256" => Hash::read(table, ()).map(|keys| ContentKeys::Sha256(keys.sha256.0)),
            _ => FillDecl::read(table).map(ContentKeys::Fill),
        }
    }
}

/// What is compared, in words and in fact.
struct Compared {
    what: String,
    of: Subject,
    bytes: u64,
}

impl Compared {
    fn with(self, wanted: &WantedKeys, scope: &Scope<'_>) -> Read<Expected> {
        let (text, content) = self.content(&wanted.content, scope)?;
        let relation = match wanted.equal {
            true => "equals",
            false => "differs from",
        };
        Ok(Expected {
            text: format!("{} {relation} {text}", self.what),
            check: Check::Bytes {
                of: self.of,
                equal: wanted.equal,
                wanted: content,
            },
        })
    }

    fn content(&self, wanted: &ContentKeys, scope: &Scope<'_>) -> Read<(String, Wanted)> {
        Ok(match wanted {
            ContentKeys::Fill(fill) => {
                let resolved = scope.or_report(&fill.mark, fill.resolve(scope.files, ""))?;
                self.fits(resolved.own_bytes(), &fill.mark, scope)?;
                (fill.to_string(), Wanted::Fill(resolved))
            }
            ContentKeys::Initial(name) => {
                let region = scope.regions.get(&name.value);
                let region =
                    region.ok_or_else(|| scope.unknown(name, "buffer", scope.regions.keys()))?;
                self.fits(Some(region.bytes), &name.mark, scope)?;
                let mut contents = scope.contents.iter();
                let content = contents.find(|content| content.region == *region);
                let content = content.ok_or_else(|| {
                    let message = format!(
                        "\"{}\" is a pring; only a [[memory]] buffer has initial content",
                        name.value
                    );
                    scope.report(&name.mark, message)
                })?;
                let text = format!("the initial content of {}", name.value);
                (text, Wanted::Fill(content.fill.clone()))
            }
            ContentKeys::Region(at) => {
                let size = At {
                    value: Bytes(self.bytes),
                    mark: at.mark.clone(),
                };
                let region = scope.region(at, Some(&size))?;
                scope.plain(&at.mark, &region)?;
                (format!("{} at the end", at.value), Wanted::Region(region))
            }
            ContentKeys::Sha256(hash) => {
                let text = format!("sha256 {}", hex::encode(hash));
                (text, Wanted::Sha256(*hash))
            }
        })
    }

    /// Checks that what is compared with has as many bytes, if it has a number of its own.
    fn fits(&self, own: Option<u64>, mark: &Mark, scope: &Scope<'_>) -> Read<()> {
        match own {
            Some(own) if own != self.bytes => {
                let message = format!("has {own} bytes, but is compared with {}", self.what);
                Err(scope.report(mark, message))
            }
            _ => Ok(()),
        }
    }
}
