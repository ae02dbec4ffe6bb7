//! Instants and durations in femtoseconds.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

/// Femtoseconds in one second.
pub(super) const FS_PER_SECOND: u64 = 1_000_000_000_000_000;
const FS_PER_NS: u64 = 1_000_000;

/// A point in simulated time: femtoseconds since the machine was switched on. The largest one, a
/// little over five hours, stands for "never".
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Instant(u64);

/// A length of simulated time in femtoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Duration(u64);

impl Instant {
    /// The moment the machine is switched on.
    pub const START: Instant = Instant(0);
    /// The end of representable time; additions saturate here.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// The instant this many femtoseconds after the start.
    pub const fn from_fs(fs: u64) -> Instant {
        Instant(fs)
    }

    /// Femtoseconds since the start.
    pub const fn as_fs(self) -> u64 {
        self.0
    }

    /// Nanoseconds since the start, for display.
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / FS_PER_NS as f64
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// Longer than any run.
    pub const MAX: Duration = Duration(u64::MAX);

    /// A duration of so many femtoseconds.
    pub const fn from_fs(fs: u64) -> Duration {
        Duration(fs)
    }

    /// A duration of so many nanoseconds; saturates.
    pub const fn from_ns(ns: u64) -> Duration {
        Duration(ns.saturating_mul(FS_PER_NS))
    }

    /// Length in femtoseconds.
    pub const fn as_fs(self) -> u64 {
        self.0
    }

    /// Length in nanoseconds, for display.
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / FS_PER_NS as f64
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// Saturates at [`Instant::NEVER`].
    fn add(self, length: Duration) -> Instant {
        Instant(self.0.saturating_add(length.0))
    }
}

impl Add for Duration {
    type Output = Duration;

    /// Saturates at [`Duration::MAX`].
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// The time from `earlier` to `self`; zero if `earlier` is in fact later.
    fn sub(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

/// Units of a duration string, largest first, with their length in femtoseconds.
const UNITS: &[(&str, u64)] = &[
    ("s", FS_PER_SECOND),
    ("ms", FS_PER_SECOND / 1_000),
    ("us", FS_PER_SECOND / 1_000_000),
    ("ns", FS_PER_NS),
    ("ps", 1_000),
    ("fs", 1),
];

impl fmt::Display for Duration {
    /// The largest unit that holds the length exactly: `1416ns`, `5us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = UNITS
            .iter()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor))
            .unwrap_or(&UNITS[UNITS.len() - 1]);
        write!(f, "{}{}", self.0 / factor, unit)
    }
}

/// A string that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a duration; write a whole number with fs, ps, ns, us, ms or s, such as 250ns"
)]
pub struct DurationError(String);

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let refuse = || DurationError(text.to_string());
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '_')
            .ok_or_else(refuse)?;
        let (digits, unit) = trimmed.split_at(split);
        let number: u64 = digits.replace('_', "").parse().map_err(|_| refuse())?;
        let (_, factor) = UNITS
            .iter()
            .find(|(name, _)| *name == unit.trim())
            .ok_or_else(refuse)?;
        number.checked_mul(*factor).map(Duration).ok_or_else(refuse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_parse_exactly() {
        assert_eq!("250ns".parse::<Duration>().unwrap(), Duration::from_ns(250));
        assert_eq!(
            "1 ms".parse::<Duration>().unwrap().as_fs(),
            1_000_000_000_000
        );
        for text in ["", "12", "ns", "1.5ns", "-1ns", "99999999s", "1NS"] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Instant::NEVER + Duration::from_ns(1), Instant::NEVER);
        assert_eq!(Instant::START - Instant::from_fs(5), Duration::ZERO);
        assert_eq!(Duration::from_ns(u64::MAX), Duration::MAX);
    }

    proptest! {
        #[test]
        fn display_round_trips(fs: u64) {
            let length = Duration::from_fs(fs);
            prop_assert_eq!(length.to_string().parse::<Duration>().unwrap(), length);
        }
    }
}
