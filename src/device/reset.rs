//! What a reset takes from a queue: its strobes, and the way back from an abort.
//!
//! What the queue has begun is forgotten in both halves, whichever strobe comes first (C: the driver resets
//! M2S, then S2M, and counts on it). What has been issued is on its way and lands where it was aimed: reads as
//! bytes that nobody takes, writes as [`Stray`]s.

use super::burst::Begun;
use super::busy_change::Change;
use super::compute;
use super::engine::RegisterWrite;
use super::engine::{Ctx, Engine};
use super::error::ErrorBit;
use super::fabric::Times;
use super::lane::Lane;
use super::read::register_window;
use super::write::WriteData;
use crate::arch::regs::{ChangeState, Direction, M2sError, QueueSwCtrl, UdmaState};
use crate::desc::{Descriptor, PacketTracker};
use crate::sim::Instant;
use crate::units::Addr;

/// A write that was on its way when its queue was reset.
pub(super) struct Stray {
    at: Addr,
    /// None for a transpose flush, which goes nowhere.
    bytes: Vec<u8>,
    channel: usize,
}

/// Packets that the S2M half of a queue has forgotten and the M2S half has not: they will never be
/// acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    /// Slot of the first one's first Tx descriptor.
    pub slot: u32,
    /// Their Tx descriptors.
    pub tx_descs: u32,
    /// When they were lost.
    pub since: Instant,
    /// Whether M2S notices: not if an abort took them from both halves.
    noticed: bool,
}

impl Engine {
    /// Reset strobes. Any pointer strobe resets the half of the queue, as `rst_q` does: the sources give the bits,
    /// drivers set them together, what one alone does is modelled (C).
    pub(super) fn reset_queue(
        &mut self,
        direction: Direction,
        q: u8,
        strobes: QueueSwCtrl,
        now: Instant,
    ) {
        let index = usize::from(q);
        let pointers = strobes.rst_tail() || strobes.rst_head() || strobes.rst_current();
        if !pointers && !strobes.rst_q() {
            // S2M has no such strobe (A).
            if direction == Direction::M2s && strobes.rst_dmb() {
                self.queues[index].suspended = false;
            }
            return;
        }
        self.note_change(direction, q, Change::Reset, now);
        self.forget_work(index, now, true);
        let queue = &mut self.queues[index];
        let ring = &mut queue.rings[direction as usize];
        let prefetcher = &mut self.prefetchers[direction as usize];
        prefetcher.held -= ring.held();
        prefetcher.fetchable.remove(index);
        ring.reset();
        queue.completions[direction as usize].reset();
        if direction == Direction::M2s {
            queue.lost = None;
            queue.suspended = false;
            queue.stream = compute::QueueState::default();
            queue.whole_packets = 0;
            queue.tracker = PacketTracker::new(self.limits.packet_descriptors);
            queue.arriving_bytes = 0;
            queue.tokens.forgive();
            self.arbiter.forget(index);
            self.armed.remove(index);
            self.lost.remove(index);
            self.reader.schedulable.remove(index);
        }
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
        let aborted = self.states.contains(&UdmaState::Abort);
        if command.abort() {
            self.states = [UdmaState::Abort; 2];
        } else if command.dis() {
            if aborted {
                for q in 0..self.queues.len() {
                    self.forget_work(q, now, false);
                    self.queues[q].suspended = false;
                }
                self.states = [UdmaState::Idle; 2];
            }
            self.states[direction as usize] = UdmaState::Idle;
        } else if command.normal() && !aborted {
            self.states[direction as usize] = UdmaState::Normal;
        }
    }

    /// Forgets the packets that queue `q` has begun. Their Rx descriptors are spent, their Tx descriptors stay
    /// outstanding until M2S is reset, which notices that if it is to.
    fn forget_work(&mut self, q: usize, now: Instant, noticed: bool) {
        // Space of reads on their way is free when they arrive.
        let coming = self.reader.forget(q);
        self.free_fifo(self.queues[q].fifo_bytes() - coming);
        self.stray_writes(q);
        let queue = &mut self.queues[q];
        queue.begun = Begun::default();
        queue.engine_fence.clear();
        queue.held_since = None;
        queue.starved = None;
        queue.rx = None;
        queue.update = None;
        queue.lane = Lane::default();
        let slot = queue.packets.front().map(|packet| packet.slot);
        while let Some(packet) = queue.packets.pop_front() {
            queue.rings[Direction::S2m as usize].complete(packet.rx_descs);
            let lost = queue.lost.get_or_insert(Lost {
                slot: slot.unwrap_or_default(),
                tx_descs: 0,
                since: now,
                noticed,
            });
            lost.tx_descs += packet.tx_descs;
            self.packets_in_flight -= 1;
            self.counters.packets_dropped += u64::from(noticed);
            let computation = packet.computation;
            (self.buffers).extend(computation.and_then(|computation| computation.result));
        }
        queue.written = queue.packets.next();
        self.in_flight.remove(q);
        self.lost.set(q, queue.lost.is_some());
    }

    /// The writes that queue `q` has issued and that have not landed are on their own.
    fn stray_writes(&mut self, q: usize) {
        let queue = &mut self.queues[q];
        while let Some(write) = {
            let number = queue.writes.first();
            queue.writes.pop_front().map(|write| (number, write))
        } {
            let (number, write) = write;
            if write.burst.has_landed() {
                self.writer.outstanding -= 1;
                continue;
            }
            let (len, one) = (write.burst.len, 1u32.to_le_bytes());
            let (first, rest) = match write.data {
                _ if write.is_flush() => Default::default(),
                WriteData::Lane(offset) => queue.lane.pieces(offset, len),
                WriteData::Result(offset) => {
                    (queue.result_bytes(write.packet(), offset, len), &[][..])
                }
                WriteData::Increment => (&one[..], &[][..]),
            };
            let stray = Stray {
                at: write.burst.at,
                bytes: [first, rest].concat(),
                channel: write.burst.channel as usize,
            };
            self.strays.insert((q as u8, number), stray);
        }
    }

    /// It is known when a write becomes visible whose queue has been reset: in order with the queue's
    /// others to the channel (A3). `None` if there is no such write.
    pub(super) fn stray_timed(
        &mut self,
        q: u8,
        burst: u64,
        times: Times,
        ctx: &Ctx,
    ) -> Option<Times> {
        let channel = self.strays.get(&(q, burst))?.channel;
        let floors = &mut self.queues[usize::from(q)].visible_floor;
        Some(super::write::in_order(floors, channel, times, ctx))
    }

    /// A write whose queue has been reset reaches its target. Whether that refuses it, nobody is told (C).
    #[cold]
    pub(super) fn land_stray(&mut self, q: u8, burst: u64, ctx: &mut Ctx) {
        let Some(Stray { at, bytes, .. }) = self.strays.remove(&(q, burst)) else {
            return;
        };
        self.writer.outstanding -= 1;
        self.counters.bytes_written += bytes.len() as u64;
        ctx.out.progress = true;
        if !bytes.is_empty() {
            match ctx.memory.write(at, &bytes) {
                Ok(effects) => ctx.out.wrote(effects),
                Err(error) => match register_window(ctx.memory, at, bytes.len() as u32) {
                    Some((engine, offset)) => {
                        let mut value = [0; 4];
                        value.copy_from_slice(&bytes);
                        ctx.out.register_writes.push(RegisterWrite {
                            engine,
                            offset,
                            value: u32::from_le_bytes(value),
                        });
                    }
                    None => {
                        tracing::warn!(engine = %self.id, queue = q, %error, "write of a queue that was reset")
                    }
                },
            }
        }
        self.wake_by(ctx.now, ctx);
    }

    /// Whether writes of a queue are on their way under which it was reset.
    pub(super) fn has_strays(&self, q: u8) -> bool {
        self.strays.range((q, 0)..=(q, u64::MAX)).next().is_some()
    }

    /// M2S notices that packets of a queue it runs were never acknowledged, once what they issued has landed.
    #[cold]
    pub(super) fn notice_lost(&mut self, ctx: &mut Ctx) {
        for q in self.lost.iter() {
            let queue = &self.queues[q];
            let Some(lost) = queue.lost.filter(|lost| lost.noticed) else {
                continue;
            };
            if !queue.stream_on[Direction::M2s as usize] || self.has_strays(q as u8) {
                continue;
            }
            let queue = &mut self.queues[q];
            let ring = &mut queue.rings[Direction::M2s as usize];
            ring.complete(lost.tx_descs);
            self.armed.set(q, ring.outstanding() > 0);
            queue.lost = None;
            queue.suspended = false;
            self.lost.remove(q);
            ctx.out.progress = true;
            let bit = ErrorBit::M2s(M2sError::CompPktMismatch);
            self.raise(bit, q as u8, lost.slot, Addr(0), Descriptor::default());
        }
    }
}
