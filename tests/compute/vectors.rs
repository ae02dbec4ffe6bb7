//! Reads the vectors that `scripts/make_compute_vectors.py` makes; their format is described there.
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use udma_sim::desc::DType;
use udma_sim::device::compute::{Fp8, Overflow, Reduction};

/// The elements of every section, as bytes in memory order.
pub fn sections(file: &str) -> BTreeMap<String, Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let packed = std::fs::read(path.join(file)).unwrap();
    let mut data = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(packed.as_slice());
    reader.read_to_end(&mut data).unwrap();
    let mut rest = data.as_slice();
    let mut sections = BTreeMap::new();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let header = std::str::from_utf8(&rest[..end]).unwrap();
        let mut fields = header.rsplitn(3, ':');
        let size: usize = fields.next().unwrap().parse().unwrap();
        let count: usize = fields.next().unwrap().parse().unwrap();
        let name = fields.next().unwrap().to_string();
        let (planes, next) = rest[end + 1..].split_at(count * size);
        let mut bytes = vec![0; planes.len()];
        let mut byte = 0u8;
        for (index, step) in planes.iter().enumerate() {
            byte = byte.wrapping_add(*step);
            bytes[index % count * size + index / count] = byte;
        }
        sections.insert(name, bytes);
        rest = next;
    }
    sections
}

/// A type as the vectors name it: fp8_e4_ocp is fp8_e4 with the control set.
pub fn dtype(name: &str) -> (DType, Fp8) {
    let ocp_e4m3 = name == "fp8_e4_ocp";
    let plain = name.trim_end_matches("_ocp");
    let dtype = DType::all().find(|dtype| dtype.name() == plain).unwrap();
    let fp8 = Fp8 {
        ocp_e4m3,
        overflow: Overflow::Special,
    };
    (dtype, fp8)
}

/// Runs a reduction into a fresh buffer.
pub fn reduce(reduction: &Reduction, sources: &[u8]) -> Vec<u8> {
    let mut result = vec![0xa5; reduction.result_bytes(sources.len())];
    reduction.run(sources, None, &mut result);
    result
}

/// Panics at the first element that differs.
pub fn assert_elements(what: &str, size: usize, input: &[u8], got: &[u8], expected: &[u8]) {
    assert_eq!(got.len(), expected.len(), "{what}: length");
    let input_size = input.len() / (got.len() / size);
    for (index, (got, expected)) in got.chunks(size).zip(expected.chunks(size)).enumerate() {
        let input = &input[index * input_size..][..input_size];
        assert_eq!(
            got, expected,
            "{what}, element {index}, input {input:02x?} (bytes, lowest first)"
        );
    }
}
