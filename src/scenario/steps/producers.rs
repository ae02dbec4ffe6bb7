//! Sets of rings that the runtime's producers make; such rings are for no tile in particular.

use super::packets::Move;
use super::step::{Step, names};
use crate::document::{Keys, Read, Table, Tables, keys};
use crate::host::{
    Refill, Signal, TableLoad, TableRing, VringSet, act_tbl_rings, data_refill_rings,
    dynamic_config_rings, seed_set_rings,
};
use crate::scenario::given::{Place, Told};
use crate::scenario::host_side::{HostError, HostSide};
use crate::scenario::scope::Context;
use crate::scenario::stage::Stage;

const TILE: u64 = 0;

names! {
    ActTblRings => "act_tbl_rings";
    DynamicConfigRings => "dynamic_config_rings";
    DataRefillRings => "data_refill_rings";
    SeedSetRings => "seed_set_rings";
}

keys! {
    /// Activation tables.
    pub(super) struct ActTblRings {
        dynamic: bool = false,
        rings: Tables<Loads>,
    }

    /// Configurations loaded at run time.
    pub(super) struct DynamicConfigRings {
        rings: Tables<Loads>,
    }

    /// Refills, spread over rings.
    pub(super) struct DataRefillRings {
        rings: u32,
        refills: Tables<OneRefill>,
    }

    /// Seeds of stochastic rounding, a ring each.
    pub(super) struct SeedSetRings {
        seeds: Vec<u32>,
        scratch: Place,
    }

    struct LoadList {
        loads: Tables<Move>,
    }
}

/// Tables of one ring and who is told behind them.
#[derive(Debug)]
pub(super) struct Loads {
    loads: Vec<Move>,
    then: Option<Signal>,
}

impl Keys<Context<'_>> for Loads {
    fn read(table: &Table<'_>, context: Context<'_>) -> Read<Self> {
        let loads = LoadList::read(table, context);
        let then = match table.has("semaphore") || table.has("event") {
            true => Told::read(table, context).map(|told| Some(told.0)),
            false => Ok(None),
        };
        Ok(Loads {
            loads: loads?.loads.0,
            then: then?,
        })
    }

    fn names(known: &mut Vec<&'static str>) {
        <LoadList as Keys<Context<'_>>>::names(known);
        Told::names(known);
    }
}

/// A copy and who is told behind it.
#[derive(Debug)]
pub(super) struct OneRefill {
    copy: Move,
    then: Signal,
}

impl Keys<Context<'_>> for OneRefill {
    fn read(table: &Table<'_>, context: Context<'_>) -> Read<Self> {
        let (copy, then) = (Move::read(table, context), Told::read(table, context));
        Ok(OneRefill {
            copy: copy?,
            then: then?.0,
        })
    }

    fn names(known: &mut Vec<&'static str>) {
        <Move as Keys<Context<'_>>>::names(known);
        Told::names(known);
    }
}

fn table_rings(rings: &Tables<Loads>) -> Vec<TableRing> {
    let load = |copy: &Move| TableLoad {
        src: copy.from.at,
        dst: copy.to.at,
        bytes: copy.from.bytes,
    };
    let ring = |ring: &Loads| TableRing {
        loads: ring.loads.iter().map(load).collect(),
        then: ring.then,
    };
    rings.0.iter().map(ring).collect()
}

/// How a set of vrings is shown.
fn shown(set: &str) -> String {
    format!("vrings {set}_0, …")
}

fn add(host: &mut HostSide, rings: VringSet) -> Result<(), HostError> {
    for vring in rings.vrings() {
        host.add_vring(vring.clone())?;
    }
    Ok(())
}

impl Step for ActTblRings {
    fn detail(&self) -> String {
        shown(match self.dynamic {
            false => "act_tbl",
            true => "dynamic_act_tbl",
        })
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let rings = table_rings(&self.rings);
        let made = act_tbl_rings(host.arch(), &rings, self.dynamic, TILE)?;
        add(host, made)
    }
}

impl Step for DynamicConfigRings {
    fn detail(&self) -> String {
        shown("dve_config")
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let made = dynamic_config_rings(host.arch(), &table_rings(&self.rings), TILE)?;
        add(host, made)
    }
}

impl Step for DataRefillRings {
    fn detail(&self) -> String {
        shown("data_refill")
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let refill = |OneRefill { copy, then }: &OneRefill| Refill {
            src: copy.from.at,
            dst: copy.to.at,
            bytes: copy.from.bytes,
            then: *then,
        };
        let refills: Vec<Refill> = self.refills.0.iter().map(refill).collect();
        let made = data_refill_rings(host.arch(), self.rings as usize, &refills, TILE)?;
        add(host, made)
    }
}

impl Step for SeedSetRings {
    fn detail(&self) -> String {
        shown("set_seed")
    }

    fn perform(&self, host: &mut HostSide, _: &mut dyn Stage) -> Result<(), HostError> {
        let made = seed_set_rings(host.arch(), &self.seeds, self.scratch.at, TILE)?;
        add(host, made)
    }
}
