//! Calibration: the vendor's published figures, simulated with the timing config at hand.
//!
//! Each experiment authors vrings, runs them on a machine of its own and takes simulated time from the
//! doorbells' arrival. What a figure means and where it is from is in `docs/timing.md`.

mod experiments;
mod rig;

use crate::arch::Arch;
use crate::config::Config;
use crate::desc::{BarrierMode, TransposeError};
use crate::host::{DumpError, PringError, QueueError, VringError};
use crate::system::SystemError;
use experiments::Experiments;
use serde::Serialize;

/// What may be expected of a simulated figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Within so many percent of the published one.
    Within(f64),
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// From this to that.
    Between(f64, f64),
}

impl Bound {
    /// Whether a simulated figure keeps it.
    pub fn holds(self, published: f64, simulated: f64) -> bool {
        match self {
            Bound::Within(percent) => error(published, simulated).abs() <= percent,
            Bound::AtLeast(least) => simulated >= least,
            Bound::AtMost(most) => simulated <= most,
            Bound::Between(least, most) => (least..=most).contains(&simulated),
        }
    }
}

/// How far `simulated` is from `published`, in percent of the latter.
fn error(published: f64, simulated: f64) -> f64 {
    (simulated - published) / published * 100.0
}

/// A figure: published, simulated, and what is asked of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What was measured.
    pub what: String,
    /// Unit of the values.
    pub unit: &'static str,
    /// The published value.
    pub published: f64,
    /// The simulated value.
    pub simulated: f64,
    /// Its distance from the published one, in percent of that.
    pub error_percent: f64,
    /// What is asked.
    pub bound: Bound,
    /// Whether that holds.
    pub passed: bool,
}

impl Figure {
    fn new(
        what: impl Into<String>,
        unit: &'static str,
        (published, simulated): (f64, f64),
        bound: Bound,
    ) -> Figure {
        Figure {
            what: what.into(),
            unit,
            published,
            simulated,
            error_percent: error(published, simulated),
            bound,
            passed: bound.holds(published, simulated),
        }
    }
}

/// What a stream of copies costs under a barrier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BarrierCost {
    /// The barrier on every copy.
    pub barrier: &'static str,
    /// Bytes of one copy.
    pub bytes: u64,
    /// Simulated UDMA cycles for each copy.
    pub cycles: f64,
    /// Throughput in 10^9 bytes per second.
    pub gb_per_s: f64,
    /// Cycles more than without a barrier.
    pub extra_cycles: f64,
}

/// What a config was found to be like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Name of the config.
    pub config: String,
    /// Its generation.
    pub arch: String,
    /// Every published figure of the generation.
    pub figures: Vec<Figure>,
    /// Points of the throughput over the size of a row: bytes, share of the peak in percent.
    pub row_curve: Vec<(u64, f64)>,
    /// Whether throughput never falls as rows grow.
    pub row_curve_is_monotone: bool,
    /// Barriers on a stream of copies; there is no SOW on V2.
    pub barriers: Vec<BarrierCost>,
}

impl Calibration {
    /// Whether every figure is within its bound.
    pub fn passed(&self) -> bool {
        self.row_curve_is_monotone && self.figures.iter().all(|figure| figure.passed)
    }
}

/// Why a config could not be calibrated.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The machine could not be built.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A vring could not be authored.
    #[error(transparent)]
    Vring(#[from] VringError),
    /// A vring could not be dumped.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// A ring could not be set up.
    #[error(transparent)]
    Pring(#[from] PringError),
    /// A queue could not be set up.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A transpose is not one.
    #[error(transparent)]
    Transpose(#[from] TransposeError),
    /// The machine did not finish an experiment.
    #[error("an experiment did not come to its end within a second of simulated time")]
    Unfinished,
}

/// Bytes of a copy in the table of barriers.
const BARRIER_BYTES: u64 = 4096;

/// Runs every experiment of the config's generation.
///
/// # Errors
/// [`CalibrateError`] if one of them cannot be set up or does not end.
pub fn calibrate(config: &Config) -> Result<Calibration, CalibrateError> {
    let experiments = Experiments { config };
    let arch = config.arch();
    let row_curve = experiments.row_curve()?;
    let monotone = row_curve.windows(2).all(|pair| pair[0].1 <= pair[1].1);
    Ok(Calibration {
        config: config.origin.clone(),
        arch: arch.to_string(),
        figures: experiments.figures(&row_curve)?,
        row_curve,
        row_curve_is_monotone: monotone,
        barriers: barriers(&experiments, arch)?,
    })
}

fn barriers(experiments: &Experiments, arch: Arch) -> Result<Vec<BarrierCost>, CalibrateError> {
    let mut modes = vec![
        ("none", BarrierMode::None),
        ("write_barrier", BarrierMode::WriteBarrier),
    ];
    if arch.spec().caps.strong_order_writes {
        modes.push(("sow", BarrierMode::StrongOrder));
    }
    modes.push(("dmb", BarrierMode::Dmb));
    let mut costs: Vec<BarrierCost> = Vec::new();
    for (barrier, mode) in modes {
        let cycles = experiments.copy_cycles(BARRIER_BYTES, mode)?;
        let none = costs.first().map_or(cycles, |none| none.cycles);
        costs.push(BarrierCost {
            barrier,
            bytes: BARRIER_BYTES,
            cycles,
            gb_per_s: experiments.gb_per_s(BARRIER_BYTES, cycles),
            extra_cycles: cycles - none,
        });
    }
    Ok(costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        assert!(Bound::Within(3.0).holds(100.0, 97.0));
        assert!(!Bound::Within(3.0).holds(100.0, 96.9));
        assert!(!Bound::Within(3.0).holds(100.0, 103.1));
        assert!(Bound::AtLeast(95.0).holds(100.0, 95.0));
        assert!(!Bound::AtLeast(95.0).holds(100.0, 94.9));
        assert!(Bound::AtMost(60.0).holds(50.0, 60.0));
        assert!(!Bound::AtMost(60.0).holds(50.0, 60.1));
        assert!(Bound::Between(75.0, 100.0).holds(100.0, 100.0));
        assert!(!Bound::Between(75.0, 100.0).holds(100.0, 100.1));
        assert!(!Bound::Within(3.0).holds(100.0, f64::NAN));
    }
}
