//! The host side: the vring stack that authors descriptors in host memory, the dump into a pring in
//! device memory, and the driver that hands rings to a queue. It reaches the device through a
//! [`Bus`] and nothing else, as a driver does through its BARs.
//!
//! A copy's way to the device has three steps, each its own call: author it in a [`Vring`], dump
//! the vring into a pair of [`Pring`]s, ring the doorbells of a [`QueuePair`].

mod bus;
mod cce;
mod cells;
mod chunk;
mod driver;
mod dump;
mod edits;
mod marker;
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
pub use pack::PackError;
pub use packet::PacketCounts;
pub use pages::{MAX_VRING_DESCS, PAGE_DESCS, PagesError, VringPages};
pub use pring::{Pring, PringError, PringType};
pub use produce::{
    AppendCounts, AppendError, DevmemLoad, DmaOp, IoStep, MAX_PATTERN_ELEMENTS, Pattern,
    ProduceError, PseudoCopy, PseudoDmaError, Refill, RingUse, Signal, Step, TableLoad, TableRing,
    act_tbl_rings, data_refill_rings, devmem_load_template, dynamic_config_rings, seed_set_rings,
};
pub use queue::{QueueError, QueueOptions, QueuePair};
pub use set::{MAX_SET_VRINGS, VringSet, VringSetError};
pub use template::{MemRefTable, TemplateError, Tensor, TensorSet};
pub use user_bar::UserBar;
pub use vring::{Vring, VringError};
