//! IO and data refill: data with the events and semaphores that tell of it, interleaved in one ring.

use super::ProduceError;
use super::append::{AppendCounts, DmaOp};
use crate::arch::Arch;
use crate::host::cells::EventAction;
use crate::host::set::VringSet;
use crate::host::vring::{Vring, VringError};
use crate::units::Addr;

/// What a descriptor behind the data tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// An event is set or cleared.
    Event {
        /// Event/semaphore block.
        block: u32,
        /// Event of the block.
        event: u32,
        /// Set or clear.
        action: EventAction,
    },
    /// A semaphore is incremented.
    SemaphoreInc {
        /// Event/semaphore block.
        block: u32,
        /// Semaphore of the block.
        semaphore: u32,
    },
}

/// Data, and what is told when it is there.
#[derive(Clone, Debug)]
pub struct IoStep<'a> {
    /// Operations, in order.
    pub ops: &'a [DmaOp<'a>],
    /// Told behind them, in order.
    pub then: &'a [Signal],
}

/// A block of data that is loaded again and again into one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refill {
    /// Where the block lies.
    pub src: Addr,
    /// Where it goes.
    pub dst: Addr,
    /// Bytes.
    pub bytes: u64,
    /// Told when it is there.
    pub then: Signal,
}

impl Vring {
    /// Appends an event or semaphore descriptor, ordered as the runtime orders it.
    ///
    /// # Errors
    /// [`VringError`]; the vring is then as it was.
    pub fn add_signal(&mut self, signal: Signal) -> Result<(), VringError> {
        match signal {
            Signal::Event {
                block,
                event,
                action,
            } => self.add_desc_event(block, event, action),
            Signal::SemaphoreInc { block, semaphore } => {
                self.add_desc_semaphore_inc(block, semaphore)
            }
        }
    }

    /// Appends steps of data and signals. The copies of a step share packets of at most
    /// `max_packet_size` bytes. Nobody is told too early: on V2 the last packet of a step's data
    /// carries DMB, from V3 on the signal itself is a strong-ordered write.
    ///
    /// # Errors
    /// [`ProduceError`]; the vring is then as it was.
    pub fn expand_io(
        &mut self,
        steps: &[IoStep],
        max_packet_size: u64,
    ) -> Result<AppendCounts, ProduceError> {
        self.all_or_nothing(|vring| {
            let mut counts = AppendCounts::default();
            for step in steps {
                let added = vring.append_descs(step.ops, Some(max_packet_size))?;
                if added.packets > 0 && !step.then.is_empty() {
                    vring.set_dmb_on_last_packet()?;
                }
                for signal in step.then {
                    vring.add_signal(*signal)?;
                }
                let signals = step.then.len() as u32;
                counts.tx += added.tx + signals;
                counts.rx += added.rx + signals;
                counts.packets += added.packets + signals;
            }
            Ok(counts)
        })
    }
}

/// Rings that refill buffers, named `data_refill_<n>`: refill `n` goes to ring `n` modulo their number,
/// each a copy and the signal behind it.
///
/// # Errors
/// [`ProduceError`] for a number of rings that is no set's, and for what a vring refuses.
pub fn data_refill_rings(
    arch: Arch,
    rings: usize,
    refills: &[Refill],
    tile_idx: u64,
) -> Result<VringSet, ProduceError> {
    let mut set = VringSet::allocate(arch, "data_refill", rings, false, tile_idx)?;
    let vrings = set.vrings_mut();
    for (n, refill) in refills.iter().enumerate() {
        let ring = n.checked_rem(rings).and_then(|n| vrings.get_mut(n));
        if let Some(vring) = ring {
            vring.add_desc_transfer(refill.src, refill.dst, refill.bytes)?;
            vring.add_signal(refill.then)?;
        }
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desc::{Buffer, CopyPacket};

    fn bits(vring: &Vring) -> Vec<(bool, bool)> {
        let tx = vring
            .tx()
            .runs()
            .flatten()
            .map(|desc| desc.len_ctrl().dmb());
        let rx = vring.rx().runs().flatten();
        tx.zip(rx.map(|desc| desc.len_ctrl().strong_order_wr()))
            .collect()
    }

    #[test]
    fn signals_stand_behind_their_data() {
        let ends = [Buffer {
            at: Addr(0x100),
            len: 64,
        }];
        let copy = DmaOp::Copy(CopyPacket::new(&ends, &ends));
        let ops = [copy.clone(), copy];
        let then = [
            Signal::SemaphoreInc {
                block: 0,
                semaphore: 1,
            },
            Signal::Event {
                block: 0,
                event: 2,
                action: EventAction::Set,
            },
        ];
        let step = IoStep {
            ops: &ops,
            then: &then,
        };
        let (plain, dmb, sow) = ((false, false), (true, false), (false, true));
        for (arch, want) in [
            (Arch::V2, [dmb, plain, dmb, dmb]),
            (Arch::V3, [plain, plain, sow, sow]),
        ] {
            let mut vring = Vring::new(arch, "io_0").unwrap();
            let counts = vring
                .expand_io(&[step.clone(), step.clone()], 1 << 20)
                .unwrap();
            assert_eq!(
                counts,
                AppendCounts {
                    tx: 8,
                    rx: 8,
                    packets: 6
                }
            );
            assert_eq!(bits(&vring), [want, want].concat(), "{arch}");
        }
        let bad = [Signal::SemaphoreInc {
            block: 99,
            semaphore: 1,
        }];
        let mut vring = Vring::new(Arch::V3, "io_0").unwrap();
        let refused = vring.expand_io(
            &[
                step,
                IoStep {
                    ops: &ops,
                    then: &bad,
                },
            ],
            1 << 20,
        );
        assert!(matches!(
            refused,
            Err(ProduceError::Vring(VringError::NoCell { .. }))
        ));
        assert_eq!(
            (vring.tx().used_desc_count(), vring.total_tx_size()),
            (0, 0)
        );
    }

    #[test]
    fn refills_go_round_the_rings() {
        let refill = |n: u64| Refill {
            src: Addr(0x1_0000 * n),
            dst: Addr(0x100_0000),
            bytes: 100,
            then: Signal::SemaphoreInc {
                block: 0,
                semaphore: n as u32,
            },
        };
        let refills: Vec<Refill> = (0..5).map(refill).collect();
        let set = data_refill_rings(Arch::V3, 2, &refills, 3).unwrap();
        let used: Vec<u32> = set
            .vrings()
            .iter()
            .map(|vring| vring.tx().used_desc_count())
            .collect();
        assert_eq!(used, [6, 4]);
        assert_eq!(set.vrings()[1].name(), "data_refill_1");
        assert_eq!(set.tile_idx(), 3);
        assert!(data_refill_rings(Arch::V3, 17, &refills, 0).is_err());
        assert_eq!(
            data_refill_rings(Arch::V3, 0, &refills, 0).unwrap().count(),
            0
        );
    }
}
