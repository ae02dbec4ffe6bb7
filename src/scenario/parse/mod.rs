//! From TOML to the [`ast`](super::ast), strictly: what is not known here is an error.

mod expects;
mod faults;
mod sequencers;
mod steps;

use super::ast::{Ast, MemoryDecl, Only, PringDecl, QueueDecl};
use super::diag::{At, Document, Reported, ScenarioError};
use super::fill::FillDecl;
use super::place::check_name;
use super::reader::{FromValue, Reader, Value};
use crate::arch::Arch;
use crate::arch::regs::Direction;
use toml::de::DeTable;

/// The built-in config of a scenario that names none.
const DEFAULT_CONFIG: &str = "cayman";

/// Reads a whole file. Every problem that one pass can see is in the error.
pub(super) fn parse(document: &Document) -> Result<Ast, ScenarioError> {
    let (table, errors) = DeTable::parse_recoverable(document.text());
    for error in &errors {
        document.report_span(error.span(), error.message());
    }
    document.conclude(Ok(()))?;
    document.conclude(read(&Reader::root(document, table.get_ref())))
}

fn read(root: &Reader<'_>) -> Result<Ast, Reported> {
    let name = root.req::<String>("name");
    let description = root.or("description", String::new());
    let config = root.opt::<String>("config");
    let runs_on = root.opt::<Vec<Arch>>("runs_on");
    let seed = root.or("seed", 0);
    let memory = all(root, "memory", |_, table| memory(table));
    let prings = all(root, "pring", |_, table| pring(table));
    let steps = all(root, "step", steps::step);
    let sequencers = all(root, "sequencer", |_, table| sequencers::sequencer(table));
    let faults = all(root, "fault", |_, table| faults::fault(table));
    let expects = all(root, "expect", |_, table| expects::expect(table));
    root.finish()?;
    let absent = |key: &str| root.mark_of(key, 0);
    Ok(Ast {
        name: name?.value,
        description: description?,
        config: config?.unwrap_or(At {
            value: DEFAULT_CONFIG.to_string(),
            mark: absent("config"),
        }),
        runs_on: runs_on?.unwrap_or(At {
            value: Arch::ALL.to_vec(),
            mark: absent("runs_on"),
        }),
        seed: seed?,
        memory: memory?,
        prings: prings?,
        steps: steps?,
        sequencers: sequencers?,
        faults: faults?,
        expects: expects?,
    })
}

/// Reads every table of an array, so that one bad table does not hide the next.
fn all<T>(
    root: &Reader<'_>,
    key: &'static str,
    read: impl Fn(usize, &Reader<'_>) -> Result<T, Reported>,
) -> Result<Vec<T>, Reported> {
    let read = |(index, table): &(usize, Reader<'_>)| read(*index, table);
    let found: Vec<_> = root.tables(key).iter().map(read).collect();
    found.into_iter().collect()
}

fn memory(table: &Reader<'_>) -> Result<MemoryDecl, Reported> {
    let name = name(table, "name");
    let at = table.req("at");
    let size = table.opt("size");
    let fill = FillDecl::read(table);
    table.finish()?;
    Ok(MemoryDecl {
        name: name?,
        at: at?,
        size: size?,
        fill: fill?,
    })
}

fn pring(table: &Reader<'_>) -> Result<PringDecl, Reported> {
    let name = name(table, "name");
    let direction = table.req::<Direction>("type");
    let at = table.req("at");
    let descriptors = table.req("descriptors");
    let file = table.opt("file");
    table.finish()?;
    Ok(PringDecl {
        name: name?,
        direction: direction?.value,
        at: at?,
        descriptors: descriptors?,
        file: file?,
    })
}

impl FromValue for Direction {
    const EXPECTED: &'static str = "\"tx\" or \"rx\"";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let Some(text) = value.text()? else {
            return Ok(None);
        };
        let named = |direction: &Direction| direction.ring_name() == text;
        match Direction::ALL.into_iter().find(named) {
            Some(direction) => Ok(Some(direction)),
            None => Err(format!("\"{text}\" is not {}", Self::EXPECTED)),
        }
    }
}

/// A name that may stand in a location.
pub(super) fn name(table: &Reader<'_>, key: &'static str) -> Result<At<String>, Reported> {
    let name = table.req::<String>(key)?;
    match check_name(&name) {
        Ok(()) => Ok(name),
        Err(message) => Err(table.report_at(&name.mark, message)),
    }
}

/// The arches a table is limited to.
fn only(table: &Reader<'_>) -> Result<Only, Reported> {
    Ok(table.opt("only")?.map(|at: At<Vec<Arch>>| at.value))
}

pub(super) fn queue(table: &Reader<'_>) -> Result<QueueDecl, Reported> {
    let engine = table.req("engine");
    let queue = table.req("queue");
    Ok(QueueDecl {
        engine: engine?,
        queue: queue?,
    })
}

/// The one of several keys that a table has; none or several is an error.
pub(super) fn exactly_one(
    table: &Reader<'_>,
    what: &str,
    keys: &[&'static str],
) -> Result<&'static str, Reported> {
    let mut there = keys.iter().filter(|key| table.has(key));
    match (there.next(), there.next()) {
        (Some(key), None) => Ok(key),
        (first, _) => {
            let how = if first.is_some() {
                "several are"
            } else {
                "none is"
            };
            let keys = keys.join(", ");
            Err(table.report(format!("{what} needs exactly one of {keys}; {how} given")))
        }
    }
}
