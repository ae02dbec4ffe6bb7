//! Bad scenarios are refused before anything runs, with a message that names file, line and key.

use proptest::prelude::*;
use std::fs;
use std::path::Path;
use udma_sim::config::Config;
use udma_sim::scenario::Scenario;

/// A scenario that runs; the cases below each spoil one thing of it.
const GOOD: &str = r#"
name = "good"

[[memory]]
name = "src"
at = "hbm0 + 1MiB"
size = "64KiB"
counter = 0

[[memory]]
name = "dst"
at = "hbm0 + 2MiB"
size = "64KiB"
zero = true

[[pring]]
name = "tx"
type = "tx"
at = "hbm0"
descriptors = 32

[[pring]]
name = "rx"
type = "rx"
at = "hbm0 + 512"
descriptors = 32

[[sequencer]]
name = "s"
program = [{ wait = "0.1", ge = 1 }, { read = "seen", at = "dst" }]

[[step]]
do = "add_desc_transfer"
vring = "v"
from = "src"
to = "dst"
size = "64KiB"

[[step]]
do = "add_desc_semaphore_inc"
vring = "v"
semaphore = "0.1"

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
label = "go"
do = "trigger"
engine = 0
queue = 0

[[step]]
label = "done"
do = "wait"
sequencer = "s"

[[expect]]
memory = "dst"
equals = { initial = "src" }

[[expect]]
elapsed = { from = "go", to = "done", min = "1 cycle" }
"#;

/// What is wrong with a text, for the built-in config named; empty if nothing is.
fn problems_on(text: &str, config: &str) -> String {
    let folder = Path::new("traces/x.toml");
    let config = Config::load(config, Path::new("")).unwrap();
    let plan = Scenario::parse(folder, text.to_string()).and_then(|s| s.plan(config, 0));
    plan.err().map_or(String::new(), |error| error.to_string())
}

fn problems(text: &str) -> String {
    problems_on(text, "cayman")
}

/// The good scenario with one piece of text replaced, and the line where it begins.
fn spoiled(from: &str, to: &str) -> (String, usize) {
    let at = GOOD
        .find(from)
        .unwrap_or_else(|| panic!("{from:?} is in the scenario"));
    let line = 1 + GOOD[..at].matches('\n').count();
    (GOOD.replacen(from, to, 1), line)
}

#[test]
fn the_good_one_is_good() {
    assert_eq!(problems(GOOD), "");
    let scenario = Scenario::parse(Path::new("good.toml"), GOOD.to_string()).unwrap();
    let config = Config::load("cayman", Path::new("")).unwrap();
    let report = scenario.plan(config, 0).unwrap().run(&mut |_| ()).unwrap();
    assert!(report.passed, "{report}");
}

/// What is replaced and with what; how many lines below that the problem is (a problem of a whole
/// table is at its head, above); key and message.
#[rustfmt::skip]
const CASES: &[(&str, &str, isize, &str)] = &[
    // Keys and types.
    ("name = \"good\"", "nam = \"good\"\nname = \"x\"", 0, "nam: unknown key; did you mean \"name\"?"),
    ("size = \"64KiB\"\ncounter", "sizes = \"64KiB\"\ncounter", 0, "memory[0].sizes: unknown key; did you mean \"size\"?"),
    ("do = \"trigger\"", "do = \"triger\"", 0, "step[4].do: unknown step \"triger\"; did you mean \"trigger\"?"),
    ("engine = 0", "engine = true", 0, "step[3].engine: expected an engine: its number, or \"d2h0\" or \"h2d0\" for a host engine, found a TOML boolean"),
    ("vring = \"v\"\nfrom", "from", -2, "step[0]: \"vring\" is missing; write a string"),
    ("[[sequencer]]", "[sequencer]", 0, "sequencer: expected an array of tables; write [[sequencer]]"),
    ("counter = 0", "counter = -1", 0, "memory[0].counter: -1 is out of range; write a whole number, 0 to 4294967295"),
    ("counter = 0", "counter = 0\nbyte = 1", -4, "memory[0]: 2 contents given; expected exactly one of zero, byte, counter, random, hex, file, array"),
    ("counter = 0", "hex = \"012\"", 0, "memory[0].hex: Odd number of digits"),
    ("counter = 0", "array = { dtype = \"u8\", values = [256] }", 0, "memory[0].array.values: element 0: 256 is out of range"),
    ("counter = 0", "array = { dtype = \"u9\", values = [1] }", 0, "memory[0].array.dtype: unknown dtype \"u9\"; expected one of u8, i8"),
    ("counter = 0", "zero = false", 0, "memory[0].zero: must be true; to switch it off, omit the key"),
    // Sizes and regions.
    ("size = \"64KiB\"", "size = \"64KB\"", 0, "memory[0].size: \"64KB\" is not a size"),
    ("size = \"64KiB\"", "size = 0", 0, "memory[0].size: has 0 bytes; the size must be at least 1"),
    ("size = \"64KiB\"\ncounter = 0", "size = 3\nhex = \"0102\"", 0, "memory[0].size: the content has 2 bytes, but size is 3"),
    ("size = \"64KiB\"\ncounter = 0", "counter = 0", -2, "memory[0].name: \"size\" is missing"),
    ("hbm0 + 2MiB", "hbm0 + 1MiB + 65535", 0, "memory[1].at: \"dst\" (64KiB at 0x10ffff) overlaps \"src\" (64KiB at 0x100000)"),
    ("hbm0 + 512", "hbm0 + 256", 0, "pring[1].at: \"rx\" (512B at 0x100) overlaps \"tx\" (512B at 0x0)"),
    ("hbm0 + 2MiB", "hbm0 + 24GiB", 0, "memory[1].at: an access of 65536 bytes at 0x600000000 starts in an unpopulated part"),
    ("hbm0 + 2MiB", "sbuf0[3] + 200KiB", 0, "memory[1].at: an access of 65536 bytes at 0x20000f2000 runs past the end"),
    ("hbm0 + 2MiB", "hbm9", 0, "memory[1].at: number 9 does not exist; this arch has HBM stacks 0 to 3"),
    ("name = \"dst\"", "name = \"src\"", 0, "memory[1].name: \"src\" is already the name of a buffer or pring"),
    ("name = \"dst\"", "name = \"hbm7\"", 0, "memory[1].name: \"hbm7\" is the name of a place on the device; choose another name"),
    ("descriptors = 32", "descriptors = 33", 0, "pring[0].descriptors: a ring has 33 descriptors; the length must be a multiple of 16"),
    ("at = \"hbm0\"\ndesc", "at = \"hbm0 + 64\"\ndesc", 0, "pring[0].at: a ring at 0x40 does not start on a multiple of 256 bytes"),
    // Files.
    ("descriptors = 32", "descriptors = 32\nfile = \"none.bin\"", 1, "pring[0].file: cannot read traces/none.bin: No such file"),
    ("descriptors = 32", "descriptors = 32\nfile = \"quickstart.toml\"", 1, "pring[0].file: quickstart.toml has "),
    ("counter = 0", "file = \"none.bin\"", 0, "memory[0].file: cannot read traces/none.bin: No such file"),
    // Names.
    ("from = \"src\"\n", "from = \"srv\"\n", 0, "step[0].from: unknown buffer or place \"srv\"; did you mean \"src\"?"),
    ("do = \"dump_to_pring\"\nvring = \"v\"", "do = \"dump_to_pring\"\nvring = \"w\"", 1, "step[2].vring: unknown vring with descriptors \"w\"; known: v"),
    ("tx = \"tx\"", "tx = \"rx\"", 0, "step[2].tx: pring \"rx\" is of type rx; a tx pring is needed here"),
    ("tx = \"tx\"", "tx = \"ty\"", 0, "step[2].tx: unknown pring \"ty\"; did you mean \"tx\"?"),
    ("sequencer = \"s\"", "sequencer = \"t\"", 0, "step[5].sequencer: unknown sequencer \"t\"; known: s"),
    ("initial = \"src\"", "initial = \"tx\"", 0, "expect[0].equals.initial: has 512 bytes, but is compared with dst (64KiB)"),
    ("memory = \"dst\"\nequals", "observation = \"sen\"\nequals", 0, "expect[0].observation: unknown observation \"sen\"; did you mean \"seen\"?"),
    ("from = \"go\"", "from = \"og\"", 0, "expect[1].elapsed.from: unknown step labelled \"og\"; did you mean \"go\"?"),
    ("from = \"go\", to = \"done\"", "from = \"done\", to = \"go\"", 0, "expect[1].elapsed.to: step \"go\" is before step \"done\""),
    ("label = \"done\"", "label = \"go\"", 0, "step[5].label: label \"go\" is already taken by step[4]"),
    // Host steps that the vring stack refuses.
    ("do = \"dump_to_pring\"\n", "do = \"dump_to_pring_padded\"\npadded = 1\n", -1, "step[2]: Failed to pad vring v tx from 2 descriptors to 1 descriptors"),
    ("do = \"trigger\"\n", "do = \"trigger\"\ntx = 33\n", -2, "step[4]: e0 queue 0: tx doorbell of 33 descriptors; the count must be 1 to 32"),
    ("do = \"trigger\"\nengine = 0", "do = \"trigger\"\nengine = 1", 2, "step[4].queue: queue 0 of e1 has no rings yet; add an init_queue step before this one"),
    ("do = \"trigger\"\nengine = 0\nqueue = 0", "do = \"trigger\"\nengine = 0\nqueue = 16", 2, "step[4].queue: an engine has queues 0 to 15"),
    ("semaphore = \"0.1\"\n", "semaphore = \"9.1\"\n", 0, "step[1].semaphore: number 9 does not exist; this arch has NeuronCore event blocks 0 to 7"),
    // Registers and faults.
    ("[[expect]]\nmemory", "[[step]]\ndo = \"write_register\"\nengine = 0\nregister = \"m2s.stat\"\nvalue = 0\n\n[[expect]]\nmemory", 3, "step[6].register: unknown register \"stat\" in m2s on v3; known: axi[0..6], data_burst_cfg,"),
    ("[[expect]]\nmemory", "[[step]]\ndo = \"read_register\"\nengine = 0\nregister = \"q0.drl\"\nname = \"x\"\n\n[[expect]]\nmemory", 3, "step[6].register: \"q0\" does not name a register block; expected m2s, s2m, m2s.q0 to q15"),
    ("[[expect]]\nmemory", "[[fault]]\nkind = \"lost_acks\"\n\n[[expect]]\nmemory", 1, "fault[0].kind: unknown fault \"lost_acks\"; did you mean \"lost_ack\"?"),
    ("[[expect]]\nmemory", "[[fault]]\nkind = \"lost_ack\"\nengine = 0\nqueue = 0\n\n[[expect]]\nmemory", 0, "fault[0]: a fault needs exactly one of nth, one_in; none is given"),
    ("[[expect]]\nmemory", "[[fault]]\nkind = \"lost_ack\"\nengine = 0\nqueue = 0\none_in = 0\n\n[[expect]]\nmemory", 4, "fault[0].one_in: must be 1 or more"),
    ("[[expect]]\nmemory", "[[fault]]\nkind = \"flip_descriptor\"\ndirection = \"tx\"\nbit = 128\nengine = 0\nqueue = 0\nnth = 0\n\n[[expect]]\nmemory", 3, "fault[0].bit: must be 0 to 127, a bit of a descriptor"),
    ("[[expect]]\nmemory", "[[fault]]\nkind = \"report\"\nm2s = \"ringid\"\nengine = 0\nqueue = 0\nnth = 0\n\n[[expect]]\nmemory", 2, "fault[0].m2s: unknown error bit \"ringid\" for this half; did you mean \"ring_id\"?"),
    ("[[expect]]\nmemory", "[[fault]]\nkind = \"slow_channel\"\nat = \"sbuf0[200]\"\nby = \"1us\"\n\n[[expect]]\nmemory", 2, "fault[0].at: a State Buffer has partitions 0 to 127"),
    ("[[expect]]\nmemory", "[[fault]]\nkind = \"late_ack\"\nby = \"1\"\nengine = 0\nqueue = 0\nnth = 0\n\n[[expect]]\nmemory", 2, "fault[0].by: \"1\" is not a time such as"),
    // Expectations.
    ("min = \"1 cycle\"", "min = \"2ns\", max = \"1ns\"", 0, "expect[1].elapsed.min: is greater than max"),
    (", min = \"1 cycle\"", "", 0, "expect[1].elapsed: no bounds given; write min, max or both"),
    ("memory = \"dst\"\nequals", "memory = \"sem 0.1 read\"\nsize = 4\nequals", 0, "expect[0].memory: is not plain memory"),
    ("memory = \"dst\"\nequals", "memory = \"dst + 4\"\nequals", 0, "expect[0].memory: \"size\" is missing for \"dst + 4B\""),
    // Waits that cannot end.
    ("[{ wait = \"0.1\"", "[{ wait = \"0.2\"", 0, "sequencer[0].program[0]: sequencer \"s\" waits forever for semaphore 0.2, which this scenario never changes"),
];

#[test]
fn each_fault_is_named_with_file_line_and_key() {
    for (from, to, below, message) in CASES {
        let (text, line) = spoiled(from, to);
        let found = problems(&text);
        let told = found.lines().find(|told| told.contains(message));
        let told = told.unwrap_or_else(|| panic!("{to:?} gives\n{found}\nnot {message}"));
        // A fault does not drag along complaints about what follows from it.
        let ends = usize::from(message.contains("waits forever"));
        assert_eq!(found.lines().count(), 1 + ends, "{to:?} gives\n{found}");
        let place = format!("traces/x.toml:{}:", line as isize + below);
        assert!(
            told.starts_with(&place),
            "{to:?} gives\n{found}\nnot at {place}"
        );
    }
}

#[test]
fn several_faults_are_reported_at_once() {
    let text = GOOD
        .replace("size = \"64KiB\"", "size = \"x\"")
        .replace("queue = 0", "queu = 0");
    let found = problems(&text);
    assert_eq!(found.matches("is not a size").count(), 3, "{found}");
    assert_eq!(
        found.matches("did you mean \"queue\"").count(),
        2,
        "{found}"
    );
    let lines: Vec<usize> = found
        .lines()
        .map(|line| line.split(':').nth(1).unwrap().parse().unwrap())
        .collect();
    assert!(lines.is_sorted(), "{found}");
}

#[test]
fn toml_that_is_none_is_named_with_its_line() {
    let found = problems("name = \"x\"\nsize = = 3\n[[memory]\n");
    assert!(found.starts_with("traces/x.toml:2:"), "{found}");
}

#[test]
fn what_the_arch_cannot_do_is_refused() {
    let sow = GOOD.replacen(
        "size = \"64KiB\"\n\n[[step]]",
        "size = \"64KiB\"\nbarrier = \"sow\"\n\n[[step]]",
        1,
    );
    assert_eq!(problems_on(&sow, "cayman"), "");
    let found = problems_on(&sow, "sunda");
    assert!(
        found.contains("step[0].barrier: v2 does not have strong-ordered writes"),
        "{found}"
    );
    let only = sow.replace("barrier = \"sow\"", "barrier = \"sow\"\nonly = [\"v3\"]");
    let found = problems_on(&only, "sunda");
    assert!(!found.contains("barrier"), "{found}");

    let v2 = GOOD.replace("name = \"good\"", "name = \"good\"\nruns_on = [\"v2\"]");
    assert_eq!(problems_on(&v2, "sunda"), "");
    let found = problems_on(&v2, "cayman");
    assert_eq!(
        found,
        "traces/x.toml:3:11: runs_on: config cayman is for v3, but this scenario runs only on v2"
    );
}

/// Host and sequencer each wait for what the other would do later.
#[test]
fn waits_in_a_circle_name_everybody_in_it() {
    let text = GOOD
        .replace("{ wait = \"0.1\", ge = 1 }", "{ wait = \"0.8\", ge = 1 }, { inc = \"0.9\" }")
        .replace(
            "[[step]]\nlabel = \"go\"",
            "[[step]]\ndo = \"wait\"\nsemaphore = \"0.9\"\nge = 1\n\n[[step]]\ndo = \"write\"\nat = \"sem 0.8 set\"\nhex = \"01000000\"\n\n[[step]]\nlabel = \"go\"",
        );
    let found = problems(&text);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 2, "{found}");
    assert!(lines[0].contains("sequencer \"s\" waits forever for semaphore 0.8, which the host changes only later; it is itself waiting at traces/x.toml:"), "{found}");
    assert!(lines[1].contains("the host waits forever for semaphore 0.9, which sequencer \"s\" changes only later; it is itself waiting at traces/x.toml:"), "{found}");
}

/// The same chain is fine when somebody begins.
#[test]
fn a_chain_of_waits_with_a_beginning_is_fine() {
    let text = GOOD.replace(
        "{ wait = \"0.1\", ge = 1 }",
        "{ wait = \"0.8\", ge = 1 }, { inc = \"0.9\" }, { wait = \"0.1\", ge = 1 }",
    );
    let begin = "[[step]]\ndo = \"write\"\nat = \"sem 0.8 set\"\nhex = \"01000000\"\n\n[[step]]\ndo = \"wait\"\nsemaphore = \"0.9\"\nge = 1\n\n[[step]]\nlabel = \"go\"";
    assert_eq!(
        problems(&text.replace("[[step]]\nlabel = \"go\"", begin)),
        ""
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is done to a scenario file, it is refused or planned; nothing panics.
    #[test]
    fn no_file_panics(
        which in 0usize..6,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0usize..40, 0usize..9), 1..4),
    ) {
        let files = ["quickstart", "memcpy-host", "queues", "dmb-vs-sow", "raw-ring"];
        let text = files.get(which).map(|name| fs::read_to_string(format!("traces/{name}.toml")).unwrap());
        let mut text = text.unwrap_or_else(|| GOOD.to_string());
        let scraps = ["", "\"", "0", "-1", "18446744073709551615", "{q}", "= [", "0x", "hbm0 + 99999GiB * 7"];
        for (from, to, len, scrap) in edits {
            // Cut out a stretch and put a scrap, or another stretch of the text, in its place.
            let chars: Vec<char> = text.chars().collect();
            let at = from.index(chars.len());
            let end = (at + len).min(chars.len());
            let other = to.index(chars.len());
            let copied = &chars[other..(other + len).min(chars.len())];
            let middle: String = match scrap {
                0 => copied.iter().collect(),
                n => scraps[n].to_string(),
            };
            text = chars[..at].iter().collect::<String>() + &middle + &chars[end..].iter().collect::<String>();
            if text.is_empty() {
                break;
            }
        }
        problems(&text);
        problems_on(&text, "sunda");
    }
}
