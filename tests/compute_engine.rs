//! Compute packets through the engine: read, computed, written, in the midst of copies; refused with the
//! bit and the descriptor; at the speed the config says.

mod common;

use common::{DST, Program, Rig, SRC, config, pattern};
use proptest::prelude::*;
use udma_sim::arch::regs::{Direction, M2sError, QueueSwCtrl, S2mError, UdmaState, global, queue};
use udma_sim::arch::{Arch, EngineId, EventBlock, QueueId};
use udma_sim::config::Config;
use udma_sim::desc::{
    BarrierMode, Buffer, BuiltPacket, CceInfo, CcePacket, CceType, DType, Descriptor, Permutation,
    RingId, TRANSPOSE_FLUSH_OFFSET, TransposeDims, TransposePacket, TxDesc, build_cce_packet,
    build_transpose_packet,
};
use udma_sim::device::compute::{Fp8, QueueState, Setup, plan};
use udma_sim::device::{DeviceError, ErrorBit};
use udma_sim::system::{Condition, WaitOutcome};
use udma_sim::units::Addr;

const META: u32 = 0x0080_0000;
const FIRST: u32 = 0x0400_0000;
const LAST: u32 = 0x0800_0000;
const RING: u32 = 0x0100_0000;

trait Packets {
    fn raw(&mut self, tx: &[[u32; 4]], rx: &[(u64, u32)]) -> &mut Self;
}

impl Packets for Program {
    /// A packet by hand: FIRST, LAST and the ring id are put in.
    fn raw(&mut self, tx: &[[u32; 4]], rx: &[(u64, u32)]) -> &mut Self {
        for (index, words) in tx.iter().enumerate() {
            let mut words = *words;
            words[0] |= RING;
            words[0] |= if index == 0 { FIRST } else { 0 };
            words[0] |= if index + 1 == tx.len() { LAST } else { 0 };
            self.tx.push(Descriptor { words });
        }
        for (at, len) in rx {
            let words = [RING | len & 0xffff, 0, *at as u32, (at >> 32) as u32];
            self.rx.push(Descriptor { words });
        }
        self
    }
}

fn cce(arch: Arch, op: CceType, packet: &CcePacket) -> BuiltPacket {
    build_cce_packet(arch, op, packet, RingId::FIRST_LAP).unwrap()
}

fn bf16(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| ((value.to_bits() >> 16) as u16).to_le_bytes())
        .collect()
}

fn fp32(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// The first error of engine 0 and all its causes.
fn errors(rig: &Rig) -> (Vec<DeviceError>, [u32; 2]) {
    let status = rig.system.engine_status(EngineId(0)).unwrap();
    (status.errors.to_vec(), status.causes)
}

/// Masks every error of engine 0.
fn mask_errors(rig: &mut Rig) {
    for direction in Direction::ALL {
        rig.reg(0, direction.global_reg(global::ERR_LOG_MASK), u32::MAX);
    }
}

#[test]
fn reductions_among_copies() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        let sources = [0, 1, 2, 3].map(|n| Addr(SRC + n * 0x1003));
        // Sums below 256: exact in bfloat16.
        let value = |n: usize, k: usize| (10 * n + k % 50) as f32;
        let values = [0, 1, 2, 3].map(|n| (0..1024).map(|k| value(n, k)).collect::<Vec<_>>());
        for (at, values) in sources.iter().zip(&values) {
            rig.poke(at.0, &bf16(values));
        }
        let copied = pattern(3000, 5);
        rig.poke(0x5_0000, &copied);
        let destination = [Addr(DST)];
        let mut packet = CcePacket::new(&sources, &destination, 1024, DType::Bfloat16);
        packet.acc_dtype = DType::Fp32;
        let mut program = Program::default();
        program
            .copy(arch, 0x5_0000, 0x30_0000, 3000, BarrierMode::None)
            .packet(cce(arch, CceType::Add, &packet))
            .copy(arch, 0x5_0000, 0x31_0000, 3000, BarrierMode::None);
        rig.start(0, 0, &program);
        rig.idle();
        let sums: Vec<f32> = (0..1024)
            .map(|k| (0..4).map(|n| value(n, k)).sum())
            .collect();
        assert_eq!(rig.peek(DST, 2048), bf16(&sums), "{arch}");
        assert_eq!(rig.peek(0x30_0000, 3000), copied);
        assert_eq!(rig.peek(0x31_0000, 3000), copied);
        let counters = rig.system.counters();
        assert_eq!((counters.packets, counters.tx_descriptors), (3, 6));
        assert_eq!(counters.bytes_read, 4 * 2048 + 6000);
        assert_eq!(counters.bytes_written, 2048 + 6000);
    }
}

#[test]
fn sources_larger_than_the_data_fifo() {
    // 32 scaled sources of 8 KiB: 256 KiB go through a FIFO of 32 KiB.
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    let sources: Vec<Addr> = (0..32).map(|n| Addr(SRC + n * 0x4000)).collect();
    for (n, at) in sources.iter().enumerate() {
        rig.poke(at.0, &fp32(&[n as f32; 2048]));
    }
    let destination = [Addr(DST + 0x10_0000)];
    let scales = [0.5; 32];
    let mut packet = CcePacket::new(&sources, &destination, 2048, DType::Fp32);
    packet.cce_info = Some(CceInfo::scaled(&scales));
    let mut program = Program::default();
    program.packet(cce(arch, CceType::Fma, &packet));
    rig.start(0, 0, &program);
    rig.idle();
    assert_eq!(rig.peek(DST + 0x10_0000, 8192), fp32(&[248.0; 2048]));
}

#[test]
fn a_result_goes_to_every_destination() {
    for arch in [Arch::V3, Arch::V4] {
        let mut rig = Rig::new(arch);
        let sources = [Addr(SRC), Addr(SRC + 0x1000)];
        rig.poke(SRC, &fp32(&[1.5; 512]));
        rig.poke(SRC + 0x1000, &fp32(&[2.0; 512]));
        let core = arch.spec().map.tpb[3];
        let destinations = [Addr(DST), Addr(0x40_0000_0000), Addr(core.0 + (5 << 18))];
        let packet = CcePacket::new(&sources, &destinations, 512, DType::Fp32);
        let mut program = Program::default();
        program.packet(cce(arch, CceType::Add, &packet));
        rig.start(0, 0, &program);
        rig.idle();
        for at in destinations {
            assert_eq!(rig.peek(at.0, 2048), fp32(&[3.5; 512]), "{arch} {at}");
        }
    }
}

#[test]
fn a_refused_packet_names_bit_and_descriptor() {
    let word = 0x020a_6600;
    let data = |word, at: u64| [64, word, at as u32, 0];
    for (tx, slot, bit, text) in [
        (
            vec![data(word, SRC), data(word, SRC + 64)],
            2,
            M2sError::StreamResponse,
            "the op word of the last source does not have the last bit",
        ),
        (
            vec![[META, 0x04a0_0000, 2, 0], data(word | 0x80, SRC)],
            1,
            M2sError::StreamResponse,
            "CCE replication not supported for v1/v2 archs",
        ),
        (
            vec![[2080, word | 0x80, SRC as u32, 0]],
            1,
            M2sError::PktLenOverflow,
            "1040 elements; v2 takes 1 to 1024 in a CCE packet",
        ),
        (
            vec![data(word, SRC); 33],
            34,
            M2sError::MaxDescCount,
            "33 sources",
        ),
    ] {
        let mut tx = tx;
        if bit == M2sError::MaxDescCount {
            tx[32][1] |= 0x80;
        }
        for masked in [false, true] {
            let mut rig = Rig::new(Arch::V2);
            if masked {
                mask_errors(&mut rig);
            }
            rig.poke(SRC, &[0x11; 8192]);
            let mut program = Program::default();
            program
                .copy(Arch::V2, SRC, 0x30_0000, 64, BarrierMode::None)
                .raw(&tx, &[])
                .copy(Arch::V2, SRC, DST, 64, BarrierMode::None);
            rig.start(0, 0, &program);
            let outcome = rig.wait(Condition::Idle);
            let (errors, causes) = errors(&rig);
            assert_eq!(causes, [bit.mask(), 0], "{text}");
            let [error] = errors[..] else {
                panic!("{errors:?}")
            };
            assert_eq!(
                (error.bit, error.queue, error.fatal),
                (ErrorBit::M2s(bit), QueueId(0), !masked)
            );
            assert!(error.to_string().contains(text), "{error}");
            let states = rig.system.engine_status(EngineId(0)).unwrap();
            if masked {
                // The packet is gone, the next one finds its own Rx descriptor.
                assert_eq!(outcome, WaitOutcome::Met);
                assert_eq!(rig.peek(DST, 64), [0x11; 64]);
                assert_eq!(rig.system.counters().packets, 3);
            } else {
                assert_ne!(outcome, WaitOutcome::Met);
                assert_eq!(states.states[0], UdmaState::Abort);
                assert_eq!(rig.peek(DST, 64), [0; 64]);
            }
            let wanted = if bit == M2sError::MaxDescCount {
                33
            } else {
                slot
            };
            assert_eq!(error.slot, wanted, "{error}");
        }
    }
}

/// Descriptors of a packet that means something, or nearly: lengths, META, an op class, its interior, the
/// two words of a meta descriptor.
fn any_packet() -> impl Strategy<Value = Vec<[u32; 4]>> {
    let classes = [
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
        0,
    ];
    let interior = prop_oneof![
        Just(0x000a_6680),
        Just(0x000a_6600),
        Just(0x000a_a681),
        // A plain copy, under the class of the CME.
        Just(0x0008_0000),
        any::<u32>().prop_map(|raw| raw & 0xf_ffff)
    ];
    let desc = (
        prop::sample::select(vec![32u32, 64, 4, 300]),
        any::<bool>(),
        prop::sample::select(classes.to_vec()),
        interior,
        any::<[u32; 2]>(),
    );
    let desc = desc.prop_map(|(len, meta, class, interior, operands)| match meta {
        true => [META, class | interior, operands[0], operands[1]],
        false => [len, class | interior, SRC as u32, 0],
    });
    // The same word for a run of descriptors makes a whole packet likelier.
    prop::collection::vec((desc, 1usize..4), 1..4).prop_map(|runs| {
        let runs = runs.into_iter();
        runs.flat_map(|(desc, count)| vec![desc; count]).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever a packet asks for, the device either does it or reports the bit, the descriptor and the
    /// reason that the functions give: never silence, never another packet's error.
    #[test]
    fn a_malformed_packet_is_reported_as_the_functions_say(
        words in any_packet(),
        arch in prop::sample::select(Arch::ALL.to_vec()),
    ) {
        let mut program = Program::default();
        let room: Vec<(u64, u32)> = (0..40).map(|n| (DST + n * 0x1_0000, 0)).collect();
        program.raw(&words, &room);
        let setup = Setup { spec: arch.spec(), fp8: Fp8::DEFAULT, packet_bytes: 0xfffff };
        let mut rig = Rig::new(arch);
        mask_errors(&mut rig);
        rig.start(0, 0, &program);
        rig.wait(Condition::Idle);
        let (errors, causes) = errors(&rig);
        let reported = errors.iter().find(|error| error.bit.direction() == Direction::M2s);
        match plan(&program.tx, &setup) {
            // A copy needs no plan: bits of its word that only a checksum reads mean nothing to it.
            _ if program.tx.iter().all(|desc| TxDesc::from(*desc).is_plain_copy()) => {
                prop_assert_eq!(causes, [0; 2], "{:?}", errors);
                let bytes: u64 = words.iter().map(|desc| desc[0] as u64).sum();
                prop_assert_eq!(rig.system.counters().bytes_written, bytes);
            }
            Err(refusal) => {
                let error = reported.expect("an error");
                prop_assert_eq!(error.bit, ErrorBit::M2s(refusal.reason.bit()));
                prop_assert_eq!(error.slot as usize, refusal.desc);
                prop_assert_eq!(error.reason, Some(refusal.reason));
                prop_assert_eq!(rig.system.counters().bytes_written, 0);
            }
            // A checksum that is not the expected one is all that can go wrong on this side then.
            Ok(_) => prop_assert_eq!(causes[0] & !M2sError::StreamParity.mask(), 0, "{:?}", errors),
        }
    }
}

#[test]
fn splits_and_replications_go_through_the_engine() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        let data = pattern(96, 3);
        rig.poke(SRC, &data);
        let mut program = Program::default();
        // Two pieces, dealt four bytes (two uint16) at a time, from two descriptors, to two.
        let word = 0x0085_0222;
        program.raw(
            &[[40, word, SRC as u32, 0], [56, word, SRC as u32 + 40, 0]],
            &[(DST, 48), (DST + 0x1000, 48)],
        );
        let three = arch != Arch::V2;
        if three {
            let outs = [0, 1, 2].map(|n| (DST + 0x2000 + n * 0x1000, 96));
            program.raw(&[[96, 0x00a0_0003, SRC as u32, 0]], &outs);
        }
        rig.start(0, 0, &program);
        rig.idle();
        let piece = |odd: usize| -> Vec<u8> {
            let units = data.chunks(4).enumerate();
            units
                .filter(|(n, _)| n % 2 == odd)
                .flat_map(|(_, unit)| unit.to_vec())
                .collect()
        };
        assert_eq!(rig.peek(DST, 48), piece(0), "{arch}");
        assert_eq!(rig.peek(DST + 0x1000, 48), piece(1), "{arch}");
        for n in 0..3 {
            let copy = rig.peek(DST + 0x2000 + n * 0x1000, 96);
            assert_eq!(copy == data, three, "{arch}");
        }
    }
}

/// A tile of 16 rows in HBM, element r·columns + c holding r·256 + c.
fn tile(columns: u16) -> Vec<u8> {
    (0..16u16)
        .flat_map(|r| (0..columns).flat_map(move |c| (r << 8 | c).to_le_bytes()))
        .collect()
}

fn transpose(arch: Arch, source: u64, destination: Addr, columns: u16) -> BuiltPacket {
    let len = 32 * u64::from(columns);
    let packet = TransposePacket {
        source: Buffer {
            at: Addr(source),
            len,
        },
        destination: Buffer {
            at: destination,
            len,
        },
        dims: TransposeDims([1, 16, columns, 1]),
        element_bytes: 2,
        permutation: Permutation::from_name("WYXZ").unwrap(),
    };
    build_transpose_packet(arch, &packet, RingId::FIRST_LAP).unwrap()
}

#[test]
fn a_transpose_fills_a_partition_with_every_row() {
    for arch in [Arch::V3, Arch::V4] {
        let mut rig = Rig::new(arch);
        let core = arch.spec().map.tpb[5];
        rig.poke(SRC, &tile(100));
        let first = 20u64;
        let mut program = Program::default();
        program.packet(transpose(
            arch,
            SRC,
            Addr(core.0 + (first << 18) + 0x60),
            100,
        ));
        rig.start(0, 0, &program);
        rig.idle();
        for c in 0..100u64 {
            let row: Vec<u8> = (0..16u16)
                .flat_map(|r| (r << 8 | c as u16).to_le_bytes())
                .collect();
            let at = core.0 + ((first + c) << 18) + 0x40;
            let got = rig.peek(at, 96);
            assert_eq!(got[..32], [0; 32], "{arch} {c}");
            assert_eq!(got[32..64], row, "{arch} {c}");
            assert_eq!(got[64..], [0; 32], "{arch} {c}");
        }
        assert_eq!(rig.system.counters().bytes_written, 3200);
    }
}

#[test]
fn a_transpose_elsewhere_is_refused() {
    let core = Arch::V3.spec().map.tpb[0].0;
    let good = transpose(Arch::V3, SRC, Addr(core), 8);
    let packed = good.rx[0].words;
    let with = |change: &dyn Fn(&mut [u32; 4])| {
        let mut words = packed;
        change(&mut words);
        words
    };
    for (words, text) in [
        (
            with(&|words| (words[2], words[3]) = (DST as u32, 0)),
            "destination 0x200000 is not in a State Buffer",
        ),
        (with(&|words| words[3] ^= 0x80), "is not in a State Buffer"),
        (with(&|words| words[2] |= 1), "is not in a State Buffer"),
        (
            with(&|words| words[2] |= 16 << 8),
            "is not a multiple of 32 bytes",
        ),
        (
            // 122 is 64 + 58.
            with(&|words| (words[2], words[3]) = (words[2] | 58 << 26, words[3] | 1)),
            "8 rows starting at partition 122, with 32 bytes at offset 0x0 of each",
        ),
        (
            with(&|words| words[2] |= 0x3_8000 << 8),
            "32 bytes at offset 0x38000 of each",
        ),
        (with(&|words| words[3] ^= 4), "the dimensions require 256"),
        (
            with(&|words| words[3] ^= 1 << 16),
            "the dimensions require 256",
        ),
        (
            with(&|words| words[0] -= 32),
            "the destination has 224 bytes; the dimensions require 256",
        ),
    ] {
        for masked in [false, true] {
            let mut rig = Rig::new(Arch::V3);
            if masked {
                mask_errors(&mut rig);
            }
            rig.poke(SRC, &tile(8));
            let mut program = Program::default();
            program.tx.extend(&good.tx);
            program.rx.push(Descriptor { words });
            rig.start(0, 0, &program);
            rig.wait(Condition::Idle);
            let (errors, causes) = errors(&rig);
            // If the error is masked, a descriptor that is too short leaves data waiting for another.
            assert_ne!(causes[1] & S2mError::DataResponse.mask(), 0, "{text}");
            assert!(errors[0].to_string().contains(text), "{}", errors[0]);
            assert_eq!(errors[0].slot, 0);
            assert_eq!(rig.peek(DST, 256), [0; 256]);
            assert_eq!(rig.peek(core, 256), [0; 256]);
        }
    }
    // A copy to a packed address is no transpose: nothing answers there.
    let mut rig = Rig::new(Arch::V3);
    let mut program = Program::default();
    program.copy(Arch::V3, SRC, SRC, 256, BarrierMode::None);
    program.rx[0] = Descriptor { words: packed };
    rig.start(0, 0, &program);
    rig.wait(Condition::Idle);
    assert_eq!(errors(&rig).1, [0, S2mError::DataResponse.mask()]);
}

#[test]
fn a_flush_comes_after_the_transpose() {
    // Slow writes to the State Buffer: without the flush the semaphore would be there first.
    let slow = config(Arch::V3, &[("write = \"15ns\"", "write = \"5us\"")]);
    let mut early = 0;
    for flush in [true, false] {
        let mut rig = Rig::with(slow.clone(), 0);
        let map = &Arch::V3.spec().map;
        let core = map.tpb[0];
        rig.poke(SRC, &tile(16));
        let mut program = Program::default();
        program.packet(transpose(Arch::V3, SRC, core, 16));
        if flush {
            let target = core.0 + TRANSPOSE_FLUSH_OFFSET;
            program.raw(&[[4, 0x0108_0003, SRC as u32, 0]], &[(target, 4)]);
        }
        program.inc(Arch::V3, 3, BarrierMode::None);
        rig.start(0, 0, &program);
        let semaphore = map.semaphore(0, EventBlock::SEM_READ, 3).unwrap();
        let seen = Condition::Word {
            at: semaphore,
            value: 1,
        };
        assert_eq!(rig.wait(seen), WaitOutcome::Met);
        let there = rig.peek(core.0 + (15 << 18), 2) == [15, 0];
        early += u32::from(!there);
        rig.idle();
        assert_eq!(rig.peek(core.0 + (15 << 18), 2), [15, 0]);
        assert_eq!(there, flush);
    }
    assert_eq!(early, 1);
}

#[test]
fn v2_transposes_to_any_address() {
    let mut rig = Rig::new(Arch::V2);
    let source: Vec<u8> = (0..2 * 3 * 4 * 5 * 3).map(|n| n as u8).collect();
    rig.poke(SRC, &source);
    let len = source.len() as u64;
    let packet = TransposePacket {
        source: Buffer { at: Addr(SRC), len },
        destination: Buffer {
            at: Addr(DST + 1),
            len,
        },
        dims: TransposeDims([2, 3, 4, 5]),
        element_bytes: 3,
        permutation: Permutation::from_name("ZXYW").unwrap(),
    };
    let built = build_transpose_packet(Arch::V2, &packet, RingId::FIRST_LAP).unwrap();
    let mut program = Program::default();
    program.packet(built);
    rig.start(0, 0, &program);
    rig.idle();
    let mut expected: Vec<u8> = Vec::new();
    for z in 0..5 {
        for x in 0..3 {
            for y in 0..4 {
                for w in 0..2 {
                    let at = 3 * (((w * 3 + x) * 4 + y) * 5 + z);
                    expected.extend(&source[at..at + 3]);
                }
            }
        }
    }
    assert_eq!(rig.peek(DST + 1, source.len()), expected);
}

/// A CRC-32C packet: initial value, then data.
fn crc_packet(word: u32, data: &[(u64, u32)]) -> Vec<[u32; 4]> {
    let meta = [META, 0, u32::MAX, u32::MAX];
    let data = data
        .iter()
        .map(|(at, len)| [*len, 0x0120_0003 | word, *at as u32, 0]);
    std::iter::once(meta).chain(data).collect()
}

#[test]
fn checksums_travel_with_copies() {
    let mut rig = Rig::new(Arch::V2);
    rig.poke(SRC, b"123456789");
    let (send, store, stored, copy) = (0x1_0000, 0x2_0000, 0x8000, 0x8_0000);
    let mut program = Program::default();
    program
        // The first four digits: only kept, in slot 0; nothing is written, no Rx descriptor taken.
        .raw(&crc_packet(store, &[(0x5_0000, 4), (SRC, 4)]), &[])
        // The rest from there: copied and sent.
        .raw(
            &crc_packet(copy | send | stored, &[(SRC + 4, 5)]),
            &[(DST, 5), (DST + 0x100, 4)],
        )
        .copy(Arch::V2, SRC, DST + 0x200, 9, BarrierMode::None);
    rig.start(0, 0, &program);
    rig.idle();
    assert_eq!(rig.peek(DST, 5), b"56789");
    assert_eq!(rig.peek(DST + 0x100, 4), 0xe306_9283u32.to_le_bytes());
    assert_eq!(rig.peek(DST + 0x200, 9), b"123456789");
    assert_eq!(rig.system.counters().packets, 3);
}

#[test]
fn a_wrong_checksum_is_a_stream_parity_error() {
    for (expected, fails) in [(0xe306_9283u32, false), (0xe306_9284, true)] {
        let mut rig = Rig::new(Arch::V3);
        mask_errors(&mut rig);
        rig.poke(SRC, b"123456789");
        rig.poke(0x6_0000, &expected.to_le_bytes());
        let mut program = Program::default();
        let data = [(0x5_0000, 4), (0x6_0000, 4), (SRC, 9)];
        program.raw(&crc_packet(0x8_4000, &data), &[(DST, 9)]);
        rig.start(0, 0, &program);
        rig.idle();
        let (errors, causes) = errors(&rig);
        assert_eq!(causes[0] == M2sError::StreamParity.mask(), fails);
        assert_eq!(rig.peek(DST, 9), b"123456789");
        if fails {
            let text = errors[0].to_string();
            assert!(
                text.contains("checksum is 0xe3069283, expected 0xe3069284"),
                "{text}"
            );
            assert_eq!(errors[0].slot, 1);
        }
    }
}

#[test]
fn a_queue_reset_forgets_checksums() {
    let mut rig = Rig::new(Arch::V2);
    rig.poke(SRC, b"123456789");
    let mut program = Program::default();
    program.raw(&crc_packet(0x2_0000, &[(0x5_0000, 4), (SRC, 4)]), &[]);
    rig.start(0, 0, &program);
    rig.idle();
    for direction in Direction::ALL {
        let reset = QueueSwCtrl::new().with_rst_q(true).into_bits();
        rig.reg(
            0,
            direction.queue_reg(QueueId(0), queue::sw_ctrl(direction)),
            reset,
        );
    }
    let mut program = Program::default();
    program.raw(&crc_packet(0x1_8000, &[(SRC, 9)]), &[(DST, 4)]);
    rig.start(0, 0, &program);
    rig.idle();
    assert_eq!(rig.peek(DST, 4), 0xe306_9283u32.to_le_bytes());
}

#[test]
fn a_dmb_orders_in_place_sums() {
    // x += a; x += b. With DMB both addends are there; every queue of it.
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        rig.poke(SRC, &fp32(&[1.0; 64]));
        rig.poke(SRC + 0x1000, &fp32(&[2.0; 64]));
        rig.poke(SRC + 0x2000, &fp32(&[4.0; 64]));
        let mut program = Program::default();
        for addend in [0x1000, 0x2000] {
            let sources = [Addr(SRC), Addr(SRC + addend)];
            let destination = [Addr(SRC)];
            let mut packet = CcePacket::new(&sources, &destination, 64, DType::Fp32);
            packet.barrier = BarrierMode::Dmb;
            program.packet(cce(arch, CceType::Add, &packet));
        }
        rig.start(0, 0, &program);
        rig.idle();
        assert_eq!(rig.peek(SRC, 256), fp32(&[7.0; 64]), "{arch}");
        assert_eq!(rig.system.counters().dmb, 2);
    }
}

#[test]
fn a_dropped_write_leaves_no_packet_behind() {
    // A packet that writes nothing, with a DMB: it must complete, and the queue go on.
    let mut rig = Rig::new(Arch::V2);
    rig.poke(SRC, b"123456789");
    let mut tx = crc_packet(0x2_0000, &[(0x5_0000, 4), (SRC, 4)]);
    tx[1][0] |= 1 << 30;
    let mut program = Program::default();
    program
        .raw(&tx, &[])
        .copy(Arch::V2, SRC, DST, 9, BarrierMode::None);
    rig.start(0, 0, &program);
    rig.idle();
    assert_eq!(rig.peek(DST, 9), b"123456789");
    assert_eq!(rig.system.counters().dmb, 1);
}

#[test]
fn v4_has_a_control_of_fp8() {
    let values = fp32(&[1.0, 300.0, 1000.0, f32::INFINITY]);
    let cast = |config: Config| {
        let mut rig = Rig::with(config, 0);
        rig.poke(SRC, &values);
        let mut program = Program::default();
        program.raw(&[[16, 0x020a_ea80, SRC as u32, 0]], &[(DST, 4)]);
        rig.start(0, 0, &program);
        rig.idle();
        rig.peek(DST, 4)
    };
    let ocp = ("fp8_e4 = \"ieee\"", "fp8_e4 = \"ocp\"");
    let saturate = ("fp8_overflow = \"special\"", "fp8_overflow = \"saturate\"");
    for (edits, codes) in [
        (&[][..], [0x38, 0x78, 0x78, 0x78]),
        (&[ocp], [0x38, 0x79, 0x7f, 0x7f]),
        (&[saturate], [0x38, 0x77, 0x77, 0x77]),
        (&[ocp, saturate], [0x38, 0x79, 0x7e, 0x7e]),
    ] {
        assert_eq!(cast(config(Arch::V4, edits)), codes, "{edits:?}");
    }
    for edit in [ocp, saturate] {
        let base = Config::builtin("cayman").unwrap().unwrap();
        let text = base.source.replacen(edit.0, edit.1, 1);
        let refused = Config::parse("edited", &text).unwrap_err().to_string();
        assert!(
            refused.ends_with("cannot be changed on this generation"),
            "{refused}"
        );
    }
}

/// Cycles from doorbell to idle of `packets` packets on one queue.
fn cycles(arch: Arch, program: &Program) -> u64 {
    let mut rig = Rig::new(arch);
    let start = rig.system.cycles().0;
    rig.start(0, 0, program);
    rig.idle();
    rig.system.cycles().0 - start
}

#[test]
fn collective_compute_runs_at_half_the_speed_of_copies() {
    for arch in Arch::ALL {
        let elements = arch.spec().limits.cce_elements_per_packet;
        let bytes = 4 * elements;
        let (mut sums, mut copies) = (Program::default(), Program::default());
        for n in 0..100 {
            let at = |k: u64| 0x100_0000 * (k + 1) + n * u64::from(bytes);
            let sources = [Addr(at(0)), Addr(at(1))];
            let destination = [Addr(at(2))];
            let packet = CcePacket::new(&sources, &destination, elements, DType::Fp32);
            sums.packet(cce(arch, CceType::Add, &packet));
            copies.copy(arch, at(0), at(2), bytes, BarrierMode::None);
            copies.copy(arch, at(1), at(3), bytes, BarrierMode::None);
        }
        let ratio = cycles(arch, &copies) as f64 / cycles(arch, &sums) as f64;
        assert!((0.48..0.53).contains(&ratio), "{arch}: {ratio}");
    }
}

#[test]
fn transposes_run_at_the_speed_the_vendor_gives() {
    for (arch, source_core, low, high) in [
        (Arch::V3, None, 0.88, 0.92),
        (Arch::V3, Some(1), 0.48, 0.52),
        (Arch::V4, None, 0.88, 0.92),
    ] {
        let (mut transposes, mut copies) = (Program::default(), Program::default());
        let tpb = &arch.spec().map.tpb;
        for n in 0..100 {
            let partition = n << 18;
            let source =
                source_core.map_or(0x100_0000 + n * 4096, |core: usize| tpb[core].0 + partition);
            transposes.packet(transpose(arch, source, Addr(tpb[0].0 + n * 32), 128));
            copies.copy(arch, source, tpb[0].0 + partition, 4096, BarrierMode::None);
        }
        let ratio = cycles(arch, &copies) as f64 / cycles(arch, &transposes) as f64;
        assert!(
            (low..high).contains(&ratio),
            "{arch} {source_core:?}: {ratio}"
        );
    }
}

/// A packet of a random program: what it reads and writes is its own.
#[derive(Clone, Debug)]
enum Work {
    Copy(u32),
    Sum {
        sources: usize,
        elements: u32,
        copies: usize,
    },
    Cast(u32),
    Transpose(u16),
    Checksum(u32),
}

fn any_work() -> impl Strategy<Value = Work> {
    prop_oneof![
        (1u32..6000).prop_map(Work::Copy),
        (1usize..6, 1u32..64, 1usize..4).prop_map(|(sources, rows, copies)| Work::Sum {
            sources,
            elements: rows * 32,
            copies
        }),
        (1u32..2000).prop_map(Work::Cast),
        (1u16..128).prop_map(Work::Transpose),
        (1u32..3000).prop_map(Work::Checksum),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the latencies, memory ends up as if every packet had been planned and executed on its
    /// own.
    #[test]
    fn the_engine_and_the_functions_agree(
        works in prop::collection::vec((any_work(), 0u8..2), 1..20),
        seed: u64,
    ) {
        let arch = Arch::V3;
        let jitter = config(arch, &[("jitter = \"0ns\"", "jitter = \"2us\"")]);
        let mut rig = Rig::with(jitter, seed);
        rig.poke(SRC, &pattern(0x10_0000, seed as u8));
        let mut programs = vec![Program::default(); 2];
        let core = arch.spec().map.tpb[1].0;
        let mut expected = Vec::new();
        for (n, (work, q)) in works.iter().enumerate() {
            let mut only = Program::default();
            let source = |k: usize| SRC + (n * 7919 + k * 12_347) as u64;
            let out = 0x800_0000 + n as u64 * 0x10_0000;
            match *work {
                Work::Copy(len) => {
                    only.copy(arch, source(0), out, len, BarrierMode::None);
                }
                Work::Sum { sources, elements, copies } => {
                    let sources: Vec<Addr> = (0..sources).map(|k| Addr(source(k))).collect();
                    let outs: Vec<Addr> = (0..copies).map(|k| Addr(out + k as u64 * 0x4000)).collect();
                    let mut packet = CcePacket::new(&sources, &outs, elements, DType::Bfloat16);
                    packet.acc_dtype = DType::Fp32;
                    only.packet(cce(arch, CceType::Add, &packet));
                }
                Work::Cast(elements) => {
                    // fp32 to fp8_e4.
                    only.raw(&[[4 * elements, 0x020a_ea80, source(0) as u32, 0]], &[(out, elements)]);
                }
                Work::Transpose(columns) => {
                    let at = Addr(core + n as u64 * 32);
                    only.packet(transpose(arch, source(0), at, columns));
                }
                Work::Checksum(len) => {
                    let data = [(source(1), 4), (source(0), len)];
                    only.raw(&crc_packet(0x9_0000, &data), &[(out, len), (out + 0x8000, 4)]);
                }
            }
            expected.push(only.clone());
            programs[usize::from(*q)].tx.extend(&only.tx);
            programs[usize::from(*q)].rx.extend(&only.rx);
        }
        for (q, program) in programs.iter().enumerate().filter(|(_, program)| !program.tx.is_empty()) {
            rig.start(0, q as u8, program);
        }
        rig.idle();
        let setup = Setup { spec: arch.spec(), fp8: Fp8::DEFAULT, packet_bytes: 0xfffff };
        for (n, only) in expected.iter().enumerate() {
            let mut sources = Vec::new();
            for desc in only.tx.iter().filter(|desc| !desc.len_ctrl().meta()) {
                let at = u64::from(desc.words[3]) << 32 | u64::from(desc.words[2]);
                sources.extend(rig.peek(at, desc.len_ctrl().byte_len() as usize));
            }
            let result = match plan(&only.tx, &setup) {
                Ok(plan) => {
                    let mut result = Vec::new();
                    plan.execute(&sources, &mut QueueState::default(), &mut result).unwrap();
                    result
                }
                Err(_) => sources,
            };
            let mut got = Vec::new();
            if let Work::Transpose(columns) = works[n].0 {
                for c in 0..u64::from(columns) {
                    got.extend(rig.peek(core + (c << 18) + n as u64 * 32, 32));
                }
            } else {
                for desc in &only.rx {
                    let at = u64::from(desc.words[3]) << 32 | u64::from(desc.words[2]);
                    got.extend(rig.peek(at, desc.len_ctrl().byte_len() as usize));
                }
            }
            prop_assert_eq!(&got, &result, "packet {}: {:?}", n, works[n].0);
        }
    }
}

/// Copies and checksums with copy, each of 64 packets of so many bytes.
fn checked_and_plain(arch: Arch, bytes: u32) -> (u64, u64) {
    let (mut checked, mut copies) = (Program::default(), Program::default());
    for n in 0..64 {
        let at = |k: u64| 0x400_0000 * (k + 1) + n * u64::from(bytes);
        // From the stored value, so that the same bytes are read; the result is kept, not sent.
        checked.raw(
            &crc_packet(0xa_8000, &[(at(0), bytes & 0xffff)]),
            &[(at(1), bytes)],
        );
        copies.copy(arch, at(0), at(1), bytes, BarrierMode::None);
    }
    (cycles(arch, &checked), cycles(arch, &copies))
}

#[test]
fn a_checksum_does_not_stall_its_copy() {
    for arch in Arch::ALL {
        for kib in [16, 64] {
            let (checked, copies) = checked_and_plain(arch, kib << 10);
            let ratio = checked as f64 / copies as f64;
            println!("{arch} {kib} KiB: {checked} cycles, a copy {copies}: {ratio:.4}");
            assert!((0.97..1.03).contains(&ratio), "{arch} {kib} KiB: {ratio}");
        }
    }
}

#[test]
fn a_checksum_follows_data_of_any_shape() {
    // Sources at odd addresses, of odd lengths, so that bursts end anywhere; the result goes into the same
    // descriptor as the data, and a copy follows at once.
    let pieces = [
        (SRC + 3, 1001),
        (SRC + 0x4007, 70),
        (SRC + 0x8001, 4999),
        (SRC + 0xa000, 2),
    ];
    for (op, initial, sent) in [
        (1, 4, 4),
        (2, 4, 4),
        (3, 2, 2),
        (4, 4, 4),
        (5, 2, 2),
        (6, 4, 4),
        (7, 1, 1),
    ] {
        let mut rig = Rig::new(Arch::V3);
        rig.poke(SRC, &pattern(0x1_0000, op as u8));
        let word = 0x0109_0000 | op << 20;
        let marks = [2, 0, 0, 0, 1];
        let values = std::iter::once((0x5_0000, initial));
        let data = values.chain(pieces).zip(marks);
        let data = data.map(|((at, len), mark)| [len, word | mark, at as u32, 0]);
        let tx: Vec<_> = std::iter::once([META, 0, 0, 0]).chain(data).collect();
        let bytes: u32 = pieces.iter().map(|(_, len)| len).sum();
        let mut program = Program::default();
        program.raw(&tx, &[(DST + 1, bytes + sent)]).copy(
            Arch::V3,
            SRC,
            DST + 0x1_0000,
            3000,
            BarrierMode::None,
        );
        rig.start(0, 0, &program);
        rig.idle();
        let mut sources = rig.peek(0x5_0000, initial as usize);
        for (at, len) in pieces {
            sources.extend(rig.peek(at, len as usize));
        }
        let setup = Setup {
            spec: Arch::V3.spec(),
            fp8: Fp8::DEFAULT,
            packet_bytes: 0xfffff,
        };
        let mut result = Vec::new();
        let plan = plan(&program.tx[..6], &setup).unwrap();
        plan.execute(&sources, &mut QueueState::default(), &mut result)
            .unwrap();
        assert_eq!(
            rig.peek(DST + 1, (bytes + sent) as usize),
            result,
            "op {op}"
        );
        assert_eq!(
            rig.peek(DST + 0x1_0000, 3000),
            pattern(0x1_0000, op as u8)[..3000]
        );
    }
}
