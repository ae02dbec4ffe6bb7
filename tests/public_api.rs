//! The public API of the library against docs/public-api.txt, so that a change of it is seen and meant.
//!
//! It is read from rustdoc's JSON, which is unstable and differs from one Rust to the next: CI runs this test by name,
//! with the toolchain that the file was written with. `UPDATE_DOCS=1` rewrites the file.

use std::fs;
use std::process::Command;

const WRITTEN_DOWN: &str = "docs/public-api.txt";

/// What bitfields have for each field beside a getter, `with_` and `set_`.
fn is_repetition(line: &str) -> bool {
    ["_BITS: usize", "_OFFSET: usize", "_checked("]
        .iter()
        .any(|end| line.contains(end))
}

#[test]
#[ignore = "reads rustdoc's unstable JSON"]
fn the_public_api_is_the_one_written_down() {
    let rustdoc = Command::new(env!("CARGO"))
        .args(["rustdoc", "--lib", "--locked", "--"])
        .args(["-Zunstable-options", "--output-format", "json"])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", "target")
        .status();
    assert!(rustdoc.unwrap().success());
    let api = public_api::Builder::from_rustdoc_json("target/doc/udma_sim.json")
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .unwrap();
    let found: String = (api.items().map(|item| format!("{item}\n")))
        .filter(|line| !is_repetition(line))
        .collect();
    assert!(found.contains("pub fn udma_sim::host::Vring::dump_to_pring("));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(WRITTEN_DOWN, &found).unwrap();
    }
    let expected = fs::read_to_string(WRITTEN_DOWN).unwrap();
    snapbox::assert_data_eq!(found, snapbox::Data::from(expected).raw());
}
