//! Makes the raw rings of `traces/raw-ring.toml`: what a runtime would have dumped, bit by bit.
//!
//!     cargo run --example make_raw_ring
//!
//! writes `traces/raw-ring.tx.bin` and `traces/raw-ring.rx.bin`. Every address is in the first HBM
//! stack, which begins at 0 on every generation, so the rings run on each of them.

use std::fs;
use std::path::Path;
use udma_sim::desc::{Descriptor, LenCtrl, LengthError, MetaCtrl, RingId, RxDesc, TxDesc};
use udma_sim::units::Addr;

/// Start of the source in `traces/raw-ring.toml`.
const SRC: u64 = 16 << 20;
/// Start of the destination.
const DST: u64 = 32 << 20;
/// Word that the padding copies onto itself.
const SCRATCH: u64 = 48 << 20;
/// Tx descriptors in the ring, padding included.
const TX_DESCRIPTORS: usize = 16;

/// A Tx descriptor of `len` bytes at `at`; which of FIRST, CONCAT and LAST it carries makes it the
/// beginning, the middle or the end of a packet.
fn tx(at: u64, len: u32, place: fn(LenCtrl) -> LenCtrl) -> Result<Descriptor, LengthError> {
    let len_ctrl = LenCtrl::new()
        .with_ring_id(RingId::FIRST_LAP)
        .with_byte_len(len)?;
    Ok(Descriptor::from(TxDesc {
        len_ctrl: place(len_ctrl),
        meta_ctrl: MetaCtrl::PLAIN_COPY,
        buf_ptr: Addr(at),
    }))
}

fn rx(at: u64, len: u32) -> Result<Descriptor, LengthError> {
    let len_ctrl = LenCtrl::new()
        .with_ring_id(RingId::FIRST_LAP)
        .with_byte_len(len)?;
    Ok(Descriptor::from(RxDesc {
        len_ctrl,
        buf2_ptr_lo: 0,
        buf1_ptr: Addr(at),
    }))
}

/// The Tx and the Rx ring.
fn rings() -> Result<(Vec<u8>, Vec<u8>), LengthError> {
    let single = |len_ctrl: LenCtrl| len_ctrl.with_first(true).with_last(true);
    // A plain copy that later packets wait for.
    let mut tx_ring = vec![tx(SRC, 4096, |len_ctrl| {
        len_ctrl.with_first(true).with_last(true).with_dmb(true)
    })?];
    let mut rx_ring = vec![rx(DST, 4096)?];
    // One packet that gathers three pieces, in an order of its own, and scatters them over two.
    tx_ring.extend([
        tx(SRC + 8192, 1024, |l| l.with_first(true).with_concat(true))?,
        tx(SRC + 4096, 1024, |l| l.with_concat(true))?,
        tx(SRC + 12288, 1024, |l| l.with_last(true))?,
    ]);
    rx_ring.extend([rx(DST + 4096, 2048)?, rx(DST + 8192, 1024)?]);
    // Copies of nothing that matters, as a padded dump has them.
    while tx_ring.len() < TX_DESCRIPTORS {
        tx_ring.push(tx(SCRATCH, 4, single)?);
        rx_ring.push(rx(SCRATCH, 4)?);
    }
    let bytes = |ring: Vec<Descriptor>| ring.into_iter().flat_map(Descriptor::to_bytes).collect();
    Ok((bytes(tx_ring), bytes(rx_ring)))
}

fn traces() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/traces"))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (tx_ring, rx_ring) = rings()?;
    fs::write(traces().join("raw-ring.tx.bin"), tx_ring)?;
    fs::write(traces().join("raw-ring.rx.bin"), rx_ring)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_rings_are_those_made_here() {
        let (tx_ring, rx_ring) = rings().unwrap();
        assert!(tx_ring == fs::read(traces().join("raw-ring.tx.bin")).unwrap());
        assert!(rx_ring == fs::read(traces().join("raw-ring.rx.bin")).unwrap());
    }
}
