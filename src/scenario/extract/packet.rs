//! What a packet reads and writes: plain copies, and whatever the stream processor makes of compute packets.

use super::cells::{cell_at, event};
use crate::arch::EventBlock;
use crate::config::Config;
use crate::desc::{
    Descriptor, EmbeddedSemaphore, Packet, PacketFault, RxDesc, TRANSPOSE_FLUSH_OFFSET,
    TransposeTarget, TxDesc, packets,
};
use crate::device::compute::{self, Fp8, Operation, Plan, Setup};
use crate::memory::{PhysicalMemory, Target};
use crate::order::race::{PacketAccess, Read, Write, WriteTo};
use crate::units::Addr;

/// Bytes of what a host can wait for.
const WORD: u64 = 4;

/// A place in the output that lies behind every other.
const AFTER_ALL: u64 = u64::MAX >> 1;

/// The next packet of a queue.
pub(super) enum Found {
    Packet(Box<PacketFound>),
    /// None is there as a whole.
    Nothing,
    /// The device refuses it.
    Refused(String),
}

/// A packet that can be executed.
pub(super) struct PacketFound {
    /// Its accesses, as if all its barriers counted.
    pub access: PacketAccess,
    /// Tx and Rx descriptors it takes.
    pub descs: [usize; 2],
    /// The Tx descriptors that carry DMB and WRITE_BARRIER, and the Rx descriptors that carry SOW.
    pub dmb: Vec<usize>,
    pub write_barrier: Vec<usize>,
    pub sow: Vec<usize>,
    /// The copy, if it copies one word.
    pub word: Option<WordCopy>,
}

/// A copy of one word.
pub(super) struct WordCopy {
    pub from: Addr,
    pub to: Addr,
}

/// Looks at the first packet of the descriptors that are rung.
pub(super) fn next(
    memory: &PhysicalMemory,
    config: &Config,
    (txs, rxs): (&[Descriptor], &[Descriptor]),
) -> Found {
    let spec = config.arch().spec();
    let Some(packet) = packets(txs, spec.limits.tx_descs_per_packet).next() else {
        return Found::Nothing;
    };
    match packet.faults.first() {
        // The rest of it has not been rung yet.
        Some((_, PacketFault::MissingLast)) => return Found::Nothing,
        Some((_, fault)) => return Found::Refused(fault.to_string()),
        None => {}
    }
    let plain = packet
        .descs
        .iter()
        .all(|desc| TxDesc::from(*desc).is_plain_copy());
    let planned = match plain {
        true => None,
        false => match compute::plan(packet.descs, &setup(config)) {
            Ok(plan) => Some(plan),
            Err(refusal) => return Found::Refused(refusal.to_string()),
        },
    };
    let (reads, read_bytes) = reads(memory, &packet, planned.as_ref());
    let result = planned
        .as_ref()
        .map_or(read_bytes, |plan| plan.result_bytes as u64);
    let transposes = planned
        .as_ref()
        .is_some_and(|plan| matches!(plan.operation, Operation::Transpose(_)));
    let mut output = Output {
        memory,
        config,
        access: PacketAccess {
            reads,
            ..PacketAccess::default()
        },
        place: 0,
        sow: Vec::new(),
    };
    let mut used = 0;
    while output.place < result {
        let Some(desc) = rxs.get(used) else {
            return Found::Nothing;
        };
        output.take(used, RxDesc::from(*desc), result, transposes);
        used += 1;
    }
    let (mut access, sow) = (output.access, output.sow);
    let word = if plain { copied_word(&access) } else { None };
    if plain {
        drop_padding(&mut access);
    }
    let carries = |bit: &dyn Fn(Descriptor) -> bool| {
        let descs = packet.descs.iter().enumerate();
        descs
            .filter(|(_, desc)| bit(**desc))
            .map(|(n, _)| n)
            .collect()
    };
    Found::Packet(Box::new(PacketFound {
        dmb: carries(&|desc| desc.len_ctrl().dmb()),
        write_barrier: carries(&|desc| TxDesc::from(desc).write_barrier()),
        access,
        descs: [packet.descs.len(), used],
        sow,
        word,
    }))
}

/// What a packet reads, and how many bytes its descriptors hold.
fn reads(memory: &PhysicalMemory, packet: &Packet<'_>, planned: Option<&Plan>) -> (Vec<Read>, u64) {
    let mut reads = Vec::new();
    let mut place = 0;
    for tx in packet.data() {
        let len = u64::from(tx.len_ctrl.byte_len());
        let at = tx.buf_ptr;
        let constant =
            matches!(memory.resolve(at, len), Ok(place) if place.target == Target::Constant);
        if !constant {
            reads.push(Read {
                at,
                len,
                place: planned.map_or(place, |plan| result_place(plan, place, len)),
            });
        }
        place += len;
    }
    (reads, place)
}

/// Where in the result of a computation the `len` source bytes at `place` show first.
fn result_place(plan: &Plan, place: u64, len: u64) -> u64 {
    match &plan.operation {
        Operation::Reduce(reduce) => {
            match reduce.reduction.result_bytes(plan.source_bytes) as u64 == len {
                true => 0,
                // Elements grow or shrink: no byte of a source has a place of its own.
                false => AFTER_ALL,
            }
        }
        // The stream processor takes all of it before it gives anything, unless it lets it pass.
        _ => match plan.passes() {
            Some((_, values)) => place.saturating_sub(values as u64),
            None => 0,
        },
    }
}

/// What a copy copies, if that is one word.
fn copied_word(access: &PacketAccess) -> Option<WordCopy> {
    match (access.reads.as_slice(), access.writes.as_slice()) {
        ([read], [write]) => match write.to {
            WriteTo::Memory(to, WORD) => Some(WordCopy { from: read.at, to }),
            _ => None,
        },
        _ => None,
    }
}

/// Drops the accesses of a copy that is padding: what it writes is what it read.
fn drop_padding(access: &mut PacketAccess) {
    let itself = |(read, write): (&Read, &Write)| write.to == WriteTo::Memory(read.at, read.len);
    let mut pairs = access.reads.iter().zip(&access.writes);
    if access.reads.len() == access.writes.len() && pairs.all(itself) {
        access.reads.clear();
        access
            .writes
            .iter_mut()
            .for_each(|write| write.to = WriteTo::Nowhere);
    }
}

fn setup(config: &Config) -> Setup {
    Setup {
        spec: config.arch().spec(),
        fp8: Fp8::from(&config.values.compute),
        // A register says how many. It is the device's to refuse more; what is read and written stays.
        packet_bytes: u64::MAX,
    }
}

/// What a packet writes, Rx descriptor by Rx descriptor.
struct Output<'a> {
    memory: &'a PhysicalMemory,
    config: &'a Config,
    access: PacketAccess,
    /// Bytes of the result that have found their place.
    place: u64,
    /// Rx descriptors with strong-ordered writes.
    sow: Vec<usize>,
}

impl Output<'_> {
    fn take(&mut self, index: usize, rx: RxDesc, result: u64, transposes: bool) {
        let spec = self.config.arch().spec();
        let len = (result - self.place).min(u64::from(rx.len_ctrl.byte_len()));
        let sow = rx.len_ctrl.strong_order_wr() && spec.caps.strong_order_writes;
        if sow {
            self.sow.push(index);
        }
        let at = rx.buf1_ptr;
        let flushed = |base: &Addr| at.offset_from(*base) == Some(TRANSPOSE_FLUSH_OFFSET);
        let target = TransposeTarget::from_addr(at).filter(|_| spec.caps.state_buffer_transpose);
        match target {
            Some(target) if transposes => {
                let row = u64::from(target.rows() * target.element_bytes());
                let buffer = &spec.map.state_buffer;
                for n in 0..len / row.max(1) {
                    let partition = u64::from(target.partition()) + n;
                    let inside = partition * buffer.stride + u64::from(target.offset());
                    let to = WriteTo::Memory(Addr(target.window().0 + inside), row);
                    self.write(to, n * row, sow);
                }
            }
            Some(_) if spec.map.tpb.iter().any(flushed) => self.write(WriteTo::Nowhere, 0, sow),
            _ => self.write(self.target(at, len), 0, sow),
        }
        self.place += len;
        if let Some(update) = EmbeddedSemaphore::of(rx).filter(|_| spec.caps.embedded_semaphore)
            && let Some(block) = spec.map.embedded_semaphore_block(update.csr_index)
            && let Some(last) = self.access.writes.last_mut()
        {
            last.embedded = Some((block, update.semaphore.into()));
        }
    }

    fn write(&mut self, to: WriteTo, ahead: u64, sow: bool) {
        self.access.writes.push(Write {
            to,
            place: self.place + ahead,
            sow,
            embedded: None,
        });
    }

    /// Tells cells of event blocks from memory: nothing races on them.
    fn target(&self, at: Addr, len: u64) -> WriteTo {
        let place = self.memory.resolve(at, len);
        let (block, offset) = match place.map(|place| (place.target, place.offset)) {
            Ok((Target::EventBlock { block }, offset)) => (block, offset),
            _ => return WriteTo::Memory(at, len),
        };
        let semaphore = cell_at(EventBlock::SEM_INC, offset).map(|index| (block, index));
        let event = || cell_at(EventBlock::EVENTS, offset).map(|index| event(block, index));
        match semaphore.or_else(event) {
            Some(cell) => WriteTo::Semaphore(cell),
            None => WriteTo::Nowhere,
        }
    }
}
