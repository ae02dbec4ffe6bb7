//! Where cells lie on the machine, and how atoms become bytes and back.

use super::TimedError;
use crate::arch::regs::{Direction, RING_GRANULE_DESCS, RING_MIN_DESCS};
use crate::arch::{Arch, EventBlock};
use crate::desc::DESC_BYTES;
use crate::host::Bus;
use crate::order::program::{Cell, CellKind, Program, Span};
use crate::system::System;
use crate::units::Addr;

/// Cells lie this far apart, each on another HBM channel than its neighbours.
const FIRST_CELL: u64 = 0x100_0000;
const CELL_STRIDE: u64 = 0x20_0100;
/// Rings lie above all cells.
const FIRST_RING: u64 = 8 << 30;
const RING_STRIDE: u64 = 1 << 20;
/// The block of the semaphores.
pub(super) const BLOCK: u32 = 0;
/// Offset of the source address in a Tx descriptor.
const BUF_PTR: u64 = 8;

/// Addresses of cells and rings.
pub(super) struct Layout {
    cells: Vec<Addr>,
    /// What reads the cell: for a semaphore, another address than what changes it.
    reads: Vec<Addr>,
    /// A place for packets that do nothing.
    pub scratch: Addr,
}

impl Layout {
    pub fn new(program: &Program, arch: Arch) -> Result<Layout, TimedError> {
        let mut layout = Layout {
            cells: Vec::new(),
            reads: Vec::new(),
            scratch: Addr(FIRST_CELL - CELL_STRIDE),
        };
        for (n, cell) in program.cells.iter().enumerate() {
            let (cell, read) = place(program, arch, n, cell)?;
            layout.cells.push(cell);
            layout.reads.push(read);
        }
        Ok(layout)
    }

    /// What to store where before anything starts.
    pub fn contents(&self, program: &Program) -> Vec<(Addr, Vec<u8>)> {
        let mut contents = Vec::new();
        for (n, cell) in program.cells.iter().enumerate() {
            let bytes = match cell.kind {
                CellKind::SetConstant | CellKind::Descriptor { .. } => continue,
                CellKind::Pointer => self.address_of(cell.initial).0.to_le_bytes().to_vec(),
                _ => cell.initial.to_le_bytes().repeat((cell.bytes / 4) as usize),
            };
            contents.push((self.cells[n], bytes));
        }
        contents
    }

    /// The address that a pointer's value stands for.
    pub fn address_of(&self, cell: u32) -> Addr {
        let cell = self.cells.get(cell as usize);
        cell.copied().unwrap_or(self.scratch)
    }

    /// Where a packet finds or puts the bytes of a run of atoms, and how many they are.
    pub fn bytes_of(&self, program: &Program, span: Span) -> (Addr, u64) {
        self.resolve(program, span, &self.cells)
    }

    /// Where an observer reads them.
    pub fn read_of(&self, program: &Program, span: Span) -> (Addr, u64) {
        self.resolve(program, span, &self.reads)
    }

    fn resolve(&self, program: &Program, span: Span, bases: &[Addr]) -> (Addr, u64) {
        let holds = |cell: &Cell| cell.span.atoms().contains(&span.first);
        let Some(n) = program.cells.iter().position(holds) else {
            return (self.scratch, 4);
        };
        let cell = &program.cells[n];
        let offset = (span.first - cell.span.first) as u64 * program.grain;
        let len = match cell.is_pointer() {
            true => cell.bytes,
            false => (span.count as u64 * program.grain).min(cell.bytes - offset),
        };
        (Addr(bases[n].0 + offset), len)
    }

    /// The semaphore that an atom is.
    pub fn semaphore(&self, program: &Program, atom: usize) -> Option<u32> {
        let cell = program
            .cells
            .iter()
            .position(|cell| cell.span.first == atom)?;
        (program.cells[cell].kind == CellKind::Semaphore).then_some(cell as u32)
    }

    /// The values of a run of atoms that was read as `bytes`. An atom that was caught half written
    /// counts as what it was at first.
    pub fn values(&self, program: &Program, span: Span, bytes: &[u8]) -> Vec<u32> {
        let cell = program.cell_of(span.first);
        if let Some(cell) = cell.filter(|cell| cell.is_pointer()) {
            let known = self
                .cells
                .iter()
                .position(|at| at.0.to_le_bytes() == *bytes);
            return vec![known.map_or(cell.initial, |n| n as u32)];
        }
        let initial = cell.map_or(0, |cell| cell.initial);
        let value = |atom: &[u8]| {
            let mut words = atom.chunks_exact(4).map(|word| {
                let word = word.try_into().unwrap_or_default();
                u32::from_le_bytes(word)
            });
            let first = words.next().unwrap_or(initial);
            match words.all(|word| word == first) {
                true => first,
                false => initial,
            }
        };
        bytes.chunks(program.grain as usize).map(value).collect()
    }

    /// Every atom, as memory has it now.
    pub fn memory(&self, program: &Program, system: &mut System) -> Result<Vec<u32>, TimedError> {
        let mut memory = Vec::new();
        for cell in &program.cells {
            let (at, len) = self.read_of(program, cell.span);
            let mut bytes = vec![0; len as usize];
            system.read_mem(at, &mut bytes)?;
            memory.extend(self.values(program, cell.span, &bytes));
        }
        Ok(memory)
    }
}

fn place(program: &Program, arch: Arch, n: usize, cell: &Cell) -> Result<(Addr, Addr), TimedError> {
    let map = &arch.spec().map;
    let own = n as u64 * CELL_STRIDE;
    let same = |at: Addr| Ok((at, at));
    match cell.kind {
        CellKind::Memory | CellKind::Pointer => same(Addr(FIRST_CELL + own)),
        CellKind::Host => same(Addr(map.host.0 + own)),
        CellKind::SetConstant => same(map.event_set),
        CellKind::Semaphore => {
            let window = |window| {
                let cell_of = map.semaphore(BLOCK, window, n as u32);
                cell_of.ok_or_else(|| TimedError::NoRoom(format!("semaphore {}", cell.name)))
            };
            Ok((window(EventBlock::SEM_SET)?, window(EventBlock::SEM_READ)?))
        }
        CellKind::Descriptor { queue, descriptor } => {
            let ring = &program.queues[queue];
            let slot = (u64::from(ring.start_slot) + descriptor as u64)
                % u64::from(ring_size(program, queue)?);
            let base = ring_base(queue, Direction::M2s);
            same(Addr(base.0 + slot * DESC_BYTES as u64 + BUF_PTR))
        }
    }
}

/// Start of a queue's ring.
pub(super) fn ring_base(queue: usize, direction: Direction) -> Addr {
    Addr(FIRST_RING + (queue as u64 * 2 + direction as u64) * RING_STRIDE)
}

/// Slots of a queue's rings: all its descriptors, and those before them, find room.
pub(super) fn ring_size(program: &Program, queue: usize) -> Result<u32, TimedError> {
    let ring = &program.queues[queue];
    let descs = ring.packets.iter().flat_map(|packet| &packet.descs);
    let tx: usize = descs.map(|desc| desc.from.len().max(1)).sum();
    let size = (tx as u32 + 1)
        .max(RING_MIN_DESCS)
        .next_multiple_of(RING_GRANULE_DESCS);
    match ring.start_slot < size && u64::from(size) * (DESC_BYTES as u64) < RING_STRIDE {
        true => Ok(size),
        false => Err(TimedError::NoRoom(format!("the ring of {}", ring.name))),
    }
}
