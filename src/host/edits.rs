//! Edits of a finished vring: barriers, embedded semaphore updates, addresses. Descriptors in host
//! memory can be walked back over; those in a device ring cannot.

use super::pack::PackError;
use super::vring::Vring;
use crate::arch::{Arch, EventBlock};
use crate::desc::{EmbeddedSemaphore, RxDesc, TxDesc};
use crate::units::Addr;

/// Why a vring was not edited. It is as it was before the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// There is no descriptor to edit.
    #[error("vring {vring} has no {half} descriptors to edit")]
    Empty {
        /// Name of the vring.
        vring: String,
        /// `tx` or `rx`.
        half: &'static str,
    },
    /// The last packet has no first descriptor.
    #[error("vring {vring}: no FIRST before the last of {used} Tx descriptors")]
    NoFirst {
        /// Name of the vring.
        vring: String,
        /// Tx descriptors of the vring.
        used: u32,
    },
    /// The last packet has no last descriptor.
    #[error("vring {vring}: the last of {used} Tx descriptors has no LAST")]
    NoLast {
        /// Name of the vring.
        vring: String,
        /// Tx descriptors of the vring.
        used: u32,
    },
    /// The generation has no embedded semaphore updates.
    #[error("vring {vring}: embedded semaphore updates need v4; this device is {arch}")]
    NoEmbeddedSemaphore {
        /// Name of the vring.
        vring: String,
        /// Generation of the device.
        arch: Arch,
    },
    /// No such semaphore.
    #[error(
        "vring {vring}: an embedded update cannot name semaphore {semaphore} at CSR index {csr_index}; indices are 0 to {last_csr}, semaphores 0 to 255"
    )]
    Semaphore {
        /// Name of the vring.
        vring: String,
        /// CSR index asked for.
        csr_index: u8,
        /// Semaphore asked for.
        semaphore: u16,
        /// Last CSR index.
        last_csr: u8,
    },
    /// A semaphore that no embedded update can name.
    #[error(
        "vring {vring}: an embedded update cannot name semaphore {semaphore} of block {block}; it can name those of the NeuronCores and of the first eight TOP_SPs of a die"
    )]
    NoCsr {
        /// Name of the vring.
        vring: String,
        /// Block asked for.
        block: u32,
        /// Semaphore asked for.
        semaphore: u32,
    },
    /// The last Rx descriptor carries an update already.
    #[error(
        "vring {vring}: the last of {used} Rx descriptors already carries an embedded semaphore update"
    )]
    CarriesOne {
        /// Name of the vring.
        vring: String,
        /// Rx descriptors of the vring.
        used: u32,
    },
    /// A range that leaves the address space.
    #[error("vring {vring}: {size} bytes at {at} run past the end of the address space")]
    PastEnd {
        /// Name of the vring.
        vring: String,
        /// Start of the range.
        at: Addr,
        /// Bytes of the range.
        size: u64,
    },
    /// The window could not be packed.
    #[error("vring {vring}: {source}")]
    Pack {
        /// Name of the vring.
        vring: String,
        /// Why not.
        source: PackError,
    },
}

impl Vring {
    /// Sets DMB on the last packet, on its first descriptor, data or meta. Does nothing on a device
    /// with strong-ordered writes, where the order is in the Rx descriptors.
    ///
    /// # Errors
    /// [`EditError`] if there is no whole last packet; the vring is then as it was.
    pub fn set_dmb_on_last_packet(&mut self) -> Result<(), EditError> {
        if self.arch.spec().caps.strong_order_writes {
            return Ok(());
        }
        let used = self.tx.used_desc_count();
        let vring = || self.name.clone();
        let Some(mut idx) = used.checked_sub(1) else {
            return Err(EditError::Empty {
                vring: vring(),
                half: "tx",
            });
        };
        let len_ctrl = |idx| self.tx.get(idx).map(|desc| desc.len_ctrl());
        if !len_ctrl(idx).is_some_and(|len_ctrl| len_ctrl.last()) {
            return Err(EditError::NoLast {
                vring: vring(),
                used,
            });
        }
        while !len_ctrl(idx).is_some_and(|len_ctrl| len_ctrl.first()) {
            idx = match idx.checked_sub(1) {
                Some(before) if !len_ctrl(before).is_some_and(|len_ctrl| len_ctrl.last()) => before,
                _ => {
                    return Err(EditError::NoFirst {
                        vring: vring(),
                        used,
                    });
                }
            };
        }
        if let Some(desc) = self.tx.get_mut(idx) {
            desc.words[0] = desc.len_ctrl().with_dmb(true).into_bits();
        }
        Ok(())
    }

    /// Whether the last Rx descriptor should be given an embedded semaphore update: the device has
    /// them, they are enabled (`embedded_sem_en`, the runtime's setting), there is an Rx descriptor,
    /// and it carries none yet.
    pub fn should_emb_sem_update(&self, embedded_sem_en: bool) -> bool {
        let last = self.rx.used_desc_count().checked_sub(1);
        self.arch.spec().caps.embedded_semaphore
            && embedded_sem_en
            && last
                .and_then(|idx| self.rx.get(idx))
                .is_some_and(|desc| !desc.len_ctrl().concat())
    }

    /// Lets the last Rx descriptor increment a semaphore when its data has been written (V4). The
    /// data becomes a strong-ordered write too if `set_sow` says so. `csr_index` is 0..=7 for the
    /// NeuronCores, 8..=23 for the TOP_SPs.
    ///
    /// # Errors
    /// [`EditError`]; the vring is then as it was.
    pub fn set_embedded_semaphore_inc_on_last_desc(
        &mut self,
        csr_index: u8,
        semaphore: u16,
        set_sow: bool,
    ) -> Result<(), EditError> {
        let vring = || self.name.clone();
        let arch = self.arch;
        if !arch.spec().caps.embedded_semaphore {
            return Err(EditError::NoEmbeddedSemaphore {
                vring: vring(),
                arch,
            });
        }
        let known = arch
            .spec()
            .map
            .embedded_semaphore_block(csr_index)
            .is_some();
        if !known || u32::from(semaphore) >= EventBlock::CELLS {
            let last_csr = EventBlock::LAST_CSR_INDEX;
            return Err(EditError::Semaphore {
                vring: vring(),
                csr_index,
                semaphore,
                last_csr,
            });
        }
        let used = self.rx.used_desc_count();
        let Some(last) = used.checked_sub(1).and_then(|idx| self.rx.get_mut(idx)) else {
            return Err(EditError::Empty {
                vring: vring(),
                half: "rx",
            });
        };
        if last.len_ctrl().concat() {
            return Err(EditError::CarriesOne {
                vring: vring(),
                used,
            });
        }
        let update = EmbeddedSemaphore {
            set_sow,
            csr_index,
            semaphore,
        };
        *last = update.put(RxDesc::from(*last)).into();
        Ok(())
    }

    /// As [`Vring::set_embedded_semaphore_inc_on_last_desc`], with the semaphore named as elsewhere: by
    /// its block, the NeuronCores' blocks first, and its index there.
    ///
    /// # Errors
    /// [`EditError`]; the vring is then as it was.
    pub fn embed_semaphore_inc(
        &mut self,
        block: u32,
        semaphore: u32,
        set_sow: bool,
    ) -> Result<(), EditError> {
        let csr_index = self.arch.spec().map.embedded_semaphore_csr(block);
        match (csr_index, u16::try_from(semaphore)) {
            (Some(csr_index), Ok(semaphore)) => {
                self.set_embedded_semaphore_inc_on_last_desc(csr_index, semaphore, set_sow)
            }
            _ => Err(EditError::NoCsr {
                vring: self.name.clone(),
                block,
                semaphore,
            }),
        }
    }

    /// Moves sources: the address of every Tx data descriptor that lies in the `size` bytes from
    /// `base` on moves by `new_base - base`. Returns how many did.
    ///
    /// # Errors
    /// [`EditError::PastEnd`] if one of the ranges leaves the address space; the vring is then as it
    /// was.
    pub fn addr_rewrite(
        &mut self,
        base: Addr,
        size: u64,
        new_base: Addr,
    ) -> Result<u32, EditError> {
        for at in [base, new_base] {
            if size > 0 && at.checked_add(size - 1).is_none() {
                let vring = self.name.clone();
                return Err(EditError::PastEnd { vring, at, size });
            }
        }
        let mut moved = 0;
        for desc in self.tx.runs_mut().flatten() {
            if desc.len_ctrl().meta() {
                continue;
            }
            let mut tx = TxDesc::from(*desc);
            if let Some(offset) = tx.buf_ptr.offset_from(base).filter(|offset| *offset < size) {
                tx.buf_ptr = Addr(new_base.0 + offset);
                *desc = tx.into();
                moved += 1;
            }
        }
        if moved > 0 {
            tracing::debug!(vring = self.name, moved, "vring modified");
        }
        Ok(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desc::CopyPacket;
    use crate::host::test_packets::{buffer, checksum};

    fn vring(arch: Arch) -> Vring {
        Vring::new(arch, "v").unwrap()
    }

    fn dmbs(vring: &Vring) -> Vec<bool> {
        vring
            .tx()
            .runs()
            .flatten()
            .map(|desc| desc.len_ctrl().dmb())
            .collect()
    }

    #[test]
    fn dmb_goes_on_the_first_descriptor_of_the_last_packet() {
        let mut vring = vring(Arch::V2);
        let sources = [buffer(0, 8), buffer(0x100, 8), buffer(0x200, 8)];
        let destinations = [buffer(0x1000, 24)];
        let packet = CopyPacket::new(&sources, &destinations);
        vring.add_dma_packet(&packet).unwrap();
        vring.add_dma_packet(&packet).unwrap();
        vring.set_dmb_on_last_packet().unwrap();
        assert_eq!(dmbs(&vring), [false, false, false, true, false, false]);

        vring.add_dma_packet(&checksum(packet)).unwrap();
        vring.set_dmb_on_last_packet().unwrap();
        assert_eq!(dmbs(&vring)[6..], [true, false, false, false]);
    }

    #[test]
    fn where_strong_order_exists_dmb_is_not_added() {
        let mut vring = vring(Arch::V3);
        assert_eq!(vring.set_dmb_on_last_packet(), Ok(()));
        vring.add_desc_transfer(Addr(0), Addr(64), 64).unwrap();
        vring.set_dmb_on_last_packet().unwrap();
        assert_eq!(dmbs(&vring), [false]);
    }

    #[test]
    fn dmb_needs_a_whole_packet() {
        let mut vring = vring(Arch::V2);
        let refused = vring.set_dmb_on_last_packet();
        assert!(matches!(refused, Err(EditError::Empty { half: "tx", .. })));
        vring
            .add_desc_transfer(Addr(0), Addr(64), 2 * 65536)
            .unwrap();
        let mut edit = |first, last| {
            let desc = vring.tx.get_mut(1).unwrap();
            desc.words[0] = desc
                .len_ctrl()
                .with_first(first)
                .with_last(last)
                .into_bits();
            vring.set_dmb_on_last_packet()
        };
        assert!(matches!(
            edit(true, false),
            Err(EditError::NoLast { used: 2, .. })
        ));
        assert!(matches!(
            edit(false, true),
            Err(EditError::NoFirst { used: 2, .. })
        ));
        assert_eq!(
            dmbs(&vring),
            [false, true],
            "the chunk's own barrier is all there is"
        );
    }

    #[test]
    fn an_embedded_update_goes_on_once() {
        let mut vring = vring(Arch::V4);
        assert!(!vring.should_emb_sem_update(true));
        assert!(matches!(
            vring.set_embedded_semaphore_inc_on_last_desc(0, 0, false),
            Err(EditError::Empty { half: "rx", .. })
        ));
        vring
            .add_desc_transfer(Addr(0), Addr(0x2000), 65540)
            .unwrap();
        assert!(vring.should_emb_sem_update(true));
        assert!(!vring.should_emb_sem_update(false));
        vring
            .set_embedded_semaphore_inc_on_last_desc(8, 255, false)
            .unwrap();
        let words = |idx| vring.rx().get(idx).unwrap().words;
        assert_eq!(words(0), [0x0100_0000, 0, 0x2000, 0]);
        assert_eq!(words(1), [0xa100_0004, 0x0108_00ff, 0x1_2000, 0]);
        assert!(!vring.should_emb_sem_update(true));
        assert!(matches!(
            vring.set_embedded_semaphore_inc_on_last_desc(8, 255, false),
            Err(EditError::CarriesOne { used: 2, .. })
        ));
    }

    #[test]
    fn embedded_updates_that_do_not_exist() {
        for arch in [Arch::V2, Arch::V3] {
            let mut vring = vring(arch);
            vring.add_desc_transfer(Addr(0), Addr(64), 4).unwrap();
            assert!(!vring.should_emb_sem_update(true));
            assert!(matches!(
                vring.set_embedded_semaphore_inc_on_last_desc(0, 0, true),
                Err(EditError::NoEmbeddedSemaphore { .. })
            ));
        }
        let mut vring = vring(Arch::V4);
        vring.add_desc_transfer(Addr(0), Addr(64), 4).unwrap();
        for (csr_index, semaphore) in [(24, 0), (255, 0), (0, 256), (23, 65535)] {
            assert!(matches!(
                vring.set_embedded_semaphore_inc_on_last_desc(csr_index, semaphore, true),
                Err(EditError::Semaphore { last_csr: 23, .. })
            ));
        }
        assert!(
            vring
                .set_embedded_semaphore_inc_on_last_desc(23, 255, true)
                .is_ok()
        );
    }

    #[test]
    fn sources_in_the_range_move() {
        let mut vring = vring(Arch::V3);
        for src in [0xfff, 0x1000, 0x1fff, 0x2000] {
            vring.add_desc_transfer(Addr(src), Addr(0x1800), 4).unwrap();
        }
        assert_eq!(
            vring.addr_rewrite(Addr(0x1000), 0x1000, Addr(0x80_0000)),
            Ok(2)
        );
        let sources: Vec<u64> = vring
            .tx()
            .runs()
            .flatten()
            .map(|desc| TxDesc::from(*desc).buf_ptr.0)
            .collect();
        assert_eq!(sources, [0xfff, 0x80_0000, 0x80_0fff, 0x2000]);
        assert!(
            vring
                .rx()
                .runs()
                .flatten()
                .all(|desc| RxDesc::from(*desc).buf1_ptr.0 == 0x1800)
        );
        let refused = vring.addr_rewrite(Addr(0), 2, Addr(u64::MAX));
        assert!(matches!(
            refused,
            Err(EditError::PastEnd {
                at: Addr(u64::MAX),
                ..
            })
        ));
        assert_eq!(vring.addr_rewrite(Addr(0), 0, Addr(u64::MAX)), Ok(0));
    }
}
