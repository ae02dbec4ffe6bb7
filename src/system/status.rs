//! What a machine shows from outside: the state of its engines, errors, faults, counters, registers.

use super::System;
use crate::arch::EngineId;
use crate::arch::regs::{Direction, UdmaState};
use crate::device::{BusyChange, Counters, DeviceError, Injection};
use crate::memory::{InertWord, Target};
use crate::units::Addr;

/// What one engine shows at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineStatus {
    /// The engine.
    pub engine: EngineId,
    /// State of M2S and S2M.
    pub states: [UdmaState; 2],
    /// Error bits of M2S and S2M.
    pub causes: [u32; 2],
    /// The first occurrence of each error.
    pub errors: Vec<DeviceError>,
    /// The first changes to queues that had descriptors outstanding.
    pub busy_changes: Vec<BusyChange>,
    /// What it has done.
    pub counters: Counters,
}

/// A register that nothing models and somebody has touched: it holds what was written and does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmodelledRegister {
    /// Where it is.
    pub at: Addr,
    /// The block it belongs to, as `SDMA block 3 of the device + 0x1c`.
    pub name: String,
    /// What it holds.
    pub value: u32,
    /// Host reads.
    pub reads: u64,
    /// Writes of the host and of engines.
    pub writes: u64,
}

impl System {
    /// A record of the faults that struck, engine by engine.
    pub fn injections(&self) -> Vec<Injection> {
        let engines = self.engines.iter();
        engines
            .flat_map(|engine| engine.injections().0.iter().copied())
            .collect()
    }

    /// How many faults struck, recorded or not.
    pub fn faults_struck(&self) -> u64 {
        self.engines
            .iter()
            .map(|engine| engine.injections().1)
            .sum()
    }

    /// What an engine shows; `None` if the device has no such engine.
    pub fn engine_status(&self, id: EngineId) -> Option<EngineStatus> {
        let engine = self.engines.get(id.0 as usize)?;
        Some(EngineStatus {
            engine: id,
            states: Direction::ALL.map(|direction| engine.state(direction)),
            causes: Direction::ALL.map(|direction| engine.causes(direction)),
            errors: engine.errors().to_vec(),
            busy_changes: engine.busy_changes().to_vec(),
            counters: *engine.counters(),
        })
    }

    /// The registers that nothing models and somebody has touched: those of the engines' windows in engine order, then
    /// the others by address.
    pub fn unmodelled_registers(&self) -> Vec<UnmodelledRegister> {
        let of = |at, name, word: InertWord| UnmodelledRegister {
            at,
            name,
            value: word.value,
            reads: word.reads,
            writes: word.writes,
        };
        let engines = (0..).map(EngineId).zip(&self.engines);
        let windows = engines.flat_map(|(id, engine)| {
            let base = self.spec.map.engine_base(id).unwrap_or_default();
            (engine.unmodelled()).map(move |(offset, word)| {
                of(Addr(base.0 + offset), format!("{id} + {offset:#x}"), word)
            })
        });
        let others = self.memory.inert_words().map(|(at, target, word)| {
            let Target::InertRegisters { blocks, n } = target else {
                return of(at, String::new(), word);
            };
            let block = &self.spec.map.inert[usize::from(blocks)];
            let offset = at.0 - block.base.0 - u64::from(n) * block.stride;
            of(at, format!("{} {n} + {offset:#x}", block.name), word)
        });
        windows.chain(others).collect()
    }

    /// The engines that anybody has written a register of, in engine order.
    pub fn engines_in_use(&self) -> Vec<EngineId> {
        let mut engines = self.touched.clone();
        engines.sort();
        engines
    }

    /// What all engines together have done.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for id in &self.touched {
            sum.add(self.engines[id.0 as usize].counters());
        }
        sum
    }
}
