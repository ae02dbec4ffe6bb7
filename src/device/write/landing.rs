//! Write bursts that reach their target.

use super::Writer;
use crate::arch::QueueId;
use crate::arch::regs::S2mError;
use crate::device::burst::WriteData;
use crate::device::context::{Ctx, RegisterWrite, register_window};
use crate::device::core::Core;
use crate::device::error::ErrorBit;
use crate::device::faults::{FaultKind, Site};
use crate::device::request::MAX_BURST_BYTES;
use crate::memory::{AccessError, Effects, Nearby, PhysicalMemory};
use crate::sim::{Duration, Instant};
use crate::units::Addr;

impl Writer {
    /// A write burst reaches its target: the bytes are visible from now on.
    pub fn land(&mut self, core: &mut Core, q: QueueId, burst: u64, ctx: &mut Ctx) {
        let fault = core.strike(Site::Write, q, ctx.now);
        let queue = &mut core.queues[q];
        let Some(write) = queue.writes.get_mut(burst) else {
            self.land_stray(core, q, burst, ctx);
            return;
        };
        let late = match fault {
            Some(FaultKind::LateAck(by)) => by,
            _ => Duration::ZERO,
        };
        let acknowledged_at = ctx.now + write.burst.times.response + late;
        match fault {
            Some(FaultKind::LostAck) => write.burst.lost = true,
            _ => write.burst.answered = acknowledged_at,
        }
        let (at, len) = (write.burst.at, write.burst.len);
        let (data, flush, packet) = (write.data, write.flush, write.packet);
        let (first, rest) = queue.bytes(data, packet, len);
        let written = match fault {
            Some(FaultKind::WriteError) => {
                refused(core, q, burst);
                acknowledge_due(core, q, burst, packet, acknowledged_at, ctx);
                return;
            }
            _ if flush => Ok(Effects::None),
            _ if rest.is_empty() => ctx.memory.write_near(at, first, &mut self.near),
            _ => write_pieces(ctx.memory, at, &mut self.near, first, rest),
        };
        match written {
            Ok(effects) => ctx.out.wrote(effects),
            Err(_) => match register_window(ctx.memory, at, len) {
                Some((engine, offset)) => {
                    let mut value = [0; 4];
                    for (to, byte) in value.iter_mut().zip(first.iter().chain(rest)) {
                        *to = *byte;
                    }
                    ctx.out.progress = true;
                    ctx.out.register_writes.push(RegisterWrite {
                        engine,
                        offset,
                        value: u32::from_le_bytes(value),
                    });
                }
                None => refused(core, q, burst),
            },
        }
        if !matches!(data, WriteData::Increment) {
            core.counters.bytes_written += u64::from(len);
        }
        // A packet whose write is never acknowledged is never complete.
        if fault != Some(FaultKind::LostAck) {
            acknowledge_due(core, q, burst, packet, acknowledged_at, ctx);
        }
    }
}

/// Nothing takes a write burst: an AXI error.
#[cold]
fn refused(core: &mut Core, q: QueueId, burst: u64) {
    if let Some(write) = core.queues[q].writes.get(burst) {
        let origin = write.burst.origin(q);
        core.raise(ErrorBit::S2m(S2mError::DataResponse), origin);
    }
}

/// Accounts for a visible write and wakes the engine if someone waits for its acknowledge.
fn acknowledge_due(
    core: &mut Core,
    q: QueueId,
    burst: u64,
    number: u64,
    at: Instant,
    ctx: &mut Ctx,
) {
    let queue = &mut core.queues[q];
    let oldest = number == queue.packets.first();
    let Some(packet) = queue.packets.get_mut(number) else {
        return;
    };
    packet.invisible -= 1;
    packet.acknowledged_at = packet.acknowledged_at.max(at);
    let completes = oldest && packet.to_write == 0 && packet.invisible == 0;
    let due = packet.acknowledged_at;
    let waited_for = core.waits_for_ack && burst == queue.writes.first();
    if completes {
        core.wake_by(due, ctx);
    }
    if waited_for {
        core.wake_by(at, ctx);
    }
}

/// Writes one burst from a place that wraps around.
// Apart, for its room on the stack.
#[cold]
fn write_pieces(
    memory: &mut PhysicalMemory,
    at: Addr,
    near: &mut Nearby,
    first: &[u8],
    rest: &[u8],
) -> Result<Effects, AccessError> {
    let mut whole = [0; MAX_BURST_BYTES];
    let whole = &mut whole[..first.len() + rest.len()];
    let (a, b) = whole.split_at_mut(first.len());
    a.copy_from_slice(first);
    b.copy_from_slice(rest);
    memory.write_near(at, whole, near)
}
