//! M2S: the scheduler picks a queue with a whole packet, round robin, and the read path cuts the
//! packet's sources into bursts, many of which are in flight.
//!
//! Bursts are sampled whenever their target gets to them (A5); their data enters the stream in the
//! order they were issued (A2).

use super::activity::{Activity, Station, StationState};
use super::burst::{Begun, Burst};
use super::compute::{Refusal, is_plain_copy};
use super::engine::{Ctx, Engine, EngineEvent, Outbox, RegisterRead};
use super::error::ErrorBit;
use super::fabric::{InFlight, MAX_BURST_BYTES, Times};
use super::faults::{FaultKind, Site};
use super::queue::{Needs, Packet, Queue};
use super::queue_set::QueueSet;
use super::stream::{Computation, Intake, Pace};
use super::window::Window;
use crate::arch::EngineId;
use crate::arch::regs::{Direction, M2sError, UdmaState};
use crate::desc::{Descriptor, TxDesc};
use crate::dram::Kind as Way;
use crate::memory::{AccessError, AccessReason, Nearby, PhysicalMemory, Target};
use crate::sim::Instant;
use crate::units::Addr;
use std::collections::VecDeque;

/// A Tx descriptor of the packet being read.
struct Source {
    at: Addr,
    len: u32,
    slot: u32,
    desc: Descriptor,
}

/// Where a read burst's bytes go.
#[derive(Clone, Copy)]
enum ReadData {
    /// Into the queue's lane, at this stream offset.
    Lane(u64),
    /// Into the stream processor: among the source bytes of a packet, by its number in the queue.
    Source { packet: u64, offset: u32 },
    /// Past the stream processor into the lane, at this stream offset: data of a checksum with copy.
    Passing { packet: u64, at: u64 },
    /// Nowhere: its queue was reset.
    Dropped,
}

/// A read burst in flight.
struct ReadBurst {
    queue: u8,
    data: ReadData,
    burst: Burst,
}

/// The read path of an engine.
#[derive(Default)]
pub(super) struct Reader {
    /// Queue whose packet is being read.
    queue: Option<usize>,
    /// What is left of that packet: sources not yet issued in full.
    sources: VecDeque<Source>,
    /// Bytes of the first of them already issued, and the cycle of its first burst.
    offset: u32,
    source_began: u64,
    /// Where the next burst goes if the packet is a compute packet.
    computed: Option<Intake>,
    /// How fast its sources are read.
    pace: Pace,
    /// Queues with a whole packet in their Tx FIFO.
    pub schedulable: QueueSet,
    /// First cycle at which the next burst can be issued.
    next_cycle: u64,
    /// Bursts in flight.
    bursts: Window<ReadBurst>,
    /// Bytes of the data FIFO in use, all queues.
    pub fifo_used: u64,
    /// Where the last burst fell.
    near: Nearby,
    /// The descriptor whose data enters the stream, for an observer.
    begun: Begun,
}

impl ReadBurst {
    /// Tells an observer that it is over, and its descriptor if that is.
    #[cold]
    fn tell(&self, begun: &mut Begun, out: &mut Outbox) {
        let (queue, burst) = (self.queue, &self.burst);
        out.tell(|| Activity::Read {
            queue,
            slot: burst.slot,
            access: burst.access(),
        });
        burst.end(Direction::M2s, queue, begun, out);
    }
}

impl Reader {
    /// Forgets the packet of queue `q` that is being read, and what its bursts in flight are for. Returns the bytes that
    /// these have reserved in the lane.
    pub fn forget(&mut self, q: usize) -> u64 {
        let oldest = self.bursts.front().map(|read| usize::from(read.queue));
        if self.queue == Some(q) {
            self.queue = None;
            self.sources.clear();
            self.offset = 0;
            self.computed = None;
            if oldest.is_none_or(|oldest| oldest == q) {
                self.begun = Begun::default();
            }
        }
        let of_queue = |read: &&mut ReadBurst| usize::from(read.queue) == q;
        let mut reserved = 0;
        for read in self.bursts.iter_mut().filter(of_queue) {
            if matches!(read.data, ReadData::Lane(_) | ReadData::Passing { .. }) {
                reserved += u64::from(read.burst.len);
            }
            read.data = ReadData::Dropped;
            read.burst.issued_at = u64::MAX;
            if read.burst.lost {
                read.burst.answered = Instant::START;
            }
        }
        reserved
    }

    /// The oldest burst whose data is not there.
    pub fn oldest(&self) -> Option<&Burst> {
        self.bursts.front().map(|read| &read.burst)
    }

    /// When the oldest burst's data is there; never, if that is not known yet.
    pub fn oldest_ready_at(&self) -> Instant {
        self.bursts
            .front()
            .map_or(Instant::NEVER, |read| read.burst.answered)
    }
}

impl Engine {
    /// Issues at most one read burst.
    pub(super) fn issue_read(&mut self, cycle: u64, needs: &mut Needs, ctx: &mut Ctx) {
        // A disabled half starts no packet, but reads the one it is at to its end.
        let runs = self.states[Direction::M2s as usize] == UdmaState::Normal;
        if !runs && self.reader.queue.is_none() {
            needs.station(Station::Read, StationState::Idle);
            return;
        }
        if cycle < self.reader.next_cycle {
            needs.cycle(self.reader.next_cycle);
            return;
        }
        let starts = self.reader.queue.is_none();
        if starts && !self.schedule_packet(cycle, needs, ctx) {
            return;
        }
        // The write path has not seen a packet that starts now, and waits for its data.
        needs.read |= starts;
        let (Some(q), Some(source)) = (self.reader.queue, self.reader.sources.front()) else {
            return;
        };
        if self.reader.bursts.len() >= self.limits.data_reads {
            needs.read = true;
            needs.station(Station::Read, StationState::Data);
            return;
        }
        let at = Addr(source.at.0.wrapping_add(u64::from(self.reader.offset)));
        let left = source.len - self.reader.offset;
        let len = self.burst_len(Direction::M2s, at, left);
        let computed = self.reader.computed.as_mut();
        let behind = computed.as_ref().map_or(0, |intake| intake.behind(len));
        let space = len + behind;
        if self.reader.fifo_used + u64::from(space) > self.limits.fifo_bytes {
            needs.ack = true;
            needs.station(Station::Read, StationState::Fifo);
            return;
        }
        let lane = &mut self.queues[q].lane;
        let reserved = match &computed {
            Some(intake) if !intake.passes() => Some(0),
            _ => lane.reserve(space),
        };
        let Some(offset) = reserved else {
            needs.ack = true;
            needs.station(Station::Read, StationState::Fifo);
            return;
        };
        let data = match computed.map(|intake| (intake.packet, intake.issue(len))) {
            None => ReadData::Lane(offset),
            Some((packet, None)) => ReadData::Passing { packet, at: offset },
            Some((packet, Some(offset))) => ReadData::Source { packet, offset },
        };
        self.reader.fifo_used += u64::from(space);
        let beats = Self::beats(len);
        let near = &mut self.reader.near;
        let route = ctx.fabric.route_near(ctx.memory, at, u64::from(len), near);
        let burst = self.reader.bursts.next();
        let (slot, desc) = (source.slot, source.desc);
        let access = InFlight::Read { burst };
        let times = self.send((access, Way::Read), ctx.now, (route, len), ctx);
        if let Some(times) = times {
            self.agenda.push(times.done, EngineEvent::Read { burst });
        }
        self.reader.bursts.push(ReadBurst {
            queue: q as u8,
            data,
            burst: Burst {
                at,
                len,
                desc,
                slot,
                last: len == left,
                issued: ctx.now,
                channel: route.channel() as u32,
                times: times.unwrap_or_default(),
                issued_at: cycle,
                lost: false,
                answered: Instant::NEVER,
            },
        });
        self.reader.offset += len;
        self.reader.next_cycle = cycle + self.reader.pace.cycles(beats, route.is_state_buffer());
        if self.reader.offset == len {
            self.reader.source_began = cycle;
        }
        if len == left {
            self.reader.sources.pop_front();
            self.reader.offset = 0;
            let least = self.reader.source_began + self.header_cycles;
            self.reader.next_cycle = self.reader.next_cycle.max(least);
            if self.reader.sources.is_empty() {
                self.reader.queue = None;
                self.reader.next_cycle += u64::from(self.timing.packet_cycles);
            }
        }
        needs.cycle(self.reader.next_cycle);
        needs.station(Station::Read, StationState::Busy);
    }

    /// It is known when a read burst is sampled.
    pub(super) fn read_timed(&mut self, burst: u64, times: Times) {
        if let Some(read) = self.reader.bursts.get_mut(burst) {
            read.burst.times = times;
            self.agenda.push(times.done, EngineEvent::Read { burst });
        }
    }

    /// Starts the packet that the arbiter picks. False if no queue has one that may start.
    #[inline(never)]
    fn schedule_packet(&mut self, cycle: u64, needs: &mut Needs, ctx: &mut Ctx) -> bool {
        needs.station(Station::Read, StationState::Idle);
        if self.limits.stream_disabled[Direction::M2s as usize] {
            return false;
        }
        if self.packets_in_flight >= self.limits.packets {
            needs.ack = true;
            needs.station(Station::Read, StationState::Acknowledge);
            return false;
        }
        let mut ready = QueueSet::default();
        for q in self.reader.schedulable.iter() {
            let queue = &self.queues[q];
            if queue.suspended || queue.stuck || !queue.stream_on[Direction::M2s as usize] {
                if queue.suspended {
                    needs.station(Station::Read, StationState::Dmb);
                }
                continue;
            }
            match self.packet_ready_at(q) {
                Some(at) if at <= ctx.now => {}
                Some(at) => {
                    needs.at(at);
                    needs.station(Station::Read, StationState::Descriptor);
                    continue;
                }
                None => continue,
            }
            let queue = &mut self.queues[q];
            match queue.tokens.ready_at(&queue.rate_limit, cycle) {
                Some(at) if at <= cycle => ready.insert(q),
                limited => {
                    limited.into_iter().for_each(|at| needs.cycle(at));
                    needs.station(Station::Read, StationState::RateLimit);
                }
            }
        }
        if ready.is_empty() {
            if self.descriptors_are_coming() {
                needs.station(Station::Read, StationState::Descriptor);
            }
            return false;
        }
        match (self.stream_tokens).ready_at(&self.limits.stream_rate_limit, cycle) {
            Some(at) if at <= cycle => {}
            limited => {
                limited.into_iter().for_each(|at| needs.cycle(at));
                needs.station(Station::Read, StationState::RateLimit);
                return false;
            }
        }
        let mode = self.limits.arbitration;
        let Some(q) = self.arbiter.pick(ready, mode, &self.shares) else {
            return false;
        };
        match self.strike(Site::Packet, q as u8, ctx.now) {
            Some(FaultKind::StuckQueue) => {
                self.queues[q].stuck = true;
                // Somebody else may go on in the next cycle.
                needs.cycle(cycle + 1);
                return false;
            }
            Some(FaultKind::Report(bit)) => {
                self.raise(bit, q as u8, 0, Addr(0), Descriptor::default());
                if self.states.contains(&UdmaState::Abort) {
                    return false;
                }
            }
            _ => {}
        }
        let bytes = self.start_packet(q, ctx.now, ctx.out);
        self.arbiter.serve(q, bytes, mode);
        if !self.reader.schedulable.contains(q) {
            self.arbiter.ran_dry(q);
        }
        // In packet mode a packet costs as much as one byte (C).
        let cost = if self.limits.rate_limit_packets {
            1
        } else {
            bytes
        };
        let queue = &mut self.queues[q];
        queue.tokens.spend(&queue.rate_limit, cost);
        self.stream_tokens
            .spend(&self.limits.stream_rate_limit, cost);
        self.reader.queue.is_some()
    }

    /// Whether Tx descriptors are on their way, or a packet's first ones wait for its last.
    fn descriptors_are_coming(&self) -> bool {
        let waits = |q: usize| {
            !self.queues[q].rings[Direction::M2s as usize]
                .fifo
                .is_empty()
        };
        self.prefetchers[Direction::M2s as usize].is_fetching()
            || self
                .armed
                .iter()
                .any(|q| waits(q) && !self.reader.schedulable.contains(q))
    }

    /// When the first packet of a queue's FIFO is there in full; `None` if there is no whole one.
    fn packet_ready_at(&self, q: usize) -> Option<Instant> {
        let ring = &self.queues[q].rings[Direction::M2s as usize];
        let last = ring.fifo.iter().find(|tx| tx.closes)?;
        ring.data_covers(last.nth).then_some(last.ready_at)
    }

    /// Takes a packet's descriptors out of the FIFO; returns its bytes.
    fn start_packet(&mut self, q: usize, now: Instant, out: &mut Outbox) -> u64 {
        let queue = &mut self.queues[q];
        let mut packet = Packet {
            slot: 0,
            bytes: 0,
            started: now,
            tx_descs: 0,
            rx_descs: 0,
            rx_written: Vec::new(),
            dmb: false,
            write_barrier: false,
            interrupt: [false; 2],
            notification: None,
            to_write: 0,
            invisible: 0,
            update_due: false,
            acknowledged_at: now,
            computation: None,
        };
        let (mut dmb, mut notify) = (false, false);
        let mut plain = true;
        self.reader.sources.clear();
        self.reader.offset = 0;
        self.reader.computed = None;
        self.reader.pace = Pace::default();
        while let Some(prefetched) = queue.rings[Direction::M2s as usize].fifo.pop_front() {
            if packet.tx_descs == 0 {
                packet.slot = prefetched.slot;
            }
            let tx = TxDesc::from(prefetched.desc);
            packet.tx_descs += 1;
            dmb |= tx.len_ctrl.dmb();
            packet.interrupt[0] |= tx.len_ctrl.int_en();
            packet.write_barrier |= tx.write_barrier();
            notify |= tx.notification();
            let source = Source {
                at: tx.buf_ptr,
                len: tx.len_ctrl.byte_len(),
                slot: prefetched.slot,
                desc: prefetched.desc,
            };
            plain &= is_plain_copy(prefetched.desc);
            if tx.len_ctrl.meta() {
                out.tell(|| Activity::Descriptor {
                    direction: Direction::M2s,
                    queue: q as u8,
                    slot: prefetched.slot,
                    desc: prefetched.desc,
                    bytes: 0,
                    since: now,
                });
            }
            packet.to_write = packet.to_write.saturating_add(source.len);
            self.reader.sources.push_back(source);
            if prefetched.closes {
                break;
            }
        }
        if notify && self.spec.caps.notification_mask {
            packet.notification = self.reader.sources.front().map(|source| source.slot);
        }
        self.prefetchers[Direction::M2s as usize].held -= packet.tx_descs as usize;
        queue.whole_packets -= 1;
        self.reader.schedulable.set(q, queue.whole_packets > 0);
        self.in_flight.insert(q);
        self.packets_in_flight += 1;
        if !plain && let Err(refusal) = self.start_computation(q, &mut packet) {
            // No station takes the packet: it is dropped, and completes without data.
            let source = self.reader.sources.get(refusal.desc);
            let (at, slot, desc) = source.map_or(Default::default(), |source| {
                (source.at, source.slot, source.desc)
            });
            self.reader.sources.clear();
            packet.to_write = 0;
            self.queues[q].packets.push(packet);
            let bit = ErrorBit::M2s(refusal.reason.bit());
            self.raise_because(bit, q as u8, slot, at, desc, Some(refusal.reason));
            return 0;
        }
        packet.bytes = packet.to_write;
        let queue = &mut self.queues[q];
        if dmb {
            packet.dmb = !queue.dmb_masked;
            queue.suspended = packet.dmb;
            self.counters.dmb += u64::from(packet.dmb);
            self.counters.dmb_masked += u64::from(queue.dmb_masked);
        }
        self.counters.write_barriers += u64::from(packet.write_barrier);
        let bytes = match &packet.computation {
            None => u64::from(packet.to_write),
            Some(computation) => computation.plan.source_bytes as u64,
        };
        queue.packets.push(packet);
        self.reader.queue = Some(q);
        bytes
    }

    /// Makes a compute packet of the descriptors that have been taken out.
    fn start_computation(&mut self, q: usize, packet: &mut Packet) -> Result<(), Refusal> {
        let descs: Vec<Descriptor> = self
            .reader
            .sources
            .iter()
            .map(|source| source.desc)
            .collect();
        let plan = self.plan(&descs)?;
        self.reader
            .sources
            .retain(|source| !source.desc.len_ctrl().meta());
        self.reader.pace = Pace::of(&plan.operation, &self.compute);
        // A packet's result is at most as long as its longest packet, which is less than 2^20 bytes.
        packet.to_write = plan.result_bytes as u32;
        let room = self.buffers.pop().unwrap_or_default();
        packet.computation = self.reader.sources.front().map(|source| {
            let (at, slot, desc) = (source.at, source.slot, source.desc);
            Box::new(Computation::new(plan, room, at, slot, desc))
        });
        let number = self.queues[q].packets.next();
        let computation = packet.computation.as_ref();
        self.reader.computed = computation.map(|computation| computation.intake(number));
        Ok(())
    }

    /// A read burst reaches its target: the bytes are taken now. Returns the register to ask if
    /// that is what the burst reads.
    pub(super) fn sample_read(&mut self, burst: u64, ctx: &mut Ctx) -> Option<RegisterRead> {
        let read = self.reader.bursts.get(burst)?;
        if matches!(read.data, ReadData::Dropped) {
            self.sampled(burst, ctx);
            return None;
        }
        let (at, len, queue) = (read.burst.at, read.burst.len, read.queue);
        let (first, rest) = read.data.room(&mut self.queues[usize::from(queue)], len);
        let near = &mut self.reader.near;
        let bytes = match rest.is_empty() {
            true => ctx.memory.read_near(at, first, near),
            false => read_pieces(ctx.memory, at, near, first, rest),
        };
        let fault =
            (self.faults.as_mut()).and_then(|faults| faults.strike(Site::Read, queue, ctx.now));
        match (bytes, fault) {
            (Ok(()), None) => {}
            (_, Some(FaultKind::LostRead)) => {
                if let Some(read) = self.reader.bursts.get_mut(burst) {
                    read.burst.lost = true;
                }
                return None;
            }
            (Ok(()), Some(FaultKind::FlipData { bit })) => {
                let (byte, bit) = (bit / 8 % len, bit % 8);
                if let Some(byte) = first.iter_mut().chain(rest).nth(byte as usize) {
                    *byte ^= 1 << bit;
                }
            }
            (_, Some(FaultKind::ReadError)) => self.refuse_read(burst, at),
            (Err(error), _) => {
                if error.reason == AccessReason::Registers
                    && let Some((engine, offset)) = register_window(ctx.memory, at, len)
                {
                    return Some(RegisterRead {
                        burst,
                        engine,
                        offset,
                    });
                }
                self.refuse_read(burst, at);
            }
            _ => {}
        }
        self.sampled(burst, ctx);
        None
    }

    /// The answer to a read that [`Engine::run`] handed back.
    pub fn answer_register_read(&mut self, burst: u64, value: u32, ctx: &mut Ctx) {
        let Some(read) = self.reader.bursts.get(burst) else {
            return;
        };
        let queue = &mut self.queues[usize::from(read.queue)];
        let (first, rest) = read.data.room(queue, read.burst.len);
        for (to, byte) in first.iter_mut().chain(rest).zip(value.to_le_bytes()) {
            *to = byte;
        }
        self.sampled(burst, ctx);
    }

    /// A read that nothing answers: an AXI error. If it is masked, the data is zeros (C).
    #[cold]
    fn refuse_read(&mut self, burst: u64, at: Addr) {
        let Some(read) = self.reader.bursts.get(burst) else {
            return;
        };
        let (queue, slot, desc) = (read.queue, read.burst.slot, read.burst.desc);
        let lanes = &mut self.queues[usize::from(queue)];
        let (first, rest) = read.data.room(lanes, read.burst.len);
        first.fill(0);
        rest.fill(0);
        let bit = ErrorBit::M2s(M2sError::DataResponse);
        self.raise(bit, queue, slot, at, desc);
    }

    fn sampled(&mut self, burst: u64, ctx: &mut Ctx) {
        let Some(read) = self.reader.bursts.get_mut(burst) else {
            return;
        };
        let ready_at = ctx.now + read.burst.times.response;
        read.burst.answered = ready_at;
        self.counters.bytes_read += u64::from(read.burst.len);
        if self.waits_for_read && burst == self.reader.bursts.first() {
            self.wake_by(ready_at, ctx);
        }
    }

    /// Moves the data of bursts that have arrived, in the order they were issued, into the stream.
    pub(super) fn retire_reads(&mut self, ctx: &mut Ctx) {
        let now = ctx.now;
        while let Some(read) = self.reader.bursts.front() {
            if read.burst.answered > now {
                return;
            }
            let (queue, len) = (read.queue, read.burst.len);
            let dropped = matches!(read.data, ReadData::Dropped);
            if dropped {
                self.reader.begun = Begun::default();
            } else if ctx.out.observed {
                read.tell(&mut self.reader.begun, ctx.out);
            }
            match read.data {
                ReadData::Dropped => self.free_fifo(len.into()),
                ReadData::Lane(_) => self.queues[usize::from(queue)].lane.deliver(len),
                ReadData::Source { packet, .. } => self.enter(queue, packet, len, now),
                ReadData::Passing { packet, at } => self.pass(queue, packet, (at, len), now),
            }
            self.reader.bursts.pop_front();
        }
    }

    /// The oldest read has not been answered in time: an AXI timeout. It is reported once; if the
    /// error is masked, the engine goes on waiting.
    pub(super) fn check_read_timeout(&mut self, cycle: u64, needs: &mut Needs) {
        let timeout = self.limits.axi_timeout;
        let Some(read) = self.reader.bursts.front_mut() else {
            return;
        };
        let Some(due) = read.burst.issued_at.checked_add(timeout) else {
            return;
        };
        if cycle < due {
            needs.cycle(due);
            return;
        }
        read.burst.issued_at = u64::MAX;
        let (queue, slot, at, desc) = (read.queue, read.burst.slot, read.burst.at, read.burst.desc);
        let bit = ErrorBit::M2s(M2sError::DataTimeout);
        self.raise(bit, queue, slot, at, desc);
    }

    /// Bytes of a lane's space are free again.
    pub(super) fn free_fifo(&mut self, len: u64) {
        self.reader.fifo_used -= len;
    }
}

impl ReadData {
    /// Room for a burst's bytes; two pieces where it wraps around.
    fn room(self, queue: &mut Queue, len: u32) -> (&mut [u8], &mut [u8]) {
        match self {
            ReadData::Lane(at) | ReadData::Passing { at, .. } => queue.lane.pieces_mut(at, len),
            ReadData::Source { packet, offset } => {
                (queue.source_room(packet, offset, len), Default::default())
            }
            ReadData::Dropped => Default::default(),
        }
    }
}

/// Reads one burst into a place that wraps around.
// Apart, for its room on the stack.
#[cold]
fn read_pieces(
    memory: &PhysicalMemory,
    at: Addr,
    near: &mut Nearby,
    first: &mut [u8],
    rest: &mut [u8],
) -> Result<(), AccessError> {
    let mut whole = [0; MAX_BURST_BYTES];
    let whole = &mut whole[..first.len() + rest.len()];
    memory.read_near(at, whole, near)?;
    let (a, b) = whole.split_at(first.len());
    first.copy_from_slice(a);
    rest.copy_from_slice(b);
    Ok(())
}

/// The register that an access of exactly one register falls on.
pub(super) fn register_window(
    memory: &PhysicalMemory,
    at: Addr,
    len: u32,
) -> Option<(EngineId, u64)> {
    let place = memory.resolve(at, len.into()).ok()?;
    match place.target {
        Target::UdmaRegisters { engine } if len == 4 && place.offset.is_multiple_of(4) => {
            Some((engine, place.offset))
        }
        _ => None,
    }
}
