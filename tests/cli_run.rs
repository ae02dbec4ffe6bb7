//! `udma-sim run`: output, exit status, options.

use snapbox::cmd::{Command, OutputAssert, cargo_bin};
use snapbox::{Assert, file};
use std::fs;

fn run(arguments: &[&str]) -> OutputAssert {
    Command::new(cargo_bin!("udma-sim"))
        .env_remove("RUST_LOG")
        .arg("run")
        .args(arguments)
        .assert()
}

fn stdout(assert: &OutputAssert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// Debug and release builds, and every machine, must print these bytes.
#[test]
fn the_json_report_is_the_one_kept() {
    let golden = Assert::new().action_env(snapbox::assert::DEFAULT_ACTION_ENV);
    for (config, file) in [
        ("sunda", file!["golden/quickstart.sunda.json"]),
        ("cayman", file!["golden/quickstart.cayman.json"]),
    ] {
        let run = run(&["traces/quickstart.toml", "--config", config, "--json"]).success();
        golden.eq(stdout(&run), file);
    }
}

#[test]
fn the_json_report_has_the_promised_keys() {
    let run = run(&["traces/quickstart.toml", "--json"])
        .success()
        .stderr_eq("");
    let report: serde_json::Value = serde_json::from_str(&stdout(&run)).unwrap();
    assert_eq!(report["scenario"], "quickstart");
    assert_eq!(report["arch"], "v3");
    assert_eq!(report["passed"], true);
    assert!(report["time_ns"].as_f64().unwrap() > 0.0);
    assert!(report["cycles"].as_u64().unwrap() > 0);
    assert_eq!(report["bytes"], (1 << 20) + 4);
    assert_eq!(report["expectations"].as_array().unwrap().len(), 4);
}

#[test]
fn config_and_seed_override_the_scenario() {
    let json = |arguments: &[&str]| {
        let run = run(&[&["traces/quickstart.toml", "--json"], arguments].concat()).success();
        serde_json::from_str::<serde_json::Value>(&stdout(&run)).unwrap()
    };
    let report = json(&["--config", "sunda", "--seed", "9"]);
    assert_eq!(
        (&report["arch"], &report["seed"]),
        (&"v2".into(), &9.into())
    );
    let path = "sim-configs/mariana.toml";
    let report = json(&["--config", path]);
    assert_eq!(
        (&report["arch"], &report["config"]),
        (&"v4".into(), &path.into())
    );
}

/// Files in a scenario, the config too, are relative to it.
#[test]
fn a_config_file_beside_the_scenario_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string("traces/quickstart.toml").unwrap();
    let text = text.replace("config = \"cayman\"", "config = \"slow.toml\"");
    let path = folder.path().join("scenario.toml");
    fs::write(&path, text).unwrap();
    let config = fs::read_to_string("sim-configs/sunda.toml").unwrap();
    let config = config.replace("udma = \"850MHz\"", "udma = \"800MHz\"");
    fs::write(folder.path().join("slow.toml"), config).unwrap();
    let run = run(&[path.to_str().unwrap()]).success();
    assert!(stdout(&run).contains(" cycles at 800 MHz"));
}

/// Runs the quickstart with something replaced.
fn run_changed(from: &str, to: &str) -> OutputAssert {
    let text = fs::read_to_string("traces/quickstart.toml").unwrap();
    assert!(text.contains(from), "{from:?} is in the scenario");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changed.toml");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
    run(&[path.to_str().unwrap()])
}

#[test]
fn a_failed_expectation_shows_what_differs() {
    let run = run_changed("equals = { initial = \"src\" }", "equals = { zero = true }").code(1);
    let report = stdout(&run);
    assert!(
        report.contains("FAIL  dst (1MiB) equals zeros\n      10"),
        "{report}"
    );
    assert!(
        report.contains(" of 1048576 bytes differ, first at offset 0: expected 0000"),
        "{report}"
    );
    assert!(
        report.ends_with("FAILED: 3 of 4 expectations held\n"),
        "{report}"
    );

    let run = run_changed(
        "semaphore = \"0.7\"\nequals = 1",
        "semaphore = \"0.7\"\nequals = 2",
    )
    .code(1);
    assert!(stdout(&run).contains("FAIL  semaphore 0.7 is 2\n      it is 1\n"));

    let run = run_changed("max = \"60us\"", "max = \"26us\"").code(1);
    assert!(stdout(&run).contains("FAIL  the run takes 25us to 26us\n"));
}

#[test]
fn a_wait_that_ends_badly_fails_the_run() {
    let run = run_changed("ge = 1", "ge = 2").code(1);
    let report = stdout(&run);
    assert!(
        report.contains("STOPPED  wait until semaphore 0.7 >= 2: stuck"),
        "{report}"
    );
    assert!(
        report.contains("pass  dst (1MiB) equals the initial content of src"),
        "{report}"
    );
    assert!(
        report.ends_with("FAILED, stopped before the last step: 4 of 4 expectations held\n"),
        "{report}"
    );

    let run = run_changed("ge = 1", "ge = 1\ntimeout = \"100 cycles\"").code(1);
    let report = stdout(&run);
    assert!(
        report.contains("STOPPED  wait until semaphore 0.7 >= 1: timed out after "),
        "{report}"
    );
}

/// An engine that aborts: the waits say which queue is stuck, the report which bit was set.
#[test]
fn an_engine_error_is_told() {
    let ring =
        "[[step]]\ndo = \"write\"\nat = \"tx\"\nhex = \"00\"\n\n[[step]]\ndo = \"init_queue\"";
    let run = run_changed(
        "[[step]]\ndo = \"init_queue\"",
        &ring.replace("\"00\"", "\"40 00 00 0e\""),
    )
    .code(1);
    let report = stdout(&run);
    assert!(
        report.contains("ring id of a descriptor does not match the lap"),
        "{report}"
    );
    assert!(report.contains("error     e0 m2s error bit 17"), "{report}");

    let expected = "errors = { engine = 0, m2s = [\"ring_id\"] }";
    let text = fs::read_to_string("traces/quickstart.toml").unwrap();
    let text = text
        .replace(
            "[[step]]\ndo = \"init_queue\"",
            &ring.replace("\"00\"", "\"40 00 00 0e\""),
        )
        .replace("semaphore = \"0.7\"\nge = 1", "cycles = 10000")
        .replace("[[step]]\ndo = \"wait\"\nengine = 0\nqueue = 0\n", "")
        .replace("equals = { initial = \"src\" }", "equals = { zero = true }")
        .replace(
            "semaphore = \"0.7\"\nequals = 1",
            "semaphore = \"0.7\"\nequals = 0",
        )
        .replace("no_errors = true", expected)
        .replace("min = \"25us\"", "min = \"10000 cycles\"");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("aborts.toml");
    fs::write(&path, text).unwrap();
    let run = self::run(&[path.to_str().unwrap()]).success();
    let report = stdout(&run);
    assert!(
        report.contains("pass  e0 reports ring_id on m2s, no error on s2m"),
        "{report}"
    );
}

#[test]
fn bad_input_runs_nothing() {
    run(&["traces/none.toml"]).code(2).stdout_eq("").stderr_eq(
        "error: cannot read scenario traces/none.toml: No such file or directory (os error 2)\n",
    );
    run(&["traces/quickstart.toml", "--config", "none"])
        .code(2)
        .stdout_eq("")
        .stderr_eq(
            "error: config \"none\" is neither a built-in config (sunda, cayman, mariana) nor a file\n",
        );
    run(&["traces/quickstart.toml", "--seed", "x"])
        .code(2)
        .stdout_eq("");
    run_changed("queue = 0", "queu = 0")
        .code(2)
        .stdout_eq("")
        .stderr_eq("error: [..]changed.toml:[..]: step[3]: \"queue\" is missing; write a whole number, 0 to 4294967295\n[..]: step[3].queu: unknown key; did you mean \"queue\"?\n");
}

#[test]
fn verbose_runs_log_their_steps_and_quiet_ones_nothing() {
    let log = |flag: &str| {
        let run = run(&["traces/quickstart.toml", flag]).success();
        String::from_utf8(run.get_output().stderr.clone()).unwrap()
    };
    assert!(log("-v").contains("dump_to_pring"));
    assert_eq!(log("-q"), "");
}
