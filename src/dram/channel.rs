//! The controller of one pseudo-channel: first ready, first come, first served, with open rows.
//!
//! It does not run cycle by cycle. After each cycle at which something happened it knows the next
//! column and the next row command it could send and from when on they are legal, and goes straight
//! to the earliest of them, of the next arrival, and of the next refresh.

use super::banks::{Banks, Kind, bits};
use super::command::{Command, Done, Observer, Op};
use super::config::{Controller, DramConfig};
use super::mapping::Place;
use super::queue::{Entry, Queue};
use std::collections::VecDeque;

/// Cycles from the acceptance of a read until its data, if a queued write has them. Modelled (C).
const FORWARD_CYCLES: u64 = 1;

/// What a controller has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// RD commands.
    pub reads: u64,
    /// WR commands.
    pub writes: u64,
    /// Reads answered from a queued write.
    pub forwarded: u64,
    /// Column commands to a row that an earlier request had opened.
    pub row_hits: u64,
    /// ACT commands.
    pub activates: u64,
    /// PRE commands.
    pub precharges: u64,
    /// REF commands.
    pub refreshes: u64,
    /// Changes from reads to writes or back.
    pub turnarounds: u64,
}

/// A request that has not been accepted yet.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: u64,
    id: u64,
    kind: Kind,
    place: Place,
}

/// A command that could come next: the earliest legal cycle, and the bank; `u64::MAX` for none.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    at: u64,
    bank: usize,
}

const NO_CANDIDATE: Candidate = Candidate {
    at: u64::MAX,
    bank: 0,
};

/// One pseudo-channel with its controller. Time is in cycles of the memory's clock.
#[derive(Clone, Debug)]
pub struct Channel {
    policy: Controller,
    interval: u64,
    banks: Banks,
    queues: [Queue; 2],
    arrivals: VecDeque<Arrival>,
    /// First cycle at which a request can be accepted: one is in each cycle.
    accept_from: u64,
    sequence: u64,
    /// The kind that is served.
    serving: Kind,
    /// Since when the other kind has waited.
    other_since: u64,
    column: Candidate,
    row: Candidate,
    /// Banks whose row no request has used since it was opened.
    fresh: u64,
    refresh_at: u64,
    /// The next cycle at which something can happen.
    next: u64,
    counts: Counts,
}

impl Channel {
    /// A channel without requests; its first refresh is due after `first_refresh` cycles.
    pub fn new(config: &DramConfig, first_refresh: u64) -> Channel {
        let interval = u64::from(config.timing.refresh_interval);
        Channel {
            policy: config.controller.clone(),
            interval,
            banks: Banks::new(config),
            queues: [
                Queue::new(config.controller.read_queue),
                Queue::new(config.controller.write_queue),
            ],
            arrivals: VecDeque::new(),
            accept_from: 0,
            sequence: 0,
            serving: Kind::Read,
            other_since: 0,
            column: NO_CANDIDATE,
            row: NO_CANDIDATE,
            fresh: 0,
            refresh_at: if interval == 0 { u64::MAX } else { first_refresh },
            next: u64::MAX,
            counts: Counts::default(),
        }
    }

    /// What has been done so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Requests that wait to be accepted.
    pub fn backlog(&self) -> usize {
        self.arrivals.len()
    }

    /// Offers a request to arrive at cycle `at`, which is not before that of an earlier request or
    /// the cycle the channel has been run to. Requests are accepted in this order, one in a cycle,
    /// as soon as the queue of their kind has room.
    #[inline]
    pub fn offer(&mut self, at: u64, place: Place, kind: Kind, id: u64) {
        if self.arrivals.is_empty() && !self.queues[kind as usize].is_full() {
            self.next = self.next.min(at.max(self.accept_from));
        }
        self.arrivals.push_back(Arrival { at, id, kind, place });
    }

    /// The next cycle at which something happens, refreshes of an idle channel left out; `u64::MAX`
    /// if nothing does unless a request arrives.
    pub fn next_event(&self) -> u64 {
        self.next
    }

    /// Runs all cycles up to and including `until`.
    pub fn advance(&mut self, until: u64, observer: &mut impl Observer) {
        while self.next <= until {
            self.cycle(self.next, observer);
        }
    }

    /// Runs until every offered request but `backlog` has been accepted.
    pub fn accept_all_but<O: Observer>(&mut self, backlog: usize, observer: &mut O) {
        while self.arrivals.len() > backlog {
            self.cycle(self.next, observer);
        }
    }

    /// Runs until no request is left.
    pub fn finish(&mut self, observer: &mut impl Observer) {
        while self.next != u64::MAX {
            self.cycle(self.next, observer);
        }
    }

    /// What happens in one cycle: commands for requests accepted before, then an acceptance.
    #[inline]
    fn cycle<O: Observer>(&mut self, now: u64, observer: &mut O) {
        let mut changed = false;
        if now >= self.refresh_at {
            self.refresh(now, observer);
            changed = true;
        } else {
            if self.column.at <= now {
                self.send_column(now, observer);
                changed = true;
            }
            if self.row.at <= now {
                self.send_row(now, observer);
                changed = true;
            }
        }
        changed |= self.accept(now, observer);
        changed |= self.choose_kind(now);
        if changed {
            self.choose_column(now + 1);
            self.choose_row(now + 1);
        }
        let mut next = self.column.at.min(self.row.at);
        if let Some(first) = self.arrivals.front()
            && !self.queues[first.kind as usize].is_full()
        {
            next = next.min(first.at.max(self.accept_from));
        }
        // An idle channel owes its refreshes until the next request, see `refresh`.
        self.next = if next == u64::MAX { next } else { next.min(self.refresh_at.max(now + 1)) };
    }

    fn send_column<O: Observer>(&mut self, now: u64, observer: &mut O) {
        let (bank, kind) = (self.column.bank, self.serving);
        let row = self.banks.open_row(bank).unwrap_or_default();
        let overtaken_from = now.saturating_sub(u64::from(self.policy.max_wait));
        let entry = self.queues[kind as usize].take_hit(bank, row, overtaken_from);
        let at = self.banks.column(now, bank, kind);
        let op = match kind {
            Kind::Read => {
                self.counts.reads += 1;
                Op::Read
            }
            Kind::Write => {
                self.counts.writes += 1;
                Op::Write
            }
        };
        let bit = 1 << bank;
        self.counts.row_hits += u64::from(self.fresh & bit == 0);
        self.fresh &= !bit;
        if O::COMMANDS {
            let (bank, column) = (bank as u32, entry.column);
            observer.command(now, Command { op, bank, row, column });
        }
        let Entry { id, accepted, .. } = entry;
        observer.done(Done { id, kind, accepted, at });
        for slot in bits(entry.waiting) {
            let other = &mut self.queues[kind.other() as usize];
            other.list(slot, self.banks.is_open(bank, row));
        }
    }

    fn send_row<O: Observer>(&mut self, now: u64, observer: &mut O) {
        let bank = self.row.bank;
        let row = match self.banks.open_row(bank) {
            Some(row) => {
                self.banks.precharge(now, bank);
                self.counts.precharges += 1;
                self.queues.iter_mut().for_each(|queue| queue.closed(1 << bank));
                (Op::Precharge, row)
            }
            None => {
                let queue = &self.queues[self.serving as usize];
                let row = queue.entry(queue.oldest(bank)).row;
                self.banks.activate(now, bank, row);
                self.counts.activates += 1;
                self.fresh |= 1 << bank;
                self.queues.iter_mut().for_each(|queue| queue.opened(bank, row));
                (Op::Activate, row)
            }
        };
        if O::COMMANDS {
            let ((op, row), bank) = (row, bank as u32);
            observer.command(now, Command { op, bank, row, column: 0 });
        }
    }

    /// Refreshes all banks. Requests are not served from the time a refresh is due until its end.
    fn refresh<O: Observer>(&mut self, now: u64, observer: &mut O) {
        while self.refresh_at <= now {
            let open = self.banks.open();
            // The refreshes of an idle time are all alike.
            let due = self.refresh_at;
            if open == 0 && !O::COMMANDS && self.banks.idle_refresh_from() <= due {
                let skipped = (now - due) / self.interval;
                self.refresh_at += skipped * self.interval;
                self.counts.refreshes += skipped;
            }
            let tell = |at, command| observer.command(at, command);
            self.banks.refresh(self.refresh_at, tell);
            self.counts.refreshes += 1;
            self.refresh_at += self.interval;
            self.queues.iter_mut().for_each(|queue| queue.closed(open));
        }
    }

    /// Accepts the next request if it is there and its queue has room. Returns whether a command
    /// may have become possible.
    #[inline]
    fn accept<O: Observer>(&mut self, now: u64, observer: &mut O) -> bool {
        let Some(first) = self.arrivals.front() else {
            return false;
        };
        let (kind, place) = (first.kind, first.place);
        if first.at > now || self.accept_from > now || self.queues[kind as usize].is_full() {
            return false;
        }
        let id = first.id;
        self.arrivals.pop_front();
        self.accept_from = now + 1;
        self.sequence += 1;
        let bank = place.bank as u8;
        let (own, other) = (kind as usize, kind.other() as usize);
        let mut blocker = None;
        if self.queues[other].used() != 0 {
            blocker = self.queues[other].youngest_to(bank, place.row, place.column);
        }
        if kind == Kind::Read && blocker.is_some() {
            self.counts.forwarded += 1;
            let at = now + FORWARD_CYCLES;
            observer.done(Done { id, kind, accepted: now, at });
            return false;
        }
        let slot = self.queues[own].insert(Entry {
            id,
            accepted: now,
            sequence: self.sequence,
            bank,
            row: place.row,
            column: place.column,
            waiting: 0,
        });
        if let Some(blocker) = blocker {
            // A write must not overtake a read of what it overwrites.
            self.queues[other].add_waiting(blocker, slot);
            return false;
        }
        let open = self.banks.is_open(usize::from(bank), place.row);
        self.queues[own].list(slot, open) && kind == self.serving
    }

    /// Chooses whether to serve reads or writes. Returns whether that has changed.
    #[inline]
    fn choose_kind(&mut self, now: u64) -> bool {
        let served = self.queues[self.serving as usize].listed();
        let waiting = self.queues[self.serving.other() as usize].listed();
        if waiting == 0 {
            self.other_since = now;
            return false;
        }
        let turn = served == 0
            || now - self.other_since >= u64::from(self.policy.max_wait)
            || match self.serving {
                Kind::Read => waiting >= self.policy.write_high,
                Kind::Write => served <= self.policy.write_low,
            };
        if turn {
            self.serving = self.serving.other();
            self.other_since = now;
            self.counts.turnarounds += 1;
        }
        turn
    }

    /// Finds the next column command: of those legal first, the oldest request's.
    #[inline]
    fn choose_column(&mut self, from: u64) {
        let queue = &self.queues[self.serving as usize];
        let from = from.max(self.banks.any_column_from(self.serving));
        let mut best = NO_CANDIDATE;
        let mut oldest = u64::MAX;
        for bank in bits(queue.hits()) {
            let at = self.banks.column_from(self.serving, bank).max(from);
            let sequence = queue.entry(queue.hit(bank)).sequence;
            if (at, sequence) < (best.at, oldest) {
                best = Candidate { at, bank };
                oldest = sequence;
            }
        }
        self.column = best;
    }

    /// Finds the next row command: of those legal first, the oldest request's.
    #[inline]
    fn choose_row(&mut self, from: u64) {
        let queue = &self.queues[self.serving as usize];
        let mut best = NO_CANDIDATE;
        let mut oldest = u64::MAX;
        for bank in bits(queue.misses()) {
            let legal = match self.banks.open() >> bank & 1 {
                0 => self.banks.act_from(bank),
                _ => self.banks.precharge_from(bank),
            };
            let at = legal.max(from);
            let sequence = queue.entry(queue.oldest(bank)).sequence;
            if (at, sequence) < (best.at, oldest) {
                best = Candidate { at, bank };
                oldest = sequence;
            }
        }
        self.row = best;
    }
}

impl Counts {
    /// Adds what another channel has done.
    pub(super) fn add(&mut self, other: &Counts) {
        let Counts {
            reads,
            writes,
            forwarded,
            row_hits,
            activates,
            precharges,
            refreshes,
            turnarounds,
        } = other;
        self.reads += reads;
        self.writes += writes;
        self.forwarded += forwarded;
        self.row_hits += row_hits;
        self.activates += activates;
        self.precharges += precharges;
        self.refreshes += refreshes;
        self.turnarounds += turnarounds;
    }
}
