//! Which queue's packet goes next (A: public headers): by QoS class where the generation has it,
//! round robin or deficit weighted round robin within a class.

use super::queue_set::QueueSet;
use crate::arch::QueueId;

/// Queues of a unit.
const QUEUES: usize = 32;

/// How one queue takes part, from its registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Class: a higher one goes first (C: the direction). 0 where the generation has no classes.
    pub qos: u8,
    /// Goes before the queues of its class that share by weight.
    pub strict: bool,
    /// Part of the class's bandwidth; 0 counts as 1 (C).
    pub weight: u8,
    /// Most credit it can save up; 0 means no bound.
    pub max_deficit: i64,
}

/// How a unit shares its stream, from its registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mode {
    /// Deficit weighted round robin instead of plain round robin.
    pub dwrr: bool,
    /// Weights count packets instead of bytes.
    pub packets: bool,
    /// A weight of 1 is worth two to this power bytes an iteration.
    pub inc_factor: u8,
}

/// The scheduler's memory.
#[derive(Default)]
pub(super) struct Arbiter {
    /// Queue served last.
    last: QueueId,
    /// Credit of each queue, in bytes or packets.
    deficits: [i64; QUEUES],
}

impl Arbiter {
    /// Picks one of `ready`; `None` if it is empty. The weight-increment mode of the registers
    /// changes how fast the hardware finds the next queue, not who it is.
    pub fn pick(&mut self, ready: QueueSet, mode: Mode, shares: &[Share]) -> Option<QueueId> {
        let share = |q: QueueId| shares.get(q.index()).copied().unwrap_or_default();
        let top = ready.iter().map(|q| share(q).qos).max()?;
        let class = ready.filter(|q| share(q).qos == top);
        if !mode.dwrr {
            return class.after(self.last).next();
        }
        let strict = class.filter(|q| share(q).strict);
        if let Some(q) = strict.after(self.last).next() {
            return Some(q);
        }
        self.top_up(class, mode, &share);
        // A queue is served until its credit is used up, then the next one.
        if class.contains(self.last) && self.deficits[self.last.index()] > 0 {
            return Some(self.last);
        }
        class
            .after(self.last)
            .find(|q| self.deficits[q.index()] > 0)
    }

    /// A packet of queue `q` starts.
    pub fn serve(&mut self, q: QueueId, bytes: u64, mode: Mode) {
        self.last = q;
        if mode.dwrr {
            let cost = if mode.packets { 1 } else { bytes as i64 };
            let deficit = &mut self.deficits[q.index()];
            *deficit = deficit.saturating_sub(cost);
        }
    }

    /// A queue that has run dry keeps no credit.
    pub fn ran_dry(&mut self, q: QueueId) {
        let deficit = &mut self.deficits[q.index()];
        *deficit = (*deficit).min(0);
    }

    /// A queue starts anew.
    pub fn forget(&mut self, q: QueueId) {
        self.deficits[q.index()] = 0;
    }

    /// Sets every credit.
    pub fn set_deficits(&mut self, credit: i64) {
        self.deficits = [credit; QUEUES];
    }

    /// Starts as many new iterations as it takes until some queue of the class has credit.
    fn top_up(&mut self, class: QueueSet, mode: Mode, share: &impl Fn(QueueId) -> Share) {
        if class.iter().any(|q| self.deficits[q.index()] > 0) {
            return;
        }
        let quantum = |q: QueueId| {
            let weight = i64::from(share(q).weight.max(1));
            if mode.packets {
                weight
            } else {
                weight << mode.inc_factor
            }
        };
        let iterations = class
            .iter()
            .map(|q| (1 - self.deficits[q.index()] + quantum(q) - 1) / quantum(q))
            .min()
            .unwrap_or(0);
        for q in class.iter() {
            let deficit = &mut self.deficits[q.index()];
            let credit = deficit.saturating_add(quantum(q).saturating_mul(iterations));
            *deficit = match share(q).max_deficit {
                0 => credit,
                most => credit.min(most),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes each of four backlogged queues gets over `rounds` packets.
    fn shares(mode: Mode, shares: [Share; 4], lens: [u64; 4], rounds: usize) -> [u64; 4] {
        let mut arbiter = Arbiter::default();
        let mut ready = QueueSet::default();
        (0..4).for_each(|q| ready.insert(QueueId(q)));
        let mut got = [0; 4];
        for _ in 0..rounds {
            let q = arbiter.pick(ready, mode, &shares).unwrap();
            let bytes = lens[q.index()];
            arbiter.serve(q, bytes, mode);
            got[q.index()] += bytes;
        }
        got
    }

    fn weights(weights: [u8; 4]) -> [Share; 4] {
        weights.map(|weight| Share {
            weight,
            ..Share::default()
        })
    }

    #[test]
    fn round_robin_takes_turns() {
        let got = shares(Mode::default(), weights([1, 2, 4, 8]), [1; 4], 400);
        assert_eq!(got, [100; 4]);
    }

    #[test]
    fn higher_classes_and_strict_queues_go_first() {
        let mut by_class = weights([1; 4]);
        by_class[2].qos = 1;
        assert_eq!(
            shares(Mode::default(), by_class, [1; 4], 100),
            [0, 0, 100, 0]
        );
        let mut strict = weights([1; 4]);
        strict[3].strict = true;
        let dwrr = Mode {
            dwrr: true,
            packets: true,
            inc_factor: 7,
        };
        assert_eq!(shares(dwrr, strict, [1; 4], 100), [0, 0, 0, 100]);
    }

    #[test]
    fn packet_mode_counts_packets() {
        let dwrr = Mode {
            dwrr: true,
            packets: true,
            inc_factor: 7,
        };
        let got = shares(dwrr, weights([1, 2, 3, 4]), [1000, 10, 1, 1], 1000);
        assert_eq!(got, [100 * 1000, 200 * 10, 300, 400]);
    }

    proptest! {
        /// Byte shares follow the weights, a packet and a quantum aside.
        #[test]
        fn byte_shares_follow_the_weights(
            w in prop::array::uniform4(1u8..32),
            lens in prop::array::uniform4(1u64..70_000),
            inc_factor in 0u8..12,
        ) {
            let mode = Mode { dwrr: true, packets: false, inc_factor };
            let got = shares(mode, weights(w), lens, 20_000);
            let total: u64 = got.iter().sum();
            let sum: u64 = w.iter().map(|w| u64::from(*w)).sum();
            for q in 0..4 {
                let ideal = total as f64 * f64::from(w[q]) / sum as f64;
                let slack = 2.0 * 70_000.0 + 2.0 * f64::from(w[q]) * f64::from(1u32 << inc_factor)
                    + 70_000.0 * f64::from(w[q]);
                prop_assert!((got[q] as f64 - ideal).abs() <= slack, "{q}: {got:?} {w:?}");
            }
        }

        #[test]
        fn somebody_ready_is_always_picked(
            raw in 1u8..16,
            w in prop::array::uniform4(any::<u8>()),
            qos in prop::array::uniform4(0u8..3),
            strict in prop::array::uniform4(any::<bool>()),
            max_deficit in 0i64..100,
            dwrr: bool, packets: bool, inc_factor in 0u8..16,
            served in prop::collection::vec((0u8..4, 0u64..1 << 20), 0..20),
        ) {
            let mut ready = QueueSet::default();
            (0..4).filter(|q| raw >> q & 1 == 1).for_each(|q| ready.insert(QueueId(q)));
            let all: Vec<Share> = (0..4)
                .map(|q| Share { qos: qos[q], strict: strict[q], weight: w[q], max_deficit })
                .collect();
            let mode = Mode { dwrr, packets, inc_factor };
            let mut arbiter = Arbiter::default();
            for (q, bytes) in served {
                arbiter.serve(QueueId(q), bytes, mode);
            }
            let q = arbiter.pick(ready, mode, &all);
            prop_assert!(q.is_some_and(|q| ready.contains(q)), "{q:?}");
        }
    }
}
