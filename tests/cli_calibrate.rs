//! `udma-sim calibrate`: bad input. The figures themselves are a step of CI: they take a release build.

use snapbox::cmd::{Command, cargo_bin};
use std::fs;

fn udma_sim() -> Command {
    Command::new(cargo_bin!("udma-sim")).env_remove("RUST_LOG")
}

#[test]
fn a_config_that_is_none_is_refused_before_anything_runs() {
    udma_sim()
        .args(["calibrate", "nope"])
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq(
            "error: config \"nope\" is neither a built-in config (sunda, cayman, mariana) nor a file\n",
        );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let text = fs::read_to_string("sim-configs/cayman.toml").unwrap();
    fs::write(&path, text.replace("hbm-cayman", "hbm-sunda")).unwrap();
    udma_sim()
        .arg("calibrate")
        .arg(&path)
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq(
            "error: config [..]mine.toml:91:10: fabric.hbm.memory: hbm-sunda is invalid; must have 4 stacks of 24GiB, like the device; it has 2 of [..]\n",
        );
}
