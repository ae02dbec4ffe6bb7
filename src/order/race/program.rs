//! An abstract program executed in order: how it then ends, and its races.

use super::{Detector, PacketAccess, Read, Thread, Write, WriteTo};
use crate::arch::{Arch, EngineId};
use crate::order::outcome::Outcome;
use crate::order::program::{CellKind, Desc, Dest, Op, Packet, Program, Span};
use crate::system::WaitOp;
use crate::units::Addr;

/// Bytes that an atom has in the eyes of the detector: what becomes visible at once.
const ATOM: u64 = super::WORD;

/// An in-order execution.
pub struct InOrder {
    /// How it ends.
    pub outcome: Outcome,
    /// What it says of races.
    pub detector: Detector,
    /// The program's queues, as the detector knows them.
    pub queues: Vec<Thread>,
}

/// Executes a program in order: every queue to its end when it is rung, every observer as far as it
/// can go. `None` if that gets stuck, or if a descriptor's source is not known in advance.
pub fn in_order(program: &Program, arch: Arch) -> Option<InOrder> {
    let fixed = |desc: &Desc| desc.through.is_none();
    let packets = program.queues.iter().flat_map(|queue| &queue.packets);
    if !packets.flat_map(|packet| &packet.descs).all(fixed) {
        return None;
    }
    let mut detector = Detector::new(arch, usize::MAX);
    let start = detector.agent("start");
    let observers = program.observers.iter();
    let observers = observers
        .map(|o| (detector.agent(&o.name), 0))
        .collect::<Vec<_>>();
    let queues = program.queues.iter().enumerate();
    let queues = queues.map(|(n, queue)| detector.queue(EngineId(queue.engine), n as u8));
    let queues = queues.collect();
    let mut run = Run {
        program,
        queues,
        rung: vec![false; program.queues.len()],
        outcome: Outcome {
            registers: vec![0; program.register_count()],
            memory: program.initial(),
        },
        detector,
    };
    for queue in 0..program.queues.len() {
        if program.queues[queue].rung {
            run.ring(start, queue);
        }
    }
    run.observe(observers).then_some(InOrder {
        outcome: run.outcome,
        detector: run.detector,
        queues: run.queues,
    })
}

struct Run<'a> {
    program: &'a Program,
    queues: Vec<Thread>,
    rung: Vec<bool>,
    outcome: Outcome,
    detector: Detector,
}

impl Run<'_> {
    fn ring(&mut self, agent: Thread, queue: usize) {
        self.rung[queue] = true;
        self.detector.doorbell(agent, self.queues[queue]);
        let ring = &self.program.queues[queue];
        for packet in &ring.packets {
            let access = access(self.program, packet, ring.dmb_masked);
            self.detector.packet(self.queues[queue], &access);
            packet.descs.iter().for_each(|desc| self.execute(desc));
        }
    }

    fn execute(&mut self, desc: &Desc) {
        let memory = &mut self.outcome.memory;
        match desc.to {
            Dest::Increment(atom) => memory[atom] = memory[atom].wrapping_add(1),
            Dest::Store(to) => {
                let sum = |n| {
                    let sources = desc.from.iter().map(|from| memory[from.first + n]);
                    sources.fold(0, u32::wrapping_add)
                };
                let values: Vec<u32> = (0..to.count).map(sum).collect();
                memory[to.atoms()].copy_from_slice(&values);
            }
        }
        if let Some(atom) = desc.embedded {
            memory[atom] = memory[atom].wrapping_add(1);
        }
    }

    /// Lets every observer go as far as it can; whether all come to their end.
    fn observe(&mut self, mut observers: Vec<(Thread, usize)>) -> bool {
        let program = self.program;
        loop {
            let mut moved = false;
            for (n, (agent, step)) in observers.iter_mut().enumerate() {
                while let Some(op) = program.observers[n].ops.get(*step)
                    && self.op(*agent, *op)
                {
                    *step += 1;
                    moved = true;
                }
            }
            if !moved {
                let ends = observers.iter().zip(&program.observers);
                return ends.into_iter().all(|((_, step), o)| *step == o.ops.len());
            }
        }
    }

    /// Executes an instruction; false if it has to wait.
    fn op(&mut self, agent: Thread, op: Op) -> bool {
        let program = self.program;
        let is_semaphore = |atom| {
            let cell = program.cell_of(atom);
            cell.is_some_and(|cell| cell.kind == CellKind::Semaphore)
        };
        match op {
            Op::Read { span, register } => {
                let values = self.outcome.memory[span.atoms()].to_vec();
                self.outcome.registers[register..register + span.count].copy_from_slice(&values);
                self.detector.access(agent, 0, bytes(span), false);
            }
            Op::Wait { atom, op } => {
                let value = self.outcome.memory[atom] as i32;
                if !op.test().passes(value) {
                    return false;
                }
                if !is_semaphore(atom) {
                    self.detector.wait_word(agent, bytes(one(atom)).0);
                    return true;
                }
                let cell = (0, atom as u32);
                let missing = match op {
                    WaitOp::Ge(least) | WaitOp::GeAndDec(least) => {
                        i64::from(value) - i64::from(least)
                    }
                    WaitOp::Eq(_) | WaitOp::EqAndInc(_) | WaitOp::EqAndClear(_) => 0,
                };
                self.detector.wait_semaphore(agent, cell, missing as u64);
                let left = match op {
                    WaitOp::Ge(_) | WaitOp::Eq(_) => value,
                    WaitOp::GeAndDec(by) => value.wrapping_sub(by),
                    WaitOp::EqAndInc(_) => {
                        self.detector.increment(agent, cell, 1);
                        value.wrapping_add(1)
                    }
                    WaitOp::EqAndClear(_) => {
                        self.detector.set_semaphore(agent, cell, 0);
                        0
                    }
                };
                self.outcome.memory[atom] = left as u32;
            }
            Op::Set { atom, value } => {
                self.outcome.memory[atom] = value as u32;
                match is_semaphore(atom) {
                    true => {
                        let value = u64::try_from(value).unwrap_or(0);
                        self.detector.set_semaphore(agent, (0, atom as u32), value);
                    }
                    false => self.detector.access(agent, 0, bytes(one(atom)), true),
                }
            }
            Op::Add { atom, by } => {
                let memory = &mut self.outcome.memory[atom];
                *memory = memory.wrapping_add(by as u32);
                let by = u64::try_from(by).unwrap_or(0);
                self.detector.increment(agent, (0, atom as u32), by);
            }
            Op::Ring { queue } => self.ring(agent, queue),
            Op::Completion { queue, packets } => {
                if !self.rung[queue] {
                    return false;
                }
                let packets = packets as u32;
                self.detector
                    .wait_packets(agent, self.queues[queue], packets);
            }
        }
        true
    }
}

fn one(first: usize) -> Span {
    Span { first, count: 1 }
}

fn bytes(span: Span) -> (Addr, u64) {
    (Addr(span.first as u64 * ATOM), span.count as u64 * ATOM)
}

fn access(program: &Program, packet: &Packet, dmb_masked: bool) -> PacketAccess {
    let mut access = PacketAccess {
        dmb: packet.dmb() && !dmb_masked,
        write_barrier: packet.write_barrier(),
        ..PacketAccess::default()
    };
    let constant = |span: &Span| {
        let cell = program.cell_of(span.first);
        cell.is_some_and(|cell| cell.kind == CellKind::SetConstant)
    };
    let mut place = 0;
    for desc in &packet.descs {
        for (at, len) in desc
            .from
            .iter()
            .filter(|span| !constant(span))
            .map(|s| bytes(*s))
        {
            access.reads.push(Read { at, len, place });
        }
        let (to, len) = match desc.to {
            Dest::Store(span) => {
                let (at, len) = bytes(span);
                (WriteTo::Memory(at, len), len)
            }
            Dest::Increment(atom) => (WriteTo::Semaphore((0, atom as u32)), ATOM),
        };
        access.writes.push(Write {
            to,
            place,
            sow: desc.sow,
            embedded: desc.embedded.map(|atom| (0, atom as u32)),
        });
        place += len;
    }
    access
}
