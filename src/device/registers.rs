//! Where a register offset points, and the values of registers that only hold what was written.
//!
//! Live registers (pointers, status, state, causes) are answered by the engine from the state they
//! show; everything else reads back what was written, else its reset value.

use crate::arch::regs::{
    self, CfgLen, CompCfg, DataCfg, DescPrefCfg, DescPrefCfg2, Direction, DwrrCfg, OutstandingM2s,
    OutstandingS2mWr, QueueCfg, RateLimitMask, general, global, iofic, queue,
};
use crate::arch::{ArchSpec, UDMA_UNIT_BYTES};
use std::collections::BTreeMap;

/// Bytes of the data FIFO's beats, descriptors and so on that a fresh engine comes up with. The
/// sources give these as what drivers program; as reset values they are modelled (C), so that an
/// engine nobody configured behaves like one a driver did.
mod reset {
    /// Data reads, descriptor reads and writes in flight.
    pub const OUTSTANDING: u8 = 128;
    /// Beats of the data FIFO (A: 1024 by default).
    pub const DATA_FIFO_BEATS: u16 = 1024;
    /// Longest packet: all that the field can say.
    pub const MAX_PKT_SIZE: u32 = 0xf_ffff;
}

/// What an offset in a unit's window names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// `offset` in the bank of a queue.
    Queue(Direction, u8, u64),
    /// `offset` in the M2S or S2M block.
    Global(Direction, u64),
    /// Secondary interrupt group of a half: its error causes.
    ErrorGroup(Direction, u64),
    /// Everything else: GEN and GEN_EX.
    Other,
}

impl Register {
    /// Decodes an offset below [`UDMA_UNIT_BYTES`].
    pub fn at(offset: u64, queues: u32) -> Register {
        const BLOCK_ENDS: [(Direction, u64, u64); 2] = [
            (Direction::M2s, regs::M2S, regs::S2M),
            (Direction::S2m, regs::S2M, regs::GEN),
        ];
        for (direction, start, end) in BLOCK_ENDS {
            if !(start..end).contains(&offset) {
                continue;
            }
            let within = offset - start;
            let bank = within / regs::QUEUE_BANK_BYTES;
            return match bank.checked_sub(1) {
                None => Register::Global(direction, within),
                Some(q) if q < u64::from(queues) => {
                    Register::Queue(direction, q as u8, within % regs::QUEUE_BANK_BYTES)
                }
                Some(_) => Register::Other,
            };
        }
        let group = offset.wrapping_sub(regs::GEN + general::IOFIC_SECONDARY);
        match (group / iofic::GROUP_BYTES, group % iofic::GROUP_BYTES) {
            (0, within) => Register::ErrorGroup(Direction::M2s, within),
            (1, within) => Register::ErrorGroup(Direction::S2m, within),
            _ => Register::Other,
        }
    }
}

/// Values written to registers, by offset in the unit.
pub struct Registers {
    written: BTreeMap<u64, u32>,
    spec: &'static ArchSpec,
}

impl Registers {
    /// Every register at its reset value.
    pub fn new(spec: &'static ArchSpec) -> Registers {
        Registers {
            written: BTreeMap::new(),
            spec,
        }
    }

    /// What was written last, else the reset value.
    pub fn get(&self, offset: u64) -> u32 {
        match self.written.get(&offset) {
            Some(value) => *value,
            None => self.reset_value(offset),
        }
    }

    /// Stores a value. Offsets beyond the unit are ignored.
    pub fn set(&mut self, offset: u64, value: u32) {
        if offset < UDMA_UNIT_BYTES {
            self.written.insert(offset, value);
        }
    }

    /// A register of a queue's bank.
    pub fn queue(&self, direction: Direction, q: u8, offset: u64) -> u32 {
        self.get(direction.queue_reg(q, offset))
    }

    /// An engine-global register of a half.
    pub fn global(&self, direction: Direction, offset: u64) -> u32 {
        self.get(direction.global_reg(offset))
    }

    fn reset_value(&self, offset: u64) -> u32 {
        use Direction::{M2s, S2m};
        match Register::at(offset, self.spec.limits.queues_per_engine) {
            Register::Queue(direction, _, within) => match (direction, within) {
                (_, queue::DESC_PREF_CFG) => DescPrefCfg::new().into_bits(),
                (_, queue::CFG) => QueueCfg::new().into_bits(),
                (M2s, queue::M2S_RATE_LIMIT_MASK) => RateLimitMask::new().into_bits(),
                (M2s, queue::M2S_COMP_CFG) => CompCfg::new().into_bits(),
                (S2m, queue::S2M_COMP_CFG) => CompCfg::S2M_RESET.into_bits(),
                _ => 0,
            },
            Register::Global(M2s, within) => match within {
                global::M2S_OSTAND_CFG => OutstandingM2s::new()
                    .with_data_rd(reset::OUTSTANDING)
                    .with_desc_rd(reset::OUTSTANDING)
                    .into_bits(),
                global::M2S_CFG_LEN => CfgLen::new()
                    .with_max_pkt_size(reset::MAX_PKT_SIZE)
                    .with_encode_64k(true)
                    .into_bits(),
                global::M2S_PREF_QUEUE_EN => regs::PREF_QUEUE_EN_RESET,
                global::DESC_PREF_CFG_2 => DescPrefCfg2::new()
                    .with_max_desc_per_pkt(self.spec.limits.tx_descs_per_packet as u16)
                    .into_bits(),
                global::M2S_DATA_CFG => DataCfg::new()
                    .with_data_fifo_depth(reset::DATA_FIFO_BEATS)
                    .into_bits(),
                global::M2S_DWRR => DwrrCfg::new().into_bits(),
                global::M2S_COMP_ACK_TIMEOUT => regs::COMP_ACK_TIMEOUT_RESET,
                _ => 0,
            },
            Register::Global(S2m, within) => match within {
                global::S2M_OSTAND_CFG_RD => OutstandingM2s::new()
                    .with_desc_rd(reset::OUTSTANDING)
                    .into_bits(),
                global::S2M_OSTAND_CFG_WR => OutstandingS2mWr::new()
                    .with_data_wr(reset::OUTSTANDING)
                    .into_bits(),
                global::S2M_PREF_QUEUE_EN => regs::PREF_QUEUE_EN_RESET,
                _ => 0,
            },
            Register::ErrorGroup(..) | Register::Other => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;

    #[test]
    fn offsets_decode() {
        use Direction::{M2s, S2m};
        for (offset, register) in [
            (0x00200, Register::Global(M2s, 0x200)),
            (0x01038, Register::Queue(M2s, 0, 0x38)),
            (0x10ffc, Register::Queue(M2s, 15, 0xffc)),
            (0x11000, Register::Other),
            (0x20204, Register::Global(S2m, 0x204)),
            (0x22028, Register::Queue(S2m, 1, 0x28)),
            (0x38000, Register::Other),
            (0x3a000, Register::ErrorGroup(M2s, 0)),
            (0x3a070, Register::ErrorGroup(S2m, 0x30)),
            (0x3fffc, Register::Other),
        ] {
            assert_eq!(Register::at(offset, 16), register, "{offset:#x}");
        }
    }

    #[test]
    fn an_unmodelled_register_reads_back() {
        let mut registers = Registers::new(Arch::V3.spec());
        assert_eq!(registers.get(0x3b460), 0);
        registers.set(0x3b460, 0xfeed);
        assert_eq!(registers.get(0x3b460), 0xfeed);
        assert_eq!(registers.get(0x00124), 0x8080);
        assert_eq!(registers.get(0x01074), 7);
    }
}
