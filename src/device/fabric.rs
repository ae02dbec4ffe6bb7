//! The way from an engine to memory and back: which channel a burst goes to, when its bytes are
//! sampled or become visible, when the engine hears of it.
//!
//! HBM has its own model (`hbm`). Any other channel is a server: bursts reach it in the order they were
//! issued, each occupies it for its share of the bandwidth, then takes the access latency; times are
//! fixed when a burst is issued. All of it is modelled (C); the figures live in `sim-configs/`.

use super::hbm::{Hbm, Timed};
use super::request::{BEAT_BYTES, InFlight, Request, Times};
use crate::arch::{ArchSpec, EngineId};
use crate::config::{Config, TargetConfig};
use crate::dram::{Block, Counts, Kind as Way};
use crate::memory::{Nearby, PhysicalMemory, Target};
use crate::sim::{Duration, Instant, stream};
use crate::units::{Addr, BytesPerSecond};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// Where a burst goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    kind: Kind,
    /// Channel, counted over the whole device.
    channel: u32,
    /// Where the memory behind all stacks has it, if it goes to HBM.
    hbm_address: u64,
    hbm_block: Block,
}

impl Route {
    /// Whether it goes to a State Buffer.
    pub fn is_state_buffer(self) -> bool {
        self.kind == Kind::StateBuffer
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
    hbm: Hbm,
    hbm_stack_bytes: u64,
    hbm_stacks: usize,
    state_buffer: TargetTiming,
    csr: TargetTiming,
    host: TargetTiming,
    /// When each channel is free again.
    busy_until: Vec<Instant>,
    /// Extra time of each access to a slow channel.
    slow: BTreeMap<u32, Duration>,
    /// Room for [`Fabric::advance`].
    timed: Vec<Timed>,
    /// Longest extra access time in femtoseconds.
    jitter_fs: u64,
    jitter: ChaCha8Rng,
}

impl Fabric {
    /// The fabric of a whole device; `seed` is the run's.
    pub fn new(spec: &ArchSpec, config: &Config, seed: u64) -> Fabric {
        let values = &config.values.fabric;
        let hbm = Hbm::new(&values.hbm, &config.memory);
        let mut next = hbm.channels() as u32;
        let state_buffer = TargetTiming::new(&values.state_buffer, next);
        next += spec.map.tpb.len() as u32 * values.state_buffer.channels;
        let csr = TargetTiming::new(&values.csr, next);
        // One more block for the constants, the registers and addresses nothing answers at.
        next += (spec.map.event_block_count() + 1) * values.csr.channels;
        let host = TargetTiming::new(&values.host, next);
        next += values.host.channels;
        Fabric {
            hbm_stack_bytes: spec.map.hbm.first().map_or(0, |stack| stack.populated),
            hbm_stacks: spec.map.hbm.len(),
            hbm,
            state_buffer,
            csr,
            host,
            busy_until: vec![Instant::START; next as usize],
            slow: BTreeMap::new(),
            timed: Vec::new(),
            jitter_fs: values.jitter.as_fs(),
            jitter: stream(seed, "fabric/jitter"),
        }
    }

    /// How long a beat occupies each channel, at least: on those of HBM no time at all, if a queued write has
    /// the data for a read.
    pub fn channel_beats(&self) -> Vec<Duration> {
        let mut beats = vec![Duration::ZERO; self.hbm.channels()];
        for (timing, channels) in self.servers() {
            beats.extend(vec![timing.beat; channels]);
        }
        beats
    }

    /// Name of every channel, by number.
    pub fn channel_names(&self) -> Vec<String> {
        let per_stack = self.hbm.channels() / self.hbm_stacks.max(1);
        let mut names = names("HBM", self.hbm.channels(), per_stack);
        for (name, (timing, channels)) in ["State Buffer", "CSR", "host"].iter().zip(self.servers())
        {
            let of_one = timing.channel_mask as usize + 1;
            names.extend(self::names(name, channels, of_one));
        }
        names
    }

    /// The targets that are servers, and how many channels each kind has.
    fn servers(&self) -> [(&TargetTiming, usize); 3] {
        let span = |from: &TargetTiming, until: u32| (until - from.first_channel) as usize;
        let end = self.channels() as u32;
        [
            (
                &self.state_buffer,
                span(&self.state_buffer, self.csr.first_channel),
            ),
            (&self.csr, span(&self.csr, self.host.first_channel)),
            (&self.host, span(&self.host, end)),
        ]
    }

    /// What the controller of each HBM channel has done.
    pub fn hbm_counts(&self) -> impl Iterator<Item = &Counts> {
        self.hbm.counts()
    }

    /// Channels of the whole device.
    pub fn channels(&self) -> usize {
        self.busy_until.len()
    }

    /// Where an access goes. One that no memory answers goes where CSRs are: the error response
    /// comes back as fast (C).
    pub fn route(&mut self, memory: &PhysicalMemory, at: Addr, len: u64) -> Route {
        self.route_near(memory, at, len, &mut Nearby::default())
    }

    /// As [`Fabric::route`], looking first where the last access with the same `near` went.
    // In registers: a copy of what has just been stored stalls.
    #[inline(always)]
    pub fn route_near(
        &mut self,
        memory: &PhysicalMemory,
        at: Addr,
        len: u64,
        near: &mut Nearby,
    ) -> Route {
        let (kind, timing, target, offset) = match memory.resolve_near(at, len, near) {
            Ok(place) => match place.target {
                Target::Hbm { stack } => {
                    let stack = u64::from(stack);
                    let hbm_address = stack * self.hbm_stack_bytes + place.offset;
                    let hbm_block = self.hbm.block(stack, place.offset);
                    return Route {
                        kind: Kind::Hbm,
                        channel: hbm_block.channel(),
                        hbm_address,
                        hbm_block,
                    };
                }
                Target::StateBuffer { core } => {
                    let core = u32::from(core);
                    (Kind::StateBuffer, &self.state_buffer, core, place.offset)
                }
                Target::Host => (Kind::Host, &self.host, 0, place.offset),
                Target::EventBlock { block } => (Kind::Csr, &self.csr, 1 + block, place.offset),
                Target::Constant | Target::UdmaRegisters { .. } | Target::InertRegisters { .. } => {
                    (Kind::Csr, &self.csr, 0, 0)
                }
            },
            Err(_) => (Kind::Csr, &self.csr, 0, 0),
        };
        Route {
            kind,
            channel: timing.channel(target, offset),
            hbm_address: 0,
            hbm_block: Block::default(),
        }
    }

    /// Sends an access on its way. Returns its times if they are known now; if not,
    /// [`Fabric::advance`] tells them.
    #[inline(always)]
    pub(super) fn submit(
        &mut self,
        engine: EngineId,
        request: Request,
        route: Route,
    ) -> Option<Times> {
        let mut times = match route.kind {
            Kind::Hbm => self
                .hbm
                .submit(engine, request, route.hbm_address, route.hbm_block)?,
            _ => self.serve(request.kind, request.issued, route, request.beats()),
        };
        times.done = times.done + self.delay(route.channel);
        Some(times)
    }

    /// A write that nobody waits for in a controller's queue: records of completions and the like.
    pub fn post(&mut self, left: Instant, route: Route, beats: u32) -> Times {
        let mut times = match route.kind {
            Kind::Hbm => self.hbm.at_least(Way::Write, left, beats),
            _ => self.serve(Way::Write, left, route, beats),
        };
        times.done = times.done + self.delay(route.channel);
        times
    }

    /// When HBM acts next without anybody's doing: before everybody else, if others act at that instant.
    pub fn next_event(&self) -> Instant {
        self.hbm.next_event()
    }

    /// Lets HBM act up to and including the first instant at which the times of accesses become known, which
    /// are appended, but not past `until`, which is not before it next wants to. Returns when it acted last.
    pub fn advance(
        &mut self,
        until: Instant,
        told: &mut Vec<(EngineId, InFlight, Times)>,
    ) -> Instant {
        let mut timed = std::mem::take(&mut self.timed);
        let acted = self.hbm.advance(until, &mut timed);
        for mut access in timed.drain(..) {
            access.times.done = access.times.done + self.delay(access.channel);
            told.push((access.engine, access.request.access, access.times));
        }
        self.timed = timed;
        acted
    }

    /// Fault injection: each access to a channel takes longer by so much.
    pub fn slow_down(&mut self, route: Route, by: Duration) {
        self.slow.insert(route.channel, by);
    }

    /// Of a kind that is a server. HBM never asks.
    fn timing(&self, kind: Kind) -> &TargetTiming {
        match kind {
            Kind::StateBuffer => &self.state_buffer,
            Kind::Csr | Kind::Hbm => &self.csr,
            Kind::Host => &self.host,
        }
    }

    /// An access that occupies a server for `beats` beats.
    fn serve(&mut self, kind: Way, issued: Instant, route: Route, beats: u32) -> Times {
        let timing = self.timing(route.kind);
        let access = match kind {
            Way::Read => timing.read,
            Way::Write => timing.write,
        };
        let (arrived, response) = (issued + timing.request, timing.response);
        let occupied = Duration::from_fs(timing.beat.as_fs() * u64::from(beats));
        let busy_until = &mut self.busy_until[route.channel()];
        let served_from = arrived.max(*busy_until);
        let served = served_from + occupied;
        *busy_until = served;
        Times {
            arrived,
            served_from,
            served,
            done: served + access,
            response,
        }
    }

    /// Extra time of an access: of a slow channel, and drawn.
    #[inline]
    fn delay(&mut self, channel: u32) -> Duration {
        match self.slow.is_empty() && self.jitter_fs == 0 {
            true => Duration::ZERO,
            false => self.look_up_delay(channel),
        }
    }

    #[cold]
    fn look_up_delay(&mut self, channel: u32) -> Duration {
        let slow = self.slow.get(&channel).copied();
        slow.unwrap_or(Duration::ZERO) + self.draw_jitter()
    }

    fn draw_jitter(&mut self) -> Duration {
        match self.jitter_fs {
            0 => Duration::ZERO,
            most => Duration::from_fs(self.jitter.random_range(0..=most)),
        }
    }
}

/// Names of the channels of one kind of target, of which each has `of_one`.
fn names(kind: &str, channels: usize, of_one: usize) -> Vec<String> {
    let name = |channel: usize| match (channels > of_one, of_one) {
        (false, 1) => kind.to_string(),
        (false, _) => format!("{kind} channel {channel}"),
        (true, 1) => format!("{kind} {channel}"),
        (true, _) => format!("{kind} {} channel {}", channel / of_one, channel % of_one),
    };
    (0..channels).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cayman() -> (Fabric, PhysicalMemory) {
        let config = Config::builtin("cayman").unwrap().unwrap();
        let spec = config.arch().spec();
        let memory = PhysicalMemory::new(spec, 1 << 20).unwrap();
        (Fabric::new(spec, &config, 0), memory)
    }

    #[test]
    fn every_kind_of_target_has_channels_of_its_own() {
        let (mut fabric, memory) = cayman();
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
        let names = fabric.channel_names();
        assert_eq!(names.len(), fabric.channels());
        assert_eq!(fabric.channel_beats().len(), fabric.channels());
        let mut name = |at| names[fabric.route(&memory, at, 4).channel()].as_str();
        assert_eq!(name(map.hbm[0].base), "HBM 0 channel 0");
        assert!(name(map.hbm[3].base).starts_with("HBM 3 channel "));
        assert_eq!(name(map.tpb[7]), "State Buffer 7 channel 0");
        assert_eq!(name(map.host), "host");
    }

    fn read(fabric: &mut Fabric, memory: &PhysicalMemory, at: u64) -> Option<Times> {
        let route = fabric.route(memory, Addr(at), 256);
        let request = Request {
            access: InFlight::Read { burst: at },
            kind: Way::Read,
            issued: Instant::START,
            len: 256,
        };
        fabric.submit(EngineId(0), request, route)
    }

    /// What must wait is told later, once, and not before what it waits for.
    #[test]
    fn a_busy_channel_delays_and_another_does_not() {
        let (mut fabric, memory) = cayman();
        let first = read(&mut fabric, &memory, 0).unwrap();
        let other = read(&mut fabric, &memory, 256).unwrap();
        assert_eq!(first.done, other.done);
        // The bus is taken for longer and longer.
        let mut last = first;
        while let Some(next) = read(&mut fabric, &memory, 0) {
            assert!(
                next.served > last.served && next.served - first.served < Duration::from_ns(200)
            );
            last = next;
        }
        let mut told = Vec::new();
        while told.is_empty() {
            let next = fabric.next_event();
            assert!(next < Instant::NEVER);
            fabric.advance(next, &mut told);
        }
        let [(engine, access, times)] = told[..] else {
            panic!("{told:?}");
        };
        assert_eq!((engine, access), (EngineId(0), InFlight::Read { burst: 0 }));
        assert!(times.served > last.served);
        assert_eq!(fabric.next_event(), Instant::NEVER);
    }

    #[test]
    fn a_server_takes_one_access_after_the_other() {
        let (mut fabric, memory) = cayman();
        let at = crate::arch::Arch::V3.spec().map.tpb[0].0;
        let first = read(&mut fabric, &memory, at).unwrap();
        let second = read(&mut fabric, &memory, at + 256).unwrap();
        assert_eq!(second.served_from, first.served);
    }
}
