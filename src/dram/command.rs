//! The commands a controller sends to its pseudo-channel, and what becomes of a request.

use super::banks::Kind;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// ACT: opens a row.
    Activate,
    /// PRE: closes the row of a bank.
    Precharge,
    /// PREA: closes the rows of all banks.
    PrechargeAll,
    /// RD: reads a column of the open row.
    Read,
    /// WR: writes a column of the open row.
    Write,
    /// REF: refreshes all banks.
    Refresh,
}

impl Op {
    /// The name that data sheets use.
    pub fn name(self) -> &'static str {
        match self {
            Op::Activate => "ACT",
            Op::Precharge => "PRE",
            Op::PrechargeAll => "PREA",
            Op::Read => "RD",
            Op::Write => "WR",
            Op::Refresh => "REF",
        }
    }
}

/// One command. Fields that the command does not have are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What it does.
    pub op: Op,
    /// Bank, counted over all bank groups.
    pub bank: u32,
    /// Row that an activate opens, or that is open.
    pub row: u32,
    /// Column, in accesses.
    pub column: u32,
}

impl Command {
    /// A command to one bank.
    pub(super) fn to(op: Op, bank: usize, row: u32, column: u32) -> Command {
        Command {
            op,
            bank: bank as u32,
            row,
            column,
        }
    }

    /// A command to all banks.
    pub(super) fn whole(op: Op) -> Command {
        Command::to(op, 0, 0, 0)
    }
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The number its sender gave it.
    pub id: u64,
    /// Read or write.
    pub kind: Kind,
    /// Cycle at which the controller accepted it into its queue.
    pub accepted: u64,
    /// Cycle at which the last of its data has passed.
    pub at: u64,
    /// Whether a queued write had its data: none passed between controller and banks.
    pub forwarded: bool,
}

/// Who watches a controller. Both are told in the order of the cycles at which they are decided;
/// [`Done::at`] lies ahead of that.
pub trait Observer {
    /// Whether each refresh of an idle memory is told too, which costs time for each.
    const COMMANDS: bool;
    /// A command is on the bus at `cycle`.
    fn command(&mut self, cycle: u64, command: Command);
    /// The end of a request is known.
    fn done(&mut self, done: Done);
}
