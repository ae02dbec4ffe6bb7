//! Calibration: the vendor's published figures, simulated with the timing config at hand.
//!
//! Each experiment authors vrings, runs them on a machine of its own and takes simulated time from the
//! doorbells' arrival. What a figure means and where it is from is in `docs/timing.md`.

mod experiments;
mod rig;

use crate::arch::Arch;
use crate::config::Config;
use crate::desc::{BarrierMode, TransposeError};
use crate::host::{BusError, DumpError, PringError, QueueError, VringError};
use crate::system::{ProgramError, SystemError};
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
    /// Nothing: for information.
    Any,
}

impl Bound {
    /// Whether a simulated figure keeps it.
    pub fn holds(self, published: f64, simulated: f64) -> bool {
        match self {
            Bound::Within(percent) => error(published, simulated).abs() <= percent,
            Bound::AtLeast(least) => simulated >= least,
            Bound::AtMost(most) => simulated <= most,
            Bound::Between(least, most) => (least..=most).contains(&simulated),
            Bound::Any => simulated.is_finite(),
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

/// A curve: something over a number of bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// What it shows: `row_bytes`, throughput over the bytes of a row.
    pub name: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// Its points, with growing bytes.
    pub points: Vec<CurvePoint>,
    /// How far a simulated value may be from the published one, in that unit.
    pub within: f64,
    /// Whether the values never fall.
    pub monotone: bool,
    /// Whether they never fall and each is near enough to what is published.
    pub passed: bool,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The bytes.
    pub bytes: u64,
    /// The published value; nothing on a generation for which there is none.
    pub published: Option<f64>,
    /// The simulated value.
    pub simulated: f64,
    /// Whether it is near enough.
    pub passed: bool,
}

impl Curve {
    fn new(
        name: &'static str,
        unit: &'static str,
        within: f64,
        points: impl Iterator<Item = (u64, Option<f64>, f64)>,
    ) -> Curve {
        let points: Vec<CurvePoint> = points
            .map(|(bytes, published, simulated)| CurvePoint {
                bytes,
                published,
                simulated,
                passed: published.is_none_or(|published| (simulated - published).abs() <= within),
            })
            .collect();
        let monotone = points.is_sorted_by(|a, b| a.simulated <= b.simulated);
        Curve {
            name,
            unit,
            within,
            monotone,
            passed: monotone && points.iter().all(|point| point.passed),
            points,
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
    /// The curves.
    pub curves: Vec<Curve>,
    /// Barriers on a stream of copies; there is no SOW on V2.
    pub barriers: Vec<BarrierCost>,
}

impl Calibration {
    /// Whether every figure and every point of a curve is within its bound.
    pub fn passed(&self) -> bool {
        let curves = self.curves.iter().all(|curve| curve.passed);
        curves && self.figures.iter().all(|figure| figure.passed)
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
    /// A word could not be written.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A sequencer could not be started.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A transpose is not one.
    #[error(transparent)]
    Transpose(#[from] TransposeError),
    /// The machine did not finish an experiment.
    #[error("an experiment did not finish within 1 s of simulated time")]
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
    Ok(Calibration {
        config: config.origin.clone(),
        arch: arch.to_string(),
        figures: experiments.figures()?,
        curves: vec![experiments.row_curve()?],
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
        assert!(Bound::Any.holds(100.0, 1.0) && !Bound::Any.holds(100.0, f64::NAN));
    }

    #[test]
    fn a_curve_is_held_to_its_points_and_never_falls() {
        let curve = |values: [(Option<f64>, f64); 3]| {
            let points = values.into_iter().zip([32, 64, 128]);
            Curve::new("x", "%", 3.0, points.map(|((p, s), bytes)| (bytes, p, s)))
        };
        assert!(curve([(Some(1.0), 3.9), (None, 50.0), (Some(100.0), 97.0)]).passed);
        assert!(!curve([(Some(1.0), 4.1), (None, 50.0), (Some(100.0), 97.0)]).passed);
        let falls = curve([(None, 2.0), (None, 1.9), (None, 3.0)]);
        assert!(!falls.monotone && !falls.passed);
    }
}
