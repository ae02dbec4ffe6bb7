//! Packets of many descriptors in a vring: the builders of `desc` encode them, the vring gives them
//! slots and keeps the accounts.

use super::vring::{VRING_RING_ID, Vring, VringError};
use crate::desc::{BuiltPacket, CmeMeta, CopyPacket, RingId, RxDesc, TxDesc, build_copy_packet};

/// Descriptors that a packet took in each half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// In the Tx half.
    pub tx: u32,
    /// In the Rx half.
    pub rx: u32,
}

impl Vring {
    /// Appends a copy packet of many descriptors; returns how many it took. As
    /// [`Vring::add_dma_packet_v2`] with index 0.
    ///
    /// # Errors
    /// [`VringError`]; the vring is then as it was.
    pub fn add_dma_packet(&mut self, packet: &CopyPacket) -> Result<PacketCounts, VringError> {
        self.add_dma_packet_v2(0, packet)
    }

    /// Appends a copy packet of many descriptors; returns how many it took. A packet's limits are
    /// those of the generation: 128 Tx and 128 Rx descriptors on V2, 65 and 60 from V3 on, the meta
    /// descriptor counted. `vring_idx`, which vring of its set this is, is added to the index of the
    /// packet's meta descriptor, modulo 4: modelled (C), the sources name the argument and no use.
    ///
    /// # Errors
    /// [`VringError::Packet`] for what the builder refuses, and others as for
    /// [`Vring::add_desc_transfer`]; the vring is then as it was.
    pub fn add_dma_packet_v2(
        &mut self,
        vring_idx: u32,
        packet: &CopyPacket,
    ) -> Result<PacketCounts, VringError> {
        let mut packet = packet.clone();
        packet.meta = packet.meta.map(|meta| CmeMeta {
            index: RingId::from_bits(meta.index.into_bits().wrapping_add(vring_idx as u8)),
            ..meta
        });
        let built = build_copy_packet(self.arch, &packet, VRING_RING_ID).map_err(|source| {
            VringError::Packet {
                vring: self.name.clone(),
                source,
            }
        })?;
        self.append_packet(&built)
    }

    /// Gives a packet its slots.
    pub(super) fn append_packet(
        &mut self,
        packet: &BuiltPacket,
    ) -> Result<PacketCounts, VringError> {
        let counts = PacketCounts {
            tx: packet.tx.len() as u32,
            rx: packet.rx.len() as u32,
        };
        self.check_room(u64::from(counts.tx), u64::from(counts.rx))?;
        for desc in packet.tx.iter().filter(|desc| !desc.len_ctrl().meta()) {
            let tx = TxDesc::from(*desc);
            self.check_range(tx.buf_ptr, tx.len_ctrl.byte_len().into())?;
        }
        for rx in packet.rx.iter().map(|desc| RxDesc::from(*desc)) {
            self.check_range(rx.buf1_ptr, rx.len_ctrl.byte_len().into())?;
        }
        self.all_or_nothing(|vring| {
            for (half, descs) in [(&mut vring.tx, &packet.tx), (&mut vring.rx, &packet.rx)] {
                for (number, desc) in (1..).zip(descs) {
                    *half
                        .allocate_next_desc()
                        .map_err(|source| VringError::Allocate {
                            number,
                            count: descs.len() as u64,
                            vring: vring.name.clone(),
                            source,
                        })? = *desc;
                }
            }
            vring.total_tx_size += packet.tx_bytes();
            vring.total_rx_size += packet.rx_bytes();
            Ok(counts)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::host::test_packets::{buffer, checksum};

    #[test]
    fn counts_and_totals() {
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        let (sources, destinations) = (
            [buffer(0, 65537), buffer(0x9_0000, 7)],
            [buffer(0x10_0000, 65544)],
        );
        let packet = CopyPacket::new(&sources, &destinations);
        let counts = vring.add_dma_packet(&packet).unwrap();
        assert_eq!(counts, PacketCounts { tx: 3, rx: 2 });
        vring.add_dma_packet(&packet).unwrap();
        assert_eq!(
            (vring.tx().used_desc_count(), vring.rx().used_desc_count()),
            (6, 4)
        );
        assert_eq!(
            (vring.total_tx_size(), vring.total_rx_size()),
            (2 * 65544, 2 * 65544)
        );
    }

    #[test]
    fn the_index_of_the_vring_is_in_the_meta_descriptor() {
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        let ends = [buffer(0x100, 64)];
        let packet = checksum(CopyPacket::new(&ends, &ends));
        for vring_idx in [0, 1, 3] {
            vring.add_dma_packet_v2(vring_idx, &packet).unwrap();
        }
        let word = |idx| vring.tx().get(idx).unwrap().words[0];
        assert_eq!(
            [word(0), word(2), word(4)],
            [0x8580_0000, 0x8680_0000, 0x8480_0000]
        );
    }

    #[test]
    fn a_refused_packet_leaves_the_vring_as_it_was() {
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        let many = vec![buffer(0x100, 8); 66];
        let refused = vring
            .add_dma_packet(&CopyPacket::new(&many, &[buffer(0, 8 * 66)]))
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "Failed to build packet for vring v: 66 Tx descriptors; a packet on v3 has at most 65"
        );
        let outside = [buffer(u64::MAX - 6, 8)];
        let refused = vring.add_dma_packet(&CopyPacket::new(&many[..1], &outside));
        assert!(matches!(refused, Err(VringError::PastEnd { .. })));
        assert_eq!(
            (vring.tx().used_desc_count(), vring.rx().used_desc_count()),
            (0, 0)
        );
        assert_eq!(vring.total_tx_size(), 0);
    }
}
