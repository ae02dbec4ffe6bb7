//! What an engine counts.

/// What an engine has done since it was switched on. Bytes and counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Doorbell writes that arrived, both directions.
    pub doorbells: u64,
    /// Tx descriptors completed.
    pub tx_descriptors: u64,
    /// Rx descriptors completed.
    pub rx_descriptors: u64,
    /// Packets completed.
    pub packets: u64,
    /// Packets that a reset of their queue dropped; not those that an abort ended.
    pub packets_dropped: u64,
    /// Data bytes sampled at their source.
    pub bytes_read: u64,
    /// Data bytes visible at their destination.
    pub bytes_written: u64,
    /// Packets whose DMB suspended their queue.
    pub dmb: u64,
    /// Packets with a write barrier.
    pub write_barriers: u64,
    /// Rx descriptors with strong-ordered writes.
    pub strong_order_writes: u64,
    /// Embedded semaphore updates (V4).
    pub embedded_updates: u64,
    /// Bytes of Rx descriptors left over when their packet ended.
    pub rx_bytes_unused: u64,
    /// Packets whose DMB did nothing because the queue's DMB pause is masked (the reset state).
    pub dmb_masked: u64,
    /// Reserved barrier bits ignored: SOW where it does not exist, DMB on an Rx descriptor.
    pub reserved_bits: u64,
    /// Descriptors of doorbells that exceeded the ring and were ignored.
    pub doorbell_overflow: u64,
    /// Changes to queues that had descriptors outstanding.
    pub busy_changes: u64,
    /// Notifications visible in the notification queue (V4).
    pub notifications: u64,
    /// Notifications for which software left no room.
    pub notifications_lost: u64,
}

impl Counters {
    /// Adds another engine's counts.
    pub fn add(&mut self, other: &Counters) {
        let Counters {
            doorbells,
            tx_descriptors,
            rx_descriptors,
            packets,
            packets_dropped,
            bytes_read,
            bytes_written,
            dmb,
            write_barriers,
            strong_order_writes,
            embedded_updates,
            rx_bytes_unused,
            dmb_masked,
            reserved_bits,
            doorbell_overflow,
            busy_changes,
            notifications,
            notifications_lost,
        } = other;
        self.doorbells += doorbells;
        self.tx_descriptors += tx_descriptors;
        self.rx_descriptors += rx_descriptors;
        self.packets += packets;
        self.packets_dropped += packets_dropped;
        self.bytes_read += bytes_read;
        self.bytes_written += bytes_written;
        self.dmb += dmb;
        self.write_barriers += write_barriers;
        self.strong_order_writes += strong_order_writes;
        self.embedded_updates += embedded_updates;
        self.rx_bytes_unused += rx_bytes_unused;
        self.dmb_masked += dmb_masked;
        self.reserved_bits += reserved_bits;
        self.doorbell_overflow += doorbell_overflow;
        self.busy_changes += busy_changes;
        self.notifications += notifications;
        self.notifications_lost += notifications_lost;
    }
}
