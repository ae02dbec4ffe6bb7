//! The stream processor of compute packets, between read and write: swallows a packet's source bytes in
//! stream order, computes when the last has arrived, and holds the result until it is written. The data of
//! a checksum with copy it lets pass instead: it goes through the lane as a copy's does, and the checksum
//! follows it burst by burst. What it computes is [`super::compute`]'s business.

use super::compute::{self, CrcMismatch, CrcRun, Fp8, Operation, Plan, Reason, Setup};
use super::engine::Engine;
use super::error::ErrorBit;
use super::queue::{Packet, Queue};
use crate::arch::regs::M2sError;
use crate::config::ComputeConfig;
use crate::desc::{
    Descriptor, RxDesc, TRANSPOSE_FLUSH_OFFSET, TransposeError, TransposeTarget,
    check_transpose_place,
};
use crate::sim::Instant;
use crate::units::Addr;

/// A compute packet's work.
pub(super) struct Computation {
    pub plan: Plan,
    /// Bytes of the sources that are swallowed, in order.
    pub sources: Vec<u8>,
    /// How many bytes have entered, swallowed or not.
    entered: usize,
    /// The data passes: its bytes, and what follows them, are the lane's.
    passes: bool,
    /// The checksum of what has passed; none before the first burst of it.
    checksum: Option<CrcRun>,
    /// The result; none until all sources have entered. Empty if it has passed.
    pub result: Option<Vec<u8>>,
    /// Bytes of the result that write bursts have taken.
    taken: u32,
    /// The packet's first data descriptor, for errors: where it reads, its slot, its words.
    at: Addr,
    slot: u32,
    desc: Descriptor,
}

impl Computation {
    /// `room` is a buffer to use again.
    pub fn new(
        plan: Plan,
        mut room: Vec<u8>,
        at: Addr,
        slot: u32,
        desc: Descriptor,
    ) -> Computation {
        let passes = plan.passes();
        room.resize(passes.map_or(plan.source_bytes, |(_, values)| values), 0);
        Computation {
            sources: room,
            passes: passes.is_some(),
            checksum: None,
            plan,
            entered: 0,
            result: None,
            taken: 0,
            at,
            slot,
            desc,
        }
    }

    /// Where its source bytes go.
    pub fn intake(&self, packet: u64) -> Intake {
        let sent = self.plan.passes().map(|_| self.plan.sent_bytes());
        Intake {
            packet,
            next: 0,
            swallowed: self.sources.len() as u32,
            left: self.plan.source_bytes as u32,
            trailer: sent.unwrap_or_default(),
        }
    }

    /// Rows of the result, and bytes of one, if each goes to a State Buffer partition of its own.
    fn rows(&self) -> Option<(u64, u64)> {
        let Operation::Transpose(transpose) = &self.plan.operation else {
            return None;
        };
        let [_, rows, columns, _] = transpose.dims.0;
        Some((
            columns.into(),
            u64::from(rows) * transpose.element_bytes as u64,
        ))
    }
}

impl Packet {
    /// Whether its result is still to be computed.
    pub fn computing(&self) -> bool {
        let computation = self.computation.as_ref();
        computation.is_some_and(|computation| computation.result.is_none())
    }

    /// Bytes of its result that wait to be written; nothing if they are in the lane.
    #[inline]
    pub fn result_left(&self) -> Option<u64> {
        let computation = self.computation.as_ref().filter(|held| !held.passes)?;
        let result = computation.result.as_ref().map_or(0, Vec::len);
        Some(result as u64 - u64::from(computation.taken))
    }

    /// Takes bytes of its result for a write burst; returns where they are, or nothing if they are in the
    /// lane.
    #[inline]
    pub fn take(&mut self, len: u32) -> Option<u32> {
        let computation = self.computation.as_mut().filter(|held| !held.passes)?;
        let start = computation.taken;
        computation.taken += len;
        Some(start)
    }
}

impl Queue {
    /// Room for the `len` source bytes at `offset` of a compute packet, by its number in the queue.
    pub fn source_room(&mut self, packet: u64, offset: u32, len: u32) -> &mut [u8] {
        let packet = self.packets.get_mut(packet);
        let computation = packet.and_then(|packet| packet.computation.as_mut());
        let (start, end) = (offset as usize, (offset + len) as usize);
        computation
            .and_then(|computation| computation.sources.get_mut(start..end))
            .unwrap_or_default()
    }

    /// The `len` bytes at `offset` of a compute packet's result.
    pub fn result_bytes(&self, packet: u64, offset: u32, len: u32) -> &[u8] {
        let packet = self.packets.get(packet);
        let computation = packet.and_then(|packet| packet.computation.as_ref());
        let result = computation.and_then(|computation| computation.result.as_deref());
        let (start, end) = (offset as usize, (offset + len) as usize);
        result
            .and_then(|result| result.get(start..end))
            .unwrap_or_default()
    }

    /// Bytes that wait to be written by the packet whose turn it is.
    pub fn available(&self) -> u64 {
        let result = self.packets.get(self.written).and_then(Packet::result_left);
        result.unwrap_or(self.lane.available())
    }
}

/// Where the source bytes of the compute packet being read go.
pub(super) struct Intake {
    /// Its number in the queue.
    pub packet: u64,
    /// Offset of the next burst among its source bytes.
    next: u32,
    /// Bytes that are swallowed; those behind them pass.
    swallowed: u32,
    /// Bytes not yet issued.
    left: u32,
    /// Bytes of the lane that the last burst reserves for what is sent behind the data.
    trailer: u32,
}

impl Intake {
    /// What the next `len` bytes need beside their own space. Out of line, or `left` is compared before it is known
    /// that there is an intake: valgrind sees a jump on bytes that were never written.
    #[inline(never)]
    pub fn behind(&self, len: u32) -> u32 {
        if len == self.left { self.trailer } else { 0 }
    }

    /// The next `len` bytes are issued. Returns their offset if they are swallowed, nothing if they pass.
    pub fn issue(&mut self, len: u32) -> Option<u32> {
        let offset = self.next;
        self.next += len;
        self.left -= len;
        (offset < self.swallowed).then_some(offset)
    }

    /// Whether the next bytes pass.
    pub fn passes(&self) -> bool {
        self.next >= self.swallowed
    }
}

/// Where the bytes of an Rx descriptor go.
#[derive(Clone, Copy)]
pub(super) enum Destination {
    /// To consecutive addresses.
    Linear(Addr),
    /// Rows of so many bytes, each a partition further.
    Rows {
        /// Where the first row goes.
        at: Addr,
        /// Bytes of a row.
        bytes: u32,
    },
    /// Nowhere, but not before all earlier writes: a transpose flush to the NeuronCore at this base.
    Flush(Addr),
}

/// How fast a packet's sources are read: in percent of copy throughput.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    percent: u32,
    /// The same for sources in a State Buffer.
    state_buffer: u32,
    /// What is left over of the cycles charged so far, in hundredths of a beat.
    owed: u32,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::new(COPY_PERCENT, COPY_PERCENT)
    }
}

/// Pace of a plain copy: a beat a cycle.
const COPY_PERCENT: u32 = 100;

impl Pace {
    fn new(percent: u32, state_buffer: u32) -> Pace {
        Pace {
            percent,
            state_buffer,
            owed: 0,
        }
    }

    /// The pace of an operation.
    pub fn of(operation: &Operation, config: &ComputeConfig) -> Pace {
        match operation {
            Operation::Reduce(_) => Pace::new(config.cce_percent, config.cce_percent),
            Operation::Transpose(_) => Pace::new(
                config.transpose_percent,
                config.transpose_state_buffer_percent,
            ),
            _ => Pace::default(),
        }
    }

    /// Cycles that a burst of so many beats keeps the read path.
    pub fn cycles(&mut self, beats: u32, from_state_buffer: bool) -> u64 {
        let percent = match from_state_buffer {
            true => self.state_buffer,
            false => self.percent,
        };
        if percent == COPY_PERCENT {
            return beats.into();
        }
        self.owed += beats * COPY_PERCENT;
        let cycles = self.owed / percent;
        self.owed %= percent;
        cycles.into()
    }
}

impl Engine {
    /// Plans the packet of these descriptors.
    pub(super) fn plan(&self, descs: &[Descriptor]) -> Result<Plan, compute::Refusal> {
        let setup = Setup {
            spec: self.spec,
            fp8: Fp8::from(&self.compute),
            packet_bytes: self.limits.packet_bytes,
        };
        compute::plan(descs, &setup)
    }

    /// The next `len` source bytes of a compute packet enter the stream processor, which frees their
    /// space in the data FIFO. With the last of them it computes; the result takes space.
    #[inline(never)]
    pub(super) fn enter(&mut self, q: u8, packet: u64, len: u32, now: Instant) {
        self.free_fifo(len.into());
        let queue = &mut self.queues[usize::from(q)];
        let Some((packet, computation)) = queue.packets.get_mut(packet).and_then(|packet| {
            let computation = packet.computation.as_mut()?;
            Some((&mut packet.acknowledged_at, computation))
        }) else {
            return;
        };
        computation.entered += len as usize;
        if computation.passes || computation.entered < computation.plan.source_bytes {
            return;
        }
        *packet = now;
        let sources = std::mem::take(&mut computation.sources);
        let mut result = self.buffers.pop().unwrap_or_default();
        let plan = &computation.plan;
        let verdict = plan.execute(&sources, &mut queue.stream, &mut result);
        self.buffers.push(sources);
        self.reader.fifo_used += result.len() as u64;
        computation.result = Some(result);
        let place = (computation.at, computation.slot, computation.desc);
        self.judge(q, place, verdict);
    }

    /// The next `len` bytes of a checksum's data enter the stream: the checksum takes them up as they go by.
    /// Behind the last of them comes the result, if it is sent.
    #[inline(never)]
    pub(super) fn pass(&mut self, q: u8, packet: u64, (at, len): (u64, u32), now: Instant) {
        let queue = &mut self.queues[usize::from(q)];
        let lane = &mut queue.lane;
        lane.deliver(len);
        let Some((acknowledged_at, computation)) =
            queue.packets.get_mut(packet).and_then(|packet| {
                let computation = packet.computation.as_mut()?;
                Some((&mut packet.acknowledged_at, computation))
            })
        else {
            return;
        };
        let Some((crc, _)) = computation.plan.passes() else {
            return;
        };
        let cache = &mut queue.stream.cache;
        let begin = || crc.begin(&computation.sources, cache);
        let mut run = computation.checksum.take().unwrap_or_else(begin);
        let (first, rest) = lane.pieces(at, len);
        crc.update(&mut run, first);
        crc.update(&mut run, rest);
        computation.entered += len as usize;
        if computation.entered < computation.plan.source_bytes {
            computation.checksum = Some(run);
            return;
        }
        *acknowledged_at = now;
        let (value, verdict) = crc.finish(run, cache);
        let sent = computation.plan.sent_bytes();
        let (first, rest) = lane.pieces_mut(at + u64::from(len), sent);
        for (to, from) in first.iter_mut().chain(rest).zip(value.to_le_bytes()) {
            *to = from;
        }
        lane.deliver(sent);
        // The buffer goes back when the packet is complete, as a result's does.
        let mut nothing = std::mem::take(&mut computation.sources);
        nothing.clear();
        computation.result = Some(nothing);
        let place = (computation.at, computation.slot, computation.desc);
        self.judge(q, place, verdict);
    }

    /// A checksum that is not the expected one is an error. It is known behind the last byte of the data: what
    /// has been written by then stays (C).
    fn judge(
        &mut self,
        q: u8,
        (at, slot, desc): (Addr, u32, Descriptor),
        verdict: Result<(), CrcMismatch>,
    ) {
        if let Err(mismatch) = verdict {
            let bit = ErrorBit::M2s(M2sError::StreamParity);
            self.raise_because(bit, q, slot, at, desc, Some(mismatch.into()));
        }
    }

    /// Where the bytes of an Rx descriptor go, for the packet that queue `q` is writing. From V3 on
    /// transposes go to a State Buffer, at a packed address, and nothing else does.
    pub(super) fn destination(&self, q: usize, rx: RxDesc) -> Result<Destination, Reason> {
        let at = rx.buf1_ptr;
        if !self.spec.caps.state_buffer_transpose {
            return Ok(Destination::Linear(at));
        }
        let queue = &self.queues[q];
        let packet = queue.packets.get(queue.written);
        let computation = packet.and_then(|packet| packet.computation.as_ref());
        let rows = computation.and_then(|computation| computation.rows());
        let map = &self.spec.map;
        match (TransposeTarget::from_addr(at), rows) {
            (None, None) => Ok(Destination::Linear(at)),
            (Some(_), None) => {
                let flushed = |base: &&Addr| at.offset_from(**base) == Some(TRANSPOSE_FLUSH_OFFSET);
                Ok(match map.tpb.iter().find(flushed) {
                    Some(base) => Destination::Flush(*base),
                    None => Destination::Linear(at),
                })
            }
            (None, Some(_)) => Err(TransposeError::NotStateBuffer(at).into()),
            (Some(target), Some((rows, bytes))) => {
                let window = map.tpb.iter().find(|base| **base == target.window());
                let base = window
                    .filter(|_| !target.has_reserved_bits())
                    .ok_or(TransposeError::NotStateBuffer(at))?;
                let said = u64::from(target.rows() * target.element_bytes());
                let (len, wanted) = (u64::from(rx.len_ctrl.byte_len()), rows * bytes);
                if (said, len) != (bytes, wanted) {
                    let bytes = len.min(said * rows);
                    return Err(Reason::TransposeLength { bytes, wanted });
                }
                let buffer = &map.state_buffer;
                let (partition, offset) =
                    (u64::from(target.partition()), u64::from(target.offset()));
                let at = Addr(base.0 + partition * buffer.stride + offset);
                check_transpose_place(buffer, at, (partition, offset), (rows, bytes))?;
                Ok(Destination::Rows {
                    at,
                    bytes: bytes as u32,
                })
            }
        }
    }
}
