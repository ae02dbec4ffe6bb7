//! Who acts besides engines: host threads that ring doorbells and observe, and sequencers. Each starts
//! at a random time, so that seeds show different interleavings.

use super::TimedError;
use super::layout::{BLOCK, Layout};
use super::rings::Ring;
use crate::arch::EventBlock;
use crate::arch::regs::Direction;
use crate::host::Bus;
use crate::order::program::{ObserverKind, Op, Program, Span};
use crate::sim::{Duration, Instant};
use crate::system::{Condition, SequencerOp, System, WaitOp};
use crate::units::{Addr, Cycles};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// How often host threads look.
const STEP: Duration = Duration::from_ns(20);

/// A host thread.
struct Thread {
    starts: Instant,
    work: Work,
}

enum Work {
    /// Rings a queue once.
    Start(usize),
    /// Executes an observer's program; the next instruction.
    Observe(usize, usize),
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
        jitter: Duration,
        random: &mut ChaCha8Rng,
    ) -> Actors<'a> {
        // Host threads may start long after the queues: writes take jitter twice, read and write.
        let mut within = |longest: u64| Duration::from_fs(random.random_range(0..=longest));
        let mut threads = Vec::new();
        let mut delays = Vec::new();
        for (n, queue) in program.queues.iter().enumerate() {
            if queue.rung {
                let starts = Instant::START + within(jitter.as_fs());
                threads.push(Thread {
                    starts,
                    work: Work::Start(n),
                });
            }
        }
        for (n, observer) in program.observers.iter().enumerate() {
            let delay = within(jitter.as_fs() * 3);
            match observer.kind {
                ObserverKind::Host => threads.push(Thread {
                    starts: Instant::START + delay,
                    work: Work::Observe(n, 0),
                }),
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
                            count: ring.descs(usize::MAX, direction),
                        };
                        code.extend([bell(Direction::S2m), bell(Direction::M2s)]);
                    }
                    Op::Wait { atom, op } => code.push(SequencerOp::Wait {
                        block: BLOCK,
                        semaphore: layout.semaphore(program, atom).unwrap_or(0),
                        op,
                    }),
                    Op::Set { atom, value } => {
                        let (at, _) = layout.bytes_of(program, one(atom));
                        let bytes = value.to_le_bytes().to_vec();
                        code.push(SequencerOp::Write { at, bytes });
                    }
                    Op::Add { atom, by } => code.push(SequencerOp::Inc {
                        block: BLOCK,
                        semaphore: layout.semaphore(program, atom).unwrap_or(0),
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
            match self.threads[n].work {
                Work::Done => {}
                Work::Start(queue) => {
                    self.rings[queue].trigger(system)?;
                    self.threads[n].work = Work::Done;
                }
                Work::Observe(observer, step) => {
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
                    WaitOp::GeAndDec(by) => {
                        change(system, layout, program, atom, EventBlock::SEM_DEC, by)?
                    }
                    WaitOp::EqAndInc(_) => {
                        change(system, layout, program, atom, EventBlock::SEM_INC, 1)?
                    }
                    WaitOp::EqAndClear(_) => {
                        change(system, layout, program, atom, EventBlock::SEM_SET, 0)?
                    }
                }
            }
            Op::Set { atom, value } => {
                let (at, _) = layout.bytes_of(program, one(atom));
                system.write_mem(at, &value.to_le_bytes())?;
            }
            Op::Add { atom, by } => change(system, layout, program, atom, EventBlock::SEM_INC, by)?,
            Op::Ring { queue } => self.rings[queue].trigger(system)?,
            Op::Completion { queue, packets } => {
                let ring = &self.rings[queue];
                return Ok(ring.completed(system)? >= ring.descs(packets, Direction::M2s));
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
    layout: &Layout,
    program: &Program,
    atom: usize,
    window: u64,
    value: i32,
) -> Result<(), TimedError> {
    let semaphore = layout.semaphore(program, atom).unwrap_or(0);
    let cell: Option<Addr> = system.arch().spec().map.semaphore(BLOCK, window, semaphore);
    let cell = cell.ok_or_else(|| TimedError::NoRoom(format!("semaphore {semaphore}")))?;
    Ok(system.write_mem(cell, &value.to_le_bytes())?)
}
