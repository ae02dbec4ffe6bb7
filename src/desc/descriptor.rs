//! The 16-byte descriptor and its three views (`docs/hardware.md`, "Descriptor").

use super::{LenCtrl, MetaCtrl, SsmaeOp};
use crate::desc::op::AddWord;
use crate::units::Addr;
use serde::{Deserialize, Serialize};

/// Bytes of a descriptor.
pub const DESC_BYTES: usize = 16;

/// A descriptor as it lies in a ring: four little-endian words. What they mean depends on the ring
/// ([`TxDesc`] or [`RxDesc`]) and on the META bit ([`TxMetaDesc`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(C, align(16))]
pub struct Descriptor {
    /// The words, at offsets 0, 4, 8 and 12.
    pub words: [u32; 4],
}

const _: () = assert!(size_of::<Descriptor>() == DESC_BYTES);

impl Descriptor {
    /// The bytes as they lie in memory.
    pub const fn to_bytes(self) -> [u8; DESC_BYTES] {
        let mut bytes = [0; DESC_BYTES];
        let mut word = 0;
        while word < 4 {
            let [a, b, c, d] = self.words[word].to_le_bytes();
            bytes[4 * word] = a;
            bytes[4 * word + 1] = b;
            bytes[4 * word + 2] = c;
            bytes[4 * word + 3] = d;
            word += 1;
        }
        bytes
    }

    /// The descriptor that lies in memory as `bytes`.
    pub const fn from_bytes(bytes: [u8; DESC_BYTES]) -> Descriptor {
        let mut words = [0; 4];
        let mut word = 0;
        while word < 4 {
            let at = 4 * word;
            words[word] =
                u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            word += 1;
        }
        Descriptor { words }
    }

    /// Word 0, which every view shares.
    pub const fn len_ctrl(self) -> LenCtrl {
        LenCtrl::from_bits(self.words[0])
    }

    fn new(word0: u32, word1: u32, address: Addr) -> Descriptor {
        Descriptor {
            words: [word0, word1, address.0 as u32, (address.0 >> 32) as u32],
        }
    }

    fn address(self) -> Addr {
        Addr(u64::from(self.words[3]) << 32 | u64::from(self.words[2]))
    }
}

/// A descriptor of a Tx (m2s) ring: reads a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxDesc {
    /// Length and control bits.
    pub len_ctrl: LenCtrl,
    /// What to do with the bytes; see [`OpWord`](super::OpWord) for the classes beside copies.
    pub meta_ctrl: MetaCtrl,
    /// Source.
    pub buf_ptr: Addr,
}

impl TxDesc {
    /// Whether the descriptor asks for a write barrier. Compute words say so in their own bit 6
    /// beside bit 26; in a meta descriptor bit 26 belongs to the op word and is no barrier:
    /// modelled (C).
    pub fn write_barrier(self) -> bool {
        if self.len_ctrl.meta() {
            return false;
        }
        let compute = self.meta_ctrl.ssmae_op() == SsmaeOp::Cce;
        self.meta_ctrl.write_barrier()
            || compute && AddWord::from_bits(self.meta_ctrl.into_bits()).barrier()
    }

    /// Whether the descriptor asks for a notification: its mask bit is set (C: the sources name the bit
    /// and do not say which value means what). In a meta descriptor it belongs to the op word.
    pub fn notification(self) -> bool {
        !self.len_ctrl.meta() && self.meta_ctrl.notification_mask()
    }
}

impl From<Descriptor> for TxDesc {
    fn from(desc: Descriptor) -> TxDesc {
        TxDesc {
            len_ctrl: desc.len_ctrl(),
            meta_ctrl: MetaCtrl::from_bits(desc.words[1]),
            buf_ptr: desc.address(),
        }
    }
}

impl From<TxDesc> for Descriptor {
    fn from(tx: TxDesc) -> Descriptor {
        Descriptor::new(
            tx.len_ctrl.into_bits(),
            tx.meta_ctrl.into_bits(),
            tx.buf_ptr,
        )
    }
}

/// A descriptor of a Tx ring with the META bit: carries words, not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxMetaDesc {
    /// Control bits; LENGTH has no meaning.
    pub len_ctrl: LenCtrl,
    /// Op word; see [`ComputeMetaWord`](super::ComputeMetaWord) for compute packets.
    pub meta_ctrl: MetaCtrl,
    /// First operand word.
    pub meta1: u32,
    /// Second operand word.
    pub meta2: u32,
}

impl From<Descriptor> for TxMetaDesc {
    fn from(desc: Descriptor) -> TxMetaDesc {
        let [word0, word1, meta1, meta2] = desc.words;
        TxMetaDesc {
            len_ctrl: LenCtrl::from_bits(word0),
            meta_ctrl: MetaCtrl::from_bits(word1),
            meta1,
            meta2,
        }
    }
}

impl From<TxMetaDesc> for Descriptor {
    fn from(tx: TxMetaDesc) -> Descriptor {
        Descriptor {
            words: [
                tx.len_ctrl.into_bits(),
                tx.meta_ctrl.into_bits(),
                tx.meta1,
                tx.meta2,
            ],
        }
    }
}

/// A descriptor of an Rx (s2m) ring: writes a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxDesc {
    /// Length and control bits.
    pub len_ctrl: LenCtrl,
    /// Low half of a second buffer's address; 0 here, where packets have one buffer.
    pub buf2_ptr_lo: u32,
    /// Destination.
    pub buf1_ptr: Addr,
}

impl From<Descriptor> for RxDesc {
    fn from(desc: Descriptor) -> RxDesc {
        RxDesc {
            len_ctrl: desc.len_ctrl(),
            buf2_ptr_lo: desc.words[1],
            buf1_ptr: desc.address(),
        }
    }
}

impl From<RxDesc> for Descriptor {
    fn from(rx: RxDesc) -> Descriptor {
        Descriptor::new(rx.len_ctrl.into_bits(), rx.buf2_ptr_lo, rx.buf1_ptr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: [u8; 16] = [
        0x40, 0x00, 0x00, 0x0d, 0x03, 0x00, 0x08, 0x01, 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23,
        0x01,
    ];

    #[test]
    fn golden_bytes() {
        let desc = Descriptor::from_bytes(BYTES);
        assert_eq!(
            desc.words,
            [0x0d00_0040, 0x0108_0003, 0x89ab_cdef, 0x0123_4567]
        );
        let tx = TxDesc::from(desc);
        assert_eq!(tx.len_ctrl.byte_len(), 64);
        assert_eq!(tx.meta_ctrl, MetaCtrl::PLAIN_COPY);
        assert_eq!(tx.buf_ptr, Addr(0x0123_4567_89ab_cdef));
        let rx = RxDesc::from(desc);
        assert_eq!(rx.buf2_ptr_lo, 0x0108_0003);
        assert_eq!(rx.buf1_ptr, Addr(0x0123_4567_89ab_cdef));
        let meta = TxMetaDesc::from(desc);
        assert_eq!((meta.meta1, meta.meta2), (0x89ab_cdef, 0x0123_4567));
    }

    #[test]
    fn where_a_write_barrier_is_asked_for() {
        let asks = |len_ctrl, meta_ctrl| {
            TxDesc::from(Descriptor {
                words: [len_ctrl, meta_ctrl, 0, 0],
            })
            .write_barrier()
        };
        assert!(!asks(0x0d00_0040, 0x0108_0003));
        assert!(asks(0x0d00_0040, 0x0508_0003));
        // Bit 6 is a barrier in a compute word and a swap control in a copy.
        assert!(asks(0x0d00_0040, 0x0200_0040));
        assert!(!asks(0x0d00_0040, 0x0108_0043));
        // Bit 26 of a meta descriptor is part of its op word.
        assert!(!asks(0x0580_0000, 0x0600_0000));
    }

    proptest! {
        #[test]
        fn views_are_lossless(bytes: [u8; 16]) {
            let desc = Descriptor::from_bytes(bytes);
            prop_assert_eq!(desc.to_bytes(), bytes);
            prop_assert_eq!(Descriptor::from(TxDesc::from(desc)), desc);
            prop_assert_eq!(Descriptor::from(TxMetaDesc::from(desc)), desc);
            prop_assert_eq!(Descriptor::from(RxDesc::from(desc)), desc);
        }
    }
}
