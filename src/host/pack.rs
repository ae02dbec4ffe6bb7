//! Packing: adjacent copy packets become fewer, longer ones.
//!
//! Packets may be joined and cut only where that cannot change a byte. A packet's bytes fill Rx
//! descriptors in order and it starts on a fresh one, so a cut is possible only where Tx and Rx
//! descriptors end together: between two cuts lies a *piece*, the smallest thing that moves as one.
//! A barrier, an interrupt or a half-used Rx descriptor in a piece ends its packet, and what the
//! packet had behind it stays with it.

use super::edits::EditError;
use super::vring::Vring;
use crate::desc::{Descriptor, PacketFault, PacketTracker, TxDesc, written_bytes};

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
    /// FIRST and LAST do not nest at a descriptor of the window.
    #[error("Tx descriptor {idx} of {used} is not in a valid packet: {fault}")]
    Structure {
        /// The descriptor.
        idx: u32,
        /// Descriptors of the Tx half.
        used: u32,
        /// How.
        fault: PacketFault,
    },
    /// The window cuts a packet.
    #[error("Tx descriptor {idx} of {used} is not in a valid packet: the window splits a packet")]
    Cut {
        /// The end of the window that does.
        idx: u32,
        /// Descriptors of the Tx half.
        used: u32,
    },
    /// The packet at a descriptor has no Rx descriptors for its bytes.
    #[error(
        "the packet at Tx descriptor {idx} has more bytes than the {used} Rx descriptors can hold"
    )]
    NoRx {
        /// First descriptor of the packet.
        idx: u32,
        /// Descriptors of the Rx half.
        used: u32,
    },
    /// What stays whole is beyond a limit.
    #[error(
        "Tx descriptors {idx} to {last} cannot be split, but exceed a limit: {tx} Tx and {rx} Rx descriptors, {bytes} bytes; the limits are {tx_limit}, {rx_limit} and {max_packet_size}"
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
        "the packet at Tx descriptor {idx} writes an unknown number of bytes, so the Rx descriptors of the copies behind it are not known"
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
                let len_ctrl = desc.len_ctrl().in_packet(idx == start, idx + 1 == end);
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
                return Err(PackError::Cut { idx, used });
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
        let broken = |idx, fault| Err(PackError::Structure { idx, used, fault });
        // The limits of a packet as it is are nobody's business here.
        let mut tracker = PacketTracker::new(u32::MAX);
        let mut copy = true;
        for idx in start..used {
            let Some(desc) = self.tx.get(idx) else {
                break;
            };
            let tracked = tracker.accept(desc.len_ctrl());
            if let Some(fault) = tracked.fault {
                return broken(idx, fault);
            }
            copy &= TxDesc::from(*desc).is_copy();
            if tracked.closes {
                let end = idx + 1;
                return Ok(Whole { start, end, copy });
            }
        }
        broken(used.saturating_sub(1), PacketFault::MissingLast)
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

#[cfg(test)]
mod tests;
