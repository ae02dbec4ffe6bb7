//! The banks of a pseudo-channel: which rows are open, and from when on each command is legal.
//!
//! Every timing constraint is kept as the first cycle at which a command may follow: of the bank,
//! of its bank group, of the whole pseudo-channel. The command is legal from the latest of them.

use super::command::{Command, Op};
use super::config::{DramConfig, MAX_BANKS, Timing};

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

/// State of all banks of a pseudo-channel.
#[derive(Clone, Debug)]
pub(super) struct Banks {
    timing: Timing,
    /// Bank groups are consecutive banks.
    group_shift: u32,
    all: u64,
    /// Banks with an open row, a bit each.
    open: u64,
    rows: [u32; BANKS],
    /// First legal cycle, by bank: of an activate (closed) or precharge (open).
    act: [u64; BANKS],
    precharge: [u64; BANKS],
    /// First legal cycle of a column command, by kind and bank: nRCD.
    column: [[u64; BANKS]; 2],
    /// The same by bank group: nCCDL, nWTRL; nRRDL.
    group_column: [[u64; BANKS]; 2],
    group_act: [u64; BANKS],
    /// The same of the pseudo-channel: nCCDS, nWTRS, nRTW; nRRDS, nFAW.
    channel_column: [u64; 2],
    channel_act: u64,
    /// The last activates, a ring; each as the first cycle outside of its window.
    windows: [u64; FOUR],
    window: usize,
}

impl Banks {
    pub fn new(config: &DramConfig) -> Banks {
        let banks = config.device.all_banks();
        Banks {
            timing: config.timing.clone(),
            group_shift: config.device.banks.trailing_zeros(),
            all: u64::MAX >> (u64::BITS - banks),
            open: 0,
            rows: [0; BANKS],
            act: [0; BANKS],
            precharge: [0; BANKS],
            column: [[0; BANKS]; 2],
            group_column: [[0; BANKS]; 2],
            group_act: [0; BANKS],
            channel_column: [0; 2],
            channel_act: 0,
            windows: [0; FOUR],
            window: 0,
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
        self.open >> bank & 1 != 0 && self.rows[bank] == row
    }

    /// The row that is open, or was last.
    #[inline]
    pub fn row(&self, bank: usize) -> u32 {
        self.rows[bank]
    }

    /// Cycles for which a column command keeps others from the bus.
    #[inline]
    pub fn column_slot(&self) -> u64 {
        u64::from(self.timing.column_short)
    }

    #[inline]
    fn group(&self, bank: usize) -> usize {
        bank >> self.group_shift
    }

    /// Cycles between two activates of a bank: nRC.
    pub fn row_cycle(&self) -> u64 {
        u64::from(self.timing.act_to_act)
    }

    /// Cycles in which `accesses` column commands of one kind can certainly be sent, rows that have to be changed
    /// first included, on a bus that is free.
    pub fn at_most(&self, accesses: u64) -> u64 {
        let t = &self.timing;
        let rows = t.act_to_act.max(t.precharge + t.act_to_precharge) + t.four_acts;
        let recovery = t.write_latency + t.burst + t.write_recovery.max(t.write_to_read_long);
        let first = rows + recovery + t.act_to_read.max(t.act_to_write);
        u64::from(first) + accesses * u64::from(t.column_long.max(t.act_long))
    }

    /// First legal cycle of a column command to any bank.
    #[inline]
    pub fn any_column_from(&self, kind: Kind) -> u64 {
        self.channel_column[kind as usize]
    }

    /// First legal cycle of a column command to the open row of a bank, as far as bank and bank
    /// group go.
    #[inline]
    pub fn column_from(&self, kind: Kind, bank: usize) -> u64 {
        let group = self.group_column[kind as usize][self.group(bank)];
        self.column[kind as usize][bank].max(group)
    }

    /// First legal cycle of an activate of a closed bank.
    #[inline]
    pub fn act_from(&self, bank: usize) -> u64 {
        let group = self.group_act[self.group(bank)];
        self.act[bank].max(group).max(self.channel_act)
    }

    /// First legal cycle of a precharge of an open bank.
    #[inline]
    pub fn precharge_from(&self, bank: usize) -> u64 {
        self.precharge[bank]
    }

    /// Opens a row. `at` is legal.
    pub fn activate(&mut self, at: u64, bank: usize, row: u32) {
        debug_assert!(at >= self.act_from(bank) && self.open >> bank & 1 == 0);
        let t = &self.timing;
        self.open |= 1 << bank;
        self.rows[bank] = row;
        self.act[bank] = at + u64::from(t.act_to_act);
        self.precharge[bank] = at + u64::from(t.act_to_precharge);
        self.column[Kind::Read as usize][bank] = at + u64::from(t.act_to_read);
        self.column[Kind::Write as usize][bank] = at + u64::from(t.act_to_write);
        let group = self.group(bank);
        self.group_act[group] = at + u64::from(self.timing.act_long);
        self.windows[self.window] = at + u64::from(self.timing.four_acts);
        self.window = (self.window + 1) % FOUR;
        // The oldest of the last four must have left the window before a fifth may come.
        let window = self.windows[self.window];
        self.channel_act = window.max(at + u64::from(self.timing.act_short));
    }

    /// Closes the open row. `at` is legal.
    pub fn precharge(&mut self, at: u64, bank: usize) {
        debug_assert!(at >= self.precharge[bank] && self.open >> bank & 1 != 0);
        self.open &= !(1 << bank);
        let from = at + u64::from(self.timing.precharge);
        self.act[bank] = self.act[bank].max(from);
    }

    /// Reads or writes a column of the open row. `at` is legal. Returns the cycle after the last
    /// one of its data.
    #[inline]
    pub fn column(&mut self, at: u64, bank: usize, kind: Kind) -> u64 {
        debug_assert!(at >= self.column_from(kind, bank) && at >= self.any_column_from(kind));
        let t = &self.timing;
        let group = bank >> self.group_shift;
        let same = kind as usize;
        let other = kind.other() as usize;
        let (short, long) = (
            at + u64::from(t.column_short),
            at + u64::from(t.column_long),
        );
        let (end, precharge, turn, turn_long);
        match kind {
            Kind::Read => {
                end = at + u64::from(t.read_latency + t.burst);
                precharge = at + u64::from(t.read_to_precharge);
                turn = at + u64::from(t.read_to_write);
                turn_long = turn;
            }
            Kind::Write => {
                end = at + u64::from(t.write_latency + t.burst);
                precharge = end + u64::from(t.write_recovery);
                turn = end + u64::from(t.write_to_read_short);
                turn_long = end + u64::from(t.write_to_read_long);
            }
        }
        self.channel_column[same] = short;
        self.group_column[same][group] = long;
        // A turn of the bus may lie nearer than an earlier one has set it already.
        self.channel_column[other] = self.channel_column[other].max(turn);
        self.group_column[other][group] = self.group_column[other][group].max(turn_long);
        self.precharge[bank] = self.precharge[bank].max(precharge);
        end
    }

    /// Closes every row and refreshes, from `from` on as early as it is legal; tells each command
    /// with its cycle. Nothing else may happen until the refresh has ended, whose cycle is returned.
    pub fn refresh(&mut self, from: u64, mut tell: impl FnMut(u64, Command)) -> u64 {
        let mut at = from;
        if self.open != 0 {
            for bank in bits(self.open) {
                at = at.max(self.precharge[bank]);
            }
            tell(at, Command::whole(Op::PrechargeAll));
            for bank in bits(self.open) {
                self.precharge(at, bank);
            }
        }
        for bank in bits(self.all) {
            at = at.max(self.act[bank]);
        }
        tell(at, Command::whole(Op::Refresh));
        let end = at + u64::from(self.timing.refresh);
        for bank in bits(self.all) {
            self.act[bank] = end;
        }
        end
    }

    /// First cycle at which a refresh of closed banks is legal.
    pub fn idle_refresh_from(&self) -> u64 {
        bits(self.all).map(|bank| self.act[bank]).max().unwrap_or(0)
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
