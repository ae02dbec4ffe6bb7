//! Packing: adjacent copy packets become fewer, longer ones.
//!
//! Packets may be joined and cut only where that cannot change a byte. A packet's bytes fill Rx
//! descriptors in order and it starts on a fresh one, so a cut is possible only where Tx and Rx
//! descriptors end together: between two cuts lies a *piece*, the smallest thing that moves as one.
//! A barrier, an interrupt or a half-used Rx descriptor in a piece ends its packet, and what the
//! packet had behind it stays with it.

use super::edits::EditError;
use super::vring::Vring;
use crate::desc::{CmeOp, Descriptor, TxDesc, written_bytes};

/// Why a window was not packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// The window is not in the vring.
    #[error("Couldn't find cur_page: no window {start}..{end} in {used} Tx descriptors")]
    Window {
        /// First descriptor.
        start: u32,
        /// Descriptor after the last.
        end: u32,
        /// Descriptors of the Tx half.
        used: u32,
    },
    /// FIRST and LAST do not nest at a descriptor of the window, or the window cuts a packet.
    #[error("Tx descriptor {idx} of {used} breaks the packets: {what}")]
    Structure {
        /// The descriptor.
        idx: u32,
        /// Descriptors of the Tx half.
        used: u32,
        /// How.
        what: &'static str,
    },
    /// The packet at a descriptor has no Rx descriptors for its bytes.
    #[error("the packet at Tx descriptor {idx} has more bytes than the {used} Rx descriptors hold")]
    NoRx {
        /// First descriptor of the packet.
        idx: u32,
        /// Descriptors of the Rx half.
        used: u32,
    },
    /// What stays whole is beyond a limit.
    #[error(
        "Tx descriptors {idx} to {last} must stay in one packet: {tx} Tx and {rx} Rx descriptors, \
         {bytes} bytes; the limits are {tx_limit}, {rx_limit} and {max_packet_size}"
    )]
    Whole {
        /// First descriptor.
        idx: u32,
        /// Last descriptor.
        last: u32,
        /// Tx descriptors.
        tx: u32,
        /// Rx descriptors.
        rx: u32,
        /// Bytes.
        bytes: u64,
        /// Most Tx descriptors.
        tx_limit: u32,
        /// Most Rx descriptors.
        rx_limit: u32,
        /// Most bytes.
        max_packet_size: u64,
    },
    /// The Rx descriptors of a packet are not known.
    #[error(
        "what the packet at Tx descriptor {idx} writes is not known, and so which Rx descriptors the \
         copies behind it have"
    )]
    Opaque {
        /// First descriptor of the packet.
        idx: u32,
    },
}

/// The smallest run of Tx descriptors that moves as one.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    tx: u32,
    rx: u32,
    bytes: u64,
    /// Nothing may follow it in its packet.
    ends: bool,
}

/// A packet of the vring as it is.
struct Whole {
    start: u32,
    /// Descriptor after the last.
    end: u32,
    /// Nothing but plain copies in it.
    copy: bool,
}

/// A packet as it will be: Tx descriptors from the end of the one before to this index.
struct PackedEnd {
    end: u32,
    /// Its bits stay as they are.
    untouched: bool,
}

/// What a packet is bounded by.
struct PackLimits {
    tx: u32,
    rx: u32,
    bytes: u64,
}

impl Vring {
    /// Rewrites FIRST, LAST and CONCAT of the Tx descriptors `start_idx..end_idx` so that plain copies
    /// share packets, as many as the limits allow: descriptors a packet (128 Tx and 128 Rx on V2,
    /// 65 and 60 from V3 on) and `max_packet_size` bytes. Returns the number of packets in the window
    /// less `cur_num_packets`.
    ///
    /// The bytes that end up in memory stay the same, and so does their order: a packet ends with a
    /// descriptor that carries a barrier or an interrupt. Packets of other operations stay as they
    /// are, between the copies. Packing again changes nothing.
    ///
    /// # Errors
    /// [`EditError::Pack`] if the window is not in the vring or cuts a packet, or if something that
    /// must stay whole is beyond a limit; the vring is then as it was.
    pub fn pack_descs(
        &mut self,
        start_idx: u32,
        end_idx: u32,
        max_packet_size: u64,
        cur_num_packets: u32,
    ) -> Result<i64, EditError> {
        let packed = self
            .plan_packets(start_idx, end_idx, max_packet_size)
            .map_err(|source| EditError::Pack {
                vring: self.name.clone(),
                source,
            })?;
        let mut start = start_idx;
        for packet in &packed {
            if !packet.untouched {
                self.delimit(start, packet.end);
            }
            start = packet.end;
        }
        Ok(packed.len() as i64 - i64::from(cur_num_packets))
    }

    /// Makes one packet of Tx descriptors.
    fn delimit(&mut self, start: u32, end: u32) {
        for idx in start..end {
            if let Some(desc) = self.tx.get_mut(idx) {
                let len_ctrl = desc
                    .len_ctrl()
                    .with_first(idx == start)
                    .with_last(idx + 1 == end)
                    .with_concat(idx + 1 < end);
                desc.words[0] = len_ctrl.into_bits();
            }
        }
    }

    /// Where the packets of a window will end.
    fn plan_packets(
        &self,
        start_idx: u32,
        end_idx: u32,
        max_packet_size: u64,
    ) -> Result<Vec<PackedEnd>, PackError> {
        let used = self.tx.used_desc_count();
        if start_idx > end_idx || end_idx > used {
            return Err(PackError::Window {
                start: start_idx,
                end: end_idx,
                used,
            });
        }
        let arch_limits = self.arch.spec().limits;
        let limits = PackLimits {
            tx: arch_limits.tx_descs_per_packet,
            rx: arch_limits.rx_descs_per_packet,
            bytes: max_packet_size,
        };
        let mut rx_idx = Some(0);
        let mut idx = 0;
        let mut packed = Vec::new();
        let mut open = Piece::default();
        let mut opaque = 0;
        while idx < end_idx {
            let whole = self.packet_at(idx)?;
            let inside = whole.start >= start_idx;
            if whole.end > end_idx || (!inside && whole.end > start_idx) {
                let idx = if inside { end_idx } else { start_idx };
                let what = "the window cuts a packet";
                return Err(PackError::Structure { idx, used, what });
            }
            idx = whole.end;
            if !whole.copy {
                rx_idx = match rx_idx {
                    Some(rx_start) => self.skip_written(&whole, rx_start)?,
                    None => None,
                };
                opaque = whole.start;
                if inside {
                    close(&mut packed, &mut open, whole.start);
                    let end = whole.end;
                    packed.push(PackedEnd {
                        end,
                        untouched: true,
                    });
                }
                continue;
            }
            let pieces = match rx_idx {
                Some(rx_start) => self.pieces(&whole, rx_start)?,
                None if !inside => continue,
                None => return Err(PackError::Opaque { idx: opaque }),
            };
            rx_idx = rx_idx.map(|rx| rx + pieces.iter().map(|piece| piece.rx).sum::<u32>());
            if !inside {
                continue;
            }
            let mut at = whole.start;
            for piece in pieces {
                limits.check(at, piece)?;
                if !limits.fit(open, piece) {
                    close(&mut packed, &mut open, at);
                }
                open.tx += piece.tx;
                open.rx += piece.rx;
                open.bytes += piece.bytes;
                at += piece.tx;
                if piece.ends {
                    close(&mut packed, &mut open, at);
                }
            }
        }
        close(&mut packed, &mut open, end_idx);
        Ok(packed)
    }

    /// The packet that starts at a Tx descriptor.
    fn packet_at(&self, start: u32) -> Result<Whole, PackError> {
        let used = self.tx.used_desc_count();
        let broken = |idx, what| Err(PackError::Structure { idx, used, what });
        let mut copy = true;
        for idx in start..used {
            let Some(desc) = self.tx.get(idx) else {
                break;
            };
            let len_ctrl = desc.len_ctrl();
            match (len_ctrl.first(), idx == start) {
                (false, true) => return broken(idx, "no FIRST outside a packet"),
                (true, false) => return broken(idx, "FIRST inside a packet"),
                _ => {}
            }
            copy &= is_plain_copy(*desc);
            if len_ctrl.last() {
                let end = idx + 1;
                return Ok(Whole { start, end, copy });
            }
        }
        broken(used.saturating_sub(1), "no LAST at the end of the packet")
    }

    /// The Rx descriptor behind those that a packet of another operation writes to; `None` if that is
    /// not known.
    fn skip_written(&self, packet: &Whole, rx_idx: u32) -> Result<Option<u32>, PackError> {
        let descs: Vec<Descriptor> = (packet.start..packet.end)
            .filter_map(|idx| self.tx.get(idx).copied())
            .collect();
        let Some(mut left) = written_bytes(&descs) else {
            return Ok(None);
        };
        let mut next_rx = rx_idx;
        while left > 0 {
            let rx = self.rx.get(next_rx).ok_or(PackError::NoRx {
                idx: packet.start,
                used: self.rx.used_desc_count(),
            })?;
            left = left.saturating_sub(rx.len_ctrl().byte_len().into());
            next_rx += 1;
        }
        Ok(Some(next_rx))
    }

    /// Cuts a copy packet whose bytes start at Rx descriptor `rx_idx` into pieces.
    fn pieces(&self, packet: &Whole, rx_idx: u32) -> Result<Vec<Piece>, PackError> {
        let no_rx = PackError::NoRx {
            idx: packet.start,
            used: self.rx.used_desc_count(),
        };
        let mut pieces = Vec::new();
        let mut piece = Piece::default();
        let mut next_rx = rx_idx;
        let mut rx_left = 0;
        for desc in (packet.start..packet.end).filter_map(|idx| self.tx.get(idx)) {
            let tx = TxDesc::from(*desc);
            let mut bytes = tx.len_ctrl.byte_len();
            piece.tx += 1;
            piece.bytes += u64::from(bytes);
            piece.ends |= tx.len_ctrl.dmb() || tx.len_ctrl.int_en() || tx.write_barrier();
            while bytes > 0 {
                if rx_left == 0 {
                    let rx = self.rx.get(next_rx).ok_or(no_rx)?;
                    rx_left = rx.len_ctrl().byte_len();
                    next_rx += 1;
                    piece.rx += 1;
                }
                let filled = bytes.min(rx_left);
                bytes -= filled;
                rx_left -= filled;
            }
            if rx_left == 0 && !piece.ends {
                pieces.push(std::mem::take(&mut piece));
            }
        }
        if piece.tx > 0 {
            // Either a barrier, which holds for what was behind it too, or an Rx descriptor whose
            // rest the device skips at the packet's end.
            piece.ends = true;
            pieces.push(piece);
        }
        Ok(pieces)
    }
}

impl PackLimits {
    /// Whether a piece still fits an open packet.
    fn fit(&self, open: Piece, piece: Piece) -> bool {
        open.tx + piece.tx <= self.tx
            && open.rx + piece.rx <= self.rx
            && open.bytes + piece.bytes <= self.bytes
    }

    fn check(&self, idx: u32, piece: Piece) -> Result<(), PackError> {
        if self.fit(Piece::default(), piece) {
            return Ok(());
        }
        Err(PackError::Whole {
            idx,
            last: idx + piece.tx - 1,
            tx: piece.tx,
            rx: piece.rx,
            bytes: piece.bytes,
            tx_limit: self.tx,
            rx_limit: self.rx,
            max_packet_size: self.bytes,
        })
    }
}

/// Ends the open packet, if there is one, before Tx descriptor `end`.
fn close(packed: &mut Vec<PackedEnd>, open: &mut Piece, end: u32) {
    if open.tx > 0 {
        let untouched = false;
        packed.push(PackedEnd { end, untouched });
        *open = Piece::default();
    }
}

fn is_plain_copy(desc: Descriptor) -> bool {
    let tx = TxDesc::from(desc);
    !tx.len_ctrl.meta() && tx.meta_ctrl.cme_op() == Some(CmeOp::Copy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::desc::{
        BarrierMode, Buffer, CcePacket, CmeMeta, CopyPacket, DType, KbinOp, MetaCtrl, RingId,
        packets,
    };
    use crate::units::Addr;

    const MAX: u64 = 1 << 20;

    fn copies(arch: Arch, count: u32, len: u64) -> Vring {
        let mut vring = Vring::new(arch, "v").unwrap();
        for n in 0..u64::from(count) {
            let (src, dst) = (Addr(n * len), Addr(0x1_0000_0000 + n * len));
            vring
                .add_desc_transfer_with_barrier(src, dst, len, BarrierMode::None)
                .unwrap();
        }
        vring
    }

    fn tx(vring: &Vring) -> Vec<Descriptor> {
        vring.tx().runs().flatten().copied().collect()
    }

    /// Descriptors of every packet.
    fn shape(vring: &Vring) -> Vec<usize> {
        let descs = tx(vring);
        packets(&descs, u32::MAX - 1)
            .map(|packet| {
                assert_eq!(packet.faults, []);
                packet.descs.len()
            })
            .collect()
    }

    fn pack_all(vring: &mut Vring, max: u64) -> Result<i64, EditError> {
        let used = vring.tx().used_desc_count();
        let before = shape(vring).len() as u32;
        vring.pack_descs(0, used, max, before)
    }

    #[test]
    fn packets_fill_up_to_the_descriptor_limits() {
        for (arch, most) in [(Arch::V2, 128), (Arch::V3, 60), (Arch::V4, 60)] {
            let mut vring = copies(arch, 2 * most + 1, 64);
            assert_eq!(pack_all(&mut vring, MAX), Ok(3 - i64::from(2 * most + 1)));
            assert_eq!(shape(&vring), [most as usize, most as usize, 1]);
            let last = tx(&vring).len() - 1;
            let bits = |idx: usize| tx(&vring)[idx].words[0] >> 24;
            assert_eq!(
                [bits(0), bits(1), bits(most as usize - 1), bits(last)],
                [0x85, 0x81, 0x09, 0x0d]
            );
        }
    }

    #[test]
    fn the_byte_limit_is_the_last_that_fits() {
        for (max, want) in [
            (64, vec![1; 6]),
            (127, vec![1; 6]),
            (128, vec![2; 3]),
            (192, vec![3; 2]),
            (193, vec![3; 2]),
        ] {
            let mut vring = copies(Arch::V3, 6, 64);
            pack_all(&mut vring, max).unwrap();
            assert_eq!(shape(&vring), want, "{max}");
        }
    }

    #[test]
    fn a_barrier_ends_its_packet() {
        let mut vring = copies(Arch::V2, 3, 64);
        vring.add_desc_transfer(Addr(0), Addr(0x9000), 64).unwrap();
        vring
            .add_desc_transfer_with_barrier(Addr(0), Addr(0xa000), 64, BarrierMode::WriteBarrier)
            .unwrap();
        vring
            .add_desc_transfer_with_barrier(Addr(0), Addr(0xb000), 64, BarrierMode::None)
            .unwrap();
        assert_eq!(pack_all(&mut vring, MAX), Ok(3 - 6));
        assert_eq!(shape(&vring), [4, 1, 1]);
    }

    #[test]
    fn what_follows_a_barrier_in_its_packet_stays() {
        let mut vring = copies(Arch::V2, 1, 64);
        let parts: Vec<Buffer> = (0..3)
            .map(|n| Buffer {
                at: Addr(n * 0x100),
                len: 8,
            })
            .collect();
        let mut packet = CopyPacket::new(&parts, &parts);
        packet.barrier = BarrierMode::Dmb;
        vring.add_dma_packet(&packet).unwrap();
        vring.add_desc_transfer(Addr(0), Addr(64), 8).unwrap();
        assert_eq!(pack_all(&mut vring, MAX), Ok(2 - 3));
        assert_eq!(shape(&vring), [4, 1]);
        // Even where a limit asks for a cut.
        let refused = pack_all(&mut vring, 16).unwrap_err();
        assert!(matches!(
            refused,
            EditError::Pack {
                source: PackError::Whole {
                    idx: 0,
                    bytes: 64,
                    ..
                },
                ..
            }
        ));
        assert_eq!(shape(&vring), [4, 1]);
    }

    #[test]
    fn cuts_only_where_both_rings_end_a_descriptor() {
        let buffer = |at, len| Buffer { at: Addr(at), len };
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        let sources = [buffer(0, 8), buffer(8, 8), buffer(16, 16), buffer(32, 32)];
        let destinations = [buffer(0x1000, 16), buffer(0x1010, 16), buffer(0x1020, 32)];
        vring
            .add_dma_packet(&CopyPacket::new(&sources, &destinations))
            .unwrap();
        pack_all(&mut vring, 32).unwrap();
        assert_eq!(shape(&vring), [3, 1]);
        pack_all(&mut vring, 16).unwrap_err();
        assert_eq!(shape(&vring), [3, 1]);
    }

    #[test]
    fn other_operations_stay_as_they_are() {
        let mut vring = copies(Arch::V3, 2, 64);
        let ends = [
            Buffer {
                at: Addr(0x100),
                len: 64,
            },
            Buffer {
                at: Addr(0x200),
                len: 64,
            },
        ];
        let mut packet = CopyPacket::new(&ends, &ends);
        // A CRC-32 from the stored value, with copy.
        packet.meta_ctrl = MetaCtrl::from_bits(0x0118_8003);
        packet.meta = Some(CmeMeta {
            index: RingId::FIRST_LAP,
            meta_ctrl: MetaCtrl::PLAIN_COPY,
            meta1: 0,
            meta2: 0,
        });
        vring.add_dma_packet(&packet).unwrap();
        vring.add_dma_packet(&packet).unwrap();
        let before = tx(&vring)[2..].to_vec();
        assert_eq!(pack_all(&mut vring, MAX), Ok(-1));
        assert_eq!(shape(&vring), [2, 3, 3]);
        assert_eq!(tx(&vring)[2..], before[..]);
        vring.add_desc_transfer(Addr(0), Addr(64), 64).unwrap();
        // What a checksum packet writes is not known.
        let refused = pack_all(&mut vring, MAX).unwrap_err();
        assert!(matches!(
            refused,
            EditError::Pack {
                source: PackError::Opaque { idx: 5 },
                ..
            }
        ));
    }

    #[test]
    fn windows_leave_the_rest_alone() {
        let mut vring = copies(Arch::V3, 9, 64);
        assert_eq!(vring.pack_descs(3, 6, MAX, 3), Ok(-2));
        assert_eq!(shape(&vring), [1, 1, 1, 3, 1, 1, 1]);
        assert_eq!(
            vring.pack_descs(4, 4, MAX, 0).unwrap_err().to_string(),
            "vring v: Tx descriptor 4 of 9 breaks the packets: the window cuts a packet"
        );
        assert_eq!(vring.pack_descs(3, 3, MAX, 0), Ok(0));
        for (start, end) in [(5, 6), (2, 5), (4, 9)] {
            let refused = vring.pack_descs(start, end, MAX, 0).unwrap_err();
            assert!(
                matches!(
                    refused,
                    EditError::Pack {
                        source: PackError::Structure { .. },
                        ..
                    }
                ),
                "{start}..{end}"
            );
        }
        for (start, end) in [(2, 1), (0, 10), (10, 10)] {
            let refused = vring.pack_descs(start, end, MAX, 0).unwrap_err();
            assert!(
                refused.to_string().contains("Couldn't find cur_page"),
                "{refused}"
            );
        }
        assert_eq!(shape(&vring), [1, 1, 1, 3, 1, 1, 1]);
    }

    #[test]
    fn packing_crosses_pages() {
        let mut vring = copies(Arch::V2, 65540, 16);
        vring.pack_descs(65530, 65540, MAX, 10).unwrap();
        assert_eq!(shape(&vring)[65530..], [10]);
    }

    #[test]
    fn broken_packets_are_refused() {
        let mut vring = copies(Arch::V3, 3, 64);
        let word = vring.tx.get(1).unwrap().words[0];
        for (cleared, idx) in [(0x0400_0000, 1), (0x0800_0000, 2)] {
            vring.tx.get_mut(1).unwrap().words[0] = word & !cleared;
            let refused = vring.pack_descs(0, 3, MAX, 3).unwrap_err();
            assert!(
                matches!(refused, EditError::Pack { source: PackError::Structure { idx: at, .. }, .. } if at == idx)
            );
        }
        vring.tx.get_mut(1).unwrap().words[0] = word;
        vring.rx.truncate(2);
        let refused = vring.pack_descs(0, 3, MAX, 3).unwrap_err();
        assert!(matches!(
            refused,
            EditError::Pack {
                source: PackError::NoRx { idx: 2, used: 2 },
                ..
            }
        ));
    }

    #[test]
    fn copies_behind_a_reduction_are_packed() {
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        let places = [Addr(0x100), Addr(0x200), Addr(0x300)];
        let packet = CcePacket::new(&places, &places, 32, DType::Bfloat16);
        vring.add_dma_packet_cce(KbinOp::Add, &packet).unwrap();
        for n in 0..3 {
            let none = BarrierMode::None;
            vring
                .add_desc_transfer_with_barrier(Addr(0), Addr(n * 64), 64, none)
                .unwrap();
        }
        assert_eq!(vring.pack_descs(4, 7, MAX, 3), Ok(-2));
        assert_eq!(shape(&vring), [4, 3]);
        assert_eq!(pack_all(&mut vring, MAX), Ok(0));
    }
}
