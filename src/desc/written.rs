//! How many bytes a packet writes, which says how many Rx descriptors it takes.

use super::{CmeOp, ComputeMetaWord, DType, Descriptor, OpWord, OperandWord, TxDesc, TxMetaDesc};

/// Bytes that a packet of Tx descriptors writes; `None` if its operation does not say so: checksums,
/// and what has no known meaning.
pub fn written_bytes(packet: &[Descriptor]) -> Option<u64> {
    let mut data = packet
        .iter()
        .filter(|desc| !desc.len_ctrl().meta())
        .map(|desc| TxDesc::from(*desc))
        .peekable();
    let first = *data.peek()?;
    let read: u64 = data.map(|tx| u64::from(tx.len_ctrl.byte_len())).sum();
    let metas = || packet.iter().filter(|desc| desc.len_ctrl().meta());
    let (in_dtype, out_dtype) = match OpWord::decode(first.meta_ctrl) {
        OpWord::Cme(word) if word.cme_op() == Some(CmeOp::Copy) && metas().count() == 0 => {
            return Some(read);
        }
        OpWord::Transpose(_) => return Some(read),
        OpWord::Add(word) => (word.in_dtype(), word.out_dtype()),
        OpWord::MinMax(word) => (word.in_dtype(), word.out_dtype()),
        OpWord::Fma(word) => (word.in_dtype(), word.in_dtype()),
        _ => return None,
    };
    let out_dtype = out_dtype?;
    let in_bytes = in_dtype.map_or(out_dtype.bytes(), DType::bytes);
    let elements = u64::from(first.len_ctrl.byte_len() / in_bytes);
    let mut copies = 1;
    for meta in metas().map(|desc| TxMetaDesc::from(*desc)) {
        let word = ComputeMetaWord::decode(meta.meta_ctrl.into_bits());
        let operands = OperandWord::from_bits(meta.meta1);
        copies = word.op.destinations(operands).unwrap_or(copies);
    }
    Some(elements * u64::from(out_dtype.bytes()) * u64::from(copies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::desc::{
        Buffer, CcePacket, CceType, CopyPacket, RingId, build_cce_packet, build_copy_packet,
    };
    use crate::units::Addr;

    #[test]
    fn builders_and_bytes_agree() {
        let ring = RingId::FIRST_LAP;
        let ends = [Buffer {
            at: Addr(0),
            len: 70_000,
        }];
        let copy = build_copy_packet(Arch::V3, &CopyPacket::new(&ends, &ends), ring).unwrap();
        assert_eq!(written_bytes(&copy.tx), Some(70_000));

        let places = [Addr(0); 3];
        for (out_dtype, out) in [
            (DType::Fp8E4, 32),
            (DType::Bfloat16, 64),
            (DType::Int64, 256),
        ] {
            let mut packet = CcePacket::new(&places, &places[..2], 32, DType::Bfloat16);
            packet.out_dtype = out_dtype;
            let built = build_cce_packet(Arch::V3, CceType::Add, &packet, ring).unwrap();
            assert_eq!(written_bytes(&built.tx), Some(2 * out));
            assert_eq!(built.rx_bytes(), 2 * out);
        }
        let checksum = Descriptor {
            words: [0x0d00_0040, 0x0118_0003, 0, 0],
        };
        assert_eq!(written_bytes(&[checksum]), None);
        assert_eq!(written_bytes(&[]), None);
    }
}
