//! The keys of a config file and their types.

use crate::arch::Arch;
use crate::arch::regs::UdmaState;
use crate::document::{from_text, keys, named, subtables};
use crate::sim::Duration;
use crate::units::{Bytes, BytesPerSecond, Hertz};

keys! {
    /// The keys of a config file. Each is documented, with its unit and where its value comes from, in
    /// `sim-configs/cayman.toml`.
    #[derive(Clone)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct Values {
        arch: Arch,
        clock: ClockConfig,
        host: HostConfig,
        engine: EngineConfig,
        compute: ComputeConfig,
        ordering: OrderingConfig,
        fabric: FabricConfig,
        sequencer: SequencerConfig,
    }

    /// `[clock]`: clock domains.
    #[derive(Clone)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct ClockConfig {
        udma: Hertz,
    }

    /// `[host]`: the host side of the PCIe link.
    #[derive(Clone)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct HostConfig {
        memory: Bytes,
        register_write: Duration,
        register_read: Duration,
    }

    /// `[engine]`: one UDMA engine.
    #[derive(Clone)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct EngineConfig {
        burst_bytes: u32,
        descriptor_burst: u32,
        prefetch_descriptors: u32,
        packet_cycles: u32,
        header_credit: Duration,
        completion_coalesce_cycles: u32,
        state_after_reset: StateAfterReset,
        axi_abort: AxiAbort,
    }

    /// `[compute]`: the stream processor of compute packets.
    #[derive(Clone)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct ComputeConfig {
        cce_percent: u32,
        transpose_percent: u32,
        transpose_state_buffer_percent: u32,
        fp8_e4: E4m3Flavour,
        fp8_overflow: Fp8Overflow,
    }

    /// `[ordering]`: readings of the ordering model where silicon might differ.
    #[derive(Clone)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct OrderingConfig {
        sow_scope: SowScope,
    }

    /// `[fabric]`: the way from an engine to each kind of target.
    #[derive(Clone)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct FabricConfig {
        hbm: HbmConfig,
        state_buffer: TargetConfig,
        csr: TargetConfig,
        host: TargetConfig,
        jitter: Duration,
    }

    /// `[fabric.hbm]`: the way to HBM, and what is there.
    #[derive(Clone)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct HbmConfig {
        request: Duration,
        read: Duration,
        write: Duration,
        response: Duration,
        memory: String,
    }

    /// `[fabric.*]`: latency and bandwidth of one kind of target.
    #[derive(Clone)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct TargetConfig {
        request: Duration,
        read: Duration,
        write: Duration,
        response: Duration,
        channels: u32,
        interleave: Bytes,
        bandwidth: BytesPerSecond,
    }

    /// `[sequencer]`: the instruction sequencers that wait on semaphores.
    #[derive(Clone)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct SequencerConfig {
        step: Duration,
        register_write: Duration,
    }
}

subtables! {
    ClockConfig;
    HostConfig;
    EngineConfig;
    ComputeConfig;
    OrderingConfig;
    FabricConfig;
    HbmConfig;
    TargetConfig;
    SequencerConfig;
}

from_text! {
    Duration, "a time such as \"250ns\"";
}

named! {
    StateAfterReset, [StateAfterReset::Normal, StateAfterReset::Idle],
        (|state| match state {
            StateAfterReset::Normal => "normal",
            StateAfterReset::Idle => "idle",
        }),
        "\"normal\" or \"idle\"";
    AxiAbort, [AxiAbort::Always, AxiAbort::DetectionTables],
        (|abort| match abort {
            AxiAbort::Always => "always",
            AxiAbort::DetectionTables => "detection_tables",
        }),
        "\"always\" or \"detection_tables\"";
    E4m3Flavour, [E4m3Flavour::Ieee, E4m3Flavour::Ocp],
        (|flavour| match flavour {
            E4m3Flavour::Ieee => "ieee",
            E4m3Flavour::Ocp => "ocp",
        }),
        "\"ieee\" or \"ocp\"";
    Fp8Overflow, [Fp8Overflow::Special, Fp8Overflow::Saturate],
        (|overflow| match overflow {
            Fp8Overflow::Special => "special",
            Fp8Overflow::Saturate => "saturate",
        }),
        "\"special\" or \"saturate\"";
    SowScope, [SowScope::Queue, SowScope::Engine],
        (|scope| match scope {
            SowScope::Queue => "queue",
            SowScope::Engine => "engine",
        }),
        "\"queue\" or \"engine\"";
}

/// The state in which the halves of an engine come out of reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxiAbort {
    /// All of them.
    Always,
    /// Those that the engine's AXI error detection tables name.
    DetectionTables,
}

/// What the data type fp8_e4 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum E4m3Flavour {
    /// With infinities and NaNs as IEEE 754 would have them: largest number 240.
    Ieee,
    /// As the OCP specification has it: largest number 448, no infinity.
    Ocp,
}

/// What becomes of numbers too large for an fp8 type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fp8Overflow {
    /// Infinity, or NaN where there is none.
    Special,
    /// The largest finite number, which infinity becomes too.
    Saturate,
}

/// Over which earlier writes a strong-ordered write waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SowScope {
    /// Those of its own queue.
    Queue,
    /// Those of every queue of its engine.
    Engine,
}
