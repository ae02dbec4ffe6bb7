//! Register accesses: what is live is answered from the engine's state, what acts does so here.

use super::Engine;
use crate::arch::QueueId;
use crate::arch::regs::table::{Access, Place};
use crate::arch::regs::{
    ChangeState, DescCount, Direction, DwrrDeficit, QueueCfg, QueueStatus, QueueSwCtrl,
    RateLimitTokens, Strobe, UdmaState, UdmaStateReg, global, queue,
};
use crate::device::activity::EngineActivity;
use crate::device::busy_change::{BusyChange, Change};
use crate::device::context::Ctx;
use crate::device::prefetch::Prefetcher;
use crate::device::rate_limit::TokenBucket;
use crate::memory::InertWord;
use crate::sim::Instant;

/// Changes an engine keeps a record of: a host that does nothing else must not fill memory.
const RECORDS: usize = 64;

impl Engine {
    /// Reads a register.
    pub fn read_register(&mut self, offset: u64) -> u32 {
        let Some((place, row)) = self.core.registers.locate(offset) else {
            let (value, first) = self.core.registers.read_unmodelled(offset);
            self.tell_unmodelled(offset, "read", first);
            return value;
        };
        if row.access == Access::Command {
            return 0;
        }
        match place {
            Place::Queue(direction, q, within) => self
                .read_queue(direction, q, within)
                .unwrap_or_else(|| self.core.registers.get(offset)),
            Place::Global(direction, within) => self
                .read_global(direction, within)
                .unwrap_or_else(|| self.core.registers.get(offset)),
            Place::Interrupt(group, within) => self.core.interrupts.read(group, within),
            Place::General(_) | Place::GeneralEx(_) | Place::Notific(_) => {
                self.core.registers.get(offset)
            }
        }
    }

    /// A register of a queue's bank that shows the engine's state.
    fn read_queue(&self, direction: Direction, q: QueueId, within: u64) -> Option<u32> {
        let queue = &self.core.queues[q];
        let half = &queue.halves[direction];
        Some(match (within, direction) {
            (queue::STATUS, _) => self.queue_status(direction, q),
            (queue::DRHP, _) => half.ring.head_pointer(),
            (queue::DRTP, _) => half.ring.tail_pointer(),
            (queue::DCP, _) => half.ring.current_pointer(),
            (queue::M2S_TDRDTP, Direction::M2s) => half.ring.data_tail_pointer(),
            (queue::CRHP, _) => half.completions.head_pointer(),
            (queue::CRHP_INTERNAL, _) => half.completions.internal_head_pointer(),
            (queue::M2S_TX_PKT, Direction::M2s) => queue.packet_count,
            (queue::S2M_RX_PKT, Direction::S2m) => queue.packet_count,
            _ => return None,
        })
    }

    /// A register of a half that shows the engine's state.
    fn read_global(&self, direction: Direction, within: u64) -> Option<u32> {
        let half = &self.core.halves[direction];
        Some(match within {
            global::STATE => {
                // The data path of a disabled half runs until what is in flight has drained.
                let data = match half.state {
                    UdmaState::Idle if !self.core.work.in_flight.is_empty() => UdmaState::Normal,
                    state => state,
                };
                UdmaStateReg::new()
                    .with_comp_ctrl(data)
                    .with_stream_if(data)
                    .with_data(data)
                    .with_desc_pref(half.state)
                    .into_bits()
            }
            global::ERR_LOG..global::ERR_LOG_CLEAR => {
                let word = (within - global::ERR_LOG) / 4;
                half.error_log.map_or(0, |desc| desc.words[word as usize])
            }
            global::STATISTICS.. if within < global::STATISTICS + 4 * global::STATISTICS_WORDS => {
                self.statistics(direction)[((within - global::STATISTICS) / 4) as usize]
            }
            _ => return None,
        })
    }

    /// The statistics words of one half: a configuration word (M2S) or nothing; packets (M2S) or
    /// dropped packets (S2M: none ever are); bytes, low and high; descriptors fetched; packets and
    /// descriptors completed; packets acknowledged. Counters wrap.
    fn statistics(&self, direction: Direction) -> [u32; global::STATISTICS_WORDS as usize] {
        let c = &self.core.counters;
        let (packets, bytes, descriptors) = match direction {
            Direction::M2s => (c.packets, c.bytes_read, c.tx_descriptors),
            Direction::S2m => (0, c.bytes_written, c.rx_descriptors),
        };
        let fetched = self.prefetchers[direction].fetched;
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
            tracing::debug!(engine = %self.core.id, offset, "{access} of a register that is not modelled");
        }
    }

    /// The registers that are not modelled and somebody has touched, by offset.
    pub fn unmodelled(&self) -> impl Iterator<Item = (u64, InertWord)> {
        self.core.registers.unmodelled()
    }

    fn queue_status(&self, direction: Direction, q: QueueId) -> u32 {
        let queue = &self.core.queues[q];
        let ring = &queue.halves[direction].ring;
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
        let Some((place, row)) = self.core.registers.locate(offset) else {
            let first = self.core.registers.write_unmodelled(offset, value);
            self.tell_unmodelled(offset, "write", first);
            return;
        };
        if row.access == Access::ReadOnly {
            return;
        }
        match place {
            Place::Queue(direction, q, within) => {
                self.write_queue(direction, q, within, value, ctx);
            }
            Place::Global(direction, within) => self.write_global(direction, within, value, ctx),
            Place::Interrupt(group, within) => self.core.interrupts.write(group, within, value),
            Place::General(_) | Place::GeneralEx(_) => {
                self.core.registers.set(offset, value);
                self.reload();
            }
            Place::Notific(within) => {
                self.core.registers.set(offset, value);
                let notifications = &mut self.completion.notifications;
                notifications.reload(&self.core.registers, within);
            }
        }
        self.prefetchers.iter_mut().for_each(Prefetcher::look_again);
        self.report(ctx);
        self.core.wake_by(ctx.now, ctx);
    }

    /// Does what the registers say from now on.
    fn reload(&mut self) {
        self.core.reload();
        self.scheduler.reload(&self.core);
    }

    /// Writes a register of a half.
    fn write_global(&mut self, direction: Direction, within: u64, value: u32, ctx: &Ctx) {
        use Direction::M2s;
        let cycle = ctx.clock.cycle_at(ctx.now).0;
        let act = Strobe::from_bits(value).act();
        match (direction, within) {
            (M2s, global::M2S_RATE_LIMITER_CTRL) => {
                if act {
                    self.tokens().for_each(|tokens| tokens.restart(cycle));
                }
            }
            (M2s, global::M2S_RATE_LIMITER_CTRL_END) => {
                let bits = 8 * i64::from(RateLimitTokens::from_bits(value).bytes());
                self.tokens().for_each(|tokens| tokens.set(bits, cycle));
            }
            (M2s, global::M2S_STREAM_RATE_LIMIT_SW_CTRL) if act => {
                self.scheduler.stream_tokens().reset(cycle);
            }
            (M2s, global::M2S_DWRR_DEFICIT) => {
                self.core.registers.set(direction.global_reg(within), value);
                let credit = DwrrDeficit::from_bits(value).credit();
                self.scheduler.set_credits(i64::from(credit));
            }
            (_, global::CHANGE_STATE) => {
                self.change_state(direction, ChangeState::from_bits(value), ctx.now);
            }
            (_, global::ERR_LOG_CLEAR) if act => self.core.halves[direction].error_log = None,
            _ => {
                self.core.registers.set(direction.global_reg(within), value);
                self.reload();
            }
        }
    }

    /// The tokens of all rate limiters.
    fn tokens(&mut self) -> impl Iterator<Item = &mut TokenBucket> {
        let queues = self.core.queues.iter_mut().map(|queue| &mut queue.tokens);
        std::iter::once(self.scheduler.stream_tokens()).chain(queues)
    }

    /// Writes a register of a queue's bank.
    fn write_queue(
        &mut self,
        direction: Direction,
        q: QueueId,
        within: u64,
        value: u32,
        ctx: &mut Ctx,
    ) {
        use Direction::M2s;
        let descriptors = DescCount::from_bits(value).count();
        let act = Strobe::from_bits(value).act();
        match (within, direction) {
            (queue::DRTP_INC, _) => self.ring_doorbell(direction, q, descriptors, ctx),
            (queue::M2S_TDRDTP_INC, M2s) => {
                let ring = &mut self.core.queues[q].halves.m2s.ring;
                ring.ring_data_doorbell(descriptors);
            }
            (queue::M2S_RATE_LIMIT_SW_CTRL, M2s) => {
                if act {
                    let cycle = ctx.clock.cycle_at(ctx.now).0;
                    self.core.queues[q].tokens.reset(cycle);
                }
            }
            (queue::M2S_DWRR_SW_CTRL, M2s) => {
                if act {
                    self.scheduler.drop_credit(q);
                }
            }
            _ if within == queue::sw_ctrl(direction) => {
                self.reset_queue(direction, q, QueueSwCtrl::from_bits(value), ctx.now);
            }
            _ => {
                let offset = direction.queue_reg(q, within);
                let before = self.core.registers.get(offset);
                if let Some(change) = busy_change(within, before, value) {
                    self.note_change(direction, q, change, ctx.now);
                }
                self.core.registers.set(offset, value);
                self.core.queues[q].reload(&self.core.registers, q);
                self.scheduler.reload_queue(&self.core, q);
            }
        }
    }

    /// Descriptors of a ring are valid.
    fn ring_doorbell(&mut self, direction: Direction, q: QueueId, count: u32, ctx: &mut Ctx) {
        ctx.out.tell(|| EngineActivity::Doorbell {
            direction,
            queue: q,
            count,
        });
        let ring = &mut self.core.queues[q].halves[direction].ring;
        let refused = ring.ring_doorbell(count);
        ring.rung_at = Some(ctx.now);
        if direction == Direction::M2s {
            self.core.work.armed.set(q, ring.outstanding() > 0);
        }
        let fetchable = &mut self.prefetchers[direction].fetchable;
        fetchable.set(q, ring.to_fetch() > 0);
        self.core.counters.doorbells += 1;
        self.core.counters.doorbell_overflow += u64::from(refused);
        if refused > 0 {
            tracing::warn!(
                engine = %self.core.id, queue = q.0, ring = direction.ring_name(), refused,
                "doorbell exceeds the ring"
            );
        }
    }

    /// One half of queue `q` is being changed: takes note if it has work. It has none on an engine that aborted, or
    /// that was stopped when the queue had no packet in flight.
    pub(super) fn note_change(
        &mut self,
        direction: Direction,
        q: QueueId,
        change: Change,
        at: Instant,
    ) {
        let queue = &self.core.queues[q];
        let outstanding = queue.halves[direction].ring.outstanding();
        let idle = (self.core.halves.iter()).all(|half| half.state == UdmaState::Idle);
        let stopped = match idle {
            true => queue.packets.is_empty(),
            false => self.core.aborted(),
        };
        if outstanding == 0 || stopped {
            return;
        }
        let busy_change = BusyChange {
            engine: self.core.id,
            queue: q,
            direction,
            change,
            outstanding,
            at,
        };
        tracing::warn!("{busy_change}");
        self.core.counters.busy_changes += 1;
        if self.busy_changes.len() < RECORDS {
            self.busy_changes.push(busy_change);
        }
    }
}

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
