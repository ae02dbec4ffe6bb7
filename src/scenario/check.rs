//! Checking expectations against a machine that has come to rest.

use super::expects::{Bounds, Check, Expect, Subject, Wanted};
use super::fill::{CHUNK, Hash, chunks};
use super::place::Region;
use super::report::ExpectationReport;
use crate::arch::regs::{M2sError, S2mError};
use crate::arch::{EngineId, EventBlock};
use crate::device::DeviceError;
use crate::sim::Instant;
use crate::system::System;
use crate::units::Addr;
use std::collections::BTreeMap;
use std::ops::Range;

/// What the run left behind.
pub(super) struct Evidence<'a> {
    pub system: &'a System,
    pub seed: u64,
    /// Bytes that were observed, by name; what was never reached is missing.
    pub observations: &'a BTreeMap<String, Vec<u8>>,
    /// When each step began and when it was done.
    pub times: &'a [(Instant, Instant)],
}

/// Held or not, and what was found.
struct Finding {
    passed: bool,
    found: Option<String>,
}

/// Bytes shown of the place where contents differ.
const SHOWN_BYTES: usize = 16;

impl Evidence<'_> {
    pub fn check(&self, expect: &Expect) -> ExpectationReport {
        let finding = match &expect.check {
            Check::Bytes { of, equal, wanted } => self.bytes(of, *equal, wanted),
            Check::Cell { at, value } => self.cell(*at, *value),
            Check::NoErrors => self.no_errors(),
            Check::Errors { engine, m2s, s2m } => self.error_bits(*engine, *m2s, *s2m),
            Check::Time(bounds) => self.within((Instant::START, self.system.now()), bounds),
            Check::Elapsed {
                steps,
                bounds,
                longer_than,
            } => self.elapsed(steps, bounds, longer_than.as_ref()),
        };
        ExpectationReport {
            expected: expect.text.clone(),
            passed: finding.passed,
            found: finding.found,
        }
    }

    fn bytes(&self, of: &Subject, equal: bool, wanted: &Wanted) -> Finding {
        let actual = match of {
            Subject::Memory(region) => self.memory(region),
            Subject::Observation(name) => {
                let seen = self.observations.get(name).map(Vec::as_slice);
                seen.ok_or_else(|| "was not observed".to_string())
            }
        };
        let difference = actual.and_then(|actual| self.difference(actual, wanted));
        match difference {
            Ok(None) => Finding {
                passed: equal,
                found: (!equal).then(|| "the bytes are equal".to_string()),
            },
            Ok(Some(difference)) => Finding {
                passed: !equal,
                found: Some(difference),
            },
            Err(why) => failed(why),
        }
    }

    fn memory(&self, region: &Region) -> Result<&[u8], String> {
        let slice = self.system.memory().slice(region.at, region.bytes);
        slice.map_err(|error| error.to_string())
    }

    /// How contents differ from what is wanted; `None` if they do not.
    fn difference(&self, actual: &[u8], wanted: &Wanted) -> Result<Option<String>, String> {
        let wanted = match wanted {
            Wanted::Sha256(hash) => {
                let mut found = Hash::default();
                found.update(actual);
                let found = found.finish();
                return Ok((found != *hash).then(|| format!("found sha256 {}", hex::encode(found))));
            }
            Wanted::Region(region) => {
                let mut difference = Difference::default();
                difference.compare(0, actual, self.memory(region)?);
                return Ok(difference.told(actual));
            }
            Wanted::Fill(fill) => fill,
        };
        let mut difference = Difference::default();
        let mut stream = wanted.bytes(self.seed);
        let mut chunk = vec![0; CHUNK];
        for (offset, bytes) in chunks(actual.len() as u64) {
            let wanted = &mut chunk[..bytes];
            stream.next(wanted);
            let start = offset as usize;
            difference.compare(start, &actual[start..start + bytes], wanted);
        }
        Ok(difference.told(actual))
    }

    fn cell(&self, at: Addr, value: i32) -> Finding {
        let mut word = [0; EventBlock::CELL_BYTES as usize];
        match self.system.memory().read(at, &mut word) {
            Ok(()) => {
                let found = i32::from_le_bytes(word);
                Finding {
                    passed: found == value,
                    found: (found != value).then(|| format!("it is {found}")),
                }
            }
            Err(error) => failed(error.to_string()),
        }
    }

    /// The errors of every engine, in engine order.
    pub fn errors(&self) -> Vec<DeviceError> {
        let engines = self.system.engines_in_use().into_iter();
        let statuses = engines.filter_map(|engine| self.system.engine_status(engine));
        statuses.flat_map(|status| status.errors).collect()
    }

    fn no_errors(&self) -> Finding {
        let errors: Vec<String> = self.errors().iter().map(ToString::to_string).collect();
        Finding {
            passed: errors.is_empty(),
            found: (!errors.is_empty()).then(|| errors.join("; ")),
        }
    }

    fn error_bits(&self, engine: EngineId, m2s: u32, s2m: u32) -> Finding {
        let status = self.system.engine_status(engine);
        let causes = status.map_or([0; 2], |status| status.causes);
        let passed = causes == [m2s, s2m];
        let found = format!(
            "{} on m2s, {} on s2m",
            listed(M2sError::in_bits(causes[0]).map(M2sError::name)),
            listed(S2mError::in_bits(causes[1]).map(S2mError::name))
        );
        Finding {
            passed,
            found: (!passed).then_some(found),
        }
    }

    /// When the first of some steps began and the last was done; `None` if it never was.
    fn begin_end(&self, steps: &Range<usize>) -> Option<(Instant, Instant)> {
        let times = self.times.get(steps.clone())?;
        Some((times.first()?.0, times.last()?.1))
    }

    fn elapsed(
        &self,
        steps: &Range<usize>,
        bounds: &Bounds,
        longer_than: Option<&Range<usize>>,
    ) -> Finding {
        let Some(took) = self.begin_end(steps) else {
            return failed("the steps did not run".to_string());
        };
        let Finding { passed, found } = self.within(took, bounds);
        let Some(other) = longer_than else {
            return Finding { passed, found };
        };
        match self.begin_end(other) {
            Some(other) => Finding {
                passed: passed && took.1 - took.0 > other.1 - other.0,
                found: Some(format!(
                    "{}, compared with {}",
                    self.cycles(took),
                    self.cycles(other)
                )),
            },
            None => failed("the steps to compare with did not run".to_string()),
        }
    }

    fn within(&self, (began, done): (Instant, Instant), bounds: &Bounds) -> Finding {
        let took = done - began;
        let above = bounds.min.is_none_or(|min| took >= min);
        let below = bounds.max.is_none_or(|max| took <= max);
        Finding {
            passed: above && below,
            found: Some(self.cycles((began, done))),
        }
    }

    /// The cycles between two instants, counted as the report counts those of a step.
    fn cycles(&self, (began, done): (Instant, Instant)) -> String {
        let clock = self.system.clock();
        let cycles = clock.cycle_at(done).0 - clock.cycle_at(began).0;
        format!("{cycles} cycles")
    }
}

fn failed(why: String) -> Finding {
    Finding {
        passed: false,
        found: Some(why),
    }
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.is_empty() {
        true => "no errors".to_string(),
        false => names.join(", "),
    }
}

/// Where two contents differ.
#[derive(Default)]
struct Difference {
    bytes: u64,
    /// Offset of the first differing byte, and what was wanted from there on.
    first: Option<(usize, Vec<u8>)>,
}

impl Difference {
    /// Compares a stretch that starts at `offset`.
    fn compare(&mut self, offset: usize, actual: &[u8], wanted: &[u8]) {
        if actual == wanted {
            return;
        }
        let differing = actual.iter().zip(wanted).map(|(a, b)| a != b);
        self.bytes += differing.clone().filter(|differs| *differs).count() as u64;
        if self.first.is_none() {
            let at = differing.clone().position(|differs| differs).unwrap_or(0);
            let shown = wanted.iter().skip(at).take(SHOWN_BYTES).copied().collect();
            self.first = Some((offset + at, shown));
        }
    }

    fn told(&self, actual: &[u8]) -> Option<String> {
        let (at, wanted) = self.first.as_ref()?;
        let found: Vec<u8> = actual
            .iter()
            .skip(*at)
            .take(wanted.len())
            .copied()
            .collect();
        Some(format!(
            "{} of {} bytes differ, first at offset {at}: expected {}, found {}",
            self.bytes,
            actual.len(),
            hex::encode(wanted),
            hex::encode(found)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_the_first_place_and_the_number() {
        let mut difference = Difference::default();
        let actual = [1, 2, 3, 4, 5, 6, 7, 8];
        difference.compare(0, &actual[..4], &[1, 2, 3, 4]);
        assert_eq!(difference.told(&actual), None);
        difference.compare(4, &actual[4..], &[5, 0, 7, 0]);
        assert_eq!(
            difference.told(&actual).unwrap(),
            "2 of 8 bytes differ, first at offset 5: expected 000700, found 060708"
        );
    }
}
