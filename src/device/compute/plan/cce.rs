//! Plans of the CCE: ADD, MIN, MAX and FMA. The packet is laid out as `desc::build_cce_packet` lays it
//! out (`docs/hardware.md`, "Op words"); a source may also come in several data descriptors.

use super::{Operation, Packet, Reduce, Setup, bytes_of, ext, refuse};
use crate::arch::ArchSpec;
use crate::desc::{
    AddWord, CceRule, CceShape, CceType, CceTypes, ComputeMetaWord, DType, FmaSelector,
    MAX_CCE_SOURCES, MetaCtrl, MetaOp, OpWord, OperandWord, TxMetaDesc, check_constant_dtype,
    check_copies, check_scale_dtype, check_selectors, check_sources,
};
use crate::device::compute::reduce::{Constant, Extreme, Fma, Fold, Operand, Reduction};
use crate::device::compute::refusal::{Reason, Refusal};

pub(super) fn plan(packet: &Packet, setup: &Setup) -> Result<Operation, Refusal> {
    packet.one_operation(setup.spec)?;
    let word = OpWord::decode(packet.word());
    let sources = Sources::of(packet)?;
    let metas = Metas::read(packet, word, &sources, setup.spec)?;
    let types = types(packet, word, &sources, setup.spec)?;
    let count = sources.starts.len();
    let fold = match word {
        OpWord::Fma(_) => Fold::Fma(metas.steps),
        OpWord::MinMax(word) => Fold::Extreme {
            extreme: match word.sub_op() {
                CceType::Min => Extreme::Min,
                _ => Extreme::Max,
            },
            sources: count,
            constants: metas.constant.into_iter().collect(),
        },
        _ => Fold::Add { sources: count },
    };
    Ok(Operation::Reduce(Reduce {
        reduction: Reduction {
            in_dtype: types.in_dtype,
            acc_dtype: types.acc_dtype,
            out_dtype: types.out_dtype,
            fp8: setup.fp8,
            fold,
        },
        seed: metas.seed,
        // The three words have this bit in the same place.
        stochastic: AddWord::from_bits(packet.word().into_bits()).flag(),
        copies: metas.copies.unwrap_or(1),
    }))
}

/// How the data descriptors make up sources.
struct Sources {
    /// Bytes of each.
    bytes: u64,
    /// First descriptor of each.
    starts: Vec<usize>,
}

impl Sources {
    /// The descriptors with the last bit are the last source; the others are cut into sources as long
    /// as that one: modelled (C).
    fn of(packet: &Packet) -> Result<Sources, Refusal> {
        let (mut bytes, mut last_source, mut end) = (0, None, packet.first);
        for (index, tx) in packet.data() {
            end = index;
            if AddWord::from_bits(tx.meta_ctrl.into_bits()).last() {
                bytes += bytes_of(tx);
                last_source = last_source.or(Some(index));
            } else if let Some(early) = last_source {
                return Err(refuse(early, Reason::EarlyLast));
            }
        }
        let last_source = last_source.ok_or(refuse(end, Reason::NoLast))?;
        let (mut starts, mut so_far) = (Vec::new(), 0);
        let length = |index, so_far| {
            let (bytes, wanted) = (so_far, bytes);
            refuse(index, Reason::SourceLength { bytes, wanted })
        };
        for (index, tx) in packet.data() {
            if let (Some(short), true) = (starts.last(), index == last_source && so_far > 0) {
                return Err(length(*short, so_far));
            }
            if so_far == 0 {
                starts.push(index);
            }
            so_far += bytes_of(tx);
            if so_far > bytes {
                return Err(length(index, so_far));
            }
            so_far %= bytes;
        }
        match (check_sources(starts.len()), starts.get(MAX_CCE_SOURCES)) {
            (Err(rule), Some(index)) => Err(refuse(*index, rule.into())),
            _ => Ok(Sources { bytes, starts }),
        }
    }

    /// Number of the source that a meta descriptor directly precedes.
    fn after(&self, packet: &Packet, meta: usize) -> Option<usize> {
        let (next, _) = packet.data().find(|(index, _)| *index > meta)?;
        self.starts.binary_search(&next).ok()
    }
}

/// What the meta descriptors say.
#[derive(Default)]
struct Metas {
    seed: Option<u32>,
    copies: Option<u32>,
    constant: Option<Constant>,
    /// FMA: one for each source.
    steps: Vec<Fma>,
}

impl Metas {
    fn read(
        packet: &Packet,
        word: OpWord,
        sources: &Sources,
        spec: &ArchSpec,
    ) -> Result<Metas, Refusal> {
        let mut metas = Metas::default();
        let mut steps = vec![None; sources.starts.len()];
        for (index, meta) in packet.metas() {
            let here = |reason| refuse(index, reason);
            let word_of_meta = ComputeMetaWord::decode(meta.meta_ctrl.into_bits());
            if word_of_meta.more_follow && index + 1 == packet.descs.len() {
                return Err(here(Reason::MoreAnnounced));
            }
            let late = index > packet.first;
            match word_of_meta.op {
                MetaOp::SeedInit if late => return Err(here(Reason::LateMeta("the seed"))),
                MetaOp::SeedInit => once(&mut metas.seed, meta.meta2, index, "seed")?,
                op @ MetaOp::ExtendedReplication(_) => {
                    let operands = OperandWord::from_bits(meta.meta1);
                    let copies = op.destinations(operands).unwrap_or_default();
                    check_copies(copies.into(), spec).map_err(|rule| here(rule.into()))?;
                    once(&mut metas.copies, copies, index, "number of destinations")?;
                }
                MetaOp::Constant(_) if late => {
                    return Err(here(Reason::LateMeta("the constant")));
                }
                MetaOp::Constant(dtype) => {
                    let constant = constant(word, dtype, meta.meta2).map_err(here)?;
                    once(&mut metas.constant, constant, index, "constant")?;
                }
                MetaOp::Gradient => return Err(here(Reason::Gce)),
                op if is_operand_meta(op) => {
                    let step = operands(word, meta, sources).map_err(here)?;
                    let source = sources.after(packet, index);
                    let source =
                        source.ok_or(here(Reason::UnexpectedMeta("the middle of a source")))?;
                    once(
                        &mut steps[source],
                        step,
                        index,
                        "meta descriptor of a source",
                    )?;
                }
                _ => return Err(here(unknown_meta(meta, word_of_meta.op, spec))),
            }
        }
        if let (OpWord::MinMax(word), None) = (word, metas.constant)
            && word.use_constant()
        {
            return Err(refuse(packet.first, Reason::MissingMeta("the constant")));
        }
        if let OpWord::Fma(_) = word {
            for (step, start) in steps.into_iter().zip(&sources.starts) {
                let missing = Reason::MissingMeta("the meta descriptor with scale and operands");
                metas.steps.push(step.ok_or(refuse(*start, missing))?);
            }
        }
        Ok(metas)
    }
}

/// Whether a meta descriptor belongs to a source. Our builder marks it as part of a combo; the runtime
/// has 0 for MIN and MAX, and FMA's op word for FMA (B).
fn is_operand_meta(op: MetaOp) -> bool {
    match op {
        MetaOp::ComboMember | MetaOp::Reserved(0) => true,
        MetaOp::Reserved(raw) => {
            matches!(OpWord::decode(MetaCtrl::from_bits(raw)), OpWord::Fma(_))
        }
        _ => false,
    }
}

/// Why a meta descriptor of no known kind is refused: it may hold an EXT word.
fn unknown_meta(meta: TxMetaDesc, op: MetaOp, spec: &ArchSpec) -> Reason {
    let word = match op {
        MetaOp::Reserved(raw) => OpWord::decode(MetaCtrl::from_bits(raw)),
        _ => OpWord::decode(meta.meta_ctrl),
    };
    match word {
        // Where a data descriptor has its write barrier a meta descriptor has the mark of a member.
        OpWord::Ext(word) => ext::reason(word.with_write_barrier(false), spec),
        _ => Reason::UnknownMeta(meta.meta_ctrl.into_bits()),
    }
}

/// Keeps a value that may come once.
fn once<T>(
    place: &mut Option<T>,
    value: T,
    desc: usize,
    what: &'static str,
) -> Result<(), Refusal> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(refuse(desc, Reason::SecondMeta(what))),
    }
}

fn constant(word: OpWord, dtype: DType, bits: u32) -> Result<Constant, Reason> {
    let OpWord::MinMax(word) = word else {
        return Err(CceRule::Constant(op_of(word).into_bits()).into());
    };
    if !word.use_constant() {
        return Err(Reason::UnexpectedMeta("MIN or MAX without a constant"));
    }
    check_constant_dtype(dtype)?;
    let (in_word, in_meta) = (word.op_type(), dtype.code() & 7);
    if in_word != in_meta {
        return Err(Reason::ConstantDtypes {
            word: in_word,
            meta: in_meta,
        });
    }
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&bits.to_le_bytes());
    Ok(Constant { dtype, bytes })
}

/// The meta descriptor of a source: FMA's operands and scale; MIN and MAX have one that says nothing
/// but the source's length.
fn operands(word: OpWord, meta: TxMetaDesc, sources: &Sources) -> Result<Fma, Reason> {
    if let OpWord::Add(_) = word {
        return Err(Reason::UnexpectedMeta("ADD"));
    }
    let operands = OperandWord::from_bits(meta.meta1);
    let said = operands.value();
    if said != 0 && u64::from(said) != sources.bytes {
        let bytes = sources.bytes;
        return Err(Reason::MetaLength { said, bytes });
    }
    let scale = f32::from_bits(meta.meta2);
    if let OpWord::MinMax(_) = word {
        return Ok(Fma::scaled(scale));
    }
    let selectors = [operands.a(), operands.b(), operands.c()];
    check_selectors(selectors)?;
    let [a, b, c] = selectors.map(|selector| match selector {
        FmaSelector::InputBuffer => Operand::Source,
        FmaSelector::Scale => Operand::Scale,
        FmaSelector::StoredBuffer | FmaSelector::Reserved(_) => Operand::Accumulator,
    });
    Ok(Fma { a, b, c, scale })
}

fn op_of(word: OpWord) -> CceType {
    match word {
        OpWord::Fma(_) => CceType::Fma,
        OpWord::MinMax(word) => word.sub_op(),
        _ => CceType::Add,
    }
}

/// The types that a reduction's elements travel in.
fn types(
    packet: &Packet,
    word: OpWord,
    sources: &Sources,
    spec: &ArchSpec,
) -> Result<CceTypes, Refusal> {
    let here = |reason| refuse(packet.first, reason);
    let constant = matches!(word, OpWord::MinMax(word) if word.use_constant());
    let (in_dtype, out_dtype, acc_dtype) = match word {
        OpWord::Fma(word) => {
            check_scale_dtype(word.scale_dtype()).map_err(|rule| here(rule.into()))?;
            (word.in_dtype(), word.in_dtype(), word.acc_dtype())
        }
        OpWord::MinMax(word) => {
            let in_dtype = word.in_dtype();
            (in_dtype, word.out_dtype().or(in_dtype), word.acc_dtype())
        }
        OpWord::Add(word) => {
            let out_dtype = word.out_dtype();
            (word.in_dtype().or(out_dtype), out_dtype, word.acc_dtype())
        }
        _ => (None, None, None),
    };
    let need = |dtype: Option<DType>, what| dtype.ok_or(here(Reason::NoDtype(what)));
    let shape = CceShape {
        op: op_of(word),
        sources: sources.starts.len(),
        descriptors: packet.data().count(),
        constant,
        source_bytes: sources.bytes,
        types: CceTypes {
            in_dtype: need(in_dtype, "in")?,
            acc_dtype: need(acc_dtype, "accumulation")?,
            out_dtype: need(out_dtype, "out")?,
        },
    };
    shape.check(spec).map_err(|rule| here(rule.into()))
}
