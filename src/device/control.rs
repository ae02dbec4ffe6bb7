//! Register accesses: what is live is answered from the engine's state, what acts does so here.

use super::activity::Activity;
use super::busy_change::Change;
use super::engine::{Ctx, Engine};
use super::prefetch::Prefetcher;
use super::queue::Queue;
use super::reload::{DEFICIT_MASK, DOORBELL_MASK};
use crate::arch::regs::{
    ChangeState, Direction, QueueCfg, QueueStatus, QueueSwCtrl, UdmaState, UdmaStateReg, global,
    queue,
    table::{Access, Place},
};
use crate::memory::InertWord;

impl Engine {
    /// Reads a register.
    pub fn read_register(&mut self, offset: u64) -> u32 {
        let Some((place, row)) = self.registers.locate(offset) else {
            let (value, first) = self.registers.read_unmodelled(offset);
            self.tell_unmodelled(offset, "read", first);
            return value;
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

    fn tell_unmodelled(&self, offset: u64, access: &str, first: bool) {
        if first {
            let offset = format!("{offset:#x}");
            tracing::debug!(engine = %self.id, offset, "{access} of a register that is not modelled");
        }
    }

    /// The registers that are not modelled and somebody has touched, by offset.
    pub fn unmodelled(&self) -> impl Iterator<Item = (u64, InertWord)> {
        self.registers.unmodelled()
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
            let first = self.registers.write_unmodelled(offset, value);
            self.tell_unmodelled(offset, "write", first);
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
                self.write_queue_register(direction, q, within, offset, value, ctx);
            }
            Place::Global(
                Direction::M2s,
                global::M2S_RATE_LIMITER_CTRL..=global::M2S_RATE_LIMITER_CTRL_END,
            ) => {
                let cycle = ctx.clock.cycle_at(ctx.now).0;
                let tokens = std::iter::once(&mut self.stream_tokens)
                    .chain(self.queues.iter_mut().map(|queue| &mut queue.tokens));
                if offset == M2S_TOKENS {
                    let bits = 8 * i64::from(value & TOKENS_MASK);
                    tokens.for_each(|tokens| tokens.set(bits, cycle));
                } else if value & ACT != 0 {
                    tokens.for_each(|tokens| tokens.restart(cycle));
                }
            }
            Place::Global(Direction::M2s, global::M2S_STREAM_RATE_LIMIT_SW_CTRL)
                if value & ACT != 0 =>
            {
                self.stream_tokens.reset(ctx.clock.cycle_at(ctx.now).0);
            }
            Place::Global(Direction::M2s, global::M2S_DWRR_DEFICIT) => {
                self.registers.set(offset, value);
                self.arbiter.set_deficits(i64::from(value & DEFICIT_MASK));
            }
            Place::Global(direction, global::CHANGE_STATE) => {
                self.change_state(direction, ChangeState::from_bits(value), ctx.now);
            }
            Place::Global(direction, global::ERR_LOG_CLEAR) if value & ACT != 0 => {
                self.error_logs[direction as usize] = None;
            }
            Place::Global(..) => {
                self.registers.set(offset, value);
                self.reload_all();
            }
            Place::Interrupt(group, within) => self.interrupts.write(group, within, value),
            Place::General(_) | Place::GeneralEx(_) => {
                self.registers.set(offset, value);
                self.reload_all();
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
        ctx: &Ctx,
    ) {
        let cycle = ctx.clock.cycle_at(ctx.now).0;
        let ring = &mut self.queues[usize::from(q)].rings[direction as usize];
        match within {
            queue::DRTP_INC => {
                let refused = ring.ring_doorbell(value & DOORBELL_MASK);
                ring.rung_at = Some(ctx.now);
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
                if value & ACT != 0 {
                    self.queues[usize::from(q)].tokens.reset(cycle);
                }
            }
            queue::M2S_DWRR_SW_CTRL if direction == Direction::M2s => {
                if value & ACT != 0 {
                    self.arbiter.ran_dry(usize::from(q));
                }
            }
            within if within == queue::sw_ctrl(direction) => {
                self.reset_queue(direction, q, QueueSwCtrl::from_bits(value), ctx.now);
            }
            _ => {
                let before = self.registers.get(offset);
                if let Some(change) = busy_change(within, before, value) {
                    self.note_change(direction, q, change, ctx.now);
                }
                self.registers.set(offset, value);
                self.reload_queue(q);
            }
        }
    }
}

/// Bit 0: what most commands act on (A).
const ACT: u32 = 1;
/// The command that sets the tokens of every rate limiter, to [23:0] (A); that it counts bytes is modelled (C).
const M2S_TOKENS: u64 = Direction::M2s.global_reg(global::M2S_RATE_LIMITER_CTRL_END);
const TOKENS_MASK: u32 = 0xff_ffff;

/// What a write to a register of a queue's bank changes that a queue with work should keep.
fn busy_change(within: u64, before: u32, after: u32) -> Option<Change> {
    let (was, is) = (QueueCfg::from_bits(before), QueueCfg::from_bits(after));
    let off = was.en_pref() && !is.en_pref() || was.en_scheduling() && !is.en_scheduling();
    match within {
        queue::DRBP_LOW | queue::DRBP_HIGH if before != after => Some(Change::Base),
        queue::DRL if before != after => Some(Change::Length),
        queue::CFG if off => Some(Change::Disabled),
        _ => None,
    }
}
