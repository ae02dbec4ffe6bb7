//! The wire format: the 16-byte descriptor in its three views, `len_ctrl` and `meta_ctrl` bit by
//! bit, op words, data types, packets as views over descriptors, and the builder of the plain
//! copy pair (`docs/hardware.md`, "Descriptor", "Op words", "Data types").
//!
//! Decoding never fails and never loses a bit: whatever 128 bits a ring holds have a view, and
//! the view turns back into the same bits. What is wrong with them is for the reader to say.
//!
//! ```
//! use udma_sim::arch::Arch;
//! use udma_sim::desc::{BarrierMode, CopyFlags, Descriptor, RingId, build_copy};
//! use udma_sim::units::Addr;
//!
//! let (tx, rx) = build_copy(
//!     Arch::V3,
//!     Addr(0x1000),
//!     Addr(0x2000),
//!     64,
//!     RingId::FIRST_LAP,
//!     BarrierMode::StrongOrder,
//!     CopyFlags::default(),
//! )?;
//! assert_eq!(Descriptor::from(tx).words, [0x0d00_0040, 0x0108_0003, 0x1000, 0]);
//! assert_eq!(Descriptor::from(rx).words, [0x2100_0040, 0, 0x2000, 0]);
//! # Ok::<(), udma_sim::desc::BuildError>(())
//! ```

mod build;
mod cce_rules;
mod cme_packet;
mod completion_record;
mod compute_meta;
mod copy_packet;
mod descriptor;
mod dtype;
mod embedded_semaphore;
mod len_ctrl;
mod meta_ctrl;
mod notification;
mod op;
mod packet;
mod reduce_packet;
mod template;
mod text;
mod transpose;
mod transpose_packet;
mod written;

pub use build::{BarrierMode, BuildError, CopyFlags, InvalidBarrierMode, build_copy};
pub use cce_rules::{
    CCE_GRANULE_BYTES, CceRule, CceShape, CceTypes, MAX_CCE_SOURCES, check_constant_dtype,
    check_copies, check_scale_dtype, check_selectors, check_sources, is_cast, same_cce_class,
};
pub use cme_packet::{CmeError, CmePacket, SOURCE_SWAP_BYTES, check_cme_packet};
pub use completion_record::CompletionRecord;
pub use compute_meta::{ComputeMetaWord, FmaSelector, MetaOp, OperandWord};
pub use copy_packet::{
    Buffer, BuiltPacket, CmeMeta, CopyPacket, CopyPacketError, PacketLimitError, build_copy_packet,
};
pub use descriptor::{DESC_BYTES, Descriptor, RxDesc, TxDesc, TxMetaDesc};
pub use dtype::{DType, DTypeError};
pub use embedded_semaphore::EmbeddedSemaphore;
pub use len_ctrl::{LenCtrl, LengthError, MAX_DESC_BYTES, RingId};
pub use meta_ctrl::{CmeOp, MetaCtrl, SsmaeOp};
pub use notification::{NOTIFICATION_BYTES, Notification};
pub use op::{
    AddWord, CceType, ExtWord, FmaWord, GceWord, MinMaxWord, OpWord, OtherOp, ReplicationWord,
    StridingSplitWord, TransposeWord,
};
pub use packet::{Packet, PacketFault, PacketTracker, Packets, Tracked, packets};
pub use reduce_packet::{CceConstant, CceError, CceInfo, CcePacket, KbinOp, build_cce_packet};
pub use template::{TemplatePtr, TemplatePtrError};
pub use transpose::{
    MAX_TRANSPOSE_ELEMENT_BYTES, Permutation, TRANSPOSE_FLUSH_OFFSET, TransposeDims,
    TransposeTarget,
};
pub use transpose_packet::{
    MAX_TRANSPOSE_BYTES, TRANSPOSE_ALIGN_BYTES, TRANSPOSE_TILE_ROWS, TransposeError,
    TransposePacket, build_transpose_packet, check_transpose_dims, check_transpose_place,
    check_transpose_size, check_transpose_tile,
};
pub use written::written_bytes;
