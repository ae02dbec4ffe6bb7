//! Waits: exactly one thing each, most of them not for longer than a timeout.

use super::step::{Step, names};
use crate::document::{At, Keys, Read, Table, keys};
use crate::scenario::given::{BlockCell, Queue};
use crate::scenario::host_side::{HostError, HostSide};
use crate::scenario::place::Location;
use crate::scenario::quantity::Span;
use crate::scenario::scope::{Context, Scope};
use crate::scenario::stage::{Effect, Stage, WaitOn};
use crate::scenario::words::Affirmed;
use crate::sim::Duration;
use crate::system::{Condition, SemTest};
use crate::units::Bytes;

/// How long a wait may take when it does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_ns(10_000_000);

names! {
    Wait => "wait";
}

/// A wait.
#[derive(Debug)]
pub(super) struct Wait {
    on: WaitOn,
    timeout: Duration,
    detail: String,
}

keys! {
    struct Idle {
        idle: Affirmed,
        timeout: Option<Span>,
    }

    struct Interrupt {
        interrupt: Affirmed,
        timeout: Option<Span>,
    }

    struct QueueIdle {
        queue: Queue,
        timeout: Option<Span>,
    }

    struct Semaphore {
        semaphore: BlockCell,
        timeout: Option<Span>,
    }

    struct AtLeast {
        ge: i32,
    }

    struct Exactly {
        eq: i32,
    }

    struct Word {
        word: At<Location>,
        value: u32,
        timeout: Option<Span>,
    }

    struct Cycles {
        cycles: u64,
    }

    struct Sequencer {
        sequencer: At<String>,
        timeout: Option<Span>,
    }
}

impl Keys<Context<'_>> for Wait {
    fn read(table: &Table<'_>, context: Context<'_>) -> Read<Self> {
        let keys = [
            "idle",
            "queue",
            "semaphore",
            "word",
            "cycles",
            "sequencer",
            "interrupt",
        ];
        match table.exactly_one("a wait", &keys)? {
            "idle" => idle(table, context),
            "queue" => queue(table, context),
            "semaphore" => semaphore(table, context),
            "word" => word(table, context),
            "cycles" => cycles(table, context),
            "sequencer" => sequencer(table, context),
            _ => interrupt(table, context),
        }
    }

    fn names(known: &mut Vec<&'static str>) {
        <Idle as Keys<Context<'_>>>::names(known);
        <Interrupt as Keys<Context<'_>>>::names(known);
        <QueueIdle as Keys<Context<'_>>>::names(known);
        <Semaphore as Keys<Context<'_>>>::names(known);
        <AtLeast as Keys<Context<'_>>>::names(known);
        <Exactly as Keys<Context<'_>>>::names(known);
        <Word as Keys<Context<'_>>>::names(known);
        <Cycles as Keys<Context<'_>>>::names(known);
        <Sequencer as Keys<Context<'_>>>::names(known);
    }
}

fn wait(
    scope: &Scope<'_>,
    condition: Condition,
    timeout: Option<Span>,
    detail: String,
) -> Read<Wait> {
    let on = WaitOn::Condition(condition);
    Ok(Wait {
        on,
        timeout: timeout.map_or(DEFAULT_TIMEOUT, |span| span.duration(&scope.clock)),
        detail,
    })
}

fn idle(table: &Table<'_>, context: Context<'_>) -> Read<Wait> {
    let Idle {
        idle: Affirmed,
        timeout,
    } = Idle::read(table, context)?;
    let detail = "until the machine is idle".to_string();
    wait(context.scope()?, Condition::Idle, timeout, detail)
}

fn interrupt(table: &Table<'_>, context: Context<'_>) -> Read<Wait> {
    let Interrupt {
        interrupt: Affirmed,
        timeout,
    } = Interrupt::read(table, context)?;
    let detail = "until an interrupt is pending".to_string();
    wait(context.scope()?, Condition::Interrupt, timeout, detail)
}

fn queue(table: &Table<'_>, context: Context<'_>) -> Read<Wait> {
    let QueueIdle { queue, timeout } = QueueIdle::read(table, context)?;
    let detail = format!("until {queue} is idle");
    let condition = Condition::QueueIdle {
        engine: queue.id.engine,
        queue: queue.id.queue,
    };
    wait(context.scope()?, condition, timeout, detail)
}

fn semaphore(table: &Table<'_>, context: Context<'_>) -> Read<Wait> {
    let keys = Semaphore::read(table, context);
    let tests = ["ge", "eq"];
    let test = match table.exactly_one("a wait for a semaphore", &tests)? {
        "ge" => AtLeast::read(table, context).map(|test| SemTest::Ge(test.ge)),
        _ => Exactly::read(table, context).map(|test| SemTest::Eq(test.eq)),
    };
    let (Semaphore { semaphore, timeout }, test) = (keys?, test?);
    let BlockCell { block, index, .. } = semaphore;
    let detail = format!("until semaphore {} {test}", semaphore.written);
    let condition = Condition::Semaphore { block, index, test };
    wait(context.scope()?, condition, timeout, detail)
}

fn word(table: &Table<'_>, context: Context<'_>) -> Read<Wait> {
    let keys = Word::read(table, context)?;
    let scope = context.scope()?;
    let size = At {
        value: Bytes(4),
        mark: keys.word.mark.clone(),
    };
    let region = scope.region(&keys.word, Some(&size))?;
    let (at, value) = (region.at, keys.value);
    let detail = format!("until the word at {} is {value:#x}", keys.word.value);
    wait(scope, Condition::Word { at, value }, keys.timeout, detail)
}

/// A wait for so many cycles is over when they are: it has no timeout.
fn cycles(table: &Table<'_>, context: Context<'_>) -> Read<Wait> {
    let Cycles { cycles } = Cycles::read(table, context)?;
    let span = Span::Cycles(cycles);
    Ok(Wait {
        on: WaitOn::For(span.duration(&context.scope()?.clock)),
        timeout: DEFAULT_TIMEOUT,
        detail: format!("for {span}"),
    })
}

fn sequencer(table: &Table<'_>, context: Context<'_>) -> Read<Wait> {
    let Sequencer { sequencer, timeout } = Sequencer::read(table, context)?;
    let scope = context.scope()?;
    let mut known = scope.sequencers.iter();
    let index = known.position(|known| *known == sequencer.value);
    let unknown = || scope.unknown(&sequencer, "sequencer", scope.sequencers.iter());
    Ok(Wait {
        on: WaitOn::Sequencer(index.ok_or_else(unknown)?),
        timeout: timeout.map_or(DEFAULT_TIMEOUT, |span| span.duration(&scope.clock)),
        detail: format!("until sequencer {} has ended", sequencer.value),
    })
}

impl Step for Wait {
    fn detail(&self) -> String {
        self.detail.clone()
    }

    fn effect(&self) -> Effect<'_> {
        Effect::Waits(&self.on)
    }

    fn perform(&self, _: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        stage.wait(&self.on, self.timeout)?;
        if let WaitOn::Condition(Condition::Interrupt) = self.on {
            stage.take_interrupt();
        }
        Ok(())
    }
}
