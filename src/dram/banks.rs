//! The banks of a pseudo-channel: which rows are open, and from when on each command is legal.
//!
//! Every timing constraint is kept as the first cycle at which a command may follow: of the bank,
//! of its bank group, of the whole pseudo-channel. The command is legal from the latest of them.

use super::command::{Command, Op};
use super::config::DramConfig;
use super::mapping::Run;
use super::parameters::{MAX_BANKS, Timing};
use std::sync::Arc;

const BANKS: usize = MAX_BANKS as usize;
/// The window of nFAW holds this many activates.
const FOUR: usize = 4;

/// Reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// From the memory.
    Read,
    /// To the memory.
    Write,
}

impl Kind {
    /// The other kind.
    pub fn other(self) -> Kind {
        match self {
            Kind::Read => Kind::Write,
            Kind::Write => Kind::Read,
        }
    }
}

/// State of all banks of a pseudo-channel. What one command looks at lies side by side: with hundreds of
/// pseudo-channels it comes from the second cache.
#[derive(Clone, Debug)]
pub(super) struct Banks {
    rules: Arc<Rules>,
    /// Banks with an open row, a bit each.
    open: u64,
    /// First legal cycle of any column command, by kind: nCCDS, nWTRS, nRTW; of any activate: nRRDS, nFAW.
    column: [u64; 2],
    act: u64,
    /// First cycle at which an activate is legal as far as each bank goes.
    all_act: u64,
    /// The last activates, a ring; each as the first cycle outside of its window.
    windows: [u64; FOUR],
    window: usize,
    groups: [Group; BANKS],
    banks: [Bank; BANKS],
}

/// What holds for all pseudo-channels of a memory: one copy for all of them, which stays in the first cache.
#[derive(Debug)]
pub struct Rules {
    timing: Timing,
    /// Bank groups are consecutive banks.
    group_shift: u32,
    distances: [Distances; 2],
    /// For [`Banks::at_most`]: a first access, and each.
    at_most: (u64, u64),
}

impl Rules {
    pub fn new(config: &DramConfig) -> Rules {
        let t = &config.timing;
        let rows = t.act_to_act.max(t.precharge + t.act_to_precharge) + t.four_acts;
        let recovery = t.write_latency + t.burst + t.write_recovery.max(t.write_to_read_long);
        let first = rows + recovery + t.act_to_read.max(t.act_to_write);
        Rules {
            timing: t.clone(),
            group_shift: config.device.banks.trailing_zeros(),
            distances: [Kind::Read, Kind::Write].map(|kind| Distances::new(kind, t)),
            at_most: (first.into(), t.column_long.max(t.act_long).into()),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Bank {
    /// First legal cycle of an activate (closed) or precharge (open).
    act: u64,
    precharge: u64,
    /// First legal cycle of a column command, by kind: nRCD.
    column: [u64; 2],
    /// The row that is open, or was last.
    row: u32,
}

/// First legal cycles in a bank group.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// Of a column command, by kind: nCCDL, nWTRL.
    column: [u64; 2],
    /// Of an activate: nRRDL.
    act: u64,
}

/// Cycles from a column command of one kind until others are legal.
#[derive(Clone, Copy, Debug)]
struct Distances {
    /// One of the same kind to another bank group, to the same.
    short: u64,
    long: u64,
    /// One of the other kind to another bank group, to the same.
    turn_short: u64,
    turn_long: u64,
    /// A precharge of the bank.
    precharge: u64,
    /// Its data has passed.
    end: u64,
}

impl Distances {
    fn new(kind: Kind, t: &Timing) -> Distances {
        let cycles = |sum: u32| u64::from(sum);
        let (latency, turn_short, turn_long, precharge) = match kind {
            Kind::Read => (
                t.read_latency,
                t.read_to_write,
                t.read_to_write,
                t.read_to_precharge,
            ),
            Kind::Write => {
                let end = t.write_latency + t.burst;
                (
                    t.write_latency,
                    end + t.write_to_read_short,
                    end + t.write_to_read_long,
                    end + t.write_recovery,
                )
            }
        };
        Distances {
            short: cycles(t.column_short),
            long: cycles(t.column_long),
            turn_short: cycles(turn_short),
            turn_long: cycles(turn_long),
            precharge: cycles(precharge),
            end: cycles(latency + t.burst),
        }
    }
}

impl Banks {
    pub fn new(rules: Arc<Rules>) -> Banks {
        Banks {
            open: 0,
            column: [0; 2],
            act: 0,
            all_act: 0,
            windows: [0; FOUR],
            window: 0,
            groups: [Group::default(); BANKS],
            banks: [Bank::default(); BANKS],
            rules,
        }
    }

    /// Banks with an open row, a bit each.
    #[inline]
    pub fn open(&self) -> u64 {
        self.open
    }

    /// Whether this row of the bank is open.
    #[inline]
    pub fn is_open(&self, bank: usize, row: u32) -> bool {
        self.open >> bank & 1 != 0 && self.banks[bank].row == row
    }

    /// The row that is open, or was last.
    #[inline]
    pub fn row(&self, bank: usize) -> u32 {
        self.banks[bank].row
    }

    /// Cycles for which a column command keeps others from the bus.
    #[inline]
    pub fn column_slot(&self) -> u64 {
        u64::from(self.rules.timing.column_short)
    }

    #[inline]
    fn group(&self, bank: usize) -> &Group {
        &self.groups[bank >> self.rules.group_shift]
    }

    /// Cycles between two activates of a bank: nRC.
    pub fn row_cycle(&self) -> u64 {
        u64::from(self.rules.timing.act_to_act)
    }

    /// Cycles in which `accesses` column commands of one kind can certainly be sent, rows that have to be changed
    /// first included, on a bus that is free.
    #[inline]
    pub fn at_most(&self, accesses: u64) -> u64 {
        let (first, each) = self.rules.at_most;
        first + accesses * each
    }

    /// First legal cycle of a column command to any bank.
    #[inline]
    pub fn any_column_from(&self, kind: Kind) -> u64 {
        self.column[kind as usize]
    }

    /// First legal cycle of a column command to the open row of a bank, as far as bank and bank
    /// group go.
    #[inline]
    pub fn column_from(&self, kind: Kind, bank: usize) -> u64 {
        let group = self.group(bank).column[kind as usize];
        self.banks[bank].column[kind as usize].max(group)
    }

    /// First legal cycle of an activate of a closed bank.
    #[inline]
    pub fn act_from(&self, bank: usize) -> u64 {
        let group = self.group(bank).act;
        self.banks[bank].act.max(group).max(self.act)
    }

    /// First legal cycle of a precharge of an open bank.
    #[inline]
    pub fn precharge_from(&self, bank: usize) -> u64 {
        self.banks[bank].precharge
    }

    /// Opens a row. `at` is legal.
    pub fn activate(&mut self, at: u64, bank: usize, row: u32) {
        debug_assert!(at >= self.act_from(bank) && self.open >> bank & 1 == 0);
        let t = &self.rules.timing;
        self.open |= 1 << bank;
        self.banks[bank] = Bank {
            act: at + u64::from(t.act_to_act),
            precharge: at + u64::from(t.act_to_precharge),
            column: [
                at + u64::from(t.act_to_read),
                at + u64::from(t.act_to_write),
            ],
            row,
        };
        self.all_act = self.all_act.max(at + u64::from(t.act_to_act));
        self.groups[bank >> self.rules.group_shift].act = at + u64::from(t.act_long);
        self.windows[self.window] = at + u64::from(t.four_acts);
        self.window = (self.window + 1) % FOUR;
        // The oldest of the last four must have left the window before a fifth may come.
        let window = self.windows[self.window];
        self.act = window.max(at + u64::from(t.act_short));
    }

    /// Closes the open row. `at` is legal.
    pub fn precharge(&mut self, at: u64, bank: usize) {
        debug_assert!(at >= self.precharge_from(bank) && self.open >> bank & 1 != 0);
        self.open &= !(1 << bank);
        let from = at + u64::from(self.rules.timing.precharge);
        let bank = &mut self.banks[bank];
        bank.act = bank.act.max(from);
        self.all_act = self.all_act.max(bank.act);
    }

    /// Reads or writes a column of the open row. `at` is legal. Returns the cycle after the last
    /// one of its data.
    #[inline]
    pub fn column(&mut self, at: u64, bank: usize, kind: Kind) -> u64 {
        debug_assert!(at >= self.column_from(kind, bank) && at >= self.any_column_from(kind));
        self.send_column(at, bank, kind);
        self.keep_bus(at, kind)
    }

    /// What a column command does to the bank and its group.
    #[inline]
    fn send_column(&mut self, at: u64, bank: usize, kind: Kind) {
        let distances = &self.rules.distances[kind as usize];
        let (same, other) = (kind as usize, kind.other() as usize);
        let group = &mut self.groups[bank >> self.rules.group_shift];
        let bank = &mut self.banks[bank];
        group.column[same] = at + distances.long;
        // A turn of the bus may lie nearer than an earlier one has set it already.
        group.column[other] = group.column[other].max(at + distances.turn_long);
        bank.precharge = bank.precharge.max(at + distances.precharge);
    }

    /// What it does to the bus. Returns the cycle after the last of its data.
    #[inline]
    fn keep_bus(&mut self, at: u64, kind: Kind) -> u64 {
        let distances = &self.rules.distances[kind as usize];
        let (same, other) = (kind as usize, kind.other() as usize);
        self.column[same] = at + distances.short;
        self.column[other] = self.column[other].max(at + distances.turn_short);
        at + distances.end
    }

    /// Reads or writes a column of the open row of each of a run's banks, one after the other, each as
    /// early as it is legal but not before `from`. Returns the cycle of the last command, and that after the
    /// last of its data. Most often time grows with the banks, not with the accesses.
    #[inline]
    pub fn columns(&mut self, from: u64, run: Run, kind: Kind) -> (u64, u64) {
        let Distances { short, long, .. } = self.rules.distances[kind as usize];
        let (accesses, cycle) = (run.accesses(), run.cycle());
        let mut next = self.any_column_from(kind).max(from);
        let mut at = next;
        if accesses >= 2 * cycle && accesses & (cycle - 1) == 0 && cycle * short >= long {
            for bank in run.first_cycle() {
                next = next.max(self.column_from(kind, bank)) + short;
            }
            // From here on nothing but the bus holds up the next: the last command to its bank group is a cycle
            // ago. What comes before the last cycle leaves no trace.
            next += (accesses - 2 * cycle) * short;
            for bank in run.first_cycle() {
                at = next;
                self.send_column(at, bank, kind);
                next = at + short;
            }
        } else {
            for bank in run.banks() {
                at = next.max(self.column_from(kind, bank));
                self.send_column(at, bank, kind);
                next = at + short;
            }
        }
        (at, self.keep_bus(at, kind))
    }

    /// Closes every row and refreshes, from `from` on as early as it is legal; tells each command
    /// with its cycle. Nothing else may happen until the refresh has ended, whose cycle is returned.
    pub fn refresh(&mut self, from: u64, mut tell: impl FnMut(u64, Command)) -> u64 {
        let mut at = from;
        if self.open != 0 {
            for bank in bits(self.open) {
                at = at.max(self.banks[bank].precharge);
            }
            tell(at, Command::whole(Op::PrechargeAll));
            for bank in bits(self.open) {
                self.precharge(at, bank);
            }
        }
        at = at.max(self.all_act);
        tell(at, Command::whole(Op::Refresh));
        let end = at + u64::from(self.rules.timing.refresh);
        self.act = self.act.max(end);
        self.all_act = end;
        end
    }

    /// First cycle at which a refresh of closed banks is legal.
    pub fn idle_refresh_from(&self) -> u64 {
        self.all_act
    }
}

/// The numbers of the bits that are set, lowest first.
#[inline]
pub(super) fn bits(mask: u64) -> Bits {
    Bits(mask)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What anybody can see of the banks.
    fn seen(banks: &Banks, count: usize) -> Vec<u64> {
        let kinds = [Kind::Read, Kind::Write];
        let any = kinds.map(|kind| banks.any_column_from(kind));
        let each = (0..count).flat_map(|bank| {
            let [read, write] = kinds.map(|kind| banks.column_from(kind, bank));
            [
                read,
                write,
                banks.act_from(bank),
                banks.precharge_from(bank),
            ]
        });
        any.into_iter().chain(each).collect()
    }

    proptest! {
        /// A run leaves behind what its commands one by one do, whatever came before it.
        #[test]
        fn a_run_is_its_commands(
            settings in prop::sample::select(&[
                ["mapping.order=row bank column:3 bank_group:1 channel column bank_group", "timing.nCCDL=4"],
                ["mapping.order=row bank column:3 bank_group:1 channel column bank_group", "timing.nCCDL=7"],
                ["mapping.order=row bank column:3 channel column bank_group", "timing.nCCDL=4"],
                ["mapping.order=row bank bank_group column", "timing.nCCDL=4"],
            ][..]),
            runs in prop::collection::vec((0u64..32, 0u64..32, any::<bool>(), 0u64..60), 1..20),
        ) {
            let config = DramConfig::load("hbm2-pseudo-channel", &settings.map(String::from)).unwrap();
            let rules = Arc::new(Rules::new(&config));
            let (mut fast, mut slow) = (Banks::new(rules.clone()), Banks::new(rules.clone()));
            let mut from = 0;
            let count = config.device.all_banks() as usize;
            for bank in 0..count {
                from = fast.act_from(bank);
                fast.activate(from, bank, 0);
                slow.activate(from, bank, 0);
            }
            for (a, b, write, gap) in runs {
                from += gap;
                let kind = if write { Kind::Write } else { Kind::Read };
                let (first, last) = (a.min(b), a.max(b));
                let addr = first * u64::from(config.device.access_bytes);
                let block = config.mapping.block(addr).unwrap();
                let Some(run) = config.mapping.run(first, last, block) else {
                    continue;
                };
                let got = fast.columns(from, run, kind);
                let mut expected = (from, from);
                for bank in run.banks() {
                    let at = slow.any_column_from(kind).max(slow.column_from(kind, bank)).max(from);
                    expected = (at, slow.column(at, bank, kind));
                }
                prop_assert_eq!(got, expected);
                prop_assert_eq!(seen(&fast, count), seen(&slow, count));
            }
        }
    }
}
