//! Edits of descriptors that are in a vring.

use super::step::{Step, names};
use crate::document::keys;
use crate::scenario::given::{BlockCell, Place};
use crate::scenario::host_side::{HostError, HostSide};
use crate::scenario::stage::Stage;
use crate::scenario::words::Name;
use crate::units::Bytes;

names! {
    PackDescs => "pack_descs";
    SetDmbOnLastPacket => "set_dmb_on_last_packet";
    SetEmbeddedSemaphoreInc => "set_embedded_semaphore_inc_on_last_desc";
    AddrRewrite => "addr_rewrite";
}

keys! {
    /// Packs small packets together.
    pub(super) struct PackDescs {
        vring: Name,
        max_packet_size: Bytes,
        start: u32 = 0,
        end: Option<u32>,
    }

    /// DMB on the last packet.
    pub(super) struct SetDmbOnLastPacket {
        vring: Name,
    }

    /// A semaphore that the last descriptor increments.
    pub(super) struct SetEmbeddedSemaphoreInc {
        vring: Name,
        semaphore: BlockCell,
        set_sow: bool = true,
    }

    /// Other addresses in place of those of a stretch of memory.
    pub(super) struct AddrRewrite {
        vring: Name,
        base: Place,
        size: Bytes,
        new_base: Place,
    }
}

impl Step for PackDescs {
    fn detail(&self) -> String {
        self.vring.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        let end = self.end.unwrap_or(vring.tx().used_desc_count());
        vring.pack_descs(self.start, end, self.max_packet_size.0, 0)?;
        Ok(())
    }
}

impl Step for SetDmbOnLastPacket {
    fn detail(&self) -> String {
        self.vring.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        Ok(host.author(&self.vring)?.set_dmb_on_last_packet()?)
    }
}

impl Step for SetEmbeddedSemaphoreInc {
    fn detail(&self) -> String {
        self.vring.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        let BlockCell { block, index, .. } = self.semaphore;
        Ok(vring.embed_semaphore_inc(block, index, self.set_sow)?)
    }
}

impl Step for AddrRewrite {
    fn detail(&self) -> String {
        self.vring.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        vring.addr_rewrite(self.base.at, self.size.0, self.new_base.at)?;
        Ok(())
    }
}
