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

/// A scenario of one's own: a queue that copies x to y with `data`, then increments a semaphore with
/// `signal`; the host waits for the semaphore and looks at y.
fn message(data: &str, signal: &str) -> String {
    format!(
        r#"name = "message"
[[memory]]
name = "x"
at = "hbm0 + 1MiB"
size = "4KiB"
random = true
[[memory]]
name = "y"
at = "hbm1 + 1MiB"
size = "4KiB"
zero = true
[[pring]]
name = "tx"
type = "tx"
at = "hbm0"
descriptors = 32
[[pring]]
name = "rx"
type = "rx"
at = "hbm0 + 4KiB"
descriptors = 32
[[step]]
label = "the data"
do = "add_desc_transfer"
vring = "v"
from = "x"
to = "y"
size = "4KiB"
barrier = "{data}"
[[step]]
do = "add_desc_semaphore_inc"
vring = "v"
semaphore = "0.7"
barrier = "{signal}"
[[step]]
do = "dump_to_pring"
vring = "v"
tx = "tx"
rx = "rx"
[[step]]
do = "init_queue"
engine = 0
queue = 0
tx = "tx"
rx = "rx"
[[step]]
do = "trigger"
engine = 0
queue = 0
[[step]]
do = "wait"
semaphore = "0.7"
ge = 1
[[step]]
do = "observe"
name = "seen"
at = "y"
"#
    )
}

/// What `check` says of a scenario's text.
fn check_text(text: &str, args: &[&str]) -> (String, String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.toml");
    std::fs::write(&path, text).unwrap();
    let mut all = args.to_vec();
    all.push(path.to_str().unwrap());
    let (out, err, code) = check(&all);
    let prefix = format!("{}/", folder.path().display());
    (out.replace(&prefix, ""), err.replace(&prefix, ""), code)
}

#[test]
fn a_missing_barrier_before_a_semaphore_is_a_race_and_the_barriers_are_none() {
    let (out, err, code) = check(&["--deny", "races", "--untimed", "traces/dmb-vs-sow.toml"]);
    assert_eq!((err.as_str(), code), ("", Some(1)));
    for line in [
        "write by e0 queue 0 slot 0 (packet 0)\n",
        "add_desc_transfer message -> x-none, 64KiB, barrier none\n",
        "read  by sequencer reader-none\n",
        "read 65536 bytes at 0x4001000000 as \"seen-none\"\n",
        "fix: SOW on the Rx descriptor of the signal, packet 1 (slot 1, line ",
        "add_desc_semaphore_inc semaphore 0.0, barrier none)\n",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    assert!(
        out.ends_with("v3: 1 race in 264 packets; 192 redundant barriers\n"),
        "{out}"
    );
    let (_, _, code) = check(&["--untimed", "traces/dmb-vs-sow.toml"]);
    assert_eq!(code, Some(0), "races alone are a finding, not a failure");
}

#[test]
fn both_sides_are_named_as_the_scenario_wrote_them() {
    let (out, _, _) = check_text(&message("none", "none"), &[]);
    assert_eq!(
        out,
        "v3: race on 0x4000100000..0x4000101000
  write by e0 queue 0 slot 0 (packet 0)
           line 22: add_desc_transfer x -> y, 4KiB, barrier none [the data]
  read  by host
           line 54: observe y as \"seen\", 4KiB
  exposed when host reads before e0 queue 0 slot 0 (packet 0) writes
  fix: SOW on the Rx descriptor of the signal, packet 1 (slot 1, line 30: add_desc_semaphore_inc semaphore 0.7, barrier none)

v3: 1 race in 2 packets; no redundant barriers
"
    );
}

/// A barrier that prevents a race is none, one in the wrong place is, and of two that do the same one is.
#[test]
fn superfluous_barriers_are_those_that_order_nothing() {
    let found = |data, signal| {
        let (out, err, code) = check_text(&message(data, signal), &["--json"]);
        assert_eq!((err.as_str(), code), ("", Some(0)));
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        let superfluous = json[0]["superfluous"].as_array().unwrap();
        let one = |barriers: &serde_json::Value| {
            let line = barriers["from"]["line"].as_u64().unwrap();
            (barriers["barrier"].as_str().unwrap().to_string(), line)
        };
        let races = json[0]["races"].as_array().unwrap().len();
        (races, superfluous.iter().map(one).collect::<Vec<_>>())
    };
    let (data_line, signal_line) = (22, 30);
    let on = |barrier: &str, line| vec![(barrier.to_string(), line)];
    for needed in ["dmb", "write_barrier"] {
        assert_eq!(found(needed, "none"), (0, vec![]), "{needed}");
    }
    assert_eq!(found("none", "sow"), (0, vec![]));
    assert_eq!(found("none", "dmb"), (1, on("DMB", signal_line)));
    assert_eq!(found("sow", "none"), (1, on("SOW", data_line)));
    // Two in their right places: either may go, one must stay.
    assert_eq!(found("dmb", "sow"), (0, on("SOW", signal_line)));
    assert_eq!(found("write_barrier", "dmb"), (0, on("DMB", signal_line)));
}

#[test]
fn what_a_superfluous_barrier_costs_is_the_difference_of_two_runs() {
    // Without the DMB on the data the increment goes at once: the wait ends earlier.
    let text = message("dmb", "sow").replace(
        "do = \"observe\"",
        "do = \"wait\"\nidle = true\n[[step]]\ndo = \"observe\"",
    );
    let cycles = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.toml");
        std::fs::write(&path, text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_udma-sim"))
            .args(["run", "--json", path.to_str().unwrap()])
            .output()
            .unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        json["cycles"].as_i64().unwrap()
    };
    let without = text
        .replace("\"dmb\"", "\"none\"")
        .replace("\"sow\"", "\"none\"");
    let only_data = text.replace("\"sow\"", "\"none\"");
    let (out, _, _) = check_text(&text, &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let superfluous = json[0]["superfluous"].as_array().unwrap();
    // Nothing is read before all is idle: both are superfluous.
    assert_eq!(superfluous.len(), 2, "{out}");
    let dmb = superfluous
        .iter()
        .find(|one| one["barrier"] == "DMB")
        .unwrap();
    let sow = superfluous
        .iter()
        .find(|one| one["barrier"] == "SOW")
        .unwrap();
    assert_eq!(sow["cycles"], cycles(&text) - cycles(&only_data));
    let only_signal = text.replace("\"dmb\"", "\"none\"");
    assert_eq!(dmb["cycles"], cycles(&text) - cycles(&only_signal));
    assert!(cycles(&text) > cycles(&without), "the DMB costs something");
    let (out, _, _) = check_text(&text, &["--json", "--untimed"]);
    assert!(out.contains("\"cycles\": null"), "{out}");
    let (_, _, code) = check_text(&text, &["--untimed", "--deny", "superfluous"]);
    assert_eq!(code, Some(1));
}

#[test]
fn a_masked_dmb_orders_nothing() {
    let text = message("dmb", "none").replace(
        "rx = \"rx\"\n[[step]]\ndo = \"trigger\"",
        "rx = \"rx\"\ndmb = false\n[[step]]\ndo = \"trigger\"",
    );
    let (out, _, _) = check_text(&text, &[]);
    assert!(
        out.contains("has no effect: the queue's DMB pause is masked"),
        "{out}"
    );
    assert!(
        out.ends_with("v3: 1 race in 2 packets; 1 redundant barrier\n"),
        "{out}"
    );
}

#[test]
fn what_the_expectations_read_at_the_end_counts() {
    let text = message("none", "none");
    let observe = text.find("[[step]]\ndo = \"observe\"").unwrap();
    let text = format!(
        "{}[[expect]]\nmemory = \"y\"\nequals = {{ initial = \"x\" }}\n",
        &text[..observe]
    );
    let (out, _, _) = check_text(&text, &[]);
    assert!(
        out.contains("line 54: expect y (4KiB) equals the initial content of x"),
        "{out}"
    );
    assert!(out.contains("v3: 1 race"), "{out}");
}

#[test]
fn a_scenario_in_order_has_none_on_any_generation() {
    let arches = [
        "--deny",
        "races",
        "--untimed",
        "--arch",
        "v2",
        "--arch",
        "v3",
        "--arch",
        "v4",
    ];
    let (out, err, code) = check_text(&message("write_barrier", "none"), &arches);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let line = |arch| format!("{arch}: no races in 2 packets; no redundant barriers\n");
    assert_eq!(out, format!("{}{}{}\n", line("v2"), line("v3"), line("v4")));
}

/// The porting question: SOW on the signal holds from V3 on; on V2 the runtime's DMB lands there instead,
/// where it holds nothing.
#[test]
fn generations_are_compared_in_a_table() {
    let text = message("none", "none").replace(
        "barrier = \"none\"\n[[step]]\ndo = \"dump",
        "[[step]]\ndo = \"dump",
    );
    let (out, _, _) = check_text(&text, &["--untimed", "--arch", "v2", "--arch", "v3"]);
    let row = "v2 RACE     v3 ordered  e0 queue 0 slot 0 (packet 0), line 22 / host, line 53\n";
    assert!(out.ends_with(row), "{out}");
    assert!(out.contains("v2: race on"), "{out}");
    assert!(
        out.contains("fix: DMB or WRITE_BARRIER on the last packet before the signal, packet 0 (slot 0, line 22"),
        "{out}"
    );
}

#[test]
fn json_and_sarif_carry_the_race() {
    let text = message("none", "dmb");
    let (out, _, _) = check_text(&text, &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json[0]["arch"], "v3");
    let first = &json[0]["races"][0]["first"];
    assert_eq!(
        (&first["access"], &first["from"]["line"]),
        (&"write".into(), &22.into())
    );
    let (out, _, _) = check_text(&text, &["--sarif"]);
    let sarif: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let rules: Vec<&str> = results
        .iter()
        .map(|r| r["ruleId"].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["race", "superfluous-barrier"]);
    let line = |location: &serde_json::Value| {
        location["physicalLocation"]["region"]["startLine"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(line(&results[0]["locations"][0]), 22);
    assert_eq!(line(&results[0]["relatedLocations"][0]), 54);
    assert_eq!(line(&results[1]["locations"][0]), 30);
}

/// The driver's copies are ordered by its own markers: the barrier before each marker is needed.
#[test]
fn drivers_are_followed() {
    let (out, err, code) = check(&["--untimed", "traces/driver.toml"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(
        out.ends_with("v3: no races in 108 packets; no redundant barriers\n"),
        "{out}"
    );
}

/// Reductions, casts, transposes and checksums read all their sources and write their destinations.
#[test]
fn compute_packets_are_followed() {
    for (scenario, packets) in [
        ("all-reduce", 20),
        ("cast-fp8", 3),
        ("crc-copy", 2),
        ("k-cache", 162),
    ] {
        let (out, err, _) = check(&["--untimed", &format!("traces/{scenario}.toml")]);
        assert_eq!(err, "", "{scenario}");
        assert!(
            out.contains(&format!("v3: no races in {packets} packets")),
            "{scenario}: {out}"
        );
    }
    // Two accumulations in place: the second reads what the first writes.
    let accumulate = r#"[[step]]
do = "add_dma_packet_cce"
vring = "v"
op = "add"
from = ["x", "y"]
to = ["y"]
elements = 1024
dtype = "fp32"
barrier = "BARRIER"
"#;
    let text = message("none", "none");
    let (start, rest) = (
        text.find("[[step]]").unwrap(),
        text.find("[[step]]\ndo = \"dump").unwrap(),
    );
    for (barrier, races) in [("none", 2), ("dmb", 0)] {
        let twice = accumulate.repeat(2).replace("BARRIER", barrier);
        let body = text[rest..].replace("semaphore = \"0.7\"\nge = 1", "idle = true");
        let (out, err, _) = check_text(&format!("{}{twice}{body}", &text[..start]), &["--untimed"]);
        assert_eq!(err, "");
        let count = match races {
            0 => "no races".to_string(),
            _ => format!("{} race", races - 1),
        };
        assert!(
            out.contains(&format!("v3: {count} in 2 packets")),
            "{barrier}: {out}"
        );
    }
}

#[test]
fn what_cannot_be_followed_is_refused_with_its_place() {
    let text = message("none", "none").replace("ge = 1", "ge = 3");
    let (out, err, code) = check_text(&text, &[]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert_eq!(
        err,
        "error: t.toml:50: wait until semaphore 0.7 >= 3: semaphore 0.7 never satisfies >= 3 in in-order execution\n"
    );
}

/// What the device refuses is left out, and the report says so.
#[test]
fn refused_packets_are_left_out_with_notice() {
    let text = message("none", "none");
    let tx = "at = \"hbm0\"\ndescriptors = 32\n";
    assert!(text.contains(tx));
    // A ring from a file whose only packet has no FIRST.
    let folder = tempfile::tempdir().unwrap();
    let mut ring = Vec::new();
    for word in [0x0900_1000u32, 0x0108_0003, 0x10_0000, 0] {
        ring.extend(word.to_le_bytes());
    }
    std::fs::write(folder.path().join("bad.bin"), &ring).unwrap();
    let text = text.replace(tx, &format!("{tx}file = \"bad.bin\"\n"));
    let start = text.find("[[step]]").unwrap();
    let init = text.find("[[step]]\ndo = \"init").unwrap();
    let end = text.find("[[step]]\ndo = \"wait").unwrap();
    let text = format!(
        "{}{}",
        &text[..start],
        text[init..end].replace("do = \"trigger\"", "do = \"trigger\"\ntx = 1\nrx = 1")
    );
    let path = folder.path().join("t.toml");
    std::fs::write(&path, text).unwrap();
    let (out, err, code) = check(&["--untimed", path.to_str().unwrap()]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(
        out.starts_with(
            "v3: not checked: e0 queue 0 slot 0: a descriptor without FIRST outside a packet"
        ),
        "{out}"
    );
}
