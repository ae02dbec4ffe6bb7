//! The command, run as a user runs it.

use snapbox::cmd::{Command, OutputAssert, cargo_bin};
use std::path::Path;

pub fn udma_sim(arguments: &[&str]) -> OutputAssert {
    Command::new(cargo_bin!("udma-sim"))
        .env_remove("RUST_LOG")
        .args(arguments)
        .assert()
}

pub fn stdout(assert: &OutputAssert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

pub fn stderr(assert: &OutputAssert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
