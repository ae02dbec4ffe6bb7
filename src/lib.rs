//! Cycle-level simulator of UDMA engines and the host-side vring stack that feeds them.

pub mod arch;
pub mod config;
pub mod desc;
pub mod device;
pub mod host;
pub mod memory;
pub mod scenario;
pub mod sim;
pub mod system;
pub mod units;
