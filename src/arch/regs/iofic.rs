//! Interrupt groups of the interrupt controller. Offsets count from a group's start.

use super::declare::registers;
use bitfield_struct::bitfield;

/// Bytes from one group to the next.
pub const GROUP_BYTES: u64 = 0x40;

/// Main group A, which sums up the others: [`SummaryCauses`].
pub const GROUP_SUMMARY: usize = 0;
/// Main group B: S2M completions, a bit per queue (A).
pub const GROUP_RX: usize = 1;
/// Main group C: M2S completions, a bit per queue (A).
pub const GROUP_TX: usize = 2;
/// Main group D, everything else: [`MiscCauses`].
pub const GROUP_MISC: usize = 3;

registers! {
    /// An interrupt group.
    INTERRUPT_GROUP {
        /// Causes that happened.
        CAUSE = "cause" @ 0x00, CAUSE;
        /// Writing 1 sets a cause.
        CAUSE_SET = "cause_set" @ 0x08, COMMAND;
        /// Causes that are masked.
        MASK = "mask" @ 0x10, LIVE = u32::MAX;
        /// Writing the complement of a bit unmasks it.
        MASK_CLEAR = "mask_clear" @ 0x18, COMMAND;
        /// Causes that happened and are not masked.
        STATUS = "int_status" @ 0x20, STATUS;
        /// What reading and sending do to the causes (A).
        CONTROL = "control" @ 0x28, LIVE GroupControl {
            /// Reading the causes clears them.
            pub clear_on_read: bool,
            /// Causes that were sent are masked.
            pub auto_mask: bool,
            /// Causes that were sent are cleared.
            pub auto_clear: bool,
            /// Not modelled.
            #[bits(2)]
            bits_4_3: u8,
            /// No message is sent.
            pub mask_message: bool,
            /// Not modelled.
            #[bits(26)]
            bits_31_6: u32,
        };
        /// Causes that do not abort the engine.
        ABORT_MASK = "abort_mask" @ 0x30, LIVE;
    }
}

/// Causes of main group A (A): the groups that have one pending.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct SummaryCauses {
    /// Group B.
    pub rx: bool,
    /// Group C.
    pub tx: bool,
    /// Group D.
    pub misc: bool,
    /// Not modelled.
    #[bits(29)]
    bits_31_3: u32,
}

/// Causes of main group D (A): the error groups that have one pending.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct MiscCauses {
    /// Not modelled.
    bits_7_0: u8,
    /// M2S errors.
    pub m2s_errors: bool,
    /// S2M errors.
    pub s2m_errors: bool,
    /// Errors of the AXI masters' FIFOs.
    pub axi_errors: bool,
    /// Not modelled.
    #[bits(21)]
    bits_31_11: u32,
}
