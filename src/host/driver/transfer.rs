//! A copy or fill on its way: what is left to stage and what is in flight.

use super::BATCHES_IN_FLIGHT;
use super::poll::PollMode;
use crate::arch::Arch;
use crate::desc::{BarrierMode, MAX_DESC_BYTES};
use crate::units::Addr;
use std::collections::VecDeque;

/// One data descriptor's worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub src: Addr,
    pub dst: Addr,
    pub len: u32,
}

/// Descriptors that one marker stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub marker: usize,
    pub descriptors: u32,
}

/// Barriers of the last data descriptor of a batch and of its marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Barriers {
    pub data: BarrierMode,
    pub marker: BarrierMode,
}

/// A copy or fill that was started. It must be waited for: that also stages what is left of it.
#[derive(Debug)]
#[must_use = "a transfer is finished by DmaDriver::wait"]
pub struct Transfer {
    src: Addr,
    /// The source of a copy moves along, that of a fill stays.
    src_moves: bool,
    dst: Addr,
    left: u64,
    chunk: u64,
    mode: PollMode,
    in_flight: VecDeque<Batch>,
}

impl Transfer {
    pub(super) fn copy(src: Addr, dst: Addr, size: u64, mode: PollMode) -> Transfer {
        Transfer {
            src,
            src_moves: true,
            dst,
            left: size,
            chunk: MAX_DESC_BYTES.into(),
            mode,
            in_flight: VecDeque::new(),
        }
    }

    pub(super) fn memset(
        pattern: Addr,
        pattern_bytes: u64,
        dst: Addr,
        size: u64,
        mode: PollMode,
    ) -> Transfer {
        Transfer {
            src_moves: false,
            // A chunk is the pattern once, so that the next starts with the pattern again.
            chunk: pattern_bytes,
            ..Transfer::copy(pattern, dst, size, mode)
        }
    }

    pub(super) fn mode(&self) -> PollMode {
        self.mode
    }

    /// Whether nothing is left to stage.
    pub(super) fn staged_all(&self) -> bool {
        self.left == 0
    }

    /// Whether another batch may go: a synchronous transfer waits for each.
    pub(super) fn may_stage(&self) -> bool {
        let most = match self.mode {
            PollMode::Asynchronous | PollMode::ZeroCopy => BATCHES_IN_FLIGHT,
            PollMode::Synchronous | PollMode::SynchronousDevice => 1,
        };
        self.in_flight.len() < most
    }

    /// The barriers of the batch staged last (A: the public driver 2.26.5). Without zero copy the data behind which
    /// the marker stands has a write barrier. With it, only the end of a transfer into the device needs any: data
    /// for HBM and the marker for the host take different ways.
    pub(super) fn barriers(&self, arch: Arch) -> Barriers {
        let (data, marker) = match self.mode {
            PollMode::ZeroCopy if self.to_host(arch) || !self.staged_all() => {
                (BarrierMode::None, BarrierMode::None)
            }
            PollMode::ZeroCopy if arch.spec().caps.strong_order_writes => {
                (BarrierMode::None, BarrierMode::StrongOrder)
            }
            _ => (BarrierMode::WriteBarrier, BarrierMode::None),
        };
        Barriers { data, marker }
    }

    /// Whether the bytes go to host memory, which the driver tells by a bit of the address.
    fn to_host(&self, arch: Arch) -> bool {
        self.dst.0 & arch.spec().map.host.0 != 0
    }

    /// The next chunks to stage, at most `most`.
    pub(super) fn take_chunks(&mut self, most: u32) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        while self.left > 0 && chunks.len() < most as usize {
            let len = self.left.min(self.chunk);
            chunks.push(Chunk {
                src: self.src,
                dst: self.dst,
                len: len as u32,
            });
            self.left -= len;
            // Only the last chunk ends at the top of the address space, and nothing follows it.
            self.dst = Addr(self.dst.0.wrapping_add(len));
            if self.src_moves {
                self.src = Addr(self.src.0.wrapping_add(len));
            }
        }
        chunks
    }

    pub(super) fn push(&mut self, batch: Batch) {
        self.in_flight.push_back(batch);
    }

    pub(super) fn oldest(&self) -> Option<Batch> {
        self.in_flight.front().copied()
    }

    pub(super) fn retire_oldest(&mut self) {
        self.in_flight.pop_front();
    }
}
