//! The write station of S2M: a packet's bytes fill Rx descriptors in ring order and leave as write bursts, in stream
//! order (A2). Here the write-side barriers hold: a burst that must not overtake earlier writes is
//! not issued before those are acknowledged (A7, A8). The data behind it waits in the FIFO, reads go
//! on until that is full.

mod landing;
mod rx;
mod stray;

use super::activity::{EngineActivity, Station, StationState};
use super::agenda::EngineEvent;
use super::burst::{Burst, WriteBurst, WriteData};
use super::context::Ctx;
use super::core::Core;
use super::error::ErrorBit;
use super::fabric::Route;
use super::needs::Needs;
use super::queue::{Queue, RxCursor};
use super::request::{InFlight, Request, Times, beats};
use crate::arch::regs::{Direction, S2mError};
use crate::arch::{EventBlock, QueueId};
use crate::config::SowScope;
use crate::desc::Descriptor;
use crate::dram::Kind as Way;
use crate::memory::Nearby;
use crate::sim::Instant;
use crate::units::{Addr, Cycles};
use stray::Strays;

/// An address at which no generation has anything: the lowest of a stretch longer than any descriptor.
const NOWHERE: Addr = Addr(0xffff_ffff_0000_0000);

/// The write station of an engine.
pub(super) struct Writer {
    sow_scope: SowScope,
    /// Queue served last.
    last: QueueId,
    /// First cycle at which the next burst can be issued.
    next_cycle: u64,
    /// Where the last burst fell.
    near: Nearby,
    /// Writes whose queue was reset under them.
    strays: Strays,
}

/// A write burst that can be issued.
struct NextWrite {
    /// What it carries.
    data: WriteData,
    at: Addr,
    len: u32,
    desc: Descriptor,
    slot: u32,
    /// The last of its descriptor, or of its packet.
    last: bool,
    /// It is of a transpose flush.
    flush: bool,
}

impl Writer {
    /// Fresh from reset.
    pub fn new(sow_scope: SowScope) -> Writer {
        Writer {
            sow_scope,
            last: QueueId::default(),
            next_cycle: 0,
            near: Nearby::default(),
            strays: Strays::default(),
        }
    }

    /// Issues at most one write burst, round robin between the queues that have data.
    pub fn issue(&mut self, core: &mut Core, cycle: u64, needs: &mut Needs, ctx: &mut Ctx) {
        if cycle < self.next_cycle {
            needs.cycle(self.next_cycle);
            return;
        }
        needs.station(Station::Write, StationState::Idle);
        for q in core.work.in_flight.after(self.last) {
            if let Some(cell) = core.queues[q].update {
                // After its descriptor's writes and, like a strong-ordered write, after every
                // earlier one of the queue (A12). Later writes wait behind it (C).
                if !core.queues[q].writes.is_empty() {
                    core.queues[q].held_since.get_or_insert(ctx.now);
                    needs.ack = true;
                    needs.station(Station::Write, StationState::Acknowledge);
                    continue;
                }
                self.issue_update(core, q, cell, cycle, ctx);
            } else if let Some(len) = self.ready(core, q, cycle, needs, ctx.now) {
                self.issue_burst(core, q, len, cycle, ctx);
            } else {
                continue;
            }
            self.last = q;
            needs.cycle(self.next_cycle);
            needs.station(Station::Write, StationState::Busy);
            return;
        }
    }

    /// Length of the write burst that queue `q` can issue now. `None`, and what it waits for in
    /// `needs`, if it cannot.
    fn ready(
        &mut self,
        core: &mut Core,
        q: QueueId,
        cycle: u64,
        needs: &mut Needs,
        now: Instant,
    ) -> Option<u32> {
        let queue = &mut core.queues[q];
        let packet = loop {
            let packet = queue.packets.get(queue.written)?;
            if packet.to_write > 0 || packet.update_due || packet.computing() {
                break packet;
            }
            // One that was dropped has nothing to write.
            queue.written += 1;
        };
        if !queue.halves.s2m.stream_on {
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
        if queue.rx.is_none() && !self.take_rx(core, q, needs, now) {
            needs.station(Station::Write, StationState::Descriptor);
            self.starve(core, q, cycle, needs);
            return None;
        }
        core.queues[q].starved = None;
        let queue = &core.queues[q];
        let rx = queue.rx.as_ref()?;
        let most = rx.left.min(to_write);
        let most = rx.row.map_or(most, |row| most.min(row.left));
        let len = core.burst_len(Direction::S2m, rx.at, most);
        if available < u64::from(len) {
            needs.read = true;
            needs.station(Station::Write, StationState::Data);
            return None;
        }
        let fenced = self.fenced(core, queue);
        if fenced || core.work.writes >= core.limits.writes {
            if fenced {
                core.queues[q].held_since.get_or_insert(now);
            }
            needs.ack = true;
            needs.station(Station::Write, StationState::Acknowledge);
            return None;
        }
        Some(len)
    }

    /// Whether writes that must be acknowledged first are not.
    fn fenced(&self, core: &Core, queue: &Queue) -> bool {
        queue.writes.first() < queue.fence
            || !queue.engine_fence.is_empty() && self.engine_fenced(core, queue)
    }

    #[inline(never)]
    fn engine_fenced(&self, core: &Core, queue: &Queue) -> bool {
        (queue.engine_fence.iter().zip(core.queues.iter()))
            .any(|(fence, other)| other.writes.first() < *fence)
            || self.strays.any_before(&queue.engine_fence)
    }

    /// The oldest write of a queue has not been acknowledged in time: an AXI timeout, reported once.
    #[inline(never)]
    pub fn check_timeout(&self, core: &mut Core, q: QueueId, cycle: u64, needs: &mut Needs) {
        let Some(write) = core.queues[q].writes.front_mut() else {
            return;
        };
        let burst = &mut write.burst;
        if needs.overdue(&mut burst.issued_at, core.limits.axi_timeout, cycle) {
            let origin = burst.origin(q);
            core.raise(ErrorBit::S2m(S2mError::DataTimeout), origin);
        }
    }

    /// Issues the next `len` bytes of the Rx descriptor that queue `q` is filling.
    fn issue_burst(&mut self, core: &mut Core, q: QueueId, len: u32, cycle: u64, ctx: &mut Ctx) {
        let stride = core.spec.map.state_buffer.stride;
        let queue = &mut core.queues[q];
        let (Some(rx), Some(packet)) = (queue.rx.as_mut(), queue.packets.get_mut(queue.written))
        else {
            return;
        };
        if rx.written == 0 {
            rx.began = cycle;
        }
        let began = rx.began;
        let at = rx.advance(len, stride);
        let (left, slot) = (rx.left, rx.slot);
        let next = NextWrite {
            data: match packet.take(len) {
                None => WriteData::Lane(queue.lane.take(len)),
                Some(offset) => WriteData::Result(offset),
            },
            at,
            len,
            desc: rx.desc,
            slot,
            last: left == 0 || packet.to_write == len,
            flush: rx.flush,
        };
        packet.to_write -= len;
        packet.invisible += 1;
        let over = packet.to_write == 0 || left == 0;
        if let Some(since) = queue.held_since.take() {
            let queue = q;
            ctx.out
                .tell(|| EngineActivity::Barrier { queue, slot, since });
        }
        let near = &mut self.near;
        let route = ctx.fabric.route_near(ctx.memory, at, u64::from(len), near);
        self.send(core, q, next, route, cycle, ctx);
        if over {
            let least = began + core.header_cycles;
            self.next_cycle = self.next_cycle.max(least);
            end_descriptor(core, q);
        }
    }

    /// Issues the embedded semaphore update of the Rx descriptor filled last.
    #[inline(never)]
    fn issue_update(&mut self, core: &mut Core, q: QueueId, cell: Addr, cycle: u64, ctx: &mut Ctx) {
        let route = ctx.fabric.route(ctx.memory, cell, EventBlock::CELL_BYTES);
        let next = NextWrite {
            data: WriteData::Increment,
            at: cell,
            len: EventBlock::CELL_BYTES as u32,
            desc: Descriptor::default(),
            slot: 0,
            last: true,
            flush: false,
        };
        self.send(core, q, next, route, cycle, ctx);
        let queue = &mut core.queues[q];
        queue.update = None;
        if let Some(packet) = queue.packets.get_mut(queue.written) {
            packet.update_due = false;
            packet.invisible += 1;
        }
        core.counters.embedded_updates += 1;
        packet_written(core, q);
    }

    /// Sends the next write burst of a queue on its way; its packet has counted it.
    #[inline(always)]
    fn send(
        &mut self,
        core: &mut Core,
        q: QueueId,
        next: NextWrite,
        route: Route,
        cycle: u64,
        ctx: &mut Ctx,
    ) {
        let beats = u64::from(beats(next.len));
        let issued = ctx.clock.edge(Cycles(cycle + beats));
        let burst = core.queues[q].writes.next();
        let request = Request {
            access: InFlight::Write { queue: q, burst },
            kind: Way::Write,
            issued,
            len: next.len,
        };
        let times = core.send(request, route, ctx);
        let queue = &mut core.queues[q];
        let times = times.map(|times| {
            let times = in_order(&mut queue.visible_floor, route.channel(), times, ctx);
            core.agenda
                .push(times.done, EngineEvent::Write { queue: q, burst });
            times
        });
        queue.writes.push(WriteBurst {
            flush: next.flush,
            data: next.data,
            packet: queue.written,
            burst: Burst {
                at: next.at,
                len: next.len,
                desc: next.desc,
                slot: next.slot,
                last: next.last,
                issued,
                channel: route.channel() as u32,
                times: times.unwrap_or_default(),
                issued_at: cycle,
                lost: false,
                answered: Instant::NEVER,
            },
        });
        core.work.writes += 1;
        self.next_cycle = cycle + beats;
    }

    /// It is known when a write burst becomes visible.
    pub fn timed(&self, core: &mut Core, q: QueueId, burst: u64, times: Times, ctx: &mut Ctx) {
        let queue = &mut core.queues[q];
        let floors = &mut queue.visible_floor;
        let times = if let Some(write) = queue.writes.get_mut(burst) {
            write.burst.times = in_order(floors, write.burst.channel as usize, times, ctx);
            write.burst.times
        } else if let Some(channel) = self.strays.channel(q, burst) {
            in_order(floors, channel, times, ctx)
        } else {
            return;
        };
        let event = EngineEvent::Write { queue: q, burst };
        core.agenda.push(times.done, event);
    }
}

impl RxCursor {
    /// The next `len` bytes are issued; returns where they go.
    fn advance(&mut self, len: u32, stride: u64) -> Addr {
        let at = self.at;
        let mut next = at.0.wrapping_add(u64::from(len));
        if let Some(row) = &mut self.row {
            row.left -= len;
            if row.left == 0 {
                // The next row goes to the next partition.
                next += stride - u64::from(row.bytes);
                row.left = row.bytes;
            }
        }
        self.at = Addr(next);
        self.left -= len;
        self.written += len;
        at
    }
}

/// The last burst of the Rx descriptor being filled has been issued.
fn end_descriptor(core: &mut Core, q: QueueId) {
    let queue = &mut core.queues[q];
    let (Some(rx), Some(packet)) = (queue.rx.take(), queue.packets.get_mut(queue.written)) else {
        return;
    };
    if queue.halves.s2m.completions.is_on() {
        packet.rx_written.push(rx.written);
    }
    if packet.to_write == 0 {
        core.counters.rx_bytes_unused += u64::from(rx.left);
    }
    queue.update = rx.update;
    packet.update_due = queue.update.is_some();
    packet_written(core, q);
}

/// Moves on to the next packet if the one being written has issued all it has to.
fn packet_written(core: &mut Core, q: QueueId) {
    let queue = &mut core.queues[q];
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

/// Times of a write. Those of one queue to the same bytes become visible in issue order (A3): those to one
/// channel do. `floors` says when the last one there does, for each channel.
#[inline]
fn in_order(floors: &mut Vec<Instant>, channel: usize, mut times: Times, ctx: &Ctx) -> Times {
    if floors.is_empty() {
        *floors = vec![Instant::START; ctx.fabric.channels()];
    }
    let floor = &mut floors[channel];
    times.done = times.done.max(*floor);
    *floor = times.done;
    times
}
