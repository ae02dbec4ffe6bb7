use super::*;
use crate::desc::{Descriptor, packets};
use proptest::prelude::*;

const A: Addr = Addr(0x1000);
const B: Addr = Addr(0x2000);
const OUT: Addr = Addr(0x3000);

fn build(arch: Arch, op: CceType, packet: &CcePacket) -> Result<BuiltPacket, CceError> {
    build_cce_packet(arch, op, packet, RingId::FIRST_LAP)
}

fn words(descs: &[Descriptor]) -> Vec<[u32; 4]> {
    descs.iter().map(|desc| desc.words).collect()
}

#[test]
fn golden_add() {
    let (sources, destinations) = ([A, B], [OUT]);
    let mut packet = CcePacket::new(&sources, &destinations, 64, DType::Bfloat16);
    packet.acc_dtype = DType::Fp32;
    let built = build(Arch::V2, CceType::Add, &packet).unwrap();
    assert_eq!(
        words(&built.tx),
        [
            [0x8500_0080, 0x020a_6600, 0x1000, 0],
            [0x0900_0080, 0x020a_6680, 0x2000, 0],
        ]
    );
    assert_eq!(words(&built.rx), [[0x0100_0080, 0, 0x3000, 0]]);
}

#[test]
fn golden_fma() {
    let (sources, destinations) = ([A, B], [OUT]);
    let mut packet = CcePacket::new(&sources, &destinations, 8, DType::Fp32);
    packet.cce_info = Some(CceInfo::scaled(&[1.0, -0.5]));
    packet.barrier = BarrierMode::StrongOrder;
    let built = build(Arch::V3, CceType::Fma, &packet).unwrap();
    assert_eq!(
        words(&built.tx),
        [
            [0x8580_0000, 0x4400_0000, 0x0900_0020, 0x3f80_0000],
            [0x8100_0020, 0x021a_aa01, 0x1000, 0],
            [0x8180_0000, 0x4400_0000, 0x0900_0020, 0xbf00_0000],
            [0x0900_0020, 0x021a_aa81, 0x2000, 0],
        ]
    );
    assert_eq!(words(&built.rx), [[0x2100_0020, 0, 0x3000, 0]]);
}

#[test]
fn golden_max_with_constant() {
    let (sources, destinations) = ([A], [OUT]);
    let mut packet = CcePacket::new(&sources, &destinations, 16, DType::Fp32);
    packet.cce_info = Some(CceInfo::constant(CceConstant {
        dtype: DType::Fp32,
        bits: 0,
    }));
    packet.barrier = BarrierMode::WriteBarrier;
    let built = build(Arch::V3, CceType::Max, &packet).unwrap();
    assert_eq!(
        words(&built.tx),
        [
            [0x8580_0000, 0x46a0_0000, 0, 0],
            [0x0900_0040, 0x022a_aae2, 0x1000, 0],
        ]
    );
}

#[test]
fn golden_seed_and_replication() {
    let (sources, destinations) = ([A], [OUT, B]);
    let mut packet = CcePacket::new(&sources, &destinations, 16, DType::Int32);
    packet.seed = Some(0x1234_5678);
    packet.stochastic_rounding = true;
    packet.barrier = BarrierMode::Dmb;
    let built = build(Arch::V4, CceType::Add, &packet).unwrap();
    assert_eq!(
        words(&built.tx),
        [
            [0xc580_0000, 0x4600_0000, 0, 0x1234_5678],
            [0x8180_0000, 0x44a0_0000, 2, 0],
            [0x0900_0040, 0x0208_8890, 0x1000, 0],
        ]
    );
    assert_eq!(
        words(&built.rx),
        [[0x0100_0040, 0, 0x3000, 0], [0x0100_0040, 0, 0x2000, 0]]
    );
}

#[test]
fn one_byte_elements_that_leave_as_they_came_travel_as_uint16() {
    let (one, two, destinations) = ([A], [A, B], [OUT]);
    let word = |sources: &[Addr], op| {
        let packet = CcePacket::new(sources, &destinations, 32, DType::Uint8);
        build(Arch::V3, op, &packet).unwrap().tx[0].words[1]
    };
    assert_eq!(word(&one, CceType::Add), 0x0205_5580);
    assert_eq!(word(&two, CceType::Add), 0x0203_3300);
}

#[test]
fn sources_are_1_to_32() {
    let destinations = [OUT];
    for (count, fits) in [(0, false), (1, true), (32, true), (33, false)] {
        let sources = vec![A; count];
        let packet = CcePacket::new(&sources, &destinations, 8, DType::Fp32);
        let built = build(Arch::V2, CceType::Min, &packet);
        assert_eq!(built.is_ok(), fits, "{count}");
        if !fits {
            assert_eq!(built, Err(CceRule::Sources(count).into()));
        }
    }
    // 32 scaled sources and the replication: the most descriptors a V3 packet takes.
    let (sources, scales) = ([A; 32], [0.5; 32]);
    let mut packet = CcePacket::new(&sources, &[OUT, B], 8, DType::Fp32);
    packet.cce_info = Some(CceInfo::scaled(&scales));
    assert_eq!(build(Arch::V3, CceType::Fma, &packet).unwrap().tx.len(), 65);
    packet.seed = Some(1);
    assert!(matches!(
        build(Arch::V3, CceType::Fma, &packet),
        Err(CceError::Limit(_))
    ));
}

#[test]
fn several_destinations_need_v3() {
    let (sources, destinations) = ([A], [OUT, B]);
    let packet = CcePacket::new(&sources, &destinations, 8, DType::Fp32);
    let refused = build(Arch::V2, CceType::Add, &packet).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "CCE replication not supported for v1/v2 archs"
    );
    assert!(build(Arch::V3, CceType::Add, &packet).is_ok());
    let many = [OUT; 61];
    let packet = CcePacket::new(&sources, &many, 8, DType::Fp32);
    assert!(matches!(
        build(Arch::V3, CceType::Add, &packet),
        Err(CceError::Rule(CceRule::Copies {
            copies: 61,
            limit: 60,
        }))
    ));
    let none = CcePacket::new(&sources, &[], 8, DType::Fp32);
    assert_eq!(
        build(Arch::V3, CceType::Add, &none),
        Err(CceError::NoDestination)
    );
}

#[test]
fn sizes() {
    let (sources, destinations) = ([A, B], [OUT]);
    let size = |arch, elements, dtype| {
        build(
            arch,
            CceType::Add,
            &CcePacket::new(&sources, &destinations, elements, dtype),
        )
        .map(|_| ())
    };
    for (arch, limit) in [(Arch::V2, 1024), (Arch::V3, 2048), (Arch::V4, 2048)] {
        assert_eq!(size(arch, limit, DType::Fp32), Ok(()));
        for elements in [0, limit + 1, u32::MAX] {
            let refused = Err(CceError::Rule(CceRule::Elements {
                arch,
                elements: elements.into(),
                limit,
            }));
            assert_eq!(size(arch, elements, DType::Fp32), refused);
        }
    }
    assert_eq!(size(Arch::V3, 8, DType::Fp32), Ok(()));
    assert_eq!(
        size(Arch::V3, 7, DType::Fp32),
        Err(CceRule::Granule(28).into())
    );
    assert_eq!(
        size(Arch::V3, 8, DType::Bfloat16),
        Err(CceRule::Granule(16).into())
    );
    assert_eq!(size(Arch::V3, 16, DType::Bfloat16), Ok(()));
    assert_eq!(
        size(Arch::V3, 8, DType::Fp32r),
        Err(CceRule::Unsized(DType::Fp32r).into())
    );
}

#[test]
fn types_of_one_class() {
    let (sources, destinations) = ([A, B], [OUT]);
    for in_dtype in DType::all().filter(|dtype| *dtype != DType::Fp32r) {
        for out_dtype in DType::all().filter(|dtype| *dtype != DType::Fp32r) {
            let mut packet = CcePacket::new(&sources, &destinations, 32, in_dtype);
            packet.out_dtype = out_dtype;
            let wide = |dtype: DType| (8..=11).contains(&dtype.code());
            let built = build(Arch::V3, CceType::Add, &packet);
            assert_eq!(built.is_ok(), wide(in_dtype) == wide(out_dtype));
        }
    }
    let mut packet = CcePacket::new(&sources, &destinations, 32, DType::Fp32);
    packet.out_dtype = DType::Bfloat16;
    assert_eq!(
        build(Arch::V3, CceType::Add, &packet)
            .unwrap_err()
            .to_string(),
        "in dtype fp32 and out dtype bfloat16: either both or neither must be among int32, uint32, fp32 and fp32r"
    );
}

#[test]
fn casts_go_between_all_types() {
    let (source, destinations) = ([A], [OUT]);
    for in_dtype in DType::all() {
        for out_dtype in DType::all().filter(|out| *out != in_dtype) {
            let mut packet = CcePacket::new(&source, &destinations, 3, in_dtype);
            packet.out_dtype = out_dtype;
            let built = build(Arch::V2, CceType::Add, &packet).unwrap();
            assert_eq!(built.tx_bytes(), 3 * u64::from(in_dtype.bytes()));
            assert_eq!(built.rx_bytes(), 3 * u64::from(out_dtype.bytes()));
        }
    }
    let mut packet = CcePacket::new(&source, &destinations, 3, DType::Fp32);
    packet.out_dtype = DType::Bfloat16;
    let refused = build(Arch::V2, CceType::Min, &packet);
    assert!(matches!(
        refused,
        Err(CceError::Rule(CceRule::Class { .. }))
    ));
}

#[test]
fn what_fma_insists_on() {
    let (sources, destinations) = ([A, B], [OUT]);
    let mut packet = CcePacket::new(&sources, &destinations, 16, DType::Bfloat16);
    let mut refused = |info, out_dtype| {
        packet.cce_info = info;
        packet.out_dtype = out_dtype;
        build(Arch::V3, CceType::Fma, &packet).unwrap_err()
    };
    let good = CceInfo::scaled(&[1.0, 2.0]);
    assert_eq!(refused(None, DType::Bfloat16), CceError::NoInfo);
    let info = CceInfo {
        scale_dtype: DType::Bfloat16,
        ..good
    };
    assert_eq!(
        refused(Some(info), DType::Bfloat16).to_string(),
        "a scale has type bfloat16; it must be fp32"
    );
    let info = CceInfo {
        scales: &[1.0],
        ..good
    };
    assert_eq!(
        refused(Some(info), DType::Bfloat16),
        CceError::Scales {
            scales: 1,
            sources: 2
        }
    );
    let info = CceInfo {
        selectors: [FmaSelector::Reserved(3); 3],
        ..good
    };
    assert_eq!(
        refused(Some(info), DType::Bfloat16),
        CceRule::Selector(3).into()
    );
    assert!(matches!(
        refused(Some(good), DType::Fp16),
        CceError::FmaOut { .. }
    ));
    let constant = CceConstant {
        dtype: DType::Bfloat16,
        bits: 0,
    };
    let info = CceInfo {
        constant: Some(constant),
        ..good
    };
    assert_eq!(
        refused(Some(info), DType::Bfloat16),
        CceRule::Constant(1).into()
    );
}

#[test]
fn other_operations_are_refused() {
    let (sources, destinations) = ([A], [OUT]);
    let packet = CcePacket::new(&sources, &destinations, 8, DType::Fp32);
    for (op, code) in [
        (CceType::Ext, 4),
        (CceType::Gce, 5),
        (CceType::Reserved(7), 7),
    ] {
        assert_eq!(build(Arch::V3, op, &packet), Err(CceError::Op(code)));
    }
    assert_eq!(CceError::Op(5).to_string(), "unsupported op! (5)");
    let kbin: Vec<_> = [
        KbinOp::Copy,
        KbinOp::Fma,
        KbinOp::Add,
        KbinOp::Min,
        KbinOp::Max,
        KbinOp::Transpose,
    ]
    .map(|op| op.cce_type().map(CceType::into_bits))
    .into();
    assert_eq!(kbin, [None, Some(1), Some(0), Some(3), Some(2), None]);
}

proptest! {
    #[test]
    fn every_packet_is_one_packet(
        sources in 1usize..=32,
        destinations in 1usize..8,
        op in 0u8..4,
        seed: Option<u32>,
        constant: bool,
        barrier in 0u32..4,
    ) {
        let op = CceType::from_bits(op);
        let (sources, destinations) = (vec![A; sources], vec![OUT; destinations]);
        let scales = vec![1.5; sources.len()];
        let mut packet = CcePacket::new(&sources, &destinations, 32, DType::Fp16);
        packet.seed = seed;
        packet.barrier = BarrierMode::try_from(barrier).unwrap();
        if op == CceType::Fma {
            packet.cce_info = Some(CceInfo::scaled(&scales));
        } else if constant && op != CceType::Add {
            packet.cce_info = Some(CceInfo::constant(CceConstant { dtype: DType::Fp16, bits: 7 }));
        }
        let Ok(built) = build(Arch::V3, op, &packet) else {
            // Only the longest FMA with everything on top is too long.
            prop_assert!(op == CceType::Fma && sources.len() == 32);
            return Ok(());
        };
        let found: Vec<_> = packets(&built.tx, 65).collect();
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!(&found[0].faults, &vec![]);
        prop_assert_eq!(found[0].dmb(), packet.barrier == BarrierMode::Dmb);
        prop_assert_eq!(found[0].write_barrier(), packet.barrier == BarrierMode::WriteBarrier);
        prop_assert_eq!(found[0].data().count(), sources.len());
        prop_assert_eq!(built.tx_bytes(), 64 * sources.len() as u64);
        prop_assert_eq!(built.rx_bytes(), 64 * destinations.len() as u64);
        let lasts: Vec<bool> = found[0].data().map(|tx| match OpWord::decode(tx.meta_ctrl) {
            OpWord::Add(word) => word.last(),
            OpWord::MinMax(word) => word.last(),
            OpWord::Fma(word) => word.last(),
            other => panic!("{other:?}"),
        }).collect();
        prop_assert!(lasts.iter().enumerate().all(|(index, last)| *last == (index + 1 == lasts.len())));
    }
}
