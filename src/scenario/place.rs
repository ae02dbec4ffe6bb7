//! Places as scenarios name them, the same on every arch: `hbm0 + 16MiB`, `sbuf0[5] + 256`,
//! `host + 4KiB`, `sem 0.7 read`, a buffer's name, or a raw address.

use crate::arch::{AddressMap, EngineId, EventBlock, HostEngine, QueueId};
use crate::document::{FromValue, Value, from_text, hint};
use crate::units::{Addr, Bytes};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A place: where it starts counting, and how far on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub base: Base,
    pub offset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Hbm(u32),
    Host,
    StateBuffer { core: u32, partition: u32 },
    Event(Cell),
    Semaphore(Cell, Window),
    Raw(u64),
    Buffer(String),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.base {
            Base::Hbm(stack) => write!(f, "hbm{stack}")?,
            Base::Host => f.write_str("host")?,
            Base::StateBuffer { core, partition } => write!(f, "sbuf{core}[{partition}]")?,
            Base::Event(cell) => write!(f, "event {cell}")?,
            Base::Semaphore(cell, Window::Read) => write!(f, "sem {cell} read")?,
            Base::Semaphore(cell, Window::Set) => write!(f, "sem {cell} set")?,
            Base::Semaphore(cell, Window::Inc) => write!(f, "sem {cell} inc")?,
            Base::Semaphore(cell, Window::Dec) => write!(f, "sem {cell} dec")?,
            Base::Raw(address) => write!(f, "{address:#x}")?,
            Base::Buffer(name) => f.write_str(name)?,
        }
        match self.offset {
            0 => Ok(()),
            offset => write!(f, " + {}", Bytes(offset)),
        }
    }
}

/// An event or a semaphore: its block and its index in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub block: Block,
    pub index: u32,
}

/// An event/semaphore block: of a NeuronCore or of a TOP_SP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Block {
    Core(u32),
    TopSp(u32),
}

/// The window through which a semaphore is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    Read,
    Set,
    Inc,
    Dec,
}

/// An engine: by number, or a host engine by its direction and pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EngineRef {
    Number(u32),
    Host(HostEngine, u32),
}

const EXPECTED: &str = "a place: hbm0, sbuf0[5], host, \"sem 0.7 inc\", \"event 0.3\", a buffer's name or 0x…, each optionally with \" + 64KiB\"";

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut terms = text.split('+');
        let base = terms.next().unwrap_or_default().trim().parse()?;
        let mut offset = 0u64;
        for term in terms {
            let mut product = 1u64;
            for factor in term.split('*') {
                let factor: Bytes = factor.trim().parse().map_err(|e| format!("{e}"))?;
                product = product
                    .checked_mul(factor.0)
                    .ok_or_else(|| format!("\"{text}\" is beyond the end of the address space"))?;
            }
            offset = offset
                .checked_add(product)
                .ok_or_else(|| format!("\"{text}\" is beyond the end of the address space"))?;
        }
        Ok(Location { base, offset })
    }
}

from_text! {
    Location, EXPECTED;
    Cell, "an event or a semaphore as block.index, such as \"0.7\" or \"top_sp3.7\"";
}

/// `prefix` and then a number and nothing more.
fn numbered(text: &str, prefix: &str) -> Option<u32> {
    text.strip_prefix(prefix)?.parse().ok()
}

impl FromStr for Base {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(digits) = text.strip_prefix("0x") {
            let digits = digits.replace('_', "");
            return u64::from_str_radix(&digits, 16)
                .map(Base::Raw)
                .map_err(|_| format!("\"{text}\" is not a 64-bit address"));
        }
        let mut words = text.split_whitespace();
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("host"), None, ..) => Ok(Base::Host),
            (Some("event"), Some(cell), None, _) => Ok(Base::Event(cell.parse()?)),
            (Some("sem"), Some(cell), Some(window), None) => {
                let window = match window {
                    "read" => Window::Read,
                    "set" => Window::Set,
                    "inc" => Window::Inc,
                    "dec" => Window::Dec,
                    _ => {
                        return Err(format!(
                            "unknown window \"{window}\"; expected read, set, inc or dec"
                        ));
                    }
                };
                Ok(Base::Semaphore(cell.parse()?, window))
            }
            (Some("sem"), Some(_), None, _) => Err(format!(
                "\"{text}\" lacks a window; write \"{text} read\", or set, inc or dec"
            )),
            (Some(word), None, ..) => Base::word(word),
            _ => Err(format!("\"{text}\" is not {EXPECTED}")),
        }
    }
}

impl Base {
    fn word(word: &str) -> Result<Self, String> {
        if let Some(stack) = numbered(word, "hbm") {
            return Ok(Base::Hbm(stack));
        }
        let partition = word.strip_suffix(']').and_then(|word| word.split_once('['));
        if let Some((core, partition)) = partition {
            return match (numbered(core, "sbuf"), partition.parse()) {
                (Some(core), Ok(partition)) => Ok(Base::StateBuffer { core, partition }),
                _ => Err(format!(
                    "\"{word}\" is not a State Buffer partition such as sbuf0[5]"
                )),
            };
        }
        if numbered(word, "sbuf").is_some() {
            return Err(format!("\"{word}\" lacks a partition; write {word}[0]"));
        }
        check_name(word).map_err(|_| format!("\"{word}\" is not {EXPECTED}"))?;
        Ok(Base::Buffer(word.to_string()))
    }
}

/// Whether a name can stand in a location without being taken for something else.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(letter) {
        return Err(format!(
            "\"{name}\" is not a valid name; use letters, digits, - and _, starting with a letter"
        ));
    }
    let keyword = ["host", "sem", "event"].contains(&name)
        || numbered(name, "hbm").is_some()
        || numbered(name, "sbuf").is_some();
    if keyword {
        return Err(format!(
            "\"{name}\" is the name of a place on the device; choose another name"
        ));
    }
    Ok(())
}

impl FromStr for Cell {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (block, index) = text.trim().split_once('.')?;
            let block = match numbered(block, "top_sp") {
                Some(n) => Block::TopSp(n),
                None => Block::Core(block.parse().ok()?),
            };
            let index = index.parse().ok()?;
            Some(Cell { block, index })
        };
        parse().ok_or_else(|| format!("\"{text}\" is not {}", <Cell as FromValue>::EXPECTED))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            Block::Core(n) => write!(f, "{n}.{}", self.index),
            Block::TopSp(n) => write!(f, "top_sp{n}.{}", self.index),
        }
    }
}

impl FromStr for EngineRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let host =
            |prefix, direction| numbered(text, prefix).map(|pair| EngineRef::Host(direction, pair));
        host("d2h", HostEngine::D2h)
            .or_else(|| host("h2d", HostEngine::H2d))
            .or_else(|| text.parse().ok().map(EngineRef::Number))
            .ok_or_else(|| format!("\"{text}\" is not {}", <EngineRef as FromValue>::EXPECTED))
    }
}

impl fmt::Display for EngineRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineRef::Number(n) => write!(f, "e{n}"),
            EngineRef::Host(HostEngine::D2h, pair) => write!(f, "d2h{pair}"),
            EngineRef::Host(HostEngine::H2d, pair) => write!(f, "h2d{pair}"),
        }
    }
}

impl FromValue for EngineRef {
    const EXPECTED: &'static str =
        "an engine: its number, or \"d2h0\" or \"h2d0\" for a host engine";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        match value.text()? {
            Some(text) => text.parse().map(Some),
            None => Ok(u32::from_value(value)?.map(EngineRef::Number)),
        }
    }
}

/// A queue of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueueAt {
    pub engine: EngineId,
    pub queue: QueueId,
}

impl fmt::Display for QueueAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {} of {}", self.queue, self.engine)
    }
}

/// A named stretch of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Region {
    pub at: Addr,
    pub bytes: u64,
}

impl Region {
    /// Whether two regions share a byte.
    pub fn overlaps(&self, other: &Region) -> bool {
        let starts_in =
            |a: &Region, b: &Region| a.at.offset_from(b.at).is_some_and(|n| n < b.bytes);
        self.bytes > 0 && other.bytes > 0 && (starts_in(self, other) || starts_in(other, self))
    }

    /// Whether `other` lies inside.
    pub fn contains(&self, other: &Region) -> bool {
        other
            .at
            .offset_from(self.at)
            .is_some_and(|offset| self.bytes >= other.bytes && offset <= self.bytes - other.bytes)
    }
}

impl Location {
    /// The buffer, if the location is the start of one by name.
    pub fn buffer(&self) -> Option<&str> {
        match &self.base {
            Base::Buffer(name) if self.offset == 0 => Some(name),
            _ => None,
        }
    }

    /// The address on a device, given the buffers that are known by name. The message of an error
    /// says what the device has instead.
    pub fn resolve(
        &self,
        map: &AddressMap,
        buffers: &BTreeMap<String, Region>,
    ) -> Result<Addr, String> {
        let base = match &self.base {
            Base::Hbm(stack) => pick("HBM stacks", map.hbm, *stack)?.base,
            Base::Host => map.host,
            Base::StateBuffer { core, partition } => {
                let tpb = *pick("State Buffers", map.tpb, *core)?;
                let partitions = map.state_buffer.partitions;
                if *partition >= partitions {
                    return Err(format!(
                        "a State Buffer has partitions 0 to {}",
                        partitions - 1
                    ));
                }
                tpb.checked_add(u64::from(*partition) * map.state_buffer.stride)
                    .ok_or("is beyond the end of the address space")?
            }
            Base::Event(cell) => cell.event(map)?,
            Base::Semaphore(cell, window) => cell.semaphore(map, *window)?,
            Base::Raw(address) => Addr(*address),
            Base::Buffer(name) => {
                let region = buffers.get(name);
                let known = buffers.keys().map(String::as_str);
                let unknown = || format!("unknown buffer or place \"{name}\"{}", hint(name, known));
                region.ok_or_else(unknown)?.at
            }
        };
        let past = || {
            format!(
                "{base} + {} is beyond the end of the address space",
                self.offset
            )
        };
        base.checked_add(self.offset).ok_or_else(past)
    }
}

fn pick<'t, T>(what: &str, all: &'t [T], index: u32) -> Result<&'t T, String> {
    let last = all.len().saturating_sub(1);
    all.get(index as usize)
        .ok_or_else(|| format!("number {index} does not exist; this arch has {what} 0 to {last}"))
}

impl Cell {
    /// Index of the block in the order of [`AddressMap::event_block`].
    pub fn block_index(&self, map: &AddressMap) -> Result<u32, String> {
        if self.index >= EventBlock::CELLS {
            return Err(format!(
                "cell {} does not exist; a block has cells 0 to {}",
                self.index,
                EventBlock::CELLS - 1
            ));
        }
        match self.block {
            Block::Core(n) => pick("NeuronCore event blocks", map.tpb, n).map(|_| n),
            Block::TopSp(n) => {
                pick("TOP_SP event blocks", map.top_sp, n).map(|_| map.tpb.len() as u32 + n)
            }
        }
    }

    /// The cell with the given index in a block of the order of [`AddressMap::event_block`].
    pub fn of_block(map: &AddressMap, block: u32, index: u32) -> Cell {
        let block = match block.checked_sub(map.tpb.len() as u32) {
            Some(n) => Block::TopSp(n),
            None => Block::Core(block),
        };
        Cell { block, index }
    }

    /// Cell of the event.
    pub fn event(&self, map: &AddressMap) -> Result<Addr, String> {
        let block = self.block_index(map)?;
        map.event(block, self.index)
            .ok_or_else(|| format!("event {self} does not exist on this arch"))
    }

    /// Cell of the semaphore in one of its windows.
    pub fn semaphore(&self, map: &AddressMap, window: Window) -> Result<Addr, String> {
        let block = self.block_index(map)?;
        let window = match window {
            Window::Read => EventBlock::SEM_READ,
            Window::Set => EventBlock::SEM_SET,
            Window::Inc => EventBlock::SEM_INC,
            Window::Dec => EventBlock::SEM_DEC,
        };
        map.semaphore(block, window, self.index)
            .ok_or_else(|| format!("semaphore {self} does not exist on this arch"))
    }
}

impl EngineRef {
    /// The engine on a device.
    pub fn resolve(&self, map: &AddressMap) -> Result<EngineId, String> {
        let last = map.engine_count().saturating_sub(1);
        let engine = match *self {
            EngineRef::Number(n) => Some(EngineId(n)).filter(|e| map.engine_base(*e).is_some()),
            EngineRef::Host(direction, pair) => map.host_engine(direction, pair),
        };
        engine.ok_or_else(|| {
            let pairs = map.host_engines.len() / 2;
            format!(
                "this engine does not exist; this arch has engines 0 to {last} and {pairs} host engine pairs"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;

    fn address(text: &str, arch: Arch) -> Result<u64, String> {
        let region = Region {
            at: Addr(0x1000),
            bytes: 64,
        };
        let buffers = BTreeMap::from([("src".to_string(), region)]);
        let location: Location = text.parse()?;
        location.resolve(&arch.spec().map, &buffers).map(|at| at.0)
    }

    #[test]
    fn places_have_the_addresses_of_the_arch() {
        for (text, v2, v3) in [
            ("hbm1 + 16MiB", 0x10_0100_0000, 0x40_0100_0000u64),
            ("sbuf0[5] + 256", 0xfff_c014_0100, 0x20_0014_0100),
            ("host + 4KiB", 0x1000_0000_1000, 0x4000_0000_1000),
            ("sem 0.7 inc", 0xfff_c270_181c, 0x28_0270_181c),
            ("event top_sp1.2", 0xfff_d040_0008, 0x82_c000_0008),
            ("src + 3 * 16 + 1", 0x1031, 0x1031),
            ("0xff_00", 0xff00, 0xff00),
        ] {
            assert_eq!(address(text, Arch::V2), Ok(v2), "{text}");
            assert_eq!(address(text, Arch::V3), Ok(v3), "{text}");
        }
    }

    #[test]
    fn impossible_places_say_what_there_is() {
        for (text, message) in [
            ("hbm2", "this arch has HBM stacks 0 to 1"),
            ("sbuf0[128]", "partitions 0 to 127"),
            ("sbuf0", "write sbuf0[0]"),
            ("sem 0.256 inc", "cells 0 to 255"),
            ("sem 0.7", "\"sem 0.7 read\""),
            ("sem 0.7 rd", "expected read, set, inc or dec"),
            ("srv", "did you mean \"src\"?"),
            (
                "src + 0xffffffffffffffff",
                "is beyond the end of the address space",
            ),
            ("src + 99999999TiB", "is not a size"),
            (
                "src + 4096GiB * 4096GiB",
                "is beyond the end of the address space",
            ),
            ("", "is not a place"),
            ("0xzz", "is not a 64-bit address"),
        ] {
            let error = address(text, Arch::V2).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn engines_have_numbers_and_host_names() {
        let engine = |text: &str, arch: Arch| {
            let engine: EngineRef = text.parse()?;
            engine.resolve(&arch.spec().map).map(|engine| engine.0)
        };
        assert_eq!(engine("31", Arch::V2), Ok(31));
        assert_eq!(engine("d2h0", Arch::V2), Ok(32));
        assert_eq!(engine("h2d1", Arch::V3), Ok(131));
        assert!(engine("34", Arch::V2).unwrap_err().contains("0 to 33"));
        assert!(engine("h2d1", Arch::V2).is_err());
        assert!(engine("x", Arch::V2).is_err());
    }

    #[test]
    fn regions_meet_only_when_they_share_a_byte() {
        let region = |at, bytes| Region {
            at: Addr(at),
            bytes,
        };
        assert!(!region(0, 4).overlaps(&region(4, 4)));
        assert!(region(0, 5).overlaps(&region(4, 4)));
        assert!(region(u64::MAX - 1, 1).overlaps(&region(0, u64::MAX)));
        assert!(region(0, 8).contains(&region(4, 4)));
        assert!(!region(0, 8).contains(&region(5, 4)));
    }
}
