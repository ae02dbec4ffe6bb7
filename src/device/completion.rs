//! Completion: acknowledged writes give their FIFO space back, and packets whose writes are all
//! acknowledged complete in ring order (A9), which moves the current pointers and ends a DMB (A6). What the host
//! asked to be told of them leaves as completion records, notifications and interrupts.

use super::activity::EngineActivity;
use super::agenda::EngineEvent;
use super::burst::WriteData;
use super::completion_ring::{Completed, RecordBurst};
use super::context::Ctx;
use super::core::Core;
use super::error::{ErrorBit, Origin};
use super::needs::Needs;
use super::notification::NotificationQueue;
use super::packet::Packet;
use super::request::beats;
use super::stream::Buffers;
use crate::arch::QueueId;
use crate::arch::regs::{Direction, Halves, M2sError, S2mError};
use crate::sim::Instant;
use crate::units::Cycles;

/// The completion station of an engine.
#[derive(Default)]
pub(super) struct Completion {
    pub notifications: NotificationQueue,
}

impl Completion {
    /// Takes note of every write that has been acknowledged by now.
    #[inline]
    pub fn retire(&mut self, core: &mut Core, buffers: &mut Buffers, ctx: &mut Ctx) {
        for q in core.work.in_flight.iter() {
            retire_writes(core, q, ctx);
            self.complete_packets(core, q, buffers, ctx);
        }
    }

    fn complete_packets(
        &mut self,
        core: &mut Core,
        q: QueueId,
        buffers: &mut Buffers,
        ctx: &mut Ctx,
    ) {
        loop {
            let packets = &mut core.queues[q].packets;
            let due = packets.front().map(Packet::complete_at);
            if due.is_none_or(|at| at > ctx.now) {
                return;
            }
            if let Some(packet) = packets.pop_front() {
                self.complete(core, q, &packet, ctx);
                buffers.free(packet.computation);
            }
        }
    }

    /// The oldest packet of a queue, which has been taken out, is complete.
    #[inline(never)]
    fn complete(&mut self, core: &mut Core, q: QueueId, packet: &Packet, ctx: &mut Ctx) {
        let queue = &mut core.queues[q];
        core.work.in_flight.set(q, !queue.packets.is_empty());
        let tx = &mut queue.halves.m2s.ring;
        tx.complete(packet.tx_descs);
        core.work.armed.set(q, tx.outstanding() > 0);
        queue.halves.s2m.ring.complete(packet.rx_descs);
        queue.suspended &= !packet.dmb;
        queue.packet_count = queue.packet_count.wrapping_add(1);
        core.counters.packets += 1;
        core.counters.tx_descriptors += u64::from(packet.tx_descs);
        core.counters.rx_descriptors += u64::from(packet.rx_descs);
        queue.written = queue.written.max(queue.packets.first());
        let number = queue.packets.first() - 1;
        ctx.out.tell(|| EngineActivity::Packet {
            queue: q,
            number,
            slot: packet.slot,
            descriptors: [packet.tx_descs, packet.rx_descs],
            bytes: packet.bytes.into(),
            started: packet.started,
            dmb: packet.dmb,
            write_barrier: packet.write_barrier,
            computed: packet.computation.is_some(),
        });
        core.work.packets -= 1;
        ctx.out.progress = true;
        for direction in Direction::ALL {
            announce(core, direction, q, packet, ctx);
        }
        self.notifications.notify(core, q, packet, ctx);
    }

    /// Completion records of a queue have not reached memory in time: an AXI timeout, reported once.
    pub fn check_timeout(
        &self,
        core: &mut Core,
        direction: Direction,
        q: QueueId,
        cycle: u64,
        needs: &mut Needs,
    ) {
        let ring = &mut core.queues[q].halves[direction].completions;
        let Some(burst) = ring.on_the_way.front_mut() else {
            return;
        };
        if needs.overdue(&mut burst.sent_at, core.limits.axi_timeout, cycle) {
            let bits = Halves {
                m2s: ErrorBit::M2s(M2sError::CompTimeout),
                s2m: ErrorBit::S2m(S2mError::CompTimeout),
            };
            let at = burst.at;
            core.raise(
                bits[direction],
                Origin {
                    at,
                    ..Origin::of(q)
                },
            );
        }
    }

    /// When something can retire next: the oldest packet of a queue, and, if somebody waits for
    /// acknowledges, the oldest write. Never, if that is not known.
    #[inline]
    pub fn next_retirement(&self, core: &Core, acknowledges: bool) -> Instant {
        let mut next = Instant::NEVER;
        for q in core.work.in_flight.iter() {
            let queue = &core.queues[q];
            if let Some(packet) = queue.packets.front() {
                next = next.min(packet.complete_at());
            }
            if acknowledges && let Some(write) = queue.writes.front() {
                next = next.min(write.burst.answered);
            }
        }
        next
    }

    /// Completion records have waited for others to join them: they are sent as they are, unless they
    /// have been sent already.
    #[inline(never)]
    pub fn gathered_long_enough(
        &self,
        core: &mut Core,
        direction: Direction,
        q: QueueId,
        ctx: &mut Ctx,
    ) {
        let ring = &mut core.queues[q].halves[direction].completions;
        let burst = ring.take_due(ctx.now);
        send_records(core, direction, q, burst, ctx);
    }

    /// The oldest completion records of a queue reach memory.
    #[inline(never)]
    pub fn land(&self, core: &mut Core, direction: Direction, q: QueueId, ctx: &mut Ctx) {
        let ring = &mut core.queues[q].halves[direction].completions;
        let Some(burst) = ring.land() else { return };
        core.work.records -= burst.records;
        ctx.out.progress = true;
        let at = burst.at;
        match ctx.memory.write(at, &burst.bytes) {
            Ok(effects) => {
                ctx.out.wrote(effects);
                ctx.out.tell(|| EngineActivity::Completion {
                    direction,
                    queue: q,
                    at,
                    len: burst.bytes.len() as u32,
                });
            }
            Err(_) => {
                let bits = Halves {
                    m2s: ErrorBit::M2s(M2sError::CompResponse),
                    s2m: ErrorBit::S2m(S2mError::CompResponse),
                };
                core.raise(
                    bits[direction],
                    Origin {
                        at,
                        ..Origin::of(q)
                    },
                );
            }
        }
        if burst.interrupt {
            core.interrupts.set_completion(direction, q);
        }
    }
}

fn retire_writes(core: &mut Core, q: QueueId, ctx: &mut Ctx) {
    let queue = &mut core.queues[q];
    while let Some(write) = queue.writes.front() {
        if write.burst.answered > ctx.now {
            return;
        }
        if ctx.out.observed {
            write.tell(q, &mut queue.begun, ctx.out);
        }
        let len = write.burst.len;
        let (from_lane, from_fifo) = match write.data {
            WriteData::Lane(_) => (len, len),
            WriteData::Result(_) => (0, len),
            WriteData::Increment => (0, 0),
        };
        queue.lane.free(from_lane);
        queue.writes.pop_front();
        core.work.writes -= 1;
        core.work.fifo_bytes -= u64::from(from_fifo);
    }
}

/// Tells the host that a packet is complete: a record for each descriptor if the queue has a
/// completion ring, then the interrupt if the packet asked for one.
fn announce(core: &mut Core, direction: Direction, q: QueueId, packet: &Packet, ctx: &mut Ctx) {
    let interrupt = packet.interrupt[direction];
    let (descs, count) = match direction {
        Direction::M2s => (packet.tx_descs, packet.tx_descs as usize),
        Direction::S2m => (packet.rx_descs, packet.rx_written.len()),
    };
    let ring = &mut core.queues[q].halves[direction].completions;
    if !ring.is_on() || count == 0 {
        ring.count(descs.into());
        if interrupt {
            core.interrupts.set_completion(direction, q);
        }
        return;
    }
    let wait = u64::from(core.timing.completion_coalesce_cycles);
    let due = (ctx.clock.cycle_at(ctx.now).0).saturating_add(wait);
    let due = ctx.clock.edge(Cycles(due)).max(ctx.now);
    let burst_bytes = core.timing.burst_bytes;
    for n in 0..count {
        let last = n + 1 == count;
        let completed = Completed {
            first: n == 0,
            last,
            written: packet
                .rx_written
                .get(n)
                .copied()
                .filter(|_| direction == Direction::S2m),
            interrupt: interrupt && last,
        };
        let ring = &mut core.queues[q].halves[direction].completions;
        for burst in [ring.issue(completed, due), ring.take_full(burst_bytes)] {
            send_records(core, direction, q, burst, ctx);
        }
    }
    core.work.records += count;
    if !core.queues[q].halves[direction].completions.has_sent_all() {
        let event = EngineEvent::Gathered {
            direction,
            queue: q,
        };
        core.agenda.push(due, event);
    }
}

fn send_records(
    core: &mut Core,
    direction: Direction,
    q: QueueId,
    burst: Option<RecordBurst>,
    ctx: &mut Ctx,
) {
    let Some(mut burst) = burst else { return };
    burst.sent_at = ctx.clock.cycle_at(ctx.now).0;
    let len = burst.bytes.len();
    let route = ctx.fabric.route(ctx.memory, burst.at, len as u64);
    let times = ctx.fabric.post(ctx.now, route, beats(len as u32));
    let ring = &mut core.queues[q].halves[direction].completions;
    ring.visible_until = ring.visible_until.max(times.done);
    ring.on_the_way.push_back(burst);
    let event = EngineEvent::Completion {
        direction,
        queue: q,
    };
    core.agenda.push(ring.visible_until, event);
    if core.limits.axi_timeout > 0 {
        core.wake_by(ctx.now, ctx);
    }
}
