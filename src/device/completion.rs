//! Completion: acknowledged writes give their FIFO space back, and packets whose writes are all
//! acknowledged complete in ring order (A9), which moves the current pointers and ends a DMB (A6).

use super::engine::{Ctx, Engine, EngineEvent};
use super::error::ErrorBit;
use super::queue::{Needs, Packet};
use super::write::WriteData;
use crate::arch::regs::{Direction, M2sError, S2mError};
use crate::desc::Descriptor;
use crate::sim::Instant;
use crate::units::Addr;

impl Packet {
    /// When the packet is complete, once all its writes are visible.
    fn complete_at(&self) -> Option<Instant> {
        let written = self.to_write == 0 && self.invisible == 0 && !self.update_due;
        let done = written && !self.computing();
        done.then_some(self.acknowledged_at)
    }
}

impl Engine {
    /// Takes note of everything that has arrived by now.
    pub(super) fn retire(&mut self, ctx: &mut Ctx) {
        self.retire_reads(ctx.now);
        for q in self.in_flight.iter() {
            self.retire_writes(q, ctx.now);
            self.complete_packets(q, ctx);
        }
    }

    fn retire_writes(&mut self, q: usize, now: Instant) {
        while let Some(write) = self.queues[q].writes.front() {
            if write.acknowledged_at.is_none_or(|at| at > now) {
                return;
            }
            let (from_lane, from_fifo) = match write.data {
                WriteData::Lane(_) => (write.len, write.len),
                WriteData::Result(_) => (0, write.len),
                WriteData::Increment => (0, 0),
            };
            let queue = &mut self.queues[q];
            queue.lane.free(from_lane);
            queue.writes.pop_front();
            queue.first_write += 1;
            self.writer.outstanding -= 1;
            self.free_fifo(from_fifo);
        }
    }

    fn complete_packets(&mut self, q: usize, ctx: &mut Ctx) {
        loop {
            let queue = &mut self.queues[q];
            let due = queue.packets.front().and_then(Packet::complete_at);
            if due.is_none_or(|at| at > ctx.now) {
                break;
            }
            let Some(packet) = queue.packets.pop_front() else {
                break;
            };
            let [tx_epoch, rx_epoch] = packet.epochs;
            // The Rx ring was reset under the packet: its completion matches no descriptor.
            let lost = packet.rx_descs > 0 && queue.rings[1].epoch != rx_epoch;
            queue.rings[Direction::M2s as usize].complete(packet.tx_descs, tx_epoch);
            queue.rings[Direction::S2m as usize].complete(packet.rx_descs, rx_epoch);
            queue.suspended &= !packet.dmb;
            queue.packet_count = queue.packet_count.wrapping_add(1);
            self.counters.packets += 1;
            self.counters.tx_descriptors += u64::from(packet.tx_descs);
            self.counters.rx_descriptors += u64::from(packet.rx_descs);
            queue.written = queue.written.saturating_sub(1);
            queue.completed += 1;
            self.packets_in_flight -= 1;
            self.armed
                .set(q, queue.rings[Direction::M2s as usize].outstanding() > 0);
            if lost {
                let bit = ErrorBit::M2s(M2sError::CompPktMismatch);
                self.raise(bit, q as u8, 0, Addr(0), Descriptor::default());
            }
            for direction in Direction::ALL {
                self.announce(direction, q, &packet, ctx);
            }
            let result = packet
                .computation
                .and_then(|computation| computation.result);
            self.buffers.extend(result);
        }
        self.in_flight.set(q, !self.queues[q].packets.is_empty());
    }

    /// Tells the host that a packet is complete: a record for each descriptor if the queue has a
    /// completion ring, then the interrupt if the packet asked for one.
    fn announce(&mut self, direction: Direction, q: usize, packet: &Packet, ctx: &mut Ctx) {
        let interrupt = packet.interrupt[direction as usize];
        let ring = &mut self.queues[q].completions[direction as usize];
        let count = match direction {
            Direction::M2s => packet.tx_descs as usize,
            Direction::S2m => packet.rx_written.len(),
        };
        if !ring.is_on() || count == 0 {
            if interrupt {
                self.interrupts.set_completion(direction, q);
            }
            return;
        }
        for n in 0..count {
            let written = match direction {
                Direction::M2s => None,
                Direction::S2m => Some(packet.rx_written[n]),
            };
            let mut record = ring.issue(n == 0, n + 1 == count, written);
            record.interrupt = interrupt && n + 1 == count;
            let len = record.bytes().len() as u64;
            let route = ctx.fabric.route(ctx.memory, record.at, len);
            let times = ctx.fabric.write(ctx.now, route, 1);
            ring.visible_until = ring.visible_until.max(times.visible);
            ring.records.push_back(record);
            let event = EngineEvent::Completion {
                direction,
                queue: q as u8,
            };
            ctx.out.events.push((ring.visible_until, event));
        }
        self.completions_in_flight += count;
    }

    /// The oldest completion record of a queue reaches memory.
    pub(super) fn land_completion(&mut self, direction: Direction, q: u8, ctx: &mut Ctx) {
        let ring = &mut self.queues[usize::from(q)].completions[direction as usize];
        let Some(record) = ring.land() else { return };
        self.completions_in_flight -= 1;
        match ctx.memory.write(record.at, record.bytes()) {
            Ok(effects) => ctx.out.effects.push(effects),
            Err(_) => {
                let bit = match direction {
                    Direction::M2s => ErrorBit::M2s(M2sError::CompResponse),
                    Direction::S2m => ErrorBit::S2m(S2mError::CompResponse),
                };
                self.raise(bit, q, 0, record.at, Descriptor::default());
            }
        }
        if record.interrupt {
            self.interrupts.set_completion(direction, usize::from(q));
        }
    }

    /// AXI accesses that are not answered in time. Bursts are answered in order, so the oldest of
    /// each kind tells.
    pub(super) fn check_timeouts(&mut self, cycle: u64, needs: &mut Needs) {
        self.check_read_timeout(cycle, needs);
        for q in self.in_flight.iter() {
            self.check_write_timeout(q, cycle, needs);
        }
        for direction in Direction::ALL {
            if !self.prefetchers[direction as usize].is_fetching() {
                continue;
            }
            for q in 0..self.queues.len() {
                self.check_fetch_timeout(direction, q, cycle, needs);
            }
        }
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
        let first = fetch.first;
        let slot = ring.slot(first);
        let at = ring.slot_address(slot);
        let bit = match direction {
            Direction::M2s => ErrorBit::M2s(M2sError::PrefetchTimeout),
            Direction::S2m => ErrorBit::S2m(S2mError::PrefetchTimeout),
        };
        self.raise(bit, q as u8, slot, at, Descriptor::default());
    }

    /// When something can retire next: the oldest packet of a queue, and, if somebody waits for
    /// acknowledges, the oldest write.
    pub(super) fn next_retirement(&self, acknowledges: bool) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut consider = |due: Option<Instant>| {
            if let Some(at) = due {
                next = Some(next.map_or(at, |other| other.min(at)));
            }
        };
        for q in self.in_flight.iter() {
            let queue = &self.queues[q];
            consider(queue.packets.front().and_then(Packet::complete_at));
            if acknowledges {
                consider(queue.writes.front().and_then(|write| write.acknowledged_at));
            }
        }
        next
    }
}
