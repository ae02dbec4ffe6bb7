//! Copies with the ring-cycle driver of a queue.

use super::step::{Step, names};
use crate::document::{Keys, Read, Table, keys};
use crate::host::{DriverMemory, HOST_QUEUE_DESCS, PollMode};
use crate::scenario::given::{Place, Queue, Stretch};
use crate::scenario::host_side::{HostError, HostSide};
use crate::scenario::place::Region;
use crate::scenario::scope::Context;
use crate::scenario::stage::{Effect, Stage};
use crate::units::Bytes;

names! {
    DriverInit => "driver_init";
    DriverCopy => "driver_copy";
    DriverMemset => "driver_memset";
}

keys! {
    /// Sets the driver up.
    pub(super) struct DriverInit {
        queue: Queue,
        tx_ring: Place,
        rx_ring: Place,
        completion: Place,
        ring_size: u32 = HOST_QUEUE_DESCS,
    }

    /// Copies, and waits for the end.
    pub(super) struct DriverCopy {
        queue: Queue,
        from: Stretch,
        to: Stretch,
        mode: PollMode = PollMode::Synchronous,
    }

    struct MemsetKeys {
        queue: Queue,
        to: Stretch,
        mode: PollMode = PollMode::Synchronous,
    }
}

/// Fills memory with a pattern, and waits for the end.
#[derive(Debug)]
pub(super) struct DriverMemset {
    keys: MemsetKeys,
    pattern: Stretch,
}

impl Keys<Context<'_>> for DriverMemset {
    fn read(table: &Table<'_>, context: Context<'_>) -> Read<Self> {
        let keys = MemsetKeys::read(table, context);
        let pattern = Stretch::sized(table, "pattern", "pattern_size", context);
        Ok(DriverMemset {
            keys: keys?,
            pattern: pattern?,
        })
    }

    fn names(known: &mut Vec<&'static str>) {
        <MemsetKeys as Keys<Context<'_>>>::names(known);
        known.extend(["pattern", "pattern_size"]);
    }
}

fn writes(to: &Stretch) -> Effect<'_> {
    let (at, bytes) = (to.at, to.bytes);
    Effect::Drives(Some(Region { at, bytes }))
}

impl Step for DriverInit {
    fn detail(&self) -> String {
        format!("{}, {} descriptors", self.queue, self.ring_size)
    }

    fn effect(&self) -> Effect<'_> {
        Effect::Drives(None)
    }

    fn perform(&self, host: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        let memory = DriverMemory {
            tx_ring: self.tx_ring.at,
            rx_ring: self.rx_ring.at,
            completion: self.completion.at,
            ring_size: self.ring_size,
        };
        host.init_driver(self.queue.id, memory, stage)
    }
}

impl Step for DriverCopy {
    fn detail(&self) -> String {
        let DriverCopy { from, to, .. } = self;
        format!("{} -> {}, {}", from.written, to.written, Bytes(from.bytes))
    }

    fn effect(&self) -> Effect<'_> {
        writes(&self.to)
    }

    fn perform(&self, host: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        let (from, to, size) = (self.from.at, self.to.at, self.from.bytes);
        host.drive(self.queue.id, stage, |driver, bus| {
            driver.start_copy(bus, from, to, size, self.mode)
        })
    }
}

impl Step for DriverMemset {
    fn detail(&self) -> String {
        let (pattern, to) = (&self.pattern, &self.keys.to);
        format!(
            "{} over {}, {}",
            pattern.written,
            to.written,
            Bytes(to.bytes)
        )
    }

    fn effect(&self) -> Effect<'_> {
        writes(&self.keys.to)
    }

    fn perform(&self, host: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        let MemsetKeys { queue, to, mode } = &self.keys;
        let pattern = (self.pattern.at, self.pattern.bytes);
        host.drive(queue.id, stage, |driver, bus| {
            driver.start_memset(bus, pattern, to.at, to.bytes, *mode)
        })
    }
}
