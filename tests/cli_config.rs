//! `udma-sim config show`, logs and exit status.

use snapbox::cmd::{Command, cargo_bin};
use std::fs;

fn udma_sim() -> Command {
    Command::new(cargo_bin!("udma-sim")).env_remove("RUST_LOG")
}

#[test]
fn config_show_prints_the_built_in_file() {
    let cayman = fs::read_to_string("sim-configs/cayman.toml").unwrap();
    udma_sim()
        .args(["config", "show"])
        .assert()
        .success()
        .stdout_eq(cayman);
    let sunda = fs::read_to_string("sim-configs/sunda.toml").unwrap();
    udma_sim()
        .args(["config", "show", "sunda"])
        .assert()
        .success()
        .stdout_eq(sunda);
}

#[test]
fn config_show_prints_and_checks_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let text = fs::read_to_string("sim-configs/sunda.toml").unwrap();
    fs::write(&path, &text).unwrap();
    udma_sim()
        .args(["config", "show"])
        .arg(&path)
        .assert()
        .success()
        .stdout_eq(&text);

    fs::write(&path, text.replace("burst_bytes", "burst_byte")).unwrap();
    udma_sim()
        .args(["config", "show"])
        .arg(&path)
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq("error: config [..]mine.toml:[..]: engine: \"burst_bytes\" is missing[..]\n[..]mine.toml:25:1: engine.burst_byte: unknown key; did you mean \"burst_bytes\"?\n");
}

#[test]
fn unknown_configs_and_arguments_are_bad_input() {
    udma_sim()
        .args(["config", "show", "caymen"])
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq(
            "error: config \"caymen\" is neither a built-in config (sunda, cayman, mariana) nor a file\n",
        );
    udma_sim().args(["config", "list"]).assert().code(2);
    udma_sim()
        .args(["-v", "-q", "config", "show"])
        .assert()
        .code(2);
}
