//! Cycle-level simulator of the UDMA engines of Trainium/Inferentia-class devices, with the
//! host-side vring stack that feeds them.
//!
//! # The life of one descriptor
//!
//! The real system has one hard seam: the host writes bytes into memory and rings a doorbell, the
//! device reads bytes from memory and writes bytes back. The simulator keeps exactly that seam.
//!
//! 1. **Authored.** [`host::Vring`] cuts a copy into 16-byte descriptor pairs ([`desc`]): a Tx
//!    descriptor that reads the source, an Rx descriptor that writes the destination, barriers
//!    where the generation ([`arch`]) wants them.
//! 2. **Dumped.** [`host::Vring::dump_to_pring`] writes them through a [`host::Bus`] into rings in
//!    device memory ([`memory`]).
//! 3. **Announced.** [`host::QueuePair`] hands the rings to a queue through registers and rings its
//!    doorbells.
//! 4. **Executed.** A [`device::Engine`] prefetches, schedules, reads, writes and completes. A write
//!    is visible when it reaches its target, not when it is issued: what may overtake what is
//!    written down in `docs/ordering.md`.
//! 5. **Observed.** The host or a sequencer sees a semaphore, a marker word or an idle queue.
//!
//! [`system::System`] holds the machine together and lets time pass ([`sim`]); [`scenario`] runs
//! such a program from a TOML file and checks what came out; [`order`] says which outcomes the
//! ordering model allows. [`live`] lets host threads use a machine while it runs; [`telemetry`] tells what a run did,
//! part by part. C programs use the package `udma-sim-c` (`include/udma_sim.h`).
//!
//! # Features
//!
//! All are on by default; the model alone needs none of them.
//!
//! | feature | adds |
//! |---|---|
//! | `cli` | the command `udma-sim`; needs `telemetry` |
//! | `live` | the module [`live`] |
//! | `telemetry` | the module [`telemetry`], and statistics in a scenario's report |
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
//! let config = Config::builtin("cayman").ok_or("no such config")??;
//! let mut system = System::new(config, 0)?;
//! let (src, dst) = (Addr(0x10_0000), Addr(0x20_0000));
//! system.write_mem(src, b"hello, stream")?;
//!
//! let mut vring = Vring::new(Arch::V3, "copy")?;
//! vring.add_desc_transfer(src, dst, 13)?;
//! let mut tx = Pring::new(Direction::M2s, Addr(0), 32)?;
//! let mut rx = Pring::new(Direction::S2m, Addr(0x1000), 32)?;
//! vring.dump_to_pring(&mut system, &mut tx, &mut rx)?;
//!
//! let options = QueueOptions::default();
//! let setup = QueueSetup { arch: Arch::V3, engine: EngineId(0), queue: 0, tx: &tx, rx: &rx, options };
//! let queue = QueuePair::init(&mut system, setup)?;
//! queue.trigger(&mut system, 1, 1)?;
//! let outcome = system.run_until(&Condition::Idle, Duration::from_ns(100_000));
//! assert_eq!(outcome, WaitOutcome::Met);
//!
//! let mut copied = [0; 13];
//! system.read_mem(dst, &mut copied)?;
//! assert_eq!(&copied, b"hello, stream");
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//!
//! What no source gives is modelled: every such time is a key of `sim-configs/*.toml`, every other such decision
//! a named constant listed in `docs/hardware.md`.
//!
//! # Sources
//!
//! The facts, with grades and origins, are restated in `docs/hardware.md` and `docs/ordering.md`.

#![warn(clippy::too_many_lines)]

pub mod arch;
pub mod calibrate;
pub mod config;
pub mod desc;
pub mod device;
mod document;
pub mod dram;
pub mod host;
#[cfg(feature = "live")]
pub mod live;
pub mod memory;
pub mod order;
pub mod scenario;
pub mod sim;
pub mod system;
#[cfg(feature = "telemetry")]
pub mod telemetry;
pub mod units;
