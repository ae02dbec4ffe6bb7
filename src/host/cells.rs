//! Events and semaphores: 4-byte copies from a constant to a cell, where the write is the effect
//! (`docs/hardware.md`, "Address map").

use super::vring::{Vring, VringError};
use crate::arch::EventBlock;
use crate::desc::BarrierMode;

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
    use crate::arch::Arch;
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
}
