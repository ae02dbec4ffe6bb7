//! Rings carved out of one piece of device memory.

use super::pring::{Pring, PringError};
use crate::arch::regs::{
    Direction, RING_ALIGN_BYTES, RING_GRANULE_DESCS, RING_MAX_DESCS, RING_MIN_DESCS,
};
use crate::units::Addr;

/// A piece of device memory that rings are allocated from, front to back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemChunk {
    base: Addr,
    size: u64,
    used: u64,
}

/// Why nothing was allocated. The chunk is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The chunk leaves the address space.
    #[error("a memory chunk of {size} bytes at {base} runs past the end of the address space")]
    PastEnd {
        /// Start of the chunk.
        base: Addr,
        /// Bytes of the chunk.
        size: u64,
    },
    /// Too many descriptors for any ring.
    #[error("{0} descriptors do not fit a ring; a queue takes at most {RING_MAX_DESCS}")]
    TooLong(u64),
    /// The chunk is used up.
    #[error(
        "a ring of {descs} descriptors needs {wanted} bytes aligned to {RING_ALIGN_BYTES}; the memory chunk has {left} left"
    )]
    Full {
        /// Descriptors of the ring.
        descs: u32,
        /// Bytes of the ring.
        wanted: u64,
        /// Bytes left from the next aligned one on.
        left: u64,
    },
    /// The ring refused its place.
    #[error(transparent)]
    Pring(#[from] PringError),
}

impl MemChunk {
    /// The `size` bytes from `base` on, none of them used.
    ///
    /// # Errors
    /// [`ChunkError::PastEnd`] if they leave the address space.
    pub fn new(base: Addr, size: u64) -> Result<MemChunk, ChunkError> {
        if base.checked_add(size).is_none() {
            return Err(ChunkError::PastEnd { base, size });
        }
        Ok(MemChunk {
            base,
            size,
            used: 0,
        })
    }

    /// Bytes used, gaps included.
    pub fn used(&self) -> u64 {
        self.used
    }
}

impl Pring {
    /// An empty ring for at least `descs` descriptors, the shortest that a queue accepts, at the next
    /// multiple of 256 bytes of `chunk`.
    ///
    /// # Errors
    /// [`ChunkError`] if no queue takes so long a ring, or the chunk has no room for it.
    pub fn alloc_from_memchunk(
        direction: Direction,
        descs: u64,
        chunk: &mut MemChunk,
    ) -> Result<Pring, ChunkError> {
        let length = descs.max(u64::from(RING_MIN_DESCS));
        let length = length
            .checked_next_multiple_of(RING_GRANULE_DESCS.into())
            .and_then(|length| u32::try_from(length).ok())
            .filter(|length| *length <= RING_MAX_DESCS)
            .ok_or(ChunkError::TooLong(descs))?;
        let mut pring = Pring::unbound(direction, length)?;
        let wanted = pring.size_bytes();
        // The address is what must be aligned, not the offset.
        let free = chunk.base.0 + chunk.used;
        let offset = free
            .checked_next_multiple_of(RING_ALIGN_BYTES)
            .map_or(chunk.size, |at| at - chunk.base.0);
        let left = chunk.size.saturating_sub(offset);
        if wanted > left {
            return Err(ChunkError::Full {
                descs: length,
                wanted,
                left,
            });
        }
        pring.bind_in(chunk.base, offset)?;
        chunk.used = offset + wanted;
        Ok(pring)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_start_on_256_bytes_and_follow_each_other() {
        let mut chunk = MemChunk::new(Addr(0x1001), 0x1000).unwrap();
        let mut alloc = |descs| Pring::alloc_from_memchunk(Direction::M2s, descs, &mut chunk);
        let first = alloc(0).unwrap();
        assert_eq!(
            (first.base(), first.allocated_desc_count()),
            (Some(Addr(0x1100)), 32)
        );
        let second = alloc(33).unwrap();
        assert_eq!(
            (second.base(), second.allocated_desc_count()),
            (Some(Addr(0x1300)), 48)
        );
        assert_eq!(second.ring_offset_bytes(), 0x2ff);
        // From 0x1600 to 0x2001 there are 0xa01 bytes.
        let refused = ChunkError::Full {
            descs: 176,
            wanted: 0xb00,
            left: 0xa01,
        };
        assert_eq!(alloc(161), Err(refused));
        assert_eq!(alloc(160).unwrap().base(), Some(Addr(0x1600)));
    }

    #[test]
    fn lengths_no_queue_takes() {
        let mut chunk = MemChunk::new(Addr(0), 1 << 40).unwrap();
        let most = u64::from(RING_MAX_DESCS);
        let mut alloc = |descs| Pring::alloc_from_memchunk(Direction::S2m, descs, &mut chunk);
        assert_eq!(alloc(most).unwrap().allocated_desc_count(), RING_MAX_DESCS);
        for descs in [most + 1, u64::MAX] {
            assert_eq!(alloc(descs), Err(ChunkError::TooLong(descs)));
        }
        assert_eq!(chunk.used(), most * 16);
        let top = Addr(u64::MAX - 100);
        assert!(MemChunk::new(top, 100).is_ok());
        assert!(matches!(
            MemChunk::new(top, 101),
            Err(ChunkError::PastEnd { .. })
        ));
        let mut chunk = MemChunk::new(top, 100).unwrap();
        let refused = Pring::alloc_from_memchunk(Direction::S2m, 32, &mut chunk);
        assert!(matches!(refused, Err(ChunkError::Full { left: 0, .. })));
    }
}
