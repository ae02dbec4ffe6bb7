//! The event queue: schedule and pop with some hundred events pending, as a busy machine has.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use udma_sim::sim::{EventClass, EventQueue, Instant};

/// Events pending at any time.
const PENDING: u64 = 256;
/// Events handled per iteration.
const HANDLED: u64 = 10_000;

fn hold(c: &mut Criterion) {
    let mut group = c.benchmark_group("event_queue");
    group.throughput(Throughput::Elements(HANDLED));
    group.bench_function("pop and schedule, 256 pending", |b| {
        let mut queue = EventQueue::new();
        let parts: Vec<_> = (0..16).map(|_| queue.add_component()).collect();
        for n in 0..PENDING {
            let part = parts[n as usize % parts.len()];
            queue.schedule(Instant::from_fs(n * 7919), EventClass::Clocked, part, n);
        }
        b.iter(|| {
            for _ in 0..HANDLED {
                let Some((now, n)) = queue.pop() else { return };
                // Delays of many lengths, from a multiplicative sequence.
                let delay = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) + 1;
                let part = parts[n as usize % parts.len()];
                let at = Instant::from_fs(now.as_fs() + delay);
                queue.schedule(at, EventClass::Clocked, part, black_box(n + 1));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, hold);
criterion_main!(benches);
