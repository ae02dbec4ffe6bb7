//! Why a queue with work does not get on: what it waits for, since when, and which limit is in force.

use crate::arch::regs::Direction;
use crate::arch::{EngineId, QueueId};
use crate::units::{Addr, Cycles};
use std::fmt;

/// Why a queue with work does not get on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The engine.
    pub engine: EngineId,
    /// The queue.
    pub queue: QueueId,
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
                write!(
                    f,
                    "has prefetch disabled for its {} ring",
                    direction.ring_name()
                )?;
            }
            StallReason::SchedulingOff(Direction::M2s) => f.write_str("has scheduling disabled")?,
            StallReason::SchedulingOff(Direction::S2m) => f.write_str("has streaming disabled")?,
            StallReason::StreamDisabled(direction) => write!(
                f,
                "belongs to an engine stopped by {}.stream_cfg",
                half(direction)
            )?,
            StallReason::Limit(limit) => write!(f, "is stopped by {limit}, which is 0")?,
            StallReason::ShortFetch {
                direction,
                there,
                least,
            } => write!(
                f,
                "has {there} {ring} descriptors to fetch, but {half}.desc_pref_cfg_3 requires bursts of at least {least}",
                ring = direction.ring_name(),
                half = half(direction)
            )?,
            StallReason::PacketIncomplete => {
                f.write_str("waits for the LAST Tx descriptor of a packet")?;
            }
            StallReason::DataTail => f.write_str("waits for a data tail doorbell (tdrdtp_inc)")?,
            StallReason::RateLimit => {
                f.write_str("waits for tokens, but its rate limiter adds none")?;
            }
            StallReason::RxDescriptors => f.write_str("waits for Rx descriptors")?,
            StallReason::Lost => {
                f.write_str("has packets in flight whose Rx ring was reset; reset its Tx ring too")?
            }
            StallReason::Fetch(direction, at) => {
                write!(f, "waits for {} descriptors at {at}", direction.ring_name())?;
            }
            StallReason::Read(at) => write!(f, "waits for the data of a read at {at}")?,
            StallReason::Write(at) => {
                write!(f, "waits for the acknowledgement of a write at {at}")?;
            }
            StallReason::Records => f.write_str("waits for completion records to be written")?,
            StallReason::Stuck => f.write_str("is stuck because of an injected fault")?,
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
