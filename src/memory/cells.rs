//! Event/semaphore blocks: cells whose reads and writes have effects (`docs/hardware.md`,
//! "Address map").

use super::error::AccessReason;
use crate::arch::EventBlock;

const CELL_BYTES: usize = EventBlock::CELL_BYTES as usize;
/// Bytes of one window: a cell for every event or semaphore.
const WINDOW_BYTES: u64 = EventBlock::CELLS as u64 * EventBlock::CELL_BYTES;

/// The event/semaphore cells that one write stored to, so that whoever waits for them can look
/// again. A cell counts even if its value stayed the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effects {
    /// Plain memory, or nothing.
    None,
    /// Events `first .. first + count` of a block.
    Events {
        /// Index of the event/semaphore block.
        block: u32,
        /// First event stored to.
        first: u32,
        /// Events stored to, at least 1.
        count: u32,
    },
    /// Semaphores `first .. first + count` of a block.
    Semaphores {
        /// Index of the event/semaphore block.
        block: u32,
        /// First semaphore stored to.
        first: u32,
        /// Semaphores stored to, at least 1.
        count: u32,
    },
}

/// An event is 0 or 1: a write keeps this bit of the word, modelled (C).
const EVENT_BIT: u32 = 1;

/// What the cells of a window are and what an access to them does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Events,
    Read,
    Set,
    Inc,
    Dec,
}

const WINDOWS: [(u64, Window); 5] = [
    (EventBlock::EVENTS, Window::Events),
    (EventBlock::SEM_READ, Window::Read),
    (EventBlock::SEM_SET, Window::Set),
    (EventBlock::SEM_INC, Window::Inc),
    (EventBlock::SEM_DEC, Window::Dec),
];

/// The window that holds byte `offset` of a block: its first byte and what it is.
fn window(offset: u64) -> Option<(u64, Window)> {
    WINDOWS
        .into_iter()
        .find(|(start, _)| offset.checked_sub(*start).is_some_and(|o| o < WINDOW_BYTES))
}

/// End of the window that holds byte `offset` of a block; `None` in a hole.
pub(super) fn window_end(offset: u64) -> Option<u64> {
    window(offset).map(|(start, _)| start + WINDOW_BYTES)
}

/// Whether the cells at byte `offset` of a block can be written.
pub(super) fn is_writable(offset: u64) -> bool {
    window(offset).is_some_and(|(_, window)| window != Window::Read)
}

/// The state of one event/semaphore block.
pub(super) struct Cells {
    block: u32,
    events: [u32; EventBlock::CELLS as usize],
    semaphores: [u32; EventBlock::CELLS as usize],
}

impl Cells {
    /// Block `block` with every event and semaphore 0.
    pub(super) fn new(block: u32) -> Cells {
        Cells {
            block,
            events: [0; _],
            semaphores: [0; _],
        }
    }

    /// Reads whole cells of one window from byte `offset` of the block on.
    ///
    /// Modelled (C): the set, inc and dec windows cannot be read.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), AccessReason> {
        let (start, window) = window(offset).ok_or(AccessReason::Hole)?;
        let values = match window {
            Window::Events => &self.events,
            Window::Read => &self.semaphores,
            Window::Set | Window::Inc | Window::Dec => return Err(AccessReason::WriteOnly),
        };
        let cells = values.iter().skip(index(start, offset));
        let (words, _) = out.as_chunks_mut::<CELL_BYTES>();
        for (word, value) in words.iter_mut().zip(cells) {
            *word = value.to_le_bytes();
        }
        Ok(())
    }

    /// Writes whole cells of one window from byte `offset` of the block on.
    ///
    /// Modelled (C): the semaphore read window cannot be written; a semaphore, a signed 32-bit
    /// number, wraps around.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<Effects, AccessReason> {
        let (start, window) = window(offset).ok_or(AccessReason::Hole)?;
        let (values, apply): (_, fn(u32, u32) -> u32) = match window {
            Window::Events => (&mut self.events, |_, written| written & EVENT_BIT),
            Window::Read => return Err(AccessReason::ReadOnly),
            Window::Set => (&mut self.semaphores, |_, written| written),
            Window::Inc => (&mut self.semaphores, u32::wrapping_add),
            Window::Dec => (&mut self.semaphores, u32::wrapping_sub),
        };
        let first = index(start, offset);
        let (words, _) = bytes.as_chunks::<CELL_BYTES>();
        for (value, word) in values.iter_mut().skip(first).zip(words) {
            *value = apply(*value, u32::from_le_bytes(*word));
        }
        let (block, first, count) = (self.block, first as u32, words.len() as u32);
        Ok(match window {
            _ if count == 0 => Effects::None,
            Window::Events => Effects::Events {
                block,
                first,
                count,
            },
            _ => Effects::Semaphores {
                block,
                first,
                count,
            },
        })
    }
}

/// Index of the cell at byte `offset` of a block, in the window that starts at `start`.
fn index(start: u64, offset: u64) -> usize {
    ((offset - start) / EventBlock::CELL_BYTES) as usize
}
