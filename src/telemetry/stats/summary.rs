//! Statistics in figures: for people, as JSON, as CSV.

use super::latency::rounded;
use super::{ChannelTally, Collector, EngineTally, Latency, QueueTally, Step};
use crate::arch::{EngineId, QueueId};
use crate::device::{Station, StationState};
use crate::dram::Counts;
use crate::sim::{Duration, Instant};
use crate::telemetry::End;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io;

/// The statistics of a run. Every share is of the whole time, every rate in 10^9 bytes per second of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// The simulated time in nanoseconds.
    pub time_ns: f64,
    /// The engines that did anything, in order.
    pub engines: Vec<EngineStats>,
    /// The memory channels that were used, in order.
    pub channels: Vec<ChannelStats>,
}

/// One engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineStats {
    /// Its number.
    pub engine: u32,
    /// The read and the write station.
    pub stations: Vec<StationStats>,
    /// The queues that did anything, in order.
    pub queues: Vec<QueueStats>,
}

/// One station of an engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StationStats {
    /// Its name.
    pub station: &'static str,
    /// Share of the time in which it moved beats or paid for a descriptor or packet.
    pub utilisation: f64,
    /// Nanoseconds that it was at each [`StationState`], by name.
    pub states_ns: BTreeMap<&'static str, f64>,
}

/// One queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueStats {
    /// Its number.
    pub queue: QueueId,
    /// Doorbells that arrived for the Tx ring.
    pub tx_doorbells: u64,
    /// And for the Rx ring.
    pub rx_doorbells: u64,
    /// Packets completed.
    pub packets: u64,
    /// Their Tx descriptors.
    pub tx_descriptors: u64,
    /// Their Rx descriptors.
    pub rx_descriptors: u64,
    /// Data bytes read.
    pub bytes_read: u64,
    /// Data bytes written and acknowledged.
    pub bytes_written: u64,
    /// Rate of the bytes written.
    pub gb_per_s: f64,
    /// Share of the time in which it had a packet that was not complete.
    pub utilisation: f64,
    /// Share of the time in which a DMB suspended it.
    pub dmb: f64,
    /// Share of the time in which a write barrier or a strong-order write held its next write.
    pub held: f64,
    /// Latency of descriptor bursts.
    pub fetch: Option<Latency>,
    /// Latency of read bursts.
    pub read: Option<Latency>,
    /// Latency of write bursts.
    pub write: Option<Latency>,
    /// Latency of packets.
    pub packet: Option<Latency>,
}

/// One memory channel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChannelStats {
    /// Its name.
    pub channel: String,
    /// Bursts read, of descriptors or data.
    pub reads: u64,
    /// Bursts written.
    pub writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Rate of both.
    pub gb_per_s: f64,
    /// Share of the time in which it served.
    pub utilisation: f64,
    /// Of an HBM channel, what became of its rows.
    #[serde(flatten)]
    pub rows: Option<RowStats>,
}

/// Rows of an HBM channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RowStats {
    /// Share of the accesses to a row that an earlier one had opened.
    pub row_hits: f64,
    /// Rows opened.
    pub activates: u64,
    /// Refreshes of all banks.
    pub refreshes: u64,
    /// Changes from reads to writes or back.
    pub turnarounds: u64,
}

impl RowStats {
    fn new(counts: &Counts) -> RowStats {
        let accesses = counts.reads + counts.writes;
        RowStats {
            row_hits: ratio(counts.row_hits, accesses),
            activates: counts.activates,
            refreshes: counts.refreshes,
            turnarounds: counts.turnarounds,
        }
    }
}

/// Part of the whole, to six decimals.
fn ratio(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => (part as f64 / whole as f64 * 1e6).round() / 1e6,
    }
}

impl Stats {
    pub(super) fn new(collector: &Collector, end: &End) -> Stats {
        let time = end.at - Instant::START;
        let unfinished: BTreeMap<EngineId, _> = end.stations.iter().copied().collect();
        let engines = collector.engines.iter().map(|(id, engine)| {
            let mut states = engine.states;
            for (station, (state, since)) in unfinished.get(id).into_iter().flatten().enumerate() {
                let spent = &mut states[station][*state as usize];
                *spent = *spent + (end.at - *since);
            }
            EngineStats::new(*id, engine, &states, time)
        });
        let used = |channel: &(&String, &ChannelTally)| channel.1.accesses != [0, 0];
        let channels = collector.machine.channels.iter().zip(&collector.channels);
        let rows = end.hbm.iter().map(Some).chain(std::iter::repeat(None));
        Stats {
            time_ns: rounded(time.as_ns_f64()),
            engines: engines.collect(),
            channels: (channels.zip(rows))
                .filter(|(channel, _)| used(channel))
                .map(|((name, channel), rows)| ChannelStats::new(name, channel, rows, time))
                .collect(),
        }
    }
}

impl EngineStats {
    fn new(
        id: EngineId,
        engine: &EngineTally,
        states: &[[Duration; StationState::ALL.len()]; Station::ALL.len()],
        time: Duration,
    ) -> EngineStats {
        let stations = Station::ALL.iter().map(|station| {
            let times = states[*station as usize];
            let spent = |state: &StationState| times[*state as usize];
            let named = StationState::ALL.iter();
            StationStats {
                station: station.name(),
                utilisation: share(spent(&StationState::Busy), time),
                states_ns: named
                    .map(|state| (state.name(), rounded(spent(state).as_ns_f64())))
                    .collect(),
            }
        });
        EngineStats {
            engine: id.0,
            stations: stations.collect(),
            queues: (engine.queues.iter())
                .map(|(queue, tally)| QueueStats::new(*queue, tally, time))
                .collect(),
        }
    }
}

impl QueueStats {
    fn new(queue: QueueId, tally: &QueueTally, time: Duration) -> QueueStats {
        let [fetch, read, write, packet] =
            Step::ALL.map(|step| tally.latencies[step as usize].summary());
        QueueStats {
            queue,
            tx_doorbells: tally.doorbells[0],
            rx_doorbells: tally.doorbells[1],
            packets: tally.packets,
            tx_descriptors: tally.descriptors[0],
            rx_descriptors: tally.descriptors[1],
            bytes_read: tally.bytes_read,
            bytes_written: tally.bytes_written,
            gb_per_s: rate(tally.bytes_written, time),
            utilisation: share(tally.in_use, time),
            dmb: share(tally.suspended, time),
            held: share(tally.held, time),
            fetch,
            read,
            write,
            packet,
        }
    }

    /// Its latencies by name; those it has.
    pub fn latencies(&self) -> impl Iterator<Item = (&'static str, Latency)> {
        let all = [self.fetch, self.read, self.write, self.packet];
        (Step::ALL.into_iter().zip(all)).filter_map(|(step, latency)| Some((step.name(), latency?)))
    }
}

impl ChannelStats {
    fn new(
        name: &str,
        channel: &ChannelTally,
        rows: Option<&Counts>,
        time: Duration,
    ) -> ChannelStats {
        ChannelStats {
            channel: name.to_string(),
            reads: channel.accesses[0],
            writes: channel.accesses[1],
            bytes_read: channel.bytes[0],
            bytes_written: channel.bytes[1],
            gb_per_s: rate(channel.bytes[0] + channel.bytes[1], time),
            utilisation: share(channel.busy, time),
            rows: rows.map(RowStats::new),
        }
    }
}

/// Part of the whole, to six decimals.
fn share(part: Duration, whole: Duration) -> f64 {
    match whole {
        Duration::ZERO => 0.0,
        whole => (part.as_fs() as f64 / whole.as_fs() as f64 * 1e6).round() / 1e6,
    }
}

/// 10^9 bytes per second, to three decimals.
fn rate(bytes: u64, time: Duration) -> f64 {
    match time {
        Duration::ZERO => 0.0,
        time => rounded(bytes as f64 / time.as_ns_f64()),
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nstations, % of {} ns", self.time_ns)?;
        write!(f, "{:12}", "")?;
        for state in StationState::ALL.iter().rev() {
            write!(f, " {:>11}", state.name())?;
        }
        writeln!(f)?;
        for engine in &self.engines {
            for station in &engine.stations {
                let name = format!("{} {}", EngineId(engine.engine), station.station);
                write!(f, "{name:12}")?;
                for state in StationState::ALL.iter().rev() {
                    let ns = station.states_ns.get(state.name()).copied();
                    let percent = ns.unwrap_or_default() / self.time_ns.max(1e-3) * 100.0;
                    write!(f, " {percent:>11.1}")?;
                }
                writeln!(f)?;
            }
        }
        writeln!(
            f,
            "\n{:12} {:>9} {:>13} {:>13} {:>8} {:>9} {:>7} {:>7}",
            "queues", "packets", "bytes read", "written", "GB/s", "in use %", "DMB %", "held %"
        )?;
        for (name, queue) in self.queues() {
            writeln!(
                f,
                "{name:12} {:>9} {:>13} {:>13} {:>8.2} {:>9.1} {:>7.1} {:>7.1}",
                queue.packets,
                queue.bytes_read,
                queue.bytes_written,
                queue.gb_per_s,
                queue.utilisation * 100.0,
                queue.dmb * 100.0,
                queue.held * 100.0
            )?;
        }
        writeln!(
            f,
            "\n{:19} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "latencies, ns", "count", "min", "mean", "p50", "p90", "p99", "max"
        )?;
        for (name, queue) in self.queues() {
            for (step, latency) in queue.latencies() {
                writeln!(
                    f,
                    "{:19} {:>9} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
                    format!("{name} {step}"),
                    latency.count,
                    latency.min_ns,
                    latency.mean_ns,
                    latency.p50_ns,
                    latency.p90_ns,
                    latency.p99_ns,
                    latency.max_ns
                )?;
            }
        }
        self.write_targets(f)
    }
}

impl Stats {
    /// The channels, those of one target on one line.
    fn write_targets(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:15} {:>8} {:>9} {:>9} {:>13} {:>13} {:>8} {:>11} {:>10}",
            "memory",
            "channels",
            "reads",
            "writes",
            "bytes read",
            "written",
            "GB/s",
            "most busy %",
            "row hits %"
        )?;
        fn target(channel: &ChannelStats) -> &str {
            let name = channel.channel.split_once(" channel ");
            name.map_or(&channel.channel, |(target, _)| target)
        }
        for channels in self.channels.chunk_by(|a, b| target(a) == target(b)) {
            let sum = |figure: fn(&ChannelStats) -> u64| channels.iter().map(figure).sum::<u64>();
            let rates = channels.iter().map(|channel| channel.gb_per_s);
            let busy = channels.iter().map(|channel| channel.utilisation);
            // Each channel counts as much as the bursts it served.
            let bursts = |channel: &ChannelStats| (channel.reads + channel.writes) as f64;
            let hits = channels.iter().filter_map(|channel| {
                let rows = channel.rows?;
                Some((rows.row_hits * bursts(channel), bursts(channel)))
            });
            let (hits, all) = hits.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let row_hits = match all {
                0.0 => String::new(),
                all => format!("{:.1}", hits / all * 100.0),
            };
            let line = format!(
                "{:15} {:>8} {:>9} {:>9} {:>13} {:>13} {:>8.2} {:>11.1} {row_hits:>10}",
                target(&channels[0]),
                channels.len(),
                sum(|channel| channel.reads),
                sum(|channel| channel.writes),
                sum(|channel| channel.bytes_read),
                sum(|channel| channel.bytes_written),
                rates.sum::<f64>(),
                busy.fold(0.0, f64::max) * 100.0
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Every queue with its name, `e0 q1`.
    pub fn queues(&self) -> impl Iterator<Item = (String, &QueueStats)> {
        self.engines.iter().flat_map(|engine| {
            let id = EngineId(engine.engine);
            (engine.queues.iter()).map(move |queue| (format!("{id} q{}", queue.queue), queue))
        })
    }

    /// Writes one line per figure: kind of part, its name, the figure's name, its value. Units are in
    /// the names; what has no unit is a count or a share.
    ///
    /// # Errors
    /// As the writer.
    pub fn to_csv(&self, out: impl io::Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(["kind", "name", "figure", "value"])?;
        let mut row = |kind: &str, name: &str, figure: &str, value: f64| {
            csv.write_record([kind, name, figure, &value.to_string()])
        };
        row("run", "", "time_ns", self.time_ns)?;
        for engine in &self.engines {
            for station in &engine.stations {
                let name = format!("{} {}", EngineId(engine.engine), station.station);
                row("station", &name, "utilisation", station.utilisation)?;
                for (state, ns) in &station.states_ns {
                    row("station", &name, &format!("{state}_ns"), *ns)?;
                }
            }
        }
        for (name, queue) in self.queues() {
            for (figure, value) in [
                ("tx_doorbells", queue.tx_doorbells as f64),
                ("rx_doorbells", queue.rx_doorbells as f64),
                ("packets", queue.packets as f64),
                ("tx_descriptors", queue.tx_descriptors as f64),
                ("rx_descriptors", queue.rx_descriptors as f64),
                ("bytes_read", queue.bytes_read as f64),
                ("bytes_written", queue.bytes_written as f64),
                ("gb_per_s", queue.gb_per_s),
                ("utilisation", queue.utilisation),
                ("dmb", queue.dmb),
                ("held", queue.held),
            ] {
                row("queue", &name, figure, value)?;
            }
            for (step, latency) in queue.latencies() {
                for (figure, value) in [
                    ("count", latency.count as f64),
                    ("min_ns", latency.min_ns),
                    ("mean_ns", latency.mean_ns),
                    ("p50_ns", latency.p50_ns),
                    ("p90_ns", latency.p90_ns),
                    ("p99_ns", latency.p99_ns),
                    ("p999_ns", latency.p999_ns),
                    ("max_ns", latency.max_ns),
                ] {
                    row("queue", &name, &format!("{step}_{figure}"), value)?;
                }
            }
        }
        for channel in &self.channels {
            for (figure, value) in [
                ("reads", channel.reads as f64),
                ("writes", channel.writes as f64),
                ("bytes_read", channel.bytes_read as f64),
                ("bytes_written", channel.bytes_written as f64),
                ("gb_per_s", channel.gb_per_s),
                ("utilisation", channel.utilisation),
            ] {
                row("channel", &channel.channel, figure, value)?;
            }
            let Some(rows) = &channel.rows else { continue };
            for (figure, value) in [
                ("row_hits", rows.row_hits),
                ("activates", rows.activates as f64),
                ("refreshes", rows.refreshes as f64),
                ("turnarounds", rows.turnarounds as f64),
            ] {
                row("channel", &channel.channel, figure, value)?;
            }
        }
        csv.flush()
    }
}
