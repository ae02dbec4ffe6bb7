//! What names mean on the arch at hand, and what the parts of a scenario have made known so far.

use super::files::Files;
use super::fill::Fill;
use super::host_side::HostSide;
use super::place::{Cell, EngineRef, Location, Region, Window};
use super::words::Name;
use crate::arch::regs::Direction;
use crate::arch::{Arch, ArchSpec, EngineId};
use crate::config::Config;
use crate::document::{At, Document, Mark, NoValue, Read, Table, hint};
use crate::memory::PhysicalMemory;
use crate::sim::Clock;
use crate::units::{Addr, Bytes};
use std::collections::BTreeMap;

/// Most bytes that a run may hold outside of the machine's memory: observations, which are kept for
/// the expectations, and what sequencers write.
const MAX_HELD_BYTES: u64 = 1 << 30;

/// The scope in which a table is read. There is none while a file is only checked for what can be told
/// without an arch: then what depends on one has no value.
#[derive(Clone, Copy)]
pub(super) struct Context<'a>(pub Option<&'a Scope<'a>>);

impl<'a> Context<'a> {
    pub fn scope(self) -> Read<&'a Scope<'a>> {
        self.0.ok_or(NoValue)
    }

    /// Whether a table counts on the arch at hand, which `only` may limit.
    pub fn counts(self, table: &Table<'_>) -> Read<bool> {
        let only = table.opt::<Vec<Arch>>("only")?;
        Ok(match (self.0, only) {
            (Some(scope), Some(only)) => only.contains(&scope.spec.arch),
            _ => true,
        })
    }
}

/// A region and what it holds at the start.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub region: Region,
    pub fill: Fill,
}

pub(super) struct Scope<'a> {
    pub document: &'a Document,
    pub files: &'a Files,
    pub spec: &'static ArchSpec,
    pub clock: Clock,
    pub seed: u64,
    /// Named buffers and prings.
    pub regions: BTreeMap<String, Region>,
    /// Their names by first byte.
    pub taken: BTreeMap<Addr, String>,
    /// Contents of memory before the first step.
    pub contents: Vec<Content>,
    /// Names of prings, each with its direction.
    pub prings: BTreeMap<String, Direction>,
    /// Sizes of what is observed, by name.
    pub observations: BTreeMap<String, u64>,
    pub sequencers: Vec<String>,
    /// Bytes that the run will hold outside of the machine's memory.
    held: u64,
    /// Labels, each with the index of the `[[step]]` that has it.
    pub labels: BTreeMap<String, usize>,
    /// The label of each step of this arch.
    pub steps: Vec<Option<String>>,
    /// The host as it stands after the steps so far.
    pub host: HostSide,
    /// Whether every step so far could be tried. If not, what later steps find missing may be
    /// missing for that reason, and is not reported.
    pub trying: bool,
    /// A memory to try accesses on. Nothing that runs ever sees it.
    pub scratch: PhysicalMemory,
}

impl<'a> Scope<'a> {
    pub fn new(document: &'a Document, files: &'a Files, config: &Config, seed: u64) -> Read<Self> {
        let spec = config.arch().spec();
        let scratch = PhysicalMemory::new(spec, config.values.host.memory.0)
            .map_err(|error| document.report_file(format!("cannot map memory: {error}")))?;
        Ok(Scope {
            document,
            files,
            spec,
            clock: config.udma_clock(),
            seed,
            regions: BTreeMap::new(),
            taken: BTreeMap::new(),
            contents: Vec::new(),
            prings: BTreeMap::new(),
            observations: BTreeMap::new(),
            sequencers: Vec::new(),
            held: 0,
            labels: BTreeMap::new(),
            steps: Vec::new(),
            host: HostSide::dry_run(config.arch()),
            trying: true,
            scratch,
        })
    }

    pub fn report(&self, mark: &Mark, message: impl Into<String>) -> NoValue {
        self.document.report(mark, message)
    }

    /// Turns the error of a look-up into a problem at the place that was looked up.
    pub fn or_report<T>(&self, mark: &Mark, found: Result<T, String>) -> Read<T> {
        found.map_err(|message| self.report(mark, message))
    }

    pub fn address(&self, at: &At<Location>) -> Read<Addr> {
        self.or_report(&at.mark, at.resolve(&self.spec.map, &self.regions))
    }

    /// The region that starts at a place. The size of a whole buffer need not be said.
    pub fn region(&self, at: &At<Location>, size: Option<&At<Bytes>>) -> Read<Region> {
        let address = self.address(at)?;
        let bytes = match (size, at.buffer().and_then(|name| self.regions.get(name))) {
            (Some(size), _) => size.value.0,
            (None, Some(buffer)) => buffer.bytes,
            (None, None) => {
                let message = format!(
                    "\"size\" is missing for \"{}\"; it may be omitted only for a whole buffer",
                    at.value
                );
                return Err(self.report(&at.mark, message));
            }
        };
        if bytes == 0 {
            let mark = size.map_or(&at.mark, |size| &size.mark);
            return Err(self.report(mark, "has 0 bytes; the size must be at least 1"));
        }
        self.populated(&at.mark, address, bytes)
    }

    /// A region that the device has memory or cells for from first byte to last.
    pub fn populated(&self, mark: &Mark, at: Addr, bytes: u64) -> Read<Region> {
        match self.scratch.resolve(at, bytes) {
            Ok(_) => Ok(Region { at, bytes }),
            Err(error) => Err(self.report(mark, error.to_string())),
        }
    }

    /// Checks that a populated region is one of plain bytes, which contents can be compared with.
    pub fn plain(&self, mark: &Mark, region: &Region) -> Read<()> {
        match self.scratch.slice(region.at, region.bytes) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.report(
                mark,
                "is not plain memory; to check cells, use semaphore = or event =",
            )),
        }
    }

    /// Checks that a populated region can be read.
    fn readable(&self, mark: &Mark, region: &Region) -> Read<()> {
        if self.scratch.slice(region.at, region.bytes).is_ok() {
            return Ok(());
        }
        let mut cells = vec![0; region.bytes as usize];
        let read = self.scratch.read(region.at, &mut cells);
        read.map_err(|error| self.report(mark, error.to_string()))
    }

    /// Sets bytes aside that the run holds outside of the machine's memory.
    pub fn hold(&mut self, mark: &Mark, bytes: u64) -> Read<()> {
        self.held = self.held.saturating_add(bytes);
        if self.held <= MAX_HELD_BYTES {
            return Ok(());
        }
        let most = Bytes(MAX_HELD_BYTES);
        let message = format!("observations and writes by sequencers exceed {most} in total");
        Err(self.report(mark, message))
    }

    /// Notes that a region is looked at under a name.
    pub fn observe(&mut self, name: &At<Name>, mark: &Mark, region: &Region) -> Read<()> {
        self.hold(mark, region.bytes)?;
        self.readable(mark, region)?;
        self.observed(name, region.bytes)
    }

    /// Notes the name and size of something observed.
    pub fn observed(&mut self, name: &At<Name>, bytes: u64) -> Read<()> {
        let earlier = self.observations.insert(name.value.0.clone(), bytes);
        if earlier.is_some() {
            let message = format!("\"{}\" is already the name of an observation", name.value.0);
            return Err(self.report(&name.mark, message));
        }
        Ok(())
    }

    pub fn semaphore(&self, cell: &At<Cell>, window: Window) -> Read<Addr> {
        self.or_report(&cell.mark, cell.semaphore(&self.spec.map, window))
    }

    pub fn event(&self, cell: &At<Cell>) -> Read<Addr> {
        self.or_report(&cell.mark, cell.event(&self.spec.map))
    }

    pub fn engine(&self, engine: &At<EngineRef>) -> Read<EngineId> {
        self.or_report(&engine.mark, engine.resolve(&self.spec.map))
    }

    /// A pring that must be of one direction.
    pub fn pring(&self, name: &At<String>, direction: Direction) -> Read<String> {
        match self.prings.get(&name.value) {
            Some(found) if *found == direction => Ok(name.value.clone()),
            Some(found) => {
                let (found, wanted) = (found.ring_name(), direction.ring_name());
                let message = format!(
                    "pring \"{}\" is of type {found}; a {wanted} pring is needed here",
                    name.value
                );
                Err(self.report(&name.mark, message))
            }
            None => Err(self.unknown(name, "pring", self.prings.keys())),
        }
    }

    pub fn unknown<'n>(
        &self,
        name: &At<String>,
        what: &str,
        known: impl Iterator<Item = &'n String>,
    ) -> NoValue {
        let hint = hint(&name.value, known.map(String::as_str));
        self.report(
            &name.mark,
            format!("unknown {what} \"{}\"{hint}", name.value),
        )
    }
}
