//! The semaphore update that rides on an Rx descriptor (V4; `docs/hardware.md`, "Descriptor").

use super::RxDesc;

/// A semaphore increment that becomes visible after the descriptor's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EmbeddedSemaphore {
    /// The data is a strong-ordered write too.
    pub set_sow: bool,
    /// Which event/semaphore block: 0..=7 the NeuronCores, 8..=23 the TOP_SPs.
    pub csr_index: u8,
    /// Which semaphore of the block.
    pub semaphore: u16,
}

/// Bytes 1 and 2 of the blob.
const BLOB_MARK: u16 = 0x0100;

// Where the blob lives in the descriptor is modelled (C): the semaphore in bits 15:0 of the word
// that plain Rx descriptors leave 0, the CSR index in bits 23:16, the mark's one set bit in bit 24;
// `set_sow` is the descriptor's own SOW bit.
const CSR_SHIFT: u32 = 16;
const MARK_BIT: u32 = 1 << 24;

impl EmbeddedSemaphore {
    /// The six bytes that the runtime hands to its hardware layer.
    pub const fn to_blob(self) -> [u8; 6] {
        let [mark_low, mark_high] = BLOB_MARK.to_le_bytes();
        let [low, high] = self.semaphore.to_le_bytes();
        [
            self.set_sow as u8,
            mark_low,
            mark_high,
            self.csr_index,
            low,
            high,
        ]
    }

    /// The update that an Rx descriptor carries; `None` if it carries none.
    pub fn of(rx: RxDesc) -> Option<EmbeddedSemaphore> {
        let word = rx.buf2_ptr_lo;
        (rx.len_ctrl.concat() && word & MARK_BIT != 0).then(|| EmbeddedSemaphore {
            set_sow: rx.len_ctrl.strong_order_wr(),
            csr_index: (word >> CSR_SHIFT) as u8,
            semaphore: word as u16,
        })
    }

    /// Puts the update on an Rx descriptor and marks that it carries one.
    pub fn put(self, rx: RxDesc) -> RxDesc {
        let sow = rx.len_ctrl.strong_order_wr() || self.set_sow;
        RxDesc {
            len_ctrl: rx.len_ctrl.with_concat(true).with_strong_order_wr(sow),
            buf2_ptr_lo: MARK_BIT
                | u32::from(self.csr_index) << CSR_SHIFT
                | u32::from(self.semaphore),
            buf1_ptr: rx.buf1_ptr,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desc::Descriptor;
    use proptest::prelude::*;

    fn plain() -> RxDesc {
        let words = [0x0100_0040, 0, 0x2000, 0];
        RxDesc::from(Descriptor { words })
    }

    #[test]
    fn golden_blob_and_words() {
        let update = EmbeddedSemaphore {
            set_sow: true,
            csr_index: 9,
            semaphore: 0x0203,
        };
        assert_eq!(update.to_blob(), [1, 0x00, 0x01, 9, 0x03, 0x02]);
        let words = Descriptor::from(update.put(plain())).words;
        assert_eq!(words, [0xa100_0040, 0x0109_0203, 0x2000, 0]);
        assert_eq!(EmbeddedSemaphore::of(plain()), None);
    }

    proptest! {
        #[test]
        fn updates_round_trip(set_sow: bool, csr_index: u8, semaphore: u16) {
            let update = EmbeddedSemaphore { set_sow, csr_index, semaphore };
            let rx = update.put(plain());
            prop_assert_eq!(EmbeddedSemaphore::of(rx), Some(update));
            prop_assert_eq!(rx.buf1_ptr, plain().buf1_ptr);
            prop_assert_eq!(rx.len_ctrl.byte_len(), 0x40);
        }
    }
}
