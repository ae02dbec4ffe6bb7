//! What keys stand for on the arch at hand: places, regions, cells, engines, queues, rings, contents. They
//! keep what was written, where it is shown.

use super::fill::{Fill, FillDecl};
use super::place::{Cell, EngineRef, Location, QueueAt, Region};
use super::scope::Context;
use super::words::barrier_name;
use crate::arch::regs::Direction;
use crate::arch::regs::table::offset_of;
use crate::arch::{EngineId, QueueId};
use crate::desc::BarrierMode;
use crate::document::{At, Key, Mark, Read, Table, keys};
use crate::host::{EventAction, Signal};
use crate::units::{Addr, Bytes};

/// A place in memory.
#[derive(Debug)]
pub(super) struct Place {
    pub at: Addr,
}

impl Key<Context<'_>> for Place {
    fn read(table: &Table<'_>, key: &'static str, context: Context<'_>) -> Read<Self> {
        let written = table.req(key)?;
        let at = context.scope()?.address(&written)?;
        Ok(Place { at })
    }
}

/// An array of places; each is where the array is, for messages.
#[derive(Debug)]
pub(super) struct Places(pub Vec<Addr>);

impl Key<Context<'_>> for Places {
    fn read(table: &Table<'_>, key: &'static str, context: Context<'_>) -> Read<Self> {
        let found: At<Vec<Location>> = table.req(key)?;
        let (scope, mark) = (context.scope()?, found.mark);
        let resolve = |value| {
            let mark = mark.clone();
            scope.address(&At { value, mark })
        };
        let places: Vec<Read<Addr>> = found.value.into_iter().map(resolve).collect();
        places.into_iter().collect::<Read<_>>().map(Places)
    }
}

/// A place of so many bytes, as `size` beside it says.
#[derive(Debug)]
pub(super) struct Stretch {
    pub at: Addr,
    pub bytes: u64,
    pub written: Location,
}

impl Key<Context<'_>> for Stretch {
    fn read(table: &Table<'_>, key: &'static str, context: Context<'_>) -> Read<Self> {
        Stretch::sized(table, key, "size", context)
    }

    fn names(key: &'static str, known: &mut Vec<&'static str>) {
        known.extend([key, "size"]);
    }
}

impl Stretch {
    /// The same with another key for the size.
    pub fn sized(
        table: &Table<'_>,
        key: &'static str,
        size: &'static str,
        context: Context<'_>,
    ) -> Read<Self> {
        let (at, size) = (table.req(key), table.req(size));
        let (at, size) = (at?, size?);
        let Region { at: first, bytes } = context.scope()?.region(&at, Some(&size))?;
        Ok(Stretch {
            at: first,
            bytes,
            written: at.value,
        })
    }
}

/// A place of as many bytes as `size` beside it says; a whole buffer needs no size.
#[derive(Debug)]
pub(super) struct Area {
    pub region: Region,
    pub written: Location,
    pub mark: Mark,
}

impl Key<Context<'_>> for Area {
    fn read(table: &Table<'_>, key: &'static str, context: Context<'_>) -> Read<Self> {
        let (at, size) = (table.req(key), table.opt("size"));
        let (at, size): (At<Location>, Option<At<Bytes>>) = (at?, size?);
        Ok(Area {
            region: context.scope()?.region(&at, size.as_ref())?,
            written: at.value,
            mark: at.mark,
        })
    }

    fn names(key: &'static str, known: &mut Vec<&'static str>) {
        known.extend([key, "size"]);
    }
}

/// A place and what is to be written there.
#[derive(Debug)]
pub(super) struct Filled {
    pub region: Region,
    pub fill: Fill,
    pub seed: u64,
    pub written: Location,
}

impl Key<Context<'_>> for Filled {
    fn read(table: &Table<'_>, key: &'static str, context: Context<'_>) -> Read<Self> {
        let (at, size, fill) = (table.req(key), table.opt("size"), FillDecl::read(table));
        let (at, size, fill): (At<Location>, Option<At<Bytes>>, _) = (at?, size?, fill?);
        let scope = context.scope()?;
        let stream = format!("write/{}", at.value);
        let resolved = fill.resolve(scope.files, &stream);
        let resolved = scope.or_report(&fill.mark, resolved)?;
        let bytes = resolved.region_bytes(size.map(|size| size.value.0));
        let bytes = scope.or_report(&at.mark, bytes)?;
        let region = scope.populated(&at.mark, scope.address(&at)?, bytes)?;
        Ok(Filled {
            region,
            fill: resolved,
            seed: scope.seed,
            written: at.value,
        })
    }

    fn names(key: &'static str, known: &mut Vec<&'static str>) {
        known.extend([key, "size"]);
        <At<FillDecl> as Key<()>>::names(key, known);
    }
}

/// An event or a semaphore.
#[derive(Debug)]
pub(super) struct BlockCell {
    pub block: u32,
    pub index: u32,
    pub written: Cell,
}

impl Key<Context<'_>> for BlockCell {
    fn read(table: &Table<'_>, key: &'static str, context: Context<'_>) -> Read<Self> {
        let cell: At<Cell> = table.req(key)?;
        let scope = context.scope()?;
        Ok(BlockCell {
            block: scope.or_report(&cell.mark, cell.block_index(&scope.spec.map))?,
            index: cell.index,
            written: cell.value,
        })
    }
}

/// Whom to tell: `semaphore`, or `event` with `set`.
#[derive(Debug)]
pub(super) struct Told(pub Signal);

keys! {
    struct ToldSemaphore {
        semaphore: BlockCell,
    }

    struct ToldEvent {
        event: BlockCell,
        set: bool = true,
    }
}

impl crate::document::Keys<Context<'_>> for Told {
    fn read(table: &Table<'_>, context: Context<'_>) -> Read<Self> {
        let signal = match table.exactly_one("a signal", &["semaphore", "event"])? {
            "semaphore" => {
                let ToldSemaphore { semaphore } = ToldSemaphore::read(table, context)?;
                Signal::SemaphoreInc {
                    block: semaphore.block,
                    semaphore: semaphore.index,
                }
            }
            _ => {
                let ToldEvent { event, set } = ToldEvent::read(table, context)?;
                Signal::Event {
                    block: event.block,
                    event: event.index,
                    action: event_action(set),
                }
            }
        };
        Ok(Told(signal))
    }

    fn names(known: &mut Vec<&'static str>) {
        known.extend(["semaphore", "event", "set"]);
    }
}

/// What becomes of an event.
pub(super) fn event_action(set: bool) -> EventAction {
    match set {
        true => EventAction::Set,
        false => EventAction::Clear,
    }
}

/// An engine.
#[derive(Debug)]
pub(super) struct Engine {
    pub id: EngineId,
    pub written: EngineRef,
}

impl Key<Context<'_>> for Engine {
    fn read(table: &Table<'_>, key: &'static str, context: Context<'_>) -> Read<Self> {
        let written = table.req(key)?;
        let id = context.scope()?.engine(&written)?;
        let written = written.value;
        Ok(Engine { id, written })
    }
}

/// A queue of the `engine` beside it.
#[derive(Debug)]
pub(super) struct Queue {
    pub id: QueueAt,
    pub engine: EngineRef,
    pub mark: Mark,
}

impl Key<Context<'_>> for Queue {
    fn read(table: &Table<'_>, key: &'static str, context: Context<'_>) -> Read<Self> {
        let (engine, queue) = (Engine::read(table, "engine", context), table.req(key));
        let queue: At<u32> = queue?;
        let scope = context.scope()?;
        let queues = scope.spec.limits.queues_per_engine;
        let number = u8::try_from(queue.value).ok();
        let number = number.filter(|number| u32::from(*number) < queues);
        let number = number.ok_or_else(|| {
            let message = format!("an engine has queues 0 to {}", queues.saturating_sub(1));
            scope.report(&queue.mark, message)
        });
        let engine = engine?;
        Ok(Queue {
            id: QueueAt {
                engine: engine.id,
                queue: QueueId(number?),
            },
            engine: engine.written,
            mark: queue.mark,
        })
    }

    fn names(key: &'static str, known: &mut Vec<&'static str>) {
        known.extend(["engine", key]);
    }
}

impl std::fmt::Display for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} queue {}", self.engine, self.id.queue)
    }
}

/// A register of the `engine` beside it, by its name.
#[derive(Debug)]
pub(super) struct Register {
    pub at: Addr,
    pub name: String,
    pub engine: EngineRef,
}

impl Key<Context<'_>> for Register {
    fn read(table: &Table<'_>, key: &'static str, context: Context<'_>) -> Read<Self> {
        let (engine, name) = (Engine::read(table, "engine", context), table.req(key));
        let (name, engine): (At<String>, Engine) = (name?, engine?);
        let scope = context.scope()?;
        let offset = offset_of(&name.value, scope.spec);
        let offset = offset.map_err(|error| scope.report(&name.mark, error.to_string()))?;
        let base = scope.spec.map.engine_base(engine.id).unwrap_or_default();
        Ok(Register {
            at: Addr(base.0 + offset),
            name: name.value,
            engine: engine.written,
        })
    }

    fn names(key: &'static str, known: &mut Vec<&'static str>) {
        known.extend(["engine", key]);
    }
}

/// The two prings of a queue, `tx` and `rx`.
#[derive(Debug)]
pub(super) struct RingPair {
    pub tx: String,
    pub rx: String,
}

impl Key<Context<'_>> for RingPair {
    fn read(table: &Table<'_>, _: &'static str, context: Context<'_>) -> Read<Self> {
        let (tx, rx) = (table.req("tx"), table.req("rx"));
        let (tx, rx) = (tx?, rx?);
        let scope = context.scope()?;
        let (tx, rx) = (
            scope.pring(&tx, Direction::M2s),
            scope.pring(&rx, Direction::S2m),
        );
        Ok(RingPair { tx: tx?, rx: rx? })
    }

    fn names(_: &'static str, known: &mut Vec<&'static str>) {
        known.extend(["tx", "rx"]);
    }
}

/// A barrier that the arch has.
#[derive(Debug)]
pub(super) struct Barrier(pub BarrierMode);

impl Key<Context<'_>> for Barrier {
    fn read(table: &Table<'_>, key: &'static str, context: Context<'_>) -> Read<Self> {
        let mode: At<BarrierMode> = table.req(key)?;
        let scope = context.scope()?;
        if mode.value == BarrierMode::StrongOrder && !scope.spec.caps.strong_order_writes {
            let message = format!(
                "{} does not have strong-ordered writes; use \"dmb\", or add only = [\"v3\", \"v4\"]",
                scope.spec.arch
            );
            return Err(scope.report(&mode.mark, message));
        }
        Ok(Barrier(mode.value))
    }
}

impl Barrier {
    /// The mode that was chosen, if any was.
    pub fn mode(chosen: &Option<Barrier>) -> Option<BarrierMode> {
        chosen.as_ref().map(|barrier| barrier.0)
    }

    /// The choice as it is shown behind what has the barrier.
    pub fn shown(chosen: &Option<Barrier>) -> String {
        match chosen {
            None => String::new(),
            Some(Barrier(mode)) => format!(", barrier {}", barrier_name(*mode)),
        }
    }
}
