//! `udma-sim differential`: random ring programs through explorer, axioms and timing engine.

use super::{print, refuse};
use std::error::Error;
use std::fmt::Write;
use std::process::ExitCode;
use udma_sim::arch::Arch;
use udma_sim::config::Config;
use udma_sim::order::random::{BURST_BYTES, Comparison, Effort, Size, compare, program};

/// Exit status when the three do not agree.
const DISAGREES: u8 = 1;

#[derive(clap::Args)]
pub struct Args {
    /// Number of programs
    #[arg(long, default_value_t = 1000)]
    programs: u64,

    /// Seed of the first program; each further program uses the next seed
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Generations [default: all]
    #[arg(long, value_name = "ARCH")]
    arch: Vec<Arch>,

    /// Maximum number of queues per program
    #[arg(long, default_value_t = 3)]
    queues: usize,

    /// Maximum number of packets per queue
    #[arg(long, default_value_t = 4)]
    packets: usize,

    /// Runs of the timing engine for each program
    #[arg(long, default_value_t = 20)]
    runs: u64,

    /// Maximum number of states that the explorer visits, and of orders that the axiomatic checker examines
    #[arg(long, default_value_t = 200_000)]
    bound: u64,

    /// Also generate compute packets and embedded semaphores, without the timing engine
    #[arg(long)]
    compute: bool,
}

pub fn main(args: &Args) -> ExitCode {
    match run(args) {
        Ok((text, true)) => print(text),
        Ok((text, false)) => {
            print(text);
            ExitCode::from(DISAGREES)
        }
        Err(error) => refuse(error),
    }
}

fn run(args: &Args) -> Result<(String, bool), Box<dyn Error>> {
    if args.queues == 0 || args.packets == 0 {
        return Err("--queues and --packets must be at least 1".into());
    }
    let size = Size {
        queues: args.queues,
        packets: args.packets,
        compute: args.compute,
    };
    let effort = Effort {
        states: args.bound,
        candidates: args.bound,
        runs: if args.compute { 0 } else { args.runs },
    };
    let mut text = String::new();
    let mut agrees = true;
    for arch in Arch::ALL {
        if !args.arch.is_empty() && !args.arch.contains(&arch) {
            continue;
        }
        let mut config = Config::load(arch.spec().code_name, std::path::Path::new(""))?;
        config.values.engine.burst_bytes = BURST_BYTES;
        let (mut compared, mut too_large, mut outcomes, mut shown) = (0, 0, 0, 0);
        for seed in args.seed..args.seed.saturating_add(args.programs) {
            match compare(&program(seed, arch, size), &config, effort)? {
                Comparison::Agree {
                    outcomes: all,
                    shown: some,
                } => {
                    compared += 1;
                    outcomes += all;
                    shown += some;
                }
                Comparison::TooLarge => too_large += 1,
                wrong => {
                    agrees = false;
                    writeln!(text, "{arch} seed {seed}: {wrong:?}")?;
                }
            }
        }
        writeln!(
            text,
            "{arch}: {compared} programs agree ({outcomes} outcomes, {shown} of them seen in {} runs per program), {too_large} too large to enumerate",
            effort.runs
        )?;
    }
    Ok((text, agrees))
}
