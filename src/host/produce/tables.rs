//! Rings that load tables: activation tables, dynamic configuration, and the seeds of stochastic
//! rounding.

use super::ProduceError;
use super::io::Signal;
use crate::arch::Arch;
use crate::host::set::VringSet;
use crate::host::vring::Vring;
use crate::units::Addr;

/// What a ring is for, as the runtime classes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RingUse {
    /// Indirect copies.
    IndirectMemcpy,
    /// Host to tensor.
    H2tCopy,
    /// Collectives.
    Collectives,
    /// Activation tables.
    ActTbl,
    /// Activation tables loaded at run time.
    DynamicActTbl,
    /// The model's own.
    Model,
    /// An engine's instructions.
    Eng,
    /// Custom operations.
    CustomOp,
}

impl RingUse {
    /// Every class.
    pub const ALL: [RingUse; 8] = [
        RingUse::IndirectMemcpy,
        RingUse::H2tCopy,
        RingUse::Collectives,
        RingUse::ActTbl,
        RingUse::DynamicActTbl,
        RingUse::Model,
        RingUse::Eng,
        RingUse::CustomOp,
    ];

    /// Name for ring sets, lower case.
    pub const fn name(self) -> &'static str {
        match self {
            RingUse::IndirectMemcpy => "indirect_memcpy",
            RingUse::H2tCopy => "h2t_copy",
            RingUse::Collectives => "collectives",
            RingUse::ActTbl => "act_tbl",
            RingUse::DynamicActTbl => "dynamic_act_tbl",
            RingUse::Model => "model",
            RingUse::Eng => "eng",
            RingUse::CustomOp => "custom_op",
        }
    }
}

/// A table, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLoad {
    /// Where it lies.
    pub src: Addr,
    /// Where the engine wants it.
    pub dst: Addr,
    /// Bytes.
    pub bytes: u64,
}

/// Tables of one ring, and what is told when they are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRing {
    /// Tables, in order.
    pub loads: Vec<TableLoad>,
    /// Told behind them.
    pub then: Option<Signal>,
}

/// Rings that load activation tables, one ring a [`TableRing`], named `act_tbl_<n>`, or
/// `dynamic_act_tbl_<n>` for those loaded at run time.
///
/// # Errors
/// [`ProduceError`] for more than 16 rings, and for what a vring refuses.
pub fn act_tbl_rings(
    arch: Arch,
    rings: &[TableRing],
    dynamic: bool,
    tile_idx: u64,
) -> Result<VringSet, ProduceError> {
    let class = match dynamic {
        true => RingUse::DynamicActTbl,
        false => RingUse::ActTbl,
    };
    let mut set = VringSet::allocate(arch, class.name(), rings.len(), false, tile_idx)?;
    for (vring, ring) in set.vrings_mut().iter_mut().zip(rings) {
        load(vring, &ring.loads)?;
        if let Some(signal) = ring.then {
            vring.add_signal(signal)?;
        }
    }
    Ok(set)
}

/// Rings that load dynamic configuration, one ring a [`TableRing`], named `dve_config_<n>`. How they
/// tell of it is each generation's own, modelled (C): a semaphore is incremented by a descriptor behind
/// DMB on V2 and by a strong-ordered one on V3; on V4 the update is embedded in the last load where the
/// device can name the semaphore.
///
/// # Errors
/// [`ProduceError`] for more than 16 rings, and for what a vring refuses.
pub fn dynamic_config_rings(
    arch: Arch,
    rings: &[TableRing],
    tile_idx: u64,
) -> Result<VringSet, ProduceError> {
    let mut set = VringSet::allocate(arch, "dve_config", rings.len(), false, tile_idx)?;
    for (vring, ring) in set.vrings_mut().iter_mut().zip(rings) {
        load(vring, &ring.loads)?;
        match ring.then {
            Some(Signal::SemaphoreInc { block, semaphore })
                if vring.should_emb_sem_update(true) && has_csr(arch, block) =>
            {
                vring.embed_semaphore_inc(block, semaphore, true)?;
            }
            Some(signal) => vring.add_signal(signal)?,
            None => {}
        }
    }
    Ok(set)
}

/// Whether an embedded update can name the semaphores of a block.
fn has_csr(arch: Arch, block: u32) -> bool {
    arch.spec().map.embedded_semaphore_csr(block).is_some()
}

fn load(vring: &mut Vring, loads: &[TableLoad]) -> Result<(), ProduceError> {
    for load in loads {
        vring.add_desc_transfer(load.src, load.dst, load.bytes)?;
    }
    Ok(())
}

/// Rings that seed stochastic rounding, one ring a seed, named `set_seed_<n>`. Ring `n` uses the 32
/// bytes at `scratch + 32 * n`.
///
/// # Errors
/// [`ProduceError`] for more than 16 seeds, and for what a vring refuses.
pub fn seed_set_rings(
    arch: Arch,
    seeds: &[u32],
    scratch: Addr,
    tile_idx: u64,
) -> Result<VringSet, ProduceError> {
    let mut set = VringSet::allocate(arch, "set_seed", seeds.len(), true, tile_idx)?;
    for (n, (vring, seed)) in (0..).zip(set.vrings_mut().iter_mut().zip(seeds)) {
        let place = Addr(scratch.0.wrapping_add(n * crate::desc::CCE_GRANULE_BYTES));
        vring.add_set_seed_packet(*seed, place)?;
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desc::{EmbeddedSemaphore, RxDesc};

    fn ring(n: u64, then: Option<Signal>) -> TableRing {
        let load = |part: u64| TableLoad {
            src: Addr(0x1000 * n + 0x100 * part),
            dst: Addr(0x10_0000 + 0x1000 * n + 0x100 * part),
            bytes: 0x100,
        };
        TableRing {
            loads: vec![load(0), load(1)],
            then,
        }
    }

    #[test]
    fn tables_then_the_signal() {
        let signal = Signal::SemaphoreInc {
            block: 0,
            semaphore: 4,
        };
        for arch in Arch::ALL {
            let set =
                act_tbl_rings(arch, &[ring(0, Some(signal)), ring(1, None)], false, 1).unwrap();
            let used: Vec<u32> = set
                .vrings()
                .iter()
                .map(|vring| vring.rx().used_desc_count())
                .collect();
            assert_eq!(used, [3, 2], "{arch}");
            assert_eq!(set.vrings()[0].name(), "act_tbl_0");
        }
        let dynamic = act_tbl_rings(Arch::V3, &[ring(0, None)], true, 0).unwrap();
        assert_eq!(dynamic.vrings()[0].name(), "dynamic_act_tbl_0");
        assert!(act_tbl_rings(Arch::V3, &vec![ring(0, None); 17], false, 0).is_err());
    }

    #[test]
    fn dynamic_configuration_tells_as_the_generation_does() {
        // The first TOP_SP of the second die.
        let signal = Signal::SemaphoreInc {
            block: 18,
            semaphore: 7,
        };
        for (arch, used) in [(Arch::V3, 3), (Arch::V4, 2)] {
            let set = dynamic_config_rings(arch, &[ring(0, Some(signal))], 0).unwrap();
            assert_eq!(set.vrings()[0].rx().used_desc_count(), used, "{arch}");
        }
        let set = dynamic_config_rings(Arch::V4, &[ring(0, Some(signal))], 0).unwrap();
        let last = RxDesc::from(*set.vrings()[0].rx().get(1).unwrap());
        assert_eq!(
            EmbeddedSemaphore::of(last),
            Some(EmbeddedSemaphore {
                set_sow: true,
                csr_index: 16,
                semaphore: 7
            })
        );
        // The ninth TOP_SP of a die has no CSR index.
        let far = Signal::SemaphoreInc {
            block: 16,
            semaphore: 7,
        };
        let set = dynamic_config_rings(Arch::V4, &[ring(0, Some(far))], 0).unwrap();
        assert_eq!(set.vrings()[0].rx().used_desc_count(), 3);
        let set = dynamic_config_rings(
            Arch::V2,
            &[ring(
                0,
                Some(Signal::SemaphoreInc {
                    block: 0,
                    semaphore: 1,
                }),
            )],
            0,
        )
        .unwrap();
        assert_eq!(set.vrings()[0].rx().used_desc_count(), 3);
    }

    #[test]
    fn a_ring_a_seed() {
        let set = seed_set_rings(Arch::V3, &[5, 6], Addr(0x1000), 0).unwrap();
        for (n, seed) in [(0, 5), (1, 6)] {
            let vring = &set.vrings()[n];
            assert_eq!(
                vring.tx().get(0).unwrap().words,
                [0x8580_0000, 0x4600_0000, 0, seed]
            );
            assert_eq!(vring.tx().get(1).unwrap().words[2], 0x1000 + 32 * n as u32);
            assert!(vring.stochastic_rounding_en());
        }
    }

    #[test]
    fn every_class_has_its_name() {
        let names: Vec<&str> = RingUse::ALL.map(RingUse::name).into();
        assert_eq!(
            names,
            [
                "indirect_memcpy",
                "h2t_copy",
                "collectives",
                "act_tbl",
                "dynamic_act_tbl",
                "model",
                "eng",
                "custom_op"
            ]
        );
    }
}
