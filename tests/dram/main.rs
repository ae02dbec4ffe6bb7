//! The HBM model against closed forms, against two established simulators, and against a checker of
//! its command traces.
//!
//! A slice of each stream runs here; `cargo test --release --test dram -- --ignored --nocapture` runs
//! them whole, and prints the tables of `docs/dram.md`.

mod checker;
mod peers;

use std::collections::BTreeMap;
use udma_sim::dram::{CommandFile, DramConfig, Kind, Report, Stream, run};

const CONFIG: &str = include_str!("../../sim-configs/hbm2-pseudo-channel.toml");
const M1: &str = "mapping.order=row bank bank_group column";
const M2: &str = "mapping.order=row bank column bank_group";
const NO_REFRESH: &str = "timing.nREFI=0";

fn config(settings: &[&str]) -> DramConfig {
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    DramConfig::parse("hbm2-pseudo-channel", CONFIG, &settings).unwrap()
}

fn stream(name: &str) -> Stream {
    Stream::builtin(name, 32, 512 << 20).unwrap()
}

/// The first `count` requests of a stream.
fn slice(name: &str, count: usize) -> Stream {
    let mut stream = stream(name);
    stream.truncate(count);
    stream
}

fn traced(config: &DramConfig, stream: &Stream) -> (Report, String) {
    let mut csv = Vec::new();
    let report = run(
        config,
        stream,
        Some(&mut CommandFile::new(config, &mut csv)),
    )
    .unwrap();
    (report, String::from_utf8(csv).unwrap())
}

/// The checker's table with the settings of `[timing]` applied.
fn table(settings: &[&str]) -> checker::Table {
    let mut table = checker::table(CONFIG);
    for setting in settings {
        if let Some((name, value)) = setting
            .strip_prefix("timing.")
            .and_then(|s| s.split_once('='))
        {
            table.insert(name.to_string(), value.parse().unwrap());
        }
    }
    table
}

/// Runs and checks a stream: no violation, and every request has exactly one column command, in the
/// place that `decode` says.
fn checked(settings: &[&str], stream: &Stream) -> Report {
    let config = config(settings);
    let (report, csv) = traced(&config, stream);
    let found = checker::violations(&table(settings), &csv);
    assert_eq!(
        found,
        Vec::<String>::new(),
        "{} with {settings:?}",
        stream.name()
    );
    assert_eq!(run(&config, stream, None).unwrap(), report, "traced or not");

    let mut wanted = BTreeMap::new();
    for (addr, kind) in stream.requests() {
        *wanted.entry((decode(settings, addr), kind)).or_insert(0u64) += 1;
    }
    for line in checker::lines(&csv) {
        let kind = match line.command {
            "RD" => Kind::Read,
            "WR" => Kind::Write,
            _ => continue,
        };
        let place = [line.row, line.bank, line.group, line.column];
        let left = wanted.get_mut(&(place, kind)).filter(|left| **left > 0);
        *left.unwrap_or_else(|| panic!("nobody asked for {line:?}")) -= 1;
    }
    let unserved: u64 = wanted.values().sum();
    assert_eq!(unserved, report.counts.forwarded, "lost requests");
    report
}

/// Row, bank, bank group and column of M1 and M2, by hand.
fn decode(settings: &[&str], addr: u64) -> [u64; 4] {
    let access = addr / 32;
    let (group, column) = match settings.contains(&M2) {
        true => (access % 4, access / 4 % 32),
        false => (access / 32 % 4, access % 32),
    };
    [access / 512, access / 128 % 4, group, column]
}

#[test]
fn latencies_have_their_closed_forms() {
    // A closed row; the same row; another row of the same bank, 16 KiB further.
    for (addresses, latencies) in [
        (vec![0u64], vec![31]),
        (vec![0, 32], vec![31, 17]),
        (vec![0, 16384], vec![31, 45]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("few_gap100.bin");
        let bytes: Vec<u8> = addresses
            .iter()
            .flat_map(|addr| addr.to_le_bytes())
            .collect();
        std::fs::write(&path, bytes).unwrap();
        let few = Stream::load(path.to_str().unwrap(), 32, 512 << 20).unwrap();
        let report = checked(&[M1], &few);
        let latency = report.read_latency.unwrap();
        assert_eq!(
            latency.mean * latency.count as f64,
            latencies.iter().sum::<u64>() as f64
        );
        assert_eq!(latency.max, *latencies.iter().max().unwrap());
        assert_eq!(
            report.cycles,
            100 * (latencies.len() as u64 - 1) + latencies.last().unwrap()
        );
    }
}

/// One burst every nBL, one activate every nRRDS, a row hit or a conflict for each request.
#[test]
fn streams_without_refresh_have_their_closed_forms() {
    for mapping in [M1, M2] {
        let settings = [mapping, NO_REFRESH];
        for name in ["A", "B"] {
            let report = checked(&settings, &slice(name, 50_000));
            assert!(
                (100_000..=100_099).contains(&report.cycles),
                "{name}: {}",
                report.cycles
            );
        }
        let report = checked(&settings, &slice("D", 20_000));
        assert!(
            (80_000..=81_200).contains(&report.cycles),
            "D: {}",
            report.cycles
        );
        // 16 closed rows, else a conflict for each new row of 32 accesses.
        let report = checked(&settings, &slice("F", 20_000));
        let mean = 17.0 + (16.0 * 14.0 + (20_000.0 / 32.0 - 16.0) * 28.0) / 20_000.0;
        assert!((report.read_latency.unwrap().mean - mean).abs() < 0.05, "F");
        let report = checked(&settings, &slice("F2", 20_000));
        assert!(
            (report.read_latency.unwrap().mean - 45.0).abs() < 0.02,
            "F2"
        );
    }
}

#[test]
fn slices_of_all_streams_keep_every_constraint() {
    for (name, _, _) in Stream::builtin_names() {
        let stream = slice(name, 6_000);
        for mapping in [M1, M2] {
            checked(&[mapping], &stream);
            // Small queues, and a table in which other constraints decide.
            checked(
                &[
                    mapping,
                    "controller.read_queue=3",
                    "controller.write_queue=2",
                    "controller.write_high=2",
                    "controller.write_low=0",
                    "controller.max_wait=60",
                ],
                &stream,
            );
            checked(
                &[
                    mapping,
                    "timing.nRRDL=6",
                    "timing.nFAW=30",
                    "timing.nCCDL=6",
                    "timing.nWTRL=15",
                    "timing.nRTW=19",
                    "timing.nRTP=11",
                    "timing.nRC=60",
                ],
                &stream,
            );
        }
    }
}

/// The model sends each command at the first legal cycle: a checker that asks for one cycle more than
/// the model was told finds it out, for every parameter. So the checker sees each constraint, too.
#[test]
fn every_constraint_is_tight_and_seen_by_the_checker() {
    // Each of these has streams in which it decides.
    let settings = [
        "timing.nRRDL=6",
        "timing.nFAW=30",
        "timing.nCCDL=5",
        "timing.nRC=49",
        "timing.nRTW=11",
    ];
    let settings = [&settings[..], &[M1]].concat();
    let config = config(&settings);
    let traces: Vec<String> = ["A", "B", "C", "C2", "D", "E2", "G", "G2"]
        .iter()
        .map(|name| traced(&config, &slice(name, 12_000)).1)
        .collect();
    let right = table(&settings);
    for name in right.keys() {
        let mut longer = right.clone();
        // A refresh comes when it is due and the open rows can be closed.
        *longer.get_mut(name).unwrap() += if name == "nREFI" { 20 } else { 1 };
        let found = traces
            .iter()
            .map(|csv| checker::violations(&longer, csv).len());
        assert!(found.sum::<usize>() > 0, "{name} + 1 goes unnoticed");
    }
}

#[test]
fn the_checker_refuses_damaged_traces() {
    let (_, csv) = traced(&config(&[M1]), &slice("C", 4000));
    let table = table(&[]);
    assert_eq!(checker::violations(&table, &csv), Vec::<String>::new());
    let lines: Vec<&str> = csv.lines().collect();
    for command in ["ACT", "PRE", "PREA", "REF"] {
        let at = lines
            .iter()
            .rposition(|line| line.contains(&format!(",{command},")));
        let mut without = lines.clone();
        without.remove(at.unwrap());
        let found = checker::violations(&table, &without.join("\n"));
        assert!(!found.is_empty(), "{command} left out goes unnoticed");
    }
    let mut twice = lines.clone();
    twice.insert(lines.len() - 1, lines[lines.len() - 1]);
    let found = checker::violations(&table, &twice.join("\n"));
    assert!(
        found
            .iter()
            .any(|what| what.contains("two commands on one bus")),
        "{found:?}"
    );
}

/// A read of what a queued write will have written does not pass it, nor a write a read of what it
/// overwrites, whatever the order that suits the banks.
#[test]
fn accesses_to_one_address_keep_their_order() {
    for name in ["G", "G2"] {
        for settings in [
            &[M1][..],
            &[M2],
            &[M1, "controller.write_high=1", "controller.write_low=0"],
            &[M2, "controller.max_wait=20", "controller.read_queue=2"],
        ] {
            let stream = slice(name, 20_000);
            let (_, csv) = traced(&config(settings), &stream);
            let mut read = BTreeMap::new();
            for line in checker::lines(&csv) {
                let place = (line.row, line.group, line.bank, line.column);
                match line.command {
                    "RD" => assert_eq!(read.insert(place, ()), None),
                    "WR" => assert!(read.contains_key(&place), "{line:?} overtook its read"),
                    _ => {}
                }
            }
            let reads = |kind: &(u64, Kind)| kind.1 == Kind::Read;
            assert_eq!(read.len(), stream.requests().filter(reads).count());
        }
    }
}

/// Reads and writes at random to a few addresses: those to one are sent in the order in which they came, but for reads
/// that a queued write answers.
#[test]
fn random_accesses_to_few_addresses_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..40u64 {
        let mut random = seed;
        let words: Vec<u64> = (0..3000)
            .map(|_| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                // Some columns of some rows of three banks.
                let (column, bank, row) = (random >> 40 & 7, random >> 44 & 3, random >> 48 & 3);
                (column * 32 + bank * 1024 + row * 16384) | (random >> 60 & 1) << 63
            })
            .collect();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let gap = seed % 5 * 4;
        let path = folder.path().join(format!("few_gap{gap}.bin"));
        std::fs::write(&path, bytes).unwrap();
        let few = Stream::load(path.to_str().unwrap(), 32, 512 << 20).unwrap();
        let settings = [if seed % 2 == 0 { M1 } else { M2 }];
        checked(&settings, &few);
        let (_, csv) = traced(&config(&settings), &few);
        let mut sent: BTreeMap<[u64; 4], Vec<Kind>> = BTreeMap::new();
        for line in checker::lines(&csv) {
            let kind = match line.command {
                "RD" => Kind::Read,
                "WR" => Kind::Write,
                _ => continue,
            };
            let place = [line.row, line.bank, line.group, line.column];
            sent.entry(place).or_default().push(kind);
        }
        let mut came: BTreeMap<[u64; 4], Vec<Kind>> = BTreeMap::new();
        for (addr, kind) in few.requests() {
            came.entry(decode(&settings, addr)).or_default().push(kind);
        }
        for (place, came) in came {
            let mut sent = sent
                .remove(&place)
                .unwrap_or_default()
                .into_iter()
                .peekable();
            let mut written = false;
            for kind in came {
                // A read after a write may have been answered from the queue.
                match sent.peek() == Some(&kind) {
                    true => drop(sent.next()),
                    false => assert!(kind == Kind::Read && written, "{place:?} of {seed}"),
                }
                written |= kind == Kind::Write;
            }
            assert_eq!(sent.next(), None, "{place:?} of {seed}");
        }
    }
}

/// Reads and writes mixed: a slice of what `whole` holds against the peers. An update in place turns twice for each
/// 4 KiB; of reads among random writes, few wait for a batch of them.
#[test]
fn mixed_traffic_turns_seldom_and_reads_pass() {
    const PAGES: usize = 100;
    for (number, mapping) in [M1, M2].into_iter().enumerate() {
        let report = run(&config(&[mapping]), &slice("G", PAGES * 256), None).unwrap();
        let turns = report.counts.turnarounds as usize;
        assert!(turns <= 2 * PAGES + 2, "G: {turns}");
        let report = run(&config(&[mapping]), &slice("I", 50_000), None).unwrap();
        let mean = report.read_latency.unwrap().mean;
        let peer = peers::I_READ_LATENCY[number];
        assert!((mean - peer).abs() < 0.03 * peer, "I: {mean}");
    }
}

/// An hour between two requests costs nothing, and the refreshes are counted.
#[test]
fn an_idle_hour_is_made_up_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two_gap3600000000000.bin");
    std::fs::write(&path, [0; 16]).unwrap();
    let two = Stream::load(path.to_str().unwrap(), 32, 512 << 20).unwrap();
    let started = std::time::Instant::now();
    let report = run(&config(&[M1]), &two, None).unwrap();
    assert!(started.elapsed().as_secs() < 1);
    assert_eq!(report.cycles, 3_600_000_000_000 + 31);
    assert_eq!(report.counts.refreshes, 3_600_000_000_000 / 3900);
}

/// Requests that keep a row open for ever, and one to another row of the bank; reads without end, and
/// one write.
#[test]
fn nobody_starves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hog.bin");
    for victim in [16384u64, 32 | 1 << 63] {
        let mut words = vec![0u64; 40];
        words.push(victim);
        words.extend((0..20_000).map(|i| i % 32 * 32));
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(&path, bytes).unwrap();
        let hog = Stream::load(path.to_str().unwrap(), 32, 512 << 20).unwrap();
        let report = run(&config(&[M1, NO_REFRESH]), &hog, None).unwrap();
        let reads = report.read_latency.unwrap().max;
        let worst = reads.max(report.write_latency.map_or(0, |writes| writes.max));
        assert!((1000..2500).contains(&worst), "{worst}");
    }
}

/// The built-in streams are those of the tool that made the comparison's, byte for byte: the same
/// digests as NumPy's files.
#[test]
fn built_in_streams_are_the_reference_streams() {
    for (name, wanted) in peers::SHA256 {
        let stream = stream(name);
        let bytes: Vec<u8> = stream
            .words()
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert_eq!(
            hex::encode(hmac_sha256::Hash::hash(&bytes)),
            *wanted,
            "{name}"
        );
    }
}

#[test]
fn memories_of_the_devices_have_their_size_and_bandwidth() {
    for (name, gib, gb_per_second, sequential) in [
        ("hbm-sunda", 32, 819, 0.87..0.89),
        ("hbm-cayman", 96, 3000, 0.87..0.89),
        ("hbm-mariana", 144, 4700, 0.87..0.9),
    ] {
        let config = DramConfig::load(name, &[]).unwrap();
        assert_eq!(config.mapping.capacity(), gib << 30, "{name}");
        assert_eq!(
            config.peak_bytes_per_second() / 1_000_000_000,
            gb_per_second,
            "{name}"
        );
        // A sequential stream uses one stack, all the time but for refreshes.
        let capacity = config.mapping.capacity();
        let stream = Stream::builtin("A", 32, capacity).unwrap();
        let report = run(&config, &stream, None).unwrap();
        assert_eq!(report.stacks_used, 1, "{name}");
        let stack = report.peak_bytes_per_cycle / f64::from(config.device.stacks);
        let share = report.bytes_per_cycle / stack;
        assert!(sequential.contains(&share), "{name}: {share}");
    }
}

mod whole {
    use super::*;

    /// Seconds that this thread has had a processor: what else the machine does counts little.
    fn seconds() -> f64 {
        let times = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
        let ns = times.split_whitespace().next().unwrap();
        ns.parse::<f64>().unwrap() / 1e9
    }

    /// Every stream, both mappings, against the peers: `docs/dram.md`, "Validation".
    #[test]
    #[ignore = "minutes in a debug build; run with --release"]
    fn streams_are_within_the_bar() {
        let mut failed = Vec::new();
        for (number, mapping) in [M1, M2].into_iter().enumerate() {
            for peer in peers::CYCLES {
                let report = checked(&[mapping], &stream(peer.name));
                let line = peer.judge(number, &report);
                println!("M{} {}", number + 1, line.0);
                failed.extend((!line.1).then_some(line.0));
            }
            let settings = [mapping, "timing.nRRDL=6", "timing.nFAW=30"];
            let report = checked(&settings, &stream("D"));
            let line = peers::D_TIGHT.judge(number, &report);
            println!("M{} {}", number + 1, line.0);
            failed.extend((!line.1).then_some(line.0));
            for (name, cycles) in peers::IN_PLACE {
                let report = checked(&[mapping], &stream(name));
                let (ours, peer) = (report.cycles, cycles[number]);
                let off = 100.0 * (ours as f64 / peer as f64 - 1.0);
                let turns = report.counts.turnarounds;
                println!(
                    "M{} {name}: {ours} cycles; peer {peer} ({off:+.2} %); {turns} turnarounds",
                    number + 1
                );
                failed.extend((off > 6.5).then(|| format!("{name}: {off} %")));
            }
        }
        assert_eq!(failed, Vec::<String>::new());
    }

    #[test]
    #[ignore = "minutes in a debug build; run with --release"]
    fn closed_forms_hold_to_the_cycle() {
        for mapping in [M1, M2] {
            let settings = [mapping, NO_REFRESH];
            for name in ["A", "B"] {
                let cycles = checked(&settings, &stream(name)).cycles;
                println!("{name} without refresh: {cycles}");
                assert!((2_000_000..=2_000_099).contains(&cycles));
            }
            let cycles = checked(&settings, &stream("D")).cycles;
            println!("D without refresh: {cycles}");
            assert!((4_020_000..4_035_000).contains(&cycles));
            for (name, wanted) in [("F", 17.874), ("F2", 44.998)] {
                let mean = checked(&settings, &stream(name)).read_latency.unwrap().mean;
                println!("{name} without refresh: {mean:.3}");
                assert!((mean - wanted).abs() < 0.001);
            }
        }
    }

    /// I, one request in 8 cycles: reads wait no longer than in the better peer, and the bus turns as often as in both.
    #[test]
    #[ignore = "with the other whole streams"]
    fn reads_pass_writes_as_in_the_peers() {
        for (number, mapping) in [M1, M2].into_iter().enumerate() {
            let report = checked(&[mapping], &stream("I"));
            let (mean, turns) = (report.read_latency.unwrap().mean, report.counts.turnarounds);
            println!(
                "M{} I: reads {mean:.1} cycles, {turns} turnarounds",
                number + 1
            );
            assert!(mean < 1.03 * peers::I_READ_LATENCY[number]);
            let (most, least) = peers::I_TURNAROUNDS[number];
            assert!((least - least / 100..=most).contains(&turns));
        }
    }

    /// Ten times the peers' requests a second, best of some runs.
    #[test]
    #[ignore = "needs --release, Linux, and a machine like that of the comparison"]
    fn speed_is_ten_times_the_peers() {
        let config = config(&[M1]);
        let mut slow = Vec::new();
        for (name, peer) in peers::KILO_REQUESTS_PER_SECOND {
            let stream = stream(name);
            let mut best = f64::INFINITY;
            for _ in 0..7 {
                let started = seconds();
                run(&config, &stream, None).unwrap();
                best = best.min(seconds() - started);
            }
            let rate = stream.words().len() as f64 / best / 1e3;
            println!(
                "{name}: {rate:.0} thousand requests/s, {:.1} times",
                rate / peer
            );
            if rate < 10.0 * peer {
                slow.push(*name);
            }
        }
        assert_eq!(slow, Vec::<&str>::new());
    }
}
