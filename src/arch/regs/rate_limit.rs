//! The words of a rate limiter, of a queue or of the stream. Offsets count from its first.

use super::declare::registers;

registers! {
    /// A rate limiter.
    RATE_LIMIT {
        /// First word of a rate limiter: bucket and enable.
        CFG_1 = "cfg_1" @ 0x0, LIVE RateLimitCfg1 {
            /// Most bytes the bucket holds.
            #[bits(24)]
            pub max_burst_size: u32,
            /// Limit the rate.
            pub en: bool,
            /// Fill no tokens.
            pub pause: bool,
            /// Not used.
            #[bits(6)]
            reserved_31_26: u8,
        };
        /// Second word of a rate limiter: the long cycle.
        CYCLE = "cycle" @ 0x4, LIVE RateLimitCycle {
            /// Short cycles of a long cycle.
            pub short_cycles: u16,
            /// Not used.
            reserved_31_16: u16,
        };
        /// Third and fourth word of a rate limiter: what a cycle fills; here the long one.
        TOKEN_SIZE_1 = "token_size_1" @ 0x8, LIVE RateLimitFill {
            /// Bits filled in each long, or each short, cycle.
            #[bits(19)]
            pub bits: u32,
            /// Not used.
            #[bits(13)]
            reserved_31_19: u16,
        };
        /// What a short cycle fills.
        TOKEN_SIZE_2 = "token_size_2" @ 0xc, LIVE RateLimitFill;
    }
}

/// Words of a rate limiter.
pub const WORDS: u64 = RATE_LIMIT.len() as u64;
