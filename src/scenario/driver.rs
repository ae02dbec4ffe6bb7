//! Host steps that copy with the ring-cycle driver: reading, resolving and doing them.

use super::ast::QueueDecl;
use super::authoring::{Form, Resolved, Written};
use super::diag::Reported;
use super::host_side::HostError;
use super::parse::queue;
use super::place::Region;
use super::plan::Scope;
use super::reader::{FromValue, Reader, Value};
use crate::arch::{Arch, EngineId};
use crate::host::{DmaDriver, DriverMemory, HOST_QUEUE_DESCS, PollMode, TimedBus};
use std::collections::BTreeMap;

/// Names of the steps.
pub(super) const OPS: &[&str] = &["driver_init", "driver_copy", "driver_memset"];

/// What a driver does.
#[derive(Debug)]
pub(super) enum DriverCall<F: Form> {
    Init {
        tx_ring: F::Place,
        rx_ring: F::Place,
        completion: F::Place,
        ring_size: u32,
    },
    Copy {
        from: F::Place,
        to: F::Place,
        size: F::Size,
        mode: PollMode,
    },
    Memset {
        pattern: F::Place,
        pattern_size: F::Size,
        to: F::Place,
        size: F::Size,
        mode: PollMode,
    },
}

/// A step as the file has it.
#[derive(Debug)]
pub(super) struct DriverDecl {
    pub queue: QueueDecl,
    pub call: DriverCall<Written>,
}

/// A step of a queue's driver.
#[derive(Debug)]
pub(super) struct DriverAction {
    pub engine: EngineId,
    pub queue: u8,
    pub call: DriverCall<Resolved>,
}

impl FromValue for PollMode {
    const EXPECTED: &'static str = "\"sync\", \"sync_device\", \"async\" or \"zero_copy\"";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let Some(text) = value.text()? else {
            return Ok(None);
        };
        match text.as_str() {
            "sync" => Ok(Some(PollMode::Synchronous)),
            "sync_device" => Ok(Some(PollMode::SynchronousDevice)),
            "async" => Ok(Some(PollMode::Asynchronous)),
            "zero_copy" => Ok(Some(PollMode::ZeroCopy)),
            _ => Err(format!("\"{text}\" is not {}", Self::EXPECTED)),
        }
    }
}

/// Reads a step of this family.
pub(super) fn read(what: &str, table: &Reader<'_>) -> Result<DriverDecl, Reported> {
    let queue = queue(table);
    let call = match what {
        "driver_init" => {
            let tx_ring = table.req("tx_ring");
            let rx_ring = table.req("rx_ring");
            let completion = table.req("completion");
            let ring_size = table.or("ring_size", HOST_QUEUE_DESCS);
            DriverCall::Init {
                tx_ring: tx_ring?,
                rx_ring: rx_ring?,
                completion: completion?,
                ring_size: ring_size?,
            }
        }
        "driver_copy" => {
            let from = table.req("from");
            let to = table.req("to");
            let size = table.req("size");
            let mode = table.or("mode", PollMode::Synchronous);
            DriverCall::Copy {
                from: from?,
                to: to?,
                size: size?,
                mode: mode?,
            }
        }
        _ => {
            let pattern = table.req("pattern");
            let pattern_size = table.req("pattern_size");
            let to = table.req("to");
            let size = table.req("size");
            let mode = table.or("mode", PollMode::Synchronous);
            DriverCall::Memset {
                pattern: pattern?,
                pattern_size: pattern_size?,
                to: to?,
                size: size?,
                mode: mode?,
            }
        }
    };
    Ok(DriverDecl {
        queue: queue?,
        call,
    })
}

/// Resolves a step; also names it and says in a few words what it works on.
pub(super) fn resolve(
    scope: &Scope<'_>,
    decl: &DriverDecl,
) -> Result<(&'static str, String, DriverAction), Reported> {
    let (engine, queue) = scope.queue(&decl.queue)?;
    let shown = &decl.queue.engine.value;
    let (call, detail, resolved) = match &decl.call {
        DriverCall::Init {
            tx_ring,
            rx_ring,
            completion,
            ring_size,
        } => (
            "driver_init",
            format!("{shown} queue {queue}, {ring_size} descriptors"),
            DriverCall::Init {
                tx_ring: scope.address(tx_ring)?,
                rx_ring: scope.address(rx_ring)?,
                completion: scope.address(completion)?,
                ring_size: *ring_size,
            },
        ),
        DriverCall::Copy {
            from,
            to,
            size,
            mode,
        } => {
            let (source, target) = (scope.region(from, Some(size)), scope.region(to, Some(size)));
            (
                "driver_copy",
                format!("{} -> {}, {}", from.value, to.value, size.value),
                DriverCall::Copy {
                    from: source?.at,
                    to: target?.at,
                    size: size.value.0,
                    mode: *mode,
                },
            )
        }
        DriverCall::Memset {
            pattern,
            pattern_size,
            to,
            size,
            mode,
        } => {
            let source = scope.region(pattern, Some(pattern_size));
            let target = scope.region(to, Some(size));
            (
                "driver_memset",
                format!("{} over {}, {}", pattern.value, to.value, size.value),
                DriverCall::Memset {
                    pattern: source?.at,
                    pattern_size: pattern_size.value.0,
                    to: target?.at,
                    size: size.value.0,
                    mode: *mode,
                },
            )
        }
    };
    let action = DriverAction {
        engine,
        queue,
        call: resolved,
    };
    Ok((call, detail, action))
}

impl DriverAction {
    /// Where the step lets the device write.
    pub fn writes(&self) -> Option<Region> {
        match &self.call {
            DriverCall::Init { .. } => None,
            DriverCall::Copy { to, size, .. } | DriverCall::Memset { to, size, .. } => {
                Some(Region {
                    at: *to,
                    bytes: *size,
                })
            }
        }
    }
}

/// The drivers of a host.
#[derive(Default)]
pub(super) struct Drivers {
    of: BTreeMap<(EngineId, u8), DmaDriver>,
    /// Nothing runs: copies are started and forgotten, to see whether they can be.
    dry_run: bool,
}

impl Drivers {
    /// Drivers of a machine that does not run.
    pub fn dry_run() -> Drivers {
        Drivers {
            dry_run: true,
            ..Drivers::default()
        }
    }

    /// Does a step.
    pub fn perform(
        &mut self,
        arch: Arch,
        action: &DriverAction,
        bus: &mut dyn TimedBus,
    ) -> Result<(), HostError> {
        let (engine, queue) = (action.engine, action.queue);
        if let DriverCall::Init {
            tx_ring,
            rx_ring,
            completion,
            ring_size,
        } = action.call
        {
            let memory = DriverMemory {
                tx_ring,
                rx_ring,
                completion,
                ring_size,
            };
            let driver = DmaDriver::init(bus, arch, engine, queue.into(), memory)?;
            self.of.insert((engine, queue), driver);
            return Ok(());
        }
        let driver = self.of.get_mut(&(engine, queue));
        let driver = driver.ok_or(HostError::NoDriver { engine, queue })?;
        let transfer = match action.call {
            DriverCall::Init { .. } => return Ok(()),
            DriverCall::Copy {
                from,
                to,
                size,
                mode,
            } => driver.start_copy(bus, from, to, size, mode)?,
            DriverCall::Memset {
                pattern,
                pattern_size,
                to,
                size,
                mode,
            } => driver.start_memset(bus, (pattern, pattern_size), to, size, mode)?,
        };
        match self.dry_run {
            true => driver.reset(bus)?,
            false => driver.wait(bus, transfer)?,
        }
        Ok(())
    }
}
