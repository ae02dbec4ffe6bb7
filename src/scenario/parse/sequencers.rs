//! `[[sequencer]]`: programs that run beside the host from time 0.

use super::super::ast::{SequencerDecl, SequencerOpDecl};
use super::super::diag::{At, Reported};
use super::super::fill::FillDecl;
use super::super::reader::Reader;
use super::{exactly_one, name, only, steps};
use crate::system::WaitOp;

const OPS: [&str; 9] = [
    "wait", "inc", "dec", "set", "doorbell", "trigger", "delay", "read", "write",
];

pub(super) fn sequencer(table: &Reader<'_>) -> Result<SequencerDecl, Reported> {
    let name = name(table, "name");
    let only = only(table);
    let program = super::all(table, "program", |_, table| {
        let value = op(table);
        table.finish()?;
        let mark = table.mark().clone();
        Ok(At {
            value: value?,
            mark,
        })
    });
    table.finish()?;
    let program = program?;
    if program.is_empty() {
        return Err(table.report("\"program\" is missing or empty; write what the sequencer does"));
    }
    Ok(SequencerDecl {
        name: name?,
        only: only?,
        program,
    })
}

fn op(table: &Reader<'_>) -> Result<SequencerOpDecl, Reported> {
    match exactly_one(table, "an operation", &OPS)? {
        "wait" => {
            let cell = table.req("wait");
            let tests = ["ge", "eq", "ge_and_dec", "eq_and_inc", "eq_and_clear"];
            let key = exactly_one(table, "a wait", &tests)?;
            let value = table.req(key)?.value;
            let test = match key {
                "ge" => WaitOp::Ge(value),
                "eq" => WaitOp::Eq(value),
                "ge_and_dec" => WaitOp::GeAndDec(value),
                "eq_and_inc" => WaitOp::EqAndInc(value),
                _ => WaitOp::EqAndClear(value),
            };
            Ok(SequencerOpDecl::Wait { cell: cell?, test })
        }
        "inc" => {
            let (cell, by) = (table.req("inc"), table.or("by", 1));
            Ok(SequencerOpDecl::Inc {
                cell: cell?,
                by: by?,
            })
        }
        "dec" => {
            let (cell, by) = (table.req("dec"), table.or("by", 1));
            Ok(SequencerOpDecl::Dec {
                cell: cell?,
                by: by?,
            })
        }
        "set" => {
            let (cell, value) = (table.req("set"), table.req("value"));
            Ok(SequencerOpDecl::Set {
                cell: cell?,
                value: value?.value,
            })
        }
        "doorbell" => inner(table, "doorbell", steps::doorbell).map(SequencerOpDecl::Doorbell),
        "trigger" => inner(table, "trigger", steps::trigger).map(SequencerOpDecl::Trigger),
        "delay" => Ok(SequencerOpDecl::Delay(table.req("delay")?.value)),
        "read" => {
            let name = name(table, "read");
            let at = table.req("at");
            let size = table.opt("size");
            Ok(SequencerOpDecl::Read {
                name: name?,
                at: at?,
                size: size?,
            })
        }
        _ => {
            let at = table.req("write");
            let size = table.opt("size");
            let fill = FillDecl::read(table);
            Ok(SequencerOpDecl::Write {
                at: at?,
                size: size?,
                fill: fill?,
            })
        }
    }
}

/// Reads the table under a key that is known to be there.
fn inner<T>(
    table: &Reader<'_>,
    key: &'static str,
    read: impl FnOnce(&Reader<'_>) -> Result<T, Reported>,
) -> Result<T, Reported> {
    let inner = table.req_table(key)?;
    let value = read(&inner);
    inner.finish()?;
    value
}
