//! Re-verifies a command trace from its CSV text and the text of the config alone. Written from the
//! meaning of the timing parameters, and knows nothing of how the model keeps them: each command is
//! held against the last ones of each kind in its bank, its bank group and its pseudo-channel.

use std::collections::{BTreeMap, VecDeque};

/// The parameters of `[timing]` by name.
pub type Table = BTreeMap<String, u64>;

/// The timing of a config file.
pub fn table(config: &str) -> Table {
    let config: toml::Table = config.parse().unwrap();
    let timing = config["timing"].as_table().unwrap();
    timing
        .iter()
        .map(|(name, value)| (name.clone(), value.as_integer().unwrap() as u64))
        .collect()
}

/// One line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub cycle: u64,
    pub command: &'a str,
    pub channel: (u64, u64),
    pub group: u64,
    pub bank: u64,
    pub row: u64,
    pub column: u64,
}

pub fn lines(csv: &str) -> Vec<Line<'_>> {
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("cycle,command,channel,pseudo_channel,bank_group,bank,row,column")
    );
    let line = |line: &'_ str| -> (Vec<u64>, usize) {
        let fields: Vec<u64> = line.split(',').map(|f| f.parse().unwrap_or(0)).collect();
        let comma = line.find(',').unwrap();
        (fields, comma + 1)
    };
    lines
        .map(|text| {
            let (f, start) = line(text);
            assert_eq!(f.len(), 8, "{text}");
            Line {
                cycle: f[0],
                command: text[start..].split(',').next().unwrap(),
                channel: (f[2], f[3]),
                group: f[4],
                bank: f[5],
                row: f[6],
                column: f[7],
            }
        })
        .collect()
}

/// Within what two commands must keep their distance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Bank,
    Group,
    Channel,
}

/// (earlier, later, scope, parameters whose sum is the distance).
const DISTANCES: &[(&str, &str, Scope, &[&str])] = &[
    ("ACT", "ACT", Scope::Bank, &["nRC"]),
    ("ACT", "ACT", Scope::Group, &["nRRDL"]),
    ("ACT", "ACT", Scope::Channel, &["nRRDS"]),
    ("ACT", "RD", Scope::Bank, &["nRCDRD"]),
    ("ACT", "WR", Scope::Bank, &["nRCDWR"]),
    ("ACT", "PRE", Scope::Bank, &["nRAS"]),
    ("ACT", "PREA", Scope::Channel, &["nRAS"]),
    ("ACT", "REF", Scope::Channel, &["nRC"]),
    ("PRE", "ACT", Scope::Bank, &["nRP"]),
    ("PREA", "ACT", Scope::Channel, &["nRP"]),
    ("PRE", "REF", Scope::Channel, &["nRP"]),
    ("PREA", "REF", Scope::Channel, &["nRP"]),
    ("REF", "ACT", Scope::Channel, &["nRFC"]),
    ("REF", "REF", Scope::Channel, &["nRFC"]),
    ("RD", "PRE", Scope::Bank, &["nRTP"]),
    ("RD", "PREA", Scope::Channel, &["nRTP"]),
    ("WR", "PRE", Scope::Bank, &["nCWL", "nBL", "nWR"]),
    ("WR", "PREA", Scope::Channel, &["nCWL", "nBL", "nWR"]),
    ("RD", "RD", Scope::Group, &["nCCDL"]),
    ("RD", "RD", Scope::Channel, &["nCCDS"]),
    ("WR", "WR", Scope::Group, &["nCCDL"]),
    ("WR", "WR", Scope::Channel, &["nCCDS"]),
    ("RD", "WR", Scope::Channel, &["nRTW"]),
    ("WR", "RD", Scope::Group, &["nCWL", "nBL", "nWTRL"]),
    ("WR", "RD", Scope::Channel, &["nCWL", "nBL", "nWTRS"]),
];

const COMMANDS: [&str; 6] = ["ACT", "PRE", "PREA", "RD", "WR", "REF"];

fn number(command: &str) -> usize {
    let number = COMMANDS.iter().position(|known| *known == command);
    number.unwrap_or_else(|| panic!("unknown command {command}"))
}

/// What is remembered of one pseudo-channel.
#[derive(Default)]
struct State {
    /// Last cycle of a command by its number in [`COMMANDS`], bank group and bank, where it was to any
    /// of them for `None`.
    last: BTreeMap<(usize, Option<u64>, Option<u64>), u64>,
    open: BTreeMap<(u64, u64), u64>,
    activates: VecDeque<u64>,
    /// First cycle at which the data bus is free.
    data: u64,
    now: u64,
    row_bus: Option<u64>,
    column_bus: Option<u64>,
    refreshes: u64,
}

/// What is wrong with a trace: the constraint and the line. Empty for a correct one.
pub fn violations(table: &Table, csv: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut channels: BTreeMap<(u64, u64), State> = BTreeMap::new();
    for line in lines(csv) {
        let state = channels.entry(line.channel).or_default();
        let mut wrong = |what: &str| found.push(format!("{what}: {line:?}"));
        check(table, state, &line, &mut wrong);
        note(table, state, &line);
    }
    found
}

fn check(table: &Table, state: &State, line: &Line<'_>, wrong: &mut impl FnMut(&str)) {
    let Line { cycle, command, .. } = *line;
    let bank = (line.group, line.bank);
    if cycle < state.now {
        wrong("time goes back");
    }
    for (earlier, later, scope, parameters) in DISTANCES {
        if *later != command {
            continue;
        }
        let place = match scope {
            Scope::Bank => (Some(line.group), Some(line.bank)),
            Scope::Group => (Some(line.group), None),
            Scope::Channel => (None, None),
        };
        let last = state.last.get(&(number(earlier), place.0, place.1));
        let distance: u64 = parameters.iter().map(|name| table[*name]).sum();
        if last.is_some_and(|last| cycle < last + distance) {
            wrong(&format!("{} after {earlier}", parameters.join(" + ")));
        }
    }
    let column = ["RD", "WR"].contains(&command);
    let bus = if column {
        state.column_bus
    } else {
        state.row_bus
    };
    if bus == Some(cycle) {
        wrong("two commands on one bus");
    }
    match command {
        "ACT" => {
            if state.open.contains_key(&bank) {
                wrong("activate of an open bank");
            }
            if state.activates.len() == 4 && cycle < state.activates[0] + table["nFAW"] {
                wrong("nFAW");
            }
        }
        "PRE" if !state.open.contains_key(&bank) => wrong("precharge of a closed bank"),
        "PREA" if state.open.is_empty() => wrong("precharge of closed banks"),
        "REF" => {
            if !state.open.is_empty() {
                wrong("refresh with open rows");
            }
            // Due after each interval; then rows may have to be closed first.
            let due = (state.refreshes + 1) * table["nREFI"];
            if cycle < due || cycle > due + 100 {
                wrong("nREFI");
            }
        }
        "RD" | "WR" => {
            if state.open.get(&bank) != Some(&line.row) {
                wrong("column of a row that is not open");
            }
            let latency = if command == "RD" { "nCL" } else { "nCWL" };
            if cycle + table[latency] < state.data {
                wrong("two bursts on the data bus");
            }
            // Between the last refresh and the next, with what it may be late.
            if cycle >= (state.refreshes + 1) * table["nREFI"] && table["nREFI"] != 0 {
                wrong("refresh left out");
            }
        }
        _ => {}
    }
}

fn note(table: &Table, state: &mut State, line: &Line<'_>) {
    let Line { cycle, command, .. } = *line;
    let (group, bank) = (Some(line.group), Some(line.bank));
    for place in [(group, bank), (group, None), (None, None)] {
        let key = (number(command), place.0, place.1);
        state.last.insert(key, cycle);
    }
    state.now = cycle;
    match command {
        "RD" | "WR" => state.column_bus = Some(cycle),
        _ => state.row_bus = Some(cycle),
    }
    match command {
        "ACT" => {
            state.open.insert((line.group, line.bank), line.row);
            state.activates.push_back(cycle);
            if state.activates.len() > 4 {
                state.activates.pop_front();
            }
        }
        "PRE" => {
            state.open.remove(&(line.group, line.bank));
        }
        "PREA" => state.open.clear(),
        "REF" => state.refreshes += 1,
        "RD" => state.data = cycle + table["nCL"] + table["nBL"],
        _ => state.data = cycle + table["nCWL"] + table["nBL"],
    }
}
