//! Packets as descriptors in rings.

use super::TimedError;
use super::layout::{BLOCK, Layout, ring_base, ring_size};
use crate::arch::regs::{self, Direction, RingPointer};
use crate::arch::{Arch, EngineId, EventBlock};
use crate::desc::{
    BarrierMode, CopyFlags, DESC_BYTES, Descriptor, RingId, RxDesc, TxDesc, build_copy,
};
use crate::host::{Bus, Pring, QueueOptions, QueuePair};
use crate::order::program::{Desc, Dest, Program, Span};
use crate::system::System;
use crate::units::Addr;

/// A queue of the machine that executes a queue of the program.
pub(super) struct Ring {
    /// Index in the program.
    index: usize,
    pub pair: QueuePair,
    size: u32,
    start_slot: u32,
    /// Register window of its engine.
    window: Addr,
    /// Descriptors of each packet.
    packets: Vec<u32>,
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
        let mut tx = Pring::new(Direction::M2s, ring_base(index, Direction::M2s), size)?;
        let mut rx = Pring::new(Direction::S2m, ring_base(index, Direction::S2m), size)?;
        let mut prelude = (Vec::new(), Vec::new());
        for _ in 0..queue.start_slot {
            let (from, to) = (layout.scratch, layout.scratch);
            let (tx, rx) = copy(arch, from, to, 4, RingId::FIRST_LAP)?;
            prelude.0.extend(Descriptor::from(tx).to_bytes());
            prelude.1.extend(Descriptor::from(rx).to_bytes());
        }
        tx.load(system, &prelude.0)?;
        rx.load(system, &prelude.1)?;
        let engine = EngineId(queue.engine);
        let number = program.queues[..index]
            .iter()
            .filter(|q| q.engine == queue.engine);
        let number = number.count() as u32;
        let options = QueueOptions {
            dmb: !queue.dmb_masked,
            ..QueueOptions::default()
        };
        let pair = QueuePair::init(system, arch, engine, number, (&tx, &rx), options)?;
        if queue.start_slot > 0 {
            pair.trigger(system, queue.start_slot, queue.start_slot)?;
        }
        let window = arch.spec().map.engine_base(engine);
        rings.push(Ring {
            index,
            pair,
            size,
            start_slot: queue.start_slot,
            window: window.ok_or_else(|| TimedError::NoRoom(queue.name.clone()))?,
            packets: (queue.packets.iter())
                .map(|packet| packet.descs.len() as u32)
                .collect(),
        });
    }
    Ok(rings)
}

impl Ring {
    /// Writes the program's descriptors to the ring.
    pub fn author(
        &self,
        program: &Program,
        arch: Arch,
        layout: &Layout,
        system: &mut System,
    ) -> Result<(), TimedError> {
        let mut position = self.start_slot;
        for packet in &program.queues[self.index].packets {
            let last = packet.descs.len() - 1;
            for (n, desc) in packet.descs.iter().enumerate() {
                let lap = match position < self.size {
                    true => RingId::FIRST_LAP,
                    false => RingId::FIRST_LAP.next(),
                };
                let (mut tx, rx) = pair(program, arch, layout, desc, lap)?;
                let flags = tx.len_ctrl.with_first(n == 0).with_last(n == last);
                tx.len_ctrl = flags.with_concat(n < last);
                let offset = u64::from(position % self.size) * DESC_BYTES as u64;
                for (direction, desc) in [
                    (Direction::M2s, Descriptor::from(tx)),
                    (Direction::S2m, Descriptor::from(rx)),
                ] {
                    let base = ring_base(self.index, direction);
                    system.write_mem(Addr(base.0 + offset), &desc.to_bytes())?;
                }
                position += 1;
            }
        }
        Ok(())
    }

    /// Descriptors of the first packets.
    pub fn descs(&self, packets: usize) -> u32 {
        self.packets.iter().take(packets).sum()
    }

    /// Descriptors of the program that the current pointer has left behind.
    pub fn completed(&self, system: &mut System) -> Result<u32, TimedError> {
        let register = Direction::M2s.queue_reg(self.pair.queue(), regs::queue::DCP);
        let current = system.read_reg(Addr(self.window.0 + register))?;
        let current = RingPointer::from_bits(current).index();
        Ok((current + self.size - self.start_slot) % self.size)
    }

    /// Rings the doorbells for the whole program.
    pub fn trigger(&self, system: &mut System) -> Result<(), TimedError> {
        let count = self.descs(self.packets.len());
        Ok(self.pair.trigger(system, count, count)?)
    }
}

fn copy(
    arch: Arch,
    from: Addr,
    to: Addr,
    len: u32,
    lap: RingId,
) -> Result<(TxDesc, RxDesc), TimedError> {
    let flags = CopyFlags::default();
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

fn pair(
    program: &Program,
    arch: Arch,
    layout: &Layout,
    desc: &Desc,
    lap: RingId,
) -> Result<(TxDesc, RxDesc), TimedError> {
    if desc.from.len() > 1 {
        return Err(TimedError::NotModelled("compute packets"));
    }
    if desc.embedded.is_some() {
        return Err(TimedError::NotModelled("embedded semaphores"));
    }
    let (to, len) = match desc.to {
        Dest::Store(span) => layout.bytes_of(program, span),
        Dest::Increment(atom) => {
            let semaphore = layout.semaphore(program, atom).unwrap_or(0);
            let map = &arch.spec().map;
            let cell = map.semaphore(BLOCK, EventBlock::SEM_INC, semaphore);
            let cell = cell.ok_or_else(|| TimedError::NoRoom(format!("semaphore {semaphore}")))?;
            (cell, EventBlock::CELL_BYTES)
        }
    };
    let from = match (desc.through, desc.from.first()) {
        (Some(slot), _) => {
            let cell = program.cell_of(slot);
            layout.address_of(cell.map_or(0, |cell| cell.initial))
        }
        (None, Some(span)) => layout.bytes_of(program, *span).0,
        (None, None) => layout.bytes_of(program, Span { first: 0, count: 1 }).0,
    };
    let (mut tx, mut rx) = copy(arch, from, to, len as u32, lap)?;
    tx.len_ctrl = tx.len_ctrl.with_dmb(desc.dmb);
    tx.meta_ctrl = tx.meta_ctrl.with_write_barrier(desc.write_barrier);
    rx.len_ctrl = rx.len_ctrl.with_strong_order_wr(desc.sow);
    Ok((tx, rx))
}
