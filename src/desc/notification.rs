//! A notification: what a packet that asked for it leaves in the engine's notification queue (V4). Its
//! layout is modelled (C).

use crate::arch::QueueId;
use bitfield_struct::bitfield;

/// Bytes of a notification.
pub const NOTIFICATION_BYTES: usize = 16;

/// First word of a notification.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
struct Word0 {
    #[bits(24)]
    slot: u32,
    #[bits(4)]
    queue: u8,
    #[bits(3)]
    reserved_30_28: u8,
    phase: bool,
}

/// A packet has completed: its data is visible, and so was every earlier packet's of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Set in the first lap of the notification queue and in every second one after it: how software
    /// tells a new notification from one of the lap before.
    pub phase: bool,
    /// The packet's queue.
    pub queue: QueueId,
    /// Slot of its first descriptor in the Tx ring.
    pub slot: u32,
    /// Packets that the queue has completed with it, as its packet counter shows them.
    pub packets: u32,
    /// When it completed, in UDMA cycles.
    pub cycle: u64,
}

impl Notification {
    /// The bytes as they lie in the notification queue.
    pub const fn to_bytes(self) -> [u8; NOTIFICATION_BYTES] {
        let word0 = Word0::new()
            .with_slot(self.slot & Word0::SLOT_MASK)
            .with_queue(self.queue.0 & Word0::QUEUE_MASK)
            .with_phase(self.phase);
        let value =
            word0.into_bits() as u128 | (self.packets as u128) << 32 | (self.cycle as u128) << 64;
        value.to_le_bytes()
    }

    /// The notification that lies in the queue as `bytes`.
    pub const fn from_bytes(bytes: [u8; NOTIFICATION_BYTES]) -> Notification {
        let value = u128::from_le_bytes(bytes);
        let word0 = Word0::from_bits(value as u32);
        Notification {
            phase: word0.phase(),
            queue: QueueId(word0.queue()),
            slot: word0.slot(),
            packets: (value >> 32) as u32,
            cycle: (value >> 64) as u64,
        }
    }
}

impl Word0 {
    const SLOT_MASK: u32 = 0xff_ffff;
    const QUEUE_MASK: u8 = 0xf;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let notification = Notification {
            phase: true,
            queue: QueueId(9),
            slot: 0x12_3456,
            packets: 7,
            cycle: 0x1_0000_0002,
        };
        let bytes = notification.to_bytes();
        let expected = [0x56, 0x34, 0x12, 0x89, 7, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(bytes, expected);
        assert_eq!(Notification::from_bytes(bytes), notification);
    }
}
