//! `udma-sim dram`: a stream of requests on the HBM model alone.

use super::{print, print_json, refuse};
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use udma_sim::dram::{CommandFile, DramConfig, Report, Stream, run};

#[derive(clap::Args)]
pub struct Args {
    /// File of requests (little-endian 64-bit words: a byte address, bit 63 set for a write) or built-in stream, such as stream:A
    stream: String,

    /// Built-in memory (hbm2-pseudo-channel, hbm-sunda, hbm-cayman, hbm-mariana) or config file
    #[arg(long, value_name = "NAME|FILE")]
    config: String,

    /// Override a config key: timing.nREFI=0, mapping.order="row bank column bank_group"
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Run only the first N requests of the stream
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Write every command to this file, as CSV
    #[arg(long, value_name = "FILE")]
    commands: Option<PathBuf>,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub fn main(args: &Args) -> ExitCode {
    match simulate(args) {
        Ok(report) if args.json => print_json(&report),
        Ok(report) => print(report),
        Err(error) => refuse(error),
    }
}

fn simulate(args: &Args) -> Result<Report, Box<dyn Error>> {
    let config = DramConfig::load(&args.config, &args.set)?;
    let access_bytes = u64::from(config.device.access_bytes);
    let mut stream = Stream::load(&args.stream, access_bytes, config.mapping.capacity())?;
    if let Some(limit) = args.limit {
        let (name, most) = (stream.name(), stream.words().len());
        if !(1..=most).contains(&limit) {
            return Err(format!(
                "--limit {limit}: must be 1 to {most}, the number of requests in stream {name}"
            )
            .into());
        }
        stream.truncate(limit);
    }
    let started;
    let report = match &args.commands {
        Some(path) => {
            let refuse = |error| format!("cannot write {}: {error}", path.display());
            let mut out = BufWriter::new(File::create(path).map_err(refuse)?);
            let mut trace = CommandFile::new(&config, &mut out);
            started = Instant::now();
            run(&config, &stream, Some(&mut trace))?
        }
        None => {
            started = Instant::now();
            run(&config, &stream, None)?
        }
    };
    // Not part of the report, which is the same on every machine.
    let seconds = started.elapsed().as_secs_f64();
    let rate = report.requests as f64 / seconds.max(f64::MIN_POSITIVE);
    eprintln!("{rate:.0} requests per wall second ({seconds:.3} s)");
    Ok(report)
}
