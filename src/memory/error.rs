//! Why an access got no answer: the AXI error responses of the address space.

use crate::units::Addr;

/// An access that nothing answered. To an engine it is an AXI error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an access of {len} bytes at {at} {reason}")]
pub struct AccessError {
    /// First byte of the access.
    pub at: Addr,
    /// Bytes of the access.
    pub len: u64,
    /// What was wrong with it.
    pub reason: AccessReason,
}

/// What was wrong with a refused access. The text continues "an access of N bytes at A …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessReason {
    /// The first byte lies outside every region.
    #[error("is outside every region of the address space")]
    Unmapped,
    /// The first byte lies inside a region's window, where nothing is populated.
    #[error("starts in an unpopulated part of its region")]
    Hole,
    /// The first byte is populated, but the access runs past the end of its region, partition or
    /// cell window.
    #[error("runs past the end of the region, partition or cell window in which it starts")]
    CrossesBoundary,
    /// A write to something that can only be read.
    #[error("writes to a read-only window")]
    ReadOnly,
    /// A read of something that can only be written.
    #[error("reads from a write-only window")]
    WriteOnly,
    /// Part of a 4-byte cell: the address or the length is no multiple of 4.
    #[error("covers part of a cell; cells are accessed whole, 4 bytes on a multiple of 4")]
    Misaligned,
    /// A UDMA register: the engine that owns it answers, not memory.
    #[error("hits UDMA registers, which memory accesses cannot reach")]
    Registers,
    /// Cells have no bytes to borrow (only [`PhysicalMemory::slice`](super::PhysicalMemory::slice)).
    #[error("cannot borrow cells as bytes")]
    NotBytes,
}
