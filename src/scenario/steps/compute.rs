//! Packets of the stream processor: reductions, casts, seeds, transposes.

use super::step::{Step, names};
use crate::desc::{
    BarrierMode, Buffer, CceConstant, CceInfo, CcePacket, DType, KbinOp, Permutation,
    TransposeDims, TransposePacket,
};
use crate::document::{FromValue, Value, keys};
use crate::scenario::given::{Place, Places};
use crate::scenario::host_side::{HostError, HostSide};
use crate::scenario::stage::Stage;
use crate::scenario::words::Name;

names! {
    AddDmaPacketCce => "add_dma_packet_cce";
    AddSetSeedPacket => "add_set_seed_packet";
    AddDmaPacketTranspose => "add_dma_packet_transpose";
    AddDmaPacketTransposeFlush => "add_dma_packet_transpose_flush";
}

keys! {
    /// A reduction or a cast; types left out are that of the sources.
    pub(super) struct AddDmaPacketCce {
        vring: Name,
        op: KbinOp,
        from: Places,
        to: Places,
        elements: u32,
        dtype: DType,
        acc_dtype: Option<DType>,
        out_dtype: Option<DType>,
        scales: Vec<f32> = Vec::new(),
        constant: Option<u32>,
        constant_dtype: Option<DType>,
        barrier: BarrierMode = BarrierMode::None,
    }

    /// The seed of stochastic rounding.
    pub(super) struct AddSetSeedPacket {
        vring: Name,
        seed: u32,
        scratch: Place,
    }

    /// A transpose.
    pub(super) struct AddDmaPacketTranspose {
        vring: Name,
        from: Place,
        to: Place,
        dims: Dims,
        element_bytes: u32,
        permutation: Permutation,
    }

    /// The end of a group of transposes.
    pub(super) struct AddDmaPacketTransposeFlush {
        vring: Name,
        core: u32,
    }
}

/// The dimensions of a transpose.
#[derive(Debug)]
pub(super) struct Dims([u16; 4]);

impl FromValue for Dims {
    const EXPECTED: &'static str = "four numbers, W to Z";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let Some(numbers) = Vec::<u32>::from_value(value)? else {
            return Ok(None);
        };
        let small = numbers.iter().map(|dim| u16::try_from(*dim).ok());
        let dims: Option<Vec<u16>> = small.collect();
        match dims.and_then(|dims| <[u16; 4]>::try_from(dims).ok()) {
            Some(dims) => Ok(Some(Dims(dims))),
            None => Err("expected four numbers from 1 to 65535: W, X, Y and Z".to_string()),
        }
    }
}

impl Step for AddDmaPacketCce {
    fn detail(&self) -> String {
        self.vring.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        let mut packet = CcePacket::new(&self.from.0, &self.to.0, self.elements, self.dtype);
        packet.acc_dtype = self.acc_dtype.unwrap_or(self.dtype);
        packet.out_dtype = self.out_dtype.unwrap_or(self.dtype);
        packet.barrier = self.barrier;
        if !self.scales.is_empty() || self.constant.is_some() {
            let mut info = CceInfo::scaled(&self.scales);
            info.constant = self.constant.map(|bits| CceConstant {
                dtype: self.constant_dtype.unwrap_or(self.dtype),
                bits,
            });
            packet.cce_info = Some(info);
        }
        vring.add_dma_packet_cce(self.op, &packet)?;
        Ok(())
    }
}

impl Step for AddSetSeedPacket {
    fn detail(&self) -> String {
        self.vring.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        vring.add_set_seed_packet(self.seed, self.scratch.at)?;
        Ok(())
    }
}

impl Step for AddDmaPacketTranspose {
    fn detail(&self) -> String {
        self.vring.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        let dims = TransposeDims(self.dims.0);
        let len = dims.elements().saturating_mul(self.element_bytes.into());
        let buffer = |place: &Place| Buffer { at: place.at, len };
        vring.add_dma_packet_transpose(&TransposePacket {
            source: buffer(&self.from),
            destination: buffer(&self.to),
            dims,
            element_bytes: self.element_bytes,
            permutation: self.permutation,
        })?;
        Ok(())
    }
}

impl Step for AddDmaPacketTransposeFlush {
    fn detail(&self) -> String {
        self.vring.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        host.author(&self.vring)?
            .add_dma_packet_transpose_flush(self.core)?;
        Ok(())
    }
}
