//! A run as a value change dump (IEEE 1364), for waveform viewers.
//!
//! What has signals is known at the end only, and the file begins with their names: the changes wait
//! in a temporary file until then.

use super::reorder::Reorder;
use super::{End, Machine};
use crate::arch::regs::Direction;
use crate::arch::{EngineId, QueueId};
use crate::device::{Access, EngineActivity, Station, StationState};
use crate::sim::Instant;
use crate::system::{Activity, Observer};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write};
use vcd::{IdCode, ScopeType, TimescaleUnit, Value, VarType};

const FS_PER_PS: u64 = 1_000;

/// Bits of a counter of bursts.
const COUNT_BITS: u32 = 16;
/// Bits of a semaphore and of a counter of packets.
const WORD_BITS: u32 = 32;

/// What has a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Signal {
    /// What a station is at, in words.
    Station(EngineId, Station),
    /// A doorbell arrives.
    Doorbell(EngineId, QueueId, Direction),
    /// Read or write bursts of a queue on their way.
    Outstanding(EngineId, QueueId, Station),
    /// Packets completed.
    Packets(EngineId, QueueId),
    /// A channel serves.
    Channel(u32),
    /// What a semaphore holds.
    Semaphore(u32, u32),
}

impl Signal {
    /// The scopes it is in, and its name.
    fn path(self, machine: &Machine) -> (Vec<String>, String) {
        let queue =
            |engine: EngineId, queue: QueueId| vec![engine.to_string(), format!("q{queue}")];
        match self {
            Signal::Station(engine, station) => {
                let name = format!("{}_station", station.name());
                (vec![engine.to_string()], name)
            }
            Signal::Doorbell(engine, q, direction) => {
                let name = format!("{}_doorbell", direction.ring_name());
                (queue(engine, q), name)
            }
            Signal::Outstanding(engine, q, station) => {
                let name = format!("{}s_outstanding", station.name());
                (queue(engine, q), name)
            }
            Signal::Packets(engine, q) => (queue(engine, q), "packets".to_string()),
            Signal::Channel(channel) => {
                let name = machine.channels.get(channel as usize).cloned();
                let name = name.unwrap_or_else(|| channel.to_string());
                (vec!["memory".to_string()], name.replace(' ', "_"))
            }
            Signal::Semaphore(block, semaphore) => {
                let name = format!("s{block}_{semaphore}");
                (vec!["semaphores".to_string()], name)
            }
        }
    }

    /// Its type, and its bits.
    fn kind(self) -> (VarType, u32) {
        match self {
            Signal::Station(..) => (VarType::String, 1),
            Signal::Doorbell(..) => (VarType::Event, 1),
            Signal::Outstanding(..) => (VarType::Wire, COUNT_BITS),
            Signal::Channel(_) => (VarType::Wire, 1),
            Signal::Packets(..) | Signal::Semaphore(..) => (VarType::Wire, WORD_BITS),
        }
    }
}

/// A change of a signal.
#[derive(Clone, Copy)]
enum Change {
    State(StationState),
    Happens,
    By(i64),
    /// One more or one less at work: at work or not is what shows.
    Busy(i64),
    To(u32),
}

/// Writes waves.
pub struct Waves<W> {
    machine: Machine,
    out: W,
    changes: vcd::Writer<BufWriter<File>>,
    /// Numbers of the signals, and what they hold if they count.
    signals: BTreeMap<Signal, (u32, i64)>,
    late: Reorder<(Signal, Change)>,
    /// The time of the last change written, in picoseconds.
    now: Option<u64>,
    failed: io::Result<()>,
}

impl<W: Write> Waves<W> {
    /// Of a machine that has not run yet.
    ///
    /// # Errors
    /// As the operating system, if there can be no temporary file.
    pub fn new(machine: Machine, out: W) -> io::Result<Waves<W>> {
        Ok(Waves {
            machine,
            out,
            changes: vcd::Writer::new(BufWriter::new(tempfile::tempfile()?)),
            signals: BTreeMap::new(),
            late: Reorder::default(),
            now: None,
            failed: Ok(()),
        })
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The first error of either file.
    pub fn finish(&mut self, end: &End) -> io::Result<()> {
        while let Some((at, (signal, change))) = self.late.pop() {
            self.write(at, signal, change);
        }
        std::mem::replace(&mut self.failed, Ok(()))?;
        self.at(end.at)?;
        self.changes.flush()?;
        let changes = self.changes.writer().get_mut();
        changes.rewind()?;
        let mut header = vcd::Writer::new(&mut self.out);
        header.version("udma-sim")?;
        header.timescale(1, TimescaleUnit::PS)?;
        let mut open: Vec<String> = Vec::new();
        for (signal, (number, _)) in &self.signals {
            let (scopes, name) = signal.path(&self.machine);
            let (kind, bits) = signal.kind();
            let same = open.iter().zip(&scopes).take_while(|(a, b)| a == b).count();
            for _ in same..open.len() {
                header.upscope()?;
            }
            for scope in &scopes[same..] {
                header.scope_def(ScopeType::Module, scope)?;
            }
            open = scopes;
            header.var_def(kind, bits, IdCode::from(*number), &name, None)?;
        }
        for _ in 0..open.len() {
            header.upscope()?;
        }
        header.enddefinitions()?;
        io::copy(&mut BufReader::new(changes), &mut self.out)?;
        self.out.flush()
    }

    /// Time passes. A change that was told too late counts as happening now.
    fn at(&mut self, at: Instant) -> io::Result<()> {
        let ps = at.as_fs() / FS_PER_PS;
        if self.now.is_none_or(|now| ps > now) {
            self.changes.timestamp(ps)?;
            self.now = Some(ps);
        }
        Ok(())
    }

    fn write(&mut self, at: Instant, signal: Signal, change: Change) {
        if self.failed.is_ok() {
            self.failed = self.try_write(at, signal, change);
        }
    }

    fn try_write(&mut self, at: Instant, signal: Signal, change: Change) -> io::Result<()> {
        self.at(at)?;
        let next = self.signals.len() as u32;
        let (number, held) = self.signals.entry(signal).or_insert((next, 0));
        let id = IdCode::from(*number);
        if let Change::By(by) | Change::Busy(by) = change {
            *held += by;
        }
        let held = *held as u32;
        let (_, bits) = signal.kind();
        let vector = |value: u32| {
            (0..bits)
                .rev()
                .map(move |bit| Value::from(value >> bit & 1 == 1))
        };
        match change {
            Change::State(state) => self.changes.change_string(id, state.name()),
            Change::Happens => self.changes.change_scalar(id, true),
            Change::Busy(_) => self.changes.change_scalar(id, held > 0),
            Change::By(_) => self.changes.change_vector(id, vector(held)),
            Change::To(value) => self.changes.change_vector(id, vector(value)),
        }
    }

    fn access(&mut self, engine: EngineId, data: Option<(QueueId, Station)>, access: &Access) {
        let channel = Signal::Channel(access.channel);
        let times = access.times;
        self.late
            .push(times.served_from, (channel, Change::Busy(1)));
        self.late.push(times.served, (channel, Change::Busy(-1)));
        if let Some((queue, station)) = data {
            let outstanding = Signal::Outstanding(engine, queue, station);
            self.late.push(access.issued, (outstanding, Change::By(1)));
            self.late
                .push(access.answered, (outstanding, Change::By(-1)));
        }
    }

    fn engine(&mut self, at: Instant, engine: EngineId, what: &EngineActivity) {
        match what {
            EngineActivity::Fetch { access, .. } => self.access(engine, None, access),
            EngineActivity::Read { queue, access, .. } => {
                self.access(engine, Some((*queue, Station::Read)), access);
            }
            EngineActivity::Write { queue, access, .. } => {
                self.access(engine, Some((*queue, Station::Write)), access);
            }
            EngineActivity::Doorbell {
                direction, queue, ..
            } => {
                let signal = Signal::Doorbell(engine, *queue, *direction);
                self.late.push(at, (signal, Change::Happens));
            }
            EngineActivity::Packet { queue, .. } => {
                let signal = Signal::Packets(engine, *queue);
                self.late.push(at, (signal, Change::By(1)));
            }
            EngineActivity::Station { station, next, .. } => {
                let signal = Signal::Station(engine, *station);
                self.late.push(at, (signal, Change::State(*next)));
            }
            EngineActivity::Descriptor { .. }
            | EngineActivity::Barrier { .. }
            | EngineActivity::Completion { .. }
            | EngineActivity::Error { .. } => {}
        }
    }
}

impl<W: Write + Send> Observer for Waves<W> {
    fn observe(&mut self, at: Instant, activity: &Activity) {
        match activity {
            Activity::Engine { engine, what } => self.engine(at, *engine, what),
            Activity::Semaphore {
                block,
                semaphore,
                value,
            } => {
                let signal = Signal::Semaphore(*block, *semaphore);
                self.late.push(at, (signal, Change::To(*value as u32)));
            }
            Activity::Interrupt { .. } | Activity::Instruction { .. } => {}
        }
        while let Some((at, (signal, change))) = self.late.pop_due(at) {
            self.write(at, signal, change);
        }
    }
}
