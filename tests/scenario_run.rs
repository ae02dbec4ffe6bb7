//! What each step, sequencer operation and expectation does.

use std::path::Path;
use udma_sim::arch::Arch;
use udma_sim::config::Config;
use udma_sim::scenario::{Report, Scenario};

fn run(text: &str, arch: Arch) -> Report {
    let scenario = Scenario::parse(Path::new("traces/x.toml"), text.to_string());
    let config = Config::load(arch.spec().code_name, Path::new("")).unwrap();
    let plan = scenario.and_then(|scenario| scenario.plan(config, scenario.seed()));
    plan.unwrap_or_else(|error| panic!("{error}"))
        .run(&mut |_| ())
        .unwrap()
}

/// Two rings of engine 0 queue 0 and a buffer for each end.
const RINGS: &str = r#"
name = "x"

[[memory]]
name = "src"
at = "hbm0 + 1MiB"
size = "4KiB"
counter = 1

[[memory]]
name = "dst"
at = "sbuf1[2] + 1KiB"
size = "4KiB"
zero = true

[[pring]]
name = "tx"
type = "tx"
at = "hbm0"
descriptors = 64

[[pring]]
name = "rx"
type = "rx"
at = "hbm0 + 4KiB"
descriptors = 64

[[step]]
do = "init_queue"
engine = 0
queue = 0
tx = "tx"
rx = "rx"
"#;

fn check(rest: &str) -> Report {
    let text = format!("{RINGS}{rest}");
    for arch in Arch::ALL {
        let report = run(&text, arch);
        assert!(report.passed, "{arch}:\n{report}");
    }
    run(&text, Arch::V3)
}

#[test]
fn events_padding_and_single_doorbells() {
    let report = check(
        r#"
[[step]]
do = "add_desc_transfer_ex"
vring = "v"
from = "src"
to = "dst"
size = "4KiB"

[[step]]
do = "add_desc_event"
vring = "v"
event = "0.3"

[[step]]
do = "add_desc_event"
vring = "v"
event = "top_sp1.4"

[[step]]
do = "add_desc_event"
vring = "v"
event = "top_sp1.4"
set = false

[[step]]
do = "dump_to_pring_padded"
vring = "v"
tx = "tx"
rx = "rx"
padded = 16

[[step]]
do = "doorbell"
engine = 0
queue = 0
direction = "rx"
count = 16

[[step]]
do = "doorbell"
engine = 0
queue = 0
direction = "tx"
count = 16

[[step]]
do = "wait"
engine = 0
queue = 0

[[expect]]
memory = "dst"
equals = { counter = 1 }

[[expect]]
memory = "dst"
equals = { region = "src" }

[[expect]]
memory = "dst + 4"
size = 4
equals = { hex = "02 00 00 00" }

[[expect]]
memory = "dst"
differs = { zero = true }

[[expect]]
event = "0.3"
equals = 1

[[expect]]
event = "top_sp1.4"
equals = 0

[[expect]]
no_errors = true
"#,
    );
    assert_eq!(report.totals.packets, 16);
    assert_eq!(report.totals.tx_descriptors, 16);
    assert!(report.totals.dmb >= 1);
}

#[test]
fn sequencers_do_every_operation() {
    check(
        r#"
[[step]]
do = "add_desc_semaphore_inc"
vring = "v"
semaphore = "0.1"

[[step]]
do = "dump_to_pring"
vring = "v"
tx = "tx"
rx = "rx"

# The host starts it, it rings the queue, the queue tells the other one.
[[sequencer]]
name = "first"
program = [
    { wait = "0.0", ge_and_dec = 2 },
    { delay = 1000 },
    { trigger = { engine = 0, queue = 0 } },
    { wait = "0.1", eq_and_inc = 1 },
    { set = "0.2", value = 9 },
    { inc = "0.3", by = 5 },
    { dec = "0.3", by = 2 },
    { write = "dst + 8", hex = "aabbccdd" },
    { read = "after", at = "dst + 8", size = 4 },
]

[[sequencer]]
name = "second"
program = [
    { wait = "0.1", eq = 2 },
    { wait = "0.2", eq_and_clear = 9 },
    { inc = "0.4" },
]

[[step]]
label = "start"
do = "write"
at = "sem 0.0 inc"
array = { dtype = "u32", values = [3] }

[[step]]
label = "first done"
do = "wait"
sequencer = "first"

[[step]]
do = "wait"
idle = true

[[step]]
label = "pause"
do = "wait"
cycles = 500

[[expect]]
semaphore = "0.0"
equals = 1

[[expect]]
semaphore = "0.1"
equals = 2

[[expect]]
semaphore = "0.2"
equals = 0

[[expect]]
semaphore = "0.3"
equals = 3

[[expect]]
semaphore = "0.4"
equals = 1

[[expect]]
observation = "after"
equals = { array = { dtype = "u8", values = [0xaa, 0xbb, 0xcc, 0xdd] } }

[[expect]]
elapsed = { from = "start", to = "first done", min = "1000 cycles", longer_than = { from = "pause", to = "pause" } }

# A cycle at each end may be cut off by the clock.
[[expect]]
elapsed = { from = "pause", to = "pause", min = "499 cycles", max = "501 cycles" }
"#,
    );
}

#[test]
fn the_host_waits_for_words_and_observes_moments() {
    check(
        r#"
[[memory]]
name = "flag"
at = "host + 1MiB"
size = 8
zero = true

[[sequencer]]
name = "later"
program = [{ delay = 10000 }, { write = "flag + 4", hex = "efbeadde" }, { delay = 2000 }, { write = "flag", hex = "01000000" }]

[[step]]
do = "observe"
name = "before"
at = "flag"

[[step]]
do = "wait"
word = "flag + 4"
value = 0xdeadbeef

[[step]]
do = "observe"
name = "between"
at = "flag"

[[step]]
do = "wait"
idle = true

[[expect]]
observation = "before"
equals = { initial = "flag" }

[[expect]]
observation = "between"
equals = { hex = "00000000 efbeadde" }

[[expect]]
memory = "flag"
equals = { hex = "01000000 efbeadde" }

[[expect]]
time = { min = "12000 cycles", max = "1ms" }
"#,
    );
}

/// A hash that is not the right one says what was found; this one was computed by sha256sum.
#[test]
fn hashes_are_sha256() {
    let text = |hash: &str| {
        format!(
            "{RINGS}\n[[step]]\ndo = \"write\"\nat = \"dst\"\nsize = 3\nhex = \"616263\"\n\n[[expect]]\nmemory = \"dst\"\nsize = 3\nequals = {{ sha256 = \"{hash}\" }}\n"
        )
    };
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert!(run(&text(abc), Arch::V3).passed);
    let report = run(&text(&"0".repeat(64)), Arch::V3);
    assert!(!report.passed);
    let found = report.expectations[0].found.as_deref();
    assert_eq!(found, Some(format!("found sha256 {abc}").as_str()));
}

/// What the device ignores is told, and only then.
#[test]
fn warnings_say_what_was_ignored() {
    let text = |dmb: &str| {
        format!(
            "{}\n[[step]]\ndo = \"add_desc_transfer\"\nvring = \"v\"\nfrom = \"src\"\nto = \"dst\"\nsize = \"4KiB\"\nbarrier = \"dmb\"\n\n[[step]]\ndo = \"dump_to_pring\"\nvring = \"v\"\ntx = \"tx\"\nrx = \"rx\"\n\n[[step]]\ndo = \"trigger\"\nengine = 0\nqueue = 0\n\n[[step]]\ndo = \"wait\"\nidle = true\n",
            RINGS.replace(
                "do = \"init_queue\"",
                &format!("do = \"init_queue\"\n{dmb}")
            )
        )
    };
    assert_eq!(run(&text(""), Arch::V3).warnings, [""; 0]);
    let report = run(&text("dmb = false"), Arch::V3);
    assert_eq!(
        report.warnings,
        ["1 packet whose DMB had no effect: the queue's DMB pause is masked"]
    );
}
