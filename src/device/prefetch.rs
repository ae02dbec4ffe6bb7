//! The prefetch station of one half: bursts of descriptors from ring memory into the FIFO that the 16 queues of the
//! half share, one queue after the other. Descriptors are checked as they arrive: ring id, packet structure,
//! packet length. They wait in their ring's FIFO for the scheduler or the write station.

use super::activity::{Access, EngineActivity};
use super::agenda::EngineEvent;
use super::context::Ctx;
use super::core::Core;
use super::error::{ErrorBit, Origin};
use super::faults::{FaultKind, Site};
use super::needs::Needs;
use super::queue_set::QueueSet;
use super::request::{InFlight, Request, Times, beats};
use super::ring::{Fetch, Prefetched};
use crate::arch::QueueId;
use crate::arch::regs::{Direction, M2sError, S2mError, UdmaState};
use crate::desc::{DESC_BYTES, Descriptor, PacketFault};
use crate::dram::Kind as Way;
use crate::sim::Instant;

/// Most descriptors in a burst that any config allows.
const MAX_BURST: usize = 64;

/// The prefetch station of one half.
pub(super) struct Prefetcher {
    direction: Direction,
    /// Descriptors ever fetched.
    pub fetched: u64,
    /// Queues with descriptors that a doorbell covered and no fetch asked for.
    pub fetchable: QueueSet,
    /// Queue served last.
    last: QueueId,
    /// First cycle at which the next burst can be asked for.
    next_cycle: u64,
    /// No queue has anything to fetch and room for it, as long as so many descriptors are held and no register
    /// is written.
    nothing_at: Option<usize>,
}

/// A burst that can be asked for.
struct NextFetch {
    queue: QueueId,
    descriptors: u32,
}

impl Prefetcher {
    /// The station of a half, fresh from reset.
    pub fn new(direction: Direction) -> Prefetcher {
        Prefetcher {
            direction,
            fetched: 0,
            fetchable: QueueSet::default(),
            last: QueueId::default(),
            next_cycle: 0,
            nothing_at: None,
        }
    }

    /// A register was written: there may be something to fetch.
    pub fn look_again(&mut self) {
        self.nothing_at = None;
    }

    /// Asks for at most one burst of descriptors; some queue has some to fetch.
    #[inline(never)]
    pub fn issue(&mut self, core: &mut Core, cycle: u64, needs: &mut Needs, ctx: &mut Ctx) {
        let half = &core.halves[self.direction];
        if self.nothing_at == Some(half.fifo_held) || half.state != UdmaState::Normal {
            return;
        }
        let limits = &half.limits;
        if limits.prefetch_stopped || half.fetches >= limits.descriptor_reads {
            return;
        }
        let Some(NextFetch { queue, descriptors }) = self.next_fetch(core) else {
            self.nothing_at = Some(half.fifo_held);
            return;
        };
        if cycle < self.next_cycle {
            needs.cycle(self.next_cycle);
            return;
        }
        let ring = &mut core.queues[queue].halves[self.direction].ring;
        let (first, at) = ring.fetch_from();
        let len = descriptors * DESC_BYTES as u32;
        let route = ctx.fabric.route(ctx.memory, at, u64::from(len));
        let fetch = ring.begin_fetch(Fetch {
            first,
            at,
            count: descriptors,
            stale: false,
            issued: ctx.now,
            channel: route.channel() as u32,
            times: None,
            issued_at: cycle,
        });
        self.fetchable.set(queue, ring.to_fetch() > 0);
        let request = Request {
            access: InFlight::Fetch {
                direction: self.direction,
                queue,
                fetch,
            },
            kind: Way::Read,
            issued: ctx.now,
            len,
        };
        if let Some(times) = core.send(request, route, ctx) {
            self.timed(core, queue, fetch, times);
        }
        let half = &mut core.halves[self.direction];
        half.fifo_held += descriptors as usize;
        half.fetches += 1;
        self.last = queue;
        self.next_cycle = cycle + u64::from(beats(len));
        if self.next_fetch(core).is_some() {
            needs.cycle(self.next_cycle);
        }
    }

    /// It is known when a fetch is sampled. Bursts of one ring arrive in order: AXI reads of one id do.
    pub fn timed(&self, core: &mut Core, queue: QueueId, fetch: u64, times: Times) {
        let direction = self.direction;
        let ring = &mut core.queues[queue].halves[direction].ring;
        ring.fetch_timed(fetch, times);
        while let Some(at) = ring.next_fetch_sampled() {
            let event = EngineEvent::Fetch { direction, queue };
            core.agenda.push(at, event);
        }
    }

    /// The next queue, round robin, that has descriptors to fetch and room for them, and how many.
    fn next_fetch(&self, core: &Core) -> Option<NextFetch> {
        let held = core.halves[self.direction].fifo_held;
        let room = core.timing.prefetch_descriptors as usize - held;
        if room == 0 {
            return None;
        }
        self.fetchable.after(self.last).find_map(|queue| {
            let half = &core.queues[queue].halves[self.direction];
            if !half.prefetch_on {
                return None;
            }
            let own = half.fifo_depth.saturating_sub(half.ring.held());
            if own == 0 {
                return None;
            }
            let count = (self.longest_fetch(core, queue))
                .min(half.ring.contiguous())
                .min(own as u64)
                .min(room as u64);
            (count >= self.least_fetch(core, queue)).then_some(NextFetch {
                queue,
                descriptors: count as u32,
            })
        })
    }

    /// Descriptors of the longest burst that a queue may fetch now.
    fn longest_fetch(&self, core: &Core, q: QueueId) -> u64 {
        let limits = &core.halves[self.direction].limits;
        let most = limits.fetch_most;
        let ring = &core.queues[q].halves[self.direction].ring;
        match limits.fetch_breaks {
            true => most - u64::from(ring.slot(ring.fetch_from().0)) % most,
            false => most,
        }
    }

    /// Descriptors of the shortest burst that a queue may fetch now.
    pub fn least_fetch(&self, core: &Core, q: QueueId) -> u64 {
        let limits = &core.halves[self.direction].limits;
        let half = &core.queues[q].halves[self.direction];
        let ring = &half.ring;
        // A burst up to the end of the ring, or to where it must break, is as long as it can get (C).
        let to_the_end = ring.contiguous() < ring.to_fetch();
        let breaks = self.longest_fetch(core, q) < limits.fetch_most;
        if to_the_end || breaks || half.allow_small {
            return 1;
        }
        let least = match ring.held() >= limits.prefetch_threshold {
            true => limits.fetch_least_above,
            false => limits.fetch_least_below,
        };
        least.max(1)
    }

    /// A burst has been read from ring memory: nothing orders that against DMA writes to the ring
    /// (A10), it sees what is visible now.
    #[inline(never)]
    pub fn fetched(&mut self, core: &mut Core, queue: QueueId, ctx: &mut Ctx) {
        let direction = self.direction;
        let ring = &mut core.queues[queue].halves[direction].ring;
        let Some((fetch, times)) = ring.end_fetch() else {
            return;
        };
        core.halves[direction].fetches -= 1;
        let ready_at = ctx.now + times.response;
        if fetch.stale {
            core.wake_by(ready_at, ctx);
            return;
        }
        let mut bytes = [0; MAX_BURST * DESC_BYTES];
        let bytes = &mut bytes[..fetch.count as usize * DESC_BYTES];
        let (slot, at) = (ring.slot(fetch.first), fetch.at);
        ctx.out.tell(|| EngineActivity::Fetch {
            direction,
            queue,
            slot,
            access: Access {
                at,
                len: bytes.len() as u32,
                channel: fetch.channel,
                issued: fetch.issued,
                times,
                answered: ready_at,
            },
        });
        let fault = core.strike(Site::Fetch(direction), queue, ctx.now);
        if ctx.memory.read(at, bytes).is_err() || fault.is_some() {
            bytes.fill(0);
            let bit = match direction {
                Direction::M2s => ErrorBit::M2s(M2sError::PrefetchResponse),
                Direction::S2m => ErrorBit::S2m(S2mError::PrefetchResponse),
            };
            let origin = Origin {
                slot,
                at,
                ..Origin::of(queue)
            };
            core.raise(bit, origin);
        }
        self.fetched += u64::from(fetch.count);
        for (n, bytes) in bytes.as_chunks::<DESC_BYTES>().0.iter().enumerate() {
            if core.aborted() {
                // Nobody looks at what comes after an abort, or after the descriptor that caused it.
                core.halves[direction].fifo_held -= fetch.count as usize - n;
                break;
            }
            let mut desc = Descriptor::from_bytes(*bytes);
            if let Some(FaultKind::FlipDescriptor { bit, .. }) =
                core.strike(Site::Descriptor(direction), queue, ctx.now)
            {
                desc.words[usize::from(bit / 32 % 4)] ^= 1 << (bit % 32);
            }
            self.accept(core, queue, desc, fetch.first + n as u64, ready_at);
        }
        core.wake_by(ready_at, ctx);
    }

    /// Checks a descriptor and puts it into its queue's FIFO.
    fn accept(
        &self,
        core: &mut Core,
        queue: QueueId,
        desc: Descriptor,
        nth: u64,
        ready_at: Instant,
    ) {
        let ring = &mut core.queues[queue].halves[self.direction].ring;
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
        let origin = Origin {
            queue,
            slot,
            at,
            desc,
        };
        if wrong_lap {
            let bit = match self.direction {
                Direction::M2s => ErrorBit::M2s(M2sError::RingId),
                Direction::S2m => ErrorBit::S2m(S2mError::RingId),
            };
            core.raise(bit, origin);
        }
        match self.direction {
            Direction::M2s => follow_packet(core, origin),
            Direction::S2m => count_reserved(core, desc),
        }
    }

    /// The oldest fetch of a queue has not been answered in time: an AXI timeout, reported once.
    pub fn check_timeout(&self, core: &mut Core, queue: QueueId, cycle: u64, needs: &mut Needs) {
        let ring = &mut core.queues[queue].halves[self.direction].ring;
        let Some(fetch) = ring.fetches.front_mut() else {
            return;
        };
        if !needs.overdue(&mut fetch.issued_at, core.limits.axi_timeout, cycle) {
            return;
        }
        let (first, at) = (fetch.first, fetch.at);
        let slot = ring.slot(first);
        let bit = match self.direction {
            Direction::M2s => ErrorBit::M2s(M2sError::PrefetchTimeout),
            Direction::S2m => ErrorBit::S2m(S2mError::PrefetchTimeout),
        };
        let origin = Origin {
            slot,
            at,
            ..Origin::of(queue)
        };
        core.raise(bit, origin);
    }
}

/// Packet structure of the Tx descriptor that arrived last.
fn follow_packet(core: &mut Core, origin: Origin) {
    let queue = &mut core.queues[origin.queue];
    let fifo = &mut queue.halves.m2s.ring.fifo;
    let Some(last) = fifo.back() else {
        return;
    };
    let len_ctrl = last.desc.len_ctrl();
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
    core.work
        .schedulable
        .set(origin.queue, queue.whole_packets > 0);
    if tracked.opens {
        queue.arriving_bytes = 0;
    }
    let before = queue.arriving_bytes;
    if !len_ctrl.meta() {
        queue.arriving_bytes += u64::from(len_ctrl.byte_len());
    }
    let most = core.limits.packet_bytes;
    let empty = len_ctrl.length() == 0 && !len_ctrl.meta() && !core.limits.encode_64k;
    let too_long = empty || before <= most && queue.arriving_bytes > most;
    if let Some(fault) = tracked.fault {
        let error = match fault {
            PacketFault::MissingFirst | PacketFault::MissingLast => M2sError::Last,
            PacketFault::FirstInside => M2sError::First,
            PacketFault::TooManyDescriptors { .. } => M2sError::MaxDescCount,
        };
        core.raise(ErrorBit::M2s(error), origin);
    }
    if too_long {
        core.raise(ErrorBit::M2s(M2sError::PktLenOverflow), origin);
    }
}

/// Barrier bits that mean nothing on an Rx descriptor of this generation are ignored and
/// counted.
fn count_reserved(core: &mut Core, desc: Descriptor) {
    let len_ctrl = desc.len_ctrl();
    let sow = len_ctrl.strong_order_wr() && !core.spec.caps.strong_order_writes;
    if sow || len_ctrl.dmb() {
        core.counters.reserved_bits += 1;
    }
}
