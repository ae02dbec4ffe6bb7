//! The registers as a user process sees them: the kernel maps the BAR into it, but a process that
//! could write ring bases or doorbells could make the device read and write anywhere
//! (`docs/hardware.md`, "Ring cycle").

use super::bus::{Bus, BusError, BusReason};
use crate::arch::Arch;
use crate::arch::regs::queue;
use crate::arch::regs::table::Place;
use crate::units::Addr;

/// A bus that refuses to write the five registers of every queue and direction that only the
/// kernel may write: [`queue::USER_BLOCKED`]. All else passes.
pub struct UserBar<B> {
    bus: B,
    arch: Arch,
}

impl<B: Bus> UserBar<B> {
    /// The user's view of a device of generation `arch` behind `bus`.
    pub fn new(bus: B, arch: Arch) -> UserBar<B> {
        UserBar { bus, arch }
    }

    /// Whether the register that holds `at` may not be written.
    pub fn is_blocked(&self, at: Addr) -> bool {
        let spec = self.arch.spec();
        let place = (spec.map.engine_at(at))
            .and_then(|(_, offset)| Place::at(offset, spec.limits.queues_per_engine));
        matches!(place, Some(Place::Queue(_, _, within))
            if queue::USER_BLOCKED.contains(&(within & !(REGISTER_BYTES - 1))))
    }
}

/// Bytes of a register.
const REGISTER_BYTES: u64 = 4;

impl<B: Bus> Bus for UserBar<B> {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        self.bus.read_mem(at, out)
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        self.bus.write_mem(at, bytes)
    }

    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        self.bus.read_reg(at)
    }

    fn write_reg(&mut self, at: Addr, value: u32) -> Result<(), BusError> {
        if self.is_blocked(at) {
            return Err(BusError {
                at,
                len: REGISTER_BYTES,
                reason: BusReason::KernelOnly,
            });
        }
        self.bus.write_reg(at, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::EngineId;
    use crate::host::test_bus::TestBus;
    use std::collections::BTreeSet;

    /// Offsets typed by hand: queue 0 of M2S is at 0x1000, of S2M at 0x21000.
    fn blocked() -> BTreeSet<u64> {
        let banks = (0..16).flat_map(|q| [0x1000 + q * 0x1000, 0x21000 + q * 0x1000]);
        banks
            .flat_map(|bank| [0x28, 0x2c, 0x38, 0x44, 0x48].map(|register| bank + register))
            .collect()
    }

    #[test]
    fn exactly_the_five_registers_of_every_queue_are_refused() {
        let blocked = blocked();
        assert_eq!(blocked.len(), 5 * 16 * 2);
        for arch in Arch::ALL {
            let map = &arch.spec().map;
            for engine in [0, map.engine_count() - 1].map(EngineId) {
                let window = map.engine_base(engine).unwrap();
                let mut bar = UserBar::new(TestBus::default(), arch);
                for offset in (0..map.engine_window).step_by(4) {
                    let at = Addr(window.0 + offset);
                    let written = bar.write_reg(at, 0x5a5a_5a5a);
                    let refused = BusError {
                        at,
                        len: 4,
                        reason: BusReason::KernelOnly,
                    };
                    let (expected, value) = match blocked.contains(&offset) {
                        true => (Err(refused), 0),
                        false => (Ok(()), 0x5a5a_5a5a),
                    };
                    assert_eq!(written, expected, "{arch} {engine} {offset:#x}");
                    assert_eq!(bar.read_reg(at), Ok(value), "{arch} {engine} {offset:#x}");
                }
            }
        }
    }

    /// Part of a blocked register is no way around, whatever the bus makes of it.
    #[test]
    fn a_misaligned_address_is_no_way_around() {
        let bar = UserBar::new(TestBus::default(), Arch::V2);
        for into in 0..4 {
            assert!(bar.is_blocked(Addr(0xfff_f000_1038 + into)));
        }
        assert!(!bar.is_blocked(Addr(0xfff_f000_103c)));
    }

    #[test]
    fn outside_the_register_windows_nothing_is_blocked() {
        let mut bar = UserBar::new(TestBus::default(), Arch::V3);
        for at in [0x38, 0x1038, 0x10_0204_1038, 0x4000_0000_1038] {
            assert_eq!(bar.write_reg(Addr(at), 1), Ok(()), "{at:#x}");
            assert_eq!(bar.write_mem(Addr(at), &[1]), Ok(()), "{at:#x}");
        }
    }
}
