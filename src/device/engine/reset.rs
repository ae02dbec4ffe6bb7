//! What a reset takes from a queue: its strobes, and the way back from an abort.
//!
//! What the queue has begun is forgotten in both halves, whichever strobe comes first (C: the driver resets
//! M2S, then S2M, and counts on it). What has been issued is on its way and lands where it was aimed: reads as
//! bytes that nobody takes, writes as strays of the write station.

use super::Engine;
use crate::arch::QueueId;
use crate::arch::regs::{ChangeState, Direction, M2sError, QueueSwCtrl, UdmaState};
use crate::desc::PacketTracker;
use crate::device::burst::Begun;
use crate::device::busy_change::Change;
use crate::device::context::Ctx;
use crate::device::error::{ErrorBit, Origin};
use crate::device::lane::Lane;
use crate::device::queue::Lost;
use crate::sim::Instant;

impl Engine {
    /// Reset strobes. Any pointer strobe resets the half of the queue, as `rst_q` does: the sources give the bits,
    /// drivers set them together, what one alone does is modelled (C).
    pub(super) fn reset_queue(
        &mut self,
        direction: Direction,
        q: QueueId,
        strobes: QueueSwCtrl,
        now: Instant,
    ) {
        let pointers = strobes.rst_tail() || strobes.rst_head() || strobes.rst_current();
        if !pointers && !strobes.rst_q() {
            // S2M has no such strobe (A).
            if direction == Direction::M2s && strobes.rst_dmb() {
                self.core.queues[q].suspended = false;
            }
            return;
        }
        self.note_change(direction, q, Change::Reset, now);
        self.forget_work(q, now, true);
        let half = &mut self.core.queues[q].halves[direction];
        self.core.halves[direction].fifo_held -= half.ring.held();
        half.ring.reset();
        half.completions.reset();
        self.prefetchers[direction].fetchable.remove(q);
        if direction == Direction::M2s {
            self.reset_m2s(q);
        }
    }

    /// What only the M2S half of a queue has.
    fn reset_m2s(&mut self, q: QueueId) {
        let queue = &mut self.core.queues[q];
        queue.lost = None;
        queue.suspended = false;
        queue.whole_packets = 0;
        queue.tracker = PacketTracker::new(self.core.limits.packet_descriptors);
        queue.arriving_bytes = 0;
        queue.tokens.forgive();
        self.stream.reset(q);
        self.scheduler.forget(q);
        self.core.work.armed.remove(q);
        self.core.work.lost.remove(q);
        self.core.work.schedulable.remove(q);
    }

    /// State commands. What each does to work in progress is modelled (C):
    ///
    /// * *abort* freezes both halves.
    /// * *disable* stops M2S from starting packets and S2M from filling Rx descriptors; what is in
    ///   flight drains. On an aborted engine it drops the work in progress of both halves: the way
    ///   back from an abort is *disable*, resetting the queues, *normal*.
    /// * *normal* runs the half, unless it is aborted.
    pub(super) fn change_state(
        &mut self,
        direction: Direction,
        command: ChangeState,
        now: Instant,
    ) {
        let aborted = self.core.aborted();
        if command.abort() {
            self.core.set_states(UdmaState::Abort);
        } else if command.dis() {
            if aborted {
                for q in self.core.queues.ids() {
                    self.forget_work(q, now, false);
                    self.core.queues[q].suspended = false;
                }
                self.core.set_states(UdmaState::Idle);
            }
            self.core.halves[direction].state = UdmaState::Idle;
        } else if command.normal() && !aborted {
            self.core.halves[direction].state = UdmaState::Normal;
        }
    }

    /// Forgets the packets that queue `q` has begun. Their Rx descriptors are spent, their Tx descriptors stay
    /// outstanding until M2S is reset, which notices that if it is to.
    fn forget_work(&mut self, q: QueueId, now: Instant, noticed: bool) {
        let core = &mut self.core;
        // Space of reads on their way is free when they arrive.
        let coming = self.reader.forget(q);
        core.work.fifo_bytes -= core.queues[q].fifo_bytes() - coming;
        self.writer.forget(core, q);
        let queue = &mut core.queues[q];
        queue.begun = Begun::default();
        queue.engine_fence.clear();
        queue.held_since = None;
        queue.starved = None;
        queue.rx = None;
        queue.update = None;
        queue.lane = Lane::default();
        let slot = queue.packets.front().map(|packet| packet.slot);
        while let Some(packet) = queue.packets.pop_front() {
            queue.halves.s2m.ring.complete(packet.rx_descs);
            let lost = queue.lost.get_or_insert(Lost {
                slot: slot.unwrap_or_default(),
                tx_descs: 0,
                since: now,
                noticed,
            });
            lost.tx_descs += packet.tx_descs;
            core.work.packets -= 1;
            core.counters.packets_dropped += u64::from(noticed);
            self.stream.buffers.free(packet.computation);
        }
        queue.written = queue.packets.next();
        core.work.in_flight.remove(q);
        core.work.lost.set(q, queue.lost.is_some());
    }

    /// M2S notices that packets of a queue it runs were never acknowledged, once what they issued has landed.
    #[cold]
    pub(super) fn notice_lost(&mut self, ctx: &mut Ctx) {
        let core = &mut self.core;
        for q in core.work.lost.iter() {
            let queue = &mut core.queues[q];
            let Some(lost) = queue.lost.filter(|lost| lost.noticed) else {
                continue;
            };
            let half = &mut queue.halves.m2s;
            if !half.stream_on || self.writer.has_strays(q) {
                continue;
            }
            half.ring.complete(lost.tx_descs);
            core.work.armed.set(q, half.ring.outstanding() > 0);
            queue.lost = None;
            queue.suspended = false;
            core.work.lost.remove(q);
            ctx.out.progress = true;
            let origin = Origin {
                slot: lost.slot,
                ..Origin::of(q)
            };
            core.raise(ErrorBit::M2s(M2sError::CompPktMismatch), origin);
        }
    }
}
