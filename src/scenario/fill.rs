//! Memory contents as scenarios describe them, and the bytes they stand for.

use super::files::Files;
use super::place::Region;
use super::words::Affirmed;
use crate::desc::DType;
use crate::device::compute::{Fp8, Reduction};
use crate::document::{At, FromValue, Key, Read, Table, Value, integer};
use crate::host::{Bus, BusError};
use crate::sim::stream;
use crate::units::Addr;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::fmt;
use std::sync::Arc;
use toml::de::DeValue;

/// Bytes worked on at a time, so that a large region is never held whole.
pub(super) const CHUNK: usize = 64 << 10;

/// A content as the file gives it.
#[derive(Clone, Debug)]
pub(super) enum FillDecl {
    Byte(u8),
    Counter(u32),
    Random,
    Bytes(Vec<u8>),
    File(String),
}

/// A content ready to be produced; `Random` is a stream named after its buffer.
#[derive(Clone, Debug)]
pub(super) enum Fill {
    Byte(u8),
    Counter(u32),
    Random { stream: String },
    Bytes(Arc<[u8]>),
}

/// Bytes written in hexadecimal; blanks and `_` between digits do not count.
struct Hex(Vec<u8>);

impl FromValue for Hex {
    const EXPECTED: &'static str = "hexadecimal digits in a string";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let Some(text) = value.text()? else {
            return Ok(None);
        };
        let digits: String = text
            .chars()
            .filter(|c| !c.is_whitespace() && *c != '_')
            .collect();
        hex::decode(digits)
            .map(|bytes| Some(Hex(bytes)))
            .map_err(|e| format!("{e}"))
    }
}

const DTYPES: &[&str] = &[
    "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "bfloat16", "fp16", "fp8_e3",
    "fp8_e4", "fp8_e5",
];

/// The device's type of a short float, by its name there.
fn short_float(dtype: &str) -> Option<DType> {
    let mut short = [
        DType::Bfloat16,
        DType::Fp16,
        DType::Fp8E3,
        DType::Fp8E4,
        DType::Fp8E5,
    ]
    .into_iter();
    short.find(|short| short.name() == dtype)
}

/// One number of a typed array, in little-endian bytes.
fn element(dtype: &str, raw: &DeValue<'_>) -> Result<Vec<u8>, String> {
    if let Some(short) = short_float(dtype) {
        let wide = element("f32", raw).map_err(|message| message.replace("f32", dtype))?;
        let mut bytes = vec![0; short.bytes() as usize];
        Reduction::cast(DType::Fp32, short, Fp8::DEFAULT).run(&wide, None, &mut bytes);
        return Ok(bytes);
    }
    Ok(match (dtype, raw) {
        ("f32", DeValue::Float(number)) => {
            let number: f32 = number
                .as_str()
                .parse()
                .map_err(|_| format!("expected f32, found {number}"))?;
            number.to_le_bytes().to_vec()
        }
        ("f32", DeValue::Integer(number)) => {
            // 2^24 and below are exact in f32.
            let number: i32 = integer(number)?;
            if number.unsigned_abs() > 1 << 24 {
                return Err(format!(
                    "{number} cannot be represented exactly as f32; write it with a decimal point"
                ));
            }
            (number as f32).to_le_bytes().to_vec()
        }
        ("u8", DeValue::Integer(number)) => integer::<u8>(number)?.to_le_bytes().to_vec(),
        ("i8", DeValue::Integer(number)) => integer::<i8>(number)?.to_le_bytes().to_vec(),
        ("u16", DeValue::Integer(number)) => integer::<u16>(number)?.to_le_bytes().to_vec(),
        ("i16", DeValue::Integer(number)) => integer::<i16>(number)?.to_le_bytes().to_vec(),
        ("u32", DeValue::Integer(number)) => integer::<u32>(number)?.to_le_bytes().to_vec(),
        ("i32", DeValue::Integer(number)) => integer::<i32>(number)?.to_le_bytes().to_vec(),
        ("u64", DeValue::Integer(number)) => integer::<u64>(number)?.to_le_bytes().to_vec(),
        ("i64", DeValue::Integer(number)) => integer::<i64>(number)?.to_le_bytes().to_vec(),
        (_, other) => {
            return Err(format!(
                "expected {dtype}, found a TOML {}",
                other.type_str()
            ));
        }
    })
}

fn array(table: &Table<'_>) -> Read<Vec<u8>> {
    let dtype = table.req::<String>("dtype")?;
    if !DTYPES.contains(&dtype.as_str()) {
        let known = DTYPES.join(", ");
        return Err(table.report_at(
            &dtype.mark,
            format!("unknown dtype \"{}\"; expected one of {known}", *dtype),
        ));
    }
    let values = table.req_with("values", "an array of numbers", |value| {
        let Some(items) = value.raw.as_array() else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let item = element(&dtype, item.get_ref());
            bytes.extend(item.map_err(|message| format!("element {index}: {message}"))?);
        }
        Ok(Some(bytes))
    })?;
    table.finish()?;
    Ok(values.value)
}

impl fmt::Display for FillDecl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FillDecl::Byte(0) => f.write_str("zeros"),
            FillDecl::Byte(byte) => write!(f, "bytes {byte:#04x}"),
            FillDecl::Counter(start) => write!(f, "a counter from {start}"),
            FillDecl::Random => f.write_str("random bytes"),
            FillDecl::Bytes(_) => f.write_str("the given bytes"),
            FillDecl::File(name) => write!(f, "file {name}"),
        }
    }
}

impl<C> Key<C> for At<FillDecl> {
    fn read(table: &Table<'_>, _: &'static str, _: C) -> Read<Self> {
        FillDecl::read(table)
    }

    fn names(_: &'static str, known: &mut Vec<&'static str>) {
        known.extend(FillDecl::KEYS);
        known.extend(["dtype", "values"]);
    }
}

impl FillDecl {
    /// The keys of contents, of which a table has one.
    pub const KEYS: [&str; 7] = ["zero", "byte", "counter", "random", "hex", "file", "array"];

    /// The content a table gives, which must be exactly one.
    pub fn read(table: &Table<'_>) -> Read<At<FillDecl>> {
        let found = Self::read_all(table)?;
        let count = found.len();
        match <[_; 1]>::try_from(found) {
            Ok([fill]) => Ok(fill),
            Err(_) => Err(table.report(format!(
                "{count} contents given; expected exactly one of {}",
                FillDecl::KEYS.join(", ")
            ))),
        }
    }

    /// Every content a table gives.
    pub fn read_all(table: &Table<'_>) -> Read<Vec<At<FillDecl>>> {
        fn fill<T>(
            read: Read<Option<At<T>>>,
            make: impl FnOnce(T) -> FillDecl,
        ) -> Read<Option<At<FillDecl>>> {
            Ok(read?.map(|at| at.map(make)))
        }
        let array = match table.table("array") {
            Ok(Some(inner)) => array(&inner).map(|value| {
                let mark = inner.mark().clone();
                Some(At { value, mark })
            }),
            Ok(None) => Ok(None),
            Err(none) => Err(none),
        };
        let found = [
            fill(table.opt::<Affirmed>("zero"), |_| FillDecl::Byte(0)),
            fill(table.opt("byte"), FillDecl::Byte),
            fill(table.opt("counter"), FillDecl::Counter),
            fill(table.opt::<Affirmed>("random"), |_| FillDecl::Random),
            fill(table.opt::<Hex>("hex"), |hex| FillDecl::Bytes(hex.0)),
            fill(table.opt("file"), FillDecl::File),
            fill(array, FillDecl::Bytes),
        ];
        let found: Read<Vec<_>> = found.into_iter().collect();
        Ok(found?.into_iter().flatten().collect())
    }

    /// The content ready to be produced. Files of the scenario are read here, `stream` names the random stream.
    pub fn resolve(&self, files: &Files, stream: &str) -> Result<Fill, String> {
        Ok(match self {
            FillDecl::Byte(byte) => Fill::Byte(*byte),
            FillDecl::Counter(start) => Fill::Counter(*start),
            FillDecl::Random => Fill::Random {
                stream: stream.to_string(),
            },
            FillDecl::Bytes(bytes) => Fill::Bytes(bytes.as_slice().into()),
            FillDecl::File(name) => Fill::Bytes(files.file(name)?),
        })
    }
}

impl Fill {
    /// Bytes the content has of itself; `None` if it goes on for as long as it is asked.
    pub fn own_bytes(&self) -> Option<u64> {
        match self {
            Fill::Bytes(bytes) => Some(bytes.len() as u64),
            _ => None,
        }
    }

    /// The size of a region with this content: what the file says, or what the content has.
    pub fn region_bytes(&self, size: Option<u64>) -> Result<u64, String> {
        match (size, self.own_bytes()) {
            (Some(0), _) | (None, Some(0)) => {
                Err("has 0 bytes; the size must be at least 1".to_string())
            }
            (Some(size), Some(own)) if size != own => Err(format!(
                "the content has {own} bytes, but size is {size}; make them equal or omit \"size\""
            )),
            (Some(size), _) | (None, Some(size)) => Ok(size),
            (None, None) => {
                Err("\"size\" is missing; write a size such as 4096 or \"64KiB\"".to_string())
            }
        }
    }

    /// Fills a region through a bus, a piece at a time.
    pub fn store(&self, bus: &mut dyn Bus, region: Region, seed: u64) -> Result<(), BusError> {
        let mut stream = self.bytes(seed);
        let mut buffer = vec![0; CHUNK];
        for (offset, bytes) in chunks(region.bytes) {
            stream.next(&mut buffer[..bytes]);
            bus.write_mem(Addr(region.at.0 + offset), &buffer[..bytes])?;
        }
        Ok(())
    }

    /// Whether every byte is zero, as untouched memory is.
    pub fn is_zero(&self) -> bool {
        matches!(self, Fill::Byte(0))
    }

    /// The `len` bytes from `offset` on.
    pub fn read(&self, seed: u64, offset: u64, len: usize) -> Vec<u8> {
        let mut stream = self.bytes(seed);
        let mut skipped = vec![0; CHUNK];
        for (_, chunk) in chunks(offset) {
            stream.next(&mut skipped[..chunk]);
        }
        let mut out = vec![0; len];
        stream.next(&mut out);
        out
    }

    /// The content from its start.
    pub fn bytes(&self, seed: u64) -> FillBytes<'_> {
        let source = match self {
            Fill::Byte(byte) => Source::Byte(*byte),
            Fill::Counter(start) => Source::Counter(*start),
            Fill::Random { stream: name } => Source::Random(Box::new(stream(seed, name))),
            Fill::Bytes(bytes) => Source::Rest(bytes),
        };
        FillBytes(source)
    }
}

enum Source<'f> {
    Byte(u8),
    Counter(u32),
    Random(Box<ChaCha8Rng>),
    Rest(&'f [u8]),
}

/// A content being produced, in order.
pub(super) struct FillBytes<'f>(Source<'f>);

impl FillBytes<'_> {
    /// Writes the next bytes, a multiple of 4 except at the end; past the end of a content that
    /// has one, zeros.
    pub fn next(&mut self, out: &mut [u8]) {
        match &mut self.0 {
            Source::Byte(byte) => out.fill(*byte),
            Source::Counter(count) => {
                for word in out.chunks_mut(4) {
                    word.copy_from_slice(&count.to_le_bytes()[..word.len()]);
                    *count = count.wrapping_add(1);
                }
            }
            Source::Random(rng) => rng.fill_bytes(out),
            Source::Rest(rest) => {
                let (now, later) = rest.split_at(rest.len().min(out.len()));
                let (here, after) = out.split_at_mut(now.len());
                here.copy_from_slice(now);
                after.fill(0);
                *rest = later;
            }
        }
    }
}

/// Offsets and lengths of the chunks that make up `bytes` bytes.
pub(super) fn chunks(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    let step = CHUNK as u64;
    (0..bytes.div_ceil(step)).map(move |n| (n * step, (bytes - n * step).min(step) as usize))
}

/// SHA-256 of bytes that arrive in pieces.
#[derive(Default)]
pub(super) struct Hash(hmac_sha256::Hash);

impl Hash {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> [u8; 32] {
        self.0.finalize()
    }
}

/// A SHA-256 in hexadecimal.
#[derive(Clone, Copy, Debug)]
pub(super) struct HashText(pub [u8; 32]);

impl FromValue for HashText {
    const EXPECTED: &'static str = "a SHA-256 as 64 hexadecimal digits";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let Some(Hex(bytes)) = Hex::from_value(value)? else {
            return Ok(None);
        };
        match bytes.try_into() {
            Ok(hash) => Ok(Some(HashText(hash))),
            Err(_) => Err(format!("is not {}", Self::EXPECTED)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(fill: &Fill, bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes];
        fill.bytes(5).next(&mut out);
        out
    }

    #[test]
    fn contents_are_what_they_are_called() {
        assert_eq!(all(&Fill::Byte(7), 3), [7, 7, 7]);
        let counter = Fill::Counter(u32::MAX);
        assert_eq!(all(&counter, 9), [255, 255, 255, 255, 0, 0, 0, 0, 1]);
        let bytes = Fill::Bytes([1, 2].as_slice().into());
        assert_eq!(all(&bytes, 3), [1, 2, 0]);
        let random = |name: &str| Fill::Random {
            stream: name.to_string(),
        };
        assert_ne!(all(&random("a"), 16), all(&random("b"), 16));
        assert_eq!(all(&random("a"), 16), all(&random("a"), 16));
    }

    /// A content is the same in whatever pieces it is asked for.
    #[test]
    fn pieces_make_up_the_whole() {
        let whole = CHUNK + 1000;
        for fill in [
            Fill::Byte(3),
            Fill::Counter(9),
            Fill::Bytes((0..=255).collect()),
            Fill::Random {
                stream: "x".to_string(),
            },
        ] {
            let expected = all(&fill, whole);
            let mut stream = fill.bytes(5);
            let mut pieces = Vec::new();
            for (offset, bytes) in chunks(whole as u64) {
                assert_eq!(offset as usize, pieces.len());
                let mut piece = vec![0; bytes];
                stream.next(&mut piece);
                pieces.extend(piece);
            }
            assert_eq!(pieces, expected);
            let word = fill.read(5, CHUNK as u64 + 8, 4);
            assert_eq!(word, expected[CHUNK + 8..CHUNK + 12]);
        }
    }

    #[test]
    fn chunks_cover_every_byte_once() {
        assert_eq!(chunks(0).count(), 0);
        assert_eq!(chunks(1).collect::<Vec<_>>(), [(0, 1)]);
        let two: Vec<_> = chunks(CHUNK as u64 + 1).collect();
        assert_eq!(two, [(0, CHUNK), (CHUNK as u64, 1)]);
    }

    #[test]
    fn array_elements_are_little_endian_and_in_range() {
        let element = |dtype, text: &str| {
            let value = DeValue::parse(text).unwrap();
            super::element(dtype, value.get_ref())
        };
        assert_eq!(element("u16", "0x1234"), Ok(vec![0x34, 0x12]));
        assert_eq!(element("i8", "-1"), Ok(vec![0xff]));
        assert_eq!(element("f32", "1.5"), Ok(vec![0, 0, 0xc0, 0x3f]));
        assert_eq!(element("f32", "-2"), Ok(vec![0, 0, 0, 0xc0]));
        assert_eq!(element("u64", "18446744073709551615"), Ok(vec![255; 8]));
        assert_eq!(element("bfloat16", "-2.5"), Ok(vec![0x20, 0xc0]));
        assert_eq!(element("fp16", "1"), Ok(vec![0x00, 0x3c]));
        assert_eq!(element("fp8_e4", "0.1"), Ok(vec![0x1d]));
        assert_eq!(element("fp8_e5", "inf"), Ok(vec![0x7c]));
        for (dtype, text) in [
            ("fp8_e3", "true"),
            ("u8", "256"),
            ("i8", "128"),
            ("u32", "-1"),
            ("u32", "1.0"),
            ("f32", "16777217"),
            ("f32", "true"),
        ] {
            assert!(element(dtype, text).is_err(), "{dtype} {text}");
        }
    }
}
