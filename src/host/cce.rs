//! Compute packets in a vring: reductions, and the packet that seeds stochastic rounding.

use super::packet::PacketCounts;
use super::vring::{VRING_RING_ID, Vring, VringError};
use crate::desc::{
    CCE_GRANULE_BYTES, CceError, CcePacket, CceType, DType, KbinOp, build_cce_packet,
};
use crate::units::Addr;

/// Type of the data that travels with a seed.
const SEED_DTYPE: DType = DType::Uint32;

impl Vring {
    /// Appends a reduction, named as the compiler names it; returns how many descriptors it took.
    ///
    /// # Errors
    /// [`VringError::Cce`] for a copy, a transpose and what the builder refuses; others as for
    /// [`Vring::add_desc_transfer`]. The vring is then as it was.
    pub fn add_dma_packet_cce(
        &mut self,
        op: KbinOp,
        packet: &CcePacket,
    ) -> Result<PacketCounts, VringError> {
        let cce = op.cce_type().ok_or_else(|| VringError::Cce {
            vring: self.name.clone(),
            op: op as u32,
            source: CceError::Op(op as u32),
        })?;
        self.add_dma_packet_cce_int(cce, packet)
    }

    /// Appends a reduction of 1 to 32 sources; returns how many descriptors it took. Several
    /// destinations need V3. In a vring that rounds stochastically, so does the packet.
    ///
    /// # Errors
    /// [`VringError::Cce`] for what the builder refuses; others as for [`Vring::add_desc_transfer`].
    /// The vring is then as it was.
    pub fn add_dma_packet_cce_int(
        &mut self,
        op: CceType,
        packet: &CcePacket,
    ) -> Result<PacketCounts, VringError> {
        let mut packet = packet.clone();
        packet.stochastic_rounding |= self.stochastic_rounding;
        let built = build_cce_packet(self.arch, op, &packet, VRING_RING_ID).map_err(|source| {
            VringError::Cce {
                vring: self.name.clone(),
                op: op.into_bits().into(),
                source,
            }
        })?;
        self.append_packet(&built)
    }

    /// Appends the packet that seeds the queue's stochastic rounding: an ADD of the 32 bytes at
    /// `scratch` onto themselves, led by the seed. `scratch` is a place nobody else uses.
    ///
    /// # Errors
    /// As [`Vring::add_dma_packet_cce_int`].
    pub fn add_set_seed_packet(
        &mut self,
        seed: u32,
        scratch: Addr,
    ) -> Result<PacketCounts, VringError> {
        let elements = CCE_GRANULE_BYTES as u32 / SEED_DTYPE.bytes();
        let place = [scratch];
        let mut packet = CcePacket::new(&place, &place, elements, SEED_DTYPE);
        packet.seed = Some(seed);
        self.add_dma_packet_cce_int(CceType::Add, &packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::host::VringSet;

    const ENDS: [Addr; 2] = [Addr(0x1000), Addr(0x2000)];

    #[test]
    fn totals_count_sources_and_results() {
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        let packet = CcePacket::new(&ENDS, &ENDS[..1], 32, DType::Bfloat16);
        let counts = vring.add_dma_packet_cce(KbinOp::Add, &packet).unwrap();
        assert_eq!(counts, PacketCounts { tx: 2, rx: 1 });
        assert_eq!((vring.total_tx_size(), vring.total_rx_size()), (128, 64));
        let counts = vring.add_set_seed_packet(7, Addr(0x40)).unwrap();
        assert_eq!(counts, PacketCounts { tx: 2, rx: 1 });
        assert_eq!(
            vring.tx().get(2).unwrap().words,
            [0x8580_0000, 0x4600_0000, 0, 7]
        );
        assert_eq!(
            vring.tx().get(3).unwrap().words,
            [0x0900_0020, 0x0209_9980, 0x40, 0]
        );
    }

    #[test]
    fn refusals_say_what_the_runtime_says() {
        let mut vring = Vring::new(Arch::V2, "reduce_0").unwrap();
        let packet = CcePacket::new(&ENDS, &ENDS, 32, DType::Bfloat16);
        let refused = vring.add_dma_packet_cce(KbinOp::Max, &packet).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "Failed to add CCE 2 packet to vring reduce_0: CCE replication not supported for v1/v2 archs"
        );
        let refused = vring
            .add_dma_packet_cce(KbinOp::Transpose, &packet)
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "Failed to add CCE 5 packet to vring reduce_0: unsupported op! (5)"
        );
        assert_eq!(vring.tx().used_desc_count(), 0);
    }

    #[test]
    fn a_vring_that_rounds_stochastically_says_so_in_its_words() {
        let mut set = VringSet::allocate(Arch::V3, "sr", 1, true, 0).unwrap();
        let packet = CcePacket::new(&ENDS, &ENDS[..1], 32, DType::Bfloat16);
        let vring = &mut set.vrings_mut()[0];
        vring.add_dma_packet_cce(KbinOp::Add, &packet).unwrap();
        assert_eq!(vring.tx().get(0).unwrap().words[1], 0x0206_6610);
    }
}
