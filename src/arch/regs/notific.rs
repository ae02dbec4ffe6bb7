//! The notification block, for the engine's queue: the first of the block (A).

use super::declare::registers;

registers! {
    /// The notification block.
    NOTIFIC {
        /// Base of the notification queue, low half.
        NQ_BASE_LO = "nq_base_lo" @ 0x100, LIVE, since V4;
        /// Base, high half.
        NQ_BASE_HI = "nq_base_hi" @ 0x104, LIVE, since V4;
        /// Bytes of the queue; 0 switches it off.
        NQ_SIZE = "nq_size" @ 0x108, LIVE, since V4;
        /// Where software is: index of the entry it reads next (C: the sources give the offset).
        NQ_HEAD = "nq_head" @ 0x10c, LIVE, since V4;
    }
}
