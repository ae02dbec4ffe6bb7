//! `udma-sim litmus` and `udma-sim differential` as commands: output, exit status, refusals.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/litmus")
        .join(name)
}

fn run(args: &[&str]) -> (String, String, Option<i32>) {
    let Output {
        stdout,
        stderr,
        status,
    } = Command::new(env!("CARGO_BIN_EXE_udma-sim"))
        .args(args)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(stdout), text(stderr), status.code())
}

/// What a file with a part replaced is answered with.
fn edited(from: &str, to: &str) -> (String, String, Option<i32>) {
    let text = fs::read_to_string(file("mp.toml")).unwrap();
    assert!(text.contains(from), "{from} is in the file");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.toml");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
    let (out, err, code) = run(&["litmus", path.to_str().unwrap()]);
    let prefix = format!("{}/", folder.path().display());
    (out.replace(&prefix, ""), err.replace(&prefix, ""), code)
}

#[test]
fn an_allowed_outcome_comes_with_a_witness() {
    let path = file("mp.toml");
    let (out, err, code) = run(&["litmus", "--arch", "v2", path.to_str().unwrap()]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let allowed = "
MP [none] v2
States 4
1      :> r1=0; r2=0;
1      :> r1=0; r2=1;
1      *> r1=1; r2=0;
1      :> r1=1; r2=1;
Witnesses
Positive: 1 Negative: 3
Condition r1=1 and r2=0
Observation MP Sometimes 1 3
";
    assert!(out.contains(allowed), "{out}");
    assert!(out.contains("Observation MP Never 0 3"), "{out}");
    let order = [
        "p2  write visible: y = 1",
        "H  reads y = 1",
        "H  reads x = 0",
        "p1  write visible: x = 1",
    ];
    let places: Vec<usize> = order.iter().map(|step| out.find(step).unwrap()).collect();
    assert!(places.is_sorted(), "{out}");
    // SOW needs V3: three answers on V2.
    assert!(out.contains("\n3 answers, "), "{out}");
}

#[test]
fn another_answer_than_expected_is_exit_status_1() {
    let (out, _, code) = edited(
        "mode = \"none\"\nanswer = \"allowed\"",
        "mode = \"none\"\nanswer = \"forbidden\"",
    );
    assert_eq!(code, Some(1));
    assert!(out.contains("Allowed, EXPECTED Forbidden"), "{out}");
    assert!(out.contains("3 NOT AS EXPECTED"), "{out}");
}

#[test]
fn a_bound_that_is_hit_is_unknown_and_exit_status_1() {
    let path = file("mp.toml");
    let (out, _, code) = run(&["litmus", "--max-states", "3", path.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(
        out.contains("Unknown (--max-states reached), EXPECTED Forbidden"),
        "{out}"
    );
    assert!(out.contains("INCOMPLETE"), "{out}");
}

#[test]
fn a_stored_witness_replays() {
    let folder = tempfile::tempdir().unwrap();
    let path = file("raw.toml");
    let (path, saved) = (path.to_str().unwrap(), folder.path().to_str().unwrap());
    let (_, _, code) = run(&["litmus", "-s", "--arch", "v3", "--save", saved, path]);
    assert_eq!(code, Some(0));
    let witness = folder.path().join("raw.v3.none.json");
    let (out, err, code) = run(&["litmus", "--replay", witness.to_str().unwrap(), path]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(
        out.ends_with("Ends in y=0; the outcome in question: y=0\n"),
        "{out}"
    );
    // The same decisions where a barrier forbids them.
    let text = fs::read_to_string(&witness)
        .unwrap()
        .replace("\"none\"", "\"dmb on p1\"");
    fs::write(&witness, text).unwrap();
    let (_, err, code) = run(&["litmus", "--replay", witness.to_str().unwrap(), path]);
    assert_eq!(code, Some(2));
    assert!(err.contains("is not possible here"), "{err}");
}

#[test]
fn the_timing_engine_is_asked_too() {
    let path = file("raw.toml");
    let (out, _, code) = run(&[
        "litmus",
        "-s",
        "--arch",
        "v3",
        "--timed",
        "40",
        path.to_str().unwrap(),
    ]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("timed v3: 0 of 40 runs; as expected"), "{out}");
    assert!(out.contains("of 40 runs, first with seed"), "{out}");
}

#[test]
fn refusals_name_file_line_and_what_would_be_right() {
    for (from, to, message) in [
        (
            "copy = \"one\", to = \"x\"",
            "copy = \"uno\", to = \"x\"",
            "t.toml:14:28: queue[0].descs[0].copy: unknown cell \"uno\"",
        ),
        (
            "to = \"x\" }",
            "to = \"x\", size = 8 }",
            "t.toml:14:40: queue[0].descs[0].to: bytes 0..8 are not whole grains of 4 bytes within the 4 bytes of \"x\"",
        ),
        (
            "to = \"x\" }",
            "to = \"x\", inc = \"y\" }",
            "t.toml:14:5: queue[0].descs[0]: a descriptor needs exactly one of \"to\" and \"inc\"",
        ),
        (
            "to = \"y\" }",
            "to = \"y\", concat = true }",
            "t.toml:15:5: queue[0].descs[1]: queue Q0 ends inside a packet",
        ),
        (
            "on = [\"p1\"]",
            "on = [\"p9\"]",
            "unknown descriptor labelled \"p9\"",
        ),
        (
            "{ read = \"y\", as = \"r1\" }",
            "{ wait = \"y\", ge = 1 }",
            "a wait for memory takes only \"eq\", without \"then\"",
        ),
        (
            "{ read = \"y\", as = \"r1\" }",
            "{ ring = \"Q0\" }",
            "set rung = false on it",
        ),
        ("r1 = 1", "r7 = 1", "unknown register or cell \"r7\""),
        ("r1 = 1", "r1 = \"many\"", "write a number, or \"!= N\""),
        (
            "about =",
            "abuot =",
            "t.toml:4:1: abuot: unknown key; did you mean \"about\"?",
        ),
        (
            "mode = \"dmb\"",
            "mode = \"dbm\"",
            "mode: \"dbm\" is not \"none\", \"dmb\", \"write_barrier\" or \"sow\"",
        ),
    ] {
        let (out, err, code) = edited(from, to);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{to}: {err}");
        assert!(err.contains(message), "{to}: {err}");
    }
    let (_, err, code) = run(&["litmus", "no/such/file.toml"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("no/such/file.toml"), "{err}");
}

#[test]
fn random_programs_are_compared() {
    let (out, err, code) = run(&[
        "differential",
        "--programs",
        "5",
        "--arch",
        "v4",
        "--bound",
        "5000",
        "--runs",
        "3",
    ]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(
        out.starts_with("v4: ") && out.contains("programs agree"),
        "{out}"
    );
}
