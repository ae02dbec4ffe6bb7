//! Newtypes for the quantities that must not be mixed: addresses, byte counts, clock cycles and
//! frequencies, with the unit strings (`64KiB`, `850MHz`) that configs and scenarios use.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A physical address in the device's 64-bit address space.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Addr(pub u64);

impl Addr {
    /// The address `bytes` further up, or `None` past the end of the address space.
    pub const fn checked_add(self, bytes: u64) -> Option<Addr> {
        match self.0.checked_add(bytes) {
            Some(a) => Some(Addr(a)),
            None => None,
        }
    }

    /// Distance in bytes from `base` up to this address, or `None` if it lies below `base`.
    pub const fn offset_from(self, base: Addr) -> Option<u64> {
        self.0.checked_sub(base.0)
    }

    /// Whether the address is a multiple of `align` bytes (`align` > 0).
    pub const fn is_aligned(self, align: u64) -> bool {
        self.0.is_multiple_of(align)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A count with its noun, which gets an s unless it is one: `1 packet`, `2 packets`.
pub fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A number of cycles of some clock; which one is said where it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycles(pub u64);

impl fmt::Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A clock frequency in hertz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hertz(pub u64);

/// A data rate in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BytesPerSecond(pub u64);

/// Why a unit string was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not {expected}")]
pub struct UnitError {
    text: String,
    expected: &'static str,
}

const BYTE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

const HERTZ_UNITS: &[(&str, u64)] = &[
    ("Hz", 1),
    ("kHz", 1_000),
    ("MHz", 1_000_000),
    ("GHz", 1_000_000_000),
];

const RATE_UNITS: &[(&str, u64)] = &[
    ("B/s", 1),
    ("kB/s", 1_000),
    ("MB/s", 1_000_000),
    ("GB/s", 1_000_000_000),
    ("TB/s", 1_000_000_000_000),
];

/// A whole number with an optional unit: decimal or `0x` hexadecimal, `_` as a separator.
fn parse_scaled(
    text: &str,
    units: &[(&str, u64)],
    unit_required: bool,
    expected: &'static str,
) -> Result<u64, UnitError> {
    let refuse = || UnitError {
        text: text.to_string(),
        expected,
    };
    let trimmed = text.trim();
    if let Some(digits) = trimmed.strip_prefix("0x") {
        if unit_required {
            return Err(refuse());
        }
        return u64::from_str_radix(&digits.replace('_', ""), 16).map_err(|_| refuse());
    }
    let split = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(split);
    let number: u64 = digits.replace('_', "").parse().map_err(|_| refuse())?;
    let unit = unit.trim();
    let factor = match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => *factor,
        None if unit.is_empty() && !unit_required => 1,
        None => return Err(refuse()),
    };
    number.checked_mul(factor).ok_or_else(refuse)
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let expected = "a size; write a whole number with B, KiB, MiB, GiB or TiB, such as 64KiB";
        parse_scaled(text, BYTE_UNITS, false, expected).map(Bytes)
    }
}

/// Writes `value` in the largest unit that holds it exactly; `units` ascend.
fn write_scaled(
    f: &mut fmt::Formatter<'_>,
    value: u64,
    units: &[(&'static str, u64)],
) -> fmt::Result {
    let (unit, factor) = units
        .iter()
        .rev()
        .find(|(_, factor)| value >= *factor && value.is_multiple_of(*factor))
        .unwrap_or(&units[0]);
    write!(f, "{}{}", value / factor, unit)
}

impl fmt::Display for Bytes {
    /// The largest binary unit that holds the number exactly: `64KiB`, `65537B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, BYTE_UNITS)
    }
}

impl FromStr for Hertz {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let expected = "a frequency; write a whole number with Hz, kHz, MHz or GHz, such as 850MHz";
        parse_scaled(text, HERTZ_UNITS, true, expected).map(Hertz)
    }
}

impl fmt::Display for Hertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, HERTZ_UNITS)
    }
}

impl FromStr for BytesPerSecond {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let expected = "a data rate; write a whole number with B/s, kB/s, MB/s, GB/s or TB/s, \
                        such as 750GB/s";
        parse_scaled(text, RATE_UNITS, true, expected).map(BytesPerSecond)
    }
}

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, RATE_UNITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_parse_exactly() {
        for (text, value) in [
            ("64KiB", 65536),
            ("1 MiB", 1 << 20),
            ("0x1_0000", 65536),
            ("12", 12),
            ("24GiB", 24 << 30),
        ] {
            assert_eq!(text.parse::<Bytes>().unwrap().0, value, "{text}");
        }
        for text in [
            "",
            "KiB",
            "64KB",
            "1.5MiB",
            "-1",
            "99999999TiB",
            "0xzz",
            "0x10KiB",
        ] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn frequencies_need_a_unit() {
        assert_eq!("850MHz".parse::<Hertz>().unwrap().0, 850_000_000);
        assert!("850".parse::<Hertz>().is_err());
        assert!("850mhz".parse::<Hertz>().is_err());
    }

    proptest! {
        #[test]
        fn display_round_trips(n: u64) {
            prop_assert_eq!(Bytes(n).to_string().parse::<Bytes>().unwrap().0, n);
            prop_assert_eq!(BytesPerSecond(n).to_string().parse::<BytesPerSecond>().unwrap().0, n);
            prop_assert_eq!(Hertz(n).to_string().parse::<Hertz>().unwrap().0, n);
        }
    }
}
