use super::*;
use crate::desc::{RxDesc, TxDesc};
use crate::host::MAX_VRING_DESCS;
use proptest::prelude::*;

const SRC: Addr = Addr(0x1_0000_0000);
const DST: Addr = Addr(0x2_0000_0000);

fn vring(arch: Arch) -> Vring {
    Vring::new(arch, "test_0").unwrap()
}

fn pairs(vring: &Vring) -> Vec<(TxDesc, RxDesc)> {
    let all = |half: &VringPages| half.runs().flatten().copied().collect::<Vec<_>>();
    all(&vring.tx)
        .into_iter()
        .map(TxDesc::from)
        .zip(all(&vring.rx).into_iter().map(RxDesc::from))
        .collect()
}

/// (DMB, SOW) of every pair.
fn barriers(vring: &Vring) -> Vec<(bool, bool)> {
    pairs(vring)
        .iter()
        .map(|(tx, rx)| (tx.len_ctrl.dmb(), rx.len_ctrl.strong_order_wr()))
        .collect()
}

#[test]
fn the_last_chunk_carries_the_barrier_of_the_arch() {
    let (plain, dmb, sow) = ((false, false), (true, false), (false, true));
    for (arch, last) in [(Arch::V2, dmb), (Arch::V3, sow), (Arch::V4, sow)] {
        let mut vring = vring(arch);
        vring.add_desc_transfer(SRC, DST, 3 * 65536).unwrap();
        assert_eq!(barriers(&vring), [plain, plain, last], "{arch}");
        vring.add_desc_transfer_ex(SRC, DST, 65537).unwrap();
        assert_eq!(barriers(&vring)[3..], [plain, dmb], "{arch}");
    }
}

#[test]
fn chunks_are_packets_of_their_own() {
    let mut vring = vring(Arch::V3);
    vring.add_desc_transfer(SRC, DST, 65537).unwrap();
    let descs: Vec<_> = vring.tx().runs().flatten().map(|desc| desc.words).collect();
    assert_eq!(
        descs,
        [
            [0x0d00_0000, 0x0108_0003, 0, 1],
            [0x0d00_0001, 0x0108_0003, 0x1_0000, 1]
        ]
    );
    let descs: Vec<_> = vring.rx().runs().flatten().map(|desc| desc.words).collect();
    assert_eq!(
        descs,
        [[0x0100_0000, 0, 0, 2], [0x2100_0001, 0, 0x1_0000, 2]]
    );
}

#[test]
fn a_size_of_zero_adds_nothing() {
    let mut vring = vring(Arch::V3);
    vring.add_desc_transfer(SRC, DST, 0).unwrap();
    assert_eq!(vring.tx().used_desc_count(), 0);
    assert_eq!((vring.total_tx_size(), vring.total_rx_size()), (0, 0));
}

#[test]
fn a_chosen_barrier_goes_on_the_last_chunk() {
    let mut vring = vring(Arch::V3);
    let mode = BarrierMode::WriteBarrier;
    vring
        .add_desc_transfer_with_barrier(SRC, DST, 65540, mode)
        .unwrap();
    let pairs = pairs(&vring);
    assert_eq!(
        pairs
            .iter()
            .map(|(tx, _)| tx.write_barrier())
            .collect::<Vec<_>>(),
        [false, true]
    );
}

#[test]
fn a_refused_call_leaves_the_vring_as_it_was() {
    let mut vring = vring(Arch::V2);
    vring.add_desc_transfer(SRC, DST, 100).unwrap();
    let before = pairs(&vring);

    let refused = vring.add_desc_transfer_with_barrier(SRC, DST, 200_000, BarrierMode::StrongOrder);
    assert!(matches!(
        refused,
        Err(VringError::Build {
            source: BuildError::StrongOrder,
            ..
        })
    ));
    let refused = vring.add_desc_transfer(SRC, Addr(u64::MAX - 98), 100);
    assert!(matches!(refused, Err(VringError::PastEnd { .. })));
    let refused = vring.add_desc_transfer(SRC, DST, u64::MAX).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Failed to add descriptor 16777200/281474976710656 to vring test_0: \
         Descriptor limit reached. Descriptors in vring 1, Max allowed 16777200"
    );

    assert_eq!(pairs(&vring), before);
    assert_eq!((vring.total_tx_size(), vring.total_rx_size()), (100, 100));
    vring
        .add_desc_transfer(SRC, Addr(u64::MAX - 99), 100)
        .unwrap();
}

#[test]
fn the_cap_counts_descriptors_not_calls() {
    let mut vring = vring(Arch::V3);
    for _ in 0..MAX_VRING_DESCS - 2 {
        vring.tx.allocate_next_desc().unwrap();
    }
    assert!(vring.add_desc_transfer(SRC, DST, 3 * 65536).is_err());
    assert_eq!(vring.rx().used_desc_count(), 0);
    vring.add_desc_transfer(SRC, DST, 2 * 65536).unwrap();
    assert!(vring.add_desc_transfer(SRC, DST, 1).is_err());
    assert_eq!(vring.tx().used_desc_count(), MAX_VRING_DESCS);
}

#[test]
fn names_have_room_for_their_terminator() {
    assert!(Vring::new(Arch::V3, "n".repeat(255)).is_ok());
    assert_eq!(
        Vring::new(Arch::V3, "n".repeat(256)).unwrap_err(),
        VringError::NameTooLong(256)
    );
}

proptest! {
    #[test]
    fn chunks_cover_the_transfer_in_order(size in 0u64..5 * 65536, arch in prop::sample::select(&Arch::ALL)) {
        let mut vring = vring(arch);
        vring.add_desc_transfer(SRC, DST, size).unwrap();
        let pairs = pairs(&vring);
        prop_assert_eq!(pairs.len() as u64, size.div_ceil(65536));
        let mut done = 0;
        for (tx, rx) in &pairs {
            prop_assert_eq!((tx.buf_ptr, rx.buf1_ptr), (Addr(SRC.0 + done), Addr(DST.0 + done)));
            prop_assert_eq!(tx.len_ctrl.byte_len(), rx.len_ctrl.byte_len());
            prop_assert_eq!((tx.len_ctrl.ring_id(), rx.len_ctrl.ring_id()), (RingId::FIRST_LAP, RingId::FIRST_LAP));
            done += u64::from(tx.len_ctrl.byte_len());
        }
        prop_assert_eq!(done, size);
        prop_assert_eq!((vring.total_tx_size(), vring.total_rx_size()), (size, size));
    }
}
