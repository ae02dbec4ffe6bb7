//! Every register of a UDMA unit in tables, in the order of `docs/hardware.md`, "Registers", so that
//! the two can be laid side by side: offset, access, reset value, who acts on it. The register
//! file, its tests and the listing in `docs/device.md` come from here.

use super::{
    CfgLen, CompCfg, DataCfg, DescPrefCfg, DescPrefCfg2, Direction, DwrrCfg, OutstandingM2s,
    OutstandingS2mRd, OutstandingS2mWr, OutstandingS2mWr2, QueueCfg, RateLimitMask, RingPointer,
    general, global, iofic, notific, queue,
};
use crate::arch::{Arch, ArchSpec, QueueId};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads back what was written.
    ReadWrite,
    /// Writes are ignored.
    ReadOnly,
    /// Writes act; reads 0.
    Command,
    /// A write clears the bits that are 0 in it.
    WriteZeroClears,
}

/// What stands behind a register in the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The engine acts on it or answers it from its state.
    Live,
    /// Holds its value and does nothing.
    Inert,
}

/// A register, or a run of them.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name.
    pub name: &'static str,
    /// Offset of the first word in its block or bank.
    pub offset: u64,
    /// Consecutive 32-bit words.
    pub words: u64,
    /// What an access does.
    pub access: Access,
    /// Who acts on it.
    pub model: Model,
    /// Reset value of each word.
    pub reset: Reset,
    /// First generation that has it.
    pub since: Arch,
}

/// A reset value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// The same on every generation.
    Value(u32),
    /// [`DescPrefCfg2`] with the generation's limit of descriptors in a packet (C: what the runtime
    /// packs to).
    DescriptorLimit,
    /// [`OutstandingS2mWr2`]: 0 before V4, where the register limits nothing; from V4 on what the driver
    /// programs (C as a reset value).
    WideWrites,
    /// [`DataCfg`] with the beats that the driver programs: 1024 on V2, 2296 since (A; C as a reset value).
    DataFifo,
}

impl Reset {
    /// The value on one generation.
    pub fn value(self, spec: &ArchSpec) -> u32 {
        match self {
            Reset::Value(value) => value,
            Reset::DescriptorLimit => DescPrefCfg2::new()
                .with_max_desc_per_pkt(spec.limits.tx_descs_per_packet as u16)
                .into_bits(),
            Reset::WideWrites if spec.caps.wide_write_limit => OutstandingS2mWr2::new()
                .with_data_wr(WIDE_OUTSTANDING)
                .into_bits(),
            Reset::WideWrites => 0,
            Reset::DataFifo => DataCfg::new()
                .with_data_fifo_depth(match spec.arch {
                    Arch::V2 => 1024,
                    Arch::V3 | Arch::V4 => 2296,
                })
                .into_bits(),
        }
    }
}

const fn row(name: &'static str, offset: u64, access: Access, model: Model, reset: u32) -> Row {
    Row {
        name,
        offset,
        words: 1,
        access,
        model,
        reset: Reset::Value(reset),
        since: Arch::V2,
    }
}

const fn live(name: &'static str, offset: u64, reset: u32) -> Row {
    row(name, offset, Access::ReadWrite, Model::Live, reset)
}

const fn inert(name: &'static str, offset: u64, reset: u32) -> Row {
    row(name, offset, Access::ReadWrite, Model::Inert, reset)
}

const fn status(name: &'static str, offset: u64, reset: u32) -> Row {
    row(name, offset, Access::ReadOnly, Model::Live, reset)
}

const fn command(name: &'static str, offset: u64) -> Row {
    row(name, offset, Access::Command, Model::Live, 0)
}

const fn words(row: Row, words: u64) -> Row {
    Row { words, ..row }
}

const fn since(row: Row, since: Arch) -> Row {
    Row { since, ..row }
}

/// Transactions in flight that a fresh engine allows. The sources give 128 as what drivers program;
/// as a reset value it is modelled (C), so that an engine nobody configured behaves like one a
/// driver did.
const OUTSTANDING: u8 = 128;
/// The same for the data writes of V4, and for stream acknowledgements.
const WIDE_OUTSTANDING: u16 = 256;
const STREAM_ACKS: u8 = 0x40;
/// Longest packet of a fresh engine: all that the field can say (C).
const MAX_PKT_SIZE: u32 = 0xf_ffff;

/// The layout that drivers choose by it: below 4, a unit has 4 queues (A).
const DMA_VERSION: u32 = 4;

const FIRST_LAP: u32 = RingPointer::new().into_bits();

/// A queue's bank, both halves.
pub const QUEUE: &[Row] = &[
    live(
        "desc_pref_cfg",
        queue::DESC_PREF_CFG,
        DescPrefCfg::new().into_bits(),
    ),
    live("cfg", queue::CFG, QueueCfg::new().into_bits()),
    status("status", queue::STATUS, 0),
    live("drbp_low", queue::DRBP_LOW, 0),
    live("drbp_high", queue::DRBP_HIGH, 0),
    live("drl", queue::DRL, 0),
    status("drhp", queue::DRHP, FIRST_LAP),
    command("drtp_inc", queue::DRTP_INC),
    status("drtp", queue::DRTP, FIRST_LAP),
    status("dcp", queue::DCP, FIRST_LAP),
    live("crbp_low", queue::CRBP_LOW, 0),
    live("crbp_high", queue::CRBP_HIGH, 0),
    status("crhp", queue::CRHP, FIRST_LAP),
    status("crhp_internal", queue::CRHP_INTERNAL, FIRST_LAP),
];

/// A queue's bank, M2S only.
pub const QUEUE_M2S: &[Row] = &[
    words(live("rate_limit", queue::M2S_RATE_LIMIT, 0), 4),
    command("rate_limit_sw_ctrl", queue::M2S_RATE_LIMIT_SW_CTRL),
    live(
        "rate_limit_mask",
        queue::M2S_RATE_LIMIT_MASK,
        RateLimitMask::new().into_bits(),
    ),
    live("dwrr_cfg_1", queue::M2S_DWRR_CFG_1, 0),
    live("dwrr_cfg_2", queue::M2S_DWRR_CFG_2, 0),
    live("dwrr_cfg_3", queue::M2S_DWRR_CFG_3, 0),
    command("dwrr_sw_ctrl", queue::M2S_DWRR_SW_CTRL),
    live("comp_cfg", queue::M2S_COMP_CFG, CompCfg::new().into_bits()),
    command("q_sw_ctrl", queue::M2S_SW_CTRL),
    status("q_tx_pkt", queue::M2S_TX_PKT, 0),
    since(command("tdrdtp_inc", queue::M2S_TDRDTP_INC), Arch::V3),
    since(status("tdrdtp", queue::M2S_TDRDTP, FIRST_LAP), Arch::V3),
];

/// A queue's bank, S2M only.
pub const QUEUE_S2M: &[Row] = &[
    live(
        "comp_cfg",
        queue::S2M_COMP_CFG,
        CompCfg::S2M_RESET.into_bits(),
    ),
    command("q_sw_ctrl", queue::S2M_SW_CTRL),
    status("q_rx_pkt", queue::S2M_RX_PKT, 0),
];

/// Global registers, both halves.
pub const GLOBAL: &[Row] = &[
    words(inert("axi", global::AXI, 0), 6),
    live("data_burst_cfg", global::DATA_BURST_CFG, 0),
    live("desc_rd_cfg_3", global::DESC_RD_CFG_3, 0),
    status("state", global::STATE, 0),
    command("change_state", global::CHANGE_STATE),
    live("err_log_mask", global::ERR_LOG_MASK, 0),
    words(status("err_log", global::ERR_LOG, 0), 4),
    command("err_log_clear", global::ERR_LOG_CLEAR),
    inert("desc_pref_cfg_1", global::DESC_PREF_CFG_1, 0),
    live("desc_pref_cfg_3", global::DESC_PREF_CFG_3, 0),
    inert("features", global::FEATURES, 0),
    inert("dma_version", global::DMA_VERSION, DMA_VERSION),
    words(inert("features_2", global::DMA_VERSION + 4, 0), 4),
];

/// Global registers, M2S only.
pub const GLOBAL_M2S: &[Row] = &[
    live(
        "ostand_cfg",
        global::M2S_OSTAND_CFG,
        OutstandingM2s::new()
            .with_data_rd(OUTSTANDING)
            .with_desc_rd(OUTSTANDING)
            .into_bits(),
    ),
    live(
        "cfg_len",
        global::M2S_CFG_LEN,
        CfgLen::new()
            .with_max_pkt_size(MAX_PKT_SIZE)
            .with_encode_64k(true)
            .into_bits(),
    ),
    live("stream_cfg", global::M2S_STREAM_CFG, 0),
    live(
        "pref_queue_en",
        global::M2S_PREF_QUEUE_EN,
        super::PREF_QUEUE_EN_RESET,
    ),
    Row {
        reset: Reset::DescriptorLimit,
        ..live("desc_pref_cfg_2", global::DESC_PREF_CFG_2, 0)
    },
    Row {
        reset: Reset::DataFifo,
        ..live("data_cfg", global::M2S_DATA_CFG, 0)
    },
    live("dwrr", global::M2S_DWRR, DwrrCfg::new().into_bits()),
    live("dwrr_deficit", global::M2S_DWRR_DEFICIT, 0),
    live("rate_limiter", global::M2S_RATE_LIMITER, 0),
    words(
        command("rate_limiter_ctrl", global::M2S_RATE_LIMITER_CTRL),
        2,
    ),
    words(
        live("stream_rate_limit", global::M2S_STREAM_RATE_LIMIT, 0),
        4,
    ),
    command(
        "stream_rate_limit_sw_ctrl",
        global::M2S_STREAM_RATE_LIMIT_SW_CTRL,
    ),
    live(
        "stream_rate_limit_mask",
        global::M2S_STREAM_RATE_LIMIT_MASK,
        0,
    ),
    words(inert("comp_cfg_1c", global::M2S_COMP_CFG_1C, 0), 2),
    live(
        "comp_ack_timeout",
        global::M2S_COMP_ACK_TIMEOUT,
        super::COMP_ACK_TIMEOUT_RESET,
    ),
    words(
        status("statistics", global::STATISTICS, 0),
        global::STATISTICS_WORDS,
    ),
];

/// Global registers, S2M only.
pub const GLOBAL_S2M: &[Row] = &[
    live(
        "ostand_cfg_rd",
        global::S2M_OSTAND_CFG_RD,
        OutstandingS2mRd::new()
            .with_desc_rd(OUTSTANDING)
            .with_stream_ack(STREAM_ACKS)
            .into_bits(),
    ),
    live(
        "ostand_cfg_wr",
        global::S2M_OSTAND_CFG_WR,
        OutstandingS2mWr::new()
            .with_data_wr(OUTSTANDING)
            .into_bits(),
    ),
    Row {
        reset: Reset::WideWrites,
        ..live("ostand_cfg_wr_2", global::S2M_OSTAND_CFG_WR_2, 0)
    },
    live("stream_cfg", global::S2M_STREAM_CFG, 0),
    live(
        "pref_queue_en",
        global::S2M_PREF_QUEUE_EN,
        super::PREF_QUEUE_EN_RESET,
    ),
    inert(
        "desc_pref_cfg_2",
        global::DESC_PREF_CFG_2,
        DescPrefCfg2::new().into_bits(),
    ),
    inert("desc_pref_cfg_4", global::S2M_DESC_PREF_CFG_4, 0),
    live("comp_cfg_1c", global::S2M_COMP_CFG_1C, 4),
    inert("comp_cfg_2c", global::S2M_COMP_CFG_1C + 4, 0),
    live(
        "comp_ack_timeout",
        global::S2M_COMP_ACK_TIMEOUT,
        super::COMP_ACK_TIMEOUT_RESET,
    ),
    words(
        status("statistics", global::STATISTICS, 0),
        global::STATISTICS_WORDS,
    ),
];

/// An interrupt group.
pub const INTERRUPT_GROUP: &[Row] = &[
    row(
        "cause",
        iofic::CAUSE,
        Access::WriteZeroClears,
        Model::Live,
        0,
    ),
    command("cause_set", iofic::CAUSE_SET),
    live("mask", iofic::MASK, u32::MAX),
    command("mask_clear", iofic::MASK_CLEAR),
    status("int_status", iofic::STATUS, 0),
    live("control", iofic::CONTROL, 0),
    live("abort_mask", iofic::ABORT_MASK, 0),
];

/// The GEN block, beside its interrupt groups.
pub const GENERAL: &[Row] = &[
    live("axi_cfg_1", general::AXI_CFG_1, 0),
    words(inert("axi_cfg", general::AXI_CFG_1 + 4, 0), 63),
    words(live("axi_error_1", general::AXI_ERROR_1, 0), 128),
    words(inert("axi_error_2", general::AXI_ERROR_2, 0), 64),
    words(inert("axi_queue", general::AXI_QUEUE, 0), 64),
    words(inert("axi_interrupts", general::AXI_INTERRUPTS, 0), 7 * 64),
    words(live("spare", general::SPARE, 0), 2),
    words(inert("spare_ones", general::SPARE + 8, u32::MAX), 2),
    words(inert("spare_rest", general::SPARE + 16, 0), 4),
];

/// The GEN_EX block.
pub const GENERAL_EX: &[Row] = &[words(inert("vm_selectors", super::GEN_EX_VMPR, 0), 16 * 16)];

/// The notification block.
pub const NOTIFIC: &[Row] = &[
    since(live("nq_base_lo", notific::NQ_BASE_LO, 0), Arch::V4),
    since(live("nq_base_hi", notific::NQ_BASE_HI, 0), Arch::V4),
    since(live("nq_size", notific::NQ_SIZE, 0), Arch::V4),
    since(live("nq_head", notific::NQ_HEAD, 0), Arch::V4),
];

/// An interrupt group of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InterruptGroup {
    /// One of the 16 main groups.
    Main(u8),
    /// The secondary group of one half's errors.
    Errors(Direction),
    /// The third secondary group: errors of the AXI masters' FIFOs.
    AxiErrors,
}

/// What an offset in a unit's window names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An offset in the bank of a queue.
    Queue(Direction, QueueId, u64),
    /// An offset in the M2S or S2M block.
    Global(Direction, u64),
    /// An offset in an interrupt group.
    Interrupt(InterruptGroup, u64),
    /// An offset in the GEN block.
    General(u64),
    /// An offset in the GEN_EX block.
    GeneralEx(u64),
    /// An offset in the notification block.
    Notific(u64),
}

impl Place {
    /// Decodes an offset in an engine's window; `None` past the last queue's bank and where there is
    /// nothing.
    pub fn at(offset: u64, queues: u32) -> Option<Place> {
        match offset {
            super::S2M.. if offset < super::GEN => {
                Place::in_half(Direction::S2m, offset - super::S2M, queues)
            }
            super::GEN.. if offset < super::GEN_EX => Some(Place::in_general(offset - super::GEN)),
            super::GEN_EX.. if offset < crate::arch::UDMA_UNIT_BYTES => {
                Some(Place::GeneralEx(offset - super::GEN_EX))
            }
            super::NOTIFIC.. if offset < super::NOTIFIC + super::NOTIFIC_BYTES => {
                Some(Place::Notific(offset - super::NOTIFIC))
            }
            _ if offset < super::S2M => Place::in_half(Direction::M2s, offset, queues),
            _ => None,
        }
    }

    fn in_half(direction: Direction, within: u64, queues: u32) -> Option<Place> {
        match (within / super::QUEUE_BANK_BYTES).checked_sub(1) {
            None => Some(Place::Global(direction, within)),
            Some(q) if q < u64::from(queues) => Some(Place::Queue(
                direction,
                QueueId(q as u8),
                within % super::QUEUE_BANK_BYTES,
            )),
            Some(_) => None,
        }
    }

    fn in_general(within: u64) -> Place {
        let group = within / iofic::GROUP_BYTES;
        if group < general::IOFIC_MAIN_GROUPS {
            let group = InterruptGroup::Main(group as u8);
            return Place::Interrupt(group, within % iofic::GROUP_BYTES);
        }
        match within.checked_sub(general::IOFIC_SECONDARY) {
            Some(offset) if offset < iofic::GROUP_BYTES => {
                Place::Interrupt(InterruptGroup::Errors(Direction::M2s), offset)
            }
            Some(offset) if offset < 2 * iofic::GROUP_BYTES => {
                let offset = offset - iofic::GROUP_BYTES;
                Place::Interrupt(InterruptGroup::Errors(Direction::S2m), offset)
            }
            Some(offset) if offset < general::IOFIC_SECONDARY_GROUPS * iofic::GROUP_BYTES => {
                let offset = offset - 2 * iofic::GROUP_BYTES;
                Place::Interrupt(InterruptGroup::AxiErrors, offset)
            }
            _ => Place::General(within),
        }
    }

    /// The register there; `None` if the offset is reserved on this generation.
    pub fn row(self, arch: Arch) -> Option<&'static Row> {
        use Direction::{M2s, S2m};
        let (tables, within): ([&[Row]; 2], u64) = match self {
            Place::Queue(M2s, _, within) => ([QUEUE, QUEUE_M2S], within),
            Place::Queue(S2m, _, within) => ([QUEUE, QUEUE_S2M], within),
            Place::Global(M2s, within) => ([GLOBAL, GLOBAL_M2S], within),
            Place::Global(S2m, within) => ([GLOBAL, GLOBAL_S2M], within),
            Place::Interrupt(_, within) => ([INTERRUPT_GROUP, &[]], within),
            Place::General(within) => ([GENERAL, &[]], within),
            Place::GeneralEx(within) => ([GENERAL_EX, &[]], within),
            Place::Notific(within) => ([NOTIFIC, &[]], within),
        };
        tables.into_iter().flatten().find(|row| {
            let end = row.offset + 4 * row.words;
            (row.offset..end).contains(&within) && arch >= row.since
        })
    }
}

/// The blocks by which registers are named, with the offset of each block's first register and its
/// tables: `m2s.cfg_len`, `s2m.q3.drl`, `main0.cause`, `m2s_errors.mask`, `gen.spare`.
fn block(name: &str, queues: u32) -> Option<(u64, [&'static [Row]; 2])> {
    use Direction::{M2s, S2m};
    let number = |text: &str, end: u64| text.parse::<u64>().ok().filter(|n| *n < end);
    let half = |name: &str| match name {
        "m2s" => Some((M2s, QUEUE_M2S, GLOBAL_M2S)),
        "s2m" => Some((S2m, QUEUE_S2M, GLOBAL_S2M)),
        _ => None,
    };
    if let Some((direction, _, own)) = half(name) {
        return Some((direction.block(), [GLOBAL, own]));
    }
    if let Some((direction, rest)) = name.split_once(".q") {
        let (direction, own, _) = half(direction)?;
        let q = number(rest, u64::from(queues))?;
        return Some((direction.queue_reg(QueueId(q as u8), 0), [QUEUE, own]));
    }
    let groups = super::GEN + general::IOFIC_MAIN;
    let errors = super::GEN + general::IOFIC_SECONDARY;
    match name {
        "m2s_errors" => Some((errors, [INTERRUPT_GROUP, &[]])),
        "s2m_errors" => Some((errors + iofic::GROUP_BYTES, [INTERRUPT_GROUP, &[]])),
        "axi_errors" => Some((errors + 2 * iofic::GROUP_BYTES, [INTERRUPT_GROUP, &[]])),
        "gen" => Some((super::GEN, [GENERAL, &[]])),
        "gen_ex" => Some((super::GEN_EX, [GENERAL_EX, &[]])),
        "notific" => Some((super::NOTIFIC, [NOTIFIC, &[]])),
        _ => {
            let n = number(name.strip_prefix("main")?, general::IOFIC_MAIN_GROUPS)?;
            Some((groups + n * iofic::GROUP_BYTES, [INTERRUPT_GROUP, &[]]))
        }
    }
}

/// Why a register name means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No such block.
    #[error(
        "\"{0}\" names no block of registers; write m2s, s2m, m2s.q0 to q15, s2m.q0 to q15, main0 to \
         main15, m2s_errors, s2m_errors, axi_errors, gen, gen_ex or notific, a dot, and the register"
    )]
    Block(String),
    /// No such register in the block on this generation.
    #[error("there is no register \"{register}\" in {block} on {arch}; there are {known}")]
    Register {
        /// The block.
        block: String,
        /// The name asked for.
        register: String,
        /// The generation.
        arch: Arch,
        /// What there is.
        known: String,
    },
}

/// Offset in a unit of the register of a name such as `m2s.q3.drl` or `s2m.err_log[2]`.
///
/// # Errors
/// [`NameError`] if nothing is called so on this generation.
pub fn offset_of(name: &str, spec: &ArchSpec) -> Result<u64, NameError> {
    let (place, register) = name.rsplit_once('.').unwrap_or((name, ""));
    let (start, tables) = block(place, spec.limits.queues_per_engine)
        .ok_or_else(|| NameError::Block(place.to_string()))?;
    let (wanted, word) = match register.strip_suffix(']').and_then(|r| r.split_once('[')) {
        Some((wanted, word)) => (wanted, word.parse().ok()),
        None => (register, Some(0)),
    };
    let rows = || {
        tables
            .into_iter()
            .flatten()
            .filter(|row| spec.arch >= row.since)
    };
    let found = rows().find(|row| row.name == wanted);
    match found.zip(word) {
        Some((row, word)) if word < row.words => Ok(start + row.offset + 4 * word),
        _ => {
            let names = rows().map(|row| match row.words {
                1 => row.name.to_string(),
                words => format!("{}[0..{words}]", row.name),
            });
            Err(NameError::Register {
                block: place.to_string(),
                register: register.to_string(),
                arch: spec.arch,
                known: names.collect::<Vec<_>>().join(", "),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_decode() {
        use Direction::{M2s, S2m};
        for (offset, place) in [
            (0x00200, Some(Place::Global(M2s, 0x200))),
            (0x01038, Some(Place::Queue(M2s, QueueId(0), 0x38))),
            (0x10ffc, Some(Place::Queue(M2s, QueueId(15), 0xffc))),
            (0x11000, None),
            (0x20204, Some(Place::Global(S2m, 0x204))),
            (0x22028, Some(Place::Queue(S2m, QueueId(1), 0x28))),
            (0x38000, Some(Place::Interrupt(InterruptGroup::Main(0), 0))),
            (
                0x383d0,
                Some(Place::Interrupt(InterruptGroup::Main(15), 0x10)),
            ),
            (0x38400, Some(Place::General(0x400))),
            (
                0x3a000,
                Some(Place::Interrupt(InterruptGroup::Errors(M2s), 0)),
            ),
            (
                0x3a070,
                Some(Place::Interrupt(InterruptGroup::Errors(S2m), 0x30)),
            ),
            (
                0x3a080,
                Some(Place::Interrupt(InterruptGroup::AxiErrors, 0)),
            ),
            (0x3a0c0, Some(Place::General(0x20c0))),
            (0x3c400, Some(Place::GeneralEx(0x400))),
            (0x40000, None),
            (0x4110c, Some(Place::Notific(0x10c))),
            (0x42000, None),
        ] {
            assert_eq!(Place::at(offset, 16), place, "{offset:#x}");
        }
    }

    #[test]
    fn registers_have_names() {
        let v3 = Arch::V3.spec();
        for (name, offset) in [
            ("m2s.state", 0x200),
            ("s2m.state", 0x20200),
            ("m2s.q0.drtp_inc", 0x1038),
            ("s2m.q15.drl", 0x30030),
            ("m2s.err_log[3]", 0x220),
            ("main3.mask_clear", 0x380d8),
            ("s2m_errors.cause", 0x3a040),
            ("gen.axi_cfg_1", 0x3a300),
            ("m2s.q1.tdrdtp", 0x20e4),
        ] {
            assert_eq!(offset_of(name, v3), Ok(offset), "{name}");
        }
        for name in [
            "",
            "state",
            "m2s",
            "m2s.",
            "m2s.q16.drl",
            "m2s.stat",
            "main16.mask",
            "m2s.err_log[4]",
            "s2m.q0.dwrr_cfg_1",
            "m2s.err_log[x]",
        ] {
            assert!(offset_of(name, v3).is_err(), "{name}");
        }
        let refused = offset_of("m2s.q1.tdrdtp", Arch::V2.spec()).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("on v2; there are desc_pref_cfg, cfg,")
        );
    }

    #[test]
    fn no_two_registers_share_a_word() {
        let shared: [&[&[Row]]; 8] = [
            &[QUEUE, QUEUE_M2S],
            &[QUEUE, QUEUE_S2M],
            &[GLOBAL, GLOBAL_M2S],
            &[GLOBAL, GLOBAL_S2M],
            &[INTERRUPT_GROUP],
            &[GENERAL],
            &[GENERAL_EX],
            &[NOTIFIC],
        ];
        for tables in shared {
            let mut taken = std::collections::BTreeMap::new();
            for row in tables.iter().copied().flatten() {
                assert!(row.offset.is_multiple_of(4));
                for word in 0..row.words {
                    let other = taken.insert(row.offset + 4 * word, row.name);
                    assert_eq!(other, None, "{} at {:#x}", row.name, row.offset + 4 * word);
                }
            }
        }
    }
}
