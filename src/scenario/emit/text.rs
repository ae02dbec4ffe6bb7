//! Writing the scenario file.

use super::error::EmitError;
use super::program::{
    Program, Schedule, barrier, descriptors, packet_barrier, refuse, semaphore, stores,
};
use crate::order::litmus::{Answer, Case};
use crate::order::lowering::Lowering;
use crate::order::outcome::{Condition, Place, Test};
use crate::order::program::{CellKind, Desc, Dest, Op, Packet, Register, Span};
use crate::system::WaitOp;
use std::fmt::Write;

/// A vring of a queue that is dumped before the ring wraps, and after.
const LAPS: [&str; 2] = ["", "-next-lap"];

pub(super) struct Text<'a> {
    pub name: &'a str,
    pub case: &'a Case,
    pub program: &'a Program<'a>,
    pub config_name: &'a str,
}

impl Text<'_> {
    /// The scenario with a schedule, which expects that conditions hold or do not.
    pub fn scenario(
        &self,
        schedule: &Schedule,
        expects: &[(&Condition, bool)],
    ) -> Result<String, EmitError> {
        let mut text = self.head(schedule.seed);
        self.memory(&mut text)?;
        self.sequencers(&mut text, schedule)?;
        self.author(&mut text)?;
        self.act(&mut text, schedule)?;
        for (condition, holds) in expects {
            self.expect(&mut text, condition, *holds)?;
        }
        Ok(text)
    }

    fn head(&self, seed: u64) -> String {
        let Case { asked, arch, .. } = self.case;
        let barrier = self.case.barrier();
        let (verdict, result) = match self.case.expected {
            Answer::Allowed => ("allowed", "This seed shows the outcome."),
            Answer::Forbidden => ("forbidden", "No seed shows the outcome."),
        };
        format!(
            "# docs/ordering.md, litmus test {} with barrier {barrier}: {asked} is {verdict}.\n\
             # {result} A value v of the test is v in every byte here.\n\n\
             name = \"{}\"\n\
             description = \"litmus test: {asked} is {verdict}; docs/ordering.md\"\n\
             config = \"{}\"\nruns_on = [\"{arch}\"]\nseed = {seed}\n",
            self.name, self.name, self.config_name
        )
    }

    fn memory(&self, text: &mut String) -> Result<(), EmitError> {
        for (n, cell) in self.program.program.cells.iter().enumerate() {
            let Some(at) = self.program.declared_at(n) else {
                continue;
            };
            let (name, bytes) = (self.program.cell_name(n), cell.bytes);
            let content = match cell.kind {
                CellKind::Pointer => {
                    let address = self.program.address(cell.initial as usize)?;
                    format!("hex = \"{}\"", hex::encode(address.to_le_bytes()))
                }
                _ => format!("size = {bytes}\nbyte = {}", byte(cell.initial)?),
            };
            table(
                text,
                "memory",
                &[&format!("name = \"{name}\"\nat = \"{at}\"\n{content}")],
            );
        }
        for (n, _) in self.program.program.queues.iter().enumerate() {
            let (places, size) = self.program.ring(n);
            for (half, at) in ["tx", "rx"].into_iter().zip(places) {
                let ring = format!(
                    "name = \"{half}{n}\"\ntype = \"{half}\"\nat = \"{at}\"\ndescriptors = {size}"
                );
                table(text, "pring", &[&ring]);
            }
        }
        Ok(())
    }

    fn sequencers(&self, text: &mut String, schedule: &Schedule) -> Result<(), EmitError> {
        for (n, observer) in self.program.program.observers.iter().enumerate() {
            if self.program.host == Some(n) {
                continue;
            }
            let mut program = vec![format!("{{ delay = {} }}", schedule.delays[n])];
            for op in &observer.ops {
                program.push(self.instruction(op)?);
            }
            let program = program.join(",\n    ");
            let lines = format!(
                "name = \"{}\"\nprogram = [\n    {program},\n]",
                observer.name
            );
            table(text, "sequencer", &[&lines]);
        }
        Ok(())
    }

    fn instruction(&self, op: &Op) -> Result<String, EmitError> {
        Ok(match *op {
            Op::Read { span, register } => {
                let (at, size) = self.program.place(span)?;
                let name = self.register(register)?;
                format!("{{ read = \"{name}\", at = \"{at}\", size = {size} }}")
            }
            Op::Wait { atom, op } => {
                let test = match op {
                    WaitOp::Ge(value) => format!("ge = {value}"),
                    WaitOp::Eq(value) => format!("eq = {value}"),
                    WaitOp::GeAndDec(value) => format!("ge_and_dec = {value}"),
                    WaitOp::EqAndInc(value) => format!("eq_and_inc = {value}"),
                    WaitOp::EqAndClear(value) => format!("eq_and_clear = {value}"),
                };
                format!("{{ wait = \"{}\", {test} }}", self.program.semaphore(atom)?)
            }
            Op::Set { atom, value } if self.program.is_semaphore(atom) => {
                format!(
                    "{{ set = \"{}\", value = {value} }}",
                    self.program.semaphore(atom)?
                )
            }
            Op::Set { atom, value } => {
                let span = Span {
                    first: atom,
                    count: 1,
                };
                let (at, size) = self.program.place(span)?;
                let byte = byte(value as u32)?;
                format!("{{ write = \"{at}\", size = {size}, byte = {byte} }}")
            }
            Op::Add { atom, by } => {
                format!(
                    "{{ inc = \"{}\", by = {by} }}",
                    self.program.semaphore(atom)?
                )
            }
            Op::Ring { queue } => {
                let (engine, number) = self.program.queue(queue);
                format!("{{ trigger = {{ engine = {engine}, queue = {number} }} }}")
            }
            Op::Completion { .. } => return refuse("a sequencer that reads registers"),
        })
    }

    fn register(&self, first: usize) -> Result<&str, EmitError> {
        let mut registers = self.program.program.registers.iter();
        match registers.find(|register| register.first == first) {
            Some(register) => Ok(&register.name),
            None => refuse("only part of a register"),
        }
    }

    /// Vrings, dumps, queues; and the copies before the program's first slot.
    fn author(&self, text: &mut String) -> Result<(), EmitError> {
        for (n, queue) in self.program.program.queues.iter().enumerate() {
            let before_wrap = self.program.before_wrap(n);
            let (first, next) = queue.packets.split_at(before_wrap);
            let [vring, next_lap] = LAPS.map(|lap| format!("v{n}{lap}"));
            if queue.start_slot > 0 {
                let pad = format!("{}-pad", self.program.cell_name(0));
                let at = format!("hbm0 + {}", Lowering::PADDING);
                table(
                    text,
                    "memory",
                    &[&format!(
                        "name = \"{pad}\"\nat = \"{at}\"\nsize = 4\nzero = true"
                    )],
                );
                let lines = copy(&vring, &pad, &pad, 4, "none");
                table(
                    text,
                    "step",
                    &[
                        &format!("repeat = {{ n = \"0..{}\" }}", queue.start_slot),
                        &lines,
                    ],
                );
            }
            for packet in first {
                self.packet(text, &vring, packet)?;
            }
            dump(text, &vring, n);
            let (engine, number) = self.program.queue(n);
            let mut lines = format!(
                "do = \"init_queue\"\nengine = {engine}\nqueue = {number}\ntx = \"tx{n}\"\nrx = \"rx{n}\""
            );
            if queue.dmb_masked {
                lines += "\ndmb = false";
            }
            if queue.start_slot > 0 {
                // The second lap is authored anew, with the ring ids of a first one.
                lines += "\nring_id_check = false";
            }
            table(text, "step", &[&lines]);
            if queue.start_slot > 0 {
                let slots = queue.start_slot;
                table(
                    text,
                    "step",
                    &[&trigger((engine, number), Some(slots as usize))],
                );
                let wait = format!("do = \"wait\"\nengine = {engine}\nqueue = {number}");
                table(text, "step", &[&wait]);
            }
            if !next.is_empty() {
                for packet in next {
                    self.packet(text, &next_lap, packet)?;
                }
                dump(text, &next_lap, n);
            }
        }
        Ok(())
    }

    fn packet(&self, text: &mut String, vring: &str, packet: &Packet) -> Result<(), EmitError> {
        let [desc] = packet.descs.as_slice() else {
            return self.gathered(text, vring, packet);
        };
        let lines = match (desc.to, desc.from.as_slice()) {
            (Dest::Increment(atom), _) => {
                let semaphore = self.program.semaphore(atom)?;
                let barrier = barrier(desc)?;
                format!(
                    "do = \"add_desc_semaphore_inc\"\nvring = \"{vring}\"\n\
                     semaphore = \"{semaphore}\"\nbarrier = \"{barrier}\""
                )
            }
            (Dest::Store(to), [_, _, ..]) => self.sum(vring, desc, to)?,
            (Dest::Store(to), sources) => {
                let (to, size) = self.program.place(to)?;
                let from = match (sources, desc.through) {
                    ([from], _) => self.program.place(*from)?.0,
                    (_, Some(slot)) => self.program.pointee(slot)?,
                    _ => return refuse("a packet without a source"),
                };
                copy(vring, &from, &to, size, barrier(desc)?)
            }
        };
        match desc.label.as_str() {
            "" => table(text, "step", &[&lines]),
            label => table(
                text,
                "step",
                &[&format!("label = \"{vring} {label}\""), &lines],
            ),
        }
        if let Some(atom) = desc.embedded {
            let semaphore = self.program.semaphore(atom)?;
            let lines = format!(
                "do = \"set_embedded_semaphore_inc_on_last_desc\"\nvring = \"{vring}\"\n\
                 semaphore = \"{semaphore}\"\nset_sow = {}",
                desc.sow
            );
            table(text, "step", &[&lines]);
        }
        Ok(())
    }

    fn sum(&self, vring: &str, desc: &Desc, to: Span) -> Result<String, EmitError> {
        let (to, size) = self.program.place(to)?;
        let sources: Result<Vec<String>, EmitError> = desc
            .from
            .iter()
            .map(|span| Ok(format!("\"{}\"", self.program.place(*span)?.0)))
            .collect();
        Ok(format!(
            "do = \"add_dma_packet_cce\"\nvring = \"{vring}\"\nop = \"add\"\nfrom = [{}]\n\
             to = [\"{to}\"]\nelements = {}\ndtype = \"uint32\"\nbarrier = \"{}\"",
            sources?.join(", "),
            size / 4,
            barrier(desc)?
        ))
    }

    /// A packet of several copies.
    fn gathered(&self, text: &mut String, vring: &str, packet: &Packet) -> Result<(), EmitError> {
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        for desc in &packet.descs {
            let (Some(to), [from], None) = (stores(desc), desc.from.as_slice(), desc.embedded)
            else {
                return refuse("a packet of several descriptors that are not all plain copies");
            };
            for (ends, span) in [(&mut sources, *from), (&mut targets, to)] {
                let (at, size) = self.program.place(span)?;
                ends.push(format!("{{ at = \"{at}\", size = {size} }}"));
            }
        }
        let lines = format!(
            "do = \"add_dma_packet\"\nvring = \"{vring}\"\nfrom = [\n    {},\n]\nto = [\n    {},\n]\n\
             barrier = \"{}\"",
            sources.join(",\n    "),
            targets.join(",\n    "),
            packet_barrier(packet)?
        );
        table(text, "step", &[&lines]);
        Ok(())
    }

    /// Doorbells and what the host does, then the end of everything.
    fn act(&self, text: &mut String, schedule: &Schedule) -> Result<(), EmitError> {
        let program = self.program.program;
        for (n, cell) in program.cells.iter().enumerate() {
            if cell.kind == CellKind::Semaphore && cell.initial != 0 {
                let set = format!(
                    "at = \"sem {} set\"\narray = {{ dtype = \"u32\", values = [{}] }}",
                    semaphore(n as u32),
                    cell.initial
                );
                table(text, "step", &["do = \"write\"", &set]);
            }
        }
        for (after, n, packets) in &schedule.rings {
            wait_cycles(text, *after);
            let queue = &program.queues[*n];
            let whole = *packets == (0..queue.packets.len());
            let count = match whole && queue.start_slot == 0 {
                true => None,
                false => Some(descriptors(queue, packets.clone())),
            };
            table(text, "step", &[&trigger(self.program.queue(*n), count)]);
        }
        if let Some(host) = self.program.host {
            wait_cycles(text, schedule.delays[host]);
            for op in &program.observers[host].ops {
                self.host_step(text, op)?;
            }
        }
        table(text, "step", &["do = \"wait\"\nidle = true"]);
        Ok(())
    }

    fn host_step(&self, text: &mut String, op: &Op) -> Result<(), EmitError> {
        let lines = match *op {
            Op::Read { span, register } => {
                let (at, size) = self.program.place(span)?;
                let name = self.register(register)?;
                format!("do = \"observe\"\nname = \"{name}\"\nat = \"{at}\"\nsize = {size}")
            }
            Op::Wait { atom, op } if self.program.is_semaphore(atom) => {
                let semaphore = self.program.semaphore(atom)?;
                let test = match op {
                    WaitOp::Ge(value) => format!("ge = {value}"),
                    WaitOp::Eq(value) => format!("eq = {value}"),
                    _ => return refuse("a host that changes a semaphore in its wait"),
                };
                format!("do = \"wait\"\nsemaphore = \"{semaphore}\"\n{test}")
            }
            Op::Wait {
                atom,
                op: WaitOp::Eq(value),
            } => {
                let span = Span {
                    first: atom,
                    count: 1,
                };
                let (at, _) = self.program.place(span)?;
                let word = u32::from_le_bytes([byte(value as u32)?; 4]);
                format!("do = \"wait\"\nword = \"{at}\"\nvalue = {word}")
            }
            Op::Wait { .. } => return refuse("a wait for memory with \"ge\""),
            Op::Set { atom, value } if self.program.is_semaphore(atom) => format!(
                "do = \"write\"\nat = \"sem {} set\"\narray = {{ dtype = \"i32\", values = [{value}] }}",
                self.program.semaphore(atom)?
            ),
            Op::Set { atom, value } => {
                let span = Span {
                    first: atom,
                    count: 1,
                };
                let (at, size) = self.program.place(span)?;
                format!(
                    "do = \"write\"\nat = \"{at}\"\nsize = {size}\nbyte = {}",
                    byte(value as u32)?
                )
            }
            Op::Add { atom, by } => format!(
                "do = \"write\"\nat = \"sem {} inc\"\narray = {{ dtype = \"i32\", values = [{by}] }}",
                self.program.semaphore(atom)?
            ),
            Op::Ring { queue } => trigger(self.program.queue(queue), None),
            Op::Completion { queue, packets } => {
                if packets != self.program.program.queues[queue].packets.len() {
                    return refuse("a wait for the completion of only some packets of a queue");
                }
                let (engine, number) = self.program.queue(queue);
                format!("do = \"wait\"\nengine = {engine}\nqueue = {number}")
            }
        };
        table(text, "step", &[&lines]);
        Ok(())
    }

    fn expect(
        &self,
        text: &mut String,
        condition: &Condition,
        holds: bool,
    ) -> Result<(), EmitError> {
        let (value, equal) = match condition.test {
            Test::All(value) => (value, holds),
            Test::NotAll(value) => (value, !holds),
        };
        let subject = match condition.place {
            Place::Registers(span) => {
                let registers = &self.program.program.registers;
                let whole = |r: &&Register| (r.first, r.count) == (span.first, span.count);
                match registers.iter().find(whole) {
                    Some(register) => format!("observation = \"{}\"", register.name),
                    None => {
                        return refuse(format!(
                            "an outcome that tests only part of a register: {}",
                            condition.name
                        ));
                    }
                }
            }
            Place::Memory(span) if self.program.is_semaphore(span.first) => {
                if !equal {
                    return refuse("an expectation that a semaphore differs from a value");
                }
                let semaphore = self.program.semaphore(span.first)?;
                table(
                    text,
                    "expect",
                    &[&format!("semaphore = \"{semaphore}\"\nequals = {value}")],
                );
                return Ok(());
            }
            Place::Memory(span) => {
                let (at, size) = self.program.place(span)?;
                format!("memory = \"{at}\"\nsize = {size}")
            }
        };
        let comparison = if equal { "equals" } else { "differs" };
        let byte = byte(value)?;
        table(
            text,
            "expect",
            &[&subject, &format!("{comparison} = {{ byte = {byte} }}")],
        );
        Ok(())
    }
}

fn table(text: &mut String, kind: &str, lines: &[&str]) {
    // Writing to a string does not fail.
    let _ = write!(text, "\n[[{kind}]]\n{}\n", lines.join("\n"));
}

fn copy(vring: &str, from: &str, to: &str, size: u64, barrier: &str) -> String {
    format!(
        "do = \"add_desc_transfer\"\nvring = \"{vring}\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
         size = {size}\nbarrier = \"{barrier}\""
    )
}

fn dump(text: &mut String, vring: &str, n: usize) {
    let lines =
        format!("do = \"dump_to_pring\"\nvring = \"{vring}\"\ntx = \"tx{n}\"\nrx = \"rx{n}\"");
    table(text, "step", &[&lines]);
}

/// Rings both doorbells of a queue, for so many descriptors or for all that its rings hold.
fn trigger((engine, number): (u32, usize), count: Option<usize>) -> String {
    let counts = count.map(|count| format!("\ntx = {count}\nrx = {count}"));
    format!(
        "do = \"trigger\"\nengine = {engine}\nqueue = {number}{}",
        counts.unwrap_or_default()
    )
}

fn wait_cycles(text: &mut String, cycles: u64) {
    if cycles > 0 {
        table(
            text,
            "step",
            &[&format!("do = \"wait\"\ncycles = {cycles}")],
        );
    }
}

/// The byte that stands for a value.
fn byte(value: u32) -> Result<u8, EmitError> {
    match u8::try_from(value) {
        Ok(byte) => Ok(byte),
        Err(_) => refuse(format!("the value {value}; only 0 to 255 can be expressed")),
    }
}
