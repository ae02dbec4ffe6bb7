//! `[[memory]]` and `[[pring]]`, named buffers and rings: where they lie, what they hold, and that none
//! lies over another.

use super::fill::FillDecl;
use super::host_side::PringPlan;
use super::place::{Location, Region};
use super::scope::{Content, Scope};
use super::words::Name;
use crate::arch::regs::Direction;
use crate::desc::DESC_BYTES;
use crate::document::{At, Keys, Read, Table, keys};
use crate::host::{Pring, PringError};
use crate::units::Bytes;

keys! {
    /// A `[[memory]]` as the file has it.
    pub(super) struct Memory {
        name: At<Name>,
        at: At<Location>,
        size: Option<At<Bytes>>,
        fill: At<FillDecl>,
    }

    /// A `[[pring]]` as the file has it.
    pub(super) struct PringTable {
        name: At<Name>,
        direction ("type"): Direction,
        at: At<Location>,
        descriptors: At<u32>,
        file: Option<At<String>>,
    }
}

/// Reads a table of either kind.
pub(super) fn read<T: Keys<()>>(table: &Table<'_>) -> Read<T> {
    let read = T::read(table, ());
    table.finish()?;
    read
}

/// Resolves a buffer and makes it known.
pub(super) fn memory(scope: &mut Scope<'_>, decl: &Memory) -> Read<()> {
    let stream = format!("memory/{}", decl.name.value.0);
    let fill = decl.fill.resolve(scope.files, &stream);
    let fill = scope.or_report(&decl.fill.mark, fill)?;
    let bytes = fill.region_bytes(decl.size.as_ref().map(|size| size.value.0));
    let size_mark = decl.size.as_ref().map(|size| &size.mark);
    let bytes = scope.or_report(size_mark.unwrap_or(&decl.name.mark), bytes)?;
    let at = scope.address(&decl.at)?;
    let region = scope.populated(&decl.at.mark, at, bytes)?;
    place(scope, &decl.name, &decl.at, region)?;
    scope.contents.push(Content { region, fill });
    Ok(())
}

/// Resolves a ring and makes it known.
pub(super) fn pring(scope: &mut Scope<'_>, decl: &PringTable) -> Read<PringPlan> {
    let descriptors = decl.descriptors.value;
    let at = scope.address(&decl.at)?;
    let ring = Pring::new(decl.direction, at, descriptors).map_err(|error| {
        let mark = match error {
            PringError::Length(_) => &decl.descriptors.mark,
            _ => &decl.at.mark,
        };
        scope.report(mark, error.to_string())
    })?;
    let region = scope.populated(&decl.at.mark, at, ring.size_bytes())?;
    place(scope, &decl.name, &decl.at, region)?;
    let name = decl.name.value.0.clone();
    scope.prings.insert(name.clone(), decl.direction);
    let bytes = match &decl.file {
        Some(file) => dumped_ring(scope, file, region.bytes)?,
        None => Vec::new(),
    };
    Ok(PringPlan {
        name,
        line: scope.document.line(&decl.name.mark),
        direction: decl.direction,
        at,
        descriptors,
        bytes,
    })
}

/// The bytes of a dumped ring that is to fill a ring of `room` bytes.
fn dumped_ring(scope: &Scope<'_>, file: &At<String>, room: u64) -> Read<Vec<u8>> {
    let bytes = scope.or_report(&file.mark, scope.files.file(file))?;
    let whole = !bytes.is_empty() && bytes.len().is_multiple_of(DESC_BYTES);
    if !whole || bytes.len() as u64 > room {
        let (name, held) = (&file.value, bytes.len());
        let message = format!(
            "{name} has {held} bytes; a dump of this ring must be a multiple of {DESC_BYTES} bytes, at least {DESC_BYTES} and at most {room}"
        );
        return Err(scope.report(&file.mark, message));
    }
    Ok(bytes.to_vec())
}

/// Gives a region its name, unless the name or some of the bytes are taken.
fn place(scope: &mut Scope<'_>, name: &At<Name>, at: &At<Location>, region: Region) -> Read<()> {
    let (name, mark) = (name.value.0.as_str(), &name.mark);
    if scope.regions.contains_key(name) {
        let message = format!("\"{name}\" is already the name of a buffer or pring");
        return Err(scope.report(mark, message));
    }
    // Those before do not overlap each other: only the neighbours can reach into this one.
    let before = scope.taken.range(..=region.at).next_back();
    let after = scope.taken.range(region.at..).next();
    for (_, other) in before.into_iter().chain(after) {
        match scope.regions.get(other) {
            Some(taken) if taken.overlaps(&region) => {
                let message = format!(
                    "\"{name}\" ({}) overlaps \"{other}\" ({})",
                    shown(&region),
                    shown(taken)
                );
                return Err(scope.report(&at.mark, message));
            }
            _ => {}
        }
    }
    scope.taken.insert(region.at, name.to_string());
    scope.regions.insert(name.to_string(), region);
    Ok(())
}

fn shown(region: &Region) -> String {
    format!("{} at {}", Bytes(region.bytes), region.at)
}
