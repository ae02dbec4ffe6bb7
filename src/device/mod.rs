//! The device: UDMA engines and the fabric between them and memory. It knows descriptors, memory
//! and registers, never who wrote them.
//!
//! Read the files in the order of a packet's life: a doorbell moves a `ring`'s tail, `prefetch`
//! brings its descriptors in, `read` schedules a packet and reads its sources into the queue's
//! `lane`, `write` empties the lane into the destinations, `completion` retires what has been
//! acknowledged. `engine` holds the stations together and wakes them, over the `queue`s; its `agenda` has
//! what is to happen to it; `control` is where
//! registers are read and written, `reload` what follows from their values, `reset` what a strobe takes from a queue;
//! `fabric` says when an access takes effect.
//!
//! Nothing here returns an error to the host: the device reacts as hardware does, with error bits,
//! abort, and counters.

mod activity;
mod agenda;
mod arbiter;
mod burst;
mod busy_change;
mod completion;
mod completion_ring;
pub mod compute;
mod control;
mod counters;
mod engine;
mod error;
mod fabric;
mod faults;
mod hbm;
mod interrupts;
mod lane;
mod notification;
mod prefetch;
mod queue;
mod queue_set;
mod rate_limit;
mod read;
mod registers;
mod reload;
mod reset;
mod ring;
mod stall;
mod stream;
mod window;
mod write;

pub use activity::{Access, Activity, Station, StationState, StationTimes};
pub use busy_change::{BusyChange, Change};
pub use counters::Counters;
pub use engine::{Ctx, Engine, EngineEvent, Outbox, RegisterRead, RegisterWrite};
pub use error::{DeviceError, ErrorBit};
pub use fabric::{BEAT_BYTES, Fabric, InFlight, Route, Times};
pub use faults::{Fault, FaultKind, Injection, When};
pub use stall::{Limit, Stall, StallReason};
