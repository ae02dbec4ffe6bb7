//! The engine-global registers of the M2S and S2M blocks. Offsets count from the block's start; where the halves
//! differ, a constant's name says which one it is for.

use super::declare::registers;
use super::queue::{RateLimitMask, Strobe};
use super::{Direction, rate_limit};
use crate::arch::{Arch, ArchSpec, QueueId};

/// Transactions in flight that a fresh engine allows. The sources give 128 as what drivers program;
/// as a reset value it is modelled (C), so that an engine nobody configured behaves like one a
/// driver did.
const OUTSTANDING: u8 = 128;
/// The same for the data writes of V4, and for stream acknowledgements.
const WIDE_OUTSTANDING: u16 = 256;
const STREAM_ACKS: u8 = 0x40;
/// Statistics registers.
pub const STATISTICS_WORDS: u64 = 8;

registers! {
    /// Global registers, both halves.
    GLOBAL {
        /// First of the AXI configuration registers.
        AXI = "axi" @ 0x100, INERT [6];
        /// Data bursts: `data_rd_cfg` on M2S, `data_wr_cfg` on S2M.
        DATA_BURST_CFG = "data_burst_cfg" @ 0x118, LIVE DataBurstCfg {
            /// Beats of the longest data burst; 0 for the longest there is (C).
            pub beats: u8,
            /// Not modelled.
            #[bits(24)]
            bits_31_8: u32,
        };
        /// Descriptor bursts.
        DESC_RD_CFG_3 = "desc_rd_cfg_3" @ 0x11c, LIVE DescRdCfg3 {
            /// Descriptors of the longest burst; 0 for the longest there is (C).
            pub descriptors: u8,
            /// Not modelled.
            bits_15_8: u8,
            /// Bursts end at multiples of their longest (A).
            pub always_break: bool,
            /// Not modelled.
            #[bits(15)]
            bits_31_17: u16,
        };
        /// State of the pipelines.
        STATE = "state" @ 0x200, STATUS UdmaStateReg {
            /// Completion controller.
            #[bits(2)]
            pub comp_ctrl: UdmaState,
            /// Not used.
            #[bits(2)]
            reserved_3_2: u8,
            /// Stream interface.
            #[bits(2)]
            pub stream_if: UdmaState,
            /// Not used.
            #[bits(2)]
            reserved_7_6: u8,
            /// Data read (M2S) or write (S2M).
            #[bits(2)]
            pub data: UdmaState,
            /// Not used.
            #[bits(2)]
            reserved_11_10: u8,
            /// Descriptor prefetch.
            #[bits(2)]
            pub desc_pref: UdmaState,
            /// Not used.
            #[bits(18)]
            reserved_31_14: u32,
        };
        /// A command, not a state.
        CHANGE_STATE = "change_state" @ 0x204, COMMAND ChangeState {
            /// Run.
            pub normal: bool,
            /// Stop.
            pub dis: bool,
            /// Abort.
            pub abort: bool,
            /// Not used.
            #[bits(29)]
            reserved_31_3: u32,
        };
        /// Errors that are not fatal: a set bit masks the error of that number (C: reset 0).
        ERR_LOG_MASK = "err_log_mask" @ 0x20c, LIVE;
        /// First of the four words of the error header log.
        ERR_LOG = "err_log" @ 0x214, STATUS [4];
        /// Clears the error header log.
        ERR_LOG_CLEAR = "err_log_clear" @ 0x224, COMMAND Strobe;
        /// Prefetch FIFO size.
        DESC_PREF_CFG_1 = "desc_pref_cfg_1" @ 0x300, INERT;
        /// Prefetch thresholds.
        DESC_PREF_CFG_3 = "desc_pref_cfg_3" @ 0x308, LIVE DescPrefCfg3 {
            /// Smallest burst while the queue's FIFO holds fewer descriptors than the threshold.
            #[bits(4)]
            pub min_burst_below_thr: u8,
            /// Smallest burst above the threshold.
            #[bits(4)]
            pub min_burst_above_thr: u8,
            /// Threshold in descriptors.
            pub pref_thr: u8,
            /// Not modelled.
            pub high: u16,
        };
        /// First feature register.
        FEATURES = "features" @ 0x600, INERT;
        /// Version of the DMA: the layout that drivers choose by it. Below 4, a unit has 4 queues (A).
        DMA_VERSION = "dma_version" @ 0x604, INERT = 4;
        /// The other feature registers.
        FEATURES_2 = "features_2" @ 0x608, INERT [4];
    }
}

registers! {
    /// Global registers, M2S only.
    GLOBAL_M2S {
        /// Transactions in flight.
        M2S_OSTAND_CFG = "ostand_cfg" @ 0x124, LIVE OutstandingM2s {
            /// Data reads.
            pub data_rd: u8,
            /// Descriptor reads.
            pub desc_rd: u8,
            /// Completion write requests.
            pub comp_req: u8,
            /// Completion data writes.
            pub comp_data_wr: u8,
        } = OutstandingM2s::new().with_data_rd(OUTSTANDING).with_desc_rd(OUTSTANDING).into_bits();
        /// Packet length. A fresh engine takes the longest packet that the field can say (C).
        M2S_CFG_LEN = "cfg_len" @ 0x254, LIVE CfgLen {
            /// Bytes of the longest packet.
            #[bits(20)]
            pub max_pkt_size: u32,
            /// Not used.
            #[bits(4)]
            reserved_23_20: u8,
            /// A descriptor length of 0 means 65536.
            pub encode_64k: bool,
            /// Not used.
            #[bits(7)]
            reserved_31_25: u8,
        } = CfgLen::new().with_max_pkt_size(0xf_ffff).with_encode_64k(true).into_bits();
        /// A half's stream.
        M2S_STREAM_CFG = "stream_cfg" @ 0x258, LIVE StreamCfg {
            /// Close the stream.
            pub disable: bool,
            /// Read mode (M2S); not modelled.
            pub rd_mode: bool,
            /// Not used.
            #[bits(2)]
            reserved_3_2: u8,
            /// Flush the stream (S2M); not modelled.
            pub flush: bool,
            /// Not used.
            #[bits(3)]
            reserved_7_5: u8,
            /// Fetch no descriptors (S2M); lowest bit of the read threshold on M2S.
            pub stop_prefetch: bool,
            /// Rest of the read threshold (M2S); not modelled.
            #[bits(23)]
            pub rd_th_high: u32,
        };
        /// Queues whose prefetch is enabled: every queue may prefetch at reset.
        M2S_PREF_QUEUE_EN = "pref_queue_en" @ 0x25c, LIVE PrefQueueEn {
            /// A bit for each queue.
            #[bits(default = 0xffff)]
            pub queues: u16,
            /// Not used.
            reserved_31_16: u16,
        };
        /// Prefetch arbitration. The limit of descriptors in a packet resets to the generation's (C: what the runtime
        /// packs to); 0 on S2M, which does not act on it.
        DESC_PREF_CFG_2 = "desc_pref_cfg_2" @ 0x304, LIVE DescPrefCfg2 {
            /// Descriptors of the longest packet.
            #[bits(12)]
            pub max_desc_per_pkt: u16,
            /// Not used.
            #[bits(4)]
            reserved_15_12: u8,
            /// Round robin between queues, whatever their QoS.
            #[bits(default = true)]
            pub force_rr: bool,
            /// Not used.
            #[bits(15)]
            reserved_31_17: u16,
        } => per_arch descriptor_limit;
        /// Data FIFO. Its depth resets to the beats that the driver programs (A; C as a reset value).
        M2S_DATA_CFG = "data_cfg" @ 0x310, LIVE DataCfg {
            /// Beats the data FIFO holds.
            #[bits(12)]
            pub data_fifo_depth: u16,
            /// Not used.
            #[bits(4)]
            reserved_15_12: u8,
            /// Packets the data FIFO holds.
            #[bits(12, default = 0x100)]
            pub max_pkt_limit: u16,
            /// Not used.
            #[bits(4)]
            reserved_31_28: u8,
        } => per_arch data_fifo;
        /// Deficit round robin.
        M2S_DWRR = "dwrr" @ 0x340, LIVE DwrrCfg {
            /// Deficit weighted round robin; off = round robin.
            pub en_dwrr: bool,
            /// Not used.
            #[bits(3)]
            reserved_3_1: u8,
            /// Weigh packets, not bytes.
            pub pkt_mode_en: bool,
            /// Not used.
            #[bits(3)]
            reserved_7_5: u8,
            /// Weight increment mode.
            #[bits(2, default = 2)]
            pub weight_inc: u8,
            /// Not used.
            #[bits(6)]
            reserved_15_10: u8,
            /// Increment factor, a power of two.
            #[bits(4, default = 7)]
            pub inc_factor: u8,
            /// Not used.
            #[bits(12)]
            reserved_31_20: u16,
        };
        /// Deficit round robin: writing sets every queue's credit.
        M2S_DWRR_DEFICIT = "dwrr_deficit" @ 0x344, LIVE DwrrDeficit {
            /// Credit that a write gives every queue.
            #[bits(24)]
            pub credit: u32,
            /// Not used.
            reserved_31_24: u8,
        };
        /// What the rate limiters of a unit have in common.
        M2S_RATE_LIMITER = "rate_limiter" @ 0x380, LIVE RateLimiterCfg {
            /// UDMA cycles of a short cycle.
            pub short_cycle_size: u16,
            /// Not used.
            reserved_23_16: u8,
            /// A packet costs one token, whatever its length.
            pub pkt_mode_en: bool,
            /// Not used.
            #[bits(7)]
            reserved_31_25: u8,
        };
        /// Commands to all rate limiters. The first, a [`Strobe`], restarts their cycles; the last,
        /// [`M2S_RATE_LIMITER_CTRL_END`], sets the tokens of every one of them (A).
        M2S_RATE_LIMITER_CTRL = "rate_limiter_ctrl" @ 0x384, COMMAND [2] RateLimitTokens {
            /// Tokens; that they count bytes is modelled (C).
            #[bits(24)]
            pub bytes: u32,
            /// Not used.
            reserved_31_24: u8,
        };
        /// The stream's rate limiter: the words of [`rate_limit`].
        M2S_STREAM_RATE_LIMIT = "stream_rate_limit" @ 0x3c0, LIVE [rate_limit::WORDS];
        /// The stream's rate limiter: empties the bucket.
        M2S_STREAM_RATE_LIMIT_SW_CTRL = "stream_rate_limit_sw_ctrl" @ 0x3d0, COMMAND Strobe;
        /// The stream's rate limiter: pauses that are masked off, none at reset.
        M2S_STREAM_RATE_LIMIT_MASK = "stream_rate_limit_mask" @ 0x3d4, LIVE RateLimitMask
            = RateLimitMask::from_bits(0).into_bits();
        /// Completion controller.
        M2S_COMP_CFG_1C = "comp_cfg_1c" @ 0x400, INERT [2];
        /// Completion acknowledge timeout. That of S2M has 32 bits.
        M2S_COMP_ACK_TIMEOUT = "comp_ack_timeout" @ 0x408, LIVE AckTimeoutM2s {
            /// UDMA cycles; 0 for never.
            #[bits(24, default = COMP_ACK_TIMEOUT_RESET)]
            pub cycles: u32,
            /// Not used.
            reserved_31_24: u8,
        };
        /// First statistics register.
        STATISTICS = "statistics" @ 0x500, STATUS [STATISTICS_WORDS];
    }
}

registers! {
    /// Global registers, S2M only.
    GLOBAL_S2M {
        /// Transactions in flight. Laid out unlike its M2S twin.
        S2M_OSTAND_CFG_RD = "ostand_cfg_rd" @ 0x124, LIVE OutstandingS2mRd {
            /// Descriptor reads.
            pub desc_rd: u8,
            /// Not used.
            reserved_15_8: u8,
            /// Stream acknowledgements; not modelled.
            pub stream_ack: u8,
            /// Not used.
            reserved_31_24: u8,
        } = OutstandingS2mRd::new().with_desc_rd(OUTSTANDING).with_stream_ack(STREAM_ACKS).into_bits();
        /// Writes in flight.
        S2M_OSTAND_CFG_WR = "ostand_cfg_wr" @ 0x128, LIVE OutstandingS2mWr {
            /// Data write requests.
            pub data_wr: u8,
            /// Data write beats.
            pub beats: u8,
            /// Completion write requests.
            pub comp_req: u8,
            /// Completion data beats.
            pub comp_data: u8,
        } = OutstandingS2mWr::new().with_data_wr(OUTSTANDING).into_bits();
        /// Data writes in flight: the limit from V4 on. Resets to 0 before V4, where the register limits nothing; from
        /// V4 on to what the driver programs (C as a reset value).
        S2M_OSTAND_CFG_WR_2 = "ostand_cfg_wr_2" @ 0x12c, LIVE OutstandingS2mWr2 {
            /// Data writes in flight.
            #[bits(10)]
            pub data_wr: u16,
            /// Not used.
            #[bits(22)]
            reserved_31_10: u32,
        } => per_arch wide_writes;
        /// Stream.
        S2M_STREAM_CFG = "stream_cfg" @ 0x250, LIVE StreamCfg;
        /// Queues whose prefetch is enabled.
        S2M_PREF_QUEUE_EN = "pref_queue_en" @ 0x254, LIVE PrefQueueEn;
        /// Prefetch arbitration, at the offset of its M2S twin.
        S2M_DESC_PREF_CFG_2 = "desc_pref_cfg_2" @ 0x304, INERT DescPrefCfg2;
        /// Not modelled.
        S2M_DESC_PREF_CFG_4 = "desc_pref_cfg_4" @ 0x30c, INERT;
        /// Completion controller.
        S2M_COMP_CFG_1C = "comp_cfg_1c" @ 0x380, LIVE CompCfg1cS2m {
            /// Words of a completion record, 2 to 8.
            #[bits(4, default = 4)]
            pub desc_size: u8,
            /// Not modelled: `q_promotion[12]`, `force_rr[16]`.
            #[bits(28)]
            bits_31_4: u32,
        };
        /// Completion controller.
        S2M_COMP_CFG_2C = "comp_cfg_2c" @ 0x384, INERT;
        /// Completion acknowledge timeout in cycles.
        S2M_COMP_ACK_TIMEOUT = "comp_ack_timeout" @ 0x38c, LIVE = COMP_ACK_TIMEOUT_RESET;
        /// Statistics, at the offset of their M2S twins.
        S2M_STATISTICS = "statistics" @ 0x500, STATUS [STATISTICS_WORDS];
    }
}

/// Reset value of the completion acknowledge timeouts, in cycles.
const COMP_ACK_TIMEOUT_RESET: u32 = 100_000;
/// Last of the commands of [`M2S_RATE_LIMITER_CTRL`].
pub const M2S_RATE_LIMITER_CTRL_END: u64 = M2S_RATE_LIMITER_CTRL + 4;

fn descriptor_limit(spec: &ArchSpec) -> u32 {
    DescPrefCfg2::new()
        .with_max_desc_per_pkt(spec.limits.tx_descs_per_packet as u16)
        .into_bits()
}

fn data_fifo(spec: &ArchSpec) -> u32 {
    let depth = match spec.arch {
        Arch::V2 => 1024,
        Arch::V3 | Arch::V4 => 2296,
    };
    DataCfg::new().with_data_fifo_depth(depth).into_bits()
}

fn wide_writes(spec: &ArchSpec) -> u32 {
    let writes = match spec.caps.wide_write_limit {
        true => WIDE_OUTSTANDING,
        false => 0,
    };
    OutstandingS2mWr2::new().with_data_wr(writes).into_bits()
}

impl PrefQueueEn {
    /// Whether a queue's prefetch is enabled.
    pub const fn allows(self, queue: QueueId) -> bool {
        self.queues() >> queue.0 & 1 == 1
    }

    /// The same with a queue's prefetch enabled.
    pub const fn with(self, queue: QueueId) -> PrefQueueEn {
        self.with_queues(self.queues() | 1 << queue.0)
    }
}

/// What a pipeline of a UDMA half is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdmaState {
    /// Off.
    Idle,
    /// Running.
    Normal,
    /// Stopped by an error.
    Abort,
    /// A code with no meaning.
    Reserved(u8),
}

impl UdmaState {
    /// Code in the register.
    pub const fn into_bits(self) -> u8 {
        match self {
            UdmaState::Idle => 0,
            UdmaState::Normal => 1,
            UdmaState::Abort => 2,
            UdmaState::Reserved(raw) => raw,
        }
    }

    /// Meaning of a code.
    pub const fn from_bits(raw: u8) -> UdmaState {
        match raw {
            0 => UdmaState::Idle,
            1 => UdmaState::Normal,
            2 => UdmaState::Abort,
            raw => UdmaState::Reserved(raw),
        }
    }
}

/// Stream configuration, [`StreamCfg`], in either half.
pub const fn stream_cfg(direction: Direction) -> u64 {
    match direction {
        Direction::M2s => M2S_STREAM_CFG,
        Direction::S2m => S2M_STREAM_CFG,
    }
}

/// Completion acknowledge timeout, in either half.
pub const fn comp_ack_timeout(direction: Direction) -> u64 {
    match direction {
        Direction::M2s => M2S_COMP_ACK_TIMEOUT,
        Direction::S2m => S2M_COMP_ACK_TIMEOUT,
    }
}

/// Queues whose prefetch is enabled, in either half.
pub const fn pref_queue_en(direction: Direction) -> u64 {
    match direction {
        Direction::M2s => M2S_PREF_QUEUE_EN,
        Direction::S2m => S2M_PREF_QUEUE_EN,
    }
}
