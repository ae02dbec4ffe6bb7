//! What the detector is told of a packet.

use crate::units::Addr;

/// What a packet reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// First byte.
    pub at: Addr,
    /// Bytes.
    pub len: u64,
    /// The byte of the packet's output that its first byte goes into. It is read before anything is
    /// written from there on (A1, A2), and perhaps after what is written before.
    pub place: u64,
}

/// What an Rx descriptor of a packet writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// What.
    pub to: WriteTo,
    /// The byte of the packet's output that it begins with.
    pub place: u64,
    /// It is strong-ordered.
    pub sow: bool,
    /// The semaphore whose increment is embedded in the descriptor, by block and index.
    pub embedded: Option<(u32, u32)>,
}

/// Where a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteTo {
    /// To memory: first byte, and how many.
    Memory(Addr, u64),
    /// To the cell that increments a semaphore, by block and index.
    Semaphore((u32, u32)),
    /// Nowhere that anybody could look.
    Nowhere,
}

/// The accesses of one packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketAccess {
    /// Slot of its first Tx descriptor in the ring.
    pub slot: u32,
    /// What the program calls it; the detector only hands it back.
    pub tag: u32,
    /// What it reads.
    pub reads: Vec<Read>,
    /// What it writes, in ring order.
    pub writes: Vec<Write>,
    /// It carries DMB, which is not masked.
    pub dmb: bool,
    /// It carries a write barrier.
    pub write_barrier: bool,
}

impl PacketAccess {
    /// The write that the last byte of a read goes into.
    pub(super) fn fed_by(&self, read: &Read) -> u32 {
        let last = read.place.saturating_add(read.len.saturating_sub(1));
        let begun = self.writes.partition_point(|write| write.place <= last);
        begun.saturating_sub(1) as u32
    }
}
