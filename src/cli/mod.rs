//! The `udma-sim` command: arguments, logs, output and exit status.
//!
//! Standard output carries the answer, standard error everything else. Exit status: 0 if all went
//! well, 1 if a run did not do what its scenario expects, 2 for bad input.

mod calibrate;
mod check;
mod config;
mod differential;
mod dram;
mod inspect;
mod litmus;
mod logs;
mod replay;
mod report;
mod run;
mod watch;

use clap::{ArgAction, Parser, Subcommand};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// Exit status of bad input; clap uses the same for bad arguments.
const BAD_INPUT: u8 = 2;

#[derive(Parser)]
#[command(version, about, arg_required_else_help = true)]
struct Cli {
    /// Log more: -v steps, -vv details, -vvv every event; RUST_LOG overrides it
    #[arg(short, action = ArgAction::Count, global = true, conflicts_with = "quiet")]
    verbose: u8,

    /// Log only errors
    #[arg(short, global = true)]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario and check its expectations
    Run(run::Args),
    /// Run a recording again and compare every transaction, or list them
    Replay(replay::Args),
    /// Write an HTML page about a run or a recording
    Report(report::Args),
    /// Decode a raw ring dump and report what is malformed
    Inspect(inspect::Args),
    /// Find races and redundant barriers in a scenario
    Check(check::Args),
    /// Enumerate the outcomes of litmus tests that the ordering model allows
    Litmus(litmus::Args),
    /// Compare explorer, axioms and timing engine on random ring programs
    Differential(differential::Args),
    /// Run a stream of requests on the HBM model alone
    Dram(dram::Args),
    /// Simulate the published figures and report the error of each
    Calibrate(calibrate::Args),
    /// Show timing configs
    Config {
        #[command(subcommand)]
        command: config::Command,
    },
}

/// Runs the command that the arguments ask for.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    logs::start(cli.verbose, cli.quiet);
    match cli.command {
        Command::Run(args) => run::main(&args),
        Command::Replay(args) => replay::main(&args),
        Command::Report(args) => report::main(&args),
        Command::Inspect(args) => inspect::main(&args),
        Command::Check(args) => check::main(&args),
        Command::Litmus(args) => litmus::main(&args),
        Command::Differential(args) => differential::main(&args),
        Command::Dram(args) => dram::main(&args),
        Command::Calibrate(args) => calibrate::main(&args),
        Command::Config { command } => config::main(command),
    }
}

/// Prints the answer. A reader that has seen enough (`| head`) is no error.
fn print(text: impl Display) -> ExitCode {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            refuse(format!("cannot write the output: {error}"))
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints the answer for machines.
fn print_json(answer: &impl Serialize) -> ExitCode {
    match serde_json::to_string_pretty(answer) {
        Ok(json) => print(json + "\n"),
        Err(error) => refuse(error),
    }
}

/// Says why the input cannot be used.
fn refuse(error: impl Display) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(BAD_INPUT)
}
