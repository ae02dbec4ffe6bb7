//! Random programs against a plain model: whatever is authored and however it is edited, the ring's
//! invariants hold, and running it moves exactly the bytes that were asked for.
//!
//! Two runners execute the rings: an interpreter in this file, written from the descriptor's
//! description alone, and the simulated machine.

mod common;

use common::{MS, Rig, pattern};
use proptest::prelude::*;
use udma_sim::arch::regs::Direction;
use udma_sim::arch::{Arch, EngineId};
use udma_sim::desc::{BarrierMode, Buffer, CopyPacket, Descriptor, TemplatePtr, packets};
use udma_sim::host::{
    Bus, MemRefTable, Pattern, Pring, PseudoCopy, QueueOptions, QueuePair, Step, Tensor, TensorSet,
    Vring, VringPages,
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
    let mut tx = Pring::new(Direction::M2s, Addr(0x10_0000), length).unwrap();
    let mut rx = Pring::new(Direction::S2m, Addr(0x80_0000), length).unwrap();
    vring
        .dump_to_pring(&mut rig.system, &mut tx, &mut rx)
        .unwrap();
    let options = QueueOptions::default();
    let queue =
        QueuePair::init(&mut rig.system, arch, EngineId(0), 0, (&tx, &rx), options).unwrap();
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
