//! Descriptor prefetch: bursts from ring memory into the FIFO that the 16 queues of a half share,
//! one queue after the other. Descriptors are checked as they arrive: ring id, packet structure,
//! packet length.

use super::activity::{Access, Activity};
use super::engine::{Ctx, Engine, EngineEvent};
use super::error::ErrorBit;
use super::fabric::{InFlight, Times};
use super::faults::{FaultKind, Site};
use super::queue::Needs;
use super::queue_set::QueueSet;
use super::ring::{Fetch, Prefetched};
use crate::arch::regs::{Direction, M2sError, S2mError, UdmaState};
use crate::desc::{DESC_BYTES, Descriptor, PacketFault};
use crate::dram::Kind as Way;
use crate::sim::Instant;
use crate::units::Addr;

/// Most descriptors in a burst that any config allows.
const MAX_BURST: usize = 64;

/// The prefetch arbiter of one half.
#[derive(Default)]
pub(super) struct Prefetcher {
    /// Descriptors ever fetched.
    pub fetched: u64,
    /// Descriptors in the FIFO or on their way to it, all queues.
    pub held: usize,
    /// Bursts on their way.
    in_flight: usize,
    /// Queues with descriptors that a doorbell covered and no fetch asked for.
    pub fetchable: QueueSet,
    /// Queue served last.
    last: usize,
    /// First cycle at which the next burst can be asked for.
    next_cycle: u64,
    /// No queue has anything to fetch and room for it, as long as so many descriptors are held and no register
    /// is written.
    nothing_at: Option<usize>,
}

impl Prefetcher {
    /// A register was written: there may be something to fetch.
    pub fn look_again(&mut self) {
        self.nothing_at = None;
    }

    /// Whether bursts are on their way.
    pub fn is_fetching(&self) -> bool {
        self.in_flight > 0
    }
}

impl Engine {
    /// Asks for at most one burst of descriptors; some queue has some to fetch.
    #[inline(never)]
    pub(super) fn issue_fetch(
        &mut self,
        direction: Direction,
        cycle: u64,
        needs: &mut Needs,
        ctx: &mut Ctx,
    ) {
        let prefetcher = &self.prefetchers[direction as usize];
        if prefetcher.nothing_at == Some(prefetcher.held)
            || self.states[direction as usize] != UdmaState::Normal
        {
            return;
        }
        if self.limits.prefetch_stopped[direction as usize] {
            return;
        }
        if prefetcher.in_flight >= self.limits.descriptor_reads[direction as usize] {
            return;
        }
        let Some((q, count)) = self.next_fetch(direction) else {
            let prefetcher = &mut self.prefetchers[direction as usize];
            prefetcher.nothing_at = Some(prefetcher.held);
            return;
        };
        if cycle < prefetcher.next_cycle {
            needs.cycle(prefetcher.next_cycle);
            return;
        }
        let ring = &mut self.queues[q].rings[direction as usize];
        let (first, at) = ring.fetch_from();
        let len = count * DESC_BYTES as u32;
        let route = ctx.fabric.route(ctx.memory, at, u64::from(len));
        let fetch = ring.begin_fetch(Fetch {
            first,
            at,
            count,
            stale: false,
            issued: ctx.now,
            channel: route.channel() as u32,
            times: None,
            issued_at: cycle,
        });
        let more = ring.to_fetch() > 0;
        let access = InFlight::Fetch {
            direction,
            queue: q as u8,
            fetch,
        };
        if let Some(times) = self.send((access, Way::Read), ctx.now, (route, len), ctx) {
            self.fetch_timed(direction, q as u8, fetch, times);
        }
        let prefetcher = &mut self.prefetchers[direction as usize];
        prefetcher.held += count as usize;
        prefetcher.in_flight += 1;
        prefetcher.fetchable.set(q, more);
        prefetcher.last = q;
        prefetcher.next_cycle = cycle + u64::from(Self::beats(len));
        if self.next_fetch(direction).is_some() {
            needs.cycle(self.prefetchers[direction as usize].next_cycle);
        }
    }

    /// It is known when a fetch is sampled. Bursts of one ring arrive in order: AXI reads of one id do.
    pub(super) fn fetch_timed(&mut self, direction: Direction, q: u8, fetch: u64, times: Times) {
        let ring = &mut self.queues[usize::from(q)].rings[direction as usize];
        ring.fetch_timed(fetch, times);
        while let Some(at) = ring.next_fetch_sampled() {
            let event = EngineEvent::Fetch {
                direction,
                queue: q,
            };
            self.agenda.push(at, event);
        }
    }

    /// The next queue, round robin, that has descriptors to fetch and room for them, and how many.
    fn next_fetch(&self, direction: Direction) -> Option<(usize, u32)> {
        let prefetcher = &self.prefetchers[direction as usize];
        let room = self.timing.prefetch_descriptors as usize - prefetcher.held;
        if room == 0 {
            return None;
        }
        prefetcher.fetchable.after(prefetcher.last).find_map(|q| {
            let queue = &self.queues[q];
            let ring = &queue.rings[direction as usize];
            if !queue.prefetch_on[direction as usize] {
                return None;
            }
            let own = queue.fifo_depth[direction as usize].saturating_sub(ring.held());
            if own == 0 {
                return None;
            }
            let count = (self.longest_fetch(direction, q))
                .min(ring.contiguous())
                .min(own as u64)
                .min(room as u64);
            (count >= self.least_fetch(direction, q)).then_some((q, count as u32))
        })
    }

    /// Descriptors of the longest burst that a queue may fetch now.
    fn longest_fetch(&self, direction: Direction, q: usize) -> u64 {
        let most = self.limits.fetch_most[direction as usize];
        let ring = &self.queues[q].rings[direction as usize];
        match self.limits.fetch_breaks[direction as usize] {
            true => most - u64::from(ring.slot(ring.fetch_from().0)) % most,
            false => most,
        }
    }

    /// Descriptors of the shortest burst that a queue may fetch now.
    pub(super) fn least_fetch(&self, direction: Direction, q: usize) -> u64 {
        let queue = &self.queues[q];
        let ring = &queue.rings[direction as usize];
        // A burst up to the end of the ring, or to where it must break, is as long as it can get (C).
        let to_the_end = ring.contiguous() < ring.to_fetch();
        let breaks = self.longest_fetch(direction, q) < self.limits.fetch_most[direction as usize];
        if to_the_end || breaks || queue.allow_small[direction as usize] {
            return 1;
        }
        let above = ring.held() >= self.limits.prefetch_threshold[direction as usize];
        let least = if above {
            self.limits.fetch_least_above
        } else {
            self.limits.fetch_least_below
        };
        least[direction as usize].max(1)
    }

    /// A burst has been read from ring memory: nothing orders that against DMA writes to the ring
    /// (A10), it sees what is visible now.
    #[inline(never)]
    pub(super) fn fetched(&mut self, direction: Direction, q: u8, ctx: &mut Ctx) {
        let ring = &mut self.queues[usize::from(q)].rings[direction as usize];
        let Some((fetch, times)) = ring.end_fetch() else {
            return;
        };
        self.prefetchers[direction as usize].in_flight -= 1;
        let ready_at = ctx.now + times.response;
        if fetch.stale {
            self.wake_by(ready_at, ctx);
            return;
        }
        let mut bytes = [0; MAX_BURST * DESC_BYTES];
        let bytes = &mut bytes[..fetch.count as usize * DESC_BYTES];
        let first_slot = ring.slot(fetch.first);
        let at = fetch.at;
        ctx.out.tell(|| Activity::Fetch {
            direction,
            queue: q,
            slot: first_slot,
            access: Access {
                at,
                len: bytes.len() as u32,
                channel: fetch.channel,
                issued: fetch.issued,
                times,
                answered: ready_at,
            },
        });
        let fault = self.strike(Site::Fetch(direction), q, ctx.now);
        if ctx.memory.read(at, bytes).is_err() || fault.is_some() {
            bytes.fill(0);
            let bit = match direction {
                Direction::M2s => ErrorBit::M2s(M2sError::PrefetchResponse),
                Direction::S2m => ErrorBit::S2m(S2mError::PrefetchResponse),
            };
            self.raise(bit, q, first_slot, at, Descriptor::default());
        }
        self.prefetchers[direction as usize].fetched += u64::from(fetch.count);
        for (n, bytes) in bytes.as_chunks::<DESC_BYTES>().0.iter().enumerate() {
            if self.states.contains(&UdmaState::Abort) {
                // Nobody looks at what comes after an abort, or after the descriptor that caused it.
                let rest = fetch.count as usize - n;
                self.prefetchers[direction as usize].held -= rest;
                break;
            }
            let mut desc = Descriptor::from_bytes(*bytes);
            if let Some(FaultKind::FlipDescriptor { bit, .. }) =
                self.strike(Site::Descriptor(direction), q, ctx.now)
            {
                desc.words[usize::from(bit / 32 % 4)] ^= 1 << (bit % 32);
            }
            let nth = fetch.first + n as u64;
            self.accept(direction, q, nth, desc, ready_at);
        }
        self.wake_by(ready_at, ctx);
    }

    /// Checks a descriptor and puts it into its queue's FIFO.
    fn accept(
        &mut self,
        direction: Direction,
        q: u8,
        nth: u64,
        desc: Descriptor,
        ready_at: Instant,
    ) {
        let queue = &mut self.queues[usize::from(q)];
        let ring = &mut queue.rings[direction as usize];
        let slot = ring.slot(nth);
        let at = ring.slot_address(slot);
        let wrong_lap = desc.len_ctrl().ring_id() != ring.ring_id(nth);
        ring.fifo.push_back(Prefetched {
            desc,
            nth,
            slot,
            ready_at,
            closes: false,
        });
        match direction {
            Direction::M2s => {
                if wrong_lap {
                    self.raise(ErrorBit::M2s(M2sError::RingId), q, slot, at, desc);
                }
                self.follow_packet(q, slot, at);
            }
            Direction::S2m => {
                if wrong_lap {
                    self.raise(ErrorBit::S2m(S2mError::RingId), q, slot, at, desc);
                }
                self.count_reserved(desc);
            }
        }
    }

    /// Packet structure of the Tx descriptor that arrived last.
    fn follow_packet(&mut self, q: u8, slot: u32, at: Addr) {
        let queue = &mut self.queues[usize::from(q)];
        let fifo = &mut queue.rings[Direction::M2s as usize].fifo;
        let Some(last) = fifo.back() else {
            return;
        };
        let desc = last.desc;
        let len_ctrl = desc.len_ctrl();
        let tracked = queue.tracker.accept(len_ctrl);
        let count = fifo.len();
        if tracked.fault == Some(PacketFault::FirstInside) && count >= 2 {
            // The packet before ends here, without its LAST.
            fifo[count - 2].closes = true;
            queue.whole_packets += 1;
        }
        if tracked.closes {
            fifo[count - 1].closes = true;
            queue.whole_packets += 1;
        }
        self.reader
            .schedulable
            .set(usize::from(q), queue.whole_packets > 0);
        if tracked.opens {
            queue.arriving_bytes = 0;
        }
        let before = queue.arriving_bytes;
        if !len_ctrl.meta() {
            queue.arriving_bytes += u64::from(len_ctrl.byte_len());
        }
        let most = self.limits.packet_bytes;
        let empty = len_ctrl.length() == 0 && !len_ctrl.meta() && !self.limits.encode_64k;
        let too_long = empty || before <= most && queue.arriving_bytes > most;
        if let Some(fault) = tracked.fault {
            let error = match fault {
                PacketFault::MissingFirst | PacketFault::MissingLast => M2sError::Last,
                PacketFault::FirstInside => M2sError::First,
                PacketFault::TooManyDescriptors { .. } => M2sError::MaxDescCount,
            };
            self.raise(ErrorBit::M2s(error), q, slot, at, desc);
        }
        if too_long {
            self.raise(ErrorBit::M2s(M2sError::PktLenOverflow), q, slot, at, desc);
        }
    }

    /// Barrier bits that mean nothing on an Rx descriptor of this generation are ignored and
    /// counted.
    fn count_reserved(&mut self, desc: Descriptor) {
        let len_ctrl = desc.len_ctrl();
        let sow = len_ctrl.strong_order_wr() && !self.spec.caps.strong_order_writes;
        if sow || len_ctrl.dmb() {
            self.counters.reserved_bits += 1;
        }
    }
}
