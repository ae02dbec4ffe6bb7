//! What is under way, in the order it began.

/// Items with consecutive numbers, of which the oldest leave first. A number is never given twice.
pub struct Window<T> {
    /// Item `number` at `number` modulo their count, which is a power of two, or none at all.
    slots: Box<[Option<T>]>,
    first: u64,
    next: u64,
}

impl<T> Default for Window<T> {
    fn default() -> Window<T> {
        Window {
            slots: Box::default(),
            first: 0,
            next: 0,
        }
    }
}

impl<T> Window<T> {
    /// Number of the oldest item, or of the next if there is none.
    #[inline]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Number of the next item.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    pub fn len(&self) -> usize {
        (self.next - self.first) as usize
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.next == self.first
    }

    /// Adds the next item.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.next);
        self.next += 1;
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = Some(item);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let count = (2 * self.slots.len()).max(8);
        let mut slots: Box<[Option<T>]> = (0..count).map(|_| None).collect();
        for number in self.first..self.next {
            slots[number as usize & (count - 1)] = self.slots[self.slot(number)].take();
        }
        self.slots = slots;
    }

    /// An item that is still under way.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        if !self.holds(number) {
            return None;
        }
        self.slots.get(self.slot(number))?.as_ref()
    }

    /// As [`Window::get`].
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        if !self.holds(number) {
            return None;
        }
        let slot = self.slot(number);
        self.slots.get_mut(slot)?.as_mut()
    }

    /// The oldest item.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.slots.get(self.slot(self.first))?.as_ref()
    }

    /// As [`Window::front`].
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        let slot = self.slot(self.first);
        self.slots.get_mut(slot)?.as_mut()
    }

    /// Takes the oldest item.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let slot = self.slot(self.first);
        let item = self.slots.get_mut(slot)?.take()?;
        self.first += 1;
        Some(item)
    }

    /// All items, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    /// As [`Window::iter`].
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }

    #[inline]
    fn holds(&self, number: u64) -> bool {
        number.wrapping_sub(self.first) < self.next - self.first
    }

    #[inline]
    fn slot(&self, number: u64) -> usize {
        number as usize & self.slots.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list of all items there ever were.
        #[test]
        fn items_are_found_by_their_number(steps in prop::collection::vec(0u8..8, 0..200)) {
            let mut window = Window::default();
            let (mut first, mut next) = (0, 0);
            for step in steps {
                match step {
                    0..4 => {
                        window.push(next);
                        next += 1;
                    }
                    7 => {
                        while window.pop_front().is_some() {}
                        first = next;
                    }
                    _ => {
                        let taken = window.pop_front();
                        prop_assert_eq!(taken, (first < next).then_some(first));
                        first += u64::from(taken.is_some());
                    }
                }
                prop_assert_eq!((window.first(), window.next()), (first, next));
                prop_assert_eq!(window.len() as u64, next - first);
                prop_assert_eq!(window.is_empty(), first == next);
                prop_assert_eq!(window.front().copied(), (first < next).then_some(first));
                for number in 0..next + 2 {
                    let held = (first..next).contains(&number).then_some(number);
                    prop_assert_eq!(window.get(number).copied(), held);
                    prop_assert_eq!(window.get_mut(number).copied(), held);
                }
                let mut all: Vec<u64> = window.iter_mut().map(|item| *item).collect();
                all.sort();
                prop_assert!(all.into_iter().eq(first..next));
            }
        }
    }
}
