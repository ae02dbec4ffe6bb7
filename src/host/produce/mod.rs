//! Who authors into vrings: the translator of pseudo copies, the fan-out over operations, tensor
//! loads, tables and dynamic configuration, IO and data refill, seeds.
//!
//! Each either adds all it was asked for or nothing. What the runtime's producers take from a compiled
//! model, these take as arguments: tables, places and cells are the caller's.

mod append;
mod devmem;
mod io;
mod pseudo_dma;
mod tables;

pub use append::{AppendCounts, AppendError, DmaOp};
pub use devmem::{DevmemLoad, devmem_load_template};
pub use io::{IoStep, Refill, Signal, data_refill_rings};
pub use pseudo_dma::{MAX_PATTERN_ELEMENTS, Pattern, PseudoCopy, PseudoDmaError, Step};
pub use tables::{
    RingUse, TableLoad, TableRing, act_tbl_rings, dynamic_config_rings, seed_set_rings,
};

use super::set::VringSetError;

/// Why a producer did not deliver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProduceError {
    /// The set could not be allocated.
    #[error(transparent)]
    Set(#[from] VringSetError),
    /// A vring refused.
    #[error(transparent)]
    Vring(#[from] super::VringError),
    /// An edit was refused.
    #[error(transparent)]
    Edit(#[from] super::EditError),
    /// An operation could not be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// A symbol that the encoding has no room for.
    #[error(transparent)]
    Symbol(#[from] crate::desc::TemplatePtrError),
}
