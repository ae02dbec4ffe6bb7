//! A device that is nothing but memory and registers, for the tests of this floor.

use super::bus::{Bus, BusError};
use crate::units::Addr;
use std::collections::BTreeMap;

/// Memory and registers that hold what was written; what was not reads 0.
#[derive(Default)]
pub(super) struct TestBus {
    memory: BTreeMap<u64, u8>,
    registers: BTreeMap<u64, u32>,
    memory_writes: usize,
    /// Register writes in order.
    pub(super) register_log: Vec<(Addr, u32)>,
}

impl TestBus {
    /// Memory from `at` on.
    pub(super) fn bytes(&self, at: Addr, len: usize) -> Vec<u8> {
        (0..len as u64)
            .map(|n| self.memory.get(&(at.0 + n)).copied().unwrap_or(0))
            .collect()
    }

    /// Memory writes so far.
    pub(super) fn writes(&self) -> usize {
        self.memory_writes
    }

    /// Gives a register a value, as reset would.
    pub(super) fn preset_reg(&mut self, at: Addr, value: u32) {
        self.registers.insert(at.0, value);
    }
}

impl Bus for TestBus {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        out.copy_from_slice(&self.bytes(at, out.len()));
        Ok(())
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        self.memory_writes += 1;
        self.memory.extend((at.0..).zip(bytes.iter().copied()));
        Ok(())
    }

    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        Ok(self.registers.get(&at.0).copied().unwrap_or(0))
    }

    fn write_reg(&mut self, at: Addr, value: u32) -> Result<(), BusError> {
        self.registers.insert(at.0, value);
        self.register_log.push((at, value));
        Ok(())
    }
}
