//! Scenario files: read, checked as far as that goes without an arch, then planned for one.

use super::files::Files;
use super::plan::{self, Head, Plan, Source};
use super::regions::{self, Memory, PringTable};
use super::scope::Context;
use super::{expects, faults, sequencers, steps};
use crate::arch::Arch;
use crate::config::Config;
use crate::document::{Diagnostic, Document, Keys, Read, Table, lines};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The built-in config of a scenario that names none.
const DEFAULT_CONFIG: &str = "cayman";

/// Why a scenario cannot be run. Nothing has been run when one is returned.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The scenario file cannot be read.
    #[error("cannot read scenario {path}: {reason}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        reason: std::io::Error,
    },
    /// The file is not a runnable scenario; in file order, at least one entry.
    #[error("{}", lines(.0))]
    Invalid(Vec<Diagnostic>),
}

/// A scenario file that has been read.
#[derive(Debug)]
pub struct Scenario {
    document: Document,
    files: Files,
    head: Head,
}

impl Scenario {
    /// Reads and checks a scenario file.
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

    /// Checks the text of a scenario; `path` names it in messages, and relative files are taken
    /// from its folder.
    ///
    /// # Errors
    /// [`ScenarioError`] with every problem found.
    pub fn parse(path: &Path, text: String) -> Result<Scenario, ScenarioError> {
        let document = Document::new(path, text);
        let head = document.parse(check).map_err(ScenarioError::Invalid)?;
        Ok(Scenario {
            files: Files::new(document.folder().to_path_buf()),
            head,
            document,
        })
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
        self.head.config.as_deref().unwrap_or(DEFAULT_CONFIG)
    }

    /// The folder of the scenario file.
    pub fn folder(&self) -> &Path {
        self.document.folder()
    }

    /// Gives the content of a file that the scenario names: it is not looked for beside the scenario then.
    pub fn give_file(&self, name: String, bytes: Arc<[u8]>) {
        self.files.give(name, bytes);
    }

    /// The files the scenario names, by the name it gives them, with their content: those that have been read,
    /// which [`Scenario::plan`] does, or given.
    pub fn files(&self) -> BTreeMap<String, Arc<[u8]>> {
        self.files.all()
    }

    /// The seed the scenario names.
    pub fn seed(&self) -> u64 {
        self.head.seed
    }

    /// Arches the scenario is legal on.
    pub fn runs_on(&self) -> &[Arch] {
        match &self.head.runs_on {
            Some(arches) => arches,
            None => &Arch::ALL,
        }
    }

    /// Resolves the scenario for the arch of a config.
    ///
    /// # Errors
    /// [`ScenarioError`] with every problem found.
    pub fn plan(&self, config: Config, seed: u64) -> Result<Plan, ScenarioError> {
        let plan = |root: &Table<'_>| self.planned(root, config, seed);
        self.document.parse(plan).map_err(ScenarioError::Invalid)
    }

    fn planned(&self, root: &Table<'_>, config: Config, seed: u64) -> Read<Plan> {
        let arch = config.arch();
        if let Some(runs_on) = &self.head.runs_on
            && !runs_on.contains(&arch)
        {
            let legal: Vec<&str> = runs_on.iter().map(|arch| arch.name()).collect();
            let message = format!(
                "config {} is for {arch}, but this scenario runs only on {}",
                config.origin,
                legal.join(", ")
            );
            return Err(self.document.report(&runs_on.mark, message));
        }
        let source = Source {
            document: &self.document,
            files: &self.files,
            head: &self.head,
            root,
        };
        plan::build(&source, config, seed)
    }
}

/// Reads a whole file without an arch: every problem that can be seen so is reported.
fn check(root: &Table<'_>) -> Read<Head> {
    let head = Head::read(root, ());
    let none = Context(None);
    for (_, table) in root.tables("memory") {
        let _ = regions::read::<Memory>(&table);
    }
    for (_, table) in root.tables("pring") {
        let _ = regions::read::<PringTable>(&table);
    }
    for (index, table) in root.tables("step") {
        let _ = steps::read(index, &table, none);
    }
    for (_, table) in root.tables("sequencer") {
        let _ = sequencers::check(&table);
    }
    for (_, table) in root.tables("fault") {
        let _ = faults::read(&table, none);
    }
    for (_, table) in root.tables("expect") {
        let _ = expects::read(&table, none);
    }
    root.finish()?;
    head
}

/// Every key that a scenario file may have, wherever it stands.
pub fn keys() -> BTreeSet<&'static str> {
    let mut known = vec!["memory", "pring", "step", "sequencer", "fault", "expect"];
    <Head as Keys<()>>::names(&mut known);
    <Memory as Keys<()>>::names(&mut known);
    <PringTable as Keys<()>>::names(&mut known);
    steps::keys(&mut known);
    sequencers::keys(&mut known);
    faults::keys(&mut known);
    expects::keys(&mut known);
    known.into_iter().collect()
}
