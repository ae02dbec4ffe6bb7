//! Registers that nothing models: each word holds what is written, and what touches it is counted.

use std::collections::BTreeMap;

/// A word that somebody has touched, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InertWord {
    /// The value: 0 until one is written.
    pub value: u32,
    /// Host reads.
    pub reads: u64,
    /// Writes of the host and of engines.
    pub writes: u64,
}

/// Words by their offset; those that nobody has touched are not there.
#[derive(Clone, Debug, Default)]
pub struct InertWords(BTreeMap<u64, InertWord>);

const WORD_BYTES: usize = 4;

impl InertWords {
    /// What a word holds.
    pub fn get(&self, offset: u64) -> u32 {
        self.0.get(&offset).map_or(0, |word| word.value)
    }

    /// A host read of a word. Returns whether nobody had touched it before.
    pub fn note_read(&mut self, offset: u64) -> bool {
        let word = self.0.entry(offset).or_default();
        word.reads += 1;
        word.reads + word.writes == 1
    }

    /// Writes a word. Returns whether nobody had touched it before.
    pub fn set(&mut self, offset: u64, value: u32) -> bool {
        let word = self.0.entry(offset).or_default();
        word.value = value;
        word.writes += 1;
        word.reads + word.writes == 1
    }

    /// Those that somebody has touched, ascending.
    pub fn touched(&self) -> impl Iterator<Item = (u64, InertWord)> {
        self.0.iter().map(|(offset, word)| (*offset, *word))
    }

    /// Reads whole words from `offset` on.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) {
        for (n, bytes) in (0..).zip(out.chunks_mut(WORD_BYTES)) {
            let word = self.get(offset + n * WORD_BYTES as u64).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
    }

    /// Writes whole words from `offset` on.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (n, bytes) in (0..).zip(bytes.as_chunks::<WORD_BYTES>().0) {
            self.set(offset + n * WORD_BYTES as u64, u32::from_le_bytes(*bytes));
        }
    }
}
