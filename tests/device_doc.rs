//! `docs/device.md` lists every register of the table in the code and every error bit, and says of
//! each what the simulator does with it.
//!
//! `UPDATE_DOCS=1 cargo test --test device_doc` rewrites all columns but the last, which people write.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use udma_sim::arch::Arch;
use udma_sim::arch::regs::table::{
    Access, GENERAL, GENERAL_EX, GLOBAL, GLOBAL_M2S, GLOBAL_S2M, INTERRUPT_GROUP, Model, NOTIFIC,
    QUEUE, QUEUE_M2S, QUEUE_S2M, Reset, Row,
};
use udma_sim::arch::regs::{M2sError, S2mError};

const PATH: &str = "docs/device.md";

/// A table of the document: its marker, its heading, and for each row the key and the columns.
struct Table {
    name: &'static str,
    heading: &'static str,
    rows: Vec<(String, String)>,
}

fn registers(name: &'static str, rows: &[Row]) -> Table {
    Table {
        name,
        heading: "| offset | register | access | reset | | what it does |\n|---|---|---|---|---|---|\n",
        rows: rows.iter().map(register).collect(),
    }
}

fn register(row: &Row) -> (String, String) {
    let last = row.offset + 4 * (row.words - 1);
    let offset = match row.words {
        1 => format!("{:#04x}", row.offset),
        _ => format!("{:#04x}..={last:#04x}", row.offset),
    };
    let access = match row.access {
        Access::ReadWrite => "rw",
        Access::ReadOnly => "ro",
        Access::Command => "command",
        Access::WriteZeroClears => "w0c",
    };
    let reset = match row.reset {
        Reset::Value(value) => format!("{value:#x}"),
        // Differs between generations.
        other => {
            let values = Arch::ALL.map(|arch| format!("{arch} {:#x}", other.value(arch.spec())));
            values.join(", ")
        }
    };
    let model = match row.model {
        Model::Live => "modelled",
        Model::Inert => "inert",
    };
    let since = match row.since {
        Arch::V2 => String::new(),
        arch => format!(", from {arch} on"),
    };
    let columns = format!(
        "| {offset} | {} | {access} | {reset} | {model}{since} |",
        row.name
    );
    (format!("{offset} {}", row.name), columns)
}

fn errors(name: &'static str, all: impl Iterator<Item = (u32, &'static str)>) -> Table {
    let row = |(bit, meaning): (u32, &str)| (bit.to_string(), format!("| {bit} | {meaning} |"));
    Table {
        name,
        heading: "| bit | error | raised by |\n|---|---|---|\n",
        rows: all.map(row).collect(),
    }
}

fn tables() -> Vec<Table> {
    let m2s = M2sError::ALL
        .iter()
        .map(|error| (*error as u32, error.meaning()));
    let s2m = S2mError::ALL
        .iter()
        .map(|error| (*error as u32, error.meaning()));
    vec![
        registers("queue", QUEUE),
        registers("queue-m2s", QUEUE_M2S),
        registers("queue-s2m", QUEUE_S2M),
        registers("global", GLOBAL),
        registers("global-m2s", GLOBAL_M2S),
        registers("global-s2m", GLOBAL_S2M),
        registers("interrupt-group", INTERRUPT_GROUP),
        registers("general", GENERAL),
        registers("general-ex", GENERAL_EX),
        registers("notific", NOTIFIC),
        errors("errors-m2s", m2s),
        errors("errors-s2m", s2m),
    ]
}

/// The part of the document that a table fills.
fn place(text: &str, table: &Table) -> Range<usize> {
    let begin = format!("<!-- table {} -->\n", table.name);
    let end = format!("<!-- end {} -->\n", table.name);
    let from = text.find(&begin).unwrap_or_else(|| panic!("{begin}")) + begin.len();
    let to = from + text[from..].find(&end).unwrap_or_else(|| panic!("{end}"));
    from..to
}

/// The last column of each row, by the row's key.
fn notes<'a>(shown: &'a str, table: &Table) -> BTreeMap<String, &'a str> {
    let is_error = table.name.starts_with("errors");
    let row = |line: &'a str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let key = match is_error {
            true => cells.first()?.to_string(),
            false => format!("{} {}", cells.first()?, cells.get(1)?),
        };
        Some((key, *cells.last()?))
    };
    shown.lines().skip(2).filter_map(row).collect()
}

fn refreshed(text: &str) -> String {
    let mut out = text.to_string();
    for table in tables() {
        let notes = notes(&text[place(text, &table)], &table);
        let mut real = table.heading.to_string();
        for (key, columns) in &table.rows {
            let note = notes.get(key).copied().unwrap_or_default();
            writeln!(real, "{columns} {note} |").unwrap();
        }
        let place = place(&out, &table);
        out.replace_range(place, &real);
    }
    out
}

#[test]
fn every_register_and_error_bit_is_documented() {
    let text = fs::read_to_string(PATH).unwrap();
    let real = refreshed(&text);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PATH, &real).unwrap();
    } else {
        use snapbox::IntoData;
        snapbox::assert_data_eq!(text.as_str().raw(), real.as_str().raw());
    }
    for table in tables() {
        let notes = notes(&real[place(&real, &table)], &table);
        assert_eq!(notes.len(), table.rows.len(), "{}", table.name);
        for (key, note) in notes {
            assert!(
                !note.is_empty(),
                "{PATH}: {} {key} lacks its last column",
                table.name
            );
        }
    }
}

/// Bits of which the document says that only an injected fault raises them are those that no line
/// of the device names.
#[test]
fn bits_that_only_faults_raise_are_told_apart() {
    let mut source = String::new();
    let mut folders = vec![std::path::PathBuf::from("src/device")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            source.push_str(code);
        }
    }
    let text = fs::read_to_string(PATH).unwrap();
    let m2s = M2sError::ALL
        .iter()
        .map(|error| (*error as u32, format!("M2sError::{error:?}")));
    let s2m = S2mError::ALL
        .iter()
        .map(|error| (*error as u32, format!("S2mError::{error:?}")));
    let halves: [Vec<_>; 2] = [m2s.collect(), s2m.collect()];
    for (table, bits) in tables()
        .iter()
        .filter(|t| t.name.starts_with("errors"))
        .zip(halves)
    {
        let notes = notes(&text[place(&text, table)], table);
        for (bit, name) in bits {
            let named = source.match_indices(&name).any(|(at, _)| {
                let next = source[at + name.len()..].chars().next();
                next.is_none_or(|c| !c.is_alphanumeric())
            });
            let faults_only = notes[&bit.to_string()].starts_with("an injected fault only");
            assert_eq!(faults_only, !named, "{} bit {bit}, {name}", table.name);
        }
    }
}
