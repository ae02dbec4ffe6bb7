//! The abstract program: what the ordering model knows of rings, packets, observers and memory.
//!
//! Memory is a flat row of *atoms*: pieces of memory that no access of the program cuts, each with
//! one 32-bit value. A cell is a run of atoms; a semaphore is a cell of one.

use crate::system::WaitOp;

/// A run of atoms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First atom.
    pub first: usize,
    /// How many.
    pub count: usize,
}

impl Span {
    /// Whether two runs share an atom.
    pub fn overlaps(self, other: Span) -> bool {
        self.first < other.end() && other.first < self.end()
    }

    /// One past the last atom.
    pub fn end(self) -> usize {
        self.first + self.count
    }

    /// The atoms.
    pub fn atoms(self) -> std::ops::Range<usize> {
        self.first..self.end()
    }
}

/// What a cell is on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// Device memory (HBM).
    Memory,
    /// Host memory.
    Host,
    /// A semaphore.
    Semaphore,
    /// The constant 1 that semaphore increments are copied from.
    SetConstant,
    /// Device memory that holds the address of a cell: its value here is that cell's index.
    Pointer,
    /// The source address in a descriptor of a ring, named by its label; a pointer too.
    Descriptor {
        /// Index of the queue.
        queue: usize,
        /// Index of the descriptor in the queue's program.
        descriptor: usize,
    },
}

/// A named run of atoms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its name.
    pub name: String,
    /// What it is on the machine.
    pub kind: CellKind,
    /// Its atoms.
    pub span: Span,
    /// What each atom holds at first.
    pub initial: u32,
    /// Its size on the machine.
    pub bytes: u64,
}

/// Where a descriptor's data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dest {
    /// To memory.
    Store(Span),
    /// To the increment cell of a semaphore, given by its atom.
    Increment(usize),
}

/// A Tx and an Rx descriptor that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desc {
    /// The name the litmus file gives it; may be empty.
    pub label: String,
    /// Its source; several are added up (CCE ADD).
    pub from: Vec<Span>,
    /// Its source is the cell that this pointer atom names when the descriptor is fetched.
    pub through: Option<usize>,
    /// Its destination.
    pub to: Dest,
    /// The DMB bit of the Tx descriptor.
    pub dmb: bool,
    /// The write-barrier bit of the Tx descriptor.
    pub write_barrier: bool,
    /// The strong-order bit of the Rx descriptor.
    pub sow: bool,
    /// The semaphore, given by its atom, that the Rx descriptor increments (V4).
    pub embedded: Option<usize>,
}

/// The descriptors from FIRST to LAST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// In ring order.
    pub descs: Vec<Desc>,
}

impl Packet {
    /// Whether a Tx descriptor carries DMB; one is enough for the packet.
    pub fn dmb(&self) -> bool {
        self.descs.iter().any(|desc| desc.dmb)
    }

    /// Whether a Tx descriptor carries the write barrier; one is enough for the packet.
    pub fn write_barrier(&self) -> bool {
        self.descs.iter().any(|desc| desc.write_barrier)
    }
}

/// One queue and the packets of its ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// The engine it belongs to.
    pub engine: u32,
    /// In ring order.
    pub packets: Vec<Packet>,
    /// Its doorbell has been rung at the start; otherwise an observer rings it.
    pub rung: bool,
    /// The DMB pause is masked, as at reset.
    pub dmb_masked: bool,
    /// Ring slot of the first descriptor. No axiom speaks of slots: only the timing engine cares.
    pub start_slot: u32,
}

/// What an observer does, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads into registers.
    Read {
        /// What.
        span: Span,
        /// The first register; as many as atoms.
        register: usize,
    },
    /// Waits until an atom passes a test, and may change it in the same instant.
    Wait {
        /// The atom.
        atom: usize,
        /// Test and change.
        op: WaitOp,
    },
    /// Stores a value.
    Set {
        /// The atom.
        atom: usize,
        /// To what.
        value: i32,
    },
    /// Adds to a semaphore.
    Add {
        /// The atom.
        atom: usize,
        /// How much.
        by: i32,
    },
    /// Rings the doorbell for the whole program of a queue.
    Ring {
        /// Index of the queue.
        queue: usize,
    },
    /// Waits until the current pointer says that packets of a queue are complete.
    Completion {
        /// Index of the queue.
        queue: usize,
        /// How many.
        packets: usize,
    },
}

/// Who executes a program of [`Op`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObserverKind {
    /// A thread of the host.
    Host,
    /// A sequencer of the device.
    Sequencer,
}

/// A host thread or a sequencer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observer {
    /// Its name.
    pub name: String,
    /// Who it is.
    pub kind: ObserverKind,
    /// What it does.
    pub ops: Vec<Op>,
}

/// A name for registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// The name.
    pub name: String,
    /// First register.
    pub first: usize,
    /// How many.
    pub count: usize,
}

/// A whole program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Memory.
    pub cells: Vec<Cell>,
    /// Atoms per burst: no burst crosses a multiple of it, counted from the start of its cell.
    pub burst: usize,
    /// Bytes of an atom on the machine.
    pub grain: u64,
    /// Queues.
    pub queues: Vec<Queue>,
    /// Observers.
    pub observers: Vec<Observer>,
    /// What the observers' registers are called.
    pub registers: Vec<Register>,
}

impl Program {
    /// Atoms of all cells.
    pub fn atoms(&self) -> usize {
        self.cells.iter().map(|cell| cell.span.count).sum()
    }

    /// Registers of all observers.
    pub fn register_count(&self) -> usize {
        self.registers.iter().map(|register| register.count).sum()
    }

    /// What every atom holds at first.
    pub fn initial(&self) -> Vec<u32> {
        let cells = self.cells.iter();
        cells
            .flat_map(|cell| std::iter::repeat_n(cell.initial, cell.span.count))
            .collect()
    }

    /// The cell that an atom belongs to.
    pub fn cell_of(&self, atom: usize) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.span.atoms().contains(&atom))
    }

    /// Name of a run of atoms: the cell's, with the part if it is not all of it.
    pub fn name_of(&self, span: Span) -> String {
        match self.cell_of(span.first) {
            None => format!("atom {}", span.first),
            Some(cell) if cell.span == span => cell.name.clone(),
            Some(cell) => {
                let from = (span.first - cell.span.first) as u64 * self.grain;
                let to = from + span.count as u64 * self.grain;
                format!("{}[{from}..{})", cell.name, to.min(cell.bytes))
            }
        }
    }

    /// Cells that some pointer can name: whose indices pointer cells hold at first.
    pub fn pointees(&self) -> Vec<Span> {
        let pointers = self.cells.iter().filter(|cell| cell.is_pointer());
        pointers
            .filter_map(|cell| Some(self.cells.get(cell.initial as usize)?.span))
            .collect()
    }
}

impl Cell {
    /// Whether its value stands for the address of a cell.
    pub fn is_pointer(&self) -> bool {
        matches!(self.kind, CellKind::Pointer | CellKind::Descriptor { .. })
    }
}
