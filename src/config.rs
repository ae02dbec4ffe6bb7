//! The timing configuration: everything about *when* that no descriptor, register or address map
//! fixes. A config file is complete: a key that is missing or unknown is an error, so that the file
//! says all there is to know. The built-in ones are `sim-configs/*.toml`, compiled in.

use crate::arch::Arch;
use crate::arch::regs::UdmaState;
use crate::dram::{DramConfig, DramConfigError};
use crate::sim::{Clock, Duration};
use crate::units::{Bytes, BytesPerSecond, Hertz, from_text};
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// The built-in configs by name.
const BUILTIN: [(&str, &str); 3] = [
    ("sunda", include_str!("../sim-configs/sunda.toml")),
    ("cayman", include_str!("../sim-configs/cayman.toml")),
    ("mariana", include_str!("../sim-configs/mariana.toml")),
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

/// The keys of a config file. Each is documented, with its unit and where its value comes from, in
/// `sim-configs/cayman.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct Values {
    #[serde(deserialize_with = "from_text")]
    pub arch: Arch,
    pub clock: ClockConfig,
    pub host: HostConfig,
    pub engine: EngineConfig,
    pub compute: ComputeConfig,
    pub ordering: OrderingConfig,
    pub fabric: FabricConfig,
    pub sequencer: SequencerConfig,
}

/// `[clock]`: clock domains.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct ClockConfig {
    #[serde(deserialize_with = "from_text")]
    pub udma: Hertz,
}

/// `[host]`: the host side of the PCIe link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct HostConfig {
    #[serde(deserialize_with = "from_text")]
    pub memory: Bytes,
    #[serde(deserialize_with = "from_text")]
    pub register_write: Duration,
    #[serde(deserialize_with = "from_text")]
    pub register_read: Duration,
}

/// `[engine]`: one UDMA engine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct EngineConfig {
    pub burst_bytes: u32,
    pub descriptor_burst: u32,
    pub prefetch_descriptors: u32,
    pub packet_cycles: u32,
    #[serde(deserialize_with = "from_text")]
    pub header_credit: Duration,
    pub completion_coalesce_cycles: u32,
    pub state_after_reset: StateAfterReset,
    pub axi_abort: AxiAbort,
}

/// The state in which the halves of an engine come out of reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateAfterReset {
    /// Running.
    Normal,
    /// Off until a driver writes `change_state`.
    Idle,
}

impl From<StateAfterReset> for UdmaState {
    fn from(state: StateAfterReset) -> UdmaState {
        match state {
            StateAfterReset::Normal => UdmaState::Normal,
            StateAfterReset::Idle => UdmaState::Idle,
        }
    }
}

/// Which AXI errors abort an engine, as far as they are not masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AxiAbort {
    /// All of them.
    Always,
    /// Those that the engine's AXI error detection tables name.
    DetectionTables,
}

/// `[compute]`: the stream processor of compute packets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct ComputeConfig {
    pub cce_percent: u32,
    pub transpose_percent: u32,
    pub transpose_state_buffer_percent: u32,
    pub fp8_e4: E4m3Flavour,
    pub fp8_overflow: Fp8Overflow,
}

/// What the data type fp8_e4 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum E4m3Flavour {
    /// With infinities and NaNs as IEEE 754 would have them: largest number 240.
    Ieee,
    /// As the OCP specification has it: largest number 448, no infinity.
    Ocp,
}

/// What becomes of numbers too large for an fp8 type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fp8Overflow {
    /// Infinity, or NaN where there is none.
    Special,
    /// The largest finite number, which infinity becomes too.
    Saturate,
}

/// `[ordering]`: readings of the ordering model where silicon might differ.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct OrderingConfig {
    pub sow_scope: SowScope,
}

/// Over which earlier writes a strong-ordered write waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SowScope {
    /// Those of its own queue.
    Queue,
    /// Those of every queue of its engine.
    Engine,
}

/// `[fabric]`: the way from an engine to each kind of target.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct FabricConfig {
    pub hbm: HbmConfig,
    pub state_buffer: TargetConfig,
    pub csr: TargetConfig,
    pub host: TargetConfig,
    #[serde(deserialize_with = "from_text")]
    pub jitter: Duration,
}

/// `[fabric.hbm]`: the way to HBM, and what is there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct HbmConfig {
    #[serde(deserialize_with = "from_text")]
    pub request: Duration,
    #[serde(deserialize_with = "from_text")]
    pub read: Duration,
    #[serde(deserialize_with = "from_text")]
    pub write: Duration,
    #[serde(deserialize_with = "from_text")]
    pub response: Duration,
    pub memory: String,
}

/// `[fabric.*]`: latency and bandwidth of one kind of target.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct TargetConfig {
    #[serde(deserialize_with = "from_text")]
    pub request: Duration,
    #[serde(deserialize_with = "from_text")]
    pub read: Duration,
    #[serde(deserialize_with = "from_text")]
    pub write: Duration,
    #[serde(deserialize_with = "from_text")]
    pub response: Duration,
    pub channels: u32,
    #[serde(deserialize_with = "from_text")]
    pub interleave: Bytes,
    #[serde(deserialize_with = "from_text")]
    pub bandwidth: BytesPerSecond,
}

/// `[sequencer]`: the instruction sequencers that wait on semaphores.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented key by key in the config files")]
pub struct SequencerConfig {
    #[serde(deserialize_with = "from_text")]
    pub step: Duration,
    #[serde(deserialize_with = "from_text")]
    pub register_write: Duration,
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
    /// The text is not TOML, or a key is unknown, missing or of the wrong type.
    #[error("config {origin}: {source}")]
    Malformed {
        /// Built-in name or file.
        origin: String,
        /// The parser's message, with line and column.
        source: Box<toml::de::Error>,
    },
    /// The HBM that it names cannot be had.
    #[error("config {origin}: fabric.hbm.memory: {source}")]
    Memory {
        /// Built-in name or file.
        origin: String,
        /// The reason.
        source: Box<DramConfigError>,
    },
    /// A value is of the right type but makes no sense.
    #[error("config {origin}: {key} = {value}: {right}")]
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
    #[error("config \"{0}\" is neither built in (sunda, cayman, mariana) nor a file")]
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
    /// [`ConfigError::Malformed`] or [`ConfigError::Invalid`].
    pub fn parse(origin: &str, text: &str) -> Result<Config, ConfigError> {
        Config::parse_in(Path::new(""), origin, text)
    }

    /// As [`Config::parse`]; the path of a memory config is taken from `base`.
    fn parse_in(base: &Path, origin: &str, text: &str) -> Result<Config, ConfigError> {
        let values: Values = toml::from_str(text).map_err(|source| ConfigError::Malformed {
            origin: origin.to_string(),
            source: Box::new(source),
        })?;
        let memory = DramConfig::load_from(base, &values.fabric.hbm.memory).map_err(|source| {
            ConfigError::Memory {
                origin: origin.to_string(),
                source: Box::new(source),
            }
        })?;
        let config = Config {
            origin: origin.to_string(),
            source: text.to_string(),
            values,
            memory,
        };
        config.validate()?;
        Ok(config)
    }

    /// The same with other random latencies of accesses; its text says so too.
    ///
    /// # Errors
    /// [`ConfigError`] if the jitter is too long, or the text is not that of a config.
    pub fn with_jitter(&self, jitter: Duration) -> Result<Config, ConfigError> {
        let mut config = self.clone();
        config.values.fabric.jitter = jitter;
        config.validate()?;
        let malformed = |source| ConfigError::Malformed {
            origin: self.origin.clone(),
            source: Box::new(source),
        };
        let span = {
            let table = DeTable::parse(&self.source).map_err(malformed)?;
            let fabric = table.get_ref().get("fabric");
            let fabric = fabric.and_then(|fabric| fabric.get_ref().as_table());
            let jitter = fabric.and_then(|fabric| fabric.get("jitter"));
            jitter.map(|value| value.span())
        };
        let span = span.ok_or_else(|| ConfigError::Invalid {
            origin: self.origin.clone(),
            key: "fabric.jitter".to_string(),
            value: "nothing".to_string(),
            right: "must be in the text of the config".to_string(),
        })?;
        let value = format!("\"{jitter}\"");
        config.source.replace_range(span, &value);
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

    fn validate(&self) -> Result<(), ConfigError> {
        let values = &self.values;
        let check = |ok: bool, key: &str, value: &dyn fmt::Display, right: &str| {
            if ok {
                return Ok(());
            }
            Err(ConfigError::Invalid {
                origin: self.origin.clone(),
                key: key.to_string(),
                value: value.to_string(),
                right: right.to_string(),
            })
        };
        check(
            (1_000_000..=100_000_000_000).contains(&values.clock.udma.0),
            "clock.udma",
            &values.clock.udma,
            "must be 1MHz to 100GHz",
        )?;
        check(
            values.host.memory.0.is_multiple_of(4096)
                && (4096..=MAX_HOST_MEMORY).contains(&values.host.memory.0),
            "host.memory",
            &values.host.memory,
            "must be a multiple of 4KiB, 4KiB to 1TiB",
        )?;
        for (key, delay) in [
            ("host.register_write", values.host.register_write),
            ("host.register_read", values.host.register_read),
            ("sequencer.register_write", values.sequencer.register_write),
            ("sequencer.step", values.sequencer.step),
        ] {
            check(
                (1..=MAX_LATENCY.as_fs()).contains(&delay.as_fs()),
                key,
                &delay,
                "must be more than 0 and at most 1ms",
            )?;
        }
        let engine = &values.engine;
        check(
            engine.burst_bytes.is_power_of_two() && (32..=4096).contains(&engine.burst_bytes),
            "engine.burst_bytes",
            &engine.burst_bytes,
            "must be a power of two from 32 to 4096",
        )?;
        check(
            (1..=64).contains(&engine.descriptor_burst),
            "engine.descriptor_burst",
            &engine.descriptor_burst,
            "must be 1 to 64",
        )?;
        check(
            (128..=65536).contains(&engine.prefetch_descriptors),
            "engine.prefetch_descriptors",
            &engine.prefetch_descriptors,
            "must be 128 to 65536",
        )?;
        for (key, cycles) in [
            ("engine.packet_cycles", engine.packet_cycles),
            (
                "engine.completion_coalesce_cycles",
                engine.completion_coalesce_cycles,
            ),
        ] {
            check(cycles <= 1_000_000, key, &cycles, "must be at most 1000000")?;
        }
        check(
            engine.header_credit <= MAX_LATENCY,
            "engine.header_credit",
            &engine.header_credit,
            "must be at most 1ms",
        )?;
        let compute = &values.compute;
        for (key, percent) in [
            ("compute.cce_percent", compute.cce_percent),
            ("compute.transpose_percent", compute.transpose_percent),
            (
                "compute.transpose_state_buffer_percent",
                compute.transpose_state_buffer_percent,
            ),
        ] {
            check(
                (1..=100).contains(&percent),
                key,
                &percent,
                "must be 1 to 100",
            )?;
        }
        let fp8_control = values.arch.spec().caps.fp8_control;
        for (key, value, fixed) in [
            ("compute.fp8_e4", "ocp", compute.fp8_e4 == E4m3Flavour::Ieee),
            (
                "compute.fp8_overflow",
                "saturate",
                compute.fp8_overflow == Fp8Overflow::Special,
            ),
        ] {
            let right = "this generation has no control for it";
            check(fp8_control || fixed, key, &value, right)?;
        }
        let fabric = &values.fabric;
        check(
            fabric.jitter <= MAX_LATENCY,
            "fabric.jitter",
            &fabric.jitter,
            "must be at most 1ms",
        )?;
        let servers = [
            ("state_buffer", &fabric.state_buffer),
            ("csr", &fabric.csr),
            ("host", &fabric.host),
        ];
        let hbm = &fabric.hbm;
        let mut latencies = vec![("hbm", [hbm.request, hbm.read, hbm.write, hbm.response])];
        latencies.extend(servers.map(|(name, server)| {
            let latencies = [server.request, server.read, server.write, server.response];
            (name, latencies)
        }));
        for (name, latencies) in latencies {
            for (key, latency) in ["request", "read", "write", "response"]
                .iter()
                .zip(latencies)
            {
                check(
                    (1..=MAX_LATENCY.as_fs()).contains(&latency.as_fs()),
                    &format!("fabric.{name}.{key}"),
                    &latency,
                    "must be more than 0 and at most 1ms",
                )?;
            }
        }
        for (name, target) in servers {
            check(
                target.channels.is_power_of_two() && target.channels <= 256,
                &format!("fabric.{name}.channels"),
                &target.channels,
                "must be a power of two from 1 to 256",
            )?;
            check(
                target.interleave.0.is_power_of_two()
                    && target.interleave.0 >= u64::from(engine.burst_bytes),
                &format!("fabric.{name}.interleave"),
                &target.interleave,
                "must be a power of two and at least engine.burst_bytes, so that a burst goes to \
                 one channel",
            )?;
            check(
                (1_000_000..=1_000_000_000_000_000).contains(&target.bandwidth.0),
                &format!("fabric.{name}.bandwidth"),
                &target.bandwidth,
                "must be 1MB/s to 1000TB/s",
            )?;
        }
        let (map, device) = (&values.arch.spec().map, &self.memory.device);
        let largest = map.hbm.iter().map(|stack| stack.populated).max();
        let stack_bytes = device.capacity() / u64::from(device.stacks);
        check(
            device.stacks as usize == map.hbm.len() && Some(stack_bytes) == largest,
            "fabric.hbm.memory",
            &self.memory.origin,
            &format!(
                "must have {} stacks of {} as the device has; it has {} of {}",
                map.hbm.len(),
                Bytes(largest.unwrap_or_default()),
                device.stacks,
                Bytes(stack_bytes)
            ),
        )
    }
}

/// Longest latency a config may set. Bounds the time a single access can take.
const MAX_LATENCY: Duration = Duration::from_ns(1_000_000);

/// Most host memory a config may ask for; the host window of every generation has room for it.
const MAX_HOST_MEMORY: u64 = 1 << 40;

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
            unit.contains("my.toml") && unit.contains("line ") && unit.contains("MHz"),
            "{unit}"
        );
        let unknown = refusal("burst_bytes", "burst_byte");
        assert!(
            unknown.contains("burst_byte`") && unknown.contains("expected"),
            "{unknown}"
        );
        let range = refusal("burst_bytes = 256", "burst_bytes = 48");
        assert_eq!(
            range,
            "config my.toml: engine.burst_bytes = 48: must be a power of two from 32 to 4096"
        );
        let missing = refusal("burst_bytes = 256", "");
        assert!(missing.contains("missing field `burst_bytes`"), "{missing}");
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
