//! Faults: queues and places looked up, times converted.

use super::super::ast::{Ast, FaultKindDecl, FaultWhatDecl};
use super::super::diag::Reported;
use super::applies;
use super::scope::Scope;
use crate::arch::QueueId;
use crate::device::{Fault, FaultKind};
use crate::sim::Duration;
use crate::units::Addr;

/// A fault of the plan.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum FaultPlan {
    Queue(Fault),
    SlowChannel { at: Addr, by: Duration },
}

pub(super) fn faults(scope: &Scope<'_>, ast: &Ast) -> Result<Vec<FaultPlan>, Reported> {
    let here = ast
        .faults
        .iter()
        .filter(|decl| applies(&decl.only, scope.spec.arch));
    let plans: Vec<_> = here.map(|decl| fault(scope, &decl.what)).collect();
    plans.into_iter().collect()
}

fn fault(scope: &Scope<'_>, decl: &FaultWhatDecl) -> Result<FaultPlan, Reported> {
    match decl {
        FaultWhatDecl::SlowChannel { at, by } => {
            let region = scope.populated(&at.mark, scope.address(at)?, 1)?;
            Ok(FaultPlan::SlowChannel {
                at: region.at,
                by: by.duration(&scope.clock),
            })
        }
        FaultWhatDecl::Queue { queue, kind, when } => {
            let (engine, queue) = scope.queue(queue)?;
            let kind = match kind {
                FaultKindDecl::Kind(kind) => *kind,
                FaultKindDecl::LateAck(by) => FaultKind::LateAck(by.duration(&scope.clock)),
            };
            Ok(FaultPlan::Queue(Fault {
                engine,
                queue: QueueId(queue),
                kind,
                when: *when,
            }))
        }
    }
}
