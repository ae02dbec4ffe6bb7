//! Transactions in words, and which ones to show.

use crate::arch::EngineId;
use crate::device::{Access, EngineActivity};
use crate::sim::Instant;
use crate::system::Activity;
use crate::telemetry::Machine;
use crate::units::Addr;
use std::fmt::Write;
use std::ops::Range;

/// What a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A doorbell arrived.
    Doorbell,
    /// Descriptors were fetched.
    Fetch,
    /// A read burst.
    Read,
    /// A write burst.
    Write,
    /// A descriptor was done with.
    Descriptor,
    /// Completion records.
    Completion,
    /// A packet completed.
    Packet,
    /// A barrier held a write.
    Barrier,
    /// A station was at something.
    Station,
    /// An error bit.
    Error,
    /// An interrupt.
    Interrupt,
    /// A semaphore changed.
    Semaphore,
    /// A sequencer's instruction.
    Instruction,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 13] = [
        Kind::Doorbell,
        Kind::Fetch,
        Kind::Read,
        Kind::Write,
        Kind::Descriptor,
        Kind::Completion,
        Kind::Packet,
        Kind::Barrier,
        Kind::Station,
        Kind::Error,
        Kind::Interrupt,
        Kind::Semaphore,
        Kind::Instruction,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Doorbell => "doorbell",
            Kind::Fetch => "fetch",
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Descriptor => "descriptor",
            Kind::Completion => "completion",
            Kind::Packet => "packet",
            Kind::Barrier => "barrier",
            Kind::Station => "station",
            Kind::Error => "error",
            Kind::Interrupt => "interrupt",
            Kind::Semaphore => "semaphore",
            Kind::Instruction => "instruction",
        }
    }

    /// That of an activity.
    pub fn of(activity: &Activity) -> Kind {
        match activity {
            Activity::Interrupt { .. } => Kind::Interrupt,
            Activity::Semaphore { .. } => Kind::Semaphore,
            Activity::Instruction { .. } => Kind::Instruction,
            Activity::Engine { what, .. } => match what {
                EngineActivity::Doorbell { .. } => Kind::Doorbell,
                EngineActivity::Fetch { .. } => Kind::Fetch,
                EngineActivity::Read { .. } => Kind::Read,
                EngineActivity::Write { .. } => Kind::Write,
                EngineActivity::Descriptor { .. } => Kind::Descriptor,
                EngineActivity::Completion { .. } => Kind::Completion,
                EngineActivity::Packet { .. } => Kind::Packet,
                EngineActivity::Barrier { .. } => Kind::Barrier,
                EngineActivity::Station { .. } => Kind::Station,
                EngineActivity::Error { .. } => Kind::Error,
            },
        }
    }
}

/// Which transactions to show: those that all its parts ask for.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this engine only.
    pub engine: Option<EngineId>,
    /// Of this queue only.
    pub queue: Option<u8>,
    /// Of these kinds only, unless there are none.
    pub kinds: Vec<Kind>,
    /// That touch one of these addresses only.
    pub addresses: Option<Range<u64>>,
    /// Told at or after this time.
    pub from: Option<Instant>,
    /// Told at or before this time.
    pub to: Option<Instant>,
}

impl Filter {
    /// Whether to show it.
    pub fn admits(&self, at: Instant, activity: &Activity) -> bool {
        let touches = |wanted: &Range<u64>| {
            let touched = touched(activity);
            touched.is_some_and(|(at, len)| {
                at.0 < wanted.end && at.0.saturating_add(len.into()) > wanted.start
            })
        };
        (self.engine.is_none() || self.engine == activity.engine())
            && (self.queue.is_none() || self.queue == activity.queue().map(|queue| queue.0))
            && (self.kinds.is_empty() || self.kinds.contains(&Kind::of(activity)))
            && self.addresses.as_ref().is_none_or(touches)
            && self.from.is_none_or(|from| at >= from)
            && self.to.is_none_or(|to| at <= to)
    }
}

/// The bytes that an activity read or wrote.
fn touched(activity: &Activity) -> Option<(Addr, u32)> {
    let Activity::Engine { what, .. } = activity else {
        return None;
    };
    match what {
        EngineActivity::Fetch { access, .. }
        | EngineActivity::Read { access, .. }
        | EngineActivity::Write { access, .. } => Some((access.at, access.len)),
        EngineActivity::Completion { at, len, .. } => Some((*at, *len)),
        _ => None,
    }
}

/// A transaction in one line.
pub fn line(machine: &Machine, at: Instant, activity: &Activity) -> String {
    let mut text = format!("{:>14.3} ", at.as_ns_f64());
    // Writing to a string does not fail.
    let _ = describe(&mut text, machine, activity);
    text
}

fn describe(text: &mut String, machine: &Machine, activity: &Activity) -> std::fmt::Result {
    let kind = Kind::of(activity).name();
    let (engine, what) = match activity {
        Activity::Interrupt { engine, group } => {
            return write!(text, "{engine:<4} {kind:<10} group {group}");
        }
        Activity::Semaphore {
            block,
            semaphore,
            value,
        } => return write!(text, "     {kind:<10} {block}.{semaphore} = {value}"),
        Activity::Instruction {
            sequencer,
            index,
            name: instruction,
            since,
        } => {
            let sequencer = name(&machine.sequencers, sequencer.index());
            return write!(
                text,
                "     {kind} {sequencer} {index}: {instruction}, since {:.3}",
                since.as_ns_f64()
            );
        }
        Activity::Engine { engine, what } => (engine, what),
    };
    write!(text, "{:<4} {kind:<10}", engine.to_string())?;
    if let Some(queue) = what.queue() {
        write!(text, " q{queue}")?;
    }
    describe_engine(text, machine, what)
}

fn describe_engine(
    text: &mut String,
    machine: &Machine,
    what: &EngineActivity,
) -> std::fmt::Result {
    match what {
        EngineActivity::Doorbell {
            direction, count, ..
        } => write!(text, " {} +{count}", direction.ring_name()),
        EngineActivity::Fetch {
            direction,
            slot,
            access,
            ..
        } => {
            write!(text, " {} slot {slot}", direction.ring_name())?;
            describe_access(text, machine, access)
        }
        EngineActivity::Read { slot, access, .. } => {
            write!(text, " slot {slot}")?;
            describe_access(text, machine, access)
        }
        EngineActivity::Write {
            slot,
            packet,
            access,
            ..
        } => {
            write!(text, " slot {slot} packet {packet}")?;
            describe_access(text, machine, access)
        }
        EngineActivity::Descriptor {
            direction,
            slot,
            desc,
            bytes,
            since,
            ..
        } => {
            write!(text, " {} slot {slot}", direction.ring_name())?;
            for word in desc.words {
                write!(text, " {word:08x}")?;
            }
            write!(text, ", {bytes} bytes, since {:.3}", since.as_ns_f64())
        }
        EngineActivity::Completion {
            direction, at, len, ..
        } => write!(text, " {} {at} {len} bytes", direction.ring_name()),
        EngineActivity::Packet { .. } => describe_packet(text, what),
        EngineActivity::Barrier { slot, since, .. } => {
            write!(text, " rx slot {slot} held since {:.3}", since.as_ns_f64())
        }
        EngineActivity::Station {
            station,
            state,
            since,
            ..
        } => write!(
            text,
            " {} {}, since {:.3}",
            station.name(),
            state.name(),
            since.as_ns_f64()
        ),
        EngineActivity::Error { text: error, .. } => write!(text, " {error}"),
    }
}

fn describe_access(text: &mut String, machine: &Machine, access: &Access) -> std::fmt::Result {
    let channel = name(&machine.channels, access.channel as usize);
    write!(
        text,
        " {} {} bytes, {channel}, issued {:.3}, served {:.3} to {:.3}, done {:.3}, answered {:.3}",
        access.at,
        access.len,
        access.issued.as_ns_f64(),
        access.times.served_from.as_ns_f64(),
        access.times.served.as_ns_f64(),
        access.times.done.as_ns_f64(),
        access.answered.as_ns_f64()
    )
}

fn describe_packet(text: &mut String, what: &EngineActivity) -> std::fmt::Result {
    let EngineActivity::Packet {
        number,
        slot,
        descriptors: [tx, rx],
        bytes,
        started,
        dmb,
        write_barrier,
        computed,
        ..
    } = what
    else {
        return Ok(());
    };
    write!(
        text,
        " {number} slot {slot} tx {tx} rx {rx} {bytes} bytes, started {:.3}",
        started.as_ns_f64()
    )?;
    for (holds, word) in [
        (dmb, "dmb"),
        (write_barrier, "write barrier"),
        (computed, "computed"),
    ] {
        if *holds {
            write!(text, ", {word}")?;
        }
    }
    Ok(())
}

/// The name of a part, or its number if it does not have one.
fn name(names: &[String], index: usize) -> String {
    let name = names.get(index).cloned();
    name.unwrap_or_else(|| index.to_string())
}
