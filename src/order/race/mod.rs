//! Races of a whole program: accesses to the same bytes, one of them a write, that nothing orders.
//!
//! The [`Detector`] is told of one in-order execution, step by step, and keeps happens-before as
//! `docs/ordering.md` defines it: program order where an axiom orders it, barriers, completion, values
//! observed. It never looks at pairs of packets: what is ordered is a prefix of each queue, and
//! accesses are kept by address range.

mod clock;
mod shadow;

use crate::arch::{Arch, EngineId};
use crate::units::Addr;
use clock::{Clock, Seen};
use shadow::{Access, Shadow};
use std::collections::BTreeMap;
use std::fmt;

/// Bytes that become visible at once, whatever the burst length.
const WORD: u64 = 4;

/// A host thread or sequencer, or a queue, of a [`Detector`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thread(usize);

/// The accesses of one packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketAccess {
    /// Slot of its first Tx descriptor in the ring.
    pub slot: u32,
    /// Which step of the program authored or triggered it.
    pub step: u32,
    /// Bytes read.
    pub reads: Vec<(Addr, u64)>,
    /// Bytes written, in ring order.
    pub writes: Vec<(Addr, u64)>,
    /// The semaphores that it increments: with an embedded update, or with a packet's write.
    pub increments: Vec<(u32, u32)>,
    /// It carries DMB.
    pub dmb: bool,
    /// It carries a write barrier.
    pub write_barrier: bool,
    /// Its last write is strong-ordered.
    pub sow: bool,
    /// Its increment is embedded in its last descriptor.
    pub embedded: bool,
}

/// One side of a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// Queue with ring slot and packet, or the name of a host thread or sequencer.
    pub who: String,
    /// Which step of the program it comes from, if it is a packet.
    pub step: Option<u32>,
    /// It writes.
    pub write: bool,
}

/// Two accesses that nothing orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The one that comes first when everything is executed in order.
    pub first: Side,
    /// The other.
    pub second: Side,
    /// First byte that both access, and one past the last.
    pub bytes: (Addr, Addr),
    /// Which interleaving exposes it.
    pub witness: String,
    /// The smallest change that orders them.
    pub fix: String,
}

enum Kind {
    Agent {
        name: String,
        epoch: u32,
    },
    Queue {
        engine: EngineId,
        queue: u8,
        dmb_masked: bool,
        packets: Vec<PacketNote>,
        /// Clocks that packets start with, each from the packet it belongs to on.
        starts: Vec<(u32, Clock)>,
        /// Packets below this are complete before the next one starts.
        drained: u32,
        /// Writes of packets below this are visible before the next packet's.
        fence: u32,
    },
}

#[derive(Clone, Copy)]
struct PacketNote {
    slot: u32,
    step: u32,
    /// Who sees its last write sees all writes of packets below this: with its own, if that is one burst
    /// at most.
    shows: u32,
}

/// What an increment lets its observer know.
struct Release {
    thread: usize,
    clock: Clock,
}

/// Finds races while it is told of an execution.
pub struct Detector {
    arch: Arch,
    threads: Vec<Kind>,
    clocks: Vec<Clock>,
    shadow: Shadow,
    releases: BTreeMap<(u32, u32), Vec<Release>>,
    /// The bytes of each race.
    found: BTreeMap<(Access, Access), (u64, u64)>,
    max_races: usize,
    /// Races beyond the most that are kept.
    pub more: u64,
}

impl Detector {
    /// A detector that keeps `max_races` races and counts the others.
    pub fn new(arch: Arch, max_races: usize) -> Detector {
        Detector {
            arch,
            threads: Vec::new(),
            clocks: Vec::new(),
            shadow: Shadow::default(),
            releases: BTreeMap::new(),
            found: BTreeMap::new(),
            max_races,
            more: 0,
        }
    }

    /// Adds a host thread or a sequencer.
    pub fn agent(&mut self, name: &str) -> Thread {
        self.add(Kind::Agent {
            name: name.to_string(),
            epoch: 0,
        })
    }

    /// Adds a queue.
    pub fn queue(&mut self, engine: EngineId, queue: u8, dmb_masked: bool) -> Thread {
        self.add(Kind::Queue {
            engine,
            queue,
            dmb_masked,
            packets: Vec::new(),
            starts: Vec::new(),
            drained: 0,
            fence: 0,
        })
    }

    fn add(&mut self, kind: Kind) -> Thread {
        self.threads.push(kind);
        self.clocks.push(Clock::default());
        Thread(self.threads.len() - 1)
    }

    /// An agent rings a queue's doorbell: the packets told from now on start after what the agent has
    /// done and knows (A10).
    pub fn doorbell(&mut self, agent: Thread, queue: Thread) {
        let clock = self.own(agent);
        self.clocks[queue.0].join(&clock);
        if let Kind::Queue {
            packets, starts, ..
        } = &mut self.threads[queue.0]
        {
            starts.push((packets.len() as u32, self.clocks[queue.0].clone()));
        }
    }

    /// What an agent lets others know: all it has done, and all it knows.
    fn own(&mut self, agent: Thread) -> Clock {
        let mut clock = self.clocks[agent.0].clone();
        if let Kind::Agent { epoch, .. } = &mut self.threads[agent.0] {
            *epoch += 1;
            let seen = Seen {
                visible: *epoch,
                read: *epoch,
            };
            clock.learn(agent.0, seen);
        }
        clock
    }

    /// A queue executes a packet.
    pub fn packet(&mut self, thread: Thread, access: &PacketAccess) {
        let Kind::Queue {
            packets,
            dmb_masked,
            drained,
            fence,
            ..
        } = &mut self.threads[thread.0]
        else {
            return;
        };
        let index = packets.len() as u32;
        let shows = match (access.embedded, access.sow) {
            (true, _) => index + 1,
            (false, true) => index,
            _ => *fence,
        };
        let single = access.writes.len() <= 1 && access.writes.iter().all(|(_, len)| *len <= WORD);
        let shows = match single && shows == index {
            true => index + 1,
            false => shows,
        };
        packets.push(PacketNote {
            slot: access.slot,
            step: access.step,
            shows,
        });
        let done = *drained;
        if access.dmb && !*dmb_masked {
            *drained = index + 1;
            *fence = index + 1;
        }
        if access.write_barrier {
            *fence = index + 1;
        }
        for (at, len) in &access.reads {
            self.note(thread.0, index, done, (*at, *len), false);
        }
        for (at, len) in &access.writes {
            self.note(thread.0, index, done, (*at, *len), true);
        }
        for cell in &access.increments {
            let clock = self.shown(thread.0, index);
            let thread = thread.0;
            let releases = self.releases.entry(*cell).or_default();
            releases.push(Release { thread, clock });
        }
    }

    /// What who sees the last write of a packet knows.
    fn shown(&self, thread: usize, index: u32) -> Clock {
        let Kind::Queue {
            packets, starts, ..
        } = &self.threads[thread]
        else {
            return Clock::default();
        };
        let later = starts.partition_point(|(first, _)| *first <= index);
        let start = later.checked_sub(1).and_then(|n| starts.get(n));
        let mut clock = start.map_or_else(Clock::default, |(_, clock)| clock.clone());
        let visible = packets.get(index as usize).map_or(0, |note| note.shows);
        // The stream is in order: every read up to here was satisfied before this write (A1, A2).
        let read = index + 1;
        clock.learn(thread, Seen { visible, read });
        clock
    }

    /// An agent accesses memory.
    pub fn access(&mut self, agent: Thread, at: Addr, len: u64, write: bool) {
        let Kind::Agent { epoch, .. } = &self.threads[agent.0] else {
            return;
        };
        self.note(agent.0, *epoch, 0, (at, len), write);
    }

    /// An agent adds to a semaphore.
    pub fn increment(&mut self, agent: Thread, cell: (u32, u32)) {
        let clock = self.own(agent);
        let thread = agent.0;
        let releases = self.releases.entry(cell).or_default();
        releases.push(Release { thread, clock });
    }

    /// An agent has waited until `missing` of the increments so far could still be to come: it knows what
    /// those show that must have happened, whichever they were.
    pub fn wait_semaphore(&mut self, agent: Thread, cell: (u32, u32), missing: usize) {
        let Some(releases) = self.releases.get(&cell) else {
            return;
        };
        let mut per_thread: BTreeMap<usize, Vec<&Release>> = BTreeMap::new();
        for release in releases {
            per_thread.entry(release.thread).or_default().push(release);
        }
        let mut learned = Clock::default();
        for own in per_thread.values() {
            // Increments of one thread to one cell become visible in order (A3).
            if let Some(last) = own.len().checked_sub(missing + 1) {
                own[..=last]
                    .iter()
                    .for_each(|release| learned.join(&release.clock));
            }
        }
        self.clocks[agent.0].join(&learned);
    }

    /// An agent has seen the last write to a word.
    pub fn wait_word(&mut self, agent: Thread, at: Addr) {
        for write in self.shadow.writes_at(at.0) {
            let clock = match &self.threads[write.thread] {
                Kind::Queue { .. } => self.shown(write.thread, write.index),
                Kind::Agent { .. } => continue,
            };
            self.clocks[agent.0].join(&clock);
        }
    }

    /// An agent has seen that every packet told so far of a queue is complete (A9).
    pub fn wait_queue(&mut self, agent: Thread, queue: Thread) {
        if let Kind::Queue {
            packets, starts, ..
        } = &self.threads[queue.0]
        {
            let all = packets.len() as u32;
            let seen = Seen {
                visible: all,
                read: all,
            };
            let clock = starts.last().map(|(_, clock)| clock.clone());
            let known = &mut self.clocks[agent.0];
            known.join(&clock.unwrap_or_default());
            known.learn(queue.0, seen);
        }
    }

    /// An agent has seen another one end.
    pub fn wait_agent(&mut self, agent: Thread, other: Thread) {
        let clock = self.own(other);
        self.clocks[agent.0].join(&clock);
    }

    fn note(
        &mut self,
        thread: usize,
        index: u32,
        drained: u32,
        (at, len): (Addr, u64),
        write: bool,
    ) {
        let end = at.0.saturating_add(len);
        if at.0 >= end {
            return;
        }
        let is_queue = matches!(self.threads[thread], Kind::Queue { .. });
        let clock = &self.clocks[thread];
        let access = Access {
            thread,
            index,
            write,
        };
        let (found, more, most) = (&mut self.found, &mut self.more, self.max_races);
        self.shadow.access((at.0, end), access, |old, bytes| {
            let ordered = match old.thread == thread {
                true if !is_queue => true,
                // A3 orders two writes, A1 and A2 a read before a write; a read after a write only DMB.
                true => !old.write || write || old.index < drained || old.index == index,
                false => {
                    let seen = clock.of(old.thread);
                    old.index < if old.write { seen.visible } else { seen.read }
                }
            };
            if !ordered {
                let key = (old, access);
                let room = found.len() < most;
                match found.get_mut(&key) {
                    Some((first, last)) => {
                        *first = bytes.0.min(*first);
                        *last = bytes.1.max(*last);
                    }
                    None if room => {
                        found.insert(key, bytes);
                    }
                    None => *more += 1,
                }
            }
            ordered
        });
    }

    /// The races found, in the order of their threads.
    pub fn races(&self) -> Vec<Race> {
        let races = self.found.iter();
        races
            .map(|(key, bytes)| {
                let (a, b) = *key;
                let (first, second) = (self.side(a), self.side(b));
                Race {
                    witness: witness(&first, &second),
                    fix: self.fix(a, b.thread),
                    first,
                    second,
                    bytes: (Addr(bytes.0), Addr(bytes.1)),
                }
            })
            .collect()
    }

    fn side(&self, access: Access) -> Side {
        let Access {
            thread,
            index,
            write,
        } = access;
        match &self.threads[thread] {
            Kind::Agent { name, .. } => Side {
                who: name.clone(),
                step: None,
                write,
            },
            Kind::Queue {
                engine,
                queue,
                packets,
                ..
            } => {
                let note = packets.get(index as usize);
                let slot = note.map_or(0, |note| note.slot);
                Side {
                    who: format!("{engine} queue {queue} slot {slot} (packet {index})"),
                    step: note.map(|note| note.step),
                    write,
                }
            }
        }
    }

    /// The smallest change that orders an access before what thread `b` does.
    fn fix(&self, access: Access, b: usize) -> String {
        let (a, i) = (access.thread, access.index);
        let Kind::Queue { packets, .. } = &self.threads[a] else {
            return format!("let the other side wait for {}", self.side(access).who);
        };
        if a == b {
            return format!("DMB on packet {i}: nothing else holds reads of the same queue back");
        }
        // The first later packet that somebody could have heard of it from.
        let heard = self.clocks[b]
            .of(a)
            .read
            .checked_sub(1)
            .filter(|heard| *heard >= i);
        match heard {
            Some(signal) if access.write && signal > i => {
                let slot = packets.get(signal as usize).map_or(0, |note| note.slot);
                match self.arch.spec().caps.strong_order_writes {
                    true => format!(
                        "SOW on the Rx descriptor of packet {signal} (slot {slot}), the signal"
                    ),
                    false => {
                        let last = signal - 1;
                        format!("DMB or WRITE_BARRIER on packet {last}, the last before the signal")
                    }
                }
            }
            _ => format!("signal the end of packet {i}, and wait for that before"),
        }
    }
}

fn witness(first: &Side, second: &Side) -> String {
    let verb = |side: &Side| if side.write { "writes" } else { "reads" };
    let verbs = (verb(first), verb(second));
    format!(
        "{} {} before {} {}",
        second.who, verbs.1, first.who, verbs.0
    )
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = |side: &Side| if side.write { "write" } else { "read" };
        let (from, to) = self.bytes;
        writeln!(f, "race on {from}..{to}")?;
        for side in [&self.first, &self.second] {
            writeln!(f, "  {:<5} by {}", verb(side), side.who)?;
        }
        writeln!(f, "  exposed when {}", self.witness)?;
        write!(f, "  fix: {}", self.fix)
    }
}
