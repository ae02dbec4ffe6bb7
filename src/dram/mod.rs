//! HBM: stacks, channels, pseudo-channels, bank groups, banks with open rows, and a controller for
//! each pseudo-channel that serves first what is ready first (FR-FCFS).
//!
//! The model knows nothing of who sends requests, and holds no data: an address and a kind go in,
//! the cycle of the last data comes out. Its cost follows requests, not cycles: an idle memory
//! costs nothing, see [`channel`](Channel).
//!
//! | file | role |
//! |---|---|
//! | `config` | parameters from `sim-configs/hbm*.toml` |
//! | `mapping` | address to channel, bank, row, column |
//! | `banks` | which commands are legal from when on |
//! | `queue` | requests of one kind by bank and age |
//! | `channel` | the controller of one pseudo-channel |
//! | `memory` | all pseudo-channels behind one interface in simulated time |
//! | `stream`, `run` | request streams and their runs on the model alone |
//!
//! A whole memory in simulated time:
//!
//! ```
//! use udma_sim::dram::{Dram, DramConfig, Kind};
//! use udma_sim::sim::{Duration, Instant};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut dram = Dram::new(&DramConfig::load("hbm2-pseudo-channel", &[])?);
//! let now = Instant::START;
//! dram.enqueue(now, 0x1000, 64, Kind::Read, 7)?;
//! let mut completions = Vec::new();
//! while completions.is_empty() {
//!     let next = dram.next_event();
//!     dram.advance(next, &mut completions);
//! }
//! // Activate, read, data: 31 cycles of 1 ns for the first access, 4 more for the second, which
//! // is in the same bank group.
//! assert_eq!(completions[0].id, 7);
//! assert_eq!(completions[0].at, now + Duration::from_ns(35));
//! # Ok(())
//! # }
//! ```

mod banks;
mod channel;
mod command;
mod config;
mod mapping;
mod memory;
mod parameters;
mod queue;
mod run;
mod stream;

pub use banks::Kind;
pub use channel::{Channel, Counts};
pub use command::{Command, Done, Observer, Op};
pub use config::{DramConfig, DramConfigError};
pub use mapping::{Block, Mapping, Place};
pub use memory::{Completion, Dram, OutOfRange};
pub use parameters::{Controller, Device, Timing};
pub use run::{CommandFile, Latency, Report, RunError, run};
pub use stream::{Stream, StreamError};
