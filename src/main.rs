//! The command line of the simulator.

#![warn(clippy::too_many_lines)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
