//! Timed copies on one engine, beside a `memcpy` of the same bytes in the same run.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use udma_sim::arch::regs::Direction;
use udma_sim::arch::{Arch, EngineId};
use udma_sim::config::Config;
use udma_sim::host::{Bus, Pring, QueueOptions, QueuePair, QueueSetup, Vring};
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, System, WaitOutcome};
use udma_sim::units::Addr;

const SRC: Addr = Addr(0x1000_0000);
const DST: Addr = Addr(0x40_1000_0000);
/// In the same HBM stack as the source: reads and writes meet there, and some wait for each other.
const DST_NEAR: Addr = Addr(0x2000_0000);

/// A machine with `count` copies of `len` bytes to `dst` dumped and a queue ready for its doorbells.
fn armed(count: u32, len: u64, dst: Addr) -> (System, QueuePair, u32) {
    let config = Config::builtin("cayman").expect("built in").expect("valid");
    let mut system = System::new(config, 0).expect("a machine");
    system
        .write_mem(SRC, &vec![0x5a; len as usize])
        .expect("memory");
    system
        .write_mem(dst, &vec![0; len as usize])
        .expect("memory");
    let mut vring = Vring::new(Arch::V3, "bench").expect("a vring");
    for _ in 0..count {
        vring.add_desc_transfer(SRC, dst, len).expect("room");
    }
    let descs = vring.tx().used_desc_count();
    let ring = descs.next_multiple_of(16).max(32);
    let mut tx = Pring::new(Direction::M2s, Addr(0), ring).expect("a ring");
    let mut rx = Pring::new(Direction::S2m, Addr(0x800_0000), ring).expect("a ring");
    vring
        .dump_to_pring(&mut system, &mut tx, &mut rx)
        .expect("dumped");
    let engine = EngineId(0);
    let queue = QueuePair::init(
        &mut system,
        QueueSetup {
            arch: Arch::V3,
            engine,
            queue: 0,
            tx: &tx,
            rx: &rx,
            options: QueueOptions::default(),
        },
    )
    .expect("a queue");
    (system, queue, descs)
}

fn run((mut system, queue, descs): (System, QueuePair, u32)) -> System {
    queue.trigger(&mut system, descs, descs).expect("doorbells");
    let outcome = system.run_until(&Condition::Idle, Duration::from_ns(1_000_000_000));
    assert_eq!(outcome, WaitOutcome::Met);
    system
}

fn copies(c: &mut Criterion) {
    let mut group = c.benchmark_group("copy");
    group.sample_size(20);

    // A stream of 64 KiB descriptors, from one MiB to another, again and again.
    let (times, bytes) = (16, 1 << 20);
    group.throughput(Throughput::Bytes(u64::from(times) * bytes));
    group.bench_function("16 MiB timed, 64 KiB descriptors", |b| {
        b.iter_batched(|| armed(times, bytes, DST), run, BatchSize::PerIteration);
    });
    group.bench_function("16 MiB timed, 64 KiB descriptors, one stack", |b| {
        let armed = || armed(times, bytes, DST_NEAR);
        b.iter_batched(armed, run, BatchSize::PerIteration);
    });
    group.bench_function("16 MiB memcpy", |b| {
        let src = vec![0x5au8; bytes as usize];
        let mut dst = vec![0u8; bytes as usize];
        b.iter(|| {
            for _ in 0..times {
                black_box(&mut dst[..]).copy_from_slice(black_box(&src[..]));
            }
        });
    });

    let count = 10_000;
    group.throughput(Throughput::Elements(u64::from(count)));
    group.bench_function("10000 descriptors of 4 bytes timed", |b| {
        b.iter_batched(|| armed(count, 4, DST), run, BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, copies);
criterion_main!(benches);
