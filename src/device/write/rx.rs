//! Taking Rx descriptors out of a queue's FIFO.

use super::{NOWHERE, Writer};
use crate::arch::regs::{Direction, M2sError, S2mError, UdmaState};
use crate::arch::{ArchSpec, EventBlock, QueueId};
use crate::config::SowScope;
use crate::desc::{EmbeddedSemaphore, RxDesc};
use crate::device::core::Core;
use crate::device::destination::Destination;
use crate::device::error::{ErrorBit, Origin};
use crate::device::needs::Needs;
use crate::device::queue::{Row, RxCursor, Starved};
use crate::device::ring::Prefetched;
use crate::sim::Instant;
use crate::units::Addr;

impl Writer {
    /// Starts on the queue's next Rx descriptor. False if it is not there yet.
    #[inline(never)]
    pub(super) fn take_rx(
        &mut self,
        core: &mut Core,
        q: QueueId,
        needs: &mut Needs,
        now: Instant,
    ) -> bool {
        // A disabled half fills the descriptors it is at and takes no other.
        let half = &core.halves.s2m;
        if half.state != UdmaState::Normal || half.limits.stream_disabled {
            return false;
        }
        let ring = &mut core.queues[q].halves.s2m.ring;
        match ring.fifo.front() {
            None => return false,
            Some(prefetched) if prefetched.ready_at > now => {
                needs.at(prefetched.ready_at);
                return false;
            }
            Some(_) => {}
        }
        let Some(prefetched) = ring.fifo.pop_front() else {
            return false;
        };
        core.halves.s2m.fifo_held -= 1;
        let rx = RxDesc::from(prefetched.desc);
        let origin = Origin {
            queue: q,
            slot: prefetched.slot,
            at: rx.buf1_ptr,
            desc: prefetched.desc,
        };
        let cursor = cursor(core, q, rx, &prefetched, origin);
        let flush = cursor.flush;
        let queue = &mut core.queues[q];
        queue.rx = Some(cursor);
        let Some(packet) = queue.packets.get_mut(queue.written) else {
            return false;
        };
        packet.rx_descs += 1;
        packet.interrupt.s2m |= rx.len_ctrl.int_en();
        if packet.rx_descs == core.spec.limits.rx_descs_per_packet + 1 {
            // It goes on, if that is masked: modelled (C).
            core.raise(ErrorBit::S2m(S2mError::PrefetchSaturate), origin);
        }
        let strong = rx.len_ctrl.strong_order_wr() && core.spec.caps.strong_order_writes;
        core.counters.strong_order_writes += u64::from(strong);
        if strong || flush {
            self.set_fence(core, q);
        }
        true
    }

    /// Later writes of the queue wait for all issued so far.
    fn set_fence(&self, core: &mut Core, q: QueueId) {
        let fence = core.queues[q].writes.next();
        core.queues[q].fence = fence;
        if self.sow_scope == SowScope::Engine {
            let fences = core.queues.iter().map(|queue| queue.writes.next());
            let fences = fences.collect();
            core.queues[q].engine_fence = fences;
        }
    }

    /// Data may be waiting for an Rx descriptor that no doorbell has announced: a hint at first, an
    /// error of either half once its acknowledge timeout has passed.
    #[inline(never)]
    pub(super) fn starve(&self, core: &mut Core, q: QueueId, cycle: u64, needs: &mut Needs) {
        let queue = &mut core.queues[q];
        let ring = &queue.halves.s2m.ring;
        let announced = !ring.fifo.is_empty() || !ring.fetches.is_empty() || ring.to_fetch() > 0;
        if announced || queue.available() == 0 {
            needs.read = true;
            return;
        }
        if queue.starved.is_none() {
            let hint = S2mError::NoDescHint.mask();
            core.interrupts.set_error(Direction::S2m, hint);
        }
        let mut starved = *queue.starved.get_or_insert(Starved {
            since: cycle,
            reported: Default::default(),
        });
        for direction in Direction::ALL {
            let timeout = core.halves[direction].limits.ack_timeout;
            let due = starved.since.saturating_add(timeout);
            if timeout == 0 || starved.reported[direction] {
                continue;
            }
            if cycle < due {
                needs.cycle(due);
                continue;
            }
            starved.reported[direction] = true;
            core.queues[q].starved = Some(starved);
            let bit = match direction {
                Direction::M2s => ErrorBit::M2s(M2sError::StreamTimeout),
                Direction::S2m => ErrorBit::S2m(S2mError::NoDescTimeout),
            };
            core.raise(bit, Origin::of(q));
        }
    }
}

/// The start of an Rx descriptor.
fn cursor(
    core: &mut Core,
    q: QueueId,
    rx: RxDesc,
    prefetched: &Prefetched,
    origin: Origin,
) -> RxCursor {
    let update = match core.spec.caps.embedded_semaphore {
        true => EmbeddedSemaphore::of(rx).map(|update| update_cell(core.spec, update)),
        false => None,
    };
    let (at, row, flush) = match Destination::of(core, q, rx) {
        Ok(Destination::Linear(at)) => (at, None, false),
        Ok(Destination::Rows { at, bytes }) => (at, Some(Row { bytes, left: bytes }), false),
        Ok(Destination::Flush(at)) => (at, None, true),
        Err(reason) => {
            core.raise_because(ErrorBit::S2m(S2mError::DataResponse), origin, reason);
            (NOWHERE, None, false)
        }
    };
    RxCursor {
        at,
        left: rx.len_ctrl.byte_len(),
        written: 0,
        began: 0,
        desc: prefetched.desc,
        slot: prefetched.slot,
        update,
        row,
        flush,
    }
}

/// The cell that an embedded update increments. One that names no semaphore of the device gets
/// the address of none, and so an AXI error.
fn update_cell(spec: &ArchSpec, update: EmbeddedSemaphore) -> Addr {
    let block = spec.map.embedded_semaphore_block(update.csr_index);
    let semaphore = u32::from(update.semaphore);
    block
        .and_then(|block| spec.map.semaphore(block, EventBlock::SEM_INC, semaphore))
        .unwrap_or(NOWHERE)
}
