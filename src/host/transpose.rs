//! Transposes in a vring, and the flush that follows them.

use super::packet::PacketCounts;
use super::vring::{VRING_RING_ID, Vring, VringError};
use crate::desc::{TRANSPOSE_FLUSH_OFFSET, TransposePacket, build_transpose_packet};
use crate::units::Addr;

/// Bytes of the copy that flushes transposes.
const FLUSH_BYTES: u64 = 4;

impl Vring {
    /// Appends a transpose; returns how many descriptors it took. V2 transposes anything of 1 to 8
    /// bytes an element within its size limit; from V3 on the destination is a State Buffer, and only
    /// tiles of 16 rows of 2- or 4-byte elements are swapped (WYXZ).
    ///
    /// # Errors
    /// [`VringError::Transpose`] with the reason, others as for [`Vring::add_desc_transfer`]; the vring
    /// is then as it was.
    pub fn add_dma_packet_transpose(
        &mut self,
        packet: &TransposePacket,
    ) -> Result<PacketCounts, VringError> {
        let built = build_transpose_packet(self.arch, packet, VRING_RING_ID).map_err(|source| {
            VringError::Transpose {
                vring: self.name.clone(),
                source,
            }
        })?;
        self.append_packet(&built)
    }

    /// Appends the 4-byte copy that flushes the transposes into a NeuronCore's State Buffer (V3 and
    /// later), ordered as the runtime orders copies. Its source is the event-clear constant: modelled
    /// (C).
    ///
    /// # Errors
    /// [`VringError::TransposeFlush`] on V2, [`VringError::NoCore`] for a core that the device has not,
    /// others as for [`Vring::add_desc_transfer`]; the vring is then as it was.
    pub fn add_dma_packet_transpose_flush(&mut self, core: u32) -> Result<(), VringError> {
        let spec = self.arch.spec();
        let vring = || self.name.clone();
        if !spec.caps.transpose_flush {
            return Err(VringError::TransposeFlush { vring: vring() });
        }
        let Some(base) = spec.map.tpb.get(core as usize) else {
            let last = spec.map.tpb.len() as u32 - 1;
            return Err(VringError::NoCore {
                vring: vring(),
                core,
                last,
            });
        };
        let target = Addr(base.0 + TRANSPOSE_FLUSH_OFFSET);
        self.add_desc_transfer(spec.map.event_clear, target, FLUSH_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::desc::{Buffer, Permutation, TransposeDims};

    fn tile() -> TransposePacket {
        TransposePacket {
            source: Buffer {
                at: Addr(0x1000),
                len: 4096,
            },
            destination: Buffer {
                at: Addr(0x20_0000_0000),
                len: 4096,
            },
            dims: TransposeDims([1, 16, 128, 1]),
            element_bytes: 2,
            permutation: Permutation::from_name("WYXZ").unwrap(),
        }
    }

    #[test]
    fn a_transpose_takes_two_tx_and_one_rx() {
        for arch in Arch::ALL {
            let mut vring = Vring::new(arch, "v").unwrap();
            let counts = vring.add_dma_packet_transpose(&tile()).unwrap();
            assert_eq!(counts, PacketCounts { tx: 2, rx: 1 });
            assert_eq!((vring.total_tx_size(), vring.total_rx_size()), (4096, 4096));
        }
        let mut vring = Vring::new(Arch::V3, "kv_0").unwrap();
        let mut packet = tile();
        packet.permutation = Permutation::from_name("ZXYW").unwrap();
        assert_eq!(
            vring
                .add_dma_packet_transpose(&packet)
                .unwrap_err()
                .to_string(),
            "Failed to add transpose packet to vring kv_0: ZXYW moves W or Z; this device only swaps X and Y: WYXZ"
        );
        assert_eq!(vring.tx().used_desc_count(), 0);
    }

    #[test]
    fn a_flush_is_a_copy_to_the_window() {
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        vring.add_dma_packet_transpose_flush(1).unwrap();
        assert_eq!(
            vring.tx().get(0).unwrap().words,
            [0x0d00_0004, 0x0108_0003, 0, 0x90]
        );
        assert_eq!(
            vring.rx().get(0).unwrap().words,
            [0x2100_0004, 0, 0x0400_0000, 0x0200_0030]
        );
        assert!(matches!(
            vring.add_dma_packet_transpose_flush(8),
            Err(VringError::NoCore {
                core: 8,
                last: 7,
                ..
            })
        ));
        let refused = Vring::new(Arch::V2, "v")
            .unwrap()
            .add_dma_packet_transpose_flush(0);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "vring v: v2 arch does not support transpose flush"
        );
    }
}
