//! Register layout of a UDMA unit (`docs/hardware.md`, "Registers"): offsets, field layouts and
//! reset values, error bits. Shared by whoever writes registers and whoever answers them.
//!
//! Every ring pointer counts descriptors, not bytes. A bitfield's `new()` is its reset value.

mod error;
mod field;
mod halves;
pub mod table;

pub use error::{M2sError, S2mError};
pub use field::*;
pub use halves::Halves;

use crate::arch::QueueId;
use serde::{Deserialize, Serialize};

/// Offset of the M2S (memory to stream, Tx) block in a unit.
pub const M2S: u64 = 0x0_0000;
/// Offset of the S2M (stream to memory, Rx) block in a unit.
pub const S2M: u64 = 0x2_0000;
/// Offset of the GEN block: interrupts, AXI configuration and error tables.
pub const GEN: u64 = 0x3_8000;
/// Offset of the GEN_EX block: per-queue VM selectors.
pub const GEN_EX: u64 = 0x3_c000;

/// Offset of the notification block from the unit's window (V4): behind the unit lies what the engine
/// has beside it, from 0x40000 on, with the notification block at 0x1000 there (B for V2;
/// C: the same on V4).
pub const NOTIFIC: u64 = 0x4_1000;
/// Bytes of the notification block (C).
pub const NOTIFIC_BYTES: u64 = 0x1000;

/// Bytes from one queue's register bank to the next.
pub const QUEUE_BANK_BYTES: u64 = 0x1000;

/// A ring's start and length are multiples of this many bytes.
pub const RING_ALIGN_BYTES: u64 = 256;
/// Descriptors of the shortest ring.
pub const RING_MIN_DESCS: u32 = 32;
/// Descriptors of the longest ring: the largest multiple of [`RING_GRANULE_DESCS`] that the 24 bits
/// of the length register hold.
pub const RING_MAX_DESCS: u32 = (1 << 24) - 16;
/// A ring's length is a multiple of this many descriptors ([`RING_ALIGN_BYTES`] / 16).
pub const RING_GRANULE_DESCS: u32 = 16;

/// Which half of a UDMA unit, and so which ring of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Direction {
    /// Memory to stream: the Tx ring, which reads sources.
    M2s,
    /// Stream to memory: the Rx ring, which writes destinations.
    S2m,
}

impl Direction {
    /// Both, M2S first.
    pub const ALL: [Direction; 2] = [Direction::M2s, Direction::S2m];

    /// Offset of this half's register block in a unit.
    pub const fn block(self) -> u64 {
        match self {
            Direction::M2s => M2S,
            Direction::S2m => S2M,
        }
    }

    /// Offset in a unit of register `offset` of queue `queue`'s bank. The queue is not checked
    /// against the unit's queue count.
    pub const fn queue_reg(self, queue: QueueId, offset: u64) -> u64 {
        self.block() + QUEUE_BANK_BYTES * (queue.0 as u64 + 1) + offset
    }

    /// Offset in a unit of engine-global register `offset` of this half.
    pub const fn global_reg(self, offset: u64) -> u64 {
        self.block() + offset
    }

    /// `tx` for M2S, `rx` for S2M: the name of the ring.
    pub const fn ring_name(self) -> &'static str {
        match self {
            Direction::M2s => "tx",
            Direction::S2m => "rx",
        }
    }
}

/// Offsets in a queue's bank. Where the halves differ, the name says which one it is for.
pub mod queue {
    /// Prefetch FIFO slice, [`super::DescPrefCfg`].
    pub const DESC_PREF_CFG: u64 = 0x00;
    /// Enables and AXI attributes, [`super::QueueCfg`].
    pub const CFG: u64 = 0x20;
    /// Read only, [`super::QueueStatus`].
    pub const STATUS: u64 = 0x24;
    /// Ring base, low half; 64-byte aligned.
    pub const DRBP_LOW: u64 = 0x28;
    /// Ring base, high half.
    pub const DRBP_HIGH: u64 = 0x2c;
    /// Ring length in descriptors, 24 bits.
    pub const DRL: u64 = 0x30;
    /// Head: next descriptor to prefetch, [`super::RingPointer`]; read only.
    pub const DRHP: u64 = 0x34;
    /// Doorbell: adds the written number of descriptors to the tail, 24 bits.
    pub const DRTP_INC: u64 = 0x38;
    /// Tail, [`super::RingPointer`]; read only.
    pub const DRTP: u64 = 0x3c;
    /// Descriptor being processed, [`super::RingPointer`]; read only.
    pub const DCP: u64 = 0x40;
    /// Completion ring base, low half.
    pub const CRBP_LOW: u64 = 0x44;
    /// Completion ring base, high half.
    pub const CRBP_HIGH: u64 = 0x48;
    /// Completion ring head, [`super::RingPointer`]; read only.
    pub const CRHP: u64 = 0x4c;
    /// Completion ring head before coalescing; read only.
    pub const CRHP_INTERNAL: u64 = 0x50;

    /// S2M completion ring, [`super::CompCfg`].
    pub const S2M_COMP_CFG: u64 = 0x54;
    /// S2M reset strobes, [`super::QueueSwCtrl`].
    pub const S2M_SW_CTRL: u64 = 0x64;
    /// S2M packets received; read only.
    pub const S2M_RX_PKT: u64 = 0x68;

    /// M2S rate limiter, first of the four words of [`super::rate_limit`].
    pub const M2S_RATE_LIMIT: u64 = 0x60;
    /// M2S rate limiter: bit 0 empties the bucket.
    pub const M2S_RATE_LIMIT_SW_CTRL: u64 = 0x70;
    /// M2S pauses that are masked off, [`super::RateLimitMask`].
    pub const M2S_RATE_LIMIT_MASK: u64 = 0x74;
    /// M2S deficit round robin, [`super::QueueDwrrCfg1`].
    pub const M2S_DWRR_CFG_1: u64 = 0x80;
    /// M2S deficit round robin: `q_qos[7:0]`.
    pub const M2S_DWRR_CFG_2: u64 = 0x84;
    /// M2S deficit round robin: `weight[7:0]`.
    pub const M2S_DWRR_CFG_3: u64 = 0x88;
    /// M2S deficit round robin: bit 0 clears the queue's credit.
    pub const M2S_DWRR_SW_CTRL: u64 = 0x8c;
    /// M2S completion ring, [`super::CompCfg`].
    pub const M2S_COMP_CFG: u64 = 0xa0;
    /// M2S reset strobes, [`super::QueueSwCtrl`].
    pub const M2S_SW_CTRL: u64 = 0xb0;
    /// M2S packets sent; read only.
    pub const M2S_TX_PKT: u64 = 0xc0;
    /// M2S independent data tail, doorbell (V3 and later).
    pub const M2S_TDRDTP_INC: u64 = 0xe0;
    /// M2S independent data tail (V3 and later); read only.
    pub const M2S_TDRDTP: u64 = 0xe4;

    /// What a user process may not write through the BAR, in every queue's bank of both halves
    /// (A: the kernel driver's list).
    pub const USER_BLOCKED: [u64; 5] = [DRBP_LOW, DRBP_HIGH, DRTP_INC, CRBP_LOW, CRBP_HIGH];

    /// Reset strobes of either half.
    pub const fn sw_ctrl(direction: super::Direction) -> u64 {
        match direction {
            super::Direction::M2s => M2S_SW_CTRL,
            super::Direction::S2m => S2M_SW_CTRL,
        }
    }

    /// Completion ring configuration of either half.
    pub const fn comp_cfg(direction: super::Direction) -> u64 {
        match direction {
            super::Direction::M2s => M2S_COMP_CFG,
            super::Direction::S2m => S2M_COMP_CFG,
        }
    }
}

/// Words of a rate limiter, as offsets from its first.
pub mod rate_limit {
    /// Bucket and enable, [`super::RateLimitCfg1`].
    pub const CFG_1: u64 = 0x0;
    /// Short cycles in a long cycle, `[15:0]`.
    pub const CYCLE: u64 = 0x4;
    /// Bits filled in each long cycle, `[18:0]`.
    pub const TOKEN_SIZE_1: u64 = 0x8;
    /// Bits filled in each short cycle, `[18:0]`.
    pub const TOKEN_SIZE_2: u64 = 0xc;
}

/// Offsets of engine-global registers in the M2S or S2M block.
pub mod global {
    /// First of the AXI configuration registers.
    pub const AXI: u64 = 0x100;
    /// Data bursts: `data_rd_cfg` on M2S, `data_wr_cfg` on S2M.
    pub const DATA_BURST_CFG: u64 = 0x118;
    /// Descriptor bursts, `desc_rd_cfg_3`: most descriptors in one burst `[7:0]`,
    /// `always_break[16]`.
    pub const DESC_RD_CFG_3: u64 = 0x11c;
    /// M2S outstanding limits, [`super::OutstandingM2s`].
    pub const M2S_OSTAND_CFG: u64 = 0x124;
    /// S2M outstanding read limits, [`super::OutstandingS2mRd`].
    pub const S2M_OSTAND_CFG_RD: u64 = 0x124;
    /// S2M outstanding write limits, [`super::OutstandingS2mWr`].
    pub const S2M_OSTAND_CFG_WR: u64 = 0x128;
    /// S2M outstanding data writes, [`super::OutstandingS2mWr2`]: the limit from V4 on.
    pub const S2M_OSTAND_CFG_WR_2: u64 = 0x12c;
    /// State of the pipelines, [`super::UdmaStateReg`]; read only.
    pub const STATE: u64 = 0x200;
    /// State command, [`super::ChangeState`].
    pub const CHANGE_STATE: u64 = 0x204;
    /// Errors that are not fatal: a set bit masks the error of that number (C: reset 0).
    pub const ERR_LOG_MASK: u64 = 0x20c;
    /// First of the four words of the error header log; read only.
    pub const ERR_LOG: u64 = 0x214;
    /// Clears the error header log.
    pub const ERR_LOG_CLEAR: u64 = 0x224;
    /// M2S packet length, [`super::CfgLen`].
    pub const M2S_CFG_LEN: u64 = 0x254;
    /// M2S stream: `disable[0]`, `rd_mode[1]`, `rd_th[18:8]`.
    pub const M2S_STREAM_CFG: u64 = 0x258;
    /// S2M stream: `disable[0]`, `flush[4]`, `stop_prefetch[8]`.
    pub const S2M_STREAM_CFG: u64 = 0x250;
    /// M2S queues whose prefetch is enabled, a bit each; reset [`super::PREF_QUEUE_EN_RESET`].
    pub const M2S_PREF_QUEUE_EN: u64 = 0x25c;
    /// S2M queues whose prefetch is enabled, a bit each; reset [`super::PREF_QUEUE_EN_RESET`].
    pub const S2M_PREF_QUEUE_EN: u64 = 0x254;
    /// Prefetch FIFO size.
    pub const DESC_PREF_CFG_1: u64 = 0x300;
    /// Prefetch arbitration, [`super::DescPrefCfg2`].
    pub const DESC_PREF_CFG_2: u64 = 0x304;
    /// Prefetch thresholds, [`super::DescPrefCfg3`].
    pub const DESC_PREF_CFG_3: u64 = 0x308;
    /// S2M only.
    pub const S2M_DESC_PREF_CFG_4: u64 = 0x30c;
    /// M2S data FIFO, [`super::DataCfg`].
    pub const M2S_DATA_CFG: u64 = 0x310;
    /// M2S deficit round robin, [`super::DwrrCfg`].
    pub const M2S_DWRR: u64 = 0x340;
    /// M2S deficit round robin: writing sets every queue's credit, `[23:0]`.
    pub const M2S_DWRR_DEFICIT: u64 = 0x344;
    /// M2S rate limiters, what they have in common, [`super::RateLimiterCfg`].
    pub const M2S_RATE_LIMITER: u64 = 0x380;
    /// M2S rate limiters: cycle counters and tokens of all of them, commands.
    pub const M2S_RATE_LIMITER_CTRL: u64 = 0x384;
    /// Last of those commands.
    pub const M2S_RATE_LIMITER_CTRL_END: u64 = 0x388;
    /// M2S stream rate limiter, first of the four words of [`super::rate_limit`].
    pub const M2S_STREAM_RATE_LIMIT: u64 = 0x3c0;
    /// M2S stream rate limiter: bit 0 empties the bucket.
    pub const M2S_STREAM_RATE_LIMIT_SW_CTRL: u64 = 0x3d0;
    /// M2S stream rate limiter: as a queue's `rate_limit_mask`, nothing acts on it.
    pub const M2S_STREAM_RATE_LIMIT_MASK: u64 = 0x3d4;
    /// M2S completion controller.
    pub const M2S_COMP_CFG_1C: u64 = 0x400;
    /// M2S completion acknowledge timeout in cycles; reset [`super::COMP_ACK_TIMEOUT_RESET`].
    pub const M2S_COMP_ACK_TIMEOUT: u64 = 0x408;
    /// S2M completion controller: `desc_size[3:0]` in words, `q_promotion[12]`, `force_rr[16]`.
    pub const S2M_COMP_CFG_1C: u64 = 0x380;
    /// S2M completion acknowledge timeout in cycles.
    pub const S2M_COMP_ACK_TIMEOUT: u64 = 0x38c;
    /// First statistics register.
    pub const STATISTICS: u64 = 0x500;
    /// Statistics registers.
    pub const STATISTICS_WORDS: u64 = 8;
    /// First feature register.
    pub const FEATURES: u64 = 0x600;
    /// Version of the DMA.
    pub const DMA_VERSION: u64 = 0x604;

    /// Stream configuration, [`super::StreamCfg`], in either half.
    pub const fn stream_cfg(direction: super::Direction) -> u64 {
        match direction {
            super::Direction::M2s => M2S_STREAM_CFG,
            super::Direction::S2m => S2M_STREAM_CFG,
        }
    }

    /// Completion acknowledge timeout, in either half.
    pub const fn comp_ack_timeout(direction: super::Direction) -> u64 {
        match direction {
            super::Direction::M2s => M2S_COMP_ACK_TIMEOUT,
            super::Direction::S2m => S2M_COMP_ACK_TIMEOUT,
        }
    }

    /// Queues whose prefetch is enabled, in either half.
    pub const fn pref_queue_en(direction: super::Direction) -> u64 {
        match direction {
            super::Direction::M2s => M2S_PREF_QUEUE_EN,
            super::Direction::S2m => S2M_PREF_QUEUE_EN,
        }
    }
}

/// Reset value of the `pref_queue_en` registers: every queue may prefetch.
pub const PREF_QUEUE_EN_RESET: u32 = 0xffff;
/// Reset value of the completion acknowledge timeouts, in cycles.
pub const COMP_ACK_TIMEOUT_RESET: u32 = 100_000;

/// Offsets in the GEN block.
pub mod general {
    /// First main interrupt group; [`IOFIC_MAIN_GROUPS`] of them.
    pub const IOFIC_MAIN: u64 = 0x0000;
    /// Main interrupt groups.
    pub const IOFIC_MAIN_GROUPS: u64 = 16;
    /// First secondary interrupt group: M2S errors, then S2M errors, a cause bit per error bit; then those of
    /// the AXI masters' FIFOs.
    pub const IOFIC_SECONDARY: u64 = 0x2000;
    /// Secondary interrupt groups.
    pub const IOFIC_SECONDARY_GROUPS: u64 = 3;
    /// AXI timeout in cycles.
    pub const AXI_CFG_1: u64 = 0x2300;
    /// AXI error detection tables, one of [`AXI_MASTER_TABLE_BYTES`] for each master, in the order of the interrupt
    /// groups: descriptor reads, data and completion writes of M2S, then of S2M, MSI-X.
    pub const AXI_ERROR_1: u64 = 0x2900;
    /// Bytes of a master's error detection table: a word for each combination of parity error (4), timeout (2)
    /// and error response (1); not 0, the error is detected.
    pub const AXI_MASTER_TABLE_BYTES: u64 = 0x40;
    /// AXI error control of each master: an index and the word there.
    pub const AXI_ERROR_2: u64 = 0x2b00;
    /// Per-queue AXI attributes.
    pub const AXI_QUEUE: u64 = 0x2c00;
    /// Interrupt groups of the AXI masters, 0x100 apart.
    pub const AXI_INTERRUPTS: u64 = 0x2d00;
    /// First spare register; bit 0 clear = completion head reporting on.
    pub const SPARE: u64 = 0x3460;
}

/// Offsets in an interrupt group of the IOFIC.
pub mod iofic {
    /// Bytes from one group to the next.
    pub const GROUP_BYTES: u64 = 0x40;
    /// Causes that happened.
    pub const CAUSE: u64 = 0x00;
    /// Writing 1 sets a cause.
    pub const CAUSE_SET: u64 = 0x08;
    /// Causes that are masked.
    pub const MASK: u64 = 0x10;
    /// Writing the complement of a bit unmasks it.
    pub const MASK_CLEAR: u64 = 0x18;
    /// Read only.
    pub const STATUS: u64 = 0x20;
    /// Control.
    pub const CONTROL: u64 = 0x28;
    /// Causes that do not abort the engine.
    pub const ABORT_MASK: u64 = 0x30;
}

/// Offsets in the notification block of the engine's queue: the first of the block (A).
pub mod notific {
    /// Base of the notification queue, low half.
    pub const NQ_BASE_LO: u64 = 0x100;
    /// Base, high half.
    pub const NQ_BASE_HI: u64 = 0x104;
    /// Bytes of the queue; 0 switches it off.
    pub const NQ_SIZE: u64 = 0x108;
    /// Where software is: index of the entry it reads next (C: the sources give the offset).
    pub const NQ_HEAD: u64 = 0x10c;
}

/// Offset in the GEN_EX block of the first per-queue VM selector.
pub const GEN_EX_VMPR: u64 = 0x400;
/// Bytes from one queue's VM selectors to the next.
pub const GEN_EX_VMPR_BYTES: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_banks_start_one_stride_up() {
        assert_eq!(
            Direction::M2s.queue_reg(QueueId(0), queue::DRTP_INC),
            0x1038
        );
        assert_eq!(
            Direction::S2m.queue_reg(QueueId(0), queue::DRTP_INC),
            0x21038
        );
        assert_eq!(
            Direction::M2s.queue_reg(QueueId(15), queue::DRBP_LOW),
            0x10028
        );
        assert_eq!(Direction::S2m.global_reg(global::CHANGE_STATE), 0x20204);
    }
}
