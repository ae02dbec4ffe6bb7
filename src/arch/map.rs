//! Address maps per generation (`docs/hardware.md`, "Address map").

use super::regs;
use crate::units::Addr;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of one UDMA unit's register window (A).
pub const UDMA_UNIT_BYTES: u64 = 0x40000;

/// One HBM stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HbmStack {
    /// First byte.
    pub base: Addr,
    /// Bytes that answer; an access above them is an AXI error.
    pub populated: u64,
    /// Bytes of address space reserved for the stack.
    pub window: u64,
}

/// The State Buffer inside a NeuronCore window: partitions at a fixed stride, each populated only
/// at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateBuffer {
    /// Partitions.
    pub partitions: u32,
    /// Bytes from one partition to the next.
    pub stride: u64,
    /// Bytes of each partition that answer.
    pub populated: u64,
}

impl StateBuffer {
    /// Bytes of address space the buffer covers, holes included.
    pub const fn window(&self) -> u64 {
        self.partitions as u64 * self.stride
    }
}

/// An event/semaphore block: 256 events, then 256 semaphores seen through four windows of 4-byte
/// cells (A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventBlock;

impl EventBlock {
    /// Events, and semaphores, in a block.
    pub const CELLS: u32 = 256;
    /// Bytes of a cell.
    pub const CELL_BYTES: u64 = 4;
    /// Offset of the event cells.
    pub const EVENTS: u64 = 0x0000;
    /// Offset of the semaphore read window.
    pub const SEM_READ: u64 = 0x1000;
    /// Offset of the semaphore set window.
    pub const SEM_SET: u64 = 0x1400;
    /// Offset of the semaphore increment window: adds the value written.
    pub const SEM_INC: u64 = 0x1800;
    /// Offset of the semaphore decrement window: subtracts the value written.
    pub const SEM_DEC: u64 = 0x1c00;
    /// Bytes of the block.
    pub const BYTES: u64 = 0x2000;
    /// Last index by which an embedded semaphore update names a block.
    pub const LAST_CSR_INDEX: u8 = 23;
}

/// Engines whose register windows lie in groups of equal spacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineGroup {
    /// Register window of the group's first engine.
    pub base: Addr,
    /// Bytes from one engine's window to the next.
    pub stride: u64,
    /// Engines in the group.
    pub count: u32,
}

/// Blocks of registers that the public driver touches and the model knows nothing about but their place: they
/// hold what is written (A: the place; C: that they do nothing, and a length that the driver does not give).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InertBlocks {
    /// What they are.
    pub name: &'static str,
    /// The first block.
    pub base: Addr,
    /// Bytes from one block to the next.
    pub stride: u64,
    /// Blocks.
    pub count: u32,
    /// Bytes of a block.
    pub bytes: u64,
}

/// Where things are in one generation's address space.
#[derive(Debug)]
pub struct AddressMap {
    /// HBM stacks.
    pub hbm: &'static [HbmStack],
    /// NeuronCore (TPB) windows; the State Buffer starts at offset 0 of each.
    pub tpb: &'static [Addr],
    /// Shape of the State Buffer in each NeuronCore window.
    pub state_buffer: StateBuffer,
    /// Offset of the event/semaphore block in a NeuronCore window.
    pub event_block_offset: u64,
    /// Constant whose read yields 0: source of an event clear.
    pub event_clear: Addr,
    /// Constant whose read yields 1: source of an event set and of a semaphore increment.
    pub event_set: Addr,
    /// TOP_SP windows; each starts with an event/semaphore block.
    pub top_sp: &'static [Addr],
    /// UDMA engines of the NeuronCores, in engine order.
    pub core_engines: &'static [EngineGroup],
    /// UDMA engines that belong to no NeuronCore: d2h, h2d, then the second pair where there is one.
    pub host_engines: &'static [Addr],
    /// Bytes of an engine's register window: the unit, and what lies behind it.
    pub engine_window: u64,
    /// Registers that are not modelled, outside the engines' windows.
    pub inert: &'static [InertBlocks],
    /// Host memory as the device sees it over PCIe.
    pub host: Addr,
}

/// Index of a UDMA engine: the NeuronCores' engines first (core × 16 + n), then the host engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EngineId(pub u32);

/// Number of a queue of an engine: of its Tx and of its Rx ring.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct QueueId(pub u8);

impl QueueId {
    /// The first `count` queues, at most 256.
    pub fn first(count: u32) -> impl Iterator<Item = QueueId> {
        (0..=u8::MAX).take(count as usize).map(QueueId)
    }

    /// The place of what it has in a list of all queues.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Direction of a host engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEngine {
    /// Device to host.
    D2h,
    /// Host to device.
    H2d,
}

impl fmt::Display for EngineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

impl AddressMap {
    /// Engines that belong to NeuronCores.
    pub fn core_engine_count(&self) -> u32 {
        self.core_engines.iter().map(|group| group.count).sum()
    }

    /// All engines.
    pub fn engine_count(&self) -> u32 {
        self.core_engine_count() + self.host_engines.len() as u32
    }

    /// Base of an engine's register window; `None` if the device has no such engine.
    pub fn engine_base(&self, engine: EngineId) -> Option<Addr> {
        let mut index = engine.0;
        for group in self.core_engines {
            if index < group.count {
                return Some(Addr(group.base.0 + u64::from(index) * group.stride));
            }
            index -= group.count;
        }
        self.host_engines.get(index as usize).copied()
    }

    /// The engine whose register window holds an address, and the offset there; `None` if none does.
    pub fn engine_at(&self, at: Addr) -> Option<(EngineId, u64)> {
        let mut first = 0;
        for group in self.core_engines {
            let offset = at.0.checked_sub(group.base.0);
            if let Some(offset) = offset.filter(|o| o / group.stride < u64::from(group.count)) {
                let (n, within) = (offset / group.stride, offset % group.stride);
                return (within < self.engine_window).then(|| (EngineId(first + n as u32), within));
            }
            first += group.count;
        }
        self.host_engines.iter().zip(first..).find_map(|(base, n)| {
            let within = at.offset_from(*base)?;
            (within < self.engine_window).then_some((EngineId(n), within))
        })
    }

    /// Whether an address lies in an engine's window, an event/semaphore block or a block of registers that nothing
    /// models.
    pub fn has_register(&self, at: Addr) -> bool {
        let inert = self.inert.iter().any(|blocks| {
            let offset = at.offset_from(blocks.base);
            offset.is_some_and(|offset| {
                offset / blocks.stride < blocks.count.into()
                    && offset % blocks.stride < blocks.bytes
            })
        });
        let in_block = |base: Addr| at.offset_from(base).is_some_and(|o| o < EventBlock::BYTES);
        let cells = (0..self.event_block_count()).filter_map(|n| self.event_block(n));
        inert || self.engine_at(at).is_some() || cells.into_iter().any(in_block)
    }

    /// The host engine of pair `pair` for one direction; `None` if the device has no such pair.
    pub fn host_engine(&self, direction: HostEngine, pair: u32) -> Option<EngineId> {
        let second = u32::from(direction == HostEngine::H2d);
        let index = pair.checked_mul(2)? + second;
        (index < self.host_engines.len() as u32).then(|| EngineId(self.core_engine_count() + index))
    }

    /// Base of the event/semaphore block with the given index: the NeuronCores' blocks first, then
    /// the TOP_SPs'.
    pub fn event_block(&self, index: u32) -> Option<Addr> {
        let index = index as usize;
        match self.tpb.get(index) {
            Some(tpb) => Some(Addr(tpb.0 + self.event_block_offset)),
            None => self.top_sp.get(index - self.tpb.len()).copied(),
        }
    }

    /// Index of the block that an embedded semaphore update names: 0..=7 the NeuronCores, 8..=15 the
    /// first eight TOP_SPs of the first die, 16..=23 those of the second.
    pub fn embedded_semaphore_block(&self, csr_index: u8) -> Option<u32> {
        let (cores, index) = (self.tpb.len() as u32, u32::from(csr_index));
        let a_die = self.top_sp.len() as u32 / 2;
        let block = match csr_index {
            0..=7 => index,
            8..=15 => cores + index - 8,
            16..=EventBlock::LAST_CSR_INDEX => cores + a_die + index - 16,
            _ => return None,
        };
        (block < self.event_block_count()).then_some(block)
    }

    /// The index by which an embedded semaphore update names a block, the inverse of
    /// [`AddressMap::embedded_semaphore_block`]; `None` for the TOP_SPs beyond the eighth of a die.
    pub fn embedded_semaphore_csr(&self, block: u32) -> Option<u8> {
        (0..=EventBlock::LAST_CSR_INDEX)
            .find(|csr| self.embedded_semaphore_block(*csr) == Some(block))
    }

    /// Event/semaphore blocks on the device.
    pub fn event_block_count(&self) -> u32 {
        (self.tpb.len() + self.top_sp.len()) as u32
    }

    /// Cell of an event.
    pub fn event(&self, block: u32, event: u32) -> Option<Addr> {
        self.cell(block, EventBlock::EVENTS, event)
    }

    /// Cell of a semaphore in one of the four windows ([`EventBlock::SEM_READ`] and its siblings).
    pub fn semaphore(&self, block: u32, window: u64, semaphore: u32) -> Option<Addr> {
        self.cell(block, window, semaphore)
    }

    fn cell(&self, block: u32, window: u64, index: u32) -> Option<Addr> {
        if index >= EventBlock::CELLS {
            return None;
        }
        let base = self.event_block(block)?;
        Some(Addr(
            base.0 + window + u64::from(index) * EventBlock::CELL_BYTES,
        ))
    }
}

const GIB: u64 = 1 << 30;
const KIB: u64 = 1 << 10;

const fn hbm(base: u64, populated_gib: u64, window_gib: u64) -> HbmStack {
    HbmStack {
        base: Addr(base),
        populated: populated_gib * GIB,
        window: window_gib * GIB,
    }
}

const fn inert(name: &'static str, base: u64, stride: u64, count: u32, bytes: u64) -> InertBlocks {
    InertBlocks {
        name,
        base: Addr(base),
        stride,
        count,
        bytes,
    }
}

const fn group(base: u64, stride: u64, count: u32) -> EngineGroup {
    EngineGroup {
        base: Addr(base),
        stride,
        count,
    }
}

pub(super) const SUNDA: AddressMap = AddressMap {
    hbm: &[hbm(0x0, 16, 64), hbm(0x10_0000_0000, 16, 64)],
    tpb: &[Addr(0xfff_c000_0000), Addr(0xfff_c400_0000)],
    state_buffer: StateBuffer {
        partitions: 128,
        stride: 256 * KIB,
        populated: 192 * KIB,
    },
    event_block_offset: 0x270_0000,
    event_clear: Addr(0x20_0000_0000),
    event_set: Addr(0x20_0000_0004),
    top_sp: &[
        Addr(0xfff_d000_0000),
        Addr(0xfff_d040_0000),
        Addr(0xfff_d080_0000),
        Addr(0xfff_d0c0_0000),
        Addr(0xfff_d100_0000),
        Addr(0xfff_d140_0000),
    ],
    core_engines: &[
        group(0xfff_f000_0000, 0x4_0000, 16),
        group(0xfff_f070_0000, 0x4_0000, 16),
    ],
    host_engines: &[Addr(0xfff_f060_0000), Addr(0xfff_f0d0_0000)],
    engine_window: UDMA_UNIT_BYTES,
    inert: &[
        inert(SDMA, 0xfff_f040_0000, 0x7000, 16, 0x7000),
        inert(SDMA, 0xfff_f0b0_0000, 0x7000, 16, 0x7000),
        inert(SDMA, 0xfff_f064_0000, 0x7000, 1, 0x7000),
        inert(SDMA, 0xfff_f0d4_0000, 0x7000, 1, 0x7000),
        inert(CORE_NOTIFICATIONS, 0xfff_f053_5000, 0x70_0000, 2, 0x1000),
        inert(PE_COUNTERS, 0xfff_f05b_1000, 0x70_0000, 2, 0x1000),
        inert(TOP_SP_NOTIFICATIONS, 0xfff_f0e0_4000, 0x4_0000, 6, 0x1000),
        inert(MISC_RAM, 0xfff_f0fa_0000, 0x4000, 1, 0x4000),
    ],
    host: Addr(0x1000_0000_0000),
};

const SDMA: &str = "SDMA block";
const FIS: &str = "user FIS interrupts";
const CORE_NOTIFICATIONS: &str = "NeuronCore notifications";
const TOP_SP_NOTIFICATIONS: &str = "TOP_SP notifications";
const PE_COUNTERS: &str = "PE counters";
const MISC_RAM: &str = "MISC RAM";

/// Added to an address of the first die to reach its twin on the second (V3, V4).
const SECOND_DIE: u64 = 0x8000_0000_0000;

pub(super) const CAYMAN: AddressMap = AddressMap {
    hbm: &[
        hbm(0x0, 24, 64),
        hbm(0x40_0000_0000, 24, 64),
        hbm(SECOND_DIE, 24, 64),
        hbm(SECOND_DIE + 0x40_0000_0000, 24, 64),
    ],
    tpb: &[
        Addr(0x20_0000_0000),
        Addr(0x30_0000_0000),
        Addr(0x60_0000_0000),
        Addr(0x70_0000_0000),
        Addr(SECOND_DIE + 0x20_0000_0000),
        Addr(SECOND_DIE + 0x30_0000_0000),
        Addr(SECOND_DIE + 0x60_0000_0000),
        Addr(SECOND_DIE + 0x70_0000_0000),
    ],
    state_buffer: StateBuffer {
        partitions: 128,
        stride: 256 * KIB,
        populated: 224 * KIB,
    },
    event_block_offset: 0x8_0270_0000,
    event_clear: Addr(0x90_0000_0000),
    event_set: Addr(0x90_0000_0004),
    top_sp: &{
        let mut blocks = [Addr(0); 20];
        let mut n = 0;
        while n < 10 {
            blocks[n] = Addr(0x82_8000_0000 + n as u64 * 0x4000_0000);
            blocks[n + 10] = Addr(SECOND_DIE + blocks[n].0);
            n += 1;
        }
        blocks
    },
    core_engines: &[
        group(0x10_0200_0000, 0x10_0000, 32),
        group(0x50_0400_0000, 0x10_0000, 32),
        group(SECOND_DIE + 0x10_0200_0000, 0x10_0000, 32),
        group(SECOND_DIE + 0x50_0400_0000, 0x10_0000, 32),
    ],
    host_engines: &[
        Addr(0x80_0680_0000),
        Addr(0x80_0690_0000),
        Addr(SECOND_DIE + 0x80_0680_0000),
        Addr(SECOND_DIE + 0x80_0690_0000),
    ],
    engine_window: regs::NOTIFIC + regs::NOTIFIC_BYTES,
    inert: &{
        const DIE: [InertBlocks; 8] = [
            inert(FIS, 0x10_0c00_0000, 0x2_0000, 32, 0x2_0000),
            inert(FIS, 0x50_0c40_0000, 0x2_0000, 32, 0x2_0000),
            inert(CORE_NOTIFICATIONS, 0x80_0600_1000, 0x18_0000, 2, 0x1000),
            inert(CORE_NOTIFICATIONS, 0x80_0640_1000, 0x18_0000, 2, 0x1000),
            inert(PE_COUNTERS, 0x80_0614_1000, 0x18_0000, 2, 0x1000),
            inert(PE_COUNTERS, 0x80_0654_1000, 0x18_0000, 2, 0x1000),
            inert(TOP_SP_NOTIFICATIONS, 0x80_06a0_0000, 0x4_0000, 10, 0x1000),
            inert(MISC_RAM, 0x80_06c8_4000, 0x4000, 1, 0x4000),
        ];
        let mut blocks = [DIE[0]; 2 * DIE.len()];
        let mut n = 0;
        while n < DIE.len() {
            blocks[n] = DIE[n];
            blocks[n + DIE.len()] = InertBlocks {
                base: Addr(SECOND_DIE + DIE[n].base.0),
                ..DIE[n]
            };
            n += 1;
        }
        blocks
    },
    host: Addr(0x4000_0000_0000),
};

/// Like Cayman but for the HBM stacks' size (A: the public driver, as the rest) and the event-set constant (B).
pub(super) const MARIANA: AddressMap = AddressMap {
    hbm: &[
        hbm(0x0, 36, 64),
        hbm(0x40_0000_0000, 36, 64),
        hbm(SECOND_DIE, 36, 64),
        hbm(SECOND_DIE + 0x40_0000_0000, 36, 64),
    ],
    event_set: Addr(0x94_0000_0000),
    ..CAYMAN
};
