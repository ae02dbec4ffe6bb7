//! The builder of the plain copy pair and its refusals (`docs/hardware.md`, "Descriptor").

use super::{LenCtrl, LengthError, MetaCtrl, RingId, RxDesc, TxDesc};
use crate::arch::Arch;
use crate::units::Addr;

/// How a copy is ordered against what its queue does later; the discriminant is the runtime's
/// number for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum BarrierMode {
    /// Not at all.
    #[default]
    None = 0,
    /// Later packets start when this one and all before it are complete: a bit of the Tx
    /// descriptor's `len_ctrl`.
    Dmb = 1,
    /// Later writes become visible after this packet's and all before: a bit of the Tx descriptor's
    /// `meta_ctrl`.
    WriteBarrier = 2,
    /// This write becomes visible after all earlier ones (SOW, V3 and later): a bit of the Rx
    /// descriptor's `len_ctrl`.
    StrongOrder = 3,
}

/// A number that is no barrier mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a barrier mode; the modes are 0 none, 1 DMB, 2 write barrier, 3 strong order")]
pub struct InvalidBarrierMode(pub u32);

impl BarrierMode {
    /// Every mode, in the order of their numbers.
    pub const ALL: [BarrierMode; 4] = [
        BarrierMode::None,
        BarrierMode::Dmb,
        BarrierMode::WriteBarrier,
        BarrierMode::StrongOrder,
    ];
}

impl TryFrom<u32> for BarrierMode {
    type Error = InvalidBarrierMode;

    fn try_from(mode: u32) -> Result<BarrierMode, InvalidBarrierMode> {
        BarrierMode::ALL
            .into_iter()
            .find(|known| *known as u32 == mode)
            .ok_or(InvalidBarrierMode(mode))
    }
}

/// What a copy may carry beside a barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyFlags {
    /// Notification mask in the Tx `meta_ctrl`: V4 only.
    pub notification_mask: bool,
}

/// Why a copy pair was not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The length does not fit a descriptor.
    #[error(transparent)]
    Length(#[from] LengthError),
    /// Strong order on a generation without it.
    #[error("udma strong ordering not supported in TRN1!")]
    StrongOrder,
    /// The notification mask on a generation without it.
    #[error("the notification mask needs v4; this device is {0}")]
    NotificationMask(Arch),
}

/// Refuses a barrier and a notification mask that `arch` has not.
pub(super) fn check_gates(
    arch: Arch,
    barrier: BarrierMode,
    notification_mask: bool,
) -> Result<(), BuildError> {
    let caps = arch.spec().caps;
    if barrier == BarrierMode::StrongOrder && !caps.strong_order_writes {
        return Err(BuildError::StrongOrder);
    }
    if notification_mask && !caps.notification_mask {
        return Err(BuildError::NotificationMask(arch));
    }
    Ok(())
}

/// Builds the pair that copies `len` bytes, 1..=65536, from `src` to `dst`: a packet of one Tx
/// descriptor (FIRST and LAST) and one Rx descriptor.
///
/// # Errors
/// [`BuildError`] for a length of 0 or above 65536, and for what `arch` cannot do.
pub fn build_copy(
    arch: Arch,
    src: Addr,
    dst: Addr,
    len: u32,
    ring: RingId,
    barrier: BarrierMode,
    flags: CopyFlags,
) -> Result<(TxDesc, RxDesc), BuildError> {
    check_gates(arch, barrier, flags.notification_mask)?;
    let len_ctrl = LenCtrl::new().with_ring_id(ring).with_byte_len(len)?;
    let tx = TxDesc {
        len_ctrl: len_ctrl
            .in_packet(true, true)
            .with_dmb(barrier == BarrierMode::Dmb),
        meta_ctrl: MetaCtrl::PLAIN_COPY
            .with_write_barrier(barrier == BarrierMode::WriteBarrier)
            .with_notification_mask(flags.notification_mask),
        buf_ptr: src,
    };
    let rx = RxDesc {
        len_ctrl: len_ctrl.with_strong_order_wr(barrier == BarrierMode::StrongOrder),
        buf2_ptr_lo: 0,
        buf1_ptr: dst,
    };
    Ok((tx, rx))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desc::Descriptor;
    use proptest::prelude::*;

    const SRC: Addr = Addr(0x8000_0000_1000);
    const DST: Addr = Addr(0x20_0000_0040);
    const FLAGS: CopyFlags = CopyFlags {
        notification_mask: false,
    };
    const NOTIFY: CopyFlags = CopyFlags {
        notification_mask: true,
    };

    fn build(
        arch: Arch,
        len: u32,
        barrier: BarrierMode,
        flags: CopyFlags,
    ) -> Result<([u32; 4], [u32; 4]), BuildError> {
        build_copy(arch, SRC, DST, len, RingId::FIRST_LAP, barrier, flags)
            .map(|(tx, rx)| (Descriptor::from(tx).words, Descriptor::from(rx).words))
    }

    #[test]
    fn golden_pairs() {
        use BarrierMode::*;
        let tx = |len_ctrl, meta_ctrl| [len_ctrl, meta_ctrl, 0x1000, 0x8000];
        let rx = |len_ctrl| [len_ctrl, 0, 0x40, 0x20];
        for (arch, len, barrier, flags, want_tx, want_rx) in [
            (
                Arch::V2,
                4,
                None,
                FLAGS,
                tx(0x0d00_0004, 0x0108_0003),
                rx(0x0100_0004),
            ),
            (
                Arch::V2,
                4,
                Dmb,
                FLAGS,
                tx(0x4d00_0004, 0x0108_0003),
                rx(0x0100_0004),
            ),
            (
                Arch::V2,
                4,
                WriteBarrier,
                FLAGS,
                tx(0x0d00_0004, 0x0508_0003),
                rx(0x0100_0004),
            ),
            (
                Arch::V3,
                4,
                StrongOrder,
                FLAGS,
                tx(0x0d00_0004, 0x0108_0003),
                rx(0x2100_0004),
            ),
            (
                Arch::V3,
                65535,
                None,
                FLAGS,
                tx(0x0d00_ffff, 0x0108_0003),
                rx(0x0100_ffff),
            ),
            (
                Arch::V3,
                65536,
                None,
                FLAGS,
                tx(0x0d00_0000, 0x0108_0003),
                rx(0x0100_0000),
            ),
            (
                Arch::V4,
                4,
                None,
                NOTIFY,
                tx(0x0d00_0004, 0x1108_0003),
                rx(0x0100_0004),
            ),
        ] {
            assert_eq!(build(arch, len, barrier, flags), Ok((want_tx, want_rx)));
        }
    }

    #[test]
    fn refusals() {
        for len in [0, 65537, u32::MAX] {
            assert_eq!(
                build(Arch::V3, len, BarrierMode::None, FLAGS),
                Err(BuildError::Length(LengthError(len)))
            );
        }
        let refused = build(Arch::V2, 4, BarrierMode::StrongOrder, FLAGS).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "udma strong ordering not supported in TRN1!"
        );
        for arch in [Arch::V2, Arch::V3] {
            assert_eq!(
                build(arch, 4, BarrierMode::None, NOTIFY),
                Err(BuildError::NotificationMask(arch))
            );
        }
    }

    #[test]
    fn barrier_modes_by_number() {
        assert_eq!(BarrierMode::try_from(0), Ok(BarrierMode::None));
        assert_eq!(BarrierMode::try_from(1), Ok(BarrierMode::Dmb));
        assert_eq!(BarrierMode::try_from(2), Ok(BarrierMode::WriteBarrier));
        assert_eq!(BarrierMode::try_from(3), Ok(BarrierMode::StrongOrder));
        assert_eq!(BarrierMode::try_from(4), Err(InvalidBarrierMode(4)));
        assert_eq!(
            BarrierMode::try_from(u32::MAX),
            Err(InvalidBarrierMode(u32::MAX))
        );
    }

    proptest! {
        #[test]
        fn a_pair_says_what_was_asked(
            src: u64,
            dst: u64,
            len in 1u32..=65536,
            ring in 0u8..4,
            mode in 0u32..4,
        ) {
            let ring = RingId::from_bits(ring);
            let barrier = BarrierMode::try_from(mode).unwrap();
            let (tx, rx) = build_copy(Arch::V3, Addr(src), Addr(dst), len, ring, barrier, FLAGS).unwrap();
            prop_assert_eq!((tx.buf_ptr, rx.buf1_ptr), (Addr(src), Addr(dst)));
            prop_assert_eq!((tx.len_ctrl.byte_len(), rx.len_ctrl.byte_len()), (len, len));
            prop_assert_eq!((tx.len_ctrl.ring_id(), rx.len_ctrl.ring_id()), (ring, ring));
            prop_assert_eq!(tx.len_ctrl.dmb(), barrier == BarrierMode::Dmb);
            prop_assert_eq!(tx.write_barrier(), barrier == BarrierMode::WriteBarrier);
            prop_assert_eq!(rx.len_ctrl.strong_order_wr(), barrier == BarrierMode::StrongOrder);
            prop_assert!(!rx.len_ctrl.first() && !rx.len_ctrl.last() && !rx.len_ctrl.dmb());
        }
    }
}
