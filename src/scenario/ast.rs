//! A scenario as its file says it: names not yet looked up, places not yet addresses, the arch not
//! yet chosen. [`plan`](super::plan) turns it into what is run.

use super::authoring::{Authoring, Written};
use super::diag::{At, Mark};
use super::driver::DriverDecl;
use super::fill::FillDecl;
use super::place::{Cell, EngineRef, Location};
use super::quantity::Span;
use crate::arch::Arch;
use crate::arch::regs::{Direction, M2sError, S2mError};
use crate::desc::BarrierMode;
use crate::device::{FaultKind, When};
use crate::system::{SemTest, WaitOp};
use crate::units::Bytes;

#[derive(Debug)]
pub(super) struct Ast {
    pub name: String,
    pub description: String,
    pub config: At<String>,
    pub runs_on: At<Vec<Arch>>,
    pub seed: u64,
    pub memory: Vec<MemoryDecl>,
    pub prings: Vec<PringDecl>,
    pub steps: Vec<StepDecl>,
    pub sequencers: Vec<SequencerDecl>,
    pub faults: Vec<FaultDecl>,
    pub expects: Vec<ExpectDecl>,
}

/// Arches that a part of the scenario is limited to; none is all of them.
pub(super) type Only = Option<Vec<Arch>>;

#[derive(Debug)]
pub(super) struct MemoryDecl {
    pub name: At<String>,
    pub at: At<Location>,
    pub size: Option<At<Bytes>>,
    pub fill: At<FillDecl>,
}

#[derive(Debug)]
pub(super) struct PringDecl {
    pub name: At<String>,
    pub direction: Direction,
    pub at: At<Location>,
    pub descriptors: At<u32>,
    pub file: Option<At<String>>,
}

#[derive(Debug)]
pub(super) struct StepDecl {
    /// Index of the `[[step]]` in the file; repetitions share it.
    pub index: usize,
    pub mark: Mark,
    pub label: Option<At<String>>,
    pub only: Only,
    pub op: OpDecl,
}

#[derive(Debug)]
pub(super) struct QueueDecl {
    pub engine: At<EngineRef>,
    pub queue: At<u32>,
}

#[derive(Debug)]
pub(super) enum OpDecl {
    Driver(DriverDecl),
    /// A step on vrings beyond single transfers.
    Authoring(Authoring<Written>),
    AddDescTransfer {
        vring: At<String>,
        from: At<Location>,
        to: At<Location>,
        size: At<Bytes>,
        /// `add_desc_transfer_ex` instead of `add_desc_transfer`; it takes no `barrier`.
        ex: bool,
        barrier: Option<At<BarrierMode>>,
    },
    AddDescEvent {
        vring: At<String>,
        event: At<Cell>,
        set: bool,
        barrier: Option<At<BarrierMode>>,
    },
    AddDescSemaphoreInc {
        vring: At<String>,
        semaphore: At<Cell>,
        barrier: Option<At<BarrierMode>>,
    },
    DumpToPring {
        vring: At<String>,
        tx: At<String>,
        rx: At<String>,
        padded: Option<At<u32>>,
    },
    InitQueue {
        queue: QueueDecl,
        tx: At<String>,
        rx: At<String>,
        ring_id_check: bool,
        dmb: bool,
    },
    Doorbell(DoorbellDecl),
    Trigger(TriggerDecl),
    WriteRegister {
        engine: At<EngineRef>,
        register: At<String>,
        value: u32,
    },
    ReadRegister {
        engine: At<EngineRef>,
        register: At<String>,
        name: At<String>,
    },
    Wait {
        on: WaitDecl,
        timeout: Option<At<Span>>,
    },
    Write {
        at: At<Location>,
        size: Option<At<Bytes>>,
        fill: At<FillDecl>,
    },
    Observe {
        name: At<String>,
        at: At<Location>,
        size: Option<At<Bytes>>,
    },
}

#[derive(Debug)]
pub(super) struct DoorbellDecl {
    pub queue: QueueDecl,
    pub direction: Direction,
    pub count: At<u32>,
}

/// RX doorbell, then TX; a count left out is all that the queue's ring holds.
#[derive(Debug)]
pub(super) struct TriggerDecl {
    pub queue: QueueDecl,
    pub tx: Option<At<u32>>,
    pub rx: Option<At<u32>>,
}

#[derive(Debug)]
pub(super) enum WaitDecl {
    Idle,
    Queue(QueueDecl),
    Semaphore { cell: At<Cell>, test: SemTest },
    Word { at: At<Location>, value: u32 },
    Cycles(u64),
    Sequencer(At<String>),
    Interrupt,
}

/// Something that goes wrong on purpose.
#[derive(Debug)]
pub(super) struct FaultDecl {
    pub only: Only,
    pub what: FaultWhatDecl,
}

#[derive(Debug)]
pub(super) enum FaultWhatDecl {
    /// A fault of a queue.
    Queue {
        queue: QueueDecl,
        kind: FaultKindDecl,
        when: When,
    },
    /// A slow memory channel.
    SlowChannel { at: At<Location>, by: At<Span> },
}

/// A fault of a queue: ready, or with a time still to be converted.
#[derive(Debug)]
pub(super) enum FaultKindDecl {
    Kind(FaultKind),
    LateAck(At<Span>),
}

#[derive(Debug)]
pub(super) struct SequencerDecl {
    pub name: At<String>,
    pub only: Only,
    pub program: Vec<At<SequencerOpDecl>>,
}

#[derive(Debug)]
pub(super) enum SequencerOpDecl {
    Wait {
        cell: At<Cell>,
        test: WaitOp,
    },
    Inc {
        cell: At<Cell>,
        by: i32,
    },
    Dec {
        cell: At<Cell>,
        by: i32,
    },
    Set {
        cell: At<Cell>,
        value: i32,
    },
    Doorbell(DoorbellDecl),
    Trigger(TriggerDecl),
    Delay(u64),
    Read {
        name: At<String>,
        at: At<Location>,
        size: Option<At<Bytes>>,
    },
    Write {
        at: At<Location>,
        size: Option<At<Bytes>>,
        fill: At<FillDecl>,
    },
}

#[derive(Debug)]
pub(super) struct ExpectDecl {
    pub mark: Mark,
    pub only: Only,
    pub what: WhatDecl,
}

#[derive(Debug)]
pub(super) enum WhatDecl {
    Memory {
        at: At<Location>,
        size: Option<At<Bytes>>,
        wanted: WantedDecl,
    },
    Observation {
        name: At<String>,
        wanted: WantedDecl,
    },
    Semaphore {
        cell: At<Cell>,
        value: i32,
    },
    Event {
        cell: At<Cell>,
        value: i32,
    },
    NoErrors,
    Errors {
        engine: At<EngineRef>,
        m2s: Vec<M2sError>,
        s2m: Vec<S2mError>,
    },
    Time(RangeDecl),
    Elapsed {
        from: At<String>,
        to: At<String>,
        range: RangeDecl,
        longer_than: Option<(At<String>, At<String>)>,
    },
}

/// Whether contents must be equal or must differ somewhere, and from what.
#[derive(Debug)]
pub(super) struct WantedDecl {
    pub equal: bool,
    pub content: ContentDecl,
}

#[derive(Debug)]
pub(super) enum ContentDecl {
    Fill(At<FillDecl>),
    /// What a buffer was filled with at the start.
    Initial(At<String>),
    /// What lies somewhere else at the end.
    Region(At<Location>),
    Sha256([u8; 32]),
}

#[derive(Debug)]
pub(super) struct RangeDecl {
    pub min: Option<At<Span>>,
    pub max: Option<At<Span>>,
}
