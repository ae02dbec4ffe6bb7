//! What names and places mean on the arch at hand, and how to complain about those that mean
//! nothing.

use super::super::ast::QueueDecl;
use super::super::diag::{At, Document, Mark, Reported};
use super::super::place::{Cell, EngineRef, Location, Region, Window};
use super::super::reader::hint;
use crate::arch::regs::Direction;
use crate::arch::{ArchSpec, EngineId};
use crate::config::Config;
use crate::memory::PhysicalMemory;
use crate::sim::Clock;
use crate::units::{Addr, Bytes};
use std::collections::BTreeMap;

/// Most bytes that a run may hold outside of the machine's memory: observations, which are kept for
/// the expectations, and what sequencers write.
const MAX_HELD_BYTES: u64 = 1 << 30;

pub(in crate::scenario) struct Scope<'a> {
    pub document: &'a Document,
    pub spec: &'static ArchSpec,
    pub clock: Clock,
    pub seed: u64,
    /// Named buffers and prings.
    pub regions: BTreeMap<String, Region>,
    /// Their names by first byte.
    pub taken: BTreeMap<Addr, String>,
    /// Names of prings, each with its direction.
    pub prings: BTreeMap<String, Direction>,
    /// Sizes of what is observed, by name.
    pub observations: BTreeMap<String, u64>,
    pub sequencers: Vec<String>,
    /// Bytes that the run will hold outside of the machine's memory.
    held: u64,
    /// Labels, each with the index of the `[[step]]` that has it.
    pub labels: BTreeMap<String, usize>,
    /// Whether every step so far could be tried. If not, what later steps find missing may be
    /// missing for that reason, and is not reported.
    pub trying: bool,
    /// A memory to try accesses on. Nothing that runs ever sees it.
    pub scratch: PhysicalMemory,
}

impl<'a> Scope<'a> {
    pub fn new(document: &'a Document, config: &Config, seed: u64) -> Result<Self, Reported> {
        let spec = config.arch().spec();
        let scratch = PhysicalMemory::new(spec, config.values.host.memory.0).map_err(|error| {
            document.report_span(None, &format!("cannot set up the memory: {error}"));
            Reported
        })?;
        Ok(Scope {
            document,
            spec,
            clock: config.udma_clock(),
            seed,
            regions: BTreeMap::new(),
            taken: BTreeMap::new(),
            prings: BTreeMap::new(),
            observations: BTreeMap::new(),
            sequencers: Vec::new(),
            held: 0,
            labels: BTreeMap::new(),
            trying: true,
            scratch,
        })
    }

    pub fn report(&self, mark: &Mark, message: impl Into<String>) -> Reported {
        self.document.report(mark, message)
    }

    /// Turns the error of a look-up into a problem at the place that was looked up.
    fn or_report<T>(&self, mark: &Mark, found: Result<T, String>) -> Result<T, Reported> {
        found.map_err(|message| self.report(mark, message))
    }

    pub fn address(&self, at: &At<Location>) -> Result<Addr, Reported> {
        self.or_report(&at.mark, at.resolve(&self.spec.map, &self.regions))
    }

    /// The region that starts at a place. The size of a whole buffer need not be said.
    pub fn region(&self, at: &At<Location>, size: Option<&At<Bytes>>) -> Result<Region, Reported> {
        let address = self.address(at)?;
        let bytes = match (size, at.buffer().and_then(|name| self.regions.get(name))) {
            (Some(size), _) => size.value.0,
            (None, Some(buffer)) => buffer.bytes,
            (None, None) => {
                let message = format!(
                    "\"size\" is missing beside \"{}\"; only a whole buffer needs none",
                    at.value
                );
                return Err(self.report(&at.mark, message));
            }
        };
        if bytes == 0 {
            let mark = size.map_or(&at.mark, |size| &size.mark);
            return Err(self.report(mark, "holds no byte; write a size of 1 or more"));
        }
        self.populated(&at.mark, address, bytes)
    }

    /// A region that the device has memory or cells for from first byte to last.
    pub fn populated(&self, mark: &Mark, at: Addr, bytes: u64) -> Result<Region, Reported> {
        match self.scratch.resolve(at, bytes) {
            Ok(_) => Ok(Region { at, bytes }),
            Err(error) => Err(self.report(mark, error.to_string())),
        }
    }

    /// Checks that a populated region is one of plain bytes, which contents can be compared with.
    pub fn plain(&self, mark: &Mark, region: &Region) -> Result<(), Reported> {
        match self.scratch.slice(region.at, region.bytes) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.report(
                mark,
                "is no plain memory; expect cells with semaphore = or event =",
            )),
        }
    }

    /// Checks that a populated region can be read.
    pub fn readable(&self, mark: &Mark, region: &Region) -> Result<(), Reported> {
        if self.scratch.slice(region.at, region.bytes).is_ok() {
            return Ok(());
        }
        let mut cells = vec![0; region.bytes as usize];
        let read = self.scratch.read(region.at, &mut cells);
        read.map_err(|error| self.report(mark, error.to_string()))
    }

    /// Sets bytes aside that the run holds outside of the machine's memory.
    pub fn hold(&mut self, mark: &Mark, bytes: u64) -> Result<(), Reported> {
        self.held = self.held.saturating_add(bytes);
        if self.held <= MAX_HELD_BYTES {
            return Ok(());
        }
        let most = Bytes(MAX_HELD_BYTES);
        let message =
            format!("what is observed, and written by sequencers, is more than {most} in all");
        Err(self.report(mark, message))
    }

    pub fn semaphore(&self, cell: &At<Cell>, window: Window) -> Result<Addr, Reported> {
        self.or_report(&cell.mark, cell.semaphore(&self.spec.map, window))
    }

    pub fn event(&self, cell: &At<Cell>) -> Result<Addr, Reported> {
        self.or_report(&cell.mark, cell.event(&self.spec.map))
    }

    /// Block and index of a cell.
    pub fn cell(&self, cell: &At<Cell>) -> Result<(u32, u32), Reported> {
        let block = self.or_report(&cell.mark, cell.block_index(&self.spec.map))?;
        Ok((block, cell.index))
    }

    pub fn engine(&self, engine: &At<EngineRef>) -> Result<EngineId, Reported> {
        self.or_report(&engine.mark, engine.resolve(&self.spec.map))
    }

    pub fn queue(&self, queue: &QueueDecl) -> Result<(EngineId, u8), Reported> {
        let engine = self.engine(&queue.engine);
        let queues = self.spec.limits.queues_per_engine;
        let number = u8::try_from(queue.queue.value)
            .ok()
            .filter(|q| u32::from(*q) < queues);
        let number = number.ok_or_else(|| {
            let message = format!("an engine has queues 0 to {}", queues.saturating_sub(1));
            self.report(&queue.queue.mark, message)
        });
        Ok((engine?, number?))
    }

    /// A pring that must be of one direction.
    pub fn pring(&self, name: &At<String>, direction: Direction) -> Result<String, Reported> {
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
    ) -> Reported {
        let hint = hint(&name.value, known.map(String::as_str));
        self.report(&name.mark, format!("no {what} \"{}\"{hint}", name.value))
    }
}
