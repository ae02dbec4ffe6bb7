//! Compute packets from descriptors to bytes: what the builders author is executed, what is malformed is
//! refused with the descriptor and the reason, and no descriptor whatever panics.

use crate::support::{DATA, META, bf16, execute, fp32, plan_of, refused, ring, setup};
use proptest::prelude::*;
use udma_sim::arch::Arch;
use udma_sim::arch::regs::M2sError;
use udma_sim::desc::{
    CceConstant, CceInfo, CcePacket, CceRule, CceType, CmeError, DType, FmaSelector, OtherOp,
    RingId, build_cce_packet,
};
use udma_sim::device::compute::{Fold, Operation, QueueState, Reason, plan};
use udma_sim::units::Addr;

/// `count` sources of 16 elements: source s holds s + 1 in each.
fn counting(count: usize, of: impl Fn(&[f32]) -> Vec<u8>) -> Vec<u8> {
    (0..count)
        .flat_map(|source| of(&[source as f32 + 1.0; 16]))
        .collect()
}

#[test]
fn what_the_builder_builds_is_executed() {
    let sources = [Addr(0x1000), Addr(0x2000), Addr(0x3000)];
    let destination = [Addr(0x9000)];
    let mut state = QueueState::default();
    let run = |op, packet: &CcePacket, bytes: &[u8], state: &mut QueueState| {
        let built = build_cce_packet(Arch::V3, op, packet, RingId::FIRST_LAP).unwrap();
        let plan = plan_of(Arch::V3, &built.tx);
        assert_eq!(plan.source_bytes as u64, built.tx_bytes());
        assert_eq!(plan.result_bytes as u64, built.rx_bytes());
        execute(&plan, bytes, state)
    };
    let mut packet = CcePacket::new(&sources, &destination, 16, DType::Bfloat16);
    packet.acc_dtype = DType::Fp32;
    let bytes = counting(3, bf16);
    assert_eq!(
        run(CceType::Add, &packet, &bytes, &mut state),
        bf16(&[6.0; 16])
    );
    assert_eq!(
        run(CceType::Min, &packet, &bytes, &mut state),
        bf16(&[1.0; 16])
    );
    assert_eq!(
        run(CceType::Max, &packet, &bytes, &mut state),
        bf16(&[3.0; 16])
    );

    packet.cce_info = Some(CceInfo::constant(CceConstant {
        dtype: DType::Fp32,
        bits: 2.5f32.to_bits(),
    }));
    assert_eq!(
        run(CceType::Max, &packet, &bytes, &mut state),
        bf16(&[3.0; 16])
    );
    assert_eq!(
        run(CceType::Min, &packet, &bytes, &mut state),
        bf16(&[1.0; 16])
    );
    packet.cce_info = Some(CceInfo::constant(CceConstant {
        dtype: DType::Uint8,
        bits: 7,
    }));
    assert_eq!(
        run(CceType::Max, &packet, &bytes, &mut state),
        bf16(&[7.0; 16])
    );

    packet.cce_info = Some(CceInfo::scaled(&[0.5, 2.0, -1.0]));
    assert_eq!(
        run(CceType::Fma, &packet, &bytes, &mut state),
        bf16(&[1.5; 16])
    );
    // Horner: acc * scale + source.
    let mut info = CceInfo::scaled(&[3.0; 3]);
    info.selectors = [
        FmaSelector::StoredBuffer,
        FmaSelector::Scale,
        FmaSelector::InputBuffer,
    ];
    packet.cce_info = Some(info);
    assert_eq!(
        run(CceType::Fma, &packet, &bytes, &mut state),
        bf16(&[18.0; 16])
    );

    let destinations = [Addr(0x9000), Addr(0xa000)];
    let mut packet = CcePacket::new(&sources, &destinations, 16, DType::Fp32);
    packet.seed = Some(1);
    let twice = [fp32(&[6.0; 16]), fp32(&[6.0; 16])].concat();
    assert_eq!(
        run(CceType::Add, &packet, &counting(3, fp32), &mut state),
        twice
    );
}

#[test]
fn one_byte_copies_pass_untouched() {
    let (source, destination) = ([Addr(0x1000)], [Addr(0x9000)]);
    let bytes: Vec<u8> = (0..=255).collect();
    for dtype in [
        DType::Uint8,
        DType::Int8,
        DType::Fp8E3,
        DType::Fp8E4,
        DType::Fp8E5,
    ] {
        let packet = CcePacket::new(&source, &destination, 256, dtype);
        let built = build_cce_packet(Arch::V2, CceType::Add, &packet, RingId::FIRST_LAP).unwrap();
        let plan = plan_of(Arch::V2, &built.tx);
        assert_eq!(execute(&plan, &bytes, &mut QueueState::default()), bytes);
        // And the same by a word that has the types as they are.
        let code = u32::from(dtype.code());
        let word = 0x0200_0080 | code << 8 | code << 12 | code << 16;
        let plan = plan_of(Arch::V2, &ring(&[[256, word, 0, 0]]));
        assert_eq!(execute(&plan, &bytes, &mut QueueState::default()), bytes);
    }
}

#[test]
fn casts_are_adds_of_one_source() {
    // fp32 to bfloat16: no reduction, so neither the class rule nor the 32-byte rule holds.
    let plan = plan_of(Arch::V3, &ring(&[[12, 0x020a_6a80, 0x1000, 0]]));
    let mut state = QueueState::default();
    assert_eq!(
        execute(&plan, &fp32(&[1.0, -2.5, 1e30]), &mut state),
        bf16(&[1.0, -2.5, 1e30 * 1.0027])
    );
    // In dtype 0 stands for the out dtype.
    let plan = plan_of(Arch::V3, &ring(&[[8, 0x020a_6080, 0x1000, 0]]));
    let bytes = bf16(&[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(execute(&plan, &bytes, &mut state), bytes);
}

#[test]
fn a_source_may_come_in_pieces() {
    let (word, last) = (0x020a_6600, 0x020a_6680);
    let descs = ring(&[
        [32, word, 0x1000, 0],
        [32, word, 0x2000, 0],
        [64, word, 0x3000, 0],
        [16, last, 0x4000, 0],
        [48, last, 0x5000, 0],
    ]);
    let plan = plan_of(Arch::V3, &descs);
    let Operation::Reduce(reduce) = &plan.operation else {
        panic!("{plan:?}");
    };
    assert_eq!(reduce.reduction.fold, Fold::Add { sources: 3 });
    let sources = [1.0, 2.0, 3.0].map(|value| bf16(&[value; 32])).concat();
    let result = execute(&plan, &sources, &mut QueueState::default());
    assert_eq!(result, bf16(&[6.0; 32]));
}

#[test]
fn malformed_reductions_name_the_descriptor_and_the_reason() {
    use Arch::{V2, V3};
    let (word, last) = (0x020a_6600, 0x020a_6680);
    let source = |len, word| [len, word, 0x1000, 0];
    let meta = |word, meta1, meta2| [META, word, meta1, meta2];
    let ok = &[source(DATA, word), source(DATA, last)];
    assert!(plan(&ring(ok), &setup(V2)).is_ok());

    for (arch, words, desc, reason) in [
        (V3, vec![meta(0x0600_0000, 0, 1)], 0, Reason::NoData),
        (V3, vec![source(DATA, word); 2], 1, Reason::NoLast),
        (
            V3,
            vec![source(DATA, last), source(DATA, word)],
            0,
            Reason::EarlyLast,
        ),
        (
            V3,
            vec![source(DATA, word), source(96, word), source(DATA, last)],
            1,
            Reason::SourceLength {
                bytes: 96,
                wanted: 64,
            },
        ),
        (
            V3,
            vec![source(DATA, word), source(32, word), source(DATA, last)],
            1,
            Reason::SourceLength {
                bytes: 32,
                wanted: 64,
            },
        ),
        (
            V3,
            [vec![source(DATA, word); 32], vec![source(DATA, last)]].concat(),
            32,
            Reason::Cce(CceRule::Sources(33)),
        ),
        (
            V3,
            vec![source(DATA, word), source(DATA, last ^ 0x1000)],
            1,
            Reason::OtherOp(OtherOp {
                first: word,
                found: last ^ 0x1000,
            }),
        ),
        (
            V3,
            vec![source(DATA, 0x020a_0080)],
            0,
            Reason::NoDtype("in"),
        ),
        (
            V3,
            vec![source(DATA, 0x0200_6680)],
            0,
            Reason::NoDtype("accumulation"),
        ),
        (
            V3,
            vec![source(DATA, 0x020a_0680)],
            0,
            Reason::NoDtype("out"),
        ),
        (
            V3,
            vec![source(DATA, 0x020a_6a00), source(DATA, 0x020a_6a80)],
            0,
            Reason::Cce(CceRule::Class {
                in_dtype: DType::Fp32,
                out_dtype: DType::Bfloat16,
            }),
        ),
        (
            V3,
            vec![source(DATA, 0x020a_bb00), source(DATA, 0x020a_bb80)],
            0,
            Reason::Cce(CceRule::Unsized(DType::Fp32r)),
        ),
        (
            V3,
            vec![source(48, word), source(48, last)],
            0,
            Reason::Cce(CceRule::Granule(48)),
        ),
        (
            V3,
            vec![source(7, last)],
            0,
            Reason::Cce(CceRule::Ragged {
                bytes: 7,
                unit: 2,
                dtype: DType::Bfloat16,
            }),
        ),
        (
            V2,
            vec![source(2080, last)],
            0,
            Reason::Cce(CceRule::Elements {
                arch: V2,
                elements: 1040,
                limit: 1024,
            }),
        ),
        (
            V3,
            vec![source(4160, last)],
            0,
            Reason::Cce(CceRule::Elements {
                arch: V3,
                elements: 2080,
                limit: 2048,
            }),
        ),
        (
            V3,
            vec![meta(0x0400_0000, 0, 0), source(DATA, last)],
            0,
            Reason::UnexpectedMeta("ADD"),
        ),
        (
            V3,
            vec![meta(0x0123_4567, 0, 0), source(DATA, last)],
            0,
            Reason::UnknownMeta(0x0123_4567),
        ),
        (
            V3,
            vec![meta(0x0650_0001, 0, 0), source(DATA, last)],
            0,
            Reason::Gce,
        ),
        (
            V3,
            vec![meta(0x06a0_0000, 0, 0), source(DATA, last)],
            0,
            Reason::Cce(CceRule::Constant(0)),
        ),
        (
            V3,
            vec![
                meta(0x0600_0000, 0, 1),
                meta(0x0600_0000, 0, 2),
                source(DATA, last),
            ],
            1,
            Reason::SecondMeta("seed"),
        ),
        (
            V3,
            vec![
                source(DATA, word),
                meta(0x0600_0000, 0, 1),
                source(DATA, last),
            ],
            1,
            Reason::LateMeta("the seed"),
        ),
        (
            V3,
            vec![source(DATA, last), meta(0x44a0_0000, 2, 0)],
            1,
            Reason::MoreAnnounced,
        ),
        (
            V2,
            vec![meta(0x04a0_0000, 2, 0), source(DATA, last)],
            0,
            Reason::Cce(CceRule::Replication),
        ),
        (
            V3,
            vec![meta(0x04a0_0000, 61, 0), source(DATA, last)],
            0,
            Reason::Cce(CceRule::Copies {
                copies: 61,
                limit: 60,
            }),
        ),
        (
            V3,
            vec![meta(0x04a0_003d, 0, 0), source(DATA, last)],
            0,
            Reason::Cce(CceRule::Copies {
                copies: 61,
                limit: 60,
            }),
        ),
        (
            V3,
            vec![meta(0x04a0_0000, 0, 0), source(DATA, last)],
            0,
            Reason::Cce(CceRule::Copies {
                copies: 0,
                limit: 60,
            }),
        ),
    ] {
        assert_eq!(refused(arch, &words), (desc, reason), "{words:x?}");
    }
}

#[test]
fn malformed_min_max_and_fma() {
    let source = |word| [DATA, word, 0x1000, 0];
    let meta = |word, meta1, meta2| [META, word, meta1, meta2];
    let (max, fma) = (0x0206_6682, 0x021a_a681);
    let operands = meta(0x0400_0000, 0x0900_0000, 0x3f80_0000);
    assert!(plan(&ring(&[source(max)]), &setup(Arch::V2)).is_ok());
    assert!(plan(&ring(&[operands, source(fma)]), &setup(Arch::V2)).is_ok());
    for (words, desc, reason) in [
        (
            vec![source(max | 0x20)],
            0,
            Reason::MissingMeta("the constant"),
        ),
        (
            vec![meta(0x06a0_0000, 0, 0), source(max)],
            0,
            Reason::UnexpectedMeta("MIN or MAX without a constant"),
        ),
        (
            vec![meta(0x0610_0000, 0, 0), source(max | 0x20)],
            0,
            Reason::Cce(CceRule::ConstantDtype(DType::Uint64)),
        ),
        (
            vec![meta(0x06a0_0000, 0, 0), source(max | 0x20)],
            0,
            Reason::ConstantDtypes { word: 0, meta: 2 },
        ),
        (
            vec![meta(0x0400_0000, 32, 0), source(max)],
            0,
            Reason::MetaLength {
                said: 32,
                bytes: 64,
            },
        ),
        (
            vec![source(fma)],
            0,
            Reason::MissingMeta("the meta descriptor with scale and operands"),
        ),
        (
            vec![operands, source(fma & !0x80), source(fma)],
            2,
            Reason::MissingMeta("the meta descriptor with scale and operands"),
        ),
        (
            vec![operands, operands, source(fma)],
            1,
            Reason::SecondMeta("meta descriptor of a source"),
        ),
        (
            vec![operands, source(fma), operands],
            2,
            Reason::UnexpectedMeta("the middle of a source"),
        ),
        (
            vec![meta(0x0400_0000, 0x0b00_0000, 0), source(fma)],
            0,
            Reason::Cce(CceRule::Selector(3)),
        ),
        (
            vec![operands, source(0x021a_6681)],
            1,
            Reason::Cce(CceRule::ScaleDtype(Some(DType::Bfloat16))),
        ),
        (
            vec![operands, source(0x021a_0681)],
            1,
            Reason::Cce(CceRule::ScaleDtype(None)),
        ),
    ] {
        assert_eq!(refused(Arch::V3, &words), (desc, reason), "{words:x?}");
    }
}

#[test]
fn operations_that_are_not_modelled_are_refused() {
    for (word, reason) in [
        (0x025a_a685, Reason::Gce),
        (0x0200_0006, Reason::UnknownOp(0x0200_0006)),
        (0, Reason::UnknownOp(0)),
        (0x0109_0003, Reason::Cme(CmeError::CopyOptions)),
    ] {
        let got = refused(Arch::V3, &[[DATA, word, 0x1000, 0]]);
        assert_eq!(got, (0, reason), "{word:#x}");
    }
}

#[test]
fn ext_words_are_refused_for_what_they_say() {
    let ext = |word| [DATA, word, 0x1000, 0];
    let word = 0x024a_6002;
    let reason = Reason::Ext {
        word,
        op: "max",
        middle: DType::Bfloat16,
        acc: DType::Fp32,
    };
    let [add, last] = [0x020a_6600, 0x020a_6680].map(|word| [DATA, word, 0x1000, 0]);
    for (words, desc, reason) in [
        (vec![ext(word)], 0, reason),
        // As a meta descriptor, marked as a member, with more to follow; behind another operation.
        (vec![[META, word | 0x4400_0000, 0, 0], last], 0, reason),
        (vec![add, ext(word)], 1, reason),
        (vec![ext(word | 0x80)], 0, Reason::ExtReserved(word | 0x80)),
        (
            vec![ext(0x024a_6005)],
            0,
            Reason::ExtOp {
                word: 0x024a_6005,
                op: "gce",
            },
        ),
        (
            vec![ext(0x024a_0000)],
            0,
            Reason::ExtNoDtype {
                word: 0x024a_0000,
                what: "middle",
            },
        ),
        (
            vec![ext(0x0240_a000)],
            0,
            Reason::ExtNoDtype {
                word: 0x0240_a000,
                what: "accumulation",
            },
        ),
    ] {
        assert_eq!(refused(Arch::V3, &words), (desc, reason), "{words:x?}");
    }
    let arch = Arch::V2;
    assert_eq!(
        refused(arch, &[ext(word)]),
        (0, Reason::ExtGeneration { word, arch })
    );
    assert_eq!(
        reason.to_string(),
        "EXT word 0x024a6002 combines with max (middle dtype bfloat16, accumulation dtype fp32): not executed, since the order of the two operations and the location of the second one's operands are not public"
    );
}

#[test]
fn refusals_have_bits() {
    let elements = Reason::Cce(CceRule::Elements {
        arch: Arch::V2,
        elements: 2000,
        limit: 1024,
    });
    assert_eq!(elements.bit(), M2sError::PktLenOverflow);
    assert_eq!(
        Reason::Cce(CceRule::Sources(33)).bit(),
        M2sError::MaxDescCount
    );
    assert_eq!(Reason::NoLast.bit(), M2sError::StreamResponse);
}

#[test]
fn seeds_and_the_flag_decide_about_rounding() {
    let seed = |seed| [META, 0x0600_0000, 0, seed];
    let cast = |flag: u32| [2048, 0x020a_ea80 | flag << 4, 0x1000, 0];
    let values = fp32(&[17.3; 512]);
    let mut state = QueueState::default();
    let mut run =
        |words: &[[u32; 4]]| execute(&plan_of(Arch::V3, &ring(words)), &values, &mut state);
    let nearest = run(&[cast(0)]);
    assert_eq!(nearest, [0x59; 512]);
    assert_eq!(run(&[seed(5), cast(0)]), nearest);
    let first = run(&[seed(5), cast(1)]);
    assert!(first.contains(&0x58) && first.contains(&0x59));
    let second = run(&[cast(1)]);
    assert_ne!(first, second);
    assert_eq!(run(&[seed(5), cast(1)]), first);
    assert_eq!(run(&[cast(1)]), second);
    assert_ne!(run(&[seed(6), cast(1)]), first);
}

/// Descriptors that have a chance to mean something.
fn any_descriptor() -> impl Strategy<Value = [u32; 4]> {
    let len = prop_oneof![Just(32u32), Just(64), Just(0), 0u32..300];
    let meta = prop_oneof![Just(0), Just(META)];
    let class = prop::sample::select(vec![
        0x0080_0000,
        0x0090_0000,
        0x00a0_0000,
        0x0100_0000,
        0x0110_0000,
        0x0200_0000,
        0x0210_0000,
        0x0240_0000,
        0x0250_0000,
        0x0400_0000,
        0x0600_0000,
        0x04a0_0000,
        0x4400_0000,
        0,
    ]);
    let interior = prop_oneof![
        Just(0x000a_6680),
        Just(0x000a_6682),
        any::<u32>().prop_map(|raw| raw & 0xf_ffff)
    ];
    let operand = prop_oneof![Just(0x0900_0000), Just(2), any::<u32>()];
    (len, meta, class, interior, operand, any::<u32>()).prop_map(
        |(len, meta, class, interior, meta1, meta2): (u32, u32, u32, u32, u32, u32)| {
            [len | meta, class | interior, meta1, meta2]
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_panics_and_plans_keep_their_word(
        words in prop::collection::vec(any_descriptor(), 0..8),
        arch in prop::sample::select(Arch::ALL.to_vec()),
        fill: u8,
    ) {
        let descs = ring(&words);
        match plan(&descs, &setup(arch)) {
            Err(refusal) => prop_assert!(refusal.desc < descs.len().max(1)),
            Ok(plan) => {
                let mut result = Vec::new();
                let sources = vec![fill; plan.source_bytes];
                let _ = plan.execute(&sources, &mut QueueState::default(), &mut result);
                prop_assert_eq!(result.len(), plan.result_bytes);
            }
        }
    }
}
