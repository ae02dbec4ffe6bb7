//! A host's bus that takes barrier bits out of the descriptors it writes: the same run, without them.

use crate::desc::{DESC_BYTES, Descriptor, MetaCtrl};
use crate::host::{Bus, BusError, TimedBus};
use crate::order::race::BarrierKind;
use crate::sim::Duration;
use crate::units::Addr;
use std::collections::BTreeMap;

/// Barrier bits, by the address of their descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Strip(BTreeMap<Addr, Vec<BarrierKind>>);

impl Strip {
    /// Adds the bits of one kind in these descriptors.
    pub fn add(&mut self, descs: &[Addr], kind: BarrierKind) {
        for desc in descs {
            self.0.entry(*desc).or_default().push(kind);
        }
    }

    /// What is to be written at an address instead of `bytes`.
    fn apply(&self, at: Addr, bytes: &[u8]) -> Option<Vec<u8>> {
        let last =
            at.0.checked_add((bytes.len() as u64).checked_sub(DESC_BYTES as u64)?)?;
        let mut written: Option<Vec<u8>> = None;
        for (desc, kinds) in self.0.range(at..=Addr(last)) {
            let start = (desc.0 - at.0) as usize;
            let written = written.get_or_insert_with(|| bytes.to_vec());
            let slot: &mut [u8] = &mut written[start..start + DESC_BYTES];
            let mut raw = [0; DESC_BYTES];
            raw.copy_from_slice(slot);
            let mut descriptor = Descriptor::from_bytes(raw);
            kinds.iter().for_each(|kind| clear(&mut descriptor, *kind));
            slot.copy_from_slice(&descriptor.to_bytes());
        }
        written
    }
}

fn clear(desc: &mut Descriptor, kind: BarrierKind) {
    let len_ctrl = desc.len_ctrl();
    match kind {
        BarrierKind::Dmb => desc.words[0] = len_ctrl.with_dmb(false).into_bits(),
        BarrierKind::StrongOrder => {
            desc.words[0] = len_ctrl.with_strong_order_wr(false).into_bits();
        }
        BarrierKind::WriteBarrier => {
            let meta_ctrl = MetaCtrl::from_bits(desc.words[1]);
            desc.words[1] = meta_ctrl.with_write_barrier(false).into_bits();
        }
    }
}

/// The bus.
pub(super) struct Stripped<'a> {
    pub bus: &'a mut dyn TimedBus,
    pub strip: &'a Strip,
}

impl Bus for Stripped<'_> {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        self.bus.read_mem(at, out)
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        match self.strip.apply(at, bytes) {
            Some(written) => self.bus.write_mem(at, &written),
            None => self.bus.write_mem(at, bytes),
        }
    }

    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        self.bus.read_reg(at)
    }

    fn write_reg(&mut self, at: Addr, value: u32) -> Result<(), BusError> {
        self.bus.write_reg(at, value)
    }
}

impl TimedBus for Stripped<'_> {
    fn sleep(&mut self, time: Duration) {
        self.bus.sleep(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Bus;

    /// Remembers the last write.
    struct Last(Vec<u8>);

    impl Bus for Last {
        fn read_mem(&mut self, _at: Addr, _out: &mut [u8]) -> Result<(), BusError> {
            Ok(())
        }
        fn write_mem(&mut self, _at: Addr, bytes: &[u8]) -> Result<(), BusError> {
            self.0 = bytes.to_vec();
            Ok(())
        }
        fn read_reg(&mut self, _at: Addr) -> Result<u32, BusError> {
            Ok(0)
        }
        fn write_reg(&mut self, _at: Addr, _value: u32) -> Result<(), BusError> {
            Ok(())
        }
    }

    impl TimedBus for Last {
        fn sleep(&mut self, _time: Duration) {}
    }

    #[test]
    fn only_the_bits_named_are_taken_out() {
        let words = [0x6d00_0040, 0x0508_0003, 0x1000, 0];
        let both = [
            Descriptor { words }.to_bytes(),
            Descriptor { words }.to_bytes(),
        ]
        .concat();
        let written = |at, kind| {
            let mut strip = Strip::default();
            strip.add(&[Addr(0x110)], kind);
            let mut last = Last(Vec::new());
            let mut bus = Stripped {
                bus: &mut last,
                strip: &strip,
            };
            bus.write_mem(Addr(at), &both).unwrap();
            let desc: [u8; DESC_BYTES] = last.0[DESC_BYTES..].try_into().unwrap();
            assert_eq!(last.0[..DESC_BYTES], both[..DESC_BYTES]);
            Descriptor::from_bytes(desc).words
        };
        assert_eq!(
            written(0x100, BarrierKind::Dmb)[..2],
            [0x2d00_0040, words[1]]
        );
        assert_eq!(
            written(0x100, BarrierKind::StrongOrder)[..2],
            [0x4d00_0040, words[1]]
        );
        assert_eq!(
            written(0x100, BarrierKind::WriteBarrier)[..2],
            [words[0], 0x0108_0003]
        );
        // Elsewhere nothing is changed.
        assert_eq!(written(0x200, BarrierKind::Dmb), words);
    }
}
