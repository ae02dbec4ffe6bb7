//! The frame of a block: what it is, which one, how long, and a checksum over all of it.

use super::damage::{Corruption, Damage};
use std::io::{self, Read};

/// Every block begins with it.
const MAGIC: [u8; 4] = *b"UDMR";

/// Bytes of a frame before its payload: magic, kind, number, payload bytes, checksum, each of four
/// bytes, little-endian.
pub(super) const HEAD_BYTES: usize = 20;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// What was run. The first block.
    Header = 1,
    /// Transactions.
    Transactions = 2,
    /// Where the run ended. The last block.
    End = 3,
}

/// A block that has been read.
pub(super) struct Block {
    /// Where it begins in the file.
    pub offset: u64,
    pub kind: Kind,
    pub payload: Vec<u8>,
}

/// The head of a block with this payload.
pub(super) fn head(kind: Kind, number: u32, payload: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&MAGIC);
    head[4..8].copy_from_slice(&(kind as u32).to_le_bytes());
    head[8..12].copy_from_slice(&number.to_le_bytes());
    // Checked by who writes it.
    head[12..16].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    let checksum = checksum(&head[..16], payload);
    head[16..].copy_from_slice(&checksum.to_le_bytes());
    head
}

/// Whether a file that begins so is made of blocks.
pub(super) fn is_magic(start: [u8; 4]) -> bool {
    start == MAGIC
}

/// CRC-32 (IEEE 802.3).
fn checksum(head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(payload);
    hasher.finalize()
}

/// Reads blocks one after the other.
pub(super) struct Blocks<R> {
    file: R,
    /// Bytes of the file.
    bytes: u64,
    /// Where the next block begins, and its number.
    offset: u64,
    number: u32,
}

impl<R: Read> Blocks<R> {
    /// Of a file of so many bytes.
    pub fn new(file: R, bytes: u64) -> Blocks<R> {
        Blocks {
            file,
            bytes,
            offset: 0,
            number: 0,
        }
    }

    /// Where the next block begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether nothing is left.
    pub fn at_end(&self) -> bool {
        self.offset == self.bytes
    }

    /// The next block.
    pub fn next(&mut self) -> Result<Block, Damage> {
        let offset = self.offset;
        let unreadable = |reason: io::Error| match reason.kind() {
            io::ErrorKind::UnexpectedEof => Damage::Unfinished { offset },
            _ => Damage::Unreadable { offset, reason },
        };
        let corrupt = |what| Damage::Corrupt { offset, what };
        let left = self.bytes.saturating_sub(offset);
        if left < HEAD_BYTES as u64 {
            return Err(Damage::Unfinished { offset });
        }
        let mut head = [0; HEAD_BYTES];
        self.file.read_exact(&mut head).map_err(unreadable)?;
        if head == [0; HEAD_BYTES] {
            return Err(Damage::Unfinished { offset });
        }
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if !is_magic([head[0], head[1], head[2], head[3]]) {
            return Err(corrupt(Corruption::Magic(word(0))));
        }
        let len = word(12);
        if u64::from(len) > left - HEAD_BYTES as u64 {
            return Err(Damage::Cut {
                offset,
                wanted: len,
                left: left - HEAD_BYTES as u64,
            });
        }
        let mut payload = vec![0; len as usize];
        self.file.read_exact(&mut payload).map_err(unreadable)?;
        let (stored, found) = (word(16), checksum(&head[..16], &payload));
        if stored != found {
            return Err(corrupt(Corruption::Checksum { stored, found }));
        }
        if word(8) != self.number {
            let (found, wanted) = (word(8), self.number);
            return Err(corrupt(Corruption::Number { found, wanted }));
        }
        let kind = match word(4) {
            1 => Kind::Header,
            2 => Kind::Transactions,
            3 => Kind::End,
            other => return Err(corrupt(Corruption::Kind(other))),
        };
        self.offset += HEAD_BYTES as u64 + u64::from(len);
        self.number += 1;
        Ok(Block {
            offset,
            kind,
            payload,
        })
    }
}
