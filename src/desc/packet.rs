//! Packets as views over Tx descriptors (`docs/hardware.md`, "Descriptor"): FIRST opens one, LAST
//! closes it. What breaks the rule is reported, and the grouping goes on at the next boundary.

use super::{Descriptor, LenCtrl, TxDesc};
use std::fmt;

/// How a Tx descriptor breaks the packet structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFault {
    /// A descriptor without FIRST outside a packet. It opens one all the same.
    MissingFirst,
    /// FIRST inside a packet. It opens a new one; the old one had no LAST.
    FirstInside,
    /// One descriptor more than the device allows in a packet. Reported once a packet.
    TooManyDescriptors {
        /// Most descriptors in a packet.
        limit: u32,
    },
    /// The descriptors end inside a packet.
    MissingLast,
}

impl fmt::Display for PacketFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketFault::MissingFirst => f.write_str("a descriptor without FIRST outside a packet"),
            PacketFault::FirstInside => f.write_str("FIRST inside a packet"),
            PacketFault::TooManyDescriptors { limit } => {
                write!(f, "more than {limit} descriptors in the packet")
            }
            PacketFault::MissingLast => f.write_str("the packet does not end with LAST"),
        }
    }
}

/// Where a descriptor stands in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// It opens a packet.
    pub opens: bool,
    /// It closes its packet.
    pub closes: bool,
    /// What is wrong with it.
    pub fault: Option<PacketFault>,
}

/// Follows packet boundaries descriptor by descriptor.
#[derive(Clone, Debug, Default)]
pub struct PacketTracker {
    limit: u32,
    open_descs: u32,
}

impl PacketTracker {
    /// Outside any packet; a packet holds at most `limit` descriptors.
    pub const fn new(limit: u32) -> PacketTracker {
        PacketTracker {
            limit,
            open_descs: 0,
        }
    }

    /// Whether a packet is open.
    pub const fn inside(&self) -> bool {
        self.open_descs > 0
    }

    /// Takes the next descriptor of the ring.
    pub fn accept(&mut self, len_ctrl: LenCtrl) -> Tracked {
        let inside = self.inside();
        let opens = len_ctrl.first() || !inside;
        self.open_descs = if opens {
            1
        } else {
            self.open_descs.saturating_add(1)
        };
        let fault = match (len_ctrl.first(), inside) {
            (true, true) => Some(PacketFault::FirstInside),
            (false, false) => Some(PacketFault::MissingFirst),
            _ if self.open_descs == self.limit.saturating_add(1) => {
                Some(PacketFault::TooManyDescriptors { limit: self.limit })
            }
            _ => None,
        };
        if len_ctrl.last() {
            self.open_descs = 0;
        }
        Tracked {
            opens,
            closes: len_ctrl.last(),
            fault,
        }
    }
}

impl LenCtrl {
    /// Marks a Tx descriptor of a packet: FIRST on the first, LAST on the last, CONCAT on all but the last.
    pub const fn in_packet(self, is_first: bool, is_last: bool) -> LenCtrl {
        self.with_first(is_first)
            .with_last(is_last)
            .with_concat(!is_last)
    }
}

/// Consecutive Tx descriptors that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Index of the first descriptor in the slice that was grouped.
    pub start: usize,
    /// The descriptors.
    pub descs: &'a [Descriptor],
    /// What is wrong, with the index in the grouped slice.
    pub faults: Vec<(usize, PacketFault)>,
}

impl Packet<'_> {
    /// The descriptors that carry an address, META left out.
    pub fn data(&self) -> impl Iterator<Item = TxDesc> {
        self.descs
            .iter()
            .map(|desc| TxDesc::from(*desc))
            .filter(|tx| !tx.len_ctrl.meta())
    }

    /// Bytes the packet reads.
    pub fn byte_len(&self) -> u64 {
        self.data()
            .map(|tx| u64::from(tx.len_ctrl.byte_len()))
            .sum()
    }

    /// Whether the packet carries a DMB: on any of its descriptors.
    pub fn dmb(&self) -> bool {
        self.descs.iter().any(|desc| desc.len_ctrl().dmb())
    }

    /// Whether the packet carries a write barrier: on any of its descriptors.
    pub fn write_barrier(&self) -> bool {
        self.descs
            .iter()
            .any(|desc| TxDesc::from(*desc).write_barrier())
    }
}

/// Groups Tx descriptors into packets of at most `limit` descriptors. Every descriptor is in
/// exactly one packet.
pub fn packets(descs: &[Descriptor], limit: u32) -> Packets<'_> {
    Packets {
        descs,
        next: 0,
        tracker: PacketTracker::new(limit),
    }
}

/// Iterator of [`packets`].
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    descs: &'a [Descriptor],
    next: usize,
    tracker: PacketTracker,
}

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    fn next(&mut self) -> Option<Packet<'a>> {
        let start = self.next;
        let mut faults = Vec::new();
        let mut closed = false;
        while let Some(desc) = self.descs.get(self.next) {
            let len_ctrl = desc.len_ctrl();
            if closed || (self.next > start && len_ctrl.first()) {
                break;
            }
            let tracked = self.tracker.accept(len_ctrl);
            faults.extend(tracked.fault.map(|fault| (self.next, fault)));
            closed = tracked.closes;
            self.next += 1;
        }
        let descs = self.descs.get(start..self.next)?;
        let last = descs.len().checked_sub(1)?;
        if !closed && self.next == self.descs.len() {
            faults.push((start + last, PacketFault::MissingLast));
        }
        Some(Packet {
            start,
            descs,
            faults,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIRST: u32 = 0x0400_0000;
    const LAST: u32 = 0x0800_0000;
    const META: u32 = 0x0080_0000;
    const DMB: u32 = 0x4000_0000;

    fn ring(len_ctrls: &[u32]) -> Vec<Descriptor> {
        len_ctrls
            .iter()
            .map(|&len_ctrl| Descriptor {
                words: [len_ctrl, 0x0108_0003, 0, 0],
            })
            .collect()
    }

    /// Start, descriptors and faults of a packet.
    type Shape = (usize, usize, Vec<(usize, PacketFault)>);

    fn shape(len_ctrls: &[u32], limit: u32) -> Vec<Shape> {
        packets(&ring(len_ctrls), limit)
            .map(|packet| (packet.start, packet.descs.len(), packet.faults))
            .collect()
    }

    #[test]
    fn well_formed_packets() {
        assert_eq!(shape(&[], 65), []);
        assert_eq!(
            shape(&[FIRST | LAST, FIRST, 0, LAST, FIRST | LAST], 65),
            [(0, 1, vec![]), (1, 3, vec![]), (4, 1, vec![])]
        );
    }

    #[test]
    fn malformed_packets_are_reported_where_they_break() {
        use PacketFault::*;
        assert_eq!(
            shape(&[0, LAST, FIRST | LAST], 65),
            [(0, 2, vec![(0, MissingFirst)]), (2, 1, vec![])]
        );
        assert_eq!(
            shape(&[FIRST, 0, FIRST, LAST], 65),
            [(0, 2, vec![]), (2, 2, vec![(2, FirstInside)])]
        );
        assert_eq!(
            shape(&[FIRST | LAST, FIRST, 0], 65),
            [(0, 1, vec![]), (1, 2, vec![(2, MissingLast)])]
        );
        assert_eq!(
            shape(&[0], 65),
            [(0, 1, vec![(0, MissingFirst), (0, MissingLast)])]
        );
    }

    #[test]
    fn the_limit_is_the_last_that_fits() {
        assert_eq!(shape(&[FIRST, 0, LAST], 3), [(0, 3, vec![])]);
        let limit = PacketFault::TooManyDescriptors { limit: 3 };
        assert_eq!(
            shape(&[FIRST, 0, 0, 0, LAST, FIRST, LAST], 3),
            [(0, 5, vec![(3, limit)]), (5, 2, vec![])]
        );
    }

    #[test]
    fn what_a_packet_carries() {
        let descs = ring(&[FIRST | META | 0x100, 0x40, LAST | DMB]);
        let packet = packets(&descs, 65).next().unwrap();
        assert_eq!(packet.byte_len(), 0x40 + 65536);
        assert!(packet.dmb());
        assert!(!packet.write_barrier());
    }

    proptest! {
        #[test]
        fn packets_partition_the_ring(len_ctrls in prop::collection::vec(any::<u32>(), 0..40), limit in 1u32..8) {
            let descs = ring(&len_ctrls);
            let mut next = 0;
            for packet in packets(&descs, limit) {
                prop_assert_eq!(packet.start, next);
                prop_assert!(!packet.descs.is_empty());
                next += packet.descs.len();
                let end = next;
                prop_assert!(packet.faults.iter().all(|(at, _)| (packet.start..end).contains(at)));
                let clean = packet.faults.is_empty()
                    && packet.descs.last().unwrap().len_ctrl().last();
                if clean {
                    prop_assert!(packet.descs[0].len_ctrl().first());
                    prop_assert!(packet.descs.len() <= limit as usize);
                }
            }
            prop_assert_eq!(next, descs.len());
        }
    }
}
