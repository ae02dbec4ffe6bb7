//! Rate limiter: a token bucket of one queue, or of the whole M2S stream.
//!
//! Registers (A): a fill every *short cycle* of so many UDMA cycles, another every *long cycle* of so
//! many short ones, both in bits; a bucket of so many bytes. A packet may start while tokens are
//! left and costs its bytes (C: the balance may go negative, so that the long-run rate is exact).

/// What the registers say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RateLimit {
    /// Whether it limits at all.
    pub enabled: bool,
    /// No tokens are filled in.
    pub paused: bool,
    /// Most tokens the bucket holds, in bits.
    pub burst_bits: i64,
    /// UDMA cycles of a short cycle, at least 1.
    pub short_cycles: u64,
    /// Short cycles of a long cycle, at least 1.
    pub long_shorts: u64,
    /// Bits filled in each short cycle.
    pub short_bits: i64,
    /// Bits filled in each long cycle.
    pub long_bits: i64,
}

impl RateLimit {
    /// Whether it lets nothing through once the bucket is empty, until a register is written.
    pub fn never_fills(&self) -> bool {
        let fills = self.short_bits > 0 || self.long_bits > 0;
        self.enabled && (self.paused || self.burst_bits <= 0 || !fills)
    }
}

/// A bucket of tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TokenBucket {
    bits: i64,
    /// Cycle up to which fills are counted.
    filled_at: u64,
}

impl TokenBucket {
    /// Fills up to `cycle`.
    fn fill(&mut self, limit: &RateLimit, cycle: u64) {
        let shorts = |cycle: u64| cycle / limit.short_cycles;
        let longs = |cycle: u64| shorts(cycle) / limit.long_shorts;
        if !limit.paused {
            let short = (shorts(cycle) - shorts(self.filled_at)) as i64;
            let long = (longs(cycle) - longs(self.filled_at)) as i64;
            let added = (short.saturating_mul(limit.short_bits))
                .saturating_add(long.saturating_mul(limit.long_bits));
            self.bits = self.bits.saturating_add(added).min(limit.burst_bits);
        }
        self.filled_at = cycle;
    }

    /// The first cycle from `cycle` on at which a packet may start, as far as can be told now: at
    /// that cycle ask again. `None` if tokens will never come.
    pub fn ready_at(&mut self, limit: &RateLimit, cycle: u64) -> Option<u64> {
        if !limit.enabled {
            return Some(cycle);
        }
        self.fill(limit, cycle);
        if self.bits > 0 {
            return Some(cycle);
        }
        if limit.paused || limit.burst_bits <= 0 {
            return None;
        }
        let short = cycle / limit.short_cycles;
        // A fill counts in the cycle that begins its short, or long, cycle.
        let by_shorts = (limit.short_bits > 0).then(|| {
            short
                + (1 - self.bits)
                    .unsigned_abs()
                    .div_ceil(limit.short_bits as u64)
        });
        let by_long = (limit.long_bits > 0)
            .then(|| (short / limit.long_shorts + 1).saturating_mul(limit.long_shorts));
        let soonest = [by_shorts, by_long].into_iter().flatten().min()?;
        Some(soonest.saturating_mul(limit.short_cycles))
    }

    /// A packet of `bytes` starts.
    pub fn spend(&mut self, limit: &RateLimit, bytes: u64) {
        if limit.enabled {
            self.bits = self.bits.saturating_sub_unsigned(bytes.saturating_mul(8));
        }
    }

    /// Forgets what has been spent in advance.
    pub fn forgive(&mut self) {
        self.bits = self.bits.max(0);
    }

    /// Holds so many bits from now on.
    pub fn set(&mut self, bits: i64, cycle: u64) {
        *self = TokenBucket {
            bits,
            filled_at: cycle,
        };
    }

    /// Counts fills from now on.
    pub fn restart(&mut self, cycle: u64) {
        self.filled_at = cycle;
    }

    /// Empties the bucket.
    pub fn reset(&mut self, cycle: u64) {
        self.set(0, cycle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Over a long time a backlogged queue gets what the fills say, a bucket and a packet aside.
        #[test]
        fn the_long_run_rate_is_the_fill_rate(
            short_cycles in 1u64..50,
            long_shorts in 1u64..50,
            short_bits in 0i64..1000,
            long_bits in 0i64..100_000,
            burst in 1i64..100_000,
            packet in 1u64..5000,
        ) {
            prop_assume!(short_bits + long_bits > 0);
            let limit = RateLimit {
                enabled: true,
                paused: false,
                burst_bits: burst * 8 + short_bits + long_bits,
                short_cycles,
                long_shorts,
                short_bits,
                long_bits,
            };
            let mut bucket = TokenBucket::default();
            let (mut cycle, mut sent, mut steps) = (0, 0u64, 0);
            while cycle < 1_000_000 && steps < 20_000 {
                let next = bucket.ready_at(&limit, cycle).unwrap();
                if next == cycle {
                    bucket.spend(&limit, packet);
                    sent += packet * 8;
                    // Time passes while a packet is read.
                    cycle += 1;
                } else {
                    prop_assert!(next > cycle);
                    cycle = next;
                }
                steps += 1;
            }
            let shorts = cycle / short_cycles;
            let filled = shorts as i64 * short_bits + (shorts / long_shorts) as i64 * long_bits;
            // Never more than was filled in, but for one packet.
            prop_assert!(sent as i64 <= filled + packet as i64 * 8);
        }
    }

    #[test]
    fn a_paused_or_empty_limiter_never_fills() {
        let limit = RateLimit {
            enabled: true,
            short_cycles: 1,
            long_shorts: 1,
            burst_bits: 8,
            ..RateLimit::default()
        };
        assert_eq!(TokenBucket::default().ready_at(&limit, 5), None);
        let paused = RateLimit {
            paused: true,
            short_bits: 1,
            ..limit
        };
        assert_eq!(TokenBucket::default().ready_at(&paused, 5), None);
        let off = RateLimit {
            enabled: false,
            ..limit
        };
        assert_eq!(TokenBucket::default().ready_at(&off, 5), Some(5));
    }
}
