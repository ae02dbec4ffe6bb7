//! What the stations wait for at the end of a wake-up.

use super::activity::{Station, StationState};
use crate::sim::Instant;

/// What the stations wait for at the end of a wake-up.
pub(super) struct Needs {
    /// The cycle at which one of them can act; `u64::MAX` if that is not known.
    pub cycle: u64,
    /// When something fetched arrives; never, if none of them waits for it.
    pub at: Instant,
    /// The oldest read's data.
    pub read: bool,
    /// The oldest write's acknowledge of some queue.
    pub ack: bool,
    /// What the read and the write station are at; nothing if that is as before.
    pub stations: [Option<StationState>; 2],
}

impl Default for Needs {
    fn default() -> Needs {
        Needs {
            cycle: u64::MAX,
            at: Instant::NEVER,
            read: false,
            ack: false,
            stations: [None; 2],
        }
    }
}

impl Needs {
    /// One of them can act at this cycle.
    #[inline]
    pub fn cycle(&mut self, cycle: u64) {
        self.cycle = self.cycle.min(cycle);
    }

    /// A station is at this, unless it is at something that comes later in the list of states.
    #[inline]
    pub fn station(&mut self, station: Station, state: StationState) {
        let known = &mut self.stations[station as usize];
        *known = (*known).max(Some(state));
    }

    /// One of them can act at this instant.
    #[inline]
    pub fn at(&mut self, at: Instant) {
        self.at = self.at.min(at);
    }

    /// Whether an access issued in the cycle `issued` has not been answered in `timeout` cycles. It is said once: the
    /// access never was issued from then on. If it still has time, the engine must look again.
    pub fn overdue(&mut self, issued: &mut u64, timeout: u64, cycle: u64) -> bool {
        let Some(due) = issued.checked_add(timeout) else {
            return false;
        };
        if cycle < due {
            self.cycle(due);
            return false;
        }
        *issued = u64::MAX;
        true
    }
}
