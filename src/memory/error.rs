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
    #[error("lies outside every region of the address space")]
    Unmapped,
    /// The first byte lies inside a region's window, where nothing is populated.
    #[error("starts in an unpopulated hole of its region")]
    Hole,
    /// The first byte is populated, but the access runs past the end of its region, partition or
    /// cell window.
    #[error("runs past the end of the region, partition or cell window it starts in")]
    CrossesBoundary,
    /// A write to something that can only be read.
    #[error("writes what can only be read")]
    ReadOnly,
    /// A read of something that can only be written.
    #[error("reads what can only be written")]
    WriteOnly,
    /// Part of a 4-byte cell: the address or the length is no multiple of 4.
    #[error("covers part of a cell; cells are read and written whole, 4 bytes on a multiple of 4")]
    Misaligned,
    /// A UDMA register: the engine that owns it answers, not memory.
    #[error("falls on UDMA registers, which no memory access reaches")]
    Registers,
    /// Cells have no bytes to borrow (only [`PhysicalMemory::slice`](super::PhysicalMemory::slice)).
    #[error("asks to borrow bytes of cells, which have none")]
    NotBytes,
}
