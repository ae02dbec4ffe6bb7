//! `[[fault]]`: what goes wrong on purpose. The kinds are listed in [`KINDS`].

use super::given::Queue;
use super::place::Location;
use super::quantity::Span;
use super::scope::Context;
use crate::arch::regs::{Direction, M2sError, S2mError};
use crate::device::{ErrorBit, Fault, FaultKind, When};
use crate::document::{At, Key, Keys, Read, Table, hint, keys};
use crate::sim::Duration;
use crate::units::Addr;

/// Bits of a descriptor.
const DESCRIPTOR_BITS: u32 = 128;

/// A fault of the plan.
#[derive(Clone, Copy, Debug)]
pub(super) enum FaultPlan {
    Queue(Fault),
    SlowChannel { at: Addr, by: Duration },
}

/// A kind of fault: its name and how it is read.
struct Kind {
    name: &'static str,
    read: fn(&Table<'_>, Context<'_>) -> Read<FaultPlan>,
}

const KINDS: [Kind; 11] = [
    Kind {
        name: "fetch_error",
        read: |table, context| {
            let half = Half::read(table, ());
            of_queue(
                table,
                context,
                half.map(|half| FaultKind::FetchError(half.direction)),
            )
        },
    },
    Kind {
        name: "flip_descriptor",
        read: |table, context| of_queue(table, context, flip_descriptor(table)),
    },
    Kind {
        name: "read_error",
        read: |table, context| of_queue(table, context, Ok(FaultKind::ReadError)),
    },
    Kind {
        name: "lost_read",
        read: |table, context| of_queue(table, context, Ok(FaultKind::LostRead)),
    },
    Kind {
        name: "flip_data",
        read: |table, context| {
            let bit = Bit::read(table, ());
            of_queue(
                table,
                context,
                bit.map(|Bit { bit }| FaultKind::FlipData { bit: bit.value }),
            )
        },
    },
    Kind {
        name: "write_error",
        read: |table, context| of_queue(table, context, Ok(FaultKind::WriteError)),
    },
    Kind {
        name: "lost_ack",
        read: |table, context| of_queue(table, context, Ok(FaultKind::LostAck)),
    },
    Kind {
        name: "late_ack",
        read: |table, context| {
            let by = Late::read(table, ());
            let by = by.and_then(|late| Ok(late.by.duration(&context.scope()?.clock)));
            of_queue(table, context, by.map(FaultKind::LateAck))
        },
    },
    Kind {
        name: "stuck_queue",
        read: |table, context| of_queue(table, context, Ok(FaultKind::StuckQueue)),
    },
    Kind {
        name: "report",
        read: |table, context| of_queue(table, context, report(table)),
    },
    Kind {
        name: "slow_channel",
        read: slow_channel,
    },
];

keys! {
    struct Half {
        direction: Direction,
    }

    struct Bit {
        bit: At<u32>,
    }

    struct Late {
        by: Span,
    }

    struct Slow {
        at: At<Location>,
        by: Span,
    }
}

/// Reads a `[[fault]]`; `None` if it does not count on the arch at hand.
pub(super) fn read(table: &Table<'_>, context: Context<'_>) -> Read<Option<FaultPlan>> {
    let (counts, kind) = (context.counts(table), table.req::<String>("kind")?);
    if counts == Ok(false) {
        return Ok(None);
    }
    let Some(found) = KINDS.iter().find(|known| known.name == kind.value) else {
        let hint = hint(&kind, KINDS.iter().map(|kind| kind.name));
        let message = format!("unknown fault \"{}\"{hint}", kind.value);
        return Err(table.report_at(&kind.mark, message));
    };
    let fault = (found.read)(table, context);
    table.finish()?;
    counts?;
    fault.map(Some)
}

fn flip_descriptor(table: &Table<'_>) -> Read<FaultKind> {
    let (half, bit) = (Half::read(table, ()), Bit::read(table, ()));
    let (half, Bit { bit }) = (half?, bit?);
    match bit.value < DESCRIPTOR_BITS {
        true => Ok(FaultKind::FlipDescriptor {
            direction: half.direction,
            bit: bit.value as u8,
        }),
        false => Err(table.report_at(&bit.mark, "must be 0 to 127, a bit of a descriptor")),
    }
}

fn report(table: &Table<'_>) -> Read<FaultKind> {
    let error = match table.exactly_one("a reported error", &["m2s", "s2m"])? {
        "m2s" => ErrorBit::M2s(table.req::<M2sError>("m2s")?.value),
        _ => ErrorBit::S2m(table.req::<S2mError>("s2m")?.value),
    };
    Ok(FaultKind::Report(error))
}

/// What every fault of a queue has: the queue and when it strikes.
fn of_queue(table: &Table<'_>, context: Context<'_>, kind: Read<FaultKind>) -> Read<FaultPlan> {
    let queue = <Queue as Key<Context<'_>>>::read(table, "queue", context);
    let when = match table.exactly_one("a fault", &["nth", "one_in"])? {
        "nth" => table.req::<u64>("nth").map(|nth| When::Nth(nth.value)),
        _ => match table.req::<u64>("one_in")? {
            n if n.value == 0 => Err(table.report_at(&n.mark, "must be 1 or more")),
            n => Ok(When::OneIn(n.value)),
        },
    };
    let (queue, kind, when) = (queue?.id, kind?, when?);
    Ok(FaultPlan::Queue(Fault {
        engine: queue.engine,
        queue: queue.queue,
        kind,
        when,
    }))
}

fn slow_channel(table: &Table<'_>, context: Context<'_>) -> Read<FaultPlan> {
    let Slow { at, by } = Slow::read(table, ())?;
    let scope = context.scope()?;
    let region = scope.populated(&at.mark, scope.address(&at)?, 1)?;
    Ok(FaultPlan::SlowChannel {
        at: region.at,
        by: by.duration(&scope.clock),
    })
}

/// Adds the keys of faults.
pub(super) fn keys(known: &mut Vec<&'static str>) {
    <Queue as Key<Context<'_>>>::names("queue", known);
    <Half as Keys<()>>::names(known);
    <Bit as Keys<()>>::names(known);
    <Slow as Keys<()>>::names(known);
    known.extend(["only", "kind", "m2s", "s2m", "nth", "one_in"]);
}
