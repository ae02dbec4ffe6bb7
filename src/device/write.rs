//! S2M: a packet's bytes fill Rx descriptors in ring order and leave as write bursts, in stream
//! order (A2). Here the write-side barriers hold: a burst that must not overtake earlier writes is
//! not issued before those are acknowledged (A7, A8). The data behind it waits in the FIFO, reads go
//! on until that is full.

use super::activity::{Activity, Station, StationState};
use super::burst::{Begun, Burst};
use super::engine::{Ctx, Engine, EngineEvent, Outbox, RegisterWrite};
use super::error::ErrorBit;
use super::fabric::{InFlight, MAX_BURST_BYTES, Route, Times};
use super::faults::{FaultKind, Site};
use super::queue::{Needs, Queue};
use super::read::register_window;
use super::stream::Destination;
use crate::arch::EventBlock;
use crate::arch::regs::{Direction, M2sError, S2mError, UdmaState};
use crate::config::SowScope;
use crate::desc::{Descriptor, EmbeddedSemaphore, RxDesc};
use crate::dram::Kind as Way;
use crate::memory::{AccessError, Effects, Nearby, PhysicalMemory};
use crate::sim::{Duration, Instant};
use crate::units::{Addr, Cycles};

/// The Rx descriptor being filled.
pub(super) struct RxCursor {
    at: Addr,
    left: u32,
    written: u32,
    /// Cycle of its first burst.
    began: u64,
    desc: Descriptor,
    slot: u32,
    /// The cell that its embedded semaphore update increments (V4).
    update: Option<Addr>,
    /// Where it writes a transpose: bytes of a row, and how many of them are left of this one.
    row: Option<(u32, u32)>,
    /// It is a transpose flush: what is written goes nowhere.
    flush: bool,
}

/// Where a write burst's bytes come from.
#[derive(Clone, Copy)]
pub(super) enum WriteData {
    /// The queue's lane, at this stream offset.
    Lane(u64),
    /// The packet's result, at this offset.
    Result(u32),
    /// The word 1: an embedded semaphore update.
    Increment,
}

/// A write burst that is not yet acknowledged.
pub(super) struct WriteBurst {
    /// It is of a transpose flush: the bytes go nowhere.
    flush: bool,
    pub data: WriteData,
    /// Number of its packet in the queue.
    packet: u64,
    pub burst: Burst,
}

/// An address at which no generation has anything: the lowest of a stretch longer than any descriptor.
const NOWHERE: Addr = Addr(0xffff_ffff_0000_0000);

/// The write path of an engine.
#[derive(Default)]
pub(super) struct Writer {
    /// Queue served last.
    last: usize,
    /// First cycle at which the next burst can be issued.
    next_cycle: u64,
    /// Bursts not yet acknowledged, all queues.
    pub outstanding: usize,
    /// Where the last burst fell.
    near: Nearby,
}

impl WriteBurst {
    /// Whether its bytes go nowhere.
    pub fn is_flush(&self) -> bool {
        self.flush
    }

    /// Number of its packet in the queue.
    pub fn packet(&self) -> u64 {
        self.packet
    }

    /// Tells an observer that it is over, and its descriptor if that is.
    #[cold]
    pub fn tell(&self, queue: usize, begun: &mut Begun, out: &mut Outbox) {
        let (queue, burst) = (queue as u8, &self.burst);
        out.tell(|| Activity::Write {
            queue,
            slot: burst.slot,
            packet: self.packet,
            access: burst.access(),
        });
        if !matches!(self.data, WriteData::Increment) {
            burst.end(Direction::S2m, queue, begun, out);
        }
    }
}

/// Times of a write. Those of one queue to the same bytes become visible in issue order (A3): those to one
/// channel do. `floors` says when the last one there does, for each channel.
#[inline]
pub(super) fn in_order(
    floors: &mut Vec<Instant>,
    channel: usize,
    mut times: Times,
    ctx: &Ctx,
) -> Times {
    if floors.is_empty() {
        *floors = vec![Instant::START; ctx.fabric.channels()];
    }
    let floor = &mut floors[channel];
    times.done = times.done.max(*floor);
    *floor = times.done;
    times
}

impl Engine {
    /// Issues at most one write burst, round robin between the queues that have data.
    pub(super) fn issue_write(&mut self, cycle: u64, needs: &mut Needs, ctx: &mut Ctx) {
        if cycle < self.writer.next_cycle {
            needs.cycle(self.writer.next_cycle);
            return;
        }
        needs.station(Station::Write, StationState::Idle);
        for q in self.in_flight.after(self.writer.last) {
            if let Some(cell) = self.queues[q].update {
                // After its descriptor's writes and, like a strong-ordered write, after every
                // earlier one of the queue (A12). Later writes wait behind it (C).
                if !self.queues[q].writes.is_empty() {
                    self.queues[q].held_since.get_or_insert(ctx.now);
                    needs.ack = true;
                    needs.station(Station::Write, StationState::Acknowledge);
                    continue;
                }
                self.writer.last = q;
                self.issue_update(q, cell, cycle, ctx);
                needs.cycle(self.writer.next_cycle);
                needs.station(Station::Write, StationState::Busy);
                return;
            }
            if let Some(len) = self.write_ready(q, cycle, needs, ctx.now) {
                self.writer.last = q;
                self.issue_burst(q, len, cycle, ctx);
                needs.cycle(self.writer.next_cycle);
                needs.station(Station::Write, StationState::Busy);
                return;
            }
        }
    }

    /// Length of the write burst that queue `q` can issue now. `None`, and what it waits for in
    /// `needs`, if it cannot.
    fn write_ready(
        &mut self,
        q: usize,
        cycle: u64,
        needs: &mut Needs,
        now: Instant,
    ) -> Option<u32> {
        let queue = &mut self.queues[q];
        let packet = loop {
            let packet = queue.packets.get(queue.written)?;
            if packet.to_write > 0 || packet.update_due || packet.computing() {
                break packet;
            }
            // One that was dropped has nothing to write.
            queue.written += 1;
        };
        if !queue.stream_on[Direction::S2m as usize] {
            return None;
        }
        let to_write = packet.to_write;
        if to_write == 0 {
            // It has nothing to write but is not done: its sources are still to come.
            needs.read = true;
            needs.station(Station::Write, StationState::Data);
            return None;
        }
        let available = packet.result_left().unwrap_or(queue.lane.available());
        if self.queues[q].rx.is_none() && !self.take_rx(q, needs, now) {
            needs.station(Station::Write, StationState::Descriptor);
            self.starve(q, cycle, needs);
            return None;
        }
        self.queues[q].starved = None;
        let queue = &self.queues[q];
        let rx = queue.rx.as_ref()?;
        let most = rx.left.min(to_write);
        let most = rx.row.map_or(most, |(_, left)| most.min(left));
        let len = self.burst_len(Direction::S2m, rx.at, most);
        if available < u64::from(len) {
            needs.read = true;
            needs.station(Station::Write, StationState::Data);
            return None;
        }
        let fenced = self.fenced(queue);
        if fenced || self.writer.outstanding >= self.limits.writes {
            if fenced {
                self.queues[q].held_since.get_or_insert(now);
            }
            needs.ack = true;
            needs.station(Station::Write, StationState::Acknowledge);
            return None;
        }
        Some(len)
    }

    /// Whether writes that must be acknowledged first are not.
    fn fenced(&self, queue: &Queue) -> bool {
        let engine_fenced = (queue.engine_fence.iter().zip(&self.queues))
            .any(|(fence, other)| other.writes.first() < *fence)
            || self.strays.keys().any(|(q, burst)| {
                (queue.engine_fence.get(usize::from(*q))).is_some_and(|fence| burst < fence)
            });
        queue.writes.first() < queue.fence || engine_fenced
    }

    /// Starts on the queue's next Rx descriptor. False if it is not there yet.
    #[inline(never)]
    fn take_rx(&mut self, q: usize, needs: &mut Needs, now: Instant) -> bool {
        // A disabled half fills the descriptors it is at and takes no other.
        let runs = self.states[Direction::S2m as usize] == UdmaState::Normal;
        if !runs || self.limits.stream_disabled[Direction::S2m as usize] {
            return false;
        }
        let queue = &mut self.queues[q];
        let ring = &mut queue.rings[Direction::S2m as usize];
        match ring.fifo.front() {
            None => return false,
            Some(prefetched) if prefetched.ready_at > now => {
                needs.at(prefetched.ready_at);
                return false;
            }
            Some(_) => {}
        }
        let Some(prefetched) = ring.fifo.pop_front() else {
            return false;
        };
        self.prefetchers[Direction::S2m as usize].held -= 1;
        let rx = RxDesc::from(prefetched.desc);
        let update = match self.spec.caps.embedded_semaphore {
            true => EmbeddedSemaphore::of(rx).map(|update| self.update_cell(update)),
            false => None,
        };
        let (at, row, flush) = match self.destination(q, rx) {
            Ok(Destination::Linear(at)) => (at, None, false),
            Ok(Destination::Rows { at, bytes }) => (at, Some((bytes, bytes)), false),
            Ok(Destination::Flush(at)) => (at, None, true),
            Err(reason) => {
                let bit = ErrorBit::S2m(S2mError::DataResponse);
                let (slot, desc) = (prefetched.slot, prefetched.desc);
                self.raise_because(bit, q as u8, slot, rx.buf1_ptr, desc, Some(reason));
                (NOWHERE, None, false)
            }
        };
        let queue = &mut self.queues[q];
        queue.rx = Some(RxCursor {
            at,
            left: rx.len_ctrl.byte_len(),
            written: 0,
            began: 0,
            desc: prefetched.desc,
            slot: prefetched.slot,
            update,
            row,
            flush,
        });
        let Some(packet) = queue.packets.get_mut(queue.written) else {
            return false;
        };
        packet.rx_descs += 1;
        packet.interrupt[1] |= rx.len_ctrl.int_en();
        if packet.rx_descs == self.spec.limits.rx_descs_per_packet + 1 {
            // It goes on, if that is masked: modelled (C).
            let bit = ErrorBit::S2m(S2mError::PrefetchSaturate);
            self.raise(bit, q as u8, prefetched.slot, rx.buf1_ptr, prefetched.desc);
        }
        let strong = rx.len_ctrl.strong_order_wr() && self.spec.caps.strong_order_writes;
        self.counters.strong_order_writes += u64::from(strong);
        if strong || flush {
            let fence = self.queues[q].writes.next();
            self.queues[q].fence = fence;
            if self.sow_scope == SowScope::Engine {
                let fences = self
                    .queues
                    .iter()
                    .map(|queue| queue.writes.next())
                    .collect();
                self.queues[q].engine_fence = fences;
            }
        }
        true
    }

    /// Data may be waiting for an Rx descriptor that no doorbell has announced: a hint at first, an
    /// error of either half once its acknowledge timeout has passed.
    #[inline(never)]
    fn starve(&mut self, q: usize, cycle: u64, needs: &mut Needs) {
        let queue = &mut self.queues[q];
        let ring = &queue.rings[Direction::S2m as usize];
        let announced = !ring.fifo.is_empty() || !ring.fetches.is_empty() || ring.to_fetch() > 0;
        if announced || queue.available() == 0 {
            needs.read = true;
            return;
        }
        if queue.starved.is_none() {
            let hint = S2mError::NoDescHint.mask();
            self.interrupts.set_error(Direction::S2m, hint);
        }
        let (since, reported) = *queue.starved.get_or_insert((cycle, [false; 2]));
        let bits = [
            ErrorBit::M2s(M2sError::StreamTimeout),
            ErrorBit::S2m(S2mError::NoDescTimeout),
        ];
        for (half, bit) in bits.into_iter().enumerate() {
            let timeout = self.limits.ack_timeout[half];
            let due = since.saturating_add(timeout);
            if timeout == 0 || reported[half] {
                continue;
            }
            if cycle < due {
                needs.cycle(due);
                continue;
            }
            if let Some((_, reported)) = &mut self.queues[q].starved {
                reported[half] = true;
            }
            self.raise(bit, q as u8, 0, Addr(0), Descriptor::default());
        }
    }

    /// The oldest write of a queue has not been acknowledged in time: an AXI timeout, reported once.
    #[inline(never)]
    pub(super) fn check_write_timeout(&mut self, q: usize, cycle: u64, needs: &mut Needs) {
        let Some(write) = self.queues[q].writes.front_mut() else {
            return;
        };
        let Some(due) = write.burst.issued_at.checked_add(self.limits.axi_timeout) else {
            return;
        };
        if cycle < due {
            needs.cycle(due);
            return;
        }
        write.burst.issued_at = u64::MAX;
        let (slot, at, desc) = (write.burst.slot, write.burst.at, write.burst.desc);
        let bit = ErrorBit::S2m(S2mError::DataTimeout);
        self.raise(bit, q as u8, slot, at, desc);
    }

    fn issue_burst(&mut self, q: usize, len: u32, cycle: u64, ctx: &mut Ctx) {
        let queue = &mut self.queues[q];
        let Some(rx) = queue.rx.as_mut() else { return };
        let at = rx.at;
        let (desc, slot) = (rx.desc, rx.slot);
        if rx.written == 0 {
            rx.began = cycle;
        }
        let began = rx.began;
        let mut next = rx.at.0.wrapping_add(u64::from(len));
        if let Some((bytes, left)) = &mut rx.row {
            *left -= len;
            if *left == 0 {
                // The next row goes to the next partition.
                next += self.spec.map.state_buffer.stride - u64::from(*bytes);
                *left = *bytes;
            }
        }
        rx.at = Addr(next);
        rx.left -= len;
        rx.written += len;
        let (left, written, update, flush) = (rx.left, rx.written, rx.update, rx.flush);
        if let Some(since) = queue.held_since.take() {
            let queue = q as u8;
            ctx.out.tell(|| Activity::Barrier { queue, slot, since });
        }
        let beats = Self::beats(len);
        let left_engine = ctx.clock.edge(Cycles(cycle + u64::from(beats)));
        let near = &mut self.writer.near;
        let route = ctx.fabric.route_near(ctx.memory, at, u64::from(len), near);
        let times = self.send_write(q, left_engine, (route, len), ctx);
        let queue = &mut self.queues[q];
        let Some(packet) = queue.packets.get_mut(queue.written) else {
            return;
        };
        let data = match packet.take(len) {
            None => WriteData::Lane(queue.lane.take(len)),
            Some(offset) => WriteData::Result(offset),
        };
        queue.writes.push(WriteBurst {
            flush,
            data,
            packet: queue.written,
            burst: Burst {
                at,
                len,
                desc,
                slot,
                last: left == 0 || packet.to_write == len,
                issued: left_engine,
                channel: route.channel() as u32,
                times,
                issued_at: cycle,
                lost: false,
                answered: Instant::NEVER,
            },
        });
        self.writer.outstanding += 1;
        self.writer.next_cycle = cycle + u64::from(beats);
        packet.invisible += 1;
        packet.to_write -= len;
        if packet.to_write > 0 && left > 0 {
            return;
        }
        if queue.completions[1].is_on() {
            packet.rx_written.push(written);
        }
        if packet.to_write == 0 {
            self.counters.rx_bytes_unused += u64::from(left);
        }
        queue.update = update;
        packet.update_due = queue.update.is_some();
        queue.rx = None;
        let least = began + self.header_cycles;
        self.writer.next_cycle = self.writer.next_cycle.max(least);
        self.packet_written(q);
    }

    /// Moves on to the next packet if the one being written has issued all it has to.
    fn packet_written(&mut self, q: usize) {
        let queue = &mut self.queues[q];
        let next = queue.writes.next();
        let Some(packet) = queue.packets.get(queue.written) else {
            return;
        };
        if packet.to_write > 0 || packet.update_due {
            return;
        }
        if packet.write_barrier {
            queue.fence = next;
        }
        queue.written += 1;
    }

    /// The cell that an embedded update increments. One that names no semaphore of the device gets
    /// the address of none, and so an AXI error.
    fn update_cell(&self, update: EmbeddedSemaphore) -> Addr {
        let map = &self.spec.map;
        map.embedded_semaphore_block(update.csr_index)
            .and_then(|block| {
                map.semaphore(block, EventBlock::SEM_INC, u32::from(update.semaphore))
            })
            .unwrap_or(NOWHERE)
    }

    /// Issues the embedded semaphore update of the Rx descriptor filled last.
    #[inline(never)]
    fn issue_update(&mut self, q: usize, cell: Addr, cycle: u64, ctx: &mut Ctx) {
        let left_engine = ctx.clock.edge(Cycles(cycle + 1));
        let route = ctx.fabric.route(ctx.memory, cell, EventBlock::CELL_BYTES);
        let len = EventBlock::CELL_BYTES as u32;
        let times = self.send_write(q, left_engine, (route, len), ctx);
        let queue = &mut self.queues[q];
        queue.update = None;
        queue.writes.push(WriteBurst {
            flush: false,
            data: WriteData::Increment,
            packet: queue.written,
            burst: Burst {
                at: cell,
                len,
                desc: Descriptor::default(),
                slot: 0,
                last: true,
                issued: left_engine,
                channel: route.channel() as u32,
                times,
                issued_at: cycle,
                lost: false,
                answered: Instant::NEVER,
            },
        });
        if let Some(packet) = queue.packets.get_mut(queue.written) {
            packet.invisible += 1;
            packet.update_due = false;
        }
        self.writer.outstanding += 1;
        self.writer.next_cycle = cycle + 1;
        self.counters.embedded_updates += 1;
        self.packet_written(q);
    }

    /// Sends the next write burst of a queue on its way. Returns its times if they are known now.
    #[inline(always)]
    fn send_write(
        &mut self,
        q: usize,
        issued: Instant,
        (route, len): (Route, u32),
        ctx: &mut Ctx,
    ) -> Times {
        let burst = self.queues[q].writes.next();
        let queue = q as u8;
        let access = InFlight::Write { queue, burst };
        let Some(times) = self.send((access, Way::Write), issued, (route, len), ctx) else {
            return Times::default();
        };
        let times = in_order(
            &mut self.queues[q].visible_floor,
            route.channel(),
            times,
            ctx,
        );
        self.agenda
            .push(times.done, EngineEvent::Write { queue, burst });
        times
    }

    /// It is known when a write burst becomes visible.
    pub(super) fn write_timed(&mut self, q: u8, burst: u64, times: Times, ctx: &mut Ctx) {
        let queue = &mut self.queues[usize::from(q)];
        let Some(write) = queue.writes.get_mut(burst) else {
            if let Some(times) = self.stray_timed(q, burst, times, ctx) {
                let event = EngineEvent::Write { queue: q, burst };
                self.agenda.push(times.done, event);
            }
            return;
        };
        write.burst.times = in_order(
            &mut queue.visible_floor,
            write.burst.channel as usize,
            times,
            ctx,
        );
        let times = write.burst.times;
        let event = EngineEvent::Write { queue: q, burst };
        self.agenda.push(times.done, event);
    }

    /// A write burst reaches its target: the bytes are visible from now on.
    pub(super) fn land_write(&mut self, q: u8, burst: u64, ctx: &mut Ctx) {
        let fault = self.strike(Site::Write, q, ctx.now);
        let queue = &mut self.queues[usize::from(q)];
        let Some(write) = queue.writes.get_mut(burst) else {
            self.land_stray(q, burst, ctx);
            return;
        };
        let late = match fault {
            Some(FaultKind::LateAck(by)) => by,
            _ => Duration::ZERO,
        };
        let acknowledged_at = ctx.now + write.burst.times.response + late;
        match fault {
            Some(FaultKind::LostAck) => write.burst.lost = true,
            _ => write.burst.answered = acknowledged_at,
        }
        let (at, len, slot, desc) = (
            write.burst.at,
            write.burst.len,
            write.burst.slot,
            write.burst.desc,
        );
        let (data, flush, packet) = (write.data, write.flush, write.packet);
        let one = 1u32.to_le_bytes();
        let (first, rest) = match data {
            WriteData::Lane(offset) => queue.lane.pieces(offset, len),
            WriteData::Result(offset) => (queue.result_bytes(packet, offset, len), &[][..]),
            WriteData::Increment => (&one[..], &[][..]),
        };
        let written = match fault {
            Some(FaultKind::WriteError) => {
                let bit = ErrorBit::S2m(S2mError::DataResponse);
                self.raise(bit, q, slot, at, desc);
                self.acknowledge_due(q, burst, packet, acknowledged_at, ctx);
                return;
            }
            _ if flush => Ok(Effects::None),
            _ if rest.is_empty() => ctx.memory.write_near(at, first, &mut self.writer.near),
            _ => write_pieces(ctx.memory, at, &mut self.writer.near, first, rest),
        };
        match written {
            Ok(effects) => ctx.out.wrote(effects),
            Err(_) => match register_window(ctx.memory, at, len) {
                Some((engine, offset)) => {
                    let mut value = [0; 4];
                    for (to, byte) in value.iter_mut().zip(first.iter().chain(rest)) {
                        *to = *byte;
                    }
                    ctx.out.progress = true;
                    ctx.out.register_writes.push(RegisterWrite {
                        engine,
                        offset,
                        value: u32::from_le_bytes(value),
                    });
                }
                None => {
                    let bit = ErrorBit::S2m(S2mError::DataResponse);
                    self.raise(bit, q, slot, at, desc);
                }
            },
        }
        if !matches!(data, WriteData::Increment) {
            self.counters.bytes_written += u64::from(len);
        }
        // A packet whose write is never acknowledged is never complete.
        if fault != Some(FaultKind::LostAck) {
            self.acknowledge_due(q, burst, packet, acknowledged_at, ctx);
        }
    }

    /// Accounts for a visible write and wakes the engine if someone waits for its acknowledge.
    fn acknowledge_due(&mut self, q: u8, burst: u64, number: u64, at: Instant, ctx: &mut Ctx) {
        let queue = &mut self.queues[usize::from(q)];
        let oldest = number == queue.packets.first();
        let Some(packet) = queue.packets.get_mut(number) else {
            return;
        };
        packet.invisible -= 1;
        packet.acknowledged_at = packet.acknowledged_at.max(at);
        let completes = oldest && packet.to_write == 0 && packet.invisible == 0;
        let due = packet.acknowledged_at;
        if completes {
            self.wake_by(due, ctx);
        }
        if self.waits_for_ack && burst == self.queues[usize::from(q)].writes.first() {
            self.wake_by(at, ctx);
        }
    }
}

/// Writes one burst from a place that wraps around.
// Apart, for its room on the stack.
#[cold]
fn write_pieces(
    memory: &mut PhysicalMemory,
    at: Addr,
    near: &mut Nearby,
    first: &[u8],
    rest: &[u8],
) -> Result<Effects, AccessError> {
    let mut whole = [0; MAX_BURST_BYTES];
    let whole = &mut whole[..first.len() + rest.len()];
    let (a, b) = whole.split_at_mut(first.len());
    a.copy_from_slice(first);
    b.copy_from_slice(rest);
    memory.write_near(at, whole, near)
}
