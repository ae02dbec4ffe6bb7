//! The GEN block, beside its interrupt groups ([`iofic`](super::iofic)).

use super::declare::registers;

/// First main interrupt group; [`IOFIC_MAIN_GROUPS`] of them.
pub const IOFIC_MAIN: u64 = 0x0000;
/// Main interrupt groups.
pub const IOFIC_MAIN_GROUPS: u64 = 16;
/// First secondary interrupt group: M2S errors, then S2M errors, a cause bit per error bit; then those of
/// the AXI masters' FIFOs.
pub const IOFIC_SECONDARY: u64 = 0x2000;
/// Secondary interrupt groups.
pub const IOFIC_SECONDARY_GROUPS: u64 = 3;
/// Bytes of a master's error detection table: a word for each combination of [`AXI_PARITY`], [`AXI_TIMEOUT`] and
/// [`AXI_RESPONSE`]; not 0, the error is detected.
pub const AXI_MASTER_TABLE_BYTES: u64 = 0x40;
/// Parity error, in the index of an error detection table.
pub const AXI_PARITY: u64 = 4;
/// Timeout.
pub const AXI_TIMEOUT: u64 = 2;
/// Error response.
pub const AXI_RESPONSE: u64 = 1;

registers! {
    /// The GEN block, beside its interrupt groups.
    GENERAL {
        /// AXI timeout in cycles.
        AXI_CFG_1 = "axi_cfg_1" @ 0x2300, LIVE;
        /// The rest of the AXI configuration.
        AXI_CFG = "axi_cfg" @ 0x2304, INERT [63];
        /// AXI error detection tables, one of [`AXI_MASTER_TABLE_BYTES`] for each master, in the order of the interrupt
        /// groups: descriptor reads, data and completion writes of M2S, then of S2M, MSI-X.
        AXI_ERROR_1 = "axi_error_1" @ 0x2900, LIVE [128];
        /// AXI error control of each master: an index and the word there.
        AXI_ERROR_2 = "axi_error_2" @ 0x2b00, INERT [64];
        /// Per-queue AXI attributes.
        AXI_QUEUE = "axi_queue" @ 0x2c00, INERT [64];
        /// Interrupt groups of the AXI masters, 0x100 apart.
        AXI_INTERRUPTS = "axi_interrupts" @ 0x2d00, INERT [7 * 64];
        /// First spare registers.
        SPARE = "spare" @ 0x3460, LIVE [2] Spare {
            /// Completion heads are not reported (A); of the first register.
            pub no_comp_head: bool,
            /// Not modelled.
            #[bits(31)]
            bits_31_1: u32,
        };
        /// Spare registers that reset to ones.
        SPARE_ONES = "spare_ones" @ 0x3468, INERT [2] = u32::MAX;
        /// The other spare registers.
        SPARE_REST = "spare_rest" @ 0x3470, INERT [4];
    }
}
