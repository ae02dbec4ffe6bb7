//! All pseudo-channels of a memory behind one interface, in simulated time.

use super::banks::{Kind, Rules};
use super::channel::{Channel, Counts};
use super::command::{Command, Done, Observer};
use super::config::DramConfig;
use super::mapping::{Block, Mapping};
use crate::sim::{Clock, Instant};
use crate::units::Cycles;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// A memory: requests go in with the time of their arrival, completions come out.
///
/// Time must not go back: the `now` of [`Dram::enqueue`] is never before that of an earlier call or
/// the `until` of an earlier [`Dram::advance`]. A caller with other events in hand calls
/// [`Dram::advance`] whenever [`Dram::next_event`] is the earliest, and asks again after each
/// [`Dram::enqueue`].
#[derive(Clone, Debug)]
pub struct Dram {
    mapping: Mapping,
    /// Bytes of an access: a power of two.
    access_shift: u32,
    clock: Clock,
    channels: Vec<Channel>,
    /// Next events of the channels; one that is no longer its channel's is skipped.
    events: BinaryHeap<Reverse<(u64, u32)>>,
    /// Requests under way, by the number that their accesses carry.
    requests: Vec<Request>,
    unused: Vec<usize>,
}

/// A request under way, of several accesses perhaps.
#[derive(Clone, Copy, Debug)]
struct Request {
    id: u64,
    left: u64,
    last: u64,
    moved: u64,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The number its sender gave it.
    pub id: u64,
    /// When the last of its data has passed between controller and banks. This is known, and told,
    /// as soon as the last command for it is sent: it lies ahead.
    pub at: Instant,
    /// Accesses whose data did: all but those that a queued write had the data for.
    pub moved: u64,
}

/// A request beyond the end of the memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes at {addr:#x} are outside the memory of {capacity:#x} bytes")]
pub struct OutOfRange {
    addr: u64,
    bytes: u64,
    capacity: u64,
}

impl Dram {
    /// A memory at rest.
    ///
    /// # Panics
    /// Never: the frequency was validated.
    pub fn new(config: &DramConfig) -> Dram {
        Dram {
            mapping: config.mapping.clone(),
            access_shift: config.device.access_bytes.trailing_zeros(),
            clock: Clock::new(config.device.clock).expect("validated"),
            channels: channels(config),
            events: BinaryHeap::new(),
            requests: Vec::new(),
            unused: Vec::new(),
        }
    }

    /// Bytes that can be addressed: stack after stack, from 0.
    pub fn capacity(&self) -> u64 {
        self.mapping.capacity()
    }

    /// Sends a request for `bytes` bytes at `addr`. The controllers accept it from the first edge of
    /// the memory's clock at or after `now` on, in order of arrival, as their queues have room;
    /// its accesses may go to several of them.
    ///
    /// # Errors
    /// [`OutOfRange`] if a byte lies beyond the memory's end or there is none; nothing is sent then.
    pub fn enqueue(
        &mut self,
        now: Instant,
        addr: u64,
        bytes: u64,
        kind: Kind,
        id: u64,
    ) -> Result<(), OutOfRange> {
        let capacity = self.capacity();
        let end = addr.checked_add(bytes);
        if bytes == 0 || end.is_none_or(|end| end > capacity) {
            return Err(OutOfRange {
                addr,
                bytes,
                capacity,
            });
        }
        let first = addr >> self.access_shift;
        let last = (addr + bytes - 1) >> self.access_shift;
        let request = Request {
            id,
            left: last - first + 1,
            last: 0,
            moved: 0,
        };
        let number = match self.unused.pop() {
            Some(number) => {
                self.requests[number] = request;
                number
            }
            None => {
                self.requests.push(request);
                self.requests.len() - 1
            }
        };
        let at = self.clock.cycle_from(now).0;
        for access in first..=last {
            let Some(place) = self.mapping.place(access << self.access_shift) else {
                continue; // not reached: the end was checked
            };
            let channel = &mut self.channels[place.channel as usize];
            let before = channel.next_event();
            // Requests to one channel do not overtake each other on their way.
            let at = at.max(channel.last_arrival());
            channel.offer(at, place, kind, number as u64);
            let next = channel.next_event();
            if next != before {
                self.events.push(Reverse((next, place.channel)));
            }
        }
        Ok(())
    }

    /// The block that holds an address; `None` beyond the memory's end.
    #[inline]
    pub fn block(&self, addr: u64) -> Option<Block> {
        self.mapping.block(addr)
    }

    /// The block that holds byte `offset` of a stack; `None` beyond the memory's end.
    #[inline]
    pub fn block_in(&self, stack: u64, offset: u64) -> Option<Block> {
        self.mapping.block_in(stack, offset)
    }

    /// Serves a request that begins in `block` and arrives at `now` at once, if it goes to one pseudo-channel at
    /// which nobody waits and whose bus is free soon: there is nothing to choose between, so that the banks
    /// alone say when its commands can be sent. Returns when the last of its data has passed, and how many
    /// accesses it was; `None` if it must be [enqueued](Dram::enqueue). Unlike there, `now` may be earlier than
    /// in an earlier call.
    #[inline(always)]
    pub fn serve_at_once(
        &mut self,
        now: Instant,
        block: Block,
        (addr, bytes): (u64, u64),
        kind: Kind,
    ) -> Option<(Instant, u64)> {
        let first = addr >> self.access_shift;
        let last = addr.checked_add(bytes.checked_sub(1)?)? >> self.access_shift;
        debug_assert_eq!(self.mapping.block(addr), Some(block));
        let run = self.mapping.run(first, last, block)?;
        let at = self.clock.cycle_from(now).0;
        let place = block.place();
        let channel = &mut self.channels[place.channel as usize];
        let end = channel.serve_at_once(at, place.row, run, kind)?;
        Some((self.clock.edge(Cycles(end)), last - first + 1))
    }

    /// When something happens next; [`Instant::NEVER`] if nothing does until a request arrives.
    pub fn next_event(&mut self) -> Instant {
        match self.next_channel() {
            Some((cycle, _)) => self.clock.edge(Cycles(cycle)),
            None => Instant::NEVER,
        }
    }

    /// Lets time pass until `until`, that instant included, and appends the completions that have
    /// become known, in order of the cycles at which they did.
    pub fn advance(&mut self, until: Instant, completions: &mut Vec<Completion>) {
        let until = self.clock.cycle_at(until).0;
        while let Some((cycle, number)) = self.next_channel().filter(|next| next.0 <= until) {
            self.events.pop();
            let channel = &mut self.channels[number as usize];
            let mut ends = Ends {
                clock: &self.clock,
                requests: &mut self.requests,
                unused: &mut self.unused,
                completions,
            };
            channel.advance(cycle, &mut ends);
            let next = channel.next_event();
            if next != u64::MAX {
                self.events.push(Reverse((next, number)));
            }
        }
    }

    /// What each pseudo-channel has done so far.
    pub fn counts(&self) -> impl Iterator<Item = &Counts> {
        self.channels.iter().map(Channel::counts)
    }

    /// The earliest event: its cycle and channel.
    fn next_channel(&mut self) -> Option<(u64, u32)> {
        while let Some(Reverse((cycle, number))) = self.events.peek() {
            if self.channels[*number as usize].next_event() == *cycle {
                return Some((*cycle, *number));
            }
            self.events.pop();
        }
        None
    }
}

/// The controllers of all pseudo-channels. Their refreshes are spread over the interval, so that not
/// all of them stand still at once; those of the first begin after a whole interval. Modelled (C).
pub(super) fn channels(config: &DramConfig) -> Vec<Channel> {
    let interval = u64::from(config.timing.refresh_interval);
    let count = u64::from(config.device.all_channels());
    let rules = Arc::new(Rules::new(config));
    (0..count)
        .map(|number| {
            let first_refresh = interval + number * interval / count;
            Channel::new(config, rules.clone(), first_refresh)
        })
        .collect()
}

/// Collects the ends of requests.
struct Ends<'a> {
    clock: &'a Clock,
    requests: &'a mut [Request],
    unused: &'a mut Vec<usize>,
    completions: &'a mut Vec<Completion>,
}

impl Observer for Ends<'_> {
    const COMMANDS: bool = false;

    fn command(&mut self, _: u64, _: Command) {}

    fn done(&mut self, done: Done) {
        let number = done.id as usize;
        let request = &mut self.requests[number];
        request.left -= 1;
        request.last = request.last.max(done.at);
        request.moved += u64::from(!done.forwarded);
        if request.left == 0 {
            self.completions.push(Completion {
                id: request.id,
                at: self.clock.edge(Cycles(request.last)),
                moved: request.moved,
            });
            self.unused.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Duration;
    use proptest::prelude::*;

    /// When a request sent alone is done.
    fn alone(dram: &mut Dram, now: Instant, addr: u64, bytes: u64, kind: Kind) -> Completion {
        dram.enqueue(now, addr, bytes, kind, 0).unwrap();
        let mut completions = Vec::new();
        while completions.is_empty() {
            let next = dram.next_event();
            dram.advance(next, &mut completions);
        }
        // Whatever the controller still wants to do for it is done before the next one comes.
        while dram.next_event() < Instant::NEVER {
            let next = dram.next_event();
            dram.advance(next, &mut completions);
        }
        completions[0]
    }

    fn at_once(
        dram: &mut Dram,
        now: Instant,
        addr: u64,
        bytes: u64,
        kind: Kind,
    ) -> Option<(Instant, u64)> {
        let block = dram.block(addr)?;
        dram.serve_at_once(now, block, (addr, bytes), kind)
    }

    proptest! {
        /// A request that nobody waits for takes as long at once as through the queue: exactly if it is one
        /// access. Of several the controller sends those to the row that is open already first; at once
        /// they go one after the other.
        #[test]
        fn at_once_is_as_through_the_queue(
            requests in prop::collection::vec(
                (0u64..1 << 22, prop::sample::select(&[1u64, 8][..]), any::<bool>(), 0u64..20_000),
                1..80,
            ),
        ) {
            let config = DramConfig::load("hbm-cayman", &[]).unwrap();
            let (mut queued, mut direct) = (Dram::new(&config), Dram::new(&config));
            let cycle_fs = 1e15 / config.device.clock.0 as f64;
            let mut now = Instant::START;
            let t = &config.timing;
            let refresh_fs = f64::from(t.refresh) * cycle_fs;
            for (block, accesses, write, gap) in requests {
                // Alone: the one before is over, even if a refresh held it up.
                now = now + Duration::from_ns(1_000 + gap);
                let kind = if write { Kind::Write } else { Kind::Read };
                let (addr, bytes) = (block * 256, accesses * 32);
                let through = alone(&mut queued, now, addr, bytes, kind);
                let (at, moved) = at_once(&mut direct, now, addr, bytes, kind).unwrap();
                prop_assert_eq!(moved, through.moved);
                let off = (at.as_fs() as f64 - through.at.as_fs() as f64) / cycle_fs;
                let refreshed = (through.at - now).as_fs() as f64 > refresh_fs;
                let slack = match (refreshed, accesses) {
                    // The controller may open a row that the refresh closes again.
                    (true, _) => f64::from(t.act_to_precharge + t.precharge + t.four_acts),
                    (false, 1) => 0.0,
                    (false, _) => 24.0,
                };
                prop_assert!(off.abs() <= slack, "{off} cycles, {refreshed} {accesses}");
            }
        }
    }

    /// An hour without requests costs nothing, through the queue and at once, and the refreshes are counted.
    #[test]
    fn an_idle_hour_is_made_up_for() {
        let config = DramConfig::load("hbm-cayman", &[]).unwrap();
        let mut dram = Dram::new(&config);
        let hour = Duration::from_ns(3_600_000_000_000);
        let mut now = Instant::START;
        let started = std::time::Instant::now();
        let closed = alone(&mut dram, now, 0, 32, Kind::Read).at - now;
        for bytes in [32, 256] {
            now = now + hour;
            let again = alone(&mut dram, now, 0, bytes, Kind::Read).at - now;
            assert!(
                again >= closed && again < closed + Duration::from_ns(500),
                "{again}"
            );
            now = now + hour;
            assert!(at_once(&mut dram, now, 0, bytes, Kind::Read).is_some());
        }
        assert!(started.elapsed().as_secs() < 1);
        let cycles = 4.0 * 3600.0 * config.device.clock.0 as f64;
        let wanted = cycles / f64::from(config.timing.refresh_interval);
        let counted = dram.counts().next().unwrap().refreshes as f64;
        assert!((counted - wanted).abs() < 2.0, "{counted} of {wanted}");
    }

    /// Who comes while the bus is taken, or while others wait, must be enqueued.
    #[test]
    fn at_once_is_refused_where_there_is_a_choice() {
        let mut dram = Dram::new(&DramConfig::load("hbm-cayman", &[]).unwrap());
        let now = Instant::from_fs(1_000_000_000);
        let mut served = 0;
        while at_once(&mut dram, now, 0, 256, Kind::Read).is_some() {
            served += 1;
        }
        // Sixteen cycles each, 142 within which the bus must be free.
        assert!((4..12).contains(&served), "{served}");
        // The next pseudo-channel is free, until somebody waits there.
        dram.enqueue(now, 256, 256, Kind::Read, 0).unwrap();
        assert_eq!(at_once(&mut dram, now, 256, 256, Kind::Read), None);
        assert_eq!(
            at_once(&mut dram, now, 128, 256, Kind::Read),
            None,
            "two pseudo-channels"
        );
        assert_eq!(at_once(&mut dram, now, 512, 0, Kind::Read), None);
        assert_eq!(
            at_once(&mut dram, now, u64::MAX - 256, 256, Kind::Read),
            None
        );
    }
}
