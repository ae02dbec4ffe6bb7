//! Events and semaphores: 4-byte copies from a constant to a cell, where the write is the effect
//! (`docs/hardware.md`, "Address map").

use super::vring::{Vring, VringError};
use crate::arch::{Arch, EngineId, EventBlock};
use crate::desc::BarrierMode;
use crate::units::Addr;

/// Offset in a partition of the word that a semaphore increment from the State Buffer reads.
const SB_INCREMENT_OFFSET: u64 = 229_372;

/// Partition that goes with an engine, by the low four bits of its number. Modelled (C): the runtime's
/// table is not public; this one spreads the engines evenly.
const ENGINE_PARTITION: [u64; 16] = [
    0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120,
];

/// The State Buffer word that [`Vring::add_desc_semaphore_inc_from_sb`] copies to the semaphore: the
/// host writes the increment there first. `None` if the device has no such NeuronCore.
pub fn sb_increment_word(arch: Arch, core: u32, engine: EngineId) -> Option<Addr> {
    let map = &arch.spec().map;
    let base = map.tpb.get(core as usize)?;
    let partition = ENGINE_PARTITION[(engine.0 & 15) as usize];
    let offset = partition * map.state_buffer.stride + SB_INCREMENT_OFFSET;
    Some(Addr(base.0 + offset))
}

/// What happens to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventAction {
    /// It becomes 1.
    Set,
    /// It becomes 0.
    Clear,
}

impl Vring {
    /// Appends the 4-byte copy that sets or clears an event, ordered as the runtime orders it. The
    /// block counts the NeuronCores' blocks first, then the TOP_SPs'.
    ///
    /// # Errors
    /// [`VringError`]; the vring is then as it was.
    pub fn add_desc_event(
        &mut self,
        block: u32,
        event: u32,
        action: EventAction,
    ) -> Result<(), VringError> {
        self.add_desc_event_with_barrier(block, event, action, self.default_barrier())
    }

    /// As [`Vring::add_desc_event`], with `barrier`.
    ///
    /// # Errors
    /// [`VringError`]; the vring is then as it was.
    pub fn add_desc_event_with_barrier(
        &mut self,
        block: u32,
        event: u32,
        action: EventAction,
        barrier: BarrierMode,
    ) -> Result<(), VringError> {
        let map = &self.arch.spec().map;
        let src = match action {
            EventAction::Set => map.event_set,
            EventAction::Clear => map.event_clear,
        };
        let dst = map
            .event(block, event)
            .ok_or_else(|| self.no_cell("event", block, event))?;
        self.add_desc_transfer_with_barrier(src, dst, EventBlock::CELL_BYTES, barrier)
    }

    /// Appends the 4-byte copy that increments a semaphore, ordered as the runtime orders it. The
    /// block counts the NeuronCores' blocks first, then the TOP_SPs'.
    ///
    /// # Errors
    /// [`VringError`]; the vring is then as it was.
    pub fn add_desc_semaphore_inc(&mut self, block: u32, semaphore: u32) -> Result<(), VringError> {
        self.add_desc_semaphore_inc_with_barrier(block, semaphore, self.default_barrier())
    }

    /// As [`Vring::add_desc_semaphore_inc`], with `barrier`.
    ///
    /// # Errors
    /// [`VringError`]; the vring is then as it was.
    pub fn add_desc_semaphore_inc_with_barrier(
        &mut self,
        block: u32,
        semaphore: u32,
        barrier: BarrierMode,
    ) -> Result<(), VringError> {
        let map = &self.arch.spec().map;
        let dst = map
            .semaphore(block, EventBlock::SEM_INC, semaphore)
            .ok_or_else(|| self.no_cell("semaphore", block, semaphore))?;
        // The set constant reads 1: the cell adds what is written to it.
        self.add_desc_transfer_with_barrier(map.event_set, dst, EventBlock::CELL_BYTES, barrier)
    }

    /// Appends the 4-byte copy that increments a semaphore by the word that lies at the end of a
    /// State Buffer partition of NeuronCore `core`, ordered as the runtime orders it (V3 only). Which
    /// partition depends on the engine: see [`sb_increment_word`].
    ///
    /// # Errors
    /// [`VringError`]; the vring is then as it was.
    pub fn add_desc_semaphore_inc_from_sb(
        &mut self,
        core: u32,
        engine: EngineId,
        block: u32,
        semaphore: u32,
    ) -> Result<(), VringError> {
        if !self.arch.spec().caps.semaphore_inc_from_sb {
            return Err(VringError::SemaphoreFromSb {
                vring: self.name.clone(),
                arch: self.arch,
            });
        }
        let map = &self.arch.spec().map;
        let src = sb_increment_word(self.arch, core, engine).ok_or_else(|| VringError::NoCore {
            vring: self.name.clone(),
            core,
            last: map.tpb.len() as u32 - 1,
        })?;
        let dst = map
            .semaphore(block, EventBlock::SEM_INC, semaphore)
            .ok_or_else(|| self.no_cell("semaphore", block, semaphore))?;
        self.add_desc_transfer(src, dst, EventBlock::CELL_BYTES)
    }

    fn no_cell(&self, cell: &'static str, block: u32, index: u32) -> VringError {
        VringError::NoCell {
            vring: self.name.clone(),
            arch: self.arch,
            cell,
            block,
            index,
            last_block: self.arch.spec().map.event_block_count() - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desc::{RxDesc, TxDesc};

    fn pairs(vring: &Vring) -> Vec<(TxDesc, RxDesc)> {
        (0..vring.tx().used_desc_count())
            .map(|idx| {
                let (tx, rx) = (vring.tx().get(idx).unwrap(), vring.rx().get(idx).unwrap());
                (TxDesc::from(*tx), RxDesc::from(*rx))
            })
            .collect()
    }

    #[test]
    fn events_and_semaphores_copy_constants_to_cells() {
        let mut vring = Vring::new(Arch::V2, "v").unwrap();
        vring.add_desc_event(1, 3, EventAction::Set).unwrap();
        vring.add_desc_event(1, 3, EventAction::Clear).unwrap();
        vring.add_desc_semaphore_inc(0, 255).unwrap();
        vring
            .add_desc_semaphore_inc_with_barrier(2, 0, BarrierMode::None)
            .unwrap();
        let ends: Vec<_> = pairs(&vring)
            .iter()
            .map(|(tx, rx)| (tx.buf_ptr.0, rx.buf1_ptr.0, tx.len_ctrl.byte_len()))
            .collect();
        assert_eq!(
            ends,
            [
                (0x20_0000_0004, 0xfff_c670_000c, 4),
                (0x20_0000_0000, 0xfff_c670_000c, 4),
                (0x20_0000_0004, 0xfff_c270_1bfc, 4),
                (0x20_0000_0004, 0xfff_d000_1800, 4),
            ]
        );
        let dmb: Vec<bool> = pairs(&vring)
            .iter()
            .map(|(tx, _)| tx.len_ctrl.dmb())
            .collect();
        assert_eq!(dmb, [true, true, true, false]);
        assert_eq!(vring.total_rx_size(), 16);
    }

    #[test]
    fn cells_that_do_not_exist_are_refused() {
        let mut vring = Vring::new(Arch::V2, "v").unwrap();
        for (block, index) in [(8, 0), (0, 256), (u32::MAX, u32::MAX)] {
            let refused = vring.add_desc_event(block, index, EventAction::Set);
            assert!(matches!(
                refused,
                Err(VringError::NoCell {
                    cell: "event",
                    last_block: 7,
                    ..
                })
            ));
            let refused = vring.add_desc_semaphore_inc(block, index);
            assert!(matches!(
                refused,
                Err(VringError::NoCell {
                    cell: "semaphore",
                    ..
                })
            ));
        }
        assert_eq!(vring.tx().used_desc_count(), 0);
    }

    #[test]
    fn an_increment_from_the_state_buffer_is_v3_only() {
        for arch in [Arch::V2, Arch::V4] {
            let mut vring = Vring::new(arch, "v").unwrap();
            let refused = vring.add_desc_semaphore_inc_from_sb(0, EngineId(0), 0, 0);
            assert!(
                matches!(refused, Err(VringError::SemaphoreFromSb { .. })),
                "{arch}"
            );
        }
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        vring
            .add_desc_semaphore_inc_from_sb(1, EngineId(19), 1, 2)
            .unwrap();
        let (tx, rx) = pairs(&vring)[0];
        // Partition 24 of the second core: its base + (24 << 18) + 229372.
        assert_eq!(tx.buf_ptr, Addr(0x30_0000_0000 + 0x60_0000 + 0x3_7ffc));
        assert_eq!(rx.buf1_ptr, Addr(0x30_0000_0000 + 0x8_0270_0000 + 0x1808));
        assert_eq!(tx.len_ctrl.byte_len(), 4);
        let refused = vring.add_desc_semaphore_inc_from_sb(8, EngineId(0), 0, 0);
        assert!(matches!(
            refused,
            Err(VringError::NoCore {
                core: 8,
                last: 7,
                ..
            })
        ));
        let refused = vring.add_desc_semaphore_inc_from_sb(0, EngineId(0), 0, 256);
        assert!(matches!(refused, Err(VringError::NoCell { .. })));
    }
}
