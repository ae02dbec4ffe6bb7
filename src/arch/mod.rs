//! The generations as data: what each can do, where its limits lie, where things sit in its
//! address space. Arch is policy, not format: no descriptor bit moves between generations.
//!
//! The tables of [`ArchSpec`] and [`AddressMap`] are laid out to be checked line by line against
//! `docs/hardware.md`, "Limits and capabilities" and "Address map".

mod map;
pub mod regs;
mod spec;

pub use map::{
    AddressMap, EngineId, EventBlock, HbmStack, HostEngine, InertBlocks, QueueId, StateBuffer,
    UDMA_UNIT_BYTES,
};
pub use spec::{ArchSpec, Caps, Limits};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A device generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Arch {
    /// V2, Sunda: Trn1 and Inf2.
    V2,
    /// V3, Cayman: Trn2.
    V3,
    /// V4, Mariana: Trn3.
    V4,
}

impl Arch {
    /// Every generation, oldest first.
    pub const ALL: [Arch; 3] = [Arch::V2, Arch::V3, Arch::V4];

    /// Everything that is fixed for this generation.
    pub const fn spec(self) -> &'static ArchSpec {
        match self {
            Arch::V2 => &spec::SUNDA,
            Arch::V3 => &spec::CAYMAN,
            Arch::V4 => &spec::MARIANA,
        }
    }

    /// Short name: `v2`, `v3`, `v4`.
    pub const fn name(self) -> &'static str {
        match self {
            Arch::V2 => "v2",
            Arch::V3 => "v3",
            Arch::V4 => "v4",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An arch name nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown arch \"{0}\"; expected v2 (sunda), v3 (cayman) or v4 (mariana)")]
pub struct UnknownArch(pub String);

impl FromStr for Arch {
    type Err = UnknownArch;

    /// Accepts the short name and the code name.
    fn from_str(text: &str) -> Result<Self, UnknownArch> {
        Arch::ALL
            .into_iter()
            .find(|arch| text == arch.name() || text == arch.spec().code_name)
            .ok_or_else(|| UnknownArch(text.to_string()))
    }
}
