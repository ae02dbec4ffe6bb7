//! Completion: acknowledged writes give their FIFO space back, and packets whose writes are all
//! acknowledged complete in ring order (A9), which moves the current pointers and ends a DMB (A6).

use super::engine::{Engine, Packet};
use crate::arch::regs::Direction;
use crate::sim::Instant;

impl Packet {
    /// When the packet is complete, once all its writes are visible.
    fn complete_at(&self) -> Option<Instant> {
        (self.to_write == 0 && self.invisible == 0).then_some(self.acknowledged_at)
    }
}

impl Engine {
    /// Takes note of everything that has arrived by now.
    pub(super) fn retire(&mut self, now: Instant) {
        self.retire_reads(now);
        for q in self.in_flight.iter() {
            self.retire_writes(q, now);
            self.complete_packets(q, now);
        }
    }

    fn retire_writes(&mut self, q: usize, now: Instant) {
        while let Some(write) = self.queues[q].writes.front() {
            if write.acknowledged_at.is_none_or(|at| at > now) {
                return;
            }
            let len = write.len;
            let queue = &mut self.queues[q];
            queue.lane.free(len);
            queue.writes.pop_front();
            queue.first_write += 1;
            self.writer.outstanding -= 1;
            self.free_fifo(len);
        }
    }

    fn complete_packets(&mut self, q: usize, now: Instant) {
        let queue = &mut self.queues[q];
        while let Some(packet) = queue.packets.front() {
            if packet.complete_at().is_none_or(|at| at > now) {
                break;
            }
            let [tx_epoch, rx_epoch] = packet.epochs;
            queue.rings[Direction::M2s as usize].complete(packet.tx_descs, tx_epoch);
            queue.rings[Direction::S2m as usize].complete(packet.rx_descs, rx_epoch);
            queue.suspended &= !packet.dmb;
            for direction in Direction::ALL {
                if packet.interrupt[direction as usize] {
                    self.interrupts.set_completion(direction, q);
                }
            }
            queue.packet_count = queue.packet_count.wrapping_add(1);
            self.counters.packets += 1;
            self.counters.tx_descriptors += u64::from(packet.tx_descs);
            self.counters.rx_descriptors += u64::from(packet.rx_descs);
            queue.packets.pop_front();
            queue.written = queue.written.saturating_sub(1);
            queue.completed += 1;
            self.packets_in_flight -= 1;
            self.armed
                .set(q, queue.rings[Direction::M2s as usize].outstanding() > 0);
        }
        self.in_flight.set(q, !queue.packets.is_empty());
    }

    /// When something can retire next: the oldest packet of a queue, and, if somebody waits for
    /// acknowledges, the oldest write.
    pub(super) fn next_retirement(&self, acknowledges: bool) -> Option<Instant> {
        let due = self.in_flight.iter().flat_map(|q| {
            let queue = &self.queues[q];
            let packet = queue.packets.front().and_then(Packet::complete_at);
            let write = queue.writes.front().and_then(|write| write.acknowledged_at);
            [packet, write.filter(|_| acknowledges)]
        });
        due.flatten().min()
    }
}
