//! The stream processor, between read and write: a copy's bytes go by in their queue's lane. A compute packet's
//! source bytes it swallows in stream order, computes when the last has arrived, and holds the result until it is
//! written. The data of a checksum with copy it lets pass instead: it goes through the lane as a copy's does, and the
//! checksum follows it burst by burst. What it computes is [`super::compute`]'s business.

use super::burst::{Arrival, ReadData};
use super::computation::Computation;
use super::compute::{self, CrcMismatch, Fp8, Plan, QueueState, Setup};
use super::core::Core;
use super::error::{ErrorBit, Origin};
use super::job::Pace;
use super::queue::Queue;
use crate::arch::QueueId;
use crate::arch::regs::M2sError;
use crate::config::ComputeConfig;
use crate::desc::Descriptor;
use crate::sim::Instant;

/// The stream processor of an engine.
pub(super) struct StreamProcessor {
    config: ComputeConfig,
    /// What it keeps of each queue from packet to packet.
    states: Vec<QueueState>,
    pub buffers: Buffers,
}

/// Buffers of compute packets, to use again.
#[derive(Default)]
pub(super) struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// A computation is over: its result's buffer is free.
    pub fn free(&mut self, computation: Option<Box<Computation>>) {
        self.0
            .extend(computation.and_then(|computation| computation.result));
    }
}

impl StreamProcessor {
    /// Fresh from reset.
    pub fn new(config: &ComputeConfig, queues: u32) -> StreamProcessor {
        StreamProcessor {
            config: config.clone(),
            states: vec![QueueState::default(); queues as usize],
            buffers: Buffers::default(),
        }
    }

    /// Forgets what it keeps of a queue.
    pub fn reset(&mut self, q: QueueId) {
        self.states[q.index()] = QueueState::default();
    }

    /// Plans the packet of these descriptors.
    pub fn plan(&self, core: &Core, descs: &[Descriptor]) -> Result<Plan, compute::Refusal> {
        let setup = Setup {
            spec: core.spec,
            fp8: Fp8::from(&self.config),
            packet_bytes: core.limits.packet_bytes,
        };
        compute::plan(descs, &setup)
    }

    /// How fast the sources of a plan are read.
    pub fn pace(&self, plan: &Plan) -> Pace {
        Pace::of(&plan.operation, &self.config)
    }

    /// Begins with a plan.
    pub fn begin(&mut self, plan: Plan, origin: Origin) -> Computation {
        Computation::new(plan, self.buffers.take(), origin)
    }

    /// Data has arrived, in the order it was asked for.
    #[inline]
    pub fn take_in(&mut self, core: &mut Core, arrival: Arrival, now: Instant) {
        let Arrival { queue, data, len } = arrival;
        match data {
            ReadData::Dropped => core.work.fifo_bytes -= u64::from(len),
            ReadData::Lane(_) => core.queues[queue].lane.deliver(len),
            ReadData::Source { packet, .. } => self.swallow(core, queue, packet, len, now),
            ReadData::Passing { packet, at } => self.pass(core, queue, (packet, at, len), now),
        }
    }

    /// The next `len` source bytes of a compute packet enter the stream processor, which frees their
    /// space in the data FIFO. With the last of them it computes; the result takes space.
    #[inline(never)]
    fn swallow(&mut self, core: &mut Core, q: QueueId, packet: u64, len: u32, now: Instant) {
        core.work.fifo_bytes -= u64::from(len);
        let Some(packet) = core.queues[q].packets.get_mut(packet) else {
            return;
        };
        let Some(computation) = packet.computation.as_mut() else {
            return;
        };
        computation.entered += len as usize;
        if computation.passes || computation.entered < computation.plan.source_bytes {
            return;
        }
        packet.acknowledged_at = now;
        let sources = std::mem::take(&mut computation.sources);
        let mut result = self.buffers.take();
        let state = &mut self.states[q.index()];
        let verdict = computation.plan.execute(&sources, state, &mut result);
        self.buffers.0.push(sources);
        core.work.fifo_bytes += result.len() as u64;
        computation.result = Some(result);
        let origin = computation.origin;
        judge(core, origin, verdict);
    }

    /// The next `len` bytes of a checksum's data enter the stream, at `at` in the lane: the checksum takes them up as
    /// they go by. Behind the last of them comes the result, if it is sent.
    #[inline(never)]
    fn pass(
        &mut self,
        core: &mut Core,
        q: QueueId,
        (packet, at, len): (u64, u64, u32),
        now: Instant,
    ) {
        let Queue { lane, packets, .. } = &mut core.queues[q];
        lane.deliver(len);
        let Some(packet) = packets.get_mut(packet) else {
            return;
        };
        let Some(computation) = packet.computation.as_mut() else {
            return;
        };
        let Some((crc, _)) = computation.plan.passes() else {
            return;
        };
        let cache = &mut self.states[q.index()].cache;
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
        packet.acknowledged_at = now;
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
        let origin = computation.origin;
        judge(core, origin, verdict);
    }
}

/// A checksum that is not the expected one is an error. It is known behind the last byte of the data: what
/// has been written by then stays (C).
fn judge(core: &mut Core, origin: Origin, verdict: Result<(), CrcMismatch>) {
    if let Err(mismatch) = verdict {
        let bit = ErrorBit::M2s(M2sError::StreamParity);
        core.raise_because(bit, origin, mismatch.into());
    }
}
