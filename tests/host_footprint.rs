//! A full ring takes hardly more memory than its descriptors. Alone in its process, so that nothing
//! else moves the resident set while it is measured.

#![cfg(target_os = "linux")]

use udma_sim::arch::Arch;
use udma_sim::host::{MAX_VRING_DESCS, Vring};
use udma_sim::units::Addr;

/// Most bytes of this process that were ever in memory.
fn most_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[test]
fn authoring_a_full_ring_takes_at_most_110_percent_of_its_bytes() {
    let before = most_resident();
    let mut vring = Vring::new(Arch::V3, "full_0").unwrap();
    let all = u64::from(MAX_VRING_DESCS) * 65536;
    vring.add_desc_transfer(Addr(0), Addr(0), all).unwrap();
    assert_eq!(vring.tx().used_desc_count(), 16_777_200);
    assert_eq!(vring.total_tx_size(), all);
    let descriptors = 2 * u64::from(MAX_VRING_DESCS) * 16;
    let taken = most_resident() - before;
    assert!(taken >= descriptors, "{taken} bytes cannot hold the ring");
    assert!(
        taken <= descriptors * 110 / 100,
        "{taken} bytes for {descriptors}"
    );

    // The boundary on its other side: no 257th page, and the ring as it was.
    assert!(vring.add_desc_transfer(Addr(0), Addr(0), 1).is_err());
    assert_eq!(vring.tx().used_desc_count(), 16_777_200);
    assert!(vring.tx().find_page_by_idx(255).is_some());
    assert!(vring.tx().find_page_by_idx(256).is_none());
}
