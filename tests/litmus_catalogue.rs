//! The litmus catalogue (`tests/litmus/`): every answer by the explorer and by the axioms, the reduced
//! search against brute force, mutations, and the command's output.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use udma_sim::arch::Arch;
use udma_sim::order::axiomatic::allowed;
use udma_sim::order::axioms::{Axiom, Axioms};
use udma_sim::order::explore::{Options, explore};
use udma_sim::order::litmus::{Answer, Case, Litmus, Mode, verdict};
use udma_sim::order::outcome::Outcome;

fn catalogue() -> Vec<Litmus> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus");
    Litmus::load_all(&folder).unwrap()
}

/// Every case once for each distinct program: generations mostly share theirs.
fn cases(catalogue: &[Litmus]) -> Vec<(&Litmus, &Case)> {
    let mut cases: Vec<(&Litmus, &Case)> = Vec::new();
    for test in catalogue {
        for case in &test.cases {
            if !cases
                .iter()
                .any(|(_, known)| known.program == case.program && known.asked == case.asked)
            {
                cases.push((test, case));
            }
        }
    }
    cases
}

fn name(test: &Litmus, case: &Case) -> String {
    format!("{} [{}] on {}", test.name, case.barrier(), case.arch)
}

#[test]
fn every_cell_of_the_catalogue_is_as_expected() {
    for test in &catalogue() {
        for case in &test.cases {
            let found = verdict(case, Options::default()).unwrap();
            assert_eq!(found.answer, Some(case.expected), "{}", name(test, case));
            assert_eq!(found.exploration.stuck, 0, "{}", name(test, case));
        }
    }
}

/// The table of the specification, by hand: row, then the answers under NONE, DMB, WB and SOW in the
/// barrier's right place ("-": the cell is empty).
const TABLE: [(&str, [&str; 4]); 23] = [
    ("MP", ["A", "F", "F", "F"]),
    ("MP+wrong", ["-", "A", "A", "A"]),
    ("MP+sem", ["A", "F", "F", "F"]),
    ("MP+marker", ["A", "F", "F", "F"]),
    ("MP+chunk", ["-", "A", "A", "-"]),
    ("MP+meta", ["A", "F", "-", "-"]),
    ("MP+masked", ["-", "A", "-", "-"]),
    ("MP+pad", ["A", "F", "F", "F"]),
    ("MP+wrap", ["A", "F", "F", "F"]),
    ("RAW", ["A", "F", "A", "A"]),
    ("WAR", ["F", "F", "F", "F"]),
    ("WAW", ["F", "F", "F", "F"]),
    ("WAW+overlap", ["F", "F", "F", "F"]),
    ("2+2W", ["A", "F", "F", "F"]),
    ("SB", ["A", "F", "A", "A"]),
    ("LB", ["F", "F", "F", "F"]),
    ("S", ["A", "F", "F", "F"]),
    ("hop", ["A", "F", "F", "F"]),
    ("WRC", ["F", "F", "F", "F"]),
    ("acc", ["A", "F", "A", "A"]),
    ("emb", ["F", "F", "F", "F"]),
    ("two engines", ["A", "F", "F", "F"]),
    ("self-ring", ["A", "A", "A", "A"]),
];

#[test]
fn the_files_say_what_the_table_says_for_every_generation() {
    let catalogue = catalogue();
    for (row, answers) in TABLE {
        let modes = [Mode::None, Mode::Dmb, Mode::WriteBarrier, Mode::Sow];
        for (mode, answer) in modes.into_iter().zip(answers) {
            let cases = (catalogue.iter().filter(|test| test.row == row)).flat_map(|t| &t.cases);
            let cases: Vec<&Case> = cases.filter(|case| case.mode == mode).collect();
            let expected = match answer {
                "A" => Answer::Allowed,
                "F" => Answer::Forbidden,
                _ => {
                    assert!(cases.is_empty(), "{row} {mode:?}");
                    continue;
                }
            };
            assert!(
                cases.iter().all(|case| case.expected == expected),
                "{row} {mode:?}"
            );
            let arches: BTreeSet<Arch> = cases.iter().map(|case| case.arch).collect();
            let wanted: BTreeSet<Arch> = (Arch::ALL.into_iter())
                .filter(|arch| row != "emb" || *arch == Arch::V4)
                .filter(|arch| mode != Mode::Sow || *arch != Arch::V2)
                .collect();
            assert_eq!(arches, wanted, "{row} {mode:?}");
        }
    }
}

/// Each file cites its row, and the table in the docs names the file beside that row.
#[test]
fn every_file_cites_its_row_and_every_row_its_files() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ordering.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for test in catalogue() {
        let text = std::fs::read_to_string(&test.path).unwrap();
        let cites = format!("# docs/ordering.md, catalogue row \"{}\".", test.row);
        assert_eq!(
            text.lines().next(),
            Some(cites.as_str()),
            "{}",
            test.path.display()
        );
        let file = format!("`{}`", test.path.file_name().unwrap().to_string_lossy());
        let line = docs
            .lines()
            .find(|line| line.starts_with('|') && line.contains(&file));
        let line = line.unwrap_or_else(|| panic!("docs/ordering.md lacks {file}"));
        assert!(line.contains(&test.row), "{line} lacks {}", test.row);
    }
}

/// Two models, independently written, allow the same outcomes.
#[test]
fn explorer_and_axioms_allow_the_same() {
    let catalogue = catalogue();
    let mut compared = 0;
    for (test, case) in cases(&catalogue) {
        let explored = explore(&case.program, Options::default()).unwrap();
        let axioms = allowed(&case.program, Axioms::ALL, 20_000).unwrap();
        let found: BTreeSet<Outcome> = explored.endings.into_keys().collect();
        if axioms.exhaustive {
            assert_eq!(found, axioms.outcomes, "{}", name(test, case));
            compared += 1;
        } else {
            // Packets that do nothing multiply the orders; what was seen must still be allowed.
            let padded = ["MP+pad", "self-ring"].contains(&test.row.as_str());
            assert!(padded, "{} has too many orders", name(test, case));
            assert!(axioms.outcomes.is_subset(&found), "{}", name(test, case));
        }
    }
    assert!(
        compared > 80,
        "only {compared} programs were compared in full"
    );
}

/// The reduction loses no outcome, and pays.
#[test]
fn the_reduced_search_finds_what_brute_force_finds() {
    let catalogue = catalogue();
    let (mut reduced_states, mut brute_states) = (0, 0);
    for (test, case) in cases(&catalogue) {
        if test.row == "self-ring" {
            // Its brute force has too many states for a test that everybody runs.
            continue;
        }
        let reduced = explore(&case.program, Options::default()).unwrap();
        let options = Options {
            reduce: false,
            ..Options::default()
        };
        let brute = explore(&case.program, options).unwrap();
        assert!(reduced.exhaustive && brute.exhaustive);
        assert!(
            reduced.endings.keys().eq(brute.endings.keys()),
            "{}",
            name(test, case)
        );
        assert!(reduced.states <= brute.states);
        reduced_states += reduced.states;
        brute_states += brute.states;
    }
    assert!(
        reduced_states * 4 < brute_states,
        "{reduced_states} of {brute_states}"
    );
}

#[test]
fn witnesses_replay_to_the_outcome_they_witness() {
    let catalogue = catalogue();
    for (test, case) in cases(&catalogue) {
        let explored = explore(&case.program, Options::default()).unwrap();
        for (outcome, ending) in &explored.endings {
            let text = serde_json::to_string(&ending.witness).unwrap();
            let path: udma_sim::order::explore::Path = serde_json::from_str(&text).unwrap();
            let (steps, replayed) = path.replay(&case.program, Axioms::ALL).unwrap();
            assert_eq!(&replayed, outcome, "{}", name(test, case));
            assert_eq!(steps.len(), path.0.len());
        }
    }
}

/// A search that hits its bound claims nothing it has not seen.
#[test]
fn a_bound_hit_is_no_answer() {
    let catalogue = catalogue();
    for (test, case) in cases(&catalogue) {
        let options = Options {
            max_states: 3,
            ..Options::default()
        };
        let found = verdict(case, options).unwrap();
        assert!(!found.exploration.exhaustive, "{}", name(test, case));
        assert_ne!(
            found.answer,
            Some(Answer::Forbidden),
            "{}",
            name(test, case)
        );
    }
}

/// The cells whose answer changes when an axiom is weakened.
fn noticed_by(catalogue: &[Litmus], axiom: Axiom) -> BTreeSet<String> {
    let options = Options {
        axioms: Axioms::ALL.without(axiom),
        ..Options::default()
    };
    let mut noticed = BTreeSet::new();
    for (test, case) in cases(catalogue) {
        let found = verdict(case, options).unwrap();
        if found.answer != Some(case.expected) {
            noticed.insert(test.name.clone());
        }
    }
    noticed
}

/// Weakening any axiom is noticed, and `docs/ordering.md` says by which tests.
#[test]
fn every_axiom_matters_to_some_test() {
    let catalogue = catalogue();
    let mut lines = BTreeMap::new();
    for axiom in Axiom::ALL {
        let noticed = noticed_by(&catalogue, axiom);
        assert!(
            !noticed.is_empty(),
            "nobody notices that {axiom} is weakened"
        );
        let names: Vec<String> = noticed.into_iter().collect();
        lines.insert(axiom, format!("| {axiom} | {} |", names.join(", ")));
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ordering.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for line in lines.values() {
        let all: Vec<&String> = lines.values().collect();
        assert!(
            docs.contains(line.as_str()),
            "docs/ordering.md lacks a line of {all:#?}"
        );
    }
}
