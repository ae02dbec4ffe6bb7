//! Cells of event blocks, as the race detector names them.

use crate::arch::EventBlock;
use crate::system::SemTest;

/// The least value with which a test passes.
pub(super) fn least(test: SemTest) -> i32 {
    match test {
        SemTest::Ge(least) | SemTest::Eq(least) => least,
    }
}

/// The window of a block's cells that an offset lies in, and the index of the cell.
pub(super) fn cell_at(window: u64, offset: u64) -> Option<u32> {
    let cells = EventBlock::CELL_BYTES * u64::from(EventBlock::CELLS);
    let inside = offset
        .checked_sub(window)
        .filter(|inside| *inside < cells)?;
    Some((inside / EventBlock::CELL_BYTES) as u32)
}

/// What stands for an event where a semaphore is named: setting it counts.
pub(super) fn event(block: u32, index: u32) -> (u32, u32) {
    (block, EventBlock::CELLS + index)
}
