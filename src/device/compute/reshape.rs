//! Data movement without arithmetic: striding split, replication, transposes (`docs/compute.md`,
//! "Reshaping").

use crate::desc::{Permutation, TransposeDims};

/// Deals a stream's units out to pieces in turn; the pieces leave one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Pieces.
    pub pieces: usize,
    /// Bytes of a unit.
    pub unit_bytes: usize,
}

impl Split {
    /// Splits `source` into `result`, which is as long and a whole number of units for every piece.
    pub fn run(&self, source: &[u8], result: &mut [u8]) {
        let units = source.chunks_exact(self.unit_bytes);
        for (piece, result) in result
            .chunks_mut((source.len() / self.pieces).max(1))
            .enumerate()
        {
            let mine = units.clone().skip(piece).step_by(self.pieces);
            for (to, from) in result.chunks_exact_mut(self.unit_bytes).zip(mine) {
                to.copy_from_slice(from);
            }
        }
    }
}

/// Writes one source several times, one behind the other.
pub fn replicate(source: &[u8], result: &mut [u8]) {
    if !source.is_empty() {
        for copy in result.chunks_exact_mut(source.len()) {
            copy.copy_from_slice(source);
        }
    }
}

/// Changes the order of a tensor's dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transpose {
    /// Dimensions of the source, outermost first; none is 0.
    pub dims: TransposeDims,
    /// What goes where.
    pub permutation: Permutation,
    /// Bytes of an element.
    pub element_bytes: usize,
}

impl Transpose {
    /// Transposes `source` to `result`, which is as long.
    pub fn run(&self, source: &[u8], result: &mut [u8]) {
        match self.element_bytes {
            1 => self.move_elements::<1>(source, result),
            2 => self.move_elements::<2>(source, result),
            3 => self.move_elements::<3>(source, result),
            4 => self.move_elements::<4>(source, result),
            5 => self.move_elements::<5>(source, result),
            6 => self.move_elements::<6>(source, result),
            7 => self.move_elements::<7>(source, result),
            _ => self.move_elements::<8>(source, result),
        }
    }

    fn move_elements<const N: usize>(&self, source: &[u8], result: &mut [u8]) {
        let (source, _) = source.as_chunks::<N>();
        let (result, _) = result.as_chunks_mut::<N>();
        let sizes = self.dims.0.map(usize::from);
        let [_, x, y, z] = sizes;
        let strides = [x * y * z, y * z, z, 1];
        // Sizes and strides in the order of the result.
        let [size, stride] =
            [sizes, strides].map(|of| self.permutation.axes().map(|axis| of[axis]));
        let mut rows = result.chunks_exact_mut(size[3].max(1));
        for a in 0..size[0] {
            for b in 0..size[1] {
                for c in 0..size[2] {
                    let start = a * stride[0] + b * stride[1] + c * stride[2];
                    let elements = source.iter().skip(start).step_by(stride[3].max(1));
                    let Some(row) = rows.next() else { return };
                    for (to, from) in row.iter_mut().zip(elements) {
                        *to = *from;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_go_to_the_pieces_in_turn() {
        let source: Vec<u8> = (0..12).collect();
        let split = |pieces, unit_bytes| {
            let mut result = vec![0xff; 12];
            Split { pieces, unit_bytes }.run(&source, &mut result);
            result
        };
        assert_eq!(split(2, 1), [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]);
        assert_eq!(split(3, 2), [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]);
        assert_eq!(split(1, 4), source);
    }

    #[test]
    fn copies_lie_one_behind_the_other() {
        let mut result = [0; 6];
        replicate(&[7, 8], &mut result);
        assert_eq!(result, [7, 8, 7, 8, 7, 8]);
    }
}
