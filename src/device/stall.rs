//! Why a queue with work does not get on: what it waits for, since when, and which limit is in force.

use super::burst::Burst;
use super::engine::Engine;
use super::ring::Ring;
use crate::arch::EngineId;
use crate::arch::regs::{Direction, UdmaState};
use crate::sim::{Clock, Instant};
use crate::units::{Addr, Cycles};
use std::fmt;

/// Why a queue with work does not get on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The engine.
    pub engine: EngineId,
    /// The queue.
    pub queue: u8,
    /// What it waits for.
    pub reason: StallReason,
    /// The descriptor that waits, or is waited for: its ring and slot, if it is one.
    pub descriptor: Option<(Direction, u32)>,
    /// The UDMA cycle since when, if that is known.
    pub since: Option<Cycles>,
}

/// A register field that limits something, as far as it can stop a queue for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Descriptor fetches on their way.
    DescriptorReads(Direction),
    /// Data reads on their way.
    DataReads,
    /// Data writes on their way; whether the wide register sets it.
    DataWrites {
        /// `ostand_cfg_wr_2` rather than `ostand_cfg_wr`.
        wide: bool,
    },
    /// Packets in flight.
    Packets,
    /// Descriptors a queue may hold of the prefetch FIFO.
    FifoDepth(Direction),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::DescriptorReads(Direction::M2s) => "m2s.ostand_cfg.desc_rd",
            Limit::DescriptorReads(Direction::S2m) => "s2m.ostand_cfg_rd.desc_rd",
            Limit::DataReads => "m2s.ostand_cfg.data_rd",
            Limit::DataWrites { wide: false } => "s2m.ostand_cfg_wr.data_wr",
            Limit::DataWrites { wide: true } => "s2m.ostand_cfg_wr_2.data_wr",
            Limit::Packets => "m2s.data_cfg.max_pkt_limit",
            Limit::FifoDepth(Direction::M2s) => "desc_pref_cfg.fifo_depth of its tx ring",
            Limit::FifoDepth(Direction::S2m) => "desc_pref_cfg.fifo_depth of its rx ring",
        })
    }
}

/// What a queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallReason {
    /// Its engine aborted on an error.
    Aborted,
    /// A half of its engine is not in the normal state.
    NotRunning(Direction),
    /// Prefetch of a ring is off.
    PrefetchOff(Direction),
    /// Scheduling (M2S) or streaming (S2M) is off.
    SchedulingOff(Direction),
    /// The stream of a half is disabled.
    StreamDisabled(Direction),
    /// A limit of 0.
    Limit(Limit),
    /// A fetch shorter than the least burst that the registers allow.
    ShortFetch {
        /// Which ring.
        direction: Direction,
        /// Descriptors there are to fetch.
        there: u64,
        /// Descriptors of the least burst.
        least: u64,
    },
    /// A packet without its LAST descriptor.
    PacketIncomplete,
    /// The data tail does not cover a packet.
    DataTail,
    /// Tokens of a rate limiter that fills none.
    RateLimit,
    /// Rx descriptors for a packet's data.
    RxDescriptors,
    /// The Rx ring was reset under packets: they will never be acknowledged.
    Lost,
    /// Descriptors on their way.
    Fetch(Direction, Addr),
    /// A data read on its way.
    Read(Addr),
    /// A data write that is not acknowledged.
    Write(Addr),
    /// Completion records or notifications on their way.
    Records,
    /// An injected fault holds it for ever.
    Stuck,
    /// Its turn: other queues are served.
    Turn,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} queue {} ", self.engine, self.queue)?;
        match self.reason {
            StallReason::Aborted => f.write_str("belongs to an engine that aborted on an error")?,
            StallReason::NotRunning(direction) => write!(
                f,
                "belongs to an engine whose {} is not in the normal state",
                half(direction)
            )?,
            StallReason::PrefetchOff(direction) => {
                write!(f, "has prefetch of its {} ring off", direction.ring_name())?;
            }
            StallReason::SchedulingOff(Direction::M2s) => f.write_str("has scheduling off")?,
            StallReason::SchedulingOff(Direction::S2m) => f.write_str("has streaming off")?,
            StallReason::StreamDisabled(direction) => write!(
                f,
                "belongs to an engine whose {}.stream_cfg stops it",
                half(direction)
            )?,
            StallReason::Limit(limit) => write!(f, "is stopped by {limit}, which is 0")?,
            StallReason::ShortFetch {
                direction,
                there,
                least,
            } => write!(
                f,
                "has {there} {ring} descriptors to fetch, and {half}.desc_pref_cfg_3 asks for bursts of at \
                 least {least}",
                ring = direction.ring_name(),
                half = half(direction)
            )?,
            StallReason::PacketIncomplete => {
                f.write_str("waits for the LAST Tx descriptor of a packet")?;
            }
            StallReason::DataTail => f.write_str("waits for a doorbell of its data tail")?,
            StallReason::RateLimit => {
                f.write_str("waits for tokens, and its rate limiter fills none")?;
            }
            StallReason::RxDescriptors => f.write_str("waits for Rx descriptors")?,
            StallReason::Lost => f.write_str(
                "has packets whose Rx ring was reset under them; its Tx ring must be reset too",
            )?,
            StallReason::Fetch(direction, at) => {
                write!(f, "waits for {} descriptors at {at}", direction.ring_name())?;
            }
            StallReason::Read(at) => write!(f, "waits for the data of a read at {at}")?,
            StallReason::Write(at) => {
                write!(f, "waits for the acknowledgement of a write at {at}")?;
            }
            StallReason::Records => f.write_str("has completion records on their way")?,
            StallReason::Stuck => f.write_str("is stuck: an injected fault")?,
            StallReason::Turn => f.write_str("waits for its turn")?,
        }
        if let Some((direction, slot)) = self.descriptor {
            write!(f, ", {} slot {slot}", direction.ring_name())?;
        }
        match self.since {
            Some(since) => write!(f, ", since cycle {since}"),
            None => Ok(()),
        }
    }
}

fn half(direction: Direction) -> &'static str {
    match direction {
        Direction::M2s => "m2s",
        Direction::S2m => "s2m",
    }
}

/// What a queue waits for, the descriptor, and since when.
type Cause = (StallReason, Option<(Direction, u32)>, Option<Instant>);

fn cause(reason: StallReason) -> Cause {
    (reason, None, None)
}

/// A burst that is not answered.
fn open(reason: fn(Addr) -> StallReason, direction: Direction, burst: &Burst) -> Cause {
    let descriptor = Some((direction, burst.slot));
    (reason(burst.at), descriptor, Some(burst.issued))
}

impl Ring {
    /// The oldest descriptor that waits to be fetched.
    fn unfetched(&self, direction: Direction, reason: StallReason) -> Cause {
        let slot = self.slot(self.fetch_from().0);
        (reason, Some((direction, slot)), self.rung_at)
    }
}

impl Engine {
    /// What each queue that is not idle waits for.
    pub fn stalls(&self, clock: &Clock) -> impl Iterator<Item = Stall> {
        let busy = (0..self.queues.len()).filter(|q| !self.queue_is_idle(*q as u8));
        busy.map(move |q| {
            let (reason, descriptor, since) = self.stall(q);
            Stall {
                engine: self.id,
                queue: q as u8,
                reason,
                descriptor,
                since: since.map(|at| clock.cycle_at(at)),
            }
        })
    }

    fn stall(&self, q: usize) -> Cause {
        use Direction::{M2s, S2m};
        let queue = &self.queues[q];
        if self.states.contains(&UdmaState::Abort) {
            return cause(StallReason::Aborted);
        }
        if let Some(lost) = queue.lost {
            return (StallReason::Lost, Some((M2s, lost.slot)), Some(lost.since));
        }
        for direction in Direction::ALL {
            if self.states[direction as usize] != UdmaState::Normal {
                return cause(StallReason::NotRunning(direction));
            }
        }
        if queue.stuck {
            return cause(StallReason::Stuck);
        }
        let Some(packet) = queue.packets.front() else {
            return self.stalled_start(q);
        };
        let began = (M2s, packet.slot);
        let writing = queue.packets.get(queue.written);
        if let Some(packet) = writing.filter(|_| queue.rx.is_none() && queue.available() > 0) {
            let began = Some((M2s, packet.slot));
            if !queue.stream_on[S2m as usize] {
                return (StallReason::SchedulingOff(S2m), began, Some(packet.started));
            }
            if self.limits.stream_disabled[S2m as usize] {
                return (
                    StallReason::StreamDisabled(S2m),
                    began,
                    Some(packet.started),
                );
            }
            let rx = &queue.rings[S2m as usize];
            if rx.fifo.is_empty() && rx.fetches.is_empty() && rx.to_fetch() == 0 {
                return (StallReason::RxDescriptors, began, Some(packet.started));
            }
            if let Some(stalled) = self.stalled_fetch(S2m, q) {
                return stalled;
            }
        }
        if let Some(write) = queue.writes.front() {
            return open(StallReason::Write, S2m, &write.burst);
        }
        if let Some(burst) = self.reader.oldest() {
            return open(StallReason::Read, M2s, burst);
        }
        let reason = if writing.is_some() && !queue.stream_on[S2m as usize] {
            StallReason::SchedulingOff(S2m)
        } else if self.limits.data_reads == 0 {
            StallReason::Limit(Limit::DataReads)
        } else if self.limits.writes == 0 {
            let wide = self.spec.caps.wide_write_limit;
            StallReason::Limit(Limit::DataWrites { wide })
        } else {
            StallReason::Turn
        };
        (reason, Some(began), Some(packet.started))
    }

    /// Why no packet of a queue has started.
    fn stalled_start(&self, q: usize) -> Cause {
        use Direction::M2s;
        let queue = &self.queues[q];
        let tx = &queue.rings[M2s as usize];
        if tx.outstanding() == 0 {
            return cause(StallReason::Records);
        }
        if let Some(stalled) = self.stalled_fetch(M2s, q) {
            return stalled;
        }
        let Some(first) = tx.fifo.front() else {
            return tx.unfetched(M2s, StallReason::Turn);
        };
        let last = tx.fifo.iter().find(|tx| tx.closes);
        let reason = match last {
            _ if !queue.stream_on[M2s as usize] => StallReason::SchedulingOff(M2s),
            _ if self.limits.stream_disabled[M2s as usize] => StallReason::StreamDisabled(M2s),
            None => StallReason::PacketIncomplete,
            Some(last) if !tx.data_covers(last.nth) => StallReason::DataTail,
            Some(_) if self.limits.packets == 0 => StallReason::Limit(Limit::Packets),
            Some(_) if queue.rate_limit.never_fills() => StallReason::RateLimit,
            Some(_) if self.limits.stream_rate_limit.never_fills() => StallReason::RateLimit,
            Some(_) => StallReason::Turn,
        };
        (reason, Some((M2s, first.slot)), Some(first.ready_at))
    }

    /// Why a ring's descriptors do not come; nothing, if there are some or none are announced.
    fn stalled_fetch(&self, direction: Direction, q: usize) -> Option<Cause> {
        let (queue, d) = (&self.queues[q], direction as usize);
        let ring = &queue.rings[d];
        // Of a Tx packet all descriptors must be there.
        let there = match direction {
            Direction::M2s => queue.whole_packets > 0,
            Direction::S2m => !ring.fifo.is_empty(),
        };
        if there {
            return None;
        }
        if let Some(fetch) = ring.fetches.front() {
            let slot = Some((direction, ring.slot(fetch.first)));
            return Some((
                StallReason::Fetch(direction, fetch.at),
                slot,
                Some(fetch.issued),
            ));
        }
        if ring.to_fetch() == 0 {
            return None;
        }
        let least = self.least_fetch(direction, q);
        let reason = if !queue.prefetch_on[d] {
            StallReason::PrefetchOff(direction)
        } else if self.limits.prefetch_stopped[d] {
            StallReason::StreamDisabled(direction)
        } else if self.limits.descriptor_reads[d] == 0 {
            StallReason::Limit(Limit::DescriptorReads(direction))
        } else if queue.fifo_depth[d] == 0 {
            StallReason::Limit(Limit::FifoDepth(direction))
        } else if ring.contiguous() < least {
            StallReason::ShortFetch {
                direction,
                there: ring.contiguous(),
                least,
            }
        } else {
            return None;
        };
        Some(ring.unfetched(direction, reason))
    }
}
