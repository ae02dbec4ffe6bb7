//! The litmus catalogue as scenarios: each answer becomes a file that `run` accepts and that shows the
//! outcome asked, if it is allowed, or else that it did not happen.

use std::path::Path;
use std::process::Command;
use udma_sim::config::Config;
use udma_sim::order::litmus::{Answer, Case, Litmus};
use udma_sim::scenario::{Emitted, Scenario, emit};

fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/litmus")
        .join(name)
}

/// Every answer of a test once for each distinct program, generations taking turns.
fn cases(test: &Litmus) -> Vec<&Case> {
    let mut cases: Vec<&Case> = Vec::new();
    for (turn, group) in test
        .cases
        .chunk_by(|a, b| a.program == b.program)
        .enumerate()
    {
        cases.push(&group[turn % group.len()]);
    }
    cases
}

#[test]
fn every_answer_of_the_catalogue_becomes_a_scenario_that_shows_it() {
    let (mut allowed, mut forbidden) = (0, 0);
    for test in Litmus::load_all(&file("")).unwrap() {
        for case in cases(&test) {
            let name = format!("{} [{}] on {}", test.name, case.barrier(), case.arch);
            let config = Config::builtin(case.arch.spec().code_name)
                .unwrap()
                .unwrap();
            let emitted = emit("litmus", case, &config).unwrap_or_else(|e| panic!("{name}: {e}"));
            let Emitted {
                text,
                config,
                config_name,
                ..
            } = &emitted;
            let scenario = Scenario::parse(Path::new("litmus.toml"), text.clone()).unwrap();
            assert_eq!(scenario.config_name(), config_name);
            let config = Config::parse(config_name, config).unwrap();
            let plan = scenario.plan(config, scenario.seed()).unwrap();
            let report = plan.run(&mut |_| ()).unwrap();
            assert!(report.passed, "{name}: {report}\n{text}");
            assert!(!report.expectations.is_empty(), "{name}");
            match case.expected {
                Answer::Allowed => allowed += 1,
                Answer::Forbidden => forbidden += 1,
            }
        }
    }
    assert!(
        allowed > 30 && forbidden > 40,
        "{allowed} allowed, {forbidden} forbidden"
    );
}

/// The command writes scenario and config side by side, and `run` takes them from there.
#[test]
fn the_command_writes_files_that_run_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/folder");
    let udma_sim = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_udma-sim"))
            .args(args)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            text(output.stdout),
            text(output.stderr),
            output.status.code(),
        )
    };
    let (litmus, target) = (file("mp.toml"), out.to_str().unwrap());
    let args = [
        "litmus",
        "-s",
        "--arch",
        "v3",
        "--emit-scenario",
        target,
        litmus.to_str().unwrap(),
    ];
    let (text, err, code) = udma_sim(&args);
    assert_eq!((err.as_str(), code), ("", Some(0)), "{text}");
    assert!(
        text.contains("mp.v3.none.toml: shows r1=1 and r2=0, seed "),
        "{text}"
    );
    assert!(
        text.contains("mp.v3.dmb-p1.toml: never shows r1=1 and r2=0, seed "),
        "{text}"
    );
    for (name, races) in [
        ("mp.v3.none.toml", "races     "),
        ("mp.v3.dmb-p1.toml", "races     "),
    ] {
        let path = out.join(name);
        let (text, err, code) = udma_sim(&["run", path.to_str().unwrap()]);
        assert_eq!((err.as_str(), code), ("", Some(0)), "{text}");
        assert!(text.contains(races), "{text}");
    }
    // A file where the folder should be.
    let taken = folder.path().join("taken");
    std::fs::write(&taken, "").unwrap();
    let args = [
        "litmus",
        "-s",
        "--emit-scenario",
        taken.to_str().unwrap(),
        litmus.to_str().unwrap(),
    ];
    let (_, err, code) = udma_sim(&args);
    assert_eq!(code, Some(2));
    assert!(
        err.contains("cannot write") && err.contains("taken"),
        "{err}"
    );
}
