//! Copies that the runtime's pseudo instructions describe.

use super::step::{Step, names};
use crate::document::{Keys, Read, Table, keys};
use crate::host::{Pattern, PseudoCopy, Step as Stride};
use crate::scenario::given::{Place, Stretch};
use crate::scenario::host_side::{HostError, HostSide};
use crate::scenario::scope::Context;
use crate::scenario::stage::Stage;
use crate::scenario::words::Name;

names! {
    TranslatePseudoDma => "translate_pseudo_dma";
}

/// A pseudo copy: linear, strided or a gather.
#[derive(Debug)]
pub(super) struct TranslatePseudoDma {
    vring: Name,
    copy: PseudoCopy,
}

keys! {
    struct OfVring {
        vring: Name,
    }

    struct Linear {
        from: Stretch,
        to: Stretch,
    }

    struct Strided {
        from: Place,
        from_outer: Stride = ONCE,
        from_inner: Stride,
        to: Place,
        to_outer: Stride = ONCE,
        to_inner: Stride,
        element_bytes: u32,
    }

    struct Gather {
        rows ("table"): Place,
        row_bytes: u32,
        indices: Vec<u32>,
        to: Place,
    }
}

const ONCE: Stride = Stride { count: 1, step: 0 };

impl Keys<Context<'_>> for TranslatePseudoDma {
    fn read(table: &Table<'_>, context: Context<'_>) -> Read<Self> {
        let vring = OfVring::read(table, context);
        let keys = ["size", "element_bytes", "indices"];
        let copy = match table.exactly_one("a pseudo copy", &keys)? {
            "size" => Linear::read(table, context).map(linear),
            "element_bytes" => Strided::read(table, context).map(strided),
            _ => Gather::read(table, context).map(gather),
        };
        Ok(TranslatePseudoDma {
            vring: vring?.vring,
            copy: copy?,
        })
    }

    fn names(known: &mut Vec<&'static str>) {
        <OfVring as Keys<Context<'_>>>::names(known);
        <Linear as Keys<Context<'_>>>::names(known);
        <Strided as Keys<Context<'_>>>::names(known);
        <Gather as Keys<Context<'_>>>::names(known);
    }
}

fn linear(Linear { from, to }: Linear) -> PseudoCopy {
    PseudoCopy::Linear {
        src: from.at,
        dst: to.at,
        bytes: from.bytes,
    }
}

fn strided(keys: Strided) -> PseudoCopy {
    PseudoCopy::Strided {
        src: Pattern {
            base: keys.from.at,
            outer: keys.from_outer,
            inner: keys.from_inner,
        },
        dst: Pattern {
            base: keys.to.at,
            outer: keys.to_outer,
            inner: keys.to_inner,
        },
        element_bytes: keys.element_bytes,
    }
}

fn gather(keys: Gather) -> PseudoCopy {
    PseudoCopy::Gather {
        table: keys.rows.at,
        row_bytes: keys.row_bytes,
        indices: keys.indices,
        dst: keys.to.at,
    }
}

impl Step for TranslatePseudoDma {
    fn detail(&self) -> String {
        self.vring.to_string()
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let vring = host.author(&self.vring)?;
        vring.translate_pseudo_dma(std::slice::from_ref(&self.copy))?;
        Ok(())
    }
}
