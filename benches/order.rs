//! The explorer on the catalogue: states per second, with and without partial-order reduction. The race
//! check: descriptors per second.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use udma_sim::config::Config;
use udma_sim::order::explore::{Options, explore};
use udma_sim::order::litmus::Litmus;
use udma_sim::scenario::Scenario;

#[path = "../tests/common/million.rs"]
mod million;

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

/// A scenario of a million descriptors on sixteen queues.
fn races(criterion: &mut Criterion) {
    const DESCRIPTORS: u64 = 1_000_000;
    let text = million::scenario(DESCRIPTORS, true);
    let scenario = Scenario::parse(Path::new("million.toml"), text).expect("a scenario");
    let config = Config::builtin("cayman")
        .expect("a config")
        .expect("its name");
    let plan = scenario.plan(config, 0).expect("a plan");
    let mut group = criterion.benchmark_group("race check");
    group.sample_size(10);
    group.throughput(Throughput::Elements(DESCRIPTORS));
    group.bench_function("races", |b| b.iter(|| black_box(plan.races())));
    group.bench_function("superfluous barriers", |b| {
        b.iter(|| black_box(plan.superfluous()));
    });
    group.finish();
}

criterion_group!(benches, explorer, races);
criterion_main!(benches);
