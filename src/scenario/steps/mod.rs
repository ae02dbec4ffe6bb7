//! `[[step]]`: what the host does, in order. Each kind of step is one type, which says its name, its keys,
//! how it is read, what it works on, and how it is done; the kinds are listed in [`KINDS`].
//!
//! To add a step, write its type in one of the modules below: a struct in `keys!` (or [`Keys`] by hand), its
//! name in `names!`, and its [`Step`]. Then add its line to [`KINDS`]. Parsing, planning, the trial before the
//! run, the race check and hints for misspelt keys work from these.

mod compute;
mod driver;
mod edits;
mod memory;
mod packets;
mod producers;
mod pseudo;
mod queues;
mod registers;
mod step;
mod templates;
mod transfers;
mod wait;

pub(super) use queues::{Doorbell, Trigger};
pub(super) use step::Step;

use super::scope::Context;
use crate::document::{At, Keys, Mark, Read, Table, hint};
use step::Named;

/// What a scenario needs to know of a type of step.
struct Kind {
    name: &'static str,
    read: fn(&Table<'_>, Context<'_>) -> Read<Box<dyn Step>>,
    keys: fn(&mut Vec<&'static str>),
}

const fn kind<S: Step + Named + for<'a> Keys<Context<'a>> + 'static>() -> Kind {
    Kind {
        name: S::NAME,
        read: |table, context| Ok(Box::new(S::read(table, context)?)),
        keys: <S as Keys<Context<'_>>>::names,
    }
}

const KINDS: &[Kind] = &[
    kind::<transfers::AddDescTransfer>(),
    kind::<transfers::AddDescTransferEx>(),
    kind::<transfers::AddDescEvent>(),
    kind::<transfers::AddDescSemaphoreInc>(),
    kind::<transfers::AddDescSemaphoreIncFromSb>(),
    kind::<packets::AddDmaPacket>(),
    kind::<compute::AddDmaPacketCce>(),
    kind::<compute::AddSetSeedPacket>(),
    kind::<compute::AddDmaPacketTranspose>(),
    kind::<compute::AddDmaPacketTransposeFlush>(),
    kind::<pseudo::TranslatePseudoDma>(),
    kind::<packets::ExpandIo>(),
    kind::<edits::PackDescs>(),
    kind::<edits::SetDmbOnLastPacket>(),
    kind::<edits::SetEmbeddedSemaphoreInc>(),
    kind::<edits::AddrRewrite>(),
    kind::<producers::ActTblRings>(),
    kind::<producers::DynamicConfigRings>(),
    kind::<producers::DataRefillRings>(),
    kind::<producers::SeedSetRings>(),
    kind::<templates::DevmemLoadTemplate>(),
    kind::<templates::BuildFromTemplate>(),
    kind::<queues::DumpToPring>(),
    kind::<queues::DumpToPringPadded>(),
    kind::<queues::InitQueue>(),
    kind::<queues::Doorbell>(),
    kind::<queues::Trigger>(),
    kind::<registers::WriteRegister>(),
    kind::<registers::ReadRegister>(),
    kind::<driver::DriverInit>(),
    kind::<driver::DriverCopy>(),
    kind::<driver::DriverMemset>(),
    kind::<wait::Wait>(),
    kind::<memory::Write>(),
    kind::<memory::Observe>(),
];

/// Keys that every step has.
const COMMON_KEYS: [&str; 4] = ["do", "label", "only", "repeat"];

/// A step of the file, for one arch or, without a scope, for none yet.
pub(super) struct StepRead {
    /// Index of the `[[step]]` in the file; repetitions share it.
    pub index: usize,
    pub mark: Mark,
    pub label: Option<At<String>>,
    /// Name of its type.
    pub call: &'static str,
    pub step: Box<dyn Step>,
}

/// One host step.
#[derive(Debug)]
pub(super) struct PlannedStep {
    /// Index of the `[[step]]` in the file; repetitions share it.
    pub source: usize,
    pub mark: Mark,
    /// Line of the file, counted from 1.
    pub line: usize,
    pub label: Option<String>,
    /// The operation, as the file names it.
    pub call: &'static str,
    /// What it works on.
    pub detail: String,
    pub step: Box<dyn Step>,
}

/// Reads a `[[step]]`; `None` if it does not count on the arch at hand.
pub(super) fn read(
    index: usize,
    table: &Table<'_>,
    context: Context<'_>,
) -> Read<Option<StepRead>> {
    let what = table.req::<String>("do")?;
    let label = table.opt("label");
    let counts = context.counts(table);
    if counts == Ok(false) {
        return Ok(None);
    }
    let Some(kind) = KINDS.iter().find(|kind| kind.name == what.value) else {
        let hint = hint(&what, KINDS.iter().map(|kind| kind.name));
        let message = format!("unknown step \"{}\"{hint}", what.value);
        return Err(table.report_at(&what.mark, message));
    };
    let step = (kind.read)(table, context);
    table.finish()?;
    counts?;
    Ok(Some(StepRead {
        index,
        mark: table.mark().clone(),
        label: label?,
        call: kind.name,
        step: step?,
    }))
}

/// Adds the keys of all steps.
pub(super) fn keys(known: &mut Vec<&'static str>) {
    known.extend(COMMON_KEYS);
    KINDS.iter().for_each(|kind| (kind.keys)(known));
}
