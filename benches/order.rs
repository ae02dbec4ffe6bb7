//! The explorer on the catalogue: states per second, with and without partial-order reduction.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use udma_sim::order::explore::{Options, explore};
use udma_sim::order::litmus::Litmus;

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

criterion_group!(benches, explorer);
criterion_main!(benches);
