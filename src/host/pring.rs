//! The pring: a descriptor ring in device-visible memory.

use super::bus::{Bus, BusError};
use crate::arch::regs::{
    Direction, RING_ALIGN_BYTES, RING_GRANULE_DESCS, RING_MAX_DESCS, RING_MIN_DESCS,
};
use crate::desc::{DESC_BYTES, Descriptor};
use crate::units::Addr;
use std::fmt;

/// What a pring is for; the discriminant is the runtime's number for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum PringType {
    /// Nothing yet.
    #[default]
    Invalid = 0,
    /// Tx (m2s) descriptors.
    Tx = 1,
    /// Rx (s2m) descriptors.
    Rx = 2,
}

impl From<Direction> for PringType {
    fn from(direction: Direction) -> PringType {
        match direction {
            Direction::M2s => PringType::Tx,
            Direction::S2m => PringType::Rx,
        }
    }
}

impl fmt::Display for PringType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PringType::Invalid => "invalid",
            PringType::Tx => "TX",
            PringType::Rx => "RX",
        })
    }
}

/// A ring's place, size and fill. The default is of type INVALID and bound to no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pring {
    kind: PringType,
    memory: Option<Addr>,
    ring_offset_bytes: u64,
    used_desc_count: u32,
    allocated_desc_count: u32,
}

/// Why a pring was not made or not written. Nothing is written unless the bus itself failed midway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PringError {
    /// The start is not aligned.
    #[error("a ring at {0} does not start on a multiple of {RING_ALIGN_BYTES} bytes")]
    Unaligned(Addr),
    /// No queue can have a ring of that length.
    #[error(
        "a ring has {0} descriptors; the length must be a multiple of {RING_GRANULE_DESCS} from {RING_MIN_DESCS} to {RING_MAX_DESCS}"
    )]
    Length(u32),
    /// The ring leaves the address space.
    #[error("a ring of {descs} descriptors at {at} runs past the end of the address space")]
    PastEnd {
        /// Start of the ring.
        at: Addr,
        /// Descriptors of the ring.
        descs: u32,
    },
    /// The ring holds the other kind of descriptor, or none.
    #[error("the pring has type {found}; a {wanted} pring is needed")]
    Type {
        /// Type of the pring.
        found: PringType,
        /// Type it should have.
        wanted: PringType,
    },
    /// The ring has no memory.
    #[error("the {0} pring is not bound to memory")]
    Unbound(PringType),
    /// More descriptors than the ring has slots.
    #[error("{wanted} descriptors do not fit a {kind} pring of {allocated}")]
    TooSmall {
        /// Type of the pring.
        kind: PringType,
        /// Descriptors that should go in.
        wanted: u64,
        /// Slots of the ring.
        allocated: u32,
    },
    /// The bytes are not whole descriptors.
    #[error("{0} bytes are not a multiple of 16 bytes, the size of a descriptor")]
    Ragged(usize),
    /// The bus refused a write.
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl Pring {
    /// An empty ring of `descs` descriptors at `at` in device memory.
    ///
    /// # Errors
    /// [`PringError`] for a start or a length that no queue accepts.
    pub fn new(direction: Direction, at: Addr, descs: u32) -> Result<Pring, PringError> {
        let mut pring = Pring::unbound(direction, descs)?;
        pring.bind(at)?;
        Ok(pring)
    }

    /// A ring of `descs` descriptors that has no memory yet.
    ///
    /// # Errors
    /// [`PringError::Length`] for a length that no queue accepts.
    pub fn unbound(direction: Direction, descs: u32) -> Result<Pring, PringError> {
        let legal = (RING_MIN_DESCS..=RING_MAX_DESCS).contains(&descs)
            && descs.is_multiple_of(RING_GRANULE_DESCS);
        if !legal {
            return Err(PringError::Length(descs));
        }
        Ok(Pring {
            kind: direction.into(),
            memory: None,
            ring_offset_bytes: 0,
            used_desc_count: 0,
            allocated_desc_count: descs,
        })
    }

    /// Puts the ring at `at` in device memory.
    ///
    /// # Errors
    /// [`PringError`] for a start that no queue accepts.
    pub fn bind(&mut self, at: Addr) -> Result<(), PringError> {
        if !at.is_aligned(RING_ALIGN_BYTES) {
            return Err(PringError::Unaligned(at));
        }
        if at.checked_add(self.size_bytes() - 1).is_none() {
            let descs = self.allocated_desc_count;
            return Err(PringError::PastEnd { at, descs });
        }
        self.memory = Some(at);
        Ok(())
    }

    /// Puts the ring `offset` bytes into a piece of device memory.
    pub(super) fn bind_in(&mut self, memory: Addr, offset: u64) -> Result<(), PringError> {
        self.bind(Addr(memory.0.wrapping_add(offset)))?;
        self.ring_offset_bytes = offset;
        Ok(())
    }

    /// Where the ring starts in the piece of memory it was allocated from; 0 if it has its own.
    pub fn ring_offset_bytes(&self) -> u64 {
        self.ring_offset_bytes
    }

    /// What the ring is for.
    pub fn kind(&self) -> PringType {
        self.kind
    }

    /// Start of the ring in device memory; `None` while unbound.
    pub fn base(&self) -> Option<Addr> {
        self.memory
    }

    /// Descriptors the last dump or load put there, padding included.
    pub fn used_desc_count(&self) -> u32 {
        self.used_desc_count
    }

    /// Slots of the ring: its length.
    pub fn allocated_desc_count(&self) -> u32 {
        self.allocated_desc_count
    }

    /// Bytes of the ring.
    pub fn size_bytes(&self) -> u64 {
        u64::from(self.allocated_desc_count) * DESC_BYTES as u64
    }

    /// Loads descriptors as raw bytes, from slot 0 on.
    ///
    /// # Errors
    /// [`PringError`]; the ring is then as it was, unless the bus failed midway.
    pub fn load(&mut self, bus: &mut dyn Bus, bytes: &[u8]) -> Result<(), PringError> {
        if !bytes.len().is_multiple_of(DESC_BYTES) {
            return Err(PringError::Ragged(bytes.len()));
        }
        let count = (bytes.len() / DESC_BYTES) as u64;
        let (base, count) = self.check_room(count)?;
        bus.write_mem(base, bytes)?;
        self.used_desc_count = count;
        Ok(())
    }

    /// Start of the ring, if it is of the type that `direction` needs.
    pub(super) fn expect(&self, direction: Direction) -> Result<Addr, PringError> {
        let wanted = direction.into();
        if self.kind != wanted {
            let found = self.kind;
            return Err(PringError::Type { found, wanted });
        }
        self.memory.ok_or(PringError::Unbound(self.kind))
    }

    /// Start of the ring, if it is bound and has at least `count` slots.
    pub(super) fn check_room(&self, count: u64) -> Result<(Addr, u32), PringError> {
        let base = self.memory.ok_or(PringError::Unbound(self.kind))?;
        match u32::try_from(count) {
            Ok(count) if count <= self.allocated_desc_count => Ok((base, count)),
            _ => Err(PringError::TooSmall {
                kind: self.kind,
                wanted: count,
                allocated: self.allocated_desc_count,
            }),
        }
    }

    /// Writes `descs` from slot `slot` on, which the caller has checked to fit.
    pub(super) fn copy_descriptors(
        &self,
        bus: &mut dyn Bus,
        slot: u32,
        descs: &[Descriptor],
    ) -> Result<(), PringError> {
        let base = self.memory.ok_or(PringError::Unbound(self.kind))?;
        let bytes: Vec<u8> = descs.iter().flat_map(|desc| desc.to_bytes()).collect();
        bus.write_mem(Addr(base.0 + u64::from(slot) * DESC_BYTES as u64), &bytes)?;
        Ok(())
    }

    /// Records how many slots hold descriptors.
    pub(super) fn set_used(&mut self, count: u32) {
        self.used_desc_count = count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::test_bus::TestBus;

    const AT: Addr = Addr(0x1000);

    #[test]
    fn lengths_and_starts_that_no_queue_accepts() {
        for descs in [0, 16, 31, 33, 40, RING_MAX_DESCS + 16] {
            let refused = Pring::new(Direction::M2s, AT, descs);
            assert_eq!(refused, Err(PringError::Length(descs)));
        }
        for descs in [32, 48, RING_MAX_DESCS] {
            assert!(Pring::new(Direction::M2s, AT, descs).is_ok());
        }
        let refused = Pring::new(Direction::S2m, Addr(0x1080), 32);
        assert_eq!(refused, Err(PringError::Unaligned(Addr(0x1080))));
        let top = Addr(u64::MAX - 511);
        assert!(Pring::new(Direction::S2m, top, 32).is_ok());
        assert!(matches!(
            Pring::new(Direction::S2m, top, 48),
            Err(PringError::PastEnd { .. })
        ));
    }

    #[test]
    fn raw_bytes_land_in_the_ring() {
        let mut bus = TestBus::default();
        let mut pring = Pring::new(Direction::M2s, AT, 32).unwrap();
        let bytes: Vec<u8> = (0..48).collect();
        pring.load(&mut bus, &bytes).unwrap();
        assert_eq!(bus.bytes(AT, 48), bytes);
        assert_eq!(pring.used_desc_count(), 3);
    }

    #[test]
    fn loads_that_do_not_fit_write_nothing() {
        let mut bus = TestBus::default();
        let mut pring = Pring::new(Direction::M2s, AT, 32).unwrap();
        assert_eq!(pring.load(&mut bus, &[0; 17]), Err(PringError::Ragged(17)));
        assert!(matches!(
            pring.load(&mut bus, &[1; 33 * 16]),
            Err(PringError::TooSmall {
                wanted: 33,
                allocated: 32,
                ..
            })
        ));
        let mut unbound = Pring::unbound(Direction::S2m, 32).unwrap();
        assert_eq!(
            unbound.load(&mut bus, &[1; 16]),
            Err(PringError::Unbound(PringType::Rx))
        );
        assert_eq!(bus.writes(), 0);
        assert_eq!(pring.used_desc_count(), 0);
    }
}
