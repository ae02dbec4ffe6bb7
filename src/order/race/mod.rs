//! Races of a whole program: accesses to the same bytes, one of them a write, that nothing orders.
//!
//! The [`Detector`] is told of one in-order execution, step by step, and keeps happens-before as
//! `docs/ordering.md` defines it: program order where an axiom orders it, barriers, completion, values
//! observed. It never looks at pairs of packets: what is ordered is a prefix of each queue, and
//! accesses are kept by address range. Beside each prefix it keeps what would be left of it without
//! the barrier it hangs on, and so learns which barriers order something.

mod access;
mod clock;
mod found;
mod program;
mod report;
mod shadow;

pub use access::{PacketAccess, Read, Write, WriteTo};
pub use clock::BarrierKind;
pub use found::Pair;
pub use program::{InOrder, in_order};
pub use report::{Origin, Race, Side};

use crate::arch::{Arch, EngineId};
use crate::units::Addr;
use clock::{Barrier, Clock, Prefix, Seen};
use found::Found;
use shadow::{Access, Shadow};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that become visible at once, whatever the burst length.
const WORD: u64 = 4;

/// A host thread or sequencer, or a queue, of a [`Detector`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thread(u32);

enum Kind {
    Agent {
        name: String,
        epoch: u32,
    },
    Queue {
        engine: EngineId,
        queue: u8,
        packets: Vec<PacketNote>,
        /// What each packet writes, one behind the other: what is known of a queue is a prefix of this.
        writes: Vec<WriteNote>,
        /// Clocks that writes start with, each from the write it belongs to on.
        starts: Vec<(u32, Clock)>,
        /// Writes of packets that are complete before the next one starts.
        drained: Prefix,
        /// Writes that are visible before the next packet's.
        fence: Prefix,
    },
}

#[derive(Clone, Copy)]
struct PacketNote {
    slot: u32,
    tag: u32,
    /// One past its last write.
    end: u32,
}

#[derive(Clone, Copy)]
struct WriteNote {
    packet: u32,
    /// The writes that are visible to who sees this one: with itself, if that is one burst at most.
    shows: Prefix,
}

/// What an increment lets its observer know.
struct Release {
    thread: u32,
    /// How much it adds.
    weight: u64,
    clock: Clock,
}

/// Finds races while it is told of an execution.
pub struct Detector {
    arch: Arch,
    threads: Vec<Kind>,
    clocks: Vec<Clock>,
    shadow: Shadow,
    releases: BTreeMap<(u32, u32), Vec<Release>>,
    found: Found,
    /// Barriers without which something would not be ordered, by queue.
    needed: BTreeSet<(u32, Barrier)>,
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
            found: Found::new(max_races),
            needed: BTreeSet::new(),
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
    pub fn queue(&mut self, engine: EngineId, queue: u8) -> Thread {
        self.add(Kind::Queue {
            engine,
            queue,
            packets: Vec::new(),
            writes: Vec::new(),
            starts: Vec::new(),
            drained: Prefix::default(),
            fence: Prefix::default(),
        })
    }

    fn add(&mut self, kind: Kind) -> Thread {
        self.threads.push(kind);
        self.clocks.push(Clock::default());
        Thread(self.threads.len() as u32 - 1)
    }

    /// An agent rings a queue's doorbell: the packets told from now on start after what the agent has
    /// done and knows (A10).
    pub fn doorbell(&mut self, agent: Thread, queue: Thread) {
        let clock = self.own(agent);
        let known = &mut self.clocks[queue.0 as usize];
        known.join(&clock);
        let queue = &mut self.threads[queue.0 as usize];
        if let Kind::Queue { writes, starts, .. } = queue {
            starts.push((writes.len() as u32, known.clone()));
        }
    }

    /// What an agent lets others know: all it has done, and all it knows.
    fn own(&mut self, agent: Thread) -> Clock {
        let mut clock = self.clocks[agent.0 as usize].clone();
        if let Kind::Agent { epoch, .. } = &mut self.threads[agent.0 as usize] {
            *epoch += 1;
            let (visible, read) = (Prefix::sure(*epoch), *epoch);
            clock.learn(agent.0, Seen { visible, read });
        }
        clock
    }

    /// A queue executes a packet.
    pub fn packet(&mut self, thread: Thread, access: &PacketAccess) {
        let Kind::Queue {
            packets,
            writes,
            drained,
            fence,
            ..
        } = &mut self.threads[thread.0 as usize]
        else {
            return;
        };
        let packet = packets.len() as u32;
        let first = writes.len() as u32;
        let (before, done) = (*fence, *drained);
        for write in &access.writes {
            let index = writes.len() as u32;
            let strong = Prefix::because(index, (packet, BarrierKind::StrongOrder));
            let shows = match write.sow {
                true => before.join(strong),
                false => before,
            };
            let single = !matches!(write.to, WriteTo::Memory(_, len) if len > WORD);
            writes.push(WriteNote {
                packet,
                shows: match single {
                    true => shows.with_next(index),
                    false => shows,
                },
            });
        }
        if access.writes.is_empty() {
            // Its reads have to come somewhere.
            let shows = before;
            writes.push(WriteNote { packet, shows });
        }
        let end = writes.len() as u32;
        packets.push(PacketNote {
            slot: access.slot,
            tag: access.tag,
            end,
        });
        if access.dmb {
            let dmb = Prefix::because(end, (packet, BarrierKind::Dmb));
            *drained = drained.join(dmb);
            *fence = fence.join(dmb);
        }
        if access.write_barrier {
            let barrier = (packet, BarrierKind::WriteBarrier);
            *fence = fence.join(Prefix::because(end, barrier));
        }
        self.within(thread.0, first, access);
        for read in &access.reads {
            let index = first + access.fed_by(read);
            self.note(
                thread.0,
                (index, access.tag),
                done,
                (read.at, read.len),
                false,
            );
        }
        for (index, write) in (first..).zip(&access.writes) {
            if let WriteTo::Memory(at, len) = write.to {
                self.note(thread.0, (index, access.tag), done, (at, len), true);
            }
            if let WriteTo::Semaphore(cell) = write.to {
                let shows = self.shows(thread.0, index);
                self.release(thread.0, cell, self.shown(thread.0, index, shows));
            }
            if let Some(cell) = write.embedded {
                let shows = before.join(Prefix::sure(index + 1));
                self.release(thread.0, cell, self.shown(thread.0, index, shows));
            }
        }
    }

    fn release(&mut self, thread: u32, cell: (u32, u32), clock: Clock) {
        self.releases.entry(cell).or_default().push(Release {
            thread,
            weight: 1,
            clock,
        });
    }

    fn shows(&self, thread: u32, index: u32) -> Prefix {
        match &self.threads[thread as usize] {
            Kind::Queue { writes, .. } => {
                let note = writes.get(index as usize);
                note.map(|note| note.shows).unwrap_or_default()
            }
            Kind::Agent { .. } => Prefix::default(),
        }
    }

    /// Races of a packet with itself: it reads what it may have written before.
    fn within(&mut self, thread: u32, first: u32, packet: &PacketAccess) {
        for read in &packet.reads {
            for (index, write) in (first..).zip(&packet.writes) {
                let WriteTo::Memory(at, len) = write.to else {
                    continue;
                };
                let start = read.at.0.max(at.0);
                let end = (read.at.0.saturating_add(read.len)).min(at.0.saturating_add(len));
                let place = |place: u64, at: Addr| i128::from(place) - i128::from(at.0);
                if start >= end || place(read.place, read.at) <= place(write.place, at) {
                    continue;
                }
                let access = |index, write| Access {
                    thread,
                    index,
                    write,
                    tag: packet.tag,
                };
                let pair = (
                    access(index, true),
                    access(first + packet.fed_by(read), false),
                );
                self.found.record(pair, (start, end));
            }
        }
    }

    /// What who sees a write of a queue knows, if all writes in `visible` are visible then.
    fn shown(&self, thread: u32, index: u32, visible: Prefix) -> Clock {
        let Kind::Queue { starts, .. } = &self.threads[thread as usize] else {
            return Clock::default();
        };
        let later = starts.partition_point(|(first, _)| *first <= index);
        let start = later.checked_sub(1).and_then(|n| starts.get(n));
        let mut clock = start.map_or_else(Clock::default, |(_, clock)| clock.clone());
        // The stream is in order: every read up to here was satisfied before this write (A1, A2).
        let read = index + 1;
        clock.learn(thread, Seen { visible, read });
        clock
    }

    /// An agent accesses memory.
    pub fn access(&mut self, agent: Thread, tag: u32, (at, len): (Addr, u64), write: bool) {
        let Kind::Agent { epoch, .. } = &self.threads[agent.0 as usize] else {
            return;
        };
        let own = (*epoch, tag);
        self.note(agent.0, own, Prefix::default(), (at, len), write);
    }

    /// An agent adds to a semaphore.
    pub fn increment(&mut self, agent: Thread, cell: (u32, u32), by: u64) {
        let clock = self.own(agent);
        let releases = self.releases.entry(cell).or_default();
        releases.push(Release {
            thread: agent.0,
            weight: by,
            clock,
        });
    }

    /// An agent sets a semaphore: what has been added to it says nothing from now on.
    pub fn set_semaphore(&mut self, agent: Thread, cell: (u32, u32), value: u64) {
        self.releases.remove(&cell);
        self.increment(agent, cell, value);
    }

    /// An agent has waited until no more than `missing` of what has been added so far can still be to
    /// come: it knows what the rest shows, whichever it was.
    pub fn wait_semaphore(&mut self, agent: Thread, cell: (u32, u32), missing: u64) {
        let Some(releases) = self.releases.get(&cell) else {
            return;
        };
        // Increments of one thread to one cell become visible in order (A3): what is missing is its last.
        let mut later: BTreeMap<u32, u64> = BTreeMap::new();
        let mut learned = Clock::default();
        for release in releases.iter().rev() {
            let later = later.entry(release.thread).or_default();
            *later = later.saturating_add(release.weight);
            if *later > missing {
                learned.join(&release.clock);
            }
        }
        self.clocks[agent.0 as usize].join(&learned);
    }

    /// An agent has seen the last write to a word.
    pub fn wait_word(&mut self, agent: Thread, at: Addr) {
        for write in self.shadow.writes_at(at.0) {
            let shows = self.shows(write.thread, write.index);
            let clock = self.shown(write.thread, write.index, shows);
            self.clocks[agent.0 as usize].join(&clock);
        }
    }

    /// An agent has seen that the first packets told of a queue are complete (A9).
    pub fn wait_packets(&mut self, agent: Thread, queue: Thread, complete: u32) {
        let Kind::Queue { packets, .. } = &self.threads[queue.0 as usize] else {
            return;
        };
        let last = complete
            .checked_sub(1)
            .and_then(|n| packets.get(n as usize));
        if let Some(PacketNote { end, .. }) = last.copied() {
            let clock = self.shown(queue.0, end - 1, Prefix::sure(end));
            self.clocks[agent.0 as usize].join(&clock);
        }
    }

    /// An agent has seen that every packet told so far of a queue is complete (A9).
    pub fn wait_queue(&mut self, agent: Thread, queue: Thread) {
        if let Kind::Queue { packets, .. } = &self.threads[queue.0 as usize] {
            self.wait_packets(agent, queue, packets.len() as u32);
        }
    }

    /// An agent has seen another one end.
    pub fn wait_agent(&mut self, agent: Thread, other: Thread) {
        let clock = self.own(other);
        self.clocks[agent.0 as usize].join(&clock);
    }

    /// Races beyond the most that are kept.
    pub fn more(&self) -> u64 {
        self.found.more
    }

    /// The packet of an access, or the epoch of an agent's.
    fn packet_of(&self, access: Access) -> u32 {
        match &self.threads[access.thread as usize] {
            Kind::Queue { writes, .. } => {
                let note = writes.get(access.index as usize);
                note.map_or(0, |note| note.packet)
            }
            Kind::Agent { .. } => access.index,
        }
    }

    /// The races found, as pairs.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.found
            .races()
            .map(|(pair, _)| pair)
            .map(|(first, second)| Pair {
                first: Thread(first.thread),
                packet: self.packet_of(*first),
                second: Thread(second.thread),
                other: self.packet_of(*second),
                writes: (first.write, second.write),
            })
    }

    /// Whether some access would not be ordered without a barrier, alone, of a packet of a queue.
    pub fn needs(&self, queue: Thread, packet: u32, kind: BarrierKind) -> bool {
        self.needed.contains(&(queue.0, (packet, kind)))
    }

    fn note(
        &mut self,
        thread: u32,
        (index, tag): (u32, u32),
        drained: Prefix,
        (at, len): (Addr, u64),
        write: bool,
    ) {
        let end = at.0.saturating_add(len);
        if at.0 >= end {
            return;
        }
        let is_queue = matches!(self.threads[thread as usize], Kind::Queue { .. });
        let clock = &self.clocks[thread as usize];
        let access = Access {
            thread,
            index,
            write,
            tag,
        };
        let (found, needed) = (&mut self.found, &mut self.needed);
        self.shadow.access((at.0, end), access, |old, bytes| {
            let (ordered, by) = match old.thread == thread {
                true if !is_queue => (true, None),
                // A3 orders two writes, A1 and A2 a read before a write; a read after a write only DMB.
                true if !old.write || write => (true, None),
                true => drained.holds(old.index),
                false => {
                    let seen = clock.of(old.thread);
                    match old.write {
                        true => seen.visible.holds(old.index),
                        false => (old.index < seen.read, None),
                    }
                }
            };
            if let Some(barrier) = by {
                needed.insert((old.thread, barrier));
            }
            if !ordered {
                found.record((old, access), bytes);
            }
            ordered
        });
    }
}
