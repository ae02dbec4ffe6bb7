//! The way from an engine to memory and back: which channel a burst goes to, when its bytes are
//! sampled or become visible, when the engine hears of it.
//!
//! A channel is a server: bursts reach it in the order they were issued, each occupies it for its
//! share of the bandwidth, then takes the access latency. Times are fixed when a burst is issued.
//! All of it is modelled (C); the figures live in `sim-configs/`.

use crate::arch::ArchSpec;
use crate::config::{FabricConfig, TargetConfig};
use crate::memory::{AccessReason, Nearby, PhysicalMemory, Place, Target};
use crate::sim::{Duration, Instant, stream};
use crate::units::{Addr, BytesPerSecond};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes that cross an engine's data path in one UDMA cycle (A: 256-bit beats).
pub const BEAT_BYTES: u32 = 32;

/// Longest burst any config allows, in bytes.
pub(super) const MAX_BURST_BYTES: usize = 4096;

/// Where a burst goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    kind: Kind,
    /// Channel, counted over the whole device.
    channel: u32,
    /// Where the access falls, or why nothing answers.
    place: Result<Place, AccessReason>,
}

impl Route {
    /// Where the access falls.
    ///
    /// # Errors
    /// Why nothing answers there.
    pub fn place(self) -> Result<Place, AccessReason> {
        self.place
    }

    /// The channel, below [`Fabric::channels`]: two bursts that share a byte share their channel.
    pub fn channel(self) -> usize {
        self.channel as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hbm,
    StateBuffer,
    Csr,
    Host,
}

/// The way of one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Its channel is at it from here on,
    pub served_from: Instant,
    /// until here.
    pub served: Instant,
    /// A read takes the bytes from memory; every read after a write, by anyone, returns its bytes.
    pub done: Instant,
    /// From then until the engine has the data or the acknowledge.
    pub response: Duration,
}

/// One kind of target, in the units the hot path wants.
struct TargetTiming {
    request: Duration,
    read: Duration,
    write: Duration,
    response: Duration,
    /// How long one beat occupies a channel.
    beat: Duration,
    /// First channel, counted over the whole device.
    first_channel: u32,
    /// Channels of one target of this kind, minus one: a power of two.
    channel_mask: u64,
    interleave_shift: u32,
}

impl TargetTiming {
    fn new(config: &TargetConfig, first_channel: u32) -> TargetTiming {
        TargetTiming {
            request: config.request,
            read: config.read,
            write: config.write,
            response: config.response,
            beat: beat_time(config.bandwidth, config.channels),
            first_channel,
            channel_mask: u64::from(config.channels) - 1,
            interleave_shift: config.interleave.0.trailing_zeros(),
        }
    }

    fn channel(&self, target: u32, offset: u64) -> u32 {
        let channel = (offset >> self.interleave_shift) & self.channel_mask;
        self.first_channel + target * (self.channel_mask as u32 + 1) + channel as u32
    }
}

/// How long a beat occupies one of `channels` that share `bandwidth`, rounded up to a femtosecond.
fn beat_time(bandwidth: BytesPerSecond, channels: u32) -> Duration {
    let fs = u128::from(BEAT_BYTES) * u128::from(channels) * 1_000_000_000_000_000;
    // At most 32 · 256 · 10^15 / 10^6: fits.
    Duration::from_fs(fs.div_ceil(u128::from(bandwidth.0)) as u64)
}

/// The memory system's timing, shared by all engines.
pub struct Fabric {
    hbm: TargetTiming,
    state_buffer: TargetTiming,
    csr: TargetTiming,
    host: TargetTiming,
    /// When each channel is free again.
    busy_until: Vec<Instant>,
    /// Extra time of each access to a slow channel.
    slow: BTreeMap<u32, Duration>,
    /// Longest extra access time in femtoseconds.
    jitter_fs: u64,
    jitter: ChaCha8Rng,
}

impl Fabric {
    /// The fabric of a whole device; `seed` is the run's.
    pub fn new(spec: &ArchSpec, config: &FabricConfig, seed: u64) -> Fabric {
        let hbm = TargetTiming::new(&config.hbm, 0);
        let mut next = spec.map.hbm.len() as u32 * config.hbm.channels;
        let state_buffer = TargetTiming::new(&config.state_buffer, next);
        next += spec.map.tpb.len() as u32 * config.state_buffer.channels;
        let csr = TargetTiming::new(&config.csr, next);
        // One more block for the constants, the registers and addresses nothing answers at.
        next += (spec.map.event_block_count() + 1) * config.csr.channels;
        let host = TargetTiming::new(&config.host, next);
        next += config.host.channels;
        Fabric {
            hbm,
            state_buffer,
            csr,
            host,
            busy_until: vec![Instant::START; next as usize],
            slow: BTreeMap::new(),
            jitter_fs: config.jitter.as_fs(),
            jitter: stream(seed, "fabric/jitter"),
        }
    }

    /// How long a beat occupies each channel.
    pub fn channel_beats(&self) -> Vec<Duration> {
        let kinds = [&self.hbm, &self.state_buffer, &self.csr, &self.host];
        let of = |channel: u32| (kinds.iter().rev()).find(|timing| timing.first_channel <= channel);
        (0..self.channels() as u32)
            .map(|channel| of(channel).map_or(Duration::ZERO, |timing| timing.beat))
            .collect()
    }

    /// Name of every channel, by number.
    pub fn channel_names(&self) -> Vec<String> {
        let kinds = [
            ("HBM", &self.hbm),
            ("State Buffer", &self.state_buffer),
            ("CSR", &self.csr),
            ("host", &self.host),
        ];
        let of_one = |kind: usize| kinds[kind].1.channel_mask as usize + 1;
        let first = |kind: usize| match kinds.get(kind) {
            Some((_, timing)) => timing.first_channel as usize,
            None => self.channels(),
        };
        (0..self.channels())
            .map(|channel| {
                let kind = (0..kinds.len()).rfind(|kind| first(*kind) <= channel);
                let kind = kind.unwrap_or_default();
                let within = channel - first(kind);
                let (name, many) = (kinds[kind].0, of_one(kind));
                match (first(kind + 1) - first(kind) > many, many) {
                    (false, 1) => name.to_string(),
                    (false, _) => format!("{name} channel {within}"),
                    (true, 1) => format!("{name} {within}"),
                    (true, _) => format!("{name} {} channel {}", within / many, within % many),
                }
            })
            .collect()
    }

    /// Channels of the whole device.
    pub fn channels(&self) -> usize {
        self.busy_until.len()
    }

    /// Where an access goes. One that no memory answers goes where CSRs are: the error response
    /// comes back as fast (C).
    pub fn route(&self, memory: &PhysicalMemory, at: Addr, len: u64) -> Route {
        self.route_near(memory, at, len, &mut Nearby::default())
    }

    /// As [`Fabric::route`], looking first where the last access with the same `near` went.
    pub fn route_near(
        &self,
        memory: &PhysicalMemory,
        at: Addr,
        len: u64,
        near: &mut Nearby,
    ) -> Route {
        let place = (memory.resolve_near(at, len, near)).map_err(|error| error.reason);
        let (kind, timing, target, offset) = match place {
            Ok(place) => match place.target {
                Target::Hbm { stack } => (Kind::Hbm, &self.hbm, u32::from(stack), place.offset),
                Target::StateBuffer { core } => {
                    let core = u32::from(core);
                    (Kind::StateBuffer, &self.state_buffer, core, place.offset)
                }
                Target::Host => (Kind::Host, &self.host, 0, place.offset),
                Target::EventBlock { block } => (Kind::Csr, &self.csr, 1 + block, place.offset),
                Target::Constant | Target::UdmaRegisters { .. } => (Kind::Csr, &self.csr, 0, 0),
            },
            Err(_) => (Kind::Csr, &self.csr, 0, 0),
        };
        Route {
            kind,
            channel: timing.channel(target, offset),
            place,
        }
    }

    /// Issues a read of `beats` beats at `now`.
    pub fn read(&mut self, now: Instant, route: Route, beats: u32) -> Times {
        let timing = self.timing(route.kind);
        let (request, access, response) = (timing.request, timing.read, timing.response);
        let (served_from, served) = self.serve(now + request, route, beats);
        Times {
            served_from,
            served,
            done: served + access + self.delay(route),
            response,
        }
    }

    /// Issues a write whose last beat leaves the engine at `left`.
    pub fn write(&mut self, left: Instant, route: Route, beats: u32) -> Times {
        let timing = self.timing(route.kind);
        let (request, access, response) = (timing.request, timing.write, timing.response);
        let (served_from, served) = self.serve(left + request, route, beats);
        Times {
            served_from,
            served,
            done: served + access + self.delay(route),
            response,
        }
    }

    /// Fault injection: each access to a channel takes longer by so much.
    pub fn slow_down(&mut self, route: Route, by: Duration) {
        self.slow.insert(route.channel, by);
    }

    fn timing(&self, kind: Kind) -> &TargetTiming {
        match kind {
            Kind::Hbm => &self.hbm,
            Kind::StateBuffer => &self.state_buffer,
            Kind::Csr => &self.csr,
            Kind::Host => &self.host,
        }
    }

    /// Occupies the channel for `beats` beats from `arrival` on; returns from when until when.
    fn serve(&mut self, arrival: Instant, route: Route, beats: u32) -> (Instant, Instant) {
        let occupied = self.timing(route.kind).beat.as_fs() * u64::from(beats);
        let busy_until = &mut self.busy_until[route.channel()];
        let from = arrival.max(*busy_until);
        let served = from + Duration::from_fs(occupied);
        *busy_until = served;
        (from, served)
    }

    /// Extra time of an access: of a slow channel, and drawn.
    fn delay(&mut self, route: Route) -> Duration {
        let slow = self.slow.get(&route.channel).copied();
        slow.unwrap_or(Duration::ZERO) + self.draw_jitter()
    }

    fn draw_jitter(&mut self) -> Duration {
        match self.jitter_fs {
            0 => Duration::ZERO,
            most => Duration::from_fs(self.jitter.random_range(0..=most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn cayman() -> (Fabric, PhysicalMemory) {
        let config = Config::builtin("cayman").unwrap().unwrap();
        let spec = config.arch().spec();
        let memory = PhysicalMemory::new(spec, 1 << 20).unwrap();
        (Fabric::new(spec, &config.values.fabric, 0), memory)
    }

    #[test]
    fn every_kind_of_target_has_channels_of_its_own() {
        let (fabric, memory) = cayman();
        let map = &crate::arch::Arch::V3.spec().map;
        let mut channels: Vec<usize> = [
            map.hbm[0].base,
            Addr(map.hbm[0].base.0 + 256),
            map.hbm[3].base,
            map.tpb[0],
            map.tpb[7],
            map.event_block(0).unwrap(),
            map.event_block(27).unwrap(),
            map.event_set,
            map.host,
        ]
        .into_iter()
        .map(|at| fabric.route(&memory, at, 4).channel())
        .collect();
        assert!(channels.iter().all(|channel| *channel < fabric.channels()));
        channels.sort();
        channels.dedup();
        assert_eq!(channels.len(), 9);
    }

    #[test]
    fn a_busy_channel_delays_and_another_does_not() {
        let (mut fabric, memory) = cayman();
        let near = fabric.route(&memory, Addr(0), 256);
        let far = fabric.route(&memory, Addr(256), 256);
        let first = fabric.read(Instant::START, near, 8);
        let second = fabric.read(Instant::START, near, 8);
        let third = fabric.read(Instant::START, far, 8);
        // 256 bytes at 750 GB/s over 32 channels: 10.92 ns.
        assert_eq!((second.done - first.done).as_fs(), 8 * 1_365_334);
        assert_eq!(third.done, first.done);
    }
}
