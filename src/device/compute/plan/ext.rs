//! EXT words, two operations in one. The op word is public, and no more: not which of the two operations
//! comes first, not where the operands of the second are, not in what type the result leaves. So none is
//! executed; each is refused for what it says (`docs/compute.md`, "EXT words").

use crate::arch::{Arch, ArchSpec};
use crate::desc::{CceType, ExtWord};
use crate::device::compute::refusal::Reason;

/// Why an EXT word is not executed.
pub(super) fn reason(word: ExtWord, spec: &ArchSpec) -> Reason {
    let raw = word.into_bits();
    if !spec.caps.cce_replication {
        let arch: Arch = spec.arch;
        return Reason::ExtGeneration { word: raw, arch };
    }
    if word.has_reserved_bits() {
        return Reason::ExtReserved(raw);
    }
    let known = matches!(
        word.sub_op(),
        CceType::Add | CceType::Fma | CceType::Max | CceType::Min
    );
    if !known {
        let op = word.sub_op().name();
        return Reason::ExtOp { word: raw, op };
    }
    match (word.middle_dtype(), word.acc_dtype()) {
        (None, _) => Reason::ExtNoDtype {
            word: raw,
            what: "middle",
        },
        (_, None) => Reason::ExtNoDtype {
            word: raw,
            what: "accumulation",
        },
        (Some(middle), Some(acc)) => Reason::Ext {
            word: raw,
            op: word.sub_op().name(),
            middle,
            acc,
        },
    }
}
