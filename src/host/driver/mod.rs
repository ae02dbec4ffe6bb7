//! The ring-cycle driver of one queue (`docs/hardware.md`, "Ring cycle"): it stages copies into the
//! queue's rings behind a moving pair of indices, rings the doorbells, polls a marker, and gives the
//! slots back.
//!
//! ```no_run
//! use udma_sim::arch::{Arch, EngineId};
//! use udma_sim::host::{DmaDriver, DriverMemory, PollMode, TimedBus};
//! use udma_sim::units::Addr;
//!
//! # fn copy(bus: &mut dyn TimedBus) -> Result<(), Box<dyn std::error::Error>> {
//! let memory = DriverMemory {
//!     tx_ring: Addr(0x10_0000),
//!     rx_ring: Addr(0x20_0000),
//!     completion: Addr(0x4000_0000_0000),
//!     ring_size: 8192,
//! };
//! let mut driver = DmaDriver::init(bus, Arch::V3, EngineId(0), 0, memory)?;
//! driver.copy(bus, Addr(0x100_0000), Addr(0x200_0000), 1 << 20, PollMode::SynchronousDevice)?;
//! # Ok(())
//! # }
//! ```

mod cursor;
mod poll;
mod transfer;

pub use cursor::{CursorError, GUARD_DESCS, Reservation, RingCursor};
pub use poll::{PollMode, PollPlan};
pub use transfer::Transfer;

use super::bus::{Bus, BusError};
use super::marker::CompletionMarker;
use super::pring::{Pring, PringError};
use super::queue::{QueueError, QueueOptions, QueuePair, QueueSetup};
use crate::arch::regs::Direction;
use crate::arch::{Arch, EngineId, QueueId};
use crate::desc::{
    BarrierMode, BuildError, CopyFlags, DESC_BYTES, Descriptor, MAX_DESC_BYTES, build_copy,
};
use crate::sim::Duration;
use crate::units::Addr;
use transfer::{Barriers, Batch, Chunk};

/// Most data descriptors of a batch (A: the public driver ends a batch behind the descriptor with the number
/// 4096 / 2 - 16 - 1, counted from 0).
pub const MAX_BATCH_DESCS: u32 = 2032;

/// Descriptors of the driver's own rings (A: it asks for 4096, which its rounding up doubles).
pub const HOST_QUEUE_DESCS: u32 = 8192;

/// Batches that can be in flight at once: one is staged while the other runs.
pub const BATCHES_IN_FLIGHT: usize = 2;

/// Bytes from one completion buffer to the next.
const MARKER_STRIDE: u64 = 8;

/// Bytes of the marker.
const MARKER_BYTES: u32 = 4;

/// A bus on which time passes.
pub trait TimedBus: Bus {
    /// Lets time pass: the device runs on meanwhile.
    fn sleep(&mut self, time: Duration);
}

/// Where a driver has its rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverMemory {
    /// The Tx ring, on a multiple of 256 bytes.
    pub tx_ring: Addr,
    /// The Rx ring, on a multiple of 256 bytes.
    pub rx_ring: Addr,
    /// 16 bytes that host and device see, for two completion buffers.
    pub completion: Addr,
    /// Descriptors of either ring: a power of two from 64 on.
    pub ring_size: u32,
}

/// Why a driver did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// A ring that the indices do not work on.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// A ring in no good place.
    #[error(transparent)]
    Pring(#[from] PringError),
    /// The queue refused.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The bus refused.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A descriptor could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A range that leaves the address space.
    #[error("{size} bytes at {at} run past the end of the address space")]
    PastEnd {
        /// Start of the range.
        at: Addr,
        /// Bytes of the range.
        size: u64,
    },
    /// A memset from a pattern that no descriptor holds.
    #[error("a pattern of {0} bytes; a memset takes 1 to {MAX_DESC_BYTES}")]
    Pattern(u64),
    /// Two batches are in flight.
    #[error(
        "{engine} queue {queue}: {BATCHES_IN_FLIGHT} batches are in flight; wait for one of them first"
    )]
    Busy {
        /// Engine of the queue.
        engine: EngineId,
        /// The queue.
        queue: QueueId,
    },
    /// The marker did not arrive.
    #[error(
        "{engine} queue {queue}: a batch of {descriptors} descriptors timed out after {waited}; reset the queue"
    )]
    Timeout {
        /// Engine of the queue.
        engine: EngineId,
        /// The queue.
        queue: QueueId,
        /// Descriptors of the batch, the marker's included.
        descriptors: u32,
        /// How long the driver waited.
        waited: Duration,
    },
    /// A batch timed out earlier and the queue was not reset.
    #[error("{engine} queue {queue}: an earlier batch timed out; reset the queue first")]
    Wedged {
        /// Engine of the queue.
        engine: EngineId,
        /// The queue.
        queue: QueueId,
    },
}

/// The driver of one queue.
#[derive(Debug)]
pub struct DmaDriver {
    arch: Arch,
    queue: QueuePair,
    tx_cursor: RingCursor,
    rx_cursor: RingCursor,
    memory: DriverMemory,
    markers: [CompletionMarker; BATCHES_IN_FLIGHT],
    /// Which completion buffers a batch waits on.
    marker_taken: [bool; BATCHES_IN_FLIGHT],
    wedged: bool,
}

impl DmaDriver {
    /// Initialises a queue for ring-cycle copies: both rings, the ring-id check on, DMB working, no
    /// completion ring.
    ///
    /// # Errors
    /// [`DriverError`] for rings that no queue accepts or that are no power of two from 64 on, and
    /// for an engine or a queue that the device has not.
    pub fn init(
        bus: &mut dyn Bus,
        arch: Arch,
        engine: EngineId,
        queue: u32,
        memory: DriverMemory,
    ) -> Result<DmaDriver, DriverError> {
        let tx_cursor = RingCursor::new(memory.ring_size)?;
        let rx_cursor = RingCursor::new(memory.ring_size)?;
        let tx = Pring::new(Direction::M2s, memory.tx_ring, memory.ring_size)?;
        let rx = Pring::new(Direction::S2m, memory.rx_ring, memory.ring_size)?;
        let options = QueueOptions::default();
        let queue = QueuePair::init(
            bus,
            QueueSetup {
                arch,
                engine,
                queue,
                tx: &tx,
                rx: &rx,
                options,
            },
        )?;
        Ok(DmaDriver {
            arch,
            queue,
            tx_cursor,
            rx_cursor,
            memory,
            markers: Self::seed_markers(bus, memory.completion)?,
            marker_taken: [false; BATCHES_IN_FLIGHT],
            wedged: false,
        })
    }

    fn seed_markers(
        bus: &mut dyn Bus,
        completion: Addr,
    ) -> Result<[CompletionMarker; BATCHES_IN_FLIGHT], DriverError> {
        let size = MARKER_STRIDE * BATCHES_IN_FLIGHT as u64;
        check_range(completion, size)?;
        let second = Addr(completion.0 + MARKER_STRIDE);
        Ok([
            CompletionMarker::new(bus, completion)?,
            CompletionMarker::new(bus, second)?,
        ])
    }

    /// Initialises the queue again, as after a timeout: what was in flight is forgotten.
    ///
    /// # Errors
    /// [`DriverError`] if the bus refuses.
    pub fn reset(&mut self, bus: &mut dyn Bus) -> Result<(), DriverError> {
        let (engine, queue) = (self.queue.engine(), self.queue.queue());
        *self = DmaDriver::init(bus, self.arch, engine, queue.0.into(), self.memory)?;
        Ok(())
    }

    /// The queue.
    pub fn queue(&self) -> &QueuePair {
        &self.queue
    }

    /// The indices of one of the rings.
    pub fn cursor(&self, direction: Direction) -> &RingCursor {
        match direction {
            Direction::M2s => &self.tx_cursor,
            Direction::S2m => &self.rx_cursor,
        }
    }

    /// Most data descriptors of a batch on these rings: half the ring less the guard and the marker,
    /// and never more than [`MAX_BATCH_DESCS`].
    pub fn max_batch(&self) -> u32 {
        (self.memory.ring_size / 2 - GUARD_DESCS - 1).min(MAX_BATCH_DESCS)
    }

    /// Copies `size` bytes and waits for it, batch by batch. A size of 0 does nothing.
    ///
    /// # Errors
    /// [`DriverError`]; after a timeout the queue must be [`reset`](DmaDriver::reset).
    pub fn copy(
        &mut self,
        bus: &mut dyn TimedBus,
        src: Addr,
        dst: Addr,
        size: u64,
        mode: PollMode,
    ) -> Result<(), DriverError> {
        let transfer = self.start_copy(bus, src, dst, size, mode)?;
        self.wait(bus, transfer)
    }

    /// Starts a copy of `size` bytes; [`DmaDriver::wait`] finishes it. As many batches are staged as
    /// may be in flight: two if `mode` is asynchronous, so that one is staged while another runs,
    /// else one.
    ///
    /// # Errors
    /// [`DriverError::Busy`] if two batches of earlier transfers are in flight, and others; nothing has
    /// then been started.
    pub fn start_copy(
        &mut self,
        bus: &mut dyn TimedBus,
        src: Addr,
        dst: Addr,
        size: u64,
        mode: PollMode,
    ) -> Result<Transfer, DriverError> {
        check_range(src, size)?;
        check_range(dst, size)?;
        self.start(bus, Transfer::copy(src, dst, size, mode))
    }

    /// Fills `size` bytes with the `pattern_bytes` bytes at `pattern`, repeated, and waits for it: the
    /// source does not move. A size of 0 does nothing.
    ///
    /// # Errors
    /// As [`DmaDriver::copy`].
    pub fn memset(
        &mut self,
        bus: &mut dyn TimedBus,
        (pattern, pattern_bytes): (Addr, u64),
        dst: Addr,
        size: u64,
        mode: PollMode,
    ) -> Result<(), DriverError> {
        let transfer = self.start_memset(bus, (pattern, pattern_bytes), dst, size, mode)?;
        self.wait(bus, transfer)
    }

    /// Starts a memset; [`DmaDriver::wait`] finishes it.
    ///
    /// # Errors
    /// As [`DmaDriver::start_copy`].
    pub fn start_memset(
        &mut self,
        bus: &mut dyn TimedBus,
        (pattern, pattern_bytes): (Addr, u64),
        dst: Addr,
        size: u64,
        mode: PollMode,
    ) -> Result<Transfer, DriverError> {
        if !(1..=u64::from(MAX_DESC_BYTES)).contains(&pattern_bytes) {
            return Err(DriverError::Pattern(pattern_bytes));
        }
        check_range(pattern, pattern_bytes)?;
        check_range(dst, size)?;
        self.start(
            bus,
            Transfer::memset(pattern, pattern_bytes, dst, size, mode),
        )
    }

    fn start(
        &mut self,
        bus: &mut dyn TimedBus,
        mut transfer: Transfer,
    ) -> Result<Transfer, DriverError> {
        let (engine, queue) = (self.queue.engine(), self.queue.queue());
        if self.wedged {
            return Err(DriverError::Wedged { engine, queue });
        }
        if !transfer.staged_all() && self.free_marker().is_none() {
            return Err(DriverError::Busy { engine, queue });
        }
        self.stage_ahead(bus, &mut transfer)?;
        Ok(transfer)
    }

    /// Waits until everything of a transfer has arrived, staging what is left of it meanwhile.
    ///
    /// # Errors
    /// [`DriverError::Timeout`] if a marker does not arrive in time; the queue must then be
    /// [`reset`](DmaDriver::reset).
    pub fn wait(
        &mut self,
        bus: &mut dyn TimedBus,
        mut transfer: Transfer,
    ) -> Result<(), DriverError> {
        while let Some(batch) = transfer.oldest() {
            if let Err(error) = self.poll(bus, &batch, transfer.mode()) {
                self.wedged = true;
                return Err(error);
            }
            transfer.retire_oldest();
            self.marker_taken[batch.marker] = false;
            self.rx_cursor.ack(batch.descriptors)?;
            self.tx_cursor.ack(batch.descriptors)?;
            self.stage_ahead(bus, &mut transfer)?;
        }
        Ok(())
    }

    fn free_marker(&self) -> Option<usize> {
        self.marker_taken.iter().position(|taken| !taken)
    }

    /// Stages batches until the transfer is staged in full or as much is in flight as may be. If that
    /// fails midway the rings and the indices may disagree, so the queue must be reset.
    fn stage_ahead(
        &mut self,
        bus: &mut dyn TimedBus,
        transfer: &mut Transfer,
    ) -> Result<(), DriverError> {
        while !transfer.staged_all() && transfer.may_stage() {
            let Some(marker) = self.free_marker() else {
                return Ok(());
            };
            let chunks = transfer.take_chunks(self.max_batch());
            let last = transfer.barriers(self.arch);
            let staged = self
                .stage(bus, &chunks, marker, last)
                .and_then(|descriptors| {
                    self.queue.trigger(bus, descriptors, descriptors)?;
                    Ok(descriptors)
                });
            match staged {
                Ok(descriptors) => transfer.push(Batch {
                    marker,
                    descriptors,
                }),
                Err(error) => {
                    self.wedged = true;
                    return Err(error);
                }
            }
            self.marker_taken[marker] = true;
        }
        Ok(())
    }

    /// Writes a batch into the rings: the data, then the marker, with the barriers of the last of either. Returns
    /// how many descriptors that is.
    fn stage(
        &mut self,
        bus: &mut dyn TimedBus,
        chunks: &[Chunk],
        marker: usize,
        barriers: Barriers,
    ) -> Result<u32, DriverError> {
        let count = chunks.len() as u32 + 1;
        let tx_slots = self.tx_cursor.reserve(count)?;
        let rx_slots = self.rx_cursor.reserve(count)?;
        let (seed, word) = self.markers[marker].ends();
        let completion = Chunk {
            src: seed,
            dst: word,
            len: MARKER_BYTES,
        };
        let last_data = chunks.len().checked_sub(1);
        let (mut tx_ring, mut rx_ring) = (Vec::new(), Vec::new());
        for (index, chunk) in chunks.iter().chain([&completion]).enumerate() {
            let barrier = match index {
                _ if index == chunks.len() => barriers.marker,
                _ if last_data == Some(index) => barriers.data,
                _ => BarrierMode::None,
            };
            // Both rings are of one size and staged together: they are in the same phase.
            let phase = tx_slots.phase(index as u32);
            let flags = CopyFlags::default();
            let (tx, rx) = build_copy(
                self.arch, chunk.src, chunk.dst, chunk.len, phase, barrier, flags,
            )?;
            tx_ring.push(Descriptor::from(tx));
            rx_ring.push(Descriptor::from(rx));
        }
        write_slots(bus, self.memory.tx_ring, &tx_slots, &tx_ring)?;
        write_slots(bus, self.memory.rx_ring, &rx_slots, &rx_ring)?;
        Ok(count)
    }

    /// Sleeps and looks at the marker as the plan says.
    fn poll(
        &self,
        bus: &mut dyn TimedBus,
        batch: &Batch,
        mode: PollMode,
    ) -> Result<(), DriverError> {
        let plan = PollPlan::new(self.arch, batch.descriptors, mode);
        bus.sleep(plan.first_sleep);
        for _ in 0..=plan.polls {
            if self.markers[batch.marker].poll(bus)? {
                return Ok(());
            }
            bus.sleep(PollPlan::INTERVAL);
        }
        Err(DriverError::Timeout {
            engine: self.queue.engine(),
            queue: self.queue.queue(),
            descriptors: batch.descriptors,
            waited: plan.longest(),
        })
    }
}

/// Writes descriptors to reserved slots, in two pieces where they wrap.
fn write_slots(
    bus: &mut dyn Bus,
    base: Addr,
    slots: &Reservation,
    descs: &[Descriptor],
) -> Result<(), BusError> {
    let bytes: Vec<u8> = descs.iter().flat_map(|desc| desc.to_bytes()).collect();
    let before_wrap = slots.before_wrap() as usize * DESC_BYTES;
    let (first, rest) = bytes.split_at(before_wrap.min(bytes.len()));
    let at = base.0 + u64::from(slots.start()) * DESC_BYTES as u64;
    bus.write_mem(Addr(at), first)?;
    if !rest.is_empty() {
        bus.write_mem(base, rest)?;
    }
    Ok(())
}

fn check_range(at: Addr, size: u64) -> Result<(), DriverError> {
    if size > 0 && at.checked_add(size - 1).is_none() {
        return Err(DriverError::PastEnd { at, size });
    }
    Ok(())
}
