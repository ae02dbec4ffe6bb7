//! Random programs against a plain model: whatever is authored and however it is edited, the ring's
//! invariants hold, and running it moves exactly the bytes that were asked for.
//!
//! Two runners execute the rings: an interpreter in this file, written from the descriptor's
//! description alone, and the simulated machine.

mod common;

use common::{MS, Rig, pattern, prings, queue_pair};
use proptest::prelude::*;
use udma_sim::arch::{Arch, EngineId};
use udma_sim::desc::{BarrierMode, Buffer, CopyPacket, Descriptor, TemplatePtr, packets};
use udma_sim::host::{
    Bus, MemRefTable, Pattern, PseudoCopy, QueuePair, Step, Tensor, TensorSet, Vring, VringPages,
};
use udma_sim::system::{Condition, WaitOutcome};
use udma_sim::units::Addr;

/// Sources lie in one half of the test's memory, destinations in the other.
const HALF: u64 = 1 << 20;
const MEMORY: usize = 2 * HALF as usize;
/// Where the test's memory lies in the machine.
const BASE: u64 = 0x1000_0000;

/// A call on a vring.
#[derive(Clone, Debug)]
enum Call {
    Transfer {
        src: u64,
        len: u64,
        ex: bool,
    },
    Packet {
        src: u64,
        sources: Vec<u64>,
        cuts: Vec<u64>,
        barrier: u32,
    },
    Reverse {
        src: u64,
        count: u32,
        element: u32,
    },
    Matrix {
        src: u64,
        rows: u32,
        columns: u32,
        element: u32,
    },
    Gather {
        table: u64,
        row: u32,
        indices: Vec<u32>,
    },
    DmbOnLast,
    Pack {
        max: u64,
    },
    Rewrite {
        base: u64,
        size: u64,
    },
}

fn call() -> impl Strategy<Value = Call> {
    let src = 0..HALF / 4;
    prop_oneof![
        4 => (src.clone(), 0u64..200_000, any::<bool>())
            .prop_map(|(src, len, ex)| Call::Transfer { src, len, ex }),
        4 => (src.clone(), prop::collection::vec(1u64..9000, 1..8), prop::collection::vec(1u64..9000, 0..8), 0u32..4)
            .prop_map(|(src, sources, cuts, barrier)| Call::Packet { src, sources, cuts, barrier }),
        1 => (src.clone(), 1u32..40, 1u32..64)
            .prop_map(|(src, count, element)| Call::Reverse { src, count, element }),
        1 => (src.clone(), 1u32..12, 1u32..12, 1u32..16)
            .prop_map(|(src, rows, columns, element)| Call::Matrix { src, rows, columns, element }),
        1 => (src, 1u32..200, prop::collection::vec(0u32..30, 0..12))
            .prop_map(|(table, row, indices)| Call::Gather { table, row, indices }),
        1 => Just(Call::DmbOnLast),
        2 => (70_000u64..500_000).prop_map(|max| Call::Pack { max }),
        1 => (0..HALF / 4, 0..HALF / 8).prop_map(|(base, size)| Call::Rewrite { base, size }),
    ]
}

/// A vring and what its program should do to memory, byte for byte.
struct Model {
    vring: Vring,
    /// For each byte of the destination half, which source byte it will hold.
    wanted: Vec<Option<u64>>,
    /// Destinations are handed out in order, so that no two overlap.
    next: u64,
    bytes: u64,
}

impl Model {
    fn new(arch: Arch) -> Model {
        Model {
            vring: Vring::new(arch, "random_0").unwrap(),
            wanted: vec![None; HALF as usize],
            next: 0,
            bytes: 0,
        }
    }

    /// A place for `len` bytes; none if the destinations are used up.
    fn place(&mut self, len: u64) -> Option<u64> {
        let at = self.next;
        (at + len <= HALF).then(|| {
            self.next += len;
            at
        })
    }

    fn want(&mut self, dst: u64, src: u64, len: u64) {
        for n in 0..len {
            self.wanted[(dst + n) as usize] = Some(src + n);
        }
        self.bytes += len;
    }

    fn apply(&mut self, call: &Call) {
        let arch = self.vring.arch();
        let src_at = |src: u64| Addr(BASE + src);
        let dst_at = |dst: u64| Addr(BASE + HALF + dst);
        match call {
            Call::Transfer { src, len, ex } => {
                let Some(dst) = self.place(*len) else { return };
                let (from, to) = (src_at(*src), dst_at(dst));
                match ex {
                    true => self.vring.add_desc_transfer_ex(from, to, *len).unwrap(),
                    false => self.vring.add_desc_transfer(from, to, *len).unwrap(),
                }
                self.want(dst, *src, *len);
            }
            Call::Packet {
                src,
                sources,
                cuts,
                barrier,
            } => {
                let total = sources.iter().sum();
                let Some(dst) = self.place(total) else { return };
                let mut from = Vec::new();
                let mut at = *src;
                let mut done = 0;
                for &len in sources {
                    from.push(Buffer {
                        at: src_at(at),
                        len,
                    });
                    self.want(dst + done, at, len);
                    done += len;
                    // A gap between one source and the next.
                    at += len + 3;
                }
                let mut to = Vec::new();
                let mut left = total;
                for &cut in cuts {
                    if cut < left {
                        to.push(Buffer {
                            at: dst_at(dst + total - left),
                            len: cut,
                        });
                        left -= cut;
                    }
                }
                to.push(Buffer {
                    at: dst_at(dst + total - left),
                    len: left,
                });
                let mut packet = CopyPacket::new(&from, &to);
                let barrier = BarrierMode::try_from(*barrier).unwrap();
                if barrier != BarrierMode::StrongOrder || arch != Arch::V2 {
                    packet.barrier = barrier;
                }
                let counts = self.vring.add_dma_packet(&packet).unwrap();
                assert_eq!(
                    (counts.tx as usize, counts.rx as usize),
                    (from.len(), to.len())
                );
            }
            Call::Reverse {
                src,
                count,
                element,
            } => {
                let len = u64::from(*count) * u64::from(*element);
                let Some(dst) = self.place(len) else { return };
                let last = src + len - u64::from(*element);
                let copy = PseudoCopy::Strided {
                    src: Pattern::line(src_at(last), *count, -1),
                    dst: Pattern::line(dst_at(dst), *count, 1),
                    element_bytes: *element,
                };
                self.vring.translate_pseudo_dma(&[copy]).unwrap();
                for n in 0..u64::from(*count) {
                    let element = u64::from(*element);
                    self.want(dst + n * element, last - n * element, element);
                }
            }
            Call::Matrix {
                src,
                rows,
                columns,
                element,
            } => {
                let (r, c, e) = (u64::from(*rows), u64::from(*columns), u64::from(*element));
                let Some(dst) = self.place(r * c * e) else {
                    return;
                };
                // Reads down the columns, writes along the rows: a transpose by elements.
                let copy = PseudoCopy::Strided {
                    src: Pattern {
                        base: src_at(*src),
                        outer: Step {
                            count: *columns,
                            step: 1,
                        },
                        inner: Step {
                            count: *rows,
                            step: i64::from(*columns),
                        },
                    },
                    dst: Pattern::line(dst_at(dst), rows * columns, 1),
                    element_bytes: *element,
                };
                self.vring.translate_pseudo_dma(&[copy]).unwrap();
                for column in 0..c {
                    for row in 0..r {
                        let to = dst + (column * r + row) * e;
                        self.want(to, src + (row * c + column) * e, e);
                    }
                }
            }
            Call::Gather {
                table,
                row,
                indices,
            } => {
                let bytes = u64::from(*row);
                let Some(dst) = self.place(bytes * indices.len() as u64) else {
                    return;
                };
                let copy = PseudoCopy::Gather {
                    table: src_at(*table),
                    row_bytes: *row,
                    indices: indices.clone(),
                    dst: dst_at(dst),
                };
                self.vring.translate_pseudo_dma(&[copy]).unwrap();
                for (n, index) in (0..).zip(indices) {
                    self.want(dst + n * bytes, table + u64::from(*index) * bytes, bytes);
                }
            }
            Call::DmbOnLast => {
                if self.vring.tx().used_desc_count() > 0 {
                    self.vring.set_dmb_on_last_packet().unwrap();
                }
            }
            Call::Pack { max } => self.pack(*max),
            Call::Rewrite { base, size } => {
                // Sources move by a multiple of what memory repeats by, so the bytes stay the same.
                let descs = all(self.vring.tx());
                let (low, high) = (BASE + base, BASE + base + size);
                let inside = |at: u64| (low..high).contains(&at);
                let moved = self
                    .vring
                    .addr_rewrite(Addr(low), *size, Addr(low + HALF / 2))
                    .unwrap();
                let mut expected = 0;
                for (before, after) in descs.iter().zip(all(self.vring.tx())) {
                    let at = |desc: &Descriptor| {
                        u64::from(desc.words[3]) << 32 | u64::from(desc.words[2])
                    };
                    let by = if inside(at(before)) { HALF / 2 } else { 0 };
                    expected += u32::from(by > 0);
                    assert_eq!(at(&after), at(before) + by);
                }
                assert_eq!(moved, expected);
            }
        }
    }

    /// Packs everything; what must stay whole may be beyond the limit, then nothing changes.
    fn pack(&mut self, max: u64) {
        let limits = self.vring.arch().spec().limits;
        let used = self.vring.tx().used_desc_count();
        let before = all(self.vring.tx());
        let count = packets(&before, u32::MAX - 1).count();
        match self.vring.pack_descs(0, used, max, count as u32) {
            Ok(delta) => {
                let after = all(self.vring.tx());
                let found: Vec<_> = packets(&after, limits.tx_descs_per_packet).collect();
                assert_eq!(found.len() as i64, count as i64 + delta);
                assert!(found.iter().all(|packet| packet.byte_len() <= max));
                let again = self.vring.pack_descs(0, used, max, found.len() as u32);
                assert_eq!(again, Ok(0));
                assert!(after == all(self.vring.tx()), "packing again changed a bit");
            }
            Err(_) => assert!(before == all(self.vring.tx()), "a refusal changed a bit"),
        }
    }

    fn check_invariants(&self) {
        let vring = &self.vring;
        let limits = vring.arch().spec().limits;
        assert_eq!(
            (vring.total_tx_size(), vring.total_rx_size()),
            (self.bytes, self.bytes)
        );
        let (tx, rx) = (all(vring.tx()), all(vring.rx()));
        let sum = |descs: &[Descriptor]| -> u64 {
            descs
                .iter()
                .map(|desc| u64::from(desc.len_ctrl().byte_len()))
                .sum()
        };
        assert_eq!((sum(&tx), sum(&rx)), (self.bytes, self.bytes));
        for packet in packets(&tx, limits.tx_descs_per_packet) {
            assert_eq!(packet.faults, [], "packet at {}", packet.start);
            assert!(packet.descs.last().unwrap().len_ctrl().last());
            let concats = packet.descs.iter().filter(|desc| desc.len_ctrl().concat());
            assert_eq!(concats.count(), packet.descs.len() - 1);
        }
        assert!(rx.iter().all(|desc| {
            let len_ctrl = desc.len_ctrl();
            !len_ctrl.first() && !len_ctrl.last() && !len_ctrl.concat()
        }));
        for (half, descs) in [(vring.tx(), &tx), (vring.rx(), &rx)] {
            for (idx, desc) in (0..).zip(descs.iter()) {
                assert_eq!(half.get(idx), Some(desc));
                let page = half.find_page_by_idx(idx >> 16).unwrap();
                assert_eq!(page[(idx & 0xffff) as usize], *desc);
            }
        }
    }

    fn check_memory(&self, before: &[u8], after: &[u8]) {
        let half = HALF as usize;
        assert!(after[..half] == before[..half], "a source changed");
        for (at, wanted) in self.wanted.iter().enumerate() {
            let expected = match wanted {
                Some(src) => before[*src as usize],
                None => before[half + at],
            };
            assert_eq!(after[half + at], expected, "destination byte {at:#x}");
        }
    }
}

fn all(half: &VringPages) -> Vec<Descriptor> {
    half.runs().flatten().copied().collect()
}

/// Memory whose source half repeats after a quarter of everything, so that rewritten sources read the
/// same.
fn memory() -> Vec<u8> {
    let mut bytes = pattern(MEMORY, 11);
    let (quarter, half) = (HALF as usize / 2, HALF as usize);
    bytes.copy_within(..quarter, quarter);
    bytes[half..].fill(0xee);
    bytes
}

/// Executes a ring in order: gathers a packet's bytes, scatters them to Rx descriptors, starts each
/// packet on a fresh one.
fn interpret(vring: &Vring, memory: &mut [u8]) {
    let (tx, rx) = (all(vring.tx()), all(vring.rx()));
    let fields = |desc: &Descriptor| {
        let len = match desc.words[0] & 0xffff {
            0 => 65536,
            len => len as usize,
        };
        let at = u64::from(desc.words[3]) << 32 | u64::from(desc.words[2]);
        ((at - BASE) as usize, len)
    };
    let mut rx = rx.iter();
    let mut packet = Vec::new();
    for desc in &tx {
        if desc.words[0] & 1 << 26 != 0 {
            assert!(packet.is_empty(), "FIRST inside a packet");
        }
        let (at, len) = fields(desc);
        packet.extend_from_slice(&memory[at..at + len]);
        if desc.words[0] & 1 << 27 != 0 {
            let mut bytes = &packet[..];
            while !bytes.is_empty() {
                let (at, len) = fields(rx.next().expect("an Rx descriptor"));
                let (now, rest) = bytes.split_at(len.min(bytes.len()));
                memory[at..at + now.len()].copy_from_slice(now);
                bytes = rest;
            }
            packet.clear();
        }
    }
    assert!(packet.is_empty() && rx.next().is_none());
}

/// Executes a ring on the machine; returns the test's memory afterwards.
fn run_on_machine(vring: &Vring, before: &[u8]) -> Vec<u8> {
    let arch = vring.arch();
    let mut rig = Rig::new(arch);
    rig.poke(BASE, before);
    let descs = vring
        .tx()
        .used_desc_count()
        .max(vring.rx().used_desc_count());
    let length = descs.next_multiple_of(16).max(32);
    let (mut tx, mut rx) = prings(0x10_0000, 0x80_0000, length);
    vring
        .dump_to_pring(&mut rig.system, &mut tx, &mut rx)
        .unwrap();
    let queue = queue_pair(&mut rig.system, arch, EngineId(0), 0, (&tx, &rx));
    if tx.used_desc_count() > 0 {
        queue
            .trigger(&mut rig.system, tx.used_desc_count(), rx.used_desc_count())
            .unwrap();
    }
    assert_eq!(rig.system.run_until(&Condition::Idle, MS), WaitOutcome::Met);
    let status = rig.system.engine_status(EngineId(0)).unwrap();
    assert_eq!(status.errors, []);
    let mut after = vec![0; before.len()];
    rig.system.read_mem(Addr(BASE), &mut after).unwrap();
    after
}

fn program(arch: Arch, calls: &[Call]) -> Model {
    let mut model = Model::new(arch);
    for call in calls {
        model.apply(call);
    }
    model
}

fn arch() -> impl Strategy<Value = Arch> {
    prop::sample::select(&Arch::ALL)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_programs_keep_their_invariants_and_move_their_bytes(
        arch in arch(),
        calls in prop::collection::vec(call(), 0..14),
    ) {
        let model = program(arch, &calls);
        model.check_invariants();
        let before = memory();
        let mut after = before.clone();
        interpret(&model.vring, &mut after);
        model.check_memory(&before, &after);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The machine and the interpreter agree, and packing changes nothing that ends up in memory.
    #[test]
    fn the_machine_moves_the_same_bytes_packed_or_not(
        arch in arch(),
        calls in prop::collection::vec(call(), 1..10),
        max in 70_000u64..1_000_000,
    ) {
        let mut model = program(arch, &calls);
        let before = memory();
        let unpacked = run_on_machine(&model.vring, &before);
        model.check_memory(&before, &unpacked);
        model.pack(max);
        let packed = run_on_machine(&model.vring, &before);
        prop_assert!(packed == unpacked);
    }
}

/// One template, two sets of tensors, two rings, each run on a machine of its own.
#[test]
fn a_template_loads_different_tensors() {
    for arch in Arch::ALL {
        let symbol = |var_id, offset| Addr::from(TemplatePtr::symbol(var_id, offset).unwrap());
        let mut template = Vring::new_template(arch, "load_0", 2).unwrap();
        template
            .add_desc_transfer(symbol(0, 16), symbol(1, 0), 70_000)
            .unwrap();
        template
            .add_desc_transfer(symbol(0, 0), symbol(2, 5), 16)
            .unwrap();
        let mut names = MemRefTable::default();
        for (var_id, name) in [(0, "staged"), (1, "weights"), (2, "bias")] {
            names.insert(var_id, name);
        }
        let before = memory();
        for (weights, bias) in [(HALF, HALF + 0x4_0000), (HALF + 0x2_0001, HALF)] {
            let mut tensors = TensorSet::default();
            for (name, at, size) in [
                ("staged", 0x100, 80_000),
                ("weights", weights, 70_000),
                ("bias", bias, 64),
            ] {
                tensors.insert(
                    name,
                    Tensor {
                        pa: Addr(BASE + at),
                        size,
                    },
                );
            }
            let ring = template.build_from_template(&names, &tensors).unwrap();
            let after = run_on_machine(&ring, &before);
            let mut wanted = before.clone();
            wanted.copy_within(0x110..0x110 + 70_000, weights as usize);
            wanted.copy_within(0x100..0x110, bias as usize + 5);
            assert!(after == wanted, "{arch}");
        }
    }
}

/// A call that may well be refused.
#[derive(Clone, Debug)]
enum Wild {
    Transfer {
        src: u64,
        dst: u64,
        len: u64,
        barrier: u32,
    },
    Event {
        block: u32,
        event: u32,
    },
    Semaphore {
        block: u32,
        semaphore: u32,
    },
    FromSb {
        core: u32,
        engine: u32,
        semaphore: u32,
    },
    Packet {
        sources: Vec<u64>,
        destinations: Vec<u64>,
        barrier: u32,
        notify: bool,
        meta_ctrl: u32,
    },
    Cce {
        op: u8,
        sources: usize,
        destinations: usize,
        elements: u32,
        dtypes: [u8; 3],
        scales: usize,
        constant: bool,
    },
    Transpose {
        dims: [u16; 4],
        element: u32,
        permutation: u8,
        to: u64,
    },
    Flush {
        core: u32,
    },
    Pack {
        start: u32,
        end: u32,
        max: u64,
    },
    Dmb,
    Embed {
        csr: u8,
        semaphore: u16,
    },
    Rewrite {
        base: u64,
        size: u64,
        new_base: u64,
    },
    Pseudo {
        base: u64,
        count: u32,
        step: i64,
        element: u32,
    },
}

fn wild() -> impl Strategy<Value = Wild> {
    let address = || prop_oneof![0u64..1 << 40, any::<u64>(), (u64::MAX - 70_000)..=u64::MAX];
    let size = || prop_oneof![0u64..200_000, any::<u64>()];
    let few = || prop_oneof![0u32..4, any::<u32>()];
    let lens = || prop::collection::vec(prop_oneof![4 => 0u64..64, 1 => 60_000u64..140_000], 0..70);
    prop_oneof![
        (address(), address(), size(), 0u32..4).prop_map(|(src, dst, len, barrier)| {
            Wild::Transfer {
                src,
                dst,
                len,
                barrier,
            }
        }),
        (few(), 0u32..300).prop_map(|(block, event)| Wild::Event { block, event }),
        (few(), 0u32..300).prop_map(|(block, semaphore)| Wild::Semaphore { block, semaphore }),
        (few(), any::<u32>(), 0u32..300).prop_map(|(core, engine, semaphore)| Wild::FromSb {
            core,
            engine,
            semaphore
        }),
        (
            lens(),
            lens(),
            0u32..4,
            any::<bool>(),
            prop_oneof![Just(0x0108_0003u32), any::<u32>()]
        )
            .prop_map(
                |(sources, destinations, barrier, notify, meta_ctrl)| Wild::Packet {
                    sources,
                    destinations,
                    barrier,
                    notify,
                    meta_ctrl,
                }
            ),
        (
            0u8..8,
            0usize..35,
            0usize..4,
            prop_oneof![Just(32u32), 0u32..3000],
            any::<[u8; 3]>(),
            0usize..35,
            any::<bool>()
        )
            .prop_map(
                |(op, sources, destinations, elements, dtypes, scales, constant)| Wild::Cce {
                    op,
                    sources,
                    destinations,
                    elements,
                    dtypes,
                    scales,
                    constant,
                }
            ),
        (any::<[u16; 4]>(), 0u32..10, 0u8..12, address()).prop_map(
            |(dims, element, permutation, to)| {
                let dims = dims.map(|dim| dim % 20);
                Wild::Transpose {
                    dims,
                    element,
                    permutation,
                    to,
                }
            }
        ),
        few().prop_map(|core| Wild::Flush { core }),
        (
            0u32..40,
            0u32..40,
            prop_oneof![64u64..1 << 20, any::<u64>()]
        )
            .prop_map(|(start, end, max)| Wild::Pack { start, end, max }),
        Just(Wild::Dmb),
        (0u8..30, 0u16..300).prop_map(|(csr, semaphore)| Wild::Embed { csr, semaphore }),
        (address(), size(), address()).prop_map(|(base, size, new_base)| Wild::Rewrite {
            base,
            size,
            new_base
        }),
        (address(), 0u32..50, -100i64..100, 0u32..64).prop_map(|(base, count, step, element)| {
            Wild::Pseudo {
                base,
                count,
                step,
                element,
            }
        }),
    ]
}

/// Makes the call; whether it was taken.
fn make(vring: &mut Vring, call: &Wild) -> bool {
    use udma_sim::desc::{
        CceConstant, CceInfo, CcePacket, CceType, DType, MetaCtrl, Permutation, TransposeDims,
        TransposePacket,
    };
    use udma_sim::host::EventAction;
    let barrier = |number: u32| BarrierMode::try_from(number).unwrap();
    match call {
        Wild::Transfer {
            src,
            dst,
            len,
            barrier: mode,
        } => vring
            .add_desc_transfer_with_barrier(Addr(*src), Addr(*dst), *len, barrier(*mode))
            .is_ok(),
        Wild::Event { block, event } => vring
            .add_desc_event(*block, *event, EventAction::Set)
            .is_ok(),
        Wild::Semaphore { block, semaphore } => {
            vring.add_desc_semaphore_inc(*block, *semaphore).is_ok()
        }
        Wild::FromSb {
            core,
            engine,
            semaphore,
        } => vring
            .add_desc_semaphore_inc_from_sb(*core, EngineId(*engine), 0, *semaphore)
            .is_ok(),
        Wild::Packet {
            sources,
            destinations,
            barrier: mode,
            notify,
            meta_ctrl,
        } => {
            let buffers = |lens: &[u64]| -> Vec<Buffer> {
                lens.iter()
                    .map(|len| Buffer {
                        at: Addr(0x1000),
                        len: *len,
                    })
                    .collect()
            };
            let sources = buffers(sources);
            let total: u64 = sources.iter().map(|buffer| buffer.len).sum();
            let mut destinations = buffers(destinations);
            // Most would differ in size and be refused for that alone.
            let rest: u64 = destinations.iter().map(|buffer| buffer.len).sum();
            destinations.push(Buffer {
                at: Addr(0x2000),
                len: total.saturating_sub(rest),
            });
            let mut packet = CopyPacket::new(&sources, &destinations);
            packet.barrier = barrier(*mode);
            packet.notification_mask = *notify;
            packet.meta_ctrl = MetaCtrl::from_bits(*meta_ctrl);
            vring.add_dma_packet(&packet).is_ok()
        }
        Wild::Cce {
            op,
            sources,
            destinations,
            elements,
            dtypes,
            scales,
            constant,
        } => {
            let dtype = |code: u8| DType::try_from(code % 15 + 1).unwrap();
            let (sources, destinations) = (
                vec![Addr(0x1000); *sources],
                vec![Addr(0x2000); *destinations],
            );
            let scales = vec![0.5; *scales];
            let mut packet = CcePacket::new(&sources, &destinations, *elements, dtype(dtypes[0]));
            packet.acc_dtype = dtype(dtypes[1]);
            packet.out_dtype = dtype(dtypes[2]);
            let mut info = CceInfo::scaled(&scales);
            if *constant {
                info.constant = Some(CceConstant {
                    dtype: dtype(dtypes[1]),
                    bits: 1,
                });
            }
            packet.cce_info = (!scales.is_empty() || *constant).then_some(info);
            vring
                .add_dma_packet_cce_int(CceType::from_bits(*op), &packet)
                .is_ok()
        }
        Wild::Transpose {
            dims,
            element,
            permutation,
            to,
        } => {
            let dims = TransposeDims(*dims);
            let len = dims.elements() * u64::from(*element);
            let packet = TransposePacket {
                source: Buffer {
                    at: Addr(0x1000),
                    len,
                },
                destination: Buffer { at: Addr(*to), len },
                dims,
                element_bytes: *element,
                permutation: Permutation::from_index(*permutation).unwrap(),
            };
            vring.add_dma_packet_transpose(&packet).is_ok()
        }
        Wild::Flush { core } => vring.add_dma_packet_transpose_flush(*core).is_ok(),
        Wild::Pack { start, end, max } => vring.pack_descs(*start, *end, *max, 0).is_ok(),
        Wild::Dmb => vring.set_dmb_on_last_packet().is_ok(),
        Wild::Embed { csr, semaphore } => vring
            .set_embedded_semaphore_inc_on_last_desc(*csr, *semaphore, true)
            .is_ok(),
        Wild::Rewrite {
            base,
            size,
            new_base,
        } => vring
            .addr_rewrite(Addr(*base), *size, Addr(*new_base))
            .is_ok(),
        Wild::Pseudo {
            base,
            count,
            step,
            element,
        } => {
            let copy = PseudoCopy::Strided {
                src: Pattern::line(Addr(*base), *count, *step),
                dst: Pattern::line(Addr(0x1000), *count, 1),
                element_bytes: *element,
            };
            vring.translate_pseudo_dma(&[copy]).is_ok()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever is asked for: a refused call changes nothing, and what is taken keeps the accounts and
    /// the packets in order.
    #[test]
    fn any_call_is_taken_whole_or_not_at_all(
        arch in arch(),
        calls in prop::collection::vec(wild(), 0..40),
    ) {
        let mut vring = Vring::new(arch, "wild_0").unwrap();
        let limits = arch.spec().limits;
        for call in &calls {
            // A single huge transfer would fill the test's memory.
            if let Wild::Transfer { len, .. } = call
                && (1 << 24..1 << 41).contains(len)
            {
                continue;
            }
            let before = (all(vring.tx()), all(vring.rx()), vring.total_tx_size(), vring.total_rx_size());
            let taken = make(&mut vring, call);
            let after = (all(vring.tx()), all(vring.rx()), vring.total_tx_size(), vring.total_rx_size());
            prop_assert!(taken || before == after, "{:?} was refused and left a mark", call);
            let (tx, rx, total_tx, total_rx) = after;
            let bytes = |descs: &[Descriptor]| -> u64 {
                let data = descs.iter().filter(|desc| !desc.len_ctrl().meta());
                data.map(|desc| u64::from(desc.len_ctrl().byte_len())).sum()
            };
            prop_assert_eq!((bytes(&tx), bytes(&rx)), (total_tx, total_rx));
            for packet in packets(&tx, limits.tx_descs_per_packet) {
                prop_assert_eq!(&packet.faults, &vec![], "{:?}", call);
            }
        }
    }
}

/// A machine with a vring dumped to engine 0, queue 0, and its queue.
fn dumped(vring: &mut Vring, options: udma_sim::host::DumpOptions) -> (Rig, QueuePair) {
    let arch = vring.arch();
    let mut rig = Rig::new(arch);
    let (mut tx, mut rx) = prings(0x10_0000, 0x80_0000, 64);
    vring
        .dump_to_pring_with(&mut rig.system, &mut tx, &mut rx, options)
        .unwrap();
    let queue = queue_pair(&mut rig.system, arch, EngineId(0), 0, (&tx, &rx));
    (rig, queue)
}

#[test]
fn padding_is_harmless_and_the_trap_stops_a_doorbell_too_many() {
    for arch in Arch::ALL {
        for (doorbell, healthy) in [(16, true), (17, false)] {
            let mut vring = Vring::new(arch, "trap_0").unwrap();
            vring
                .add_desc_transfer(Addr(BASE), Addr(BASE + HALF), 3 * 65536)
                .unwrap();
            let options = udma_sim::host::DumpOptions {
                tx_padded: Some(16),
                rx_padded: Some(16),
                free_on_dump: true,
                trap: true,
            };
            let (mut rig, queue) = dumped(&mut vring, options);
            let bytes = pattern(3 * 65536, 2);
            rig.poke(BASE, &bytes);
            queue.trigger(&mut rig.system, doorbell, doorbell).unwrap();
            rig.system.run_until(&Condition::Idle, MS);
            let status = rig.system.engine_status(EngineId(0)).unwrap();
            assert_eq!(status.errors.is_empty(), healthy, "{arch} {doorbell}");
            // The abort stops whatever is still on its way.
            assert!(!healthy || rig.peek(BASE + HALF, bytes.len()) == bytes);
        }
    }
}

#[test]
fn an_embedded_update_and_one_from_the_state_buffer_increment_their_semaphores() {
    let read = |rig: &mut Rig, block, semaphore| {
        let map = &rig.arch.spec().map;
        let cell = map.semaphore(block, udma_sim::arch::EventBlock::SEM_READ, semaphore);
        let bytes = rig.peek(cell.unwrap().0, 4);
        u32::from_le_bytes(bytes.try_into().unwrap())
    };
    let mut vring = Vring::new(Arch::V4, "emb_0").unwrap();
    vring
        .add_desc_transfer(Addr(BASE), Addr(BASE + HALF), 65540)
        .unwrap();
    // The fourth TOP_SP of the second die, as an embedded update names it: block 8 + 10 + 3.
    vring
        .set_embedded_semaphore_inc_on_last_desc(19, 200, true)
        .unwrap();
    let (mut rig, queue) = dumped(&mut vring, Default::default());
    queue.trigger(&mut rig.system, 2, 2).unwrap();
    rig.idle();
    assert_eq!(read(&mut rig, 21, 200), 1);

    let mut vring = Vring::new(Arch::V3, "sb_0").unwrap();
    let engine = EngineId(5);
    for _ in 0..3 {
        vring
            .add_desc_semaphore_inc_from_sb(1, engine, 2, 9)
            .unwrap();
    }
    let (mut rig, queue) = dumped(&mut vring, Default::default());
    let word = udma_sim::host::sb_increment_word(Arch::V3, 1, engine).unwrap();
    rig.poke(word.0, &7u32.to_le_bytes());
    queue.trigger(&mut rig.system, 3, 3).unwrap();
    rig.idle();
    assert_eq!(read(&mut rig, 2, 9), 21);
}

/// Copies around a reduction and a transpose, packed or not: the same memory on the machine.
#[test]
fn packing_around_other_operations_changes_nothing() {
    use udma_sim::desc::{CcePacket, DType, KbinOp, Permutation, TransposeDims, TransposePacket};
    for arch in Arch::ALL {
        let mut vring = Vring::new(arch, "mixed_0").unwrap();
        let copies = |vring: &mut Vring, from: u64| {
            for n in from..from + 9 {
                let (src, dst) = (Addr(BASE + 100 * n), Addr(BASE + HALF + 100 * n));
                let none = BarrierMode::None;
                vring
                    .add_desc_transfer_with_barrier(src, dst, 100, none)
                    .unwrap();
            }
        };
        copies(&mut vring, 0);
        let sources = [Addr(BASE), Addr(BASE + 128), Addr(BASE + 512)];
        let destination = [Addr(BASE + HALF + 0x1_0000)];
        let packet = CcePacket::new(&sources, &destination, 32, DType::Int32);
        vring.add_dma_packet_cce(KbinOp::Max, &packet).unwrap();
        copies(&mut vring, 20);
        if arch == Arch::V2 {
            let buffer = |at| Buffer {
                at: Addr(at),
                len: 96,
            };
            let packet = TransposePacket {
                source: buffer(BASE + 64),
                destination: buffer(BASE + HALF + 0x2_0000),
                dims: TransposeDims([2, 4, 3, 1]),
                element_bytes: 4,
                permutation: Permutation::from_name("ZXYW").unwrap(),
            };
            vring.add_dma_packet_transpose(&packet).unwrap();
            copies(&mut vring, 40);
        }
        let before = memory();
        let unpacked = run_on_machine(&vring, &before);
        assert!(unpacked != before);
        let used = vring.tx().used_desc_count();
        let delta = vring.pack_descs(0, used, 1 << 19, 0).unwrap();
        assert_eq!(delta, if arch == Arch::V2 { 5 } else { 3 });
        assert!(run_on_machine(&vring, &before) == unpacked, "{arch}");
    }
}
