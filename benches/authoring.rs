//! Authoring speed: descriptors appended to a vring, beside a plain write of the same bytes, and the
//! packing of what was authored. Prints the ratio at the end.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::{Duration, Instant};
use udma_sim::arch::Arch;
use udma_sim::desc::BarrierMode;
use udma_sim::host::Vring;
use udma_sim::units::Addr;

/// Pairs of descriptors.
const PAIRS: u64 = 1 << 20;

/// Bytes of a full descriptor.
const CHUNK: u64 = 65536;

/// One transfer of many descriptors.
fn transfer() -> Vring {
    let mut vring = Vring::new(Arch::V3, "bench_0").unwrap();
    let (src, dst) = (Addr(0), Addr(1 << 40));
    vring.add_desc_transfer(src, dst, PAIRS * CHUNK).unwrap();
    vring
}

/// Many transfers of one descriptor each.
fn transfers() -> Vring {
    let mut vring = Vring::new(Arch::V3, "bench_0").unwrap();
    for n in 0..PAIRS {
        vring
            .add_desc_transfer_with_barrier(
                Addr(n * 512),
                Addr((1 << 40) + n * 512),
                512,
                BarrierMode::None,
            )
            .unwrap();
    }
    vring
}

/// The same bytes, written without a thought.
fn plain() -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::with_capacity(PAIRS as usize * 32);
    bytes.resize(PAIRS as usize * 32, black_box(0xa5));
    bytes
}

fn median<T>(run: impl Fn() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

fn authoring(c: &mut Criterion) {
    let mut group = c.benchmark_group("authoring");
    group.sample_size(10);
    group.throughput(Throughput::Elements(2 * PAIRS));
    group.bench_function("one_transfer", |b| b.iter(transfer));
    group.bench_function("many_transfers", |b| b.iter(transfers));
    group.bench_function("plain_write", |b| b.iter(plain));
    group.bench_function("pack_descs", |b| {
        b.iter_batched(
            transfers,
            |mut vring| {
                let used = vring.tx().used_desc_count();
                vring.pack_descs(0, used, 1 << 19, used).unwrap();
                vring
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();

    let fill = median(plain);
    for (name, time) in [
        ("one_transfer", median(transfer)),
        ("many_transfers", median(transfers)),
    ] {
        let per_second = 2.0 * PAIRS as f64 / time.as_secs_f64();
        println!(
            "{name}: {:.1} million descriptors/s, {:.2} times a plain write of the same bytes",
            per_second / 1e6,
            time.as_secs_f64() / fill.as_secs_f64()
        );
    }
}

criterion_group!(benches, authoring);
criterion_main!(benches);
