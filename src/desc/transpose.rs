//! What a transpose packet carries beside its op word: the permutation's number, the dimensions in
//! the meta descriptor, and, where the State Buffer is the destination, the address that a tile is
//! scattered from (`docs/hardware.md`, "Transpose").

use super::DType;
use crate::units::Addr;
use bitfield_struct::bitfield;

/// Longest element of a transpose in bytes.
pub const MAX_TRANSPOSE_ELEMENT_BYTES: u32 = 8;

/// Added to a NeuronCore window's base, the address a transpose flush writes to (V3 and later).
pub const TRANSPOSE_FLUSH_OFFSET: u64 = 0x0200_0000_0400_0000;

/// A permutation of the dimensions W, X, Y, Z (outermost first), by its number in the op word. Its
/// name spells the dimensions of the result: "WYXZ" swaps X and Y.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permutation(u8);

/// The permutations there are, in order of their numbers. Twelve are known to exist, three of them
/// by name ("WZXY", the first; "WXZY", the second; "XYWZ", the last): the others, and that the
/// place in the list is the number, are modelled (C).
const PERMUTATIONS: [(&str, [usize; 4]); 12] = [
    ("WZXY", [0, 3, 1, 2]),
    ("WXZY", [0, 1, 3, 2]),
    ("WYXZ", [0, 2, 1, 3]),
    ("WYZX", [0, 2, 3, 1]),
    ("WZYX", [0, 3, 2, 1]),
    ("ZXYW", [3, 1, 2, 0]),
    ("ZWXY", [3, 0, 1, 2]),
    ("XYZW", [1, 2, 3, 0]),
    ("XWYZ", [1, 0, 2, 3]),
    ("YXWZ", [2, 1, 0, 3]),
    ("YWXZ", [2, 0, 1, 3]),
    ("XYWZ", [1, 2, 0, 3]),
];

impl Permutation {
    /// Every permutation, in order of their numbers.
    pub fn all() -> impl Iterator<Item = Permutation> {
        (0..PERMUTATIONS.len() as u8).map(Permutation)
    }

    /// The permutation with a number.
    pub fn from_index(index: u8) -> Option<Permutation> {
        Permutation::all().find(|permutation| permutation.0 == index)
    }

    /// The permutation with a name such as "WYXZ".
    pub fn from_name(name: &str) -> Option<Permutation> {
        Permutation::all().find(|permutation| permutation.name() == name)
    }

    /// Its number, below 12.
    pub const fn index(self) -> u8 {
        self.0
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        PERMUTATIONS[self.0 as usize].0
    }

    /// For each dimension of the result, outermost first, the dimension of the source it is: the
    /// `axes` of NumPy's `transpose`.
    pub const fn axes(self) -> [usize; 4] {
        PERMUTATIONS[self.0 as usize].1
    }

    /// Whether W or Z changes its place.
    pub const fn moves_w_or_z(self) -> bool {
        let axes = self.axes();
        axes[0] != 0 || axes[3] != 3
    }
}

impl DType {
    /// The type in the op word of a transpose of `bytes`-byte elements: the smallest unsigned
    /// integer that holds one, modelled (C). `None` unless 1..=8.
    pub const fn of_element_bytes(bytes: u32) -> Option<DType> {
        match bytes {
            1 => Some(DType::Uint8),
            2 => Some(DType::Uint16),
            3 | 4 => Some(DType::Uint32),
            5..=MAX_TRANSPOSE_ELEMENT_BYTES => Some(DType::Uint64),
            _ => None,
        }
    }
}

/// Dimensions of a transpose's source in elements, outermost first. In the meta descriptor W and X
/// fill `meta1`, Y and Z `meta2`, the first of each pair in the low half: modelled (C).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransposeDims(pub [u16; 4]);

impl TransposeDims {
    /// Reads the two operand words of the meta descriptor.
    pub const fn from_words(meta1: u32, meta2: u32) -> TransposeDims {
        TransposeDims([
            meta1 as u16,
            (meta1 >> 16) as u16,
            meta2 as u16,
            (meta2 >> 16) as u16,
        ])
    }

    /// The two operand words.
    pub const fn to_words(self) -> (u32, u32) {
        let [w, x, y, z] = self.0;
        (w as u32 | (x as u32) << 16, y as u32 | (z as u32) << 16)
    }

    /// Elements in all: less than 2^64.
    pub fn elements(self) -> u64 {
        self.0.iter().map(|dim| u64::from(*dim)).product()
    }
}

/// Destination of a transpose into a State Buffer, as its Rx descriptor holds it: one row of the
/// result goes to each partition from the given one on, all at the same offset. The places of
/// `offset` and `partition`, of the bit for 4-byte elements and of the mark are reported (B), the rest
/// of the layout is modelled (C).
#[bitfield(u64)]
#[derive(PartialEq, Eq, Hash)]
pub struct TransposeTarget {
    /// Without a meaning.
    reserved_7_0: u8,
    /// Offset in each partition in bytes.
    #[bits(18)]
    pub offset: u32,
    /// Partition of the result's first row.
    #[bits(7)]
    pub partition: u8,
    /// Without a meaning.
    reserved_33: bool,
    /// Elements have 4 bytes, not 2.
    pub four_byte: bool,
    /// Without a meaning.
    reserved_35: bool,
    /// Bits 47:36 of the NeuronCore window's base.
    #[bits(12)]
    window_bits: u16,
    /// Rows of the source tile less one.
    #[bits(4)]
    pub rows_less_one: u8,
    /// Without a meaning.
    #[bits(5)]
    reserved_56_52: u8,
    /// Marks a transposing write.
    pub transposing: bool,
    /// Without a meaning.
    #[bits(6)]
    reserved_63_58: u8,
}

/// Where the window's base lies in the address; its bits below are 0 on every generation that has
/// transposing writes.
const WINDOW_SHIFT: u32 = 36;

impl TransposeTarget {
    /// Base of the NeuronCore window.
    pub const fn window(self) -> Addr {
        Addr((self.window_bits() as u64) << WINDOW_SHIFT)
    }

    /// With the base of a NeuronCore window. Bits that the field does not hold are dropped.
    pub const fn with_window(self, base: Addr) -> TransposeTarget {
        self.with_window_bits((base.0 >> WINDOW_SHIFT) as u16 & 0xfff)
    }

    /// Rows of the source tile.
    pub const fn rows(self) -> u32 {
        self.rows_less_one() as u32 + 1
    }

    /// Bytes of an element.
    pub const fn element_bytes(self) -> u32 {
        if self.four_byte() { 4 } else { 2 }
    }

    /// The address as it lies in the Rx descriptor.
    pub const fn addr(self) -> Addr {
        Addr(self.into_bits())
    }

    /// The target that an Rx descriptor's address stands for; `None` for a plain address.
    pub const fn from_addr(at: Addr) -> Option<TransposeTarget> {
        let target = TransposeTarget::from_bits(at.0);
        if target.transposing() {
            Some(target)
        } else {
            None
        }
    }

    /// Whether a bit without a meaning is set.
    pub const fn has_reserved_bits(self) -> bool {
        self.reserved_7_0() != 0
            || self.reserved_33()
            || self.reserved_35()
            || self.reserved_56_52() != 0
            || self.reserved_63_58() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_names_spell_the_axes() {
        let mut names = BTreeSet::new();
        for permutation in Permutation::all() {
            let spelt: String = permutation
                .axes()
                .map(|axis| ['W', 'X', 'Y', 'Z'][axis])
                .iter()
                .collect();
            assert_eq!(spelt, permutation.name());
            assert_eq!(
                Permutation::from_name(permutation.name()),
                Some(permutation)
            );
            assert_eq!(
                Permutation::from_index(permutation.index()),
                Some(permutation)
            );
            names.insert(spelt);
        }
        assert_eq!(names.len(), 12);
        assert!(!names.contains("WXYZ"));
        assert_eq!(Permutation::from_name("WZXY").unwrap().index(), 0);
        assert_eq!(Permutation::from_name("WXZY").unwrap().index(), 1);
        assert_eq!(Permutation::from_name("XYWZ").unwrap().index(), 11);
        assert_eq!(Permutation::from_index(12), None);
        assert_eq!(Permutation::from_name("WXYZ"), None);
    }

    #[test]
    fn only_one_permutation_leaves_w_and_z_alone() {
        let fixed: Vec<&str> = Permutation::all()
            .filter(|permutation| !permutation.moves_w_or_z())
            .map(Permutation::name)
            .collect();
        assert_eq!(fixed, ["WYXZ"]);
    }

    #[test]
    fn golden_targets() {
        let target = TransposeTarget::new()
            .with_transposing(true)
            .with_rows_less_one(15)
            .with_window(Addr(0x8020_0000_0000))
            .with_partition(3)
            .with_offset(0x40);
        assert_eq!(target.addr(), Addr(0x020f_8020_0c00_4000));
        assert_eq!(target.window(), Addr(0x8020_0000_0000));
        assert_eq!(target.rows(), 16);
        assert_eq!(
            target.with_four_byte(true).addr().0 ^ target.addr().0,
            1 << 34
        );
        assert_eq!(TransposeTarget::from_addr(target.addr()), Some(target));
        assert_eq!(TransposeTarget::from_addr(Addr(0x20_0000_0000)), None);
        let flush = TransposeTarget::from_addr(Addr(0x20_0000_0000 + TRANSPOSE_FLUSH_OFFSET));
        assert_eq!(flush.unwrap().rows(), 1);
    }

    #[test]
    fn element_sizes_have_types() {
        let sizes: Vec<Option<u32>> = (0..=9)
            .map(|bytes| DType::of_element_bytes(bytes).map(DType::bytes))
            .collect();
        let expected = [0, 1, 2, 4, 4, 8, 8, 8, 8, 0].map(|n| (n > 0).then_some(n));
        assert_eq!(sizes, expected);
    }

    proptest! {
        #[test]
        fn words_and_addresses_lose_nothing(meta1: u32, meta2: u32, at: u64) {
            let dims = TransposeDims::from_words(meta1, meta2);
            prop_assert_eq!(dims.to_words(), (meta1, meta2));
            let from = TransposeTarget::from_bits(at);
            let again = TransposeTarget::new()
                .with_reserved_7_0(from.reserved_7_0())
                .with_offset(from.offset())
                .with_partition(from.partition())
                .with_reserved_33(from.reserved_33())
                .with_four_byte(from.four_byte())
                .with_reserved_35(from.reserved_35())
                .with_window(from.window())
                .with_rows_less_one(from.rows_less_one())
                .with_reserved_56_52(from.reserved_56_52())
                .with_transposing(from.transposing())
                .with_reserved_63_58(from.reserved_63_58());
            prop_assert_eq!(again.addr(), Addr(at));
        }
    }
}
