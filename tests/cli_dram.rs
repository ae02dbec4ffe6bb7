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
        "error: stream [..]s.bin: ends 5 bytes into the request at offset 8; a stream is a whole number of requests of 8 bytes\n",
    );
    refused(
        on(Vec::new()),
        "error: stream [..]s.bin: is empty; a stream has at least one request of 8 bytes\n",
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
    let unknown = dram(Path::new("stream:H")).args(["--config", "hbm2-pseudo-channel"]);
    refused(
        unknown,
        "error: stream \"H\" is not built in; there are A (sequential read), [..]\n",
    );
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
            "error: memory config [..]mine.toml: TOML parse error at line [..]\n...\nunknown field `nFAV`[..]\n...\n",
        ),
        (
            "nFAW = 15",
            "",
            "error: memory config [..]mine.toml: TOML parse error at line [..]\n...\nmissing field `nFAW`\n...\n",
        ),
        (
            "clock = \"1GHz\"",
            "clock = \"1\"",
            "error: memory config [..]mine.toml: TOML parse error at line [..]\n...\n\"1\" is not a frequency[..]\n...\n",
        ),
        (
            "nCCDL = 4",
            "nCCDL = 1",
            "error: memory config [..]mine.toml: timing.nCCDL = 1: must be at least nCCDS and at most 1000000\n",
        ),
        (
            "banks = 4",
            "banks = 3",
            "error: memory config [..]mine.toml: device.banks = 3: must be a power of two from 1 to 16\n",
        ),
        (
            "write_high = 28",
            "write_high = 33",
            "error: memory config [..]mine.toml: controller.write_high = 33: must be 1 to controller.write_queue\n",
        ),
        (
            "nREFI = 3900",
            "nREFI = 260",
            "error: memory config [..]mine.toml: timing.nREFI = 260: must be 0 (no refresh), or at least [..]\n",
        ),
        (
            "column\"",
            "colum\"",
            "error: memory config [..]mine.toml: mapping.order = \"row bank bank_group colum\": \"colum\" is none of [..]\n",
        ),
    ] {
        refused(edited(from, to), message);
    }
    let none = dram(Path::new("stream:A")).args(["--config", "hbm9"]);
    refused(
        none,
        "error: memory config \"hbm9\" is neither built in (hbm2-pseudo-channel, hbm-sunda, hbm-cayman, hbm-mariana) nor a file\n",
    );
    for setting in ["nFAW=3", "timing.nFAV=3", "timing.nFAW"] {
        let set =
            dram(Path::new("stream:A")).args(["--config", "hbm2-pseudo-channel", "--set", setting]);
        refused(
            set,
            &format!(
                "error: setting \"{setting}\" is not KEY=VALUE with a dotted key of the config, such as timing.nFAW=30\n"
            ),
        );
    }
}
