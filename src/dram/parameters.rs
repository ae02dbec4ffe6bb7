//! The keys of a memory's config, their types and what their values may be.

use crate::document::{Refusal, keys, subtables};
use crate::units::Hertz;

/// Most requests of one kind under way in a pseudo-channel, those at the banks included.
pub(super) const MAX_REQUESTS: u32 = 64;
/// Most banks of a pseudo-channel.
pub(super) const MAX_BANKS: u32 = 32;
/// Longest timing parameter, in cycles.
const MAX_CYCLES: u32 = 1_000_000;

keys! {
    /// The keys of a file. Each is documented, with unit and source, in
    /// `sim-configs/hbm2-pseudo-channel.toml`.
    #[derive(Clone)]
    pub(super) struct File {
        device: Device,
        mapping: MappingKeys,
        controller: Controller,
        timing: Timing,
    }

    /// `[device]`: size and shape.
    #[derive(Clone)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct Device {
        clock: Hertz,
        stacks: u32,
        channels: u32,
        pseudo_channels: u32,
        bank_groups: u32,
        banks: u32,
        rows: u32,
        columns: u32,
        access_bytes: u32,
    }

    /// `[mapping]`: how an address is taken apart.
    #[derive(Clone)]
    pub(super) struct MappingKeys {
        order: String,
        hash: Vec<String>,
    }

    /// `[controller]`: queues and policy.
    #[derive(Clone)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct Controller {
        read_queue: u32,
        write_queue: u32,
        write_high: u32,
        write_low: u32,
        max_wait: u32,
    }

    /// `[timing]`: minimal distances between commands, in cycles of the memory's clock.
    #[derive(Clone, PartialEq, Eq)]
    #[allow(missing_docs, reason = "documented key by key in the config files")]
    pub struct Timing {
        burst ("nBL"): u32,
        read_latency ("nCL"): u32,
        write_latency ("nCWL"): u32,
        act_to_read ("nRCDRD"): u32,
        act_to_write ("nRCDWR"): u32,
        precharge ("nRP"): u32,
        act_to_precharge ("nRAS"): u32,
        act_to_act ("nRC"): u32,
        write_recovery ("nWR"): u32,
        read_to_precharge ("nRTP"): u32,
        column_short ("nCCDS"): u32,
        column_long ("nCCDL"): u32,
        act_short ("nRRDS"): u32,
        act_long ("nRRDL"): u32,
        four_acts ("nFAW"): u32,
        write_to_read_short ("nWTRS"): u32,
        write_to_read_long ("nWTRL"): u32,
        read_to_write ("nRTW"): u32,
        refresh ("nRFC"): u32,
        refresh_interval ("nREFI"): u32,
    }
}

subtables! {
    Device;
    MappingKeys;
    Controller;
    Timing;
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

fn check(ok: bool, key: &str, value: impl ToString, right: &str) -> Result<(), Refusal> {
    match ok {
        true => Ok(()),
        false => Err(Refusal {
            key: key.to_string(),
            value: value.to_string(),
            right: right.to_string(),
        }),
    }
}

/// Refuses values that are of the right type but invalid.
pub(super) fn validate(file: &File) -> Result<(), Refusal> {
    validate_device(&file.device)?;
    validate_controller(&file.controller)?;
    validate_timing(&file.timing)
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
            "must be at least nCL + nBL - nCWL, so that the data of both does not collide, and at most 1000000",
        ),
        (
            "timing.nRC",
            t.act_to_act,
            t.act_to_precharge + t.precharge,
            "must be at least nRAS + nRP and at most 1000000",
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
            "must be 0 (no refresh) or at least {least}, so that requests are served between refreshes"
        ),
    )
}
