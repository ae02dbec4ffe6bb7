//! A compute packet's work between read and write: its plan, the bytes that it holds, its result.

use super::compute::{CrcRun, Operation, Plan};
use super::error::Origin;

/// A compute packet's work.
pub(super) struct Computation {
    pub plan: Plan,
    /// Bytes of the sources that are swallowed, in order.
    pub sources: Vec<u8>,
    /// How many bytes have entered, swallowed or not.
    pub entered: usize,
    /// The data passes: its bytes, and what follows them, are the lane's.
    pub passes: bool,
    /// The checksum of what has passed; none before the first burst of it.
    pub checksum: Option<CrcRun>,
    /// The result; none until all sources have entered. Empty if it has passed.
    pub result: Option<Vec<u8>>,
    /// Bytes of the result that write bursts have taken.
    pub taken: u32,
    /// The packet's first data descriptor, for errors.
    pub origin: Origin,
}

impl Computation {
    /// `room` is a buffer to use again.
    pub fn new(plan: Plan, mut room: Vec<u8>, origin: Origin) -> Computation {
        let passes = plan.passes();
        room.resize(passes.map_or(plan.source_bytes, |(_, values)| values), 0);
        Computation {
            sources: room,
            passes: passes.is_some(),
            checksum: None,
            plan,
            entered: 0,
            result: None,
            taken: 0,
            origin,
        }
    }

    /// Where its source bytes go.
    pub fn intake(&self, packet: u64) -> Intake {
        let sent = self.plan.passes().map(|_| self.plan.sent_bytes());
        Intake {
            packet,
            next: 0,
            swallowed: self.sources.len() as u32,
            left: self.plan.source_bytes as u32,
            trailer: sent.unwrap_or_default(),
        }
    }

    /// Rows of the result, if each goes to a State Buffer partition of its own.
    pub fn rows(&self) -> Option<Rows> {
        let Operation::Transpose(transpose) = &self.plan.operation else {
            return None;
        };
        let [_, rows, columns, _] = transpose.dims.0;
        Some(Rows {
            count: columns.into(),
            bytes: u64::from(rows) * transpose.element_bytes as u64,
        })
    }
}

/// Rows of a result.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub count: u64,
    /// Bytes of one.
    pub bytes: u64,
}

/// Where the source bytes of the compute packet being read go.
pub(super) struct Intake {
    /// Its number in the queue.
    pub packet: u64,
    /// Offset of the next burst among its source bytes.
    next: u32,
    /// Bytes that are swallowed; those behind them pass.
    swallowed: u32,
    /// Bytes not yet issued.
    left: u32,
    /// Bytes of the lane that the last burst reserves for what is sent behind the data.
    trailer: u32,
}

impl Intake {
    /// What the next `len` bytes need beside their own space. Out of line, or `left` is compared before it is known
    /// that there is an intake: valgrind sees a jump on bytes that were never written.
    #[inline(never)]
    pub fn behind(&self, len: u32) -> u32 {
        if len == self.left { self.trailer } else { 0 }
    }

    /// The next `len` bytes are issued. Returns their offset if they are swallowed, nothing if they pass.
    pub fn issue(&mut self, len: u32) -> Option<u32> {
        let offset = self.next;
        self.next += len;
        self.left -= len;
        (offset < self.swallowed).then_some(offset)
    }

    /// Whether the next bytes pass.
    pub fn passes(&self) -> bool {
        self.next >= self.swallowed
    }
}
