//! Why a queue with work does not get on.

use super::engine::Engine;
use super::queue::Queue;
use crate::arch::EngineId;
use crate::arch::regs::{Direction, UdmaState};
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
}

/// What a queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallReason {
    /// Its engine aborted on an error.
    Aborted,
    /// Its engine is not in the normal state.
    NotStarted,
    /// Prefetch of a ring is off.
    PrefetchOff(Direction),
    /// Scheduling (M2S) or streaming (S2M) is off.
    SchedulingOff(Direction),
    /// A packet without its LAST descriptor.
    PacketIncomplete,
    /// Rx descriptors for a packet's data.
    RxDescriptors,
    /// An injected fault holds it for ever.
    Stuck,
    /// Nothing known: transfers are under way.
    Busy,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} queue {} ", self.engine, self.queue)?;
        match self.reason {
            StallReason::Aborted => f.write_str("belongs to an engine that aborted on an error"),
            StallReason::NotStarted => {
                f.write_str("belongs to an engine that was never put into the normal state")
            }
            StallReason::PrefetchOff(direction) => {
                write!(f, "has prefetch of its {} ring off", direction.ring_name())
            }
            StallReason::SchedulingOff(Direction::M2s) => f.write_str("has scheduling off"),
            StallReason::SchedulingOff(Direction::S2m) => f.write_str("has streaming off"),
            StallReason::PacketIncomplete => {
                f.write_str("waits for the LAST Tx descriptor of a packet")
            }
            StallReason::RxDescriptors => f.write_str("waits for Rx descriptors"),
            StallReason::Stuck => f.write_str("is stuck: an injected fault"),
            StallReason::Busy => f.write_str("is busy"),
        }
    }
}

impl Engine {
    /// What each queue that is not idle waits for.
    pub fn stalls(&self) -> impl Iterator<Item = Stall> {
        let busy = (0..self.queues.len() as u8).filter(|q| !self.queue_is_idle(*q));
        busy.map(|q| Stall {
            engine: self.id,
            queue: q,
            reason: self.stall_reason(&self.queues[usize::from(q)]),
        })
    }

    fn stall_reason(&self, queue: &Queue) -> StallReason {
        use Direction::{M2s, S2m};
        if self.states.contains(&UdmaState::Abort) {
            return StallReason::Aborted;
        }
        if self.states.iter().any(|state| *state != UdmaState::Normal) {
            return StallReason::NotStarted;
        }
        if queue.stuck {
            return StallReason::Stuck;
        }
        let rx = &queue.rings[S2m as usize];
        let starved = queue.packets.get(queue.written).is_some() && queue.rx.is_none();
        if starved && rx.fifo.is_empty() && rx.fetches.is_empty() {
            match (rx.to_fetch(), queue.prefetch_on[S2m as usize]) {
                (0, _) => return StallReason::RxDescriptors,
                (_, false) => return StallReason::PrefetchOff(S2m),
                _ => {}
            }
        }
        if queue.packets.is_empty() {
            let tx = &queue.rings[M2s as usize];
            return match (tx.to_fetch() > 0, queue.prefetch_on[0], queue.stream_on[0]) {
                (true, false, _) => StallReason::PrefetchOff(M2s),
                (_, _, false) => StallReason::SchedulingOff(M2s),
                _ => StallReason::PacketIncomplete,
            };
        }
        if !queue.stream_on[S2m as usize] {
            return StallReason::SchedulingOff(S2m);
        }
        StallReason::Busy
    }
}
