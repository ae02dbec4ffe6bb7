//! Capabilities and limits per generation (`docs/hardware.md`, "Limits and capabilities").

use super::Arch;
use super::map::{self, AddressMap};

/// Everything that is fixed for one generation.
#[derive(Debug)]
pub struct ArchSpec {
    /// Which generation this is.
    pub arch: Arch,
    /// Vendor code name, lower case; also the name of the built-in config.
    pub code_name: &'static str,
    /// What the generation can do.
    pub caps: Caps,
    /// Where its limits lie.
    pub limits: Limits,
    /// Where things are in its address space.
    pub map: AddressMap,
}

/// What a generation can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// STRONG_ORDER_WR on Rx descriptors.
    pub strong_order_writes: bool,
    /// Notification mask, bit 28 of `meta_ctrl`.
    pub notification_mask: bool,
    /// Embedded semaphore update on the last Rx descriptor.
    pub embedded_semaphore: bool,
    /// Independent data tail pointer of the M2S prefetch.
    pub data_tail_pointer: bool,
    /// CCE results replicated to several destinations.
    pub cce_replication: bool,
    /// Transpose flush packet.
    pub transpose_flush: bool,
    /// Transposes write to a State Buffer and nowhere else.
    pub state_buffer_transpose: bool,
    /// Control of how fp8 types overflow, with the OCP flavour of E4M3.
    pub fp8_control: bool,
    /// Semaphore increment whose source is the State Buffer.
    pub semaphore_inc_from_sb: bool,
    /// Strict-priority QoS between queues.
    pub queue_qos: bool,
    /// The ten bits of `ostand_cfg_wr_2` limit data writes, not the eight of `ostand_cfg_wr`.
    pub wide_write_limit: bool,
}

/// Where a generation's limits lie. Counts unless a unit is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tx descriptors in one packet.
    pub tx_descs_per_packet: u32,
    /// Rx descriptors in one packet.
    pub rx_descs_per_packet: u32,
    /// Elements in one CCE packet.
    pub cce_elements_per_packet: u32,
    /// NeuronCores on the device.
    pub neuron_cores: u32,
    /// UDMA engines beside each NeuronCore.
    pub engines_per_core: u32,
    /// UDMA engines that belong to no NeuronCore (host to device, device to host).
    pub host_engines: u32,
    /// Queues of one engine, per direction.
    pub queues_per_engine: u32,
}

impl Limits {
    /// All UDMA engines of the device.
    pub const fn engines(&self) -> u32 {
        self.neuron_cores * self.engines_per_core + self.host_engines
    }
}

pub(super) static SUNDA: ArchSpec = ArchSpec {
    arch: Arch::V2,
    code_name: "sunda",
    caps: Caps {
        strong_order_writes: false,
        notification_mask: false,
        embedded_semaphore: false,
        data_tail_pointer: false,
        cce_replication: false,
        transpose_flush: false,
        state_buffer_transpose: false,
        fp8_control: false,
        semaphore_inc_from_sb: false,
        queue_qos: false,
        wide_write_limit: false,
    },
    limits: Limits {
        tx_descs_per_packet: 128,
        rx_descs_per_packet: 128,
        cce_elements_per_packet: 1024,
        neuron_cores: 2,
        engines_per_core: 16,
        host_engines: 2,
        queues_per_engine: 16,
    },
    map: map::SUNDA,
};

pub(super) static CAYMAN: ArchSpec = ArchSpec {
    arch: Arch::V3,
    code_name: "cayman",
    caps: Caps {
        strong_order_writes: true,
        notification_mask: false,
        embedded_semaphore: false,
        data_tail_pointer: true,
        cce_replication: true,
        transpose_flush: true,
        state_buffer_transpose: true,
        fp8_control: false,
        semaphore_inc_from_sb: true,
        queue_qos: false,
        wide_write_limit: false,
    },
    limits: Limits {
        tx_descs_per_packet: 65,
        rx_descs_per_packet: 60,
        cce_elements_per_packet: 2048,
        neuron_cores: 8,
        engines_per_core: 16,
        host_engines: 4,
        queues_per_engine: 16,
    },
    map: map::CAYMAN,
};

pub(super) static MARIANA: ArchSpec = ArchSpec {
    arch: Arch::V4,
    code_name: "mariana",
    caps: Caps {
        notification_mask: true,
        fp8_control: true,
        embedded_semaphore: true,
        // The source asserts arch == CAYMAN, not arch >= CAYMAN.
        semaphore_inc_from_sb: false,
        queue_qos: true,
        wide_write_limit: true,
        ..CAYMAN.caps
    },
    limits: CAYMAN.limits,
    map: map::MARIANA,
};
