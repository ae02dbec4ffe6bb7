//! Fault injection: what goes wrong on purpose, where, and what noticed it.
//!
//! A fault names an engine, a queue, a site in the packet's life and when to strike: the n-th time
//! the queue passes the site, or one time in so many, drawn from the fault's own random stream. The
//! device then reacts as it would to the real thing.

use super::error::ErrorBit;
use crate::arch::regs::Direction;
use crate::arch::{EngineId, QueueId};
use crate::sim::{Duration, Instant, stream};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::fmt;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A descriptor fetch gets an AXI error response.
    FetchError(Direction),
    /// One bit of a fetched descriptor flips, unnoticed by parity.
    FlipDescriptor {
        /// Which ring's.
        direction: Direction,
        /// Which of the 128 bits.
        bit: u8,
    },
    /// A data read gets an AXI error response.
    ReadError,
    /// A data read is never answered.
    LostRead,
    /// One bit of a data read flips, unnoticed by parity.
    FlipData {
        /// Which bit of the burst, modulo its length.
        bit: u32,
    },
    /// A data write gets an AXI error response; the bytes are not written.
    WriteError,
    /// A data write is visible, its acknowledge never arrives.
    LostAck,
    /// A data write is visible, its acknowledge arrives late.
    LateAck(Duration),
    /// The scheduler never starts the packet, nor any later one of the queue.
    StuckQueue,
    /// A block reports an error that only it can see, such as a parity error, when the packet
    /// starts.
    Report(ErrorBit),
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::FetchError(direction) => {
                write!(
                    f,
                    "AXI error on a {} descriptor fetch",
                    direction.ring_name()
                )
            }
            FaultKind::FlipDescriptor { direction, bit } => {
                write!(
                    f,
                    "bit {bit} of a {} descriptor flipped",
                    direction.ring_name()
                )
            }
            FaultKind::ReadError => f.write_str("AXI error on a data read"),
            FaultKind::LostRead => f.write_str("data read never answered"),
            FaultKind::FlipData { bit } => write!(f, "bit {bit} of a data read flipped"),
            FaultKind::WriteError => f.write_str("AXI error on a data write"),
            FaultKind::LostAck => f.write_str("write acknowledgement lost"),
            FaultKind::LateAck(by) => write!(f, "write acknowledgement {by} late"),
            FaultKind::StuckQueue => f.write_str("queue stuck"),
            FaultKind::Report(bit) => write!(f, "error reported: {}", bit.meaning()),
        }
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault {
            engine,
            queue,
            kind,
            ..
        } = self.fault;
        write!(f, "{engine} queue {queue}, event {}: {kind}; ", self.nth)?;
        match self.noticed {
            Some(bit) => write!(f, "raised the error bit \"{}\"", bit.meaning()),
            None => f.write_str("no error bit was raised"),
        }
    }
}

/// A place in a packet's life at which faults strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    /// A burst of descriptors arrives.
    Fetch(Direction),
    /// A descriptor arrives.
    Descriptor(Direction),
    /// A data read is sampled.
    Read,
    /// A data write reaches memory.
    Write,
    /// A packet is about to start.
    Packet,
}

impl FaultKind {
    fn site(self) -> Site {
        match self {
            FaultKind::FetchError(direction) => Site::Fetch(direction),
            FaultKind::FlipDescriptor { direction, .. } => Site::Descriptor(direction),
            FaultKind::ReadError | FaultKind::LostRead | FaultKind::FlipData { .. } => Site::Read,
            FaultKind::WriteError | FaultKind::LostAck | FaultKind::LateAck(_) => Site::Write,
            FaultKind::StuckQueue | FaultKind::Report(_) => Site::Packet,
        }
    }
}

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The n-th time, from 0, and never again.
    Nth(u64),
    /// Each time with a probability of one in so many (at least 1).
    OneIn(u64),
}

/// A fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The engine.
    pub engine: EngineId,
    /// The queue.
    pub queue: QueueId,
    /// What goes wrong.
    pub kind: FaultKind,
    /// When.
    pub when: When,
}

/// A fault that struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injection {
    /// The fault.
    pub fault: Fault,
    /// How often its site had been passed before.
    pub nth: u64,
    /// When it struck.
    pub at: Instant,
    /// The first error bit that the engine raised for this queue afterwards.
    pub noticed: Option<ErrorBit>,
}

/// Injections an engine keeps a record of; more are made, and counted only.
const RECORDS: usize = 1024;

struct Armed {
    fault: Fault,
    passed: u64,
    stream: ChaCha8Rng,
}

/// The faults of one engine.
#[derive(Default)]
pub(super) struct Faults {
    armed: Vec<Armed>,
    injections: Vec<Injection>,
    struck: u64,
}

impl Faults {
    /// Arms a fault; `index` numbers the faults of the machine.
    pub fn arm(&mut self, fault: Fault, seed: u64, index: usize) {
        self.armed.push(Armed {
            fault,
            passed: 0,
            stream: stream(seed, &format!("fault/{index}")),
        });
    }

    /// Queue `queue` passes a site: what strikes there, if anything. Of several faults that strike
    /// at once the one armed first does.
    pub fn strike(&mut self, site: Site, queue: QueueId, now: Instant) -> Option<FaultKind> {
        let mut struck = None;
        for armed in &mut self.armed {
            if armed.fault.queue != queue || armed.fault.kind.site() != site {
                continue;
            }
            let nth = armed.passed;
            armed.passed += 1;
            let strikes = match armed.fault.when {
                When::Nth(n) => n == nth,
                When::OneIn(n) => armed.stream.random_range(0..n.max(1)) == 0,
            };
            if strikes && struck.is_none() {
                struck = Some(armed.fault.kind);
                self.struck += 1;
                if self.injections.len() < RECORDS {
                    self.injections.push(Injection {
                        fault: armed.fault,
                        nth,
                        at: now,
                        noticed: None,
                    });
                }
            }
        }
        struck
    }

    /// The engine raised an error for a queue.
    pub fn notice(&mut self, queue: QueueId, bit: ErrorBit) {
        let of_queue = |injection: &&mut Injection| injection.fault.queue == queue;
        for injection in self.injections.iter_mut().filter(of_queue) {
            injection.noticed.get_or_insert(bit);
        }
    }

    /// What struck, in order: a record of the first ones.
    pub fn injections(&self) -> &[Injection] {
        &self.injections
    }

    /// How many faults struck.
    pub fn struck(&self) -> u64 {
        self.struck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind, when: When) -> Fault {
        Fault {
            engine: EngineId(0),
            queue: QueueId(3),
            kind,
            when,
        }
    }

    #[test]
    fn a_fault_strikes_at_its_site_in_its_queue_at_its_time() {
        let mut faults = Faults::default();
        faults.arm(fault(FaultKind::ReadError, When::Nth(2)), 0, 0);
        let strikes: Vec<bool> = (0..5)
            .map(|_| {
                assert_eq!(faults.strike(Site::Read, QueueId(2), Instant::START), None);
                assert_eq!(faults.strike(Site::Write, QueueId(3), Instant::START), None);
                faults
                    .strike(Site::Read, QueueId(3), Instant::START)
                    .is_some()
            })
            .collect();
        assert_eq!(strikes, [false, false, true, false, false]);
        assert_eq!(faults.injections()[0].nth, 2);
    }

    #[test]
    fn rates_are_seeded() {
        let count = |seed| {
            let mut faults = Faults::default();
            faults.arm(fault(FaultKind::LostAck, When::OneIn(10)), seed, 0);
            let strikes: Vec<bool> = (0..10_000)
                .map(|_| {
                    faults
                        .strike(Site::Write, QueueId(3), Instant::START)
                        .is_some()
                })
                .collect();
            assert_eq!(
                faults.struck(),
                strikes.iter().filter(|hit| **hit).count() as u64
            );
            assert!(faults.injections().len() <= RECORDS);
            strikes
        };
        let struck = count(1).iter().filter(|hit| **hit).count();
        // 1000 expected, standard deviation 30.
        assert!((850..1150).contains(&struck), "{struck}");
        assert_eq!(count(1), count(1));
        assert_ne!(count(1), count(2));
    }
}
