//! The address space against a model that keeps a list of populated pieces and a map of bytes, and
//! nothing else.

use super::*;
use crate::arch::{AddressMap, Arch, EngineId};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeMap;

const HOST_BYTES: u64 = 1 << 20;

fn memory(arch: Arch) -> PhysicalMemory {
    PhysicalMemory::new(arch.spec(), HOST_BYTES).unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Hbm,
    StateBuffer,
    Host,
    Constant(u8),
    Events,
    SemRead,
    SemSet,
    SemInc,
    SemDec,
    Inert,
    Registers,
}

/// A run of bytes that an access must not leave.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    len: u64,
    kind: Kind,
    target: Target,
    /// Start of the target's window.
    base: u64,
}

/// Windows that contain holes, as (start, length).
fn windows(map: &AddressMap) -> Vec<(u64, u64)> {
    let hbm = map.hbm.iter().map(|h| (h.base.0, h.window));
    let buffers = map.tpb.iter().map(|t| (t.0, 32 << 20));
    let blocks = (0..map.event_block_count()).map(|b| (map.event_block(b).unwrap().0, 0x2000));
    hbm.chain(buffers).chain(blocks).collect()
}

fn pieces(map: &AddressMap) -> Vec<Piece> {
    let mut all = Vec::new();
    let mut add = |base: u64, offset: u64, len, kind, target| {
        let start = base + offset;
        all.push(Piece {
            start,
            len,
            kind,
            target,
            base,
        });
    };
    for (n, hbm) in map.hbm.iter().enumerate() {
        let target = Target::Hbm { stack: n as u8 };
        add(hbm.base.0, 0, hbm.populated, Kind::Hbm, target);
    }
    for (n, tpb) in map.tpb.iter().enumerate() {
        let target = Target::StateBuffer { core: n as u8 };
        for p in 0..128 {
            let len = map.state_buffer.populated;
            add(tpb.0, p << 18, len, Kind::StateBuffer, target);
        }
    }
    for block in 0..map.event_block_count() {
        let base = map.event_block(block).unwrap().0;
        for (offset, kind) in [
            (0, Kind::Events),
            (0x1000, Kind::SemRead),
            (0x1400, Kind::SemSet),
            (0x1800, Kind::SemInc),
            (0x1c00, Kind::SemDec),
        ] {
            add(base, offset, 0x400, kind, Target::EventBlock { block });
        }
    }
    add(map.event_clear.0, 0, 4, Kind::Constant(0), Target::Constant);
    add(map.event_set.0, 0, 4, Kind::Constant(1), Target::Constant);
    for engine in (0..map.engine_count()).map(EngineId) {
        let base = map.engine_base(engine).unwrap().0;
        let target = Target::UdmaRegisters { engine };
        add(base, 0, map.engine_window, Kind::Registers, target);
    }
    for (blocks, inert) in (0..).zip(map.inert) {
        for n in 0..inert.count as u16 {
            let base = inert.base.0 + u64::from(n) * inert.stride;
            let target = Target::InertRegisters { blocks, n };
            add(base, 0, inert.bytes, Kind::Inert, target);
        }
    }
    add(map.host.0, 0, HOST_BYTES, Kind::Host, Target::Host);
    all
}

/// The slow, obvious address space.
struct Model {
    pieces: Vec<Piece>,
    windows: Vec<(u64, u64)>,
    bytes: BTreeMap<u64, u8>,
    /// Semaphores by the address of their cell in the read window.
    semaphores: BTreeMap<u64, u32>,
}

impl Model {
    fn new(arch: Arch) -> Model {
        Model {
            pieces: pieces(&arch.spec().map),
            windows: windows(&arch.spec().map),
            bytes: BTreeMap::new(),
            semaphores: BTreeMap::new(),
        }
    }

    fn locate(&self, at: u64, len: u64) -> Result<Piece, AccessReason> {
        let holds = |(start, size): (u64, u64)| {
            u128::from(start) <= u128::from(at)
                && u128::from(at) < u128::from(start) + u128::from(size)
        };
        let Some(piece) = self.pieces.iter().find(|p| holds((p.start, p.len))) else {
            let hole = self.windows.iter().any(|w| holds(*w));
            return Err(if hole {
                AccessReason::Hole
            } else {
                AccessReason::Unmapped
            });
        };
        if u128::from(at) + u128::from(len) > u128::from(piece.start + piece.len) {
            return Err(AccessReason::CrossesBoundary);
        }
        let bytewise = matches!(
            piece.kind,
            Kind::Hbm | Kind::StateBuffer | Kind::Host | Kind::Registers
        );
        let whole = at.is_multiple_of(4) && len.is_multiple_of(4);
        if !(bytewise || whole) {
            return Err(AccessReason::Misaligned);
        }
        Ok(*piece)
    }

    fn read(&self, at: u64, len: u64) -> Result<Vec<u8>, AccessReason> {
        let piece = self.locate(at, len)?;
        let byte = |a: u64| match piece.kind {
            Kind::Constant(value) => [value, 0, 0, 0][(a % 4) as usize],
            Kind::SemRead => {
                let value = self.semaphores.get(&(a & !3)).copied().unwrap_or(0);
                value.to_le_bytes()[(a % 4) as usize]
            }
            _ => self.bytes.get(&a).copied().unwrap_or(0),
        };
        match piece.kind {
            Kind::Registers => Err(AccessReason::Registers),
            Kind::SemSet | Kind::SemInc | Kind::SemDec => Err(AccessReason::WriteOnly),
            _ => Ok((at..at + len).map(byte).collect()),
        }
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<Effects, AccessReason> {
        let len = data.len() as u64;
        let piece = self.locate(at, len)?;
        match piece.kind {
            Kind::Registers => return Err(AccessReason::Registers),
            Kind::Constant(_) | Kind::SemRead => return Err(AccessReason::ReadOnly),
            Kind::SemSet | Kind::SemInc | Kind::SemDec => {
                for (n, word) in data.chunks(4).enumerate() {
                    let word = u32::from_le_bytes(word.try_into().unwrap());
                    let cell = piece.base + 0x1000 + (at - piece.start) + 4 * n as u64;
                    let old = self.semaphores.get(&cell).copied().unwrap_or(0);
                    let new = match piece.kind {
                        Kind::SemSet => word,
                        Kind::SemInc => old.wrapping_add(word),
                        _ => old.wrapping_sub(word),
                    };
                    self.semaphores.insert(cell, new);
                }
            }
            // Of an event only the lowest bit is kept.
            Kind::Events => self.bytes.extend(
                (at..)
                    .zip(data)
                    .map(|(a, byte)| (a, if a % 4 == 0 { byte & 1 } else { 0 })),
            ),
            _ => self
                .bytes
                .extend((at..).zip(data).map(|(a, byte)| (a, *byte))),
        }
        let (first, count) = (((at - piece.start) / 4) as u32, (len / 4) as u32);
        Ok(match (piece.target, piece.kind) {
            (Target::EventBlock { .. }, _) if count == 0 => Effects::None,
            (Target::EventBlock { block }, Kind::Events) => Effects::Events {
                block,
                first,
                count,
            },
            (Target::EventBlock { block }, _) => Effects::Semaphores {
                block,
                first,
                count,
            },
            _ => Effects::None,
        })
    }
}

/// Checks `resolve` and a read of up to a few bytes at one address against the model.
fn agree(memory: &PhysicalMemory, model: &Model, at: u64, len: u64) {
    let want = model
        .locate(at, len)
        .map(|piece| (piece.target, at - piece.base));
    let got = memory.resolve(Addr(at), len);
    let found = got.map(|place| (place.target, place.offset));
    assert_eq!(found.map_err(|e| e.reason), want, "{at:#x} + {len}");
    if let Err(error) = got {
        assert_eq!((error.at, error.len), (Addr(at), len));
    }
    if len <= 64 {
        let mut out = vec![0xa5; len as usize];
        let got = memory.read(Addr(at), &mut out).map_err(|e| e.reason);
        assert_eq!(got.map(|()| out), model.read(at, len), "{at:#x} + {len}");
    }
}

#[test]
fn every_edge_of_every_piece() {
    for arch in Arch::ALL {
        let (memory, model) = (memory(arch), Model::new(arch));
        for piece in &model.pieces {
            let past = piece.start + piece.len;
            let before = piece.start.wrapping_sub(1);
            for at in [before, piece.start, past - 4, past - 1, past] {
                for len in [0, 1, 4, 5, 8] {
                    agree(&memory, &model, at, len);
                }
            }
            agree(&memory, &model, piece.start, piece.len);
            agree(&memory, &model, piece.start, piece.len + 1);
            agree(&memory, &model, piece.start, u64::MAX);
        }
        for (start, len) in &model.windows {
            agree(&memory, &model, start + len - 1, 1);
            agree(&memory, &model, start + len, 1);
        }
    }
}

/// A read or write: where, what, and whether it is a write.
type Access = (u64, Vec<u8>, bool);

/// Accesses near the edges of a few pieces: two of any kind and the windows of one event/semaphore
/// block.
fn program() -> impl Strategy<Value = (Arch, Vec<Access>)> {
    let arch = prop::sample::select(Arch::ALL.to_vec());
    let picks = prop::array::uniform3(any::<[Index; 2]>());
    (arch, picks).prop_flat_map(|(arch, [one, other, [block, _]])| {
        let mut by_kind: BTreeMap<Kind, Vec<Piece>> = BTreeMap::new();
        for piece in pieces(&arch.spec().map) {
            by_kind.entry(piece.kind).or_default().push(piece);
        }
        let kinds: Vec<Vec<Piece>> = by_kind.values().cloned().collect();
        let block = block.index(arch.spec().map.event_block_count() as usize);
        let windows = [
            Kind::Events,
            Kind::SemRead,
            Kind::SemSet,
            Kind::SemInc,
            Kind::SemDec,
        ];
        let chosen: Vec<Piece> = [one, other]
            .map(|[kind, n]| *n.get(kind.get::<Vec<Piece>>(&kinds)))
            .into_iter()
            .chain(windows.map(|kind| by_kind[&kind][block]))
            .collect();
        let access = (
            0..chosen.len(),
            any::<bool>(),
            -24i64..24,
            0..40usize,
            any::<bool>(),
        )
            .prop_flat_map(move |(n, at_end, delta, len, is_write)| {
                let piece = chosen[n];
                let edge = piece.start + if at_end { piece.len } else { 0 };
                // Cells mostly see whole cells, or little would ever be stored.
                let cells = matches!(piece.target, Target::EventBlock { .. }) && n + len > 3;
                let (delta, len) = if cells {
                    (delta & !3, len & !3)
                } else {
                    (delta, len)
                };
                let at = edge.wrapping_add_signed(delta);
                (
                    Just(at),
                    prop::collection::vec(any::<u8>(), len),
                    Just(is_write),
                )
            });
        (Just(arch), prop::collection::vec(access, 1..80))
    })
}

proptest! {
    #[test]
    fn accesses_near_edges_agree_with_the_model((arch, accesses) in program()) {
        let (mut memory, mut model) = (memory(arch), Model::new(arch));
        let mut near = Nearby::default();
        for (at, data, is_write) in accesses {
            // Wherever the last access fell.
            let (here, len) = (Addr(at), data.len() as u64);
            prop_assert_eq!(memory.resolve_near(here, len, &mut near), memory.resolve(here, len));
            if is_write {
                let got = memory.write(Addr(at), &data).map_err(|e| e.reason);
                prop_assert_eq!(got, model.write(at, &data), "{:#x} + {}", at, data.len());
            }
            agree(&memory, &model, at, data.len() as u64);
        }
        for (at, byte) in &model.bytes {
            match memory.slice(Addr(*at), 1) {
                Ok(slice) => prop_assert_eq!(slice, [*byte]),
                Err(_) => prop_assert_eq!(model.read(at & !3, 4).unwrap()[(at % 4) as usize], *byte),
            }
        }
        for (cell, value) in &model.semaphores {
            let mut out = [0; 4];
            memory.read(Addr(*cell), &mut out).unwrap();
            prop_assert_eq!(u32::from_le_bytes(out), *value);
        }
    }

    #[test]
    fn any_address_and_length_has_an_answer(
        at in any::<u64>(), shift in 0..64u32, len in any::<u64>(), len_shift in 0..64u32,
    ) {
        for arch in Arch::ALL {
            agree(&memory(arch), &Model::new(arch), at >> shift, len >> len_shift);
            agree(&memory(arch), &Model::new(arch), !(at >> shift), len >> len_shift);
        }
    }

    #[test]
    fn reads_return_what_was_written(
        stack in 0..4usize, offset in 0..(24u64 << 30) - 4096,
        data in prop::collection::vec(any::<u8>(), 1..4096),
    ) {
        let mut memory = memory(Arch::V3);
        let at = Addr(Arch::V3.spec().map.hbm[stack].base.0 + offset);
        prop_assert_eq!(memory.write(at, &data), Ok(Effects::None));
        let mut out = vec![0; data.len()];
        memory.read(at, &mut out).unwrap();
        prop_assert_eq!(&out, &data);
        prop_assert_eq!(memory.slice(at, data.len() as u64).unwrap(), &data[..]);
    }
}

/// Reads the 4-byte cell at `at`.
fn word(memory: &PhysicalMemory, at: Addr) -> Result<u32, AccessReason> {
    let mut out = [0; 4];
    memory.read(at, &mut out).map_err(|error| error.reason)?;
    Ok(u32::from_le_bytes(out))
}

#[test]
fn semaphore_windows() {
    let mut memory = memory(Arch::V3);
    // NeuronCore 1, semaphore 5: 0x3000000000 + 0x802700000 + window + 20.
    let [read, set, inc, dec] = [
        0x38_0270_1014,
        0x38_0270_1414,
        0x38_0270_1814,
        0x38_0270_1c14,
    ]
    .map(Addr);
    let touched = Effects::Semaphores {
        block: 1,
        first: 5,
        count: 1,
    };
    for (cell, written, value) in [
        (set, 7u32, 7),
        (inc, 3, 10),
        (dec, 4, 6),
        (dec, 7, u32::MAX),
        (inc, 2, 1),
    ] {
        assert_eq!(memory.write(cell, &written.to_le_bytes()), Ok(touched));
        assert_eq!(word(&memory, read), Ok(value));
    }
    let refused = memory.write(read, &[0; 4]).unwrap_err();
    assert_eq!(refused.reason, AccessReason::ReadOnly);
    for cell in [set, inc, dec] {
        assert_eq!(word(&memory, cell), Err(AccessReason::WriteOnly));
    }
    assert_eq!(word(&memory, read), Ok(1));
}

#[test]
fn one_write_to_many_cells_reports_them_all() {
    let mut memory = memory(Arch::V2);
    let map = &Arch::V2.spec().map;
    // TOP_SP 0 follows the two NeuronCores.
    let at = map.event(2, 254).unwrap();
    assert_eq!(at, Addr(0xfff_d000_03f8));
    let effects = memory.write(at, &[1, 0, 0, 0, 2, 0, 0, 0]);
    let touched = Effects::Events {
        block: 2,
        first: 254,
        count: 2,
    };
    assert_eq!(effects, Ok(touched));
    assert_eq!(
        word(&memory, map.event(2, 255).unwrap()),
        Ok(0),
        "an event keeps bit 0 only"
    );
    let past = memory.write(at, &[0; 12]).unwrap_err();
    assert_eq!(past.reason, AccessReason::CrossesBoundary);
    assert_eq!(word(&memory, at), Ok(1), "a refused write stores nothing");
}

#[test]
fn constants_read_0_and_1_and_refuse_writes() {
    for arch in Arch::ALL {
        let mut memory = memory(arch);
        let map = &arch.spec().map;
        assert_eq!(word(&memory, map.event_clear), Ok(0));
        assert_eq!(word(&memory, map.event_set), Ok(1));
        let refused = memory.write(map.event_set, &[9, 9, 9, 9]).unwrap_err();
        assert_eq!(refused.reason, AccessReason::ReadOnly);
        let borrowed = memory.slice(map.event_set, 4).unwrap_err();
        assert_eq!(borrowed.reason, AccessReason::NotBytes);
    }
}

#[test]
fn an_error_says_where_and_why() {
    let error = memory(Arch::V2)
        .resolve(Addr(0x4_0000_0000), 64)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "an access of 64 bytes at 0x400000000 starts in an unpopulated part of its region"
    );
}

#[test]
fn host_memory_must_fit_below_the_next_region() {
    // V3: host memory at 0x400000000000, the second die's first stack at 0x800000000000.
    let spec = Arch::V3.spec();
    let error = PhysicalMemory::new(spec, (64 << 40) + 1).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("at most 64TiB"), "{error}");
    assert!(PhysicalMemory::new(Arch::V2.spec(), u64::MAX).is_err());
    let without = PhysicalMemory::new(spec, 0).unwrap();
    let refused = without.resolve(spec.map.host, 1).unwrap_err();
    assert_eq!(refused.reason, AccessReason::Unmapped);
}
