//! `[[expect]]`: what must hold once the steps are done, and how the report names it. The kinds are listed
//! in [`KINDS`], by the key that names them.

mod content;
mod times;

use super::fill::Fill;
use super::given::Engine;
use super::place::{Cell, Region, Window};
use super::scope::Context;
use super::words::Affirmed;
use crate::arch::EngineId;
use crate::arch::regs::{M2sError, S2mError};
use crate::document::{At, Keys, NoValue, Read, Table, Under, keys};
use crate::sim::Duration;
use crate::units::Addr;
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
        read: content::memory,
    },
    Kind {
        name: "observation",
        read: content::observation,
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
        read: times::time,
    },
    Kind {
        name: "elapsed",
        read: times::elapsed,
    },
];

keys! {
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
    known.push("only");
    content::keys(known);
    <Semaphore as Keys<()>>::names(known);
    <Event as Keys<()>>::names(known);
    <NoErrors as Keys<()>>::names(known);
    <Errors as Keys<Context<'_>>>::names(known);
    times::keys(known);
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
    let names = |names: Vec<&str>| match names.is_empty() {
        true => "no error".to_string(),
        false => names.join(", "),
    };
    let text = format!(
        "{} reports {} on m2s, {} on s2m",
        engine.written,
        names(m2s.iter().map(|error| error.name()).collect()),
        names(s2m.iter().map(|error| error.name()).collect())
    );
    let check = Check::Errors {
        engine: engine.id,
        m2s: m2s.iter().fold(0, |bits, error| bits | error.mask()),
        s2m: s2m.iter().fold(0, |bits, error| bits | error.mask()),
    };
    Ok(Expected { text, check })
}
