//! Descriptors in words: names of the flags that are set; the operation, then every field of its op word that
//! is not at rest.

use super::{CmeOp, ComputeMetaWord, DType, LenCtrl, MetaCtrl, MetaOp, OpWord, RxDesc, TxDesc};
use std::fmt::Display;

impl TxDesc {
    /// The flags that are set, by their names in the public headers.
    pub fn flag_names(self) -> Vec<&'static str> {
        let mut names = flag_names(self.len_ctrl);
        names.extend(self.write_barrier().then_some("WRITE_BARRIER"));
        names.extend(self.notification().then_some("NOTIFICATION"));
        names
    }

    /// The op word: the operation, then every field that is not at rest.
    pub fn op_text(self) -> String {
        let word = ComputeMetaWord::decode(self.meta_ctrl.into_bits());
        match word.op {
            _ if !self.len_ctrl.meta() => op_text(OpWord::decode(self.meta_ctrl)),
            // A CRC packet's meta descriptor repeats the word of its data descriptors.
            MetaOp::Reserved(_) => op_text(OpWord::decode(self.meta_ctrl)),
            _ => meta_op_text(word),
        }
    }
}

impl RxDesc {
    /// The flags that are set, by their names in the public headers.
    pub fn flag_names(self) -> Vec<&'static str> {
        flag_names(self.len_ctrl)
    }
}

fn flag_names(len_ctrl: LenCtrl) -> Vec<&'static str> {
    [
        (len_ctrl.first(), "FIRST"),
        (len_ctrl.last(), "LAST"),
        (len_ctrl.meta(), "META"),
        (len_ctrl.concat(), "CONCAT"),
        (len_ctrl.int_en(), "INT_EN"),
        (len_ctrl.dmb(), "DMB"),
        (len_ctrl.strong_order_wr(), "STRONG_ORDER_WR"),
    ]
    .into_iter()
    .filter_map(|(set, name)| set.then_some(name))
    .collect()
}

/// The op word of a data descriptor.
fn op_text(word: OpWord) -> String {
    match word {
        OpWord::Cme(word) => cme_text(word),
        OpWord::StridingSplit(word) => Text::new("striding_split")
            .field("count", word.split_count())
            .flag("shape>1", word.shape_above_one())
            .field("shape", word.shape_index())
            .dtype("dtype", word.dtype()),
        OpWord::Transpose(word) => Text::new("transpose")
            .field("element_bytes", word.element_bytes())
            .flag("shape>1", word.shape_above_one())
            .field("shape", word.output_shape_index())
            .dtype("dtype", word.dtype()),
        OpWord::Replication(word) => Text::new("replication").field("count", word.count()),
        OpWord::Add(word) => Text::new("add")
            .flag("last_source", word.last())
            .flag("flag", word.flag())
            .dtype("in", word.in_dtype())
            .dtype("out", word.out_dtype())
            .dtype("acc", word.acc_dtype()),
        OpWord::MinMax(word) => Text::new(word.sub_op().name())
            .flag("last_source", word.last())
            .flag("flag", word.flag())
            .flag("constant", word.use_constant())
            .dtype("in", word.in_dtype())
            .dtype("out", word.out_dtype())
            .dtype("acc", word.acc_dtype()),
        OpWord::Fma(word) => Text::new("fma")
            .flag("last_source", word.last())
            .flag("flag", word.flag())
            .dtype("in", word.in_dtype())
            .dtype("scale", word.scale_dtype())
            .dtype("acc", word.acc_dtype()),
        OpWord::Ext(word) => Text::new("ext")
            .field("op", word.sub_op().name())
            .dtype("middle", word.middle_dtype())
            .dtype("acc", word.acc_dtype()),
        OpWord::Gce(word) => Text::new("gce")
            .flag("last_source", word.last())
            .flag("flag", word.flag())
            .dtype("in", word.in_dtype())
            .dtype("out", word.out_dtype())
            .dtype("acc", word.acc_dtype()),
        OpWord::Reserved(_) => Text::new("unknown_op"),
    }
    .0
}

/// The op word of a compute packet's meta descriptor.
fn meta_op_text(word: ComputeMetaWord) -> String {
    let op = match word.op {
        MetaOp::ComboMember => Text::new("combo_member"),
        MetaOp::ExtendedReplication(0) => Text::new("extended_replication"),
        MetaOp::ExtendedReplication(count) => {
            Text::new("extended_replication").field("count", count)
        }
        MetaOp::SeedInit => Text::new("seed_init"),
        MetaOp::Constant(dtype) => Text::new("constant").dtype("dtype", Some(dtype)),
        MetaOp::Gradient => Text::new("gradient"),
        MetaOp::Reserved(_) => Text::new("unknown_op"),
    };
    op.flag("more_follow", word.more_follow).0
}

fn cme_text(word: MetaCtrl) -> Text {
    let name = match CmeOp::from_bits(word.op_type()) {
        CmeOp::Copy => "copy",
        CmeOp::Crc32 => "crc32",
        CmeOp::Crc32c => "crc32c",
        CmeOp::Checksum16 => "checksum16",
        CmeOp::Checksum32 => "checksum32",
        CmeOp::Crc16 => "crc16",
        CmeOp::Adler32 => "adler32",
        CmeOp::Crc8 => "crc8",
    };
    Text::new(name)
        .flag("no_data_out", !word.copy_source_data())
        .flag("not_first_block", !word.is_first_block())
        .flag("not_last_block", !word.is_last_block())
        .flag("validate", word.validate_crc())
        .flag("stored_iv", word.use_stored_crc_iv())
        .flag("send_result", word.send_crc_result())
        .flag("store_result", word.store_crc_result())
        .flag("store_source", word.store_source_crc())
        .flag("swap_result_bytes", word.swap_result_bytes())
        .flag("swap_result_bits", word.swap_result_bits())
        .flag("swap_interim_bytes", word.swap_interim_bytes())
        .flag("swap_interim_bits", word.swap_interim_bits())
        .flag("swap_source_bytes", word.swap_source_bytes())
        .flag("swap_source_bits", word.swap_source_bits())
        .flag("swap_init_bytes", word.swap_init_bytes())
        .flag("swap_init_bits", word.swap_init_bits())
        .slot("cache", word.cached_crc_iv_index())
}

/// An operation's name, followed by its fields.
struct Text(String);

impl Text {
    fn new(operation: &str) -> Text {
        Text(operation.to_string())
    }

    fn word(mut self, word: &str) -> Text {
        self.0.push(' ');
        self.0.push_str(word);
        self
    }

    /// The name of a flag that is set.
    fn flag(self, name: &str, set: bool) -> Text {
        if set { self.word(name) } else { self }
    }

    fn field(self, name: &str, value: impl Display) -> Text {
        self.word(&format!("{name}={value}"))
    }

    /// A number that is at rest at 0.
    fn slot(self, name: &str, value: u8) -> Text {
        match value {
            0 => self,
            value => self.field(name, value),
        }
    }

    fn dtype(self, name: &str, dtype: Option<DType>) -> Text {
        match dtype {
            Some(dtype) => self.field(name, dtype.name()),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_text() {
        for (word, text) in [
            (0x0108_0003, "copy"),
            (0x0508_0003, "copy"),
            (
                0x0100_0000,
                "copy no_data_out not_first_block not_last_block",
            ),
            (
                0x012a_0c0b,
                "crc32c store_result swap_source_bytes swap_source_bits cache=1",
            ),
            (
                0x008a_1224,
                "striding_split count=4 shape>1 shape=18 dtype=fp32",
            ),
            (
                0x0096_3422,
                "transpose element_bytes=2 shape>1 shape=52 dtype=bfloat16",
            ),
            (0x00a0_0008, "replication count=8"),
            (0x020a_70d0, "add last_source flag out=fp16 acc=fp32"),
            (0x0208_8402, "max in=int16 out=int32 acc=int32"),
            (
                0x021a_a681,
                "fma last_source in=bfloat16 scale=fp32 acc=fp32",
            ),
            (0x024a_a000, "ext op=add middle=fp32 acc=fp32"),
            (0x0200_0006, "unknown_op"),
        ] {
            assert_eq!(
                op_text(OpWord::decode(MetaCtrl::from_bits(word))),
                text,
                "{word:#x}"
            );
        }
        for (word, text) in [
            (0x06a0_0000, "constant dtype=fp32"),
            (0x4600_0000, "seed_init more_follow"),
            (0x0400_0000, "combo_member"),
        ] {
            assert_eq!(
                meta_op_text(ComputeMetaWord::decode(word)),
                text,
                "{word:#x}"
            );
        }
    }
}
