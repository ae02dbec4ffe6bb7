//! The parameters of a memory, from a file of `sim-configs/hbm-*.toml`. Like the timing config of
//! a machine such a file is complete: a key that is missing or unknown is an error.

use super::mapping::Mapping;
use crate::sim::Duration;
use crate::units::{Hertz, from_text};
use serde::Deserialize;
use std::path::{Path, PathBuf};

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

/// Most requests of one kind under way in a pseudo-channel, those at the banks included.
pub(super) const MAX_REQUESTS: u32 = 64;
/// Most banks of a pseudo-channel.
pub(super) const MAX_BANKS: u32 = 32;
/// Longest timing parameter, in cycles.
const MAX_CYCLES: u32 = 1_000_000;

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

/// The keys of a file. Each is documented, with unit and source, in
/// `sim-configs/hbm2-pseudo-channel.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    device: Device,
    mapping: MappingKeys,
    controller: Controller,
    timing: Timing,
}

/// `[device]`: size and shape.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct Device {
    #[serde(deserialize_with = "from_text")]
    pub clock: Hertz,
    pub stacks: u32,
    pub channels: u32,
    pub pseudo_channels: u32,
    pub bank_groups: u32,
    pub banks: u32,
    pub rows: u32,
    pub columns: u32,
    pub access_bytes: u32,
}

impl Device {
    /// Pseudo-channels of all stacks together.
    pub fn all_channels(&self) -> u32 {
        self.stacks * self.channels * self.pseudo_channels
    }

    /// Banks of one pseudo-channel.
    pub fn all_banks(&self) -> u32 {
        self.bank_groups * self.banks
    }

    /// Bytes of all stacks together.
    pub fn capacity(&self) -> u64 {
        let accesses = u64::from(self.all_banks()) * u64::from(self.rows) * u64::from(self.columns);
        u64::from(self.all_channels()) * accesses * u64::from(self.access_bytes)
    }
}

/// `[mapping]`: how an address is taken apart.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MappingKeys {
    order: String,
    hash: Vec<String>,
}

/// `[controller]`: queues and policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct Controller {
    pub read_queue: u32,
    pub write_queue: u32,
    pub write_high: u32,
    pub write_low: u32,
    pub max_wait: u32,
}

/// `[timing]`: minimal distances between commands, in cycles of the memory's clock.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct Timing {
    #[serde(rename = "nBL")]
    pub burst: u32,
    #[serde(rename = "nCL")]
    pub read_latency: u32,
    #[serde(rename = "nCWL")]
    pub write_latency: u32,
    #[serde(rename = "nRCDRD")]
    pub act_to_read: u32,
    #[serde(rename = "nRCDWR")]
    pub act_to_write: u32,
    #[serde(rename = "nRP")]
    pub precharge: u32,
    #[serde(rename = "nRAS")]
    pub act_to_precharge: u32,
    #[serde(rename = "nRC")]
    pub act_to_act: u32,
    #[serde(rename = "nWR")]
    pub write_recovery: u32,
    #[serde(rename = "nRTP")]
    pub read_to_precharge: u32,
    #[serde(rename = "nCCDS")]
    pub column_short: u32,
    #[serde(rename = "nCCDL")]
    pub column_long: u32,
    #[serde(rename = "nRRDS")]
    pub act_short: u32,
    #[serde(rename = "nRRDL")]
    pub act_long: u32,
    #[serde(rename = "nFAW")]
    pub four_acts: u32,
    #[serde(rename = "nWTRS")]
    pub write_to_read_short: u32,
    #[serde(rename = "nWTRL")]
    pub write_to_read_long: u32,
    #[serde(rename = "nRTW")]
    pub read_to_write: u32,
    #[serde(rename = "nRFC")]
    pub refresh: u32,
    #[serde(rename = "nREFI")]
    pub refresh_interval: u32,
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
    /// The text is not TOML, or a key is unknown, missing or of the wrong type.
    #[error("memory config {origin}: {source}")]
    Malformed {
        /// Built-in name or file.
        origin: String,
        /// The parser's message, with line and column.
        source: Box<toml::de::Error>,
    },
    /// A value is of the right type but makes no sense.
    #[error("memory config {origin}: {key} = {value}: {right}")]
    Invalid {
        /// Built-in name or file.
        origin: String,
        /// Dotted key.
        key: String,
        /// The value found.
        value: String,
        /// What would be right.
        right: String,
    },
    /// Neither a built-in name nor a file.
    #[error("memory config \"{0}\" is neither built in ({names}) nor a file", names = DramConfig::builtin_names().collect::<Vec<_>>().join(", "))]
    Unknown(String),
    /// A setting that is not `KEY=VALUE` with a key of the file.
    #[error(
        "setting \"{0}\" is not KEY=VALUE with a dotted key of the config, such as timing.nFAW=30"
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
        let malformed = |source| DramConfigError::Malformed {
            origin: origin.to_string(),
            source: Box::new(source),
        };
        // Parsed as it stands first: an error in the file is told with its line.
        let mut file: File = toml::from_str(text).map_err(malformed)?;
        if !settings.is_empty() {
            let mut table: toml::Table = text.parse().map_err(malformed)?;
            for setting in settings {
                set(&mut table, setting)?;
            }
            file = table.try_into().map_err(malformed)?;
        }
        let config = |mapping| DramConfig {
            origin: origin.to_string(),
            device: file.device.clone(),
            controller: file.controller.clone(),
            timing: file.timing.clone(),
            mapping,
        };
        let invalid = |(key, value, right): Refusal| DramConfigError::Invalid {
            origin: origin.to_string(),
            key: key.to_string(),
            value,
            right,
        };
        validate_device(&file.device).map_err(invalid)?;
        validate_controller(&file.controller).map_err(invalid)?;
        validate_timing(&file.timing).map_err(invalid)?;
        let MappingKeys { order, hash } = &file.mapping;
        let mapping = Mapping::new(&file.device, order, hash).map_err(invalid)?;
        Ok(config(mapping))
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

/// Key, value, and what would be right.
pub(super) type Refusal = (&'static str, String, String);

/// Puts `KEY=VALUE` into a table that has the key; the value is TOML, else a string.
fn set(table: &mut toml::Table, setting: &str) -> Result<(), DramConfigError> {
    let refuse = || DramConfigError::Setting(setting.to_string());
    let (key, value) = setting.split_once('=').ok_or_else(refuse)?;
    let (section, name) = key.trim().split_once('.').ok_or_else(refuse)?;
    let section = table.get_mut(section).and_then(toml::Value::as_table_mut);
    let place = section.and_then(|section| section.get_mut(name));
    let value = value.trim();
    *place.ok_or_else(refuse)? = match format!("value = {value}").parse::<toml::Table>() {
        Ok(mut parsed) => parsed.remove("value").ok_or_else(refuse)?,
        Err(_) => toml::Value::String(value.to_string()),
    };
    Ok(())
}

fn check(ok: bool, key: &'static str, value: impl ToString, right: &str) -> Result<(), Refusal> {
    match ok {
        true => Ok(()),
        false => Err((key, value.to_string(), right.to_string())),
    }
}

fn validate_device(device: &Device) -> Result<(), Refusal> {
    check(
        (1_000_000..=100_000_000_000).contains(&device.clock.0),
        "device.clock",
        device.clock,
        "must be 1MHz to 100GHz",
    )?;
    for (key, value, most) in [
        ("device.stacks", device.stacks, 16),
        ("device.channels", device.channels, 64),
        ("device.pseudo_channels", device.pseudo_channels, 4),
        ("device.bank_groups", device.bank_groups, 16),
        ("device.banks", device.banks, 16),
        ("device.columns", device.columns, 1024),
        ("device.access_bytes", device.access_bytes, 1024),
    ] {
        check(
            value.is_power_of_two() && value <= most,
            key,
            value,
            &format!("must be a power of two from 1 to {most}"),
        )?;
    }
    let banks = device.all_banks();
    let right = format!("bank_groups x banks must be at most {MAX_BANKS}");
    check(banks <= MAX_BANKS, "device.banks", device.banks, &right)?;
    check(
        (1..=1 << 20).contains(&device.rows),
        "device.rows",
        device.rows,
        "must be 1 to 1048576",
    )
}

fn validate_controller(controller: &Controller) -> Result<(), Refusal> {
    for (key, value) in [
        ("controller.read_queue", controller.read_queue),
        ("controller.write_queue", controller.write_queue),
    ] {
        let most = MAX_REQUESTS - MAX_BANKS;
        let right = format!("must be 1 to {most}");
        check((1..=most).contains(&value), key, value, &right)?;
    }
    check(
        (1..=controller.write_queue).contains(&controller.write_high),
        "controller.write_high",
        controller.write_high,
        "must be 1 to controller.write_queue",
    )?;
    check(
        controller.write_low < controller.write_high,
        "controller.write_low",
        controller.write_low,
        "must be below controller.write_high",
    )?;
    check(
        (1..=MAX_CYCLES).contains(&controller.max_wait),
        "controller.max_wait",
        controller.max_wait,
        "must be 1 to 1000000",
    )
}

fn validate_timing(t: &Timing) -> Result<(), Refusal> {
    for (key, value) in [
        ("timing.nBL", t.burst),
        ("timing.nCL", t.read_latency),
        ("timing.nCWL", t.write_latency),
        ("timing.nRCDRD", t.act_to_read),
        ("timing.nRCDWR", t.act_to_write),
        ("timing.nRP", t.precharge),
        ("timing.nRAS", t.act_to_precharge),
        ("timing.nWR", t.write_recovery),
        ("timing.nRTP", t.read_to_precharge),
        ("timing.nRRDS", t.act_short),
        ("timing.nFAW", t.four_acts),
        ("timing.nWTRS", t.write_to_read_short),
        ("timing.nRFC", t.refresh),
    ] {
        check(
            (1..=MAX_CYCLES).contains(&value),
            key,
            value,
            "must be 1 to 1000000",
        )?;
    }
    for (key, value, least, right) in [
        (
            "timing.nCCDS",
            t.column_short,
            t.burst,
            "must be at least nBL and at most 1000000",
        ),
        (
            "timing.nCCDL",
            t.column_long,
            t.column_short,
            "must be at least nCCDS and at most 1000000",
        ),
        (
            "timing.nRRDL",
            t.act_long,
            t.act_short,
            "must be at least nRRDS and at most 1000000",
        ),
        (
            "timing.nWTRL",
            t.write_to_read_long,
            t.write_to_read_short,
            "must be at least nWTRS and at most 1000000",
        ),
        (
            "timing.nRTW",
            t.read_to_write,
            (t.read_latency + t.burst)
                .saturating_sub(t.write_latency)
                .max(1),
            "must be at least nCL + nBL - nCWL, or the data of both would collide, and at most 1000000",
        ),
        (
            "timing.nRC",
            t.act_to_act,
            t.act_to_precharge + t.precharge,
            "must be at least nRAS + nRP, in which a row is closed again, and at most 1000000",
        ),
    ] {
        check((least..=MAX_CYCLES).contains(&value), key, value, right)?;
    }
    // A refresh waits for the open rows and then takes nRFC: the interval must have room for both.
    let write = t.write_latency + t.burst + t.write_recovery;
    let least = t.refresh + t.precharge + t.act_to_precharge + write + t.act_to_act;
    check(
        t.refresh_interval == 0 || (least..=100 * MAX_CYCLES).contains(&t.refresh_interval),
        "timing.nREFI",
        t.refresh_interval,
        &format!(
            "must be 0 (no refresh), or at least {least} so that requests are served between refreshes"
        ),
    )
}
