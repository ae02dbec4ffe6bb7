//! Where steps are done: on the machine of a run, on the scratch memory on which a plan is tried, or on the
//! machine without engines of the race check.

use super::host_side::HostError;
use super::place::{QueueAt, Region};
use crate::host::{Bus, BusError, BusReason, TimedBus};
use crate::memory::{PhysicalMemory, Target};
use crate::sim::Duration;
use crate::system::Condition;
use crate::units::Addr;

/// What a host wait waits for.
#[derive(Clone, Debug)]
pub(super) enum WaitOn {
    Condition(Condition),
    For(Duration),
    /// Index of the sequencer among those of the arch.
    Sequencer(usize),
}

/// What a step does to others, for those who look at a plan without running it.
pub(super) enum Effect<'s> {
    Nothing,
    /// The host stores bytes.
    Stores(Region),
    /// A driver lets the device write, and polls until it has.
    Drives(Option<Region>),
    /// A queue is set up, or rung; with `runs`, what is in its rings is executed.
    Queue {
        queue: QueueAt,
        runs: bool,
    },
    /// A doorbell is rung by its register: what that lets run is not known.
    RingsByRegister,
    Waits(&'s WaitOn),
}

/// Where steps are done.
pub(super) trait Stage: TimedBus {
    /// Lets time pass until something is so.
    fn wait(&mut self, on: &WaitOn, timeout: Duration) -> Result<(), HostError>;

    /// Takes the oldest interrupt, which is there.
    fn take_interrupt(&mut self);

    /// Keeps what a region holds under a name.
    fn observe(&mut self, name: &str, region: Region) -> Result<(), HostError>;

    /// Keeps what a register holds under a name.
    fn observe_register(&mut self, name: &str, at: Addr) -> Result<(), HostError>;
}

/// A memory without engines to try steps on: memory accesses are done, register writes go nowhere, and
/// waits are over at once.
pub(super) struct Scratch<'m>(pub &'m mut PhysicalMemory);

impl Scratch<'_> {
    fn register(&self, at: Addr) -> Result<(), BusError> {
        let reason = match self.0.resolve(at, 4) {
            Ok(place) if matches!(place.target, Target::UdmaRegisters { .. }) => return Ok(()),
            Ok(_) => BusReason::NoRegister,
            Err(error) => BusReason::Memory(error.reason),
        };
        Err(BusError { at, len: 4, reason })
    }
}

impl Bus for Scratch<'_> {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        Ok(self.0.read(at, out)?)
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        self.0.write(at, bytes)?;
        Ok(())
    }

    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        self.register(at).map(|()| 0)
    }

    fn write_reg(&mut self, at: Addr, _value: u32) -> Result<(), BusError> {
        self.register(at)
    }
}

impl TimedBus for Scratch<'_> {
    fn sleep(&mut self, _time: Duration) {}
}

impl Stage for Scratch<'_> {
    fn wait(&mut self, _on: &WaitOn, _timeout: Duration) -> Result<(), HostError> {
        Ok(())
    }

    fn take_interrupt(&mut self) {}

    fn observe(&mut self, _name: &str, _region: Region) -> Result<(), HostError> {
        Ok(())
    }

    fn observe_register(&mut self, _name: &str, _at: Addr) -> Result<(), HostError> {
        Ok(())
    }
}
