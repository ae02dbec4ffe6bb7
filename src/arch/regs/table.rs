//! What an offset in a unit's window names, and what a register's name says of its offset.

pub use super::declare::{Access, Model, Reset, Row};
pub use super::general::GENERAL;
pub use super::general_ex::GENERAL_EX;
pub use super::global::{GLOBAL, GLOBAL_M2S, GLOBAL_S2M};
pub use super::iofic::INTERRUPT_GROUP;
pub use super::notific::NOTIFIC;
pub use super::queue::{QUEUE, QUEUE_M2S, QUEUE_S2M};

use super::{Direction, general, iofic};
use crate::arch::{Arch, ArchSpec, QueueId};

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
        "\"{0}\" does not name a register block; expected m2s, s2m, m2s.q0 to q15, s2m.q0 to q15, main0 to main15, m2s_errors, s2m_errors, axi_errors, gen, gen_ex or notific, then a dot and the register"
    )]
    Block(String),
    /// No such register in the block on this generation.
    #[error("unknown register \"{register}\" in {block} on {arch}; known: {known}")]
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
                .contains("on v2; known: desc_pref_cfg, cfg,")
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
