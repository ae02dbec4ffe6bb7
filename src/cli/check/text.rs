//! The report for people.

use super::{Found, barrier_name};
use std::collections::BTreeMap;
use std::fmt::Write;
use udma_sim::arch::Arch;
use udma_sim::order::race::{Race, Side};
use udma_sim::scenario::Superfluous;
use udma_sim::units::counted;

pub(super) fn text(found: &[Found]) -> String {
    let mut text = String::new();
    for Found {
        arch,
        races,
        superfluous,
    } in found
    {
        for race in &races.races {
            text += &format!("{arch}: {race}\n\n");
        }
        for barriers in superfluous.iter().flatten() {
            text += &format!("{arch}: {}\n\n", superfluous_text(barriers));
        }
        for left_out in &races.left_out {
            text += &format!("{arch}: not checked: {left_out}\n\n");
        }
        let count = match races.races.len() {
            0 => "no races".to_string(),
            n => counted(n as u64, "race"),
        };
        text += &format!("{arch}: {count} in {}", counted(races.packets, "packet"));
        if races.more > 0 {
            text += &format!(", and {} more not listed", races.more);
        }
        let barriers = superfluous.as_ref();
        let barriers = barriers.map(|all| all.iter().map(|one| one.count).sum::<u64>());
        text += &match barriers {
            None => "; too many races to look for redundant barriers\n".to_string(),
            Some(0) => "; no redundant barriers\n".to_string(),
            Some(n) => format!("; {}\n", counted(n, "redundant barrier")),
        };
    }
    if found.len() > 1 {
        text += &table(found);
    }
    text
}

fn superfluous_text(barriers: &Superfluous) -> String {
    let Superfluous {
        count, of, kind, ..
    } = barriers;
    let kind = barrier_name(*kind);
    let mut text = match (count, of) {
        (1, 1) => format!("redundant {kind} on {}", barriers.first),
        (count, of) => format!(
            "redundant {kind}: {count} of the {of} built by this step, first on {}",
            barriers.first
        ),
    };
    if let Some(origin) = &barriers.origin {
        let _ = write!(text, "\n           {origin}");
    }
    text += match barriers.masked {
        true => "\n  has no effect: the queue's DMB pause is masked",
        false => "\n  removing it changes no ordering",
    };
    if let Some(cycles) = barriers.cycles {
        text += &match cycles {
            1.. => format!("; costs {}", counted(cycles as u64, "cycle")),
            0 => "; costs no cycles".to_string(),
            _ => {
                let cycles = counted(cycles.unsigned_abs(), "cycle");
                format!("; removing it makes the run {cycles} longer")
            }
        };
    }
    text
}

/// Which race is there on which generation.
fn table(found: &[Found]) -> String {
    let side = |side: &Side| match &side.origin {
        Some(origin) => format!("{}, line {}", side.who, origin.line),
        None => side.who.clone(),
    };
    let name = |race: &Race| format!("{} / {}", side(&race.first), side(&race.second));
    let mut rows: BTreeMap<String, Vec<Arch>> = BTreeMap::new();
    for found in found {
        for race in &found.races.races {
            rows.entry(name(race)).or_default().push(found.arch);
        }
    }
    let mut table = String::from("\n");
    for (row, arches) in rows {
        for Found { arch, .. } in found {
            let mark = if arches.contains(arch) {
                "RACE   "
            } else {
                "ordered"
            };
            let _ = write!(table, "{arch} {mark}  ");
        }
        table += &format!("{row}\n");
    }
    table
}
