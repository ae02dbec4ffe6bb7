use super::*;
use crate::arch::Arch;
use crate::desc::{BarrierMode, CcePacket, CopyPacket, DType, KbinOp, packets};
use crate::host::test_packets::{buffer, checksum};
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
    let parts: Vec<_> = (0..3).map(|n| buffer(n * 0x100, 8)).collect();
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
    let ends = [buffer(0x100, 64), buffer(0x200, 64)];
    let packet = checksum(CopyPacket::new(&ends, &ends));
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
        "vring v: Tx descriptor 4 of 9 is not in a valid packet: the window splits a packet"
    );
    assert_eq!(vring.pack_descs(3, 3, MAX, 0), Ok(0));
    for (start, end) in [(5, 6), (2, 5), (4, 9)] {
        let refused = vring.pack_descs(start, end, MAX, 0).unwrap_err();
        assert!(
            matches!(
                refused,
                EditError::Pack {
                    source: PackError::Cut { .. },
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
