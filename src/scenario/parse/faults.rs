//! `[[fault]]`: what goes wrong on purpose.

use super::super::ast::{FaultDecl, FaultKindDecl, FaultWhatDecl};
use super::super::diag::Reported;
use super::super::reader::{Reader, hint};
use super::{exactly_one, only, queue};
use crate::arch::regs::{Direction, M2sError, S2mError};
use crate::device::{ErrorBit, FaultKind, When};

const KINDS: &[&str] = &[
    "fetch_error",
    "flip_descriptor",
    "read_error",
    "lost_read",
    "flip_data",
    "write_error",
    "lost_ack",
    "late_ack",
    "stuck_queue",
    "report",
    "slow_channel",
];

/// Bits of a descriptor.
const DESCRIPTOR_BITS: u32 = 128;

pub(super) fn fault(table: &Reader<'_>) -> Result<FaultDecl, Reported> {
    let only = only(table);
    let what = table.req::<String>("kind")?;
    let direction = |table: &Reader<'_>| table.req::<Direction>("direction").map(|at| at.value);
    let kind = match what.as_str() {
        "slow_channel" => {
            let (at, by) = (table.req("at"), table.req("by"));
            table.finish()?;
            return Ok(FaultDecl {
                only: only?,
                what: FaultWhatDecl::SlowChannel { at: at?, by: by? },
            });
        }
        "fetch_error" => direction(table).map(FaultKind::FetchError),
        "flip_descriptor" => {
            let (direction, bit) = (direction(table), table.req::<u32>("bit"));
            direction.and_then(|direction| match bit? {
                bit if bit.value < DESCRIPTOR_BITS => Ok(FaultKind::FlipDescriptor {
                    direction,
                    bit: bit.value as u8,
                }),
                bit => Err(table.report_at(&bit.mark, "a descriptor has bits 0 to 127")),
            })
        }
        "read_error" => Ok(FaultKind::ReadError),
        "lost_read" => Ok(FaultKind::LostRead),
        "flip_data" => table
            .req::<u32>("bit")
            .map(|bit| FaultKind::FlipData { bit: bit.value }),
        "write_error" => Ok(FaultKind::WriteError),
        "lost_ack" => Ok(FaultKind::LostAck),
        "late_ack" => {
            let by = table.req("by");
            return finish(table, only?, by.map(FaultKindDecl::LateAck));
        }
        "stuck_queue" => Ok(FaultKind::StuckQueue),
        "report" => match exactly_one(table, "a reported error", &["m2s", "s2m"])? {
            "m2s" => {
                let error = table.req::<M2sError>("m2s");
                error.map(|error| FaultKind::Report(ErrorBit::M2s(error.value)))
            }
            _ => {
                let error = table.req::<S2mError>("s2m");
                error.map(|error| FaultKind::Report(ErrorBit::S2m(error.value)))
            }
        },
        other => {
            let hint = hint(other, KINDS.iter().copied());
            return Err(table.report_at(&what.mark, format!("no fault \"{other}\"{hint}")));
        }
    };
    finish(table, only?, kind.map(FaultKindDecl::Kind))
}

/// What every fault of a queue has: the queue and when it strikes.
fn finish(
    table: &Reader<'_>,
    only: super::Only,
    kind: Result<FaultKindDecl, Reported>,
) -> Result<FaultDecl, Reported> {
    let queue = queue(table);
    let when = match exactly_one(table, "a fault", &["nth", "one_in"])? {
        "nth" => table.req::<u64>("nth").map(|nth| When::Nth(nth.value)),
        _ => match table.req::<u64>("one_in")? {
            n if n.value == 0 => Err(table.report_at(&n.mark, "must be 1 or more")),
            n => Ok(When::OneIn(n.value)),
        },
    };
    table.finish()?;
    Ok(FaultDecl {
        only,
        what: FaultWhatDecl::Queue {
            queue: queue?,
            kind: kind?,
            when: when?,
        },
    })
}
