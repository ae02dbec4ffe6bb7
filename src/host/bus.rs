//! All that the host can do to the device: read and write memory, read and write registers.

use crate::memory::{AccessError, AccessReason};
use crate::units::Addr;

/// The host's way to the device. An access is done when the call returns; calls take effect in
/// order.
pub trait Bus {
    /// Reads memory from `at` on into `out`.
    ///
    /// # Errors
    /// [`BusError`] if the range is not readable memory; `out` is then unspecified.
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError>;

    /// Writes `bytes` to memory from `at` on.
    ///
    /// # Errors
    /// [`BusError`] if the range is not writable memory; nothing is then written.
    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError>;

    /// Reads the 32-bit register at physical address `at`.
    ///
    /// # Errors
    /// [`BusError`] if there is none.
    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError>;

    /// Writes the 32-bit register at physical address `at`.
    ///
    /// # Errors
    /// [`BusError`] if there is none.
    fn write_reg(&mut self, at: Addr, value: u32) -> Result<(), BusError>;
}

/// An access that the device refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an access of {len} bytes at {at} {reason}")]
pub struct BusError {
    /// First byte of the access.
    pub at: Addr,
    /// Bytes of the access.
    pub len: u64,
    /// What was wrong with it.
    pub reason: BusReason,
}

/// What was wrong with an access. The text continues "an access of N bytes at A …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusReason {
    /// Memory refused it.
    #[error(transparent)]
    Memory(AccessReason),
    /// A register access outside every register window.
    #[error("does not hit a register")]
    NoRegister,
    /// A register access that is not on a multiple of 4.
    #[error("covers part of a register; registers have 4 bytes on a multiple of 4")]
    Misaligned,
    /// A user process writes a register that only the kernel may write ([`UserBar`](super::UserBar)).
    #[error("writes a register that is read-only for user processes")]
    KernelOnly,
    /// The host's own programs see host memory only.
    #[error("is outside host memory")]
    NotHostMemory,
    /// The device no longer runs.
    #[error("hits a device that has stopped")]
    Stopped,
}

impl From<AccessError> for BusError {
    fn from(error: AccessError) -> BusError {
        BusError {
            at: error.at,
            len: error.len,
            reason: BusReason::Memory(error.reason),
        }
    }
}
