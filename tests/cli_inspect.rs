//! `udma-sim inspect` on hand-made ring dumps.

use std::io::Write;
use std::process::{Command, Output};
use tempfile::NamedTempFile;

/// A dump of descriptors, followed by `tail`.
fn dump(descs: &[[u32; 4]], tail: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    for word in descs.iter().flatten() {
        file.write_all(&word.to_le_bytes()).unwrap();
    }
    file.write_all(tail).unwrap();
    file
}

fn inspect(file: &NamedTempFile, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_udma-sim"))
        .arg("inspect")
        .arg(file.path())
        .args(args)
        .output()
        .unwrap()
}

/// Standard output and exit status.
fn answer(output: Output) -> (String, Option<i32>) {
    (
        String::from_utf8(output.stdout).unwrap(),
        output.status.code(),
    )
}

#[test]
fn a_clean_tx_ring() {
    let ring = dump(
        &[
            [0x0d00_0000, 0x0108_0003, 0x1000, 0x8000],
            [0x4d00_0004, 0x0508_0003, 0x1000, 0x8000],
            [0x0580_0000, 0x06a0_0000, 1, 2],
            [0x8900_0100, 0x020a_70d0, 0x10, 0x20],
        ],
        &[0; 160],
    );
    let want = "
     0  packet 0      ring id 1  65536 B at 0x0000800000001000  FIRST  LAST  copy
     1  packet 1      ring id 1      4 B at 0x0000800000001000  FIRST  LAST  DMB  WRITE_BARRIER  copy
     2  packet 2      ring id 1  words 0x00000001 0x00000002    FIRST  META  constant dtype=fp32
     3  packet 2      ring id 1    256 B at 0x0000002000000010  LAST  CONCAT  WRITE_BARRIER  add last_source flag out=fp16 acc=fp32
     4  unused from here on: 10 all-zero slots
descriptors 4, packets 3, bytes 65796, malformed 0
";
    assert_eq!(
        answer(inspect(&ring, &["--dir", "tx"])),
        (want[1..].to_string(), Some(0))
    );
}

#[test]
fn a_malformed_tx_ring() {
    let ring = dump(
        &[
            [0x0101_0100, 0x0108_0007, 0x10, 0x2000_0000],
            [0x2400_0100, 0x1108_0003, 0x10, 0],
            [0x0c00_0100, 0x0200_0006, 0x10, 0],
            [0x0400_0100, 0x0108_0003, 0x10, 0],
        ],
        b"abc",
    );
    let want = "
     0  packet 0      ring id 1    256 B at 0x2000000000000010  copy  !! reserved bits set in len_ctrl; reserved bits set in meta_ctrl; unresolved template pointer: variable 0 + 0x10; a descriptor without FIRST outside a packet
     1  packet 1      ring id 0    256 B at 0x0000000000000010  FIRST  STRONG_ORDER_WR  NOTIFICATION  copy  !! STRONG_ORDER_WR on a Tx descriptor; notification mask needs v4; FIRST inside a packet
     2  packet 2      ring id 0    256 B at 0x0000000000000010  FIRST  LAST  unknown_op  !! unknown op word 0x02000006; FIRST inside a packet
     3  packet 3      ring id 0    256 B at 0x0000000000000010  FIRST  copy  !! the packet does not end with LAST
!! 3 bytes follow the last whole descriptor of 16 bytes
descriptors 4, packets 4, bytes 1024, malformed 5
";
    assert_eq!(
        answer(inspect(&ring, &["--dir", "tx"])),
        (want[1..].to_string(), Some(1))
    );
}

#[test]
fn rx_rings_depend_on_the_generation() {
    let ring = dump(
        &[
            [0x0100_0000, 0, 0x1000, 0x8000],
            [0x2100_0004, 0, 0x1000, 0x8000],
        ],
        &[],
    );
    let lines = "     0  ring id 1  65536 B at 0x0000800000001000
     1  ring id 1      4 B at 0x0000800000001000  STRONG_ORDER_WR";
    let end = "descriptors 2, bytes 65540, malformed";
    assert_eq!(
        answer(inspect(&ring, &["--dir", "rx"])),
        (format!("{lines}\n{end} 0\n"), Some(0))
    );
    assert_eq!(
        answer(inspect(&ring, &["--dir", "rx", "--arch", "sunda"])),
        (
            format!("{lines}  !! STRONG_ORDER_WR needs v3 or later\n{end} 1\n"),
            Some(1)
        )
    );
}

#[test]
fn rx_rings_have_no_use_for_tx_bits() {
    let ring = dump(&[[0x4180_0100, 7, 0x10, 0x20]], &[]);
    let want = "
     0  ring id 1    256 B at 0x0000002000000010  META  DMB  !! META on an Rx descriptor; DMB on an Rx descriptor; buf2_ptr_lo is 0x7; it must be 0
descriptors 1, bytes 256, malformed 1
";
    assert_eq!(
        answer(inspect(&ring, &["--dir", "rx"])),
        (want[1..].to_string(), Some(1))
    );
}

#[test]
fn packets_have_as_many_descriptors_as_the_generation_allows() {
    let mut descs = [[0x0100_0004, 0x0108_0003, 0, 0]; 66];
    descs[0][0] |= 0x0400_0000;
    descs[65][0] |= 0x0800_0000;
    let ring = dump(&descs, &[]);
    let (text, status) = answer(inspect(&ring, &["--dir", "tx", "--arch", "v3"]));
    assert_eq!(status, Some(1));
    let faults: Vec<_> = text.lines().filter(|line| line.contains("!!")).collect();
    assert_eq!(faults.len(), 1);
    assert!(faults[0].starts_with("    65  packet 0 "));
    assert!(faults[0].ends_with("!! more than 65 descriptors in the packet"));
    let (_, status) = answer(inspect(&ring, &["--dir", "tx", "--arch", "v2"]));
    assert_eq!(status, Some(0));
}

#[test]
fn json_says_the_same() {
    let ring = dump(&[[0x0d00_0040, 0x0120_0000, 0x1000, 0]], &[0; 17]);
    let (text, status) = answer(inspect(&ring, &["--dir", "tx", "--json"]));
    let want = serde_json::json!({
        "dir": "tx",
        "arch": "v3",
        "descriptors": [{
            "index": 0,
            "packet": 0,
            "ring_id": 1,
            "flags": ["FIRST", "LAST"],
            "bytes": 64,
            "address": "0x0000000000001000",
            "op": "crc32c no_data_out not_first_block not_last_block",
            "malformed": [],
        }],
        "unused_slots": 1,
        "faults": ["1 bytes follow the last whole descriptor of 16 bytes"],
        "descriptor_count": 1,
        "packet_count": 1,
        "bytes": 64,
        "malformed": 1,
    });
    let got: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((got, status), (want, Some(1)));
}

#[test]
fn an_empty_ring_is_no_success() {
    for tail in [&[][..], &[0; 64]] {
        let (text, status) = answer(inspect(&dump(&[], tail), &["--dir", "rx"]));
        assert!(text.contains("!! the ring has no descriptors\n"), "{text}");
        assert_eq!(status, Some(1));
    }
}

#[test]
fn bad_arguments_have_a_status_of_their_own() {
    let ring = dump(&[], &[]);
    let path = ring.path().to_owned();
    assert_eq!(inspect(&ring, &[]).status.code(), Some(2));
    assert_eq!(inspect(&ring, &["--dir", "up"]).status.code(), Some(2));
    assert_eq!(
        inspect(&ring, &["--dir", "tx", "--arch", "v9"])
            .status
            .code(),
        Some(2)
    );
    std::fs::remove_file(&path).unwrap();
    let output = inspect(&ring, &["--dir", "tx"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains(&format!("cannot read {}", path.display())),
        "{error}"
    );
}
