//! From packets to read and write bursts: how the stream of a packet is cut on both sides. What may
//! overtake what is not decided here.

use super::program::{Desc, Dest, Program, Span};

/// Where a read burst finds its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// There.
    Fixed(Span),
    /// In the cell whose index a fetch put into this place of the lane.
    Through(usize),
}

/// A read burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBurst {
    /// Index of the queue.
    pub queue: usize,
    /// Index of the packet in the queue.
    pub packet: usize,
    /// What it reads.
    pub source: Source,
    /// First place of its data in the lane.
    pub lane: usize,
    /// It fetches the source address of a descriptor: part of the prefetch, not of the packet.
    pub fetch: bool,
}

/// A write burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteBurst {
    /// Index of the queue.
    pub queue: usize,
    /// Index of the packet in the queue.
    pub packet: usize,
    /// Where it writes.
    pub to: Span,
    /// It adds to what is there, as the increment cell of a semaphore does.
    pub adds: bool,
    /// First places in the lane of what is written: the sum of all. Empty: the constant 1.
    pub feeds: Vec<usize>,
    /// The strong-order bit.
    pub sow: bool,
    /// It is an embedded semaphore increment.
    pub embedded: bool,
}

/// The bursts of a program, each list queue by queue in ring order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    /// Read bursts.
    pub reads: Vec<ReadBurst>,
    /// Write bursts.
    pub writes: Vec<WriteBurst>,
    /// Places of the lane: what read bursts have taken and write bursts have not yet written.
    pub lane: usize,
}

impl Bursts {
    /// Cuts a program.
    pub fn of(program: &Program) -> Bursts {
        let mut bursts = Bursts::default();
        for (queue, ring) in program.queues.iter().enumerate() {
            for (packet, descs) in ring.packets.iter().enumerate() {
                for desc in &descs.descs {
                    bursts.cut(program, (queue, packet), desc);
                }
            }
        }
        bursts
    }

    fn cut(&mut self, program: &Program, (queue, packet): (usize, usize), desc: &Desc) {
        let mut read = |source, lane, fetch| {
            self.reads.push(ReadBurst {
                queue,
                packet,
                source,
                lane,
                fetch,
            });
        };
        let mut feeds = Vec::new();
        if let Some(slot) = desc.through {
            let slot = Span {
                first: slot,
                count: 1,
            };
            read(Source::Fixed(slot), self.lane, true);
            read(Source::Through(self.lane), self.lane + 1, false);
            feeds.push(self.lane + 1);
            self.lane += 2;
        }
        for from in &desc.from {
            for piece in pieces(program, *from) {
                let lane = self.lane + piece.first - from.first;
                read(Source::Fixed(piece), lane, false);
            }
            feeds.push(self.lane);
            self.lane += from.count;
        }
        let (span, adds) = match desc.to {
            Dest::Store(span) => (span, false),
            Dest::Increment(atom) => {
                let span = Span {
                    first: atom,
                    count: 1,
                };
                (span, true)
            }
        };
        for piece in pieces(program, span) {
            let offset = piece.first - span.first;
            self.writes.push(WriteBurst {
                queue,
                packet,
                to: piece,
                adds,
                feeds: feeds.iter().map(|feed| feed + offset).collect(),
                sow: desc.sow,
                embedded: false,
            });
        }
        if let Some(first) = desc.embedded {
            self.writes.push(WriteBurst {
                queue,
                packet,
                to: Span { first, count: 1 },
                adds: true,
                feeds: Vec::new(),
                sow: false,
                embedded: true,
            });
        }
    }
}

impl WriteBurst {
    /// Whether a read burst feeds it.
    pub fn fed_by(&self, read: &ReadBurst) -> bool {
        let there = match read.source {
            Source::Fixed(span) => read.lane..read.lane + span.count,
            Source::Through(_) => read.lane..read.lane + 1,
        };
        let overlaps = |feed: &usize| *feed < there.end && there.start < feed + self.to.count;
        !read.fetch && self.feeds.iter().any(overlaps)
    }

    /// What it writes to its `n`th atom.
    pub fn value(&self, lane: &[u32], n: usize) -> u32 {
        match self.feeds.is_empty() {
            true => 1,
            false => self
                .feeds
                .iter()
                .filter_map(|feed| lane.get(feed + n))
                .fold(0, |sum, value| sum.wrapping_add(*value)),
        }
    }
}

/// Cuts a run of atoms where bursts end.
fn pieces(program: &Program, span: Span) -> Vec<Span> {
    let base = program.cell_of(span.first).map_or(0, |c| c.span.first);
    let mut pieces = Vec::new();
    let mut first = span.first;
    while first < span.end() {
        let boundary = base + ((first - base) / program.burst + 1) * program.burst;
        let count = boundary.min(span.end()) - first;
        pieces.push(Span { first, count });
        first += count;
    }
    pieces
}
