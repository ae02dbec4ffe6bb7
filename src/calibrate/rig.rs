//! A machine on which one experiment is run: vrings on queues of several engines, started together.

use super::CalibrateError;
use crate::arch::regs::Direction;
use crate::arch::{Arch, ArchSpec, EngineId, EventBlock};
use crate::config::Config;
use crate::host::{Bus, Pring, QueueOptions, QueuePair, QueueSetup, TimedBus, Vring};
use crate::sim::Duration;
use crate::system::{Condition, SemTest, SequencerOp, System, WaitOp, WaitOutcome};
use crate::units::Addr;

/// Longest an experiment may take in simulated time.
const TIMEOUT: Duration = Duration::from_ns(1_000_000_000);
/// Address space that the rings of one queue get.
const RING_SPACE: u64 = 8 << 20;
/// The machine's seed: nothing in an experiment is random unless the config adds jitter.
const SEED: u64 = 0;

/// See the module.
pub(super) struct Rig {
    system: System,
    queues: Vec<(QueuePair, u32, u32)>,
}

impl Rig {
    pub fn new(config: &Config) -> Result<Rig, CalibrateError> {
        Ok(Rig {
            system: System::new(config.clone(), SEED)?,
            queues: Vec::new(),
        })
    }

    pub fn arch(&self) -> Arch {
        self.system.arch()
    }

    pub fn spec(&self) -> &'static ArchSpec {
        self.arch().spec()
    }

    /// An address in HBM, below which nobody puts rings.
    pub fn hbm(&self, stack: usize, offset: u64) -> Addr {
        Addr(self.spec().map.hbm[stack].base.0 + offset)
    }

    /// An address in HBM; engines take the stacks in turn.
    pub fn spread(&self, engine: u32, offset: u64) -> Addr {
        let stacks = self.spec().map.hbm.len();
        self.hbm(engine as usize % stacks, offset)
    }

    /// The start of a partition of a State Buffer.
    pub fn state_buffer(&self, core: usize, partition: u64) -> Addr {
        let map = &self.spec().map;
        Addr(map.tpb[core].0 + partition * map.state_buffer.stride)
    }

    pub fn host(&self, offset: u64) -> Addr {
        Addr(self.spec().map.host.0 + offset)
    }

    /// Lets time pass before anything is set up.
    pub fn wait(&mut self, time: Duration) {
        self.system.sleep(time);
    }

    /// Dumps a vring and sets up a queue for it. Rings lie at the top of the last HBM stack.
    pub fn add(&mut self, engine: u32, queue: u32, vring: &Vring) -> Result<(), CalibrateError> {
        let arch = self.arch();
        let map = &self.spec().map;
        let last = map.hbm[map.hbm.len() - 1];
        let below = (self.queues.len() as u64 + 1) * 2 * RING_SPACE;
        let base = last.base.0 + last.populated - below;
        let pring = |direction, at| {
            let used = vring.half(direction).used_desc_count();
            Pring::new(direction, Addr(at), used.next_multiple_of(16).max(32))
        };
        let mut tx = pring(Direction::M2s, base)?;
        let mut rx = pring(Direction::S2m, base + RING_SPACE)?;
        vring.dump_to_pring(&mut self.system, &mut tx, &mut rx)?;
        let pair = QueuePair::init(
            &mut self.system,
            QueueSetup {
                arch,
                engine: EngineId(engine),
                queue,
                tx: &tx,
                rx: &rx,
                options: QueueOptions::default(),
            },
        )?;
        let counts = Direction::ALL.map(|half| vring.half(half).used_desc_count());
        self.queues.push((pair, counts[0], counts[1]));
        Ok(())
    }

    /// Rings all doorbells and runs until `until` holds. Returns how long that took from the moment the
    /// doorbells reached the engines.
    fn run(&mut self, until: &Condition) -> Result<Duration, CalibrateError> {
        // Whatever the set-up wrote has arrived.
        let set_up = self.system.run_until(&Condition::Idle, TIMEOUT);
        if set_up != WaitOutcome::Met {
            return Err(CalibrateError::Unfinished);
        }
        let began = self.system.now() + self.system.config().values.host.register_write;
        for (pair, tx, rx) in &self.queues {
            pair.trigger(&mut self.system, *tx, *rx)?;
        }
        match self.system.run_until(until, TIMEOUT) {
            WaitOutcome::Met => Ok(self.system.now() - began),
            _ => Err(CalibrateError::Unfinished),
        }
    }

    /// Runs until all queues are idle.
    pub fn until_idle(mut self) -> Result<Duration, CalibrateError> {
        self.run(&Condition::Idle)
    }

    /// A sequencer rings all doorbells when semaphore 0 of block 0 changes: how long after that the first word of what is
    /// copied is there.
    pub fn semaphore_to_first_word(
        mut self,
        from: Addr,
        to: Addr,
    ) -> Result<Duration, CalibrateError> {
        const WORD: [u8; 4] = 0xabcd_ef01u32.to_le_bytes();
        self.system.write_mem(from, &WORD)?;
        let mut program = vec![SequencerOp::Wait {
            block: 0,
            semaphore: 0,
            op: WaitOp::Ge(1),
        }];
        for (pair, tx, rx) in &self.queues {
            for (direction, count) in [(Direction::S2m, *rx), (Direction::M2s, *tx)] {
                program.push(SequencerOp::Doorbell {
                    engine: pair.engine(),
                    queue: pair.queue(),
                    direction,
                    count,
                });
            }
        }
        self.system.start_sequencer("waits", program)?;
        self.system.sleep(Duration::from_ns(10_000));
        let began = self.system.now();
        let set = self.spec().map.semaphore(0, EventBlock::SEM_SET, 0);
        let set = set.ok_or(CalibrateError::Unfinished)?;
        self.system.write_mem(set, &1u32.to_le_bytes())?;
        let there = Condition::Word {
            at: to,
            value: u32::from_le_bytes(WORD),
        };
        match self.system.run_until(&there, TIMEOUT) {
            WaitOutcome::Met => Ok(self.system.now() - began),
            _ => Err(CalibrateError::Unfinished),
        }
    }

    /// Runs until semaphore 0 of block 0 is 1.
    pub fn until_semaphore(mut self) -> Result<Duration, CalibrateError> {
        self.run(&Condition::Semaphore {
            block: 0,
            index: 0,
            test: SemTest::Ge(1),
        })
    }
}
