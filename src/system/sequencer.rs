//! Instruction sequencers: the agents on the device that wait for semaphores and then ring
//! doorbells. Each runs one straight program; an instruction takes effect at one instant.

use super::condition::SemTest;
use super::{Activity, Event, Posted, System};
use crate::arch::regs::{self, Direction};
use crate::arch::{EngineId, EventBlock, QueueId};
use crate::memory::Target;
use crate::sim::{ComponentId, Duration, EventClass, Instant};
use crate::units::{Addr, Cycles};
use serde::{Deserialize, Serialize};

/// A sequencer of a [`System`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SequencerId(pub(super) usize);

impl SequencerId {
    /// Its number: sequencers are counted from 0 in the order they were started.
    pub fn index(self) -> usize {
        self.0
    }
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequencerOp {
    /// Waits until a semaphore passes a test, and may change it in the same instant.
    Wait {
        /// Index of the event/semaphore block.
        block: u32,
        /// Index of the semaphore in the block.
        semaphore: u32,
        /// Test and change.
        op: WaitOp,
    },
    /// Adds to a semaphore.
    Inc {
        /// Index of the event/semaphore block.
        block: u32,
        /// Index of the semaphore in the block.
        semaphore: u32,
        /// How much.
        by: i32,
    },
    /// Subtracts from a semaphore.
    Dec {
        /// Index of the event/semaphore block.
        block: u32,
        /// Index of the semaphore in the block.
        semaphore: u32,
        /// How much.
        by: i32,
    },
    /// Sets a semaphore.
    Set {
        /// Index of the event/semaphore block.
        block: u32,
        /// Index of the semaphore in the block.
        semaphore: u32,
        /// To what.
        value: i32,
    },
    /// Rings a doorbell; the next instruction does not wait for it to arrive.
    Doorbell {
        /// The engine.
        engine: EngineId,
        /// The queue.
        queue: QueueId,
        /// Which ring.
        direction: Direction,
        /// Descriptors to add to the tail.
        count: u32,
    },
    /// Does nothing for some UDMA cycles.
    Delay(Cycles),
    /// Records the bytes of memory at this instant as an [`Observation`].
    Read {
        /// Name of the observation.
        name: String,
        /// Where.
        at: Addr,
        /// Bytes.
        len: u64,
    },
    /// Stores bytes.
    Write {
        /// Where.
        at: Addr,
        /// What.
        bytes: Vec<u8>,
    },
}

impl SequencerOp {
    /// The instruction's name, as scenarios write it.
    pub fn name(&self) -> &'static str {
        match self {
            SequencerOp::Wait { .. } => "wait",
            SequencerOp::Inc { .. } => "inc",
            SequencerOp::Dec { .. } => "dec",
            SequencerOp::Set { .. } => "set",
            SequencerOp::Doorbell { .. } => "doorbell",
            SequencerOp::Delay(_) => "delay",
            SequencerOp::Read { .. } => "read",
            SequencerOp::Write { .. } => "write",
        }
    }
}

/// The wait instructions of the sequencers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOp {
    /// Until at least the value.
    Ge(i32),
    /// Until exactly the value.
    Eq(i32),
    /// Until at least the value, then subtract it.
    GeAndDec(i32),
    /// Until exactly the value, then add one.
    EqAndInc(i32),
    /// Until exactly the value, then set to 0.
    EqAndClear(i32),
}

impl WaitOp {
    /// The test that ends the wait.
    pub fn test(self) -> SemTest {
        match self {
            WaitOp::Ge(value) | WaitOp::GeAndDec(value) => SemTest::Ge(value),
            WaitOp::Eq(value) | WaitOp::EqAndInc(value) | WaitOp::EqAndClear(value) => {
                SemTest::Eq(value)
            }
        }
    }

    /// The store that goes with it: a semaphore window and the value written there.
    fn change(self) -> Option<(u64, i32)> {
        match self {
            WaitOp::Ge(_) | WaitOp::Eq(_) => None,
            WaitOp::GeAndDec(value) => Some((EventBlock::SEM_DEC, value)),
            WaitOp::EqAndInc(_) => Some((EventBlock::SEM_INC, 1)),
            WaitOp::EqAndClear(_) => Some((EventBlock::SEM_SET, 0)),
        }
    }
}

/// What a sequencer saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The sequencer's name.
    pub sequencer: String,
    /// The name given in its program.
    pub name: String,
    /// When it read.
    pub at: Instant,
    /// What it read.
    pub bytes: Vec<u8>,
}

/// An instruction that cannot be executed on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sequencer {sequencer}, instruction {index}: {what}")]
pub struct ProgramError {
    /// The sequencer's name.
    pub sequencer: String,
    /// Index of the instruction, from 0.
    pub index: usize,
    /// What is wrong and what would be right.
    pub what: String,
}

pub(super) enum SequencerState {
    /// Its next step is scheduled.
    Running,
    /// About to look again at what it was blocked on.
    Woken,
    /// Blocked until a semaphore changes.
    Waiting {
        block: u32,
        semaphore: u32,
        test: SemTest,
    },
    Done,
}

pub(super) struct Sequencer {
    pub name: String,
    program: Vec<SequencerOp>,
    next: usize,
    pub state: SequencerState,
    /// When it came to its next instruction.
    since: Instant,
    part: ComponentId,
}

impl Sequencer {
    pub fn is_done(&self) -> bool {
        matches!(self.state, SequencerState::Done)
    }

    /// Whether it is blocked on one of the semaphores `first .. first + count` of a block.
    pub fn waits_for(&self, of_block: u32, first: u32, count: u32) -> bool {
        match self.state {
            SequencerState::Waiting {
                block, semaphore, ..
            } => block == of_block && (first..first + count).contains(&semaphore),
            _ => false,
        }
    }
}

impl System {
    /// Adds a sequencer and starts its program now.
    ///
    /// # Errors
    /// [`ProgramError`] if an instruction names something this machine does not have.
    pub fn start_sequencer(
        &mut self,
        name: &str,
        program: Vec<SequencerOp>,
    ) -> Result<SequencerId, ProgramError> {
        for (index, op) in program.iter().enumerate() {
            self.check(op).map_err(|what| ProgramError {
                sequencer: name.to_string(),
                index,
                what,
            })?;
        }
        let id = SequencerId(self.sequencers.len());
        self.sequencers.push(Sequencer {
            name: name.to_string(),
            program,
            next: 0,
            state: SequencerState::Done,
            since: self.now(),
            part: self.events.add_component(),
        });
        self.schedule_sequencer(id, self.config.values.sequencer.step);
        Ok(id)
    }

    fn check(&self, op: &SequencerOp) -> Result<(), String> {
        match op {
            SequencerOp::Wait {
                block, semaphore, ..
            }
            | SequencerOp::Inc {
                block, semaphore, ..
            }
            | SequencerOp::Dec {
                block, semaphore, ..
            }
            | SequencerOp::Set {
                block, semaphore, ..
            } => match self
                .spec
                .map
                .semaphore(*block, EventBlock::SEM_READ, *semaphore)
            {
                Some(_) => Ok(()),
                None => Err(format!(
                    "semaphore {block}.{semaphore} does not exist; {} has blocks 0 to {} of {} semaphores each",
                    self.spec.arch,
                    self.spec.map.event_block_count() - 1,
                    EventBlock::CELLS
                )),
            },
            SequencerOp::Doorbell { engine, queue, .. } => {
                let (engines, queues) = (self.engines.len(), self.spec.limits.queues_per_engine);
                if engine.0 as usize >= engines || u32::from(queue.0) >= queues {
                    return Err(format!(
                        "queue {queue} of engine {} does not exist; {} has engines 0 to {} with queues 0 to {}",
                        engine.0,
                        self.spec.arch,
                        engines - 1,
                        queues - 1
                    ));
                }
                Ok(())
            }
            SequencerOp::Read { at, len, .. } => self.check_memory(*at, *len),
            SequencerOp::Write { at, bytes } => self.check_memory(*at, bytes.len() as u64),
            SequencerOp::Delay(_) => Ok(()),
        }
    }

    fn check_memory(&self, at: Addr, len: u64) -> Result<(), String> {
        match self.memory.resolve(at, len) {
            Ok(place) => match place.target {
                Target::UdmaRegisters { .. } => Err(format!("{at} is a register, not memory")),
                _ => Ok(()),
            },
            Err(error) => Err(error.to_string()),
        }
    }

    pub(super) fn schedule_sequencer(&mut self, id: SequencerId, delay: Duration) {
        let sequencer = &mut self.sequencers[id.0];
        sequencer.state = match sequencer.state {
            SequencerState::Waiting { .. } => SequencerState::Woken,
            _ => SequencerState::Running,
        };
        let part = sequencer.part;
        self.events.schedule(
            self.events.now() + delay,
            EventClass::Sequencer,
            part,
            Event::Sequencer(id),
        );
    }

    /// Executes a sequencer's next instruction.
    pub(super) fn step_sequencer(&mut self, id: SequencerId) {
        let sequencer = &mut self.sequencers[id.0];
        let Some(op) = sequencer.program.get(sequencer.next).cloned() else {
            sequencer.state = SequencerState::Done;
            return;
        };
        if !matches!(sequencer.state, SequencerState::Woken) {
            sequencer.since = self.events.now();
        }
        let mut delay = self.config.values.sequencer.step;
        let name = op.name();
        match op {
            SequencerOp::Wait {
                block,
                semaphore,
                op,
            } => {
                let test = op.test();
                if !test.passes(self.semaphore(block, semaphore)) {
                    self.sequencers[id.0].state = SequencerState::Waiting {
                        block,
                        semaphore,
                        test,
                    };
                    return;
                }
                if let Some((window, value)) = op.change() {
                    self.store_semaphore(block, window, semaphore, value);
                }
            }
            SequencerOp::Inc {
                block,
                semaphore,
                by,
            } => self.store_semaphore(block, EventBlock::SEM_INC, semaphore, by),
            SequencerOp::Dec {
                block,
                semaphore,
                by,
            } => self.store_semaphore(block, EventBlock::SEM_DEC, semaphore, by),
            SequencerOp::Set {
                block,
                semaphore,
                value,
            } => self.store_semaphore(block, EventBlock::SEM_SET, semaphore, value),
            SequencerOp::Doorbell {
                engine,
                queue,
                direction,
                count,
            } => {
                let part = self.sequencers[id.0].part;
                let register = direction.queue_reg(queue, regs::queue::DRTP_INC);
                let way = self.config.values.sequencer.register_write;
                self.post_register(part, way, Posted::Engine(engine, register), count);
            }
            SequencerOp::Delay(cycles) => delay = self.clock.span(cycles),
            SequencerOp::Read { name, at, len } => self.read_for(id, name, at, len),
            SequencerOp::Write { at, bytes } => self.store(at, &bytes),
        }
        let sequencer = &mut self.sequencers[id.0];
        let (index, since) = (sequencer.next, sequencer.since);
        sequencer.next += 1;
        if self.outbox.observed {
            self.tell(&Activity::Instruction {
                sequencer: id,
                index,
                name: name.into(),
                since,
            });
        }
        self.schedule_sequencer(id, delay);
    }

    fn read_for(&mut self, id: SequencerId, name: String, at: Addr, len: u64) {
        let mut bytes = vec![0; len as usize];
        // The program was checked: only a write-only cell refuses, and then reads as zeros.
        if let Err(error) = self.memory.read(at, &mut bytes) {
            tracing::warn!(sequencer = self.sequencers[id.0].name, "{error}");
        }
        self.observations.push(Observation {
            sequencer: self.sequencers[id.0].name.clone(),
            name,
            at: self.events.now(),
            bytes,
        });
    }

    fn store_semaphore(&mut self, block: u32, window: u64, semaphore: u32, value: i32) {
        if let Some(cell) = self.spec.map.semaphore(block, window, semaphore) {
            self.store(cell, &value.to_le_bytes());
        }
    }

    /// A store that takes effect now.
    fn store(&mut self, at: Addr, bytes: &[u8]) {
        match self.memory.write(at, bytes) {
            Ok(effects) => self.wake_sequencers(effects),
            Err(error) => tracing::warn!("{error}"),
        }
    }
}
