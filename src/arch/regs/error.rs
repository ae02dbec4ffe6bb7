//! Error bits of both halves.

/// Declares the error bits of a half once: number, name and meaning.
macro_rules! error_bits {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $bit:literal, $meaning:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum $name { $(#[doc = $meaning] $variant = $bit,)* }

        impl $name {
            /// Every error, in bit order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Bit of this error in the mask and cause registers.
            pub const fn mask(self) -> u32 {
                1 << self as u32
            }

            /// The error in words.
            pub const fn meaning(self) -> &'static str {
                match self { $($name::$variant => $meaning,)* }
            }

            /// The errors whose bits are set, in bit order; bits without a meaning are left out.
            pub fn in_bits(bits: u32) -> impl Iterator<Item = $name> {
                Self::ALL.iter().copied().filter(move |error| bits & error.mask() != 0)
            }
        }
    };
}

error_bits! {
    /// Error bits of M2S (`docs/hardware.md`, "Errors").
    M2sError {
        CompPktMismatch = 0, "stream completion does not match a packet";
        StreamParity = 1, "stream parity";
        StreamResponse = 2, "stream response";
        StreamTimeout = 3, "stream timeout";
        CompParity = 4, "completion write parity";
        CompResponse = 5, "completion write AXI response";
        CompTimeout = 6, "completion write AXI timeout";
        DataParity = 7, "data read parity";
        DataResponse = 8, "data read AXI response";
        DataTimeout = 9, "data read AXI timeout";
        PrefetchParity = 10, "descriptor prefetch parity";
        PrefetchResponse = 11, "descriptor prefetch AXI response";
        PrefetchTimeout = 12, "descriptor prefetch AXI timeout";
        PktLenOverflow = 13, "packet longer than the maximum";
        MaxDescCount = 14, "packet of too many descriptors";
        First = 15, "FIRST inside a packet";
        Last = 16, "descriptor without FIRST outside a packet";
        RingId = 17, "ring id of a descriptor does not match the lap";
        DataBufferParity = 18, "AXI data buffer parity";
        AckedPacketParity = 19, "acknowledged packets buffer parity";
        UnackedPacketParity = 20, "unacknowledged packets buffer parity";
        CompCoalescingParity = 21, "completion coalescing buffer parity";
        DataHeaderParity = 22, "data header buffer parity";
        DataFifoParity = 23, "data buffer parity";
        PrefetchDescParity = 24, "prefetch descriptor buffer parity";
        PrefetchHeaderParity = 25, "prefetch header buffer parity";
        MsixTimeout = 26, "MSI-X timeout";
        MsixResponse = 27, "MSI-X response";
    }
}

error_bits! {
    /// Error bits of S2M (`docs/hardware.md`, "Errors").
    S2mError {
        DataParity = 0, "data write AXI parity";
        DataResponse = 1, "data write AXI response";
        DataTimeout = 2, "data write AXI timeout";
        HeaderSplitLen = 3, "header split length";
        HeaderSplitIgnored = 4, "header split ignored";
        Promotion = 5, "prefetch promotion indication";
        NoDescTimeout = 6, "packet waited too long for a descriptor";
        NoDescHint = 7, "packet found no descriptor";
        PrefetchParity = 8, "descriptor prefetch AXI parity";
        PrefetchResponse = 9, "descriptor prefetch AXI response";
        PrefetchTimeout = 10, "descriptor prefetch AXI timeout";
        RingId = 11, "ring id of a descriptor does not match the lap";
        PrefetchSaturate = 12, "packet larger than its descriptors can hold";
        CompParity = 13, "completion write AXI parity";
        CompResponse = 14, "completion write AXI response";
        CompTimeout = 15, "completion write AXI timeout";
        CompStream = 16, "completion stream";
        CompUnack = 17, "completion not acknowledged";
        StreamHeaderParity = 18, "stream header parity";
        StreamHeader = 19, "stream header";
        StreamDataParity = 20, "stream data parity";
        StreamData = 21, "stream data";
        StreamFirst = 22, "stream FIRST inside a packet";
        StreamLast = 23, "stream data outside a packet";
        PktLen = 24, "packet length differs from the data";
        DataHeaderBufferParity = 25, "data header buffer parity";
        DataBufferParity = 26, "data buffer parity";
        UnackedPacketParity = 27, "unacknowledged packets buffer parity";
        PreUnackedPacketParity = 28, "pre-unacknowledged packets buffer parity";
        CompCoalescingParity = 29, "completion coalescing buffer parity";
        PrefetchDescParity = 30, "prefetch descriptor buffer parity";
        TransactionTableParity = 31, "transaction table parity";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_id_errors_sit_where_the_driver_masks_them() {
        assert_eq!(M2sError::RingId.mask(), 1 << 17);
        assert_eq!(S2mError::RingId.mask(), 1 << 11);
        let set: Vec<_> = M2sError::in_bits(0x8001_8000).collect();
        assert_eq!(set, [M2sError::First, M2sError::Last]);
    }
}
