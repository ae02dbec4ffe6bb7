//! M2S: the scheduler picks a queue with a whole packet, round robin, and the read path cuts the
//! packet's sources into bursts, many of which are in flight.
//!
//! Bursts are sampled whenever their target gets to them (A5); their data enters the stream in the
//! order they were issued (A2).

use super::engine::{Ctx, Engine, EngineEvent, Needs, Packet, RegisterRead};
use super::error::ErrorBit;
use super::fabric::MAX_BURST_BYTES;
use super::faults::{FaultKind, Site};
use super::queue_set::QueueSet;
use crate::arch::EngineId;
use crate::arch::regs::{Direction, M2sError, UdmaState};
use crate::desc::{CmeOp, Descriptor, TxDesc};
use crate::memory::{AccessReason, PhysicalMemory, Place, Target};
use crate::sim::{Duration, Instant};
use crate::units::Addr;
use std::collections::VecDeque;

/// A Tx descriptor of the packet being read.
struct Source {
    at: Addr,
    len: u32,
    slot: u32,
    desc: Descriptor,
}

/// A read burst in flight.
struct ReadBurst {
    queue: u8,
    at: Addr,
    len: u32,
    place: Result<Place, AccessReason>,
    /// Where its bytes go in the queue's lane.
    lane_offset: u64,
    /// Its descriptor and that one's slot in the ring.
    desc: Descriptor,
    slot: u32,
    response: Duration,
    /// Cycle of its issue; never once it has been reported as timed out.
    issued_at: u64,
    /// When its data is at the engine; known once it is sampled.
    ready_at: Option<Instant>,
}

/// The read path of an engine.
#[derive(Default)]
pub(super) struct Reader {
    /// Queue whose packet is being read.
    queue: Option<usize>,
    /// What is left of that packet: sources not yet issued in full.
    sources: VecDeque<Source>,
    /// Bytes of the first of them already issued.
    offset: u32,
    /// Queues with a whole packet in their Tx FIFO.
    pub schedulable: QueueSet,
    /// First cycle at which the next burst can be issued.
    next_cycle: u64,
    /// Bursts in flight, oldest first, and the number of the oldest.
    bursts: VecDeque<ReadBurst>,
    first_burst: u64,
    /// Bytes of the data FIFO in use, all queues.
    pub fifo_used: u64,
}

impl Reader {
    /// Forgets the packet being read and the bursts in flight.
    pub fn drop_work(&mut self) {
        self.queue = None;
        self.sources.clear();
        self.offset = 0;
        self.first_burst += self.bursts.len() as u64;
        self.bursts.clear();
        self.fifo_used = 0;
    }

    /// When the oldest burst's data is there, if that is known yet.
    pub fn oldest_ready_at(&self) -> Option<Instant> {
        self.bursts.front()?.ready_at
    }
}

impl Engine {
    /// Issues at most one read burst.
    pub(super) fn issue_read(&mut self, cycle: u64, needs: &mut Needs, ctx: &mut Ctx) {
        // A disabled half starts no packet, but reads the one it is at to its end.
        let runs = self.states[Direction::M2s as usize] == UdmaState::Normal;
        if !runs && self.reader.queue.is_none() {
            return;
        }
        if cycle < self.reader.next_cycle {
            needs.cycle(self.reader.next_cycle);
            return;
        }
        if self.reader.queue.is_none() && !self.schedule_packet(cycle, needs, ctx) {
            return;
        }
        let (Some(q), Some(source)) = (self.reader.queue, self.reader.sources.front()) else {
            return;
        };
        if self.reader.bursts.len() >= self.limits.data_reads {
            needs.read = true;
            return;
        }
        let at = Addr(source.at.0.wrapping_add(u64::from(self.reader.offset)));
        let left = source.len - self.reader.offset;
        let len = self.burst_len(Direction::M2s, at, left);
        if self.reader.fifo_used + u64::from(len) > self.limits.fifo_bytes {
            needs.ack = true;
            return;
        }
        let Some(lane_offset) = self.queues[q].lane.reserve(len) else {
            needs.ack = true;
            return;
        };
        self.reader.fifo_used += u64::from(len);
        let beats = Self::beats(len);
        let route = ctx.fabric.route(ctx.memory, at, u64::from(len));
        let times = ctx.fabric.read(ctx.now, route, beats);
        let burst = self.reader.first_burst + self.reader.bursts.len() as u64;
        ctx.out
            .events
            .push((times.sampled, EngineEvent::Read { burst }));
        self.reader.bursts.push_back(ReadBurst {
            queue: q as u8,
            at,
            len,
            place: route.place(),
            lane_offset,
            slot: self.reader.sources[0].slot,
            desc: self.reader.sources[0].desc,
            response: times.response,
            issued_at: cycle,
            ready_at: None,
        });
        self.reader.offset += len;
        self.reader.next_cycle = cycle + u64::from(beats);
        if len == left {
            self.reader.sources.pop_front();
            self.reader.offset = 0;
            self.reader.next_cycle += u64::from(self.timing.tx_descriptor_cycles);
            if self.reader.sources.is_empty() {
                self.reader.queue = None;
                self.reader.next_cycle += u64::from(self.timing.packet_cycles);
            }
        }
        needs.cycle(self.reader.next_cycle);
    }

    /// Starts the packet that the arbiter picks. False if no queue has one that may start.
    fn schedule_packet(&mut self, cycle: u64, needs: &mut Needs, ctx: &mut Ctx) -> bool {
        if self.limits.stream_disabled[Direction::M2s as usize] {
            return false;
        }
        if self.packets_in_flight >= self.limits.packets {
            needs.ack = true;
            return false;
        }
        let mut ready = QueueSet::default();
        for q in self.reader.schedulable.iter() {
            let queue = &self.queues[q];
            if queue.suspended || queue.stuck || !queue.stream_on[Direction::M2s as usize] {
                continue;
            }
            match self.packet_ready_at(q) {
                Some(at) if at <= ctx.now => {}
                Some(at) => {
                    needs.at(at);
                    continue;
                }
                None => continue,
            }
            let queue = &mut self.queues[q];
            match queue.tokens.ready_at(&queue.rate_limit, cycle) {
                Some(at) if at <= cycle => ready.insert(q),
                Some(at) => needs.cycle(at),
                None => {}
            }
        }
        if ready.is_empty() {
            return false;
        }
        match (self.stream_tokens).ready_at(&self.limits.stream_rate_limit, cycle) {
            Some(at) if at <= cycle => {}
            Some(at) => {
                needs.cycle(at);
                return false;
            }
            None => return false,
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
        let bytes = self.start_packet(q, ctx.now);
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

    /// When the first packet of a queue's FIFO is there in full; `None` if there is no whole one.
    fn packet_ready_at(&self, q: usize) -> Option<Instant> {
        let ring = &self.queues[q].rings[Direction::M2s as usize];
        let last = ring.fifo.iter().find(|tx| tx.closes)?;
        ring.data_covers(last.nth).then_some(last.ready_at)
    }

    /// Takes a packet's descriptors out of the FIFO; returns its bytes.
    fn start_packet(&mut self, q: usize, now: Instant) -> u64 {
        let queue = &mut self.queues[q];
        let mut packet = Packet {
            tx_descs: 0,
            rx_descs: 0,
            rx_written: Vec::new(),
            epochs: [queue.rings[0].epoch, queue.rings[1].epoch],
            dmb: false,
            write_barrier: false,
            interrupt: [false; 2],
            to_write: 0,
            invisible: 0,
            update_due: false,
            acknowledged_at: now,
        };
        let mut dmb = false;
        let mut refused = None;
        self.reader.sources.clear();
        self.reader.offset = 0;
        while let Some(prefetched) = queue.rings[Direction::M2s as usize].fifo.pop_front() {
            let tx = TxDesc::from(prefetched.desc);
            packet.tx_descs += 1;
            dmb |= tx.len_ctrl.dmb();
            packet.interrupt[0] |= tx.len_ctrl.int_en();
            packet.write_barrier |= tx.write_barrier();
            let source = Source {
                at: tx.buf_ptr,
                len: tx.len_ctrl.byte_len(),
                slot: prefetched.slot,
                desc: prefetched.desc,
            };
            if !is_plain_copy(prefetched.desc) {
                refused.get_or_insert((source.slot, source.at, source.desc));
            }
            packet.to_write = packet.to_write.saturating_add(source.len);
            self.reader.sources.push_back(source);
            if prefetched.closes {
                break;
            }
        }
        self.prefetchers[Direction::M2s as usize].held -= packet.tx_descs as usize;
        queue.whole_packets -= 1;
        self.reader.schedulable.set(q, queue.whole_packets > 0);
        self.in_flight.insert(q);
        self.packets_in_flight += 1;
        if let Some((slot, at, desc)) = refused {
            // No station behind the stream takes the packet: modelled (C) as a stream error. It is
            // dropped, and completes without data.
            self.reader.sources.clear();
            packet.to_write = 0;
            queue.packets.push_back(packet);
            tracing::warn!(engine = %self.id, queue = q, slot, "operation not modelled: only plain copies are");
            let bit = ErrorBit::M2s(M2sError::StreamResponse);
            self.raise(bit, q as u8, slot, at, desc);
            return 0;
        }
        if dmb {
            packet.dmb = !queue.dmb_masked;
            queue.suspended = packet.dmb;
            self.counters.dmb += u64::from(packet.dmb);
            self.counters.dmb_masked += u64::from(queue.dmb_masked);
        }
        self.counters.write_barriers += u64::from(packet.write_barrier);
        let bytes = u64::from(packet.to_write);
        queue.packets.push_back(packet);
        self.reader.queue = Some(q);
        bytes
    }

    /// A read burst reaches its target: the bytes are taken now. Returns the register to ask if
    /// that is what the burst reads.
    pub(super) fn sample_read(&mut self, burst: u64, ctx: &mut Ctx) -> Option<RegisterRead> {
        let index = burst.checked_sub(self.reader.first_burst)? as usize;
        let queue = self.reader.bursts.get(index)?.queue;
        let fault = self.strike(Site::Read, queue, ctx.now);
        let read = self.reader.bursts.get_mut(index)?;
        let (at, len) = (read.at, read.len);
        let (first, rest) = self.queues[usize::from(read.queue)]
            .lane
            .pieces_mut(read.lane_offset, len);
        let place = read.place;
        let bytes = place.and_then(|place| read_pieces(ctx.memory, place, first, rest));
        match (bytes, fault) {
            (_, Some(FaultKind::LostRead)) => return None,
            (_, Some(FaultKind::ReadError)) => {
                self.refuse_read(index, at);
                self.sampled(index, ctx);
                return None;
            }
            (Ok(()), Some(FaultKind::FlipData { bit })) => {
                let (byte, bit) = (bit / 8 % len, bit % 8);
                if let Some(byte) = first.iter_mut().chain(rest).nth(byte as usize) {
                    *byte ^= 1 << bit;
                }
            }
            _ => {}
        }
        match bytes {
            Ok(()) => {}
            Err(AccessReason::Registers) => {
                if let Some((engine, offset)) = register_window(place, len) {
                    return Some(RegisterRead {
                        burst,
                        engine,
                        offset,
                    });
                }
                self.refuse_read(index, at);
            }
            Err(_) => self.refuse_read(index, at),
        }
        self.sampled(index, ctx);
        None
    }

    /// The answer to a read that [`Engine::handle`] handed back.
    pub fn answer_register_read(&mut self, burst: u64, value: u32, ctx: &mut Ctx) {
        let Some(index) = burst.checked_sub(self.reader.first_burst) else {
            return;
        };
        let Some(read) = self.reader.bursts.get(index as usize) else {
            return;
        };
        let lane = &mut self.queues[usize::from(read.queue)].lane;
        let (first, rest) = lane.pieces_mut(read.lane_offset, read.len);
        for (to, byte) in first.iter_mut().chain(rest).zip(value.to_le_bytes()) {
            *to = byte;
        }
        self.sampled(index as usize, ctx);
    }

    /// A read that nothing answers: an AXI error. If it is masked, the data is zeros (C).
    fn refuse_read(&mut self, index: usize, at: Addr) {
        let read = &self.reader.bursts[index];
        let (queue, slot, desc) = (read.queue, read.slot, read.desc);
        let lane = &mut self.queues[usize::from(queue)].lane;
        let (first, rest) = lane.pieces_mut(read.lane_offset, read.len);
        first.fill(0);
        rest.fill(0);
        let bit = ErrorBit::M2s(M2sError::DataResponse);
        self.raise(bit, queue, slot, at, desc);
    }

    fn sampled(&mut self, index: usize, ctx: &mut Ctx) {
        let read = &mut self.reader.bursts[index];
        let ready_at = ctx.now + read.response;
        read.ready_at = Some(ready_at);
        self.counters.bytes_read += u64::from(read.len);
        if index == 0 && self.waits_for_read() {
            self.wake_by(ready_at, ctx);
        }
    }

    /// Moves the data of bursts that have arrived, in the order they were issued, into the stream.
    pub(super) fn retire_reads(&mut self, now: Instant) {
        while let Some(read) = self.reader.bursts.front() {
            if read.ready_at.is_none_or(|at| at > now) {
                return;
            }
            self.queues[usize::from(read.queue)].lane.deliver(read.len);
            self.reader.bursts.pop_front();
            self.reader.first_burst += 1;
        }
    }

    /// The oldest read has not been answered in time: an AXI timeout. It is reported once; if the
    /// error is masked, the engine goes on waiting.
    pub(super) fn check_read_timeout(&mut self, cycle: u64, needs: &mut Needs) {
        let timeout = self.limits.axi_timeout;
        let Some(read) = self.reader.bursts.front_mut() else {
            return;
        };
        let Some(due) = read.issued_at.checked_add(timeout) else {
            return;
        };
        if cycle < due {
            needs.cycle(due);
            return;
        }
        read.issued_at = u64::MAX;
        let (queue, slot, at, desc) = (read.queue, read.slot, read.at, read.desc);
        let bit = ErrorBit::M2s(M2sError::DataTimeout);
        self.raise(bit, queue, slot, at, desc);
    }

    /// Bytes of a lane's space are free again.
    pub(super) fn free_fifo(&mut self, len: u32) {
        self.reader.fifo_used -= u64::from(len);
    }
}

/// Whether the engine's plain data path can take a descriptor.
fn is_plain_copy(desc: Descriptor) -> bool {
    let tx = TxDesc::from(desc);
    !tx.len_ctrl.meta() && tx.meta_ctrl.cme_op() == Some(CmeOp::Copy)
}

/// Reads one burst into a place that wraps around.
fn read_pieces(
    memory: &PhysicalMemory,
    place: Place,
    first: &mut [u8],
    rest: &mut [u8],
) -> Result<(), AccessReason> {
    if rest.is_empty() {
        return memory.read_at(place, first);
    }
    let mut whole = [0; MAX_BURST_BYTES];
    let whole = &mut whole[..first.len() + rest.len()];
    memory.read_at(place, whole)?;
    let (a, b) = whole.split_at(first.len());
    first.copy_from_slice(a);
    rest.copy_from_slice(b);
    Ok(())
}

/// The register that an access of exactly one register falls on.
pub(super) fn register_window(
    place: Result<Place, AccessReason>,
    len: u32,
) -> Option<(EngineId, u64)> {
    let place = place.ok()?;
    match place.target {
        Target::UdmaRegisters { engine } if len == 4 && place.offset.is_multiple_of(4) => {
            Some((engine, place.offset))
        }
        _ => None,
    }
}
