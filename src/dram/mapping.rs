//! Where the bits of an address go: stack, channel, pseudo-channel, bank group, bank, row, column.

use super::parameters::{Device, MAX_BANKS};
use crate::document::Refusal;
use strength_reduce::StrengthReducedU64;

/// The parts of an address, as they are named in `mapping.order`.
const FIELDS: [&str; 7] = [
    "stack",
    "channel",
    "pseudo_channel",
    "bank_group",
    "bank",
    "row",
    "column",
];
const STACK: usize = 0;
const CHANNEL: usize = 1;
const PSEUDO_CHANNEL: usize = 2;
const BANK_GROUP: usize = 3;
const BANK: usize = 4;
const ROW: usize = 5;
const COLUMN: usize = 6;

/// A validated address mapping.
#[derive(Clone, Debug)]
pub struct Mapping {
    access_shift: u32,
    /// Accesses that all stacks together hold.
    accesses: u64,
    /// Accesses of one stack.
    stack_accesses: StrengthReducedU64,
    pieces: Vec<Piece>,
    hashes: Vec<Hash>,
    /// Bits of each field.
    bits: [u32; 7],
    /// Accesses whose numbers differ in their lowest bits only lie in one row of one pseudo-channel's
    /// banks: the bits of the bank's number in which each differs from the first.
    block: Vec<u32>,
    /// After so many of them the same banks come again, each of another bank group; all of them, if that is
    /// not so.
    cycle: u64,
    /// Every bit of an access has its share in the place, and shares are added by exclusive or: the share of
    /// every value of each byte, packed.
    tables: Vec<[u64; 256]>,
}

/// Consecutive accesses of one row of the banks of one pseudo-channel: where the first of them goes.
// In one register: a copy of what has just been stored stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block(u64);

impl Block {
    /// The pseudo-channel, counted over all stacks.
    #[inline]
    pub fn channel(self) -> u32 {
        self.place().channel
    }

    #[inline]
    pub(super) fn place(self) -> Place {
        Place::unpack(self.0)
    }
}

/// Accesses to one row of some banks, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    /// The block's first bank, and the bits in which those of the accesses differ from it.
    first: u32,
    banks: &'a [u32],
    cycle: u64,
}

impl<'a> Run<'a> {
    /// The bank of each access.
    #[inline]
    pub fn banks(self) -> impl Iterator<Item = usize> + use<'a> {
        self.numbers(self.banks.len())
    }

    #[inline]
    fn numbers(self, end: usize) -> impl Iterator<Item = usize> + use<'a> {
        let first = self.first;
        // The remainder changes nothing: it lets the compiler see that the banks' arrays are long enough.
        let number = move |bank: &u32| ((first ^ bank) % MAX_BANKS) as usize;
        self.banks[..end].iter().map(number)
    }

    #[inline]
    pub fn accesses(self) -> u64 {
        self.banks.len() as u64
    }

    /// After so many accesses, a power of two, the same banks come again, each of another bank group; at
    /// least as many as there are, if that is not so.
    #[inline]
    pub fn cycle(self) -> u64 {
        self.cycle
    }

    /// The banks of the first cycle.
    #[inline]
    pub fn first_cycle(self) -> impl Iterator<Item = usize> + use<'a> {
        self.numbers(self.banks.len().min(self.cycle as usize))
    }
}

/// Most low bits of an access that are looked up.
const BLOCK_BITS: u32 = 6;

/// Consecutive address bits that belong to one field.
#[derive(Clone, Copy, Debug)]
struct Piece {
    field: usize,
    /// Where the bits stand in the number of the access.
    shift: u32,
    mask: u32,
    /// Where they stand in the field.
    place: u32,
}

/// A field that is combined with all bits above its own, so that strides that would stay within one
/// of its values spread over all. What lies above stays as it is, so no two addresses fall together.
#[derive(Clone, Copy, Debug)]
struct Hash {
    field: usize,
    /// Where the bits above begin in the number of the access.
    shift: u32,
}

/// Where one access goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Pseudo-channel, counted over all stacks and channels.
    pub channel: u32,
    /// Bank, counted over all bank groups of the pseudo-channel: group x banks + bank.
    pub bank: u32,
    /// Row.
    pub row: u32,
    /// Column, in accesses.
    pub column: u32,
}

/// The parts of an address as `mapping.order` has them, highest first; those without bits are left out.
fn pieces(device: &Device, order: &str, bits: [u32; 7]) -> Result<Vec<Piece>, Refusal> {
    let refuse = |right: String| Refusal {
        key: "mapping.order".to_string(),
        value: format!("\"{order}\""),
        right,
    };
    let mut left = bits;
    let mut pieces = Vec::new();
    let words: Vec<&str> = order.split_whitespace().collect();
    for word in &words {
        let (name, wanted) = match word.split_once(':') {
            Some((name, bits)) => (name, bits.parse::<u32>().ok()),
            None => (*word, None),
        };
        let field = FIELDS
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| {
                refuse(format!(
                    "unknown field \"{name}\"; expected one of {}",
                    FIELDS.join(", ")
                ))
            })?;
        let width = match (word.contains(':'), wanted) {
            (false, _) => left[field],
            (true, Some(width)) if width <= left[field] => width,
            _ => {
                let most = left[field];
                return Err(refuse(format!(
                    "the number of bits in \"{word}\" is wrong; expected at most {most}"
                )));
            }
        };
        left[field] -= width;
        pieces.push(Piece {
            field,
            shift: 0,
            mask: u32::try_from((1u64 << width) - 1).unwrap_or(u32::MAX),
            place: left[field],
        });
    }
    if let Some(field) = (0..FIELDS.len()).find(|field| left[*field] != 0) {
        let (name, missing) = (FIELDS[field], left[field]);
        return Err(refuse(format!("{missing} bits of {name} are not placed")));
    }
    // Counts that are no power of two, and the stacks' own address ranges, leave no choice.
    let mut leading = words.iter().copied();
    if device.stacks > 1 && leading.next() != Some("stack") {
        return Err(refuse("must begin with stack".to_string()));
    }
    if !device.rows.is_power_of_two() && leading.next() != Some("row") {
        let right = "must begin with stack and row, since the number of rows is not a power of two";
        return Err(refuse(right.to_string()));
    }
    let mut shift = 0;
    for piece in pieces.iter_mut().rev() {
        piece.shift = shift;
        shift += piece.mask.count_ones();
    }
    pieces.retain(|piece| piece.mask != 0);
    Ok(pieces)
}

/// The fields that `mapping.hash` names, as far as they have bits.
fn hashes(pieces: &[Piece], names: &[String]) -> Result<Vec<Hash>, Refusal> {
    let mut hashes = Vec::new();
    for name in names {
        let field = FIELDS.iter().position(|known| known == name);
        let field = field
            .filter(|field| (CHANNEL..=BANK).contains(field))
            .ok_or_else(|| Refusal {
                key: "mapping.hash".to_string(),
                value: format!("\"{name}\""),
                right: format!("expected one of {}", FIELDS[CHANNEL..=BANK].join(", ")),
            })?;
        // A field of one value has no piece and nothing to spread.
        if let Some(highest) = pieces.iter().find(|piece| piece.field == field) {
            let shift = highest.shift + highest.mask.count_ones();
            hashes.push(Hash { field, shift });
        }
    }
    Ok(hashes)
}

impl Mapping {
    pub(super) fn new(device: &Device, order: &str, hash: &[String]) -> Result<Mapping, Refusal> {
        let counts = [
            device.stacks,
            device.channels,
            device.pseudo_channels,
            device.bank_groups,
            device.banks,
            device.rows,
            device.columns,
        ];
        let bits = counts.map(|count| count.next_power_of_two().trailing_zeros());
        let mut pieces = pieces(device, order, bits)?;
        let hashes = hashes(&pieces, hash)?;
        pieces.retain(|piece| piece.field != STACK);
        let accesses = device.capacity() / u64::from(device.access_bytes);
        let mut mapping = Mapping {
            access_shift: device.access_bytes.trailing_zeros(),
            accesses,
            stack_accesses: StrengthReducedU64::new(accesses / u64::from(device.stacks)),
            pieces,
            hashes,
            bits,
            block: Vec::new(),
            cycle: 1,
            tables: Vec::new(),
        };
        mapping.tabulate();
        Ok(mapping)
    }

    /// Fills in what is looked up instead of computed: the shares of an access's bytes, and its block.
    fn tabulate(&mut self) {
        let width = u64::BITS - (self.stack_accesses.get() - 1).leading_zeros();
        self.tables = (0..width.div_ceil(8))
            .map(|byte| {
                let share = |value: u64| self.within_stack(value << (8 * byte)).pack();
                std::array::from_fn(|value| share(value as u64))
            })
            .collect();
        let inside = |piece: &&Piece| matches!(piece.field, COLUMN | BANK_GROUP);
        let low = self.pieces.iter().rev().take_while(inside);
        let low: u32 = low.map(|piece| piece.mask.count_ones()).sum();
        let hashed = self.hashes.iter().map(|hash| hash.shift).min();
        let low = low.min(hashed.unwrap_or(u32::MAX)).min(BLOCK_BITS);
        self.block = (0..1u64 << low)
            .filter_map(|access| self.place(access << self.access_shift))
            .map(|place| place.bank)
            .collect();
        // Within a block only the bank group changes.
        let block = &self.block;
        let repeats = |shift: &u32| {
            let cycle = &block[..1 << shift];
            let once = (1..cycle.len()).all(|n| !cycle[..n].contains(&cycle[n]));
            once && block.chunks(cycle.len()).all(|part| part == cycle)
        };
        self.cycle = 1 << (0..low).find(repeats).unwrap_or(low);
    }

    /// The first access of the block that holds an access.
    #[inline]
    pub(super) fn block_of(&self, access: u64) -> u64 {
        access & !(self.block.len() as u64 - 1)
    }

    /// The block that holds byte `addr`; `None` beyond the memory's end.
    #[inline]
    pub(super) fn block(&self, addr: u64) -> Option<Block> {
        let first = self.block_of(addr >> self.access_shift);
        self.packed(first << self.access_shift).map(Block)
    }

    /// The block that holds byte `offset` of a stack; `None` beyond the memory's end.
    #[inline]
    pub(super) fn block_in(&self, stack: u64, offset: u64) -> Option<Block> {
        let first = self.block_of(offset >> self.access_shift);
        let inside =
            first < self.stack_accesses.get() && stack * self.stack_accesses.get() < self.accesses;
        inside.then(|| Block(self.packed_in(stack, first)))
    }

    /// The banks of the accesses `first` to `last`, of which `block` holds the first; `None` if they do not lie
    /// in one block.
    #[inline]
    pub(super) fn run(&self, first: u64, last: u64, block: Block) -> Option<Run<'_>> {
        if self.block_of(first) != self.block_of(last) {
            return None;
        }
        let mask = self.block.len() as u64 - 1;
        let within = (first & mask) as usize..=(last & mask) as usize;
        Some(Run {
            first: block.place().bank,
            banks: self.block.get(within)?,
            cycle: self.cycle,
        })
    }

    /// Bytes that can be addressed.
    pub fn capacity(&self) -> u64 {
        self.accesses << self.access_shift
    }

    /// Where the access that holds byte `addr` goes; `None` beyond the memory's end.
    pub fn place(&self, addr: u64) -> Option<Place> {
        self.packed(addr).map(Place::unpack)
    }

    /// As [`Mapping::place`], packed.
    #[inline]
    fn packed(&self, addr: u64) -> Option<u64> {
        let access = addr >> self.access_shift;
        if access >= self.accesses {
            return None;
        }
        let (stack, within) = match self.bits[STACK] {
            0 => (0, access),
            _ => StrengthReducedU64::div_rem(access, self.stack_accesses),
        };
        Some(self.packed_in(stack, within))
    }

    /// Where an access of a stack goes, packed.
    #[inline]
    fn packed_in(&self, stack: u64, mut within: u64) -> u64 {
        let mut packed = 0;
        for table in &self.tables {
            packed ^= table[usize::from(within as u8)];
            within >>= 8;
        }
        packed | stack << (self.bits[CHANNEL] + self.bits[PSEUDO_CHANNEL])
    }

    /// Where an access of the first stack goes, field by field.
    fn within_stack(&self, access: u64) -> Place {
        let mut fields = [0u32; 7];
        for piece in &self.pieces {
            fields[piece.field] |= ((access >> piece.shift) as u32 & piece.mask) << piece.place;
        }
        for hash in &self.hashes {
            fields[hash.field] ^= fold(access >> hash.shift, self.bits[hash.field]);
        }
        Place {
            channel: fields[CHANNEL] << self.bits[PSEUDO_CHANNEL] | fields[PSEUDO_CHANNEL],
            bank: fields[BANK_GROUP] << self.bits[BANK] | fields[BANK],
            row: fields[ROW],
            column: fields[COLUMN],
        }
    }
}

impl Place {
    /// All in one word: 16 bits for channel, bank and column each would do, rows need more.
    fn pack(self) -> u64 {
        let low = u64::from(self.channel) | u64::from(self.bank) << 16;
        low | u64::from(self.column) << 24 | u64::from(self.row) << 40
    }

    #[inline]
    fn unpack(packed: u64) -> Place {
        Place {
            channel: (packed & 0xffff) as u32,
            bank: (packed >> 16 & 0xff) as u32,
            column: (packed >> 24 & 0xffff) as u32,
            row: (packed >> 40) as u32,
        }
    }
}

/// The exclusive or of all groups of `width` bits of `bits`; `width` is not 0. Halves what is left in each
/// step.
#[inline]
fn fold(mut bits: u64, width: u32) -> u32 {
    let mut shift = width << (u64::BITS / width).ilog2();
    while shift >= width {
        bits ^= bits.checked_shr(shift).unwrap_or(0);
        shift /= 2;
    }
    bits as u32 & ((1 << width) - 1)
}

#[cfg(test)]
mod tests;
