//! Who acts besides engines: host threads that ring doorbells and observe, and sequencers. Each starts
//! at a random time, so that seeds show different interleavings.

use super::TimedError;
use super::layout::Layout;
use super::rings::Ring;
use crate::arch::EventBlock;
use crate::arch::regs::Direction;
use crate::host::Bus;
use crate::order::lowering::{BLOCK, Lowering};
use crate::order::program::{CellKind, ObserverKind, Op, Program, Span};
use crate::sim::{Duration, Instant};
use crate::system::{Condition, SequencerOp, System, WaitOp};
use crate::units::{Addr, Cycles};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::ops::Range;

/// How often host threads look.
const STEP: Duration = Duration::from_ns(20);

/// A host thread.
struct Thread {
    starts: Instant,
    work: Work,
}

enum Work {
    /// Rings a queue for these of its packets.
    Start(usize, Range<usize>),
    /// Executes an observer's program; the next instruction.
    Observe(usize, usize),
    /// Starts an observer as soon as what it reads first changes, or else at this time.
    Watch(usize, Span, Instant),
    /// Makes a memory channel as much slower as this from now on.
    Slow(Addr, Duration),
    Done,
}

/// Everybody who acts.
pub(super) struct Actors<'a> {
    rings: &'a [Ring],
    threads: Vec<Thread>,
    /// Cycles that each sequencer waits before it begins.
    delays: Vec<(usize, Cycles)>,
    pub registers: Vec<u32>,
}

impl<'a> Actors<'a> {
    pub fn new(
        program: &Program,
        rings: &'a [Ring],
        layout: &Layout,
        jitter: Duration,
        random: &mut ChaCha8Rng,
    ) -> Actors<'a> {
        // Host threads may start long after the queues: writes take jitter twice, read and write.
        let jitter = jitter.as_fs();
        let within = |longest: u64, random: &mut ChaCha8Rng| {
            Duration::from_fs(random.random_range(0..=longest))
        };
        let mut threads = Vec::new();
        let mut delays = Vec::new();
        // Some memory channels are slow for a while: what is written first may come much later.
        for cell in program
            .cells
            .iter()
            .filter(|cell| cell.kind == CellKind::Memory)
        {
            if random.random_bool(0.5) {
                let (at, _) = layout.bytes_of(program, cell.span);
                let (by, until) = (within(jitter * 2, random), within(jitter * 3, random));
                for (starts, by) in [(Duration::ZERO, by), (until, Duration::ZERO)] {
                    threads.push(Thread {
                        starts: Instant::START + starts,
                        work: Work::Slow(at, by),
                    });
                }
            }
        }
        for (n, queue) in program.queues.iter().enumerate() {
            if !queue.rung {
                continue;
            }
            // Queues start together, or long after each other.
            let spread = if random.random_bool(0.5) { 1 } else { 4 };
            let mut starts = Instant::START + within(jitter * spread, random);
            // About half of the queues are rung in two pieces: what is rung late is fetched late.
            let all = queue.packets.len();
            let cut = random.random_range(1..=2 * all).min(all);
            for packets in [0..cut, cut..all] {
                if !packets.is_empty() {
                    let work = Work::Start(n, packets);
                    threads.push(Thread { starts, work });
                }
                starts = starts + within(jitter * 3, random);
            }
        }
        for (n, observer) in program.observers.iter().enumerate() {
            let delay = within(jitter * 3, random);
            match observer.kind {
                ObserverKind::Host => {
                    let starts = Instant::START + delay;
                    // An instant when something has just changed is as good as any other, and better to
                    // see what is in between.
                    let watched = match observer.ops.first() {
                        Some(Op::Read { span, .. }) if random.random_bool(0.5) => Some(*span),
                        _ => None,
                    };
                    threads.push(match watched {
                        Some(span) => Thread {
                            starts: Instant::START,
                            work: Work::Watch(n, span, starts + delay),
                        },
                        None => Thread {
                            starts,
                            work: Work::Observe(n, 0),
                        },
                    });
                }
                // About a cycle in a nanosecond: only the spread matters.
                ObserverKind::Sequencer => delays.push((n, Cycles(delay.as_ns_f64() as u64))),
            }
        }
        Actors {
            rings,
            threads,
            delays,
            registers: vec![0; program.register_count()],
        }
    }

    /// Starts the sequencers; returns which registers belong to the names of their observations.
    pub fn start_sequencers(
        &mut self,
        program: &Program,
        layout: &Layout,
        system: &mut System,
    ) -> Result<BTreeMap<String, (Span, usize)>, TimedError> {
        let offset = system.now() - Instant::START;
        for thread in &mut self.threads {
            thread.starts = thread.starts + offset;
            if let Work::Watch(_, _, latest) = &mut thread.work {
                *latest = *latest + offset;
            }
        }
        let mut registers = BTreeMap::new();
        for (n, delay) in &self.delays {
            let observer = &program.observers[*n];
            let mut code = vec![SequencerOp::Delay(*delay)];
            for op in &observer.ops {
                match *op {
                    Op::Read { span, register } => {
                        let name = format!("{register}");
                        registers.insert(name.clone(), (span, register));
                        let (at, len) = layout.read_of(program, span);
                        code.push(SequencerOp::Read { name, at, len });
                    }
                    Op::Ring { queue } => {
                        let ring = &self.rings[queue];
                        let bell = |direction| SequencerOp::Doorbell {
                            engine: ring.pair.engine(),
                            queue: ring.pair.queue(),
                            direction,
                            count: ring.descs(0..usize::MAX, direction),
                        };
                        code.extend([bell(Direction::S2m), bell(Direction::M2s)]);
                    }
                    Op::Wait { atom, op } => code.push(SequencerOp::Wait {
                        block: BLOCK,
                        semaphore: Lowering { program }.semaphore(atom).unwrap_or(0),
                        op,
                    }),
                    Op::Set { atom, value } => {
                        let (at, _) = layout.bytes_of(program, one(atom));
                        let bytes = value.to_le_bytes().to_vec();
                        code.push(SequencerOp::Write { at, bytes });
                    }
                    Op::Add { atom, by } => code.push(SequencerOp::Inc {
                        block: BLOCK,
                        semaphore: Lowering { program }.semaphore(atom).unwrap_or(0),
                        by,
                    }),
                    Op::Completion { .. } => {
                        return Err(TimedError::NotModelled("sequencers that read registers"));
                    }
                }
            }
            system.start_sequencer(&observer.name, code)?;
        }
        Ok(registers)
    }

    pub fn done(&self) -> bool {
        self.threads
            .iter()
            .all(|thread| matches!(thread.work, Work::Done))
    }

    /// Lets each thread whose time has come do one thing, then time pass.
    pub fn step(
        &mut self,
        program: &Program,
        layout: &Layout,
        system: &mut System,
    ) -> Result<(), TimedError> {
        for n in 0..self.threads.len() {
            if self.threads[n].starts > system.now() {
                continue;
            }
            match &self.threads[n].work {
                Work::Done => {}
                Work::Slow(at, by) => {
                    system.slow_down(*at, *by);
                    self.threads[n].work = Work::Done;
                }
                &Work::Watch(observer, span, latest) => {
                    let (at, len) = layout.read_of(program, span);
                    let mut bytes = vec![0; len as usize];
                    system.read_mem(at, &mut bytes)?;
                    let initial = program.cell_of(span.first).map_or(0, |cell| cell.initial);
                    let values = layout.values(program, span, &bytes);
                    if system.now() >= latest || values.iter().any(|value| *value != initial) {
                        self.threads[n].work = Work::Observe(observer, 0);
                    }
                }
                Work::Start(queue, packets) => {
                    self.rings[*queue].trigger(system, packets.clone())?;
                    self.threads[n].work = Work::Done;
                }
                &Work::Observe(observer, step) => {
                    let Some(op) = program.observers[observer].ops.get(step) else {
                        self.threads[n].work = Work::Done;
                        continue;
                    };
                    if self.execute(program, layout, system, *op)? {
                        self.threads[n].work = Work::Observe(observer, step + 1);
                    }
                }
            }
        }
        let next = system.now() + STEP;
        system.run_until(&Condition::Until(next), STEP);
        Ok(())
    }

    /// Executes an instruction of a host thread; false if it has to wait.
    fn execute(
        &mut self,
        program: &Program,
        layout: &Layout,
        system: &mut System,
        op: Op,
    ) -> Result<bool, TimedError> {
        match op {
            Op::Read { span, register } => {
                let (at, len) = layout.read_of(program, span);
                let mut bytes = vec![0; len as usize];
                system.read_mem(at, &mut bytes)?;
                let values = layout.values(program, span, &bytes);
                for (register, value) in self.registers[register..].iter_mut().zip(values) {
                    *register = value;
                }
            }
            Op::Wait { atom, op } => {
                let (at, _) = layout.read_of(program, one(atom));
                let mut word = [0; 4];
                system.read_mem(at, &mut word)?;
                if !op.test().passes(i32::from_le_bytes(word)) {
                    return Ok(false);
                }
                match op {
                    WaitOp::Ge(_) | WaitOp::Eq(_) => {}
                    WaitOp::GeAndDec(by) => change(system, program, atom, EventBlock::SEM_DEC, by)?,
                    WaitOp::EqAndInc(_) => change(system, program, atom, EventBlock::SEM_INC, 1)?,
                    WaitOp::EqAndClear(_) => change(system, program, atom, EventBlock::SEM_SET, 0)?,
                }
            }
            Op::Set { atom, value } => {
                let (at, _) = layout.bytes_of(program, one(atom));
                system.write_mem(at, &value.to_le_bytes())?;
            }
            Op::Add { atom, by } => change(system, program, atom, EventBlock::SEM_INC, by)?,
            Op::Ring { queue } => self.rings[queue].trigger(system, 0..usize::MAX)?,
            Op::Completion { queue, packets } => {
                let ring = &self.rings[queue];
                return Ok(ring.completed(system)? >= ring.descs(0..packets, Direction::M2s));
            }
        }
        Ok(true)
    }
}

fn one(first: usize) -> Span {
    Span { first, count: 1 }
}

/// Writes to a window of a semaphore.
fn change(
    system: &mut System,
    program: &Program,
    atom: usize,
    window: u64,
    value: i32,
) -> Result<(), TimedError> {
    let semaphore = Lowering { program }.semaphore(atom).unwrap_or(0);
    let cell: Option<Addr> = system.arch().spec().map.semaphore(BLOCK, window, semaphore);
    let cell = cell.ok_or_else(|| TimedError::NoRoom(format!("semaphore {semaphore}")))?;
    Ok(system.write_mem(cell, &value.to_le_bytes())?)
}
