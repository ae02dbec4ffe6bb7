//! Completion: acknowledged writes give their FIFO space back, and packets whose writes are all
//! acknowledged complete in ring order (A9), which moves the current pointers and ends a DMB (A6).

use super::activity::Activity;
use super::completion_ring::{Burst, Completed};
use super::engine::{Ctx, Engine, EngineEvent};
use super::error::ErrorBit;
use super::queue::{Needs, Packet};
use super::write::WriteData;
use crate::arch::regs::{Direction, M2sError, S2mError};
use crate::desc::Descriptor;
use crate::sim::Instant;
use crate::units::Cycles;

impl Packet {
    /// When the packet is complete; never, as long as not all its writes are visible.
    fn complete_at(&self) -> Instant {
        let written = self.to_write == 0 && self.invisible == 0 && !self.update_due;
        match written && !self.computing() {
            true => self.acknowledged_at,
            false => Instant::NEVER,
        }
    }
}

impl Engine {
    /// Takes note of everything that has arrived by now.
    pub(super) fn retire(&mut self, ctx: &mut Ctx) {
        self.retire_reads(ctx);
        for q in self.in_flight.iter() {
            self.retire_writes(q, ctx);
            self.complete_packets(q, ctx);
        }
        if !self.lost.is_empty() {
            self.notice_lost(ctx);
        }
    }

    fn retire_writes(&mut self, q: usize, ctx: &mut Ctx) {
        loop {
            let queue = &mut self.queues[q];
            let Some(write) = queue.writes.front() else {
                return;
            };
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
            self.writer.outstanding -= 1;
            self.free_fifo(from_fifo.into());
        }
    }

    fn complete_packets(&mut self, q: usize, ctx: &mut Ctx) {
        loop {
            let queue = &mut self.queues[q];
            let due = queue.packets.front().map(Packet::complete_at);
            if due.is_none_or(|at| at > ctx.now) {
                return;
            }
            if let Some(packet) = queue.packets.pop_front() {
                self.complete(q, packet, ctx);
            }
        }
    }

    /// The oldest packet of a queue, which has been taken out, is complete.
    #[inline(never)]
    fn complete(&mut self, q: usize, packet: Packet, ctx: &mut Ctx) {
        let queue = &mut self.queues[q];
        self.in_flight.set(q, !queue.packets.is_empty());
        queue.rings[Direction::M2s as usize].complete(packet.tx_descs);
        queue.rings[Direction::S2m as usize].complete(packet.rx_descs);
        queue.suspended &= !packet.dmb;
        queue.packet_count = queue.packet_count.wrapping_add(1);
        self.counters.packets += 1;
        self.counters.tx_descriptors += u64::from(packet.tx_descs);
        self.counters.rx_descriptors += u64::from(packet.rx_descs);
        queue.written = queue.written.max(queue.packets.first());
        let number = queue.packets.first() - 1;
        ctx.out.tell(|| Activity::Packet {
            queue: q as u8,
            number,
            slot: packet.slot,
            descriptors: [packet.tx_descs, packet.rx_descs],
            bytes: packet.bytes.into(),
            started: packet.started,
            dmb: packet.dmb,
            write_barrier: packet.write_barrier,
            computed: packet.computation.is_some(),
        });
        self.packets_in_flight -= 1;
        ctx.out.progress = true;
        self.armed
            .set(q, queue.rings[Direction::M2s as usize].outstanding() > 0);
        for direction in Direction::ALL {
            self.announce(direction, q, &packet, ctx);
        }
        self.notify(q, &packet, ctx);
        let result = packet
            .computation
            .and_then(|computation| computation.result);
        self.buffers.extend(result);
    }

    /// Tells the host that a packet is complete: a record for each descriptor if the queue has a
    /// completion ring, then the interrupt if the packet asked for one.
    fn announce(&mut self, direction: Direction, q: usize, packet: &Packet, ctx: &mut Ctx) {
        let interrupt = packet.interrupt[direction as usize];
        let (descs, count) = match direction {
            Direction::M2s => (packet.tx_descs, packet.tx_descs as usize),
            Direction::S2m => (packet.rx_descs, packet.rx_written.len()),
        };
        let ring = &mut self.queues[q].completions[direction as usize];
        if !ring.is_on() || count == 0 {
            ring.count(descs.into());
            if interrupt {
                self.interrupts.set_completion(direction, q);
            }
            return;
        }
        let wait = u64::from(self.timing.completion_coalesce_cycles);
        let due = (ctx.clock.cycle_at(ctx.now).0).saturating_add(wait);
        let due = ctx.clock.edge(Cycles(due)).max(ctx.now);
        let burst_bytes = self.timing.burst_bytes;
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
            let ring = &mut self.queues[q].completions[direction as usize];
            for burst in [ring.issue(completed, due), ring.take_full(burst_bytes)] {
                self.send_records(direction, q, burst, ctx);
            }
        }
        self.completions_in_flight += count;
        if !self.queues[q].completions[direction as usize].has_sent_all() {
            let queue = q as u8;
            (self.agenda).push(due, EngineEvent::Gathered { direction, queue });
        }
    }

    /// Completion records have waited for others to join them: they are sent as they are, unless they
    /// have been sent already.
    #[inline(never)]
    pub(super) fn gathered_long_enough(&mut self, direction: Direction, q: u8, ctx: &mut Ctx) {
        let ring = &mut self.queues[usize::from(q)].completions[direction as usize];
        let burst = ring.take_due(ctx.now);
        self.send_records(direction, usize::from(q), burst, ctx);
    }

    fn send_records(
        &mut self,
        direction: Direction,
        q: usize,
        burst: Option<Burst>,
        ctx: &mut Ctx,
    ) {
        let Some(mut burst) = burst else { return };
        burst.sent_at = ctx.clock.cycle_at(ctx.now).0;
        let len = burst.bytes.len();
        let route = ctx.fabric.route(ctx.memory, burst.at, len as u64);
        let times = ctx.fabric.post(ctx.now, route, Self::beats(len as u32));
        let ring = &mut self.queues[q].completions[direction as usize];
        ring.visible_until = ring.visible_until.max(times.done);
        ring.on_the_way.push_back(burst);
        let queue = q as u8;
        let event = EngineEvent::Completion { direction, queue };
        self.agenda.push(ring.visible_until, event);
        if self.limits.axi_timeout > 0 {
            self.wake_by(ctx.now, ctx);
        }
    }

    /// The oldest completion records of a queue reach memory.
    #[inline(never)]
    pub(super) fn land_completion(&mut self, direction: Direction, q: u8, ctx: &mut Ctx) {
        let ring = &mut self.queues[usize::from(q)].completions[direction as usize];
        let Some(burst) = ring.land() else { return };
        self.completions_in_flight -= burst.records;
        ctx.out.progress = true;
        match ctx.memory.write(burst.at, &burst.bytes) {
            Ok(effects) => {
                ctx.out.wrote(effects);
                ctx.out.tell(|| Activity::Completion {
                    direction,
                    queue: q,
                    at: burst.at,
                    len: burst.bytes.len() as u32,
                });
            }
            Err(_) => {
                let bit = match direction {
                    Direction::M2s => ErrorBit::M2s(M2sError::CompResponse),
                    Direction::S2m => ErrorBit::S2m(S2mError::CompResponse),
                };
                self.raise(bit, q, 0, burst.at, Descriptor::default());
            }
        }
        if burst.interrupt {
            self.interrupts.set_completion(direction, usize::from(q));
        }
    }

    /// AXI accesses that are not answered in time. Bursts are answered in order, so the oldest of
    /// each kind tells.
    #[inline(never)]
    pub(super) fn check_timeouts(&mut self, cycle: u64, needs: &mut Needs) {
        self.check_read_timeout(cycle, needs);
        for q in self.in_flight.iter() {
            self.check_write_timeout(q, cycle, needs);
        }
        for direction in Direction::ALL {
            let fetching = self.prefetchers[direction as usize].is_fetching();
            for q in 0..self.queues.len() {
                if fetching {
                    self.check_fetch_timeout(direction, q, cycle, needs);
                }
                if self.completions_in_flight > 0 {
                    self.check_completion_timeout(direction, q, cycle, needs);
                }
            }
        }
    }

    /// Completion records that have not reached memory in time.
    fn check_completion_timeout(
        &mut self,
        direction: Direction,
        q: usize,
        cycle: u64,
        needs: &mut Needs,
    ) {
        let ring = &mut self.queues[q].completions[direction as usize];
        let Some(burst) = ring.on_the_way.front_mut() else {
            return;
        };
        let Some(due) = burst.sent_at.checked_add(self.limits.axi_timeout) else {
            return;
        };
        if cycle < due {
            needs.cycle(due);
            return;
        }
        burst.sent_at = u64::MAX;
        let at = burst.at;
        let bit = match direction {
            Direction::M2s => ErrorBit::M2s(M2sError::CompTimeout),
            Direction::S2m => ErrorBit::S2m(S2mError::CompTimeout),
        };
        self.raise(bit, q as u8, 0, at, Descriptor::default());
    }

    fn check_fetch_timeout(
        &mut self,
        direction: Direction,
        q: usize,
        cycle: u64,
        needs: &mut Needs,
    ) {
        let ring = &mut self.queues[q].rings[direction as usize];
        let Some(fetch) = ring.fetches.front_mut() else {
            return;
        };
        let Some(due) = fetch.issued_at.checked_add(self.limits.axi_timeout) else {
            return;
        };
        if cycle < due {
            needs.cycle(due);
            return;
        }
        fetch.issued_at = u64::MAX;
        let (first, at) = (fetch.first, fetch.at);
        let slot = ring.slot(first);
        let bit = match direction {
            Direction::M2s => ErrorBit::M2s(M2sError::PrefetchTimeout),
            Direction::S2m => ErrorBit::S2m(S2mError::PrefetchTimeout),
        };
        self.raise(bit, q as u8, slot, at, Descriptor::default());
    }

    /// When something can retire next: the oldest packet of a queue, and, if somebody waits for
    /// acknowledges, the oldest write. Never, if that is not known.
    pub(super) fn next_retirement(&self, acknowledges: bool) -> Instant {
        let mut next = Instant::NEVER;
        for q in self.in_flight.iter() {
            let queue = &self.queues[q];
            if let Some(packet) = queue.packets.front() {
                next = next.min(packet.complete_at());
            }
            if acknowledges && let Some(write) = queue.writes.front() {
                next = next.min(write.burst.answered);
            }
        }
        next
    }
}
