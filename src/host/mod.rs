//! The host side: the vring stack that authors descriptors in host memory, the dump into a pring in
//! device memory, and the driver that hands rings to a queue. It reaches the device through a
//! [`Bus`] and nothing else, as a driver does through its BARs.
//!
//! A program's way to the device has three steps, each its own call: author it in a [`Vring`], dump
//! the vring into a pair of [`Pring`]s, ring the doorbells of a [`QueuePair`]. Between the first two
//! it can be edited: packed ([`Vring::pack_descs`]), given barriers, moved, resolved from a template
//! ([`Vring::build_from_template`]). The producers ([`Vring::translate_pseudo_dma`],
//! [`Vring::append_descs`], [`devmem_load_template`] and others) author whole programs. The
//! ring-cycle driver ([`DmaDriver`]) needs none of this: it writes into a queue's rings itself.
//! `docs/host.md` tells it all in one piece.
//!
//! ```
//! use udma_sim::arch::regs::Direction;
//! use udma_sim::arch::{Arch, EngineId};
//! use udma_sim::config::Config;
//! use udma_sim::host::{Bus, Pring, QueueOptions, QueuePair, QueueSetup, Vring};
//! use udma_sim::sim::Duration;
//! use udma_sim::system::{Condition, System, WaitOutcome};
//! use udma_sim::units::Addr;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::builtin("cayman").expect("a built-in config")?;
//! let mut machine = System::new(config, 0)?;
//! let (src, dst) = (Addr(0x100_0000), Addr(0x40_0000_0000));
//! machine.write_mem(src, b"eighteen bytes, ok")?;
//!
//! let mut vring = Vring::new(Arch::V3, "hello_0")?;
//! vring.add_desc_transfer(src, dst, 18)?;
//!
//! let mut tx = Pring::new(Direction::M2s, Addr(0x10_0000), 32)?;
//! let mut rx = Pring::new(Direction::S2m, Addr(0x20_0000), 32)?;
//! vring.dump_to_pring(&mut machine, &mut tx, &mut rx)?;
//!
//! let options = QueueOptions::default();
//! let setup = QueueSetup { arch: Arch::V3, engine: EngineId(0), queue: 0, tx: &tx, rx: &rx, options };
//! let queue = QueuePair::init(&mut machine, setup)?;
//! queue.trigger(&mut machine, 1, 1)?;
//! let done = machine.run_until(&Condition::Idle, Duration::from_ns(100_000));
//! assert_eq!(done, WaitOutcome::Met);
//!
//! let mut arrived = [0; 18];
//! machine.read_mem(dst, &mut arrived)?;
//! assert_eq!(&arrived, b"eighteen bytes, ok");
//! # Ok(())
//! # }
//! ```

mod bus;
mod cce;
mod cells;
mod chunk;
mod driver;
mod dump;
mod edits;
mod marker;
mod notifications;
mod pack;
mod packet;
mod pages;
mod pring;
mod produce;
mod queue;
mod set;
mod template;
#[cfg(test)]
mod test_bus;
#[cfg(test)]
mod test_packets;
mod transpose;
mod user_bar;
mod vring;

pub use bus::{Bus, BusError, BusReason};
pub use cells::{EventAction, sb_increment_word};
pub use chunk::{ChunkError, MemChunk};
pub use driver::{
    BATCHES_IN_FLIGHT, CursorError, DmaDriver, DriverError, DriverMemory, GUARD_DESCS,
    HOST_QUEUE_DESCS, MAX_BATCH_DESCS, PollMode, PollPlan, Reservation, RingCursor, TimedBus,
    Transfer,
};
pub use dump::{DumpError, DumpOptions, PAD_BYTES, TRAP_ADDRESS, pad_scratch};
pub use edits::EditError;
pub use marker::{CompletionMarker, MARKER};
pub use notifications::{NotificationError, NotificationReader};
pub use pack::PackError;
pub use packet::PacketCounts;
pub use pages::{MAX_VRING_DESCS, PAGE_DESCS, PagesError, VringPages};
pub use pring::{Pring, PringError, PringType};
pub use produce::{
    AppendCounts, AppendError, DevmemLoad, DmaOp, IoStep, MAX_PATTERN_ELEMENTS, Pattern,
    ProduceError, PseudoCopy, PseudoDmaError, Refill, RingUse, Signal, Step, TableLoad, TableRing,
    act_tbl_rings, data_refill_rings, devmem_load_template, dynamic_config_rings, seed_set_rings,
};
pub use queue::{QueueError, QueueOptions, QueuePair, QueueSetup};
pub use set::{MAX_SET_VRINGS, VringSet, VringSetError};
pub use template::{MemRefTable, TemplateError, Tensor, TensorSet};
pub use user_bar::UserBar;
pub use vring::{Vring, VringError};
