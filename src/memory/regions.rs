//! Which region an address belongs to: a sorted table, searched once per access.

use super::cells;
use super::error::{AccessError, AccessReason};
use crate::arch::{AddressMap, EngineId, EventBlock};
use crate::units::{Addr, Bytes};
use std::fmt;

/// Bytes of an event-accelerator constant.
const CONSTANT_BYTES: u64 = 4;

/// What answers at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// An HBM stack.
    Hbm {
        /// Index in [`AddressMap::hbm`].
        stack: u8,
    },
    /// The State Buffer of a NeuronCore.
    StateBuffer {
        /// Index in [`AddressMap::tpb`].
        core: u8,
    },
    /// An event/semaphore block.
    EventBlock {
        /// Index as in [`AddressMap::event_block`].
        block: u32,
    },
    /// An event-accelerator constant.
    Constant,
    /// Host memory.
    Host,
    /// The register window of a UDMA engine.
    UdmaRegisters {
        /// The engine.
        engine: EngineId,
    },
    /// A block of registers that nothing models.
    InertRegisters {
        /// Index in [`AddressMap::inert`].
        blocks: u8,
        /// Which of them.
        n: u16,
    },
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Hbm { stack } => write!(f, "HBM stack {stack}"),
            Target::StateBuffer { core } => write!(f, "State Buffer {core}"),
            Target::EventBlock { block } => write!(f, "event block {block}"),
            Target::Constant => f.write_str("constant"),
            Target::Host => f.write_str("host"),
            Target::UdmaRegisters { engine } => write!(f, "{engine} register"),
            Target::InertRegisters { n, .. } => write!(f, "unmodelled register block {n}"),
        }
    }
}

/// Where an access falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// What answers.
    pub target: Target,
    /// Bytes from the start of the target's window to the first byte of the access.
    pub offset: u64,
    /// Row of the region table.
    pub(super) row: usize,
}

/// The populated piece of memory in which an access of somebody fell, from there on: saves the search if the next
/// one falls there too.
#[derive(Clone, Copy, Debug)]
pub struct Nearby {
    first: u64,
    bytes: u64,
    /// The place of the first byte.
    place: Place,
}

impl Default for Nearby {
    /// Nowhere.
    fn default() -> Nearby {
        Nearby {
            first: 0,
            bytes: 0,
            place: Place {
                target: Target::Constant,
                offset: 0,
                row: 0,
            },
        }
    }
}

/// Which bytes of a region's window are populated.
#[derive(Clone, Copy, Debug)]
enum Layout {
    /// The first `populated` bytes.
    Flat { populated: u64 },
    /// The first `populated` bytes of every `stride`.
    Strided { stride: u64, populated: u64 },
    /// The cell windows of an event/semaphore block.
    EventBlock,
}

impl Layout {
    /// End of the populated piece that holds byte `offset` of the window; `None` in a hole.
    fn piece_end(self, offset: u64) -> Option<u64> {
        match self {
            Layout::Flat { populated } => (offset < populated).then_some(populated),
            Layout::Strided { stride, populated } => {
                // A power of two.
                let within = offset & (stride - 1);
                (within < populated).then(|| offset - within + populated)
            }
            Layout::EventBlock => cells::window_end(offset),
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    base: Addr,
    /// Bytes of address space, holes included.
    window: u64,
    layout: Layout,
    pub(super) target: Target,
    pub(super) storage: Storage,
}

impl Region {
    /// Address of a byte of the window.
    pub(super) fn at(&self, offset: u64) -> Addr {
        Addr(self.base.0 + offset)
    }

    /// Bytes from the base to past the last populated byte, or a little more.
    pub(super) fn span(&self) -> u64 {
        match self.layout {
            Layout::Flat { populated } => populated,
            Layout::Strided { .. } | Layout::EventBlock => self.window,
        }
    }
}

/// What a region stores.
#[derive(Clone, Copy, Debug)]
pub(super) enum Storage {
    /// Bytes.
    Bytes,
    /// Events and semaphores.
    Cells {
        /// Index of the block.
        block: u32,
    },
    /// A word that never changes.
    Constant(u32),
    /// Words that nothing models.
    Inert,
    /// Registers that an engine owns.
    Registers,
}

impl Storage {
    /// Whether it is accessed in whole 4-byte cells only.
    fn has_cells(self) -> bool {
        matches!(
            self,
            Storage::Cells { .. } | Storage::Constant(_) | Storage::Inert
        )
    }
}

/// A region that reaches into the next one or past the end of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{window} of {target} memory at {base} does not fit: at most {room} are free there")]
pub(super) struct Overlap {
    target: Target,
    base: Addr,
    window: Bytes,
    room: Bytes,
}

/// Every region of a device, by address.
#[derive(Debug)]
pub(super) struct RegionTable {
    /// Base of each region, ascending: what the search walks over.
    bases: Vec<u64>,
    regions: Vec<Region>,
}

impl RegionTable {
    /// The regions of `map` and `host_bytes` of host memory. Fails if the host memory is larger
    /// than the space left for it.
    pub(super) fn new(map: &AddressMap, host_bytes: u64) -> Result<RegionTable, Overlap> {
        let mut regions = list(map, host_bytes);
        regions.sort_by_key(|region| region.base);
        for (n, region) in regions.iter().enumerate() {
            let next = regions.get(n + 1).map_or(Addr(u64::MAX), |next| next.base);
            let room = next.0 - region.base.0;
            if region.window > room {
                return Err(Overlap {
                    target: region.target,
                    base: region.base,
                    window: Bytes(region.window),
                    room: Bytes(room),
                });
            }
        }
        let bases = regions.iter().map(|region| region.base.0).collect();
        Ok(RegionTable { bases, regions })
    }

    /// The rows, ascending by address.
    pub(super) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The region that holds all of `at .. at + len`, and the place in it.
    ///
    /// An access of 0 bytes touches nothing, but must start where one byte could be accessed.
    pub(super) fn locate(&self, at: Addr, len: u64) -> Result<Place, AccessError> {
        self.search(at, len).map(|found| found.0)
    }

    /// As [`RegionTable::locate`], looking first where the last access was.
    #[inline]
    pub(super) fn locate_near(
        &self,
        at: Addr,
        len: u64,
        near: &mut Nearby,
    ) -> Result<Place, AccessError> {
        let into = at.0.wrapping_sub(near.first);
        if into < near.bytes && len <= near.bytes - into {
            let offset = near.place.offset + into;
            return Ok(Place {
                offset,
                ..near.place
            });
        }
        let (place, piece) = self.search(at, len)?;
        *near = piece;
        Ok(place)
    }

    /// Where an access falls, and the piece around it.
    fn search(&self, at: Addr, len: u64) -> Result<(Place, Nearby), AccessError> {
        let refuse = |reason| AccessError { at, len, reason };
        let above = self.bases.partition_point(|base| *base <= at.0);
        let row = above.checked_sub(1).ok_or(refuse(AccessReason::Unmapped))?;
        let region = &self.regions[row];
        let offset = at.0 - region.base.0;
        if offset >= region.window {
            return Err(refuse(AccessReason::Unmapped));
        }
        let end = (region.layout.piece_end(offset)).ok_or(refuse(AccessReason::Hole))?;
        if len > end - offset {
            return Err(refuse(AccessReason::CrossesBoundary));
        }
        let whole = |n: u64| n.is_multiple_of(EventBlock::CELL_BYTES);
        let cells = region.storage.has_cells();
        if cells && !(whole(offset) && whole(len)) {
            return Err(refuse(AccessReason::Misaligned));
        }
        let target = region.target;
        let place = Place {
            target,
            offset,
            row,
        };
        let piece = Nearby {
            first: at.0,
            // Each access to cells is looked at.
            bytes: if cells { 0 } else { end - offset },
            place,
        };
        Ok((place, piece))
    }
}

/// Every region of `map`, in no particular order.
fn list(map: &AddressMap, host_bytes: u64) -> Vec<Region> {
    let flat = |base, populated, target, storage| Region {
        base,
        window: populated,
        layout: Layout::Flat { populated },
        target,
        storage,
    };
    let mut regions = Vec::new();
    for (stack, hbm) in (0..).zip(map.hbm) {
        let target = Target::Hbm { stack };
        regions.push(Region {
            window: hbm.window,
            ..flat(hbm.base, hbm.populated, target, Storage::Bytes)
        });
    }
    for (core, tpb) in (0..).zip(map.tpb) {
        regions.push(Region {
            base: *tpb,
            window: map.state_buffer.window(),
            layout: Layout::Strided {
                stride: map.state_buffer.stride,
                populated: map.state_buffer.populated,
            },
            target: Target::StateBuffer { core },
            storage: Storage::Bytes,
        });
    }
    for block in 0..map.event_block_count() {
        regions.extend(map.event_block(block).map(|base| Region {
            base,
            window: EventBlock::BYTES,
            layout: Layout::EventBlock,
            target: Target::EventBlock { block },
            storage: Storage::Cells { block },
        }));
    }
    for (base, value) in [(map.event_clear, 0), (map.event_set, 1)] {
        let storage = Storage::Constant(value);
        regions.push(flat(base, CONSTANT_BYTES, Target::Constant, storage));
    }
    for engine in (0..map.engine_count()).map(EngineId) {
        let target = Target::UdmaRegisters { engine };
        regions.extend(
            (map.engine_base(engine))
                .map(|base| flat(base, map.engine_window, target, Storage::Registers)),
        );
    }
    for (blocks, inert) in (0..).zip(map.inert) {
        for n in 0..inert.count {
            let base = Addr(inert.base.0 + u64::from(n) * inert.stride);
            let target = Target::InertRegisters {
                blocks,
                n: n as u16,
            };
            regions.push(flat(base, inert.bytes, target, Storage::Inert));
        }
    }
    if host_bytes > 0 {
        regions.push(flat(map.host, host_bytes, Target::Host, Storage::Bytes));
    }
    regions
}
