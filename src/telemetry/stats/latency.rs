//! Distribution of latencies.

use crate::sim::Duration;
use hdrhistogram::Histogram;
use serde::Serialize;

/// Digits that a percentile keeps: it is at most 0.1 % too high.
const DIGITS: u8 = 3;

const FS_PER_PS: u64 = 1_000;

/// Latencies met so far.
pub struct Latencies {
    /// In picoseconds.
    histogram: Histogram<u64>,
    total_fs: u128,
    least: Duration,
    most: Duration,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            // It fails only for digits that it does not know.
            histogram: Histogram::new(DIGITS).unwrap_or_else(|_| unreachable!("{DIGITS} digits")),
            total_fs: 0,
            least: Duration::MAX,
            most: Duration::ZERO,
        }
    }
}

impl Latencies {
    /// One more.
    pub fn add(&mut self, latency: Duration) {
        // It fails only if the histogram cannot grow, and this one does by itself.
        let _ = self.histogram.record(latency.as_fs() / FS_PER_PS);
        self.total_fs += u128::from(latency.as_fs());
        self.least = self.least.min(latency);
        self.most = self.most.max(latency);
    }

    /// Those of another list too.
    pub fn merge(&mut self, other: &Latencies) {
        // It fails only if the histogram cannot grow, and this one does by itself.
        let _ = self.histogram.add(&other.histogram);
        self.total_fs += other.total_fs;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    /// What they come to; `None` if there was none.
    pub fn summary(&self) -> Option<Latency> {
        let count = self.histogram.len();
        if count == 0 {
            return None;
        }
        let most = rounded(self.most.as_ns_f64());
        let percentile =
            |p: f64| rounded(self.histogram.value_at_quantile(p) as f64 / 1e3).min(most);
        Some(Latency {
            count,
            min_ns: rounded(self.least.as_ns_f64()),
            mean_ns: rounded(self.total_fs as f64 / count as f64 / 1e6),
            p50_ns: percentile(0.50),
            p90_ns: percentile(0.90),
            p99_ns: percentile(0.99),
            p999_ns: percentile(0.999),
            max_ns: most,
        })
    }

    /// How many fell into each of `bins` stretches of equal length between the least and the most, with
    /// the upper end of each in nanoseconds.
    pub fn bins(&self, bins: u64) -> Vec<(f64, u64)> {
        let [least, most] = [self.least, self.most].map(|end| end.as_fs() / FS_PER_PS);
        if most < least {
            return Vec::new();
        }
        let width = (most - least).div_ceil(bins).max(1);
        let mut counts = vec![0; bins as usize];
        for step in self.histogram.iter_recorded() {
            let value = step.value_iterated_to().clamp(least, most);
            let bin = ((value - least) / width).min(bins - 1);
            counts[bin as usize] += step.count_at_value();
        }
        let ends = (1..=bins).map(|bin| (least + bin * width) as f64 / 1e3);
        ends.zip(counts).collect()
    }
}

/// A distribution in a few figures. Percentiles are exact to 0.1 %, the rest exactly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// The least, in nanoseconds as all that follow.
    pub min_ns: f64,
    /// The arithmetic mean.
    pub mean_ns: f64,
    /// Half took at most this,
    pub p50_ns: f64,
    /// 90 % took at most this,
    pub p90_ns: f64,
    /// 99 %,
    pub p99_ns: f64,
    /// 99.9 %,
    pub p999_ns: f64,
    /// and all of them this.
    pub max_ns: f64,
}

/// To three decimals: what is printed is what is meant.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against sorting.
        #[test]
        fn percentiles_are_those_of_the_sorted_list(
            mut list in prop::collection::vec(1u64..5_000_000, 1..500)
        ) {
            let mut latencies = Latencies::default();
            for ns in &list {
                latencies.add(Duration::from_ns(*ns));
            }
            list.sort();
            let summary = latencies.summary().unwrap();
            let rank = |p: f64| list[((p * list.len() as f64).ceil() as usize).max(1) - 1] as f64;
            prop_assert_eq!(summary.count, list.len() as u64);
            prop_assert_eq!(summary.min_ns, list[0] as f64);
            prop_assert_eq!(summary.max_ns, list[list.len() - 1] as f64);
            let mean = list.iter().sum::<u64>() as f64 / list.len() as f64;
            prop_assert!((summary.mean_ns - mean).abs() < 1e-3);
            for (p, found) in [
                (0.5, summary.p50_ns),
                (0.9, summary.p90_ns),
                (0.99, summary.p99_ns),
                (0.999, summary.p999_ns),
            ] {
                let exact = rank(p);
                prop_assert!(found >= exact && found <= exact * 1.001, "{} {} {}", p, found, exact);
            }
            let binned: u64 = latencies.bins(16).iter().map(|(_, count)| count).sum();
            prop_assert_eq!(binned, list.len() as u64);
        }
    }

    #[test]
    fn nothing_has_no_distribution() {
        assert_eq!(Latencies::default().summary(), None);
        assert!(Latencies::default().bins(4).is_empty());
    }
}
