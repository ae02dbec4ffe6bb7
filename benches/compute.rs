//! Bandwidth of the compute engine's arithmetic: bytes of all sources over time, beside a memcpy of the
//! same bytes and the same sum as a plain loop over `&[f32]`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use udma_sim::desc::DType;
use udma_sim::device::compute::{Extreme, Fma, Fold, Fp8, Reduction};

/// Bytes of one source.
const SOURCE_BYTES: usize = 64 << 10;
/// Sources of a reduction.
const SOURCES: usize = 4;

/// Bytes that are ordinary numbers in every type.
fn source_bytes() -> Vec<u8> {
    (0..SOURCES * SOURCE_BYTES)
        .map(|n| 0x3c ^ (n * 37 % 11) as u8)
        .collect()
}

fn reduce(c: &mut Criterion) {
    let sources = source_bytes();
    let mut group = c.benchmark_group("reduce");
    group.throughput(Throughput::Bytes(sources.len() as u64));

    let mut copy = vec![0; sources.len()];
    group.bench_function("memcpy of the sources", |b| {
        b.iter(|| black_box(&mut copy).copy_from_slice(black_box(&sources)));
    });

    let floats: Vec<f32> = sources
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect();
    let mut sum = vec![0.0f32; SOURCE_BYTES / 4];
    group.bench_function("plain f32 loop", |b| {
        b.iter(|| {
            let mut sources = black_box(&floats).chunks_exact(SOURCE_BYTES / 4);
            sum.copy_from_slice(sources.next().expect("four sources"));
            for source in sources {
                for (sum, value) in sum.iter_mut().zip(source) {
                    *sum += value;
                }
            }
            black_box(&mut sum);
        });
    });

    let add = Fold::Add { sources: SOURCES };
    let max = Fold::Extreme {
        extreme: Extreme::Max,
        sources: SOURCES,
        constants: vec![],
    };
    let fma = Fold::Fma(vec![Fma::scaled(0.5); SOURCES]);
    use DType::{Bfloat16, Fp8E4, Fp8E5, Fp16, Fp32, Int8, Int32};
    for (name, fold, in_dtype, acc_dtype, out_dtype) in [
        ("add", &add, Fp32, Fp32, Fp32),
        ("add", &add, Bfloat16, Fp32, Bfloat16),
        ("add", &add, Bfloat16, Bfloat16, Bfloat16),
        ("add", &add, Fp16, Fp32, Fp16),
        ("add", &add, Fp8E4, Fp32, Fp8E4),
        ("add", &add, Fp8E5, Fp32, Bfloat16),
        ("add", &add, Int32, Int32, Int32),
        ("add", &add, Int8, Int32, Int8),
        ("max", &max, Fp32, Fp32, Fp32),
        ("max", &max, Bfloat16, Fp32, Bfloat16),
        ("fma", &fma, Fp32, Fp32, Fp32),
        ("fma", &fma, Bfloat16, Fp32, Bfloat16),
    ] {
        let reduction = Reduction {
            in_dtype,
            acc_dtype,
            out_dtype,
            fp8: Fp8::DEFAULT,
            fold: fold.clone(),
        };
        let dtypes = [in_dtype, acc_dtype, out_dtype].map(DType::name).join(" ");
        let mut out = vec![0; reduction.result_bytes(sources.len())];
        group.bench_function(BenchmarkId::new(name, dtypes), |b| {
            b.iter(|| {
                reduction.run(black_box(&sources), None, black_box(&mut out));
            });
        });
    }
    group.finish();
}

fn cast(c: &mut Criterion) {
    let sources = source_bytes();
    let sources = &sources[..SOURCE_BYTES];
    let mut group = c.benchmark_group("cast");
    group.throughput(Throughput::Bytes(SOURCE_BYTES as u64));
    use DType::{Bfloat16, Fp8E4, Fp16, Fp32};
    for (in_dtype, out_dtype) in [
        (Fp32, Bfloat16),
        (Bfloat16, Fp32),
        (Fp32, Fp16),
        (Bfloat16, Fp8E4),
        (Fp8E4, Bfloat16),
    ] {
        let reduction = Reduction::cast(in_dtype, out_dtype, Fp8::DEFAULT);
        let dtypes = [in_dtype, out_dtype].map(DType::name).join(" ");
        let mut out = vec![0; reduction.result_bytes(sources.len())];
        group.bench_function(dtypes, |b| {
            b.iter(|| {
                reduction.run(black_box(sources), None, black_box(&mut out));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, reduce, cast);
criterion_main!(benches);
