//! What a vring accepts, whatever it is, the engine executes without an error bit; what it refuses for a
//! reason outside the packet's own Tx descriptors (limits, sizes, places), the engine refuses when it is
//! written past the vring. (The rules of the operations are compared in `tests/compute/agreement.rs`.)

mod common;

use common::{DST, MS, Program, Rig, SRC, pattern, prings, queue_pair};
use proptest::prelude::*;
use proptest::sample::select;
use udma_sim::arch::regs::M2sError;
use udma_sim::arch::{Arch, EngineId};
use udma_sim::desc::*;
use udma_sim::device::ErrorBit;
use udma_sim::device::compute::Reason;
use udma_sim::host::{Vring, VringError};
use udma_sim::system::{Condition, WaitOutcome};
use udma_sim::units::Addr;

/// A call on a vring, with arguments that are mostly legal.
#[derive(Clone, Debug)]
enum Call {
    Copy(u64, BarrierMode),
    Packet(Vec<u64>, Vec<u64>, BarrierMode, bool),
    Checksum(CmeOp, u64, u32),
    Reduce(KbinOp, usize, usize, u32, DType, DType, BarrierMode),
    Seed(u32),
    Transpose([u16; 4], u32, usize),
    Flush(u32),
    Semaphore(u32, BarrierMode),
    SemaphoreFromSb(u32),
    DmbOnLast,
    Embedded(u32, bool),
    Pack(u64),
}

fn any_arch() -> impl Strategy<Value = Arch> {
    select(Arch::ALL.to_vec())
}

fn any_call() -> impl Strategy<Value = Call> {
    let barrier = || select(BarrierMode::ALL.to_vec());
    let dtype = || select(DType::all().collect::<Vec<_>>());
    let lens = || prop::collection::vec(1u64..5000, 1..6);
    let sums = [
        CmeOp::Crc8,
        CmeOp::Crc16,
        CmeOp::Crc32,
        CmeOp::Crc32c,
        CmeOp::Checksum16,
        CmeOp::Checksum32,
        CmeOp::Adler32,
    ];
    let reductions = [KbinOp::Fma, KbinOp::Add, KbinOp::Min, KbinOp::Max];
    let elements = prop_oneof![3 => (1u32..70).prop_map(|n| 32 * n), 1 => 1u32..2100];
    let dims = [1u16..4, 1u16..20, 1u16..140, 1u16..4];
    let reduction = (
        select(reductions.to_vec()),
        1usize..6,
        1usize..4,
        elements,
        dtype(),
        dtype(),
        barrier(),
    );
    prop_oneof![
        3 => (1u64..200_000, barrier()).prop_map(|(len, barrier)| Call::Copy(len, barrier)),
        3 => (lens(), lens(), barrier(), prop::bool::weighted(0.2))
            .prop_map(|(from, to, barrier, mask)| Call::Packet(from, to, barrier, mask)),
        3 => (select(sums.to_vec()), 1u64..3000, any::<u32>())
            .prop_map(|(op, len, options)| Call::Checksum(op, len, options)),
        4 => reduction.prop_map(|(op, sources, copies, elements, from, to, barrier)| {
            Call::Reduce(op, sources, copies, elements, from, to, barrier)
        }),
        1 => any::<u32>().prop_map(Call::Seed),
        3 => (dims, select(vec![1u32, 2, 2, 4, 4, 8]), 0usize..12)
            .prop_map(|(dims, bytes, permutation)| Call::Transpose(dims, bytes, permutation)),
        1 => Just(Call::Transpose([1, 16, 64, 1], 4, 2)),
        1 => (0u32..9).prop_map(Call::Flush),
        2 => (0u32..256, barrier()).prop_map(|(index, barrier)| Call::Semaphore(index, barrier)),
        1 => (0u32..256).prop_map(Call::SemaphoreFromSb),
        1 => Just(Call::DmbOnLast),
        1 => (0u32..256, any::<bool>()).prop_map(|(index, sow)| Call::Embedded(index, sow)),
        1 => (1u64..300_000).prop_map(Call::Pack),
    ]
}

fn buffers(at: u64, lens: &[u64]) -> Vec<Buffer> {
    let mut at = at;
    let buffer = |len: &u64| {
        let buffer = Buffer {
            at: Addr(at),
            len: *len,
        };
        at += len;
        buffer
    };
    lens.iter().map(buffer).collect()
}

/// Makes a call; whether the vring accepted it.
fn make(vring: &mut Vring, call: &Call) -> bool {
    let arch = vring.arch();
    let places = |at: u64, count: usize| -> Vec<Addr> {
        (0..count as u64).map(|n| Addr(at + n * 0x8000)).collect()
    };
    match call {
        Call::Copy(len, barrier) => vring
            .add_desc_transfer_with_barrier(Addr(SRC), Addr(DST), *len, *barrier)
            .is_ok(),
        Call::Packet(from, to, barrier, mask) => {
            let (sources, mut destinations) = (buffers(SRC, from), buffers(DST, to));
            // As many bytes, mostly.
            let (read, written): (u64, u64) = (from.iter().sum(), to.iter().sum());
            if let (Some(last), true) = (destinations.last_mut(), *mask || read > written) {
                last.len += read.saturating_sub(written);
            }
            let mut packet = CopyPacket::new(&sources, &destinations);
            packet.barrier = *barrier;
            packet.notification_mask = *mask;
            vring.add_dma_packet(&packet).is_ok()
        }
        Call::Checksum(op, len, options) => {
            let word = MetaCtrl::PLAIN_COPY.into_bits() & !0xf0_0000
                | u32::from(op.into_bits()) << 20
                | options & 0xf_ffc0 & !(1 << 17)
                | 3;
            let word = MetaCtrl::from_bits(word);
            let value = u64::from(op.value_bytes());
            let values = usize::from(!word.use_stored_crc_iv()) + usize::from(word.validate_crc());
            let lens = [vec![value; values], vec![*len]].concat();
            let sources = buffers(SRC, &lens);
            let copied = if word.copy_source_data() { *len } else { 0 };
            let sent = if word.send_crc_result() { value } else { 0 };
            let written = copied + sent;
            let destinations = buffers(
                DST,
                if written > 0 {
                    std::slice::from_ref(&written)
                } else {
                    &[]
                },
            );
            let mut packet = CopyPacket::new(&sources, &destinations);
            packet.meta_ctrl = word;
            packet.meta = Some(CmeMeta {
                index: RingId::FIRST_LAP,
                meta_ctrl: MetaCtrl::PLAIN_COPY,
                meta1: 0,
                meta2: u32::MAX,
            });
            vring.add_dma_packet(&packet).is_ok()
        }
        Call::Reduce(op, sources, copies, elements, from, to, barrier) => {
            let (sources, destinations) = (places(SRC, *sources), places(DST, *copies));
            let scales = vec![0.5; sources.len()];
            let mut packet = CcePacket::new(&sources, &destinations, *elements, *from);
            packet.out_dtype = if *op == KbinOp::Fma { *from } else { *to };
            packet.barrier = *barrier;
            packet.cce_info = (*op == KbinOp::Fma).then_some(CceInfo::scaled(&scales));
            vring.add_dma_packet_cce(*op, &packet).is_ok()
        }
        Call::Seed(seed) => vring.add_set_seed_packet(*seed, Addr(DST)).is_ok(),
        Call::Transpose(dims, element_bytes, permutation) => {
            let dims = TransposeDims(*dims);
            let len = dims.elements() * u64::from(*element_bytes);
            let at = if arch == Arch::V2 {
                Addr(DST)
            } else {
                arch.spec().map.tpb[0]
            };
            let packet = TransposePacket {
                source: Buffer { at: Addr(SRC), len },
                destination: Buffer { at, len },
                dims,
                element_bytes: *element_bytes,
                permutation: Permutation::all().nth(*permutation).unwrap(),
            };
            vring.add_dma_packet_transpose(&packet).is_ok()
        }
        Call::Flush(core) => vring.add_dma_packet_transpose_flush(*core).is_ok(),
        Call::Semaphore(index, barrier) => vring
            .add_desc_semaphore_inc_with_barrier(0, *index, *barrier)
            .is_ok(),
        Call::SemaphoreFromSb(index) => vring
            .add_desc_semaphore_inc_from_sb(0, EngineId(0), 0, *index)
            .is_ok(),
        Call::DmbOnLast => vring.set_dmb_on_last_packet().is_ok(),
        Call::Embedded(index, sow) => vring
            .set_embedded_semaphore_inc_on_last_desc(0, *index as u16, *sow)
            .is_ok(),
        Call::Pack(max) => {
            let used = vring.tx().used_desc_count();
            vring.pack_descs(0, used, *max, 0).is_ok()
        }
    }
}

/// The descriptors of a vring as they would go to its rings.
fn program(vring: &Vring) -> Program {
    let all = |half: &udma_sim::host::VringPages| half.runs().flatten().copied().collect();
    Program {
        tx: all(vring.tx()),
        rx: all(vring.rx()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_a_vring_accepts_runs_without_an_error(
        calls in prop::collection::vec(any_call(), 1..12),
        arch in any_arch(),
    ) {
        let mut vring = Vring::new(arch, "any_0").unwrap();
        for call in &calls {
            let before = (vring.tx().used_desc_count(), vring.rx().used_desc_count());
            if !make(&mut vring, call) {
                let after = (vring.tx().used_desc_count(), vring.rx().used_desc_count());
                prop_assert_eq!(before, after, "{:?}", call);
            }
        }
        let (tx_count, rx_count) = (vring.tx().used_desc_count(), vring.rx().used_desc_count());
        prop_assume!(tx_count > 0);
        let mut rig = Rig::new(arch);
        rig.poke(SRC, &pattern(0x4_0000, 1));
        let length = tx_count.max(rx_count).next_multiple_of(16).max(32);
        let (mut tx, mut rx) = prings(0x800_0000, 0x900_0000, length);
        vring.dump_to_pring(&mut rig.system, &mut tx, &mut rx).unwrap();
        let queue = queue_pair(&mut rig.system, arch, EngineId(0), 0, (&tx, &rx));
        queue.trigger(&mut rig.system, tx_count, rx_count).unwrap();
        let outcome = rig.system.run_until(&Condition::Idle, MS);
        let status = rig.system.engine_status(EngineId(0)).unwrap();
        // A checksum that the data does not have is not the packet's fault.
        let errors: Vec<_> = (status.errors.iter())
            .filter(|error| error.bit != ErrorBit::M2s(M2sError::StreamParity))
            .collect();
        prop_assert!(errors.is_empty(), "{:?}", errors);
        if status.errors.is_empty() {
            prop_assert_eq!(outcome, WaitOutcome::Met);
            let counters = rig.system.counters();
            let counts = [counters.tx_descriptors, counters.rx_descriptors];
            prop_assert_eq!(counts, [u64::from(tx_count), u64::from(rx_count)]);
        }
    }

    /// Where a transpose goes, and how long the place is: the same rule on both sides.
    #[test]
    fn transposes_that_go_wrong_go_wrong_by_the_same_rule(
        columns in 1u16..129,
        offset in prop_oneof![select(vec![0u64, 32, 33, 0x2_ffe0, 0x3_0000, 0x3_ffe0]), 0u64..0x4_0000],
        partition in prop_oneof![2 => Just(0u64), 1 => 0u64..128],
        longer in prop_oneof![3 => Just(0u64), 1 => 1u64..100],
        outside in prop::bool::weighted(0.2),
        arch in select(vec![Arch::V3, Arch::V4]),
    ) {
        let map = &arch.spec().map;
        let tile = |at: Addr, longer| {
            let len = 32 * u64::from(columns);
            TransposePacket {
                source: Buffer { at: Addr(SRC), len },
                destination: Buffer { at, len: len + longer },
                dims: TransposeDims([1, 16, columns, 1]),
                element_bytes: 2,
                permutation: Permutation::from_name("WYXZ").unwrap(),
            }
        };
        let place = match outside {
            true => Addr(DST + offset),
            false => Addr(map.tpb[0].0 + partition * map.state_buffer.stride + offset),
        };
        let mut vring = Vring::new(arch, "tile_0").unwrap();
        let refused = vring.add_dma_packet_transpose(&tile(place, longer)).err();
        // Past the vring: a legal one, led elsewhere.
        vring.free();
        vring.add_dma_packet_transpose(&tile(map.tpb[0], 0)).unwrap();
        let mut program = program(&vring);
        let target = TransposeTarget::from_addr(RxDesc::from(program.rx[0]).buf1_ptr).unwrap();
        let mut rx = RxDesc::from(program.rx[0]);
        rx.buf1_ptr = match outside {
            true => place,
            false => target.with_partition(partition as u8).with_offset(offset as u32).addr(),
        };
        rx.len_ctrl = rx.len_ctrl.with_byte_len(32 * u32::from(columns) + longer as u32).unwrap();
        program.rx[0] = rx.into();
        let mut rig = Rig::new(arch);
        rig.start(0, 0, &program);
        rig.wait(Condition::Idle);
        let status = rig.system.engine_status(EngineId(0)).unwrap();
        let reported = status.errors.iter().find_map(|error| error.reason);
        let expected = refused.map(|refused| match refused {
            VringError::Transpose { source, .. } => Reason::Transpose(source),
            other => panic!("{other}"),
        });
        prop_assert_eq!(reported, expected, "{:?}", status.errors);
    }

    /// More descriptors than a packet may have, or destinations of another size than the packet writes.
    #[test]
    fn packets_of_a_wrong_shape_are_refused_by_both(
        sources in 1usize..140,
        destinations in 1usize..140,
        missing in prop_oneof![3 => Just(0u64), 1 => 1u64..8],
        arch in any_arch(),
    ) {
        // As many bytes for both, in pieces of at least 8.
        let bytes = 8 * (sources.max(destinations) as u64);
        let cut = |count: usize, bytes: u64| {
            let mut lens = vec![8; count];
            lens[0] += bytes - 8 * count as u64;
            lens
        };
        let from = buffers(SRC, &cut(sources, bytes));
        let mut to = buffers(DST, &cut(destinations, bytes));
        to.last_mut().unwrap().len -= missing;
        let mut vring = Vring::new(arch, "shape_0").unwrap();
        let refused = vring.add_dma_packet(&CopyPacket::new(&from, &to)).err();
        let limits = arch.spec().limits;
        let too_many = [(sources, limits.tx_descs_per_packet), (destinations, limits.rx_descs_per_packet)]
            .map(|(count, limit)| count > limit as usize);
        match &refused {
            None => prop_assert!(too_many == [false; 2] && missing == 0),
            Some(VringError::Packet { source: CopyPacketError::Limit(_), .. }) => {
                prop_assert_ne!(too_many, [false; 2]);
            }
            Some(VringError::Packet { source: CopyPacketError::Sizes { .. }, .. }) => {
                prop_assert!(missing > 0);
            }
            Some(other) => prop_assert!(false, "{}", other),
        }
        // Past the vring.
        let desc = |buffer: &Buffer, word| Descriptor {
            words: [0x0100_0000 | buffer.len as u32, word, buffer.at.0 as u32, 0],
        };
        let mut tx: Vec<_> = from.iter().map(|buffer| desc(buffer, 0x0108_0003)).collect();
        for (index, desc) in tx.iter_mut().enumerate() {
            desc.words[0] = desc.len_ctrl().in_packet(index == 0, index + 1 == sources).into_bits();
        }
        let rx = to.iter().map(|buffer| desc(buffer, 0)).collect();
        let mut rig = Rig::new(arch);
        rig.poke(SRC, &pattern(0x1000, 1));
        rig.start(0, 0, &Program { tx, rx });
        let outcome = rig.wait(Condition::Idle);
        let status = rig.system.engine_status(EngineId(0)).unwrap();
        let healthy = status.errors.is_empty() && outcome == WaitOutcome::Met;
        prop_assert_eq!(healthy, refused.is_none(), "{:?} {:?}", refused, status.errors);
    }
}
