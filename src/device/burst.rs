//! What read and write bursts have in common, and what an observer is told when they are over.

use super::activity::{Access, Activity};
use super::engine::Outbox;
use super::fabric::Times;
use crate::arch::regs::Direction;
use crate::desc::Descriptor;
use crate::sim::Instant;
use crate::units::Addr;

/// A data burst under way.
pub(super) struct Burst {
    pub at: Addr,
    pub len: u32,
    /// Its descriptor and that one's slot in the ring, and whether it is its last burst.
    pub desc: Descriptor,
    pub slot: u32,
    pub last: bool,
    /// When a read was issued, or the last beat of a write left the engine; the channel it went to, and its way
    /// once that is known.
    pub issued: Instant,
    pub channel: u32,
    pub times: Times,
    /// Cycle of its issue; never once it has been reported as timed out.
    pub issued_at: u64,
    /// It has reached its target and will never be answered: an injected fault.
    pub lost: bool,
    /// When the engine has the data or the acknowledge; never, as long as that is not known.
    pub answered: Instant,
}

impl Burst {
    /// Whether it has reached its target.
    pub fn has_landed(&self) -> bool {
        self.lost || self.answered < Instant::NEVER
    }

    /// What an observer is told of it.
    pub fn access(&self) -> Access {
        Access {
            at: self.at,
            len: self.len,
            channel: self.channel,
            issued: self.issued,
            times: self.times,
            answered: self.answered,
        }
    }

    /// It is over: tells an observer that its descriptor is, if it was the last.
    pub fn end(&self, direction: Direction, queue: u8, begun: &mut Begun, out: &mut Outbox) {
        let since = *begun.since.get_or_insert(self.issued);
        begun.bytes += self.len;
        if !self.last {
            return;
        }
        let bytes = std::mem::take(begun).bytes;
        out.tell(|| Activity::Descriptor {
            direction,
            queue,
            slot: self.slot,
            desc: self.desc,
            bytes,
            since,
        });
    }
}

/// A descriptor whose bursts are ending: when the first was issued, and the bytes of those that are over.
#[derive(Clone, Copy, Default)]
pub(super) struct Begun {
    since: Option<Instant>,
    bytes: u32,
}
