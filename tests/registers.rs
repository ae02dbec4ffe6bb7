//! The register file beside a listing typed by hand from the specification: every word of an engine's window
//! exists or not, with its access and its reset value, on every generation.

mod common;

use common::{Rig, config};
use std::collections::BTreeMap;
use udma_sim::arch::regs::table::{Access, Place};
use udma_sim::arch::{Arch, EngineId};
use udma_sim::host::Bus;
use udma_sim::units::Addr;

/// First and last offset, access, reset value, first generation.
type Line = (u64, u64, Access, u32, Arch);

const RW: Access = Access::ReadWrite;
const RO: Access = Access::ReadOnly;
const CMD: Access = Access::Command;
const W0C: Access = Access::WriteZeroClears;

const fn at(offset: u64, access: Access, reset: u32) -> Line {
    (offset, offset, access, reset, Arch::V2)
}

const fn run(first: u64, last: u64, access: Access) -> Line {
    (first, last, access, 0, Arch::V2)
}

const QUEUE: &[Line] = &[
    at(0x00, RW, 0x80),
    at(0x20, RW, 0x0300_0000),
    at(0x24, RO, 0),
    run(0x28, 0x30, RW),
    at(0x34, RO, 0x4000_0000),
    at(0x38, CMD, 0),
    at(0x3c, RO, 0x4000_0000),
    at(0x40, RO, 0x4000_0000),
    run(0x44, 0x48, RW),
    at(0x4c, RO, 0x4000_0000),
    at(0x50, RO, 0x4000_0000),
];

const QUEUE_M2S: &[Line] = &[
    run(0x60, 0x6c, RW),
    at(0x70, CMD, 0),
    at(0x74, RW, 0b111),
    run(0x80, 0x88, RW),
    at(0x8c, CMD, 0),
    at(0xa0, RW, 0),
    at(0xb0, CMD, 0),
    at(0xc0, RO, 0),
    (0xe0, 0xe0, CMD, 0, Arch::V3),
    (0xe4, 0xe4, RO, 0x4000_0000, Arch::V3),
];

const QUEUE_S2M: &[Line] = &[at(0x54, RW, 1), at(0x64, CMD, 0), at(0x68, RO, 0)];

const GLOBAL: &[Line] = &[
    run(0x100, 0x11c, RW),
    at(0x200, RO, 0),
    at(0x204, CMD, 0),
    at(0x20c, RW, 0),
    run(0x214, 0x220, RO),
    at(0x224, CMD, 0),
    at(0x300, RW, 0),
    at(0x308, RW, 0),
    run(0x500, 0x51c, RO),
    at(0x600, RW, 0),
    at(0x604, RW, 4),
    run(0x608, 0x614, RW),
];

const GLOBAL_M2S: &[Line] = &[
    at(0x124, RW, 0x8080),
    at(0x254, RW, 0x010f_ffff),
    at(0x258, RW, 0),
    at(0x25c, RW, 0xffff),
    at(0x304, RW, 0x0001_0080),
    (0x304, 0x304, RW, 0x0001_0041, Arch::V3),
    at(0x310, RW, 0x0100_0400),
    (0x310, 0x310, RW, 0x0100_08f8, Arch::V3),
    at(0x340, RW, 0x0007_0200),
    at(0x344, RW, 0),
    at(0x380, RW, 0),
    run(0x384, 0x388, CMD),
    run(0x3c0, 0x3cc, RW),
    at(0x3d0, CMD, 0),
    at(0x3d4, RW, 0),
    run(0x400, 0x404, RW),
    at(0x408, RW, 100_000),
];

const GLOBAL_S2M: &[Line] = &[
    at(0x124, RW, 0x0040_0080),
    at(0x128, RW, 0x80),
    at(0x12c, RW, 0),
    (0x12c, 0x12c, RW, 256, Arch::V4),
    at(0x250, RW, 0),
    at(0x254, RW, 0xffff),
    at(0x304, RW, 0x0001_0000),
    at(0x30c, RW, 0),
    at(0x380, RW, 4),
    at(0x384, RW, 0),
    at(0x38c, RW, 100_000),
];

const GROUP: &[Line] = &[
    at(0x00, W0C, 0),
    at(0x08, CMD, 0),
    at(0x10, RW, u32::MAX),
    at(0x18, CMD, 0),
    at(0x20, RO, 0),
    at(0x28, RW, 0),
    at(0x30, RW, 0),
];

/// GEN beside its groups, GEN_EX, and behind the unit the notification queue.
const REST: &[Line] = &[
    run(0x3_a300, 0x3_a3fc, RW),
    run(0x3_a900, 0x3_b3fc, RW),
    run(0x3_b460, 0x3_b464, RW),
    at(0x3_b468, RW, u32::MAX),
    at(0x3_b46c, RW, u32::MAX),
    run(0x3_b470, 0x3_b47c, RW),
    run(0x3_c400, 0x3_c7fc, RW),
    (0x4_1100, 0x4_110c, RW, 0, Arch::V4),
];

/// Access and reset value of every word that exists.
fn listing(arch: Arch) -> BTreeMap<u64, (Access, u32)> {
    let mut words = BTreeMap::new();
    let mut put = |base: u64, lines: &[Line]| {
        for (first, last, access, reset, since) in lines.iter().filter(|line| line.4 <= arch) {
            assert!(*since <= arch);
            for offset in (*first..=*last).step_by(4) {
                words.insert(base + offset, (*access, *reset));
            }
        }
    };
    for (half, queue, global) in [
        (0, QUEUE_M2S, GLOBAL_M2S),
        (0x2_0000, QUEUE_S2M, GLOBAL_S2M),
    ] {
        put(half, GLOBAL);
        put(half, global);
        for q in 0..16 {
            put(half + 0x1000 * (q + 1), QUEUE);
            put(half + 0x1000 * (q + 1), queue);
        }
    }
    for group in 0..16 {
        put(0x3_8000 + 0x40 * group, GROUP);
    }
    put(0x3_a000, GROUP);
    put(0x3_a040, GROUP);
    put(0x3_a080, GROUP);
    put(0, REST);
    words
}

#[test]
fn the_table_is_the_listing() {
    for arch in Arch::ALL {
        let listing = listing(arch);
        let spec = arch.spec();
        for offset in (0..spec.map.engine_window).step_by(4) {
            let row = Place::at(offset, 16).and_then(|place| place.row(arch));
            let row = row.map(|row| (row.access, row.reset.value(spec)));
            assert_eq!(row, listing.get(&offset).copied(), "{arch} {offset:#x}");
        }
    }
}

/// A fresh engine shows the reset values; what is not listed reads 0 and then holds what is written.
#[test]
fn a_fresh_engine_shows_the_listing() {
    for arch in Arch::ALL {
        let listing = listing(arch);
        let idle = (
            "state_after_reset = \"normal\"",
            "state_after_reset = \"idle\"",
        );
        let mut rig = Rig::with(config(arch, &[idle]), 0);
        let base = arch.spec().map.engine_base(EngineId(3)).unwrap().0;
        for offset in (0..arch.spec().map.engine_window).step_by(4) {
            let at = Addr(base + offset);
            let shown = rig.system.read_reg(at).unwrap();
            let listed = listing.get(&offset).map_or(0, |(_, reset)| *reset);
            assert_eq!(shown, listed, "{arch} {offset:#x}");
            if !listing.contains_key(&offset) {
                rig.system.write_reg(at, u32::MAX).unwrap();
                assert_eq!(rig.system.read_reg(at), Ok(u32::MAX), "{arch} {offset:#x}");
            }
        }
    }
}
