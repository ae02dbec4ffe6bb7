//! Descriptors of single transfers: copies, events, semaphores.

use super::step::{Step, names};
use crate::document::keys;
use crate::scenario::given::{Barrier, BlockCell, Engine, Stretch, event_action};
use crate::scenario::host_side::{HostError, HostSide};
use crate::scenario::stage::Stage;
use crate::scenario::words::Name;
use crate::units::Bytes;

names! {
    AddDescTransfer => "add_desc_transfer";
    AddDescTransferEx => "add_desc_transfer_ex";
    AddDescEvent => "add_desc_event";
    AddDescSemaphoreInc => "add_desc_semaphore_inc";
    AddDescSemaphoreIncFromSb => "add_desc_semaphore_inc_from_sb";
}

keys! {
    /// A copy; its barrier is the arch's own unless it says.
    pub(super) struct AddDescTransfer {
        vring: Name,
        from: Stretch,
        to: Stretch,
        barrier: Option<Barrier>,
    }

    /// A copy with DMB on the last chunk.
    pub(super) struct AddDescTransferEx {
        vring: Name,
        from: Stretch,
        to: Stretch,
    }

    /// Sets or clears an event.
    pub(super) struct AddDescEvent {
        vring: Name,
        event: BlockCell,
        set: bool = true,
        barrier: Option<Barrier>,
    }

    /// Increments a semaphore.
    pub(super) struct AddDescSemaphoreInc {
        vring: Name,
        semaphore: BlockCell,
        barrier: Option<Barrier>,
    }

    /// Increments a semaphore with a constant from a State Buffer.
    pub(super) struct AddDescSemaphoreIncFromSb {
        vring: Name,
        core: u32,
        engine: Engine,
        semaphore: BlockCell,
    }
}

fn copy(from: &Stretch, to: &Stretch) -> String {
    let size = Bytes(from.bytes);
    format!("{} -> {}, {size}", from.written, to.written)
}

impl Step for AddDescTransfer {
    fn detail(&self) -> String {
        copy(&self.from, &self.to) + &Barrier::shown(&self.barrier)
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        let (from, to, bytes) = (self.from.at, self.to.at, self.from.bytes);
        match Barrier::mode(&self.barrier) {
            None => vring.add_desc_transfer(from, to, bytes)?,
            Some(mode) => vring.add_desc_transfer_with_barrier(from, to, bytes, mode)?,
        }
        Ok(())
    }
}

impl Step for AddDescTransferEx {
    fn detail(&self) -> String {
        copy(&self.from, &self.to)
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        Ok(vring.add_desc_transfer_ex(self.from.at, self.to.at, self.from.bytes)?)
    }
}

impl Step for AddDescEvent {
    fn detail(&self) -> String {
        let what = if self.set { "set" } else { "clear" };
        let barrier = Barrier::shown(&self.barrier);
        format!("{what} event {}{barrier}", self.event.written)
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        let BlockCell { block, index, .. } = self.event;
        let action = event_action(self.set);
        match Barrier::mode(&self.barrier) {
            None => vring.add_desc_event(block, index, action)?,
            Some(mode) => vring.add_desc_event_with_barrier(block, index, action, mode)?,
        }
        Ok(())
    }
}

impl Step for AddDescSemaphoreInc {
    fn detail(&self) -> String {
        let barrier = Barrier::shown(&self.barrier);
        format!("semaphore {}{barrier}", self.semaphore.written)
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        let BlockCell { block, index, .. } = self.semaphore;
        match Barrier::mode(&self.barrier) {
            None => vring.add_desc_semaphore_inc(block, index)?,
            Some(mode) => vring.add_desc_semaphore_inc_with_barrier(block, index, mode)?,
        }
        Ok(())
    }
}

impl Step for AddDescSemaphoreIncFromSb {
    fn detail(&self) -> String {
        self.vring.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        let BlockCell { block, index, .. } = self.semaphore;
        Ok(vring.add_desc_semaphore_inc_from_sb(self.core, self.engine.id, block, index)?)
    }
}
