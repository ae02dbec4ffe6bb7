//! The queue of one kind of requests: a list in order of age for each bank, and in each the oldest
//! request to the open row. Every operation costs the same however full the queue is, but for the
//! search for requests to a row just opened.

use super::banks::bits;
use super::parameters::{MAX_BANKS, MAX_REQUESTS};

const SLOTS: usize = MAX_REQUESTS as usize;
const BANKS: usize = MAX_BANKS as usize;
/// No slot.
const NONE: u8 = u8::MAX;

/// A queued request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub id: u64,
    /// Cycle at which it was accepted.
    pub accepted: u64,
    pub bank: u8,
    pub row: u32,
    pub column: u32,
    /// Which of the other kind's slots wait for this request, a bit each.
    pub waiting: u64,
}

/// What has changed for a bank when a request was listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing: an older request decides what the bank needs.
    None,
    /// There is a request to the open row now.
    Hit,
    /// There is a request now, not to the open row.
    Miss,
}

#[derive(Clone, Debug)]
pub(super) struct Queue {
    entries: [Entry; SLOTS],
    /// Age of each slot's request: lower is older.
    sequences: [u64; SLOTS],
    /// Bank, row and column of each slot in one word, for [`Queue::youngest_to`].
    keys: [u64; SLOTS],
    next: [u8; SLOTS],
    prev: [u8; SLOTS],
    head: [u8; BANKS],
    tail: [u8; BANKS],
    /// Oldest request to the open row of each bank.
    hit: [u8; BANKS],
    /// Banks with a request to their open row, a bit each.
    hits: u64,
    /// Banks with requests, none of them to the open row, a bit each.
    misses: u64,
    /// Banks whose open row is to be closed, since an older request has waited for too long.
    closing: u64,
    /// Banks whose oldest request has had its row opened: it has left the queue and waits at the
    /// bank. Modelled (C).
    served: u64,
    /// Those of them whose row is still open.
    ready: u64,
    free: u64,
    capacity: u32,
    /// Requests in the queue.
    queued: u32,
    /// Requests that wait for nothing but the banks, at the banks or in the queue.
    listed: u32,
}

/// No request has this key: rows and columns are smaller.
const NO_KEY: u64 = u64::MAX;

fn key(bank: u8, row: u32, column: u32) -> u64 {
    u64::from(row) << 32 | u64::from(column) << 8 | u64::from(bank)
}

impl Queue {
    pub fn new(capacity: u32) -> Queue {
        Queue {
            entries: [Entry::default(); SLOTS],
            sequences: [0; SLOTS],
            keys: [NO_KEY; SLOTS],
            next: [NONE; SLOTS],
            prev: [NONE; SLOTS],
            head: [NONE; BANKS],
            tail: [NONE; BANKS],
            hit: [NONE; BANKS],
            hits: 0,
            misses: 0,
            closing: 0,
            served: 0,
            ready: 0,
            free: u64::MAX,
            capacity,
            queued: 0,
            listed: 0,
        }
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.queued == self.capacity
    }

    /// Whether there are no requests, neither in the queue nor at the banks.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.free == u64::MAX
    }

    /// Requests that wait for nothing but the banks.
    #[inline]
    pub fn listed(&self) -> u32 {
        self.listed
    }

    /// Requests that wait for nothing but the banks and need a row command or their turn: all but those for
    /// which a row is open.
    #[inline]
    pub fn pending(&self) -> u32 {
        self.listed - self.ready.count_ones()
    }

    /// Banks at which a request waits whose row has been opened for it.
    #[inline]
    pub fn ready(&self) -> u64 {
        self.ready
    }

    /// Banks with a request to their open row.
    #[inline]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Banks with requests, none of them to the open row.
    #[inline]
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// The age of the oldest request to the open row of a bank of [`Queue::hits`].
    #[inline]
    pub fn hit_sequence(&self, bank: usize) -> u64 {
        self.sequences[usize::from(self.hit[bank]) % SLOTS]
    }

    /// The age of the oldest request to a bank that has any.
    #[inline]
    pub fn oldest_sequence(&self, bank: usize) -> u64 {
        self.sequences[usize::from(self.head[bank]) % SLOTS]
    }

    /// The youngest request for the same column, if there is one.
    pub fn youngest_to(&self, bank: u8, row: u32, column: u32) -> Option<usize> {
        let wanted = key(bank, row, column);
        // Without a branch for each slot: this is asked for every request.
        if !self
            .keys
            .iter()
            .fold(false, |any, key| any | (*key == wanted))
        {
            return None;
        }
        (0..SLOTS)
            .filter(|slot| self.keys[*slot] == wanted)
            .max_by_key(|slot| self.sequences[*slot])
    }

    /// Takes a free slot for a request, which is not listed with its bank yet.
    #[inline]
    pub fn insert(&mut self, sequence: u64, entry: Entry) -> usize {
        let slot = self.free.trailing_zeros() as usize;
        self.free &= self.free - 1;
        self.queued += 1;
        self.entries[slot] = entry;
        self.sequences[slot] = sequence;
        self.keys[slot] = key(entry.bank, entry.row, entry.column);
        slot
    }

    /// Has the requests of another queue's slot wait for the request in `slot`.
    pub fn add_waiting(&mut self, slot: usize, other: usize) {
        self.entries[slot].waiting |= 1 << other;
    }

    /// Lists a request with its bank, where it is the youngest.
    #[inline]
    pub fn list(&mut self, slot: usize, to_open_row: bool) -> Change {
        let bank = usize::from(self.entries[slot].bank);
        self.listed += 1;
        let last = self.tail[bank];
        self.prev[slot] = last;
        self.next[slot] = NONE;
        self.tail[bank] = slot as u8;
        match last {
            NONE => self.head[bank] = slot as u8,
            last => self.next[usize::from(last)] = slot as u8,
        }
        let bit = 1 << bank;
        if (self.hits | self.closing) & bit != 0 {
            return Change::None;
        }
        if to_open_row {
            self.hit[bank] = slot as u8;
            self.hits |= bit;
            self.misses &= !bit;
            return Change::Hit;
        }
        if self.misses & bit != 0 {
            return Change::None;
        }
        self.misses |= bit;
        Change::Miss
    }

    /// Takes out the oldest request to the open row of a bank. `from` is the first cycle at which
    /// requests were accepted that may still be overtaken.
    #[inline]
    pub fn take_hit(&mut self, bank: usize, row: u32, from: u64) -> Entry {
        let slot = usize::from(self.hit[bank]) % SLOTS;
        let (before, after) = (self.prev[slot], self.next[slot]);
        match before {
            NONE => self.head[bank] = after,
            before => self.next[usize::from(before)] = after,
        }
        match after {
            NONE => self.tail[bank] = before,
            after => self.prev[usize::from(after)] = before,
        }
        self.free |= 1 << slot;
        self.keys[slot] = NO_KEY;
        self.listed -= 1;
        let bit = 1 << bank;
        match before == NONE && self.served & bit != 0 {
            true => {
                self.served &= !bit;
                self.ready &= !bit;
            }
            false => self.queued -= 1,
        }
        // Requests older than the one taken are to other rows.
        self.find_hit(bank, after, row);
        if self.hits & bit != 0 {
            let oldest = self.entries[usize::from(self.head[bank]) % SLOTS];
            if oldest.row != row && oldest.accepted < from {
                self.hits &= !bit;
                self.misses |= bit;
                self.closing |= bit;
            }
        }
        self.entries[slot]
    }

    /// Has the oldest request to a bank wait there, while its row, which is returned, is opened.
    #[inline]
    pub fn serve_oldest(&mut self, bank: usize) -> u32 {
        let bit = 1 << bank;
        self.queued -= u32::from(self.served & bit == 0);
        self.served |= bit;
        self.entries[usize::from(self.head[bank]) % SLOTS].row
    }

    /// Notes that a row of the bank is open now.
    pub fn opened(&mut self, bank: usize, row: u32) {
        let oldest = self.head[bank];
        if oldest == NONE {
            return;
        }
        self.find_hit(bank, oldest, row);
        if self.hit[bank] == oldest {
            self.ready |= self.served & self.hits & 1 << bank;
        }
    }

    /// Notes that no row of these banks is open any more.
    pub fn closed(&mut self, banks: u64) {
        self.hits &= !banks;
        self.closing &= !banks;
        self.ready &= !banks;
        for bank in bits(banks) {
            if self.head[bank] != NONE {
                self.misses |= 1 << bank;
            }
        }
    }

    /// Sets hit and miss of a bank whose open row is `row`; slots before `from` are known to be to
    /// other rows.
    #[inline]
    fn find_hit(&mut self, bank: usize, from: u8, row: u32) {
        let mut slot = from;
        while slot != NONE && self.entries[usize::from(slot)].row != row {
            slot = self.next[usize::from(slot)];
        }
        let bit = 1 << bank;
        self.hits &= !bit;
        self.misses &= !bit;
        if slot != NONE {
            self.hit[bank] = slot;
            self.hits |= bit;
        } else if self.head[bank] != NONE {
            self.misses |= bit;
        }
    }
}
