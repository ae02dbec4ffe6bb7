//! One 64-bit physical address space: everything a DMA engine or the host can reach
//! (`docs/hardware.md`, "Address map").
//!
//! Storage is sparse: every HBM stack, State Buffer and the host memory is one anonymous mapping
//! of its full size, and a page takes memory only once it has been written. Bytes that nobody
//! wrote are 0.
//!
//! An access lies within one populated piece of one region (a stack, a State Buffer partition, a
//! cell window) or is refused with an [`AccessError`], which is an AXI error response to an engine.

mod cells;
mod error;
mod inert;
mod regions;

pub use cells::Effects;
pub use error::{AccessError, AccessReason};
pub use inert::{InertWord, InertWords};
pub use regions::{Nearby, Place, Target};

use crate::arch::ArchSpec;
use crate::units::{Addr, Bytes};
use cells::Cells;
use memmap2::{MmapMut, MmapOptions};
use regions::{Region, RegionTable, Storage};
use std::fmt::Display;
use std::io;

/// The physical address space of one simulated machine.
pub struct PhysicalMemory {
    table: RegionTable,
    /// What backs each row of the table.
    backings: Vec<Backing>,
}

enum Backing {
    Bytes(MmapMut),
    Cells(Box<Cells>),
    Constant([u8; 4]),
    Inert(InertWords),
    Registers,
}

impl PhysicalMemory {
    /// The address space of one generation with `host_bytes` of host memory.
    ///
    /// # Errors
    ///
    /// Fails if the host memory does not fit into the address space, or if the operating system
    /// refuses to reserve address space for a mapping.
    pub fn new(spec: &'static ArchSpec, host_bytes: u64) -> io::Result<PhysicalMemory> {
        let table = RegionTable::new(&spec.map, host_bytes)
            .map_err(|overlap| io::Error::new(io::ErrorKind::InvalidInput, overlap))?;
        let backings = (table.regions().iter())
            .map(Backing::new)
            .collect::<io::Result<_>>()?;
        Ok(PhysicalMemory { table, backings })
    }

    /// Where `len` bytes from `at` on fall.
    ///
    /// # Errors
    ///
    /// Any reason but those that depend on the direction: refusals of a read or a write as such
    /// come from [`read`](Self::read) and [`write`](Self::write).
    pub fn resolve(&self, at: Addr, len: u64) -> Result<Place, AccessError> {
        self.table.locate(at, len)
    }

    /// As [`resolve`](Self::resolve), looking first where the last access with the same `near` fell.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    #[inline]
    pub fn resolve_near(
        &self,
        at: Addr,
        len: u64,
        near: &mut Nearby,
    ) -> Result<Place, AccessError> {
        self.table.locate_near(at, len, near)
    }

    /// Reads the bytes from `at` on into `out`. Cells and constants are little-endian.
    ///
    /// # Errors
    ///
    /// Refuses what is not readable memory from first byte to last; `out` is then untouched.
    pub fn read(&self, at: Addr, out: &mut [u8]) -> Result<(), AccessError> {
        self.read_near(at, out, &mut Nearby::default())
    }

    /// As [`read`](Self::read), looking first where the last access with the same `near` fell.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub fn read_near(
        &self,
        at: Addr,
        out: &mut [u8],
        near: &mut Nearby,
    ) -> Result<(), AccessError> {
        let len = out.len() as u64;
        let place = self.table.locate_near(at, len, near)?;
        let refuse = |reason| AccessError { at, len, reason };
        match &self.backings[place.row] {
            Backing::Bytes(bytes) => {
                let start = place.offset as usize;
                out.copy_from_slice(&bytes[start..start + out.len()]);
                Ok(())
            }
            Backing::Cells(cells) => cells.read(place.offset, out).map_err(refuse),
            Backing::Constant(word) => {
                out.copy_from_slice(&word[..out.len()]);
                Ok(())
            }
            Backing::Inert(words) => {
                words.read(place.offset, out);
                Ok(())
            }
            Backing::Registers => Err(refuse(AccessReason::Registers)),
        }
    }

    /// Writes `bytes` from `at` on, and says which event or semaphore cells that stored to.
    ///
    /// # Errors
    ///
    /// Refuses what is not writable memory from first byte to last; nothing is then written.
    pub fn write(&mut self, at: Addr, bytes: &[u8]) -> Result<Effects, AccessError> {
        self.write_near(at, bytes, &mut Nearby::default())
    }

    /// As [`write`](Self::write), looking first where the last access with the same `near` fell.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    #[inline]
    pub fn write_near(
        &mut self,
        at: Addr,
        bytes: &[u8],
        near: &mut Nearby,
    ) -> Result<Effects, AccessError> {
        let len = bytes.len() as u64;
        let place = self.table.locate_near(at, len, near)?;
        let refuse = |reason| AccessError { at, len, reason };
        match &mut self.backings[place.row] {
            Backing::Bytes(memory) => {
                let start = place.offset as usize;
                memory[start..start + bytes.len()].copy_from_slice(bytes);
                Ok(Effects::None)
            }
            Backing::Cells(cells) => cells.write(place.offset, bytes).map_err(refuse),
            Backing::Constant(_) => Err(refuse(AccessReason::ReadOnly)),
            Backing::Inert(words) => {
                words.write(place.offset, bytes);
                Ok(Effects::None)
            }
            Backing::Registers => Err(refuse(AccessReason::Registers)),
        }
    }

    /// Whether a write of `len` bytes to a place would be taken.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn check_write(&self, place: Place, at: Addr, len: u64) -> Result<(), AccessError> {
        let reason = match &self.backings[place.row] {
            Backing::Bytes(_) | Backing::Inert(_) => return Ok(()),
            Backing::Cells(_) if cells::is_writable(place.offset) => return Ok(()),
            Backing::Cells(_) | Backing::Constant(_) => AccessReason::ReadOnly,
            Backing::Registers => AccessReason::Registers,
        };
        Err(AccessError { at, len, reason })
    }

    /// The host reads a register that nothing models.
    pub fn note_inert_read(&mut self, place: Place) {
        if let Some(Backing::Inert(words)) = self.backings.get_mut(place.row) {
            words.note_read(place.offset);
        }
    }

    /// The registers that nothing models and somebody has touched, by address.
    pub fn inert_words(&self) -> impl Iterator<Item = (Addr, Target, InertWord)> {
        let rows = self.table.regions().iter().zip(&self.backings);
        rows.flat_map(|(region, backing)| {
            let words = match backing {
                Backing::Inert(words) => Some(words.touched()),
                _ => None,
            };
            let at = move |(offset, word)| (region.at(offset), region.target, word);
            words.into_iter().flatten().map(at)
        })
    }

    /// Borrows `len` bytes of HBM, State Buffer or host memory, to be read and written.
    ///
    /// # Errors
    ///
    /// As [`slice`](Self::slice).
    pub fn slice_mut(&mut self, at: Addr, len: u64) -> Result<&mut [u8], AccessError> {
        let place = self.table.locate(at, len)?;
        let reason = match &mut self.backings[place.row] {
            Backing::Bytes(bytes) => {
                let start = place.offset as usize;
                return Ok(&mut bytes[start..start + len as usize]);
            }
            Backing::Cells(_) | Backing::Constant(_) => AccessReason::NotBytes,
            Backing::Inert(_) | Backing::Registers => AccessReason::Registers,
        };
        Err(AccessError { at, len, reason })
    }

    /// Borrows `len` bytes of HBM, State Buffer or host memory: compares and hashes large areas
    /// without a copy.
    ///
    /// # Errors
    ///
    /// Refuses what [`read`](Self::read) refuses, and cells and constants.
    pub fn slice(&self, at: Addr, len: u64) -> Result<&[u8], AccessError> {
        let place = self.table.locate(at, len)?;
        let reason = match &self.backings[place.row] {
            Backing::Bytes(bytes) => {
                let start = place.offset as usize;
                return Ok(&bytes[start..start + len as usize]);
            }
            Backing::Cells(_) | Backing::Constant(_) => AccessReason::NotBytes,
            Backing::Inert(_) | Backing::Registers => AccessReason::Registers,
        };
        Err(AccessError { at, len, reason })
    }
}

impl Backing {
    fn new(region: &Region) -> io::Result<Backing> {
        Ok(match region.storage {
            Storage::Bytes => Backing::Bytes(map_sparse(region)?),
            Storage::Cells { block } => Backing::Cells(Box::new(Cells::new(block))),
            Storage::Constant(value) => Backing::Constant(value.to_le_bytes()),
            Storage::Inert => Backing::Inert(InertWords::default()),
            Storage::Registers => Backing::Registers,
        })
    }
}

/// A mapping that covers every populated byte of the region. Where the operating system knows how,
/// neither memory nor swap space is set aside for it.
fn map_sparse(region: &Region) -> io::Result<MmapMut> {
    let fail = |kind, why: &dyn Display| {
        let (target, size) = (region.target, Bytes(region.span()));
        io::Error::new(kind, format!("cannot map {size} for {target:?}: {why}"))
    };
    let len =
        usize::try_from(region.span()).map_err(|why| fail(io::ErrorKind::OutOfMemory, &why))?;
    (MmapOptions::new().len(len).no_reserve_swap().map_anon()).map_err(|why| fail(why.kind(), &why))
}

#[cfg(test)]
mod tests;
