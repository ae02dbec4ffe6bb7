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
            "vring is copied to pring"
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
mod tests {
    use super::*;
    use crate::desc::DESC_BYTES;
    use crate::host::test_bus::TestBus;
    use crate::host::{PringType, VringPages};

    const TX_AT: Addr = Addr(0x10_0000);
    const RX_AT: Addr = Addr(0x20_0000);

    fn prings(descs: u32) -> (Pring, Pring) {
        (
            Pring::new(Direction::M2s, TX_AT, descs).unwrap(),
            Pring::new(Direction::S2m, RX_AT, descs).unwrap(),
        )
    }

    fn padded(tx: u32, rx: u32) -> DumpOptions {
        DumpOptions {
            tx_padded: Some(tx),
            rx_padded: Some(rx),
            ..DumpOptions::default()
        }
    }

    fn three_copies() -> Vring {
        let mut vring = Vring::new(Arch::V2, "v").unwrap();
        vring
            .add_desc_transfer(Addr(0x1000), Addr(0x2000), 3 * 65536)
            .unwrap();
        vring
    }

    fn ring(bus: &TestBus, at: Addr, count: usize) -> Vec<Descriptor> {
        bus.bytes(at, count * DESC_BYTES)
            .chunks_exact(DESC_BYTES)
            .map(|bytes| Descriptor::from_bytes(bytes.try_into().unwrap()))
            .collect()
    }

    fn all(pages: &VringPages) -> Vec<Descriptor> {
        pages.runs().flatten().copied().collect()
    }

    #[test]
    fn a_plain_dump_is_the_vring_and_no_more() {
        let (mut bus, vring, (mut tx, mut rx)) = (TestBus::default(), three_copies(), prings(32));
        vring.dump_to_pring(&mut bus, &mut tx, &mut rx).unwrap();
        assert_eq!(ring(&bus, TX_AT, 3), all(vring.tx()));
        assert_eq!(ring(&bus, RX_AT, 3), all(vring.rx()));
        assert_eq!((tx.used_desc_count(), rx.used_desc_count()), (3, 3));
        assert_eq!(bus.bytes(Addr(TX_AT.0 + 48), 16), [0; 16]);
    }

    #[test]
    fn padding_is_copies_of_the_scratch_word_onto_itself() {
        let (mut bus, mut vring, (mut tx, mut rx)) =
            (TestBus::default(), three_copies(), prings(32));
        vring
            .dump_to_pring_with(&mut bus, &mut tx, &mut rx, padded(5, 4))
            .unwrap();
        assert_eq!((tx.used_desc_count(), rx.used_desc_count()), (5, 4));
        let (tx_ring, rx_ring) = (ring(&bus, TX_AT, 6), ring(&bus, RX_AT, 5));
        assert_eq!(tx_ring[..3], all(vring.tx())[..]);
        let pad = [0x0d00_0004, 0x0108_0003, 0xffff_fffc, 3];
        assert_eq!(
            tx_ring[3..]
                .iter()
                .map(|desc| desc.words)
                .collect::<Vec<_>>(),
            [pad, pad, [0; 4]]
        );
        assert_eq!(rx_ring[3].words, [0x0100_0004, 0, 0xffff_fffc, 3]);
        assert_eq!(rx_ring[4].words, [0; 4]);
    }

    #[test]
    fn dumps_and_padding_cross_pages() {
        let mut bus = TestBus::default();
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        for n in 0..u64::from(PAGE_DESCS) + 2 {
            vring.add_desc_transfer(Addr(n), Addr(n), 1).unwrap();
        }
        let count = 2 * PAGE_DESCS + 16;
        let mut tx = Pring::new(Direction::M2s, Addr(0x100_0000), count).unwrap();
        let mut rx = Pring::new(Direction::S2m, Addr(0x200_0000), count).unwrap();
        vring
            .dump_to_pring_with(&mut bus, &mut tx, &mut rx, padded(count, count))
            .unwrap();
        let got = ring(&bus, Addr(0x100_0000), count as usize);
        let used = vring.tx().used_desc_count() as usize;
        assert_eq!(got[..used], all(vring.tx())[..]);
        assert!(got[used..].iter().all(|desc| *desc == got[used]));
        assert_eq!(got[used].words[0], 0x0d00_0004);
    }

    #[test]
    fn what_cannot_be_dumped_writes_nothing() {
        let (mut bus, mut vring) = (TestBus::default(), three_copies());
        let (tx, rx) = prings(32);
        let mut refuse = |mut tx: Pring, mut rx: Pring, tx_padded, rx_padded| {
            let before = (tx.clone(), rx.clone());
            let error = vring
                .dump_to_pring_with(&mut bus, &mut tx, &mut rx, padded(tx_padded, rx_padded))
                .unwrap_err();
            assert_eq!((tx, rx), before);
            assert_eq!(bus.writes(), 0);
            error
        };
        let source = |error| match error {
            DumpError::Pring { source, .. } => source,
            other => panic!("{other}"),
        };

        let error = refuse(tx.clone(), rx.clone(), 32, 2);
        assert_eq!(
            error.to_string(),
            "Failed to pad vring v rx from 3 descriptors to 2 descriptors"
        );
        let error = source(refuse(tx.clone(), rx.clone(), 32, 33));
        assert!(matches!(
            error,
            PringError::TooSmall {
                kind: PringType::Rx,
                wanted: 33,
                ..
            }
        ));
        let error = source(refuse(tx.clone(), tx.clone(), 3, 3));
        assert!(matches!(
            error,
            PringError::Type {
                found: PringType::Tx,
                ..
            }
        ));
        let error = source(refuse(Pring::default(), rx.clone(), 3, 3));
        assert!(matches!(
            error,
            PringError::Type {
                found: PringType::Invalid,
                ..
            }
        ));
        let unbound = Pring::unbound(Direction::S2m, 32).unwrap();
        let error = source(refuse(tx, unbound, 3, 3));
        assert_eq!(error, PringError::Unbound(PringType::Rx));
    }

    #[test]
    fn scratch_is_the_top_of_the_first_stack() {
        assert_eq!(pad_scratch(Arch::V2), Addr(0x3_ffff_fffc));
        assert_eq!(pad_scratch(Arch::V3), Addr(0x5_ffff_fffc));
    }

    #[test]
    fn halves_dump_alone_and_are_freed_if_asked() {
        let (mut bus, mut vring, (mut tx, mut rx)) =
            (TestBus::default(), three_copies(), prings(32));
        let options = DumpOptions {
            free_on_dump: true,
            ..DumpOptions::default()
        };
        let tx_descs = all(vring.tx());
        vring
            .dump_half_to_pring(&mut bus, Direction::M2s, &mut tx, options)
            .unwrap();
        assert_eq!(ring(&bus, TX_AT, 3), tx_descs);
        assert_eq!(
            (vring.tx().used_desc_count(), vring.rx().used_desc_count()),
            (0, 3)
        );
        assert_eq!(
            (vring.total_tx_size(), rx.used_desc_count()),
            (3 * 65536, 0)
        );
        let keep = padded(0, 16);
        vring
            .dump_half_to_pring(&mut bus, Direction::S2m, &mut rx, keep)
            .unwrap();
        assert_eq!(
            (vring.rx().used_desc_count(), rx.used_desc_count()),
            (3, 16)
        );

        let refused = vring.dump_half_to_pring(&mut bus, Direction::S2m, &mut tx, options);
        assert!(matches!(refused, Err(DumpError::Pring { half: "rx", .. })));
        assert_eq!(vring.rx().used_desc_count(), 3);
    }

    #[test]
    fn a_trap_ends_the_padding() {
        let (mut bus, mut vring, (mut tx, mut rx)) =
            (TestBus::default(), three_copies(), prings(32));
        let options = DumpOptions {
            trap: true,
            ..padded(5, 3)
        };
        vring
            .dump_to_pring_with(&mut bus, &mut tx, &mut rx, options)
            .unwrap();
        assert_eq!((tx.used_desc_count(), rx.used_desc_count()), (5, 3));
        let trap = ring(&bus, TX_AT, 7)[5..].to_vec();
        assert_eq!(
            trap[0].words,
            [0x0d00_0004, 0x0108_0003, 0xffff_fffc, 0xffff_ffff]
        );
        assert_eq!(trap[1].words, [0; 4]);
        assert_eq!(
            ring(&bus, RX_AT, 4)[3].words,
            [0x0100_0004, 0, 0xffff_fffc, 0xffff_ffff]
        );
        let options = DumpOptions {
            trap: true,
            ..padded(32, 3)
        };
        let refused = vring.dump_to_pring_with(&mut bus, &mut tx, &mut rx, options);
        assert!(matches!(
            refused,
            Err(DumpError::Pring {
                source: PringError::TooSmall { wanted: 33, .. },
                ..
            })
        ));
    }

    #[test]
    fn prings_are_made_to_measure() {
        let mut bus = TestBus::default();
        let mut vring = three_copies();
        let mut chunk = MemChunk::new(Addr(0x1_0010), 0x1000).unwrap();
        let trap = |padded: DumpOptions| DumpOptions {
            trap: true,
            ..padded
        };
        let (tx, rx) = vring
            .create_prings_from_vring(&mut bus, &mut chunk, trap(padded(48, 4)))
            .unwrap();
        assert_eq!(
            (tx.base(), rx.base()),
            (Some(Addr(0x1_0100)), Some(Addr(0x1_0500)))
        );
        assert_eq!(
            (tx.allocated_desc_count(), rx.allocated_desc_count()),
            (64, 32)
        );
        assert_eq!((tx.used_desc_count(), rx.used_desc_count()), (48, 4));
        assert_eq!(
            (tx.ring_offset_bytes(), rx.ring_offset_bytes()),
            (0xf0, 0x4f0)
        );
        assert_eq!(ring(&bus, Addr(0x1_0100), 3), all(vring.tx()));

        let before = chunk.clone();
        let too_long = trap(padded(64, 64));
        let refused = vring.create_prings_from_vring(&mut bus, &mut chunk, too_long);
        assert!(
            matches!(refused, Err(DumpError::Chunk { .. })),
            "{refused:?}"
        );
        let refused = vring.create_prings_from_vring(&mut bus, &mut chunk, padded(2, 2));
        assert!(matches!(refused, Err(DumpError::Padding { .. })));
        assert_eq!(chunk, before);
    }

    #[test]
    fn templates_are_not_dumped() {
        let (mut bus, (mut tx, mut rx)) = (TestBus::default(), prings(32));
        let template = Vring::new_template(Arch::V3, "t_0", 1).unwrap();
        let refused = template
            .dump_to_pring(&mut bus, &mut tx, &mut rx)
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "cannot dump vring t_0: it is a template; resolve it first"
        );
    }
}
