//! `udma-sim litmus`: litmus tests, explored exhaustively and, if wanted, run on the timing engine.

use super::{print, refuse};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use udma_sim::arch::Arch;
use udma_sim::config::Config;
use udma_sim::order::axioms::Axioms;
use udma_sim::order::explore::{self, Options};
use udma_sim::order::litmus::{Answer, Case, Litmus, TimedVerdict, Verdict, verdict};
use udma_sim::order::timed::{self, TimedError};
use udma_sim::scenario::{EmitError, emit};

/// Exit status when an answer is not the expected one.
const DISAGREES: u8 = 1;

#[derive(clap::Args)]
pub struct Args {
    /// Litmus files, or folders of them
    #[arg(required = true)]
    paths: Vec<PathBuf>,

    /// Generations to check [default: all]
    #[arg(long, value_name = "ARCH")]
    arch: Vec<Arch>,

    /// Also run each test on the timing engine, with this many seeds of random latencies
    #[arg(long, value_name = "SEEDS")]
    timed: Option<u64>,

    /// Stop a search after this many states; an outcome not found by then is "Unknown"
    #[arg(long, value_name = "N", default_value_t = Options::default().max_states)]
    max_states: u64,

    /// Print one line per answer, without outcomes and witnesses
    #[arg(long, short = 's')]
    summary: bool,

    /// Directory for the witnesses, one JSON file per allowed outcome
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    /// Directory for the tests as scenarios for `run`, one per answer, with the configs that they need
    #[arg(long, value_name = "DIR")]
    emit_scenario: Option<PathBuf>,

    /// Replay a stored witness of a test in the given files
    #[arg(long, value_name = "FILE", conflicts_with_all = ["timed", "save", "summary", "emit_scenario"])]
    replay: Option<PathBuf>,
}

/// A stored execution.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    test: String,
    arch: String,
    barrier: String,
    path: explore::Path,
}

pub fn main(args: &Args) -> ExitCode {
    match run(args) {
        Ok((text, agrees)) => {
            let printed = print(text);
            match agrees {
                true => printed,
                false => ExitCode::from(DISAGREES),
            }
        }
        Err(error) => refuse(error),
    }
}

fn run(args: &Args) -> Result<(String, bool), Box<dyn Error>> {
    let mut tests = Vec::new();
    for path in &args.paths {
        tests.extend(Litmus::load_all(path)?);
    }
    if let Some(stored) = &args.replay {
        return replay(&tests, stored);
    }
    let mut session = Session::new(args)?;
    for test in &tests {
        session.test(test)?;
    }
    session.conclude();
    Ok((session.text, session.wrong == 0))
}

struct Session<'a> {
    args: &'a Args,
    configs: BTreeMap<Arch, Config>,
    text: String,
    answers: usize,
    wrong: usize,
    states: u64,
}

impl<'a> Session<'a> {
    fn new(args: &'a Args) -> Result<Self, Box<dyn Error>> {
        let mut configs = BTreeMap::new();
        for arch in Arch::ALL {
            let name = arch.spec().code_name;
            configs.insert(arch, Config::load(name, Path::new(""))?);
        }
        Ok(Session {
            args,
            configs,
            text: String::new(),
            answers: 0,
            wrong: 0,
            states: 0,
        })
    }

    fn test(&mut self, test: &Litmus) -> Result<(), Box<dyn Error>> {
        let wanted =
            |case: &&Case| self.args.arch.is_empty() || self.args.arch.contains(&case.arch);
        let cases: Vec<&Case> = test.cases.iter().filter(wanted).collect();
        if !self.args.summary && !cases.is_empty() {
            writeln!(self.text, "Test {}: {}", test.name, test.about)?;
        }
        // Generations that run the same program have the same executions.
        for group in cases.chunk_by(|a, b| (a.program == b.program) && a.barrier() == b.barrier()) {
            let case = group[0];
            let options = Options {
                max_states: self.args.max_states,
                ..Options::default()
            };
            let verdict = verdict(case, options)?;
            self.states += verdict.exploration.states;
            let arches: Vec<&str> = group.iter().map(|case| case.arch.name()).collect();
            self.answer(test, case, &arches, &verdict)?;
            for case in group {
                self.answers += 1;
                self.wrong += usize::from(verdict.answer != Some(case.expected));
                if let Some(seeds) = self.args.timed {
                    self.timed(case, seeds)?;
                }
                self.save(test, case, &verdict)?;
                self.emit(test, case)?;
            }
        }
        Ok(())
    }

    fn answer(
        &mut self,
        test: &Litmus,
        case: &Case,
        arches: &[&str],
        verdict: &Verdict,
    ) -> Result<(), Box<dyn Error>> {
        let answer = match verdict.answer {
            Some(answer) => answer.to_string(),
            None => "Unknown (--max-states reached)".to_string(),
        };
        let agrees = match verdict.answer == Some(case.expected) {
            true => "as expected".to_string(),
            false => format!("EXPECTED {}", case.expected),
        };
        let (barrier, arches) = (case.barrier(), arches.join(" "));
        if self.args.summary {
            let name = &test.name;
            writeln!(
                self.text,
                "{name:<16} {barrier:<28} {arches:<9} {answer:<10} {agrees}"
            )?;
            return Ok(());
        }
        let found = &verdict.exploration;
        writeln!(self.text, "\n{} [{barrier}] {arches}", test.name)?;
        let mut outcomes: BTreeMap<String, (u64, bool)> = BTreeMap::new();
        for (outcome, ending) in &found.endings {
            let asked = case.asked.holds(outcome);
            let entry = outcomes.entry(case.asked.project(outcome)).or_default();
            *entry = (entry.0 + ending.executions, asked);
        }
        writeln!(self.text, "States {}", outcomes.len())?;
        for (outcome, (count, asked)) in outcomes {
            let mark = if asked { '*' } else { ':' };
            writeln!(self.text, "{count:<6} {mark}> {outcome}")?;
        }
        let (positive, negative) = verdict.executions;
        writeln!(
            self.text,
            "Witnesses\nPositive: {positive} Negative: {negative}"
        )?;
        writeln!(self.text, "Condition {}", case.asked)?;
        let often = match (positive, negative) {
            (0, _) => "Never",
            (_, 0) => "Always",
            _ => "Sometimes",
        };
        writeln!(
            self.text,
            "Observation {} {often} {positive} {negative}",
            test.name
        )?;
        let all = if found.exhaustive {
            "exhaustive"
        } else {
            "INCOMPLETE"
        };
        writeln!(
            self.text,
            "Search {} states, {} transitions, {} stuck, {all}",
            found.states, found.transitions, found.stuck
        )?;
        writeln!(self.text, "{answer}, {agrees}")?;
        if let Some(path) = &verdict.witness {
            let (steps, _) = path.replay(&case.program, Axioms::ALL)?;
            write_steps(&mut self.text, &steps)?;
        }
        Ok(())
    }

    fn timed(&mut self, case: &Case, seeds: u64) -> Result<(), Box<dyn Error>> {
        let config = &self.configs[&case.arch];
        let arch = case.arch;
        match TimedVerdict::of(case, config, seeds, timed::JITTER) {
            Ok(found) => {
                let agrees = found.agrees(case.expected);
                self.wrong += usize::from(!agrees);
                let first = match found.first {
                    Some(seed) => format!(", first with seed {seed}"),
                    None => String::new(),
                };
                let mark = match (agrees, case.expected) {
                    (true, _) => "as expected",
                    (false, Answer::Forbidden) => "FORBIDDEN OUTCOME",
                    (false, Answer::Allowed) => "NOT SEEN: try more seeds",
                };
                let (seen, runs) = (found.seen, found.runs);
                writeln!(
                    self.text,
                    "  timed {arch}: {seen} of {runs} runs{first}; {mark}"
                )?;
            }
            Err(TimedError::NotModelled(what)) => writeln!(
                self.text,
                "  timed {arch}: not run: the timing engine does not model {what}"
            )?,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn save(&self, test: &Litmus, case: &Case, verdict: &Verdict) -> Result<(), Box<dyn Error>> {
        let (Some(folder), Some(path)) = (&self.args.save, &verdict.witness) else {
            return Ok(());
        };
        let name = format!("{}.json", case_name(test, case));
        let stored = Stored {
            test: test.name.clone(),
            arch: case.arch.to_string(),
            barrier: case.barrier(),
            path: path.clone(),
        };
        write_file(folder, &name, &serde_json::to_string_pretty(&stored)?)
    }

    fn emit(&mut self, test: &Litmus, case: &Case) -> Result<(), Box<dyn Error>> {
        let Some(folder) = &self.args.emit_scenario else {
            return Ok(());
        };
        let name = case_name(test, case);
        match emit(&name, case, &self.configs[&case.arch]) {
            Ok(emitted) => {
                let file = format!("{name}.toml");
                write_file(folder, &emitted.config_name, &emitted.config)?;
                write_file(folder, &file, &emitted.text)?;
                let (path, shows) = (folder.join(file), emitted.shows);
                writeln!(
                    self.text,
                    "  {}: {shows}, seed {}",
                    path.display(),
                    emitted.seed
                )?;
            }
            Err(error @ EmitError::NotExpressible(_)) => {
                writeln!(self.text, "  no scenario {name}: {error}")?;
            }
            Err(error) => {
                self.wrong += 1;
                writeln!(self.text, "  no scenario {name}: {error}")?;
            }
        }
        Ok(())
    }

    fn conclude(&mut self) {
        let (answers, wrong, states) = (self.answers, self.wrong, self.states);
        let verdict = match wrong {
            0 => "all as expected".to_string(),
            wrong => format!("{wrong} NOT AS EXPECTED"),
        };
        self.text += &format!("\n{answers} answers, {states} states: {verdict}\n");
    }
}

/// A case as files call it.
fn case_name(test: &Litmus, case: &Case) -> String {
    let stem = test.path.file_stem().unwrap_or_default().to_string_lossy();
    let on = case.on.join("+");
    let on = if on.is_empty() { on } else { format!("-{on}") };
    format!("{stem}.{}.{}{on}", case.arch, case.mode.name())
}

/// Writes a file into a folder, which is made if it is not there.
fn write_file(folder: &Path, name: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let path = folder.join(name);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

fn write_steps(text: &mut String, steps: &[String]) -> std::fmt::Result {
    writeln!(text, "Witness")?;
    for (n, step) in steps.iter().enumerate() {
        writeln!(text, "{:>4}  {step}", n + 1)?;
    }
    Ok(())
}

fn replay(tests: &[Litmus], stored: &Path) -> Result<(String, bool), Box<dyn Error>> {
    let json = std::fs::read_to_string(stored)
        .map_err(|error| format!("cannot read {}: {error}", stored.display()))?;
    let stored: Stored =
        serde_json::from_str(&json).map_err(|error| format!("{}: {error}", stored.display()))?;
    let cases = tests
        .iter()
        .filter(|test| test.name == stored.test)
        .flat_map(|t| &t.cases);
    let mut cases = cases.filter(|c| c.arch.name() == stored.arch && c.barrier() == stored.barrier);
    let case = cases.next().ok_or_else(|| {
        let Stored {
            test,
            arch,
            barrier,
            ..
        } = &stored;
        format!("the given files do not contain test {test} [{barrier}] for {arch}")
    })?;
    let (steps, outcome) = stored.path.replay(&case.program, Axioms::ALL)?;
    let mut text = format!("{} [{}] {}\n", stored.test, stored.barrier, stored.arch);
    write_steps(&mut text, &steps)?;
    let asked = case.asked.holds(&outcome);
    let what = if asked {
        "the outcome in question"
    } else {
        "not the outcome in question"
    };
    writeln!(
        text,
        "Ends in {} {what}: {}",
        case.asked.project(&outcome),
        case.asked
    )?;
    Ok((text, asked))
}
