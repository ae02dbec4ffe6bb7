//! The completion marker: how a host learns that a batch is done without a completion ring or an
//! interrupt (`docs/hardware.md`, "Ring cycle").

use super::bus::{Bus, BusError};
use super::vring::{Vring, VringError};
use crate::desc::BarrierMode;
use crate::units::Addr;

/// What the marker word reads when the batch is done.
pub const MARKER: u32 = 0xabcd_ef01;

/// Bytes of one word of the completion buffer.
const WORD_BYTES: u64 = 4;

/// An 8-byte completion buffer in memory that host and device see: word 0 holds the marker, a copy
/// staged last moves it to word 1, the host polls word 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionMarker {
    buffer: Addr,
}

impl CompletionMarker {
    /// Takes the 8 bytes at `buffer`: word 0 becomes the marker, word 1 zero.
    ///
    /// # Errors
    /// [`BusError`] if there is no memory.
    pub fn new(bus: &mut dyn Bus, buffer: Addr) -> Result<CompletionMarker, BusError> {
        let marker = CompletionMarker { buffer };
        marker.rearm(bus)?;
        Ok(marker)
    }

    /// The word that the host polls.
    pub fn word(&self) -> Addr {
        Addr(self.buffer.0.wrapping_add(WORD_BYTES))
    }

    /// Source and destination of the copy of the marker.
    pub fn ends(&self) -> (Addr, Addr) {
        (self.buffer, self.word())
    }

    /// Appends the copy of the marker, which carries no barrier: the last data descriptor before
    /// it should carry one (the runtime's carries WRITE_BARRIER).
    ///
    /// # Errors
    /// [`VringError`]; the vring is then as it was.
    pub fn stage(&self, vring: &mut Vring) -> Result<(), VringError> {
        vring.add_desc_transfer_with_barrier(
            self.buffer,
            self.word(),
            WORD_BYTES,
            BarrierMode::None,
        )
    }

    /// Whether the marker has arrived. If it has, the buffer is armed for the next batch.
    ///
    /// # Errors
    /// [`BusError`] if there is no memory.
    pub fn poll(&self, bus: &mut dyn Bus) -> Result<bool, BusError> {
        let mut word = [0; 4];
        bus.read_mem(self.word(), &mut word)?;
        let done = u32::from_le_bytes(word) == MARKER;
        if done {
            self.rearm(bus)?;
        }
        Ok(done)
    }

    /// Clears word 1, then seeds word 0.
    fn rearm(&self, bus: &mut dyn Bus) -> Result<(), BusError> {
        bus.write_mem(self.word(), &0u32.to_le_bytes())?;
        bus.write_mem(self.buffer, &MARKER.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::host::test_bus::TestBus;

    const BUFFER: Addr = Addr(0x40_0000_0000_0100);

    #[test]
    fn the_marker_goes_from_word_0_to_word_1() {
        let mut bus = TestBus::default();
        let marker = CompletionMarker::new(&mut bus, BUFFER).unwrap();
        assert_eq!(bus.bytes(BUFFER, 8), [0x01, 0xef, 0xcd, 0xab, 0, 0, 0, 0]);

        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        marker.stage(&mut vring).unwrap();
        let words = |desc: Option<&crate::desc::Descriptor>| desc.unwrap().words;
        assert_eq!(
            words(vring.tx().get(0)),
            [0x0d00_0004, 0x0108_0003, 0x100, 0x40_0000]
        );
        assert_eq!(words(vring.rx().get(0)), [0x0100_0004, 0, 0x104, 0x40_0000]);
    }

    #[test]
    fn a_poll_that_hits_arms_the_buffer_again() {
        let mut bus = TestBus::default();
        let marker = CompletionMarker::new(&mut bus, BUFFER).unwrap();
        assert_eq!(marker.poll(&mut bus), Ok(false));
        bus.write_mem(marker.word(), &0xabcd_ef00u32.to_le_bytes())
            .unwrap();
        assert_eq!(marker.poll(&mut bus), Ok(false));
        bus.write_mem(BUFFER, &[0; 4]).unwrap();
        bus.write_mem(marker.word(), &MARKER.to_le_bytes()).unwrap();
        assert_eq!(marker.poll(&mut bus), Ok(true));
        assert_eq!(bus.bytes(BUFFER, 8), [0x01, 0xef, 0xcd, 0xab, 0, 0, 0, 0]);
        assert_eq!(marker.poll(&mut bus), Ok(false));
    }
}
