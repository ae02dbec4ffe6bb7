//! Host steps: resolved and, one after the other, tried on the scratch memory.

use super::super::ast::{Ast, DoorbellDecl, OpDecl, StepDecl, TriggerDecl, WaitDecl};
use super::super::authoring;
use super::super::barrier_name;
use super::super::diag::{At, Mark, Reported};
use super::super::driver;
use super::super::fill::FillDecl;
use super::super::host_side::{Barrier, CheckBus, HostAction, HostSide};
use super::super::place::{EngineRef, Location, Region};
use super::super::quantity::Span;
use super::scope::Scope;
use super::waits::Outputs;
use super::{Action, PringPlan, Step, WaitOn, applies};
use crate::arch::regs::Direction;
use crate::arch::regs::table::offset_of;
use crate::arch::{EngineId, QueueId};
use crate::desc::BarrierMode;
use crate::host::EventAction;
use crate::sim::Duration;
use crate::system::Condition;
use crate::units::{Addr, Bytes};

/// How long a wait may take when it does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_ns(10_000_000);

/// Bytes of a register.
const REGISTER_BYTES: u64 = 4;

/// A step with the place it came from.
pub(super) struct PlannedStep {
    pub step: Step,
    pub mark: Mark,
}

/// The steps of this arch, and what trying them showed.
pub(super) struct Tried {
    pub steps: Vec<PlannedStep>,
    /// The host as it stands after them.
    pub host: HostSide,
    pub outputs: Outputs,
}

/// Resolves the steps of this arch and tries them.
pub(super) fn steps(
    scope: &mut Scope<'_>,
    ast: &Ast,
    prings: &[PringPlan],
) -> Result<Tried, Reported> {
    let host = HostSide::dry_run(scope.spec.arch, prings, &mut CheckBus(&mut scope.scratch));
    let mut host = host.map_err(|error| {
        scope.document.report_span(None, &error.to_string());
        Reported
    })?;
    let mut outputs = Outputs::default();
    let mut planned = Vec::new();
    for decl in ast
        .steps
        .iter()
        .filter(|decl| applies(&decl.only, scope.spec.arch))
    {
        let step = step(scope, decl, &host).and_then(|step| {
            if let (Action::Host(action), true) = (&step.action, scope.trying) {
                let done = host.perform(action, scope.seed, &mut CheckBus(&mut scope.scratch));
                done.map_err(|error| scope.report(&decl.mark, error.to_string()))?;
                outputs.note(action, &host, &scope.scratch);
            }
            Ok(step)
        });
        match step {
            Ok(step) => planned.push(PlannedStep {
                step,
                mark: decl.mark.clone(),
            }),
            // What was not done would only make later steps fail: they are resolved, not tried.
            Err(Reported) => scope.trying = false,
        }
    }
    if !scope.trying {
        return Err(Reported);
    }
    for vring in host.undumped() {
        let adds = |planned: &&PlannedStep| planned.step.action.adds_to(vring);
        if let Some(last) = planned.iter().rfind(adds) {
            let message = format!(
                "nothing dumps this descriptor of vring \"{vring}\"; add a dump_to_pring step"
            );
            scope.report(&last.mark, message);
        }
    }
    outputs.note_all(&host, &scope.scratch);
    Ok(Tried {
        steps: planned,
        host,
        outputs,
    })
}

fn step(scope: &mut Scope<'_>, decl: &StepDecl, host: &HostSide) -> Result<Step, Reported> {
    if let Some(label) = &decl.label {
        // Repetitions of one step share its label, if they do not tell themselves apart.
        let first = *scope
            .labels
            .entry(label.value.clone())
            .or_insert(decl.index);
        if first != decl.index {
            let message = format!(
                "label \"{}\" is already taken by step[{first}]",
                label.value
            );
            return Err(scope.report(&label.mark, message));
        }
    }
    let (call, detail, action) = operation(scope, &decl.op, host)?;
    Ok(Step {
        source: decl.index,
        line: scope.document.line(&decl.mark),
        label: decl.label.as_ref().map(|label| label.value.clone()),
        call,
        detail,
        action,
    })
}

type Operation = (&'static str, String, Action);

fn operation(scope: &mut Scope<'_>, decl: &OpDecl, host: &HostSide) -> Result<Operation, Reported> {
    let named = |call, detail, action| Ok((call, detail, Action::Host(action)));
    match decl {
        OpDecl::Driver(decl) => {
            let (call, detail, action) = driver::resolve(scope, decl)?;
            named(call, detail, HostAction::Driver(action))
        }
        OpDecl::Authoring(decl) => {
            let (detail, action) = authoring::resolve(scope, decl)?;
            named(decl.call(), detail, HostAction::Authoring(action))
        }
        OpDecl::AddDescTransfer {
            vring,
            from,
            to,
            size,
            ex,
            barrier,
        } => {
            let (source, target) = (scope.region(from, Some(size)), scope.region(to, Some(size)));
            let (source, target) = (source?, target?);
            let (call, chosen) = match (ex, self::barrier(scope, barrier)?) {
                (true, _) => ("add_desc_transfer_ex", Barrier::Ex),
                (false, None) => ("add_desc_transfer", Barrier::OfArch),
                (false, Some(mode)) => ("add_desc_transfer", Barrier::Explicit(mode)),
            };
            let action = HostAction::AddTransfer {
                vring: vring.value.clone(),
                from: source.at,
                to: target.at,
                bytes: size.value.0,
                barrier: chosen,
            };
            let detail = format!(
                "{} -> {}, {}{}",
                from.value,
                to.value,
                size.value,
                shown(barrier)
            );
            named(call, detail, action)
        }
        OpDecl::AddDescEvent {
            vring,
            event,
            set,
            barrier,
        } => {
            let (block, index) = scope.cell(event)?;
            let (what, to) = match set {
                true => ("set", EventAction::Set),
                false => ("clear", EventAction::Clear),
            };
            let action = HostAction::AddEvent {
                vring: vring.value.clone(),
                block,
                event: index,
                to,
                barrier: self::barrier(scope, barrier)?,
            };
            let detail = format!("{what} event {}{}", event.value, shown(barrier));
            named("add_desc_event", detail, action)
        }
        OpDecl::AddDescSemaphoreInc {
            vring,
            semaphore,
            barrier,
        } => {
            let (block, index) = scope.cell(semaphore)?;
            let action = HostAction::AddSemaphoreInc {
                vring: vring.value.clone(),
                block,
                semaphore: index,
                barrier: self::barrier(scope, barrier)?,
            };
            let detail = format!("semaphore {}{}", semaphore.value, shown(barrier));
            named("add_desc_semaphore_inc", detail, action)
        }
        OpDecl::DumpToPring {
            vring,
            tx,
            rx,
            padded,
        } => {
            let rings = (
                scope.pring(tx, Direction::M2s),
                scope.pring(rx, Direction::S2m),
            );
            if scope.trying && !host.vrings().any(|known| *known == vring.value) {
                return Err(scope.unknown(vring, "vring with descriptors", host.vrings()));
            }
            let action = HostAction::Dump {
                vring: vring.value.clone(),
                tx: rings.0?,
                rx: rings.1?,
                padded: padded.as_ref().map(|padded| padded.value),
            };
            let detail = format!("{} -> {}, {}", vring.value, tx.value, rx.value);
            match padded {
                Some(padded) => {
                    let detail = format!("{detail}, padded to {}", padded.value);
                    named("dump_to_pring_padded", detail, action)
                }
                None => named("dump_to_pring", detail, action),
            }
        }
        OpDecl::InitQueue {
            queue,
            tx,
            rx,
            ring_id_check,
            dmb,
        } => {
            let rings = (
                scope.pring(tx, Direction::M2s),
                scope.pring(rx, Direction::S2m),
            );
            let (engine, number) = scope.queue(queue)?;
            let action = HostAction::InitQueue {
                engine,
                queue: number,
                tx: rings.0?,
                rx: rings.1?,
                ring_id_check: *ring_id_check,
                dmb: *dmb,
            };
            let shown = &queue.engine.value;
            let detail = format!("{shown} queue {number} on {}, {}", tx.value, rx.value);
            named("init_queue", detail, action)
        }
        OpDecl::Doorbell(decl) => {
            let (engine, queue, count) = doorbell(scope, decl, host)?;
            let direction = decl.direction;
            let (shown, ring) = (&decl.queue.engine.value, direction.ring_name());
            let detail = format!("{shown} queue {queue} {ring}: {count}");
            let action = HostAction::Doorbell {
                engine,
                queue,
                direction,
                count,
            };
            named("doorbell", detail, action)
        }
        OpDecl::Trigger(decl) => {
            let (engine, queue, tx, rx) = trigger(scope, decl, host)?;
            let shown = &decl.queue.engine.value;
            let detail = format!("{shown} queue {queue}: rx {rx}, then tx {tx}");
            let action = HostAction::Trigger {
                engine,
                queue,
                tx,
                rx,
            };
            named("trigger", detail, action)
        }
        OpDecl::WriteRegister {
            engine,
            register,
            value,
        } => {
            let at = self::register(scope, engine, register)?;
            let (shown, value) = (&engine.value, *value);
            let detail = format!("{shown} {} := {value:#x}", register.value);
            named(
                "write_register",
                detail,
                HostAction::WriteRegister {
                    at,
                    value,
                    doorbell: register.value.ends_with(".drtp_inc"),
                },
            )
        }
        OpDecl::ReadRegister {
            engine,
            register,
            name,
        } => {
            let at = self::register(scope, engine, register)?;
            observed(scope, name, REGISTER_BYTES)?;
            let shown = &engine.value;
            let detail = format!("{shown} {} as \"{}\"", register.value, name.value);
            let name = name.value.clone();
            Ok(("read_register", detail, Action::ReadRegister { name, at }))
        }
        OpDecl::Wait { on, timeout } => {
            let timeout = timeout
                .as_ref()
                .map_or(DEFAULT_TIMEOUT, |t| t.duration(&scope.clock));
            if let WaitDecl::Interrupt = on {
                let detail = "until an interrupt is there".to_string();
                return Ok(("wait", detail, Action::Interrupt { timeout }));
            }
            let (detail, on) = wait(scope, on)?;
            Ok(("wait", detail, Action::Wait { on, timeout }))
        }
        OpDecl::Write { at, size, fill } => {
            let (region, fill) = content(scope, at, size.as_ref(), fill)?;
            let detail = format!("{}, {}", at.value, Bytes(region.bytes));
            named("write", detail, HostAction::Write { region, fill })
        }
        OpDecl::Observe { name, at, size } => {
            let region = observation(scope, name, at, size.as_ref())?;
            let detail = format!(
                "{} as \"{}\", {}",
                at.value,
                name.value,
                Bytes(region.bytes)
            );
            let name = name.value.clone();
            Ok(("observe", detail, Action::Observe { name, region }))
        }
    }
}

/// Address of a register by its name.
fn register(
    scope: &Scope<'_>,
    engine: &At<EngineRef>,
    name: &At<String>,
) -> Result<Addr, Reported> {
    let engine = scope.engine(engine)?;
    let offset = offset_of(&name.value, scope.spec);
    let offset = offset.map_err(|error| scope.report(&name.mark, error.to_string()))?;
    let base = scope.spec.map.engine_base(engine).unwrap_or_default();
    Ok(Addr(base.0 + offset))
}

fn barrier(
    scope: &Scope<'_>,
    decl: &Option<At<BarrierMode>>,
) -> Result<Option<BarrierMode>, Reported> {
    match decl {
        Some(At {
            value: BarrierMode::StrongOrder,
            mark,
        }) if !scope.spec.caps.strong_order_writes => {
            let message = format!(
                "{} has no strong-ordered writes; write \"dmb\", or only = [\"v3\", \"v4\"] beside it",
                scope.spec.arch
            );
            Err(scope.report(mark, message))
        }
        chosen => Ok(chosen.as_ref().map(|mode| mode.value)),
    }
}

fn shown(barrier: &Option<At<BarrierMode>>) -> String {
    match barrier {
        None => String::new(),
        Some(mode) => format!(", barrier {}", barrier_name(mode.value)),
    }
}

/// Engine, queue and count of a doorbell on a queue that the host initialises.
pub(super) fn doorbell(
    scope: &Scope<'_>,
    decl: &DoorbellDecl,
    host: &HostSide,
) -> Result<(EngineId, u8, u32), Reported> {
    let (engine, queue) = scope.queue(&decl.queue)?;
    initialised(scope, &decl.queue.queue.mark, host, engine, queue)?;
    Ok((engine, queue, decl.count.value))
}

/// Engine, queue, Tx and Rx counts of a trigger.
pub(super) fn trigger(
    scope: &Scope<'_>,
    decl: &TriggerDecl,
    host: &HostSide,
) -> Result<(EngineId, u8, u32, u32), Reported> {
    let (engine, queue) = scope.queue(&decl.queue)?;
    let (tx, rx) = initialised(scope, &decl.queue.queue.mark, host, engine, queue)?;
    let count = |given: &Option<At<u32>>, all| given.as_ref().map_or(all, |given| given.value);
    Ok((engine, queue, count(&decl.tx, tx), count(&decl.rx, rx)))
}

/// Descriptors in the rings of a queue.
fn initialised(
    scope: &Scope<'_>,
    mark: &Mark,
    host: &HostSide,
    engine: EngineId,
    queue: u8,
) -> Result<(u32, u32), Reported> {
    match host.ring_counts(engine, queue) {
        Some(counts) => Ok(counts),
        None if !scope.trying => Err(Reported),
        None => {
            let message = format!(
                "queue {queue} of {engine} has no rings here; add an init_queue step before"
            );
            Err(scope.report(mark, message))
        }
    }
}

fn wait(scope: &mut Scope<'_>, on: &WaitDecl) -> Result<(String, WaitOn), Reported> {
    let (detail, condition) = match on {
        WaitDecl::Idle => ("until the machine is idle".to_string(), Condition::Idle),
        WaitDecl::Interrupt => (
            "until an interrupt is there".to_string(),
            Condition::Interrupt,
        ),
        WaitDecl::Queue(queue) => {
            let shown = &queue.engine.value;
            let (engine, queue) = scope.queue(queue)?;
            let detail = format!("until {shown} queue {queue} is idle");
            let queue = QueueId(queue);
            (detail, Condition::QueueIdle { engine, queue })
        }
        WaitDecl::Semaphore { cell, test } => {
            let (block, index) = scope.cell(cell)?;
            let detail = format!("until semaphore {} {test}", cell.value);
            let test = *test;
            (detail, Condition::Semaphore { block, index, test })
        }
        WaitDecl::Word { at, value } => {
            let region = scope.region(
                at,
                Some(&At {
                    value: Bytes(4),
                    mark: at.mark.clone(),
                }),
            )?;
            let detail = format!("until the word at {} is {value:#x}", at.value);
            let at = region.at;
            (detail, Condition::Word { at, value: *value })
        }
        WaitDecl::Cycles(n) => {
            let span = Span::Cycles(*n);
            return Ok((
                format!("for {span}"),
                WaitOn::For(span.duration(&scope.clock)),
            ));
        }
        WaitDecl::Sequencer(name) => {
            let index = scope
                .sequencers
                .iter()
                .position(|known| *known == name.value);
            let index =
                index.ok_or_else(|| scope.unknown(name, "sequencer", scope.sequencers.iter()));
            return Ok((
                format!("until sequencer {} is done", name.value),
                WaitOn::Sequencer(index?),
            ));
        }
    };
    Ok((detail, WaitOn::Condition(condition)))
}

/// A place to be written and what with.
pub(super) fn content(
    scope: &Scope<'_>,
    at: &At<Location>,
    size: Option<&At<Bytes>>,
    fill: &At<FillDecl>,
) -> Result<(Region, super::super::fill::Fill), Reported> {
    let stream = format!("write/{}", at.value);
    let resolved = fill.resolve(scope.document, &stream);
    let resolved = resolved.map_err(|message| scope.report(&fill.mark, message))?;
    let bytes = resolved.region_bytes(size.map(|size| size.value.0));
    let bytes = bytes.map_err(|message| scope.report(&at.mark, message))?;
    let address = scope.address(at)?;
    let region = scope.populated(&at.mark, address, bytes)?;
    Ok((region, resolved))
}

/// A region that is looked at under a name.
pub(super) fn observation(
    scope: &mut Scope<'_>,
    name: &At<String>,
    at: &At<Location>,
    size: Option<&At<Bytes>>,
) -> Result<Region, Reported> {
    let region = scope.region(at, size)?;
    scope.hold(&at.mark, region.bytes)?;
    scope.readable(&at.mark, &region)?;
    observed(scope, name, region.bytes)?;
    Ok(region)
}

/// Notes the name and size of something observed.
fn observed(scope: &mut Scope<'_>, name: &At<String>, bytes: u64) -> Result<(), Reported> {
    if scope
        .observations
        .insert(name.value.clone(), bytes)
        .is_some()
    {
        let message = format!("\"{}\" is already the name of an observation", name.value);
        return Err(scope.report(&name.mark, message));
    }
    Ok(())
}
