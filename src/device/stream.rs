//! The stream processor of compute packets, between read and write: swallows a packet's source bytes in
//! stream order, computes when the last has arrived, and holds the result until it is written. What it
//! computes is [`super::compute`]'s business.

use super::compute::{self, Fp8, Operation, Plan, Reason, Setup};
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
    /// Bytes of all sources, in order, and how many of them have entered.
    pub sources: Vec<u8>,
    entered: usize,
    /// The result; none until all sources have entered.
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
        room.resize(plan.source_bytes, 0);
        Computation {
            sources: room,
            plan,
            entered: 0,
            result: None,
            taken: 0,
            at,
            slot,
            desc,
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

    /// Bytes of its result that wait to be written; nothing if it is a plain copy.
    #[inline]
    pub fn result_left(&self) -> Option<u64> {
        let computation = self.computation.as_ref()?;
        let result = computation.result.as_ref().map_or(0, Vec::len);
        Some(result as u64 - u64::from(computation.taken))
    }

    /// Takes bytes of its result for a write burst; returns where they are, or nothing if it is a plain copy.
    #[inline]
    pub fn take(&mut self, len: u32) -> Option<u32> {
        let computation = self.computation.as_mut()?;
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
        self.free_fifo(len);
        let queue = &mut self.queues[usize::from(q)];
        let Some((packet, computation)) = queue.packets.get_mut(packet).and_then(|packet| {
            let computation = packet.computation.as_mut()?;
            Some((&mut packet.acknowledged_at, computation))
        }) else {
            return;
        };
        computation.entered += len as usize;
        if computation.entered < computation.plan.source_bytes {
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
        let (at, slot, desc) = (computation.at, computation.slot, computation.desc);
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
