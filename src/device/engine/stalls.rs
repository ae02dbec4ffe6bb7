//! What each queue that is not idle waits for.

use super::Engine;
use crate::arch::QueueId;
use crate::arch::regs::{Direction, UdmaState};
use crate::device::burst::Burst;
use crate::device::ring::Ring;
use crate::device::stall::{Limit, Stall, StallReason};
use crate::sim::{Clock, Instant};
use crate::units::Addr;

/// What a queue waits for, the descriptor, and since when.
type Cause = (StallReason, Option<(Direction, u32)>, Option<Instant>);

fn cause(reason: StallReason) -> Cause {
    (reason, None, None)
}

/// A burst that is not answered.
fn open(reason: fn(Addr) -> StallReason, direction: Direction, burst: &Burst) -> Cause {
    let descriptor = Some((direction, burst.slot));
    (reason(burst.at), descriptor, Some(burst.issued))
}

impl Ring {
    /// The oldest descriptor that waits to be fetched.
    fn unfetched(&self, direction: Direction, reason: StallReason) -> Cause {
        let slot = self.slot(self.fetch_from().0);
        (reason, Some((direction, slot)), self.rung_at)
    }
}

impl Engine {
    /// What each queue that is not idle waits for.
    pub fn stalls(&self, clock: &Clock) -> impl Iterator<Item = Stall> {
        let busy = (self.core.queues.ids()).filter(|q| !self.queue_is_idle(*q));
        busy.map(move |q| {
            let (reason, descriptor, since) = self.stall(q);
            Stall {
                engine: self.core.id,
                queue: q,
                reason,
                descriptor,
                since: since.map(|at| clock.cycle_at(at)),
            }
        })
    }

    fn stall(&self, q: QueueId) -> Cause {
        use Direction::{M2s, S2m};
        let queue = &self.core.queues[q];
        if self.core.aborted() {
            return cause(StallReason::Aborted);
        }
        if let Some(lost) = queue.lost {
            return (StallReason::Lost, Some((M2s, lost.slot)), Some(lost.since));
        }
        for direction in Direction::ALL {
            if self.core.halves[direction].state != UdmaState::Normal {
                return cause(StallReason::NotRunning(direction));
            }
        }
        if queue.stuck {
            return cause(StallReason::Stuck);
        }
        let Some(packet) = queue.packets.front() else {
            return self.stalled_start(q);
        };
        let began = (M2s, packet.slot);
        let writing = queue.packets.get(queue.written);
        if let Some(packet) = writing.filter(|_| queue.rx.is_none() && queue.available() > 0) {
            let began = Some((M2s, packet.slot));
            if !queue.halves.s2m.stream_on {
                return (StallReason::SchedulingOff(S2m), began, Some(packet.started));
            }
            if self.core.halves.s2m.limits.stream_disabled {
                return (
                    StallReason::StreamDisabled(S2m),
                    began,
                    Some(packet.started),
                );
            }
            let rx = &queue.halves.s2m.ring;
            if rx.fifo.is_empty() && rx.fetches.is_empty() && rx.to_fetch() == 0 {
                return (StallReason::RxDescriptors, began, Some(packet.started));
            }
            if let Some(stalled) = self.stalled_fetch(S2m, q) {
                return stalled;
            }
        }
        if let Some(write) = queue.writes.front() {
            return open(StallReason::Write, S2m, &write.burst);
        }
        if let Some(burst) = self.reader.oldest() {
            return open(StallReason::Read, M2s, burst);
        }
        let reason = if writing.is_some() && !queue.halves.s2m.stream_on {
            StallReason::SchedulingOff(S2m)
        } else if self.core.limits.data_reads == 0 {
            StallReason::Limit(Limit::DataReads)
        } else if self.core.limits.writes == 0 {
            let wide = self.core.spec.caps.wide_write_limit;
            StallReason::Limit(Limit::DataWrites { wide })
        } else {
            StallReason::Turn
        };
        (reason, Some(began), Some(packet.started))
    }

    /// Why no packet of a queue has started.
    fn stalled_start(&self, q: QueueId) -> Cause {
        use Direction::M2s;
        let queue = &self.core.queues[q];
        let tx = &queue.halves.m2s.ring;
        if tx.outstanding() == 0 {
            return cause(StallReason::Records);
        }
        if let Some(stalled) = self.stalled_fetch(M2s, q) {
            return stalled;
        }
        let Some(first) = tx.fifo.front() else {
            return tx.unfetched(M2s, StallReason::Turn);
        };
        let last = tx.fifo.iter().find(|tx| tx.closes);
        let reason = match last {
            _ if !queue.halves.m2s.stream_on => StallReason::SchedulingOff(M2s),
            _ if self.core.halves.m2s.limits.stream_disabled => StallReason::StreamDisabled(M2s),
            None => StallReason::PacketIncomplete,
            Some(last) if !tx.data_covers(last.nth) => StallReason::DataTail,
            Some(_) if self.core.limits.packets == 0 => StallReason::Limit(Limit::Packets),
            Some(_) if queue.rate_limit.never_fills() => StallReason::RateLimit,
            Some(_) if self.core.limits.stream_rate_limit.never_fills() => StallReason::RateLimit,
            Some(_) => StallReason::Turn,
        };
        (reason, Some((M2s, first.slot)), Some(first.ready_at))
    }

    /// Why a ring's descriptors do not come; nothing, if there are some or none are announced.
    fn stalled_fetch(&self, direction: Direction, q: QueueId) -> Option<Cause> {
        let queue = &self.core.queues[q];
        let (half, limits) = (
            &queue.halves[direction],
            &self.core.halves[direction].limits,
        );
        let ring = &half.ring;
        // Of a Tx packet all descriptors must be there.
        let there = match direction {
            Direction::M2s => queue.whole_packets > 0,
            Direction::S2m => !ring.fifo.is_empty(),
        };
        if there {
            return None;
        }
        if let Some(fetch) = ring.fetches.front() {
            let slot = Some((direction, ring.slot(fetch.first)));
            return Some((
                StallReason::Fetch(direction, fetch.at),
                slot,
                Some(fetch.issued),
            ));
        }
        if ring.to_fetch() == 0 {
            return None;
        }
        let least = self.prefetchers[direction].least_fetch(&self.core, q);
        let reason = if !half.prefetch_on {
            StallReason::PrefetchOff(direction)
        } else if limits.prefetch_stopped {
            StallReason::StreamDisabled(direction)
        } else if limits.descriptor_reads == 0 {
            StallReason::Limit(Limit::DescriptorReads(direction))
        } else if half.fifo_depth == 0 {
            StallReason::Limit(Limit::FifoDepth(direction))
        } else if ring.contiguous() < least {
            StallReason::ShortFetch {
                direction,
                there: ring.contiguous(),
                least,
            }
        } else {
            return None;
        };
        Some(ring.unfetched(direction, reason))
    }
}
