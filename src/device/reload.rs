//! From registers to what the stations use: done when a register changes, so that nothing on the hot
//! path looks at the register file.

use super::arbiter::{Mode, Share};
use super::completion_ring::TX_RECORD;
use super::engine::Engine;
use super::fabric::BEAT_BYTES;
use super::queue::Limits;
use super::rate_limit::RateLimit;
use crate::arch::regs::{
    self, CfgLen, CompCfg, DataCfg, DescPrefCfg, DescPrefCfg2, DescPrefCfg3, Direction, DwrrCfg,
    OutstandingM2s, OutstandingS2mRd, OutstandingS2mWr, OutstandingS2mWr2, QueueCfg, QueueDwrrCfg1,
    RateLimitCfg1, RateLimitMask, RateLimiterCfg, StreamCfg, general, global, queue, rate_limit,
};
use crate::desc::PacketTracker;
use crate::units::Addr;

impl Engine {
    pub(super) fn reload_all(&mut self) {
        self.reload_limits();
        for q in 0..self.queues.len() as u8 {
            self.reload_queue(q);
        }
    }

    fn reload_limits(&mut self) {
        use Direction::{M2s, S2m};
        let get = |direction, offset| self.registers.global(direction, offset);
        let m2s = OutstandingM2s::from_bits(get(M2s, global::M2S_OSTAND_CFG));
        let s2m_reads = OutstandingS2mRd::from_bits(get(S2m, global::S2M_OSTAND_CFG_RD));
        let s2m = OutstandingS2mWr::from_bits(get(S2m, global::S2M_OSTAND_CFG_WR));
        let wide = OutstandingS2mWr2::from_bits(get(S2m, global::S2M_OSTAND_CFG_WR_2));
        let data = DataCfg::from_bits(get(M2s, global::M2S_DATA_CFG));
        let dwrr = DwrrCfg::from_bits(get(M2s, global::M2S_DWRR));
        let streams = Direction::ALL.map(|direction| {
            let stream = get(direction, global::stream_cfg(direction));
            (StreamCfg::from_bits(stream), direction)
        });
        let fetch = Direction::ALL.map(|direction| {
            let bursts = get(direction, global::DESC_RD_CFG_3);
            let most = u64::from(bursts & BURST_MASK);
            let breaks = bursts & ALWAYS_BREAK != 0;
            let config = u64::from(self.timing.descriptor_burst);
            let most = if most == 0 { config } else { most.min(config) };
            (
                most,
                breaks,
                DescPrefCfg3::from_bits(get(direction, global::DESC_PREF_CFG_3)),
            )
        });
        let stream_limit = self.rate_limit(global::M2S_STREAM_RATE_LIMIT);
        let stream_mask = RateLimitMask::from_bits(get(M2s, global::M2S_STREAM_RATE_LIMIT_MASK));
        let length = CfgLen::from_bits(get(M2s, global::M2S_CFG_LEN));
        let descriptors = DescPrefCfg2::from_bits(get(M2s, global::DESC_PREF_CFG_2));
        self.limits = Limits {
            data_reads: usize::from(m2s.data_rd()),
            descriptor_reads: [usize::from(m2s.desc_rd()), usize::from(s2m_reads.desc_rd())],
            writes: match self.spec.caps.wide_write_limit {
                true => usize::from(wide.data_wr()),
                false => usize::from(s2m.data_wr()),
            },
            // A FIFO that could not hold two reads would never fill a write burst (C).
            fifo_bytes: (u64::from(data.data_fifo_depth()) * u64::from(BEAT_BYTES))
                .max(2 * u64::from(self.timing.burst_bytes)),
            packet_bytes: u64::from(length.max_pkt_size()),
            encode_64k: length.encode_64k(),
            stream_disabled: streams.map(|(stream, _)| stream.disable()),
            prefetch_stopped: streams
                .map(|(stream, direction)| direction == S2m && stream.stop_prefetch()),
            packet_descriptors: u32::from(descriptors.max_desc_per_pkt()),
            packets: usize::from(data.max_pkt_limit()),
            burst_bytes: Direction::ALL.map(|direction| self.burst_bytes(direction)),
            fetch_most: fetch.map(|(most, _, _)| most),
            fetch_breaks: fetch.map(|(_, breaks, _)| breaks),
            fetch_least_above: fetch.map(|(_, _, rules)| u64::from(rules.min_burst_above_thr())),
            fetch_least_below: fetch.map(|(_, _, rules)| u64::from(rules.min_burst_below_thr())),
            prefetch_threshold: fetch.map(|(_, _, rules)| usize::from(rules.pref_thr())),
            arbitration: Mode {
                dwrr: dwrr.en_dwrr(),
                packets: dwrr.pkt_mode_en(),
                inc_factor: dwrr.inc_factor(),
            },
            stream_rate_limit: RateLimit {
                enabled: stream_limit.enabled && !stream_mask.internal_rate_limiter(),
                ..stream_limit
            },
            rate_limit_packets: RateLimiterCfg::from_bits(get(M2s, global::M2S_RATE_LIMITER))
                .pkt_mode_en(),
            ack_timeout: [
                u64::from(get(M2s, global::M2S_COMP_ACK_TIMEOUT) & M2S_ACK_TIMEOUT_MASK),
                u64::from(get(S2m, global::S2M_COMP_ACK_TIMEOUT)),
            ],
            axi_timeout: u64::from(self.registers.get(regs::GEN + general::AXI_CFG_1)),
        };
        for queue in &mut self.queues {
            if !queue.tracker.inside() {
                queue.tracker = PacketTracker::new(self.limits.packet_descriptors);
            }
        }
    }

    /// Longest data burst: what the half's register asks for, no more than the config allows.
    fn burst_bytes(&self, direction: Direction) -> u32 {
        let beats = self.registers.global(direction, global::DATA_BURST_CFG) & BURST_MASK;
        match beats.checked_ilog2() {
            None => self.timing.burst_bytes,
            Some(power) => self.timing.burst_bytes.min(BEAT_BYTES << power),
        }
    }

    /// The rate limiter whose first word is at M2S offset `offset`.
    fn rate_limit(&self, offset: u64) -> RateLimit {
        let get = |offset| self.registers.get(Direction::M2s.block() + offset);
        let cfg = RateLimitCfg1::from_bits(get(offset + rate_limit::CFG_1));
        let common = RateLimiterCfg::from_bits(get(global::M2S_RATE_LIMITER));
        let long = get(offset + rate_limit::CYCLE) & rate_limit::CYCLE_MASK;
        let tokens = |word| i64::from(get(offset + word) & rate_limit::TOKEN_SIZE_MASK);
        RateLimit {
            enabled: cfg.en(),
            paused: cfg.pause(),
            burst_bits: 8 * i64::from(cfg.max_burst_size()),
            // A cycle of no length is taken for one of length 1 (C).
            short_cycles: u64::from(common.short_cycle_size().max(1)),
            long_shorts: u64::from(long.max(1)),
            short_bits: tokens(rate_limit::TOKEN_SIZE_2),
            long_bits: tokens(rate_limit::TOKEN_SIZE_1),
        }
    }

    pub(super) fn reload_queue(&mut self, q: u8) {
        let share = |offset| self.registers.queue(Direction::M2s, q, offset);
        let dwrr = QueueDwrrCfg1::from_bits(share(queue::M2S_DWRR_CFG_1));
        self.shares[usize::from(q)] = Share {
            // Classes exist where the generation has them; elsewhere it is plain round robin.
            qos: match self.spec.caps.queue_qos {
                true => (share(queue::M2S_DWRR_CFG_2) & BYTE_MASK) as u8,
                false => 0,
            },
            strict: dwrr.strict(),
            weight: (share(queue::M2S_DWRR_CFG_3) & BYTE_MASK) as u8,
            max_deficit: i64::from(dwrr.max_deficit_cnt()),
        };
        let bank = Direction::M2s.queue_reg(q, queue::M2S_RATE_LIMIT);
        let limit = self.rate_limit(bank - Direction::M2s.block());
        let mask = RateLimitMask::from_bits(share(queue::M2S_RATE_LIMIT_MASK));
        self.queues[usize::from(q)].rate_limit = RateLimit {
            enabled: limit.enabled && !mask.internal_rate_limiter(),
            ..limit
        };
        for direction in Direction::ALL {
            let get = |offset| self.registers.queue(direction, q, offset);
            let queue = &mut self.queues[usize::from(q)];
            let ring = &mut queue.rings[direction as usize];
            ring.base = Addr(
                u64::from(get(queue::DRBP_HIGH)) << 32
                    | u64::from(get(queue::DRBP_LOW) & RING_BASE_MASK),
            );
            ring.length = get(queue::DRL) & RING_LENGTH_MASK;
            let completions = &mut queue.completions[direction as usize];
            let cfg = CompCfg::from_bits(get(queue::comp_cfg(direction)));
            completions.enabled = cfg.en_comp_ring_update();
            completions.coalesces = !cfg.dis_comp_coal();
            completions.reports_head =
                self.registers.get(regs::GEN + general::SPARE) & SPARE_NO_HEAD == 0;
            completions.base = Addr(
                u64::from(get(queue::CRBP_HIGH)) << 32
                    | u64::from(get(queue::CRBP_LOW) & RING_BASE_MASK),
            );
            completions.length = ring.length;
            completions.record_bytes = match direction {
                Direction::M2s => TX_RECORD,
                Direction::S2m => {
                    let words = self.registers.global(direction, global::S2M_COMP_CFG_1C);
                    4 * (words & RECORD_WORDS_MASK).clamp(2, 8)
                }
            };
            let cfg = QueueCfg::from_bits(get(queue::CFG));
            let enabled = self
                .registers
                .global(direction, global::pref_queue_en(direction));
            queue.prefetch_on[direction as usize] = cfg.en_pref() && enabled >> q & 1 == 1;
            queue.stream_on[direction as usize] = cfg.en_scheduling();
            queue.allow_small[direction as usize] = cfg.allow_lt_min_pref();
            queue.fifo_depth[direction as usize] =
                usize::from(DescPrefCfg::from_bits(get(queue::DESC_PREF_CFG)).fifo_depth());
            if direction == Direction::M2s {
                queue.dmb_masked =
                    RateLimitMask::from_bits(get(queue::M2S_RATE_LIMIT_MASK)).internal_pause_dmb();
            }
        }
    }
}

/// Field [23:0] of a doorbell and of a ring length.
pub(super) const DOORBELL_MASK: u32 = 0xff_ffff;
const RING_LENGTH_MASK: u32 = 0xff_ffff;
/// Bit 0 of the first spare register: completion heads are not reported (A).
const SPARE_NO_HEAD: u32 = 1;
/// Ring bases are 64-byte aligned; the low bits do not exist.
const RING_BASE_MASK: u32 = !0x3f;
/// Field [7:0] of the burst registers, and of a queue's class and weight.
const BURST_MASK: u32 = 0xff;
const BYTE_MASK: u32 = 0xff;
/// Field [23:0] of the acknowledgement timeout of M2S: that of S2M has 32 bits.
const M2S_ACK_TIMEOUT_MASK: u32 = 0xff_ffff;
/// Field [23:0] of `dwrr_deficit`.
pub(super) const DEFICIT_MASK: u32 = 0xff_ffff;
/// Bursts of descriptors break at multiples of their longest, bit 16 (A).
const ALWAYS_BREAK: u32 = 1 << 16;
/// Field [3:0] of the S2M completion controller: words of a record, 2 to 8.
const RECORD_WORDS_MASK: u32 = 0xf;
