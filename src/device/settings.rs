//! What the registers of an engine say to its stations: read when a register changes, so that nothing on the
//! hot path looks at the register file.

use super::arbiter::{Mode, Share};
use super::queue::{Queue, QueueHalf};
use super::rate_limit::RateLimit;
use super::registers::Registers;
use super::request::BEAT_BYTES;
use crate::arch::regs::{
    self, AckTimeoutM2s, CfgLen, CompCfg, CompCfg1cS2m, DataBurstCfg, DataCfg, DescCount,
    DescPrefCfg, DescPrefCfg2, DescPrefCfg3, DescRdCfg3, Direction, DwrrCfg, OutstandingM2s,
    OutstandingS2mRd, OutstandingS2mWr, OutstandingS2mWr2, PrefQueueEn, QueueCfg, QueueDwrrCfg1,
    QueueDwrrCfg2, QueueDwrrCfg3, RateLimitCfg1, RateLimitCycle, RateLimitFill, RateLimitMask,
    RateLimiterCfg, RingBaseLow, Spare, StreamCfg, general, global, queue, rate_limit,
};
use crate::arch::{ArchSpec, QueueId};
use crate::config::EngineConfig;
use crate::desc::CompletionRecord;
use crate::units::Addr;

/// Engine-wide limits, from the registers.
#[derive(Default)]
pub(super) struct Limits {
    /// Data reads and writes on their way.
    pub data_reads: usize,
    pub writes: usize,
    pub fifo_bytes: u64,
    pub packet_bytes: u64,
    /// Whether a length of 0 means 65536; if not, it is an error (C).
    pub encode_64k: bool,
    pub packet_descriptors: u32,
    /// Packets in flight.
    pub packets: usize,
    /// How the queues share the stream, and the stream's own rate limiter.
    pub arbitration: Mode,
    pub stream_rate_limit: RateLimit,
    /// A packet costs a rate limiter one token.
    pub rate_limit_packets: bool,
    /// Cycles after which an AXI access that is not answered is an error; 0 for never.
    pub axi_timeout: u64,
}

/// Limits of one half, from the registers.
#[derive(Default)]
pub(super) struct HalfLimits {
    /// Descriptor fetches on their way.
    pub descriptor_reads: usize,
    /// M2S starts no packet, S2M takes no Rx descriptor.
    pub stream_disabled: bool,
    /// The half fetches no descriptor.
    pub prefetch_stopped: bool,
    /// Bytes of a data burst, a power of two.
    pub burst_bytes: u32,
    /// Descriptors of a fetch, at most, and whether one ends at multiples of that in the ring.
    pub fetch_most: u64,
    pub fetch_breaks: bool,
    /// Descriptors of a fetch, at least: once the queue's FIFO holds `prefetch_threshold` descriptors, and below that.
    pub fetch_least_above: u64,
    pub fetch_least_below: u64,
    pub prefetch_threshold: usize,
    /// Cycles after which a packet whose data finds no Rx descriptor is an error; 0 for never.
    pub ack_timeout: u64,
}

impl Limits {
    /// The limits that the registers set.
    pub fn read(registers: &Registers, spec: &ArchSpec, timing: &EngineConfig) -> Limits {
        use Direction::{M2s, S2m};
        let get = |direction, offset| registers.global(direction, offset);
        let reads = OutstandingM2s::from_bits(get(M2s, global::M2S_OSTAND_CFG));
        let narrow = OutstandingS2mWr::from_bits(get(S2m, global::S2M_OSTAND_CFG_WR));
        let wide = OutstandingS2mWr2::from_bits(get(S2m, global::S2M_OSTAND_CFG_WR_2));
        let data = DataCfg::from_bits(get(M2s, global::M2S_DATA_CFG));
        let dwrr = DwrrCfg::from_bits(get(M2s, global::M2S_DWRR));
        let stream_limit = rate_limit(registers, global::M2S_STREAM_RATE_LIMIT);
        let stream_mask = RateLimitMask::from_bits(get(M2s, global::M2S_STREAM_RATE_LIMIT_MASK));
        let length = CfgLen::from_bits(get(M2s, global::M2S_CFG_LEN));
        let descriptors = DescPrefCfg2::from_bits(get(M2s, global::DESC_PREF_CFG_2));
        let rate_limiter = RateLimiterCfg::from_bits(get(M2s, global::M2S_RATE_LIMITER));
        Limits {
            data_reads: usize::from(reads.data_rd()),
            writes: match spec.caps.wide_write_limit {
                true => usize::from(wide.data_wr()),
                false => usize::from(narrow.data_wr()),
            },
            // A FIFO that could not hold two reads would never fill a write burst (C).
            fifo_bytes: (u64::from(data.data_fifo_depth()) * u64::from(BEAT_BYTES))
                .max(2 * u64::from(timing.burst_bytes)),
            packet_bytes: u64::from(length.max_pkt_size()),
            encode_64k: length.encode_64k(),
            packet_descriptors: u32::from(descriptors.max_desc_per_pkt()),
            packets: usize::from(data.max_pkt_limit()),
            arbitration: Mode {
                dwrr: dwrr.en_dwrr(),
                packets: dwrr.pkt_mode_en(),
                inc_factor: dwrr.inc_factor(),
            },
            stream_rate_limit: RateLimit {
                enabled: stream_limit.enabled && !stream_mask.internal_rate_limiter(),
                ..stream_limit
            },
            rate_limit_packets: rate_limiter.pkt_mode_en(),
            axi_timeout: u64::from(registers.get(regs::GEN + general::AXI_CFG_1)),
        }
    }
}

impl HalfLimits {
    /// The limits that the registers set for a half.
    pub fn read(registers: &Registers, direction: Direction, timing: &EngineConfig) -> HalfLimits {
        let get = |offset| registers.global(direction, offset);
        let stream = StreamCfg::from_bits(get(global::stream_cfg(direction)));
        let bursts = DescRdCfg3::from_bits(get(global::DESC_RD_CFG_3));
        let fetch = DescPrefCfg3::from_bits(get(global::DESC_PREF_CFG_3));
        let longest = u64::from(timing.descriptor_burst);
        let ack_timeout = get(global::comp_ack_timeout(direction));
        HalfLimits {
            descriptor_reads: match direction {
                Direction::M2s => {
                    usize::from(OutstandingM2s::from_bits(get(global::M2S_OSTAND_CFG)).desc_rd())
                }
                Direction::S2m => usize::from(
                    OutstandingS2mRd::from_bits(get(global::S2M_OSTAND_CFG_RD)).desc_rd(),
                ),
            },
            stream_disabled: stream.disable(),
            prefetch_stopped: direction == Direction::S2m && stream.stop_prefetch(),
            burst_bytes: burst_bytes(DataBurstCfg::from_bits(get(global::DATA_BURST_CFG)), timing),
            fetch_most: match u64::from(bursts.descriptors()) {
                0 => longest,
                most => most.min(longest),
            },
            fetch_breaks: bursts.always_break(),
            fetch_least_above: u64::from(fetch.min_burst_above_thr()),
            fetch_least_below: u64::from(fetch.min_burst_below_thr()),
            prefetch_threshold: usize::from(fetch.pref_thr()),
            ack_timeout: match direction {
                Direction::M2s => AckTimeoutM2s::from_bits(ack_timeout).cycles().into(),
                Direction::S2m => ack_timeout.into(),
            },
        }
    }
}

/// Longest data burst: what the half's register asks for, no more than the config allows.
fn burst_bytes(asked: DataBurstCfg, timing: &EngineConfig) -> u32 {
    match asked.beats().checked_ilog2() {
        None => timing.burst_bytes,
        Some(power) => timing.burst_bytes.min(BEAT_BYTES << power),
    }
}

/// The rate limiter whose first word is at M2S offset `offset`.
fn rate_limit(registers: &Registers, offset: u64) -> RateLimit {
    let get = |offset| registers.global(Direction::M2s, offset);
    let cfg = RateLimitCfg1::from_bits(get(offset + rate_limit::CFG_1));
    let common = RateLimiterCfg::from_bits(get(global::M2S_RATE_LIMITER));
    let long = RateLimitCycle::from_bits(get(offset + rate_limit::CYCLE));
    let fill = |word| i64::from(RateLimitFill::from_bits(get(offset + word)).bits());
    RateLimit {
        enabled: cfg.en(),
        paused: cfg.pause(),
        burst_bits: 8 * i64::from(cfg.max_burst_size()),
        // A cycle of no length is taken for one of length 1 (C).
        short_cycles: u64::from(common.short_cycle_size().max(1)),
        long_shorts: u64::from(long.short_cycles().max(1)),
        short_bits: fill(rate_limit::TOKEN_SIZE_2),
        long_bits: fill(rate_limit::TOKEN_SIZE_1),
    }
}

impl Share {
    /// How a queue takes part in the arbitration.
    pub fn read(registers: &Registers, q: QueueId, spec: &ArchSpec) -> Share {
        let get = |offset| registers.queue(Direction::M2s, q, offset);
        let dwrr = QueueDwrrCfg1::from_bits(get(queue::M2S_DWRR_CFG_1));
        Share {
            // Classes exist where the generation has them; elsewhere it is plain round robin.
            qos: match spec.caps.queue_qos {
                true => QueueDwrrCfg2::from_bits(get(queue::M2S_DWRR_CFG_2)).q_qos(),
                false => 0,
            },
            strict: dwrr.strict(),
            weight: QueueDwrrCfg3::from_bits(get(queue::M2S_DWRR_CFG_3)).weight(),
            max_deficit: i64::from(dwrr.max_deficit_cnt()),
        }
    }
}

impl Queue {
    /// Does what the registers of queue `q` say from now on.
    pub fn reload(&mut self, registers: &Registers, q: QueueId) {
        let mask = registers.queue(Direction::M2s, q, queue::M2S_RATE_LIMIT_MASK);
        let mask = RateLimitMask::from_bits(mask);
        let bank = Direction::M2s.queue_reg(q, queue::M2S_RATE_LIMIT);
        let limit = rate_limit(registers, bank - Direction::M2s.block());
        self.rate_limit = RateLimit {
            enabled: limit.enabled && !mask.internal_rate_limiter(),
            ..limit
        };
        self.dmb_masked = mask.internal_pause_dmb();
        for direction in Direction::ALL {
            self.halves[direction].reload(registers, direction, q);
        }
    }
}

impl QueueHalf {
    fn reload(&mut self, registers: &Registers, direction: Direction, q: QueueId) {
        let get = |offset| registers.queue(direction, q, offset);
        let base = |high, low| {
            let low = RingBaseLow::from_bits(get(low)).address();
            Addr(u64::from(get(high)) << 32 | u64::from(low))
        };
        self.ring.base = base(queue::DRBP_HIGH, queue::DRBP_LOW);
        self.ring.length = DescCount::from_bits(get(queue::DRL)).count();
        let completions = &mut self.completions;
        let cfg = CompCfg::from_bits(get(queue::comp_cfg(direction)));
        completions.enabled = cfg.en_comp_ring_update();
        completions.coalesces = !cfg.dis_comp_coal();
        let spare = Spare::from_bits(registers.get(regs::GEN + general::SPARE));
        completions.reports_head = !spare.no_comp_head();
        completions.base = base(queue::CRBP_HIGH, queue::CRBP_LOW);
        completions.length = self.ring.length;
        completions.record_bytes = match direction {
            Direction::M2s => CompletionRecord::TX_BYTES,
            Direction::S2m => {
                let cfg = registers.global(direction, global::S2M_COMP_CFG_1C);
                let words = CompCfg1cS2m::from_bits(cfg).desc_size();
                4 * u32::from(words).clamp(2, 8)
            }
        };
        let cfg = QueueCfg::from_bits(get(queue::CFG));
        let enabled =
            PrefQueueEn::from_bits(registers.global(direction, global::pref_queue_en(direction)));
        self.prefetch_on = cfg.en_pref() && enabled.allows(q);
        self.stream_on = cfg.en_scheduling();
        self.allow_small = cfg.allow_lt_min_pref();
        self.fifo_depth =
            usize::from(DescPrefCfg::from_bits(get(queue::DESC_PREF_CFG)).fifo_depth());
    }
}
