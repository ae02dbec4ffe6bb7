//! The experiments. All times are simulated.

use super::rig::Rig;
use super::{Bound, CalibrateError, Figure};
use crate::arch::Arch;
use crate::config::Config;
use crate::desc::{
    BarrierMode, Buffer, CcePacket, DType, KbinOp, Permutation, TransposeDims, TransposeError,
    TransposePacket,
};
use crate::device::BEAT_BYTES;
use crate::host::Vring;
use crate::sim::Duration;
use crate::units::Addr;

/// DMA engines of one NeuronCore.
const CORE_ENGINES: u32 = 16;
/// Bytes of a descriptor that is as long as one can be.
const LONGEST: u64 = 64 << 10;
/// Bytes of the transfer whose latency is published, and of each of its rows.
const TRANSFER: u64 = 32 << 10;
const TRANSFER_ROW: u64 = 8 << 10;
/// The published time of that transfer on V3, in nanoseconds.
const TRANSFER_NS: f64 = 1416.0;
/// Partitions that each of 16 engines fills of 128.
const PARTITIONS_PER_ENGINE: u64 = 8;
/// Bytes of a row at which the curve is taken.
const ROWS: [u64; 8] = [64, 128, 256, 512, 1024, 2048, 4096, 8192];
/// Offset in an HBM stack at which data begins.
const DATA: u64 = 1 << 30;
/// Data of different engines or streams lie so far apart in HBM, and a little more, so that they do not
/// march over the channels in step.
const APART: u64 = (16 << 20) + (4 << 10) + 256;

/// The experiments on one config.
pub(super) struct Experiments<'a> {
    pub config: &'a Config,
}

impl Experiments<'_> {
    fn arch(&self) -> Arch {
        self.config.arch()
    }

    /// Bytes per nanosecond of one engine's data path: the peak.
    fn peak(&self) -> f64 {
        self.config.udma_clock().frequency().0 as f64 * f64::from(BEAT_BYTES) / 1e9
    }

    /// Throughput of something that moves `bytes` bytes every `cycles` cycles, in 10^9 bytes per
    /// second.
    pub fn gb_per_s(&self, bytes: u64, cycles: f64) -> f64 {
        bytes as f64 / cycles * self.config.udma_clock().frequency().0 as f64 / 1e9
    }

    /// Share of the peak, in percent, of `engines` engines that move `bytes` bytes in `time`.
    fn share(&self, engines: u32, bytes: u64, time: Duration) -> f64 {
        bytes as f64 / time.as_ns_f64() / self.peak() / f64::from(engines) * 100.0
    }

    /// Share of the peak that `engines` engines reach in the steady state: the time that `more` pieces of
    /// work take beyond `few`, so that latency does not count. `work` adds so many pieces to a
    /// machine and returns their bytes.
    fn steady(
        &self,
        engines: u32,
        (few, more): (u64, u64),
        work: impl Fn(&mut Rig, u64) -> Result<u64, CalibrateError>,
    ) -> Result<f64, CalibrateError> {
        let run = |pieces| -> Result<(u64, Duration), CalibrateError> {
            let mut rig = Rig::new(self.config)?;
            let bytes = work(&mut rig, pieces)?;
            Ok((bytes, rig.until_idle()?))
        };
        let (short, long) = (run(few)?, run(few + more)?);
        let time = Duration::from_fs(long.1.as_fs() - short.1.as_fs());
        Ok(self.share(engines, long.0 - short.0, time))
    }

    /// Every figure that is published for the generation.
    pub fn figures(&self, row_curve: &[(u64, f64)]) -> Result<Vec<Figure>, CalibrateError> {
        let arch = self.arch();
        let percent = |what: &str, published: f64, simulated: f64, bound| {
            Figure::new(what, "% of peak", (published, simulated), bound)
        };
        let transfer = self.transfer(TRANSFER, TRANSFER_ROW)?;
        let mut figures = Vec::new();
        if arch == Arch::V2 {
            let share = self.share(1, TRANSFER, transfer);
            figures.push(percent(
                "one transfer of 32 KiB to its semaphore",
                85.0,
                share,
                Bound::Within(3.0),
            ));
        } else {
            figures.push(Figure::new(
                "32 KiB HBM to State Buffer in four rows, to its semaphore",
                "ns",
                // Published for V3; V4 differs by its clock.
                (self.transfer_ns(), transfer.as_ns_f64()),
                Bound::Within(3.0),
            ));
        }
        figures.push(percent(
            "one transfer of 32 bytes to its semaphore: mostly gaps",
            50.0,
            self.share(1, 32, self.transfer(32, 32)?),
            Bound::AtMost(50.0),
        ));
        for (bytes, share) in row_curve {
            let what = format!("16 engines, 8 rows of {bytes} bytes each");
            match bytes {
                512 => figures.push(percent(&what, 60.0, *share, Bound::AtMost(60.0))),
                4096.. => figures.push(percent(&what, 100.0, *share, Bound::AtLeast(95.0))),
                _ => {}
            }
        }
        figures.push(percent(
            "copy HBM to HBM, 64 KiB descriptors",
            100.0,
            self.copy(LONGEST)?,
            Bound::AtLeast(97.0),
        ));
        figures.push(percent(
            "reduction of two bf16 sources in HBM",
            50.0,
            self.reduction()?,
            Bound::Within(3.0),
        ));
        if arch != Arch::V2 {
            figures.push(percent(
                "transpose HBM to State Buffer",
                90.0,
                self.transpose(false)?,
                Bound::Within(3.0),
            ));
            figures.push(percent(
                "transpose State Buffer to State Buffer",
                50.0,
                self.transpose(true)?,
                Bound::Within(3.0),
            ));
        }
        figures.push(percent(
            "16 engines HBM to one State Buffer, 64 KiB descriptors",
            100.0,
            self.many_to_state_buffer()?,
            Bound::AtLeast(95.0),
        ));
        figures.push(self.one_stack()?);
        figures.push(self.host_copy()?);
        Ok(figures)
    }

    /// The published time of the transfer, with the beat time of this clock.
    fn transfer_ns(&self) -> f64 {
        let v3_peak = 27.2;
        TRANSFER_NS - TRANSFER as f64 / v3_peak + TRANSFER as f64 / self.peak()
    }

    /// One transfer from HBM into rows of a State Buffer, and the semaphore write that follows it.
    fn transfer(&self, bytes: u64, row: u64) -> Result<Duration, CalibrateError> {
        let mut rig = Rig::new(self.config)?;
        let mut vring = Vring::new(self.arch(), "transfer")?;
        let rows = bytes / row;
        // The semaphore must not be seen before the data: as the runtime orders it.
        let barrier = match self.arch() {
            Arch::V2 => BarrierMode::Dmb,
            _ => BarrierMode::WriteBarrier,
        };
        for n in 0..rows {
            let mode = match n + 1 == rows {
                true => barrier,
                false => BarrierMode::None,
            };
            let (from, to) = (rig.hbm(0, DATA + n * row), rig.state_buffer(0, n));
            vring.add_desc_transfer_with_barrier(from, to, row, mode)?;
        }
        vring.add_desc_semaphore_inc_with_barrier(0, 0, BarrierMode::None)?;
        rig.add(0, 0, &vring)?;
        rig.until_semaphore()
    }

    /// Share of the peak over the bytes of a row: 16 engines, each fills 8 partitions with a row each,
    /// again and again.
    pub fn row_curve(&self) -> Result<Vec<(u64, f64)>, CalibrateError> {
        let at = |bytes| -> Result<(u64, f64), CalibrateError> { Ok((bytes, self.rows(bytes)?)) };
        ROWS.into_iter().map(at).collect()
    }

    fn rows(&self, bytes: u64) -> Result<f64, CalibrateError> {
        let once = (LONGEST / bytes / PARTITIONS_PER_ENGINE).max(4);
        self.steady(CORE_ENGINES, (once, 4 * once), |rig, times| {
            for engine in 0..CORE_ENGINES {
                let mut vring = Vring::new(rig.arch(), "rows")?;
                for time in 0..times {
                    for n in 0..PARTITIONS_PER_ENGINE {
                        let offset = DATA + u64::from(engine) * APART;
                        let from =
                            rig.spread(engine, offset + (time * PARTITIONS_PER_ENGINE + n) * bytes);
                        let partition = u64::from(engine) * PARTITIONS_PER_ENGINE + n;
                        let to = rig.state_buffer(0, partition);
                        vring.add_desc_transfer_with_barrier(from, to, bytes, BarrierMode::None)?;
                    }
                }
                rig.add(engine, 0, &vring)?;
            }
            Ok(u64::from(CORE_ENGINES) * times * PARTITIONS_PER_ENGINE * bytes)
        })
    }

    /// UDMA cycles that each of a stream of copies from HBM to HBM takes.
    pub fn copy_cycles(&self, bytes: u64, barrier: BarrierMode) -> Result<f64, CalibrateError> {
        let share = self.copies(bytes, barrier)?;
        Ok(bytes as f64 / f64::from(BEAT_BYTES) / share * 100.0)
    }

    fn copy(&self, bytes: u64) -> Result<f64, CalibrateError> {
        self.copies(bytes, BarrierMode::None)
    }

    fn copies(&self, bytes: u64, barrier: BarrierMode) -> Result<f64, CalibrateError> {
        // A refresh at either end must not count for much.
        let more = (2 << 20) / bytes;
        self.steady(1, (16, more), |rig, times| {
            let mut vring = Vring::new(rig.arch(), "copies")?;
            for n in 0..times {
                let (from, to) = (rig.hbm(0, DATA + n * bytes), rig.hbm(1, DATA + n * bytes));
                vring.add_desc_transfer_with_barrier(from, to, bytes, barrier)?;
            }
            rig.add(0, 0, &vring)?;
            Ok(times * bytes)
        })
    }

    /// Source bytes of a reduction count.
    fn reduction(&self) -> Result<f64, CalibrateError> {
        // The most elements that a V2 packet takes.
        let elements = 1024;
        let bytes = 2 * u64::from(elements);
        self.steady(1, (16, 256), |rig, times| {
            let mut vring = Vring::new(rig.arch(), "reduction")?;
            for n in 0..times {
                let sources = [0, 1].map(|k| rig.hbm(0, DATA + k * APART + n * bytes));
                let destination = [rig.hbm(1, DATA + n * bytes)];
                let packet = CcePacket::new(&sources, &destination, elements, DType::Bfloat16);
                vring.add_dma_packet_cce(KbinOp::Add, &packet)?;
            }
            rig.add(0, 0, &vring)?;
            Ok(times * 2 * bytes)
        })
    }

    /// Tiles of 16 rows and 128 columns of 2 bytes.
    fn transpose(&self, from_state_buffer: bool) -> Result<f64, CalibrateError> {
        let (rows, columns, element) = (16, 128, 2);
        let bytes = rows * columns * element;
        self.steady(1, (16, 256), |rig, times| {
            let mut vring = Vring::new(rig.arch(), "transpose")?;
            for n in 0..times {
                let source = match from_state_buffer {
                    true => Addr(rig.state_buffer(0, n % 128).0 + (64 << 10)),
                    false => rig.hbm(0, DATA + n * bytes),
                };
                let buffer = |at| Buffer { at, len: bytes };
                vring.add_dma_packet_transpose(&TransposePacket {
                    source: buffer(source),
                    destination: buffer(Addr(rig.state_buffer(0, 0).0 + n * rows * element)),
                    dims: TransposeDims([1, rows as u16, columns as u16, 1]),
                    element_bytes: element as u32,
                    permutation: Permutation::from_name("WYXZ")
                        .ok_or(TransposeError::Element(0))?,
                })?;
            }
            rig.add(0, 0, &vring)?;
            Ok(times * bytes)
        })
    }

    fn many_to_state_buffer(&self) -> Result<f64, CalibrateError> {
        self.steady(CORE_ENGINES, (4, 8), |rig, times| {
            for engine in 0..CORE_ENGINES {
                let mut vring = Vring::new(rig.arch(), "fill")?;
                for n in 0..times {
                    let offset = DATA + u64::from(engine) * APART + n * LONGEST;
                    let from = rig.spread(engine, offset);
                    let to = rig.state_buffer(0, u64::from(engine) * PARTITIONS_PER_ENGINE);
                    vring.add_desc_transfer_with_barrier(from, to, LONGEST, BarrierMode::None)?;
                }
                rig.add(engine, 0, &vring)?;
            }
            Ok(u64::from(CORE_ENGINES) * times * LONGEST)
        })
    }

    /// As many engines as can take more than one HBM stack gives read from it into their State Buffers.
    fn one_stack(&self) -> Result<Figure, CalibrateError> {
        let spec = self.arch().spec();
        let memory = &self.config.memory;
        let stack = memory.peak_bytes_per_second() as f64 / f64::from(memory.device.stacks) / 1e9;
        let engines = (1.5 * stack / self.peak() / f64::from(CORE_ENGINES)).ceil() as u32;
        let engines = (engines * CORE_ENGINES).min(spec.map.tpb.len() as u32 * CORE_ENGINES);
        let share = self.steady(engines, (4, 4), |rig, times| {
            for engine in 0..engines {
                let mut vring = Vring::new(rig.arch(), "stack")?;
                for n in 0..times {
                    let from = rig.hbm(0, DATA + u64::from(engine) * APART + n * LONGEST);
                    let core = (engine / CORE_ENGINES) as usize;
                    let partition = u64::from(engine % CORE_ENGINES) * PARTITIONS_PER_ENGINE;
                    let to = rig.state_buffer(core, partition);
                    vring.add_desc_transfer_with_barrier(from, to, LONGEST, BarrierMode::None)?;
                }
                rig.add(engine, 0, &vring)?;
            }
            Ok(u64::from(engines) * times * LONGEST)
        })?;
        let reached = share / 100.0 * self.peak() * f64::from(engines);
        Ok(Figure::new(
            format!("{engines} engines read one HBM stack: never more than it has"),
            "GB/s",
            (stack, reached),
            Bound::Between(0.75 * stack, stack),
        ))
    }

    /// One descriptor of 64 KiB from host to device, as the driver estimates it.
    fn host_copy(&self) -> Result<Figure, CalibrateError> {
        let mut rig = Rig::new(self.config)?;
        let mut vring = Vring::new(self.arch(), "host")?;
        let (from, to) = (rig.host(0), rig.hbm(0, DATA));
        vring.add_desc_transfer_with_barrier(from, to, LONGEST, BarrierMode::None)?;
        rig.add(0, 0, &vring)?;
        let time = rig.until_idle()?;
        // The driver divides by the host path's bandwidth; on V3 the engine is slower than that.
        let host_path = self.config.values.fabric.host.bandwidth.0 as f64 / 1e9;
        let published = LONGEST as f64 / host_path.min(self.peak());
        Ok(Figure::new(
            "one 64 KiB descriptor from host memory, beside an estimate without latency",
            "ns",
            (published, time.as_ns_f64()),
            // What latency may add to an estimate without it.
            Bound::Between(published, published + 1000.0),
        ))
    }
}
