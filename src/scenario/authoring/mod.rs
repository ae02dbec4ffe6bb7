//! Host steps that author into vrings beyond single transfers: packets, reductions, transposes, edits,
//! producers, templates. One file each for reading, resolving and doing them.

mod parse;
mod perform;
mod resolve;

pub(super) use parse::{OPS, read};
pub(super) use perform::perform;
pub(super) use resolve::resolve;

use super::diag::At;
use super::place::{Cell, EngineRef, Location};
use crate::arch::EngineId;
use crate::desc::{BarrierMode, CceConstant, DType, KbinOp, Permutation};
use crate::host::{EventAction, Signal, Step};
use crate::units::{Addr, Bytes};

/// How places, cells and engines are given: as written, or resolved for an arch.
pub(super) trait Form: std::fmt::Debug {
    /// A place in memory.
    type Place: std::fmt::Debug;
    /// A number of bytes.
    type Size: std::fmt::Debug;
    /// A semaphore.
    type Semaphore: std::fmt::Debug;
    /// An event or a semaphore to tell.
    type Signal: std::fmt::Debug;
    /// An engine.
    type Engine: std::fmt::Debug;
}

/// As the file has it.
#[derive(Debug)]
pub(super) struct Written;

impl Form for Written {
    type Place = At<Location>;
    type Size = At<Bytes>;
    type Semaphore = At<Cell>;
    type Signal = WrittenSignal;
    type Engine = At<EngineRef>;
}

/// An event or a semaphore that a step tells.
#[derive(Debug)]
pub(super) enum WrittenSignal {
    Semaphore(At<Cell>),
    Event(At<Cell>, EventAction),
}

/// As the arch has it.
#[derive(Debug)]
pub(super) struct Resolved;

impl Form for Resolved {
    type Place = Addr;
    type Size = u64;
    /// Block and index.
    type Semaphore = (u32, u32);
    type Signal = Signal;
    type Engine = EngineId;
}

/// A place of so many bytes.
#[derive(Debug)]
pub(super) struct Part<F: Form> {
    pub at: F::Place,
    pub size: F::Size,
}

/// A copy.
#[derive(Debug)]
pub(super) struct Move<F: Form> {
    pub from: F::Place,
    pub to: F::Place,
    pub size: F::Size,
}

/// Tables of one ring and what is told behind them.
#[derive(Debug)]
pub(super) struct Tables<F: Form> {
    pub loads: Vec<Move<F>>,
    pub then: Option<F::Signal>,
}

/// Where elements lie.
#[derive(Debug)]
pub(super) struct Steps<F: Form> {
    pub at: F::Place,
    pub outer: Step,
    pub inner: Step,
}

/// Part of a tensor of a template.
#[derive(Debug)]
pub(super) struct TensorPart<F: Form> {
    pub staged: F::Place,
    pub var_id: u32,
    pub offset: u64,
    pub size: F::Size,
}

/// A tensor of an execution.
#[derive(Debug)]
pub(super) struct NamedTensor<F: Form> {
    pub var_id: u32,
    pub name: String,
    pub at: F::Place,
    pub size: F::Size,
}

/// Which rings a producer makes.
#[derive(Debug)]
pub(super) enum Rings<F: Form> {
    ActTbl {
        rings: Vec<Tables<F>>,
        dynamic: bool,
    },
    DynamicConfig(Vec<Tables<F>>),
    DataRefill {
        rings: u32,
        refills: Vec<(Move<F>, F::Signal)>,
    },
    SetSeed {
        seeds: Vec<u32>,
        scratch: F::Place,
    },
}

/// What a call adds to a vring, or changes in it.
#[derive(Debug)]
pub(super) enum VringCall<F: Form> {
    DmaPacket {
        sources: Vec<Part<F>>,
        destinations: Vec<Part<F>>,
        barrier: BarrierMode,
        notification_mask: bool,
    },
    Cce {
        op: KbinOp,
        sources: Vec<F::Place>,
        destinations: Vec<F::Place>,
        elements: u32,
        /// In, accumulation and out type.
        dtypes: [DType; 3],
        scales: Vec<f32>,
        constant: Option<CceConstant>,
        barrier: BarrierMode,
    },
    SetSeed {
        seed: u32,
        scratch: F::Place,
    },
    Transpose {
        from: F::Place,
        to: F::Place,
        dims: [u16; 4],
        element_bytes: u32,
        permutation: Permutation,
    },
    TransposeFlush {
        core: u32,
    },
    SemaphoreIncFromSb {
        core: u32,
        engine: F::Engine,
        semaphore: F::Semaphore,
    },
    Linear(Move<F>),
    Strided {
        src: Steps<F>,
        dst: Steps<F>,
        element_bytes: u32,
    },
    Gather {
        table: F::Place,
        row_bytes: u32,
        indices: Vec<u32>,
        dst: F::Place,
    },
    ExpandIo {
        copies: Vec<Move<F>>,
        then: Vec<F::Signal>,
        max_packet_size: u64,
    },
    Pack {
        max_packet_size: u64,
        start: u32,
        end: Option<u32>,
    },
    DmbOnLastPacket,
    EmbeddedSemaphore {
        semaphore: F::Semaphore,
        set_sow: bool,
    },
    AddrRewrite {
        base: F::Place,
        size: F::Size,
        new_base: F::Place,
    },
}

/// A step of this family.
#[derive(Debug)]
pub(super) enum Authoring<F: Form> {
    Vring {
        vring: String,
        call: VringCall<F>,
    },
    Rings(Rings<F>),
    Template {
        template: String,
        loads: Vec<TensorPart<F>>,
    },
    FromTemplate {
        template: String,
        vring: String,
        tensors: Vec<NamedTensor<F>>,
    },
}

impl Authoring<Resolved> {
    /// Whether it adds descriptors to a vring of this name that must be dumped.
    pub fn adds_to(&self, name: &str) -> bool {
        let of_set = |set: &str| {
            name.strip_prefix(set)
                .and_then(|rest| rest.strip_prefix('_'))
                .is_some_and(|number| number.parse::<u32>().is_ok())
        };
        match self {
            Authoring::Vring { vring, .. } | Authoring::FromTemplate { vring, .. } => vring == name,
            Authoring::Rings(rings) => of_set(rings.set_name()),
            Authoring::Template { .. } => false,
        }
    }
}

impl<F: Form> Rings<F> {
    /// Name of the vring set.
    pub fn set_name(&self) -> &'static str {
        match self {
            Rings::ActTbl { dynamic: false, .. } => "act_tbl",
            Rings::ActTbl { dynamic: true, .. } => "dynamic_act_tbl",
            Rings::DynamicConfig(_) => "dve_config",
            Rings::DataRefill { .. } => "data_refill",
            Rings::SetSeed { .. } => "set_seed",
        }
    }
}

impl<F: Form> Authoring<F> {
    /// Name of the step, as the file has it.
    pub fn call(&self) -> &'static str {
        match self {
            Authoring::Vring { call, .. } => match call {
                VringCall::DmaPacket { .. } => "add_dma_packet",
                VringCall::Cce { .. } => "add_dma_packet_cce",
                VringCall::SetSeed { .. } => "add_set_seed_packet",
                VringCall::Transpose { .. } => "add_dma_packet_transpose",
                VringCall::TransposeFlush { .. } => "add_dma_packet_transpose_flush",
                VringCall::SemaphoreIncFromSb { .. } => "add_desc_semaphore_inc_from_sb",
                VringCall::Linear(_) | VringCall::Strided { .. } | VringCall::Gather { .. } => {
                    "translate_pseudo_dma"
                }
                VringCall::ExpandIo { .. } => "expand_io",
                VringCall::Pack { .. } => "pack_descs",
                VringCall::DmbOnLastPacket => "set_dmb_on_last_packet",
                VringCall::EmbeddedSemaphore { .. } => "set_embedded_semaphore_inc_on_last_desc",
                VringCall::AddrRewrite { .. } => "addr_rewrite",
            },
            Authoring::Rings(Rings::ActTbl { .. }) => "act_tbl_rings",
            Authoring::Rings(Rings::DynamicConfig(_)) => "dynamic_config_rings",
            Authoring::Rings(Rings::DataRefill { .. }) => "data_refill_rings",
            Authoring::Rings(Rings::SetSeed { .. }) => "seed_set_rings",
            Authoring::Template { .. } => "devmem_load_template",
            Authoring::FromTemplate { .. } => "build_from_template",
        }
    }
}
