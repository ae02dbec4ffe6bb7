//! Request streams: files of little-endian 64-bit words, a byte address each with bit 63 set for a
//! write, and the built-in streams A to I that `docs/dram.md` validates the model with.

use super::banks::Kind;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;
use std::path::{Path, PathBuf};

/// Set in the word of a write.
const WRITE: u64 = 1 << 63;
const WORD: usize = size_of::<u64>();

/// Requests of a built-in stream that is sent as fast as it is accepted.
const REQUESTS: u64 = 1_000_000;
/// Requests of a built-in stream with a gap.
const SPACED_REQUESTS: u64 = 200_000;

/// Cycles within which the last request of a stream with a gap is sent: clocks end later, even with all that
/// follows it.
const LAST_SENT: u64 = 1 << 62;

/// The built-in streams: short name, name, what it is.
const BUILTIN: [(&str, &str, &str); 13] = [
    ("A", "A_seqrd", "sequential read"),
    ("B", "B_seqwr", "sequential write"),
    (
        "C",
        "C_copy",
        "copy: 4 KiB read, 4 KiB write, in the same bank",
    ),
    ("C2", "C2_copy_off8k", "copy, destination 8 KiB further"),
    ("D", "D_rand", "random read"),
    (
        "E",
        "E_16x64k_lockstep",
        "16 sequential streams in lock-step",
    ),
    (
        "E2",
        "E2_16x64k_512B_skew",
        "16 sequential streams in alternating pieces of 512 bytes, skewed",
    ),
    ("F", "F_seqrd_gap64", "sequential read, one in 64 cycles"),
    ("F2", "F2_rand_gap64", "random read, one in 64 cycles"),
    ("G", "G_inplace4k", "in place: 4 KiB read, 4 KiB written"),
    (
        "G2",
        "G2_inplace_element",
        "in place: each access read, then written",
    ),
    (
        "H",
        "H_copy256_off8k",
        "copy in alternating pieces of 256 bytes, destination 8 KiB further",
    ),
    (
        "I",
        "I_rand7030_gap8",
        "random, 70 % reads and 30 % writes, one in 8 cycles",
    ),
];

/// What NumPy's `SeedSequence` makes of the seeds 12345, 777 and 999 for PCG64: state and stream. The
/// random streams are those that NumPy's `Generator(PCG64(seed)).integers` gives.
const SEED_D: (u128, u128) = (
    0xb5ae_6482_a03d_837c_bbe2_996f_fa1f_7a2f,
    0x64e3_9a9f_3715_8f94_3ebb_0f96_a013_fd73,
);
const SEED_F2: (u128, u128) = (
    0x7273_fbee_3a7c_8247_e7b7_6cad_c1f2_8535,
    0xd4dc_c6e1_ffca_5831_8c1c_0196_8c0f_8488,
);
const SEED_I: (u128, u128) = (
    0x4692_ae69_de0b_681e_6097_eddf_9584_c40c,
    0xc599_23e2_2b3d_2a88_06c0_ac58_5b8e_ebd6,
);

/// Requests in the order in which they are sent.
#[derive(Clone, Debug)]
pub struct Stream {
    name: String,
    words: Vec<u64>,
    gap: u64,
}

/// Why a stream was refused. Messages name the file, the offset, the value and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The file could not be read.
    #[error("stream {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file ends within a request.
    #[error(
        "stream {path}: ends {left} bytes into the request at offset {offset}; a stream consists of whole requests of 8 bytes"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where the last request begins.
        offset: u64,
        /// The bytes there are of it.
        left: usize,
    },
    /// The name promises a gap and does not say a possible one.
    #[error(
        "stream {path}: the name ends in \"_gap{gap}\"; _gapN sends request i no earlier than cycle N x i, and N must \
         be a number from 0 to {most} for this many requests"
    )]
    Gap {
        /// The file.
        path: PathBuf,
        /// What stands there.
        gap: String,
        /// The longest gap.
        most: u64,
    },
    /// There is nothing in the file.
    #[error("stream {0} is empty; a stream has at least one request of 8 bytes")]
    Empty(PathBuf),
    /// No built-in stream has that name.
    #[error("unknown stream \"{0}\"; the built-in streams are {names}", names = names())]
    Unknown(String),
}

fn names() -> String {
    let names = BUILTIN.map(|(short, _, about)| format!("{short} ({about})"));
    names.join(", ")
}

impl Stream {
    /// The built-in streams: short name, name, what it is.
    pub fn builtin_names() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        BUILTIN.into_iter()
    }

    /// The stream at a path, or the built-in one for `stream:NAME`, of accesses of `access_bytes`
    /// bytes in a memory of `capacity` bytes. A file whose name ends in `_gapN` sends request i no
    /// earlier than cycle N·i.
    ///
    /// # Errors
    /// [`StreamError`] if there is no such stream, or it is not one.
    pub fn load(
        name_or_path: &str,
        access_bytes: u64,
        capacity: u64,
    ) -> Result<Stream, StreamError> {
        if let Some(name) = name_or_path.strip_prefix("stream:") {
            return Stream::builtin(name, access_bytes, capacity);
        }
        let path = Path::new(name_or_path);
        let bytes = std::fs::read(path).map_err(|source| StreamError::Unreadable {
            path: path.to_path_buf(),
            source,
        })?;
        let words = bytes.chunks_exact(WORD);
        let left = words.remainder().len();
        if left != 0 {
            return Err(StreamError::Truncated {
                path: path.to_path_buf(),
                offset: (bytes.len() - left) as u64,
                left,
            });
        }
        if bytes.is_empty() {
            return Err(StreamError::Empty(path.to_path_buf()));
        }
        let words = words.map(|word| {
            word.iter()
                .rev()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        });
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let gap = match stem.rsplit_once("_gap") {
            Some((_, text)) => {
                let most = LAST_SENT / words.len() as u64;
                gap(text, most).ok_or_else(|| StreamError::Gap {
                    path: path.to_path_buf(),
                    gap: text.to_string(),
                    most,
                })?
            }
            None => 0,
        };
        Ok(Stream {
            name: name_or_path.to_string(),
            words: words.collect(),
            gap,
        })
    }

    /// A built-in stream by its name or short name.
    ///
    /// # Errors
    /// [`StreamError::Unknown`].
    pub fn builtin(name: &str, access_bytes: u64, capacity: u64) -> Result<Stream, StreamError> {
        let known = BUILTIN
            .iter()
            .find(|(short, long, _)| [*short, *long].contains(&name));
        let Some((short, long, _)) = known else {
            return Err(StreamError::Unknown(name.to_string()));
        };
        let (count, gap) = match *short {
            "F" | "F2" => (SPACED_REQUESTS, 64),
            "I" => (SPACED_REQUESTS, 8),
            _ => (REQUESTS, 0),
        };
        Ok(Stream {
            name: (*long).to_string(),
            words: words(short, count, access_bytes, capacity),
            gap,
        })
    }

    /// Keeps the first `count` requests only.
    pub fn truncate(&mut self, count: usize) {
        self.words.truncate(count);
    }

    /// Name, or path of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The requests as the words of a file.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Cycles from one request to the next at least.
    pub fn gap(&self) -> u64 {
        self.gap
    }

    /// Byte address and kind of each request.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = (u64, Kind)> {
        self.words.iter().map(|word| {
            let kind = if word & WRITE == 0 {
                Kind::Read
            } else {
                Kind::Write
            };
            (word & !WRITE, kind)
        })
    }
}

/// The number after `_gap`, at most `most`.
fn gap(text: &str, most: u64) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|gap| digits && *gap <= most)
}

/// The words of a built-in stream.
fn words(short: &str, count: u64, q: u64, capacity: u64) -> Vec<u64> {
    const PAGE: u64 = 4096;
    const BURST: u64 = 256;
    const TURN: u64 = 512;
    const REGION: u64 = 65536;
    const STREAMS: u64 = 16;
    let (half, accesses) = (capacity / 2, capacity / q);
    // A copy or an update in place, so many bytes read, then written at a distance.
    let copy = |i: u64, turn: u64, distance: u64| {
        let in_turn = turn / q;
        let (pair, within) = (i / (2 * in_turn), i % (2 * in_turn));
        let addr = pair * turn + within % in_turn * q;
        match within < in_turn {
            true => addr,
            false => (addr + distance) | WRITE,
        }
    };
    let each = 0..count;
    match short {
        "A" | "F" => each.map(|i| i * q).collect(),
        "B" => each.map(|i| (i * q) | WRITE).collect(),
        "C" => each.map(|i| copy(i, PAGE, half)).collect(),
        "C2" => each.map(|i| copy(i, PAGE, half + 8192)).collect(),
        "D" | "F2" => {
            let mut random = Random::new(if short == "D" { SEED_D } else { SEED_F2 });
            each.map(|_| random.below(accesses) * q).collect()
        }
        "H" => each.map(|i| copy(i, BURST, half + 8192)).collect(),
        "I" => {
            let mut random = Random::new(SEED_I);
            let addresses: Vec<u64> = each.map(|_| random.below(accesses) * q).collect();
            let write = |addr| {
                if random.below(10) < 7 {
                    addr
                } else {
                    addr | WRITE
                }
            };
            addresses.into_iter().map(write).collect()
        }
        "E" => each
            .map(|i| {
                let (stream, linear) = (i % STREAMS, i / STREAMS * q);
                (linear / REGION * STREAMS + stream) * REGION + linear % REGION
            })
            .collect(),
        "E2" => each
            .map(|i| {
                let (turn, within) = (i / (TURN / q), i % (TURN / q));
                let (stream, linear) = (turn % STREAMS, turn / STREAMS * TURN);
                let region = (linear / REGION * STREAMS + stream) * REGION;
                region + (linear + stream * PAGE) % REGION + within * q
            })
            .collect(),
        "G" => each.map(|i| copy(i, PAGE, 0)).collect(),
        // G2
        _ => each
            .map(|i| (i / 2 * q) | if i % 2 == 0 { 0 } else { WRITE })
            .collect(),
    }
}

/// NumPy's bounded integers.
struct Random {
    source: Pcg64,
    high: Option<u64>,
}

impl Random {
    fn new((state, stream): (u128, u128)) -> Random {
        Random {
            source: Pcg64::new(state, stream),
            high: None,
        }
    }

    /// Halves of 64-bit numbers, the low one first.
    fn half(&mut self) -> u64 {
        if let Some(high) = self.high.take() {
            return high;
        }
        let both = self.source.next_u64();
        self.high = Some(both >> 32);
        both & 0xffff_ffff
    }

    /// A number below `end`, each equally likely: by multiplication, with what would favour some numbers
    /// rejected.
    fn below(&mut self, end: u64) -> u64 {
        let end = end.min(1 << 32);
        let reject = (1u64 << 32) % end;
        loop {
            let product = self.half() * end;
            if product & 0xffff_ffff >= reject {
                return product >> 32;
            }
        }
    }
}
