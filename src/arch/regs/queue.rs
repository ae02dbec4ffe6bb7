//! A queue's bank. Offsets count from its start; where the halves differ, a constant's name says which one it is for.

use super::declare::registers;
use super::{Direction, rate_limit};

registers! {
    /// A queue's bank, both halves.
    QUEUE {
        /// Slice of the prefetch FIFO that belongs to a queue.
        DESC_PREF_CFG = "desc_pref_cfg" @ 0x00, LIVE DescPrefCfg {
            /// Descriptors the queue's slice holds.
            #[bits(12, default = 0x80)]
            pub fifo_depth: u16,
            /// Not used.
            #[bits(4)]
            reserved_15_12: u8,
            /// First entry of the slice.
            #[bits(11)]
            pub fifo_start: u16,
            /// Not used.
            #[bits(5)]
            reserved_31_27: u8,
        };
        /// Enables and AXI attributes.
        CFG = "cfg" @ 0x20, LIVE QueueCfg {
            /// Not modelled.
            pub low: u16,
            /// Prefetch descriptors.
            pub en_pref: bool,
            /// Let packets proceed: `en_scheduling` on M2S, `en_stream` on S2M.
            pub en_scheduling: bool,
            /// Not modelled.
            #[bits(2)]
            bits_19_18: u8,
            /// Prefetch even below the minimum burst.
            pub allow_lt_min_pref: bool,
            /// Not modelled.
            #[bits(3)]
            bits_23_21: u8,
            /// AXI cache attributes of writes.
            #[bits(4, default = 3)]
            pub awcache: u8,
            /// AXI quality of service.
            #[bits(3)]
            pub qos: u8,
            /// Not modelled.
            bit_31: bool,
        };
        /// What the queue is doing.
        STATUS = "status" @ 0x24, STATUS QueueStatus {
            /// Descriptors between the current and the tail pointer.
            #[bits(25)]
            pub q_used: u32,
            /// Not used.
            #[bits(3)]
            reserved_27_25: u8,
            /// Prefetch is active.
            pub prefetch: bool,
            /// Scheduler (M2S) or receive (S2M) is active.
            pub scheduler: bool,
            /// Suspended on a DMB (M2S).
            pub q_dmb: bool,
            /// The ring is full.
            pub q_full: bool,
        };
        /// The low half of a ring's base. Rings are aligned to 64 bytes.
        DRBP_LOW = "drbp_low" @ 0x28, LIVE RingBaseLow {
            /// Not used.
            #[bits(6)]
            reserved_5_0: u8,
            /// Bits 31 to 6 of the address.
            #[bits(26)]
            pub high: u32,
        };
        /// Ring base, high half.
        DRBP_HIGH = "drbp_high" @ 0x2c, LIVE;
        /// A number of descriptors: the length of a queue's rings, and what its doorbells add.
        DRL = "drl" @ 0x30, LIVE DescCount {
            /// Descriptors.
            #[bits(24)]
            pub count: u32,
            /// Not used.
            reserved_31_24: u8,
        };
        /// A ring pointer, an index with the phase of its lap; here the head: next descriptor to prefetch.
        DRHP = "drhp" @ 0x34, STATUS RingPointer {
            /// Descriptor index in the ring.
            #[bits(24)]
            pub index: u32,
            /// Not used.
            #[bits(6)]
            reserved_29_24: u8,
            /// 2-bit phase of the lap; the first lap is 1.
            #[bits(2, default = 1)]
            pub ring_id: u8,
        };
        /// Doorbell: adds the written number of descriptors to the tail.
        DRTP_INC = "drtp_inc" @ 0x38, COMMAND DescCount;
        /// Tail.
        DRTP = "drtp" @ 0x3c, STATUS RingPointer;
        /// Descriptor being processed.
        DCP = "dcp" @ 0x40, STATUS RingPointer;
        /// Completion ring base, low half.
        CRBP_LOW = "crbp_low" @ 0x44, LIVE RingBaseLow;
        /// Completion ring base, high half.
        CRBP_HIGH = "crbp_high" @ 0x48, LIVE;
        /// Completion ring head.
        CRHP = "crhp" @ 0x4c, STATUS RingPointer;
        /// Completion ring head before coalescing.
        CRHP_INTERNAL = "crhp_internal" @ 0x50, STATUS RingPointer;
    }
}

registers! {
    /// A queue's bank, M2S only.
    QUEUE_M2S {
        /// Rate limiter: the words of [`rate_limit`].
        M2S_RATE_LIMIT = "rate_limit" @ 0x60, LIVE [rate_limit::WORDS];
        /// A register whose bit 0 is a command (A); here it empties the rate limiter's bucket.
        M2S_RATE_LIMIT_SW_CTRL = "rate_limit_sw_ctrl" @ 0x70, COMMAND Strobe {
            /// Acts.
            pub act: bool,
            /// Not used.
            #[bits(31)]
            reserved_31_1: u32,
        };
        /// Pauses that are masked off.
        M2S_RATE_LIMIT_MASK = "rate_limit_mask" @ 0x74, LIVE RateLimitMask {
            /// External rate limiter.
            #[bits(default = true)]
            pub external_rate_limiter: bool,
            /// Internal rate limiter.
            #[bits(default = true)]
            pub internal_rate_limiter: bool,
            /// The pause that makes DMB work. Set at reset: **clear it, or DMB does nothing**.
            #[bits(default = true)]
            pub internal_pause_dmb: bool,
            /// External pause.
            pub external_pause: bool,
            /// Not used.
            #[bits(28)]
            reserved_31_4: u32,
        };
        /// Deficit round robin: credit and class.
        M2S_DWRR_CFG_1 = "dwrr_cfg_1" @ 0x80, LIVE QueueDwrrCfg1 {
            /// Most credit the queue saves up; 0 for no bound (C).
            #[bits(24)]
            pub max_deficit_cnt: u32,
            /// Goes before the queues that share by weight.
            pub strict: bool,
            /// Gains no credit.
            pub pause: bool,
            /// Not used.
            #[bits(6)]
            reserved_31_26: u8,
        };
        /// Deficit round robin: class.
        M2S_DWRR_CFG_2 = "dwrr_cfg_2" @ 0x84, LIVE QueueDwrrCfg2 {
            /// Class of the queue.
            pub q_qos: u8,
            /// Not used.
            #[bits(24)]
            reserved_31_8: u32,
        };
        /// Deficit round robin: weight.
        M2S_DWRR_CFG_3 = "dwrr_cfg_3" @ 0x88, LIVE QueueDwrrCfg3 {
            /// Weight of the queue.
            pub weight: u8,
            /// Not used.
            #[bits(24)]
            reserved_31_8: u32,
        };
        /// Deficit round robin: clears the queue's credit.
        M2S_DWRR_SW_CTRL = "dwrr_sw_ctrl" @ 0x8c, COMMAND Strobe;
        /// Completion ring. On S2M its update is on at reset ([`CompCfg::S2M_RESET`]).
        M2S_COMP_CFG = "comp_cfg" @ 0xa0, LIVE CompCfg {
            /// Write completions to the completion ring.
            pub en_comp_ring_update: bool,
            /// Write each completion by itself.
            pub dis_comp_coal: bool,
            /// Not modelled.
            #[bits(30)]
            bits_31_2: u32,
        };
        /// Reset strobes: writing 1 resets.
        M2S_SW_CTRL = "q_sw_ctrl" @ 0xb0, COMMAND QueueSwCtrl {
            /// Forget a pending DMB.
            pub rst_dmb: bool,
            /// Tail pointer to 0.
            pub rst_tail: bool,
            /// Head pointer to 0, first lap.
            pub rst_head: bool,
            /// Current pointer to 0.
            pub rst_current: bool,
            /// Not used.
            #[bits(4)]
            reserved_7_4: u8,
            /// The whole queue.
            pub rst_q: bool,
            /// Not used.
            #[bits(23)]
            reserved_31_9: u32,
        };
        /// Packets sent.
        M2S_TX_PKT = "q_tx_pkt" @ 0xc0, STATUS;
        /// Independent data tail, doorbell.
        M2S_TDRDTP_INC = "tdrdtp_inc" @ 0xe0, COMMAND DescCount, since V3;
        /// Independent data tail.
        M2S_TDRDTP = "tdrdtp" @ 0xe4, STATUS RingPointer, since V3;
    }
}

registers! {
    /// A queue's bank, S2M only.
    QUEUE_S2M {
        /// Completion ring.
        S2M_COMP_CFG = "comp_cfg" @ 0x54, LIVE CompCfg = CompCfg::S2M_RESET.into_bits();
        /// Reset strobes.
        S2M_SW_CTRL = "q_sw_ctrl" @ 0x64, COMMAND QueueSwCtrl;
        /// Packets received.
        S2M_RX_PKT = "q_rx_pkt" @ 0x68, STATUS;
    }
}

impl RingBaseLow {
    /// Bits 31 to 0 of the address.
    pub const fn address(self) -> u32 {
        self.high() << 6
    }
}

impl CompCfg {
    /// Reset value on S2M.
    pub const S2M_RESET: CompCfg = CompCfg::new().with_en_comp_ring_update(true);
}

/// What a user process may not write through the BAR, in every queue's bank of both halves
/// (A: the kernel driver's list).
pub const USER_BLOCKED: [u64; 5] = [DRBP_LOW, DRBP_HIGH, DRTP_INC, CRBP_LOW, CRBP_HIGH];

/// Reset strobes of either half.
pub const fn sw_ctrl(direction: Direction) -> u64 {
    match direction {
        Direction::M2s => M2S_SW_CTRL,
        Direction::S2m => S2M_SW_CTRL,
    }
}

/// Completion ring configuration of either half.
pub const fn comp_cfg(direction: Direction) -> u64 {
    match direction {
        Direction::M2s => M2S_COMP_CFG,
        Direction::S2m => S2M_COMP_CFG,
    }
}
