//! Clock domains: exact conversion between cycle numbers and instants.

use super::time::{Duration, FS_PER_SECOND, Instant};
use crate::units::{Cycles, Hertz};
use strength_reduce::StrengthReducedU64;

/// A clock that starts with edge 0 at [`Instant::START`].
///
/// Edge n lies at `ceil(n · 10^15 / f)` femtoseconds, computed from n each time. 850 MHz has a
/// period of 20 000 000 / 17 fs: adding a rounded period 850 million times would be off by
/// hundreds of nanoseconds, this is off by less than one femtosecond for ever.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    frequency: Hertz,
    /// Period in femtoseconds as a reduced fraction. Every event divides by one of them.
    period_num: StrengthReducedU64,
    period_den: StrengthReducedU64,
}

impl Clock {
    /// Highest frequency a clock can have: its period must be longer than the unit of time.
    pub const MAX_HZ: u64 = FS_PER_SECOND / 2;

    /// A clock of the given frequency, or `None` unless 1 Hz ≤ f ≤ [`Clock::MAX_HZ`].
    pub fn new(frequency: Hertz) -> Option<Clock> {
        if frequency.0 == 0 || frequency.0 > Clock::MAX_HZ {
            return None;
        }
        let divisor = gcd(FS_PER_SECOND, frequency.0);
        Some(Clock {
            frequency,
            period_num: StrengthReducedU64::new(FS_PER_SECOND / divisor),
            period_den: StrengthReducedU64::new(frequency.0 / divisor),
        })
    }

    /// The clock's frequency.
    pub const fn frequency(&self) -> Hertz {
        self.frequency
    }

    /// When edge `n` happens; [`Instant::NEVER`] if time does not reach that far.
    #[inline]
    pub fn edge(&self, n: Cycles) -> Instant {
        let (num, den) = (self.period_num.get(), self.period_den);
        Instant::from_fs(match n.0.checked_mul(num) {
            Some(product) => {
                let (whole, rest) = StrengthReducedU64::div_rem(product, den);
                whole + u64::from(rest > 0)
            }
            None => {
                let product = u128::from(n.0) * u128::from(num);
                u64::try_from(product.div_ceil(den.get().into())).unwrap_or(u64::MAX)
            }
        })
    }

    /// The number of the last edge at or before `at`.
    #[inline]
    pub fn cycle_at(&self, at: Instant) -> Cycles {
        let (num, den) = (self.period_num, self.period_den.get());
        Cycles(match at.as_fs().checked_mul(den) {
            Some(product) => product / num,
            None => {
                let product = u128::from(at.as_fs()) * u128::from(den);
                // The quotient is below `at` since the period is longer than 1 fs.
                (product / u128::from(num.get())) as u64
            }
        })
    }

    /// The number of the first edge at or after `at`.
    #[inline]
    pub fn cycle_from(&self, at: Instant) -> Cycles {
        // Edge n lies at or after `at` if and only if n · period > at - 1 fs.
        match at.as_fs().checked_sub(1) {
            Some(before) => Cycles(self.cycle_at(Instant::from_fs(before)).0 + 1),
            None => Cycles(0),
        }
    }

    /// The first edge at or after `at`.
    pub fn next_edge(&self, at: Instant) -> Instant {
        self.edge(self.cycle_from(at))
    }

    /// How long `n` cycles last, rounded up to a femtosecond.
    pub fn span(&self, n: Cycles) -> Duration {
        self.edge(n) - Instant::START
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_second_of_850_mhz_is_a_second() {
        let clock = Clock::new(Hertz(850_000_000)).unwrap();
        assert_eq!(clock.edge(Cycles(850_000_000)).as_fs(), FS_PER_SECOND);
        // 20_000_000 / 17 = 1_176_470.588…
        assert_eq!(clock.edge(Cycles(1)).as_fs(), 1_176_471);
        assert_eq!(clock.edge(Cycles(17)).as_fs(), 20_000_000);
        assert_eq!(clock.cycle_at(Instant::from_fs(1_176_470)), Cycles(0));
        assert_eq!(clock.cycle_at(Instant::from_fs(1_176_471)), Cycles(1));
    }

    #[test]
    fn absurd_frequencies_are_refused() {
        assert!(Clock::new(Hertz(0)).is_none());
        assert!(Clock::new(Hertz(Clock::MAX_HZ + 1)).is_none());
        assert!(Clock::new(Hertz(Clock::MAX_HZ)).is_some());
    }

    proptest! {
        #[test]
        fn edges_and_cycles_agree(hz in 1u64..5_000_000_000, n in 0u64..1 << 40) {
            let clock = Clock::new(Hertz(hz)).unwrap();
            let edge = clock.edge(Cycles(n));
            prop_assume!(edge != Instant::NEVER);
            prop_assert_eq!(clock.cycle_at(edge), Cycles(n));
            prop_assert_eq!(clock.next_edge(edge), edge);
            // Never more than a femtosecond from the exact n / f.
            let exact = u128::from(n) * u128::from(FS_PER_SECOND);
            let error = u128::from(edge.as_fs()) * u128::from(hz) - exact;
            prop_assert!(error < u128::from(hz));
        }

        #[test]
        fn the_next_edge_is_the_first_one_not_before(hz in 1u64..5_000_000_000, fs in 0u64..1 << 60) {
            let clock = Clock::new(Hertz(hz)).unwrap();
            let at = Instant::from_fs(fs);
            let n = clock.cycle_from(at);
            prop_assert!(clock.edge(n) >= at);
            if n.0 > 0 {
                prop_assert!(clock.edge(Cycles(n.0 - 1)) < at);
            }
        }

        #[test]
        fn no_input_panics(hz in 1u64..=Clock::MAX_HZ, n: u64, fs: u64) {
            let clock = Clock::new(Hertz(hz)).unwrap();
            clock.edge(Cycles(n));
            clock.next_edge(Instant::from_fs(fs));
        }
    }
}
