//! Reading a recording.

use super::block::{Block, Blocks, Kind};
use super::damage::{Corruption, Damage};
use super::{FORMAT, Header, Transaction};
use crate::sim::Instant;
use crate::system::Activity;
use crate::telemetry::End;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Why a file cannot be used as a recording at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("cannot read recording {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: io::Error,
    },
    /// Its first block, which says what was run, is damaged or no such block.
    #[error("{} is not a recording made by udma-sim run --record, or is damaged: {damage}", path.display())]
    NoHeader {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        damage: Damage,
    },
    /// It is of another version.
    #[error("{} has format {found}; this version reads only format {FORMAT}; record it again", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}

/// A recording, read from its start: an iterator over its transactions. It ends after the last one or
/// with the damage that hides the rest.
pub struct Recording {
    header: Header,
    blocks: Blocks<BufReader<File>>,
    /// The block being read, and how much of it has been.
    block: Block,
    read: usize,
    /// Transactions read.
    number: u64,
    end: Option<End>,
    damaged: bool,
}

/// Whether a file is to be taken for a recording: it begins like one.
pub fn is_recording(path: &Path) -> bool {
    let mut start = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && super::block::is_magic(start)
}

impl Recording {
    /// Opens a recording and reads what was run.
    ///
    /// # Errors
    /// [`OpenError`]: without its first block, a recording is of no use.
    pub fn open(path: &Path) -> Result<Recording, OpenError> {
        let unreadable = |reason| OpenError::Unreadable {
            path: path.to_path_buf(),
            reason,
        };
        let no_header = |damage| OpenError::NoHeader {
            path: path.to_path_buf(),
            damage,
        };
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()));
        }
        let mut blocks = Blocks::new(BufReader::new(file), metadata.len());
        let block = blocks.next().map_err(no_header)?;
        let corrupt = |what| Damage::Corrupt { offset: 0, what };
        if block.kind != Kind::Header {
            return Err(no_header(corrupt(Corruption::Order)));
        }
        let nonsense = |_| no_header(corrupt(Corruption::Payload));
        let (format, rest) = postcard::take_from_bytes(&block.payload).map_err(nonsense)?;
        if format != FORMAT {
            return Err(OpenError::Format {
                path: path.to_path_buf(),
                found: format,
            });
        }
        let header = postcard::from_bytes(rest).map_err(nonsense)?;
        Ok(Recording {
            header,
            read: block.payload.len(),
            block,
            blocks,
            number: 0,
            end: None,
            damaged: false,
        })
    }

    /// What was run.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where the run ended, once all transactions have been read.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    fn read_next(&mut self) -> Result<Option<Transaction>, Damage> {
        while self.read == self.block.payload.len() {
            if self.end.is_some() {
                return Ok(None);
            }
            self.block = self.blocks.next()?;
            self.read = 0;
            let offset = self.block.offset;
            let corrupt = |what| Damage::Corrupt { offset, what };
            match self.block.kind {
                Kind::Header => return Err(corrupt(Corruption::Order)),
                Kind::Transactions => {}
                Kind::End => {
                    let end = postcard::from_bytes(&self.block.payload);
                    self.end = Some(end.map_err(|_| corrupt(Corruption::Payload))?);
                    self.read = self.block.payload.len();
                    if !self.blocks.at_end() {
                        let (offset, what) = (self.blocks.offset(), Corruption::AfterEnd);
                        return Err(Damage::Corrupt { offset, what });
                    }
                }
            }
        }
        let rest = &self.block.payload[self.read..];
        let offset = self.block.offset;
        let ((at, activity), rest) = postcard::take_from_bytes::<(Instant, Activity)>(rest)
            .map_err(|_| Damage::Corrupt {
                offset,
                what: Corruption::Payload,
            })?;
        self.read = self.block.payload.len() - rest.len();
        let number = self.number;
        self.number += 1;
        Ok(Some(Transaction {
            number,
            offset,
            at,
            activity,
        }))
    }
}

impl Iterator for Recording {
    type Item = Result<Transaction, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.damaged {
            return None;
        }
        let next = self.read_next();
        self.damaged = next.is_err();
        next.transpose()
    }
}
