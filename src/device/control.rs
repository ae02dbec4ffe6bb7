//! Register accesses: what is live is answered from the engine's state, what acts does so here.

use super::activity::Activity;
use super::burst::Begun;
use super::compute;
use super::engine::{Ctx, Engine};
use super::lane::Lane;
use super::prefetch::Prefetcher;
use super::queue::Queue;
use super::queue_set::QueueSet;
use super::reload::{DEFICIT_MASK, DOORBELL_MASK};
use crate::arch::regs::{
    ChangeState, Direction, QueueStatus, QueueSwCtrl, UdmaState, UdmaStateReg, global, queue,
    table::{Access, Place},
};
use crate::desc::PacketTracker;

impl Engine {
    /// Reads a register; a reserved offset reads 0.
    pub fn read_register(&mut self, offset: u64) -> u32 {
        let Some((place, row)) = self.registers.locate(offset) else {
            self.note_reserved(offset, "read");
            return 0;
        };
        if row.access == Access::Command {
            return 0;
        }
        match place {
            Place::Queue(direction, q, within) => {
                let queue = &self.queues[usize::from(q)];
                let ring = &queue.rings[direction as usize];
                match within {
                    queue::STATUS => self.queue_status(queue, direction),
                    queue::DRHP => ring.head_pointer(),
                    queue::DRTP => ring.tail_pointer(),
                    queue::DCP => ring.current_pointer(),
                    queue::M2S_TDRDTP if direction == Direction::M2s => ring.data_tail_pointer(),
                    queue::CRHP => queue.completions[direction as usize].head_pointer(),
                    queue::CRHP_INTERNAL => {
                        queue.completions[direction as usize].internal_head_pointer()
                    }
                    queue::M2S_TX_PKT if direction == Direction::M2s => queue.packet_count,
                    queue::S2M_RX_PKT if direction == Direction::S2m => queue.packet_count,
                    _ => self.registers.get(offset),
                }
            }
            Place::Global(direction, within) => self.read_global(direction, within, offset),
            Place::Interrupt(group, within) => self.interrupts.read(group, within),
            Place::General(_) | Place::GeneralEx(_) | Place::Notific(_) => {
                self.registers.get(offset)
            }
        }
    }

    fn read_global(&self, direction: Direction, within: u64, offset: u64) -> u32 {
        match within {
            global::STATE => {
                let state = self.states[direction as usize];
                // The data path of a disabled half runs until what is in flight has drained.
                let data = match state {
                    UdmaState::Idle if !self.in_flight.is_empty() => UdmaState::Normal,
                    state => state,
                };
                UdmaStateReg::new()
                    .with_comp_ctrl(data)
                    .with_stream_if(data)
                    .with_data(data)
                    .with_desc_pref(state)
                    .into_bits()
            }
            global::ERR_LOG..global::ERR_LOG_CLEAR => {
                let word = (within - global::ERR_LOG) / 4;
                self.error_logs[direction as usize].map_or(0, |desc| desc.words[word as usize])
            }
            global::STATISTICS.. if within < global::STATISTICS + 4 * global::STATISTICS_WORDS => {
                self.statistics(direction)[((within - global::STATISTICS) / 4) as usize]
            }
            _ => self.registers.get(offset),
        }
    }

    /// The statistics words of one half: a configuration word (M2S) or nothing; packets (M2S) or
    /// dropped packets (S2M: none ever are); bytes, low and high; descriptors fetched; packets and
    /// descriptors completed; packets acknowledged. Counters wrap.
    fn statistics(&self, direction: Direction) -> [u32; global::STATISTICS_WORDS as usize] {
        let c = &self.counters;
        let (packets, bytes, descriptors) = match direction {
            Direction::M2s => (c.packets, c.bytes_read, c.tx_descriptors),
            Direction::S2m => (0, c.bytes_written, c.rx_descriptors),
        };
        let fetched = self.prefetchers[direction as usize].fetched;
        [
            0,
            packets as u32,
            bytes as u32,
            (bytes >> 32) as u32,
            fetched as u32,
            c.packets as u32,
            descriptors as u32,
            c.packets as u32,
        ]
    }

    fn note_reserved(&mut self, offset: u64, access: &str) {
        if self.registers.note_reserved(offset) {
            tracing::warn!(engine = %self.id, offset = format!("{offset:#x}"), "{access} of a reserved register");
        }
    }

    fn queue_status(&self, queue: &Queue, direction: Direction) -> u32 {
        let ring = &queue.rings[direction as usize];
        // At most the ring's length, which fits into 24 bits.
        let used = ring.outstanding() as u32;
        QueueStatus::new()
            .with_q_used(used)
            .with_prefetch(!ring.fetches.is_empty())
            .with_scheduler(!queue.packets.is_empty())
            .with_q_dmb(direction == Direction::M2s && queue.suspended)
            .with_q_full(ring.is_full())
            .into_bits()
    }

    /// Writes a register.
    pub fn write_register(&mut self, offset: u64, value: u32, ctx: &mut Ctx) {
        let Some((place, row)) = self.registers.locate(offset) else {
            self.note_reserved(offset, "write");
            return;
        };
        if row.access == Access::ReadOnly {
            return;
        }
        match place {
            Place::Queue(direction, q, within) => {
                if within == queue::DRTP_INC {
                    ctx.out.tell(|| Activity::Doorbell {
                        direction,
                        queue: q,
                        count: value & DOORBELL_MASK,
                    });
                }
                let cycle = ctx.clock.cycle_at(ctx.now).0;
                self.write_queue_register(direction, q, within, offset, value, cycle);
            }
            Place::Global(
                Direction::M2s,
                global::M2S_RATE_LIMITER_CTRL..=global::M2S_RATE_LIMITER_CTRL_END,
            ) => {
                let cycle = ctx.clock.cycle_at(ctx.now).0;
                self.stream_tokens.reset(cycle);
                self.queues
                    .iter_mut()
                    .for_each(|queue| queue.tokens.reset(cycle));
            }
            Place::Global(Direction::M2s, global::M2S_STREAM_RATE_LIMIT_SW_CTRL) => {
                self.stream_tokens.reset(ctx.clock.cycle_at(ctx.now).0);
            }
            Place::Global(Direction::M2s, global::M2S_DWRR_DEFICIT) => {
                self.registers.set(offset, value);
                self.arbiter.set_deficits(i64::from(value & DEFICIT_MASK));
            }
            Place::Global(direction, global::CHANGE_STATE) => {
                self.change_state(direction, ChangeState::from_bits(value));
            }
            Place::Global(direction, global::ERR_LOG_CLEAR) => {
                self.error_logs[direction as usize] = None;
            }
            Place::Global(..) => {
                self.registers.set(offset, value);
                self.reload_limits();
                for q in 0..self.queues.len() as u8 {
                    self.reload_queue(q);
                }
            }
            Place::Interrupt(group, within) => self.interrupts.write(group, within, value),
            Place::General(_) | Place::GeneralEx(_) => {
                self.registers.set(offset, value);
                self.reload_limits();
            }
            Place::Notific(within) => {
                self.registers.set(offset, value);
                self.reload_notifications(within);
            }
        }
        self.prefetchers.iter_mut().for_each(Prefetcher::look_again);
        self.report(ctx);
        self.wake_by(ctx.now, ctx);
    }

    fn write_queue_register(
        &mut self,
        direction: Direction,
        q: u8,
        within: u64,
        offset: u64,
        value: u32,
        cycle: u64,
    ) {
        let ring = &mut self.queues[usize::from(q)].rings[direction as usize];
        match within {
            queue::DRTP_INC => {
                let refused = ring.ring_doorbell(value & DOORBELL_MASK);
                let (armed, fetchable) = (ring.outstanding() > 0, ring.to_fetch() > 0);
                if direction == Direction::M2s {
                    self.armed.set(usize::from(q), armed);
                }
                self.prefetchers[direction as usize]
                    .fetchable
                    .set(usize::from(q), fetchable);
                self.counters.doorbells += 1;
                self.counters.doorbell_overflow += u64::from(refused);
                if refused > 0 {
                    tracing::warn!(
                        engine = %self.id, queue = q, ring = direction.ring_name(), refused,
                        "doorbell exceeds the ring"
                    );
                }
            }
            queue::M2S_TDRDTP_INC if direction == Direction::M2s => {
                ring.ring_data_doorbell(value & DOORBELL_MASK);
            }
            queue::M2S_RATE_LIMIT_SW_CTRL if direction == Direction::M2s => {
                self.queues[usize::from(q)].tokens.reset(cycle);
            }
            queue::M2S_DWRR_SW_CTRL if direction == Direction::M2s => {
                self.arbiter.ran_dry(usize::from(q));
            }
            within if within == queue::sw_ctrl(direction) => {
                self.reset_queue(direction, q, QueueSwCtrl::from_bits(value));
            }
            _ => {
                self.registers.set(offset, value);
                self.reload_queue(q);
            }
        }
    }

    /// Reset strobes. Any pointer strobe takes the whole ring back to its first lap: the sources
    /// give the bits, drivers set them together, what one alone does is modelled (C).
    fn reset_queue(&mut self, direction: Direction, q: u8, strobes: QueueSwCtrl) {
        let queue = &mut self.queues[usize::from(q)];
        if strobes.rst_dmb() || strobes.rst_q() {
            queue.suspended = false;
        }
        let pointers = strobes.rst_tail() || strobes.rst_head() || strobes.rst_current();
        if !pointers && !strobes.rst_q() {
            return;
        }
        let ring = &mut queue.rings[direction as usize];
        self.prefetchers[direction as usize].held -= ring.held();
        ring.reset();
        self.prefetchers[direction as usize]
            .fetchable
            .remove(usize::from(q));
        queue.completions[direction as usize].reset();
        match direction {
            Direction::M2s => {
                queue.stream = compute::QueueState::default();
                self.armed.remove(usize::from(q));
                self.reader.schedulable.remove(usize::from(q));
                queue.whole_packets = 0;
                queue.tracker = PacketTracker::new(self.limits.packet_descriptors);
                queue.arriving_bytes = 0;
            }
            Direction::S2m => queue.rx = None,
        }
    }

    /// State commands. What each does to work in progress is modelled (C):
    ///
    /// * *abort* freezes both halves.
    /// * *disable* stops M2S from starting packets and S2M from filling Rx descriptors; what is in
    ///   flight drains. On an aborted engine it drops the work in progress of both halves: the way
    ///   back from an abort is *disable*, resetting the queues, *normal*.
    /// * *normal* runs the half, unless it is aborted.
    fn change_state(&mut self, direction: Direction, command: ChangeState) {
        let aborted = self.states.contains(&UdmaState::Abort);
        if command.abort() {
            self.states = [UdmaState::Abort; 2];
        } else if command.dis() {
            if aborted {
                self.drop_work();
                self.states = [UdmaState::Idle; 2];
            }
            self.states[direction as usize] = UdmaState::Idle;
        } else if command.normal() && !aborted {
            self.states[direction as usize] = UdmaState::Normal;
        }
    }

    /// Forgets packets, reads and writes in flight. Their descriptors stay outstanding until their
    /// queue is reset; writes that are on their way are lost.
    fn drop_work(&mut self) {
        self.reader.drop_work();
        self.writer.outstanding = 0;
        for queue in &mut self.queues {
            queue.writes.clear();
            queue.begun = Begun::default();
            queue.held_since = None;
            queue.packets.clear();
            queue.written = queue.packets.next();
            queue.rx = None;
            queue.update = None;
            queue.suspended = false;
            queue.starved = None;
            queue.lane = Lane::default();
        }
        self.in_flight = QueueSet::default();
        self.packets_in_flight = 0;
    }
}
