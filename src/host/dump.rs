//! The dump: a finished vring goes into a pair of prings, padded to a fixed length if asked.

use super::bus::Bus;
use super::chunk::{ChunkError, MemChunk};
use super::pages::{PAGE_DESCS, VringPages};
use super::pring::{Pring, PringError};
use super::vring::Vring;
use crate::arch::Arch;
use crate::arch::regs::Direction;
use crate::desc::{BarrierMode, BuildError, CopyFlags, Descriptor, RingId, build_copy};
use crate::units::Addr;

/// Bytes of the copy that pads a pring.
pub const PAD_BYTES: u32 = 4;

/// The word that padding copies onto itself: the last of the first HBM stack. Modelled (C): the
/// runtime's scratch word is not public. A program that uses this word must not be padded.
pub fn pad_scratch(arch: Arch) -> Addr {
    let top = arch
        .spec()
        .map
        .hbm
        .first()
        .map_or(0, |stack| stack.base.0 + stack.populated);
    Addr(top.saturating_sub(u64::from(PAD_BYTES)))
}

/// Where the trap descriptor reads from and writes to: no device has anything there. Modelled (C).
pub const TRAP_ADDRESS: Addr = Addr(u64::MAX - 3);

/// What a dump does beside copying descriptors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpOptions {
    /// Pad the Tx half to this many descriptors, with 4-byte copies of [`pad_scratch`] onto itself
    /// without a barrier. `None` leaves it as long as it is.
    pub tx_padded: Option<u32>,
    /// The same for the Rx half.
    pub rx_padded: Option<u32>,
    /// Free what has been dumped. The totals stay.
    pub free_on_dump: bool,
    /// Put a trap behind the padded descriptors: a copy from and to [`TRAP_ADDRESS`], which aborts
    /// the engine with a data error if a doorbell ever runs that far. It takes a slot of the pring and
    /// does not count as used. Modelled (C): the runtime's trap is not public.
    pub trap: bool,
}

impl DumpOptions {
    /// Descriptors that a half has in its pring, without a trap.
    fn length(self, vring: &Vring, direction: Direction) -> u32 {
        let padded = match direction {
            Direction::M2s => self.tx_padded,
            Direction::S2m => self.rx_padded,
        };
        padded.unwrap_or_else(|| vring.half(direction).used_desc_count())
    }
}

/// Why a vring was not dumped. No pring was written and nothing freed, unless the bus itself failed
/// midway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// The padded length is below the real one.
    #[error("Failed to pad vring {vring} {half} from {used} descriptors to {padded} descriptors")]
    Padding {
        /// Name of the vring.
        vring: String,
        /// `tx` or `rx`.
        half: &'static str,
        /// Descriptors of the half.
        used: u32,
        /// Descriptors asked for.
        padded: u32,
    },
    /// The pring cannot take them.
    #[error("cannot dump vring {vring} {half}: {source}")]
    Pring {
        /// Name of the vring.
        vring: String,
        /// `tx` or `rx`.
        half: &'static str,
        /// Why not.
        source: PringError,
    },
    /// The vring is a template: its addresses are symbols.
    #[error("cannot dump vring {0}: it is a template; resolve it first")]
    Template(String),
    /// No memory for the prings.
    #[error("cannot make prings for vring {vring}: {source}")]
    Chunk {
        /// Name of the vring.
        vring: String,
        /// Why not.
        source: ChunkError,
    },
    /// The padding copy could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl Vring {
    /// Writes both halves into their prings, from slot 0 on.
    ///
    /// # Errors
    /// [`DumpError`] if a pring is too small, of the wrong type or unbound.
    pub fn dump_to_pring(
        &self,
        bus: &mut dyn Bus,
        tx: &mut Pring,
        rx: &mut Pring,
    ) -> Result<(), DumpError> {
        self.dump_halves(bus, tx, rx, DumpOptions::default())
    }

    /// As [`Vring::dump_to_pring`], with options.
    ///
    /// # Errors
    /// As [`Vring::dump_to_pring`], and if a half has more descriptors than it is to be padded to.
    pub fn dump_to_pring_with(
        &mut self,
        bus: &mut dyn Bus,
        tx: &mut Pring,
        rx: &mut Pring,
        options: DumpOptions,
    ) -> Result<(), DumpError> {
        self.dump_halves(bus, tx, rx, options)?;
        if options.free_on_dump {
            self.tx.truncate(0);
            self.rx.truncate(0);
        }
        Ok(())
    }

    /// Writes one half into its pring, from slot 0 on.
    ///
    /// # Errors
    /// [`DumpError`] if the pring is too small, of the wrong type or unbound, or if the half has more
    /// descriptors than it is to be padded to.
    pub fn dump_half_to_pring(
        &mut self,
        bus: &mut dyn Bus,
        direction: Direction,
        pring: &mut Pring,
        options: DumpOptions,
    ) -> Result<(), DumpError> {
        let half = Half::of(self, direction, options)?;
        half.check(pring)?;
        half.write(bus, pring)?;
        if options.free_on_dump {
            self.half_mut(direction).truncate(0);
        }
        Ok(())
    }

    /// Makes a pair of prings in `chunk`, as long as the padded halves and the trap need, and dumps
    /// the vring into them.
    ///
    /// # Errors
    /// [`DumpError`]; the chunk and the vring are then as they were.
    pub fn create_prings_from_vring(
        &mut self,
        bus: &mut dyn Bus,
        chunk: &mut MemChunk,
        options: DumpOptions,
    ) -> Result<(Pring, Pring), DumpError> {
        let length = |direction| options.length(self, direction);
        let (tx_count, rx_count) = (length(Direction::M2s), length(Direction::S2m));
        let slots = |count: u32| u64::from(count) + u64::from(options.trap);
        let mut taken = chunk.clone();
        let mut make = |direction, count| {
            Pring::alloc_from_memchunk(direction, slots(count), &mut taken).map_err(|source| {
                DumpError::Chunk {
                    vring: self.name.clone(),
                    source,
                }
            })
        };
        let mut tx = make(Direction::M2s, tx_count)?;
        let mut rx = make(Direction::S2m, rx_count)?;
        self.dump_to_pring_with(bus, &mut tx, &mut rx, options)?;
        *chunk = taken;
        Ok((tx, rx))
    }

    fn dump_halves(
        &self,
        bus: &mut dyn Bus,
        tx: &mut Pring,
        rx: &mut Pring,
        options: DumpOptions,
    ) -> Result<(), DumpError> {
        let tx_half = Half::of(self, Direction::M2s, options)?;
        let rx_half = Half::of(self, Direction::S2m, options)?;
        tx_half.check(tx)?;
        rx_half.check(rx)?;
        tx_half.write(bus, tx)?;
        rx_half.write(bus, rx)?;
        tracing::trace!(
            vring = self.name,
            tx = tx_half.padded,
            rx = rx_half.padded,
            "vring copied to pring"
        );
        Ok(())
    }
}

/// The descriptor of one ring that copies a word from and to an address.
fn word_copy(arch: Arch, at: Addr, direction: Direction) -> Result<Descriptor, BuildError> {
    let (none, flags) = (BarrierMode::None, CopyFlags::default());
    let (tx, rx) = build_copy(arch, at, at, PAD_BYTES, RingId::FIRST_LAP, none, flags)?;
    Ok(match direction {
        Direction::M2s => tx.into(),
        Direction::S2m => rx.into(),
    })
}

/// One half of a vring on its way to a pring.
struct Half<'a> {
    vring: &'a Vring,
    direction: Direction,
    pages: &'a VringPages,
    padded: u32,
    pad: Descriptor,
    trap: Option<Descriptor>,
}

impl<'a> Half<'a> {
    fn of(
        vring: &'a Vring,
        direction: Direction,
        options: DumpOptions,
    ) -> Result<Half<'a>, DumpError> {
        let pages = vring.half(direction);
        if pages.is_template() {
            return Err(DumpError::Template(vring.name.clone()));
        }
        let trap = options
            .trap
            .then(|| word_copy(vring.arch, TRAP_ADDRESS, direction));
        Ok(Half {
            vring,
            direction,
            pages,
            padded: options.length(vring, direction),
            pad: word_copy(vring.arch, pad_scratch(vring.arch), direction)?,
            trap: trap.transpose()?,
        })
    }

    fn refused(&self, source: PringError) -> DumpError {
        DumpError::Pring {
            vring: self.vring.name.clone(),
            half: self.direction.ring_name(),
            source,
        }
    }

    fn check(&self, pring: &Pring) -> Result<(), DumpError> {
        let used = self.pages.used_desc_count();
        if used > self.padded {
            return Err(DumpError::Padding {
                vring: self.vring.name.clone(),
                half: self.direction.ring_name(),
                used,
                padded: self.padded,
            });
        }
        pring
            .expect(self.direction)
            .and_then(|_| pring.check_room(u64::from(self.padded) + self.trap.iter().len() as u64))
            .map(|_| ())
            .map_err(|source| self.refused(source))
    }

    /// Page by page, so that no run spans two pages; then the padding, in runs as long.
    fn write(&self, bus: &mut dyn Bus, pring: &mut Pring) -> Result<(), DumpError> {
        let mut slot = 0;
        let mut put = |descs: &[Descriptor]| -> Result<(), DumpError> {
            pring
                .copy_descriptors(bus, slot, descs)
                .map_err(|source| self.refused(source))?;
            slot += descs.len() as u32;
            Ok(())
        };
        for run in self.pages.runs() {
            put(run)?;
        }
        let mut missing = self.padded - self.pages.used_desc_count();
        while missing > 0 {
            let run = missing.min(PAGE_DESCS);
            put(&vec![self.pad; run as usize])?;
            missing -= run;
        }
        if let Some(trap) = self.trap {
            put(&[trap])?;
        }
        pring.set_used(self.padded);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
