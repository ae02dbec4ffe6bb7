//! The files that a scenario names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Files by the name the scenario gives them, with their content: those that were read, or given with it.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    contents: RefCell<BTreeMap<String, Arc<[u8]>>>,
}

impl Files {
    /// The files of a scenario in a folder.
    pub fn new(folder: PathBuf) -> Files {
        Files {
            folder,
            contents: RefCell::default(),
        }
    }

    /// Gives the content of a file: what is in the folder is not looked at.
    pub fn give(&self, name: String, bytes: Arc<[u8]>) {
        self.contents.borrow_mut().insert(name, bytes);
    }

    /// The bytes of a file, as they were when they were first asked for.
    pub fn file(&self, name: &str) -> Result<Arc<[u8]>, String> {
        if let Some(bytes) = self.contents.borrow().get(name) {
            return Ok(bytes.clone());
        }
        let path = self.folder.join(name);
        let bytes = std::fs::read(&path);
        let bytes = bytes.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let bytes: Arc<[u8]> = bytes.into();
        self.give(name.to_string(), bytes.clone());
        Ok(bytes)
    }

    /// What was read or given.
    pub fn all(&self) -> BTreeMap<String, Arc<[u8]>> {
        self.contents.borrow().clone()
    }
}
