//! `udma-sim calibrate`: the vendor's published figures beside simulated ones.

use super::{print, print_json, refuse};
use serde::Serialize;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use udma_sim::calibrate::{Bound, Calibration, Curve, calibrate};
use udma_sim::config::Config;

/// Exit status if a figure is out of its bound.
const OUT_OF_BOUND: u8 = 1;

#[derive(clap::Args)]
pub struct Args {
    /// Built-in configs (sunda, cayman, mariana) or config files [default: all built-in configs]
    #[arg(value_name = "NAME|FILE")]
    configs: Vec<String>,

    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    passed: bool,
    configs: Vec<Calibration>,
}

pub fn main(args: &Args) -> ExitCode {
    let configs = match run(args) {
        Ok(configs) => configs,
        Err(error) => return refuse(error),
    };
    let passed = configs.iter().all(Calibration::passed);
    let printed = match args.json {
        true => print_json(&Answer { passed, configs }),
        false => print(configs.iter().map(table).collect::<Vec<_>>().join("\n")),
    };
    match passed {
        true => printed,
        false => ExitCode::from(OUT_OF_BOUND),
    }
}

fn run(args: &Args) -> Result<Vec<Calibration>, Box<dyn Error>> {
    let builtin = || Config::builtin_names().map(str::to_string).collect();
    let names: Vec<String> = match args.configs.is_empty() {
        true => builtin(),
        false => args.configs.clone(),
    };
    let mut found = Vec::new();
    for name in names {
        let config = Config::load(&name, Path::new(""))?;
        found.push(calibrate(&config)?);
    }
    Ok(found)
}

fn table(calibration: &Calibration) -> String {
    let mut out = format!("{} ({})\n", calibration.config, calibration.arch);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "  {:<74} {:>9} {:>9} {:>8}  {:<10} bound",
        "figure", "published", "simulated", "error", "unit"
    );
    for figure in &calibration.figures {
        let asked = match figure.bound {
            Bound::Within(percent) => format!("within {percent} %"),
            Bound::AtLeast(least) => format!("at least {least:.1}"),
            Bound::AtMost(most) => format!("at most {most:.1}"),
            Bound::Between(least, most) => format!("{least:.1} to {most:.1}"),
            Bound::Any => "nothing".to_string(),
        };
        let verdict = if figure.passed { "" } else { "  OUT OF BOUNDS" };
        let _ = writeln!(
            out,
            "  {:<74} {:>9.1} {:>9.1} {:>+7.1}%  {:<10} {asked}{verdict}",
            figure.what, figure.published, figure.simulated, figure.error_percent, figure.unit
        );
    }
    for curve in &calibration.curves {
        write_curve(&mut out, curve);
    }
    let _ = writeln!(
        out,
        "\n  copies of 4 KiB, HBM to HBM   cycles each      GB/s   extra cycles vs. none"
    );
    for cost in &calibration.barriers {
        let _ = writeln!(
            out,
            "  {:<29} {:>11.1} {:>9.2} {:>23.1}",
            cost.barrier, cost.cycles, cost.gb_per_s, cost.extra_cycles
        );
    }
    out
}

fn write_curve(out: &mut String, curve: &Curve) {
    let Curve {
        name, unit, within, ..
    } = curve;
    let held = curve.points.iter().any(|point| point.published.is_some());
    let asked = match held {
        true => format!("bound: within {within} points"),
        false => "no published values for this generation".to_string(),
    };
    let monotone = if curve.monotone { "" } else { "  NOT MONOTONE" };
    let _ = writeln!(out, "\n  curve {name}, {unit}; {asked}{monotone}");
    let _ = writeln!(
        out,
        "  {:>7} {:>9} {:>9}",
        "bytes", "published", "simulated"
    );
    for point in &curve.points {
        let published = point
            .published
            .map_or("-".to_string(), |value| format!("{value:.1}"));
        let verdict = if point.passed { "" } else { "  OUT OF BOUNDS" };
        let _ = writeln!(
            out,
            "  {:>7} {published:>9} {:>9.1}{verdict}",
            point.bytes, point.simulated
        );
    }
}
