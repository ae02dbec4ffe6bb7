//! `udma-sim config`: the timing configs.

use super::{print, refuse};
use std::path::Path;
use std::process::ExitCode;
use udma_sim::config::Config;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Print the effective config, every key with its unit and source
    Show {
        /// Built-in config (sunda, cayman, mariana) or config file
        #[arg(value_name = "NAME|FILE", default_value = "cayman")]
        config: String,
    },
}

pub fn main(command: Command) -> ExitCode {
    let Command::Show { config } = command;
    match Config::load(&config, Path::new("")) {
        Ok(config) => print(config.source),
        Err(error) => refuse(error),
    }
}
