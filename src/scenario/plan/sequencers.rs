//! Sequencer programs: resolved once the host steps are, since those fill the rings they ring.

use super::super::ast::{Ast, SequencerDecl, SequencerOpDecl};
use super::super::diag::{At, Mark, Reported};
use super::super::host_side::HostSide;
use super::scope::Scope;
use super::{applies, steps};
use crate::arch::QueueId;
use crate::arch::regs::Direction;
use crate::system::SequencerOp;
use crate::units::Cycles;

/// A program with the place each operation came from.
pub(super) struct PlannedSequencer {
    pub name: String,
    pub program: Vec<SequencerOp>,
    pub marks: Vec<Mark>,
}

/// The sequencers of this arch.
fn declared<'a>(
    scope: &Scope<'_>,
    ast: &'a Ast,
) -> impl Iterator<Item = &'a SequencerDecl> + use<'a> {
    let arch = scope.spec.arch;
    ast.sequencers
        .iter()
        .filter(move |decl| applies(&decl.only, arch))
}

/// Makes the names of the sequencers of this arch known.
pub(super) fn names(scope: &mut Scope<'_>, ast: &Ast) -> Result<(), Reported> {
    let mut verdict = Ok(());
    for decl in declared(scope, ast) {
        if scope.sequencers.contains(&decl.name.value) {
            let message = format!("\"{}\" is already the name of a sequencer", decl.name.value);
            verdict = Err(scope.report(&decl.name.mark, message));
        }
        scope.sequencers.push(decl.name.value.clone());
    }
    verdict
}

/// Resolves the programs, in the order of their names in the scope.
pub(super) fn programs(
    scope: &mut Scope<'_>,
    ast: &Ast,
    host: &HostSide,
) -> Result<Vec<PlannedSequencer>, Reported> {
    let mut verdict = Ok(());
    let mut planned = Vec::new();
    for decl in declared(scope, ast) {
        let mut sequencer = PlannedSequencer {
            name: decl.name.value.clone(),
            program: Vec::new(),
            marks: Vec::new(),
        };
        for op in &decl.program {
            match operations(scope, op, host) {
                Ok(ops) => {
                    sequencer.marks.extend(ops.iter().map(|_| op.mark.clone()));
                    sequencer.program.extend(ops);
                }
                Err(reported) => verdict = Err(reported),
            }
        }
        planned.push(sequencer);
    }
    verdict.map(|()| planned)
}

fn operations(
    scope: &mut Scope<'_>,
    op: &At<SequencerOpDecl>,
    host: &HostSide,
) -> Result<Vec<SequencerOp>, Reported> {
    let one = match &op.value {
        SequencerOpDecl::Wait { cell, test } => {
            let (block, semaphore) = scope.cell(cell)?;
            let op = *test;
            SequencerOp::Wait {
                block,
                semaphore,
                op,
            }
        }
        SequencerOpDecl::Inc { cell, by } => {
            let (block, semaphore) = scope.cell(cell)?;
            let by = *by;
            SequencerOp::Inc {
                block,
                semaphore,
                by,
            }
        }
        SequencerOpDecl::Dec { cell, by } => {
            let (block, semaphore) = scope.cell(cell)?;
            let by = *by;
            SequencerOp::Dec {
                block,
                semaphore,
                by,
            }
        }
        SequencerOpDecl::Set { cell, value } => {
            let (block, semaphore) = scope.cell(cell)?;
            let value = *value;
            SequencerOp::Set {
                block,
                semaphore,
                value,
            }
        }
        SequencerOpDecl::Doorbell(decl) => {
            let (engine, queue, count) = steps::doorbell(scope, decl, host)?;
            SequencerOp::Doorbell {
                engine,
                queue: QueueId(queue),
                direction: decl.direction,
                count,
            }
        }
        SequencerOpDecl::Trigger(decl) => {
            let (engine, queue, tx, rx) = steps::trigger(scope, decl, host)?;
            let doorbell = |direction, count| SequencerOp::Doorbell {
                engine,
                queue: QueueId(queue),
                direction,
                count,
            };
            return Ok(vec![
                doorbell(Direction::S2m, rx),
                doorbell(Direction::M2s, tx),
            ]);
        }
        SequencerOpDecl::Delay(cycles) => SequencerOp::Delay(Cycles(*cycles)),
        SequencerOpDecl::Read { name, at, size } => {
            let region = steps::observation(scope, name, at, size.as_ref())?;
            SequencerOp::Read {
                name: name.value.clone(),
                at: region.at,
                len: region.bytes,
            }
        }
        SequencerOpDecl::Write { at, size, fill } => {
            let (region, fill) = steps::content(scope, at, size.as_ref(), fill)?;
            scope.hold(&op.mark, region.bytes)?;
            let mut bytes = vec![0; region.bytes as usize];
            fill.bytes(scope.seed).next(&mut bytes);
            let at = region.at;
            SequencerOp::Write { at, bytes }
        }
    };
    Ok(vec![one])
}
