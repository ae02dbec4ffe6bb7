//! Where the parts of a litmus program lie on a machine: cells, rings, queues. The timing engine and the
//! scenarios made of litmus tests share this layout.

use super::program::{Cell, CellKind, Program, Span};
use crate::arch::regs::{RING_GRANULE_DESCS, RING_MIN_DESCS};
use crate::desc::DESC_BYTES;

/// The block of the semaphores.
pub const BLOCK: u32 = 0;

/// Cells lie this far apart, each on another memory channel than its neighbours.
const CELL_STRIDE: u64 = 0x20_0100;
/// The first cell in HBM.
const FIRST_CELL: u64 = 16 << 20;
/// Rings lie above all cells, this far apart.
const FIRST_RING: u64 = 8 << 30;
const RING_STRIDE: u64 = 1 << 20;
/// Offset of the source address in a Tx descriptor.
const BUF_PTR: u64 = 8;

/// Where a cell lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellAt {
    /// This far into the first HBM stack.
    Hbm(u64),
    /// This far into host memory.
    Host(u64),
    /// The semaphore of this index in [`BLOCK`].
    Semaphore(u32),
    /// The constant that sets events.
    SetConstant,
    /// This far into the Tx ring of a queue.
    TxRing {
        /// Index of the queue.
        queue: usize,
        /// Bytes from the ring's start.
        offset: u64,
    },
}

/// The rings of a queue, in the first HBM stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingsAt {
    /// Start of the Tx ring.
    pub tx: u64,
    /// Start of the Rx ring.
    pub rx: u64,
    /// Descriptors of each: all of the queue's, and those before them, find room.
    pub descriptors: u32,
}

/// A run of atoms as bytes of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BytesOf {
    /// Index of the cell.
    pub cell: usize,
    /// Bytes from its start.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// A program laid out on a machine.
#[derive(Clone, Copy, Debug)]
pub struct Lowering<'p> {
    /// The program.
    pub program: &'p Program,
}

impl Lowering<'_> {
    /// A place in the first HBM stack where no cell lies, for packets that do nothing.
    pub const SCRATCH: u64 = FIRST_CELL - CELL_STRIDE;

    /// A place in the first HBM stack for copies before the first packet of a queue that starts further on.
    pub const PADDING: u64 = 4 << 20;

    /// Where a cell lies.
    pub fn cell(self, n: usize) -> CellAt {
        let own = n as u64 * CELL_STRIDE;
        match self.program.cells[n].kind {
            CellKind::Memory | CellKind::Pointer => CellAt::Hbm(FIRST_CELL + own),
            CellKind::Host => CellAt::Host(own),
            CellKind::Semaphore => CellAt::Semaphore(n as u32),
            CellKind::SetConstant => CellAt::SetConstant,
            CellKind::Descriptor { queue, descriptor } => {
                let first = u64::from(self.program.queues[queue].start_slot);
                let slots = u64::from(self.rings(queue).descriptors);
                let slot = (first + descriptor as u64) % slots;
                let offset = slot * DESC_BYTES as u64 + BUF_PTR;
                CellAt::TxRing { queue, offset }
            }
        }
    }

    /// Index of the cell that an atom is part of.
    pub fn cell_of(self, atom: usize) -> Option<usize> {
        let holds = |cell: &Cell| cell.span.atoms().contains(&atom);
        self.program.cells.iter().position(holds)
    }

    /// The bytes of a run of atoms.
    pub fn bytes(self, span: Span) -> Option<BytesOf> {
        let n = self.cell_of(span.first)?;
        let cell = &self.program.cells[n];
        let grain = self.program.grain;
        let offset = (span.first - cell.span.first) as u64 * grain;
        let bytes = match cell.is_pointer() {
            true => cell.bytes,
            false => (span.count as u64 * grain).min(cell.bytes - offset),
        };
        Some(BytesOf {
            cell: n,
            offset,
            bytes,
        })
    }

    /// Index in [`BLOCK`] of the semaphore that an atom is.
    pub fn semaphore(self, atom: usize) -> Option<u32> {
        match self.cell(self.cell_of(atom)?) {
            CellAt::Semaphore(index) => Some(index),
            _ => None,
        }
    }

    /// The rings of a queue.
    pub fn rings(self, queue: usize) -> RingsAt {
        let start = |half: u64| FIRST_RING + (queue as u64 * 2 + half) * RING_STRIDE;
        let packets = &self.program.queues[queue].packets;
        let descs = packets.iter().flat_map(|packet| &packet.descs);
        let tx: usize = descs.map(|desc| desc.from.len().max(1)).sum();
        RingsAt {
            tx: start(0),
            rx: start(1),
            descriptors: (tx as u32 + 1)
                .max(RING_MIN_DESCS)
                .next_multiple_of(RING_GRANULE_DESCS),
        }
    }

    /// Whether a queue begins within its rings, and those lie apart from the next ones.
    pub fn rings_fit(self, queue: usize) -> bool {
        let size = self.rings(queue).descriptors;
        let start = self.program.queues[queue].start_slot;
        start < size && u64::from(size) * (DESC_BYTES as u64) < RING_STRIDE
    }

    /// The number of a queue on its engine.
    pub fn number(self, queue: usize) -> usize {
        let queues = &self.program.queues;
        let engine = queues[queue].engine;
        let before = queues[..queue].iter();
        before.filter(|other| other.engine == engine).count()
    }
}
