//! The host's side of a [`System`]: memory accesses take effect at once, register accesses travel.

use super::{Posted, System};
use crate::arch::EngineId;
use crate::host::{Bus, BusError, BusReason, TimedBus};
use crate::memory::{Place, Target};
use crate::sim::{Duration, Instant};
use crate::units::Addr;

/// Bytes of a register.
const REGISTER_BYTES: u64 = 4;

impl System {
    /// What register lies at an address.
    fn register_at(&self, at: Addr) -> Result<Register, BusError> {
        let refuse = |reason| BusError {
            at,
            len: REGISTER_BYTES,
            reason,
        };
        if !at.is_aligned(REGISTER_BYTES) {
            return Err(refuse(BusReason::Misaligned));
        }
        let place = self.memory.resolve(at, REGISTER_BYTES);
        match place.map(|place| (place, place.target)) {
            Ok((place, Target::UdmaRegisters { engine })) => {
                Ok(Register::Engine(engine, place.offset))
            }
            Ok((place, Target::InertRegisters { .. } | Target::EventBlock { .. })) => {
                Ok(Register::Word(place))
            }
            _ => Err(refuse(BusReason::NoRegister)),
        }
    }
}

/// What a register access reaches.
#[derive(Clone, Copy)]
enum Register {
    /// An offset in an engine's window.
    Engine(EngineId, u64),
    /// A word of memory: an event, a semaphore, or a register that nothing models.
    Word(Place),
}

impl System {
    /// Host memory, as the host's own programs see it.
    ///
    /// # Errors
    /// If the range is not host memory from first byte to last.
    pub fn host_memory_mut(&mut self, at: Addr, len: u64) -> Result<&mut [u8], BusError> {
        match self.memory.resolve(at, len)?.target {
            Target::Host => Ok(self.memory.slice_mut(at, len)?),
            _ => Err(BusError {
                at,
                len,
                reason: BusReason::NotHostMemory,
            }),
        }
    }

    /// When a register read that the host issues now is answered: after the configured round trip,
    /// and not before the host's earlier writes have arrived.
    pub(crate) fn register_answer_at(&self) -> Instant {
        let answered = self.now() + self.config.values.host.register_read;
        answered.max(self.host_posted_until)
    }

    /// Refuses what is no register.
    pub(crate) fn check_register(&self, at: Addr) -> Result<(), BusError> {
        self.register_at(at).map(|_| ())
    }

    /// What the register at `at` shows at this instant.
    pub(crate) fn sample_register(&mut self, at: Addr) -> Result<u32, BusError> {
        match self.register_at(at)? {
            Register::Engine(engine, offset) => {
                Ok(self.engines[engine.0 as usize].read_register(offset))
            }
            Register::Word(place) => {
                self.memory.note_inert_read(place);
                let mut word = [0; REGISTER_BYTES as usize];
                self.memory.read(at, &mut word)?;
                Ok(u32::from_le_bytes(word))
            }
        }
    }
}

impl Bus for System {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        Ok(self.memory.read(at, out)?)
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        let effects = self.memory.write(at, bytes)?;
        self.wake_sequencers(effects);
        Ok(())
    }

    /// Takes the configured round trip, during which the machine runs on; the host's earlier writes
    /// arrive before.
    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        self.check_register(at)?;
        self.run_to(self.register_answer_at());
        self.sample_register(at)
    }

    /// Posted: arrives after the configured delay, in the order of the host's writes.
    fn write_reg(&mut self, at: Addr, value: u32) -> Result<(), BusError> {
        let register = match self.register_at(at)? {
            Register::Engine(engine, offset) => Posted::Engine(engine, offset),
            Register::Word(place) => {
                // What can only be read says so at once.
                self.memory.check_write(place, at, REGISTER_BYTES)?;
                Posted::Word(at)
            }
        };
        let way = self.config.values.host.register_write;
        self.host_posted_until = self.post_register(self.host_part, way, register, value);
        Ok(())
    }
}

impl TimedBus for System {
    fn sleep(&mut self, time: Duration) {
        self.run_to(self.now() + time);
    }
}
