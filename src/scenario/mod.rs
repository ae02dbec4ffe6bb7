//! Trace scenarios: a TOML file that says what memory holds, what the host does step by step, what
//! sequencers do beside it, and what must hold in the end (`docs/scenario.md`).
//!
//! A file goes through three forms. [`Scenario::load`] parses it strictly; [`Scenario::plan`]
//! resolves it for one arch, with every name looked up and every step tried on a scratch memory;
//! [`Plan::run`] runs it. The first two report every problem they can see, with file, line and key,
//! and nothing runs unless there is none.

mod ast;
mod authoring;
mod check;
mod diag;
mod driver;
mod emit;
mod extract;
mod fill;
mod host_side;
mod parse;
mod place;
mod plan;
mod quantity;
mod reader;
mod report;
mod run;
mod stripped;

pub use diag::{Diagnostic, ScenarioError};
pub use emit::{EmitError, Emitted, emit};
pub use extract::{ExtractError, Races, Superfluous};
pub use plan::Plan;
pub use report::{ExpectationReport, RaceVerdict, Report, StepReport, Totals};
pub use run::{Progress, RunError};

use crate::config::Config;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A scenario file that has been parsed.
#[derive(Debug)]
pub struct Scenario {
    document: diag::Document,
    ast: ast::Ast,
}

impl Scenario {
    /// Reads and parses a scenario file.
    ///
    /// # Errors
    /// [`ScenarioError`] with every problem found.
    pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
        let text = std::fs::read_to_string(path).map_err(|reason| ScenarioError::Unreadable {
            path: path.to_path_buf(),
            reason,
        })?;
        Scenario::parse(path, text)
    }

    /// Parses the text of a scenario; `path` names it in messages, and relative files are taken
    /// from its folder.
    ///
    /// # Errors
    /// [`ScenarioError`] with every problem found.
    pub fn parse(path: &Path, text: String) -> Result<Scenario, ScenarioError> {
        let document = diag::Document::new(path, text);
        let ast = parse::parse(&document)?;
        Ok(Scenario { document, ast })
    }

    /// The path it was read from.
    pub fn path(&self) -> &Path {
        self.document.path()
    }

    /// Its text.
    pub fn text(&self) -> &str {
        self.document.text()
    }

    /// The config the scenario names: a built-in name, or a file relative to the scenario's folder.
    pub fn config_name(&self) -> &str {
        &self.ast.config
    }

    /// The folder of the scenario file.
    pub fn folder(&self) -> &Path {
        self.document.folder()
    }

    /// Gives the content of a file that the scenario names: it is not looked for beside the scenario then.
    pub fn give_file(&self, name: String, bytes: Arc<[u8]>) {
        self.document.give_file(name, bytes);
    }

    /// The files the scenario names, by the name it gives them, with their content: those that have been read,
    /// which [`Scenario::plan`] does, or given.
    pub fn files(&self) -> BTreeMap<String, Arc<[u8]>> {
        self.document.files()
    }

    /// The seed the scenario names.
    pub fn seed(&self) -> u64 {
        self.ast.seed
    }

    /// Arches the scenario is legal on.
    pub fn runs_on(&self) -> &[crate::arch::Arch] {
        &self.ast.runs_on
    }

    /// Resolves the scenario for the arch of a config.
    ///
    /// # Errors
    /// [`ScenarioError`] with every problem found.
    pub fn plan(&self, config: Config, seed: u64) -> Result<Plan, ScenarioError> {
        plan::resolve(&self.document, &self.ast, config, seed)
    }
}

/// The name of an error bit as scenarios and reports write it: `RingId` is `ring_id`.
fn error_name(error: &impl std::fmt::Debug) -> String {
    let mut name = String::new();
    for c in format!("{error:?}").chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// A barrier mode as scenarios write it.
fn barrier_name(mode: crate::desc::BarrierMode) -> &'static str {
    use crate::desc::BarrierMode;
    match mode {
        BarrierMode::None => "none",
        BarrierMode::Dmb => "dmb",
        BarrierMode::WriteBarrier => "write_barrier",
        BarrierMode::StrongOrder => "sow",
    }
}
