//! The packet being read: what the scheduler hands to the read station.

use super::computation::Intake;
use super::compute::Operation;
use super::error::Origin;
use crate::arch::QueueId;
use crate::config::ComputeConfig;
use crate::desc::Descriptor;
use crate::units::Addr;
use std::collections::VecDeque;

/// A Tx descriptor of the packet being read.
#[derive(Clone, Copy, Default)]
pub(super) struct Source {
    pub at: Addr,
    pub len: u32,
    pub slot: u32,
    pub desc: Descriptor,
}

impl Source {
    /// What an error of it is about.
    pub fn origin(&self, queue: QueueId) -> Origin {
        Origin {
            queue,
            slot: self.slot,
            at: self.at,
            desc: self.desc,
        }
    }
}

/// What is left to read of a packet.
#[derive(Default)]
pub(super) struct Job {
    /// Its queue; none if there is nothing to read.
    pub queue: Option<QueueId>,
    /// Sources not yet issued in full.
    pub sources: VecDeque<Source>,
    /// Bytes of the first of them already issued.
    pub offset: u32,
    /// Where the next burst goes if the packet is a compute packet.
    pub intake: Option<Intake>,
    /// How fast the sources are read.
    pub pace: Pace,
}

impl Job {
    /// Nothing is left to read.
    pub fn clear(&mut self) {
        self.queue = None;
        self.sources.clear();
        self.offset = 0;
        self.intake = None;
    }
}

/// How fast a packet's sources are read: in percent of copy throughput.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    percent: u32,
    /// The same for sources in a State Buffer.
    state_buffer: u32,
    /// What is left over of the cycles charged so far, in hundredths of a beat.
    owed: u32,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::new(COPY_PERCENT, COPY_PERCENT)
    }
}

/// Pace of a plain copy: a beat a cycle.
const COPY_PERCENT: u32 = 100;

impl Pace {
    fn new(percent: u32, state_buffer: u32) -> Pace {
        Pace {
            percent,
            state_buffer,
            owed: 0,
        }
    }

    /// The pace of an operation.
    pub fn of(operation: &Operation, config: &ComputeConfig) -> Pace {
        match operation {
            Operation::Reduce(_) => Pace::new(config.cce_percent, config.cce_percent),
            Operation::Transpose(_) => Pace::new(
                config.transpose_percent,
                config.transpose_state_buffer_percent,
            ),
            _ => Pace::default(),
        }
    }

    /// Cycles that a burst of so many beats keeps the read path.
    pub fn cycles(&mut self, beats: u32, from_state_buffer: bool) -> u64 {
        let percent = match from_state_buffer {
            true => self.state_buffer,
            false => self.percent,
        };
        if percent == COPY_PERCENT {
            return beats.into();
        }
        self.owed += beats * COPY_PERCENT;
        let cycles = self.owed / percent;
        self.owed %= percent;
        cycles.into()
    }
}
