//! The device: UDMA engines and the fabric between them and memory. It knows descriptors, memory
//! and registers, never who wrote them.
//!
//! Read the files in the order of a packet's life: a doorbell moves a `ring`'s tail; `prefetch` brings its
//! descriptors in; `schedule` picks a packet and makes a `job` of it; `read` fetches its sources into the queue's
//! `lane`, or into `stream`, which computes; `write` empties them into the destinations; `completion` retires what has
//! been acknowledged. Each of these stations keeps its own state. What they share is in `core`: the `queue`s with their
//! `packet`s and `burst`s, the limits and other `settings` that the registers ask for, the `agenda` of what is to happen,
//! errors. `fabric` says when an access takes effect. `engine` holds the stations together, wakes them, and answers
//! registers and resets.
//!
//! A file imports only what it stands on: `engine` the stations, the stations `core`, never the other way.
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
mod computation;
pub mod compute;
mod context;
mod core;
mod counters;
mod destination;
mod engine;
mod error;
mod fabric;
mod faults;
mod hbm;
mod interrupts;
mod job;
mod lane;
mod needs;
mod notification;
mod packet;
mod prefetch;
mod queue;
mod queue_set;
mod rate_limit;
mod read;
mod registers;
mod request;
mod ring;
mod schedule;
mod settings;
mod stall;
mod stream;
mod window;
mod write;

pub use activity::{Access, EngineActivity, Station, StationState, StationTimes};
pub use agenda::EngineEvent;
pub use busy_change::{BusyChange, Change};
pub use context::{Ctx, Outbox, RegisterRead, RegisterWrite};
pub use counters::Counters;
pub use engine::Engine;
pub use error::{DeviceError, ErrorBit};
pub use fabric::{Fabric, Route};
pub use faults::{Fault, FaultKind, Injection, When};
pub use request::{BEAT_BYTES, InFlight, Times};
pub use stall::{Limit, Stall, StallReason};
