//! The builder of a copy packet of many descriptors: gathers sources, scatters to destinations
//! (`docs/hardware.md`, "Descriptor").

use super::build::check_gates;
use super::{
    BarrierMode, BuildError, CmeError, CmePacket, Descriptor, LenCtrl, MAX_DESC_BYTES, MetaCtrl,
    RingId, RxDesc, TxDesc, TxMetaDesc, check_cme_packet,
};
use crate::arch::Arch;
use crate::units::Addr;

/// A range of bytes that a packet reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// First byte.
    pub at: Addr,
    /// Bytes; cut into descriptors of at most 64 KiB.
    pub len: u64,
}

/// The meta descriptor that leads a CRC packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmeMeta {
    /// Index in its RING_ID bits.
    pub index: RingId,
    /// Operation and controls; must be of the CME class.
    pub meta_ctrl: MetaCtrl,
    /// First operand word.
    pub meta1: u32,
    /// Second operand word.
    pub meta2: u32,
}

/// What a copy packet moves and how.
#[derive(Clone, Debug)]
pub struct CopyPacket<'a> {
    /// Read in this order.
    pub sources: &'a [Buffer],
    /// Filled in this order, with as many bytes.
    pub destinations: &'a [Buffer],
    /// DMB goes on the first Tx descriptor, a write barrier on the last, SOW on the last Rx one.
    pub barrier: BarrierMode,
    /// V4 only.
    pub notification_mask: bool,
    /// `meta_ctrl` of the data descriptors; must be of the CME class.
    pub meta_ctrl: MetaCtrl,
    /// Leads the packet if given.
    pub meta: Option<CmeMeta>,
}

impl<'a> CopyPacket<'a> {
    /// A plain copy without a barrier.
    pub fn new(sources: &'a [Buffer], destinations: &'a [Buffer]) -> CopyPacket<'a> {
        CopyPacket {
            sources,
            destinations,
            barrier: BarrierMode::None,
            notification_mask: false,
            meta_ctrl: MetaCtrl::PLAIN_COPY,
            meta: None,
        }
    }
}

/// Descriptors of a packet, as they go on the rings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuiltPacket {
    /// On the Tx ring.
    pub tx: Vec<Descriptor>,
    /// On the Rx ring.
    pub rx: Vec<Descriptor>,
}

impl BuiltPacket {
    /// Bytes of the Tx descriptors that carry an address.
    pub fn tx_bytes(&self) -> u64 {
        bytes(self.tx.iter().filter(|desc| !desc.len_ctrl().meta()))
    }

    /// Bytes of the Rx descriptors.
    pub fn rx_bytes(&self) -> u64 {
        bytes(self.rx.iter())
    }

    /// Marks the packet's ends.
    pub(super) fn delimit(&mut self) {
        let last = self.tx.len().saturating_sub(1);
        for (index, desc) in self.tx.iter_mut().enumerate() {
            let len_ctrl = desc.len_ctrl().in_packet(index == 0, index == last);
            desc.words[0] = len_ctrl.into_bits();
        }
    }
}

/// Refuses more descriptors than a packet may have.
pub(super) fn check_packet_limits(
    arch: Arch,
    tx_count: u64,
    rx_count: u64,
) -> Result<(), PacketLimitError> {
    let limits = arch.spec().limits;
    for (ring, count, limit) in [
        ("Tx", tx_count, limits.tx_descs_per_packet),
        ("Rx", rx_count, limits.rx_descs_per_packet),
    ] {
        if count > u64::from(limit) {
            return Err(PacketLimitError {
                arch,
                ring,
                count,
                limit,
            });
        }
    }
    Ok(())
}

fn bytes<'d>(descs: impl Iterator<Item = &'d Descriptor>) -> u64 {
    descs
        .map(|desc| u64::from(desc.len_ctrl().byte_len()))
        .sum()
}

/// More descriptors than a packet may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} {ring} descriptors; a packet on {arch} has at most {limit}")]
pub struct PacketLimitError {
    /// Generation of the device.
    pub arch: Arch,
    /// `Tx` or `Rx`.
    pub ring: &'static str,
    /// Descriptors the packet needs.
    pub count: u64,
    /// Most it may have.
    pub limit: u32,
}

/// Why a copy packet was not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyPacketError {
    /// Nothing to read or nothing to fill.
    #[error(
        "a packet needs at least one byte; {sources} sources and {destinations} destinations have none"
    )]
    Empty {
        /// Sources given.
        sources: usize,
        /// Destinations given.
        destinations: usize,
    },
    /// A source or a destination without bytes.
    #[error("{end} {index} has 0 bytes")]
    EmptyBuffer {
        /// `source` or `destination`.
        end: &'static str,
        /// Which, from 0.
        index: usize,
    },
    /// Sources and destinations differ in size.
    #[error("the packet writes {wanted} bytes, but the destinations have {destinations}")]
    Sizes {
        /// Bytes that the packet writes: of the sources, or of a checksum's data and result.
        wanted: u64,
        /// Bytes of the destinations.
        destinations: u64,
    },
    /// A word that is not of the copy and CRC class.
    #[error("meta_ctrl {0:#010x} is not of the CME class of copies and checksums")]
    Class(u32),
    /// A copy or a checksum that the device would refuse.
    #[error("descriptor {desc} of the packet: {error}")]
    Cme {
        /// The descriptor at fault, counted from 0.
        desc: usize,
        /// What is wrong with it.
        error: CmeError,
    },
    /// Too many descriptors.
    #[error(transparent)]
    Limit(#[from] PacketLimitError),
    /// The generation cannot do it.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Builds a copy packet, or a checksum: its values come first, each a source of its own. The descriptors'
/// ring id is `ring`.
///
/// # Errors
/// [`CopyPacketError`] for sizes that differ, for too many descriptors, and for what `arch` cannot do.
pub fn build_copy_packet(
    arch: Arch,
    packet: &CopyPacket,
    ring: RingId,
) -> Result<BuiltPacket, CopyPacketError> {
    check_gates(arch, packet.barrier, packet.notification_mask)?;
    let words = packet.meta.iter().map(|meta| meta.meta_ctrl);
    for word in words.chain([packet.meta_ctrl]) {
        if !word.is_cme() {
            return Err(CopyPacketError::Class(word.into_bits()));
        }
    }
    let metas = usize::from(packet.meta.is_some());
    let sources = count("source", packet.sources)?;
    let destinations = count("destination", packet.destinations)?;
    if sources.bytes == 0 {
        return Err(CopyPacketError::Empty {
            sources: packet.sources.len(),
            destinations: packet.destinations.len(),
        });
    }
    // Before the descriptors are made: a huge size must not become a huge list.
    let tx_count = sources.descs.saturating_add(metas as u64);
    check_packet_limits(arch, tx_count, destinations.descs)?;

    let mut built = BuiltPacket::default();
    if let Some(meta) = packet.meta {
        let tx = TxMetaDesc {
            len_ctrl: LenCtrl::leading_meta(meta.index),
            meta_ctrl: meta.meta_ctrl,
            meta1: meta.meta1,
            meta2: meta.meta2,
        };
        built.tx.push(tx.into());
    }
    let meta_ctrl = packet
        .meta_ctrl
        .with_notification_mask(packet.notification_mask || packet.meta_ctrl.notification_mask());
    for (at, len) in chunks(packet.sources) {
        let len_ctrl = LenCtrl::new().with_ring_id(ring).with_byte_len(len);
        let tx = TxDesc {
            len_ctrl: len_ctrl.map_err(BuildError::from)?,
            meta_ctrl,
            buf_ptr: at,
        };
        built.tx.push(tx.into());
    }
    let wanted = match check_cme_packet(&built.tx) {
        Ok(CmePacket::Copy) => sources.bytes,
        Ok(CmePacket::Checksum { result_bytes, .. }) => result_bytes,
        Err((desc, error)) => return Err(CopyPacketError::Cme { desc, error }),
    };
    if destinations.bytes != wanted {
        return Err(CopyPacketError::Sizes {
            wanted,
            destinations: destinations.bytes,
        });
    }
    for (at, len) in chunks(packet.destinations) {
        let len_ctrl = LenCtrl::new().with_ring_id(ring).with_byte_len(len);
        let rx = RxDesc {
            len_ctrl: len_ctrl.map_err(BuildError::from)?,
            buf2_ptr_lo: 0,
            buf1_ptr: at,
        };
        built.rx.push(rx.into());
    }
    built.delimit();
    built.set_barrier(packet.barrier);
    Ok(built)
}

impl BuiltPacket {
    /// Puts a barrier on the packet: DMB on its first Tx descriptor, a write barrier on its last, SOW
    /// on its last Rx descriptor.
    pub(super) fn set_barrier(&mut self, barrier: BarrierMode) {
        let change = |desc: Option<&mut Descriptor>, mark: fn(&mut Descriptor)| {
            if let Some(desc) = desc {
                mark(desc);
            }
        };
        match barrier {
            BarrierMode::None => {}
            BarrierMode::Dmb => change(self.tx.first_mut(), |desc| {
                desc.words[0] = desc.len_ctrl().with_dmb(true).into_bits();
            }),
            BarrierMode::WriteBarrier => change(self.tx.last_mut(), |desc| {
                let word = MetaCtrl::from_bits(desc.words[1]);
                desc.words[1] = word.with_write_barrier(true).into_bits();
            }),
            BarrierMode::StrongOrder => change(self.rx.last_mut(), |desc| {
                desc.words[0] = desc.len_ctrl().with_strong_order_wr(true).into_bits();
            }),
        }
    }
}

/// What a list of buffers amounts to.
struct Amount {
    bytes: u64,
    descs: u64,
}

fn count(end: &'static str, buffers: &[Buffer]) -> Result<Amount, CopyPacketError> {
    let mut amount = Amount { bytes: 0, descs: 0 };
    for (index, buffer) in buffers.iter().enumerate() {
        if buffer.len == 0 {
            return Err(CopyPacketError::EmptyBuffer { end, index });
        }
        amount.bytes = amount.bytes.saturating_add(buffer.len);
        let descs = buffer.len.div_ceil(u64::from(MAX_DESC_BYTES));
        amount.descs = amount.descs.saturating_add(descs);
    }
    Ok(amount)
}

/// Buffers cut into runs of at most 64 KiB.
fn chunks(buffers: &[Buffer]) -> impl Iterator<Item = (Addr, u32)> {
    let most = u64::from(MAX_DESC_BYTES);
    buffers.iter().flat_map(move |buffer| {
        (0..buffer.len.div_ceil(most)).map(move |n| {
            let at = Addr(buffer.at.0.wrapping_add(n * most));
            (at, (buffer.len - n * most).min(most) as u32)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn buffer(at: u64, len: u64) -> Buffer {
        Buffer { at: Addr(at), len }
    }

    fn build(arch: Arch, packet: &CopyPacket) -> Result<BuiltPacket, CopyPacketError> {
        build_copy_packet(arch, packet, RingId::FIRST_LAP)
    }

    fn words(descs: &[Descriptor]) -> Vec<[u32; 4]> {
        descs.iter().map(|desc| desc.words).collect()
    }

    #[test]
    fn golden_packet() {
        let sources = [buffer(0x1000, 65537), buffer(0x8000_0000, 16)];
        let destinations = [buffer(0x5_0000_0000, 65553)];
        let mut packet = CopyPacket::new(&sources, &destinations);
        packet.barrier = BarrierMode::Dmb;
        let built = build(Arch::V3, &packet).unwrap();
        assert_eq!(
            words(&built.tx),
            [
                [0xc500_0000, 0x0108_0003, 0x1000, 0],
                [0x8100_0001, 0x0108_0003, 0x1_1000, 0],
                [0x0900_0010, 0x0108_0003, 0x8000_0000, 0],
            ]
        );
        assert_eq!(
            words(&built.rx),
            [[0x0100_0000, 0, 0, 5], [0x0100_0011, 0, 0x1_0000, 5]]
        );
        assert_eq!((built.tx_bytes(), built.rx_bytes()), (65553, 65553));
    }

    #[test]
    fn a_meta_descriptor_leads_and_carries_no_bytes() {
        let ends = [buffer(0x100, 64)];
        let mut packet = CopyPacket::new(&ends, &ends);
        packet.meta = Some(CmeMeta {
            index: RingId::FIRST_LAP,
            meta_ctrl: MetaCtrl::from_bits(0x0118_8003),
            meta1: 0x11,
            meta2: 0x22,
        });
        packet.meta_ctrl = MetaCtrl::from_bits(0x0118_8003);
        packet.barrier = BarrierMode::WriteBarrier;
        let built = build(Arch::V2, &packet).unwrap();
        assert_eq!(
            words(&built.tx),
            [
                [0x8580_0000, 0x0118_8003, 0x11, 0x22],
                [0x0900_0040, 0x0518_8003, 0x100, 0],
            ]
        );
        assert_eq!(built.tx_bytes(), 64);
    }

    #[test]
    fn limits_on_both_sides() {
        for (arch, tx_most, rx_most) in
            [(Arch::V2, 128, 128), (Arch::V3, 65, 60), (Arch::V4, 65, 60)]
        {
            let many = |n: usize| vec![buffer(0x100, 8); n];
            let one = |n: usize| [buffer(0x100, 8 * n as u64)];
            let gather = |n| build(arch, &CopyPacket::new(&many(n), &one(n)));
            let scatter = |n| build(arch, &CopyPacket::new(&one(n), &many(n)));
            assert_eq!(gather(tx_most).unwrap().tx.len(), tx_most);
            assert_eq!(scatter(rx_most).unwrap().rx.len(), rx_most);
            let refused = gather(tx_most + 1).unwrap_err();
            assert_eq!(
                refused.to_string(),
                format!(
                    "{} Tx descriptors; a packet on {arch} has at most {tx_most}",
                    tx_most + 1
                )
            );
            let refused = scatter(rx_most + 1).unwrap_err();
            assert_eq!(
                refused.to_string(),
                format!(
                    "{} Rx descriptors; a packet on {arch} has at most {rx_most}",
                    rx_most + 1
                )
            );
        }
        let huge = [buffer(0, u64::MAX)];
        assert!(matches!(
            build(Arch::V3, &CopyPacket::new(&huge, &huge)),
            Err(CopyPacketError::Limit(_))
        ));
    }

    #[test]
    fn gates_of_the_generations() {
        let ends = [buffer(0x100, 64)];
        let mut packet = CopyPacket::new(&ends, &ends);
        packet.barrier = BarrierMode::StrongOrder;
        assert_eq!(
            build(Arch::V2, &packet),
            Err(BuildError::StrongOrder.into())
        );
        assert_eq!(
            build(Arch::V3, &packet).unwrap().rx[0].words[0],
            0x2100_0040
        );
        packet.barrier = BarrierMode::None;
        packet.notification_mask = true;
        let refused = Err(BuildError::NotificationMask(Arch::V3).into());
        assert_eq!(build(Arch::V3, &packet), refused);
        assert_eq!(
            build(Arch::V4, &packet).unwrap().tx[0].words[1],
            0x1108_0003
        );
    }

    #[test]
    fn what_is_no_copy() {
        let (some, none) = ([buffer(0x100, 64)], [buffer(0x100, 0)]);
        let refused = |sources, destinations| {
            build(Arch::V3, &CopyPacket::new(sources, destinations)).unwrap_err()
        };
        assert!(matches!(refused(&[], &[]), CopyPacketError::Empty { .. }));
        assert!(matches!(
            refused(&some, &none),
            CopyPacketError::EmptyBuffer {
                end: "destination",
                index: 0
            }
        ));
        let less = [buffer(0, 63)];
        assert!(matches!(
            refused(&some, &less),
            CopyPacketError::Sizes {
                wanted: 64,
                destinations: 63
            }
        ));
        let mut packet = CopyPacket::new(&some, &some);
        packet.meta_ctrl = MetaCtrl::from_bits(0x0200_0000);
        assert_eq!(
            build(Arch::V3, &packet),
            Err(CopyPacketError::Class(0x0200_0000))
        );
    }

    proptest! {
        #[test]
        fn a_packet_covers_its_buffers(
            sources in prop::collection::vec(1u64..200_000, 1..12),
            cuts in prop::collection::vec(1u64..200_000, 0..12),
        ) {
            let total: u64 = sources.iter().sum();
            let mut left = total;
            let mut destinations = Vec::new();
            for cut in cuts {
                if cut < left {
                    destinations.push(buffer(0x9_0000_0000 + total - left, cut));
                    left -= cut;
                }
            }
            destinations.push(buffer(0x9_0000_0000 + total - left, left));
            let mut at = 0x100;
            let sources: Vec<Buffer> = sources.iter().map(|&len| {
                at += len;
                buffer(at - len, len)
            }).collect();
            let built = build(Arch::V2, &CopyPacket::new(&sources, &destinations)).unwrap();
            prop_assert_eq!((built.tx_bytes(), built.rx_bytes()), (total, total));
            let firsts = built.tx.iter().filter(|desc| desc.len_ctrl().first()).count();
            let lasts = built.tx.iter().filter(|desc| desc.len_ctrl().last()).count();
            let concats = built.tx.iter().filter(|desc| desc.len_ctrl().concat()).count();
            prop_assert_eq!((firsts, lasts, concats), (1, 1, built.tx.len() - 1));
            prop_assert!(built.tx[0].len_ctrl().first());
            prop_assert!(built.tx.last().unwrap().len_ctrl().last());
            // Sources and destinations lie end to end here, and so must the descriptors.
            let mut next = 0x100;
            for desc in &built.tx {
                let tx = TxDesc::from(*desc);
                prop_assert_eq!(tx.buf_ptr, Addr(next));
                next += u64::from(tx.len_ctrl.byte_len());
            }
            let mut next = 0x9_0000_0000;
            for desc in &built.rx {
                let rx = RxDesc::from(*desc);
                prop_assert_eq!(rx.buf1_ptr, Addr(next));
                next += u64::from(rx.len_ctrl.byte_len());
                prop_assert!(!rx.len_ctrl.first() && !rx.len_ctrl.last() && !rx.len_ctrl.concat());
            }
        }
    }
}
