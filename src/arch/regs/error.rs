//! Error bits of both halves.

/// Declares the error bits of a half once: number, name in scenarios and reports, and meaning.
macro_rules! error_bits {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $bit:literal, $text:literal, $meaning:literal;)* }) => {
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

            /// Its name in scenarios and reports, such as `ring_id`.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
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
        CompPktMismatch = 0, "comp_pkt_mismatch", "stream completion does not match a packet";
        StreamParity = 1, "stream_parity", "stream parity";
        StreamResponse = 2, "stream_response", "stream response";
        StreamTimeout = 3, "stream_timeout", "stream timeout";
        CompParity = 4, "comp_parity", "completion write parity";
        CompResponse = 5, "comp_response", "completion write AXI response";
        CompTimeout = 6, "comp_timeout", "completion write AXI timeout";
        DataParity = 7, "data_parity", "data read parity";
        DataResponse = 8, "data_response", "data read AXI response";
        DataTimeout = 9, "data_timeout", "data read AXI timeout";
        PrefetchParity = 10, "prefetch_parity", "descriptor prefetch parity";
        PrefetchResponse = 11, "prefetch_response", "descriptor prefetch AXI response";
        PrefetchTimeout = 12, "prefetch_timeout", "descriptor prefetch AXI timeout";
        PktLenOverflow = 13, "pkt_len_overflow", "packet longer than the maximum";
        MaxDescCount = 14, "max_desc_count", "packet of too many descriptors";
        First = 15, "first", "FIRST inside a packet";
        Last = 16, "last", "descriptor without FIRST outside a packet";
        RingId = 17, "ring_id", "ring id of a descriptor does not match the lap";
        DataBufferParity = 18, "data_buffer_parity", "AXI data buffer parity";
        AckedPacketParity = 19, "acked_packet_parity", "acknowledged packets buffer parity";
        UnackedPacketParity = 20, "unacked_packet_parity", "unacknowledged packets buffer parity";
        CompCoalescingParity = 21, "comp_coalescing_parity", "completion coalescing buffer parity";
        DataHeaderParity = 22, "data_header_parity", "data header buffer parity";
        DataFifoParity = 23, "data_fifo_parity", "data buffer parity";
        PrefetchDescParity = 24, "prefetch_desc_parity", "prefetch descriptor buffer parity";
        PrefetchHeaderParity = 25, "prefetch_header_parity", "prefetch header buffer parity";
        MsixTimeout = 26, "msix_timeout", "MSI-X timeout";
        MsixResponse = 27, "msix_response", "MSI-X response";
    }
}

error_bits! {
    /// Error bits of S2M (`docs/hardware.md`, "Errors").
    S2mError {
        DataParity = 0, "data_parity", "data write AXI parity";
        DataResponse = 1, "data_response", "data write AXI response";
        DataTimeout = 2, "data_timeout", "data write AXI timeout";
        HeaderSplitLen = 3, "header_split_len", "header split length";
        HeaderSplitIgnored = 4, "header_split_ignored", "header split ignored";
        Promotion = 5, "promotion", "prefetch promotion indication";
        NoDescTimeout = 6, "no_desc_timeout", "packet waited too long for a descriptor";
        NoDescHint = 7, "no_desc_hint", "packet found no descriptor";
        PrefetchParity = 8, "prefetch_parity", "descriptor prefetch AXI parity";
        PrefetchResponse = 9, "prefetch_response", "descriptor prefetch AXI response";
        PrefetchTimeout = 10, "prefetch_timeout", "descriptor prefetch AXI timeout";
        RingId = 11, "ring_id", "ring id of a descriptor does not match the lap";
        PrefetchSaturate = 12, "prefetch_saturate", "packet larger than its descriptors can hold";
        CompParity = 13, "comp_parity", "completion write AXI parity";
        CompResponse = 14, "comp_response", "completion write AXI response";
        CompTimeout = 15, "comp_timeout", "completion write AXI timeout";
        CompStream = 16, "comp_stream", "completion stream";
        CompUnack = 17, "comp_unack", "completion not acknowledged";
        StreamHeaderParity = 18, "stream_header_parity", "stream header parity";
        StreamHeader = 19, "stream_header", "stream header";
        StreamDataParity = 20, "stream_data_parity", "stream data parity";
        StreamData = 21, "stream_data", "stream data";
        StreamFirst = 22, "stream_first", "stream FIRST inside a packet";
        StreamLast = 23, "stream_last", "stream data outside a packet";
        PktLen = 24, "pkt_len", "packet length differs from the data";
        DataHeaderBufferParity = 25, "data_header_buffer_parity", "data header buffer parity";
        DataBufferParity = 26, "data_buffer_parity", "data buffer parity";
        UnackedPacketParity = 27, "unacked_packet_parity", "unacknowledged packets buffer parity";
        PreUnackedPacketParity = 28, "pre_unacked_packet_parity", "pre-unacknowledged packets buffer parity";
        CompCoalescingParity = 29, "comp_coalescing_parity", "completion coalescing buffer parity";
        PrefetchDescParity = 30, "prefetch_desc_parity", "prefetch descriptor buffer parity";
        TransactionTableParity = 31, "transaction_table_parity", "transaction table parity";
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

    /// `RingId` is `ring_id`.
    #[track_caller]
    fn check_name(variant: String, name: &str) {
        let mut words = String::new();
        for c in variant.chars() {
            if c.is_ascii_uppercase() && !words.is_empty() {
                words.push('_');
            }
            words.push(c.to_ascii_lowercase());
        }
        assert_eq!(name, words);
    }

    #[test]
    fn names_are_those_of_the_variants() {
        for error in M2sError::ALL {
            check_name(format!("{error:?}"), error.name());
        }
        for error in S2mError::ALL {
            check_name(format!("{error:?}"), error.name());
        }
    }
}
