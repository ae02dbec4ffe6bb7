//! Where cells lie on the machine, and how atoms become bytes and back.

use super::TimedError;
use crate::arch::regs::Direction;
use crate::arch::{Arch, EventBlock};
use crate::host::Bus;
use crate::order::lowering::{BLOCK, CellAt, Lowering};
use crate::order::program::{CellKind, Program, Span};
use crate::system::System;
use crate::units::Addr;

/// Addresses of cells and rings.
pub(super) struct Layout {
    cells: Vec<Addr>,
    /// What reads the cell: for a semaphore, another address than what changes it.
    reads: Vec<Addr>,
    /// A place for packets that do nothing.
    pub scratch: Addr,
    hbm: Addr,
}

impl Layout {
    pub fn new(program: &Program, arch: Arch) -> Result<Layout, TimedError> {
        let hbm = first_hbm(arch)?;
        let mut layout = Layout {
            cells: Vec::new(),
            reads: Vec::new(),
            scratch: Addr(hbm.0 + Lowering::SCRATCH),
            hbm,
        };
        for n in 0..program.cells.len() {
            let (cell, read) = layout.place(program, arch, n)?;
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
        match (Lowering { program }).bytes(span) {
            Some(of) => (Addr(bases[of.cell].0 + of.offset), of.bytes),
            None => (self.scratch, 4),
        }
    }

    /// Start of a queue's ring.
    pub fn ring_base(&self, program: &Program, queue: usize, direction: Direction) -> Addr {
        let rings = Lowering { program }.rings(queue);
        Addr(match direction {
            Direction::M2s => self.hbm.0 + rings.tx,
            Direction::S2m => self.hbm.0 + rings.rx,
        })
    }

    /// Where a cell is changed, and where it is read.
    fn place(&self, program: &Program, arch: Arch, n: usize) -> Result<(Addr, Addr), TimedError> {
        let map = &arch.spec().map;
        let at = match (Lowering { program }).cell(n) {
            CellAt::Hbm(offset) => Addr(self.hbm.0 + offset),
            CellAt::Host(offset) => Addr(map.host.0 + offset),
            CellAt::SetConstant => map.event_set,
            CellAt::TxRing { queue, offset } => {
                let base = self.ring_base(program, queue, Direction::M2s);
                Addr(base.0 + offset)
            }
            CellAt::Semaphore(index) => {
                let window = |window| {
                    let name = &program.cells[n].name;
                    let cell = map.semaphore(BLOCK, window, index);
                    cell.ok_or_else(|| TimedError::NoRoom(format!("semaphore {name}")))
                };
                return Ok((window(EventBlock::SEM_SET)?, window(EventBlock::SEM_READ)?));
            }
        };
        Ok((at, at))
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

fn first_hbm(arch: Arch) -> Result<Addr, TimedError> {
    let stack = arch.spec().map.hbm.first();
    let stack = stack.ok_or_else(|| TimedError::NoRoom("cells: it has no HBM".to_string()))?;
    Ok(stack.base)
}

/// Slots of a queue's rings.
pub(super) fn ring_size(program: &Program, queue: usize) -> Result<u32, TimedError> {
    let lowering = Lowering { program };
    match lowering.rings_fit(queue) {
        true => Ok(lowering.rings(queue).descriptors),
        false => {
            let name = &program.queues[queue].name;
            Err(TimedError::NoRoom(format!("the ring of {name}")))
        }
    }
}
