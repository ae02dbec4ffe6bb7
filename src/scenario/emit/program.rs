//! What of a litmus test goes where in a scenario.

use super::error::EmitError;
use crate::arch::Arch;
use crate::order::litmus::Case;
use crate::order::lowering::{BLOCK, CellAt, Lowering};
use crate::order::program::{
    self, CellKind, Desc, Dest, Observer, ObserverKind, Op, Packet, Queue, Span,
};
use crate::order::timed::JITTER;
use crate::sim::stream;
use crate::system::WaitOp;
use rand::RngExt;

/// Longest wait before somebody starts, in cycles of about a nanosecond: latencies are at most that, twice.
const LONGEST_START: u64 = 3 * JITTER.as_fs() / 1_000_000;

/// A case with everything in its place.
pub(super) struct Program<'a> {
    pub program: &'a program::Program,
    arch: Arch,
    /// The observer that is the host; the others are sequencers.
    pub host: Option<usize>,
}

/// When who starts.
pub(super) struct Schedule {
    pub seed: u64,
    /// For each queue that is rung, in the order of time: cycles since the one before, and its packets.
    pub rings: Vec<(u64, usize, std::ops::Range<usize>)>,
    /// Cycles that each observer waits before it starts.
    pub delays: Vec<u64>,
}

impl Schedule {
    /// Draws when who starts.
    pub fn draw(case: &Case, seed: u64) -> Schedule {
        let mut random = stream(seed, "scenario/litmus");
        let mut times = Vec::new();
        for (n, queue) in case.program.queues.iter().enumerate() {
            if !queue.rung {
                continue;
            }
            let all = queue.packets.len();
            let cut = random.random_range(1..=2 * all).min(all);
            let start = random.random_range(0..=LONGEST_START / 3);
            let later = start + random.random_range(0..=LONGEST_START);
            // What is not rung all at once needs counts, which only copies make plain.
            let plain = queue
                .packets
                .iter()
                .flat_map(|p| &p.descs)
                .all(|d| d.from.len() <= 1);
            match plain && cut < all {
                true => times.extend([(start, n, 0..cut), (later, n, cut..all)]),
                false => times.push((start, n, 0..all)),
            }
        }
        times.sort_by_key(|(time, ..)| *time);
        let mut before = 0;
        for (time, ..) in &mut times {
            (before, *time) = (*time, *time - before);
        }
        let observers = case.program.observers.iter();
        let delays = observers.map(|_| random.random_range(0..=LONGEST_START));
        Schedule {
            seed,
            rings: times,
            delays: delays.collect(),
        }
    }
}

pub(super) fn refuse<T>(what: impl Into<String>) -> Result<T, EmitError> {
    Err(EmitError::NotExpressible(what.into()))
}

impl<'a> Program<'a> {
    pub fn of(case: &'a Case) -> Result<Program<'a>, EmitError> {
        let program = &case.program;
        let is_memory = |atom| {
            program
                .cell_of(atom)
                .is_some_and(|c| c.kind != CellKind::Semaphore)
        };
        let needs_host = |observer: &Observer| {
            observer.ops.iter().any(|op| match op {
                Op::Wait { atom, .. } => is_memory(*atom),
                Op::Completion { .. } => true,
                _ => false,
            })
        };
        let needs_sequencer = |observer: &Observer| {
            let then = |op: &Op| matches!(op, Op::Wait { op, .. } if !matches!(op, WaitOp::Ge(_) | WaitOp::Eq(_)));
            observer.kind == ObserverKind::Sequencer || observer.ops.iter().any(then)
        };
        let mut needing =
            (0..program.observers.len()).filter(|n| needs_host(&program.observers[*n]));
        let first = needing.next();
        if needing.next().is_some() {
            return refuse("two hosts that both wait for memory or completions");
        }
        let host = first.or_else(|| program.observers.iter().position(|o| !needs_sequencer(o)));
        if host.is_some_and(|n| needs_sequencer(&program.observers[n])) {
            return refuse("a host that waits for memory and also changes semaphores in its waits");
        }
        for queue in &program.queues {
            for desc in queue.packets.iter().flat_map(|packet| &packet.descs) {
                barrier(desc)?;
            }
        }
        let arch = case.arch;
        Ok(Program {
            program,
            arch,
            host,
        })
    }

    /// The name of a cell in the scenario: its own, marked as one.
    pub fn cell_name(&self, n: usize) -> String {
        let name = &self.program.cells[n].name;
        let plain = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        match plain {
            true => format!("cell-{name}"),
            false => format!("cell-{n}"),
        }
    }

    /// The layout that it shares with the timing engine.
    fn lowering(&self) -> Lowering<'_> {
        let program = self.program;
        Lowering { program }
    }

    /// The place where a cell is declared; `None` for what is no memory of its own.
    pub fn declared_at(&self, n: usize) -> Option<String> {
        match self.lowering().cell(n) {
            CellAt::Hbm(offset) => Some(format!("hbm0 + {offset}")),
            CellAt::Host(offset) => Some(format!("host + {offset}")),
            CellAt::Semaphore(_) | CellAt::SetConstant | CellAt::TxRing { .. } => None,
        }
    }

    /// The address of a cell that a pointer names.
    pub fn address(&self, n: usize) -> Result<u64, EmitError> {
        let stack = self.arch.spec().map.hbm.first();
        match (self.lowering().cell(n), stack) {
            (CellAt::Hbm(offset), Some(stack)) => Ok(stack.base.0 + offset),
            _ => refuse("a pointer to what is not in device memory"),
        }
    }

    fn cell_of(&self, atom: usize) -> Result<usize, EmitError> {
        match self.lowering().cell_of(atom) {
            Some(n) => Ok(n),
            None => refuse("an access outside every cell"),
        }
    }

    /// The place of a run of atoms, and its bytes.
    pub fn place(&self, span: Span) -> Result<(String, u64), EmitError> {
        let Some(of) = self.lowering().bytes(span) else {
            return refuse("an access outside every cell");
        };
        let place = match self.lowering().cell(of.cell) {
            CellAt::TxRing { queue, offset } => format!("tx{queue} + {offset}"),
            CellAt::Semaphore(_) => return refuse("an access to a semaphore as memory"),
            _ if of.offset == 0 => self.cell_name(of.cell),
            _ => format!("{} + {}", self.cell_name(of.cell), of.offset),
        };
        Ok((place, of.bytes))
    }

    /// The semaphore that an atom is, as scenarios name it.
    pub fn semaphore(&self, atom: usize) -> Result<String, EmitError> {
        match self.lowering().semaphore(atom) {
            Some(index) => Ok(semaphore(index)),
            None => refuse("an increment of memory"),
        }
    }

    /// Whether an atom is a semaphore.
    pub fn is_semaphore(&self, atom: usize) -> bool {
        self.lowering().semaphore(atom).is_some()
    }

    /// The place where a cell comes from that a pointer names at first.
    pub fn pointee(&self, slot: usize) -> Result<String, EmitError> {
        let n = self.cell_of(slot)?;
        Ok(self.cell_name(self.program.cells[n].initial as usize))
    }

    /// Engine and number of a queue.
    pub fn queue(&self, n: usize) -> (u32, usize) {
        (self.program.queues[n].engine, self.lowering().number(n))
    }

    /// Where a queue's rings lie, and their descriptors.
    pub fn ring(&self, n: usize) -> ([String; 2], u32) {
        let rings = self.lowering().rings(n);
        let at = |offset| format!("hbm0 + {offset}");
        ([at(rings.tx), at(rings.rx)], rings.descriptors)
    }

    /// How many packets of a queue lie before its ring wraps.
    pub fn before_wrap(&self, n: usize) -> usize {
        let queue = &self.program.queues[n];
        let room = (self.ring(n).1 - queue.start_slot) as usize;
        let mut used = 0;
        let fits = |packet: &&Packet| {
            used += packet.descs.len();
            used <= room
        };
        match queue.start_slot {
            0 => queue.packets.len(),
            _ => queue.packets.iter().take_while(fits).count(),
        }
    }
}

/// A semaphore of the layout, as scenarios name it.
pub(super) fn semaphore(index: u32) -> String {
    format!("{BLOCK}.{index}")
}

/// The barrier of a descriptor, as scenarios name it.
pub(super) fn barrier(desc: &Desc) -> Result<&'static str, EmitError> {
    match (desc.dmb, desc.write_barrier, desc.sow) {
        (false, false, false) => Ok("none"),
        (true, false, false) => Ok("dmb"),
        (false, true, false) => Ok("write_barrier"),
        (false, false, true) => Ok("sow"),
        _ => refuse("two barriers on the same descriptor"),
    }
}

/// The barrier of a packet of several descriptors.
pub(super) fn packet_barrier(packet: &Packet) -> Result<&'static str, EmitError> {
    match (packet.dmb(), packet.write_barrier()) {
        _ if packet.descs.iter().any(|desc| desc.sow) => {
            refuse("SOW on only one of several descriptors")
        }
        (false, false) => Ok("none"),
        (true, false) => Ok("dmb"),
        (false, true) => Ok("write_barrier"),
        (true, true) => refuse("two barriers on the same packet"),
    }
}

/// Descriptors of some packets, which are all copies.
pub(super) fn descriptors(queue: &Queue, packets: std::ops::Range<usize>) -> usize {
    let packets = &queue.packets[packets];
    packets.iter().map(|packet| packet.descs.len()).sum()
}

/// Whether a packet's descriptor stores to memory.
pub(super) fn stores(desc: &Desc) -> Option<Span> {
    match desc.to {
        Dest::Store(span) => Some(span),
        Dest::Increment(_) => None,
    }
}
