//! A machine that host threads use while it runs, as software uses a device.
//!
//! Two flavours, the same [`Bus`](crate::host::Bus) on both:
//!
//! | | [`LiveDevice`] | [`Lockstep`] |
//! |---|---|---|
//! | time passes | on a thread of its own, as fast as it can while there is work | when every host asks for time |
//! | hosts | any number, cloned at will | as many as were made at the start |
//! | a memory access | takes effect at once | in its turn |
//! | a register write | is posted: it arrives after the host's earlier accesses | the same, in its turn |
//! | timeouts | of the wall clock | of simulated time |
//! | two runs | differ as the threads' speeds do | are the same |
//!
//! Both have a watchdog that says who waits for what when nothing gets on, and both end when their
//! last handle is dropped.
//!
//! ```
//! use udma_sim::arch::regs::Direction;
//! use udma_sim::arch::{Arch, EngineId, QueueId};
//! use udma_sim::config::Config;
//! use udma_sim::host::{Bus, Pring, QueueOptions, QueuePair, QueueSetup, Vring};
//! use udma_sim::live::LiveDevice;
//! use udma_sim::system::{Condition, System};
//! use udma_sim::units::Addr;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let config = Config::builtin("cayman").ok_or("no such config")??;
//! let device = LiveDevice::start(System::new(config, 0)?, Default::default())?;
//! let threads: Vec<_> = (0..2u64).map(|n| {
//!     let mut device = device.clone();
//!     std::thread::spawn(move || -> Result<[u8; 5], Box<dyn std::error::Error + Send + Sync>> {
//!         let at = |offset| Addr(n << 20 | offset);
//!         device.write_mem(at(0x8000), b"hello")?;
//!         let mut vring = Vring::new(Arch::V3, "copy")?;
//!         vring.add_desc_transfer(at(0x8000), at(0x9000), 5)?;
//!         let mut tx = Pring::new(Direction::M2s, at(0), 32)?;
//!         let mut rx = Pring::new(Direction::S2m, at(0x1000), 32)?;
//!         vring.dump_to_pring(&mut device, &mut tx, &mut rx)?;
//!         let (engine, options) = (EngineId(n as u32), QueueOptions::default());
//!         let setup = QueueSetup { arch: Arch::V3, engine, queue: 0, tx: &tx, rx: &rx, options };
//!         let queue = QueuePair::init(&mut device, setup)?;
//!         queue.trigger(&mut device, 1, 1)?;
//!         let idle = Condition::QueueIdle { engine, queue: QueueId(0) };
//!         device.wait(&idle, Duration::from_secs(10))?;
//!         let mut copied = [0; 5];
//!         device.read_mem(at(0x9000), &mut copied)?;
//!         Ok(copied)
//!     })
//! }).collect();
//! for thread in threads {
//!     assert_eq!(&thread.join().map_err(|_| "panicked")??, b"hello");
//! }
//! # Ok(())
//! # }
//! ```

mod device;
mod lockstep;
mod watchdog;
mod worker;

pub use device::{LiveDevice, LiveError};
pub use lockstep::{Lockstep, LockstepHandle};
pub use watchdog::{HostWait, StallReport, Watchdog};
