//! Reading the steps.

use super::super::diag::{At, Reported};
use super::super::parse::{exactly_one, name};
use super::super::place::Location;
use super::super::reader::{FromValue, Reader, Value};
use super::{
    Authoring, Move, NamedTensor, Part, Rings, Steps, Tables, TensorPart, VringCall, Written,
    WrittenSignal,
};
use crate::desc::{BarrierMode, CceConstant, DType, KbinOp, Permutation};
use crate::host::{EventAction, Step};
use toml::de::DeValue;

/// Names of the steps, by the runtime's own where it has one.
pub(in crate::scenario) const OPS: &[&str] = &[
    "add_dma_packet",
    "add_dma_packet_cce",
    "add_set_seed_packet",
    "add_dma_packet_transpose",
    "add_dma_packet_transpose_flush",
    "add_desc_semaphore_inc_from_sb",
    "translate_pseudo_dma",
    "expand_io",
    "pack_descs",
    "set_dmb_on_last_packet",
    "set_embedded_semaphore_inc_on_last_desc",
    "addr_rewrite",
    "act_tbl_rings",
    "dynamic_config_rings",
    "data_refill_rings",
    "seed_set_rings",
    "devmem_load_template",
    "build_from_template",
];

type Read<T> = Result<T, Reported>;

/// Reads a step of this family.
pub(in crate::scenario) fn read(call: &str, table: &Reader<'_>) -> Read<Authoring<Written>> {
    let rings = |read: Read<Rings<Written>>| read.map(Authoring::Rings);
    match call {
        "act_tbl_rings" => rings(act_tbl(table)),
        "dynamic_config_rings" => rings(table_rings(table).map(Rings::DynamicConfig)),
        "data_refill_rings" => rings(data_refill(table)),
        "seed_set_rings" => rings(seeds(table)),
        "devmem_load_template" => template(table),
        "build_from_template" => from_template(table),
        _ => on_vring(call, table),
    }
}

fn on_vring(call: &str, table: &Reader<'_>) -> Read<Authoring<Written>> {
    let vring = name(table, "vring");
    let call = match call {
        "add_dma_packet" => dma_packet(table),
        "add_dma_packet_cce" => cce(table),
        "add_set_seed_packet" => set_seed(table),
        "add_dma_packet_transpose" => transpose(table),
        "add_dma_packet_transpose_flush" => {
            core(table).map(|core| VringCall::TransposeFlush { core })
        }
        "add_desc_semaphore_inc_from_sb" => semaphore_inc_from_sb(table),
        "translate_pseudo_dma" => pseudo_dma(table),
        "expand_io" => expand_io(table),
        "pack_descs" => pack(table),
        "set_dmb_on_last_packet" => Ok(VringCall::DmbOnLastPacket),
        "set_embedded_semaphore_inc_on_last_desc" => embedded_semaphore(table),
        _ => addr_rewrite(table),
    };
    Ok(Authoring::Vring {
        vring: vring?.value,
        call: call?,
    })
}

fn dma_packet(table: &Reader<'_>) -> Read<VringCall<Written>> {
    let sources = each(table, "from", part);
    let destinations = each(table, "to", part);
    let barrier = table.or("barrier", BarrierMode::None);
    let notification_mask = table.or("notification_mask", false);
    Ok(VringCall::DmaPacket {
        sources: sources?,
        destinations: destinations?,
        barrier: barrier?,
        notification_mask: notification_mask?,
    })
}

fn cce(table: &Reader<'_>) -> Read<VringCall<Written>> {
    let op = table.req::<KbinOp>("op");
    let (sources, destinations) = (places(table, "from"), places(table, "to"));
    let elements = table.req::<u32>("elements");
    let dtype = table.req::<DType>("dtype");
    let acc_dtype = table.opt::<DType>("acc_dtype");
    let out_dtype = table.opt::<DType>("out_dtype");
    let scales = table.or("scales", Vec::<f32>::new());
    let constant = table.opt::<u32>("constant");
    let constant_dtype = table.opt::<DType>("constant_dtype");
    let barrier = table.or("barrier", BarrierMode::None);
    let dtype = dtype?.value;
    let or_read = |given: Option<At<DType>>| given.map_or(dtype, |given| given.value);
    let constant_dtype = or_read(constant_dtype?);
    Ok(VringCall::Cce {
        op: op?.value,
        sources: sources?,
        destinations: destinations?,
        elements: elements?.value,
        dtypes: [dtype, or_read(acc_dtype?), or_read(out_dtype?)],
        scales: scales?,
        constant: constant?.map(|bits| CceConstant {
            dtype: constant_dtype,
            bits: bits.value,
        }),
        barrier: barrier?,
    })
}

fn set_seed(table: &Reader<'_>) -> Read<VringCall<Written>> {
    let seed = table.req::<u32>("seed");
    let scratch = table.req("scratch");
    Ok(VringCall::SetSeed {
        seed: seed?.value,
        scratch: scratch?,
    })
}

fn transpose(table: &Reader<'_>) -> Read<VringCall<Written>> {
    let from = table.req("from");
    let to = table.req("to");
    let dims = table.req_with("dims", "four numbers, W to Z", |value| {
        let Some(numbers) = Vec::<u32>::from_value(value)? else {
            return Ok(None);
        };
        let small = numbers.iter().map(|dim| u16::try_from(*dim).ok());
        let dims: Option<Vec<u16>> = small.collect();
        match dims.and_then(|dims| <[u16; 4]>::try_from(dims).ok()) {
            Some(dims) => Ok(Some(dims)),
            None => Err("write four numbers from 1 to 65535: W, X, Y and Z".to_string()),
        }
    });
    let element_bytes = table.req::<u32>("element_bytes");
    let permutation = table.req::<Permutation>("permutation");
    Ok(VringCall::Transpose {
        from: from?,
        to: to?,
        dims: dims?.value,
        element_bytes: element_bytes?.value,
        permutation: permutation?.value,
    })
}

fn core(table: &Reader<'_>) -> Read<u32> {
    Ok(table.req::<u32>("core")?.value)
}

fn semaphore_inc_from_sb(table: &Reader<'_>) -> Read<VringCall<Written>> {
    let core = core(table);
    let engine = table.req("engine");
    let semaphore = table.req("semaphore");
    Ok(VringCall::SemaphoreIncFromSb {
        core: core?,
        engine: engine?,
        semaphore: semaphore?,
    })
}

fn pseudo_dma(table: &Reader<'_>) -> Read<VringCall<Written>> {
    let keys = ["size", "element_bytes", "indices"];
    match exactly_one(table, "a pseudo copy", &keys)? {
        "size" => one_move(table).map(VringCall::Linear),
        "element_bytes" => {
            let src = steps(table, "from", "from_outer", "from_inner");
            let dst = steps(table, "to", "to_outer", "to_inner");
            let element_bytes = table.req::<u32>("element_bytes");
            Ok(VringCall::Strided {
                src: src?,
                dst: dst?,
                element_bytes: element_bytes?.value,
            })
        }
        _ => {
            let rows = table.req("table");
            let row_bytes = table.req::<u32>("row_bytes");
            let indices = table.req::<Vec<u32>>("indices");
            let dst = table.req("to");
            Ok(VringCall::Gather {
                table: rows?,
                row_bytes: row_bytes?.value,
                indices: indices?.value,
                dst: dst?,
            })
        }
    }
}

fn steps(
    table: &Reader<'_>,
    at: &'static str,
    outer: &'static str,
    inner: &'static str,
) -> Read<Steps<Written>> {
    let at = table.req(at);
    let outer = table.or(outer, Step { count: 1, step: 0 });
    let inner = table.req::<Step>(inner);
    Ok(Steps {
        at: at?,
        outer: outer?,
        inner: inner?.value,
    })
}

fn expand_io(table: &Reader<'_>) -> Read<VringCall<Written>> {
    let copies = each(table, "copies", one_move);
    let then = each(table, "then", signal);
    let max_packet_size = max_packet_size(table);
    Ok(VringCall::ExpandIo {
        copies: copies?,
        then: then?,
        max_packet_size: max_packet_size?,
    })
}

fn pack(table: &Reader<'_>) -> Read<VringCall<Written>> {
    let max_packet_size = max_packet_size(table);
    let start = table.or("start", 0);
    let end = table.opt::<u32>("end");
    Ok(VringCall::Pack {
        max_packet_size: max_packet_size?,
        start: start?,
        end: end?.map(|end| end.value),
    })
}

fn max_packet_size(table: &Reader<'_>) -> Read<u64> {
    Ok(table.req::<crate::units::Bytes>("max_packet_size")?.value.0)
}

fn embedded_semaphore(table: &Reader<'_>) -> Read<VringCall<Written>> {
    let semaphore = table.req("semaphore");
    let set_sow = table.or("set_sow", true);
    Ok(VringCall::EmbeddedSemaphore {
        semaphore: semaphore?,
        set_sow: set_sow?,
    })
}

fn addr_rewrite(table: &Reader<'_>) -> Read<VringCall<Written>> {
    let base = table.req("base");
    let size = table.req("size");
    let new_base = table.req("new_base");
    Ok(VringCall::AddrRewrite {
        base: base?,
        size: size?,
        new_base: new_base?,
    })
}

fn act_tbl(table: &Reader<'_>) -> Read<Rings<Written>> {
    let dynamic = table.or("dynamic", false);
    let rings = table_rings(table);
    Ok(Rings::ActTbl {
        rings: rings?,
        dynamic: dynamic?,
    })
}

fn table_rings(table: &Reader<'_>) -> Read<Vec<Tables<Written>>> {
    each(table, "rings", |table| {
        let loads = each(table, "loads", one_move);
        let then = match table.has("semaphore") || table.has("event") {
            true => signal(table).map(Some),
            false => Ok(None),
        };
        Ok(Tables {
            loads: loads?,
            then: then?,
        })
    })
}

fn data_refill(table: &Reader<'_>) -> Read<Rings<Written>> {
    let rings = table.req::<u32>("rings");
    let refills = each(table, "refills", |table| {
        let (copy, then) = (one_move(table), signal(table));
        Ok((copy?, then?))
    });
    Ok(Rings::DataRefill {
        rings: rings?.value,
        refills: refills?,
    })
}

fn seeds(table: &Reader<'_>) -> Read<Rings<Written>> {
    let seeds = table.req::<Vec<u32>>("seeds");
    let scratch = table.req("scratch");
    Ok(Rings::SetSeed {
        seeds: seeds?.value,
        scratch: scratch?,
    })
}

fn template(table: &Reader<'_>) -> Read<Authoring<Written>> {
    let template = name(table, "template");
    let loads = each(table, "loads", |table| {
        let staged = table.req("staged");
        let var_id = table.req::<u32>("var_id");
        let offset = table.or("offset", 0);
        let size = table.req("size");
        Ok(TensorPart {
            staged: staged?,
            var_id: var_id?.value,
            offset: offset?,
            size: size?,
        })
    });
    Ok(Authoring::Template {
        template: template?.value,
        loads: loads?,
    })
}

fn from_template(table: &Reader<'_>) -> Read<Authoring<Written>> {
    let template = name(table, "template");
    let vring = name(table, "vring");
    let tensors = each(table, "tensors", |table| {
        let var_id = table.req::<u32>("var_id");
        let name = table.req::<String>("name");
        let at = table.req("at");
        let size = table.req("size");
        Ok(NamedTensor {
            var_id: var_id?.value,
            name: name?.value,
            at: at?,
            size: size?,
        })
    });
    Ok(Authoring::FromTemplate {
        template: template?.value,
        vring: vring?.value,
        tensors: tensors?,
    })
}

/// Reads every table of an array that must not be empty.
fn each<T>(
    table: &Reader<'_>,
    key: &'static str,
    read: impl Fn(&Reader<'_>) -> Read<T>,
) -> Read<Vec<T>> {
    let tables = table.tables(key);
    if tables.is_empty() {
        return Err(table.report(format!("\"{key}\" is missing or empty; write [{{ … }}]")));
    }
    let read = |(_, table): &(usize, Reader<'_>)| {
        let value = read(table);
        table.finish()?;
        value
    };
    let found: Vec<_> = tables.iter().map(read).collect();
    found.into_iter().collect()
}

fn part(table: &Reader<'_>) -> Read<Part<Written>> {
    let at = table.req("at");
    let size = table.req("size");
    Ok(Part {
        at: at?,
        size: size?,
    })
}

fn one_move(table: &Reader<'_>) -> Read<Move<Written>> {
    let from = table.req("from");
    let to = table.req("to");
    let size = table.req("size");
    Ok(Move {
        from: from?,
        to: to?,
        size: size?,
    })
}

fn signal(table: &Reader<'_>) -> Read<WrittenSignal> {
    match exactly_one(table, "a signal", &["semaphore", "event"])? {
        "semaphore" => table.req("semaphore").map(WrittenSignal::Semaphore),
        _ => {
            let event = table.req("event");
            let action = match table.or("set", true)? {
                true => EventAction::Set,
                false => EventAction::Clear,
            };
            Ok(WrittenSignal::Event(event?, action))
        }
    }
}

/// An array of places; each is where the array is, for messages.
fn places(table: &Reader<'_>, key: &'static str) -> Read<Vec<At<Location>>> {
    let found = table.req::<Vec<Location>>(key)?;
    let mark = found.mark;
    let at = |value| At {
        value,
        mark: mark.clone(),
    };
    Ok(found.value.into_iter().map(at).collect())
}

impl FromValue for Step {
    const EXPECTED: &'static str = "[count, step], the step in elements";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let Some(numbers) = Vec::<i32>::from_value(value)? else {
            return Ok(None);
        };
        match numbers[..] {
            [count, step] if count >= 0 => Ok(Some(Step {
                count: count.unsigned_abs(),
                step: step.into(),
            })),
            _ => Err(format!("write {}; the count is 0 or more", Self::EXPECTED)),
        }
    }
}

impl FromValue for f32 {
    const EXPECTED: &'static str = "a number";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let text = match value.raw {
            DeValue::Integer(number) => number.as_str().to_string(),
            DeValue::Float(number) => number.as_str().to_string(),
            _ => match value.text()? {
                Some(text) => text,
                None => return Ok(None),
            },
        };
        let parsed = text.replace('_', "").parse().map(Some);
        parsed.map_err(|_| format!("\"{text}\" is not a number"))
    }
}

/// Types with a name in a closed list.
macro_rules! named {
    ($($ty:ty, $all:expr, $name:expr, $expected:literal;)*) => {$(
        impl FromValue for $ty {
            const EXPECTED: &'static str = $expected;

            fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
                let Some(text) = value.text()? else {
                    return Ok(None);
                };
                match $all.into_iter().find(|known| $name(*known) == text) {
                    Some(known) => Ok(Some(known)),
                    None => Err(format!("\"{text}\" is not {}", $expected)),
                }
            }
        }
    )*};
}

named! {
    KbinOp, [KbinOp::Add, KbinOp::Min, KbinOp::Max, KbinOp::Fma], kbin_name,
        "\"add\", \"min\", \"max\" or \"fma\"";
    DType, DType::all(), DType::name,
        "a data type, such as \"fp32\", \"bfloat16\" or \"int8\"";
    Permutation, Permutation::all(), Permutation::name,
        "one of the twelve permutations, such as \"WYXZ\"";
}

fn kbin_name(op: KbinOp) -> &'static str {
    match op {
        KbinOp::Copy => "copy",
        KbinOp::Fma => "fma",
        KbinOp::Add => "add",
        KbinOp::Min => "min",
        KbinOp::Max => "max",
        KbinOp::Transpose => "transpose",
    }
}
