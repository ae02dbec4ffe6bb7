//! `udma-sim check`: races of whole scenarios, on scenarios written here and on those of `traces/`.

use std::process::Command;

fn check(args: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_udma-sim"))
        .arg("check")
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        text(output.stdout),
        text(output.stderr),
        output.status.code(),
    )
}

#[test]
fn a_missing_barrier_before_a_semaphore_is_a_race_and_the_barriers_are_none() {
    let (out, err, code) = check(&["--deny", "races", "traces/dmb-vs-sow.toml"]);
    assert_eq!((err.as_str(), code), ("", Some(1)));
    assert!(
        out.contains("write by e0 queue 0 slot 0 (packet 0)"),
        "{out}"
    );
    assert!(out.contains("read  by sequencer reader-none"), "{out}");
    assert!(
        out.contains("fix: SOW on the Rx descriptor of packet 1 (slot 1), the signal"),
        "{out}"
    );
    assert!(out.ends_with("v3: 1 races in 264 packets\n"), "{out}");
    let (_, _, code) = check(&["traces/dmb-vs-sow.toml"]);
    assert_eq!(code, Some(0), "races alone are a finding, not a failure");
}

#[test]
fn a_scenario_in_order_has_none_on_any_generation() {
    let (out, err, code) = check(&[
        "--deny",
        "races",
        "--arch",
        "v2",
        "--arch",
        "v3",
        "--arch",
        "v4",
        "traces/quickstart.toml",
    ]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert_eq!(
        out,
        "v2: no races in 17 packets\nv3: no races in 17 packets\nv4: no races in 17 packets\n\n"
    );
}

#[test]
fn json_and_sarif_carry_the_race() {
    let (out, _, _) = check(&["--json", "traces/dmb-vs-sow.toml"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json[0]["arch"], "v3");
    assert_eq!(json[0]["races"][0]["first"]["access"], "write");
    let (out, _, _) = check(&["--sarif", "traces/dmb-vs-sow.toml"]);
    let sarif: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let (out, err, code) = check(&["traces/driver.toml"]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(err.contains("does not follow drivers yet"), "{err}");
}
