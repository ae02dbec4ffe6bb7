//! A ring dump, descriptor by descriptor: what each says and what is malformed about it.

use serde::{Serialize, Serializer};
use std::fmt;
use udma_sim::arch::regs::Direction;
use udma_sim::arch::{Arch, Caps};
use udma_sim::desc::{
    ComputeMetaWord, DESC_BYTES, Descriptor, LenCtrl, MetaOp, OpWord, PacketFault, PacketTracker,
    RxDesc, TemplatePtr, TxDesc, TxMetaDesc,
};
use udma_sim::units::Addr;

/// A ring dump to be decoded.
pub struct Ring<'a> {
    direction: Direction,
    arch: Arch,
    /// Descriptors before the unused tail of the ring.
    used: &'a [[u8; DESC_BYTES]],
    /// Descriptors of zeros after them.
    unused: usize,
    /// Bytes after the last whole descriptor.
    ragged: usize,
}

/// Slots at the end of the ring that hold nothing but zeros.
pub struct Unused {
    first: usize,
    pub count: usize,
}

/// What a ring adds up to.
#[derive(Default, Serialize)]
pub struct Summary {
    /// Descriptors in use.
    descriptor_count: usize,
    /// Packets of a Tx ring.
    #[serde(skip_serializing_if = "Option::is_none")]
    packet_count: Option<usize>,
    /// Bytes that the descriptors move.
    bytes: u64,
    /// Descriptors, or the ring as a whole, with something malformed.
    pub malformed: usize,
}

/// One descriptor.
#[derive(Serialize)]
pub struct Record {
    index: usize,
    /// Packet of a Tx descriptor, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    packet: Option<usize>,
    ring_id: u8,
    flags: Vec<&'static str>,
    #[serde(flatten)]
    content: Content,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<String>,
    malformed: Vec<String>,
}

/// What a descriptor carries.
#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    /// Bytes at an address.
    Data { bytes: u32, address: Hex<u64> },
    /// Words.
    Meta { meta1: Hex<u32>, meta2: Hex<u32> },
}

/// A number that is written in hexadecimal.
struct Hex<N>(N);

impl<'a> Ring<'a> {
    /// The dump `bytes` of a ring of `direction`.
    pub fn new(bytes: &'a [u8], direction: Direction, arch: Arch) -> Ring<'a> {
        let (slots, ragged) = bytes.as_chunks();
        let used = slots
            .iter()
            .rposition(|slot| *slot != [0; DESC_BYTES])
            .map_or(0, |last| last + 1);
        Ring {
            direction,
            arch,
            used: &slots[..used],
            unused: slots.len() - used,
            ragged: ragged.len(),
        }
    }

    pub fn direction(&self) -> Direction {
        self.direction
    }

    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The descriptors in use, decoded.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let spec = self.arch.spec();
        let mut tracker = PacketTracker::new(spec.limits.tx_descs_per_packet);
        let mut packets = 0;
        let descs = self.used.iter().copied().map(Descriptor::from_bytes);
        descs
            .enumerate()
            .map(move |(index, desc)| match self.direction {
                Direction::S2m => rx_record(index, desc.into(), &spec.caps),
                Direction::M2s => {
                    let tracked = tracker.accept(desc.len_ctrl());
                    packets += usize::from(tracked.opens);
                    let mut record = tx_record(index, packets - 1, desc, &spec.caps);
                    record
                        .malformed
                        .extend(tracked.fault.map(|fault| fault.to_string()));
                    if index + 1 == self.used.len() && tracker.inside() {
                        record.malformed.push(PacketFault::MissingLast.to_string());
                    }
                    record
                }
            })
    }

    /// The unused tail of the ring, if it has one.
    pub fn unused(&self) -> Option<Unused> {
        (self.unused > 0).then_some(Unused {
            first: self.used.len(),
            count: self.unused,
        })
    }

    /// What is malformed about the dump as a whole.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.ragged > 0 {
            faults.push(format!(
                "{} bytes follow the last whole descriptor of {DESC_BYTES} bytes",
                self.ragged
            ));
        }
        if self.used.is_empty() {
            faults.push("the ring has no descriptors".to_string());
        }
        faults
    }

    pub fn summary(&self) -> Summary {
        let mut summary = Summary {
            malformed: self.faults().len(),
            ..Summary::default()
        };
        for record in self.records() {
            summary.descriptor_count += 1;
            summary.packet_count = record.packet.map(|packet| packet + 1);
            summary.malformed += usize::from(!record.malformed.is_empty());
            if let Content::Data { bytes, .. } = record.content {
                summary.bytes += u64::from(bytes);
            }
        }
        summary
    }
}

fn tx_record(index: usize, packet: usize, desc: Descriptor, caps: &Caps) -> Record {
    let tx = TxDesc::from(desc);
    let mut malformed = length_faults(tx.len_ctrl);
    if tx.len_ctrl.strong_order_wr() {
        malformed.push("STRONG_ORDER_WR on a Tx descriptor".to_string());
    }
    let content = if tx.len_ctrl.meta() {
        let meta = TxMetaDesc::from(desc);
        let word = ComputeMetaWord::decode(meta.meta_ctrl.into_bits());
        let known = !matches!(word.op, MetaOp::Reserved(_)) || meta.meta_ctrl.is_cme();
        if !known {
            malformed.push(unknown_op(meta.meta_ctrl.into_bits()));
        }
        Content::Meta {
            meta1: Hex(meta.meta1),
            meta2: Hex(meta.meta2),
        }
    } else {
        let word = OpWord::decode(tx.meta_ctrl);
        match word {
            OpWord::Reserved(raw) => malformed.push(unknown_op(raw)),
            _ if word.has_reserved_bits() => {
                malformed.push("reserved bits set in meta_ctrl".to_string());
            }
            _ => {}
        }
        if tx.notification() && !caps.notification_mask {
            malformed.push("notification mask needs v4".to_string());
        }
        malformed.extend(template_fault(tx.buf_ptr));
        data(tx.len_ctrl, tx.buf_ptr)
    };
    Record {
        index,
        packet: Some(packet),
        ring_id: tx.len_ctrl.ring_id().into_bits(),
        flags: tx.flag_names(),
        content,
        op: Some(tx.op_text()),
        malformed,
    }
}

fn rx_record(index: usize, rx: RxDesc, caps: &Caps) -> Record {
    let mut malformed = length_faults(rx.len_ctrl);
    if rx.len_ctrl.meta() {
        malformed.push("META on an Rx descriptor".to_string());
    }
    if rx.len_ctrl.dmb() {
        malformed.push("DMB on an Rx descriptor".to_string());
    }
    if rx.len_ctrl.strong_order_wr() && !caps.strong_order_writes {
        malformed.push("STRONG_ORDER_WR needs v3 or later".to_string());
    }
    // On V4 the word may belong to an embedded semaphore update.
    if rx.buf2_ptr_lo != 0 && !caps.embedded_semaphore {
        malformed.push(format!(
            "buf2_ptr_lo is {:#x}; it must be 0",
            rx.buf2_ptr_lo
        ));
    }
    malformed.extend(template_fault(rx.buf1_ptr));
    Record {
        index,
        packet: None,
        ring_id: rx.len_ctrl.ring_id().into_bits(),
        flags: rx.flag_names(),
        content: data(rx.len_ctrl, rx.buf1_ptr),
        op: None,
        malformed,
    }
}

fn data(len_ctrl: LenCtrl, address: Addr) -> Content {
    Content::Data {
        bytes: len_ctrl.byte_len(),
        address: Hex(address.0),
    }
}

fn length_faults(len_ctrl: LenCtrl) -> Vec<String> {
    match len_ctrl.reserved_22_16() {
        0 => Vec::new(),
        _ => vec!["reserved bits set in len_ctrl".to_string()],
    }
}

fn unknown_op(word: u32) -> String {
    format!("unknown op word {word:#010x}")
}

fn template_fault(address: Addr) -> Option<String> {
    let pointer = TemplatePtr::from(address);
    pointer.is_template().then(|| {
        format!(
            "unresolved template pointer: variable {} + {:#x}",
            pointer.var_id(),
            pointer.offset()
        )
    })
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>6}", self.index)?;
        if let Some(packet) = self.packet {
            write!(f, "  packet {packet:<5}")?;
        }
        write!(f, "  ring id {}  {}", self.ring_id, self.content)?;
        for word in self.flags.iter().copied().chain(self.op.as_deref()) {
            write!(f, "  {word}")?;
        }
        if !self.malformed.is_empty() {
            write!(f, "  !! {}", self.malformed.join("; "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Data { bytes, address } => write!(f, "{bytes:>5} B at {address}"),
            Content::Meta { meta1, meta2 } => write!(f, "words {meta1} {meta2}  "),
        }
    }
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>6}  unused from here on: {} all-zero slots",
            self.first, self.count
        )
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "descriptors {}", self.descriptor_count)?;
        if let Some(packets) = self.packet_count {
            write!(f, ", packets {packets}")?;
        }
        write!(f, ", bytes {}, malformed {}", self.bytes, self.malformed)
    }
}

impl fmt::Display for Hex<u64> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

impl fmt::Display for Hex<u32> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

impl<N> Serialize for Hex<N>
where
    Hex<N>: fmt::Display,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
