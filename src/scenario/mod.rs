//! Trace scenarios: a TOML file that says what memory holds, what the host does step by step, what
//! sequencers do beside it, and what must hold in the end (`docs/scenario.md`).
//!
//! A file goes through two forms. [`Scenario::load`] checks it strictly, as far as that goes without an
//! arch; [`Scenario::plan`] reads it for one arch, with every name looked up and every step tried on a
//! scratch memory; [`Plan::run`] runs it. The first two report every problem they can see, with file,
//! line and key, and nothing runs unless there is none.
//!
//! A step, with its name, its keys, and how it is done, is one type in `steps/`; so are the instructions of
//! sequencers, faults and expectations in the modules of their names.
//!
//! ```
//! use std::path::Path;
//! use udma_sim::arch::Arch;
//! use udma_sim::config::Config;
//! use udma_sim::scenario::{RaceVerdict, Scenario};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scenario = Scenario::load(Path::new("traces/quickstart.toml"))?;
//! let config = Config::builtin(scenario.config_name()).ok_or("no such config")??;
//! assert_eq!(config.arch(), Arch::V3);
//!
//! let report = scenario.plan(config, scenario.seed())?.run(&mut |_| ())?;
//! assert!(report.passed);
//! assert_eq!(report.bytes, (1 << 20) + 4); // the copy, and the semaphore
//! println!("{report}");
//! # Ok(())
//! # }
//! ```

mod check;
mod emit;
mod expects;
mod extract;
mod faults;
mod file;
mod files;
mod fill;
mod given;
mod host_side;
mod place;
mod plan;
mod quantity;
mod regions;
mod report;
mod run;
mod scope;
mod sequencers;
mod stage;
mod steps;
mod stripped;
mod waits;
mod words;

pub use crate::document::Diagnostic;
pub use emit::{EmitError, Emitted, emit};
pub use extract::{ExtractError, Races, Superfluous};
pub use file::{Scenario, ScenarioError, keys};
pub use plan::Plan;
pub use report::{ExpectationReport, RaceVerdict, Report, StepReport, Totals};
pub use run::{Progress, RunError};
