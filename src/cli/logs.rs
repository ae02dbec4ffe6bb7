//! Logs of the command line: to standard error, so that the answer stays clean.

use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// Starts logging at the level of `-v` and `-q`, unless `RUST_LOG` says otherwise.
pub fn start(verbose: u8, quiet: bool) {
    let level = match (quiet, verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, 2) => "debug",
        (false, _) => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    // No wall clock: the same run logs the same lines.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .without_time()
        .init();
}
