//! A trace file: tracks, and what happens on them, written as it comes.

use super::proto::{self, TracePacket, TrackDescriptor, TrackEvent};
use crate::sim::Instant;
use prost::Message;
use std::io::{self, Write};

/// Every packet belongs to one sequence, which shares interned names.
const SEQUENCE: u32 = 1;

/// Field 1 of `Trace`, a length-delimited message.
const PACKET_TAG: u8 = 1 << 3 | 2;

const FS_PER_NS: u64 = 1_000_000;

/// The number of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackId(u64);

/// An argument of a slice or an instant.
pub type Arg = (&'static str, proto::Value);

/// What happens on a track.
#[derive(Default)]
pub struct Event {
    pub args: Vec<Arg>,
    /// Arrows that pass through here,
    pub flows: Vec<u64>,
    /// or end here.
    pub flows_ending: Vec<u64>,
}

impl Event {
    /// One without arrows.
    pub fn of(args: Vec<Arg>) -> Event {
        Event {
            args,
            ..Event::default()
        }
    }
}

/// Names that have a number, in order: counted from 1. There are a few dozen.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    /// The number of a name, and whether it is new.
    fn number(&mut self, name: &str) -> (u64, bool) {
        let known = self.0.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.0.push(name.to_string());
            self.0.len() - 1
        });
        (index as u64 + 1, known.is_none())
    }
}

/// A trace file under way. The first error of the writer is kept, and nothing is written after it.
pub struct TraceFile<W> {
    out: W,
    buffer: Vec<u8>,
    tracks: u64,
    event_names: Names,
    arg_names: Names,
    begun: bool,
    failed: io::Result<()>,
}

impl<W: Write> TraceFile<W> {
    pub fn new(out: W) -> TraceFile<W> {
        TraceFile {
            out,
            buffer: Vec::new(),
            tracks: 0,
            event_names: Names::default(),
            arg_names: Names::default(),
            begun: false,
            failed: Ok(()),
        }
    }

    /// A new track below another, or at the top; `rank` orders it among its siblings. One with a unit
    /// is a track of numbers.
    pub fn track(
        &mut self,
        name: &str,
        parent: Option<TrackId>,
        rank: i32,
        unit: Option<&str>,
    ) -> TrackId {
        let counter = unit.map(|unit| proto::CounterDescriptor {
            unit_name: (!unit.is_empty()).then(|| unit.to_string()),
        });
        self.tracks += 1;
        self.write(TracePacket {
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(self.tracks),
                name: Some(name.to_string()),
                parent_uuid: parent.map(|parent| parent.0),
                child_ordering: counter.is_none().then_some(proto::ORDER_EXPLICIT),
                counter,
                sibling_order_rank: Some(rank),
            }),
            ..TracePacket::default()
        });
        TrackId(self.tracks)
    }

    /// Something with a beginning and an end. On one track, none begins before another ends.
    pub fn slice(
        &mut self,
        track: TrackId,
        name: &str,
        (from, until): (Instant, Instant),
        event: Event,
    ) {
        self.event(track, proto::SLICE_BEGIN, name, from, event);
        let end = TrackEvent {
            r#type: Some(proto::SLICE_END),
            track_uuid: Some(track.0),
            ..TrackEvent::default()
        };
        self.write_event(until, end, None);
    }

    /// Something that happens at once.
    pub fn instant(&mut self, track: TrackId, name: &str, at: Instant, event: Event) {
        self.event(track, proto::INSTANT, name, at, event);
    }

    /// What a counter holds from here on.
    pub fn count(&mut self, track: TrackId, at: Instant, value: f64) {
        let event = TrackEvent {
            r#type: Some(proto::COUNTER),
            track_uuid: Some(track.0),
            double_counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.write_event(at, event, None);
    }

    fn event(&mut self, track: TrackId, kind: i32, name: &str, at: Instant, event: Event) {
        let mut interned = proto::InternedData::default();
        let entry = |iid: u64, name: &str| proto::InternedName {
            iid: Some(iid),
            name: Some(name.to_string()),
        };
        let (name_iid, new) = self.event_names.number(name);
        if new {
            interned.event_names.push(entry(name_iid, name));
        }
        let mut annotations = Vec::with_capacity(event.args.len());
        for (name, value) in event.args {
            let (iid, new) = self.arg_names.number(name);
            if new {
                interned.debug_annotation_names.push(entry(iid, name));
            }
            annotations.push(proto::DebugAnnotation {
                name_iid: Some(iid),
                value: Some(value),
            });
        }
        let event = TrackEvent {
            debug_annotations: annotations,
            r#type: Some(kind),
            name_iid: Some(name_iid),
            track_uuid: Some(track.0),
            flow_ids: event.flows,
            terminating_flow_ids: event.flows_ending,
            ..TrackEvent::default()
        };
        let new = interned != proto::InternedData::default();
        self.write_event(at, event, new.then_some(interned));
    }

    fn write_event(&mut self, at: Instant, event: TrackEvent, names: Option<proto::InternedData>) {
        self.write(TracePacket {
            timestamp: Some(at.as_fs() / FS_PER_NS),
            track_event: Some(event),
            interned_data: names,
            ..TracePacket::default()
        });
    }

    fn write(&mut self, mut packet: TracePacket) {
        if self.failed.is_err() {
            return;
        }
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        packet.sequence_flags = Some(match self.begun {
            true => proto::SEQ_NEEDS_INCREMENTAL_STATE,
            false => proto::SEQ_INCREMENTAL_STATE_CLEARED,
        });
        self.begun = true;
        self.buffer.clear();
        self.buffer.push(PACKET_TAG);
        // A vector has room for any message.
        self.failed = (packet.encode_length_delimited(&mut self.buffer))
            .map_err(io::Error::other)
            .and_then(|()| self.out.write_all(&self.buffer));
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn finish(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.failed, Ok(()))?;
        self.out.flush()
    }
}
