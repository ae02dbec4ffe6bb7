//! The scheduler of M2S: picks a queue with a whole packet in its FIFO and takes the packet's descriptors out. What
//! there is to read of it is the read station's [`Job`]; the queue has the [`Packet`] until it is complete.

use super::activity::{EngineActivity, Station, StationState};
use super::arbiter::{Arbiter, Share};
use super::compute::Refusal;
use super::context::{Ctx, Outbox};
use super::core::Core;
use super::error::{ErrorBit, Origin};
use super::faults::{FaultKind, Site};
use super::job::{Job, Pace, Source};
use super::needs::Needs;
use super::packet::Packet;
use super::queue_set::QueueSet;
use super::rate_limit::TokenBucket;
use super::stream::StreamProcessor;
use crate::arch::QueueId;
use crate::arch::regs::Direction;
use crate::desc::{Descriptor, TxDesc};
use crate::sim::Instant;

/// The scheduler of an engine.
pub(super) struct Scheduler {
    arbiter: Arbiter,
    /// From the registers: how each queue takes part.
    shares: Vec<Share>,
    /// Tokens of the stream's rate limiter.
    stream_tokens: TokenBucket,
}

impl Scheduler {
    /// Fresh from reset.
    pub fn new(core: &Core) -> Scheduler {
        let mut scheduler = Scheduler {
            arbiter: Arbiter::default(),
            shares: Vec::new(),
            stream_tokens: TokenBucket::default(),
        };
        scheduler.reload(core);
        scheduler
    }

    /// Does what the registers say from now on.
    pub fn reload(&mut self, core: &Core) {
        let share = |q| Share::read(&core.registers, q, core.spec);
        self.shares = core.queues.ids().map(share).collect();
    }

    /// As [`Scheduler::reload`], for one queue.
    pub fn reload_queue(&mut self, core: &Core, q: QueueId) {
        self.shares[q.index()] = Share::read(&core.registers, q, core.spec);
    }

    /// A queue starts anew.
    pub fn forget(&mut self, q: QueueId) {
        self.arbiter.forget(q);
    }

    /// A queue loses its credit.
    pub fn drop_credit(&mut self, q: QueueId) {
        self.arbiter.ran_dry(q);
    }

    /// Sets every queue's credit.
    pub fn set_credits(&mut self, credit: i64) {
        self.arbiter.set_deficits(credit);
    }

    /// The tokens of the stream's rate limiter.
    pub fn stream_tokens(&mut self) -> &mut TokenBucket {
        &mut self.stream_tokens
    }

    /// Starts the packet that the arbiter picks. False if no queue has one that may start.
    #[inline(never)]
    pub fn schedule(
        &mut self,
        core: &mut Core,
        stream: &mut StreamProcessor,
        job: &mut Job,
        cycle: u64,
        needs: &mut Needs,
        ctx: &mut Ctx,
    ) -> bool {
        needs.station(Station::Read, StationState::Idle);
        if core.halves.m2s.limits.stream_disabled {
            return false;
        }
        if core.work.packets >= core.limits.packets {
            needs.ack = true;
            needs.station(Station::Read, StationState::Acknowledge);
            return false;
        }
        let ready = ready_queues(core, cycle, needs, ctx.now);
        if ready.is_empty() {
            if descriptors_are_coming(core) {
                needs.station(Station::Read, StationState::Descriptor);
            }
            return false;
        }
        let stream_limit = &core.limits.stream_rate_limit;
        match self.stream_tokens.ready_at(stream_limit, cycle) {
            Some(at) if at <= cycle => {}
            limited => {
                limited.into_iter().for_each(|at| needs.cycle(at));
                needs.station(Station::Read, StationState::RateLimit);
                return false;
            }
        }
        let mode = core.limits.arbitration;
        let Some(q) = self.arbiter.pick(ready, mode, &self.shares) else {
            return false;
        };
        match core.strike(Site::Packet, q, ctx.now) {
            Some(FaultKind::StuckQueue) => {
                core.queues[q].stuck = true;
                // Somebody else may go on in the next cycle.
                needs.cycle(cycle + 1);
                return false;
            }
            Some(FaultKind::Report(bit)) => {
                core.raise(bit, Origin::of(q));
                if core.aborted() {
                    return false;
                }
            }
            _ => {}
        }
        let bytes = start_packet(core, stream, job, q, ctx);
        self.arbiter.serve(q, bytes, mode);
        if !core.work.schedulable.contains(q) {
            self.arbiter.ran_dry(q);
        }
        // In packet mode a packet costs as much as one byte (C).
        let cost = match core.limits.rate_limit_packets {
            true => 1,
            false => bytes,
        };
        let queue = &mut core.queues[q];
        queue.tokens.spend(&queue.rate_limit, cost);
        self.stream_tokens
            .spend(&core.limits.stream_rate_limit, cost);
        job.queue.is_some()
    }
}

/// The queues with a packet that may start.
fn ready_queues(core: &mut Core, cycle: u64, needs: &mut Needs, now: Instant) -> QueueSet {
    let mut ready = QueueSet::default();
    for q in core.work.schedulable.iter() {
        let queue = &mut core.queues[q];
        let half = &queue.halves.m2s;
        if queue.suspended || queue.stuck || !half.stream_on {
            if queue.suspended {
                needs.station(Station::Read, StationState::Dmb);
            }
            continue;
        }
        // When the first packet is there in full.
        let last = half.ring.fifo.iter().find(|tx| tx.closes);
        match last.filter(|last| half.ring.data_covers(last.nth)) {
            Some(last) if last.ready_at <= now => {}
            Some(last) => {
                needs.at(last.ready_at);
                needs.station(Station::Read, StationState::Descriptor);
                continue;
            }
            None => continue,
        }
        match queue.tokens.ready_at(&queue.rate_limit, cycle) {
            Some(at) if at <= cycle => ready.insert(q),
            limited => {
                limited.into_iter().for_each(|at| needs.cycle(at));
                needs.station(Station::Read, StationState::RateLimit);
            }
        }
    }
    ready
}

/// Whether Tx descriptors are on their way, or a packet's first ones wait for its last.
fn descriptors_are_coming(core: &Core) -> bool {
    let waits = |q: QueueId| !core.queues[q].halves.m2s.ring.fifo.is_empty();
    core.halves.m2s.fetches > 0
        || core
            .work
            .armed
            .iter()
            .any(|q| waits(q) && !core.work.schedulable.contains(q))
}

/// What the descriptors of a packet ask for together.
struct Asked {
    dmb: bool,
    notify: bool,
    /// Nothing is computed.
    plain: bool,
}

/// Starts the first packet of a queue's FIFO; returns its bytes.
fn start_packet(
    core: &mut Core,
    stream: &mut StreamProcessor,
    job: &mut Job,
    q: QueueId,
    ctx: &mut Ctx,
) -> u64 {
    let mut packet = Packet::new(ctx.now);
    job.clear();
    job.pace = Pace::default();
    let asked = take_descriptors(core, job, &mut packet, q, ctx.out);
    core.halves.m2s.fifo_held -= packet.tx_descs as usize;
    let queue = &mut core.queues[q];
    queue.whole_packets -= 1;
    core.work.schedulable.set(q, queue.whole_packets > 0);
    core.work.in_flight.insert(q);
    core.work.packets += 1;
    if asked.notify && core.spec.caps.notification_mask {
        packet.notification = job.sources.front().map(|source| source.slot);
    }
    if !asked.plain
        && let Err(refusal) = start_computation(core, stream, job, &mut packet, q)
    {
        // No station takes the packet: it is dropped, and completes without data.
        let source = job.sources.get(refusal.desc);
        let origin = source.map_or(Origin::of(q), |source| source.origin(q));
        job.sources.clear();
        packet.to_write = 0;
        core.queues[q].packets.push(packet);
        let bit = ErrorBit::M2s(refusal.reason.bit());
        core.raise_because(bit, origin, refusal.reason);
        return 0;
    }
    packet.bytes = packet.to_write;
    let queue = &mut core.queues[q];
    if asked.dmb {
        packet.dmb = !queue.dmb_masked;
        queue.suspended = packet.dmb;
        core.counters.dmb += u64::from(packet.dmb);
        core.counters.dmb_masked += u64::from(queue.dmb_masked);
    }
    core.counters.write_barriers += u64::from(packet.write_barrier);
    let bytes = match &packet.computation {
        None => u64::from(packet.to_write),
        Some(computation) => computation.plan.source_bytes as u64,
    };
    queue.packets.push(packet);
    job.queue = Some(q);
    bytes
}

/// Takes the descriptors of the first packet out of a queue's FIFO.
fn take_descriptors(
    core: &mut Core,
    job: &mut Job,
    packet: &mut Packet,
    q: QueueId,
    out: &mut Outbox,
) -> Asked {
    let mut asked = Asked {
        dmb: false,
        notify: false,
        plain: true,
    };
    let fifo = &mut core.queues[q].halves.m2s.ring.fifo;
    while let Some(prefetched) = fifo.pop_front() {
        let (slot, desc) = (prefetched.slot, prefetched.desc);
        if packet.tx_descs == 0 {
            packet.slot = slot;
        }
        let tx = TxDesc::from(desc);
        packet.tx_descs += 1;
        asked.dmb |= tx.len_ctrl.dmb();
        packet.interrupt.m2s |= tx.len_ctrl.int_en();
        packet.write_barrier |= tx.write_barrier();
        asked.notify |= tx.notification();
        asked.plain &= tx.is_plain_copy();
        if tx.len_ctrl.meta() {
            out.tell(|| EngineActivity::Descriptor {
                direction: Direction::M2s,
                queue: q,
                slot,
                desc,
                bytes: 0,
                since: packet.started,
            });
        }
        let len = tx.len_ctrl.byte_len();
        packet.to_write = packet.to_write.saturating_add(len);
        job.sources.push_back(Source {
            at: tx.buf_ptr,
            len,
            slot,
            desc,
        });
        if prefetched.closes {
            break;
        }
    }
    asked
}

/// Makes a compute packet of the descriptors that have been taken out.
fn start_computation(
    core: &Core,
    stream: &mut StreamProcessor,
    job: &mut Job,
    packet: &mut Packet,
    q: QueueId,
) -> Result<(), Refusal> {
    let descs: Vec<Descriptor> = job.sources.iter().map(|source| source.desc).collect();
    let plan = stream.plan(core, &descs)?;
    job.sources.retain(|source| !source.desc.len_ctrl().meta());
    job.pace = stream.pace(&plan);
    // A packet's result is at most as long as its longest packet, which is less than 2^20 bytes.
    packet.to_write = plan.result_bytes as u32;
    let origin = job.sources.front().map(|source| source.origin(q));
    let computation = origin.map(|origin| Box::new(stream.begin(plan, origin)));
    let number = core.queues[q].packets.next();
    job.intake = computation
        .as_ref()
        .map(|computation| computation.intake(number));
    packet.computation = computation;
    Ok(())
}
