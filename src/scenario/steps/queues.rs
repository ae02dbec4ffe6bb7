//! Rings and queues: dumps, initialisation, doorbells.

use super::step::{Step, names};
use crate::arch::regs::Direction;
use crate::document::{At, Key, Keys, NoValue, Read, Table, keys};
use crate::host::QueueOptions;
use crate::scenario::given::{Queue, RingPair};
use crate::scenario::host_side::{DumpTo, HostError, HostSide, RingCounts};
use crate::scenario::scope::Context;
use crate::scenario::stage::{Effect, Stage};
use crate::scenario::words::Name;

names! {
    DumpToPring => "dump_to_pring";
    DumpToPringPadded => "dump_to_pring_padded";
    InitQueue => "init_queue";
    Doorbell => "doorbell";
    Trigger => "trigger";
}

keys! {
    /// Dumps a vring to two prings.
    pub(super) struct DumpToPring {
        vring: AuthoredVring,
        rings: RingPair,
    }

    /// The same, filled up to a number of descriptors.
    pub(super) struct DumpToPringPadded {
        vring: AuthoredVring,
        rings: RingPair,
        padded: u32,
    }

    /// Hands two prings to a queue.
    pub(super) struct InitQueue {
        queue: Queue,
        rings: RingPair,
        ring_id_check: bool = true,
        dmb: bool = true,
    }

    /// One doorbell of a queue.
    pub(in crate::scenario) struct Doorbell {
        ring: WithRings,
        direction: Direction,
        count: u32,
    }

    struct TriggerKeys {
        ring: WithRings,
        tx: Option<u32>,
        rx: Option<u32>,
    }
}

/// RX doorbell, then TX; a count left out is all that the queue's ring holds.
#[derive(Debug)]
pub(in crate::scenario) struct Trigger {
    pub queue: Queue,
    pub tx: u32,
    pub rx: u32,
}

/// A vring that descriptors were added to.
#[derive(Debug)]
pub(super) struct AuthoredVring(String);

impl Key<Context<'_>> for AuthoredVring {
    fn read(table: &Table<'_>, key: &'static str, context: Context<'_>) -> Read<Self> {
        let At { value: name, mark } = table.req::<Name>(key)?;
        let scope = context.scope()?;
        if scope.trying && !scope.host.vrings().any(|known| *known == *name) {
            let name = At {
                value: name.0,
                mark,
            };
            return Err(scope.unknown(&name, "vring with descriptors", scope.host.vrings()));
        }
        Ok(AuthoredVring(name.0))
    }
}

/// A queue that the host has initialised.
#[derive(Debug)]
pub(in crate::scenario) struct WithRings {
    pub queue: Queue,
    counts: RingCounts,
}

impl Key<Context<'_>> for WithRings {
    fn read(table: &Table<'_>, _: &'static str, context: Context<'_>) -> Read<Self> {
        let queue = Queue::read(table, "queue", context)?;
        let scope = context.scope()?;
        match scope.host.ring_counts(queue.id) {
            Some(counts) => Ok(WithRings { queue, counts }),
            None if !scope.trying => Err(NoValue),
            None => {
                let message = format!(
                    "{} has no rings yet; add an init_queue step before this one",
                    queue.id
                );
                Err(scope.report(&queue.mark, message))
            }
        }
    }

    fn names(_: &'static str, known: &mut Vec<&'static str>) {
        <Queue as Key<Context<'_>>>::names("queue", known);
    }
}

impl Keys<Context<'_>> for Trigger {
    fn read(table: &Table<'_>, context: Context<'_>) -> Read<Self> {
        let TriggerKeys { ring, tx, rx } = TriggerKeys::read(table, context)?;
        Ok(Trigger {
            tx: tx.unwrap_or(ring.counts.tx),
            rx: rx.unwrap_or(ring.counts.rx),
            queue: ring.queue,
        })
    }

    fn names(known: &mut Vec<&'static str>) {
        <TriggerKeys as Keys<Context<'_>>>::names(known);
    }
}

fn dump(vring: &AuthoredVring, rings: &RingPair) -> String {
    format!("{} -> {}, {}", vring.0, rings.tx, rings.rx)
}

fn dump_to(rings: &RingPair, padded: Option<u32>) -> DumpTo<'_> {
    DumpTo {
        tx: &rings.tx,
        rx: &rings.rx,
        padded,
    }
}

impl Step for DumpToPring {
    fn detail(&self) -> String {
        dump(&self.vring, &self.rings)
    }

    fn perform(&self, host: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        host.dump(&self.vring.0, dump_to(&self.rings, None), stage)
    }
}

impl Step for DumpToPringPadded {
    fn detail(&self) -> String {
        let dump = dump(&self.vring, &self.rings);
        format!("{dump}, padded to {}", self.padded)
    }

    fn perform(&self, host: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        let to = dump_to(&self.rings, Some(self.padded));
        host.dump(&self.vring.0, to, stage)
    }
}

impl Step for InitQueue {
    fn detail(&self) -> String {
        let RingPair { tx, rx } = &self.rings;
        format!("{} on {tx}, {rx}", self.queue)
    }

    fn effect(&self) -> Effect<'_> {
        let (queue, runs) = (self.queue.id, false);
        Effect::Queue { queue, runs }
    }

    fn perform(&self, host: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        let rings = [self.rings.tx.as_str(), &self.rings.rx];
        let options = QueueOptions {
            ring_id_check: self.ring_id_check,
            dmb: self.dmb,
        };
        host.init_queue(self.queue.id, rings, options, stage)
    }
}

impl Step for Doorbell {
    fn detail(&self) -> String {
        let (queue, ring) = (&self.ring.queue, self.direction.ring_name());
        format!("{queue} {ring}: {}", self.count)
    }

    fn effect(&self) -> Effect<'_> {
        Effect::Queue {
            queue: self.ring.queue.id,
            runs: self.direction == Direction::M2s && self.count > 0,
        }
    }

    fn perform(&self, host: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        let queue = host.queue(self.ring.queue.id)?;
        Ok(queue.doorbell(stage, self.direction, self.count)?)
    }
}

impl Step for Trigger {
    fn detail(&self) -> String {
        let Trigger { queue, tx, rx } = self;
        format!("{queue}: rx {rx}, then tx {tx}")
    }

    fn effect(&self) -> Effect<'_> {
        let (queue, runs) = (self.queue.id, self.tx > 0);
        Effect::Queue { queue, runs }
    }

    fn perform(&self, host: &mut HostSide, stage: &mut dyn Stage) -> Result<(), HostError> {
        let queue = host.queue(self.queue.id)?;
        Ok(queue.trigger(stage, self.tx, self.rx)?)
    }
}
