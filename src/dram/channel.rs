//! The controller of one pseudo-channel: first ready, first come, first served, with open rows.
//!
//! It does not run cycle by cycle. After each cycle at which something happened it knows the next
//! column and the next row command it could send and from when on they are legal, and goes straight
//! to the earliest of them, of the next arrival, and of the next refresh.

use super::banks::{Banks, Kind, Rules, bits};
use super::command::{Command, Done, Observer, Op};
use super::config::DramConfig;
use super::mapping::{Place, Run};
use super::parameters::{Controller, MAX_BANKS};
use super::queue::{Change, Entry, Queue};
use std::collections::VecDeque;
use std::sync::Arc;

/// Cycles from the acceptance of a read until its data, if a queued write has them. Modelled (C).
const FORWARD_CYCLES: u64 = 1;

/// What a controller has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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

/// A command that could come next. In order of preference, first ready, first come: the earliest
/// legal cycle in the high half; the age of the request it is for; its kind; the bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate(u128);

impl Candidate {
    const NONE: Candidate = Candidate(u128::MAX);
    const BANK_BITS: u32 = (MAX_BANKS - 1).count_ones();

    #[inline]
    fn new(at: u64, sequence: u64, bank: usize) -> Candidate {
        Candidate(u128::from(at) << 64 | u128::from(sequence << Self::BANK_BITS | bank as u64))
    }

    /// The earliest legal cycle; `u64::MAX` for none.
    #[inline]
    fn at(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Age, kind and bank, in order of age.
    #[inline]
    fn age(self) -> u64 {
        self.0 as u64
    }

    #[inline]
    fn kind(self) -> Kind {
        match self.0 >> Self::BANK_BITS & 1 {
            0 => Kind::Read,
            _ => Kind::Write,
        }
    }

    #[inline]
    fn bank(self) -> usize {
        self.0 as usize & (MAX_BANKS - 1) as usize
    }
}

/// Nobody looks at the commands.
struct Unobserved;

impl Observer for Unobserved {
    const COMMANDS: bool = false;

    fn command(&mut self, _: u64, _: Command) {}

    fn done(&mut self, _: Done) {}
}

/// One pseudo-channel with its controller. Time is in cycles of the memory's clock.
#[derive(Clone, Debug)]
pub struct Channel {
    /// The next cycle at which something can happen.
    next: u64,
    arrivals: VecDeque<Arrival>,
    /// The first cycle that has not been run.
    from: u64,
    refresh_at: u64,
    /// End of the last refresh.
    refreshed: u64,
    /// Since when the other kind has waited.
    other_since: u64,
    /// Banks whose row no request has used since it was opened.
    fresh: u64,
    /// Banks whose row was opened for a read, a bit each.
    read_rows: u64,
    /// The kind for which rows are opened.
    serving: Kind,
    /// The kind of the last column command.
    bus: Kind,
    /// Until when requests of the kind that is not served keep the bus if they have it, see [`Channel::in_place`].
    lingering: u64,
    banks: Banks,
    counts: Counts,
    policy: Controller,
    interval: u64,
    /// Apart: an access at an idle channel does not look at them, and the rest stays close together.
    queues: Box<[Queue; 2]>,
    /// Age of the last request accepted, without its kind, which is bit 0.
    sequence: u64,
    column: Candidate,
    activate: Candidate,
    precharge: Candidate,
}

impl Channel {
    /// A channel without requests; its first refresh is due after `first_refresh` cycles.
    pub(super) fn new(config: &DramConfig, rules: Arc<Rules>, first_refresh: u64) -> Channel {
        let interval = u64::from(config.timing.refresh_interval);
        Channel {
            policy: config.controller.clone(),
            interval,
            banks: Banks::new(rules),
            queues: Box::new([
                Queue::new(config.controller.read_queue),
                Queue::new(config.controller.write_queue),
            ]),
            arrivals: VecDeque::new(),
            from: 0,
            sequence: 0,
            serving: Kind::Read,
            bus: Kind::Read,
            lingering: 0,
            other_since: 0,
            column: Candidate::NONE,
            activate: Candidate::NONE,
            precharge: Candidate::NONE,
            fresh: 0,
            read_rows: 0,
            refresh_at: if interval == 0 {
                u64::MAX
            } else {
                first_refresh
            },
            refreshed: 0,
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
            self.next = self.next.min(at.max(self.from));
        }
        self.arrivals.push_back(Arrival {
            at,
            id,
            kind,
            place,
        });
    }

    /// When the youngest request that waits to be accepted arrives; 0 if there is none.
    pub fn last_arrival(&self) -> u64 {
        self.arrivals.back().map_or(0, |arrival| arrival.at)
    }

    /// Serves accesses to one row of each of a run's banks, which arrive at cycle `at`, one after the other, if
    /// nobody waits and the bus is free within two nRC, counted from the end of a refresh under way, enough for what
    /// one engine sends meanwhile: with nothing to choose between, the banks alone say when each command can be sent (C: somebody who comes while they
    /// wait for the bus cannot overtake them). Accesses that a refresh would cut in two are served after it (C).
    /// Returns the cycle after the last data.
    #[inline]
    pub(super) fn serve_at_once(&mut self, at: u64, row: u32, run: Run, kind: Kind) -> Option<u64> {
        let idle = self.next == u64::MAX && self.arrivals.is_empty();
        let soon = at.max(self.refreshed) + 2 * self.banks.row_cycle();
        if !idle || self.banks.any_column_from(kind) > soon {
            return None;
        }
        let from = at.max(self.from) + 1;
        if from >= self.refresh_at {
            self.refresh(from, &mut Unobserved);
        }
        self.serving = kind;
        self.other_since = at;
        if from.max(self.refreshed) + self.banks.at_most(run.accesses()) <= self.refresh_at {
            return Some(self.send_all(from, row, run, kind).1);
        }
        Some(self.serve_near_refresh(from, row, run, kind))
    }

    /// Serves accesses before the next refresh if it does not cut them in two, else after it. Returns the cycle
    /// after the last data.
    #[cold]
    fn serve_near_refresh(&mut self, from: u64, row: u32, run: Run, kind: Kind) -> u64 {
        let before = (
            self.banks.clone(),
            self.counts,
            self.fresh,
            self.read_rows,
            self.bus,
        );
        let (last, end) = self.send_all(from, row, run, kind);
        if last < self.refresh_at {
            return end;
        }
        (
            self.banks,
            self.counts,
            self.fresh,
            self.read_rows,
            self.bus,
        ) = before;
        let due = self.refresh_at;
        self.refresh(due, &mut Unobserved);
        self.send_all(due, row, run, kind).1
    }

    /// Sends the commands for accesses to one row of each of a run's banks, none before `from`. Returns the
    /// cycle of the last command, and that after the last data.
    #[inline]
    fn send_all(&mut self, from: u64, row: u32, run: Run, kind: Kind) -> (u64, u64) {
        let (mut used, mut open) = (0, true);
        for bank in run.first_cycle() {
            used |= 1 << bank;
            open &= self.banks.is_open(bank, row);
        }
        if !open {
            self.open_all(from, row, run);
        }
        self.count(kind, run.accesses(), used);
        self.banks.columns(from, run, kind)
    }

    #[inline(never)]
    fn open_all(&mut self, from: u64, row: u32, run: Run) {
        for bank in run.first_cycle() {
            if !self.banks.is_open(bank, row) {
                self.open(from, bank, row);
            }
        }
    }

    /// Opens a row as early as it is legal but not before `from`.
    fn open(&mut self, from: u64, bank: usize, row: u32) {
        let mut act = from;
        if self.banks.open() >> bank & 1 != 0 {
            let precharge = self.banks.precharge_from(bank).max(from);
            self.precharge(precharge, bank);
            act = precharge + 1;
        }
        self.activate(self.banks.act_from(bank).max(act), bank, row);
    }

    /// A column command and what is counted of it. Returns the cycle after the last of its data.
    #[inline]
    fn column(&mut self, at: u64, bank: usize, kind: Kind) -> u64 {
        self.count(kind, 1, 1 << bank);
        self.banks.column(at, bank, kind)
    }

    /// Counts column commands to the open rows of `banks`, a bit each.
    #[inline]
    fn count(&mut self, kind: Kind, commands: u64, banks: u64) {
        match kind {
            Kind::Read => self.counts.reads += commands,
            Kind::Write => self.counts.writes += commands,
        }
        // The first command after an activate is not a hit.
        self.counts.row_hits += commands;
        if self.fresh & banks != 0 {
            self.counts.row_hits -= u64::from((self.fresh & banks).count_ones());
            self.fresh &= !banks;
        }
        if kind != self.bus {
            self.bus = kind;
            self.counts.turnarounds += 1;
        }
    }

    #[inline]
    fn activate(&mut self, at: u64, bank: usize, row: u32) {
        self.banks.activate(at, bank, row);
        self.counts.activates += 1;
        self.fresh |= 1 << bank;
        self.read_rows &= !(1 << bank);
        self.read_rows |= u64::from(self.serving == Kind::Read) << bank;
    }

    #[inline]
    fn precharge(&mut self, at: u64, bank: usize) {
        self.banks.precharge(at, bank);
        self.counts.precharges += 1;
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
        if now >= self.refresh_at {
            self.refresh(now, observer);
            self.choose_all(now);
        } else {
            if self.column.at() <= now {
                self.send_column(now, observer);
            }
            // A row that is opened serves a request sooner than one that is closed.
            if self.activate.at() <= now {
                self.send_activate(now, observer);
            } else if self.precharge.at() <= now {
                self.send_precharge(now, observer);
            }
        }
        self.accept(now, observer);
        if self.turn(now) {
            self.choose_all(now);
        }
        let mut next = self
            .column
            .at()
            .min(self.activate.at())
            .min(self.precharge.at());
        // An idle channel owes its refreshes until the next request, see `refresh`.
        if next != u64::MAX {
            next = next.min(self.refresh_at);
        }
        if let Some(first) = self.arrivals.front()
            && !self.queues[first.kind as usize].is_full()
        {
            next = next.min(first.at);
        }
        self.next = next.max(now + 1);
        self.from = now + 1;
    }

    fn send_column<O: Observer>(&mut self, now: u64, observer: &mut O) {
        let (bank, kind) = (self.column.bank(), self.column.kind());
        let turned = kind != self.bus;
        let row = self.banks.row(bank);
        let overtaken_from = now.saturating_sub(u64::from(self.policy.max_wait));
        let queue = &mut self.queues[kind as usize];
        let entry = queue.take_hit(bank, row, overtaken_from);
        let missed = queue.misses() >> bank & 1 != 0;
        let at = self.column(now, bank, kind);
        if O::COMMANDS {
            let op = match kind {
                Kind::Read => Op::Read,
                Kind::Write => Op::Write,
            };
            observer.command(now, Command::to(op, bank, row, entry.column));
        }
        let Entry { id, accepted, .. } = entry;
        observer.done(Done {
            id,
            kind,
            accepted,
            at,
            forwarded: false,
        });
        for slot in bits(entry.waiting) {
            let open = self.banks.is_open(bank, row);
            self.queues[kind.other() as usize].list(slot, open);
        }
        if turned || kind != self.serving {
            // Other banks may be closed now, and requests of the kind that is served may have been waiting.
            self.choose_all(now);
        } else {
            self.choose_column(now);
            if missed {
                self.consider_row(now, bank);
            }
        }
    }

    fn send_activate<O: Observer>(&mut self, now: u64, observer: &mut O) {
        let bank = self.activate.bank();
        let row = self.queues[self.serving as usize].serve_oldest(bank);
        self.activate(now, bank, row);
        for queue in self.queues.iter_mut() {
            queue.opened(bank, row);
        }
        if O::COMMANDS {
            observer.command(now, Command::to(Op::Activate, bank, row, 0));
        }
        self.choose_column(now);
        self.choose_activate(now);
    }

    fn send_precharge<O: Observer>(&mut self, now: u64, observer: &mut O) {
        let bank = self.precharge.bank();
        let row = self.banks.row(bank);
        self.precharge(now, bank);
        for queue in self.queues.iter_mut() {
            queue.closed(1 << bank);
        }
        if O::COMMANDS {
            observer.command(now, Command::to(Op::Precharge, bank, row, 0));
        }
        self.choose_precharge(now);
        self.consider_row(now, bank);
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
            self.refreshed = self.banks.refresh(self.refresh_at, tell);
            self.counts.refreshes += 1;
            self.refresh_at += self.interval;
            if open != 0 {
                self.queues.iter_mut().for_each(|queue| queue.closed(open));
            }
        }
    }

    /// Accepts the next request if it is there and its queue has room.
    #[inline]
    fn accept<O: Observer>(&mut self, now: u64, observer: &mut O) {
        let Some(first) = self.arrivals.front() else {
            return;
        };
        let (kind, place) = (first.kind, first.place);
        if first.at > now || self.queues[kind as usize].is_full() {
            return;
        }
        let id = first.id;
        self.arrivals.pop_front();
        self.sequence += 2;
        let bank = place.bank as u8;
        let (own, other) = (kind as usize, kind.other() as usize);
        let mut blocker = None;
        if !self.queues[other].is_empty() {
            blocker = self.queues[other].youngest_to(bank, place.row, place.column);
        }
        if kind == Kind::Read && blocker.is_some() {
            self.counts.forwarded += 1;
            let at = now + FORWARD_CYCLES;
            observer.done(Done {
                id,
                kind,
                accepted: now,
                at,
                forwarded: true,
            });
            return;
        }
        let slot = self.queues[own].insert(
            self.sequence | kind as u64,
            Entry {
                id,
                accepted: now,
                bank,
                row: place.row,
                column: place.column,
                waiting: 0,
            },
        );
        if let Some(blocker) = blocker {
            // A write must not overtake a read of what it overwrites.
            self.queues[other].add_waiting(blocker, slot);
            return;
        }
        let bank = place.bank as usize;
        let open = self.banks.is_open(bank, place.row);
        let change = self.queues[own].list(slot, open);
        match change {
            Change::Miss if kind == self.serving => self.consider_row(now, bank),
            Change::Hit if kind == self.serving || self.others(now) >> bank & 1 != 0 => {
                self.choose_column(now);
                // The bank may have been to be closed.
                self.choose_precharge(now);
            }
            _ => {}
        }
    }

    /// Banks with requests of the kind that is not served which may have a column command: those that wait at the
    /// banks, and while the kind keeps the bus, all to open rows.
    #[inline]
    fn others(&self, now: u64) -> u64 {
        let kind = self.serving.other();
        let queue = &self.queues[kind as usize];
        match queue.hits() {
            0 => 0,
            hits if kind == self.bus && now < self.lingering => hits,
            _ => queue.ready(),
        }
    }

    /// Whether all writes that wait go to rows that are open for reads. Those that follow are likely to overwrite
    /// what is read now, and a write that waits for a read would cut their turn short. One bank alone does not
    /// keep the bus busy: there it is better to turn. Modelled (C).
    #[inline]
    fn in_place(&self) -> bool {
        let [reads, writes] = &*self.queues;
        let banks = reads.hits() | writes.hits();
        writes.misses() == 0
            && writes.hits() & !self.read_rows == 0
            && banks & banks.wrapping_sub(1) != 0
    }

    /// Turns from reads to writes or back if it is time to. Returns whether it has.
    #[inline]
    fn turn(&mut self, now: u64) -> bool {
        let other = &self.queues[self.serving.other() as usize];
        if other.listed() == 0 {
            self.other_since = now;
            return false;
        }
        let max_wait = u64::from(self.policy.max_wait);
        let served = self.queues[self.serving as usize].pending();
        let waiting = other.pending();
        let overdue = now.saturating_sub(self.other_since) >= max_wait;
        let turn = overdue
            || (waiting != 0 && served == 0)
            || match self.serving {
                Kind::Read => waiting >= self.policy.write_high,
                Kind::Write => waiting != 0 && served <= self.policy.write_low,
            };
        if turn {
            self.serving = self.serving.other();
            self.other_since = now;
            self.lingering = match overdue || !self.in_place() {
                true => now,
                false => now + max_wait,
            };
        }
        turn
    }

    fn choose_all(&mut self, now: u64) {
        self.choose_column(now);
        self.choose_activate(now);
        self.choose_precharge(now);
    }

    /// Finds the next column command: of those legal first, the oldest request's. A command that
    /// would hold up that of an older request by keeping the bus busy does not count: it would push
    /// the data of a steady stream off the beat.
    #[inline]
    fn choose_column(&mut self, now: u64) {
        let others = self.others(now);
        if others != 0 {
            self.column = self.choose_of_both(now, others);
            return;
        }
        let hits = self.queues[self.serving as usize].hits();
        let mut best = self.first_column(now, self.serving, hits);
        if hits & hits.wrapping_sub(1) != 0 {
            best = self.not_holding_up(now, self.serving, hits, best);
        }
        self.column = best;
    }

    /// The next column command if there are requests of the kind that is not served, to the banks `others`.
    #[inline(never)]
    fn choose_of_both(&self, now: u64, others: u64) -> Candidate {
        let (kind, other) = (self.serving, self.serving.other());
        let hits = self.queues[kind as usize].hits();
        let first = self.first_column(now, kind, hits);
        let first = first.min(self.first_column(now, other, others));
        let older = self.not_holding_up(now, kind, hits, first);
        let other = self.not_holding_up(now, other, others, first);
        match older.age() < other.age() {
            true => older,
            false => other,
        }
    }

    /// The first column command for the oldest request of a kind to the open row of each of `banks`.
    #[inline]
    fn first_column(&self, now: u64, kind: Kind, banks: u64) -> Candidate {
        let queue = &self.queues[kind as usize];
        let from = self.banks.any_column_from(kind).max(now + 1);
        let mut best = Candidate::NONE;
        for bank in bits(banks) {
            let at = self.banks.column_from(kind, bank).max(from);
            best = best.min(Candidate::new(at, queue.hit_sequence(bank), bank));
        }
        best
    }

    /// The oldest request's of these and `first` that `first` would hold up.
    #[inline]
    fn not_holding_up(&self, now: u64, kind: Kind, banks: u64, first: Candidate) -> Candidate {
        let queue = &self.queues[kind as usize];
        let from = self.banks.any_column_from(kind).max(now + 1);
        let held_up = first.at() + self.banks.column_slot();
        let mut best = first;
        for bank in bits(banks) {
            let at = self.banks.column_from(kind, bank).max(from);
            let next = Candidate::new(at, queue.hit_sequence(bank), bank);
            if next.age() < best.age() && next.at() < held_up {
                best = next;
            }
        }
        best
    }

    /// Finds the next activate: of those legal first, the oldest request's.
    #[inline]
    fn choose_activate(&mut self, now: u64) {
        let queue = &self.queues[self.serving as usize];
        let mut best = Candidate::NONE;
        for bank in bits(queue.misses() & !self.banks.open()) {
            let at = self.banks.act_from(bank).max(now + 1);
            best = best.min(Candidate::new(at, queue.oldest_sequence(bank), bank));
        }
        self.activate = best;
    }

    /// Finds the next precharge: of those legal first, the oldest request's.
    #[inline]
    fn choose_precharge(&mut self, now: u64) {
        let queue = &self.queues[self.serving as usize];
        let in_use = self.others(now);
        let mut best = Candidate::NONE;
        for bank in bits(queue.misses() & self.banks.open() & !in_use) {
            let at = self.banks.precharge_from(bank).max(now + 1);
            best = best.min(Candidate::new(at, queue.oldest_sequence(bank), bank));
        }
        self.precharge = best;
    }

    /// Takes into account that a bank has come to need a row command.
    #[inline]
    fn consider_row(&mut self, now: u64, bank: usize) {
        let (legal, best) = match self.banks.open() >> bank & 1 {
            0 => (self.banks.act_from(bank), &mut self.activate),
            _ if self.others(now) >> bank & 1 != 0 => return,
            _ => (self.banks.precharge_from(bank), &mut self.precharge),
        };
        let sequence = self.queues[self.serving as usize].oldest_sequence(bank);
        *best = (*best).min(Candidate::new(legal.max(now + 1), sequence, bank));
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

#[cfg(test)]
mod tests;
