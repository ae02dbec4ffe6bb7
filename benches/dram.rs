//! The HBM model: requests a second of every built-in stream, with the configuration of
//! `docs/dram.md`, and of a whole memory behind its interface in simulated time.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use udma_sim::dram::{Dram, DramConfig, Kind, Stream, run};
use udma_sim::sim::{Duration, Instant};

/// Requests of each stream.
const REQUESTS: usize = 200_000;

fn streams(c: &mut Criterion) {
    let Ok(config) = DramConfig::load("hbm2-pseudo-channel", &[]) else {
        return;
    };
    let mut group = c.benchmark_group("dram");
    group.sample_size(10);
    group.throughput(Throughput::Elements(REQUESTS as u64));
    for (short, name, _) in Stream::builtin_names() {
        let Ok(mut stream) = Stream::builtin(name, 32, config.mapping.capacity()) else {
            return;
        };
        stream.truncate(REQUESTS);
        group.bench_function(short, |b| b.iter(|| run(&config, black_box(&stream), None)));
    }
    group.finish();
}

/// Sequential bursts of 256 bytes into a whole memory, one in 10 ns.
fn memory(c: &mut Criterion) {
    const BURSTS: u64 = 20_000;
    const BURST: u64 = 256;
    let Ok(config) = DramConfig::load("hbm-cayman", &[]) else {
        return;
    };
    let mut group = c.benchmark_group("dram");
    group.throughput(Throughput::Elements(BURSTS));
    group.bench_function("256-byte bursts, V3", |b| {
        b.iter(|| {
            let mut dram = Dram::new(&config);
            let mut completions = Vec::new();
            for burst in 0..BURSTS {
                let now = Instant::START + Duration::from_fs(burst * 10_000_000);
                dram.advance(now, &mut completions);
                let sent = dram.enqueue(now, burst * BURST, BURST, Kind::Read, burst);
                black_box(sent).unwrap_or_default();
            }
            while dram.next_event() != Instant::NEVER {
                let next = dram.next_event();
                dram.advance(next, &mut completions);
            }
            assert_eq!(completions.len() as u64, BURSTS);
        });
    });
    group.finish();
}

criterion_group!(benches, streams, memory);
criterion_main!(benches);
