//! Happens-before, kept as prefixes: of each queue, up to which packet all writes are visible and all
//! reads satisfied; of each host thread or sequencer, how far it has come.

/// What a point in the program knows to have happened of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Writes of packets below this are visible.
    pub visible: u32,
    /// Reads of packets below this are satisfied.
    pub read: u32,
}

/// What a point in the program knows to have happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock(Vec<Seen>);

impl Clock {
    pub fn of(&self, thread: usize) -> Seen {
        self.0.get(thread).copied().unwrap_or_default()
    }

    /// Learns of one thread.
    pub fn learn(&mut self, thread: usize, seen: Seen) {
        if self.0.len() <= thread {
            self.0.resize(thread + 1, Seen::default());
        }
        let known = &mut self.0[thread];
        known.visible = known.visible.max(seen.visible);
        known.read = known.read.max(seen.read);
    }

    /// Learns all that another point knows.
    pub fn join(&mut self, other: &Clock) {
        for (thread, seen) in other.0.iter().enumerate() {
            self.learn(thread, *seen);
        }
    }
}
