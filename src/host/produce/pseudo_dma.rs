//! The translator of pseudo copies: what a compiled program says in one instruction becomes as few
//! transfers as its addresses allow.

use crate::desc::BarrierMode;
use crate::host::vring::{Vring, VringError};
use crate::units::Addr;

/// Most elements of a pattern: modelled (C), so that no instruction runs forever.
pub const MAX_PATTERN_ELEMENTS: u64 = 1 << 28;

/// One dimension of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Elements.
    pub count: u32,
    /// Elements from one to the next; negative goes down, 0 stays.
    pub step: i64,
}

/// Where elements lie: two dimensions, the inner one fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// First element.
    pub base: Addr,
    /// The outer dimension.
    pub outer: Step,
    /// The inner dimension.
    pub inner: Step,
}

impl Pattern {
    /// `count` elements, `step` apart.
    pub const fn line(base: Addr, count: u32, step: i64) -> Pattern {
        Pattern {
            base,
            outer: Step { count: 1, step: 0 },
            inner: Step { count, step },
        }
    }

    /// Elements.
    pub const fn elements(&self) -> u64 {
        self.outer.count as u64 * self.inner.count as u64
    }

    /// Address of the `n`th element; `None` if it leaves the address space.
    fn at(&self, n: u64, element_bytes: u32) -> Option<Addr> {
        let inner = u64::from(self.inner.count.max(1));
        let offset = i128::from(n / inner) * i128::from(self.outer.step)
            + i128::from(n % inner) * i128::from(self.inner.step);
        let at = i128::from(self.base.0) + offset * i128::from(element_bytes);
        u64::try_from(at).ok().map(Addr)
    }
}

/// One pseudo copy instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PseudoCopy {
    /// `bytes` bytes in a row.
    Linear {
        /// Source.
        src: Addr,
        /// Destination.
        dst: Addr,
        /// Bytes.
        bytes: u64,
    },
    /// Elements from one pattern to another of as many.
    Strided {
        /// Where elements are read, in order.
        src: Pattern,
        /// Where they are written, in the same order.
        dst: Pattern,
        /// Bytes of an element.
        element_bytes: u32,
    },
    /// Rows of a table, picked by index, to rows in a row.
    Gather {
        /// Row 0 of the table.
        table: Addr,
        /// Bytes of a row.
        row_bytes: u32,
        /// Rows to take, in order.
        indices: Vec<u32>,
        /// Where the first goes.
        dst: Addr,
    },
}

/// Why an instruction was not translated. The vring is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PseudoDmaError {
    /// Patterns of different length.
    #[error(
        "pseudo copy {index} of {count}: the source pattern has {src} elements, the destination pattern {dst}"
    )]
    Elements {
        /// Which instruction, from 1.
        index: usize,
        /// Instructions in all.
        count: usize,
        /// Elements of the source.
        src: u64,
        /// Elements of the destination.
        dst: u64,
    },
    /// More elements than a pattern may have.
    #[error(
        "pseudo copy {index} of {count}: {elements} elements; a pattern has at most {MAX_PATTERN_ELEMENTS}"
    )]
    TooMany {
        /// Which instruction, from 1.
        index: usize,
        /// Instructions in all.
        count: usize,
        /// Elements asked for.
        elements: u64,
    },
    /// An element outside the address space.
    #[error(
        "pseudo copy {index} of {count}: element {element} of the {end} is beyond the address space"
    )]
    PastEnd {
        /// Which instruction, from 1.
        index: usize,
        /// Instructions in all.
        count: usize,
        /// Which element, from 0.
        element: u64,
        /// `source` or `destination`.
        end: &'static str,
    },
    /// The vring refused.
    #[error("pseudo copy {index} of {count}: {source}")]
    Vring {
        /// Which instruction, from 1.
        index: usize,
        /// Instructions in all.
        count: usize,
        /// Why.
        source: VringError,
    },
}

/// Bytes that lie in a row at both ends.
#[derive(Clone, Copy)]
struct Run {
    src: Addr,
    dst: Addr,
    bytes: u64,
}

/// Which instruction messages speak of.
#[derive(Clone, Copy)]
struct Place {
    index: usize,
    count: usize,
}

impl Vring {
    /// Translates pseudo copies: each becomes one transfer for every run of elements that lie in a row
    /// at both ends, in order, with the barrier that the runtime puts on a copy on its last chunk
    /// only. Returns the number of transfers.
    ///
    /// # Errors
    /// [`PseudoDmaError`] naming the instruction; the vring is then as it was.
    pub fn translate_pseudo_dma(&mut self, copies: &[PseudoCopy]) -> Result<u64, PseudoDmaError> {
        self.all_or_nothing(|vring| {
            let mut transfers = 0;
            let count = copies.len();
            for (index, copy) in (1..).zip(copies) {
                transfers += vring.translate_one(copy, Place { index, count })?;
            }
            Ok(transfers)
        })
    }

    fn translate_one(&mut self, copy: &PseudoCopy, place: Place) -> Result<u64, PseudoDmaError> {
        let mut writer = RunWriter {
            vring: self,
            place,
            open: None,
            transfers: 0,
        };
        match copy {
            PseudoCopy::Linear { src, dst, bytes } => writer.push(Run {
                src: *src,
                dst: *dst,
                bytes: *bytes,
            })?,
            PseudoCopy::Strided {
                src,
                dst,
                element_bytes,
            } => writer.strided(src, dst, *element_bytes)?,
            PseudoCopy::Gather {
                table,
                row_bytes,
                indices,
                dst,
            } => writer.gather(*table, *row_bytes, indices, *dst)?,
        }
        writer.finish()
    }
}

/// Joins runs that meet at both ends and writes each as it ends.
struct RunWriter<'v> {
    vring: &'v mut Vring,
    place: Place,
    open: Option<Run>,
    transfers: u64,
}

impl RunWriter<'_> {
    fn strided(
        &mut self,
        src: &Pattern,
        dst: &Pattern,
        element_bytes: u32,
    ) -> Result<(), PseudoDmaError> {
        let Place { index, count } = self.place;
        let elements = src.elements();
        if elements != dst.elements() {
            let (src, dst) = (elements, dst.elements());
            return Err(PseudoDmaError::Elements {
                index,
                count,
                src,
                dst,
            });
        }
        if elements > MAX_PATTERN_ELEMENTS {
            return Err(PseudoDmaError::TooMany {
                index,
                count,
                elements,
            });
        }
        for n in 0..elements {
            let run = Run {
                src: self.inside(src.at(n, element_bytes), n, "source")?,
                dst: self.inside(dst.at(n, element_bytes), n, "destination")?,
                bytes: element_bytes.into(),
            };
            self.push(run)?;
        }
        Ok(())
    }

    fn gather(
        &mut self,
        table: Addr,
        row_bytes: u32,
        indices: &[u32],
        dst: Addr,
    ) -> Result<(), PseudoDmaError> {
        let bytes = u64::from(row_bytes);
        for (n, index) in (0..).zip(indices) {
            let row = |base: Addr, number: u64| base.checked_add(number * bytes);
            let run = Run {
                src: self.inside(row(table, (*index).into()), n, "source")?,
                dst: self.inside(row(dst, n), n, "destination")?,
                bytes,
            };
            self.push(run)?;
        }
        Ok(())
    }

    fn inside(
        &self,
        at: Option<Addr>,
        element: u64,
        end: &'static str,
    ) -> Result<Addr, PseudoDmaError> {
        let Place { index, count } = self.place;
        at.ok_or(PseudoDmaError::PastEnd {
            index,
            count,
            element,
            end,
        })
    }

    fn push(&mut self, run: Run) -> Result<(), PseudoDmaError> {
        if let Some(open) = &mut self.open {
            let meets = open.src.checked_add(open.bytes) == Some(run.src)
                && open.dst.checked_add(open.bytes) == Some(run.dst);
            if meets {
                open.bytes = open.bytes.saturating_add(run.bytes);
                return Ok(());
            }
            let open = *open;
            self.write(open, BarrierMode::None)?;
        }
        self.open = Some(run);
        Ok(())
    }

    fn finish(mut self) -> Result<u64, PseudoDmaError> {
        if let Some(open) = self.open.take() {
            self.write(open, self.vring.default_barrier())?;
        }
        Ok(self.transfers)
    }

    fn write(&mut self, run: Run, barrier: BarrierMode) -> Result<(), PseudoDmaError> {
        let Place { index, count } = self.place;
        self.vring
            .add_desc_transfer_with_barrier(run.src, run.dst, run.bytes, barrier)
            .map_err(|source| PseudoDmaError::Vring {
                index,
                count,
                source,
            })?;
        self.transfers += u64::from(run.bytes > 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::desc::{RxDesc, TxDesc};

    fn translate(copies: &[PseudoCopy]) -> Vec<(u64, u64, u32, bool)> {
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        vring.translate_pseudo_dma(copies).unwrap();
        let tx = vring.tx().runs().flatten().map(|desc| TxDesc::from(*desc));
        let rx = vring.rx().runs().flatten().map(|desc| RxDesc::from(*desc));
        tx.zip(rx)
            .map(|(tx, rx)| {
                let len = tx.len_ctrl.byte_len();
                (
                    tx.buf_ptr.0,
                    rx.buf1_ptr.0,
                    len,
                    rx.len_ctrl.strong_order_wr(),
                )
            })
            .collect()
    }

    #[test]
    fn one_instruction_one_transfer() {
        let copy = PseudoCopy::Linear {
            src: Addr(0x100),
            dst: Addr(0x9000),
            bytes: 65537,
        };
        assert_eq!(
            translate(&[copy]),
            [(0x100, 0x9000, 65536, false), (0x1_0100, 0x1_9000, 1, true)]
        );
    }

    #[test]
    fn elements_that_meet_at_both_ends_coalesce() {
        let line = |base, count, step| Pattern::line(Addr(base), count, step);
        let strided = |src, dst| PseudoCopy::Strided {
            src,
            dst,
            element_bytes: 4,
        };
        assert_eq!(
            translate(&[strided(line(0x100, 8, 1), line(0x200, 8, 1))]),
            [(0x100, 0x200, 32, true)]
        );
        assert_eq!(
            translate(&[strided(line(0x100, 3, 1), line(0x200, 3, 2))]),
            [
                (0x100, 0x200, 4, false),
                (0x104, 0x208, 4, false),
                (0x108, 0x210, 4, true)
            ]
        );
        // Rows that follow each other are one run; a row apart at one end is not.
        let rows = |base, step| Pattern {
            base: Addr(base),
            outer: Step { count: 2, step },
            inner: Step { count: 4, step: 1 },
        };
        assert_eq!(
            translate(&[strided(rows(0, 4), rows(0x100, 4))]),
            [(0, 0x100, 32, true)]
        );
        assert_eq!(
            translate(&[strided(rows(0, 4), rows(0x100, 8))]),
            [(0, 0x100, 16, false), (0x10, 0x120, 16, true)]
        );
    }

    #[test]
    fn steps_go_down_and_stay() {
        let line = |base, count, step| Pattern::line(Addr(base), count, step);
        let reversed = PseudoCopy::Strided {
            src: line(0x108, 3, -1),
            dst: line(0x200, 3, 1),
            element_bytes: 4,
        };
        assert_eq!(
            translate(&[reversed]),
            [
                (0x108, 0x200, 4, false),
                (0x104, 0x204, 4, false),
                (0x100, 0x208, 4, true)
            ]
        );
        let fill = PseudoCopy::Strided {
            src: line(0x100, 2, 0),
            dst: line(0x200, 2, 1),
            element_bytes: 4,
        };
        assert_eq!(
            translate(&[fill]),
            [(0x100, 0x200, 4, false), (0x100, 0x204, 4, true)]
        );
    }

    #[test]
    fn gathered_rows_coalesce_where_the_indices_follow() {
        let gather = PseudoCopy::Gather {
            table: Addr(0x1000),
            row_bytes: 0x20,
            indices: vec![7, 2, 3, 4, 2],
            dst: Addr(0x9000),
        };
        assert_eq!(
            translate(&[gather]),
            [
                (0x10e0, 0x9000, 0x20, false),
                (0x1040, 0x9020, 0x60, false),
                (0x1040, 0x9080, 0x20, true),
            ]
        );
    }

    #[test]
    fn a_refusal_names_the_instruction_and_adds_nothing() {
        let mut vring = Vring::new(Arch::V3, "v").unwrap();
        let good = PseudoCopy::Linear {
            src: Addr(0),
            dst: Addr(64),
            bytes: 64,
        };
        let mut refused = |copy: PseudoCopy| {
            let error = vring
                .translate_pseudo_dma(&[good.clone(), copy])
                .unwrap_err();
            assert_eq!(
                (vring.tx().used_desc_count(), vring.total_rx_size()),
                (0, 0)
            );
            error.to_string()
        };
        let line = |base, count, step| Pattern::line(Addr(base), count, step);
        let strided = |src, dst| PseudoCopy::Strided {
            src,
            dst,
            element_bytes: 4,
        };
        assert_eq!(
            refused(strided(line(0, 4, 1), line(0, 5, 1))),
            "pseudo copy 2 of 2: the source pattern has 4 elements, the destination pattern 5"
        );
        assert_eq!(
            refused(strided(line(8, 4, -1), line(0, 4, 1))),
            "pseudo copy 2 of 2: element 3 of the source is beyond the address space"
        );
        let huge = Pattern {
            outer: Step {
                count: u32::MAX,
                step: 1,
            },
            ..line(0, u32::MAX, 1)
        };
        assert!(refused(strided(huge, huge)).contains("a pattern has at most 268435456"));
        let gather = PseudoCopy::Gather {
            table: Addr(u64::MAX - 100),
            row_bytes: 60,
            indices: vec![0, 2],
            dst: Addr(0),
        };
        assert!(refused(gather).contains("element 1 of the source"));
        let past = PseudoCopy::Linear {
            src: Addr(0),
            dst: Addr(u64::MAX - 1),
            bytes: 4,
        };
        assert!(refused(past).starts_with("pseudo copy 2 of 2: vring v: 4 bytes at"));
    }

    #[test]
    fn nothing_is_nothing() {
        let line = |count| Pattern::line(Addr(0), count, 1);
        let none = PseudoCopy::Strided {
            src: line(0),
            dst: line(0),
            element_bytes: 4,
        };
        let zero = PseudoCopy::Linear {
            src: Addr(0),
            dst: Addr(0),
            bytes: 0,
        };
        let empty = PseudoCopy::Strided {
            src: line(3),
            dst: line(3),
            element_bytes: 0,
        };
        assert_eq!(translate(&[none, zero, empty]), []);
    }
}
