//! The parameters of a memory, from a file of `sim-configs/hbm-*.toml`. Like the timing config of
//! a machine such a file is complete: a key that is missing or unknown is an error.

use super::mapping::Mapping;
use super::parameters::{Controller, Device, File, MappingKeys, Timing, validate};
use crate::document::{Diagnostic, Document, Keys, Read, Table, lines, with_value};
use crate::sim::Duration;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// The built-in memories by name.
const BUILTIN: [(&str, &str); 4] = [
    (
        "hbm2-pseudo-channel",
        include_str!("../../sim-configs/hbm2-pseudo-channel.toml"),
    ),
    (
        "hbm-sunda",
        include_str!("../../sim-configs/hbm-sunda.toml"),
    ),
    (
        "hbm-cayman",
        include_str!("../../sim-configs/hbm-cayman.toml"),
    ),
    (
        "hbm-mariana",
        include_str!("../../sim-configs/hbm-mariana.toml"),
    ),
];

/// Validated parameters of a memory.
#[derive(Clone, Debug)]
pub struct DramConfig {
    /// Name of the built-in config, or path of the file.
    pub origin: String,
    /// Size and shape.
    pub device: Device,
    /// Queues and policy of each pseudo-channel's controller.
    pub controller: Controller,
    /// Minimal distances between commands.
    pub timing: Timing,
    /// Where the bits of an address go.
    pub mapping: Mapping,
}

/// Why a memory config was refused. Messages name the file, the key, the value and what would be
/// right.
#[derive(Debug, thiserror::Error)]
pub enum DramConfigError {
    /// The file could not be read.
    #[error("memory config {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The text is not TOML, or a key is unknown, missing, of the wrong type or out of range; in file order,
    /// at least one entry.
    #[error("memory config {}", lines(.0))]
    Invalid(Vec<Diagnostic>),
    /// Neither a built-in name nor a file.
    #[error("memory config \"{0}\" is neither a built-in config ({names}) nor a file", names = DramConfig::builtin_names().collect::<Vec<_>>().join(", "))]
    Unknown(String),
    /// A setting that is not `KEY=VALUE` with a key of the file.
    #[error(
        "invalid setting \"{0}\"; expected KEY=VALUE with a dotted config key, such as timing.nFAW=30"
    )]
    Setting(String),
}

impl DramConfig {
    /// The names of the built-in memories.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// A built-in memory by name, else the file at that path; then `settings`, each `KEY=VALUE`
    /// with a dotted key, take the place of what the file says.
    ///
    /// # Errors
    /// [`DramConfigError`] if there is no such config, it is not valid, or a setting is not.
    pub fn load(name_or_path: &str, settings: &[String]) -> Result<DramConfig, DramConfigError> {
        if let Some((name, text)) = BUILTIN.iter().find(|(name, _)| *name == name_or_path) {
            return DramConfig::parse(name, text, settings);
        }
        let path = Path::new(name_or_path);
        if !path.exists() {
            return Err(DramConfigError::Unknown(name_or_path.to_string()));
        }
        let text = std::fs::read_to_string(path).map_err(|source| DramConfigError::Unreadable {
            path: path.to_path_buf(),
            source,
        })?;
        DramConfig::parse(name_or_path, &text, settings)
    }

    /// As [`DramConfig::load`] without settings; the path of a file is taken from `base`.
    ///
    /// # Errors
    /// As [`DramConfig::load`].
    pub fn load_from(base: &Path, name_or_path: &str) -> Result<DramConfig, DramConfigError> {
        let built_in = DramConfig::builtin_names().any(|name| name == name_or_path);
        match built_in {
            true => DramConfig::load(name_or_path, &[]),
            false => DramConfig::load(&base.join(name_or_path).to_string_lossy(), &[]),
        }
    }

    /// Parses and validates the text of a config file; `origin` names it in errors. `settings` as
    /// for [`DramConfig::load`].
    ///
    /// # Errors
    /// [`DramConfigError`], but for the kinds that a file system causes.
    pub fn parse(
        origin: &str,
        text: &str,
        settings: &[String],
    ) -> Result<DramConfig, DramConfigError> {
        let document = |text: &str| Document::new(Path::new(origin), text.to_string());
        if settings.is_empty() {
            let read = |root: &Table<'_>| DramConfig::read(origin, root);
            return document(text).parse(read).map_err(DramConfigError::Invalid);
        }
        // Read as it stands first: an unknown or missing key in the file is told before one in a setting.
        let as_it_stands = document(text).parse(keys_of);
        as_it_stands.map_err(DramConfigError::Invalid)?;
        let mut text = text.to_string();
        for setting in settings {
            text = with_setting(&text, setting)
                .ok_or_else(|| DramConfigError::Setting(setting.clone()))?;
        }
        DramConfig::parse(origin, &text, &[])
    }

    fn read(origin: &str, root: &Table<'_>) -> Read<DramConfig> {
        let file = keys_of(root)?;
        validate(&file).map_err(|refusal| root.refuse(&refusal))?;
        let MappingKeys { order, hash } = &file.mapping;
        let mapping = Mapping::new(&file.device, order, hash);
        let mapping = mapping.map_err(|refusal| root.refuse(&refusal))?;
        Ok(DramConfig {
            origin: origin.to_string(),
            device: file.device,
            controller: file.controller,
            timing: file.timing,
            mapping,
        })
    }

    /// How long `bytes` bytes occupy the data bus of a pseudo-channel, rounded up to a femtosecond.
    pub fn beat(&self, bytes: u32) -> Duration {
        let accesses = u128::from(bytes) * u128::from(self.timing.burst);
        let fs = accesses * 1_000_000_000_000_000;
        let per = u128::from(self.device.access_bytes) * u128::from(self.device.clock.0);
        // A burst of at most a million cycles of at most a microsecond: fits.
        Duration::from_fs(fs.div_ceil(per) as u64)
    }

    /// Bytes a second that all pseudo-channels together can move, refresh left out.
    pub fn peak_bytes_per_second(&self) -> u64 {
        let channel = u64::from(self.device.access_bytes) * self.device.clock.0
            / u64::from(self.timing.burst);
        channel * u64::from(self.device.all_channels())
    }
}

fn keys_of(root: &Table<'_>) -> Read<File> {
    let file = File::read(root, ());
    root.finish()?;
    file
}

/// The text of a config with the value of `KEY=VALUE` at its key; the value is TOML, else a string. `None` if
/// the config does not have the key, or the value cannot be written as either.
fn with_setting(text: &str, setting: &str) -> Option<String> {
    let (key, value) = setting.split_once('=')?;
    let (section, name) = key.trim().split_once('.')?;
    let key = format!("{section}.{name}");
    let value = value.trim();
    let quoted = format!("'{value}'");
    let written = [value, &quoted].into_iter().find_map(toml_value)?;
    with_value(text, &key, written)
}

/// A text that is one TOML value, without what stands around it.
fn toml_value(text: &str) -> Option<&str> {
    let line = format!("value = {text}");
    let table = DeTable::parse(&line).ok()?;
    let span = table.get_ref().get("value")?.span();
    let before = line.len() - text.len();
    text.get(span.start.checked_sub(before)?..span.end - before)
}
