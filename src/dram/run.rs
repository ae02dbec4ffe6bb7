//! A stream on the model alone: what `udma-sim dram` reports.

use super::banks::Kind;
use super::channel::Counts;
use super::command::{Command, Done, Observer};
use super::config::DramConfig;
use super::memory::channels;
use super::stream::Stream;
use std::fmt;
use std::io::{self, Write};

/// Requests that are handed to a channel before it runs: more of them do not change what it does,
/// since it accepts them in order.
const AHEAD: usize = 256;

/// Why a stream could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A request is not one access of the memory.
    #[error("stream {name}: request at offset {offset}: address {addr:#x} {right}")]
    Address {
        /// The stream.
        name: String,
        /// Where the request stands.
        offset: u64,
        /// Its address.
        addr: u64,
        /// What would be right.
        right: String,
    },
    /// The command trace could not be written.
    #[error("cannot write the command trace: {0}")]
    Trace(#[from] io::Error),
}

/// Latencies of one kind of requests in cycles, from acceptance by the controller to the last of
/// the data.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Latency {
    /// Requests.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// Half of the requests take no longer.
    pub p50: u64,
    /// 9 of 10 requests take no longer.
    pub p90: u64,
    /// 99 of 100 requests take no longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// What came of a run. The same for the same stream and config on every machine.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Report {
    /// The stream's name or file.
    pub stream: String,
    /// The memory config's name or file.
    pub config: String,
    /// Requests, each of one access.
    pub requests: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Cycles until the last data.
    pub cycles: u64,
    /// The same in nanoseconds.
    pub ns: f64,
    /// Bytes of one cycle on average.
    pub bytes_per_cycle: f64,
    /// Bytes of one cycle at most: one burst after the other on every pseudo-channel of every stack.
    pub peak_bytes_per_cycle: f64,
    /// Stacks of the memory.
    pub stacks: u32,
    /// Stacks that requests went to.
    pub stacks_used: u32,
    /// Of reads.
    pub read_latency: Option<Latency>,
    /// Of writes.
    pub write_latency: Option<Latency>,
    /// Commands and more, all pseudo-channels together.
    pub counts: Counts,
}

/// Runs a stream: every pseudo-channel takes its part of the requests as fast as it accepts them,
/// request i not before cycle gap·i. `trace` gets each command as a line of CSV.
///
/// # Errors
/// [`RunError`] for a request that is none, and if `trace` fails.
pub fn run(
    config: &DramConfig,
    stream: &Stream,
    trace: Option<&mut CommandFile<'_>>,
) -> Result<Report, RunError> {
    let mut tally = Tally::default();
    let (counts, stacks_used) = match trace {
        Some(trace) => {
            let mut both = Traced {
                tally: &mut tally,
                trace,
            };
            let done = drive(config, stream, &mut both)?;
            both.trace.finish()?;
            done
        }
        None => drive(config, stream, &mut tally)?,
    };
    let device = &config.device;
    let requests = stream.words().len() as u64;
    let bytes = requests * u64::from(device.access_bytes);
    let channels = f64::from(device.all_channels());
    let cycles = tally.end;
    Ok(Report {
        stream: stream.name().to_string(),
        config: config.origin.clone(),
        requests,
        bytes,
        cycles,
        ns: cycles as f64 * 1e9 / device.clock.0 as f64,
        bytes_per_cycle: bytes as f64 / cycles.max(1) as f64,
        peak_bytes_per_cycle: channels * f64::from(device.access_bytes)
            / f64::from(config.timing.burst),
        stacks: device.stacks,
        stacks_used,
        read_latency: tally.latencies[Kind::Read as usize].summary(),
        write_latency: tally.latencies[Kind::Write as usize].summary(),
        counts,
    })
}

/// Returns what was done and how many stacks did it.
fn drive<O: Observer + Located>(
    config: &DramConfig,
    stream: &Stream,
    observer: &mut O,
) -> Result<(Counts, u32), RunError> {
    let mut channels = channels(config);
    let access_bytes = u64::from(config.device.access_bytes);
    let channels_of_stack = config.device.channels * config.device.pseudo_channels;
    let mut stacks = 0u32;
    let mut at = 0;
    for (number, (addr, kind)) in stream.requests().enumerate() {
        let place = config.mapping.place(addr);
        let aligned = addr.is_multiple_of(access_bytes);
        let Some(place) = place.filter(|_| aligned) else {
            let capacity = config.mapping.capacity();
            return Err(RunError::Address {
                name: stream.name().to_string(),
                offset: number as u64 * 8,
                addr,
                right: format!("must be a multiple of {access_bytes} below {capacity:#x}"),
            });
        };
        stacks |= 1 << (place.channel / channels_of_stack);
        let channel = &mut channels[place.channel as usize];
        channel.offer(at, place, kind, number as u64);
        at += stream.gap();
        if channel.backlog() == AHEAD {
            observer.at_channel(place.channel);
            channel.accept_all_but(0, observer);
        }
    }
    let mut counts = Counts::default();
    for (number, channel) in channels.iter_mut().enumerate() {
        observer.at_channel(number as u32);
        channel.finish(observer);
        counts.add(channel.counts());
    }
    Ok((counts, stacks.count_ones()))
}

/// An observer that must know which channel it watches.
trait Located {
    fn at_channel(&mut self, number: u32);
}

/// Latencies and the end of a run.
#[derive(Default)]
struct Tally {
    latencies: [Latencies; 2],
    end: u64,
}

impl Observer for Tally {
    const COMMANDS: bool = false;

    fn command(&mut self, _: u64, _: Command) {}

    #[inline]
    fn done(&mut self, done: Done) {
        self.latencies[done.kind as usize].add(done.at - done.accepted);
        self.end = self.end.max(done.at);
    }
}

impl Located for Tally {
    fn at_channel(&mut self, _: u32) {}
}

/// How many requests had each latency.
#[derive(Default)]
struct Latencies(Vec<u64>);

impl Latencies {
    #[inline]
    fn add(&mut self, latency: u64) {
        let latency = latency as usize;
        if latency >= self.0.len() {
            self.0.resize(latency + 1, 0);
        }
        self.0[latency] += 1;
    }

    fn summary(&self) -> Option<Latency> {
        let count: u64 = self.0.iter().sum();
        let all = || self.0.iter().enumerate();
        let sum: u64 = all().map(|(latency, count)| latency as u64 * count).sum();
        let percentile = |percent: u64| {
            let mut seen = 0;
            let reached = all().find(|(_, count)| {
                seen += **count;
                seen * 100 >= self.0.iter().sum::<u64>() * percent
            });
            reached.map_or(0, |(latency, _)| latency as u64)
        };
        (count != 0).then(|| Latency {
            count,
            mean: sum as f64 / count as f64,
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max: percentile(100),
        })
    }
}

/// A command trace as CSV, a line for each command, in order of cycles for each pseudo-channel.
pub struct CommandFile<'a> {
    out: &'a mut dyn Write,
    pseudo_channels: u32,
    banks: u32,
    channel: u32,
    failed: Option<io::Error>,
}

impl<'a> CommandFile<'a> {
    /// Begins a trace with its heading.
    pub fn new(config: &DramConfig, out: &'a mut dyn Write) -> CommandFile<'a> {
        let heading = "cycle,command,channel,pseudo_channel,bank_group,bank,row,column";
        CommandFile {
            failed: writeln!(out, "{heading}").err(),
            out,
            pseudo_channels: config.device.pseudo_channels,
            banks: config.device.banks,
            channel: 0,
        }
    }

    fn write(&mut self, cycle: u64, command: Command) {
        if self.failed.is_some() {
            return;
        }
        let Command {
            op,
            bank,
            row,
            column,
        } = command;
        let written = writeln!(
            self.out,
            "{cycle},{},{},{},{},{},{row},{column}",
            op.name(),
            self.channel / self.pseudo_channels,
            self.channel % self.pseudo_channels,
            bank / self.banks,
            bank % self.banks,
        );
        self.failed = written.err();
    }

    /// The first error there was.
    fn finish(&mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

struct Traced<'a, 'b> {
    tally: &'a mut Tally,
    trace: &'a mut CommandFile<'b>,
}

impl Observer for Traced<'_, '_> {
    const COMMANDS: bool = true;

    fn command(&mut self, cycle: u64, command: Command) {
        self.trace.write(cycle, command);
    }

    fn done(&mut self, done: Done) {
        self.tally.done(done);
    }
}

impl Located for Traced<'_, '_> {
    fn at_channel(&mut self, number: u32) {
        self.trace.channel = number;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (used, stacks) = (self.stacks_used, self.stacks);
        let peak = self.peak_bytes_per_cycle * f64::from(used) / f64::from(stacks);
        let share = 100.0 * self.bytes_per_cycle / peak;
        let whose = match used == stacks {
            true => String::new(),
            false => format!(" of {used} of {stacks} stacks, the only ones used"),
        };
        let counts = &self.counts;
        writeln!(f, "{} on {}\n", self.stream, self.config)?;
        writeln!(f, "requests       {}", self.requests)?;
        writeln!(f, "cycles         {}  ({:.1} ns)", self.cycles, self.ns)?;
        let rate = self.bytes as f64 / self.ns.max(f64::MIN_POSITIVE);
        writeln!(
            f,
            "bytes/cycle    {:.3}  ({share:.1} % of the peak{whose}, {rate:.2} GB/s)",
            self.bytes_per_cycle
        )?;
        for (name, latency) in [("read", &self.read_latency), ("write", &self.write_latency)] {
            let Some(Latency {
                mean,
                p50,
                p90,
                p99,
                max,
                ..
            }) = latency
            else {
                continue;
            };
            let name = format!("{name} latency");
            writeln!(
                f,
                "{name:<14} mean {mean:.3}, p50 {p50}, p90 {p90}, p99 {p99}, max {max} cycles"
            )?;
        }
        let columns = counts.reads + counts.writes;
        let hits = 100.0 * counts.row_hits as f64 / columns.max(1) as f64;
        writeln!(
            f,
            "row hits       {} of {columns}  ({hits:.1} %)",
            counts.row_hits
        )?;
        writeln!(
            f,
            "commands       {} RD, {} WR, {} ACT, {} PRE, {} REF",
            counts.reads, counts.writes, counts.activates, counts.precharges, counts.refreshes
        )?;
        writeln!(
            f,
            "turnarounds    {}, {} reads answered from queued writes",
            counts.turnarounds, counts.forwarded
        )
    }
}
