//! What the host can wait for, and what it learns when the wait ends otherwise.

use super::System;
use super::sequencer::{SequencerId, SequencerState};
use crate::arch::{EngineId, EventBlock, QueueId};
use crate::device::Stall;
use crate::sim::Instant;
use crate::units::Addr;
use std::fmt;

/// What to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Every engine has completed every Tx descriptor its doorbells covered, every sequencer is
    /// done, no register write is on its way.
    Idle,
    /// One queue has completed every Tx descriptor its doorbells covered, and no register write is
    /// on its way.
    QueueIdle {
        /// The engine.
        engine: EngineId,
        /// The queue.
        queue: QueueId,
    },
    /// A semaphore has some value.
    Semaphore {
        /// Index of the event/semaphore block.
        block: u32,
        /// Index of the semaphore in the block.
        index: u32,
        /// Which value.
        test: SemTest,
    },
    /// The 32-bit word at an address, such as a completion marker, has a value.
    Word {
        /// Where.
        at: Addr,
        /// Which value.
        value: u32,
    },
    /// An interrupt is there to be taken.
    Interrupt,
    /// A point in time.
    Until(Instant),
    /// A sequencer has run to its end.
    SequencerDone(SequencerId),
}

/// A test of a semaphore's value, which is a signed 32-bit number (A: public driver).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SemTest {
    /// At least this.
    Ge(i32),
    /// Exactly this.
    Eq(i32),
}

impl SemTest {
    /// Whether a value passes.
    pub fn passes(self, value: i32) -> bool {
        match self {
            SemTest::Ge(least) => value >= least,
            SemTest::Eq(exactly) => value == exactly,
        }
    }
}

impl fmt::Display for SemTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SemTest::Ge(least) => write!(f, ">= {least}"),
            SemTest::Eq(exactly) => write!(f, "== {exactly}"),
        }
    }
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The condition holds.
    Met,
    /// Time ran out first; who was still waiting for what.
    TimedOut(Vec<Waiter>),
    /// Nothing is left that could happen, and the condition does not hold: a deadlock.
    Stuck(Vec<Waiter>),
}

/// Somebody with work left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// A queue.
    Queue(Stall),
    /// A sequencer that waits for a semaphore.
    Sequencer {
        /// Its name.
        name: String,
        /// Index of the event/semaphore block.
        block: u32,
        /// Index of the semaphore in the block.
        semaphore: u32,
        /// The value it waits for.
        test: SemTest,
        /// The value it has.
        value: i32,
    },
}

impl fmt::Display for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Waiter::Queue(stall) => stall.fmt(f),
            Waiter::Sequencer {
                name,
                block,
                semaphore,
                test,
                value,
            } => write!(
                f,
                "sequencer {name} waits for semaphore {block}.{semaphore} {test}; it is {value}"
            ),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Idle => f.write_str("an idle device"),
            Condition::QueueIdle { engine, queue } => {
                write!(f, "{engine} queue {queue} to be idle")
            }
            Condition::Semaphore { block, index, test } => {
                write!(f, "semaphore {block}.{index} {test}")
            }
            Condition::Word { at, value } => write!(f, "the value {value:#x} at {at}"),
            Condition::Interrupt => f.write_str("an interrupt"),
            Condition::Until(at) => write!(f, "{}", *at - Instant::START),
            Condition::SequencerDone(id) => write!(f, "sequencer {} to end", id.0),
        }
    }
}

impl System {
    /// Whether a condition holds now.
    pub fn holds(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Idle => {
                self.posted == 0
                    && self.sequencers.iter().all(|sequencer| sequencer.is_done())
                    && (self.touched.iter()).all(|id| self.engines[id.0 as usize].is_idle())
            }
            Condition::QueueIdle { engine, queue } => {
                self.posted == 0
                    && (self.engines.get(engine.0 as usize))
                        .is_none_or(|engine| engine.queue_is_idle(*queue))
            }
            Condition::Semaphore { block, index, test } => {
                test.passes(self.semaphore(*block, *index))
            }
            Condition::Word { at, value } => {
                let mut word = [0; 4];
                self.memory.read(*at, &mut word).is_ok() && u32::from_le_bytes(word) == *value
            }
            Condition::Interrupt => !self.interrupts.is_empty(),
            Condition::Until(at) => self.now() >= *at,
            Condition::SequencerDone(id) => {
                (self.sequencers.get(id.0)).is_none_or(|sequencer| sequencer.is_done())
            }
        }
    }

    /// The value of a semaphore; 0 if the device has no such one.
    pub fn semaphore(&self, block: u32, index: u32) -> i32 {
        let cell = self.spec.map.semaphore(block, EventBlock::SEM_READ, index);
        self.word(cell) as i32
    }

    /// The value of an event; 0 if the device has no such one.
    pub fn event(&self, block: u32, index: u32) -> u32 {
        self.word(self.spec.map.event(block, index))
    }

    fn word(&self, at: Option<Addr>) -> u32 {
        let mut word = [0; 4];
        match at.map(|at| self.memory.read(at, &mut word)) {
            Some(Ok(())) => u32::from_le_bytes(word),
            _ => 0,
        }
    }

    /// Everybody who has work left and what it waits for, engines first.
    pub fn waiters(&self) -> Vec<Waiter> {
        let engines = self.engines_in_use();
        let queues = engines
            .iter()
            .flat_map(|id| self.engines[id.0 as usize].stalls(&self.clock))
            .map(Waiter::Queue);
        let sequencers = self.sequencers.iter().filter_map(|sequencer| {
            let SequencerState::Waiting {
                block,
                semaphore,
                test,
            } = sequencer.state
            else {
                return None;
            };
            Some(Waiter::Sequencer {
                name: sequencer.name.clone(),
                block,
                semaphore,
                test,
                value: self.semaphore(block, semaphore),
            })
        });
        queues.chain(sequencers).collect()
    }
}
