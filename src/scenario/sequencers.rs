//! `[[sequencer]]`: programs that run beside the host from time 0. Each instruction is one type; they are
//! listed in [`KINDS`], by the key that names them.

use super::given::{Area, BlockCell, Filled};
use super::scope::{Context, Scope};
use super::steps::{Doorbell, Trigger};
use super::words::Name;
use crate::arch::regs::Direction;
use crate::document::{At, Keys, Mark, NoValue, Read, Table, Under, keys};
use crate::system::{SequencerOp, WaitOp};
use crate::units::Cycles;

/// A program that runs beside the host.
#[derive(Debug)]
pub(super) struct SequencerPlan {
    pub name: String,
    pub program: Vec<SequencerOp>,
    /// Where each operation came from.
    pub marks: Vec<Mark>,
    /// The line of each operation.
    pub lines: Vec<usize>,
}

/// An instruction as it is planned: resolved for one arch.
trait Instruction {
    /// Makes known what later parts of the scenario may name.
    fn declare(&self, _scope: &mut Scope<'_>, _mark: &Mark) -> Read<()> {
        Ok(())
    }

    /// What the machine does.
    fn ops(self: Box<Self>) -> Vec<SequencerOp>;
}

/// What a scenario needs to know of a type of instruction.
struct Kind {
    name: &'static str,
    read: fn(&Table<'_>, Context<'_>) -> Read<Box<dyn Instruction>>,
    keys: fn(&mut Vec<&'static str>),
}

const fn kind<I: Instruction + for<'a> Keys<Context<'a>> + 'static>(name: &'static str) -> Kind {
    Kind {
        name,
        read: |table, context| Ok(Box::new(I::read(table, context)?)),
        keys: <I as Keys<Context<'_>>>::names,
    }
}

const KINDS: [Kind; 9] = [
    kind::<Wait>("wait"),
    kind::<Inc>("inc"),
    kind::<Dec>("dec"),
    kind::<Set>("set"),
    kind::<RingDoorbell>("doorbell"),
    kind::<RingBoth>("trigger"),
    kind::<Delay>("delay"),
    kind::<LookAt>("read"),
    kind::<Store>("write"),
];

keys! {
    struct Inc {
        inc: BlockCell,
        by: i32 = 1,
    }

    struct Dec {
        dec: BlockCell,
        by: i32 = 1,
    }

    struct Set {
        set: BlockCell,
        value: i32,
    }

    struct RingDoorbell {
        doorbell: Under<Doorbell>,
    }

    struct RingBoth {
        trigger: Under<Trigger>,
    }

    struct Delay {
        delay: u64,
    }

    struct LookAt {
        name ("read"): At<Name>,
        at: Area,
    }

    struct Store {
        at ("write"): Filled,
    }

    struct WaitKeys {
        wait: BlockCell,
    }
}

/// Goes on when a semaphore passes a test, and may change it then.
struct Wait {
    cell: BlockCell,
    op: WaitOp,
}

const TESTS: [&str; 5] = ["ge", "eq", "ge_and_dec", "eq_and_inc", "eq_and_clear"];

impl Keys<Context<'_>> for Wait {
    fn read(table: &Table<'_>, context: Context<'_>) -> Read<Self> {
        let keys = WaitKeys::read(table, context);
        let test = table.exactly_one("a wait", &TESTS)?;
        let value = table.req(test)?.value;
        let op = match test {
            "ge" => WaitOp::Ge(value),
            "eq" => WaitOp::Eq(value),
            "ge_and_dec" => WaitOp::GeAndDec(value),
            "eq_and_inc" => WaitOp::EqAndInc(value),
            _ => WaitOp::EqAndClear(value),
        };
        let cell = keys?.wait;
        Ok(Wait { cell, op })
    }

    fn names(known: &mut Vec<&'static str>) {
        <WaitKeys as Keys<Context<'_>>>::names(known);
        known.extend(TESTS);
    }
}

impl Instruction for Wait {
    fn ops(self: Box<Self>) -> Vec<SequencerOp> {
        vec![SequencerOp::Wait {
            block: self.cell.block,
            semaphore: self.cell.index,
            op: self.op,
        }]
    }
}

impl Instruction for Inc {
    fn ops(self: Box<Self>) -> Vec<SequencerOp> {
        vec![SequencerOp::Inc {
            block: self.inc.block,
            semaphore: self.inc.index,
            by: self.by,
        }]
    }
}

impl Instruction for Dec {
    fn ops(self: Box<Self>) -> Vec<SequencerOp> {
        vec![SequencerOp::Dec {
            block: self.dec.block,
            semaphore: self.dec.index,
            by: self.by,
        }]
    }
}

impl Instruction for Set {
    fn ops(self: Box<Self>) -> Vec<SequencerOp> {
        vec![SequencerOp::Set {
            block: self.set.block,
            semaphore: self.set.index,
            value: self.value,
        }]
    }
}

impl Instruction for RingDoorbell {
    fn ops(self: Box<Self>) -> Vec<SequencerOp> {
        let Doorbell {
            ring,
            direction,
            count,
        } = self.doorbell.0;
        vec![SequencerOp::Doorbell {
            engine: ring.queue.id.engine,
            queue: ring.queue.id.queue,
            direction,
            count,
        }]
    }
}

impl Instruction for RingBoth {
    fn ops(self: Box<Self>) -> Vec<SequencerOp> {
        let Trigger { queue, tx, rx } = self.trigger.0;
        let doorbell = |direction, count| SequencerOp::Doorbell {
            engine: queue.id.engine,
            queue: queue.id.queue,
            direction,
            count,
        };
        vec![doorbell(Direction::S2m, rx), doorbell(Direction::M2s, tx)]
    }
}

impl Instruction for Delay {
    fn ops(self: Box<Self>) -> Vec<SequencerOp> {
        vec![SequencerOp::Delay(Cycles(self.delay))]
    }
}

impl Instruction for LookAt {
    fn declare(&self, scope: &mut Scope<'_>, _mark: &Mark) -> Read<()> {
        scope.observe(&self.name, &self.at.mark, &self.at.region)
    }

    fn ops(self: Box<Self>) -> Vec<SequencerOp> {
        vec![SequencerOp::Read {
            name: self.name.value.0,
            at: self.at.region.at,
            len: self.at.region.bytes,
        }]
    }
}

impl Instruction for Store {
    fn declare(&self, scope: &mut Scope<'_>, mark: &Mark) -> Read<()> {
        scope.hold(mark, self.at.region.bytes)
    }

    fn ops(self: Box<Self>) -> Vec<SequencerOp> {
        let Filled {
            region, fill, seed, ..
        } = self.at;
        let mut bytes = vec![0; region.bytes as usize];
        fill.bytes(seed).next(&mut bytes);
        vec![SequencerOp::Write {
            at: region.at,
            bytes,
        }]
    }
}

/// An instruction and where it stands.
struct InstructionRead {
    mark: Mark,
    instruction: Box<dyn Instruction>,
}

fn instruction(table: &Table<'_>, context: Context<'_>) -> Read<InstructionRead> {
    let names = KINDS.map(|kind| kind.name);
    let name = table.exactly_one("an operation", &names);
    let read = name.and_then(|name| {
        let kind = KINDS.iter().find(|kind| kind.name == name);
        (kind.ok_or(NoValue)?.read)(table, context)
    });
    table.finish()?;
    Ok(InstructionRead {
        mark: table.mark().clone(),
        instruction: read?,
    })
}

/// Checks a `[[sequencer]]` as far as that goes without an arch.
pub(super) fn check(table: &Table<'_>) -> Read<()> {
    let (name, counts) = (table.req::<Name>("name"), Context(None).counts(table));
    let program = table.tables("program");
    for (_, table) in &program {
        // What is wrong has been reported; what has no value yet has it later.
        let _ = instruction(table, Context(None));
    }
    table.finish()?;
    name?;
    counts?;
    match program.is_empty() {
        true => Err(table.report("\"program\" is missing or empty; write at least one operation")),
        false => Ok(()),
    }
}

/// A sequencer of the arch at hand, by name; `None` if the table is for others.
pub(super) fn name(scope: &mut Scope<'_>, table: &Table<'_>) -> Read<Option<String>> {
    let name = table.req::<Name>("name")?;
    if !Context(Some(scope)).counts(table)? {
        return Ok(None);
    }
    let taken = scope.sequencers.contains(&name.value);
    scope.sequencers.push(name.value.0.clone());
    if taken {
        let message = format!("\"{}\" is already the name of a sequencer", name.value.0);
        return Err(scope.report(&name.mark, message));
    }
    Ok(Some(name.value.0))
}

/// Resolves a program, once the host steps are: those fill the rings it rings.
pub(super) fn program(
    scope: &mut Scope<'_>,
    name: String,
    table: &Table<'_>,
) -> Read<SequencerPlan> {
    let mut verdict = Ok(());
    let mut plan = SequencerPlan {
        name,
        program: Vec::new(),
        marks: Vec::new(),
        lines: Vec::new(),
    };
    for (_, table) in table.tables("program") {
        let read = instruction(&table, Context(Some(scope)));
        let read = read.and_then(|read| {
            read.instruction.declare(scope, &read.mark)?;
            Ok(read)
        });
        let Ok(InstructionRead { mark, instruction }) = read else {
            verdict = Err(NoValue);
            continue;
        };
        let line = scope.document.line(&mark);
        for op in instruction.ops() {
            plan.program.push(op);
            plan.marks.push(mark.clone());
            plan.lines.push(line);
        }
    }
    verdict.map(|()| plan)
}

/// Adds the keys of sequencers.
pub(super) fn keys(known: &mut Vec<&'static str>) {
    known.extend(["name", "only", "program"]);
    KINDS.iter().for_each(|kind| (kind.keys)(known));
}
