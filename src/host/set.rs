//! The vring set: the vrings of one queue set, allocated, named and freed together.

use super::vring::{Vring, VringError};
use crate::arch::Arch;

/// Most vrings of a set.
pub const MAX_SET_VRINGS: usize = 16;

/// Up to 16 vrings named `<set>_<n>`. A clone is a deep copy: editing one leaves the other alone.
#[derive(Clone, Debug)]
pub struct VringSet {
    vrings: Vec<Vring>,
    tile_idx: u64,
}

/// Why a set was not allocated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VringSetError {
    /// More vrings than a set holds.
    #[error("a set of {0} vrings; a set holds at most {MAX_SET_VRINGS}")]
    TooMany(usize),
    /// A vring of the set could not be made.
    #[error(transparent)]
    Vring(#[from] VringError),
}

impl VringSet {
    /// A set of `count` empty vrings named `<name>_0`, `<name>_1` and so on, each marked with whether
    /// its compute packets round stochastically. `tile_idx` says which tile the set is for.
    ///
    /// # Errors
    /// [`VringSetError`] for more than 16 vrings, or a name that leaves no room for the number.
    pub fn allocate(
        arch: Arch,
        name: &str,
        count: usize,
        stochastic_rounding_en: bool,
        tile_idx: u64,
    ) -> Result<VringSet, VringSetError> {
        if count > MAX_SET_VRINGS {
            return Err(VringSetError::TooMany(count));
        }
        let vrings = (0..count)
            .map(|n| {
                let mut vring = Vring::new(arch, format!("{name}_{n}"))?;
                vring.stochastic_rounding = stochastic_rounding_en;
                Ok(vring)
            })
            .collect::<Result<_, VringError>>()?;
        Ok(VringSet { vrings, tile_idx })
    }

    /// Vrings of the set.
    pub fn count(&self) -> usize {
        self.vrings.len()
    }

    /// Which tile the set is for.
    pub fn tile_idx(&self) -> u64 {
        self.tile_idx
    }

    /// The vrings in order.
    pub fn vrings(&self) -> &[Vring] {
        &self.vrings
    }

    /// The vrings in order, to author.
    pub fn vrings_mut(&mut self) -> &mut [Vring] {
        &mut self.vrings
    }

    /// Frees the descriptors of every vring; the vrings stay, empty.
    pub fn free(&mut self) {
        for vring in &mut self.vrings {
            vring.free();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Addr;

    fn set(count: usize) -> VringSet {
        VringSet::allocate(Arch::V3, "act_tbl", count, true, 7).unwrap()
    }

    #[test]
    fn vrings_are_named_after_the_set() {
        let set = set(16);
        let names: Vec<&str> = set.vrings().iter().map(Vring::name).collect();
        assert_eq!(
            (names[0], names[15], names.len()),
            ("act_tbl_0", "act_tbl_15", 16)
        );
        assert!(set.vrings().iter().all(Vring::stochastic_rounding_en));
        assert_eq!(set.tile_idx(), 7);
        let plain = VringSet::allocate(Arch::V2, "q", 1, false, 0).unwrap();
        assert!(!plain.vrings()[0].stochastic_rounding_en());
    }

    #[test]
    fn a_set_holds_at_most_16() {
        let refused = VringSet::allocate(Arch::V3, "s", 17, false, 0).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a set of 17 vrings; a set holds at most 16"
        );
        assert_eq!(set(0).count(), 0);
    }

    /// 256 bytes hold "<set>_<n>" and its terminator.
    #[test]
    fn the_name_leaves_room_for_the_number() {
        let longest = "n".repeat(253);
        assert!(VringSet::allocate(Arch::V3, &longest, 10, false, 0).is_ok());
        let refused = VringSet::allocate(Arch::V3, &longest, 11, false, 0).unwrap_err();
        assert_eq!(refused, VringSetError::Vring(VringError::NameTooLong(256)));
    }

    #[test]
    fn a_copy_is_deep_and_free_forgets() {
        let mut set = set(2);
        set.vrings_mut()[1]
            .add_desc_transfer(Addr(0), Addr(64), 64)
            .unwrap();
        let copy = set.clone();
        set.free();
        let used = |set: &VringSet| set.vrings()[1].tx().used_desc_count();
        assert_eq!((used(&set), used(&copy)), (0, 1));
        assert_eq!(set.vrings()[1].total_tx_size(), 0);
        assert_eq!(copy.vrings()[1].total_tx_size(), 64);
        assert_eq!(set.count(), 2);
    }
}
