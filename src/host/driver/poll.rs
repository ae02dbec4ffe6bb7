//! When the driver looks at the marker, and when it gives up.

use crate::arch::Arch;
use crate::sim::Duration;

/// How a caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollMode {
    /// At once, host memory at one end.
    Synchronous,
    /// At once, both ends in device memory: much faster, so the driver is less patient.
    SynchronousDevice,
    /// Some time after the start.
    Asynchronous,
    /// As asynchronous, straight from or to the pages of a user: on V3 and V4 the marker is strong-ordered.
    ZeroCopy,
}

/// Sleeps and polls of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollPlan {
    /// Sleep before the first look.
    pub first_sleep: Duration,
    /// Sleeps of [`PollPlan::INTERVAL`] after that, a look behind each.
    pub polls: u64,
}

/// The estimate of a descriptor and what is subtracted from it for the first sleep, in µs, and how many times the
/// estimate is too long (A: the public driver 2.26.5; 2.24.7 waits for 100 times the estimate on V3, too).
const fn estimate_us(arch: Arch) -> (u64, u64, u64) {
    match arch {
        Arch::V2 => (4, 3, 100),
        Arch::V3 | Arch::V4 => (2, 1, 400),
    }
}

/// First sleep of a synchronous copy within the device, in µs.
const DEVICE_SLEEP_US: u64 = 10;

/// A synchronous copy within the device has this fraction of the time.
const DEVICE_FRACTION: u64 = 200;

impl PollPlan {
    /// From one look to the next.
    pub const INTERVAL: Duration = Duration::from_ns(1000);

    /// The plan for a batch of `descriptors`, the marker's included: an estimate of 4 µs (V2) or 2 µs
    /// (V3, V4) for each data descriptor; a first sleep a little shorter than that, 1 µs if
    /// asynchronous; then a look every µs for `100 * (times * estimate - first sleep)` µs, 100 times on V2 and
    /// 400 times on V3 and V4.
    pub fn new(arch: Arch, descriptors: u32, mode: PollMode) -> PollPlan {
        let (a_descriptor, less, times) = estimate_us(arch);
        let estimate = a_descriptor * u64::from(descriptors.saturating_sub(1));
        let first = match mode {
            PollMode::Synchronous => estimate.saturating_sub(less).max(1),
            PollMode::SynchronousDevice => DEVICE_SLEEP_US,
            PollMode::Asynchronous | PollMode::ZeroCopy => 1,
        };
        let rest = (times * estimate).saturating_sub(first) * 100;
        let polls = match mode {
            PollMode::SynchronousDevice => rest / DEVICE_FRACTION,
            _ => rest,
        };
        PollPlan {
            first_sleep: us(first),
            polls,
        }
    }

    /// How long the driver waits at most.
    pub fn longest(&self) -> Duration {
        self.first_sleep + us(self.polls)
    }
}

const fn us(count: u64) -> Duration {
    Duration::from_ns(1000 * count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_plans() {
        use PollMode::*;
        for (arch, descriptors, mode, first, polls) in [
            (Arch::V2, 2, Synchronous, 1, 39_900),
            (Arch::V2, 17, Synchronous, 61, 633_900),
            (Arch::V3, 2, Synchronous, 1, 79_900),
            (Arch::V3, 17, Synchronous, 31, 1_276_900),
            (Arch::V4, 17, Synchronous, 31, 1_276_900),
            (Arch::V4, 17, ZeroCopy, 1, 1_279_900),
            (Arch::V2, 17, Asynchronous, 1, 639_900),
            (Arch::V3, 17, Asynchronous, 1, 1_279_900),
            (Arch::V3, 2, SynchronousDevice, 10, 395),
            (Arch::V3, 2032, SynchronousDevice, 10, 812_395),
            (Arch::V2, 2032, Synchronous, 8121, 80_427_900),
        ] {
            let plan = PollPlan::new(arch, descriptors, mode);
            assert_eq!(
                (plan.first_sleep, plan.polls),
                (us(first), polls),
                "{arch} {descriptors} {mode:?}"
            );
            assert_eq!(plan.longest(), us(first + polls));
        }
        assert_eq!(PollPlan::new(Arch::V3, 0, Synchronous).polls, 0);
    }
}
