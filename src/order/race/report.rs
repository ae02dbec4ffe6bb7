//! What the detector reports: races, in words.

use super::{Detector, Kind};
use crate::order::race::shadow::Access;
use crate::units::Addr;
use std::fmt;

/// Where in the program something comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Line of the scenario file, counted from 1.
    pub line: usize,
    /// The call, as the scenario writes it, with its label.
    pub call: String,
}

/// One side of a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// Queue with ring slot and packet, or the name of a host thread or sequencer.
    pub who: String,
    /// Who asked for it: of a packet, the call that built it.
    pub origin: Option<Origin>,
    /// It writes.
    pub write: bool,
}

/// Two accesses that nothing orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The one that comes first when everything is executed in order.
    pub first: Side,
    /// The other.
    pub second: Side,
    /// First byte that both access, and one past the last.
    pub bytes: (Addr, Addr),
    /// Which interleaving exposes it.
    pub witness: String,
    /// The smallest change that orders them.
    pub fix: String,
}

impl Detector {
    /// The races found, in the order of their threads. `origin` says what the tags mean.
    pub fn races(&self, origin: &dyn Fn(u32) -> Option<Origin>) -> Vec<Race> {
        let races = self.found.races();
        races
            .map(|(key, bytes)| {
                let (a, b) = *key;
                let (first, second) = (self.side(a, origin), self.side(b, origin));
                Race {
                    witness: witness(&first, &second),
                    fix: self.fix(a, b, origin),
                    first,
                    second,
                    bytes: (Addr(bytes.0), Addr(bytes.1)),
                }
            })
            .collect()
    }

    fn side(&self, access: Access, origin: &dyn Fn(u32) -> Option<Origin>) -> Side {
        let who = match &self.threads[access.thread as usize] {
            Kind::Agent { name, .. } => name.clone(),
            Kind::Queue {
                engine,
                queue,
                packets,
                ..
            } => {
                let packet = self.packet_of(access);
                let slot = packets.get(packet as usize).map_or(0, |note| note.slot);
                format!("{engine} queue {queue} slot {slot} (packet {packet})")
            }
        };
        Side {
            who,
            origin: origin(access.tag),
            write: access.write,
        }
    }

    /// The smallest change that orders an access before another.
    fn fix(&self, a: Access, b: Access, origin: &dyn Fn(u32) -> Option<Origin>) -> String {
        let Kind::Queue {
            packets, writes, ..
        } = &self.threads[a.thread as usize]
        else {
            return format!("make the other side wait for {}", self.side(a, origin).who);
        };
        let named = |index: u32| {
            let place = packets.get(index as usize).map(|note| {
                let built = origin(note.tag).map(|origin| format!(", {origin}"));
                format!(" (slot {}{})", note.slot, built.unwrap_or_default())
            });
            format!("packet {index}{}", place.unwrap_or_default())
        };
        let packet = self.packet_of(a);
        if a.thread == b.thread && packet == self.packet_of(b) {
            return "read the bytes in a separate packet, with DMB on the packet before it"
                .to_string();
        }
        if a.thread == b.thread {
            let named = named(packet);
            return format!("DMB on {named}; only DMB holds back reads of the same queue");
        }
        // The last packet that the other side could have heard of it from.
        let heard = self.clocks[b.thread as usize].of(a.thread).read;
        let heard = heard
            .checked_sub(1)
            .and_then(|write| writes.get(write as usize));
        match heard.map(|write| write.packet) {
            Some(signal) if a.write && signal > packet => {
                match self.arch.spec().caps.strong_order_writes {
                    true => format!("SOW on the Rx descriptor of the signal, {}", named(signal)),
                    false => {
                        let last = named(signal - 1);
                        format!("DMB or WRITE_BARRIER on the last packet before the signal, {last}")
                    }
                }
            }
            _ => format!(
                "signal the end of {} and wait for the signal before the other access",
                named(packet)
            ),
        }
    }
}

fn witness(first: &Side, second: &Side) -> String {
    let verb = |side: &Side| if side.write { "writes" } else { "reads" };
    let verbs = (verb(first), verb(second));
    format!(
        "{} {} before {} {}",
        second.who, verbs.1, first.who, verbs.0
    )
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.call)
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = |side: &Side| if side.write { "write" } else { "read" };
        let (from, to) = self.bytes;
        writeln!(f, "race on {from}..{to}")?;
        for side in [&self.first, &self.second] {
            writeln!(f, "  {:<5} by {}", verb(side), side.who)?;
            if let Some(origin) = &side.origin {
                writeln!(f, "           {origin}")?;
            }
        }
        writeln!(f, "  exposed when {}", self.witness)?;
        write!(f, "  fix: {}", self.fix)
    }
}
