//! What the host of a scenario has: vrings, prings, queues, drivers. The same code tries the steps on a
//! scratch memory before the run and does them in the run.

use super::place::{QueueAt, Region};
use crate::arch::regs::Direction;
use crate::arch::{Arch, EventBlock};
use crate::desc::{DESC_BYTES, Descriptor, EmbeddedSemaphore, RxDesc};
use crate::host::{
    Bus, BusError, DmaDriver, DriverError, DriverMemory, DumpError, DumpOptions, EditError, Pring,
    PringError, ProduceError, PseudoDmaError, QueueError, QueueOptions, QueuePair, QueueSetup,
    TemplateError, TimedBus, Transfer, Vring, VringError,
};
use crate::memory::PhysicalMemory;
use crate::units::Addr;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// A ring in device memory.
#[derive(Clone, Debug)]
pub(super) struct PringPlan {
    pub name: String,
    /// Line of the file, counted from 1.
    pub line: usize,
    pub direction: Direction,
    pub at: Addr,
    pub descriptors: u32,
    /// Descriptors that a file holds.
    pub bytes: Vec<u8>,
}

/// Descriptors in the rings of a queue.
#[derive(Debug)]
pub(super) struct RingCounts {
    pub tx: u32,
    pub rx: u32,
}

/// A vring's two rings, and what it is padded to.
pub(super) struct DumpTo<'a> {
    pub tx: &'a str,
    pub rx: &'a str,
    pub padded: Option<u32>,
}

/// What a step did to the host's vrings.
pub(super) enum News {
    /// Something was added to a vring, or changed in it.
    Authored(String),
    /// A vring was dumped to a Tx ring.
    Dumped { vring: String, tx: String },
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
    #[error("{0} has no driver; add a driver_init step before this one")]
    NoDriver(QueueAt),
    #[error("{what} \"{name}\" already exists")]
    Taken { what: &'static str, name: String },
    #[error("unknown {what} \"{name}\"")]
    Missing { what: &'static str, name: String },
    #[error("{0} has no rings; initialise it first")]
    NoRings(QueueAt),
    #[error("{0}")]
    Stopped(String),
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
    drivers: BTreeMap<QueueAt, DmaDriver>,
    /// Nothing runs: what drivers copy is started and forgotten, to see whether it can be.
    dry_run: bool,
    /// Vrings with descriptors that no dump has seen.
    undumped: BTreeSet<String>,
    prings: BTreeMap<String, Pring>,
    queues: BTreeMap<QueueAt, Queue>,
    news: Vec<News>,
}

impl HostSide {
    /// A host with prings in device memory, those that come from files loaded.
    pub fn new(arch: Arch, plans: &[PringPlan], bus: &mut dyn Bus) -> Result<Self, PringError> {
        let mut host = HostSide {
            dry_run: false,
            ..HostSide::dry_run(arch)
        };
        host.load(plans, bus)?;
        Ok(host)
    }

    /// A host without prings, to try steps on a memory without engines.
    pub fn dry_run(arch: Arch) -> Self {
        HostSide {
            arch,
            vrings: BTreeMap::new(),
            templates: BTreeMap::new(),
            drivers: BTreeMap::new(),
            dry_run: true,
            undumped: BTreeSet::new(),
            prings: BTreeMap::new(),
            queues: BTreeMap::new(),
            news: Vec::new(),
        }
    }

    /// Takes prings, and loads those that come from files.
    pub fn load(&mut self, plans: &[PringPlan], bus: &mut dyn Bus) -> Result<(), PringError> {
        for plan in plans {
            let mut pring = Pring::new(plan.direction, plan.at, plan.descriptors)?;
            pring.load(bus, &plan.bytes)?;
            self.prings.insert(plan.name.clone(), pring);
        }
        Ok(())
    }

    /// What was done to vrings since this was last asked.
    pub fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
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
    pub fn queues(&self) -> impl Iterator<Item = QueueAt> {
        self.queues.keys().copied()
    }

    /// Descriptors in the Tx and Rx rings of a queue; `None` if it is not initialised.
    pub fn ring_counts(&self, at: QueueAt) -> Option<RingCounts> {
        let queue = self.queues.get(&at)?;
        let count = |name| self.prings.get(name).map(Pring::used_desc_count);
        let (tx, rx) = (count(&queue.tx)?, count(&queue.rx)?);
        Some(RingCounts { tx, rx })
    }

    /// The vring of a name, to be added to; a new one at first use.
    pub fn author(&mut self, name: &str) -> Result<&mut Vring, HostError> {
        self.authored(name.to_string());
        Ok(match self.vrings.entry(name.to_string()) {
            Entry::Occupied(vring) => vring.into_mut(),
            Entry::Vacant(place) => place.insert(Vring::new(self.arch, name)?),
        })
    }

    fn authored(&mut self, name: String) {
        self.undumped.insert(name.clone());
        self.news.push(News::Authored(name));
    }

    /// Generation of the device.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Takes a vring that a producer has made.
    pub fn add_vring(&mut self, vring: Vring) -> Result<(), HostError> {
        self.authored(vring.name().to_string());
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

    /// Dumps a vring to two prings.
    pub fn dump(&mut self, name: &str, to: DumpTo<'_>, bus: &mut dyn Bus) -> Result<(), HostError> {
        let vring = self
            .vrings
            .get_mut(name)
            .ok_or_else(|| missing("vring", name))?;
        // Copies, since both halves come out of one map; they go back if the dump succeeds.
        let mut tx = pring(&self.prings, to.tx)?.clone();
        let mut rx = pring(&self.prings, to.rx)?.clone();
        let options = DumpOptions {
            tx_padded: to.padded,
            rx_padded: to.padded,
            ..DumpOptions::default()
        };
        vring.dump_to_pring_with(bus, &mut tx, &mut rx, options)?;
        self.prings.insert(to.tx.to_string(), tx);
        self.prings.insert(to.rx.to_string(), rx);
        self.undumped.remove(name);
        let (vring, tx) = (name.to_string(), to.tx.to_string());
        self.news.push(News::Dumped { vring, tx });
        Ok(())
    }

    /// Hands two prings to a queue.
    pub fn init_queue(
        &mut self,
        at: QueueAt,
        rings: [&str; 2],
        options: QueueOptions,
        bus: &mut dyn Bus,
    ) -> Result<(), HostError> {
        let QueueAt { engine, queue } = at;
        let [tx, rx] = rings;
        let setup = QueueSetup {
            arch: self.arch,
            engine,
            queue: queue.0.into(),
            tx: pring(&self.prings, tx)?,
            rx: pring(&self.prings, rx)?,
            options,
        };
        let pair = QueuePair::init(bus, setup)?;
        let (tx, rx) = (tx.to_string(), rx.to_string());
        self.queues.insert(at, Queue { pair, tx, rx });
        Ok(())
    }

    /// A queue that was initialised.
    pub fn queue(&self, at: QueueAt) -> Result<&QueuePair, HostError> {
        match self.queues.get(&at) {
            Some(queue) => Ok(&queue.pair),
            None => Err(HostError::NoRings(at)),
        }
    }

    /// Sets a queue's driver up.
    pub fn init_driver(
        &mut self,
        at: QueueAt,
        memory: DriverMemory,
        bus: &mut dyn Bus,
    ) -> Result<(), HostError> {
        let QueueAt { engine, queue } = at;
        let driver = DmaDriver::init(bus, self.arch, engine, queue.0.into(), memory)?;
        self.drivers.insert(at, driver);
        Ok(())
    }

    /// Lets a queue's driver start a transfer and wait for its end.
    pub fn drive(
        &mut self,
        at: QueueAt,
        bus: &mut dyn TimedBus,
        start: impl FnOnce(&mut DmaDriver, &mut dyn TimedBus) -> Result<Transfer, DriverError>,
    ) -> Result<(), HostError> {
        let driver = self.drivers.get_mut(&at);
        let driver = driver.ok_or(HostError::NoDriver(at))?;
        let transfer = start(driver, bus)?;
        match self.dry_run {
            true => driver.reset(bus)?,
            false => driver.wait(bus, transfer)?,
        }
        Ok(())
    }

    /// Where the Rx ring of a queue, as it lies in `memory`, lets the queue write.
    pub fn writes_of(&self, at: QueueAt, memory: &PhysicalMemory) -> Vec<Region> {
        let queue = self.queues.get(&at);
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

fn pring<'a>(prings: &'a BTreeMap<String, Pring>, name: &str) -> Result<&'a Pring, HostError> {
    prings.get(name).ok_or_else(|| missing("pring", name))
}

fn missing(what: &'static str, name: &str) -> HostError {
    let name = name.to_string();
    HostError::Missing { what, name }
}
