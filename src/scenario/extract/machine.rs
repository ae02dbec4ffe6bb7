//! A machine without engines: a register write that rings a queue executes, at once and in order, all
//! that the queue can execute.

use super::cells::{cell_at, event, least};
use super::error::ExtractError;
use super::packet::{self, Found, WordCopy};
use crate::arch::regs::{Direction, RateLimitMask, queue};
use crate::arch::{EngineId, EventBlock, QueueId};
use crate::config::Config;
use crate::desc::{DESC_BYTES, Descriptor};
use crate::host::{Bus, BusError, BusReason, TimedBus};
use crate::memory::{PhysicalMemory, Target};
use crate::order::race::{BarrierKind, Detector, PacketAccess, Thread, WriteTo};
use crate::sim::Duration;
use crate::system::SemTest;
use crate::units::Addr;
use std::collections::{BTreeMap, BTreeSet};

/// Most races that a report holds; further ones are counted.
const MAX_RACES: usize = 1000;

/// A barrier: engine and queue, index of the packet in the queue, kind.
pub(super) type BarrierAt = (EngineId, u8, u32, BarrierKind);

/// Barriers to be taken as not there.
pub(super) type Ignored = BTreeSet<BarrierAt>;

/// A barrier that a packet has.
pub(super) struct BarrierUse {
    pub at: BarrierAt,
    /// The queue, for the detector.
    pub thread: Thread,
    /// Slot of the packet's first Tx descriptor.
    pub slot: u32,
    /// What built the packet.
    pub tag: u32,
    /// The descriptors that carry the bit.
    pub descs: Vec<Addr>,
    /// It is a DMB of a queue whose DMB pause is masked.
    pub masked: bool,
}

/// One ring of a queue, as its registers say.
#[derive(Default)]
pub(super) struct Ring {
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

    fn address(&self, ahead: u32) -> Addr {
        let offset = u64::from(self.slot(ahead)) * DESC_BYTES as u64;
        Addr(self.base.wrapping_add(offset))
    }
}

struct Queue {
    thread: Option<Thread>,
    rings: [Ring; 2],
    dmb_masked: bool,
    packets: u32,
    /// The device refuses a packet: nothing more is executed.
    stopped: bool,
}

pub(super) struct Machine<'a> {
    config: &'a Config,
    ignored: &'a Ignored,
    pub memory: PhysicalMemory,
    pub detector: Detector,
    /// Who acts, and what it does.
    agent: Option<Thread>,
    pub tag: u32,
    /// What the host reads through the bus are a driver's polls.
    pub follows_driver: bool,
    queues: BTreeMap<(EngineId, u8), Queue>,
    semaphores: BTreeMap<(u32, u32), i32>,
    /// What built the descriptors of a Tx ring, by its first byte.
    pub builders: BTreeMap<u64, Vec<u32>>,
    pub barriers: Vec<BarrierUse>,
    pub packets: u64,
    pub left_out: Vec<String>,
}

impl<'a> Machine<'a> {
    pub fn new(config: &'a Config, ignored: &'a Ignored) -> Result<Machine<'a>, ExtractError> {
        let spec = config.arch().spec();
        Ok(Machine {
            config,
            ignored,
            memory: PhysicalMemory::new(spec, config.values.host.memory.0)?,
            detector: Detector::new(config.arch(), MAX_RACES),
            agent: None,
            tag: 0,
            follows_driver: false,
            queues: BTreeMap::new(),
            semaphores: BTreeMap::new(),
            builders: BTreeMap::new(),
            barriers: Vec::new(),
            packets: 0,
            left_out: Vec::new(),
        })
    }

    /// Says who does what from now on.
    pub fn acts(&mut self, agent: Thread, tag: u32) {
        self.agent = Some(agent);
        self.tag = tag;
    }

    /// An agent sees that queues are idle.
    pub fn wait_queues(&mut self, agent: Thread, which: impl Fn((EngineId, u8)) -> bool) {
        for (_, queue) in self.queues.iter().filter(|(at, _)| which(**at)) {
            if let Some(thread) = queue.thread {
                self.detector.wait_queue(agent, thread);
            }
        }
    }

    /// Whether a semaphore passes; the agent then knows what that shows.
    pub fn wait_semaphore(&mut self, agent: Thread, cell: (u32, u32), test: SemTest) -> bool {
        let value = self.semaphores.get(&cell).copied().unwrap_or(0);
        // In order more may have come already than a real wait would see.
        let Ok(slack) = u64::try_from(i64::from(value) - i64::from(least(test))) else {
            return false;
        };
        self.detector.wait_semaphore(agent, cell, slack);
        true
    }

    /// An agent sees a word that somebody has written last: memory, or an event.
    pub fn wait_word(&mut self, agent: Thread, at: Addr) {
        let place = self.memory.resolve(at, EventBlock::CELL_BYTES);
        if let Ok(place) = place
            && let Target::EventBlock { block } = place.target
            && let Some(index) = cell_at(EventBlock::EVENTS, place.offset)
        {
            let cell = event(block, index);
            let sets = self.semaphores.get(&cell).copied().unwrap_or(0);
            // It was one of those who have set it.
            let missing = u64::try_from(sets).unwrap_or(0).saturating_sub(1);
            self.detector.wait_semaphore(agent, cell, missing);
            return;
        }
        self.detector.wait_word(agent, at);
    }

    /// Adds to a semaphore.
    pub fn add(&mut self, cell: (u32, u32), by: i32) {
        let value = self.semaphores.entry(cell).or_default();
        *value = value.wrapping_add(by);
    }

    /// An agent sets a semaphore.
    pub fn set(&mut self, agent: Thread, cell: (u32, u32), value: i32) {
        self.semaphores.insert(cell, value);
        let value = u64::try_from(value).unwrap_or(0);
        self.detector.set_semaphore(agent, cell, value);
    }

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

    /// A register in the bank of a queue is written.
    pub fn write_bank(
        &mut self,
        (engine, q, direction): (EngineId, u8, Direction),
        register: u64,
        value: u32,
    ) -> Result<(), BusError> {
        let queue = self.queues.entry((engine, q)).or_insert_with(|| Queue {
            thread: None,
            rings: Default::default(),
            dmb_masked: true,
            packets: 0,
            stopped: false,
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
                let thread = match queue.thread {
                    Some(thread) => thread,
                    None => *queue.thread.insert(self.detector.queue(engine, q)),
                };
                if let Some(agent) = self.agent {
                    self.detector.doorbell(agent, thread);
                }
                self.execute((engine, q), thread)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Executes every packet of a queue that both rings have been rung for.
    fn execute(&mut self, at: (EngineId, u8), thread: Thread) -> Result<(), BusError> {
        let Some(mut queue) = self.queues.remove(&at) else {
            return Ok(());
        };
        let read = queue.rings.iter().map(|ring| self.read_ring(ring));
        let descs: Result<Vec<_>, BusError> = read.collect();
        if let (Ok(descs), false) = (&descs, queue.stopped) {
            self.execute_packets(at, thread, &mut queue, [&descs[0], &descs[1]]);
        }
        self.queues.insert(at, queue);
        descs.map(|_| ())
    }

    fn execute_packets(
        &mut self,
        at: (EngineId, u8),
        thread: Thread,
        queue: &mut Queue,
        [txs, rxs]: [&[Descriptor]; 2],
    ) {
        let [mut next_tx, mut next_rx] = [0, 0];
        let [tx_ring, rx_ring] = &mut queue.rings;
        loop {
            let rest = (&txs[next_tx..], &rxs[next_rx..]);
            let packet = match packet::next(&self.memory, self.config, rest) {
                Found::Packet(packet) => packet,
                Found::Nothing => break,
                Found::Refused(why) => {
                    let slot = tx_ring.slot(next_tx as u32);
                    self.left_out.push(format!(
                        "{} queue {} slot {slot}: {why}; later descriptors of the queue are not executed",
                        at.0, at.1
                    ));
                    queue.stopped = true;
                    break;
                }
            };
            let slot = tx_ring.slot(next_tx as u32);
            let mut access = packet.access;
            access.slot = slot;
            let builder = self.builders.get(&tx_ring.base);
            let builder = builder.and_then(|tags| tags.get(slot as usize));
            access.tag = builder.copied().unwrap_or(self.tag);
            let carriers = [
                (BarrierKind::Dmb, &packet.dmb, &*tx_ring, next_tx),
                (
                    BarrierKind::WriteBarrier,
                    &packet.write_barrier,
                    &*tx_ring,
                    next_tx,
                ),
                (BarrierKind::StrongOrder, &packet.sow, &*rx_ring, next_rx),
            ];
            let number = queue.packets;
            let mut there = [false; 3];
            for (n, (kind, carriers, ring, first)) in carriers.into_iter().enumerate() {
                let barrier = (at.0, at.1, number, kind);
                let masked = kind == BarrierKind::Dmb && queue.dmb_masked;
                there[n] = !carriers.is_empty() && !masked && !self.ignored.contains(&barrier);
                if !carriers.is_empty() {
                    let address = |carrier: &usize| ring.address((first + carrier) as u32);
                    self.barriers.push(BarrierUse {
                        at: barrier,
                        thread,
                        slot,
                        tag: access.tag,
                        descs: carriers.iter().map(address).collect(),
                        masked,
                    });
                }
            }
            access.dmb = there[0];
            access.write_barrier = there[1];
            for write in &mut access.writes {
                write.sow &= there[2];
            }
            queue.packets += 1;
            next_tx += packet.descs[0];
            next_rx += packet.descs[1];
            self.perform(thread, &access, packet.word);
        }
        tx_ring.take(next_tx as u32);
        rx_ring.take(next_rx as u32);
    }

    /// Does what a packet does, as far as somebody can wait for it.
    fn perform(&mut self, thread: Thread, access: &PacketAccess, word: Option<WordCopy>) {
        self.packets += 1;
        self.detector.packet(thread, access);
        for write in &access.writes {
            let increment = match write.to {
                WriteTo::Semaphore(cell) => Some(cell),
                WriteTo::Memory(..) | WriteTo::Nowhere => None,
            };
            for cell in increment.into_iter().chain(write.embedded) {
                self.add(cell, 1);
            }
        }
        if let Some(WordCopy { from, to }) = word {
            let mut bytes = [0; 4];
            // A word that cannot be read or written is an error of the device's: nobody waits for it.
            if self.memory.read(from, &mut bytes).is_ok() {
                let _refused = self.memory.write(to, &bytes);
            }
        }
    }

    /// The descriptors of a ring that are rung and not executed.
    fn read_ring(&self, ring: &Ring) -> Result<Vec<Descriptor>, BusError> {
        let mut descs = Vec::new();
        let mut bytes = [0; DESC_BYTES];
        for ahead in 0..ring.rung {
            self.memory.read(ring.address(ahead), &mut bytes)?;
            descs.push(Descriptor::from_bytes(bytes));
        }
        Ok(descs)
    }
}

impl Bus for Machine<'_> {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        if let (Some(agent), true) = (self.agent, self.follows_driver) {
            self.detector.wait_word(agent, at);
        }
        Ok(self.memory.read(at, out)?)
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        if let (Some(agent), true) = (self.agent, self.follows_driver) {
            let bytes = (at, bytes.len() as u64);
            self.detector.access(agent, self.tag, bytes, true);
        }
        self.memory.write(at, bytes)?;
        Ok(())
    }

    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        self.register(at).map(|_| 0)
    }

    fn write_reg(&mut self, at: Addr, value: u32) -> Result<(), BusError> {
        let (engine, offset) = self.register(at)?;
        let queues = self.config.arch().spec().limits.queues_per_engine as u8;
        for direction in Direction::ALL {
            let bank = direction.queue_reg(QueueId(1), 0) - direction.queue_reg(QueueId(0), 0);
            for q in 0..queues {
                let register = offset.checked_sub(direction.queue_reg(QueueId(q), 0));
                if let Some(register) = register.filter(|register| *register < bank) {
                    return self.write_bank((engine, q, direction), register, value);
                }
            }
        }
        Ok(())
    }
}

impl TimedBus for Machine<'_> {
    fn sleep(&mut self, _time: Duration) {}
}
