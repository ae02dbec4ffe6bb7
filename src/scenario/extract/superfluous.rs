//! Barriers that order nothing: without all of them together, what was ordered still is.

use super::Walked;
use super::error::ExtractError;
use super::machine::{BarrierAt, BarrierUse, Ignored};
use super::origins::Origins;
use crate::order::race::{BarrierKind, Origin, Pair};
use crate::scenario::plan::Plan;
use crate::scenario::stripped::Strip;
use std::collections::{BTreeMap, BTreeSet};

/// Barriers of one kind, by one line of the scenario, that order nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superfluous {
    /// Their kind.
    pub kind: BarrierKind,
    /// What built them; of a repeated step, its first repetition that has one.
    pub origin: Option<Origin>,
    /// Queue, slot and packet of the first.
    pub first: String,
    /// How many there are.
    pub count: u64,
    /// How many barriers of the kind the line builds in all.
    pub of: u64,
    /// DMB of queues whose DMB pause is masked: the device ignores them.
    pub masked: bool,
    /// UDMA clock cycles by which the run is shorter without them; `None` if it was not measured, or does
    /// not come to its end without them.
    pub cycles: Option<i64>,
    /// Where the bits are.
    pub(in crate::scenario) strip: Strip,
}

impl Plan {
    /// Finds the barriers that order nothing. `None` if there are too many races to tell.
    ///
    /// # Errors
    /// As [`Plan::races`].
    pub fn superfluous(&self) -> Result<Option<Vec<Superfluous>>, ExtractError> {
        let base = self.walk(&Ignored::new())?;
        if base.detector.more() > 0 {
            return Ok(None);
        }
        let idle = |barrier: &&BarrierUse| {
            let (_, _, packet, kind) = barrier.at;
            barrier.masked || !base.detector.needs(barrier.thread, packet, kind)
        };
        let mut ignored: Ignored = base.barriers.iter().filter(idle).map(|b| b.at).collect();
        let races: BTreeSet<Pair> = base.detector.pairs().collect();
        // Each may be left out alone; of those that order the same, one must stay.
        let mut nearest = 1;
        loop {
            let trial = self.walk(&ignored)?;
            let new: Vec<Pair> = trial
                .detector
                .pairs()
                .filter(|p| !races.contains(p))
                .collect();
            if new.is_empty() && trial.detector.more() == 0 {
                break;
            }
            put_back(&mut ignored, &base, &new, nearest);
            nearest *= 2;
        }
        Ok(Some(self.by_line(&base.barriers, &ignored)))
    }

    fn by_line(&self, barriers: &[BarrierUse], superfluous: &Ignored) -> Vec<Superfluous> {
        let origins = Origins::of(self);
        let mut lines: BTreeMap<(Option<usize>, BarrierKind, bool), Superfluous> = BTreeMap::new();
        for barrier in barriers {
            let (engine, queue, packet, kind) = barrier.at;
            let origin = origins.of_tag(barrier.tag);
            let line = origin.as_ref().map(|origin| origin.line);
            let slot = barrier.slot;
            let entry = lines
                .entry((line, kind, barrier.masked))
                .or_insert_with(|| Superfluous {
                    kind,
                    origin: None,
                    first: String::new(),
                    count: 0,
                    of: 0,
                    masked: barrier.masked,
                    cycles: None,
                    strip: Strip::default(),
                });
            entry.of += 1;
            if superfluous.contains(&barrier.at) {
                if entry.count == 0 {
                    entry.origin = origin;
                    entry.first = format!("{engine} queue {queue} slot {slot} (packet {packet})");
                }
                entry.count += 1;
                entry.strip.add(&barrier.descs, kind);
            }
        }
        lines.into_values().filter(|line| line.count > 0).collect()
    }
}

/// Takes barriers out of `ignored` that could prevent the new races: for each the `nearest` of them, or
/// all of its queue if none fits, or all there are.
fn put_back(ignored: &mut Ignored, base: &Walked, new: &[Pair], nearest: usize) {
    let before = ignored.len();
    let mut kept = Vec::new();
    for race in new {
        let fits = |barrier: &&BarrierUse| {
            let (_, _, packet, kind) = barrier.at;
            barrier.thread == race.first
                && ignored.contains(&barrier.at)
                && match kind {
                    BarrierKind::Dmb => packet >= race.packet,
                    BarrierKind::WriteBarrier => packet >= race.packet && race.second != race.first,
                    BarrierKind::StrongOrder => packet > race.packet && race.second != race.first,
                }
        };
        let ats = base.barriers.iter().filter(fits).map(|barrier| barrier.at);
        kept.extend(ats.take(nearest));
    }
    remove(ignored, kept);
    if ignored.len() == before {
        let queues: BTreeSet<_> = new.iter().map(|race| race.first).collect();
        let of_queues = base.barriers.iter().filter(|b| queues.contains(&b.thread));
        remove(ignored, of_queues.map(|b| b.at).collect());
    }
    if ignored.len() == before {
        ignored.clear();
    }
}

fn remove(ignored: &mut Ignored, kept: Vec<BarrierAt>) {
    for barrier in kept {
        ignored.remove(&barrier);
    }
}
