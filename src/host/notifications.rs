//! The software side of an engine's notification queue (V4): a ring in memory that the engine fills and
//! software empties, telling new notifications by their phase (`docs/device.md`, "Notifications").

use super::bus::{Bus, BusError};
use crate::arch::regs::{self, notific};
use crate::arch::{Arch, EngineId};
use crate::desc::{NOTIFICATION_BYTES, Notification};
use crate::units::Addr;

/// Why a notification queue was not set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotificationError {
    /// The generation has none.
    #[error("notification queues need v4; this device is {0}")]
    Arch(Arch),
    /// The device has no such engine.
    #[error("engine {engine} does not exist; the device has e0 to e{last}")]
    NoEngine {
        /// Engine asked for.
        engine: EngineId,
        /// Last engine of the device.
        last: u32,
    },
    /// A length that no queue has.
    #[error(
        "a notification queue has {0} bytes; the size must be a power of two, at least {MIN_BYTES}"
    )]
    Length(u32),
    /// The bus refused an access.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// Bytes of the shortest queue: one entry always stays free.
const MIN_BYTES: u32 = 2 * NOTIFICATION_BYTES as u32;

/// A notification queue that software reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationReader {
    /// The engine's head register.
    head: Addr,
    /// The queue, its entries, and which one is read next in which phase.
    base: Addr,
    entries: u32,
    next: u32,
    phase: bool,
}

impl NotificationReader {
    /// Clears `bytes` of memory at `at` and makes them the notification queue of an engine.
    ///
    /// # Errors
    /// [`NotificationError`] for a generation without, an engine that does not exist, a length that is no
    /// power of two (A: the driver refuses it) or below 32 bytes, and memory that is none.
    pub fn init(
        bus: &mut dyn Bus,
        arch: Arch,
        engine: EngineId,
        at: Addr,
        bytes: u32,
    ) -> Result<NotificationReader, NotificationError> {
        let spec = arch.spec();
        if !spec.caps.notification_mask {
            return Err(NotificationError::Arch(arch));
        }
        let last = spec.map.engine_count() - 1;
        let window =
            (spec.map.engine_base(engine)).ok_or(NotificationError::NoEngine { engine, last })?;
        if !bytes.is_power_of_two() || bytes < MIN_BYTES {
            return Err(NotificationError::Length(bytes));
        }
        bus.write_mem(at, &vec![0; bytes as usize])?;
        let register = |offset| Addr(window.0 + regs::NOTIFIC + offset);
        for (offset, value) in [
            (notific::NQ_HEAD, 0),
            (notific::NQ_BASE_HI, (at.0 >> 32) as u32),
            (notific::NQ_BASE_LO, at.0 as u32),
            (notific::NQ_SIZE, bytes),
        ] {
            bus.write_reg(register(offset), value)?;
        }
        Ok(NotificationReader {
            head: register(notific::NQ_HEAD),
            base: at,
            entries: bytes / NOTIFICATION_BYTES as u32,
            next: 0,
            phase: true,
        })
    }

    /// Takes the oldest notification that has not been taken, and gives its place back to the engine;
    /// `None` if there is none.
    ///
    /// # Errors
    /// [`BusError`] if the queue's memory or the head register cannot be reached.
    pub fn take(&mut self, bus: &mut dyn Bus) -> Result<Option<Notification>, BusError> {
        let mut bytes = [0; NOTIFICATION_BYTES];
        let at = self.base.0 + u64::from(self.next) * NOTIFICATION_BYTES as u64;
        bus.read_mem(Addr(at), &mut bytes)?;
        let notification = Notification::from_bytes(bytes);
        if notification.phase != self.phase {
            return Ok(None);
        }
        self.next += 1;
        if self.next == self.entries {
            (self.next, self.phase) = (0, !self.phase);
        }
        bus.write_reg(self.head, self.next)?;
        Ok(Some(notification))
    }
}
