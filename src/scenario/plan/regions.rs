//! Named buffers and rings: where they lie, what they hold, and that none lies over another.

use super::super::ast::{MemoryDecl, PringDecl};
use super::super::diag::{At, Mark, Reported};
use super::super::place::Region;
use super::scope::Scope;
use super::{Content, PringPlan};
use crate::desc::DESC_BYTES;
use crate::host::{Pring, PringError};

pub(super) fn memory(
    scope: &mut Scope<'_>,
    decls: &[MemoryDecl],
) -> Result<Vec<Content>, Reported> {
    let mut verdict = Ok(());
    let mut contents = Vec::new();
    for decl in decls {
        match buffer(scope, decl) {
            Ok(content) => contents.push(content),
            Err(reported) => verdict = Err(reported),
        }
    }
    verdict.map(|()| contents)
}

fn buffer(scope: &mut Scope<'_>, decl: &MemoryDecl) -> Result<Content, Reported> {
    let stream = format!("memory/{}", decl.name.value);
    let fill = decl.fill.resolve(scope.document, &stream);
    let fill = fill.map_err(|message| scope.report(&decl.fill.mark, message))?;
    let bytes = fill.region_bytes(decl.size.as_ref().map(|size| size.value.0));
    let bytes = bytes.map_err(|message| {
        let mark = decl
            .size
            .as_ref()
            .map_or(&decl.name.mark, |size| &size.mark);
        scope.report(mark, message)
    })?;
    let at = scope.address(&decl.at)?;
    let region = scope.populated(&decl.at.mark, at, bytes)?;
    place(
        scope,
        &decl.name.value,
        &decl.name.mark,
        &decl.at.mark,
        region,
    )?;
    Ok(Content { region, fill })
}

pub(super) fn prings(
    scope: &mut Scope<'_>,
    decls: &[PringDecl],
) -> Result<Vec<PringPlan>, Reported> {
    let mut verdict = Ok(());
    let mut prings = Vec::new();
    for decl in decls {
        match pring(scope, decl) {
            Ok(pring) => prings.push(pring),
            Err(reported) => verdict = Err(reported),
        }
    }
    verdict.map(|()| prings)
}

fn pring(scope: &mut Scope<'_>, decl: &PringDecl) -> Result<PringPlan, Reported> {
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
    place(
        scope,
        &decl.name.value,
        &decl.name.mark,
        &decl.at.mark,
        region,
    )?;
    scope.prings.insert(decl.name.value.clone(), decl.direction);
    let bytes = match &decl.file {
        Some(file) => dumped_ring(scope, file, region.bytes)?,
        None => Vec::new(),
    };
    Ok(PringPlan {
        name: decl.name.value.clone(),
        line: scope.document.line(&decl.name.mark),
        direction: decl.direction,
        at,
        descriptors,
        bytes,
    })
}

/// The bytes of a dumped ring that is to fill a ring of `room` bytes.
fn dumped_ring(scope: &Scope<'_>, file: &At<String>, room: u64) -> Result<Vec<u8>, Reported> {
    let bytes = scope.document.file(file);
    let bytes = bytes.map_err(|message| scope.report(&file.mark, message))?;
    let whole = !bytes.is_empty() && bytes.len().is_multiple_of(DESC_BYTES);
    if !whole || bytes.len() as u64 > room {
        let (name, held) = (&file.value, bytes.len());
        let message = format!(
            "{name} has {held} bytes; a dump of this ring has a multiple of {DESC_BYTES}, \
             at most {room}"
        );
        return Err(scope.report(&file.mark, message));
    }
    Ok(bytes.to_vec())
}

/// Gives a region its name, unless the name or some of the bytes are taken.
fn place(
    scope: &mut Scope<'_>,
    name: &str,
    name_mark: &Mark,
    at_mark: &Mark,
    region: Region,
) -> Result<(), Reported> {
    if scope.regions.contains_key(name) {
        return Err(scope.report(
            name_mark,
            format!("\"{name}\" is already the name of a buffer or pring"),
        ));
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
                return Err(scope.report(at_mark, message));
            }
            _ => {}
        }
    }
    scope.taken.insert(region.at, name.to_string());
    scope.regions.insert(name.to_string(), region);
    Ok(())
}

fn shown(region: &Region) -> String {
    format!("{} at {}", crate::units::Bytes(region.bytes), region.at)
}
