//! Throughput of the descriptor codec: bytes to views, views to bytes, a copy pair from scratch,
//! packets over a ring.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use udma_sim::arch::Arch;
use udma_sim::desc::{
    BarrierMode, CopyFlags, DESC_BYTES, Descriptor, OpWord, RingId, RxDesc, TxDesc, build_copy,
    packets,
};
use udma_sim::units::Addr;

/// Descriptors of the ring under test.
const DESCS: u64 = 4096;

/// A Tx ring of single-descriptor copies.
fn ring() -> Vec<Descriptor> {
    (0..DESCS)
        .map(|n| {
            let (tx, _) = pair(n);
            tx.into()
        })
        .collect()
}

fn pair(n: u64) -> (TxDesc, RxDesc) {
    build_copy(
        Arch::V3,
        Addr(n << 16),
        Addr(n << 16 | 1 << 40),
        (n as u32 % 65536) + 1,
        RingId::FIRST_LAP,
        BarrierMode::StrongOrder,
        CopyFlags::default(),
    )
    .expect("the pair is legal on v3")
}

fn codec(c: &mut Criterion) {
    let ring = ring();
    let bytes: Vec<[u8; DESC_BYTES]> = ring.iter().map(|desc| desc.to_bytes()).collect();
    let mut group = c.benchmark_group("codec");
    group.throughput(Throughput::Elements(DESCS));

    group.bench_function("decode", |b| {
        b.iter(|| {
            for bytes in black_box(&bytes) {
                let tx = TxDesc::from(Descriptor::from_bytes(*bytes));
                black_box((
                    tx.len_ctrl.byte_len(),
                    OpWord::decode(tx.meta_ctrl),
                    tx.buf_ptr,
                ));
            }
        });
    });

    let views: Vec<TxDesc> = ring.iter().map(|desc| TxDesc::from(*desc)).collect();
    group.bench_function("encode", |b| {
        b.iter(|| {
            for tx in black_box(&views) {
                black_box(Descriptor::from(*tx).to_bytes());
            }
        });
    });

    group.bench_function("build_copy", |b| {
        b.iter(|| {
            for n in 0..DESCS {
                black_box(pair(black_box(n)));
            }
        });
    });

    group.bench_function("packets", |b| {
        b.iter(|| {
            packets(black_box(&ring), 65)
                .map(|packet| packet.byte_len())
                .sum::<u64>()
        });
    });

    group.finish();
}

criterion_group!(benches, codec);
criterion_main!(benches);
