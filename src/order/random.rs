//! Random ring programs, and the comparison of the three implementations on them.

use super::axiomatic::allowed;
use super::axioms::Axioms;
use super::explore::{Options, explore};
use super::outcome::Outcome;
use super::program::{
    Cell, CellKind, Desc, Dest, Observer, ObserverKind, Op, Packet, Program, Queue, Register, Span,
};
use super::timed::{self, TimedError};
use crate::arch::Arch;
use crate::config::Config;
use crate::sim::stream;
use crate::system::WaitOp;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;

/// Atoms of a burst, atoms of each memory cell, bytes of an atom: bursts of 32 bytes, the shortest a
/// config can ask for, and transfers of one to three halves of it.
const BURST: usize = 2;
const CELL_ATOMS: usize = 3;
const GRAIN: u64 = 16;
/// The burst length of the config that such programs run with.
pub const BURST_BYTES: u32 = BURST as u32 * GRAIN as u32;

/// How large a random program may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Most queues.
    pub queues: usize,
    /// Most packets of a queue.
    pub packets: usize,
    /// Compute packets and embedded semaphores too: the timing engine need not model them.
    pub compute: bool,
}

/// What became of one random program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// All agree; how many outcomes there are, and how many of them the timing engine showed.
    Agree {
        /// Outcomes that the axioms allow.
        outcomes: usize,
        /// Of those, the ones that runs ended in.
        shown: usize,
    },
    /// A bound was hit: nothing is proved.
    TooLarge,
    /// Explorer and axioms differ.
    ModelsDiffer {
        /// Outcomes that only the explorer found.
        explorer: Vec<Outcome>,
        /// Outcomes that only the axioms allow.
        axioms: Vec<Outcome>,
    },
    /// The timing engine ended in an outcome that is not allowed.
    EngineStrays {
        /// The seed of the run.
        seed: u64,
        /// The outcome.
        outcome: Outcome,
    },
}

/// A random program for a generation: memory of three cells, a semaphore, queues and an observer.
pub fn program(seed: u64, arch: Arch, size: Size) -> Program {
    let mut random = stream(seed, &format!("order/program/{arch}"));
    let mut program = Program {
        burst: BURST,
        grain: GRAIN,
        ..Program::default()
    };
    for (n, name) in ["a", "b", "c"].into_iter().enumerate() {
        push_cell(
            &mut program,
            name,
            CellKind::Memory,
            CELL_ATOMS,
            1 + n as u32,
        );
    }
    push_cell(&mut program, "s", CellKind::Semaphore, 1, 0);
    push_cell(&mut program, "set constant", CellKind::SetConstant, 1, 1);
    let queues = random.random_range(1..=size.queues);
    for n in 0..queues {
        let packets = random.random_range(1..=size.packets);
        let packets = (0..packets).map(|_| packet(&mut random, arch, &program, size));
        let packets = packets.collect();
        program.queues.push(Queue {
            name: format!("Q{n}"),
            engine: random.random_range(0..2),
            packets,
            rung: n == 0 || random.random_bool(0.6),
            dmb_masked: random.random_bool(0.1),
            start_slot: 0,
        });
    }
    observer(&mut random, &mut program);
    program
}

fn push_cell(program: &mut Program, name: &str, kind: CellKind, atoms: usize, initial: u32) {
    program.cells.push(Cell {
        name: name.to_string(),
        kind,
        span: Span {
            first: program.atoms(),
            count: atoms,
        },
        initial,
        bytes: match kind {
            CellKind::Memory => atoms as u64 * GRAIN,
            _ => 4,
        },
    });
}

fn packet(random: &mut ChaCha8Rng, arch: Arch, program: &Program, size: Size) -> Packet {
    let descs = if random.random_bool(0.15) { 2 } else { 1 };
    Packet {
        descs: (0..descs)
            .map(|_| desc(random, arch, program, size, descs == 1))
            .collect(),
    }
}

fn desc(random: &mut ChaCha8Rng, arch: Arch, program: &Program, size: Size, alone: bool) -> Desc {
    let increments = random.random_bool(0.2);
    let count = random.random_range(1..=CELL_ATOMS);
    let mut span = || Span {
        first: random.random_range(0..3usize) * CELL_ATOMS
            + random.random_range(0..=CELL_ATOMS - count),
        count,
    };
    let (from, to) = match increments {
        true => (
            vec![program.cells[4].span],
            Dest::Increment(program.cells[3].span.first),
        ),
        false => (vec![span()], Dest::Store(span())),
    };
    let mut desc = Desc {
        label: String::new(),
        from,
        through: None,
        to,
        dmb: random.random_bool(0.15),
        write_barrier: random.random_bool(0.15),
        sow: arch.spec().caps.strong_order_writes && random.random_bool(0.2),
        embedded: None,
    };
    if size.compute && alone && !increments && random.random_bool(0.3) {
        // In place: what is added to is a source.
        if let Dest::Store(to) = desc.to {
            desc.from.push(to);
        }
    }
    let embedded = size.compute && arch.spec().caps.embedded_semaphore;
    if embedded && !increments && random.random_bool(0.2) {
        desc.embedded = Some(program.cells[3].span.first);
    }
    desc
}

/// An observer that rings the queues nobody has rung, perhaps waits, and reads.
fn observer(random: &mut ChaCha8Rng, program: &mut Program) {
    let mut ops = Vec::new();
    let semaphore = program.cells[3].span.first;
    let rung = |queue: &&Queue| queue.rung;
    let incs = |queue: &Queue| {
        let descs = queue.packets.iter().flat_map(|packet| &packet.descs);
        let increments = |desc: &Desc| {
            u32::from(matches!(desc.to, Dest::Increment(_))) + u32::from(desc.embedded.is_some())
        };
        descs.map(increments).sum::<u32>()
    };
    // No more than is sure to come: the program always ends.
    let coming: u32 = program.queues.iter().filter(rung).map(incs).sum();
    if coming > 0 && random.random_bool(0.7) {
        let least = random.random_range(1..=coming) as i32;
        let op = match random.random_bool(0.3) {
            true => WaitOp::GeAndDec(least),
            false => WaitOp::Ge(least),
        };
        ops.push(Op::Wait {
            atom: semaphore,
            op,
        });
    } else if random.random_bool(0.3) {
        ops.push(Op::Completion {
            queue: 0,
            packets: random.random_range(1..=program.queues[0].packets.len()),
        });
    }
    for _ in 0..random.random_range(0..2) {
        read(random, program, &mut ops);
    }
    for queue in 0..program.queues.len() {
        if !program.queues[queue].rung {
            ops.push(Op::Ring { queue });
        }
    }
    for _ in 0..random.random_range(0..2) {
        read(random, program, &mut ops);
    }
    program.observers.push(Observer {
        name: "H".to_string(),
        kind: ObserverKind::Host,
        ops,
    });
}

fn read(random: &mut ChaCha8Rng, program: &mut Program, ops: &mut Vec<Op>) {
    let span = program.cells[random.random_range(0..3usize)].span;
    let register = program.register_count();
    program.registers.push(Register {
        name: format!("r{register}"),
        first: register,
        count: span.count,
    });
    ops.push(Op::Read { span, register });
}

/// How far a comparison goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Most states of the explorer.
    pub states: u64,
    /// Most orders that the axiomatic checker looks at.
    pub candidates: u64,
    /// Runs of the timing engine.
    pub runs: u64,
}

/// Compares the three implementations on a program.
///
/// # Errors
/// [`TimedError`] if the timing engine cannot run the program to its end.
pub fn compare(
    program: &Program,
    config: &Config,
    effort: Effort,
) -> Result<Comparison, TimedError> {
    let options = Options {
        max_states: effort.states,
        ..Options::default()
    };
    let (Ok(explored), Ok(axioms)) = (
        explore(program, options),
        allowed(program, Axioms::ALL, effort.candidates),
    ) else {
        return Ok(Comparison::TooLarge);
    };
    if !explored.exhaustive || !axioms.exhaustive {
        return Ok(Comparison::TooLarge);
    }
    let found: BTreeSet<Outcome> = explored.endings.into_keys().collect();
    if found != axioms.outcomes {
        return Ok(Comparison::ModelsDiffer {
            explorer: found.difference(&axioms.outcomes).cloned().collect(),
            axioms: axioms.outcomes.difference(&found).cloned().collect(),
        });
    }
    let mut shown = BTreeSet::new();
    for seed in 0..effort.runs {
        let outcome = timed::run(program, config, seed, timed::JITTER)?;
        if !found.contains(&outcome) {
            return Ok(Comparison::EngineStrays { seed, outcome });
        }
        shown.insert(outcome);
    }
    Ok(Comparison::Agree {
        outcomes: found.len(),
        shown: shown.len(),
    })
}
