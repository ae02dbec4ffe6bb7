//! The register file: values of the registers that hold what was written. Which registers there
//! are, what an access does and what they reset to is in [`regs::table`](crate::arch::regs::table);
//! registers that show the engine's state are answered by the engine.

use crate::arch::regs::Direction;
use crate::arch::regs::table::{Access, Place, Row};
use crate::arch::{ArchSpec, QueueId};
use crate::memory::{InertWord, InertWords};
use std::collections::BTreeMap;

/// Values of the registers of one unit.
pub(super) struct Registers {
    written: BTreeMap<u64, u32>,
    /// Those that no table has.
    unmodelled: InertWords,
    spec: &'static ArchSpec,
}

impl Registers {
    /// Every register at its reset value.
    pub fn new(spec: &'static ArchSpec) -> Registers {
        Registers {
            written: BTreeMap::new(),
            unmodelled: InertWords::default(),
            spec,
        }
    }

    /// The place and the register at an offset; `None` if no table has it.
    pub fn locate(&self, offset: u64) -> Option<(Place, &'static Row)> {
        let place = Place::at(offset, self.spec.limits.queues_per_engine)?;
        Some((place, place.row(self.spec.arch)?))
    }

    /// What a register holds: the value written last, else its reset value.
    pub fn get(&self, offset: u64) -> u32 {
        match self.written.get(&offset) {
            Some(value) => *value,
            None => self
                .locate(offset)
                .map_or(0, |(_, row)| row.reset.value(self.spec)),
        }
    }

    /// Stores a value in a register that can hold one.
    pub fn set(&mut self, offset: u64, value: u32) {
        if let Some((_, row)) = self.locate(offset)
            && row.access == Access::ReadWrite
        {
            self.written.insert(offset, value);
        }
    }

    /// Reads what no table has; whether nobody had touched it before.
    pub fn read_unmodelled(&mut self, offset: u64) -> (u32, bool) {
        let first = self.unmodelled.note_read(offset);
        (self.unmodelled.get(offset), first)
    }

    /// Writes what no table has: it holds the value. Returns whether nobody had touched it before.
    pub fn write_unmodelled(&mut self, offset: u64, value: u32) -> bool {
        self.unmodelled.set(offset, value)
    }

    /// What no table has and somebody has touched.
    pub fn unmodelled(&self) -> impl Iterator<Item = (u64, InertWord)> {
        self.unmodelled.touched()
    }

    /// A register of a queue's bank.
    pub fn queue(&self, direction: Direction, q: QueueId, offset: u64) -> u32 {
        self.get(direction.queue_reg(q, offset))
    }

    /// An engine-global register of a half.
    pub fn global(&self, direction: Direction, offset: u64) -> u32 {
        self.get(direction.global_reg(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;

    /// Reset values typed by hand from the register listing.
    #[test]
    fn registers_reset_to_what_the_listing_says() {
        for (offset, v2, v3) in [
            (0x01000, 0x80, 0x80),
            (0x01020, 0x0300_0000, 0x0300_0000),
            (0x01034, 0x4000_0000, 0x4000_0000),
            (0x01074, 7, 7),
            (0x010a0, 0, 0),
            (0x21054, 1, 1),
            (0x00124, 0x8080, 0x8080),
            (0x00254, 0x010f_ffff, 0x010f_ffff),
            (0x0025c, 0xffff, 0xffff),
            (0x20254, 0xffff, 0xffff),
            (0x00304, 0x0001_0080, 0x0001_0041),
            (0x00310, 0x0100_0400, 0x0100_08f8),
            (0x00340, 0x0007_0200, 0x0007_0200),
            (0x00408, 100_000, 100_000),
            (0x2038c, 100_000, 100_000),
            (0x38010, u32::MAX, u32::MAX),
            (0x3a030, 0, 0),
        ] {
            assert_eq!(
                Registers::new(Arch::V2.spec()).get(offset),
                v2,
                "v2 {offset:#x}"
            );
            assert_eq!(
                Registers::new(Arch::V3.spec()).get(offset),
                v3,
                "v3 {offset:#x}"
            );
        }
    }

    #[test]
    fn what_can_hold_a_value_holds_it_and_nothing_else_does() {
        for arch in Arch::ALL {
            let mut registers = Registers::new(arch.spec());
            for offset in (0..arch.spec().map.engine_window).step_by(4) {
                let before = registers.get(offset);
                registers.set(offset, !before);
                let holds = (registers.locate(offset))
                    .is_some_and(|(_, row)| row.access == Access::ReadWrite);
                let expected = if holds { !before } else { before };
                assert_eq!(registers.get(offset), expected, "{arch} {offset:#x}");
            }
        }
    }

    #[test]
    fn what_no_table_has_holds_its_value_and_is_told_of_once() {
        let mut registers = Registers::new(Arch::V3.spec());
        assert!(registers.locate(0x1_1000).is_none() && registers.locate(0x10).is_none());
        assert_eq!(registers.read_unmodelled(0x1_1000), (0, true));
        assert!(registers.write_unmodelled(0x10, 7) && !registers.write_unmodelled(0x1_1000, 5));
        assert_eq!(registers.read_unmodelled(0x10), (7, false));
        assert_eq!(registers.read_unmodelled(0x1_1000), (5, false));
        let touched: Vec<_> = (registers.unmodelled())
            .map(|(offset, word)| (offset, word.value, word.reads, word.writes))
            .collect();
        assert_eq!(touched, [(0x10, 7, 1, 1), (0x1_1000, 5, 2, 1)]);
    }

    #[test]
    fn the_data_tail_exists_from_v3_on() {
        let exists = |arch: Arch| Registers::new(arch.spec()).locate(0x010e0).is_some();
        assert_eq!(Arch::ALL.map(exists), [false, true, true]);
    }
}
