//! From the text of a litmus file to programs: names looked up, barriers put in place.

use super::file::{
    CellDecl, DescDecl, ExpectDecl, File, KindDecl, Mode, Name, ObserverDecl, OpDecl, QueueDecl,
    ThenDecl,
};
use super::{Case, Litmus};
use crate::arch::Arch;
use crate::document::{At, Mark};
use crate::order::outcome::{Asked, Condition};
use crate::order::program::{
    Cell, CellKind, Desc, Dest, Observer, ObserverKind, Op, Packet, Program, Queue, Register, Span,
};
use crate::system::WaitOp;
use std::path::PathBuf;

/// Longest burst of the built-in configs, in bytes.
const BURST_BYTES: u64 = 256;

/// Largest cell, in bytes, and most atoms of a program: what stays explorable.
const MAX_CELL_BYTES: u64 = 1 << 20;
const MAX_ATOMS: usize = 4096;
/// Most repetitions of a descriptor.
const MAX_REPEAT: u32 = 64;
/// Bytes of an atom, and of a cell, unless the file says otherwise.
const WORD: u64 = 4;

/// What is wrong, and where; nowhere is the file as a whole.
pub(super) struct Wrong {
    pub at: Option<Mark>,
    pub message: String,
}

fn wrong<'m, T>(at: impl Into<Option<&'m Mark>>, message: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong {
        at: at.into().cloned(),
        message: message.into(),
    })
}

pub(super) fn resolve(file: &File) -> Result<Litmus, Wrong> {
    let base = program(file)?;
    let mut cases = Vec::new();
    for expect in &file.expect.0 {
        let mut program = base.clone();
        let on = expect.on.as_ref().map_or(&[][..], |on| &on.value);
        for label in expect.on.iter().flat_map(names) {
            put_barrier(&mut program, expect.mode, &label)?;
        }
        if (expect.mode == Mode::None) != on.is_empty() {
            return wrong(
                expect.on.as_ref().map(|on| &on.mark),
                "\"on\" is required with every mode except \"none\", and not allowed with that",
            );
        }
        for arch in arches(file, expect, &program) {
            cases.push(Case {
                arch,
                mode: expect.mode,
                on: on.to_vec(),
                program: program.clone(),
                asked: asked(file, &program)?,
                expected: expect.answer,
            });
        }
    }
    Ok(Litmus {
        path: PathBuf::new(),
        name: file.name.clone(),
        row: file.row.clone(),
        about: file.about.clone(),
        cases,
    })
}

/// The generations that a cell of the catalogue applies to.
fn arches(file: &File, expect: &ExpectDecl, program: &Program) -> Vec<Arch> {
    let mut found = Arch::ALL.to_vec();
    for named in [&file.arch, &expect.arch].into_iter().flatten() {
        found.retain(|arch| named.contains(arch));
    }
    let descs = || {
        program
            .queues
            .iter()
            .flat_map(|q| &q.packets)
            .flat_map(|p| &p.descs)
    };
    found.retain(|arch| {
        let caps = arch.spec().caps;
        let sow = caps.strong_order_writes || descs().all(|desc| !desc.sow);
        sow && (caps.embedded_semaphore || descs().all(|desc| desc.embedded.is_none()))
    });
    found
}

/// The names of an array, each at its place.
fn names(list: &At<Vec<String>>) -> impl Iterator<Item = Name> {
    let at = |name: &String| Name {
        value: name.clone(),
        mark: list.mark.clone(),
    };
    list.value.iter().map(at)
}

fn put_barrier(program: &mut Program, mode: Mode, label: &Name) -> Result<(), Wrong> {
    let packets = program
        .queues
        .iter_mut()
        .flat_map(|queue| &mut queue.packets);
    let mut found = false;
    for desc in packets.flat_map(|packet| &mut packet.descs) {
        if desc.label != label.value {
            continue;
        }
        found = true;
        match mode {
            Mode::None => {}
            Mode::Dmb => desc.dmb = true,
            Mode::WriteBarrier => desc.write_barrier = true,
            Mode::Sow => desc.sow = true,
        }
    }
    match found {
        true => Ok(()),
        false => unknown("descriptor labelled", label),
    }
}

fn unknown<T>(what: &str, name: &Name) -> Result<T, Wrong> {
    let message = format!("unknown {what} \"{}\"", name.value);
    wrong(&name.mark, message)
}

fn program(file: &File) -> Result<Program, Wrong> {
    let grain = file.grain.as_ref().map_or(WORD, |grain| grain.value);
    if grain == 0 || !grain.is_multiple_of(4) || grain > MAX_CELL_BYTES {
        return wrong(
            file.grain.as_ref().map(|grain| &grain.mark),
            format!("grain must be a multiple of 4, at most {MAX_CELL_BYTES}"),
        );
    }
    let mut program = Program {
        burst: (BURST_BYTES / grain).max(1) as usize,
        grain,
        ..Program::default()
    };
    for (name, decl) in &file.cells.0.0 {
        let cell = cell(file, &program, name, decl)?;
        program.cells.push(cell);
    }
    let mut descs = file.queue.0.iter().flat_map(|queue| &queue.descs.0);
    if descs.any(|desc| desc.inc.is_some()) {
        program.cells.push(set_constant(&program));
    }
    for decl in &file.queue.0 {
        let queue = queue(&program, decl)?;
        program.queues.push(queue);
    }
    for decl in &file.observer.0 {
        let observer = observer(&mut program, file, decl)?;
        program.observers.push(observer);
    }
    Ok(program)
}

fn cell(file: &File, program: &Program, name: &Name, decl: &CellDecl) -> Result<Cell, Wrong> {
    let at = decl.bytes.as_ref().map_or(&name.mark, |bytes| &bytes.mark);
    let bytes = match decl.names.is_some() || decl.descriptor.is_some() {
        true => 8,
        false => decl.bytes.as_ref().map_or(WORD, |bytes| bytes.value),
    };
    let count = bytes.div_ceil(program.grain) as usize;
    if bytes == 0 || !bytes.is_multiple_of(4) || bytes > MAX_CELL_BYTES {
        let message = format!(
            "cell {}: bytes must be a multiple of 4, at most {MAX_CELL_BYTES}",
            name.value
        );
        return wrong(at, message);
    }
    let first = program.atoms();
    if first + count > MAX_ATOMS {
        return wrong(
            at,
            format!(
                "cell {}: the test has more than {MAX_ATOMS} grains in total",
                name.value
            ),
        );
    }
    let index = |name: &Name| match file
        .cells
        .0
        .0
        .iter()
        .position(|(known, _)| known.value == name.value)
    {
        Some(index) => Ok(index as u32),
        None => unknown("cell", name),
    };
    let (kind, initial) = match (&decl.names, &decl.descriptor) {
        (Some(names), None) => (CellKind::Pointer, index(names)?),
        (Some(names), Some(label)) => {
            let place = file.queue.0.iter().enumerate().find_map(|(queue, ring)| {
                let descs =
                    (ring.descs.0.iter()).flat_map(|d| std::iter::repeat_n(d, d.repeat as usize));
                let descriptor = descs.clone().position(|d| d.label == label.value)?;
                Some(CellKind::Descriptor { queue, descriptor })
            });
            match place {
                Some(kind) => (kind, index(names)?),
                None => return unknown("descriptor labelled", label),
            }
        }
        (None, Some(label)) => {
            let message = "\"descriptor\" needs \"names\", the cell that is its source initially";
            return wrong(&label.mark, message);
        }
        (None, None) => {
            let kind = match decl.kind {
                KindDecl::Memory => CellKind::Memory,
                KindDecl::Host => CellKind::Host,
                KindDecl::Semaphore => CellKind::Semaphore,
            };
            (kind, decl.value as u32)
        }
    };
    let one_atom = kind == CellKind::Semaphore || decl.names.is_some();
    Ok(Cell {
        name: name.value.clone(),
        kind,
        span: Span {
            first,
            count: if one_atom { 1 } else { count },
        },
        initial,
        bytes,
    })
}

/// Where increments are copied from. Its name is none that a file can give: it has a space.
fn set_constant(program: &Program) -> Cell {
    Cell {
        name: "set constant".to_string(),
        kind: CellKind::SetConstant,
        span: Span {
            first: program.atoms(),
            count: 1,
        },
        initial: 1,
        bytes: 4,
    }
}

fn find<'p>(program: &'p Program, name: &Name) -> Result<&'p Cell, Wrong> {
    let mut cells = program.cells.iter();
    match cells.find(|cell| cell.name == name.value) {
        Some(cell) => Ok(cell),
        None => unknown("cell", name),
    }
}

fn semaphore(program: &Program, name: &Name) -> Result<usize, Wrong> {
    match find(program, name)? {
        cell if cell.kind == CellKind::Semaphore => Ok(cell.span.first),
        _ => wrong(&name.mark, format!("\"{}\" is not a semaphore", name.value)),
    }
}

/// `size` bytes of a cell from `at` on, as atoms.
fn part(program: &Program, name: &Name, at: u64, size: Option<u64>) -> Result<Span, Wrong> {
    let cell = find(program, name)?;
    let size = size.unwrap_or(cell.bytes.saturating_sub(at));
    let end = at.saturating_add(size);
    let whole = |bytes: u64| bytes.is_multiple_of(program.grain);
    if size == 0 || end > cell.bytes || !whole(at) || !(whole(end) || end == cell.bytes) {
        let message = format!(
            "bytes {at}..{end} are not whole grains of {} bytes within the {} bytes of \"{}\"",
            program.grain, cell.bytes, cell.name
        );
        return wrong(&name.mark, message);
    }
    if cell.kind == CellKind::Semaphore {
        return wrong(
            &name.mark,
            "a packet can access a semaphore only with \"inc\"",
        );
    }
    Ok(Span {
        first: cell.span.first + (at / program.grain) as usize,
        count: match cell.is_pointer() {
            true => 1,
            false => (size.div_ceil(program.grain)) as usize,
        },
    })
}

fn queue(program: &Program, decl: &QueueDecl) -> Result<Queue, Wrong> {
    let mut packets: Vec<Packet> = Vec::new();
    let mut open = false;
    for one in &decl.descs.0 {
        let at = &one.mark;
        if one.repeat == 0 || one.repeat > MAX_REPEAT {
            return wrong(at, format!("repeat must be 1 to {MAX_REPEAT}"));
        }
        for _ in 0..one.repeat {
            let desc = desc(program, at, one)?;
            match packets.last_mut() {
                Some(packet) if open => packet.descs.push(desc),
                _ => packets.push(Packet { descs: vec![desc] }),
            }
            open = one.concat;
        }
    }
    if open || packets.is_empty() {
        let at = decl.descs.0.last().map(|desc| &desc.mark);
        return wrong(at, format!("queue {} ends inside a packet", decl.name));
    }
    Ok(Queue {
        name: decl.name.clone(),
        engine: decl.engine,
        packets,
        rung: decl.rung,
        dmb_masked: decl.dmb_masked,
        start_slot: decl.start_slot,
    })
}

fn desc(program: &Program, at: &Mark, decl: &DescDecl) -> Result<Desc, Wrong> {
    let mut desc = Desc {
        label: decl.label.clone(),
        from: Vec::new(),
        through: None,
        to: Dest::Increment(0),
        dmb: false,
        write_barrier: false,
        sow: false,
        embedded: match &decl.embedded {
            Some(name) => Some(semaphore(program, name)?),
            None => None,
        },
    };
    if let (Some(name), None) = (&decl.inc, &decl.to) {
        desc.to = Dest::Increment(semaphore(program, name)?);
    } else if let (Some(to), None) = (&decl.to, &decl.inc) {
        desc.to = Dest::Store(part(program, to, decl.to_at, decl.size)?);
    } else {
        return wrong(at, "a descriptor needs exactly one of \"to\" and \"inc\"");
    }
    let size = match desc.to {
        Dest::Increment(_) => 4,
        Dest::Store(span) => decl.size.unwrap_or_else(|| {
            let cell = program.cell_of(span.first);
            cell.map_or(0, |cell| cell.bytes - decl.to_at)
        }),
    };
    match (&decl.copy, &decl.add, &decl.through, &decl.inc) {
        (Some(from), None, None, None) => {
            desc.from
                .push(part(program, from, decl.from_at, Some(size))?);
        }
        (None, Some(sources), None, None) if sources.len() >= 2 => {
            for from in names(sources) {
                desc.from
                    .push(part(program, &from, decl.from_at, Some(size))?);
            }
        }
        (None, None, Some(slot), None) => match find(program, slot)? {
            cell if matches!(cell.kind, CellKind::Descriptor { .. }) => {
                desc.through = Some(cell.span.first);
            }
            _ => {
                return wrong(&slot.mark, "\"through\" needs a cell with \"descriptor\"");
            }
        },
        (None, None, None, Some(_)) => {
            let mut cells = program.cells.iter();
            let constant = cells.find(|cell| cell.kind == CellKind::SetConstant);
            desc.from.extend(constant.map(|cell| cell.span));
        }
        _ => {
            let message = "a descriptor needs exactly one of \"copy\", \"add\" (two sources or \
                           more), \"through\" and \"inc\"";
            return wrong(at, message);
        }
    }
    let lengths = desc.from.iter().map(|span| span.count);
    if let Dest::Store(to) = desc.to
        && lengths
            .chain(desc.through.map(|_| 1))
            .any(|count| count != to.count)
    {
        return wrong(
            at,
            "source and destination have different numbers of grains",
        );
    }
    Ok(desc)
}

fn observer(program: &mut Program, file: &File, decl: &ObserverDecl) -> Result<Observer, Wrong> {
    let mut ops = Vec::new();
    for one in &decl.ops.0 {
        let at = &one.mark;
        let resolved = op(program, file, at, one)?;
        let waits_for_memory = matches!(resolved, Op::Wait { atom, .. }
            if program.cell_of(atom).is_some_and(|cell| cell.kind != CellKind::Semaphore));
        let host_only = waits_for_memory || matches!(resolved, Op::Completion { .. });
        if decl.kind == ObserverKind::Sequencer && host_only {
            return wrong(at, "a sequencer can wait only for semaphores");
        }
        ops.push(resolved);
    }
    Ok(Observer {
        name: decl.name.clone(),
        kind: decl.kind,
        ops,
    })
}

fn op(program: &mut Program, file: &File, at: &Mark, decl: &OpDecl) -> Result<Op, Wrong> {
    let ring_of = |name: &Name| {
        let mut queues = file.queue.0.iter();
        match queues.position(|queue| queue.name == name.value) {
            Some(queue) => Ok(queue),
            None => unknown("queue", name),
        }
    };
    match decl {
        OpDecl {
            read: Some(name),
            register: Some(register),
            ..
        } => {
            let span = find(program, name)?.span;
            let first = program.register_count();
            program.registers.push(Register {
                name: register.clone(),
                first,
                count: span.count,
            });
            Ok(Op::Read {
                span,
                register: first,
            })
        }
        OpDecl {
            wait: Some(name), ..
        } => wait(program, at, name, decl),
        OpDecl {
            set: Some(name),
            value: Some(value),
            ..
        } => Ok(Op::Set {
            atom: find(program, name)?.span.first,
            value: *value,
        }),
        OpDecl {
            add: Some(name),
            by: Some(by),
            ..
        } => Ok(Op::Add {
            atom: semaphore(program, name)?,
            by: *by,
        }),
        OpDecl {
            ring: Some(name), ..
        } => {
            let queue = ring_of(name)?;
            match program.queues[queue].rung {
                false => Ok(Op::Ring { queue }),
                true => wrong(at, "the queue is rung at the start; set rung = false on it"),
            }
        }
        OpDecl {
            complete: Some(name),
            packets: Some(packets),
            ..
        } => {
            let (queue, packets) = (ring_of(name)?, *packets as usize);
            match (1..=program.queues[queue].packets.len()).contains(&packets) {
                true => Ok(Op::Completion { queue, packets }),
                false => wrong(at, "the queue does not have that many packets"),
            }
        }
        _ => wrong(
            at,
            "expected one instruction: read with as; wait with ge or eq, and then; set with value; add with by; ring; complete with packets",
        ),
    }
}

fn wait(program: &Program, at: &Mark, name: &Name, decl: &OpDecl) -> Result<Op, Wrong> {
    let cell = find(program, name)?;
    let op = match (decl.ge, decl.eq, decl.then) {
        (Some(value), None, None) => WaitOp::Ge(value),
        (Some(value), None, Some(ThenDecl::Dec)) => WaitOp::GeAndDec(value),
        (None, Some(value), None) => WaitOp::Eq(value),
        (None, Some(value), Some(ThenDecl::Inc)) => WaitOp::EqAndInc(value),
        (None, Some(value), Some(ThenDecl::Clear)) => WaitOp::EqAndClear(value),
        _ => {
            let message = "a wait needs \"ge\" (with then = \"dec\") or \"eq\" (with then = \"inc\" or \"clear\")";
            return wrong(at, message);
        }
    };
    if cell.kind != CellKind::Semaphore && op != WaitOp::Eq(decl.eq.unwrap_or(0)) {
        return wrong(at, "a wait for memory takes only \"eq\", without \"then\"");
    }
    Ok(Op::Wait {
        atom: cell.span.first,
        op,
    })
}

fn asked(file: &File, program: &Program) -> Result<Asked, Wrong> {
    let mut any = Vec::new();
    for alternative in &file.outcome.0 {
        let mut all = Vec::new();
        for (name, wanted) in &alternative.0 {
            let Some(place) = program.place_of(&name.value) else {
                return unknown("register or cell", name);
            };
            all.push(Condition {
                name: name.value.clone(),
                place,
                test: wanted.0,
            });
        }
        any.push(all);
    }
    match any.iter().any(|all| all.is_empty()) || any.is_empty() {
        true => wrong(None, "an [[outcome]] must have at least one value"),
        false => Ok(Asked(any)),
    }
}
