//! Where the bits of an address go: stack, channel, pseudo-channel, bank group, bank, row, column.

use super::config::{Device, Refusal};

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
    stack_accesses: u64,
    pieces: Vec<Piece>,
    hashes: Vec<Hash>,
    /// Bits of each field.
    bits: [u32; 7],
}

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

/// A field that is combined with the row's bits, so that strides that would stay within one of its
/// values spread over all.
#[derive(Clone, Copy, Debug)]
struct Hash {
    field: usize,
    bits: u32,
}

/// Where one access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Mapping {
    pub(super) fn new(device: &Device, order: &str, hash: &[String]) -> Result<Mapping, Refusal> {
        let refuse = |right: String| ("mapping.order", format!("\"{order}\""), right);
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
        let mut left = bits;
        let mut pieces = Vec::new();
        let words: Vec<&str> = order.split_whitespace().collect();
        for word in &words {
            let (name, wanted) = match word.split_once(':') {
                Some((name, bits)) => (name, bits.parse::<u32>().ok()),
                None => (*word, None),
            };
            let field = FIELDS.iter().position(|known| *known == name).ok_or_else(|| {
                refuse(format!("\"{name}\" is none of {}", FIELDS.join(", ")))
            })?;
            let width = match (word.contains(':'), wanted) {
                (false, _) => left[field],
                (true, Some(width)) if width <= left[field] => width,
                _ => {
                    let most = left[field];
                    return Err(refuse(format!("\"{word}\" must have a number of bits up to {most}")));
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
            return Err(refuse(format!("{missing} bits of {name} have no place")));
        }
        // Counts that are no power of two, and the stacks' own address ranges, leave no choice.
        let mut leading = words.iter().copied();
        if device.stacks > 1 && leading.next() != Some("stack") {
            return Err(refuse("must begin with stack".to_string()));
        }
        if !device.rows.is_power_of_two() && leading.next() != Some("row") {
            let right = "must begin with stack and row, since the number of rows is no power of two";
            return Err(refuse(right.to_string()));
        }
        let mut shift = 0;
        for piece in pieces.iter_mut().rev() {
            piece.shift = shift;
            shift += piece.mask.count_ones();
        }
        pieces.retain(|piece| piece.mask != 0 && piece.field != STACK);
        let mut hashes = Vec::new();
        for name in hash {
            let field = FIELDS.iter().position(|known| known == name);
            let field = field.filter(|field| (CHANNEL..=BANK).contains(field)).ok_or_else(|| {
                let right = format!("must name {}", FIELDS[CHANNEL..=BANK].join(", "));
                ("mapping.hash", format!("\"{name}\""), right)
            })?;
            hashes.push(Hash { field, bits: bits[field] });
        }
        let accesses = device.capacity() / u64::from(device.access_bytes);
        Ok(Mapping {
            access_shift: device.access_bytes.trailing_zeros(),
            accesses,
            stack_accesses: accesses / u64::from(device.stacks),
            pieces,
            hashes,
            bits,
        })
    }

    /// Bytes that can be addressed.
    pub fn capacity(&self) -> u64 {
        self.accesses << self.access_shift
    }

    /// Where the access that holds byte `addr` goes; `None` beyond the memory's end.
    pub fn place(&self, addr: u64) -> Option<Place> {
        let access = addr >> self.access_shift;
        if access >= self.accesses {
            return None;
        }
        let mut fields = [0u32; 7];
        let mut within = access;
        if self.bits[STACK] != 0 {
            fields[STACK] = (access / self.stack_accesses) as u32;
            within = access % self.stack_accesses;
        }
        for piece in &self.pieces {
            fields[piece.field] |= ((within >> piece.shift) as u32 & piece.mask) << piece.place;
        }
        for hash in &self.hashes {
            fields[hash.field] ^= fold(fields[ROW], hash.bits);
        }
        let channel = fields[STACK] << self.bits[CHANNEL] | fields[CHANNEL];
        Some(Place {
            channel: channel << self.bits[PSEUDO_CHANNEL] | fields[PSEUDO_CHANNEL],
            bank: fields[BANK_GROUP] << self.bits[BANK] | fields[BANK],
            row: fields[ROW],
            column: fields[COLUMN],
        })
    }
}

/// The exclusive or of all groups of `bits` bits of `row`.
fn fold(row: u32, bits: u32) -> u32 {
    let mut rest = row;
    let mut sum = 0;
    while rest != 0 && bits != 0 {
        sum ^= rest;
        rest >>= bits;
    }
    sum & ((1 << bits) - 1)
}
