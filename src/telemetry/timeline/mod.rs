//! A run as a Perfetto trace: stations, queues, channels, sequencers and semaphores are tracks, what
//! they do slices and instants on them, with arrows from a doorbell to its packets and from a packet to
//! the semaphores it changes. Written as the run goes.

mod doorbells;
mod file;
mod place;
mod proto;
mod words;

use super::reorder::Reorder;
use super::{End, Machine};
use crate::arch::regs::Direction;
use crate::arch::{EngineId, EventBlock, QueueId};
use crate::device::{Access, EngineActivity, Station, StationState};
use crate::sim::{Duration, Instant};
use crate::system::{Activity, Observer};
use doorbells::Doorbells;
use file::{Arg, Event, TraceFile, TrackId};
use place::{Burst, Described, Place};
use proto::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use words::{bytes_at, descriptor, in_words};

/// Length of the stretches that the throughput counters are means over.
const THROUGHPUT_WINDOW: Duration = Duration::from_ns(1_000);

/// Semaphore changes that wait for the write that caused them. A sequencer's or the host's never get
/// one.
const MOST_CHANGES: usize = 1024;

/// How long after a semaphore changed the write is acknowledged that changed it, at most.
const CLAIMED_WITHIN: Duration = Duration::from_ns(20_000);

/// What is put in order of time before it is written.
enum Late {
    /// An access at its channel, until then.
    Served(u32, Burst, Instant, Vec<Arg>),
    /// Bursts outstanding: one more or one less.
    Outstanding(EngineId, Burst, i64),
}

/// A semaphore change that may be the work of a write to be told yet.
struct Change {
    at: Instant,
    block: u32,
    semaphore: u32,
    flow: u64,
}

/// Writes a timeline.
pub struct Timeline<W> {
    machine: Machine,
    trace: TraceFile<W>,
    /// The lanes of each place, with the time up to which each is taken.
    tracks: BTreeMap<Place, Vec<(TrackId, Instant)>>,
    late: Reorder<Late>,
    outstanding: BTreeMap<(EngineId, Burst), i64>,
    /// Number of the current stretch and the bytes written in it.
    throughput: BTreeMap<EngineId, (u64, u64)>,
    flows: u64,
    doorbells: Doorbells,
    changes: VecDeque<Change>,
    /// Arrows from a queue's last packet, if that was one with a DMB, to its next.
    released: BTreeMap<(EngineId, QueueId), u64>,
    /// Arrows from packets that are not complete, by number in their queue.
    caused: BTreeMap<(EngineId, QueueId, u64), Vec<u64>>,
}

impl<W: Write> Timeline<W> {
    /// A timeline of a machine that has not run yet.
    pub fn new(machine: Machine, out: W) -> Timeline<W> {
        Timeline {
            machine,
            trace: TraceFile::new(out),
            tracks: BTreeMap::new(),
            late: Reorder::default(),
            outstanding: BTreeMap::new(),
            throughput: BTreeMap::new(),
            flows: 0,
            doorbells: Doorbells::default(),
            changes: VecDeque::new(),
            released: BTreeMap::new(),
            caused: BTreeMap::new(),
        }
    }

    /// Writes what the end of the run decides.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn finish(&mut self, end: &End) -> io::Result<()> {
        while let Some((at, late)) = self.late.pop() {
            self.write_late(at, late);
        }
        for (engine, now) in &end.stations {
            for (station, (state, since)) in Station::ALL.into_iter().zip(*now) {
                self.station(*engine, station, state, (since, end.at));
            }
        }
        for engine in self.throughput.keys().copied().collect::<Vec<_>>() {
            self.end_stretch(engine, u64::MAX);
        }
        self.trace.finish()
    }

    /// The track of a place on which something can begin at `from`; it is taken until `until`.
    fn lane(&mut self, place: Place, (from, until): (Instant, Instant)) -> TrackId {
        let lanes = self.tracks.entry(place).or_default();
        if let Some((track, taken)) = lanes.iter_mut().find(|(_, taken)| *taken <= from) {
            *taken = until;
            return *track;
        }
        let track = self.new_track(place);
        let lanes = self.tracks.entry(place).or_default();
        lanes.push((track, until));
        track
    }

    /// The only track of a place.
    fn track(&mut self, place: Place) -> TrackId {
        match self.tracks.get(&place).and_then(|lanes| lanes.first()) {
            Some((track, _)) => *track,
            None => {
                let track = self.new_track(place);
                self.tracks.insert(place, vec![(track, Instant::START)]);
                track
            }
        }
    }

    fn new_track(&mut self, place: Place) -> TrackId {
        let Described {
            parent,
            rank,
            name,
            unit,
        } = place.describe(&self.machine);
        let parent = parent.map(|parent| self.track(parent));
        self.trace.track(&name, parent, rank, unit)
    }

    fn slice(&mut self, place: Place, name: &str, span: (Instant, Instant), event: Event) {
        let track = self.lane(place, span);
        self.trace.slice(track, name, span, event);
    }

    fn instant(&mut self, place: Place, name: &str, at: Instant, event: Event) {
        let track = self.track(place);
        self.trace.instant(track, name, at, event);
    }

    fn count(&mut self, place: Place, at: Instant, value: f64) {
        let track = self.track(place);
        self.trace.count(track, at, value);
    }

    fn next_flow(&mut self) -> u64 {
        self.flows += 1;
        self.flows
    }

    fn station(
        &mut self,
        engine: EngineId,
        station: Station,
        state: StationState,
        span: (Instant, Instant),
    ) {
        if state != StationState::Idle {
            let place = Place::Station(engine, station);
            self.slice(place, state.name(), span, Event::default());
        }
    }

    fn access(&mut self, engine: EngineId, burst: Burst, place: &[Arg], access: &Access) {
        let times = access.times;
        let mut args = vec![("engine", Value::Uint(engine.0.into()))];
        args.extend_from_slice(place);
        args.extend([
            ("address", Value::Pointer(access.at.0)),
            ("bytes", Value::Uint(access.len.into())),
            ("issued_ns", Value::Double(access.issued.as_ns_f64())),
            (
                "served_from_ns",
                Value::Double(times.served_from.as_ns_f64()),
            ),
            ("served_ns", Value::Double(times.served.as_ns_f64())),
            ("answered_ns", Value::Double(access.answered.as_ns_f64())),
        ]);
        let served = Late::Served(access.channel, burst, times.served, args);
        self.late.push(times.served_from, served);
        let more = Late::Outstanding(engine, burst, 1);
        self.late.push(access.issued, more);
        let less = Late::Outstanding(engine, burst, -1);
        self.late.push(access.answered, less);
    }

    fn write_late(&mut self, at: Instant, late: Late) {
        match late {
            Late::Served(channel, burst, until, args) => {
                let place = Place::Channel(channel);
                self.slice(place, burst.name(), (at, until), Event::of(args));
            }
            Late::Outstanding(engine, burst, change) => {
                let outstanding = self.outstanding.entry((engine, burst)).or_default();
                *outstanding += change;
                let value = *outstanding as f64;
                self.count(Place::Outstanding(engine, burst), at, value);
            }
        }
    }

    /// Bytes were written: counts them to the current stretch.
    fn written(&mut self, at: Instant, engine: EngineId, bytes: u64) {
        let stretch = at.as_fs() / THROUGHPUT_WINDOW.as_fs();
        self.end_stretch(engine, stretch);
        let (_, written) = self.throughput.entry(engine).or_insert((stretch, 0));
        *written += bytes;
    }

    /// Another stretch begins: tells what the last one had, and that none followed if so.
    fn end_stretch(&mut self, engine: EngineId, stretch: u64) {
        let Some((last, bytes)) = self.throughput.get(&engine).copied() else {
            return;
        };
        if last == stretch {
            return;
        }
        let start = |stretch: u64| Instant::from_fs(stretch * THROUGHPUT_WINDOW.as_fs());
        let rate = bytes as f64 / THROUGHPUT_WINDOW.as_ns_f64();
        self.count(Place::Throughput(engine), start(last), rate);
        if stretch != last + 1 {
            self.count(Place::Throughput(engine), start(last + 1), 0.0);
        }
        self.throughput.insert(engine, (stretch, 0));
    }

    fn engine(&mut self, at: Instant, engine: EngineId, what: &EngineActivity) {
        match what {
            EngineActivity::Doorbell {
                direction,
                queue,
                count,
            } => self.doorbell(at, (engine, *queue), *direction, *count),
            EngineActivity::Fetch {
                direction,
                queue,
                slot,
                access,
            } => self.fetch((engine, *queue), *direction, *slot, access),
            EngineActivity::Read {
                queue,
                slot,
                access,
            } => {
                let args = descriptor(*queue, *slot);
                self.access(engine, Burst::Read, &args, access);
            }
            EngineActivity::Write {
                queue,
                slot,
                packet,
                access,
            } => {
                let [queue_arg, slot_arg] = descriptor(*queue, *slot);
                let args = [queue_arg, slot_arg, ("packet", Value::Uint(*packet))];
                self.access(engine, Burst::Write, &args, access);
                self.written(at, engine, access.len.into());
                self.blame(engine, *queue, *packet, access);
            }
            EngineActivity::Completion {
                direction,
                queue,
                at: address,
                len,
            } => {
                let name = match direction {
                    Direction::M2s => "completion tx",
                    Direction::S2m => "completion rx",
                };
                let event = Event::of(bytes_at(*address, *len).to_vec());
                self.instant(Place::Queue(engine, *queue), name, at, event);
            }
            EngineActivity::Descriptor {
                direction,
                queue,
                slot,
                desc,
                bytes,
                since,
            } => {
                let place = Place::Descriptors(engine, *queue, *direction);
                let (name, mut args) = in_words(*direction, *desc);
                args.push(("slot", Value::Uint((*slot).into())));
                args.push(("bytes", Value::Uint((*bytes).into())));
                self.slice(place, name, (*since, at), Event::of(args));
            }
            EngineActivity::Barrier { queue, slot, since } => {
                self.barrier((engine, *queue), *slot, (*since, at));
            }
            EngineActivity::Packet { .. } => self.packet(at, engine, what),
            EngineActivity::Station {
                station,
                state,
                since,
                ..
            } => self.station(engine, *station, *state, (*since, at)),
            EngineActivity::Error { queue, text } => {
                let event = Event::of(vec![("error", Value::Text(text.clone()))]);
                self.instant(Place::Queue(engine, *queue), "error", at, event);
            }
        }
    }

    fn fetch(
        &mut self,
        (engine, queue): (EngineId, QueueId),
        direction: Direction,
        slot: u32,
        access: &Access,
    ) {
        let args = descriptor(queue, slot);
        self.access(engine, Burst::Fetch, &args, access);
        let mut args = vec![("slot", Value::Uint(slot.into()))];
        args.extend(bytes_at(access.at, access.len));
        let place = Place::Fetches(engine, queue, direction);
        let span = (access.issued, access.answered);
        self.slice(place, "fetch", span, Event::of(args));
    }

    fn doorbell(
        &mut self,
        at: Instant,
        queue: (EngineId, QueueId),
        direction: Direction,
        count: u32,
    ) {
        let mut event = Event {
            args: vec![("descriptors", Value::Uint(count.into()))],
            ..Event::default()
        };
        let name = match direction {
            Direction::M2s => "doorbell tx",
            Direction::S2m => "doorbell rx",
        };
        if direction == Direction::M2s {
            let flow = self.next_flow();
            event.flows.push(flow);
            self.doorbells.ring(queue, flow, count.into());
        }
        self.instant(Place::Queue(queue.0, queue.1), name, at, event);
    }

    fn barrier(
        &mut self,
        (engine, queue): (EngineId, QueueId),
        slot: u32,
        held: (Instant, Instant),
    ) {
        let (since, until) = held;
        let args = [
            ("rx_slot", Value::Uint(slot.into())),
            ("since_ns", Value::Double(since.as_ns_f64())),
        ];
        let flow = self.next_flow();
        let [held, released] = [&[], &args[..]].map(|args| Event {
            args: args.to_vec(),
            flows: vec![flow],
            ..Event::default()
        });
        self.slice(Place::Held(engine, queue), "barrier", (since, until), held);
        let place = Place::Queue(engine, queue);
        self.instant(place, "barrier released", until, released);
    }

    fn packet(&mut self, at: Instant, engine: EngineId, what: &EngineActivity) {
        let EngineActivity::Packet {
            queue,
            number,
            slot,
            descriptors,
            bytes,
            started,
            dmb,
            write_barrier,
            computed,
        } = what
        else {
            return;
        };
        let span = (*started, at);
        let doorbell = (self.doorbells).complete((engine, *queue), descriptors[0].into());
        let mut flows: Vec<u64> = doorbell.into_iter().collect();
        flows.extend(
            self.caused
                .remove(&(engine, *queue, *number))
                .unwrap_or_default(),
        );
        // The DMB before it let it start.
        flows.extend(self.released.remove(&(engine, *queue)));
        let suspension = dmb.then(|| self.next_flow());
        flows.extend(suspension);
        let event = Event {
            args: vec![
                ("queue", Value::Uint(queue.0.into())),
                ("number", Value::Uint(*number)),
                ("slot", Value::Uint((*slot).into())),
                ("tx_descriptors", Value::Uint(descriptors[0].into())),
                ("rx_descriptors", Value::Uint(descriptors[1].into())),
                ("bytes", Value::Uint(*bytes)),
                ("dmb", Value::Bool(*dmb)),
                ("write_barrier", Value::Bool(*write_barrier)),
                ("started_ns", Value::Double(started.as_ns_f64())),
                ("completed_ns", Value::Double(at.as_ns_f64())),
            ],
            flows,
            ..Event::default()
        };
        let name = if *computed { "computation" } else { "copy" };
        self.slice(Place::Packets(engine, *queue), name, span, event);
        if let Some(flow) = suspension {
            self.slice(Place::Dmb(engine, *queue), "DMB", span, Event::default());
            let event = Event {
                args: vec![("started_ns", Value::Double(started.as_ns_f64()))],
                flows: vec![flow],
                ..Event::default()
            };
            self.instant(Place::Queue(engine, *queue), "DMB released", at, event);
            self.released.insert((engine, *queue), flow);
        }
    }

    /// A write is acknowledged: the semaphores that changed when it became visible, and where it
    /// went, changed because of its packet.
    fn blame(&mut self, engine: EngineId, queue: QueueId, packet: u64, access: &Access) {
        let map = &self.machine.arch.spec().map;
        let windows = [
            EventBlock::SEM_SET,
            EventBlock::SEM_INC,
            EventBlock::SEM_DEC,
        ];
        let covers = |change: &Change| {
            let mut cells = (windows.iter())
                .filter_map(|window| map.semaphore(change.block, *window, change.semaphore));
            cells.any(|cell| cell.0 >= access.at.0 && cell.0 - access.at.0 < access.len.into())
        };
        let caused = &mut self.caused;
        // Changes that no write has claimed by now are nobody's.
        while let Some(oldest) = self.changes.front() {
            if oldest.at + CLAIMED_WITHIN > access.answered {
                break;
            }
            self.changes.pop_front();
        }
        self.changes.retain(|change| {
            let is_its = change.at == access.times.done && covers(change);
            if is_its {
                let flows = caused.entry((engine, queue, packet)).or_default();
                flows.push(change.flow);
            }
            !is_its
        });
    }

    fn semaphore(&mut self, at: Instant, block: u32, semaphore: u32, value: i32) {
        let flow = self.next_flow();
        if self.changes.len() == MOST_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back(Change {
            at,
            block,
            semaphore,
            flow,
        });
        let event = Event {
            args: vec![("value", Value::Int(value.into()))],
            flows_ending: vec![flow],
            ..Event::default()
        };
        self.instant(Place::Semaphore(block, semaphore), "semaphore", at, event);
        self.count(Place::SemaphoreValue(block, semaphore), at, value.into());
    }
}

impl<W: Write + Send> Observer for Timeline<W> {
    fn observe(&mut self, at: Instant, activity: &Activity) {
        match activity {
            Activity::Engine { engine, what } => self.engine(at, *engine, what),
            Activity::Interrupt { engine, group } => {
                let event = Event::of(vec![("group", Value::Uint((*group).into()))]);
                self.instant(Place::Engine(*engine), "interrupt", at, event);
            }
            Activity::Semaphore {
                block,
                semaphore,
                value,
            } => self.semaphore(at, *block, *semaphore, *value),
            Activity::Instruction {
                sequencer,
                index,
                name,
                since,
            } => {
                let event = Event::of(vec![("index", Value::Uint(*index as u64))]);
                let place = Place::Sequencer(sequencer.index());
                self.slice(place, name, (*since, at), event);
            }
        }
        while let Some((at, late)) = self.late.pop_due(at) {
            self.write_late(at, late);
        }
    }
}
