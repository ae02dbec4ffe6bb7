//! What two established simulators, DRAMsim3 (2021) and Ramulator 2.1 (2026), say for the same
//! configuration and streams: figures of `docs/dram.md`.

use udma_sim::dram::Report;

/// Cycles of both simulators for one stream, with mapping M1 and M2.
pub struct Peer {
    pub name: &'static str,
    pub cycles: [(u64, u64); 2],
    pub bar: Bar,
}

/// How near the model must come.
pub enum Bar {
    /// Within 1.5 % of the nearer one.
    Nearer,
    /// Between both, 3 % more to either side.
    Between,
}

impl Peer {
    /// The figures in a line, and whether they are within the bar.
    pub fn judge(&self, mapping: usize, report: &Report) -> (String, bool) {
        let (first, second) = self.cycles[mapping];
        let ours = report.cycles as f64;
        let off = |peer: u64| 100.0 * (ours / peer as f64 - 1.0);
        let within = match self.bar {
            Bar::Nearer => off(first).abs().min(off(second).abs()) <= 1.5,
            Bar::Between => off(first.min(second)) >= -3.0 && off(first.max(second)) <= 3.0,
        };
        let latency = report
            .read_latency
            .as_ref()
            .or(report.write_latency.as_ref());
        let line = format!(
            "{}: {} cycles; peers {first} ({:+.2} %), {second} ({:+.2} %); mean latency {:.1}",
            self.name,
            report.cycles,
            off(first),
            off(second),
            latency.map_or(0.0, |latency| latency.mean),
        );
        (line, within)
    }
}

const fn peer(name: &'static str, m1: (u64, u64), m2: (u64, u64), bar: Bar) -> Peer {
    Peer {
        name,
        cycles: [m1, m2],
        bar,
    }
}

pub const CYCLES: &[Peer] = &[
    peer(
        "A",
        (2_176_065, 2_165_594),
        (2_173_962, 2_165_898),
        Bar::Nearer,
    ),
    peer(
        "B",
        (2_175_857, 2_173_078),
        (2_199_498, 2_175_857),
        Bar::Nearer,
    ),
    peer(
        "C",
        (2_363_874, 2_538_897),
        (2_308_002, 2_479_780),
        Bar::Between,
    ),
    peer(
        "C2",
        (2_325_107, 2_358_061),
        (2_265_217, 2_276_641),
        Bar::Between,
    ),
    peer(
        "D",
        (4_379_661, 4_368_504),
        (4_380_356, 4_370_825),
        Bar::Nearer,
    ),
    peer(
        "E",
        (47_657_933, 12_230_866),
        (12_619_513, 12_834_075),
        Bar::Between,
    ),
    peer(
        "E2",
        (3_867_953, 4_087_021),
        (2_330_551, 2_176_056),
        Bar::Between,
    ),
    peer(
        "F",
        (12_800_114, 12_800_112),
        (12_800_114, 12_800_112),
        Bar::Nearer,
    ),
    peer(
        "F2",
        (12_800_128, 12_800_112),
        (12_800_128, 12_800_112),
        Bar::Nearer,
    ),
    peer(
        "H",
        (3_584_502, 3_085_597),
        (2_275_566, 2_678_958),
        Bar::Between,
    ),
    peer(
        "I",
        (1_600_009, 1_600_104),
        (1_600_139, 1_600_123),
        Bar::Nearer,
    ),
];

/// Cycles of the second simulator for streams in place, which it finishes by letting writes overtake reads
/// of what they overwrite; the first never ends.
pub const IN_PLACE: &[(&str, [u64; 2])] = &[
    ("G", [2_264_658, 2_259_665]),
    ("G2", [3_105_194, 2_769_886]),
];

/// Turnarounds of both simulators, and the mean latency of reads of the second, which has the shorter one, for I
/// with each mapping.
pub const I_TURNAROUNDS: [(u64, u64); 2] = [(15_808, 11_763), (15_888, 12_003)];
pub const I_READ_LATENCY: [f64; 2] = [94.17, 94.40];

/// D with nRRDL 6 and nFAW 30.
pub const D_TIGHT: Peer = peer(
    "D, nRRDL 6, nFAW 30",
    (8_143_166, 8_114_076),
    (8_142_400, 8_114_165),
    Bar::Nearer,
);

/// Best of both simulators on the machine of the comparison, one core.
pub const KILO_REQUESTS_PER_SECOND: &[(&str, f64)] = &[
    ("A", 1047.0),
    ("B", 657.0),
    ("C", 645.0),
    ("C2", 662.0),
    ("D", 321.0),
    ("E", 121.0),
    ("E2", 496.0),
    ("F", 350.0),
    ("F2", 294.0),
];

/// Digests of the streams as NumPy writes them, accesses of 32 bytes in 512 MiB.
pub const SHA256: &[(&str, &str)] = &[
    (
        "A",
        "45dd63101bff5ffc612e7008aab5ead88b909b81676769b3a8c8be5125bf52ca",
    ),
    (
        "B",
        "f8fc4d1f1c3607bda525c0e54db022b2d7856e9da304cfa84b8f2a1668dcbfdf",
    ),
    (
        "C",
        "47b066e4c05c5ef51a4f93582ead578dfb4e587c976b59731392fcb22e17399e",
    ),
    (
        "C2",
        "7e62da75f57c1d7063496a2e5130a68864767656858b1484c500f78daeb3f10b",
    ),
    (
        "D",
        "c7d3d4497fa05813ea86969822eced7ce5d85c37f73d0ab1ff04b7f35977e812",
    ),
    (
        "E",
        "a746a03030eebeb16ca9594d5345b30b4ae5c35e4a292fa18afef7e15f94026e",
    ),
    (
        "E2",
        "4707f009922006f252d73236b792da33ce22d7dbb34d55dfc7079fc0e58c2ea6",
    ),
    (
        "F",
        "b7a2405016050d15223182f640e021dfaf93597c6fb963d128a96f628ea8b7e5",
    ),
    (
        "F2",
        "a9a211155b463fed6331d38f11c713c54f35dd08fdb852e2443b8e2c2f2fd917",
    ),
    (
        "G",
        "45ddcca2f55825f0aeb62f0fbf3dc10a612928bd2336a093e95180bcdcc94ad0",
    ),
    (
        "G2",
        "9794d9932c59e80956314681401904076dcc9865225bcc74c31b9830d3078c50",
    ),
    (
        "H",
        "c8052d682db0cbe3d0e9f3d426885492cfd92ab7167039b954e6e4d9803b91d0",
    ),
    (
        "I",
        "7c73ed5b55a24ad408b613162f5615bc61b9504c921593077fcb28992215c3c4",
    ),
];
