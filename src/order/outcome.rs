//! How a program ends, and questions about it.

use super::program::{Program, Span};
use std::fmt;

/// What registers and memory hold at the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    /// What the observers have read.
    pub registers: Vec<u32>,
    /// Every atom.
    pub memory: Vec<u32>,
}

/// What a condition asks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Registers.
    Registers(Span),
    /// Memory.
    Memory(Span),
}

/// A question about a run of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Every value is this.
    All(u32),
    /// Some value is not this.
    NotAll(u32),
}

/// A question about one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its name in the litmus file.
    pub name: String,
    /// Where.
    pub place: Place,
    /// What.
    pub test: Test,
}

/// The outcome that a litmus test asks for: any of several conjunctions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked(pub Vec<Vec<Condition>>);

impl Condition {
    /// Whether it holds.
    pub fn holds(&self, outcome: &Outcome) -> bool {
        let values = self.place.values(outcome);
        match self.test {
            Test::All(wanted) => values.iter().all(|value| *value == wanted),
            Test::NotAll(unwanted) => values.iter().any(|value| *value != unwanted),
        }
    }
}

impl Place {
    /// What is there.
    pub fn values(self, outcome: &Outcome) -> &[u32] {
        let found = match self {
            Place::Registers(span) => outcome.registers.get(span.atoms()),
            Place::Memory(span) => outcome.memory.get(span.atoms()),
        };
        found.unwrap_or_default()
    }
}

impl Asked {
    /// Whether an outcome is the one asked for.
    pub fn holds(&self, outcome: &Outcome) -> bool {
        self.0
            .iter()
            .any(|all| all.iter().all(|c| c.holds(outcome)))
    }

    /// The part of an outcome that is asked about, in words: `r1=1; r2=0;`.
    pub fn project(&self, outcome: &Outcome) -> String {
        let mut told: Vec<&str> = Vec::new();
        let mut text = String::new();
        for condition in self.0.iter().flatten() {
            if told.contains(&condition.name.as_str()) {
                continue;
            }
            told.push(&condition.name);
            let value = match condition.place.values(outcome) {
                [first, rest @ ..] if rest.iter().all(|value| value == first) => {
                    (*first as i32).to_string()
                }
                values => format!("{values:?}"),
            };
            text.push_str(&format!("{}={value}; ", condition.name));
        }
        text.trim_end().to_string()
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, all) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str(" or ")?;
            }
            for (n, condition) in all.iter().enumerate() {
                if n > 0 {
                    f.write_str(" and ")?;
                }
                match condition.test {
                    Test::All(value) => write!(f, "{}={}", condition.name, value as i32)?,
                    Test::NotAll(value) => write!(f, "{}!={}", condition.name, value as i32)?,
                }
            }
        }
        Ok(())
    }
}

impl Program {
    /// The register or the cell of a name, or the bytes of one: `x`, `x[4..8)`.
    pub fn place_of(&self, name: &str) -> Option<Place> {
        let (whole, part) = match name.split_once('[') {
            Some((whole, part)) => (whole, Some(self.part_of(part)?)),
            None => (name, None),
        };
        let register = self
            .registers
            .iter()
            .find(|register| register.name == whole);
        let cell = self.cells.iter().find(|cell| cell.name == whole);
        let within = |first: usize, count: usize| match part {
            None => Some(Span { first, count }),
            Some((from, to)) => (from < to && to <= count).then(|| Span {
                first: first + from,
                count: to - from,
            }),
        };
        match (register, cell) {
            (Some(found), _) => within(found.first, found.count).map(Place::Registers),
            (None, Some(cell)) => within(cell.span.first, cell.span.count).map(Place::Memory),
            (None, None) => None,
        }
    }

    /// The atoms of `4..8)`, which counts bytes.
    fn part_of(&self, text: &str) -> Option<(usize, usize)> {
        let (from, to) = text.strip_suffix(')')?.split_once("..")?;
        let atom = |bytes: &str| {
            let bytes: u64 = bytes.trim().parse().ok()?;
            (bytes.is_multiple_of(self.grain)).then_some((bytes / self.grain) as usize)
        };
        Some((atom(from)?, atom(to)?))
    }
}
