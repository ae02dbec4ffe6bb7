//! Doing the steps, through the vring stack.

use super::super::host_side::{HostError, HostSide};
use super::{Authoring, Move, Part, Resolved, Rings, Steps, Tables, VringCall};
use crate::arch::Arch;
use crate::desc::{Buffer, CceInfo, CcePacket, CopyPacket, TransposeDims, TransposePacket};
use crate::host::{
    DevmemLoad, DmaOp, IoStep, MemRefTable, Pattern, ProduceError, PseudoCopy, Refill, TableLoad,
    TableRing, Tensor, TensorSet, Vring, act_tbl_rings, data_refill_rings, devmem_load_template,
    dynamic_config_rings, seed_set_rings,
};

/// Rings of a scenario are for no tile in particular.
const TILE: u64 = 0;

/// Does a step.
pub(in crate::scenario) fn perform(
    action: &Authoring<Resolved>,
    host: &mut HostSide,
) -> Result<(), HostError> {
    let arch = host.arch();
    match action {
        Authoring::Vring { vring, call } => vring_call(host.author(vring)?, call),
        Authoring::Rings(rings) => {
            for vring in self::rings(arch, rings)?.vrings() {
                host.add_vring(vring.clone())?;
            }
            Ok(())
        }
        Authoring::Template { template, loads } => {
            let loads: Vec<DevmemLoad> = loads
                .iter()
                .map(|load| DevmemLoad {
                    staged: load.staged,
                    var_id: load.var_id,
                    offset: load.offset,
                    bytes: load.size,
                })
                .collect();
            host.add_template(devmem_load_template(arch, template, &loads)?)
        }
        Authoring::FromTemplate {
            template,
            vring,
            tensors,
        } => {
            let (mut names, mut set) = (MemRefTable::default(), TensorSet::default());
            for tensor in tensors {
                names.insert(tensor.var_id, tensor.name.clone());
                let (pa, size) = (tensor.at, tensor.size);
                set.insert(tensor.name.clone(), Tensor { pa, size });
            }
            let template = host.template(template)?;
            let ring = template.build_from_template(&names, &set)?;
            host.add_vring(ring.named(vring.clone())?)
        }
    }
}

fn vring_call(vring: &mut Vring, call: &VringCall<Resolved>) -> Result<(), HostError> {
    match call {
        VringCall::DmaPacket {
            sources,
            destinations,
            barrier,
            notification_mask,
        } => {
            let (sources, destinations) = (buffers(sources), buffers(destinations));
            let mut packet = CopyPacket::new(&sources, &destinations);
            packet.barrier = *barrier;
            packet.notification_mask = *notification_mask;
            vring.add_dma_packet(&packet)?;
        }
        VringCall::Cce {
            op,
            sources,
            destinations,
            elements,
            dtypes,
            scales,
            constant,
            barrier,
        } => {
            let [in_dtype, acc_dtype, out_dtype] = *dtypes;
            let mut packet = CcePacket::new(sources, destinations, *elements, in_dtype);
            packet.acc_dtype = acc_dtype;
            packet.out_dtype = out_dtype;
            packet.barrier = *barrier;
            if !scales.is_empty() || constant.is_some() {
                let mut info = CceInfo::scaled(scales);
                info.constant = *constant;
                packet.cce_info = Some(info);
            }
            vring.add_dma_packet_cce(*op, &packet)?;
        }
        VringCall::SetSeed { seed, scratch } => {
            vring.add_set_seed_packet(*seed, *scratch)?;
        }
        VringCall::Transpose {
            from,
            to,
            dims,
            element_bytes,
            permutation,
        } => {
            let dims = TransposeDims(*dims);
            let len = dims.elements().saturating_mul((*element_bytes).into());
            vring.add_dma_packet_transpose(&TransposePacket {
                source: Buffer { at: *from, len },
                destination: Buffer { at: *to, len },
                dims,
                element_bytes: *element_bytes,
                permutation: *permutation,
            })?;
        }
        VringCall::TransposeFlush { core } => vring.add_dma_packet_transpose_flush(*core)?,
        VringCall::SemaphoreIncFromSb {
            core,
            engine,
            semaphore: (block, semaphore),
        } => vring.add_desc_semaphore_inc_from_sb(*core, *engine, *block, *semaphore)?,
        VringCall::Linear(copy) => translate(
            vring,
            PseudoCopy::Linear {
                src: copy.from,
                dst: copy.to,
                bytes: copy.size,
            },
        )?,
        VringCall::Strided {
            src,
            dst,
            element_bytes,
        } => translate(
            vring,
            PseudoCopy::Strided {
                src: pattern(src),
                dst: pattern(dst),
                element_bytes: *element_bytes,
            },
        )?,
        VringCall::Gather {
            table,
            row_bytes,
            indices,
            dst,
        } => translate(
            vring,
            PseudoCopy::Gather {
                table: *table,
                row_bytes: *row_bytes,
                indices: indices.clone(),
                dst: *dst,
            },
        )?,
        VringCall::ExpandIo {
            copies,
            then,
            max_packet_size,
        } => {
            let ends: Vec<[Buffer; 2]> = copies.iter().map(ends).collect();
            let ops: Vec<DmaOp> = ends
                .iter()
                .map(|[from, to]| {
                    let (from, to) = (std::slice::from_ref(from), std::slice::from_ref(to));
                    DmaOp::Copy(CopyPacket::new(from, to))
                })
                .collect();
            let step = IoStep { ops: &ops, then };
            vring.expand_io(&[step], *max_packet_size)?;
        }
        VringCall::Pack {
            max_packet_size,
            start,
            end,
        } => {
            let end = end.unwrap_or(vring.tx().used_desc_count());
            vring.pack_descs(*start, end, *max_packet_size, 0)?;
        }
        VringCall::DmbOnLastPacket => vring.set_dmb_on_last_packet()?,
        VringCall::EmbeddedSemaphore {
            semaphore: (block, semaphore),
            set_sow,
        } => vring.embed_semaphore_inc(*block, *semaphore, *set_sow)?,
        VringCall::AddrRewrite {
            base,
            size,
            new_base,
        } => {
            vring.addr_rewrite(*base, *size, *new_base)?;
        }
    }
    Ok(())
}

fn translate(vring: &mut Vring, copy: PseudoCopy) -> Result<(), HostError> {
    vring.translate_pseudo_dma(&[copy])?;
    Ok(())
}

fn buffers(parts: &[Part<Resolved>]) -> Vec<Buffer> {
    let buffer = |part: &Part<Resolved>| Buffer {
        at: part.at,
        len: part.size,
    };
    parts.iter().map(buffer).collect()
}

fn ends(copy: &Move<Resolved>) -> [Buffer; 2] {
    [copy.from, copy.to].map(|at| Buffer { at, len: copy.size })
}

fn pattern(steps: &Steps<Resolved>) -> Pattern {
    Pattern {
        base: steps.at,
        outer: steps.outer,
        inner: steps.inner,
    }
}

fn rings(arch: Arch, rings: &Rings<Resolved>) -> Result<crate::host::VringSet, ProduceError> {
    let table_rings = |rings: &[Tables<Resolved>]| -> Vec<TableRing> {
        let ring = |ring: &Tables<Resolved>| TableRing {
            loads: ring.loads.iter().map(table_load).collect(),
            then: ring.then,
        };
        rings.iter().map(ring).collect()
    };
    match rings {
        Rings::ActTbl { rings, dynamic } => {
            act_tbl_rings(arch, &table_rings(rings), *dynamic, TILE)
        }
        Rings::DynamicConfig(rings) => dynamic_config_rings(arch, &table_rings(rings), TILE),
        Rings::DataRefill { rings, refills } => {
            let refills: Vec<Refill> = refills
                .iter()
                .map(|(copy, then)| Refill {
                    src: copy.from,
                    dst: copy.to,
                    bytes: copy.size,
                    then: *then,
                })
                .collect();
            data_refill_rings(arch, *rings as usize, &refills, TILE)
        }
        Rings::SetSeed { seeds, scratch } => seed_set_rings(arch, seeds, *scratch, TILE),
    }
}

fn table_load(copy: &Move<Resolved>) -> TableLoad {
    TableLoad {
        src: copy.from,
        dst: copy.to,
        bytes: copy.size,
    }
}
