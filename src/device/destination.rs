//! Where the bytes of an Rx descriptor go.

use super::compute::Reason;
use super::core::Core;
use crate::arch::QueueId;
use crate::desc::{
    RxDesc, TRANSPOSE_FLUSH_OFFSET, TransposeError, TransposeTarget, check_transpose_place,
    check_transpose_size,
};
use crate::units::Addr;

/// Where the bytes of an Rx descriptor go.
#[derive(Clone, Copy)]
pub(super) enum Destination {
    /// To consecutive addresses.
    Linear(Addr),
    /// Rows of so many bytes, each a partition further.
    Rows {
        /// Where the first row goes.
        at: Addr,
        /// Bytes of a row.
        bytes: u32,
    },
    /// Nowhere, but not before all earlier writes: a transpose flush to the NeuronCore at this base.
    Flush(Addr),
}

impl Destination {
    /// Where an Rx descriptor leads, for the packet that queue `q` is writing. From V3 on transposes go to a State
    /// Buffer, at a packed address, and nothing else does.
    pub fn of(core: &Core, q: QueueId, rx: RxDesc) -> Result<Destination, Reason> {
        let at = rx.buf1_ptr;
        if !core.spec.caps.state_buffer_transpose {
            return Ok(Destination::Linear(at));
        }
        let queue = &core.queues[q];
        let packet = queue.packets.get(queue.written);
        let computation = packet.and_then(|packet| packet.computation.as_ref());
        let rows = computation.and_then(|computation| computation.rows());
        let map = &core.spec.map;
        let (target, rows) = match (TransposeTarget::from_addr(at), rows) {
            (None, None) => return Ok(Destination::Linear(at)),
            (Some(_), None) => {
                let flushed = |base: &&Addr| at.offset_from(**base) == Some(TRANSPOSE_FLUSH_OFFSET);
                return Ok(match map.tpb.iter().find(flushed) {
                    Some(base) => Destination::Flush(*base),
                    None => Destination::Linear(at),
                });
            }
            (None, Some(_)) => return Err(TransposeError::NotStateBuffer(at).into()),
            (Some(target), Some(rows)) => (target, rows),
        };
        let window = map.tpb.iter().find(|base| **base == target.window());
        let base = window
            .filter(|_| !target.has_reserved_bits())
            .ok_or(TransposeError::NotStateBuffer(at))?;
        let said = u64::from(target.rows() * target.element_bytes());
        let (len, wanted) = (u64::from(rx.len_ctrl.byte_len()), rows.count * rows.bytes);
        for bytes in [said * rows.count, len] {
            check_transpose_size("destination", bytes, wanted)?;
        }
        let buffer = &map.state_buffer;
        let (partition, offset) = (u64::from(target.partition()), u64::from(target.offset()));
        let at = Addr(base.0 + partition * buffer.stride + offset);
        check_transpose_place(buffer, at, (partition, offset), (rows.count, rows.bytes))?;
        Ok(Destination::Rows {
            at,
            bytes: rows.bytes as u32,
        })
    }
}
