//! The explorer on the catalogue: states per second, with and without partial-order reduction. The race
//! check: descriptors per second.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use udma_sim::arch::{Arch, EngineId};
use udma_sim::order::explore::{Options, explore};
use udma_sim::order::litmus::Litmus;
use udma_sim::order::race::{Detector, PacketAccess};
use udma_sim::units::Addr;

fn explorer(criterion: &mut Criterion) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus/mp-pad.toml");
    let test = Litmus::load(&file).expect("a litmus test");
    let program = &test.cases[0].program;
    let mut group = criterion.benchmark_group("explorer");
    for (name, reduce) in [("reduced", true), ("brute force", false)] {
        let options = Options {
            reduce,
            ..Options::default()
        };
        let states = explore(program, options).expect("small enough").states;
        group.throughput(Throughput::Elements(states));
        group.bench_function(name, |b| {
            b.iter(|| explore(black_box(program), options));
        });
    }
    group.finish();
}

/// Sixteen queues that each copy block after block, with a signal that another one waits for.
fn races(criterion: &mut Criterion) {
    const QUEUES: u64 = 16;
    const PACKETS: u64 = 1 << 16;
    let program = || {
        let mut detector = Detector::new(Arch::V3, 1000);
        let host = detector.agent("host");
        for q in 0..QUEUES {
            let queue = detector.queue(EngineId(q as u32), 0, false);
            detector.doorbell(host, queue);
            for n in 0..PACKETS {
                let base = (q * PACKETS + n) * 8192;
                let mut packet = PacketAccess {
                    slot: n as u32,
                    reads: vec![(Addr(base), 4096)],
                    writes: vec![(Addr(base + 4096), 4096)],
                    ..PacketAccess::default()
                };
                if n % 64 == 63 {
                    packet.sow = true;
                    packet.increments.push((0, q as u32));
                }
                detector.packet(queue, &packet);
            }
        }
        detector.races().len()
    };
    let mut group = criterion.benchmark_group("race check");
    group.sample_size(10);
    group.throughput(Throughput::Elements(QUEUES * PACKETS));
    group.bench_function("1M descriptors on 16 queues", |b| {
        b.iter(|| black_box(program()))
    });
    group.finish();
}

criterion_group!(benches, explorer, races);
criterion_main!(benches);
