//! Sizes and times as scenarios write them.

use crate::document::{FromValue, from_text};
use crate::sim::{Clock, Duration};
use crate::units::Cycles;
use std::fmt;
use std::str::FromStr;

/// A length of simulated time, in UDMA clock cycles or by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    Cycles(u64),
    Time(Duration),
}

from_text! {
    Span, "a time such as \"1ms\", \"250ns\" or \"100000 cycles\"";
}

impl Span {
    /// The same length by the UDMA clock.
    pub fn duration(self, clock: &Clock) -> Duration {
        match self {
            Span::Cycles(n) => clock.span(Cycles(n)),
            Span::Time(duration) => duration,
        }
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("\"{text}\" is not {}", <Span as FromValue>::EXPECTED);
        let number = ["cycles", "cycle"]
            .iter()
            .find_map(|unit| text.trim().strip_suffix(unit));
        match number {
            Some(digits) => {
                let digits = digits.trim().replace('_', "");
                digits.parse().map(Span::Cycles).map_err(|_| refuse())
            }
            None => text.parse().map(Span::Time).map_err(|_| refuse()),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Span::Cycles(n) => write!(f, "{n} cycles"),
            Span::Time(duration) => duration.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_a_unit_and_stay_in_range() {
        for (text, span) in [
            ("1ms", Span::Time(Duration::from_ns(1_000_000))),
            ("100_000 cycles", Span::Cycles(100_000)),
            ("1 cycle", Span::Cycles(1)),
        ] {
            assert_eq!(text.parse(), Ok(span), "{text}");
        }
        for text in [
            "",
            "1",
            "ms",
            "-1ms",
            "1.5ms",
            "99999999s",
            "99999999999999999999 cycles",
            "cycles",
        ] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
