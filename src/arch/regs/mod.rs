//! Registers of a UDMA unit, in the order of `docs/hardware.md`, "Registers", so that the two can be laid side by side.
//! Shared by whoever writes registers and whoever answers them.
//!
//! Each register is declared once, in the module of its block, with its name, offset, access, fields and reset value.
//! The register file, its tests and the listing in `docs/device.md` come from there. Every ring pointer counts
//! descriptors, not bytes.

mod declare;
mod error;
pub mod general;
pub mod general_ex;
pub mod global;
mod halves;
pub mod iofic;
pub mod notific;
pub mod queue;
pub mod rate_limit;
pub mod table;

pub use error::{M2sError, S2mError};
pub use general::Spare;
pub use global::{
    AckTimeoutM2s, CfgLen, ChangeState, CompCfg1cS2m, DataBurstCfg, DataCfg, DescPrefCfg2,
    DescPrefCfg3, DescRdCfg3, DwrrCfg, DwrrDeficit, OutstandingM2s, OutstandingS2mRd,
    OutstandingS2mWr, OutstandingS2mWr2, PrefQueueEn, RateLimitTokens, RateLimiterCfg, StreamCfg,
    UdmaState, UdmaStateReg,
};
pub use halves::Halves;
pub use queue::{
    CompCfg, DescCount, DescPrefCfg, QueueCfg, QueueDwrrCfg1, QueueDwrrCfg2, QueueDwrrCfg3,
    QueueStatus, QueueSwCtrl, RateLimitMask, RingBaseLow, RingPointer, Strobe,
};
pub use rate_limit::{RateLimitCfg1, RateLimitCycle, RateLimitFill};

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

    #[test]
    fn reset_values() {
        assert_eq!(RateLimitMask::new().into_bits(), 0x7);
        assert_eq!(RingPointer::new().into_bits(), 0x4000_0000);
        assert_eq!(QueueCfg::new().into_bits(), 0x0300_0000);
        assert_eq!(DescPrefCfg::new().into_bits(), 0x80);
        assert_eq!(DataCfg::new().into_bits(), 0x0100_0000);
        assert_eq!(DwrrCfg::new().into_bits(), 0x0007_0200);
        assert_eq!(DescPrefCfg2::new().into_bits(), 0x0001_0000);
        assert_eq!(CompCfg::new().into_bits(), 0);
        assert_eq!(CompCfg::S2M_RESET.into_bits(), 1);
    }

    #[test]
    fn field_positions() {
        assert!(QueueCfg::from_bits(1 << 16).en_pref());
        assert!(QueueCfg::from_bits(1 << 17).en_scheduling());
        assert!(QueueCfg::from_bits(1 << 20).allow_lt_min_pref());
        assert_eq!(QueueCfg::from_bits(7 << 28).qos(), 7);
        assert!(QueueStatus::from_bits(1 << 30).q_dmb());
        assert_eq!(QueueSwCtrl::new().with_rst_q(true).into_bits(), 0x100);
        assert_eq!(CfgLen::new().with_encode_64k(true).into_bits(), 1 << 24);
        let running = UdmaStateReg::new()
            .with_comp_ctrl(UdmaState::Normal)
            .with_stream_if(UdmaState::Normal)
            .with_data(UdmaState::Normal)
            .with_desc_pref(UdmaState::Abort);
        assert_eq!(running.into_bits(), 0x2111);
        assert_eq!(DescCount::from_bits(u32::MAX).count(), 0xff_ffff);
        assert_eq!(RingBaseLow::from_bits(u32::MAX).address(), 0xffff_ffc0);
        assert_eq!(QueueDwrrCfg2::from_bits(0x1ff).q_qos(), 0xff);
        assert_eq!(QueueDwrrCfg3::from_bits(0x1ff).weight(), 0xff);
        assert!(Strobe::from_bits(1).act());
        assert_eq!(DataBurstCfg::from_bits(0x110).beats(), 0x10);
        assert!(DescRdCfg3::from_bits(1 << 16).always_break());
        assert_eq!(DescRdCfg3::from_bits(0x1_0140).descriptors(), 0x40);
        assert_eq!(AckTimeoutM2s::from_bits(u32::MAX).cycles(), 0xff_ffff);
        assert_eq!(CompCfg1cS2m::from_bits(0x14).desc_size(), 4);
        assert_eq!(DwrrDeficit::from_bits(u32::MAX).credit(), 0xff_ffff);
        assert_eq!(RateLimitTokens::from_bits(u32::MAX).bytes(), 0xff_ffff);
        assert_eq!(RateLimitCycle::from_bits(u32::MAX).short_cycles(), 0xffff);
        assert_eq!(RateLimitFill::from_bits(u32::MAX).bits(), 0x7_ffff);
        assert!(Spare::from_bits(1).no_comp_head());
    }
}
