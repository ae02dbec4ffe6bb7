//! Checksums over a copy: the CME's CRCs, sums and Adler-32, with their initial values, exclusive-ors and
//! swaps (`docs/compute.md`, "Checksums").

use crate::desc::{CmeOp, SOURCE_SWAP_BYTES};
use adler2::Adler32;
use crc::{Algorithm, Crc, Table, Width};

/// Entries of a queue's cache of checksums.
pub const CACHE_SLOTS: usize = 8;

/// Which checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// CRC-32, polynomial 0x04c11db7, reflected: Ethernet's.
    Crc32,
    /// CRC-32C, polynomial 0x1edc6f41, reflected: iSCSI's.
    Crc32c,
    /// CRC-16, polynomial 0x8bb7: T10-DIF's. Which CRC-16 it is is modelled (C).
    Crc16,
    /// CRC-8, polynomial 0x07. Which CRC-8 it is is modelled (C).
    Crc8,
    /// Adler-32.
    Adler32,
    /// One's complement sum of 16-bit little-endian words: modelled (C).
    Sum16,
    /// One's complement sum of 32-bit little-endian words: modelled (C).
    Sum32,
}

/// The polynomial division alone: initial value and exclusive-ors come with the packet.
const fn division<W: Width + Copy>(width: u8, poly: W, zero: W, reflected: bool) -> Algorithm<W> {
    Algorithm {
        width,
        poly,
        init: zero,
        refin: reflected,
        refout: reflected,
        xorout: zero,
        check: zero,
        residue: zero,
    }
}

static CRC32: Crc<u32, Table<16>> =
    Crc::<u32, Table<16>>::new(&const { division(32, 0x04c1_1db7, 0, true) });
static CRC32C: Crc<u32, Table<16>> =
    Crc::<u32, Table<16>>::new(&const { division(32, 0x1edc_6f41, 0, true) });
static CRC16: Crc<u16, Table<16>> =
    Crc::<u16, Table<16>>::new(&const { division(16, 0x8bb7, 0, false) });
static CRC8: Crc<u8, Table<16>> = Crc::<u8, Table<16>>::new(&const { division(8, 0x07, 0, false) });

/// Modulus of Adler-32.
const ADLER_MODULUS: u32 = 65521;

impl Checksum {
    /// The checksum that an op asks for; `None` for a copy.
    pub const fn of(op: CmeOp) -> Option<Checksum> {
        match op {
            CmeOp::Copy => None,
            CmeOp::Crc32 => Some(Checksum::Crc32),
            CmeOp::Crc32c => Some(Checksum::Crc32c),
            CmeOp::Checksum16 => Some(Checksum::Sum16),
            CmeOp::Checksum32 => Some(Checksum::Sum32),
            CmeOp::Crc16 => Some(Checksum::Crc16),
            CmeOp::Adler32 => Some(Checksum::Adler32),
            CmeOp::Crc8 => Some(Checksum::Crc8),
        }
    }

    /// The op that asks for it.
    const fn op(self) -> CmeOp {
        match self {
            Checksum::Crc32 => CmeOp::Crc32,
            Checksum::Crc32c => CmeOp::Crc32c,
            Checksum::Sum16 => CmeOp::Checksum16,
            Checksum::Sum32 => CmeOp::Checksum32,
            Checksum::Crc16 => CmeOp::Crc16,
            Checksum::Adler32 => CmeOp::Adler32,
            Checksum::Crc8 => CmeOp::Crc8,
        }
    }

    /// Bytes of its value in memory.
    pub const fn bytes(self) -> u32 {
        self.op().value_bytes()
    }

    /// The value after `data` of one that was `value` before.
    pub fn update(self, value: u32, data: &[u8]) -> u32 {
        match self {
            Checksum::Crc32 => reflected(&CRC32, value, data),
            Checksum::Crc32c => reflected(&CRC32C, value, data),
            Checksum::Crc16 => {
                let mut digest = CRC16.digest_with_initial(value as u16);
                digest.update(data);
                digest.finalize().into()
            }
            Checksum::Crc8 => {
                let mut digest = CRC8.digest_with_initial(value as u8);
                digest.update(data);
                digest.finalize().into()
            }
            Checksum::Adler32 => {
                let (a, b) = (value & 0xffff, value >> 16);
                let reduced = ((b % ADLER_MODULUS) << 16) | (a % ADLER_MODULUS);
                let mut adler = Adler32::from_checksum(reduced);
                adler.write_slice(data);
                adler.checksum()
            }
            Checksum::Sum16 => ones_complement_sum(data, 2, value),
            Checksum::Sum32 => ones_complement_sum(data, 4, value),
        }
    }
}

/// A reflected division. The crate reflects initial values; ours are what the register holds.
fn reflected(crc: &'static Crc<u32, Table<16>>, value: u32, data: &[u8]) -> u32 {
    let mut digest = crc.digest_with_initial(value.reverse_bits());
    digest.update(data);
    digest.finalize()
}

/// Sum of little-endian words of `width` bytes with end-around carry; a last partial word is filled up
/// with zeros.
fn ones_complement_sum(data: &[u8], width: usize, value: u32) -> u32 {
    let mut sum = u64::from(value);
    for chunk in data.chunks(width) {
        let mut word = [0; 4];
        for (to, from) in word.iter_mut().zip(chunk) {
            *to = *from;
        }
        sum += u64::from(u32::from_le_bytes(word));
    }
    let bits = 8 * width as u32;
    while sum >> bits != 0 {
        sum = (sum & ((1 << bits) - 1)) + (sum >> bits);
    }
    sum as u32
}

/// Exchanges of bytes and bits on the way of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swap {
    /// The bytes of the word change places.
    pub bytes: bool,
    /// The bits of every byte change places.
    pub bits: bool,
}

impl Swap {
    /// A value of `width` bytes, swapped.
    fn value(self, value: u32, width: u32) -> u32 {
        let value = if self.bytes {
            value.swap_bytes() >> (32 - 8 * width)
        } else {
            value
        };
        if self.bits {
            value.reverse_bits().swap_bytes()
        } else {
            value
        }
    }
}

/// Bytes of the words that data is taken in: the longest that a sum adds up, and those whose bytes a
/// source swap exchanges.
const WORD: usize = SOURCE_SWAP_BYTES as usize;
/// Bytes of the source swapped at a time; a multiple of [`WORD`].
const SWAP_BLOCK: usize = 1024;

/// A checksum over a packet's data.
///
/// Source bytes are, in order, the initial value unless it is a stored one, the expected value if it
/// is validated, and the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcCopy {
    /// Which checksum.
    pub checksum: Checksum,
    /// Slot of the cache that values are kept in.
    pub slot: usize,
    /// Start from the slot's value.
    pub from_stored: bool,
    /// Compare the result with the expected value.
    pub validate: bool,
    /// Write the data out.
    pub copy: bool,
    /// Write the result out, behind the data.
    pub send: bool,
    /// Keep the result in the slot.
    pub store_result: bool,
    /// Keep the initial value that came with the packet in the slot.
    pub store_initial: bool,
    /// Exclusive-or of the initial value.
    pub xor_in: u32,
    /// Exclusive-or of the result.
    pub xor_out: u32,
    /// Swap of the initial value before the exclusive-or.
    pub swap_initial: Swap,
    /// Swap of the data as the checksum sees it; the copy is unchanged.
    pub swap_source: Swap,
    /// Swap of a result on its way into the slot.
    pub swap_stored: Swap,
    /// Swap of a result on its way out, and before it is validated.
    pub swap_result: Swap,
}

/// A checksum under way.
#[derive(Clone, Copy, Debug)]
pub struct CrcRun {
    /// The initial value before swap and exclusive-or, and the value expected.
    initial: u32,
    expected: Option<u32>,
    /// The value so far.
    value: u32,
    /// Data that is not yet in it, less than a word.
    part: [u8; WORD],
    held: usize,
}

/// A result that is not the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("checksum is {got:#x}, expected {expected:#x}")]
pub struct CrcMismatch {
    /// The value that came with the packet.
    pub expected: u32,
    /// The value computed.
    pub got: u32,
}

impl CrcCopy {
    /// Values that precede the data.
    pub fn leading_values(&self) -> u32 {
        u32::from(!self.from_stored) + u32::from(self.validate)
    }

    /// Bytes of the result of sources with `bytes` bytes in all.
    pub fn result_bytes(&self, bytes: usize) -> usize {
        let width = self.checksum.bytes() as usize;
        let data = bytes.saturating_sub(self.leading_values() as usize * width);
        let sent = if self.send { width } else { 0 };
        if self.copy { data + sent } else { sent }
    }

    /// Computes the checksum over `sources`, keeps what is to be kept in `cache`, and writes what is to be
    /// written to `result`, which has [`CrcCopy::result_bytes`].
    ///
    /// # Errors
    /// [`CrcMismatch`] if the result is validated and wrong; everything else is done all the same.
    pub fn run(
        &self,
        sources: &[u8],
        cache: &mut [u32; CACHE_SLOTS],
        result: &mut [u8],
    ) -> Result<(), CrcMismatch> {
        let values = (self.leading_values() * self.checksum.bytes()) as usize;
        let (values, data) = sources.split_at(values.min(sources.len()));
        let mut run = self.begin(values, cache);
        self.update(&mut run, data);
        let (sent, verdict) = self.finish(run, cache);
        let (copy, behind) = result.split_at_mut(if self.copy { data.len() } else { 0 });
        if self.copy {
            copy.copy_from_slice(data);
        }
        for (to, from) in behind.iter_mut().zip(sent.to_le_bytes()) {
            *to = from;
        }
        verdict
    }

    /// Begins a checksum with the values that precede the data.
    pub fn begin(&self, values: &[u8], cache: &[u32; CACHE_SLOTS]) -> CrcRun {
        let width = self.checksum.bytes();
        let mut values = values.chunks(width as usize).map(little_endian);
        let initial = if self.from_stored {
            cache[self.slot % CACHE_SLOTS]
        } else {
            values.next().unwrap_or_default()
        };
        let initial = initial & self.mask();
        CrcRun {
            initial,
            expected: self.validate.then(|| values.next().unwrap_or_default()),
            value: self.swap_initial.value(initial, width) ^ self.xor_in & self.mask(),
            part: [0; WORD],
            held: 0,
        }
    }

    /// The next bytes of the data. They come in pieces of any length: what is left of a word waits for
    /// the next piece.
    pub fn update(&self, run: &mut CrcRun, mut data: &[u8]) {
        if run.held > 0 {
            let (fills, rest) = data.split_at(data.len().min(WORD - run.held));
            run.part[run.held..run.held + fills.len()].copy_from_slice(fills);
            run.held += fills.len();
            data = rest;
            if run.held < WORD {
                return;
            }
            run.value = self.over_source(run.value, &run.part);
        }
        let (words, rest) = data.split_at(data.len() - data.len() % WORD);
        run.value = self.over_source(run.value, words);
        run.part[..rest.len()].copy_from_slice(rest);
        run.held = rest.len();
    }

    /// Ends a checksum: keeps what is to be kept in `cache` and returns the value to send, and whether
    /// it is the expected one.
    pub fn finish(
        &self,
        run: CrcRun,
        cache: &mut [u32; CACHE_SLOTS],
    ) -> (u32, Result<(), CrcMismatch>) {
        let width = self.checksum.bytes();
        let value = self.over_source(run.value, &run.part[..run.held]);
        let value = value ^ self.xor_out & self.mask();
        let slot = &mut cache[self.slot % CACHE_SLOTS];
        if self.store_initial {
            *slot = run.initial;
        }
        if self.store_result {
            *slot = self.swap_stored.value(value, width);
        }
        let got = self.swap_result.value(value, width);
        let verdict = match run.expected {
            Some(expected) if expected != got => Err(CrcMismatch { expected, got }),
            _ => Ok(()),
        };
        (got, verdict)
    }

    /// The bits of a value.
    fn mask(&self) -> u32 {
        u32::MAX >> (32 - 8 * self.checksum.bytes())
    }

    /// The checksum of the data after the source's swap.
    fn over_source(&self, mut value: u32, data: &[u8]) -> u32 {
        if self.swap_source == Swap::default() {
            return self.checksum.update(value, data);
        }
        let mut swapped = [0; SWAP_BLOCK];
        for block in data.chunks(SWAP_BLOCK) {
            let swapped = &mut swapped[..block.len()];
            swapped.copy_from_slice(block);
            if self.swap_source.bytes {
                swapped.chunks_mut(WORD).for_each(<[u8]>::reverse);
            }
            if self.swap_source.bits {
                swapped
                    .iter_mut()
                    .for_each(|byte| *byte = byte.reverse_bits());
            }
            value = self.checksum.update(value, swapped);
        }
        value
    }
}

fn little_endian(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The catalogue's check values: of the nine digits, with each algorithm's own initial value and
    /// exclusive-or.
    #[test]
    fn catalogue_check_values() {
        let digits = b"123456789";
        for (checksum, initial, xor_out, check) in [
            (Checksum::Crc32, u32::MAX, u32::MAX, 0xcbf4_3926),
            (Checksum::Crc32c, u32::MAX, u32::MAX, 0xe306_9283),
            (Checksum::Crc16, 0, 0, 0xd0db),
            (Checksum::Crc8, 0, 0, 0xf4),
            (Checksum::Adler32, 1, 0, 0x091e_01de),
        ] {
            let value = checksum.update(initial, digits) ^ xor_out;
            assert_eq!(value, check, "{checksum:?}: {value:#x}");
        }
        // 0x3231 + 0x3433 + 0x3635 + 0x3837 + 0x0039 = 0xd509.
        assert_eq!(Checksum::Sum16.update(0, digits), 0xd509);
        // 0x34333231 + 0x38373635 + 0x00000039 = 0x6c6a689f.
        assert_eq!(Checksum::Sum32.update(0, digits), 0x6c6a_689f);
        assert_eq!(Checksum::Sum16.update(0xffff, &[2, 0]), 2);
        assert_eq!(Checksum::Sum32.update(u32::MAX, &[2, 0, 0, 0]), 2);
    }

    #[test]
    fn values_go_on_where_they_stopped() {
        let data: Vec<u8> = (0..200).map(|n: u32| (n * 7 + 3) as u8).collect();
        for checksum in [
            Checksum::Crc32,
            Checksum::Crc32c,
            Checksum::Crc16,
            Checksum::Crc8,
            Checksum::Adler32,
            Checksum::Sum16,
            Checksum::Sum32,
        ] {
            let whole = checksum.update(1, &data);
            for cut in [0, 4, 64, 100, 200] {
                let (a, b) = data.split_at(cut);
                let parts = checksum.update(checksum.update(1, a), b);
                assert_eq!(parts, whole, "{checksum:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn swaps() {
        let swap = |bytes, bits| Swap { bytes, bits };
        assert_eq!(swap(true, false).value(0x0102_0380, 4), 0x8003_0201);
        assert_eq!(swap(false, true).value(0x0102_0380, 4), 0x8040_c001);
        assert_eq!(swap(true, true).value(0x0102_0380, 4), 0x01c0_4080);
        assert_eq!(swap(true, false).value(0x1234, 2), 0x3412);
        assert_eq!(swap(false, true).value(0x0180, 2), 0x8001);
        assert_eq!(swap(true, true).value(0x01, 1), 0x80);
    }
}
