//! All pseudo-channels of a memory behind one interface, in simulated time.

use super::banks::Kind;
use super::channel::{Channel, Counts};
use super::command::{Command, Done, Observer};
use super::config::DramConfig;
use super::mapping::Mapping;
use crate::sim::{Clock, Instant};
use crate::units::Cycles;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A memory: requests go in with the time of their arrival, completions come out.
///
/// Time must not go back: the `now` of [`Dram::enqueue`] is never before that of an earlier call or
/// the `until` of an earlier [`Dram::advance`]. A caller with other events in hand calls
/// [`Dram::advance`] whenever [`Dram::next_event`] is the earliest, and asks again after each
/// [`Dram::enqueue`].
#[derive(Clone, Debug)]
pub struct Dram {
    mapping: Mapping,
    access_bytes: u64,
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
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The number its sender gave it.
    pub id: u64,
    /// When the last of its data has passed between controller and banks. This is known, and told,
    /// as soon as the last command for it is sent: it lies ahead.
    pub at: Instant,
}

/// A request beyond the end of the memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes at {addr:#x} do not lie within the memory's {capacity:#x} bytes")]
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
            access_bytes: u64::from(config.device.access_bytes),
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
        let first = addr / self.access_bytes;
        let last = (addr + bytes - 1) / self.access_bytes;
        let request = Request {
            id,
            left: last - first + 1,
            last: 0,
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
            let Some(place) = self.mapping.place(access * self.access_bytes) else {
                continue; // not reached: the end was checked
            };
            let channel = &mut self.channels[place.channel as usize];
            let before = channel.next_event();
            channel.offer(at, place, kind, number as u64);
            let next = channel.next_event();
            if next != before {
                self.events.push(Reverse((next, place.channel)));
            }
        }
        Ok(())
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
    (0..count)
        .map(|number| Channel::new(config, interval + number * interval / count))
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
        if request.left == 0 {
            let (id, at) = (request.id, self.clock.edge(Cycles(request.last)));
            self.completions.push(Completion { id, at });
            self.unused.push(number);
        }
    }
}
