//! `udma-sim dram`: reports, command traces, and every refusal, with what would be right.

use snapbox::cmd::{Command, cargo_bin};
use std::fs;
use std::path::Path;

fn dram(stream: &Path) -> Command {
    let command = Command::new(cargo_bin!("udma-sim")).env_remove("RUST_LOG");
    command.arg("dram").arg(stream)
}

fn reads(addresses: &[u64]) -> Vec<u8> {
    addresses
        .iter()
        .flat_map(|addr| addr.to_le_bytes())
        .collect()
}

fn refused(command: Command, message: &str) {
    command
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq(message.to_string());
}

#[test]
fn a_file_of_requests_gives_a_report_and_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let stream = folder.path().join("two_gap64.bin");
    fs::write(&stream, reads(&[0x0, 0x20 | 1 << 63])).unwrap();
    let trace = folder.path().join("trace.csv");
    dram(&stream)
        .args(["--config", "hbm2-pseudo-channel", "--commands"])
        .arg(&trace)
        .assert()
        .success()
        .stdout_eq(
            "[..]two_gap64.bin on hbm2-pseudo-channel

requests       2
cycles         72  (72.0 ns)
bytes/cycle    0.889  (5.6 % of the peak, 0.89 GB/s)
read latency   mean 31.000, p50 31, p90 31, p99 31, max 31 cycles
write latency  mean 8.000, p50 8, p90 8, p99 8, max 8 cycles
row hits       1 of 2  (50.0 %)
commands       1 RD, 1 WR, 1 ACT, 0 PRE, 0 REF
turnarounds    1, 0 reads answered from queued writes
",
        )
        .stderr_eq("[..] requests per wall second ([..] s)\n");
    assert_eq!(
        fs::read_to_string(&trace).unwrap(),
        "cycle,command,channel,pseudo_channel,bank_group,bank,row,column
1,ACT,0,0,0,0,0,0
15,RD,0,0,0,0,0,0
65,WR,0,0,0,0,0,1
"
    );
}

#[test]
fn json_carries_the_same_and_settings_change_it() {
    let run = |config: &str, settings: &[&str]| {
        let args = ["--config", config, "--limit", "2000", "--json"];
        let command = dram(Path::new("stream:A")).args(args).args(settings);
        let output = command.assert().success();
        let json: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
        json
    };
    let json = run("hbm2-pseudo-channel", &[]);
    assert_eq!(
        (&json["requests"], &json["bytes"]),
        (&2000.into(), &64000.into())
    );
    assert_eq!(json["counts"]["reads"], 2000);
    assert_eq!(json["write_latency"], serde_json::Value::Null);
    assert_eq!(json["peak_bytes_per_cycle"], 16.0);
    let slower = run(
        "hbm2-pseudo-channel",
        &[
            "--set",
            "timing.nBL=4",
            "--set",
            "timing.nCCDS=4",
            "--set",
            "timing.nRTW=20",
        ],
    );
    assert!(slower["cycles"].as_u64() > json["cycles"].as_u64());
    assert_eq!(slower["peak_bytes_per_cycle"], 8.0);
    let device = run("hbm-cayman", &[]);
    assert_eq!(device["config"], "hbm-cayman");
}

#[test]
fn bad_streams_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.bin");
    let on = |bytes: Vec<u8>| {
        fs::write(&path, bytes).unwrap();
        dram(&path).args(["--config", "hbm2-pseudo-channel"])
    };
    refused(
        on(reads(&[0, 32])[..13].to_vec()),
        "error: stream [..]s.bin: ends 5 bytes into the request at offset 8; a stream consists of whole requests of 8 bytes\n",
    );
    refused(
        on(Vec::new()),
        "error: stream [..]s.bin is empty; a stream has at least one request of 8 bytes\n",
    );
    refused(
        on(reads(&[0, 32, 0x2000_0000])),
        "error: stream [..]s.bin: request at offset 16: address 0x20000000 must be a multiple of 32 below 0x20000000\n",
    );
    refused(
        on(reads(&[0, 33])),
        "error: stream [..]s.bin: request at offset 8: address 0x21 must be a multiple of 32 below 0x20000000\n",
    );
    // Some other file: what would be its magic is an address beyond the memory.
    refused(
        on(b"\x7fELF\x02\x01\x01\0".to_vec()),
        "error: stream [..]s.bin: request at offset 0: address 0x10102464c457f must be [..]\n",
    );
    let missing = dram(&folder.path().join("none.bin")).args(["--config", "hbm2-pseudo-channel"]);
    refused(missing, "error: stream [..]none.bin: No such file[..]\n");
    let unknown = dram(Path::new("stream:J")).args(["--config", "hbm2-pseudo-channel"]);
    refused(
        unknown,
        "error: unknown stream \"J\"; the built-in streams are A (sequential read), [..]\n",
    );
}

#[test]
fn gaps_are_numbers_that_a_clock_can_hold() {
    let folder = tempfile::tempdir().unwrap();
    let on = |name: &str, requests: usize| {
        let path = folder.path().join(name);
        fs::write(&path, reads(&vec![0; requests])).unwrap();
        dram(&path).args(["--config", "hbm2-pseudo-channel"])
    };
    for gap in [
        "",
        "x",
        "64x",
        "6 4",
        "0x40",
        "-1",
        "+64",
        "1e3",
        "6.4",
        "64_old",
        "2305843009213693953",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999",
    ] {
        refused(
            on(&format!("s_gap{gap}.bin"), 2),
            &format!(
                "error: stream [..]s_gap{gap}.bin: the name ends in \"_gap{gap}\"; _gapN sends request i no earlier than \
                 cycle N x i, and N must be a number from 0 to 2305843009213693952 for this many requests\n"
            ),
        );
    }
    refused(
        on("s_gap2305843009213693952.bin", 3),
        "error: stream [..]: the name ends in [..] from 0 to 1537228672809129301 for this many requests\n",
    );
    for (name, cycles) in [
        ("s_gap0.bin", 35u64),
        ("s_gap0064.bin", 64 + 17),
        ("s_gap2305843009213693952.bin", (1 << 61) + 31),
        ("gap64.bin", 35),
    ] {
        let report = on(name, 2).assert().success();
        let report = String::from_utf8(report.get_output().stdout.clone()).unwrap();
        assert!(
            report.contains(&format!("cycles         {cycles}  (")),
            "{name}: {report}"
        );
    }
}

#[test]
fn limits_lie_within_the_stream() {
    let limited = |stream: &str, limit: &str| {
        dram(Path::new(stream)).args(["--config", "hbm2-pseudo-channel", "--limit", limit])
    };
    for limit in ["0", "1000001", "18446744073709551615"] {
        refused(
            limited("stream:A", limit),
            &format!(
                "error: --limit {limit}: must be 1 to 1000000, the number of requests in stream A_seqrd\n"
            ),
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("three.bin");
    fs::write(&path, reads(&[0, 32, 64])).unwrap();
    refused(
        limited(path.to_str().unwrap(), "4"),
        "error: --limit 4: must be 1 to 3, the number of requests in stream [..]three.bin\n",
    );
    for limit in ["1", "3"] {
        let report = limited(path.to_str().unwrap(), limit).assert().success();
        report.stdout_eq(format!("...\nrequests       {limit}\n...\n"));
    }
}

#[test]
fn the_share_of_the_peak_is_that_of_the_stacks_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.bin");
    let stack = 24 << 30;
    let on = |stacks: &[u64]| {
        let requests: Vec<u64> = (0..8000)
            .map(|i| stacks[i % stacks.len()] * stack + (i / stacks.len()) as u64 * 32)
            .collect();
        fs::write(&path, reads(&requests)).unwrap();
        dram(&path).args(["--config", "hbm-cayman"])
    };
    for (stacks, whose) in [
        (&[0][..], " of 1 of 4 stacks, the only ones used"),
        (&[3], " of 1 of 4 stacks, the only ones used"),
        (&[0, 2], " of 2 of 4 stacks, the only ones used"),
        (&[0, 1, 2, 3], ""),
    ] {
        let line =
            format!("...\nbytes/cycle    [..]  ([..] % of the peak{whose}, [..] GB/s)\n...\n");
        on(stacks).assert().success().stdout_eq(line);
        let json = on(stacks).arg("--json").assert().success();
        let json: serde_json::Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
        assert_eq!(
            (&json["stacks"], &json["stacks_used"]),
            (&4.into(), &stacks.len().into())
        );
    }
}

#[test]
fn a_trace_that_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let on = |path: &str| {
        let args = [
            "--config",
            "hbm2-pseudo-channel",
            "--limit",
            "9000",
            "--commands",
            path,
        ];
        dram(Path::new("stream:A")).args(args)
    };
    let path = folder.path().join("no/such/folder.csv");
    refused(
        on(path.to_str().unwrap()),
        "error: cannot write [..]folder.csv: No such file[..]\n",
    );
    if Path::new("/dev/full").exists() {
        refused(
            on("/dev/full"),
            "error: cannot write the command trace: No space left on device[..]\n",
        );
    }
}

#[test]
fn bad_configs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let text = fs::read_to_string("sim-configs/hbm2-pseudo-channel.toml").unwrap();
    let edited = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        dram(Path::new("stream:A")).arg("--config").arg(&path)
    };
    for (from, to, message) in [
        (
            "nFAW = 15",
            "nFAV = 15",
            "error: memory config [..]mine.toml:44:1: timing: \"nFAW\" is missing[..]\n[..]mine.toml:66:1: timing.nFAV: unknown key; did you mean \"nFAW\"?\n",
        ),
        (
            "nFAW = 15",
            "",
            "error: memory config [..]mine.toml:44:1: timing: \"nFAW\" is missing; write a whole number, 0 to 4294967295\n",
        ),
        (
            "clock = \"1GHz\"",
            "clock = \"1\"",
            "error: memory config [..]mine.toml:10:9: device.clock: \"1\" is not a frequency[..]\n",
        ),
        (
            "nCCDL = 4",
            "nCCDL = 1",
            "error: memory config [..]mine.toml:62:9: timing.nCCDL: 1 is invalid; must be at least nCCDS and at most 1000000\n",
        ),
        (
            "banks = 4",
            "banks = 3",
            "error: memory config [..]mine.toml:17:9: device.banks: 3 is invalid; must be a power of two from 1 to 16\n",
        ),
        (
            "write_high = 28",
            "write_high = 33",
            "error: memory config [..]mine.toml:37:14: controller.write_high: 33 is invalid; must be 1 to controller.write_queue\n",
        ),
        (
            "nRC = 48",
            "nRC = 47",
            "error: memory config [..]mine.toml:56:7: timing.nRC: 47 is invalid; must be at least nRAS + nRP and at most 1000000\n",
        ),
        (
            "nRAS = 34",
            "nRAS = 40",
            "error: memory config [..]mine.toml:56:7: timing.nRC: 48 is invalid; must be at least nRAS + nRP and at most [..]\n",
        ),
        (
            "nREFI = 3900",
            "nREFI = 260",
            "error: memory config [..]mine.toml:74:9: timing.nREFI: 260 is invalid; must be 0 (no refresh) or at least [..]\n",
        ),
        (
            "column\"",
            "colum\"",
            "error: memory config [..]mine.toml:27:9: mapping.order: \"row bank bank_group colum\" is invalid; unknown field \"colum\"; expected one of [..]\n",
        ),
    ] {
        refused(edited(from, to), message);
    }
    let none = dram(Path::new("stream:A")).args(["--config", "hbm9"]);
    refused(
        none,
        "error: memory config \"hbm9\" is neither a built-in config (hbm2-pseudo-channel, hbm-sunda, hbm-cayman, hbm-mariana) nor a file\n",
    );
    for setting in ["nFAW=3", "timing.nFAV=3", "timing.nFAW"] {
        let set =
            dram(Path::new("stream:A")).args(["--config", "hbm2-pseudo-channel", "--set", setting]);
        refused(
            set,
            &format!(
                "error: [..]setting \"{setting}\"; expected KEY=VALUE with a dotted config key, such as timing.nFAW=30\n"
            ),
        );
    }
}
