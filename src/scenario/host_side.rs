//! What the host does in a scenario, through the vring stack and a bus. The same code tries the
//! steps on a scratch memory before the run and performs them in the run.

use super::authoring::{self, Authoring, Resolved};
use super::driver::{DriverAction, Drivers};
use super::fill::Fill;
use super::place::Region;
use super::plan::PringPlan;
use super::run::fill;
use crate::arch::regs::Direction;
use crate::arch::{Arch, EngineId, EventBlock};
use crate::desc::{BarrierMode, DESC_BYTES, Descriptor, EmbeddedSemaphore, RxDesc};
use crate::host::{
    Bus, BusError, BusReason, DriverError, DumpError, EditError, EventAction, Pring, PringError,
    ProduceError, PseudoDmaError, QueueError, QueueOptions, QueuePair, TemplateError, TimedBus,
    Vring, VringError,
};
use crate::memory::{PhysicalMemory, Target};
use crate::sim::Duration;
use crate::units::Addr;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// A host step, resolved.
#[derive(Debug)]
pub(super) enum HostAction {
    Authoring(Authoring<Resolved>),
    Driver(DriverAction),
    AddTransfer {
        vring: String,
        from: Addr,
        to: Addr,
        bytes: u64,
        barrier: Barrier,
    },
    AddEvent {
        vring: String,
        block: u32,
        event: u32,
        to: EventAction,
        /// `None` is as the runtime does on the arch.
        barrier: Option<BarrierMode>,
    },
    AddSemaphoreInc {
        vring: String,
        block: u32,
        semaphore: u32,
        /// `None` is as the runtime does on the arch.
        barrier: Option<BarrierMode>,
    },
    Dump {
        vring: String,
        tx: String,
        rx: String,
        padded: Option<u32>,
    },
    InitQueue {
        engine: EngineId,
        queue: u8,
        tx: String,
        rx: String,
        ring_id_check: bool,
        dmb: bool,
    },
    Doorbell {
        engine: EngineId,
        queue: u8,
        direction: Direction,
        count: u32,
    },
    Trigger {
        engine: EngineId,
        queue: u8,
        tx: u32,
        rx: u32,
    },
    Write {
        region: Region,
        fill: Fill,
    },
    WriteRegister {
        at: Addr,
        value: u32,
        /// Whether the register is a doorbell: what it lets run is not known.
        doorbell: bool,
    },
}

/// How the barrier of an authored transfer is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Barrier {
    /// As the runtime does on the arch.
    OfArch,
    /// DMB on the last chunk.
    Ex,
    Explicit(BarrierMode),
}

/// Why a step could not be done.
#[derive(Debug, thiserror::Error)]
pub(super) enum HostError {
    #[error(transparent)]
    Vring(#[from] VringError),
    #[error(transparent)]
    Dump(#[from] DumpError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Produce(#[from] ProduceError),
    #[error(transparent)]
    PseudoDma(#[from] PseudoDmaError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error("queue {queue} of {engine} has no driver; add a driver_init step before")]
    NoDriver { engine: EngineId, queue: u8 },
    #[error("there is a {what} \"{name}\" already")]
    Taken { what: &'static str, name: String },
    #[error("there is no {what} \"{name}\"")]
    Missing { what: &'static str, name: String },
    #[error("queue {queue} of {engine} has no rings; initialise it first")]
    NoRings { engine: EngineId, queue: u8 },
}

/// A queue the host has initialised.
struct Queue {
    pair: QueuePair,
    tx: String,
    rx: String,
}

/// The host's own memory: vrings, what it knows of its prings, queues it has initialised.
pub(super) struct HostSide {
    arch: Arch,
    vrings: BTreeMap<String, Vring>,
    templates: BTreeMap<String, Vring>,
    drivers: Drivers,
    /// Vrings with descriptors that no dump has seen.
    undumped: BTreeSet<String>,
    prings: BTreeMap<String, Pring>,
    queues: BTreeMap<(EngineId, u8), Queue>,
}

impl HostSide {
    /// A host with prings in device memory, those that come from files loaded.
    pub fn new(arch: Arch, plans: &[PringPlan], bus: &mut dyn Bus) -> Result<Self, PringError> {
        let mut prings = BTreeMap::new();
        for plan in plans {
            let mut pring = Pring::new(plan.direction, plan.at, plan.descriptors)?;
            pring.load(bus, &plan.bytes)?;
            prings.insert(plan.name.clone(), pring);
        }
        Ok(HostSide {
            arch,
            vrings: BTreeMap::new(),
            templates: BTreeMap::new(),
            drivers: Drivers::default(),
            undumped: BTreeSet::new(),
            prings,
            queues: BTreeMap::new(),
        })
    }

    /// A host to try steps on a memory without engines.
    pub fn dry_run(arch: Arch, plans: &[PringPlan], bus: &mut dyn Bus) -> Result<Self, PringError> {
        Ok(HostSide {
            drivers: Drivers::dry_run(),
            ..HostSide::new(arch, plans, bus)?
        })
    }

    /// First byte of a pring.
    pub fn pring_base(&self, name: &str) -> Option<Addr> {
        self.prings.get(name)?.base()
    }

    /// Tx descriptors of a vring.
    pub fn tx_descriptors(&self, vring: &str) -> u32 {
        let vring = self.vrings.get(vring);
        vring.map_or(0, |vring| vring.tx().used_desc_count())
    }

    /// Names of the vrings that something was added to.
    pub fn vrings(&self) -> impl Iterator<Item = &String> {
        self.vrings.keys()
    }

    /// Vrings with descriptors that no dump has seen.
    pub fn undumped(&self) -> impl Iterator<Item = &String> {
        self.undumped.iter()
    }

    /// The queues that are initialised.
    pub fn queues(&self) -> impl Iterator<Item = (EngineId, u8)> {
        self.queues.keys().copied()
    }

    /// Descriptors in the Tx and Rx rings of a queue; `None` if it is not initialised.
    pub fn ring_counts(&self, engine: EngineId, queue: u8) -> Option<(u32, u32)> {
        let queue = self.queues.get(&(engine, queue))?;
        let count = |name| self.prings.get(name).map(Pring::used_desc_count);
        Some((count(&queue.tx)?, count(&queue.rx)?))
    }

    /// Does a step.
    pub fn perform(
        &mut self,
        action: &HostAction,
        seed: u64,
        bus: &mut dyn TimedBus,
    ) -> Result<(), HostError> {
        match action {
            HostAction::Authoring(action) => authoring::perform(action, self)?,
            HostAction::Driver(action) => self.drivers.perform(self.arch, action, bus)?,
            HostAction::AddTransfer {
                vring,
                from,
                to,
                bytes,
                barrier,
            } => {
                let vring = self.author(vring)?;
                match *barrier {
                    Barrier::OfArch => vring.add_desc_transfer(*from, *to, *bytes)?,
                    Barrier::Ex => vring.add_desc_transfer_ex(*from, *to, *bytes)?,
                    Barrier::Explicit(mode) => {
                        vring.add_desc_transfer_with_barrier(*from, *to, *bytes, mode)?;
                    }
                }
            }
            HostAction::AddEvent {
                vring,
                block,
                event,
                to,
                barrier,
            } => {
                let vring = self.author(vring)?;
                match barrier {
                    None => vring.add_desc_event(*block, *event, *to)?,
                    Some(mode) => vring.add_desc_event_with_barrier(*block, *event, *to, *mode)?,
                }
            }
            HostAction::AddSemaphoreInc {
                vring,
                block,
                semaphore,
                barrier,
            } => {
                let vring = self.author(vring)?;
                match barrier {
                    None => vring.add_desc_semaphore_inc(*block, *semaphore)?,
                    Some(mode) => {
                        vring.add_desc_semaphore_inc_with_barrier(*block, *semaphore, *mode)?;
                    }
                }
            }
            HostAction::Dump {
                vring,
                tx,
                rx,
                padded,
            } => self.dump(vring, tx, rx, *padded, bus)?,
            HostAction::InitQueue {
                engine,
                queue,
                tx,
                rx,
                ring_id_check,
                dmb,
            } => {
                let rings = (pring(&self.prings, tx)?, pring(&self.prings, rx)?);
                let options = QueueOptions {
                    ring_id_check: *ring_id_check,
                    dmb: *dmb,
                };
                let number = u32::from(*queue);
                let pair = QueuePair::init(bus, self.arch, *engine, number, rings, options)?;
                let (tx, rx) = (tx.clone(), rx.clone());
                self.queues
                    .insert((*engine, *queue), Queue { pair, tx, rx });
            }
            HostAction::Doorbell {
                engine,
                queue,
                direction,
                count,
            } => self
                .queue(*engine, *queue)?
                .doorbell(bus, *direction, *count)?,
            HostAction::Trigger {
                engine,
                queue,
                tx,
                rx,
            } => self.queue(*engine, *queue)?.trigger(bus, *tx, *rx)?,
            HostAction::WriteRegister { at, value, .. } => bus.write_reg(*at, *value)?,
            HostAction::Write { region, fill } => self::fill(bus, region, fill, seed)?,
        }
        Ok(())
    }

    /// The vring of a name, to be added to; a new one at first use.
    pub fn author(&mut self, name: &str) -> Result<&mut Vring, HostError> {
        self.undumped.insert(name.to_string());
        Ok(match self.vrings.entry(name.to_string()) {
            Entry::Occupied(vring) => vring.into_mut(),
            Entry::Vacant(place) => place.insert(Vring::new(self.arch, name)?),
        })
    }

    /// Generation of the device.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Takes a vring that a producer has made.
    pub fn add_vring(&mut self, vring: Vring) -> Result<(), HostError> {
        let name = vring.name().to_string();
        self.undumped.insert(name);
        insert(&mut self.vrings, "vring", vring)
    }

    /// Takes a template that a producer has made.
    pub fn add_template(&mut self, template: Vring) -> Result<(), HostError> {
        insert(&mut self.templates, "template", template)
    }

    /// The template of a name.
    pub fn template(&self, name: &str) -> Result<&Vring, HostError> {
        let found = self.templates.get(name);
        found.ok_or_else(|| missing("template", name))
    }

    fn dump(
        &mut self,
        name: &str,
        tx: &str,
        rx: &str,
        padded: Option<u32>,
        bus: &mut dyn Bus,
    ) -> Result<(), HostError> {
        let vring = self
            .vrings
            .get(name)
            .ok_or_else(|| missing("vring", name))?;
        // Copies, since both halves come out of one map; they go back if the dump succeeds.
        let mut rings = (
            pring(&self.prings, tx)?.clone(),
            pring(&self.prings, rx)?.clone(),
        );
        match padded {
            Some(n) => vring.dump_to_pring_padded(bus, &mut rings.0, &mut rings.1, n, n)?,
            None => vring.dump_to_pring(bus, &mut rings.0, &mut rings.1)?,
        }
        self.prings.insert(tx.to_string(), rings.0);
        self.prings.insert(rx.to_string(), rings.1);
        self.undumped.remove(name);
        Ok(())
    }

    fn queue(&self, engine: EngineId, queue: u8) -> Result<&QueuePair, HostError> {
        let found = self.queues.get(&(engine, queue));
        Ok(&found.ok_or(HostError::NoRings { engine, queue })?.pair)
    }

    /// Where the Rx ring of a queue, as it lies in `memory`, lets the queue write.
    pub fn writes_of(&self, engine: EngineId, queue: u8, memory: &PhysicalMemory) -> Vec<Region> {
        let queue = self.queues.get(&(engine, queue));
        let ring = queue.and_then(|queue| self.prings.get(&queue.rx));
        let bytes = ring.and_then(|ring| memory.slice(ring.base()?, ring.size_bytes()).ok());
        let descriptors = bytes.unwrap_or(&[]).as_chunks::<DESC_BYTES>().0;
        let mut regions: Vec<Region> = Vec::new();
        for bytes in descriptors
            .iter()
            .filter(|bytes| **bytes != [0; DESC_BYTES])
        {
            let rx = RxDesc::from(Descriptor::from_bytes(*bytes));
            regions.extend(embedded_update(self.arch, rx));
            let (at, bytes) = (rx.buf1_ptr, u64::from(rx.len_ctrl.byte_len()));
            match regions.last_mut() {
                // The chunks of one transfer are one region.
                Some(last) if last.at.checked_add(last.bytes) == Some(at) => last.bytes += bytes,
                _ => regions.push(Region { at, bytes }),
            }
        }
        regions
    }
}

/// The cell that an Rx descriptor's embedded semaphore update increments.
fn embedded_update(arch: Arch, rx: RxDesc) -> Option<Region> {
    let spec = arch.spec();
    let update = EmbeddedSemaphore::of(rx).filter(|_| spec.caps.embedded_semaphore)?;
    let block = spec.map.embedded_semaphore_block(update.csr_index)?;
    let window = EventBlock::SEM_INC;
    let at = spec.map.semaphore(block, window, update.semaphore.into())?;
    let bytes = EventBlock::CELL_BYTES;
    Some(Region { at, bytes })
}

fn pring<'p>(prings: &'p BTreeMap<String, Pring>, name: &str) -> Result<&'p Pring, HostError> {
    prings.get(name).ok_or_else(|| missing("pring", name))
}

fn insert(
    vrings: &mut BTreeMap<String, Vring>,
    what: &'static str,
    vring: Vring,
) -> Result<(), HostError> {
    match vrings.entry(vring.name().to_string()) {
        Entry::Vacant(place) => {
            place.insert(vring);
            Ok(())
        }
        Entry::Occupied(place) => {
            let name = place.key().clone();
            Err(HostError::Taken { what, name })
        }
    }
}

fn missing(what: &'static str, name: &str) -> HostError {
    let name = name.to_string();
    HostError::Missing { what, name }
}

/// A bus to a memory without engines: memory accesses are done, register writes go nowhere.
pub(super) struct CheckBus<'m>(pub &'m mut PhysicalMemory);

impl CheckBus<'_> {
    fn register(&self, at: Addr) -> Result<(), BusError> {
        let reason = match self.0.resolve(at, 4) {
            Ok(place) if matches!(place.target, Target::UdmaRegisters { .. }) => return Ok(()),
            Ok(_) => BusReason::NoRegister,
            Err(error) => BusReason::Memory(error.reason),
        };
        Err(BusError { at, len: 4, reason })
    }
}

impl Bus for CheckBus<'_> {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        Ok(self.0.read(at, out)?)
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        self.0.write(at, bytes)?;
        Ok(())
    }

    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        self.register(at).map(|()| 0)
    }

    fn write_reg(&mut self, at: Addr, _value: u32) -> Result<(), BusError> {
        self.register(at)
    }
}

impl TimedBus for CheckBus<'_> {
    fn sleep(&mut self, _time: Duration) {}
}
