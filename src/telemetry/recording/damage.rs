//! What can be wrong with a recording, with the place.

use std::fmt;
use std::io;

/// From where on a recording cannot be used. What is before that is whole.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// The file ends, or holds nothing but unused room, where more should follow: the run was killed or
    /// is still under way, or the file was cut off between two blocks.
    #[error("no complete block at byte {offset}: the run did not finish, or the file is truncated")]
    Unfinished {
        /// Where the next block should begin.
        offset: u64,
    },
    /// The file ends within a block.
    #[error(
        "block at byte {offset} is truncated: it should have {wanted} bytes of payload, but {left} are left"
    )]
    Cut {
        /// Where the block begins.
        offset: u64,
        /// Bytes of its payload.
        wanted: u32,
        /// How many of them are there.
        left: u64,
    },
    /// A block holds what was not written there.
    #[error("block at byte {offset} is corrupted: {what}")]
    Corrupt {
        /// Where it begins.
        offset: u64,
        /// What is wrong.
        what: Corruption,
    },
    /// The file cannot be read.
    #[error("cannot read the block at byte {offset}: {reason}")]
    Unreadable {
        /// Where it begins.
        offset: u64,
        /// Why not.
        reason: io::Error,
    },
}

/// What is wrong with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// It does not begin as blocks do.
    Magic(u32),
    /// Its checksum does not match.
    Checksum {
        /// The one stored.
        stored: u32,
        /// That of what is there.
        found: u32,
    },
    /// It is not the block that comes next.
    Number {
        /// Its number.
        found: u32,
        /// That of the next one.
        wanted: u32,
    },
    /// It is of no known kind.
    Kind(u32),
    /// It is of a kind that does not belong there.
    Order,
    /// What it holds makes no sense.
    Payload,
    /// It comes after the last one.
    AfterEnd,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Corruption::Magic(found) => write!(f, "it begins with {found:#010x}"),
            Corruption::Checksum { stored, found } => {
                write!(
                    f,
                    "its stored checksum is {stored:#010x}, the computed one {found:#010x}"
                )
            }
            Corruption::Number { found, wanted } => {
                write!(f, "its number is {found} instead of {wanted}")
            }
            Corruption::Kind(kind) => write!(f, "its kind is {kind}, not 1, 2 or 3"),
            Corruption::Order => f.write_str("a block of its kind is not allowed there"),
            Corruption::Payload => f.write_str("its content is invalid"),
            Corruption::AfterEnd => f.write_str("it follows the end block"),
        }
    }
}
