//! Builders and device agree: what a builder accepts the device plans, and a packet put together without the
//! builder's checks is refused by both or by neither, by the same rule.

use crate::support::setup;
use proptest::prelude::*;
use proptest::sample::select;
use udma_sim::arch::Arch;
use udma_sim::desc::*;
use udma_sim::device::compute::{QueueState, Reason, plan};
use udma_sim::units::Addr;

const AT: Addr = Addr(0x1000);

fn any_arch() -> impl Strategy<Value = Arch> {
    select(Arch::ALL.to_vec())
}

fn any_dtype() -> impl Strategy<Value = DType> {
    select(DType::all().collect::<Vec<_>>())
}

/// Every size that matters: small ones, odd ones, whole granules, the limits and beyond.
fn any_elements() -> impl Strategy<Value = u32> {
    prop_oneof![
        3 => 1u32..70,
        3 => (1u32..130).prop_map(|n| 32 * n),
        1 => select(vec![1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 8192]),
        1 => 1u32..9000,
    ]
}

#[derive(Clone, Debug)]
struct Asked {
    op: CceType,
    sources: usize,
    /// Scales of an FMA, mostly one for each source.
    scales: usize,
    copies: usize,
    elements: u32,
    dtypes: [DType; 3],
    constant: Option<DType>,
    selectors: [u8; 3],
    scale_dtype: DType,
    seed: Option<u32>,
}

fn any_reduction() -> impl Strategy<Value = Asked> {
    let sources = prop_oneof![3 => Just(1usize), 3 => 2usize..5, 1 => 30usize..35];
    let copies = prop_oneof![4 => Just(1usize), 1 => 2usize..4, 1 => 59usize..63];
    let dtypes = (any_dtype(), any_dtype(), any_dtype(), 0u8..4).prop_map(|(a, b, c, same)| {
        // Mostly types that go together.
        [a, b, if same > 0 { a } else { c }]
    });
    let scale = prop_oneof![6 => Just(DType::Fp32), 1 => any_dtype()];
    let missing = prop_oneof![6 => Just(0usize), 1 => 1usize..40];
    let constant = prop::option::of(any_dtype());
    let selectors = [0u8..3, 0u8..3, 0u8..4];
    (
        (0u8..4, sources, copies, any_elements()),
        (dtypes, constant, selectors, scale),
        (
            prop::option::of(any::<u32>()),
            missing,
            prop::bool::weighted(0.1),
        ),
    )
        .prop_map(|(what, how, (seed, missing, misplaced))| {
            let op = CceType::from_bits(what.0);
            let min_max = matches!(op, CceType::Min | CceType::Max);
            let [in_dtype, acc_dtype, out_dtype] = how.0;
            // FMA has no place for an out dtype.
            let out_dtype = if op == CceType::Fma {
                in_dtype
            } else {
                out_dtype
            };
            Asked {
                op,
                sources: what.1,
                scales: what.1.saturating_sub(missing),
                copies: what.2,
                elements: what.3,
                dtypes: [in_dtype, acc_dtype, out_dtype],
                // Now and then for an operation that takes none.
                constant: how.1.filter(|_| min_max || misplaced),
                selectors: how.2,
                scale_dtype: how.3,
                seed,
            }
        })
}

impl Asked {
    fn build(&self, arch: Arch) -> Result<BuiltPacket, CceError> {
        let (sources, destinations) = (vec![AT; self.sources], vec![AT; self.copies]);
        let scales = vec![0.5; self.scales];
        let mut packet = CcePacket::new(&sources, &destinations, self.elements, self.dtypes[0]);
        [packet.in_dtype, packet.acc_dtype, packet.out_dtype] = self.dtypes;
        packet.seed = self.seed;
        let mut info = CceInfo::scaled(&scales);
        info.selectors = self.selectors.map(FmaSelector::from_bits);
        info.scale_dtype = self.scale_dtype;
        info.constant = self.constant.map(|dtype| CceConstant { dtype, bits: 7 });
        packet.cce_info = (self.op == CceType::Fma || self.constant.is_some()).then_some(info);
        build_cce_packet(arch, self.op, &packet, RingId::FIRST_LAP)
    }

    /// The same packet, types as they are; nothing if no descriptor says its length.
    fn unchecked(&self) -> Option<Vec<Descriptor>> {
        let bytes = u64::from(self.elements) * u64::from(self.dtypes[0].bytes());
        if !(1..=65536).contains(&bytes) {
            return None;
        }
        let len = bytes as u32 & 0xffff;
        let meta = |word: u32, meta1: u32, meta2: u32| Descriptor {
            words: [0x0080_0000, word, meta1, meta2],
        };
        let mut descs = Vec::new();
        descs.extend(self.seed.map(|seed| meta(0x0600_0000, 0, seed)));
        if self.copies > 1 {
            descs.push(meta(0x04a0_0000, self.copies as u32, 0));
        }
        let constant = |dtype: DType| meta(0x0600_0000 | u32::from(dtype.code()) << 20, 0, 7);
        descs.extend(self.constant.map(constant));
        let [read, acc, written] = self.dtypes.map(|dtype| u32::from(dtype.code()));
        let [a, b, c] = self.selectors.map(u32::from);
        for n in 0..self.sources {
            let last = u32::from(n + 1 == self.sources) << 7;
            let mut word =
                0x0200_0000 | last | read << 8 | acc << 16 | u32::from(self.op.into_bits());
            if self.op == CceType::Fma {
                if n < self.scales {
                    descs.push(meta(0x0400_0000, a << 24 | b << 26 | c << 28, 0));
                }
                word |= 0x10_0000 | u32::from(self.scale_dtype.code()) << 12;
            } else {
                word |= written << 12;
            }
            if let (Some(dtype), CceType::Min | CceType::Max) = (self.constant, self.op) {
                word |= 0x20 | u32::from(dtype.code() & 7) << 20;
            }
            descs.push(Descriptor {
                words: [len, word, AT.0 as u32, 0],
            });
        }
        Some(descs)
    }
}

/// A checksum or a copy: word, sizes of its sources, whether a meta descriptor leads it.
fn any_cme() -> impl Strategy<Value = (u32, Vec<u64>, bool)> {
    let options = prop_oneof![
        Just(0x8_0000u32),
        Just(0x9_0000),
        Just(0x8_4000),
        Just(0x8_8000),
        any::<u32>().prop_map(|raw| raw & 0xf_ffc0),
    ];
    let marks = prop_oneof![4 => Just(3u32), 1 => 0u32..4];
    let sizes = prop::collection::vec(prop_oneof![select(vec![1u64, 2, 4]), 1u64..200], 1..6);
    (0u32..8, options, marks, sizes, prop::bool::weighted(0.8)).prop_map(
        |(op, options, marks, sizes, meta)| (0x0100_0000 | op << 20 | options | marks, sizes, meta),
    )
}

fn buffers(sizes: &[u64]) -> Vec<Buffer> {
    sizes
        .iter()
        .map(|len| Buffer { at: AT, len: *len })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn reductions(asked in any_reduction(), arch in any_arch()) {
        let built = asked.build(arch);
        if let Ok(built) = &built {
            let planned = plan(&built.tx, &setup(arch));
            prop_assert!(planned.is_ok(), "{:?}", planned);
            prop_assert_eq!(planned.unwrap().result_bytes as u64, built.rx_bytes());
        }
        let Some(descs) = asked.unchecked() else {
            prop_assert!(built.is_err());
            return Ok(());
        };
        let planned = plan(&descs, &setup(arch));
        match (&built, &planned) {
            (Ok(_), Ok(_)) => {}
            (Err(CceError::Rule(rule)), Err(refusal)) => {
                prop_assert_eq!(Reason::Cce(*rule), refusal.reason);
            }
            // Scales are arguments here. There they come in meta descriptors with the selectors, the first of
            // which may be wrong before one is found missing.
            (Err(CceError::Scales { .. }), Err(refusal)) => {
                let reason = refusal.reason;
                let selector = matches!(reason, Reason::Cce(CceRule::Selector(_)));
                prop_assert!(selector || matches!(reason, Reason::MissingMeta(_)), "{}", refusal);
            }
            // The prefetch refuses longer packets before anybody looks inside.
            (Err(CceError::Limit(limit)), _) => {
                prop_assert_eq!(limit.count, descs.len() as u64);
                prop_assert!(limit.count > arch.spec().limits.tx_descs_per_packet.into());
            }
            _ => prop_assert!(false, "builder {:?}, device {:?}", built.map(|_| ()), planned),
        }
    }

    #[test]
    fn casts_of_any_number_of_bytes(
        dtype in any_dtype(),
        elements in any_elements(),
        arch in any_arch(),
    ) {
        let asked = Asked {
            op: CceType::Add,
            sources: 1,
            scales: 0,
            copies: 1,
            elements,
            dtypes: [dtype; 3],
            constant: None,
            selectors: [1, 2, 0],
            scale_dtype: DType::Fp32,
            seed: None,
        };
        let limit = arch.spec().limits.cce_elements_per_packet;
        let most = if dtype.bytes() == 1 { 2 * limit } else { limit };
        prop_assert_eq!(asked.build(arch).is_ok(), elements <= most);
        if let Some(descs) = asked.unchecked() {
            prop_assert_eq!(plan(&descs, &setup(arch)).is_ok(), elements <= most);
        }
    }

    #[test]
    fn copies_and_checksums((word, sizes, led) in any_cme(), arch in any_arch()) {
        let sources = buffers(&sizes);
        let meta = |words| Descriptor { words };
        let lead = led.then(|| meta([0x0480_0000, 0, 1, 2]));
        let data = sizes.iter().map(|len| meta([*len as u32, word, AT.0 as u32, 0]));
        let descs: Vec<Descriptor> = lead.into_iter().chain(data).collect();
        let planned = plan(&descs, &setup(arch));
        let written = planned.as_ref().map_or(0, |plan| plan.result_bytes as u64);
        let destinations = if written > 0 { buffers(&[written]) } else { Vec::new() };
        let mut packet = CopyPacket::new(&sources, &destinations);
        packet.meta_ctrl = MetaCtrl::from_bits(word);
        packet.meta = led.then_some(CmeMeta {
            index: RingId::FIRST_LAP,
            meta_ctrl: MetaCtrl::PLAIN_COPY,
            meta1: 1,
            meta2: 2,
        });
        let built = build_copy_packet(arch, &packet, RingId::FIRST_LAP);
        match (&built, &planned) {
            (Ok(built), Ok(plan)) => prop_assert_eq!(built.rx_bytes(), plan.result_bytes as u64),
            (Err(CopyPacketError::Cme { desc, error }), Err(refusal)) => {
                prop_assert_eq!((*desc, Reason::from(*error)), (refusal.desc, refusal.reason));
            }
            _ => prop_assert!(false, "builder {:?}, device {:?}", built, planned),
        }
        // What the engine copies without a plan the builder accepts.
        if descs.iter().all(|desc| TxDesc::from(*desc).is_plain_copy()) {
            prop_assert!(built.is_ok());
        }
    }

    #[test]
    fn transposes(
        arch in any_arch(),
        (w, x, y, z) in (
            prop_oneof![2 => Just(1u16), 1 => 0u16..20],
            prop_oneof![2 => Just(16u16), 1 => 0u16..20],
            0u16..140,
            prop_oneof![2 => Just(1u16), 1 => 0u16..4],
        ),
        element_bytes in prop_oneof![select(vec![2u32, 4]), 0u32..10],
        name in 0usize..12,
        beyond in prop_oneof![4 => Just(0u64), 1 => 1u64..40],
    ) {
        let permutation = Permutation::all().nth(name).unwrap();
        let dims = TransposeDims([w, x, y, z]);
        // A source that is longer than its dimensions say, now and then.
        let len = dims.elements() * u64::from(element_bytes);
        let source_len = len + beyond;
        let at = if arch == Arch::V2 { AT } else { arch.spec().map.tpb[0] };
        let packet = TransposePacket {
            source: Buffer { at: AT, len: source_len },
            destination: Buffer { at, len },
            dims,
            element_bytes,
            permutation,
        };
        let built = build_transpose_packet(arch, &packet, RingId::FIRST_LAP);
        let known = DType::of_element_bytes(element_bytes);
        let word = TransposeWord::new()
            .with_element_bytes(element_bytes as u8)
            .with_shape_above_one(dims.elements() > 1)
            .with_output_shape_index(permutation.index())
            .with_dtype(known)
            .into_bits();
        let (meta1, meta2) = dims.to_words();
        let descs = [[0x0080_0000, word, meta1, meta2], [source_len as u32 & 0xffff, word, AT.0 as u32, 0]]
            .map(|words| Descriptor { words });
        let planned = plan(&descs, &setup(arch));
        match (built, planned) {
            (Ok(built), Ok(_)) => prop_assert!(plan(&built.tx, &setup(arch)).is_ok()),
            (Err(error), Err(refusal)) => prop_assert_eq!(Reason::Transpose(error), refusal.reason),
            (built, planned) => prop_assert!(false, "builder {:?}, device {:?}", built, planned),
        }
    }
}

proptest! {
    /// A message split anywhere into blocks, marked in any form, has the checksum of the whole.
    #[test]
    fn a_message_in_blocks_has_one_checksum(
        cuts in prop::collection::btree_set(1u32..600, 0..12),
        form in 0usize..3,
    ) {
        let message: Vec<u8> = (0..600u32).map(|n| (n * 31 + n / 7) as u8).collect();
        let ends: Vec<u32> = cuts.into_iter().chain([600]).collect();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let lengths: Vec<u32> = ends.iter().zip(starts).map(|(end, start)| end - start).collect();
        let last = lengths.len();
        let marks = |n: usize| match (form, n) {
            // Each a block; first, middle and last; the value outside the blocks.
            (0, _) => 3,
            (1, 0) => 2,
            (1, n) => u32::from(n == last),
            (_, 0) => 0,
            (_, n) => u32::from(n == 1) << 1 | u32::from(n == last),
        };
        // zlib.crc32 and zlib.adler32 of the message.
        for (op, xors, initial, expected) in [
            (1u32, u32::MAX, 0u32, 0xcff2_7104u32),
            (6, 0, 1, 0xa65b_29e3),
        ] {
            let data = std::iter::once(4).chain(lengths.iter().copied()).enumerate();
            let data = data.map(|(n, len)| Descriptor {
                words: [len, 0x0101_0000 | op << 20 | marks(n), 0x1000, 0],
            });
            let meta = Descriptor {
                words: [0x0080_0000, 0, xors, xors],
            };
            let descs: Vec<_> = std::iter::once(meta).chain(data).collect();
            let planned = plan(&descs, &setup(Arch::V3));
            prop_assert!(planned.is_ok(), "{:?}", planned.err());
            let sources = [&initial.to_le_bytes()[..], &message].concat();
            let mut result = Vec::new();
            let verdict = planned.unwrap().execute(&sources, &mut QueueState::default(), &mut result);
            prop_assert!(verdict.is_ok());
            prop_assert_eq!(result, expected.to_le_bytes(), "op {}", op);
        }
    }
}
