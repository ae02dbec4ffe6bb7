//! The timing configuration: everything about *when* that no descriptor, register or address map
//! fixes. A config file is complete: a key that is missing or unknown is an error, so that the file
//! says all there is to know. The built-in ones are `sim-configs/*.toml`, compiled in.

mod validate;
mod values;

pub use crate::document::Diagnostic;
pub use values::{
    AxiAbort, ClockConfig, ComputeConfig, E4m3Flavour, EngineConfig, FabricConfig, Fp8Overflow,
    HbmConfig, HostConfig, OrderingConfig, SequencerConfig, SowScope, StateAfterReset,
    TargetConfig, Values,
};

use crate::arch::Arch;
use crate::document::{Document, Keys, Table, lines, with_value};
use crate::dram::{DramConfig, DramConfigError};
use crate::sim::{Clock, Duration};
use std::path::{Path, PathBuf};

/// The built-in configs by name.
const BUILTIN: [(&str, &str); 3] = [
    ("sunda", include_str!("../../sim-configs/sunda.toml")),
    ("cayman", include_str!("../../sim-configs/cayman.toml")),
    ("mariana", include_str!("../../sim-configs/mariana.toml")),
];

/// A validated configuration together with the text it came from.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the built-in config, or path of the file.
    pub origin: String,
    /// The text of the file: since a config is complete, this is the effective configuration.
    pub source: String,
    /// The values.
    pub values: Values,
    /// The HBM that `fabric.hbm.memory` names.
    pub memory: DramConfig,
}

/// Why a config was refused. Messages name the file, the key, the value and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("config {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The text is not TOML, or a key is unknown, missing, of the wrong type or out of range; in file order,
    /// at least one entry.
    #[error("config {}", lines(.0))]
    Invalid(Vec<Diagnostic>),
    /// The HBM that it names cannot be had.
    #[error("config {origin}: fabric.hbm.memory: {source}")]
    Memory {
        /// Built-in name or file.
        origin: String,
        /// The reason.
        source: Box<DramConfigError>,
    },
    /// Neither a built-in name nor a file.
    #[error("config \"{0}\" is neither a built-in config (sunda, cayman, mariana) nor a file")]
    Unknown(String),
}

impl Config {
    /// The names of the built-in configs.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// A built-in config by name; `None` if there is none of that name.
    ///
    /// # Errors
    /// [`ConfigError`] if the compiled-in file were invalid, which a test rules out.
    pub fn builtin(name: &str) -> Option<Result<Config, ConfigError>> {
        let (name, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
        Some(Config::parse(name, text))
    }

    /// A built-in config by name, else the file at that path, relative paths being taken from
    /// `base`.
    ///
    /// # Errors
    /// [`ConfigError`] if there is no such config or it is not valid.
    pub fn load(name_or_path: &str, base: &Path) -> Result<Config, ConfigError> {
        if let Some(config) = Config::builtin(name_or_path) {
            return config;
        }
        let path = base.join(name_or_path);
        if !path.exists() {
            return Err(ConfigError::Unknown(name_or_path.to_string()));
        }
        let text = std::fs::read_to_string(&path).map_err(|source| ConfigError::Unreadable {
            path: path.clone(),
            source,
        })?;
        let folder = path.parent().unwrap_or(base);
        Config::parse_in(folder, &path.display().to_string(), &text)
    }

    /// Parses and validates the text of a config file; `origin` names it in errors.
    ///
    /// # Errors
    /// [`ConfigError`], but for the kinds that a file system causes.
    pub fn parse(origin: &str, text: &str) -> Result<Config, ConfigError> {
        Config::parse_in(Path::new(""), origin, text)
    }

    /// As [`Config::parse`]; the path of a memory config is taken from `base`.
    fn parse_in(base: &Path, origin: &str, text: &str) -> Result<Config, ConfigError> {
        Config::read(origin, text, |name| DramConfig::load_from(base, name))
    }

    fn read(
        origin: &str,
        text: &str,
        memory: impl FnOnce(&str) -> Result<DramConfig, DramConfigError>,
    ) -> Result<Config, ConfigError> {
        let document = Document::new(Path::new(origin), text.to_string());
        let values: Values = document
            .parse(|root| {
                let values = Values::read(root, ());
                root.finish()?;
                values
            })
            .map_err(ConfigError::Invalid)?;
        let memory = memory(&values.fabric.hbm.memory).map_err(|source| ConfigError::Memory {
            origin: origin.to_string(),
            source: Box::new(source),
        })?;
        let config = Config {
            origin: origin.to_string(),
            source: text.to_string(),
            values,
            memory,
        };
        let refusals = config.refusals();
        let told = |root: &Table<'_>| {
            for refusal in &refusals {
                root.refuse(refusal);
            }
            Ok(())
        };
        document.parse(told).map_err(ConfigError::Invalid)?;
        Ok(config)
    }

    /// The same with other random latencies of accesses; its text says so too.
    ///
    /// # Errors
    /// [`ConfigError`] if the jitter is too long, or the text is not that of a config.
    pub fn with_jitter(&self, jitter: Duration) -> Result<Config, ConfigError> {
        let text = with_value(&self.source, "fabric.jitter", &format!("\"{jitter}\""));
        let text = text.as_ref().unwrap_or(&self.source);
        let read = Config::read(&self.origin, text, |_| Ok(self.memory.clone()))?;
        let mut config = self.clone();
        config.values.fabric.jitter = jitter;
        config.source = read.source;
        Ok(config)
    }

    /// The generation this config is for.
    pub fn arch(&self) -> Arch {
        self.values.arch
    }

    /// The UDMA clock.
    ///
    /// # Panics
    /// Never: the frequency was validated.
    pub fn udma_clock(&self) -> Clock {
        Clock::new(self.values.clock.udma).expect("validated")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_changed_in_values_and_text_alike() {
        for name in Config::builtin_names() {
            let config = Config::builtin(name).unwrap().unwrap();
            let jitter = Duration::from_ns(3_210);
            let changed = config.with_jitter(jitter).unwrap();
            assert_eq!(changed.values.fabric.jitter, jitter);
            let read = Config::parse(name, &changed.source).unwrap();
            assert_eq!(read.values.fabric.jitter, jitter);
            let differ = |(a, b): &(&str, &str)| a != b;
            let lines = config.source.lines().zip(changed.source.lines());
            assert_eq!(lines.filter(differ).count(), 1);
        }
        let mut config = Config::builtin("cayman").unwrap().unwrap();
        assert!(
            config
                .with_jitter(Duration::from_ns(u64::from(u32::MAX)))
                .is_err()
        );
        config.source = "arch = \"v3\"".to_string();
        assert!(config.with_jitter(Duration::ZERO).is_err());
    }

    #[test]
    fn built_in_configs_are_valid_and_named_after_their_arch() {
        for name in Config::builtin_names() {
            let config = Config::builtin(name).unwrap().unwrap();
            assert_eq!(config.arch().spec().code_name, name);
        }
    }

    /// The same documented keys in each file, in the same order.
    #[test]
    fn built_in_configs_have_the_same_keys() {
        let keys = |text: &str| -> Vec<String> {
            text.lines()
                .filter(|line| !line.starts_with('#') && !line.is_empty())
                .map(|line| line.split('=').next().unwrap().trim().to_string())
                .collect()
        };
        let cayman = keys(BUILTIN[1].1);
        assert!(BUILTIN.iter().all(|(_, text)| keys(text) == cayman));
    }

    fn refusal(from: &str, to: &str) -> String {
        let text = BUILTIN[1].1;
        assert!(text.contains(from), "{from} is in the file");
        Config::parse("my.toml", &text.replacen(from, to, 1))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn errors_name_the_place_and_what_would_be_right() {
        let unit = refusal("udma = \"850MHz\"", "udma = \"850\"");
        assert!(
            unit.starts_with("config my.toml:12:8: clock.udma: ") && unit.contains("MHz"),
            "{unit}"
        );
        let unknown = refusal("burst_bytes", "burst_byte");
        let engine = "config my.toml:22:1: engine: \"burst_bytes\" is missing; write a whole number, 0 to 4294967295";
        let key = "my.toml:25:1: engine.burst_byte: unknown key; did you mean \"burst_bytes\"?";
        assert_eq!(unknown, format!("{engine}\n{key}"));
        let range = refusal("burst_bytes = 256", "burst_bytes = 48");
        assert_eq!(
            range,
            "config my.toml:25:15: engine.burst_bytes: 48 is invalid; must be a power of two from 32 to 4096"
        );
        let missing = refusal("burst_bytes = 256", "");
        assert_eq!(missing, engine);
        let arch = refusal("arch = \"v3\"", "arch = \"v9\"");
        assert!(arch.contains("v9") && arch.contains("cayman"), "{arch}");
        assert!(
            Config::load("nope", Path::new("."))
                .unwrap_err()
                .to_string()
                .contains("sunda, cayman, mariana")
        );
    }
}
