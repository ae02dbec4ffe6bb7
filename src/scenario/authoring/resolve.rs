//! Turning places, cells and engines into what they are on the arch at hand.

use super::super::diag::{At, Reported};
use super::super::place::Location;
use super::super::plan::Scope;
use super::{
    Authoring, Move, NamedTensor, Part, Resolved, Rings, Steps, Tables, TensorPart, VringCall,
    Written, WrittenSignal,
};
use crate::host::Signal;
use crate::units::{Addr, Bytes};

type Done<T> = Result<T, Reported>;

/// Resolves a step; also says in a few words what it works on.
pub(in crate::scenario) fn resolve(
    scope: &Scope<'_>,
    decl: &Authoring<Written>,
) -> Done<(String, Authoring<Resolved>)> {
    Ok(match decl {
        Authoring::Vring { vring, call } => {
            let resolved = vring_call(scope, call)?;
            let vring = vring.clone();
            (
                vring.clone(),
                Authoring::Vring {
                    vring,
                    call: resolved,
                },
            )
        }
        Authoring::Rings(rings) => {
            let resolved = self::rings(scope, rings)?;
            let detail = format!("vrings {}_0 and on", rings.set_name());
            (detail, Authoring::Rings(resolved))
        }
        Authoring::Template { template, loads } => {
            let loads = each(loads, |load| {
                let (staged, size) = place(scope, &load.staged, &load.size)?;
                Ok(TensorPart {
                    staged,
                    var_id: load.var_id,
                    offset: load.offset,
                    size,
                })
            })?;
            let template = template.clone();
            (template.clone(), Authoring::Template { template, loads })
        }
        Authoring::FromTemplate {
            template,
            vring,
            tensors,
        } => {
            let tensors = each(tensors, |tensor| {
                let (at, size) = place(scope, &tensor.at, &tensor.size)?;
                Ok(NamedTensor {
                    var_id: tensor.var_id,
                    name: tensor.name.clone(),
                    at,
                    size,
                })
            })?;
            let detail = format!("{template} -> {vring}");
            let (template, vring) = (template.clone(), vring.clone());
            (
                detail,
                Authoring::FromTemplate {
                    template,
                    vring,
                    tensors,
                },
            )
        }
    })
}

fn vring_call(scope: &Scope<'_>, call: &VringCall<Written>) -> Done<VringCall<Resolved>> {
    Ok(match call {
        VringCall::DmaPacket {
            sources,
            destinations,
            barrier,
            notification_mask,
        } => VringCall::DmaPacket {
            sources: each(sources, |part| self::part(scope, part))?,
            destinations: each(destinations, |part| self::part(scope, part))?,
            barrier: *barrier,
            notification_mask: *notification_mask,
        },
        VringCall::Cce {
            op,
            sources,
            destinations,
            elements,
            dtypes,
            scales,
            constant,
            barrier,
        } => VringCall::Cce {
            op: *op,
            sources: each(sources, |at| scope.address(at))?,
            destinations: each(destinations, |at| scope.address(at))?,
            elements: *elements,
            dtypes: *dtypes,
            scales: scales.clone(),
            constant: *constant,
            barrier: *barrier,
        },
        VringCall::SetSeed { seed, scratch } => VringCall::SetSeed {
            seed: *seed,
            scratch: scope.address(scratch)?,
        },
        VringCall::Transpose {
            from,
            to,
            dims,
            element_bytes,
            permutation,
        } => VringCall::Transpose {
            from: scope.address(from)?,
            to: scope.address(to)?,
            dims: *dims,
            element_bytes: *element_bytes,
            permutation: *permutation,
        },
        VringCall::TransposeFlush { core } => VringCall::TransposeFlush { core: *core },
        VringCall::SemaphoreIncFromSb {
            core,
            engine,
            semaphore,
        } => VringCall::SemaphoreIncFromSb {
            core: *core,
            engine: scope.engine(engine)?,
            semaphore: scope.cell(semaphore)?,
        },
        VringCall::Linear(copy) => VringCall::Linear(one_move(scope, copy)?),
        VringCall::Strided {
            src,
            dst,
            element_bytes,
        } => VringCall::Strided {
            src: steps(scope, src)?,
            dst: steps(scope, dst)?,
            element_bytes: *element_bytes,
        },
        VringCall::Gather {
            table,
            row_bytes,
            indices,
            dst,
        } => VringCall::Gather {
            table: scope.address(table)?,
            row_bytes: *row_bytes,
            indices: indices.clone(),
            dst: scope.address(dst)?,
        },
        VringCall::ExpandIo {
            copies,
            then,
            max_packet_size,
        } => VringCall::ExpandIo {
            copies: each(copies, |copy| one_move(scope, copy))?,
            then: each(then, |signal| self::signal(scope, signal))?,
            max_packet_size: *max_packet_size,
        },
        VringCall::Pack {
            max_packet_size,
            start,
            end,
        } => VringCall::Pack {
            max_packet_size: *max_packet_size,
            start: *start,
            end: *end,
        },
        VringCall::DmbOnLastPacket => VringCall::DmbOnLastPacket,
        VringCall::EmbeddedSemaphore { semaphore, set_sow } => VringCall::EmbeddedSemaphore {
            semaphore: scope.cell(semaphore)?,
            set_sow: *set_sow,
        },
        VringCall::AddrRewrite {
            base,
            size,
            new_base,
        } => VringCall::AddrRewrite {
            base: scope.address(base)?,
            size: size.value.0,
            new_base: scope.address(new_base)?,
        },
    })
}

fn rings(scope: &Scope<'_>, rings: &Rings<Written>) -> Done<Rings<Resolved>> {
    let tables = |rings: &[Tables<Written>]| {
        each(rings, |ring| {
            let then = ring.then.as_ref().map(|signal| self::signal(scope, signal));
            Ok(Tables {
                loads: each(&ring.loads, |load| one_move(scope, load))?,
                then: then.transpose()?,
            })
        })
    };
    Ok(match rings {
        Rings::ActTbl { rings, dynamic } => Rings::ActTbl {
            rings: tables(rings)?,
            dynamic: *dynamic,
        },
        Rings::DynamicConfig(rings) => Rings::DynamicConfig(tables(rings)?),
        Rings::DataRefill { rings, refills } => Rings::DataRefill {
            rings: *rings,
            refills: each(refills, |(copy, then)| {
                Ok((one_move(scope, copy)?, signal(scope, then)?))
            })?,
        },
        Rings::SetSeed { seeds, scratch } => Rings::SetSeed {
            seeds: seeds.clone(),
            scratch: scope.address(scratch)?,
        },
    })
}

/// Resolves all of a list, so that one bad item does not hide the next.
fn each<D, T>(items: &[D], resolve: impl Fn(&D) -> Done<T>) -> Done<Vec<T>> {
    let found: Vec<Done<T>> = items.iter().map(resolve).collect();
    found.into_iter().collect()
}

/// A place that is populated over its size.
fn place(scope: &Scope<'_>, at: &At<Location>, size: &At<Bytes>) -> Done<(Addr, u64)> {
    let region = scope.region(at, Some(size))?;
    Ok((region.at, region.bytes))
}

fn part(scope: &Scope<'_>, part: &Part<Written>) -> Done<Part<Resolved>> {
    let (at, size) = place(scope, &part.at, &part.size)?;
    Ok(Part { at, size })
}

fn one_move(scope: &Scope<'_>, copy: &Move<Written>) -> Done<Move<Resolved>> {
    let (from, to) = (
        place(scope, &copy.from, &copy.size),
        place(scope, &copy.to, &copy.size),
    );
    let ((from, size), (to, _)) = (from?, to?);
    Ok(Move { from, to, size })
}

fn steps(scope: &Scope<'_>, steps: &Steps<Written>) -> Done<Steps<Resolved>> {
    Ok(Steps {
        at: scope.address(&steps.at)?,
        outer: steps.outer,
        inner: steps.inner,
    })
}

fn signal(scope: &Scope<'_>, signal: &WrittenSignal) -> Done<Signal> {
    Ok(match signal {
        WrittenSignal::Semaphore(cell) => {
            let (block, semaphore) = scope.cell(cell)?;
            Signal::SemaphoreInc { block, semaphore }
        }
        WrittenSignal::Event(cell, action) => {
            let (block, event) = scope.cell(cell)?;
            let action = *action;
            Signal::Event {
                block,
                event,
                action,
            }
        }
    })
}
