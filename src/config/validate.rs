//! What the values of a config may be.

use super::{Config, E4m3Flavour, Fp8Overflow, TargetConfig, Values};
use crate::document::Refusal;
use crate::sim::Duration;
use crate::units::Bytes;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Longest latency a config may set. Bounds the time a single access can take.
const MAX_LATENCY: Duration = Duration::from_ns(1_000_000);

/// Most host memory a config may ask for; the host window of every generation has room for it.
const MAX_HOST_MEMORY: u64 = 1 << 40;

/// The values found invalid so far.
#[derive(Default)]
struct Refusals(Vec<Refusal>);

impl Refusals {
    fn check(&mut self, ok: bool, key: &str, value: &dyn Display, right: &str) {
        if !ok {
            self.0.push(Refusal {
                key: key.to_string(),
                value: value.to_string(),
                right: right.to_string(),
            });
        }
    }

    /// A time that an event takes.
    fn latency(&mut self, key: &str, latency: Duration) {
        self.check(
            (1..=MAX_LATENCY.as_fs()).contains(&latency.as_fs()),
            key,
            &latency,
            "must be more than 0 and at most 1ms",
        );
    }

    fn at_most_1ms(&mut self, key: &str, time: Duration) {
        self.check(time <= MAX_LATENCY, key, &time, "must be at most 1ms");
    }
}

impl Config {
    /// Every value that is of the right type but invalid.
    pub(super) fn refusals(&self) -> Vec<Refusal> {
        let mut refusals = Refusals::default();
        let values = &self.values;
        host_and_clock(&mut refusals, values);
        engine(&mut refusals, values);
        compute(&mut refusals, values);
        fabric(&mut refusals, values);
        self.hbm(&mut refusals);
        refusals.0
    }

    /// The memory is the one that the device has.
    fn hbm(&self, refusals: &mut Refusals) {
        let (map, device) = (&self.arch().spec().map, &self.memory.device);
        let largest = map.hbm.iter().map(|stack| stack.populated).max();
        let stack_bytes = device.capacity() / u64::from(device.stacks);
        refusals.check(
            device.stacks as usize == map.hbm.len() && Some(stack_bytes) == largest,
            "fabric.hbm.memory",
            &self.memory.origin,
            &format!(
                "must have {} stacks of {}, like the device; it has {} of {}",
                map.hbm.len(),
                Bytes(largest.unwrap_or_default()),
                device.stacks,
                Bytes(stack_bytes)
            ),
        );
    }
}

fn host_and_clock(refusals: &mut Refusals, values: &Values) {
    refusals.check(
        (1_000_000..=100_000_000_000).contains(&values.clock.udma.0),
        "clock.udma",
        &values.clock.udma,
        "must be 1MHz to 100GHz",
    );
    refusals.check(
        values.host.memory.0.is_multiple_of(4096)
            && (4096..=MAX_HOST_MEMORY).contains(&values.host.memory.0),
        "host.memory",
        &values.host.memory,
        "must be a multiple of 4KiB, 4KiB to 1TiB",
    );
    refusals.latency("host.register_write", values.host.register_write);
    refusals.latency("host.register_read", values.host.register_read);
    refusals.latency("sequencer.register_write", values.sequencer.register_write);
    refusals.latency("sequencer.step", values.sequencer.step);
}

fn engine(refusals: &mut Refusals, values: &Values) {
    let engine = &values.engine;
    refusals.check(
        engine.burst_bytes.is_power_of_two() && (32..=4096).contains(&engine.burst_bytes),
        "engine.burst_bytes",
        &engine.burst_bytes,
        "must be a power of two from 32 to 4096",
    );
    let mut number = |key: &str, number: u32, allowed: RangeInclusive<u32>, right: &str| {
        refusals.check(allowed.contains(&number), key, &number, right);
    };
    number(
        "engine.descriptor_burst",
        engine.descriptor_burst,
        1..=64,
        "must be 1 to 64",
    );
    number(
        "engine.prefetch_descriptors",
        engine.prefetch_descriptors,
        128..=65536,
        "must be 128 to 65536",
    );
    number(
        "engine.packet_cycles",
        engine.packet_cycles,
        0..=1_000_000,
        "must be at most 1000000",
    );
    number(
        "engine.completion_coalesce_cycles",
        engine.completion_coalesce_cycles,
        0..=1_000_000,
        "must be at most 1000000",
    );
    refusals.at_most_1ms("engine.header_credit", engine.header_credit);
}

fn compute(refusals: &mut Refusals, values: &Values) {
    let compute = &values.compute;
    for (key, percent) in [
        ("compute.cce_percent", compute.cce_percent),
        ("compute.transpose_percent", compute.transpose_percent),
        (
            "compute.transpose_state_buffer_percent",
            compute.transpose_state_buffer_percent,
        ),
    ] {
        refusals.check(
            (1..=100).contains(&percent),
            key,
            &percent,
            "must be 1 to 100",
        );
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
        let right = "cannot be changed on this generation";
        refusals.check(fp8_control || fixed, key, &value, right);
    }
}

fn fabric(refusals: &mut Refusals, values: &Values) {
    let fabric = &values.fabric;
    refusals.at_most_1ms("fabric.jitter", fabric.jitter);
    let hbm = &fabric.hbm;
    let mut latencies = |name: &str, latencies: [Duration; 4]| {
        for (key, latency) in ["request", "read", "write", "response"]
            .iter()
            .zip(latencies)
        {
            refusals.latency(&format!("fabric.{name}.{key}"), latency);
        }
    };
    latencies("hbm", [hbm.request, hbm.read, hbm.write, hbm.response]);
    let servers = [
        ("state_buffer", &fabric.state_buffer),
        ("csr", &fabric.csr),
        ("host", &fabric.host),
    ];
    for (name, target) in servers {
        latencies(
            name,
            [target.request, target.read, target.write, target.response],
        );
    }
    for (name, server) in servers {
        target(refusals, name, server, values.engine.burst_bytes);
    }
}

fn target(refusals: &mut Refusals, name: &str, target: &TargetConfig, burst_bytes: u32) {
    refusals.check(
        target.channels.is_power_of_two() && target.channels <= 256,
        &format!("fabric.{name}.channels"),
        &target.channels,
        "must be a power of two from 1 to 256",
    );
    refusals.check(
        target.interleave.0.is_power_of_two() && target.interleave.0 >= u64::from(burst_bytes),
        &format!("fabric.{name}.interleave"),
        &target.interleave,
        "must be a power of two and at least engine.burst_bytes, so that a burst stays in one channel",
    );
    refusals.check(
        (1_000_000..=1_000_000_000_000_000).contains(&target.bandwidth.0),
        &format!("fabric.{name}.bandwidth"),
        &target.bandwidth,
        "must be 1MB/s to 1000TB/s",
    );
}
