//! Field layouts and reset values of the registers whose fields something uses.

use bitfield_struct::bitfield;

/// Slice of the prefetch FIFO that belongs to a queue.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DescPrefCfg {
    /// Descriptors the queue's slice holds.
    #[bits(12, default = 0x80)]
    pub fifo_depth: u16,
    /// Not used.
    #[bits(4)]
    pub reserved_15_12: u8,
    /// First entry of the slice.
    #[bits(11)]
    pub fifo_start: u16,
    /// Not used.
    #[bits(5)]
    pub reserved_31_27: u8,
}

/// A queue's `cfg` register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct QueueCfg {
    /// Not modelled.
    pub low: u16,
    /// Prefetch descriptors.
    pub en_pref: bool,
    /// Let packets proceed: `en_scheduling` on M2S, `en_stream` on S2M.
    pub en_scheduling: bool,
    /// Not modelled.
    #[bits(2)]
    pub bits_19_18: u8,
    /// Prefetch even below the minimum burst.
    pub allow_lt_min_pref: bool,
    /// Not modelled.
    #[bits(3)]
    pub bits_23_21: u8,
    /// AXI cache attributes of writes.
    #[bits(4, default = 3)]
    pub awcache: u8,
    /// AXI quality of service.
    #[bits(3)]
    pub qos: u8,
    /// Not modelled.
    pub bit_31: bool,
}

/// A queue's `status` register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct QueueStatus {
    /// Descriptors between the current and the tail pointer.
    #[bits(25)]
    pub q_used: u32,
    /// Not used.
    #[bits(3)]
    pub reserved_27_25: u8,
    /// Prefetch is active.
    pub prefetch: bool,
    /// Scheduler (M2S) or receive (S2M) is active.
    pub scheduler: bool,
    /// Suspended on a DMB (M2S).
    pub q_dmb: bool,
    /// The ring is full.
    pub q_full: bool,
}

/// A ring pointer register: an index with the phase of its lap.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct RingPointer {
    /// Descriptor index in the ring.
    #[bits(24)]
    pub index: u32,
    /// Not used.
    #[bits(6)]
    pub reserved_29_24: u8,
    /// 2-bit phase of the lap; the first lap is 1.
    #[bits(2, default = 1)]
    pub ring_id: u8,
}

/// A queue's `rate_limit_mask` register (M2S): pauses that are masked off. Resets to 0b111.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct RateLimitMask {
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
    pub reserved_31_4: u32,
}

/// A queue's `comp_cfg` register. On S2M the ring update is on at reset
/// ([`CompCfg::S2M_RESET`]).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct CompCfg {
    /// Write completions to the completion ring.
    pub en_comp_ring_update: bool,
    /// Write each completion by itself.
    pub dis_comp_coal: bool,
    /// Not modelled.
    #[bits(30)]
    pub bits_31_2: u32,
}

impl CompCfg {
    /// Reset value on S2M.
    pub const S2M_RESET: CompCfg = CompCfg::new().with_en_comp_ring_update(true);
}

/// A queue's `q_sw_ctrl` register: writing 1 resets, it reads 0.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct QueueSwCtrl {
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
    pub reserved_7_4: u8,
    /// The whole queue.
    pub rst_q: bool,
    /// Not used.
    #[bits(23)]
    pub reserved_31_9: u32,
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

/// The `state` register of a half.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct UdmaStateReg {
    /// Completion controller.
    #[bits(2)]
    pub comp_ctrl: UdmaState,
    /// Not used.
    #[bits(2)]
    pub reserved_3_2: u8,
    /// Stream interface.
    #[bits(2)]
    pub stream_if: UdmaState,
    /// Not used.
    #[bits(2)]
    pub reserved_7_6: u8,
    /// Data read (M2S) or write (S2M).
    #[bits(2)]
    pub data: UdmaState,
    /// Not used.
    #[bits(2)]
    pub reserved_11_10: u8,
    /// Descriptor prefetch.
    #[bits(2)]
    pub desc_pref: UdmaState,
    /// Not used.
    #[bits(18)]
    pub reserved_31_14: u32,
}

/// The `change_state` register: a command, not a state.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct ChangeState {
    /// Run.
    pub normal: bool,
    /// Stop.
    pub dis: bool,
    /// Abort.
    pub abort: bool,
    /// Not used.
    #[bits(29)]
    pub reserved_31_3: u32,
}

/// The M2S `ostand_cfg` register: transactions in flight.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct OutstandingM2s {
    /// Data reads.
    pub data_rd: u8,
    /// Descriptor reads.
    pub desc_rd: u8,
    /// Completion write requests.
    pub comp_req: u8,
    /// Completion data writes.
    pub comp_data_wr: u8,
}

/// The S2M `ostand_cfg_rd` register: transactions in flight. Laid out unlike its M2S twin.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct OutstandingS2mRd {
    /// Descriptor reads.
    pub desc_rd: u8,
    /// Not used.
    pub reserved_15_8: u8,
    /// Stream acknowledgements; not modelled.
    pub stream_ack: u8,
    /// Not used.
    pub reserved_31_24: u8,
}

/// The S2M `ostand_cfg_wr_2` register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct OutstandingS2mWr2 {
    /// Data writes in flight.
    #[bits(10)]
    pub data_wr: u16,
    /// Not used.
    #[bits(22)]
    pub reserved_31_10: u32,
}

/// The S2M `ostand_cfg_wr` register: transactions in flight.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct OutstandingS2mWr {
    /// Data write requests.
    pub data_wr: u8,
    /// Data write beats.
    pub beats: u8,
    /// Completion write requests.
    pub comp_req: u8,
    /// Completion data beats.
    pub comp_data: u8,
}

/// The M2S `cfg_len` register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct CfgLen {
    /// Bytes of the longest packet.
    #[bits(20)]
    pub max_pkt_size: u32,
    /// Not used.
    #[bits(4)]
    pub reserved_23_20: u8,
    /// A descriptor length of 0 means 65536.
    pub encode_64k: bool,
    /// Not used.
    #[bits(7)]
    pub reserved_31_25: u8,
}

/// The `desc_pref_cfg_2` register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DescPrefCfg2 {
    /// Descriptors of the longest packet.
    #[bits(12)]
    pub max_desc_per_pkt: u16,
    /// Not used.
    #[bits(4)]
    pub reserved_15_12: u8,
    /// Round robin between queues, whatever their QoS.
    #[bits(default = true)]
    pub force_rr: bool,
    /// Not used.
    #[bits(15)]
    pub reserved_31_17: u16,
}

/// The `desc_pref_cfg_3` register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DescPrefCfg3 {
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
}

/// The M2S `data_cfg` register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DataCfg {
    /// Beats the data FIFO holds.
    #[bits(12)]
    pub data_fifo_depth: u16,
    /// Not used.
    #[bits(4)]
    pub reserved_15_12: u8,
    /// Packets the data FIFO holds.
    #[bits(12, default = 0x100)]
    pub max_pkt_limit: u16,
    /// Not used.
    #[bits(4)]
    pub reserved_31_28: u8,
}

/// A half's `stream_cfg` register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct StreamCfg {
    /// Close the stream.
    pub disable: bool,
    /// Read mode (M2S); not modelled.
    pub rd_mode: bool,
    /// Not used.
    #[bits(2)]
    pub reserved_3_2: u8,
    /// Flush the stream (S2M); not modelled.
    pub flush: bool,
    /// Not used.
    #[bits(3)]
    pub reserved_7_5: u8,
    /// Fetch no descriptors (S2M); lowest bit of the read threshold on M2S.
    pub stop_prefetch: bool,
    /// Rest of the read threshold (M2S); not modelled.
    #[bits(23)]
    pub rd_th_high: u32,
}

/// First word of a rate limiter.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct RateLimitCfg1 {
    /// Most bytes the bucket holds.
    #[bits(24)]
    pub max_burst_size: u32,
    /// Limit the rate.
    pub en: bool,
    /// Fill no tokens.
    pub pause: bool,
    /// Not used.
    #[bits(6)]
    pub reserved_31_26: u8,
}

/// What the M2S rate limiters of a unit have in common.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct RateLimiterCfg {
    /// UDMA cycles of a short cycle.
    pub short_cycle_size: u16,
    /// Not used.
    pub reserved_23_16: u8,
    /// A packet costs one token, whatever its length.
    pub pkt_mode_en: bool,
    /// Not used.
    #[bits(7)]
    pub reserved_31_25: u8,
}

/// A queue's `dwrr_cfg_1` register (M2S).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct QueueDwrrCfg1 {
    /// Most credit the queue saves up; 0 for no bound (C).
    #[bits(24)]
    pub max_deficit_cnt: u32,
    /// Goes before the queues that share by weight.
    pub strict: bool,
    /// Gains no credit.
    pub pause: bool,
    /// Not used.
    #[bits(6)]
    pub reserved_31_26: u8,
}

/// The M2S engine-global DWRR register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DwrrCfg {
    /// Deficit weighted round robin; off = round robin.
    pub en_dwrr: bool,
    /// Not used.
    #[bits(3)]
    pub reserved_3_1: u8,
    /// Weigh packets, not bytes.
    pub pkt_mode_en: bool,
    /// Not used.
    #[bits(3)]
    pub reserved_7_5: u8,
    /// Weight increment mode.
    #[bits(2, default = 2)]
    pub weight_inc: u8,
    /// Not used.
    #[bits(6)]
    pub reserved_15_10: u8,
    /// Increment factor, a power of two.
    #[bits(4, default = 7)]
    pub inc_factor: u8,
    /// Not used.
    #[bits(12)]
    pub reserved_31_20: u16,
}

/// A number of descriptors: a queue's `drtp_inc` and `tdrdtp_inc` doorbells, and its `drl`, the length of its rings.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DescCount {
    /// Descriptors.
    #[bits(24)]
    pub count: u32,
    /// Not used.
    pub reserved_31_24: u8,
}

/// The low half of a ring's base. Rings are aligned to 64 bytes.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct RingBaseLow {
    /// Not used.
    #[bits(6)]
    pub reserved_5_0: u8,
    /// Bits 31 to 6 of the address.
    #[bits(26)]
    pub high: u32,
}

impl RingBaseLow {
    /// Bits 31 to 0 of the address.
    pub const fn address(self) -> u32 {
        self.high() << 6
    }
}

/// A queue's `dwrr_cfg_2` register (M2S).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct QueueDwrrCfg2 {
    /// Class of the queue.
    pub q_qos: u8,
    /// Not used.
    #[bits(24)]
    pub reserved_31_8: u32,
}

/// A queue's `dwrr_cfg_3` register (M2S).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct QueueDwrrCfg3 {
    /// Weight of the queue.
    pub weight: u8,
    /// Not used.
    #[bits(24)]
    pub reserved_31_8: u32,
}

/// A register whose bit 0 is a command (A).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Strobe {
    /// Acts.
    pub act: bool,
    /// Not used.
    #[bits(31)]
    pub reserved_31_1: u32,
}

/// A half's `data_burst_cfg` register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DataBurstCfg {
    /// Beats of the longest data burst; 0 for the longest there is (C).
    pub beats: u8,
    /// Not modelled.
    #[bits(24)]
    pub bits_31_8: u32,
}

/// A half's `desc_rd_cfg_3` register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DescRdCfg3 {
    /// Descriptors of the longest burst; 0 for the longest there is (C).
    pub descriptors: u8,
    /// Not modelled.
    pub bits_15_8: u8,
    /// Bursts end at multiples of their longest (A).
    pub always_break: bool,
    /// Not modelled.
    #[bits(15)]
    pub bits_31_17: u16,
}

/// The M2S `comp_ack_timeout` register. That of S2M has 32 bits.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct AckTimeoutM2s {
    /// UDMA cycles; 0 for never.
    #[bits(24)]
    pub cycles: u32,
    /// Not used.
    pub reserved_31_24: u8,
}

/// The S2M `comp_cfg_1c` register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct CompCfg1cS2m {
    /// Words of a completion record, 2 to 8.
    #[bits(4)]
    pub desc_size: u8,
    /// Not modelled.
    #[bits(28)]
    pub bits_31_4: u32,
}

/// The M2S `dwrr_deficit` register.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DwrrDeficit {
    /// Credit that a write gives every queue.
    #[bits(24)]
    pub credit: u32,
    /// Not used.
    pub reserved_31_24: u8,
}

/// The last command of the M2S rate limiters: sets the tokens of every one of them (A).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct RateLimitTokens {
    /// Tokens; that they count bytes is modelled (C).
    #[bits(24)]
    pub bytes: u32,
    /// Not used.
    pub reserved_31_24: u8,
}

/// Second word of a rate limiter.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct RateLimitCycle {
    /// Short cycles of a long cycle.
    pub short_cycles: u16,
    /// Not used.
    pub reserved_31_16: u16,
}

/// Third and fourth word of a rate limiter.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct RateLimitFill {
    /// Bits filled in each long, or each short, cycle.
    #[bits(19)]
    pub bits: u32,
    /// Not used.
    #[bits(13)]
    pub reserved_31_19: u16,
}

/// The first spare register of the GEN block.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Spare {
    /// Completion heads are not reported (A).
    pub no_comp_head: bool,
    /// Not modelled.
    #[bits(31)]
    pub bits_31_1: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

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
