//! A whole device costs address space, not memory. Alone in its process, so that nothing else
//! moves the resident set while it is measured.

#![cfg(target_os = "linux")]

use udma_sim::arch::Arch;
use udma_sim::memory::PhysicalMemory;
use udma_sim::units::Addr;

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[test]
fn a_whole_v3_device_stays_under_64_mib() {
    const PAGE: u64 = 4096;
    const PAGES: u64 = 4;
    let spec = Arch::V3.spec();
    let total: u64 = spec.map.hbm.iter().map(|stack| stack.populated).sum();
    assert_eq!(total, 96 << 30);

    let before = resident();
    let mut memory = PhysicalMemory::new(spec, 16 << 30).unwrap();
    for stack in spec.map.hbm {
        for page in 0..PAGES {
            let low = Addr(stack.base.0 + page * PAGE);
            let high = Addr(stack.base.0 + stack.populated - (page + 1) * PAGE);
            for at in [low, high] {
                memory.write(at, &[0x5a; PAGE as usize]).unwrap();
                let mut back = [0; PAGE as usize];
                memory.read(at, &mut back).unwrap();
                assert_eq!(back, [0x5a; PAGE as usize]);
            }
        }
    }
    let written = spec.map.hbm.len() as u64 * 2 * PAGES * PAGE;
    let grown = resident().saturating_sub(before);
    assert!(
        grown >= written,
        "{grown} bytes cannot hold what was written"
    );
    assert!(grown < 64 << 20, "{grown} bytes resident");
}
