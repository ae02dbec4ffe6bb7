//! From a packet's Tx descriptors to what is to be done with its bytes: a [`Plan`], or a [`Refusal`]
//! that names the descriptor at fault.

mod cce;
mod cme;
mod dre;
mod ext;

use super::crc::{CACHE_SLOTS, CrcCopy, CrcMismatch};
use super::element::Fp8;
use super::reduce::Reduction;
use super::refusal::{Reason, Refusal};
use super::reshape::{Split, Transpose, replicate};
use crate::arch::ArchSpec;
use crate::desc::{AddWord, Descriptor, MetaCtrl, OpWord, OtherOp, TxDesc, TxMetaDesc};
use crate::sim::stream;
use rand_chacha::ChaCha8Rng;

/// What an engine is, as far as its stream processor cares.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The generation.
    pub spec: &'static ArchSpec,
    /// How fp8 types behave.
    pub fp8: Fp8,
    /// Most bytes of a packet, sources or result.
    pub packet_bytes: u64,
}

/// What is to be done with a packet's bytes. Its sources are its data descriptors in ring order.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What.
    pub operation: Operation,
    /// Bytes of all sources.
    pub source_bytes: usize,
    /// Bytes of the result.
    pub result_bytes: usize,
}

/// What is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A reduction or a cast.
    Reduce(Reduce),
    /// A striding split.
    Split(Split),
    /// The sources, one behind the other, several times.
    Replicate {
        /// How often.
        copies: u32,
    },
    /// A transpose.
    Transpose(Transpose),
    /// A checksum, with or without a copy.
    Crc(CrcCopy),
}

/// A reduction and what surrounds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    /// The reduction.
    pub reduction: Reduction,
    /// Seeds the queue's generator first.
    pub seed: Option<u32>,
    /// Rounds the result stochastically.
    pub stochastic: bool,
    /// Times the result is written.
    pub copies: u32,
}

/// What a queue's stream processor keeps from packet to packet.
#[derive(Clone, Debug)]
pub struct QueueState {
    /// Generator of stochastic rounding.
    random: ChaCha8Rng,
    /// Cached checksums.
    pub(in crate::device) cache: [u32; CACHE_SLOTS],
}

impl Default for QueueState {
    /// Out of reset: seeded with 0, all cached checksums 0. Modelled (C).
    fn default() -> QueueState {
        QueueState {
            random: seeded(0),
            cache: [0; CACHE_SLOTS],
        }
    }
}

/// The generator that a seed stands for: a named stream, the same on every queue and in every run.
/// Modelled (C).
fn seeded(seed: u32) -> ChaCha8Rng {
    stream(seed.into(), "stochastic rounding")
}

/// Decodes a packet that is no plain copy.
///
/// # Errors
/// [`Refusal`] for what the generation does not execute.
pub fn plan(descs: &[Descriptor], setup: &Setup) -> Result<Plan, Refusal> {
    let first = descs.iter().position(|desc| !desc.len_ctrl().meta());
    let first = first.ok_or(refuse(descs.len().saturating_sub(1), Reason::NoData))?;
    let packet = Packet { descs, first };
    let operation = match OpWord::decode(packet.word()) {
        OpWord::Cme(_) => cme::plan(&packet)?,
        OpWord::StridingSplit(word) => dre::split(&packet, word, setup.spec)?,
        OpWord::Replication(word) => dre::replicate(&packet, word, setup.spec)?,
        OpWord::Transpose(word) => dre::transpose(&packet, word, setup.spec)?,
        OpWord::Add(_) | OpWord::MinMax(_) | OpWord::Fma(_) => cce::plan(&packet, setup)?,
        OpWord::Ext(word) => return Err(refuse(first, ext::reason(word, setup.spec))),
        OpWord::Gce(_) => return Err(refuse(first, Reason::Gce)),
        OpWord::Reserved(raw) => return Err(refuse(first, Reason::UnknownOp(raw))),
    };
    let source_bytes = packet.source_bytes() as usize;
    let plan = Plan {
        result_bytes: operation.result_bytes(source_bytes),
        operation,
        source_bytes,
    };
    let (bytes, limit) = (plan.result_bytes as u64, setup.packet_bytes);
    if bytes > limit {
        return Err(refuse(first, Reason::ResultLength { bytes, limit }));
    }
    Ok(plan)
}

impl Operation {
    fn result_bytes(&self, source_bytes: usize) -> usize {
        match self {
            Operation::Reduce(reduce) => {
                reduce.reduction.result_bytes(source_bytes) * reduce.copies as usize
            }
            Operation::Replicate { copies } => source_bytes * *copies as usize,
            Operation::Split(_) | Operation::Transpose(_) => source_bytes,
            Operation::Crc(crc) => crc.result_bytes(source_bytes),
        }
    }
}

impl Plan {
    /// Executes the plan on the bytes of all sources in order, [`Plan::source_bytes`] of them. `result`
    /// gets [`Plan::result_bytes`] bytes; what was in it is lost, its room is used again.
    ///
    /// # Errors
    /// [`CrcMismatch`] if a checksum is validated and wrong; the result is there all the same.
    pub fn execute(
        &self,
        sources: &[u8],
        state: &mut QueueState,
        result: &mut Vec<u8>,
    ) -> Result<(), CrcMismatch> {
        result.resize(self.result_bytes, 0);
        match &self.operation {
            Operation::Reduce(reduce) => {
                if let Some(seed) = reduce.seed {
                    state.random = seeded(seed);
                }
                let random = reduce.stochastic.then_some(&mut state.random);
                let (first, copies) =
                    result.split_at_mut(self.result_bytes / reduce.copies as usize);
                reduce.reduction.run(sources, random, first);
                replicate(first, copies);
            }
            Operation::Split(split) => split.run(sources, result),
            Operation::Replicate { .. } => replicate(sources, result),
            Operation::Transpose(transpose) => transpose.run(sources, result),
            Operation::Crc(crc) => return crc.run(sources, &mut state.cache, result),
        }
        Ok(())
    }
}

impl Plan {
    /// The checksum whose data passes through the engine as a copy's does, and how many bytes of values
    /// precede it; nothing if the sources must be there as a whole before a result is.
    pub fn passes(&self) -> Option<(&CrcCopy, usize)> {
        let Operation::Crc(crc) = &self.operation else {
            return None;
        };
        let values = (crc.leading_values() * crc.checksum.bytes()) as usize;
        (crc.copy && values < self.source_bytes).then_some((crc, values))
    }

    /// Bytes of a checksum's result that are written behind its data.
    pub fn sent_bytes(&self) -> u32 {
        match &self.operation {
            Operation::Crc(crc) if crc.send => crc.checksum.bytes(),
            _ => 0,
        }
    }
}

fn refuse(desc: usize, reason: Reason) -> Refusal {
    Refusal { desc, reason }
}

fn bytes_of(tx: TxDesc) -> u64 {
    tx.len_ctrl.byte_len().into()
}

/// A packet's descriptors, at least one of which carries data.
struct Packet<'a> {
    descs: &'a [Descriptor],
    /// The first data descriptor.
    first: usize,
}

impl<'a> Packet<'a> {
    /// Op word of the first data descriptor, which says what the packet is.
    fn word(&self) -> MetaCtrl {
        TxDesc::from(self.descs[self.first]).meta_ctrl
    }

    /// Data descriptors with their indices.
    fn data(&self) -> impl Iterator<Item = (usize, TxDesc)> + use<'a> {
        let data = self.descs.iter().enumerate();
        data.filter(|(_, desc)| !desc.len_ctrl().meta())
            .map(|(index, desc)| (index, TxDesc::from(*desc)))
    }

    /// Meta descriptors with their indices.
    fn metas(&self) -> impl Iterator<Item = (usize, TxMetaDesc)> + use<'a> {
        let metas = self.descs.iter().enumerate();
        metas
            .filter(|(_, desc)| desc.len_ctrl().meta())
            .map(|(index, desc)| (index, TxMetaDesc::from(*desc)))
    }

    fn source_bytes(&self) -> u64 {
        self.data().map(|(_, tx)| bytes_of(tx)).sum()
    }

    /// Refuses every meta descriptor.
    fn no_metas(&self, operation: &'static str) -> Result<(), Refusal> {
        match self.metas().next() {
            None => Ok(()),
            Some((index, _)) => Err(refuse(index, Reason::UnexpectedMeta(operation))),
        }
    }

    /// Refuses data descriptors whose op words differ in more than barriers, masks and marks.
    fn one_operation(&self, spec: &ArchSpec) -> Result<(), Refusal> {
        let first = self.word();
        for (index, tx) in self.data() {
            if operation_of(tx.meta_ctrl) != operation_of(first) {
                if let OpWord::Ext(word) = OpWord::decode(tx.meta_ctrl) {
                    return Err(refuse(index, ext::reason(word, spec)));
                }
                let (first, found) = (first.into_bits(), tx.meta_ctrl.into_bits());
                return Err(refuse(index, OtherOp { first, found }.into()));
            }
        }
        Ok(())
    }
}

/// The part of an op word that is the same in all data descriptors of a packet.
fn operation_of(word: MetaCtrl) -> u32 {
    let word = word.with_write_barrier(false).with_notification_mask(false);
    match OpWord::decode(word) {
        OpWord::Add(_) | OpWord::MinMax(_) | OpWord::Fma(_) => {
            // The three have these bits in the same places.
            let word = AddWord::from_bits(word.into_bits());
            word.with_barrier(false).with_last(false).into_bits()
        }
        _ => word.into_bits(),
    }
}
