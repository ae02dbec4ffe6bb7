//! The way from the fabric to HBM: every access goes through the controllers of [`crate::dram`].
//!
//! An access to a pseudo-channel that nobody waits for and that is soon free is timed when it is issued: there
//! is nothing to choose between. Any other waits in the controller's queue, first ready first served, and is
//! timed when its last command is sent. Modelled (C): requests are taken in the order they were issued,
//! though a write reaches the controller a few beats later than a read of the same moment.

use super::request::{BEAT_BYTES, Request, Times};
use crate::arch::EngineId;
use crate::config::HbmConfig;
use crate::dram::{Block, Completion, Counts, Dram, DramConfig, Kind};
use crate::sim::{Duration, Instant};
use std::collections::VecDeque;

/// An access in a controller's queue.
struct Pending {
    engine: EngineId,
    request: Request,
    channel: u32,
    arrived: Instant,
    /// The end of its data, and how many accesses that was, once known.
    served: Option<(Instant, u64)>,
}

/// All HBM stacks.
pub(super) struct Hbm {
    latencies: HbmConfig,
    dram: Dram,
    /// How long an access occupies the data bus of a pseudo-channel, and its bytes.
    access: Duration,
    access_bytes: u32,
    /// Accesses in the controllers' queues, and which entries are free.
    pending: Vec<Pending>,
    unused: Vec<u32>,
    /// Writes in the queue of each pseudo-channel, oldest first: they become visible in this order.
    writes: Vec<VecDeque<u32>>,
    completions: Vec<Completion>,
    /// When a controller acts next.
    next: Instant,
}

/// An access that has been timed.
pub(super) struct Timed {
    pub engine: EngineId,
    pub request: Request,
    pub channel: u32,
    pub times: Times,
}

impl Hbm {
    pub fn new(latencies: &HbmConfig, memory: &DramConfig) -> Hbm {
        let dram = Dram::new(memory);
        Hbm {
            latencies: latencies.clone(),
            access: memory.beat(memory.device.access_bytes),
            access_bytes: memory.device.access_bytes,
            pending: Vec::new(),
            unused: Vec::new(),
            writes: vec![VecDeque::new(); dram.counts().count()],
            dram,
            completions: Vec::new(),
            next: Instant::NEVER,
        }
    }

    /// Pseudo-channels of all stacks.
    pub fn channels(&self) -> usize {
        self.writes.len()
    }

    /// The block of the memory that holds a byte of a stack.
    #[inline]
    pub fn block(&self, stack: u64, offset: u64) -> Block {
        self.dram.block_in(stack, offset).unwrap_or_default()
    }

    pub fn counts(&self) -> impl Iterator<Item = &Counts> {
        self.dram.counts()
    }

    /// Sends an access at `at`, which begins in `block`, on its way. Returns its times if they are
    /// known now; if not, [`Hbm::advance`] tells them.
    #[inline(always)]
    pub fn submit(
        &mut self,
        engine: EngineId,
        request: Request,
        at: u64,
        block: Block,
    ) -> Option<Times> {
        let kind = request.kind;
        let arrived = request.issued + self.latencies.request;
        let access = (at, u64::from(request.len));
        match self.dram.serve_at_once(arrived, block, access, kind) {
            Some(served) => Some(self.times(kind, arrived, served)),
            None => {
                self.enqueue(at, engine, request, block.channel());
                None
            }
        }
    }

    /// Puts an access into the queue of a controller.
    #[cold]
    fn enqueue(&mut self, at: u64, engine: EngineId, request: Request, channel: u32) {
        let arrived = request.issued + self.latencies.request;
        let pending = Pending {
            engine,
            request,
            channel,
            arrived,
            served: None,
        };
        let number = match self.unused.pop() {
            Some(number) => {
                self.pending[number as usize] = pending;
                number
            }
            None => {
                self.pending.push(pending);
                self.pending.len() as u32 - 1
            }
        };
        if request.kind == Kind::Write {
            self.writes[channel as usize].push_back(number);
        }
        let (bytes, id) = (request.len.into(), number.into());
        // The address map's stacks and the memory's are alike, a config is checked for it.
        let sent = self.dram.enqueue(arrived, at, bytes, request.kind, id);
        debug_assert!(sent.is_ok(), "{sent:?}");
        self.next = self.dram.next_event();
    }

    /// Times of an access that cannot wait for the controller: as if its pseudo-channel were idle and the
    /// row open (C).
    pub fn at_least(&self, kind: Kind, issued: Instant, beats: u32) -> Times {
        let arrived = issued + self.latencies.request;
        let accesses = (beats * BEAT_BYTES).div_ceil(self.access_bytes).into();
        self.times(kind, arrived, (arrived + self.bus(accesses), accesses))
    }

    /// How long accesses occupy the data bus.
    fn bus(&self, accesses: u64) -> Duration {
        Duration::from_fs(self.access.as_fs() * accesses)
    }

    fn times(&self, kind: Kind, arrived: Instant, (served, moved): (Instant, u64)) -> Times {
        let bus = self.bus(moved);
        let access = match kind {
            Kind::Read => self.latencies.read,
            Kind::Write => self.latencies.write,
        };
        Times {
            arrived,
            served_from: arrived.max(Instant::from_fs(served.as_fs().saturating_sub(bus.as_fs()))),
            served,
            done: served + access,
            response: self.latencies.response,
        }
    }

    /// When a controller acts next.
    pub fn next_event(&self) -> Instant {
        self.next
    }

    /// Lets the controllers act up to and including the first instant at which the times of accesses become
    /// known, which are appended, but not past `until`. Returns when they acted last.
    pub fn advance(&mut self, until: Instant, timed: &mut Vec<Timed>) -> Instant {
        let mut acted = self.next;
        while timed.is_empty() && self.next <= until {
            acted = self.next;
            self.act(timed);
        }
        acted
    }

    /// The next instant at which a controller acts.
    fn act(&mut self, timed: &mut Vec<Timed>) {
        let mut completions = std::mem::take(&mut self.completions);
        self.dram.advance(self.next, &mut completions);
        self.next = self.dram.next_event();
        for completion in completions.drain(..) {
            let number = completion.id as u32;
            let pending = &mut self.pending[number as usize];
            pending.served = Some((completion.at, completion.moved));
            match pending.request.kind {
                Kind::Read => timed.push(self.finish(number, Instant::START)),
                Kind::Write => {
                    let channel = pending.channel as usize;
                    let mut last = Instant::START;
                    while let Some(oldest) = self.writes[channel].front().copied()
                        && self.pending[oldest as usize].served.is_some()
                    {
                        self.writes[channel].pop_front();
                        let done = self.finish(oldest, last);
                        last = done.times.served;
                        timed.push(done);
                    }
                }
            }
        }
        self.completions = completions;
    }

    /// Takes a served access out. It was not served before `after`.
    fn finish(&mut self, number: u32, after: Instant) -> Timed {
        self.unused.push(number);
        let pending = &self.pending[number as usize];
        let (served, moved) = pending.served.unwrap_or((pending.arrived, 0));
        Timed {
            engine: pending.engine,
            request: pending.request,
            channel: pending.channel,
            times: self.times(
                pending.request.kind,
                pending.arrived,
                (served.max(after), moved),
            ),
        }
    }
}
