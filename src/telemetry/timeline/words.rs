//! Descriptors in the words of a timeline.

use super::file::Arg;
use super::proto::Value;
use crate::arch::QueueId;
use crate::arch::regs::Direction;
use crate::desc::{Descriptor, RxDesc, TxDesc, TxMetaDesc};
use crate::units::Addr;

/// What a descriptor is, and its fields.
pub(super) fn in_words(direction: Direction, desc: Descriptor) -> (&'static str, Vec<Arg>) {
    let (tx, rx, meta) = (
        TxDesc::from(desc),
        RxDesc::from(desc),
        TxMetaDesc::from(desc),
    );
    let len_ctrl = desc.len_ctrl();
    let length = ("length", Value::Uint(len_ctrl.byte_len().into()));
    let op = || ("op", Value::Text(tx.op_text()));
    let (name, flags, fields) = match (direction, len_ctrl.meta()) {
        (Direction::M2s, true) => {
            let words = [meta.meta1, meta.meta2].map(|word| Value::Pointer(word.into()));
            let [meta1, meta2] = words;
            let fields = [("meta1", meta1), ("meta2", meta2), op()];
            ("meta descriptor", tx.flag_names(), fields)
        }
        (Direction::M2s, false) => {
            let address = ("address", Value::Pointer(tx.buf_ptr.0));
            ("source", tx.flag_names(), [address, length, op()])
        }
        (Direction::S2m, _) => {
            let address = ("address", Value::Pointer(rx.buf1_ptr.0));
            let buf2 = ("buf2_ptr_lo", Value::Pointer(rx.buf2_ptr_lo.into()));
            ("destination", rx.flag_names(), [address, length, buf2])
        }
    };
    let ring_id = len_ctrl.ring_id().into_bits();
    let mut args = vec![
        ("flags", Value::Text(flags.join(" "))),
        ("ring_id", Value::Uint(ring_id.into())),
    ];
    args.extend(fields);
    (name, args)
}

/// The arguments that say which descriptor a burst is of.
pub(super) fn descriptor(queue: QueueId, slot: u32) -> [(&'static str, Value); 2] {
    [
        ("queue", Value::Uint(queue.0.into())),
        ("slot", Value::Uint(slot.into())),
    ]
}

/// The arguments that say which bytes were accessed.
pub(super) fn bytes_at(at: Addr, len: u32) -> [(&'static str, Value); 2] {
    [
        ("address", Value::Pointer(at.0)),
        ("bytes", Value::Uint(len.into())),
    ]
}
