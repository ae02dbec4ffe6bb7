//! The program of a plan, executed in order without an engine, for the race detector: host steps, every
//! descriptor of every queue, sequencers.

use super::host_side::{HostAction, HostSide};
use super::plan::{Action, Plan, WaitOn};
use crate::arch::regs::{Direction, RateLimitMask, queue};
use crate::arch::{EngineId, EventBlock};
use crate::desc::{DESC_BYTES, Descriptor, RxDesc, TxDesc, packets};
use crate::host::{Bus, BusError, BusReason, PringError, TimedBus};
use crate::memory::{PhysicalMemory, Target};
use crate::order::race::{Detector, PacketAccess, Race, Thread};
use crate::sim::Duration;
use crate::system::{Condition, SemTest, SequencerOp, WaitOp};
use crate::units::Addr;
use std::collections::BTreeMap;

/// Most races that a report holds; further ones are counted.
const MAX_RACES: usize = 1000;

/// Why a scenario cannot be checked for races.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// Memory for the rings could not be mapped.
    #[error("cannot map memory: {0}")]
    Memory(#[from] std::io::Error),
    /// A ring could not be set up.
    #[error(transparent)]
    Ring(#[from] PringError),
    /// An access was refused.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A step that the check cannot follow.
    #[error("step {step}: {what}")]
    Step {
        /// Index of the `[[step]]` in the file, from 0.
        step: usize,
        /// What it is.
        what: String,
    },
}

/// What the race check of a scenario found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Races {
    /// The races.
    pub races: Vec<Race>,
    /// Further ones that are not listed.
    pub more: u64,
    /// Packets looked at.
    pub packets: u64,
}

impl Plan {
    /// Checks the plan's program for races (`docs/ordering.md`, "Races").
    ///
    /// # Errors
    /// [`ExtractError`] for what the check cannot follow: drivers that poll, packets that are no plain
    /// copies, waits that never end when everything is executed in order.
    pub fn races(&self) -> Result<Races, ExtractError> {
        let spec = self.config.arch().spec();
        let memory = PhysicalMemory::new(spec, self.config.values.host.memory.0)?;
        let mut bus = Recorder {
            memory,
            writes: Vec::new(),
        };
        let host = HostSide::dry_run(self.config.arch(), &self.prings, &mut bus)?;
        bus.writes.clear();
        let mut detector = Detector::new(self.config.arch(), MAX_RACES);
        let host_thread = detector.agent("host");
        let sequencers = self.sequencers.iter();
        let sequencers =
            sequencers.map(|(name, _)| (detector.agent(&format!("sequencer {name}")), 0));
        let sequencers = sequencers.collect();
        let mut walk = Walk {
            plan: self,
            bus,
            host,
            host_thread,
            detector,
            sequencers,
            queues: BTreeMap::new(),
            semaphores: BTreeMap::new(),
            step: 0,
            packets: 0,
        };
        walk.run_sequencers()?;
        for step in &self.steps {
            walk.step = step.source;
            walk.act(&step.action)?;
            walk.run_sequencers()?;
        }
        Ok(Races {
            races: walk.detector.races(),
            more: walk.detector.more,
            packets: walk.packets,
        })
    }
}

/// A memory without engines that notes register writes.
struct Recorder {
    memory: PhysicalMemory,
    writes: Vec<(EngineId, u64, u32)>,
}

impl Recorder {
    fn register(&self, at: Addr) -> Result<(EngineId, u64), BusError> {
        let reason = match self.memory.resolve(at, 4) {
            Ok(place) => match place.target {
                Target::UdmaRegisters { engine } => return Ok((engine, place.offset)),
                _ => BusReason::NoRegister,
            },
            Err(error) => BusReason::Memory(error.reason),
        };
        Err(BusError { at, len: 4, reason })
    }
}

impl Bus for Recorder {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        Ok(self.memory.read(at, out)?)
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        self.memory.write(at, bytes)?;
        Ok(())
    }

    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        self.register(at).map(|_| 0)
    }

    fn write_reg(&mut self, at: Addr, value: u32) -> Result<(), BusError> {
        let (engine, offset) = self.register(at)?;
        self.writes.push((engine, offset, value));
        Ok(())
    }
}

impl TimedBus for Recorder {
    fn sleep(&mut self, _time: Duration) {}
}

/// One ring of a queue, as its registers say.
#[derive(Default)]
struct Ring {
    base: u64,
    length: u32,
    /// Next slot to execute, and how many are rung.
    next: u32,
    rung: u32,
}

impl Ring {
    fn slot(&self, ahead: u32) -> u32 {
        ((u64::from(self.next) + u64::from(ahead)) % u64::from(self.length.max(1))) as u32
    }

    fn take(&mut self, count: u32) {
        self.next = self.slot(count);
        self.rung -= count;
    }
}

struct Queue {
    thread: Option<Thread>,
    rings: [Ring; 2],
    dmb_masked: bool,
}

struct Walk<'a> {
    plan: &'a Plan,
    bus: Recorder,
    host: HostSide,
    host_thread: Thread,
    detector: Detector,
    /// Thread and next instruction.
    sequencers: Vec<(Thread, usize)>,
    queues: BTreeMap<(EngineId, u8), Queue>,
    semaphores: BTreeMap<(u32, u32), i32>,
    step: usize,
    packets: u64,
}

impl Walk<'_> {
    fn refuse<T>(&self, what: impl Into<String>) -> Result<T, ExtractError> {
        Err(ExtractError::Step {
            step: self.step,
            what: what.into(),
        })
    }

    fn act(&mut self, action: &Action) -> Result<(), ExtractError> {
        let host = self.host_thread;
        match action {
            Action::Host(HostAction::Driver(_)) => {
                return self.refuse("the race check does not follow drivers yet");
            }
            Action::Host(action) => {
                if let Err(error) = self.host.perform(action, self.plan.seed, &mut self.bus) {
                    return self.refuse(error.to_string());
                }
                if let HostAction::Write { region, .. } = action {
                    self.detector.access(host, region.at, region.bytes, true);
                }
                for (engine, offset, value) in std::mem::take(&mut self.bus.writes) {
                    self.write_register(host, engine, offset, value)?;
                }
            }
            Action::Observe { region, .. } => {
                self.detector.access(host, region.at, region.bytes, false);
            }
            Action::Wait { on, .. } => self.wait(on)?,
            Action::Interrupt { .. } | Action::ReadRegister { .. } => {}
        }
        Ok(())
    }

    fn wait(&mut self, on: &WaitOn) -> Result<(), ExtractError> {
        let host = self.host_thread;
        match on {
            WaitOn::Sequencer(index) => {
                if let Some((thread, _)) = self.sequencers.get(*index) {
                    self.detector.wait_agent(host, *thread);
                }
            }
            WaitOn::For(_) => {}
            WaitOn::Condition(condition) => match condition {
                Condition::Idle => {
                    for thread in self.queues.values().filter_map(|queue| queue.thread) {
                        self.detector.wait_queue(host, thread);
                    }
                    for (thread, _) in &self.sequencers {
                        self.detector.wait_agent(host, *thread);
                    }
                }
                Condition::QueueIdle { engine, queue } => {
                    let queue = self.queues.get(&(*engine, *queue));
                    if let Some(thread) = queue.and_then(|queue| queue.thread) {
                        self.detector.wait_queue(host, thread);
                    }
                }
                Condition::Semaphore { block, index, test } => {
                    if !self.wait_semaphore(host, (*block, *index), *test) {
                        let what = format!(
                            "semaphore {block}.{index} never is {test} when everything is executed \
                             in order"
                        );
                        return self.refuse(what);
                    }
                }
                Condition::Word { at, .. } => self.detector.wait_word(host, *at),
                Condition::SequencerDone(_) | Condition::Interrupt | Condition::Until(_) => {}
            },
        }
        Ok(())
    }

    /// Whether a semaphore passes; the agent then knows what that shows.
    fn wait_semaphore(&mut self, agent: Thread, cell: (u32, u32), test: SemTest) -> bool {
        let value = self.semaphores.get(&cell).copied().unwrap_or(0);
        let least = match test {
            SemTest::Ge(least) | SemTest::Eq(least) => least,
        };
        // In order more may have come already than a real wait would see.
        let passes = value >= least;
        if passes {
            let slack = i64::from(value) - i64::from(least);
            self.detector.wait_semaphore(agent, cell, slack as usize);
        }
        passes
    }

    fn write_register(
        &mut self,
        agent: Thread,
        engine: EngineId,
        offset: u64,
        value: u32,
    ) -> Result<(), ExtractError> {
        let queues = self.plan.config.arch().spec().limits.queues_per_engine as u8;
        for direction in Direction::ALL {
            for q in 0..queues {
                let Some(register) = offset.checked_sub(direction.queue_reg(q, 0)) else {
                    continue;
                };
                let bank = direction.queue_reg(1, 0) - direction.queue_reg(0, 0);
                if register < bank {
                    let at = (engine, q, direction);
                    return self.write_bank(agent, at, register, value);
                }
            }
        }
        Ok(())
    }

    fn write_bank(
        &mut self,
        agent: Thread,
        (engine, q, direction): (EngineId, u8, Direction),
        register: u64,
        value: u32,
    ) -> Result<(), ExtractError> {
        let queue = self.queues.entry((engine, q)).or_insert_with(|| Queue {
            thread: None,
            rings: Default::default(),
            dmb_masked: true,
        });
        let ring = &mut queue.rings[direction as usize];
        match register {
            queue::DRBP_LOW => {
                *ring = Ring {
                    base: u64::from(value),
                    length: ring.length,
                    ..Ring::default()
                };
            }
            queue::DRBP_HIGH => ring.base = ring.base & 0xffff_ffff | u64::from(value) << 32,
            queue::DRL => ring.length = value,
            queue::M2S_RATE_LIMIT_MASK if direction == Direction::M2s => {
                queue.dmb_masked = RateLimitMask::from_bits(value).internal_pause_dmb();
            }
            queue::DRTP_INC => {
                ring.rung = ring.rung.saturating_add(value).min(ring.length);
                let masked = queue.dmb_masked;
                let thread = *queue
                    .thread
                    .get_or_insert_with(|| self.detector.queue(engine, q, masked));
                self.detector.doorbell(agent, thread);
                self.execute((engine, q), thread)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Executes every packet of a queue that both rings have been rung for.
    fn execute(&mut self, at: (EngineId, u8), thread: Thread) -> Result<(), ExtractError> {
        let limit = self.plan.config.arch().spec().limits.tx_descs_per_packet;
        let Some(queue) = self.queues.get_mut(&at) else {
            return Ok(());
        };
        let [tx_ring, rx_ring] = &mut queue.rings;
        let txs = read_ring(&mut self.bus, tx_ring)?;
        let rxs = read_ring(&mut self.bus, rx_ring)?;
        let mut next_rx = 0;
        let mut next_tx = 0;
        let mut done = Vec::new();
        let mut refused = None;
        for packet in packets(&txs, limit) {
            let mut access = PacketAccess {
                slot: tx_ring.slot(next_tx),
                step: self.step as u32,
                dmb: packet.dmb(),
                write_barrier: packet.write_barrier(),
                ..PacketAccess::default()
            };
            if packet.descs.iter().any(|desc| !is_copy(*desc)) {
                refused = Some(access.slot);
                break;
            }
            access.reads = packet
                .data()
                .map(|tx| (tx.buf_ptr, u64::from(tx.len_ctrl.byte_len())))
                .collect();
            let mut left = packet.byte_len();
            let mut rx_used = 0;
            while left > 0 {
                let Some(desc) = rxs.get(next_rx + rx_used) else {
                    break;
                };
                let rx = RxDesc::from(*desc);
                let len = left.min(u64::from(rx.len_ctrl.byte_len()));
                let caps = self.plan.config.arch().spec().caps;
                access.sow = rx.len_ctrl.strong_order_wr() && caps.strong_order_writes;
                access.writes.push((rx.buf1_ptr, len));
                left -= len;
                rx_used += 1;
            }
            if left > 0 {
                break;
            }
            if access.reads == access.writes {
                // Padding: what it writes is what it read.
                access.reads.clear();
                access.writes.clear();
            }
            next_rx += rx_used;
            next_tx += packet.descs.len() as u32;
            done.push(access);
        }
        tx_ring.take(next_tx);
        rx_ring.take(next_rx as u32);
        for mut access in done {
            self.apart(&mut access);
            self.packets += 1;
            self.detector.packet(thread, &access);
            for cell in access.increments {
                let value = self.semaphores.entry(cell).or_default();
                *value = value.wrapping_add(1);
            }
        }
        match refused {
            None => Ok(()),
            Some(slot) => self.refuse(format!(
                "{} queue {} slot {slot}: the race check follows plain copies only",
                at.0, at.1
            )),
        }
    }

    /// Tells semaphores and constants from memory: nothing races on them.
    fn apart(&self, access: &mut PacketAccess) {
        let memory = &self.bus.memory;
        access.reads.retain(|(at, len)| {
            !matches!(memory.resolve(*at, *len), Ok(place) if place.target == Target::Constant)
        });
        let cells = EventBlock::CELL_BYTES * u64::from(EventBlock::CELLS);
        let mut increments = Vec::new();
        access.writes.retain(|(at, len)| {
            let Ok(place) = memory.resolve(*at, *len) else {
                return true;
            };
            let Target::EventBlock { block } = place.target else {
                return true;
            };
            let inc = EventBlock::SEM_INC..EventBlock::SEM_INC + cells;
            if inc.contains(&place.offset) {
                let index = (place.offset - EventBlock::SEM_INC) / EventBlock::CELL_BYTES;
                increments.push((block, index as u32));
            }
            false
        });
        access.increments = increments;
    }

    /// Lets every sequencer go as far as it can.
    fn run_sequencers(&mut self) -> Result<(), ExtractError> {
        let mut moved = true;
        while moved {
            moved = false;
            for n in 0..self.sequencers.len() {
                while self.step_sequencer(n)? {
                    moved = true;
                }
            }
        }
        Ok(())
    }

    fn step_sequencer(&mut self, n: usize) -> Result<bool, ExtractError> {
        let (thread, next) = self.sequencers[n];
        let plan = self.plan;
        let Some(op) = plan.sequencers[n].1.get(next) else {
            return Ok(false);
        };
        match op {
            SequencerOp::Wait {
                block,
                semaphore,
                op,
            } => {
                let cell = (*block, *semaphore);
                if !self.wait_semaphore(thread, cell, op.test()) {
                    return Ok(false);
                }
                let value = self.semaphores.entry(cell).or_default();
                *value = match op {
                    WaitOp::Ge(_) | WaitOp::Eq(_) => *value,
                    WaitOp::GeAndDec(by) => value.wrapping_sub(*by),
                    WaitOp::EqAndInc(_) => value.wrapping_add(1),
                    WaitOp::EqAndClear(_) => 0,
                };
            }
            SequencerOp::Inc {
                block,
                semaphore,
                by,
            } => {
                let value = self.semaphores.entry((*block, *semaphore)).or_default();
                *value = value.wrapping_add(*by);
                self.detector.increment(thread, (*block, *semaphore));
            }
            SequencerOp::Dec {
                block,
                semaphore,
                by,
            } => {
                let value = self.semaphores.entry((*block, *semaphore)).or_default();
                *value = value.wrapping_sub(*by);
            }
            SequencerOp::Set {
                block,
                semaphore,
                value,
            } => {
                self.semaphores.insert((*block, *semaphore), *value);
            }
            SequencerOp::Doorbell {
                engine,
                queue,
                direction,
                count,
            } => {
                let at = (*engine, *queue, *direction);
                self.write_bank(thread, at, queue::DRTP_INC, *count)?;
            }
            SequencerOp::Read { at, len, .. } => self.detector.access(thread, *at, *len, false),
            SequencerOp::Write { at, bytes } => {
                self.bus.write_mem(*at, bytes)?;
                self.detector.access(thread, *at, bytes.len() as u64, true);
            }
            SequencerOp::Delay(_) => {}
        }
        self.sequencers[n].1 += 1;
        Ok(true)
    }
}

fn is_copy(desc: Descriptor) -> bool {
    let tx = TxDesc::from(desc);
    !tx.len_ctrl.meta() && tx.meta_ctrl.cme_op() == Some(crate::desc::CmeOp::Copy)
}

/// The descriptors of a ring that are rung and not executed.
fn read_ring(bus: &mut Recorder, ring: &Ring) -> Result<Vec<Descriptor>, BusError> {
    let mut descs = Vec::new();
    let mut bytes = [0; DESC_BYTES];
    for ahead in 0..ring.rung {
        let offset = u64::from(ring.slot(ahead)) * DESC_BYTES as u64;
        bus.read_mem(Addr(ring.base.wrapping_add(offset)), &mut bytes)?;
        descs.push(Descriptor::from_bytes(bytes));
    }
    Ok(descs)
}
