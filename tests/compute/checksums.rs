//! Checksums over a copy: values, the queue's cache, swaps, malformed packets.

use crate::support::{META, execute, plan_of, refused, ring};
use udma_sim::arch::Arch;
use udma_sim::desc::{CmeError, OtherOp};
use udma_sim::device::compute::{CrcMismatch, QueueState, Reason};

/// Words of a checksum packet: exclusive-ors, then data descriptors of these lengths.
fn checksum(word: u32, xors: (u32, u32), lengths: &[u32]) -> Vec<[u32; 4]> {
    let data = lengths.iter().map(|len| [*len, word, 0x1000, 0]);
    std::iter::once([META | 0x0400_0000, 0, xors.0, xors.1])
        .chain(data)
        .collect()
}

/// The same with a block mark of its own in each data descriptor's word.
fn marked(word: u32, lengths: &[u32], marks: &[u32]) -> Vec<[u32; 4]> {
    let mut words = checksum(word, ONES, lengths);
    for (words, mark) in words[1..].iter_mut().zip(marks) {
        words[1] |= mark;
    }
    words
}

const ONES: (u32, u32) = (u32::MAX, u32::MAX);
const DIGITS: &[u8] = b"123456789";
/// Check values of the digits, from the catalogue.
const CRC32: u32 = 0xcbf4_3926;
const CRC32C: u32 = 0xe306_9283;

#[test]
fn checksums_go_along_with_a_copy() {
    let mut state = QueueState::default();
    let zeros = [0; 4];
    for (op, xors, initial, check) in [
        (1, ONES, &zeros[..], CRC32.to_le_bytes().to_vec()),
        (2, ONES, &zeros[..], CRC32C.to_le_bytes().to_vec()),
        (3, (0, 0), &zeros[..2], vec![0x09, 0xd5]),
        (4, (0, 0), &zeros[..], 0x6c6a_689fu32.to_le_bytes().to_vec()),
        (5, (0, 0), &zeros[..2], vec![0xdb, 0xd0]),
        (
            6,
            (0, 0),
            &[1, 0, 0, 0],
            0x091e_01deu32.to_le_bytes().to_vec(),
        ),
        (7, (0, 0), &zeros[..1], vec![0xf4]),
    ] {
        // Copy and send; then only send; then validate.
        let word = 0x0100_0003 | op << 20;
        let lengths = [initial.len() as u32, 9];
        let source = [initial, DIGITS].concat();
        let both = plan_of(Arch::V3, &ring(&checksum(word | 0x9_0000, xors, &lengths)));
        assert_eq!(
            execute(&both, &source, &mut state),
            [DIGITS, &check].concat(),
            "{op}"
        );
        let send = plan_of(Arch::V3, &ring(&checksum(word | 0x1_0000, xors, &lengths)));
        assert_eq!(execute(&send, &source, &mut state), check, "{op}");
        let lengths = [initial.len() as u32, check.len() as u32, 9];
        let source = [initial, &check, DIGITS].concat();
        let validate = plan_of(Arch::V3, &ring(&checksum(word | 0x8_4000, xors, &lengths)));
        assert_eq!(execute(&validate, &source, &mut state), DIGITS);
        let mut wrong = source;
        *wrong.last_mut().unwrap() ^= 1;
        let mut result = Vec::new();
        let mismatch: CrcMismatch = validate
            .execute(&wrong, &mut state, &mut result)
            .unwrap_err();
        assert_ne!(mismatch.expected, mismatch.got);
        assert_eq!(
            result,
            wrong[wrong.len() - 9..],
            "the data is copied all the same"
        );
    }
}

#[test]
fn checksums_are_kept_and_taken_up_again() {
    let mut state = QueueState::default();
    let run = |word, lengths: &[u32], source: &[u8], state: &mut QueueState| {
        execute(
            &plan_of(Arch::V3, &ring(&checksum(word, ONES, lengths))),
            source,
            state,
        )
    };
    // CRC-32C of the first digits into slot 5, then of the rest from there.
    let slot = 5 << 3;
    let (stored, store, send) = (0x8000, 0x2_0000, 0x1_0000);
    let word = 0x0120_0003 | slot;
    let first = [&[0; 4], &DIGITS[..4]].concat();
    assert!(run(word | store, &[4, 4], &first, &mut state).is_empty());
    let rest = run(word | stored | send, &[5], &DIGITS[4..], &mut state);
    assert_eq!(rest, CRC32C.to_le_bytes());
    // Another slot is untouched: it starts from 0.
    let other = run((word ^ slot) | stored | send, &[9], DIGITS, &mut state);
    assert_eq!(other, CRC32C.to_le_bytes());
    // The initial value that came with the packet is kept if asked.
    let initial = 0x1234_5678u32.to_le_bytes();
    run(
        word | 0x4_0000,
        &[4, 9],
        &[&initial[..], DIGITS].concat(),
        &mut state,
    );
    let from_slot = run(word | stored | send, &[9], DIGITS, &mut state);
    let direct = run(
        word | send,
        &[4, 9],
        &[&initial[..], DIGITS].concat(),
        &mut state,
    );
    assert_eq!(from_slot, direct);
}

#[test]
fn swaps_of_a_checksum() {
    let mut state = QueueState::default();
    let mut run = |word: u32, source: &[u8]| {
        let words = checksum(0x0111_0003 | word, ONES, &[4, 8]);
        execute(
            &plan_of(Arch::V3, &ring(&words)),
            &[&[0; 4], source].concat(),
            &mut state,
        )
    };
    let source = [1, 2, 3, 4, 5, 6, 7, 8];
    let plain = run(0, &source);
    let reversed: Vec<u8> = plain.iter().rev().copied().collect();
    assert_eq!(run(0x40, &source), reversed);
    let bits: Vec<u8> = plain.iter().map(|byte| byte.reverse_bits()).collect();
    assert_eq!(run(0x80, &source), bits);
    assert_eq!(run(0x400, &[4, 3, 2, 1, 8, 7, 6, 5]), plain);
    let bits = source.map(u8::reverse_bits);
    assert_eq!(run(0x800, &bits), plain);
    // Initial value 0x01000000 with swapped bytes is 0x00000001.
    let mut with_initial = |word: u32, initial: [u8; 4]| {
        let words = checksum(0x0111_0003 | word, ONES, &[4, 8]);
        execute(
            &plan_of(Arch::V3, &ring(&words)),
            &[&initial[..], &source].concat(),
            &mut state,
        )
    };
    assert_eq!(
        with_initial(0x1000, [0, 0, 0, 1]),
        with_initial(0, [1, 0, 0, 0])
    );
    assert_eq!(
        with_initial(0x2000, [0x80, 0, 0, 0]),
        with_initial(0, [1, 0, 0, 0])
    );
    // A stored value is swapped on its way in: swap it back as an initial value.
    let mut keep = |word: u32, lengths: &[u32], source: &[u8]| {
        execute(
            &plan_of(Arch::V3, &ring(&checksum(word, ONES, lengths))),
            source,
            &mut state,
        )
    };
    keep(0x0112_0103, &[4, 4], &[0, 0, 0, 0, 1, 2, 3, 4]);
    assert_eq!(keep(0x0111_9003, &[4], &[5, 6, 7, 8]), plain);
}

#[test]
fn the_ancestors_layout_of_a_checksum_is_taken_too() {
    // Op word on the first data descriptor only, is_last_block on the first of the data.
    let words = [
        [META | 0x0400_0000, 0, u32::MAX, u32::MAX],
        [4, 0x0119_0002, 0x1000, 0],
        [5, 0x0000_0001, 0x2000, 0],
        [4, 0, 0x3000, 0],
    ];
    let plan = plan_of(Arch::V3, &ring(&words));
    let result = execute(
        &plan,
        &[&[0; 4], DIGITS].concat(),
        &mut QueueState::default(),
    );
    assert_eq!(result, [DIGITS, &CRC32.to_le_bytes()].concat());
}

#[test]
fn malformed_checksums() {
    let word = 0x0119_0003;
    for (words, desc, reason) in [
        (
            vec![[4, word, 0, 0], [9, word, 0, 0]],
            0,
            Reason::Cme(CmeError::MissingMeta),
        ),
        (
            [checksum(word, ONES, &[4, 9]), checksum(word, ONES, &[])].concat(),
            3,
            Reason::Cme(CmeError::SecondMeta),
        ),
        (
            checksum(word, ONES, &[9]),
            1,
            Reason::Cme(CmeError::ValueLength {
                what: "initial value",
                bytes: 9,
                wanted: 4,
            }),
        ),
        (
            checksum(word | 0x4000, ONES, &[4, 9]),
            2,
            Reason::Cme(CmeError::ValueLength {
                what: "expected value",
                bytes: 9,
                wanted: 4,
            }),
        ),
        (
            checksum(word & !3, ONES, &[4, 9]),
            2,
            Reason::Cme(CmeError::NoFirstBlock),
        ),
        (
            checksum(word & !2, ONES, &[4, 9]),
            1,
            Reason::Cme(CmeError::LastBeforeFirst),
        ),
        (
            checksum(word & !1, ONES, &[4, 9]),
            2,
            Reason::Cme(CmeError::SecondFirst),
        ),
        (
            marked(word & !3, &[4, 5, 4], &[2, 0, 0]),
            3,
            Reason::Cme(CmeError::NoLastBlock),
        ),
        (
            marked(word & !3, &[4, 5, 4], &[3, 1, 2]),
            2,
            Reason::Cme(CmeError::LastBeforeFirst),
        ),
        (
            checksum(word | 0x400, ONES, &[4, 9]),
            1,
            Reason::Cme(CmeError::Unswappable(9)),
        ),
        (
            [
                checksum(word, ONES, &[4]),
                vec![[9, word ^ 0x10_0000, 0, 0]],
            ]
            .concat(),
            2,
            Reason::OtherOp(OtherOp {
                first: word,
                found: word ^ 0x10_0000,
            }),
        ),
    ] {
        assert_eq!(refused(Arch::V3, &words), (desc, reason), "{words:x?}");
    }
}
