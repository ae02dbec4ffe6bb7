//! The fan-out over operations: each goes to the builder of its kind, then copies are packed.

use crate::desc::{CcePacket, CopyPacket, KbinOp, TransposePacket};
use crate::host::edits::EditError;
use crate::host::packet::PacketCounts;
use crate::host::vring::{Vring, VringError};

/// An operation of a compiled program.
#[derive(Clone, Debug)]
pub enum DmaOp<'a> {
    /// A copy.
    Copy(CopyPacket<'a>),
    /// A reduction.
    Cce(KbinOp, CcePacket<'a>),
    /// A transpose.
    Transpose(TransposePacket),
}

/// What was appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendCounts {
    /// Tx descriptors.
    pub tx: u32,
    /// Rx descriptors.
    pub rx: u32,
    /// Packets, after packing.
    pub packets: u32,
}

/// Why nothing was appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// An operation was refused.
    #[error("operation {index} of {count}: {source}")]
    Op {
        /// Which, from 1.
        index: usize,
        /// Operations in all.
        count: usize,
        /// Why.
        source: VringError,
    },
    /// The copies could not be packed.
    #[error(transparent)]
    Pack(#[from] EditError),
}

impl Vring {
    /// Appends operations in order, each through the builder of its kind: [`Vring::add_dma_packet`],
    /// [`Vring::add_dma_packet_cce`], [`Vring::add_dma_packet_transpose`]. With `pack`, copies then
    /// share packets of at most so many bytes, see [`Vring::pack_descs`].
    ///
    /// # Errors
    /// [`AppendError`] naming the operation; the vring is then as it was.
    pub fn append_descs(
        &mut self,
        ops: &[DmaOp],
        pack: Option<u64>,
    ) -> Result<AppendCounts, AppendError> {
        self.all_or_nothing(|vring| {
            let start = vring.tx.used_desc_count();
            let mut counts = AppendCounts::default();
            for (index, op) in (1..).zip(ops) {
                let PacketCounts { tx, rx } =
                    vring.append_one(op).map_err(|source| AppendError::Op {
                        index,
                        count: ops.len(),
                        source,
                    })?;
                counts.tx += tx;
                counts.rx += rx;
                counts.packets += 1;
            }
            if let Some(max_packet_size) = pack {
                let end = vring.tx.used_desc_count();
                let delta = vring.pack_descs(start, end, max_packet_size, counts.packets)?;
                counts.packets = counts.packets.saturating_add_signed(delta as i32);
            }
            Ok(counts)
        })
    }

    fn append_one(&mut self, op: &DmaOp) -> Result<PacketCounts, VringError> {
        match op {
            DmaOp::Copy(packet) => self.add_dma_packet(packet),
            DmaOp::Cce(op, packet) => self.add_dma_packet_cce(*op, packet),
            DmaOp::Transpose(packet) => self.add_dma_packet_transpose(packet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::desc::{Buffer, DType, OpWord, Permutation, TransposeDims, TxDesc};
    use crate::units::Addr;

    const PLACES: [Addr; 2] = [Addr(0x1000), Addr(0x2000)];

    fn ends() -> [Buffer; 1] {
        [Buffer {
            at: Addr(0x100),
            len: 64,
        }]
    }

    fn transpose() -> TransposePacket {
        TransposePacket {
            source: Buffer {
                at: Addr(0x1000),
                len: 64,
            },
            destination: Buffer {
                at: Addr(0x2000),
                len: 64,
            },
            dims: TransposeDims([1, 8, 8, 1]),
            element_bytes: 1,
            permutation: Permutation::from_name("WYXZ").unwrap(),
        }
    }

    #[test]
    fn each_kind_goes_to_its_builder() {
        let mut vring = Vring::new(Arch::V2, "v").unwrap();
        let ends = ends();
        let copy = DmaOp::Copy(CopyPacket::new(&ends, &ends));
        let cce = DmaOp::Cce(
            KbinOp::Max,
            CcePacket::new(&PLACES, &PLACES[..1], 8, DType::Fp32),
        );
        let ops = [
            copy.clone(),
            copy.clone(),
            cce,
            DmaOp::Transpose(transpose()),
            copy,
        ];
        let counts = vring.append_descs(&ops, Some(1 << 20)).unwrap();
        assert_eq!(
            counts,
            AppendCounts {
                tx: 7,
                rx: 5,
                packets: 4
            }
        );
        let kinds: Vec<&str> = vring
            .tx()
            .runs()
            .flatten()
            .filter(|desc| !desc.len_ctrl().meta())
            .map(|desc| match OpWord::decode(TxDesc::from(*desc).meta_ctrl) {
                OpWord::Cme(_) => "copy",
                OpWord::MinMax(_) => "max",
                OpWord::Transpose(_) => "transpose",
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(kinds, ["copy", "copy", "max", "max", "transpose", "copy"]);
    }

    #[test]
    fn one_refusal_refuses_all() {
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        let ends = ends();
        let copy = DmaOp::Copy(CopyPacket::new(&ends, &ends));
        let refused = vring
            .append_descs(&[copy.clone(), DmaOp::Transpose(transpose())], None)
            .unwrap_err();
        assert!(
            refused
                .to_string()
                .starts_with("operation 2 of 2: Failed to add transpose packet")
        );
        assert_eq!(
            (vring.tx().used_desc_count(), vring.total_tx_size()),
            (0, 0)
        );
        let refused = vring.append_descs(&[copy], Some(63)).unwrap_err();
        assert!(matches!(refused, AppendError::Pack(_)));
        assert_eq!(vring.rx().used_desc_count(), 0);
    }
}
