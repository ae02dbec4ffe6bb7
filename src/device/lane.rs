//! The data FIFO's bytes of one queue: filled by read bursts at the place reserved when they were
//! issued, emptied by write bursts in stream order.
//!
//! Offsets count all bytes that ever entered the queue's stream. Space is given back when a write
//! is acknowledged, not when it is issued: the driver sizes the FIFO at 8 beats for each
//! outstanding write, so written bytes must still occupy it.

/// Bytes a lane can hold: the largest data FIFO a register can ask for (4095 beats), as a power of
/// two.
const CAPACITY: usize = 128 << 10;
/// Bytes a lane has room for at first: it grows with what is under way, which most often is little, so
/// that the bytes stay in the first cache.
const LEAST: usize = 8 << 10;

/// One queue's part of the data FIFO.
#[derive(Default)]
pub struct Lane {
    /// Ring buffer: a power of two, up to [`CAPACITY`] bytes.
    bytes: Box<[u8]>,
    /// End of what has been reserved for issued reads.
    reserved: u64,
    /// End of what reads have delivered, in order.
    delivered: u64,
    /// End of what write bursts have taken.
    taken: u64,
    /// End of what has been written and acknowledged.
    freed: u64,
}

impl Lane {
    /// Reserves space for a read burst; returns its stream offset. `None` if the lane is full.
    #[inline]
    pub fn reserve(&mut self, len: u32) -> Option<u64> {
        let end = self.reserved + u64::from(len);
        if end - self.freed > CAPACITY as u64 {
            return None;
        }
        if end - self.freed > self.bytes.len() as u64 {
            self.grow((end - self.freed) as usize);
        }
        let start = self.reserved;
        self.reserved = end;
        Some(start)
    }

    /// Makes room for `len` bytes, at most [`CAPACITY`].
    #[cold]
    fn grow(&mut self, len: usize) {
        let held = (self.reserved - self.freed) as u32;
        let (first, rest) = self.pieces(self.freed, held);
        let held_bytes = [first, rest].concat();
        self.bytes = vec![0; len.next_power_of_two().max(LEAST)].into_boxed_slice();
        let (first, rest) = self.pieces_mut(self.freed, held);
        let (a, b) = held_bytes.split_at(first.len());
        first.copy_from_slice(a);
        rest.copy_from_slice(b);
    }

    /// The next `len` bytes of the stream have arrived.
    #[inline]
    pub fn deliver(&mut self, len: u32) {
        self.delivered += u64::from(len);
    }

    /// Bytes that have arrived and no write has taken.
    #[inline]
    pub fn available(&self) -> u64 {
        self.delivered - self.taken
    }

    /// Bytes that are reserved and not written and acknowledged.
    pub fn reserved(&self) -> u64 {
        self.reserved - self.freed
    }

    /// Takes `len` available bytes for a write burst; returns their stream offset.
    #[inline]
    pub fn take(&mut self, len: u32) -> u64 {
        let start = self.taken;
        self.taken += u64::from(len);
        start
    }

    /// The oldest `len` taken bytes are written: their space is free.
    #[inline]
    pub fn free(&mut self, len: u32) {
        self.freed += u64::from(len);
    }

    /// The `len` bytes at a stream offset; two pieces where they wrap around.
    #[inline]
    pub fn pieces(&self, offset: u64, len: u32) -> (&[u8], &[u8]) {
        let (start, first) = self.split(offset, len);
        let rest = len as usize - first;
        (&self.bytes[start..start + first], &self.bytes[..rest])
    }

    /// As [`Lane::pieces`], to fill.
    #[inline]
    pub fn pieces_mut(&mut self, offset: u64, len: u32) -> (&mut [u8], &mut [u8]) {
        let (start, first) = self.split(offset, len);
        let rest = len as usize - first;
        let (low, high) = self.bytes.split_at_mut(start);
        (&mut high[..first], &mut low[..rest])
    }

    /// Where a run starts in the ring buffer and how many of its bytes lie before the wrap.
    #[inline]
    fn split(&self, offset: u64, len: u32) -> (usize, usize) {
        let size = self.bytes.len();
        let start = offset as usize & size.wrapping_sub(1);
        (start, (len as usize).min(size - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What goes in comes out, in order, whatever the burst lengths on either side.
        #[test]
        fn a_stream_survives(reads in prop::collection::vec(1u32..4096, 1..200), cut in 1u32..4096) {
            let mut lane = Lane::default();
            let (mut put, mut got) = (0u32, 0u32);
            for len in reads {
                while lane.reserved + u64::from(len) - lane.freed > CAPACITY as u64 {
                    let n = cut.min(lane.available() as u32);
                    check(&mut lane, n, &mut got);
                }
                let at = lane.reserve(len).unwrap();
                let (a, b) = lane.pieces_mut(at, len);
                for byte in a.iter_mut().chain(b) {
                    *byte = (put % 251) as u8;
                    put += 1;
                }
                lane.deliver(len);
            }
            let rest = lane.available() as u32;
            check(&mut lane, rest, &mut got);
            prop_assert_eq!(put, got);
        }
    }

    fn check(lane: &mut Lane, len: u32, got: &mut u32) {
        let at = lane.take(len);
        let (a, b) = lane.pieces(at, len);
        for byte in a.iter().chain(b) {
            assert_eq!(*byte, (*got % 251) as u8);
            *got += 1;
        }
        lane.free(len);
    }

    #[test]
    fn a_full_lane_refuses() {
        let mut lane = Lane::default();
        assert_eq!(lane.reserve(CAPACITY as u32), Some(0));
        assert_eq!(lane.reserve(1), None);
        lane.deliver(4);
        lane.take(4);
        assert_eq!(lane.reserve(1), None);
        lane.free(4);
        assert_eq!(lane.reserve(4), Some(CAPACITY as u64));
    }
}
