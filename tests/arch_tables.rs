//! The arch tables against numbers typed by hand from the address map and the limits
//! (`docs/hardware.md`, "Limits and capabilities" and "Address map").

use udma_sim::arch::{
    AddressMap, Arch, Caps, EngineId, EventBlock, HostEngine, Limits, UDMA_UNIT_BYTES, UnknownArch,
};
use udma_sim::units::Addr;

const GIB: u64 = 0x4000_0000;

fn map(arch: Arch) -> &'static AddressMap {
    &arch.spec().map
}

#[test]
fn capabilities() {
    let none = Caps {
        strong_order_writes: false,
        notification_mask: false,
        embedded_semaphore: false,
        data_tail_pointer: false,
        cce_replication: false,
        transpose_flush: false,
        state_buffer_transpose: false,
        fp8_control: false,
        semaphore_inc_from_sb: false,
        queue_qos: false,
        wide_write_limit: false,
    };
    let v3 = Caps {
        strong_order_writes: true,
        data_tail_pointer: true,
        cce_replication: true,
        transpose_flush: true,
        state_buffer_transpose: true,
        semaphore_inc_from_sb: true,
        ..none
    };
    let v4 = Caps {
        notification_mask: true,
        fp8_control: true,
        embedded_semaphore: true,
        semaphore_inc_from_sb: false,
        queue_qos: true,
        wide_write_limit: true,
        ..v3
    };
    assert_eq!(Arch::ALL.map(|arch| arch.spec().caps), [none, v3, v4]);
}

#[test]
fn limits() {
    let limits = |tx, rx, cce, cores, host_engines| Limits {
        tx_descs_per_packet: tx,
        rx_descs_per_packet: rx,
        cce_elements_per_packet: cce,
        neuron_cores: cores,
        engines_per_core: 16,
        host_engines,
        queues_per_engine: 16,
    };
    let v2 = limits(128, 128, 1024, 2, 2);
    let v3 = limits(65, 60, 2048, 8, 4);
    assert_eq!(Arch::ALL.map(|arch| arch.spec().limits), [v2, v3, v3]);
}

#[test]
fn limits_and_map_count_the_same_things() {
    for (arch, engines, blocks) in [(Arch::V2, 34, 8), (Arch::V3, 132, 28), (Arch::V4, 132, 28)] {
        let (limits, map) = (arch.spec().limits, map(arch));
        assert_eq!(limits.engines(), engines, "{arch}");
        assert_eq!(map.engine_count(), engines, "{arch}");
        assert_eq!(
            map.core_engine_count(),
            limits.neuron_cores * limits.engines_per_core
        );
        assert_eq!(map.host_engines.len() as u32, limits.host_engines);
        assert_eq!(map.tpb.len() as u32, limits.neuron_cores);
        assert_eq!(map.event_block_count(), blocks, "{arch}");
    }
}

#[test]
fn hbm_stacks() {
    let stacks = |arch| -> Vec<(u64, u64)> {
        let stacks = map(arch).hbm.iter();
        stacks.map(|s| (s.base.0, s.populated / GIB)).collect()
    };
    assert_eq!(stacks(Arch::V2), [(0, 16), (0x10_0000_0000, 16)]);
    let bases = [0x0, 0x40_0000_0000, 0x8000_0000_0000, 0x8040_0000_0000];
    assert_eq!(stacks(Arch::V3), bases.map(|base| (base, 24)));
    assert_eq!(stacks(Arch::V4), bases.map(|base| (base, 36)));
    for stack in Arch::ALL.map(map).iter().flat_map(|map| map.hbm) {
        assert_eq!(stack.window, 64 * GIB);
    }
}

const V3_TPB: [u64; 8] = [
    0x20_0000_0000,
    0x30_0000_0000,
    0x60_0000_0000,
    0x70_0000_0000,
    0x8020_0000_0000,
    0x8030_0000_0000,
    0x8060_0000_0000,
    0x8070_0000_0000,
];

#[test]
fn neuron_core_windows() {
    assert_eq!(
        map(Arch::V2).tpb,
        [0xfff_c000_0000, 0xfff_c400_0000].map(Addr)
    );
    assert_eq!(map(Arch::V3).tpb, V3_TPB.map(Addr));
    assert_eq!(map(Arch::V4).tpb, V3_TPB.map(Addr));
}

#[test]
fn state_buffer_partitions() {
    for (arch, populated) in [
        (Arch::V2, 196_608),
        (Arch::V3, 229_376),
        (Arch::V4, 229_376),
    ] {
        let buffer = map(arch).state_buffer;
        assert_eq!(buffer.partitions, 128);
        for p in 0..=u64::from(buffer.partitions) {
            assert_eq!(p * buffer.stride, p << 18, "{arch}");
        }
        assert_eq!(buffer.window(), 32 << 20);
        assert_eq!(buffer.populated, populated, "{arch}");
    }
}

#[test]
fn event_blocks() {
    let v2 = [
        0xfff_c270_0000,
        0xfff_c670_0000,
        0xfff_d000_0000,
        0xfff_d040_0000,
        0xfff_d080_0000,
        0xfff_d0c0_0000,
        0xfff_d100_0000,
        0xfff_d140_0000,
    ];
    let cores = [
        0x28_0270_0000,
        0x38_0270_0000,
        0x68_0270_0000,
        0x78_0270_0000,
        0x8028_0270_0000,
        0x8038_0270_0000,
        0x8068_0270_0000,
        0x8078_0270_0000,
    ];
    let die = [
        0x82_8000_0000,
        0x82_c000_0000,
        0x83_0000_0000,
        0x83_4000_0000,
        0x83_8000_0000,
        0x83_c000_0000,
        0x84_0000_0000,
        0x84_4000_0000,
        0x84_8000_0000,
        0x84_c000_0000,
    ];
    let other = die.map(|base: u64| 0x8000_0000_0000 + base);
    let v3 = [&cores[..], &die, &other].concat();
    for (arch, bases) in [
        (Arch::V2, v2.to_vec()),
        (Arch::V3, v3.clone()),
        (Arch::V4, v3),
    ] {
        let map = map(arch);
        for (block, base) in (0..).zip(&bases) {
            assert_eq!(map.event_block(block), Some(Addr(*base)), "{arch} {block}");
        }
        let past = bases.len() as u32;
        assert_eq!(map.event_block(past), None);
        assert_eq!(map.event_block(u32::MAX), None);
        assert_eq!(map.semaphore(past, EventBlock::SEM_INC, 0), None);
    }
}

#[test]
fn event_and_semaphore_cells() {
    let map = map(Arch::V3);
    let base = 0x28_0270_0000;
    assert_eq!(map.event(0, 0), Some(Addr(base)));
    assert_eq!(map.event(0, 255), Some(Addr(base + 0x3fc)));
    assert_eq!(map.event(0, 256), None);
    for (window, offset) in [
        (EventBlock::SEM_READ, 0x1000),
        (EventBlock::SEM_SET, 0x1400),
        (EventBlock::SEM_INC, 0x1800),
        (EventBlock::SEM_DEC, 0x1c00),
    ] {
        assert_eq!(map.semaphore(0, window, 0), Some(Addr(base + offset)));
        assert_eq!(
            map.semaphore(0, window, 255),
            Some(Addr(base + offset + 1020))
        );
        assert_eq!(map.semaphore(0, window, 256), None);
    }
    assert_eq!(EventBlock::BYTES, 0x1c00 + 4 * 256);
}

#[test]
fn event_accelerator_constants() {
    let constants = |arch| (map(arch).event_clear, map(arch).event_set);
    assert_eq!(
        constants(Arch::V2),
        (Addr(0x20_0000_0000), Addr(0x20_0000_0004))
    );
    assert_eq!(
        constants(Arch::V3),
        (Addr(0x90_0000_0000), Addr(0x90_0000_0004))
    );
    assert_eq!(
        constants(Arch::V4),
        (Addr(0x90_0000_0000), Addr(0x94_0000_0000))
    );
}

#[test]
fn engine_windows() {
    assert_eq!(UDMA_UNIT_BYTES, 0x40000);
    let v3 = [
        (0, 0x10_0200_0000),
        (1, 0x10_0210_0000),
        (31, 0x10_03f0_0000),
        (32, 0x50_0400_0000),
        (63, 0x50_05f0_0000),
        (64, 0x8010_0200_0000),
        (95, 0x8010_03f0_0000),
        (96, 0x8050_0400_0000),
        (127, 0x8050_05f0_0000),
        (128, 0x80_0680_0000),
        (129, 0x80_0690_0000),
        (130, 0x8080_0680_0000),
        (131, 0x8080_0690_0000),
    ];
    let v2 = [
        (0, 0xfff_f000_0000),
        (1, 0xfff_f004_0000),
        (15, 0xfff_f03c_0000),
        (16, 0xfff_f070_0000),
        (31, 0xfff_f0ac_0000),
        (32, 0xfff_f060_0000),
        (33, 0xfff_f0d0_0000),
    ];
    for (arch, table, window) in [
        (Arch::V2, &v2[..], 0x4_0000),
        (Arch::V3, &v3, 0x4_2000),
        (Arch::V4, &v3, 0x4_2000),
    ] {
        assert_eq!(map(arch).engine_window, window);
        for (engine, base) in table {
            let got = map(arch).engine_base(EngineId(*engine));
            assert_eq!(got, Some(Addr(*base)), "{arch} e{engine}");
        }
        let count = map(arch).engine_count();
        assert_eq!(map(arch).engine_base(EngineId(count)), None);
        assert_eq!(map(arch).engine_base(EngineId(u32::MAX)), None);
        for engine in (0..count).map(EngineId) {
            let base = map(arch).engine_base(engine).unwrap();
            for within in [0, 0x1038, window - 1] {
                let found = map(arch).engine_at(Addr(base.0 + within));
                assert_eq!(found, Some((engine, within)), "{arch} {engine}");
            }
            let (below, above) = (Addr(base.0 - 1), Addr(base.0 + window));
            let other = |at| {
                map(arch)
                    .engine_at(at)
                    .is_none_or(|(other, _)| other != engine)
            };
            assert!(other(below) && other(above), "{arch} {engine}");
        }
        for at in [0, 0x10_0000, u64::MAX] {
            assert_eq!(map(arch).engine_at(Addr(at)), None);
        }
    }
}

#[test]
fn host_engines_by_pair() {
    use HostEngine::{D2h, H2d};
    let engine = |arch, direction, pair| map(arch).host_engine(direction, pair);
    assert_eq!(engine(Arch::V2, D2h, 0), Some(EngineId(32)));
    assert_eq!(engine(Arch::V2, H2d, 0), Some(EngineId(33)));
    assert_eq!(engine(Arch::V2, D2h, 1), None);
    assert_eq!(engine(Arch::V3, D2h, 0), Some(EngineId(128)));
    assert_eq!(engine(Arch::V3, H2d, 1), Some(EngineId(131)));
    assert_eq!(engine(Arch::V3, H2d, 2), None);
    assert_eq!(engine(Arch::V3, D2h, u32::MAX), None);
}

#[test]
fn host_memory() {
    let hosts = Arch::ALL.map(|arch| map(arch).host);
    assert_eq!(
        hosts,
        [0x1000_0000_0000, 0x4000_0000_0000, 0x4000_0000_0000].map(Addr)
    );
}

#[test]
fn nothing_overlaps() {
    for arch in Arch::ALL {
        let map = map(arch);
        let mut windows: Vec<(Addr, u64)> = Vec::new();
        windows.extend(map.hbm.iter().map(|stack| (stack.base, stack.window)));
        windows.extend(
            map.tpb
                .iter()
                .map(|base| (*base, map.state_buffer.window())),
        );
        for block in 0..map.event_block_count() {
            windows.extend(map.event_block(block).map(|base| (base, EventBlock::BYTES)));
        }
        windows.extend([(map.event_clear, 4), (map.event_set, 4)]);
        for engine in 0..map.engine_count() {
            let base = map.engine_base(EngineId(engine));
            windows.extend(base.map(|base| (base, map.engine_window)));
        }
        // As much host memory as any machine has: 1 TiB.
        windows.push((map.host, 1 << 40));
        windows.sort();
        for pair in windows.windows(2) {
            let ((base, len), (next, _)) = (pair[0], pair[1]);
            let end = base.checked_add(len).unwrap();
            assert!(end <= next, "{arch}: {base}..{end} reaches into {next}");
        }
        for stack in map.hbm {
            assert!(stack.populated <= stack.window);
        }
        assert!(map.state_buffer.populated <= map.state_buffer.stride);
    }
}

#[test]
fn names() {
    for (arch, name, code_name) in [
        (Arch::V2, "v2", "sunda"),
        (Arch::V3, "v3", "cayman"),
        (Arch::V4, "v4", "mariana"),
    ] {
        assert_eq!(arch.spec().arch, arch);
        assert_eq!(name.parse(), Ok(arch));
        assert_eq!(code_name.parse(), Ok(arch));
        assert_eq!(arch.to_string(), name);
    }
    let unknown: Result<Arch, UnknownArch> = "trn2".parse();
    assert_eq!(unknown, Err(UnknownArch("trn2".to_string())));
}

#[test]
fn blocks_that_embedded_semaphore_updates_name() {
    let block = |csr| map(Arch::V4).embedded_semaphore_block(csr);
    for (csr, base) in [
        (0, 0x20_0000_0000 + 0x8_0270_0000),
        (7, 0x8070_0000_0000 + 0x8_0270_0000),
        (8, 0x82_8000_0000),
        (15, 0x84_4000_0000),
        (16, 0x8082_8000_0000),
        (23, 0x8084_4000_0000),
    ] {
        let index = block(csr).unwrap();
        assert_eq!(map(Arch::V4).event_block(index), Some(Addr(base)), "{csr}");
    }
    assert_eq!(block(24), None);
    assert_eq!(block(255), None);
}
