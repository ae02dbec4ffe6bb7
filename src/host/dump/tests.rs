use super::*;
use crate::desc::DESC_BYTES;
use crate::host::test_bus::TestBus;
use crate::host::{PringType, VringPages};

const TX_AT: Addr = Addr(0x10_0000);
const RX_AT: Addr = Addr(0x20_0000);

fn prings(descs: u32) -> (Pring, Pring) {
    (
        Pring::new(Direction::M2s, TX_AT, descs).unwrap(),
        Pring::new(Direction::S2m, RX_AT, descs).unwrap(),
    )
}

fn padded(tx: u32, rx: u32) -> DumpOptions {
    DumpOptions {
        tx_padded: Some(tx),
        rx_padded: Some(rx),
        ..DumpOptions::default()
    }
}

fn three_copies() -> Vring {
    let mut vring = Vring::new(Arch::V2, "v").unwrap();
    vring
        .add_desc_transfer(Addr(0x1000), Addr(0x2000), 3 * 65536)
        .unwrap();
    vring
}

fn ring(bus: &TestBus, at: Addr, count: usize) -> Vec<Descriptor> {
    bus.bytes(at, count * DESC_BYTES)
        .chunks_exact(DESC_BYTES)
        .map(|bytes| Descriptor::from_bytes(bytes.try_into().unwrap()))
        .collect()
}

fn all(pages: &VringPages) -> Vec<Descriptor> {
    pages.runs().flatten().copied().collect()
}

#[test]
fn a_plain_dump_is_the_vring_and_no_more() {
    let (mut bus, vring, (mut tx, mut rx)) = (TestBus::default(), three_copies(), prings(32));
    vring.dump_to_pring(&mut bus, &mut tx, &mut rx).unwrap();
    assert_eq!(ring(&bus, TX_AT, 3), all(vring.tx()));
    assert_eq!(ring(&bus, RX_AT, 3), all(vring.rx()));
    assert_eq!((tx.used_desc_count(), rx.used_desc_count()), (3, 3));
    assert_eq!(bus.bytes(Addr(TX_AT.0 + 48), 16), [0; 16]);
}

#[test]
fn padding_is_copies_of_the_scratch_word_onto_itself() {
    let (mut bus, mut vring, (mut tx, mut rx)) = (TestBus::default(), three_copies(), prings(32));
    vring
        .dump_to_pring_with(&mut bus, &mut tx, &mut rx, padded(5, 4))
        .unwrap();
    assert_eq!((tx.used_desc_count(), rx.used_desc_count()), (5, 4));
    let (tx_ring, rx_ring) = (ring(&bus, TX_AT, 6), ring(&bus, RX_AT, 5));
    assert_eq!(tx_ring[..3], all(vring.tx())[..]);
    let pad = [0x0d00_0004, 0x0108_0003, 0xffff_fffc, 3];
    assert_eq!(
        tx_ring[3..]
            .iter()
            .map(|desc| desc.words)
            .collect::<Vec<_>>(),
        [pad, pad, [0; 4]]
    );
    assert_eq!(rx_ring[3].words, [0x0100_0004, 0, 0xffff_fffc, 3]);
    assert_eq!(rx_ring[4].words, [0; 4]);
}

#[test]
fn dumps_and_padding_cross_pages() {
    let mut bus = TestBus::default();
    let mut vring = Vring::new(Arch::V3, "v").unwrap();
    for n in 0..u64::from(PAGE_DESCS) + 2 {
        vring.add_desc_transfer(Addr(n), Addr(n), 1).unwrap();
    }
    let count = 2 * PAGE_DESCS + 16;
    let mut tx = Pring::new(Direction::M2s, Addr(0x100_0000), count).unwrap();
    let mut rx = Pring::new(Direction::S2m, Addr(0x200_0000), count).unwrap();
    vring
        .dump_to_pring_with(&mut bus, &mut tx, &mut rx, padded(count, count))
        .unwrap();
    let got = ring(&bus, Addr(0x100_0000), count as usize);
    let used = vring.tx().used_desc_count() as usize;
    assert_eq!(got[..used], all(vring.tx())[..]);
    assert!(got[used..].iter().all(|desc| *desc == got[used]));
    assert_eq!(got[used].words[0], 0x0d00_0004);
}

#[test]
fn what_cannot_be_dumped_writes_nothing() {
    let (mut bus, mut vring) = (TestBus::default(), three_copies());
    let (tx, rx) = prings(32);
    let mut refuse = |mut tx: Pring, mut rx: Pring, tx_padded, rx_padded| {
        let before = (tx.clone(), rx.clone());
        let error = vring
            .dump_to_pring_with(&mut bus, &mut tx, &mut rx, padded(tx_padded, rx_padded))
            .unwrap_err();
        assert_eq!((tx, rx), before);
        assert_eq!(bus.writes(), 0);
        error
    };
    let source = |error| match error {
        DumpError::Pring { source, .. } => source,
        other => panic!("{other}"),
    };

    let error = refuse(tx.clone(), rx.clone(), 32, 2);
    assert_eq!(
        error.to_string(),
        "Failed to pad vring v rx from 3 descriptors to 2 descriptors"
    );
    let error = source(refuse(tx.clone(), rx.clone(), 32, 33));
    assert!(matches!(
        error,
        PringError::TooSmall {
            kind: PringType::Rx,
            wanted: 33,
            ..
        }
    ));
    let error = source(refuse(tx.clone(), tx.clone(), 3, 3));
    assert!(matches!(
        error,
        PringError::Type {
            found: PringType::Tx,
            ..
        }
    ));
    let error = source(refuse(Pring::default(), rx.clone(), 3, 3));
    assert!(matches!(
        error,
        PringError::Type {
            found: PringType::Invalid,
            ..
        }
    ));
    let unbound = Pring::unbound(Direction::S2m, 32).unwrap();
    let error = source(refuse(tx, unbound, 3, 3));
    assert_eq!(error, PringError::Unbound(PringType::Rx));
}

#[test]
fn scratch_is_the_top_of_the_first_stack() {
    assert_eq!(pad_scratch(Arch::V2), Addr(0x3_ffff_fffc));
    assert_eq!(pad_scratch(Arch::V3), Addr(0x5_ffff_fffc));
}

#[test]
fn halves_dump_alone_and_are_freed_if_asked() {
    let (mut bus, mut vring, (mut tx, mut rx)) = (TestBus::default(), three_copies(), prings(32));
    let options = DumpOptions {
        free_on_dump: true,
        ..DumpOptions::default()
    };
    let tx_descs = all(vring.tx());
    vring
        .dump_half_to_pring(&mut bus, Direction::M2s, &mut tx, options)
        .unwrap();
    assert_eq!(ring(&bus, TX_AT, 3), tx_descs);
    assert_eq!(
        (vring.tx().used_desc_count(), vring.rx().used_desc_count()),
        (0, 3)
    );
    assert_eq!(
        (vring.total_tx_size(), rx.used_desc_count()),
        (3 * 65536, 0)
    );
    let keep = padded(0, 16);
    vring
        .dump_half_to_pring(&mut bus, Direction::S2m, &mut rx, keep)
        .unwrap();
    assert_eq!(
        (vring.rx().used_desc_count(), rx.used_desc_count()),
        (3, 16)
    );

    let refused = vring.dump_half_to_pring(&mut bus, Direction::S2m, &mut tx, options);
    assert!(matches!(refused, Err(DumpError::Pring { half: "rx", .. })));
    assert_eq!(vring.rx().used_desc_count(), 3);
}

#[test]
fn a_trap_ends_the_padding() {
    let (mut bus, mut vring, (mut tx, mut rx)) = (TestBus::default(), three_copies(), prings(32));
    let options = DumpOptions {
        trap: true,
        ..padded(5, 3)
    };
    vring
        .dump_to_pring_with(&mut bus, &mut tx, &mut rx, options)
        .unwrap();
    assert_eq!((tx.used_desc_count(), rx.used_desc_count()), (5, 3));
    let trap = ring(&bus, TX_AT, 7)[5..].to_vec();
    assert_eq!(
        trap[0].words,
        [0x0d00_0004, 0x0108_0003, 0xffff_fffc, 0xffff_ffff]
    );
    assert_eq!(trap[1].words, [0; 4]);
    assert_eq!(
        ring(&bus, RX_AT, 4)[3].words,
        [0x0100_0004, 0, 0xffff_fffc, 0xffff_ffff]
    );
    let options = DumpOptions {
        trap: true,
        ..padded(32, 3)
    };
    let refused = vring.dump_to_pring_with(&mut bus, &mut tx, &mut rx, options);
    assert!(matches!(
        refused,
        Err(DumpError::Pring {
            source: PringError::TooSmall { wanted: 33, .. },
            ..
        })
    ));
}

#[test]
fn prings_are_made_to_measure() {
    let mut bus = TestBus::default();
    let mut vring = three_copies();
    let mut chunk = MemChunk::new(Addr(0x1_0010), 0x1000).unwrap();
    let trap = |padded: DumpOptions| DumpOptions {
        trap: true,
        ..padded
    };
    let (tx, rx) = vring
        .create_prings_from_vring(&mut bus, &mut chunk, trap(padded(48, 4)))
        .unwrap();
    assert_eq!(
        (tx.base(), rx.base()),
        (Some(Addr(0x1_0100)), Some(Addr(0x1_0500)))
    );
    assert_eq!(
        (tx.allocated_desc_count(), rx.allocated_desc_count()),
        (64, 32)
    );
    assert_eq!((tx.used_desc_count(), rx.used_desc_count()), (48, 4));
    assert_eq!(
        (tx.ring_offset_bytes(), rx.ring_offset_bytes()),
        (0xf0, 0x4f0)
    );
    assert_eq!(ring(&bus, Addr(0x1_0100), 3), all(vring.tx()));

    let before = chunk.clone();
    let too_long = trap(padded(64, 64));
    let refused = vring.create_prings_from_vring(&mut bus, &mut chunk, too_long);
    assert!(
        matches!(refused, Err(DumpError::Chunk { .. })),
        "{refused:?}"
    );
    let refused = vring.create_prings_from_vring(&mut bus, &mut chunk, padded(2, 2));
    assert!(matches!(refused, Err(DumpError::Padding { .. })));
    assert_eq!(chunk, before);
}

#[test]
fn templates_are_not_dumped() {
    let (mut bus, (mut tx, mut rx)) = (TestBus::default(), prings(32));
    let template = Vring::new_template(Arch::V3, "t_0", 1).unwrap();
    let refused = template
        .dump_to_pring(&mut bus, &mut tx, &mut rx)
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot dump vring t_0: it is a template; resolve it first"
    );
}
