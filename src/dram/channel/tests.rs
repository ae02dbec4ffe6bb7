//! The scheduler of a pseudo-channel, tested.

use super::*;
use proptest::prelude::*;

/// Who wants to see every command, and so has every refresh replayed.
#[derive(Default)]
struct Replayed {
    refreshes: Vec<u64>,
    done: Vec<Done>,
}

impl Observer for Replayed {
    const COMMANDS: bool = true;

    fn command(&mut self, cycle: u64, command: Command) {
        if command.op == Op::Refresh {
            self.refreshes.push(cycle);
        }
    }

    fn done(&mut self, done: Done) {
        self.done.push(done);
    }
}

#[derive(Default)]
struct MadeUpFor(Vec<Done>);

impl Observer for MadeUpFor {
    const COMMANDS: bool = false;

    fn command(&mut self, _: u64, _: Command) {}

    fn done(&mut self, done: Done) {
        self.0.push(done);
    }
}

fn channel(config: &DramConfig) -> Channel {
    Channel::new(config, Arc::new(Rules::new(config)), 3900)
}

proptest! {
    /// The refreshes of an idle time, made up for at once, leave the state and the counters that they leave one
    /// by one, whether the requests are known ahead or come when the channel has been idle.
    #[test]
    fn refreshes_made_up_for_are_those_replayed(
        requests in prop::collection::vec(
            (0u64..1 << 20, any::<bool>(), prop_oneof![0u64..8, 0u64..20_000, 0u64..2_000_000]),
            1..40,
        ),
        ahead in any::<bool>(),
    ) {
        let config = DramConfig::load("hbm2-pseudo-channel", &[]).unwrap();
        let (mut fast, mut slow) = (channel(&config), channel(&config));
        let (mut made_up, mut replayed) = (MadeUpFor::default(), Replayed::default());
        let mut at = 0;
        for (number, (access, write, gap)) in requests.into_iter().enumerate() {
            at += gap;
            let place = config.mapping.place(access * 512).unwrap();
            let kind = if write { Kind::Write } else { Kind::Read };
            if !ahead {
                fast.advance(at, &mut made_up);
                slow.advance(at, &mut replayed);
                at = at.max(fast.from);
            }
            fast.offer(at, place, kind, number as u64);
            slow.offer(at, place, kind, number as u64);
        }
        fast.finish(&mut made_up);
        slow.finish(&mut replayed);
        prop_assert_eq!(made_up.0, replayed.done);
        prop_assert_eq!(format!("{fast:?}"), format!("{slow:?}"));
        // Each is told, once for each interval.
        let due: Vec<u64> = replayed.refreshes.iter().map(|cycle| cycle / 3900).collect();
        let intervals: Vec<u64> = (1..=fast.counts.refreshes).collect();
        prop_assert_eq!(due, intervals);
    }
}
