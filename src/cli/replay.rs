//! `udma-sim replay`: a recording run again and compared, or listed.

use super::{BAD_INPUT, print, refuse};
use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use udma_sim::arch::EngineId;
use udma_sim::config::Config;
use udma_sim::scenario::Scenario;
use udma_sim::sim::{Duration, Instant};
use udma_sim::system::{System, Watch};
use udma_sim::telemetry::recording::{
    Comparison, Damage, Divergence, Filter, Header, Kind, Outcome, Recording, line,
};
use udma_sim::telemetry::{End, Shared, attach};

/// Exit status of a run that differs from its recording.
const DIFFERENT: u8 = 1;

#[derive(clap::Args)]
pub struct Args {
    /// Recording made by `udma-sim run --record`
    file: PathBuf,

    /// List the transactions instead of running them again
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Filters for --list")]
struct FilterArgs {
    /// Only transactions of this engine
    #[arg(long, value_name = "N", requires = "list")]
    engine: Option<u32>,

    /// Only transactions of this queue
    #[arg(long, value_name = "N", requires = "list")]
    queue: Option<u8>,

    /// Only transactions of these kinds: doorbell, fetch, read, write, descriptor, completion, packet, barrier, station, error, interrupt, semaphore, instruction
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind, requires = "list")]
    kind: Vec<Kind>,

    /// Only transactions that access an address from A (included) to B (excluded)
    #[arg(long, value_name = "A..B", value_parser = addresses, requires = "list")]
    address: Option<Range<u64>>,

    /// Only transactions from this time on: in nanoseconds, or with a unit, such as 2us
    #[arg(long, value_name = "TIME", value_parser = time, requires = "list")]
    from: Option<Instant>,

    /// Only transactions up to this time
    #[arg(long, value_name = "TIME", value_parser = time, requires = "list")]
    to: Option<Instant>,
}

fn kind(text: &str) -> Result<Kind, String> {
    let named = Kind::ALL.into_iter().find(|kind| kind.name() == text);
    let names = Kind::ALL.map(Kind::name).join(", ");
    named.ok_or_else(|| format!("expected one of {names}"))
}

fn addresses(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let range = text.split_once("..");
    let range = range.and_then(|(from, to)| Some(number(from)?..number(to)?));
    range.ok_or_else(|| "expected two addresses, such as 0x1000..0x2000".to_string())
}

fn time(text: &str) -> Result<Instant, String> {
    let length = match text.parse() {
        Ok(ns) => Duration::from_ns(ns),
        Err(_) => text
            .parse::<Duration>()
            .map_err(|error| error.to_string())?,
    };
    Ok(Instant::START + length)
}

pub fn main(args: &Args) -> ExitCode {
    let recording = match Recording::open(&args.file) {
        Ok(recording) => recording,
        Err(error) => return refuse(error),
    };
    if args.list {
        return list(&args.file, recording, &args.filter);
    }
    let header = recording.header().clone();
    match replay(recording) {
        Ok(outcome) => tell(&args.file, &header, &outcome),
        Err(error) => refuse(format!("{}: {error}", args.file.display())),
    }
}

fn list(file: &Path, recording: Recording, filter: &FilterArgs) -> ExitCode {
    let filter = Filter {
        engine: filter.engine.map(EngineId),
        queue: filter.queue,
        kinds: filter.kind.clone(),
        addresses: filter.address.clone(),
        from: filter.from,
        to: filter.to,
    };
    let machine = recording.header().machine.clone();
    let mut out = BufWriter::new(io::stdout().lock());
    let write = || -> io::Result<Option<(u64, Damage)>> {
        for (whole, transaction) in (0..).zip(recording) {
            let transaction = match transaction {
                Ok(transaction) => transaction,
                Err(damage) => return out.flush().map(|()| Some((whole, damage))),
            };
            let (at, activity) = (transaction.at, &transaction.activity);
            if filter.admits(at, activity) {
                writeln!(out, "{}", line(&machine, at, activity))?;
            }
        }
        out.flush().map(|()| None)
    };
    match write() {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some((whole, damage))) => refuse_rest(file, whole, &damage),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => refuse(format!("cannot write the output: {error}")),
    }
}

fn refuse_rest(file: &Path, whole: u64, damage: &Damage) -> ExitCode {
    refuse(format!(
        "{}: {damage}; the {whole} transactions before it are intact",
        file.display()
    ))
}

fn replay(recording: Recording) -> Result<Outcome, Box<dyn Error>> {
    let header = recording.header();
    let scenario = Scenario::parse(Path::new(&header.scenario_path), header.scenario.clone())?;
    for (name, bytes) in &header.files {
        scenario.give_file(name.clone(), bytes.as_slice().into());
    }
    let config = Config::parse(&header.config_name, &header.config)?;
    let plan = scenario.plan(config, header.seed)?;
    let mut watch = Comparing {
        comparison: Some(Comparison::new(recording)),
        running: None,
        outcome: None,
    };
    plan.run_watched(&mut watch, &mut |_| ())?;
    watch.outcome.ok_or_else(|| "the run did not end".into())
}

/// Compares a run with a recording from its start to its end.
struct Comparing {
    comparison: Option<Comparison>,
    running: Option<Shared<Option<Comparison>>>,
    outcome: Option<Outcome>,
}

impl Watch for Comparing {
    fn begin(&mut self, system: &mut System) -> io::Result<()> {
        self.running = Some(attach(system, self.comparison.take()));
        Ok(())
    }

    fn end(&mut self, system: &System) {
        let comparison = self
            .running
            .as_ref()
            .and_then(|running| running.with(Option::take));
        self.outcome = comparison.map(|comparison| comparison.finish(&End::of(system)));
    }
}

fn tell(file: &Path, header: &Header, outcome: &Outcome) -> ExitCode {
    let Outcome {
        same,
        divergence,
        damage,
    } = outcome;
    let run = format!(
        "{} (config {}, seed {}), recorded by udma-sim {}",
        header.scenario_path, header.config_name, header.seed, header.version
    );
    match (divergence, damage) {
        (Some(divergence), _) => {
            print(format!("{run}\n{}", different(header, divergence)));
            ExitCode::from(DIFFERENT)
        }
        (None, Some(damage)) => {
            print(format!("{run}\nSAME so far: {same} transactions\n"));
            refuse_rest(file, *same, damage);
            ExitCode::from(BAD_INPUT)
        }
        (None, None) => print(format!("{run}\nSAME: all {same} transactions\n")),
    }
}

fn different(header: &Header, divergence: &Divergence) -> String {
    let recorded = match &divergence.recorded {
        Some(next) => {
            let line = line(&header.machine, next.at, &next.activity);
            format!(
                "{line}  (transaction {}, block at byte {})",
                next.number, next.offset
            )
        }
        None => "the end of the run".to_string(),
    };
    let happened = match &divergence.happened {
        Some((at, activity)) => line(&header.machine, *at, activity),
        None => "the end of the run".to_string(),
    };
    format!(
        "DIFFERENT after {} transactions\nrecorded  {}\nnow       {}\n",
        divergence.same,
        recorded.trim_start(),
        happened.trim_start()
    )
}
