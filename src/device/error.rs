//! What the device records when something is wrong with its input.

use super::compute::Reason;
use crate::arch::regs::general::{AXI_PARITY, AXI_RESPONSE, AXI_TIMEOUT};
use crate::arch::regs::{Direction, M2sError, S2mError};
use crate::arch::{EngineId, QueueId};
use crate::desc::Descriptor;
use crate::units::Addr;
use std::fmt;

/// An error bit of either half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorBit {
    /// Of the M2S half.
    M2s(M2sError),
    /// Of the S2M half.
    S2m(S2mError),
}

impl ErrorBit {
    /// The half that raises it.
    pub fn direction(self) -> Direction {
        match self {
            ErrorBit::M2s(_) => Direction::M2s,
            ErrorBit::S2m(_) => Direction::S2m,
        }
    }

    /// Its bit in the mask and cause registers.
    pub fn mask(self) -> u32 {
        match self {
            ErrorBit::M2s(error) => error.mask(),
            ErrorBit::S2m(error) => error.mask(),
        }
    }

    /// If an AXI master reports it: its number among them, and the kind of error as an index of its detection table
    /// (`arch::regs::general::AXI_ERROR_1`). A master has three bits in a row: parity, response, timeout.
    pub(super) fn axi(self) -> Option<(u64, u64)> {
        // The first bits: of descriptor reads, data and completion writes.
        let (first, masters) = match self {
            ErrorBit::M2s(_) => ([10, 7, 4], 0..3),
            ErrorBit::S2m(_) => ([8, 0, 13], 3..6),
        };
        let bit = self.mask().trailing_zeros();
        first.into_iter().zip(masters).find_map(|(first, master)| {
            let kind =
                [AXI_PARITY, AXI_RESPONSE, AXI_TIMEOUT].get(bit.checked_sub(first)? as usize)?;
            Some((master, *kind))
        })
    }

    /// The error in words.
    pub fn meaning(self) -> &'static str {
        match self {
            ErrorBit::M2s(error) => error.meaning(),
            ErrorBit::S2m(error) => error.meaning(),
        }
    }
}

/// What an error is about.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origin {
    /// The queue.
    pub queue: QueueId,
    /// Ring slot of the descriptor.
    pub slot: u32,
    /// The address accessed, or that of the descriptor itself for an error of its bits.
    pub at: Addr,
    /// The descriptor; zeros if it is about none.
    pub desc: Descriptor,
}

impl Origin {
    /// No descriptor of a queue in particular.
    pub fn of(queue: QueueId) -> Origin {
        Origin {
            queue,
            ..Origin::default()
        }
    }
}

/// The first occurrence of an error bit on an engine: which descriptor it was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceError {
    /// The engine.
    pub engine: EngineId,
    /// The bit.
    pub bit: ErrorBit,
    /// The queue.
    pub queue: QueueId,
    /// Ring slot of the descriptor.
    pub slot: u32,
    /// The address accessed, or that of the descriptor itself for an error of its bits.
    pub at: Addr,
    /// Whether it aborted the engine.
    pub fatal: bool,
    /// What the stream processor found wrong.
    pub reason: Option<Reason>,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let half = match self.bit.direction() {
            Direction::M2s => "m2s",
            Direction::S2m => "s2m",
        };
        write!(
            f,
            "{} {half} error bit {} ({}): queue {}, {} descriptor {}, address {}{}",
            self.engine,
            self.bit.mask().trailing_zeros(),
            self.bit.meaning(),
            self.queue,
            self.bit.direction().ring_name(),
            self.slot,
            self.at,
            if self.fatal {
                "; engine aborted"
            } else {
                "; not fatal"
            },
        )?;
        match self.reason {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}
