//! Litmus tests: small programs with one question each, read from TOML files.

mod file;
mod resolve;
mod verdict;

pub use file::{Answer, Mode};
pub use verdict::{TimedVerdict, Verdict, verdict};

use super::outcome::Asked;
use super::program::Program;
use crate::arch::Arch;
use crate::document::{Diagnostic, Document, Keys, Table, lines};
use file::File;
use std::path::{Path, PathBuf};

/// Why a litmus test cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LitmusError {
    /// The file or folder cannot be read.
    #[error("cannot read {path}: {reason}", path = path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the operating system says.
        reason: std::io::Error,
    },
    /// A folder without litmus tests.
    #[error("no .toml files in {}", .0.display())]
    Empty(PathBuf),
    /// The text is not TOML, a key is unknown, missing or of the wrong type, or a value makes no sense; in
    /// file order, at least one entry.
    #[error("{}", lines(.0))]
    Invalid(Vec<Diagnostic>),
}

/// One litmus file.
#[derive(Clone, Debug)]
pub struct Litmus {
    /// The file.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// The row of the catalogue it stands for.
    pub row: String,
    /// What it is about, in a line.
    pub about: String,
    /// Its cells of the catalogue, one for each generation they apply to.
    pub cases: Vec<Case>,
}

/// A litmus test with barriers put where one cell of the catalogue has them, on one generation.
#[derive(Clone, Debug)]
pub struct Case {
    /// The generation.
    pub arch: Arch,
    /// The kind of barrier.
    pub mode: Mode,
    /// The labels of the descriptors that carry it.
    pub on: Vec<String>,
    /// The program.
    pub program: Program,
    /// The outcome in question.
    pub asked: Asked,
    /// What the catalogue says.
    pub expected: Answer,
}

impl Case {
    /// The barrier and its place: `dmb on p1`.
    pub fn barrier(&self) -> String {
        match self.on.is_empty() {
            true => self.mode.name().to_string(),
            false => format!("{} on {}", self.mode.name(), self.on.join(", ")),
        }
    }
}

impl Litmus {
    /// Reads and checks a litmus file.
    ///
    /// # Errors
    /// [`LitmusError`].
    pub fn load(path: &Path) -> Result<Litmus, LitmusError> {
        let text = read(path)?;
        Litmus::parse(path, &text)
    }

    /// Checks the text of a litmus file; `path` names it in messages.
    ///
    /// # Errors
    /// [`LitmusError`].
    pub fn parse(path: &Path, text: &str) -> Result<Litmus, LitmusError> {
        let document = Document::new(path, text.to_string());
        let read = |root: &Table<'_>| {
            let file = File::read(root, ());
            root.finish()?;
            resolve::resolve(&file?).map_err(|wrong| match wrong.at {
                Some(mark) => document.report(&mark, wrong.message),
                None => document.report_file(wrong.message),
            })
        };
        let litmus = document.parse(read).map_err(LitmusError::Invalid)?;
        Ok(Litmus {
            path: path.to_path_buf(),
            ..litmus
        })
    }

    /// Reads a file, or every `.toml` file of a folder in the order of their names.
    ///
    /// # Errors
    /// [`LitmusError`].
    pub fn load_all(path: &Path) -> Result<Vec<Litmus>, LitmusError> {
        if !path.is_dir() {
            return Ok(vec![Litmus::load(path)?]);
        }
        let unreadable = |reason| LitmusError::Unreadable {
            path: path.to_path_buf(),
            reason,
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            if file
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                files.push(file);
            }
        }
        files.sort();
        if files.is_empty() {
            return Err(LitmusError::Empty(path.to_path_buf()));
        }
        files.iter().map(|file| Litmus::load(file)).collect()
    }
}

fn read(path: &Path) -> Result<String, LitmusError> {
    std::fs::read_to_string(path).map_err(|reason| LitmusError::Unreadable {
        path: path.to_path_buf(),
        reason,
    })
}
