//! Logs of the command line: to standard error, so that the answer stays clean.

use std::env;
use std::io::{self, IsTerminal};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging at the level of `-v` and `-q`, unless `RUST_LOG` says otherwise.
pub fn start(verbose: u8, quiet: bool) {
    let level = match (quiet, verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, 2) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    let asked = env::var("RUST_LOG").ok();
    let asked = asked.filter(|text| !text.is_empty());
    let targets = asked.and_then(|text| text.parse().ok());
    let targets = targets.unwrap_or_else(|| Targets::new().with_default(level));
    // No wall clock: the same run logs the same lines.
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .without_time();
    tracing_subscriber::registry()
        .with(lines)
        .with(targets)
        .init();
}
