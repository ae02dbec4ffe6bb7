//! Transposes against `numpy.transpose`, striding splits, replications.

use crate::support::{META, execute, plan_of, refused, ring, setup};
use udma_sim::arch::Arch;
use udma_sim::desc::{
    Buffer, CceRule, Permutation, RingId, TransposeDims, TransposePacket, build_transpose_packet,
};
use udma_sim::device::compute::{QueueState, Reason, plan};
use udma_sim::units::Addr;

#[test]
fn transposes_agree_with_numpy() {
    let cases = include_str!("../vectors/transposes.txt");
    let crc32 = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);
    let mut count = 0;
    for line in cases.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, size, w, x, y, z, expected] = words[..] else {
            panic!("{line}");
        };
        let packet = TransposePacket {
            source: Buffer {
                at: Addr(0x1000),
                len: 0,
            },
            destination: Buffer {
                at: Addr(0x9000),
                len: 0,
            },
            dims: TransposeDims([w, x, y, z].map(|dim| dim.parse().unwrap())),
            element_bytes: size.parse().unwrap(),
            permutation: Permutation::from_name(name).unwrap(),
        };
        let len = packet.dims.elements() * u64::from(packet.element_bytes);
        let packet = TransposePacket {
            source: Buffer {
                len,
                ..packet.source
            },
            destination: Buffer {
                len,
                ..packet.destination
            },
            ..packet
        };
        let built = build_transpose_packet(Arch::V2, &packet, RingId::FIRST_LAP).unwrap();
        let plan = plan_of(Arch::V2, &built.tx);
        let source: Vec<u8> = (0..len as u32)
            .map(|n| (n * 151 + (n >> 8) * 7) as u8)
            .collect();
        let result = execute(&plan, &source, &mut QueueState::default());
        assert_eq!(result.len(), source.len());
        let expected = u32::from_str_radix(expected, 16).unwrap();
        assert_eq!(crc32.checksum(&result), expected, "{line}");
        count += 1;
    }
    assert_eq!(count, 672);
}

#[test]
fn malformed_transposes() {
    use Arch::{V2, V3};
    let meta = |word, meta1, meta2| [META, word, meta1, meta2];
    let data = |len, word| [len, word, 0x1000, 0];
    // WYXZ of 2-byte elements, 16 rows of 4 columns.
    let (word, dims) = (0x0095_0222, (0x0010_0001, 0x0001_0004));
    let tile = |word| vec![meta(word, dims.0, dims.1), data(128, word)];
    for arch in Arch::ALL {
        assert!(plan(&ring(&tile(word)), &setup(arch)).is_ok(), "{arch}");
    }
    for (arch, words, desc, text) in [
        (
            V2,
            vec![data(128, word)],
            0,
            "the meta descriptor with the dimensions is missing",
        ),
        (
            V2,
            vec![data(64, word), meta(word, dims.0, dims.1), data(64, word)],
            0,
            "the meta descriptor with the dimensions is missing",
        ),
        (
            V2,
            [tile(word), vec![meta(word, 0, 0)]].concat(),
            2,
            "duplicate meta descriptor",
        ),
        (
            V2,
            tile(word | 0x0c00),
            1,
            "14 is not a transpose; there are 12",
        ),
        (
            V2,
            tile(word & !0x20),
            1,
            "the flag \"shape > 1\" contradicts the shape index",
        ),
        (
            V2,
            tile(word ^ 0x3),
            1,
            "elements have 1 bytes, which does not match dtype uint16",
        ),
        (
            V2,
            tile(word & !0x3),
            0,
            "elements have 0 bytes; a transpose moves elements of 1 to 8 bytes",
        ),
        (
            V2,
            vec![meta(word, dims.0, dims.1), data(126, word)],
            1,
            "the source has 126 bytes; the dimensions require 128",
        ),
        (
            V2,
            vec![meta(word, 0x0010_0000, 4), data(128, word)],
            0,
            "dimensions [0, 16, 4, 0]: no dimension may be 0",
        ),
        (
            V2,
            vec![meta(word, 0xffff_ffff, 0xffff_ffff), data(0, word)],
            0,
            "18445618199572250625 elements of 2 bytes; a transpose takes at most 8192",
        ),
        (
            V2,
            vec![meta(word ^ 0x100, dims.0, dims.1), data(128, word)],
            0,
            "op word 0x00950322 in a packet with op word 0x00950222",
        ),
        (
            V3,
            tile(word & !0x0200),
            0,
            "WZXY moves W or Z; this device only swaps X and Y: WYXZ",
        ),
        (
            V3,
            vec![meta(0x0093_0221, dims.0, dims.1), data(64, 0x0093_0221)],
            0,
            "elements have 1 bytes; this device transposes elements of 2 or 4 bytes",
        ),
        (
            V3,
            vec![meta(word, 0x0008_0001, 0x0001_0008), data(128, word)],
            0,
            "dimensions [1, 8, 8, 1]; this device transposes a single tile: W = Z = 1, X = 16 rows, Y = 1 to 128 columns for 2-byte elements",
        ),
    ] {
        let refusal = plan(&ring(&words), &setup(arch)).unwrap_err();
        assert_eq!(
            (refusal.desc, refusal.reason.to_string().as_str()),
            (desc, text)
        );
    }
}

#[test]
fn splits_and_replications() {
    let mut state = QueueState::default();
    // 2 pieces, one uint16 at a time.
    let plan_2 = plan_of(Arch::V2, &ring(&[[8, 0x0085_0002, 0x1000, 0]]));
    assert_eq!(
        execute(&plan_2, &[1, 2, 3, 4, 5, 6, 7, 8], &mut state),
        [1, 2, 5, 6, 3, 4, 7, 8]
    );
    // 3 pieces, two uint8 at a time, from two descriptors.
    let word = 0x0083_0223;
    let plan_3 = plan_of(Arch::V3, &ring(&[[4, word, 0, 0], [8, word, 0, 0]]));
    let bytes: Vec<u8> = (1..=12).collect();
    assert_eq!(
        execute(&plan_3, &bytes, &mut state),
        [1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12]
    );
    let thrice = plan_of(Arch::V3, &ring(&[[2, 0x00a0_0003, 0, 0]]));
    assert_eq!(execute(&thrice, &[1, 2], &mut state), [1, 2, 1, 2, 1, 2]);
    for (arch, words, reason) in [
        (Arch::V2, [8, 0x0085_0000, 0, 0], Reason::NoPieces),
        (Arch::V2, [8, 0x0080_0002, 0, 0], Reason::NoDtype("element")),
        (Arch::V2, [8, 0x0085_0202, 0, 0], Reason::ShapeFlag),
        (
            Arch::V2,
            [10, 0x0085_0002, 0, 0],
            Reason::Ragged { bytes: 10, unit: 4 },
        ),
        (
            Arch::V2,
            [2, 0x00a0_0003, 0, 0],
            Reason::Cce(CceRule::Replication),
        ),
        (
            Arch::V3,
            [2, 0x00a0_0000, 0, 0],
            Reason::Cce(CceRule::Copies {
                copies: 0,
                limit: 60,
            }),
        ),
        (
            Arch::V3,
            [0, 0x00a0_0010, 0, 0],
            Reason::ResultLength {
                bytes: 0x10_0000,
                limit: 0xfffff,
            },
        ),
    ] {
        assert_eq!(refused(arch, &[words]), (0, reason), "{words:x?}");
    }
}
