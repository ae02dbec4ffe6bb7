//! `[[step]]`: what the host does, in order.

use super::super::ast::{DoorbellDecl, OpDecl, StepDecl, TriggerDecl, WaitDecl};
use super::super::authoring;
use super::super::barrier_name;
use super::super::diag::Reported;
use super::super::driver;
use super::super::fill::{Affirmed, FillDecl};
use super::super::reader::{FromValue, Reader, Value, hint};
use super::{exactly_one, name, only, queue};
use crate::desc::BarrierMode;
use crate::system::SemTest;

const OPS: &[&str] = &[
    "add_desc_transfer",
    "add_desc_transfer_ex",
    "add_desc_event",
    "add_desc_semaphore_inc",
    "dump_to_pring",
    "dump_to_pring_padded",
    "init_queue",
    "doorbell",
    "trigger",
    "write_register",
    "read_register",
    "wait",
    "write",
    "observe",
];

pub(super) fn step(index: usize, table: &Reader<'_>) -> Result<StepDecl, Reported> {
    let what = table.req::<String>("do")?;
    let label = table.opt("label");
    let only = only(table);
    let op = match what.as_str() {
        "add_desc_transfer" => add_desc_transfer(table, false),
        "add_desc_transfer_ex" => add_desc_transfer(table, true),
        "add_desc_event" => add_desc_event(table),
        "add_desc_semaphore_inc" => add_desc_semaphore_inc(table),
        "dump_to_pring" => dump(table, false),
        "dump_to_pring_padded" => dump(table, true),
        "init_queue" => init_queue(table),
        "doorbell" => doorbell(table).map(OpDecl::Doorbell),
        "trigger" => trigger(table).map(OpDecl::Trigger),
        "write_register" => write_register(table),
        "read_register" => read_register(table),
        "wait" => wait(table),
        "write" => write(table),
        "observe" => observe(table),
        other if authoring::OPS.contains(&other) => {
            authoring::read(other, table).map(OpDecl::Authoring)
        }
        other if driver::OPS.contains(&other) => driver::read(other, table).map(OpDecl::Driver),
        other => {
            let known = OPS.iter().chain(authoring::OPS).chain(driver::OPS);
            let hint = hint(other, known.copied());
            return Err(table.report_at(&what.mark, format!("no host step \"{other}\"{hint}")));
        }
    };
    table.finish()?;
    Ok(StepDecl {
        index,
        mark: table.mark().clone(),
        label: label?,
        only: only?,
        op: op?,
    })
}

impl FromValue for BarrierMode {
    const EXPECTED: &'static str = "\"none\", \"dmb\", \"write_barrier\" or \"sow\"";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let Some(text) = value.text()? else {
            return Ok(None);
        };
        let named = |mode: &BarrierMode| barrier_name(*mode) == text;
        match BarrierMode::ALL.into_iter().find(named) {
            Some(mode) => Ok(Some(mode)),
            None => Err(format!("\"{text}\" is not {}", Self::EXPECTED)),
        }
    }
}

fn add_desc_transfer(table: &Reader<'_>, ex: bool) -> Result<OpDecl, Reported> {
    let vring = name(table, "vring");
    let from = table.req("from");
    let to = table.req("to");
    let size = table.req("size");
    let barrier = if ex { Ok(None) } else { table.opt("barrier") };
    Ok(OpDecl::AddDescTransfer {
        vring: vring?,
        from: from?,
        to: to?,
        size: size?,
        ex,
        barrier: barrier?,
    })
}

fn add_desc_event(table: &Reader<'_>) -> Result<OpDecl, Reported> {
    let vring = name(table, "vring");
    let event = table.req("event");
    let set = table.or("set", true);
    let barrier = table.opt("barrier");
    Ok(OpDecl::AddDescEvent {
        vring: vring?,
        event: event?,
        set: set?,
        barrier: barrier?,
    })
}

fn add_desc_semaphore_inc(table: &Reader<'_>) -> Result<OpDecl, Reported> {
    let vring = name(table, "vring");
    let semaphore = table.req("semaphore");
    let barrier = table.opt("barrier");
    Ok(OpDecl::AddDescSemaphoreInc {
        vring: vring?,
        semaphore: semaphore?,
        barrier: barrier?,
    })
}

fn dump(table: &Reader<'_>, padded: bool) -> Result<OpDecl, Reported> {
    let vring = name(table, "vring");
    let tx = table.req("tx");
    let rx = table.req("rx");
    let padded = if padded {
        table.req("padded").map(Some)
    } else {
        Ok(None)
    };
    Ok(OpDecl::DumpToPring {
        vring: vring?,
        tx: tx?,
        rx: rx?,
        padded: padded?,
    })
}

fn init_queue(table: &Reader<'_>) -> Result<OpDecl, Reported> {
    let queue = queue(table);
    let tx = table.req("tx");
    let rx = table.req("rx");
    let ring_id_check = table.or("ring_id_check", true);
    let dmb = table.or("dmb", true);
    Ok(OpDecl::InitQueue {
        queue: queue?,
        tx: tx?,
        rx: rx?,
        ring_id_check: ring_id_check?,
        dmb: dmb?,
    })
}

pub(super) fn doorbell(table: &Reader<'_>) -> Result<DoorbellDecl, Reported> {
    let queue = queue(table);
    let direction = table.req("direction");
    let count = table.req("count");
    Ok(DoorbellDecl {
        queue: queue?,
        direction: direction?.value,
        count: count?,
    })
}

pub(super) fn trigger(table: &Reader<'_>) -> Result<TriggerDecl, Reported> {
    let queue = queue(table);
    let tx = table.opt("tx");
    let rx = table.opt("rx");
    Ok(TriggerDecl {
        queue: queue?,
        tx: tx?,
        rx: rx?,
    })
}

fn write_register(table: &Reader<'_>) -> Result<OpDecl, Reported> {
    let engine = table.req("engine");
    let register = table.req("register");
    let value = table.req("value");
    Ok(OpDecl::WriteRegister {
        engine: engine?,
        register: register?,
        value: value?.value,
    })
}

fn read_register(table: &Reader<'_>) -> Result<OpDecl, Reported> {
    let engine = table.req("engine");
    let register = table.req("register");
    let name = name(table, "name");
    Ok(OpDecl::ReadRegister {
        engine: engine?,
        register: register?,
        name: name?,
    })
}

fn wait(table: &Reader<'_>) -> Result<OpDecl, Reported> {
    let keys = [
        "idle",
        "queue",
        "semaphore",
        "word",
        "cycles",
        "sequencer",
        "interrupt",
    ];
    let key = exactly_one(table, "a wait", &keys)?;
    // A wait for so many cycles is over when they are.
    let timeout = match key {
        "cycles" => Ok(None),
        _ => table.opt("timeout"),
    };
    let on = match key {
        "idle" => table.req::<Affirmed>("idle").map(|_| WaitDecl::Idle),
        "interrupt" => table
            .req::<Affirmed>("interrupt")
            .map(|_| WaitDecl::Interrupt),
        "queue" => queue(table).map(WaitDecl::Queue),
        "semaphore" => semaphore(table),
        "word" => word(table),
        "cycles" => table
            .req("cycles")
            .map(|cycles| WaitDecl::Cycles(cycles.value)),
        _ => table.req("sequencer").map(WaitDecl::Sequencer),
    };
    Ok(OpDecl::Wait {
        on: on?,
        timeout: timeout?,
    })
}

fn semaphore(table: &Reader<'_>) -> Result<WaitDecl, Reported> {
    let cell = table.req("semaphore");
    let test = match exactly_one(table, "a wait for a semaphore", &["ge", "eq"])? {
        "ge" => SemTest::Ge(table.req("ge")?.value),
        _ => SemTest::Eq(table.req("eq")?.value),
    };
    Ok(WaitDecl::Semaphore { cell: cell?, test })
}

fn word(table: &Reader<'_>) -> Result<WaitDecl, Reported> {
    let at = table.req("word");
    let value = table.req("value");
    Ok(WaitDecl::Word {
        at: at?,
        value: value?.value,
    })
}

fn write(table: &Reader<'_>) -> Result<OpDecl, Reported> {
    let at = table.req("at");
    let size = table.opt("size");
    let fill = FillDecl::read(table);
    Ok(OpDecl::Write {
        at: at?,
        size: size?,
        fill: fill?,
    })
}

fn observe(table: &Reader<'_>) -> Result<OpDecl, Reported> {
    let name = name(table, "name");
    let at = table.req("at");
    let size = table.opt("size");
    Ok(OpDecl::Observe {
        name: name?,
        at: at?,
        size: size?,
    })
}
