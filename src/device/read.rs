//! The read station of M2S: cuts the sources of the packet that the scheduler has started into bursts, many of which
//! are in flight.
//!
//! Bursts are sampled whenever their target gets to them (A5); their data enters the stream in the
//! order they were issued (A2).

use super::activity::{Station, StationState};
use super::agenda::EngineEvent;
use super::burst::{Arrival, Begun, Burst, ReadBurst, ReadData};
use super::context::{Ctx, RegisterRead, register_window};
use super::core::Core;
use super::error::ErrorBit;
use super::fabric::Route;
use super::faults::{FaultKind, Site};
use super::job::Job;
use super::needs::Needs;
use super::request::{InFlight, MAX_BURST_BYTES, Request, Times, beats};
use super::window::Window;
use crate::arch::QueueId;
use crate::arch::regs::{Direction, M2sError, UdmaState};
use crate::dram::Kind as Way;
use crate::memory::{AccessError, AccessReason, Nearby, PhysicalMemory};
use crate::sim::Instant;
use crate::units::Addr;

/// The read station of an engine.
#[derive(Default)]
pub(super) struct Reader {
    /// The packet being read.
    pub job: Job,
    /// Cycle of the first burst of its first source.
    source_began: u64,
    /// First cycle at which the next burst can be issued.
    next_cycle: u64,
    /// Bursts in flight.
    bursts: Window<ReadBurst>,
    /// Where the last burst fell.
    near: Nearby,
    /// The descriptor whose data enters the stream, for an observer.
    begun: Begun,
}

/// What the station is to do in a cycle.
#[derive(PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing.
    Wait,
    /// It has nothing to read: the scheduler is asked for a packet.
    Schedule,
    /// It reads on.
    Read,
}

impl Reader {
    /// Forgets the packet of queue `q` that is being read, and what its bursts in flight are for. Returns the bytes that
    /// these have reserved in the lane.
    pub fn forget(&mut self, q: QueueId) -> u64 {
        let oldest = self.bursts.front().map(|read| read.queue);
        if self.job.queue == Some(q) {
            self.job.clear();
            if oldest.is_none_or(|oldest| oldest == q) {
                self.begun = Begun::default();
            }
        }
        let mut reserved = 0;
        for read in self.bursts.iter_mut().filter(|read| read.queue == q) {
            if matches!(read.data, ReadData::Lane(_) | ReadData::Passing { .. }) {
                reserved += u64::from(read.burst.len);
            }
            read.data = ReadData::Dropped;
            read.burst.issued_at = u64::MAX;
            if read.burst.lost {
                read.burst.answered = Instant::START;
            }
        }
        reserved
    }

    /// The oldest burst whose data is not there.
    pub fn oldest(&self) -> Option<&Burst> {
        self.bursts.front().map(|read| &read.burst)
    }

    /// When the oldest burst's data is there; never, if that is not known yet.
    pub fn oldest_ready_at(&self) -> Instant {
        self.bursts
            .front()
            .map_or(Instant::NEVER, |read| read.burst.answered)
    }

    /// What there is to do in this cycle.
    #[inline]
    pub fn turn(&self, core: &Core, cycle: u64, needs: &mut Needs) -> Turn {
        // A disabled half starts no packet, but reads the one it is at to its end.
        let starts = self.job.queue.is_none();
        if starts && core.halves.m2s.state != UdmaState::Normal {
            needs.station(Station::Read, StationState::Idle);
            return Turn::Wait;
        }
        if cycle < self.next_cycle {
            needs.cycle(self.next_cycle);
            return Turn::Wait;
        }
        match starts {
            true => Turn::Schedule,
            false => Turn::Read,
        }
    }

    /// Issues at most one read burst.
    pub fn issue(&mut self, core: &mut Core, cycle: u64, needs: &mut Needs, ctx: &mut Ctx) {
        let (Some(queue), Some(source)) = (self.job.queue, self.job.sources.front()) else {
            return;
        };
        if self.bursts.len() >= core.limits.data_reads {
            needs.read = true;
            needs.station(Station::Read, StationState::Data);
            return;
        }
        let source = *source;
        let at = Addr(source.at.0.wrapping_add(u64::from(self.job.offset)));
        let left = source.len - self.job.offset;
        let len = core.burst_len(Direction::M2s, at, left);
        let Some(data) = self.reserve(core, queue, len) else {
            needs.ack = true;
            needs.station(Station::Read, StationState::Fifo);
            return;
        };
        let near = &mut self.near;
        let route = ctx.fabric.route_near(ctx.memory, at, u64::from(len), near);
        let burst = self.bursts.next();
        let request = Request {
            access: InFlight::Read { burst },
            kind: Way::Read,
            issued: ctx.now,
            len,
        };
        let times = core.send(request, route, ctx);
        if let Some(times) = times {
            core.agenda.push(times.done, EngineEvent::Read { burst });
        }
        self.bursts.push(ReadBurst {
            queue,
            data,
            burst: Burst {
                at,
                len,
                desc: source.desc,
                slot: source.slot,
                last: len == left,
                issued: ctx.now,
                channel: route.channel() as u32,
                times: times.unwrap_or_default(),
                issued_at: cycle,
                lost: false,
                answered: Instant::NEVER,
            },
        });
        self.issued(core, len, len == left, route, cycle);
        needs.cycle(self.next_cycle);
        needs.station(Station::Read, StationState::Busy);
    }

    /// Space in the data FIFO for the next `len` bytes; nothing if it is full.
    #[inline(always)]
    fn reserve(&mut self, core: &mut Core, queue: QueueId, len: u32) -> Option<ReadData> {
        let intake = self.job.intake.as_mut();
        let behind = intake.as_ref().map_or(0, |intake| intake.behind(len));
        let space = len + behind;
        if core.work.fifo_bytes + u64::from(space) > core.limits.fifo_bytes {
            return None;
        }
        let offset = match &intake {
            Some(intake) if !intake.passes() => 0,
            _ => core.queues[queue].lane.reserve(space)?,
        };
        core.work.fifo_bytes += u64::from(space);
        Some(
            match intake.map(|intake| (intake.packet, intake.issue(len))) {
                None => ReadData::Lane(offset),
                Some((packet, None)) => ReadData::Passing { packet, at: offset },
                Some((packet, Some(offset))) => ReadData::Source { packet, offset },
            },
        )
    }

    /// A burst of `len` bytes has been issued: goes on in its source, or to the next one if it was the last.
    #[inline(always)]
    fn issued(&mut self, core: &Core, len: u32, last: bool, route: Route, cycle: u64) {
        let job = &mut self.job;
        job.offset += len;
        self.next_cycle = cycle + job.pace.cycles(beats(len), route.is_state_buffer());
        if job.offset == len {
            self.source_began = cycle;
        }
        if last {
            job.sources.pop_front();
            job.offset = 0;
            let least = self.source_began + core.header_cycles;
            self.next_cycle = self.next_cycle.max(least);
            if job.sources.is_empty() {
                job.queue = None;
                self.next_cycle += u64::from(core.timing.packet_cycles);
            }
        }
    }

    /// It is known when a read burst is sampled.
    pub fn timed(&mut self, core: &mut Core, burst: u64, times: Times) {
        if let Some(read) = self.bursts.get_mut(burst) {
            read.burst.times = times;
            core.agenda.push(times.done, EngineEvent::Read { burst });
        }
    }

    /// A read burst reaches its target: the bytes are taken now. Returns the register to ask if
    /// that is what the burst reads.
    pub fn sample(&mut self, core: &mut Core, burst: u64, ctx: &mut Ctx) -> Option<RegisterRead> {
        let oldest = burst == self.bursts.first();
        let read = self.bursts.get_mut(burst)?;
        if matches!(read.data, ReadData::Dropped) {
            sampled(core, &mut read.burst, oldest, ctx);
            return None;
        }
        let (at, len, queue) = (read.burst.at, read.burst.len, read.queue);
        let (first, rest) = core.queues[queue].room(read.data, len);
        let near = &mut self.near;
        let bytes = match rest.is_empty() {
            true => ctx.memory.read_near(at, first, near),
            false => read_pieces(ctx.memory, at, near, first, rest),
        };
        let fault =
            (core.faults.as_mut()).and_then(|faults| faults.strike(Site::Read, queue, ctx.now));
        match (bytes, fault) {
            (Ok(()), None) => {}
            (_, Some(FaultKind::LostRead)) => {
                read.burst.lost = true;
                return None;
            }
            (Ok(()), Some(FaultKind::FlipData { bit })) => {
                let (byte, bit) = (bit / 8 % len, bit % 8);
                if let Some(byte) = first.iter_mut().chain(rest).nth(byte as usize) {
                    *byte ^= 1 << bit;
                }
            }
            (_, Some(FaultKind::ReadError)) => refuse(core, read),
            (Err(error), _) => {
                if error.reason == AccessReason::Registers
                    && let Some((engine, offset)) = register_window(ctx.memory, at, len)
                {
                    return Some(RegisterRead {
                        burst,
                        engine,
                        offset,
                    });
                }
                refuse(core, read);
            }
            _ => {}
        }
        sampled(core, &mut read.burst, oldest, ctx);
        None
    }

    /// The answer of the register that a burst reads.
    pub fn answer(&mut self, core: &mut Core, burst: u64, value: u32, ctx: &mut Ctx) {
        let oldest = burst == self.bursts.first();
        let Some(read) = self.bursts.get_mut(burst) else {
            return;
        };
        let (first, rest) = core.queues[read.queue].room(read.data, read.burst.len);
        for (to, byte) in first.iter_mut().chain(rest).zip(value.to_le_bytes()) {
            *to = byte;
        }
        sampled(core, &mut read.burst, oldest, ctx);
    }

    /// The next data that has arrived, in the order it was asked for: it enters the stream.
    #[inline]
    pub fn next_arrival(&mut self, ctx: &mut Ctx) -> Option<Arrival> {
        let read = self.bursts.front()?;
        if read.burst.answered > ctx.now {
            return None;
        }
        let arrival = Arrival {
            queue: read.queue,
            data: read.data,
            len: read.burst.len,
        };
        if matches!(read.data, ReadData::Dropped) {
            self.begun = Begun::default();
        } else if ctx.out.observed {
            read.tell(&mut self.begun, ctx.out);
        }
        self.bursts.pop_front();
        Some(arrival)
    }

    /// The oldest read has not been answered in time: an AXI timeout. It is reported once; if the
    /// error is masked, the engine goes on waiting.
    pub fn check_timeout(&mut self, core: &mut Core, cycle: u64, needs: &mut Needs) {
        let Some(read) = self.bursts.front_mut() else {
            return;
        };
        if needs.overdue(&mut read.burst.issued_at, core.limits.axi_timeout, cycle) {
            let bit = ErrorBit::M2s(M2sError::DataTimeout);
            core.raise(bit, read.burst.origin(read.queue));
        }
    }
}

/// A read that nothing answers: an AXI error. If it is masked, the data is zeros (C).
#[cold]
fn refuse(core: &mut Core, read: &ReadBurst) {
    let (first, rest) = core.queues[read.queue].room(read.data, read.burst.len);
    first.fill(0);
    rest.fill(0);
    let bit = ErrorBit::M2s(M2sError::DataResponse);
    core.raise(bit, read.burst.origin(read.queue));
}

/// A read burst's bytes have been taken.
#[inline]
fn sampled(core: &mut Core, burst: &mut Burst, oldest: bool, ctx: &Ctx) {
    let ready_at = ctx.now + burst.times.response;
    burst.answered = ready_at;
    core.counters.bytes_read += u64::from(burst.len);
    if core.waits_for_read && oldest {
        core.wake_by(ready_at, ctx);
    }
}

/// Reads one burst into a place that wraps around.
// Apart, for its room on the stack.
#[cold]
fn read_pieces(
    memory: &PhysicalMemory,
    at: Addr,
    near: &mut Nearby,
    first: &mut [u8],
    rest: &mut [u8],
) -> Result<(), AccessError> {
    let mut whole = [0; MAX_BURST_BYTES];
    let whole = &mut whole[..first.len() + rest.len()];
    memory.read_near(at, whole, near)?;
    let (a, b) = whole.split_at(first.len());
    first.copy_from_slice(a);
    rest.copy_from_slice(b);
    Ok(())
}
