//! Packets as descriptors in rings.

use super::TimedError;
use super::layout::{Layout, ring_size};
use crate::arch::regs::{self, Direction, RingPointer};
use crate::arch::{Arch, EngineId, EventBlock};
use crate::desc::{
    BarrierMode, CcePacket, CceType, CopyFlags, DESC_BYTES, DType, Descriptor, EmbeddedSemaphore,
    RingId, RxDesc, TxDesc, build_cce_packet, build_copy,
};
use crate::host::{Bus, Pring, QueueOptions, QueuePair, QueueSetup};
use crate::order::lowering::{BLOCK, Lowering};
use crate::order::program::{Desc, Dest, Program};
use crate::system::System;
use crate::units::Addr;
use std::ops::Range;

/// A queue of the machine that executes a queue of the program.
pub(super) struct Ring {
    /// Index in the program.
    index: usize,
    pub pair: QueuePair,
    /// Starts of the Tx and the Rx ring.
    bases: [Addr; 2],
    size: u32,
    start_slot: u32,
    /// Register window of its engine.
    window: Addr,
    /// Tx and Rx descriptors of each packet.
    packets: Vec<[u32; 2]>,
}

/// Sets the queues up and lets those that start late in their ring get there.
pub(super) fn set_up(
    program: &Program,
    arch: Arch,
    layout: &Layout,
    system: &mut System,
) -> Result<Vec<Ring>, TimedError> {
    let mut rings = Vec::new();
    for (index, queue) in program.queues.iter().enumerate() {
        let size = ring_size(program, index)?;
        let bases = Direction::ALL.map(|half| layout.ring_base(program, index, half));
        let mut tx = Pring::new(Direction::M2s, bases[0], size)?;
        let mut rx = Pring::new(Direction::S2m, bases[1], size)?;
        let mut prelude = (Vec::new(), Vec::new());
        for _ in 0..queue.start_slot {
            let (from, to) = (layout.scratch, layout.scratch);
            let (tx, rx) = copy(arch, from, to, 4)?;
            prelude.0.extend(Descriptor::from(tx).to_bytes());
            prelude.1.extend(Descriptor::from(rx).to_bytes());
        }
        tx.load(system, &prelude.0)?;
        rx.load(system, &prelude.1)?;
        let engine = EngineId(queue.engine);
        let number = Lowering { program }.number(index) as u32;
        let options = QueueOptions {
            dmb: !queue.dmb_masked,
            ..QueueOptions::default()
        };
        let pair = QueuePair::init(
            system,
            QueueSetup {
                arch,
                engine,
                queue: number,
                tx: &tx,
                rx: &rx,
                options,
            },
        )?;
        if queue.start_slot > 0 {
            pair.trigger(system, queue.start_slot, queue.start_slot)?;
        }
        let window = arch.spec().map.engine_base(engine);
        rings.push(Ring {
            index,
            pair,
            bases,
            size,
            start_slot: queue.start_slot,
            window: window.ok_or_else(|| TimedError::NoRoom(queue.name.clone()))?,
            packets: Vec::new(),
        });
    }
    Ok(rings)
}

impl Ring {
    /// Writes the program's descriptors to the rings.
    pub fn author(
        &mut self,
        program: &Program,
        arch: Arch,
        layout: &Layout,
        system: &mut System,
    ) -> Result<(), TimedError> {
        let mut next = [self.start_slot; 2];
        for packet in &program.queues[self.index].packets {
            let before = next;
            let mut halves = [Vec::new(), Vec::new()];
            for desc in &packet.descs {
                let [tx, rx] = descriptors(program, arch, layout, desc)?;
                halves[0].extend(tx);
                halves[1].extend(rx);
            }
            let last = halves[0].len() - 1;
            for (n, desc) in halves[0].iter_mut().enumerate() {
                desc.words[0] = desc.len_ctrl().in_packet(n == 0, n == last).into_bits();
            }
            for (direction, half) in Direction::ALL.into_iter().zip(halves) {
                for desc in half {
                    let position = &mut next[direction as usize];
                    self.put(system, direction, *position, desc)?;
                    *position += 1;
                }
            }
            self.packets
                .push([next[0] - before[0], next[1] - before[1]]);
        }
        Ok(())
    }

    /// Writes a descriptor to a slot, with the phase of its lap.
    fn put(
        &self,
        system: &mut System,
        direction: Direction,
        position: u32,
        mut desc: Descriptor,
    ) -> Result<(), TimedError> {
        let lap = match position < self.size {
            true => RingId::FIRST_LAP,
            false => RingId::FIRST_LAP.next(),
        };
        desc.words[0] = desc.len_ctrl().with_ring_id(lap).into_bits();
        let offset = u64::from(position % self.size) * DESC_BYTES as u64;
        let base = self.bases[direction as usize];
        Ok(system.write_mem(Addr(base.0 + offset), &desc.to_bytes())?)
    }

    /// Descriptors of some packets.
    pub fn descs(&self, packets: Range<usize>, direction: Direction) -> u32 {
        let packets = self.packets.iter().take(packets.end).skip(packets.start);
        packets.map(|packet| packet[direction as usize]).sum()
    }

    /// Descriptors of the program that the current pointer has left behind.
    pub fn completed(&self, system: &mut System) -> Result<u32, TimedError> {
        let register = Direction::M2s.queue_reg(self.pair.queue(), regs::queue::DCP);
        let current = system.read_reg(Addr(self.window.0 + register))?;
        let current = RingPointer::from_bits(current).index();
        Ok((current + self.size - self.start_slot) % self.size)
    }

    /// Rings the doorbells for some packets, which follow those that have been rung.
    pub fn trigger(&self, system: &mut System, packets: Range<usize>) -> Result<(), TimedError> {
        let [tx, rx] = Direction::ALL.map(|direction| self.descs(packets.clone(), direction));
        Ok(self.pair.trigger(system, tx, rx)?)
    }
}

fn copy(arch: Arch, from: Addr, to: Addr, len: u32) -> Result<(TxDesc, RxDesc), TimedError> {
    let (lap, flags) = (RingId::FIRST_LAP, CopyFlags::default());
    Ok(build_copy(
        arch,
        from,
        to,
        len,
        lap,
        BarrierMode::None,
        flags,
    )?)
}

/// The Tx and Rx descriptors of one descriptor pair of the program, without ends and phases.
fn descriptors(
    program: &Program,
    arch: Arch,
    layout: &Layout,
    desc: &Desc,
) -> Result<[Vec<Descriptor>; 2], TimedError> {
    let map = &arch.spec().map;
    let (to, len) = match desc.to {
        Dest::Store(span) => layout.bytes_of(program, span),
        Dest::Increment(atom) => {
            let semaphore = Lowering { program }.semaphore(atom).unwrap_or(0);
            let cell = map.semaphore(BLOCK, EventBlock::SEM_INC, semaphore);
            let cell = cell.ok_or_else(|| TimedError::NoRoom(format!("semaphore {semaphore}")))?;
            (cell, EventBlock::CELL_BYTES)
        }
    };
    let named = desc.through.and_then(|slot| program.cell_of(slot));
    let sources: Vec<Addr> = match named {
        Some(cell) => vec![layout.address_of(cell.initial)],
        None => desc
            .from
            .iter()
            .map(|span| layout.bytes_of(program, *span).0)
            .collect(),
    };
    let mut halves = match sources.as_slice() {
        [from] => {
            let (tx, rx) = copy(arch, *from, to, len as u32)?;
            [vec![Descriptor::from(tx)], vec![Descriptor::from(rx)]]
        }
        sources => {
            let elements = len as u32 / DType::Uint32.bytes();
            let to = [to];
            let packet = CcePacket::new(sources, &to, elements, DType::Uint32);
            let built = build_cce_packet(arch, CceType::Add, &packet, RingId::FIRST_LAP)?;
            [built.tx, built.rx]
        }
    };
    let [txs, rxs] = &mut halves;
    if let (Some(first), true) = (txs.first_mut(), desc.dmb) {
        first.words[0] = first.len_ctrl().with_dmb(true).into_bits();
    }
    if let (Some(last), true) = (txs.last_mut(), desc.write_barrier) {
        let meta_ctrl = TxDesc::from(*last).meta_ctrl.with_write_barrier(true);
        last.words[1] = meta_ctrl.into_bits();
    }
    if let Some(last) = rxs.last_mut() {
        let mut rx = RxDesc::from(*last);
        rx.len_ctrl = rx.len_ctrl.with_strong_order_wr(desc.sow);
        if let Some(semaphore) = desc
            .embedded
            .and_then(|atom| Lowering { program }.semaphore(atom))
        {
            let update = EmbeddedSemaphore {
                set_sow: false,
                csr_index: BLOCK as u8,
                semaphore: semaphore as u16,
            };
            rx = update.put(rx);
        }
        *last = rx.into();
    }
    Ok(halves)
}
