//! Compute while copying: what the stream processor between read and write does to a packet's bytes
//! (`docs/compute.md`). Pure functions on bytes, the same for whoever executes a packet.
//!
//! [`Reduction`] is the arithmetic of the CCE: ADD, MIN, MAX and FMA over equally long sources, in
//! any mix of types; with a single source, a cast.

mod crc;
mod element;
mod float;
mod kernels;
mod plan;
mod reduce;
mod refusal;
mod reshape;

pub use crc::{CACHE_SLOTS, Checksum, CrcCopy, CrcMismatch, CrcRun, Swap};
pub use element::Fp8;
pub use float::Overflow;
pub use plan::{Operation, Plan, QueueState, Reduce, Setup, plan};
pub use reduce::{Constant, Extreme, Fma, Fold, Operand, Reduction};
pub use refusal::{Reason, Refusal};
pub use reshape::{Split, Transpose};
