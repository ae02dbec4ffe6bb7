//! Packets of copies.

use super::step::{Step, names};
use crate::desc::{BarrierMode, Buffer, CopyPacket};
use crate::document::{Tables, keys};
use crate::host::{DmaOp, IoStep, Signal};
use crate::scenario::given::{Stretch, Told};
use crate::scenario::host_side::{HostError, HostSide};
use crate::scenario::stage::Stage;
use crate::scenario::words::Name;
use crate::units::Bytes;

names! {
    AddDmaPacket => "add_dma_packet";
    ExpandIo => "expand_io";
}

keys! {
    /// One packet that gathers and scatters.
    pub(super) struct AddDmaPacket {
        vring: Name,
        from: Tables<Part>,
        to: Tables<Part>,
        barrier: BarrierMode = BarrierMode::None,
        notification_mask: bool = false,
    }

    /// A source or a destination of a packet.
    pub(super) struct Part {
        at: Stretch,
    }

    /// Copies of an I/O step and who is told behind them.
    pub(super) struct ExpandIo {
        vring: Name,
        copies: Tables<Move>,
        then: Tables<Told>,
        max_packet_size: Bytes,
    }

    /// A copy.
    pub(super) struct Move {
        from: Stretch,
        to: Stretch,
    }
}

impl Step for AddDmaPacket {
    fn detail(&self) -> String {
        self.vring.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        let buffers = |parts: &Tables<Part>| -> Vec<Buffer> {
            parts.0.iter().map(|part| buffer(&part.at)).collect()
        };
        let (sources, destinations) = (buffers(&self.from), buffers(&self.to));
        let mut packet = CopyPacket::new(&sources, &destinations);
        packet.barrier = self.barrier;
        packet.notification_mask = self.notification_mask;
        vring.add_dma_packet(&packet)?;
        Ok(())
    }
}

impl Step for ExpandIo {
    fn detail(&self) -> String {
        self.vring.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        let ends = |copy: &Move| [buffer(&copy.from), buffer(&copy.to)];
        let ends: Vec<[Buffer; 2]> = self.copies.0.iter().map(ends).collect();
        let ops: Vec<DmaOp> = ends
            .iter()
            .map(|[from, to]| {
                let (from, to) = (std::slice::from_ref(from), std::slice::from_ref(to));
                DmaOp::Copy(CopyPacket::new(from, to))
            })
            .collect();
        let then: Vec<Signal> = self.then.0.iter().map(|told| told.0).collect();
        let step = IoStep {
            ops: &ops,
            then: &then,
        };
        vring.expand_io(&[step], self.max_packet_size.0)?;
        Ok(())
    }
}

fn buffer(stretch: &Stretch) -> Buffer {
    Buffer {
        at: stretch.at,
        len: stretch.bytes,
    }
}
