//! `udma-sim run --timeline`: the file is decoded here by its wire format alone, and compared with the
//! report.

mod common;

use common::cli::{stdout, text, udma_sim};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;

/// A field of a message: its number, and a number or bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Splits a message into its fields, as the protobuf encoding says.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
        }
        unreachable!()
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(number.try_into().unwrap()))
            }
            2 => {
                let len = varint(&mut bytes) as usize;
                let (field, rest) = bytes.split_at(len);
                bytes = rest;
                Field::Bytes(field)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, field));
    }
    fields
}

fn number(message: &[u8], wanted: u64) -> Option<u64> {
    fields(message).into_iter().find_map(|field| match field {
        (n, Field::Number(value)) if n == wanted => Some(value),
        _ => None,
    })
}

fn numbers(message: &[u8], wanted: u64) -> Vec<u64> {
    let all = fields(message).into_iter();
    all.filter_map(|field| match field {
        (n, Field::Number(value)) if n == wanted => Some(value),
        _ => None,
    })
    .collect()
}

fn bytes(message: &[u8], wanted: u64) -> Vec<&[u8]> {
    let all = fields(message).into_iter();
    all.filter_map(|field| match field {
        (n, Field::Bytes(value)) if n == wanted => Some(value),
        _ => None,
    })
    .collect()
}

fn string(message: &[u8], wanted: u64) -> Option<String> {
    let found = bytes(message, wanted).first().copied()?;
    Some(String::from_utf8(found.to_vec()).unwrap())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Begin,
    End,
    Instant,
    Counter,
}

#[derive(Clone, Debug)]
struct Event {
    at: u64,
    what: What,
    name: String,
    args: BTreeMap<String, u64>,
    /// Arguments that are text.
    texts: BTreeMap<String, String>,
    flows: Vec<u64>,
    value: f64,
}

/// A trace: the events of each track, by the track's full name; lanes of one place share a name.
struct Trace {
    /// Name and events.
    tracks: Vec<(String, Vec<Event>)>,
}

impl Trace {
    fn decode(file: &[u8]) -> Trace {
        let mut names: BTreeMap<u64, BTreeMap<u64, String>> = BTreeMap::new();
        let mut paths: BTreeMap<u64, String> = BTreeMap::new();
        let mut events: BTreeMap<u64, Vec<Event>> = BTreeMap::new();
        let packets = fields(file);
        for (index, (tag, packet)) in packets.into_iter().enumerate() {
            let Field::Bytes(packet) = packet else {
                panic!("packet {index} is no message");
            };
            assert_eq!(tag, 1);
            assert_eq!(number(packet, 10), Some(1), "one sequence");
            let flags = number(packet, 13).unwrap();
            assert_eq!(flags, if index == 0 { 1 } else { 2 });
            for track in bytes(packet, 60) {
                let name = string(track, 2).unwrap();
                let path = match number(track, 5) {
                    Some(parent) => format!("{}/{name}", paths[&parent]),
                    None => name,
                };
                let uuid = number(track, 1).unwrap();
                assert_eq!(paths.insert(uuid, path), None, "a track is described once");
            }
            for interned in bytes(packet, 12) {
                for kind in [2, 3] {
                    for entry in bytes(interned, kind) {
                        let entry = (number(entry, 1).unwrap(), string(entry, 2).unwrap());
                        let old = names.entry(kind).or_default().insert(entry.0, entry.1);
                        assert_eq!(old, None);
                    }
                }
            }
            for event in bytes(packet, 11) {
                let what = match number(event, 9).unwrap() {
                    1 => What::Begin,
                    2 => What::End,
                    3 => What::Instant,
                    4 => What::Counter,
                    other => panic!("event type {other}"),
                };
                let (mut args, mut texts) = (BTreeMap::new(), BTreeMap::new());
                for arg in bytes(event, 4) {
                    let name = names[&3][&number(arg, 1).unwrap()].clone();
                    let value = [2, 3, 4, 5, 7].into_iter().find_map(|n| number(arg, n));
                    if let Some(text) = string(arg, 6) {
                        texts.insert(name.clone(), text);
                    }
                    args.insert(name, value.unwrap_or_default());
                }
                let track = number(event, 11).unwrap();
                let event = Event {
                    at: number(packet, 8).unwrap(),
                    what,
                    name: number(event, 10).map_or(String::new(), |n| names[&2][&n].clone()),
                    args,
                    texts,
                    flows: [numbers(event, 47), numbers(event, 48)].concat(),
                    value: f64::from_bits(number(event, 44).unwrap_or_default()),
                };
                assert!(paths.contains_key(&track), "an event on an unknown track");
                events.entry(track).or_default().push(event);
            }
        }
        let tracks = events.into_iter();
        Trace {
            tracks: tracks
                .map(|(track, events)| (paths[&track].clone(), events))
                .collect(),
        }
    }

    /// Every track's events are in order of time, and its slices follow each other.
    fn check(&self) {
        for (path, events) in &self.tracks {
            let mut open = false;
            let mut now = 0;
            for event in events {
                assert!(event.at >= now, "{path}: time goes back at {event:?}");
                now = event.at;
                match event.what {
                    What::Begin => {
                        assert!(!std::mem::replace(&mut open, true), "{path}: {event:?}")
                    }
                    What::End => assert!(std::mem::replace(&mut open, false), "{path}: {event:?}"),
                    What::Instant => assert!(!event.name.is_empty()),
                    What::Counter => assert!(event.value.is_finite()),
                }
            }
            assert!(!open, "{path}: a slice does not end");
        }
    }

    fn events(&self, what: What, path: impl Fn(&str) -> bool) -> Vec<&Event> {
        let tracks = self.tracks.iter().filter(|(track, _)| path(track));
        tracks
            .flat_map(|(_, events)| events)
            .filter(|event| event.what == what)
            .collect()
    }
}

/// The timeline of a scenario, and its report with statistics.
fn timeline(scenario: &str, more: &[&str]) -> (Trace, Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pftrace");
    let run = [
        "run",
        scenario,
        "--json",
        "--stats",
        "--timeline",
        text(&path),
    ];
    let run = udma_sim(&[&run[..], more].concat());
    let report = serde_json::from_str(&stdout(&run)).unwrap();
    let trace = Trace::decode(&std::fs::read(&path).unwrap());
    trace.check();
    (trace, report)
}

#[test]
fn timelines_agree_with_the_statistics() {
    for scenario in [
        "traces/queues.toml",
        "traces/dmb-vs-sow.toml",
        "traces/all-reduce.toml",
    ] {
        let (trace, report) = timeline(scenario, &[]);
        let stats = &report["stats"];
        let mut doorbells = 0;
        for engine in stats["engines"].as_array().unwrap() {
            let id = format!("e{}", engine["engine"]);
            for queue in engine["queues"].as_array().unwrap() {
                let place = format!("{id}/queue {}", queue["queue"]);
                let packets = trace.events(What::Begin, |path| path == format!("{place}/packets"));
                assert_eq!(packets.len() as u64, queue["packets"], "{scenario} {place}");
                let args = |name: &str| packets.iter().map(|packet| packet.args[name]).sum::<u64>();
                assert_eq!(args("tx_descriptors"), queue["tx_descriptors"]);
                assert_eq!(args("rx_descriptors"), queue["rx_descriptors"]);
                assert_eq!(args("bytes"), queue["bytes_written"], "{scenario} {place}");
                let numbers = packets.iter().map(|packet| packet.args["number"]);
                let mut numbers: Vec<u64> = numbers.collect();
                numbers.sort();
                assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
                // Every packet follows a doorbell of its queue.
                let bells = trace.events(What::Instant, |path| path == place);
                let bells = bells
                    .into_iter()
                    .filter(|event| event.name == "doorbell tx");
                let bells: Vec<&Event> = bells.collect();
                assert_eq!(bells.len() as u64, queue["tx_doorbells"]);
                doorbells += bells.len();
                for packet in &packets {
                    let bell = bells
                        .iter()
                        .find(|bell| packet.flows.contains(&bell.flows[0]));
                    let bell = bell.unwrap_or_else(|| panic!("{scenario} {place}: {packet:?}"));
                    assert!(bell.at <= packet.at);
                }
                let dmbs = trace.events(What::Begin, |path| path == format!("{place}/suspended"));
                let dmb = packets.iter().filter(|packet| packet.args["dmb"] == 1);
                assert_eq!(dmbs.len(), dmb.count());
                for (ring, moved) in [("tx", "bytes_read"), ("rx", "bytes_written")] {
                    let path = format!("{place}/{ring} descriptors");
                    let descs = trace.events(What::Begin, |name| name == path);
                    let what = format!("{scenario} {path}");
                    assert_eq!(
                        descs.len() as u64,
                        queue[format!("{ring}_descriptors")],
                        "{what}"
                    );
                    let bytes: u64 = descs.iter().map(|desc| desc.args["bytes"]).sum();
                    assert_eq!(bytes, queue[moved], "{what}");
                }
            }
            for station in engine["stations"].as_array().unwrap() {
                let name = station["station"].as_str().unwrap();
                let place = |path: &str| path == format!("{id}/{name} station");
                let mut spent: BTreeMap<String, f64> = BTreeMap::new();
                let (begins, ends) = (
                    trace.events(What::Begin, place),
                    trace.events(What::End, place),
                );
                for (begin, end) in begins.iter().zip(&ends) {
                    *spent.entry(begin.name.clone()).or_default() += (end.at - begin.at) as f64;
                }
                for (state, ns) in station["states_ns"].as_object().unwrap() {
                    let shown = spent.get(state).copied().unwrap_or_default();
                    // Times in the trace are whole nanoseconds.
                    let slack = 1.0 + begins.len() as f64;
                    let off = (shown - ns.as_f64().unwrap()).abs();
                    assert!(
                        state == "idle" || off <= slack,
                        "{scenario} {place} {state}: {off}",
                        place = id
                    );
                }
            }
        }
        assert!(doorbells > 0);
        let mut shown = 0;
        for channel in stats["channels"].as_array().unwrap() {
            let name = format!("memory/{}", channel["channel"].as_str().unwrap());
            let bursts = trace.events(What::Begin, |path| path == name);
            let writes = bursts.iter().filter(|burst| burst.name == "write").count() as u64;
            assert_eq!(writes, channel["writes"], "{name}");
            assert_eq!(bursts.len() as u64 - writes, channel["reads"], "{name}");
            let moved: u64 = bursts.iter().map(|burst| burst.args["bytes"]).sum();
            let [read, written] =
                ["bytes_read", "bytes_written"].map(|f| channel[f].as_u64().unwrap());
            assert_eq!(moved, read + written, "{name}");
            shown += bursts.len();
        }
        // No channel is shown that was not used.
        assert_eq!(
            trace
                .events(What::Begin, |path| path.starts_with("memory/"))
                .len(),
            shown
        );
        // As many bursts end as begin, and there are never less than none.
        for (path, events) in &trace.tracks {
            if path.ends_with("bursts outstanding") {
                assert!(events.iter().all(|event| event.value >= 0.0), "{path}");
                assert_eq!(events.last().unwrap().value, 0.0, "{path}");
                assert!(events.iter().any(|event| event.value > 1.0), "{path}");
            }
        }
        let written = trace.events(What::Counter, |path| path.ends_with("/written"));
        assert!(
            written.iter().all(|event| event.value < 40.0),
            "GB/s of one engine"
        );
        assert!(written.iter().any(|event| event.value > 1.0));
    }
}

/// Descriptors are shown with their fields, and what a barrier stalls with its end and, if it is a DMB, with
/// arrows from the packet that had it to the one it held back.
#[test]
fn descriptors_and_barrier_stalls_are_shown() {
    let (trace, report) = timeline("traces/dmb-vs-sow.toml", &[]);
    let queues = report["stats"]["engines"][1]["queues"].as_array().unwrap();
    let held = queues.iter().map(|queue| queue["held"].as_f64().unwrap());
    // NONE, DMB, WRITE_BARRIER, SOW.
    for (queue, held) in held.enumerate() {
        let place = format!("e1/queue {queue}");
        let on = |what, track: &str| trace.events(what, |path| path == format!("{place}{track}"));
        let [sources, destinations] = ["tx", "rx"].map(|ring| {
            let mut descs = on(What::Begin, &format!("/{ring} descriptors"));
            // Those that overlap are on several lanes.
            descs.sort_by_key(|desc| desc.args["slot"]);
            descs
        });
        for (n, (tx, rx)) in sources.iter().zip(&destinations).enumerate() {
            assert_eq!(
                (tx.name.as_str(), rx.name.as_str()),
                ("source", "destination")
            );
            let fields = |desc: &Event| ["slot", "length", "bytes"].map(|name| desc.args[name]);
            assert_eq!(
                (fields(tx), fields(rx)),
                ([n as u64, 4096, 4096], [n as u64, 4096, 4096])
            );
            assert_eq!(
                rx.args["address"] - destinations[0].args["address"],
                4096 * n as u64
            );
            assert!(tx.at < rx.at);
        }
        assert_eq!(sources.len(), 64);
        let texts = |event: &Event, name: &str| event.texts[name].clone();
        let flags = [texts(sources[0], "flags"), texts(destinations[0], "flags")];
        let wanted = [
            ["FIRST LAST", ""],
            ["FIRST LAST DMB", ""],
            ["FIRST LAST WRITE_BARRIER", ""],
            ["FIRST LAST", "STRONG_ORDER_WR"],
        ];
        assert_eq!(flags, wanted[queue]);
        assert_eq!(texts(sources[0], "op"), "copy");

        let spans = |track: &str| -> u64 {
            let (begins, ends) = (on(What::Begin, track), on(What::End, track));
            begins
                .iter()
                .zip(&ends)
                .map(|(begin, end)| end.at - begin.at)
                .sum()
        };
        let stalls = on(What::Begin, "/writes held");
        assert_eq!(stalls.is_empty(), queue < 2);
        let time = report["stats"]["time_ns"].as_f64().unwrap();
        let off = (spans("/writes held") as f64 - held * time).abs();
        assert!(off <= 1.0 + stalls.len() as f64, "{off} ns");
        let marks = on(What::Instant, "");
        let ends = |name: &str| -> Vec<&Event> {
            marks
                .iter()
                .filter(|mark| mark.name == name)
                .copied()
                .collect()
        };
        assert!(
            ends("barrier released")
                .iter()
                .map(|mark| &mark.flows)
                .eq(stalls.iter().map(|stall| &stall.flows))
        );
        let released = ends("DMB released");
        assert_eq!(released.len(), if queue == 1 { 64 } else { 0 });
        let packets = on(What::Begin, "/packets");
        for (pair, end) in packets.windows(2).zip(&released) {
            assert!(
                pair.iter()
                    .all(|packet| packet.flows.contains(&end.flows[0]))
            );
            assert!(pair[0].at < end.at && end.at <= pair[1].at);
        }
    }
}

/// An arrow leads from the packet that increments a semaphore to the change.
#[test]
fn arrows_lead_from_packets_to_semaphores() {
    let (trace, _) = timeline("traces/quickstart.toml", &[]);
    let changes = trace.events(What::Instant, |path| path == "semaphores/0.7");
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].args["value"], 1);
    let packets = trace.events(What::Begin, |path| path.ends_with("/packets"));
    let cause: Vec<_> = (packets.iter())
        .filter(|packet| packet.flows.contains(&changes[0].flows[0]))
        .collect();
    assert_eq!(cause.len(), 1);
    assert_eq!(cause[0].args["bytes"], 4);
    assert!(cause[0].at <= changes[0].at);
}

/// Sequencers and errors have their places.
#[test]
fn sequencers_and_errors_are_shown() {
    let (trace, _) = timeline("traces/dmb-vs-sow.toml", &[]);
    let waits = trace.events(What::Begin, |path| path.starts_with("sequencers/"));
    assert!(waits.iter().any(|slice| slice.name == "wait"));
    let (trace, report) = timeline("traces/errors.toml", &[]);
    let errors = trace.events(What::Instant, |path| path.contains("/queue "));
    let errors = errors.iter().filter(|event| event.name == "error").count();
    assert_eq!(errors, report["errors"].as_array().unwrap().len());
    assert!(errors > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]

    /// With latencies that reorder everything, tracks stay in order.
    #[test]
    fn order_holds_with_random_latencies(seed in 0u64..1000) {
        let config = std::fs::read_to_string("sim-configs/cayman.toml").unwrap();
        let config = config.replacen("jitter = \"0ns\"", "jitter = \"3us\"", 1);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jitter.toml");
        std::fs::write(&path, config).unwrap();
        let seed = seed.to_string();
        let more = ["--config", text(&path), "--seed", &seed];
        let (trace, report) = timeline("traces/queues.toml", &more);
        let packets = trace.events(What::Begin, |path| path.ends_with("/packets")).len() as u64;
        prop_assert_eq!(report["totals"]["packets"].as_u64(), Some(packets));
    }
}
