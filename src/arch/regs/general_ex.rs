//! The GEN_EX block: per-queue VM selectors.

use super::declare::registers;

registers! {
    /// The GEN_EX block.
    GENERAL_EX {
        /// VM selectors, 16 words for each queue.
        VM_SELECTORS = "vm_selectors" @ 0x400, INERT [16 * 16];
    }
}
