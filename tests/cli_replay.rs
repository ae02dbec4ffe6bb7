//! `udma-sim run --record` and `udma-sim replay`: recordings are complete, survive what happens to
//! them, and are compared with what a run does.

mod common;

use common::cli::{stderr, stdout, text, udma_sim};
use proptest::prelude::*;
use serde_json::Value;
use snapbox::cmd::cargo_bin;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use udma_sim::config::Config;
use udma_sim::scenario::Scenario;
use udma_sim::system::{System, Watch};
use udma_sim::telemetry::recording::{Header, OpenError, Recorder, Recording, Transaction};
use udma_sim::telemetry::{End, Machine, Shared, attach};

fn record(scenario: &str, file: &Path) {
    udma_sim(&["run", scenario, "--record", text(file)]);
}

/// The transactions before the damage, and the damage in words.
fn read(path: &Path) -> Result<(Vec<Transaction>, Option<String>), OpenError> {
    let mut whole = Vec::new();
    for transaction in Recording::open(path)? {
        match transaction {
            Ok(transaction) => whole.push(transaction),
            Err(damage) => return Ok((whole, Some(damage.to_string()))),
        }
    }
    Ok((whole, None))
}

/// The byte that a message names.
fn offset(message: &str) -> usize {
    let (_, rest) = message.split_once("at byte ").unwrap();
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

/// A recording of some hundred kilobytes, and what is in it.
fn sample() -> &'static (Vec<u8>, Vec<Transaction>) {
    static SAMPLE: OnceLock<(Vec<u8>, Vec<Transaction>)> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sample.record");
        record("traces/errors.toml", &path);
        let (transactions, damage) = read(&path).unwrap();
        assert_eq!(damage, None);
        (fs::read(&path).unwrap(), transactions)
    })
}

#[test]
fn every_scenario_runs_again_as_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.record");
    for scenario in [
        "quickstart",
        "errors",
        "notifications",
        "k-cache",
        "raw-ring",
    ] {
        let scenario = format!("traces/{scenario}.toml");
        let plain = udma_sim(&["run", &scenario]);
        let recorded = udma_sim(&["run", &scenario, "--record", text(&path)]);
        assert_eq!(stdout(&plain), stdout(&recorded), "{scenario}");
        let replay = udma_sim(&["-q", "replay", text(&path)]);
        let replay = replay.success().stderr_eq("");
        let (transactions, _) = read(&path).unwrap();
        let same = format!("\nSAME: all {} transactions\n", transactions.len());
        assert!(stdout(&replay).ends_with(&same), "{}", stdout(&replay));
        assert!(transactions.len() > 50, "{scenario}");
        assert!(transactions.is_sorted_by_key(|transaction| transaction.at));
    }
}

/// What a scenario reads is in the recording: dumped rings, contents of memory, what is expected.
#[test]
fn a_recording_needs_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["all-reduce", "crc-copy", "raw-ring"] {
        let there = folder.path().join(name);
        fs::create_dir(&there).unwrap();
        for file in fs::read_dir("traces").unwrap() {
            let file = file.unwrap();
            if text(Path::new(&file.file_name())).starts_with(name) {
                fs::copy(file.path(), there.join(file.file_name())).unwrap();
            }
        }
        let scenario = there.join(format!("{name}.toml"));
        let record = folder.path().join("run.record");
        let run = ["run", text(&scenario), "--record", text(&record)];
        udma_sim(&run).success();
        assert!(!Recording::open(&record).unwrap().header().files.is_empty());
        fs::remove_dir_all(&there).unwrap();
        udma_sim(&run[..2]).code(2);
        let replay = udma_sim(&["replay", text(&record)]).success();
        assert!(stdout(&replay).contains("\nSAME: all "), "{name}");
    }
}

#[test]
fn lists_are_filtered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.record");
    let run = [
        "run",
        "traces/queues.toml",
        "--json",
        "--stats",
        "--record",
        text(&path),
    ];
    let report: Value = serde_json::from_str(&stdout(&udma_sim(&run).success())).unwrap();
    let list = |filter: &[&str]| {
        let list = udma_sim(&[&["replay", text(&path), "--list"], filter].concat()).success();
        let lines = stdout(&list);
        lines.lines().map(String::from).collect::<Vec<_>>()
    };
    let all = list(&[]);
    let (transactions, _) = read(&path).unwrap();
    assert_eq!(all.len(), transactions.len());
    for engine in report["stats"]["engines"].as_array().unwrap() {
        let id = engine["engine"].to_string();
        for queue in engine["queues"].as_array().unwrap() {
            let number = queue["queue"].to_string();
            for kind in ["fetch", "read", "write", "packet"] {
                let lines = list(&["--engine", &id, "--queue", &number, "--kind", kind]);
                assert_eq!(
                    lines.len() as u64,
                    queue[kind]["count"],
                    "{id} {number} {kind}"
                );
                assert!(
                    lines
                        .iter()
                        .all(|line| line.contains(kind) && all.contains(line))
                );
            }
        }
    }
    let two = list(&["--kind", "doorbell,packet"]).len();
    assert_eq!(
        two,
        list(&["--kind", "doorbell"]).len() + list(&["--kind", "packet"]).len()
    );

    let time = |line: &String| {
        line.split_whitespace()
            .next()
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    let third = |n: usize| time(&all[n * all.len() / 3]).floor();
    let (from, to) = (third(1), third(2));
    let middle = list(&["--from", &format!("{from}ns"), "--to", &to.to_string()]);
    let expected = all.iter().filter(|line| (from..=to).contains(&time(line)));
    assert_eq!(middle, expected.cloned().collect::<Vec<_>>());
    assert!(!middle.is_empty());

    let read = list(&["--kind", "read"])[0].clone();
    let address = read
        .split_whitespace()
        .find(|word| word.starts_with("0x"))
        .unwrap();
    let at = u64::from_str_radix(&address[2..], 16).unwrap();
    let found = list(&["--address", &format!("{address}..{:#x}", at + 1)]);
    assert!(found.contains(&read));
    assert!(found.len() < all.len() / 10);
    let before = list(&["--address", &format!("{:#x}..{address}", at - 1)]);
    assert!(!before.contains(&read));
}

/// A run with another clock behind the same header.
#[test]
fn the_first_difference_is_shown() {
    struct Record {
        header: Header,
        file: PathBuf,
        recorder: Option<Shared<Recorder>>,
    }
    impl Watch for Record {
        fn begin(&mut self, system: &mut System) -> io::Result<()> {
            let mut options = fs::File::options();
            let file = options.read(true).write(true).create(true).truncate(true);
            self.header.machine = Machine::of(system);
            let recorder = Recorder::new(file.open(&self.file)?, &self.header)?;
            self.recorder = Some(attach(system, recorder));
            Ok(())
        }

        fn end(&mut self, system: &System) {
            let recorder = self.recorder.as_ref().unwrap();
            let end = End::of(system);
            recorder.with(|recorder| recorder.finish(&end)).unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.record");
    let scenario = Scenario::load(Path::new("traces/quickstart.toml")).unwrap();
    let usual = Config::builtin("cayman").unwrap().unwrap();
    let other = usual
        .source
        .replacen("udma = \"850MHz\"", "udma = \"849MHz\"", 1);
    let other = Config::parse("other", &other).unwrap();
    let mut watch = Record {
        header: Header {
            version: "0".to_string(),
            scenario_path: text(scenario.path()).to_string(),
            scenario: scenario.text().to_string(),
            files: Vec::new(),
            config_name: usual.origin.clone(),
            config: usual.source.clone(),
            seed: 0,
            machine: Machine {
                arch: usual.arch(),
                channels: Vec::new(),
                sequencers: Vec::new(),
            },
        },
        file: file.clone(),
        recorder: None,
    };
    let plan = scenario.plan(other, 0).unwrap();
    plan.run_watched(&mut watch, &mut |_| ()).unwrap();
    drop(watch);
    let replay = udma_sim(&["replay", text(&file)]).code(1).stderr_eq("");
    let told = stdout(&replay);
    let (recorded, _) = read(&file).unwrap();
    let same = told.split_once("DIFFERENT after ").unwrap().1;
    let same: usize = same.split(' ').next().unwrap().parse().unwrap();
    assert!(same < 20, "{told}");
    let at = format!("recorded  {:.3} ", recorded[same].at.as_ns_f64());
    assert!(told.contains(&at), "{told}");
    assert!(
        told.contains("block at byte ") && told.contains("\nnow  "),
        "{told}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever byte changes: what is read before it is right, and the rest is refused.
    #[test]
    fn any_changed_byte_is_found(at in 0.0..1.0, change in 1u8..) {
        let (bytes, transactions) = sample();
        let at = (at * bytes.len() as f64) as usize;
        let mut bytes = bytes.clone();
        bytes[at] ^= change;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("changed.record");
        fs::write(&path, bytes).unwrap();
        match read(&path) {
            Err(error) => prop_assert!(at < transactions[0].offset as usize, "{}", error),
            Ok((whole, damage)) => {
                let damage = damage.expect("the change is found");
                let offset = offset(&damage);
                prop_assert!(offset <= at, "{} changed: {}", at, damage);
                prop_assert_eq!(&whole[..], &transactions[..whole.len()]);
                let lost = transactions.get(whole.len());
                prop_assert!(lost.is_none_or(|lost| lost.offset as usize == offset));
            }
        }
    }

    /// Wherever a file is cut off: every complete block is read, and the end is told.
    #[test]
    fn any_cut_is_found(at in 0.0..1.0) {
        let (bytes, transactions) = sample();
        let at = (at * bytes.len() as f64) as usize;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut.record");
        fs::write(&path, &bytes[..at]).unwrap();
        match read(&path) {
            Err(_) => prop_assert!(at < transactions[0].offset as usize),
            Ok((whole, damage)) => {
                let offset = offset(&damage.expect("the cut is found"));
                prop_assert!(offset <= at);
                // Blocks are of 16 KiB: no more than one is lost.
                prop_assert!(at - offset < 20 << 10);
                let complete = transactions.iter().filter(|t| (t.offset as usize) < offset);
                prop_assert_eq!(whole.len(), complete.count());
            }
        }
    }
}

/// A process that is killed leaves every complete block behind.
#[test]
fn a_killed_run_leaves_what_it_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("long.toml");
    let long = fs::read_to_string("traces/quickstart.toml").unwrap();
    let long = long
        .replace("1MiB", "32MiB")
        .replace("random = true", "zero = true")
        .replace("descriptors = 64", "descriptors = 1024")
        .replace("4KiB", "64KiB")
        .replace("max = \"60us\"", "max = \"1s\"");
    fs::write(&scenario, long).unwrap();
    let killed = folder.path().join("killed.record");
    let mut child = process::Command::new(cargo_bin!("udma-sim"))
        .args(["-q", "run", text(&scenario), "--record", text(&killed)])
        .stdout(process::Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let grown = || fs::metadata(&killed).is_ok_and(|file| file.len() > 2 << 20);
    while !grown() {
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "the recording does not grow"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    let (left, damage) = read(&killed).unwrap();
    let damage = damage.expect("the run did not finish");
    assert!(damage.contains("the run did not finish"), "{damage}");
    let bytes = fs::metadata(&killed).unwrap().len() as usize;
    assert!(
        offset(&damage) > 1 << 20 && offset(&damage) < bytes,
        "{damage} of {bytes}"
    );

    let whole = folder.path().join("whole.record");
    udma_sim(&["run", text(&scenario), "--record", text(&whole)]).success();
    let (all, damage) = read(&whole).unwrap();
    assert_eq!(damage, None);
    assert!(left.len() > 1000 && left.len() < all.len());
    assert!(
        left == all[..left.len()],
        "the killed run left something else"
    );

    // The command says the same, after what it could read.
    let list = udma_sim(&["replay", text(&killed), "--list"]).code(2);
    assert_eq!(stdout(&list).lines().count(), left.len());
    assert!(stderr(&list).contains(&format!("the {} transactions before", left.len())));
    let replay = udma_sim(&["replay", text(&killed)]).code(2);
    assert!(stdout(&replay).contains(&format!("SAME so far: {} transactions", left.len())));
}

/// A file that a run is recording to is left alone by others.
#[test]
fn two_runs_do_not_record_to_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.record");
    let run = ["run", "traces/quickstart.toml", "--record", text(&path)];
    udma_sim(&run).success();
    let before = fs::read(&path).unwrap();
    let held = fs::File::open(&path).unwrap();
    held.lock().unwrap();
    let refused = udma_sim(&run).code(2).stdout_eq("");
    let error = stderr(&refused);
    assert!(
        error.contains("another run is recording to this file"),
        "{error}"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    drop(held);
    // What is recorded anew replaces all of what was there.
    udma_sim(&["run", "traces/errors.toml", "--record", text(&path)]);
    assert_eq!(read(&path).unwrap().1, None);
}

#[test]
fn other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    let missing = folder.path().join("missing");
    for (path, why) in [
        (folder.path(), "cannot read recording "),
        (&missing, "cannot read recording "),
        (&empty, "is not a recording made by udma-sim run --record"),
        (
            Path::new("traces/quickstart.toml"),
            "is not a recording made by udma-sim run --record",
        ),
    ] {
        for list in [&["--list"][..], &[]] {
            let replay = udma_sim(&[&["replay", text(path)], list].concat()).code(2);
            let error = stderr(&replay.stdout_eq(""));
            assert!(error.contains(why) && error.contains(text(path)), "{error}");
        }
    }
    for (option, value, why) in [
        ("--kind", "reed", "expected one of doorbell, fetch, read,"),
        (
            "--address",
            "12",
            "expected two addresses, such as 0x1000..0x2000",
        ),
        ("--from", "soon", "is not a duration"),
    ] {
        let replay = udma_sim(&["replay", text(&empty), "--list", option, value]).code(2);
        assert!(stderr(&replay).contains(why), "{}", stderr(&replay));
    }
    udma_sim(&["replay", text(&empty), "--queue", "0"]).code(2);
}
