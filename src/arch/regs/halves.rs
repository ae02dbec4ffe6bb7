//! Something that both halves of a unit have.

use super::Direction;
use std::ops::{Index, IndexMut};

/// One `T` for each half of a UDMA unit, or for each ring of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Halves<T> {
    /// Of M2S: the Tx ring.
    pub m2s: T,
    /// Of S2M: the Rx ring.
    pub s2m: T,
}

impl<T> Halves<T> {
    /// What `of` says of each half, M2S first.
    pub fn each(mut of: impl FnMut(Direction) -> T) -> Halves<T> {
        let m2s = of(Direction::M2s);
        let s2m = of(Direction::S2m);
        Halves { m2s, s2m }
    }

    /// Both, M2S first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.m2s, &self.s2m].into_iter()
    }

    /// As [`Halves::iter`], to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        [&mut self.m2s, &mut self.s2m].into_iter()
    }
}

impl<T> Index<Direction> for Halves<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::M2s => &self.m2s,
            Direction::S2m => &self.s2m,
        }
    }
}

impl<T> IndexMut<Direction> for Halves<T> {
    #[inline(always)]
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::M2s => &mut self.m2s,
            Direction::S2m => &mut self.s2m,
        }
    }
}
