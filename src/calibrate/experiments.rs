//! The experiments. All times are simulated.

use super::rig::Rig;
use super::{Bound, CalibrateError, Curve, Figure};
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
/// The published times of that transfer in nanoseconds: on V3, and on V4 at the 33 B/ns that the vendor's table gives.
const TRANSFER_NS_V3: f64 = 1416.0;
const TRANSFER_NS_V4: f64 = 993.0;
/// Partitions that each of 16 engines fills of 128.
const PARTITIONS_PER_ENGINE: u64 = 8;
/// The vendor's curve: bytes of a row, throughput in percent of that of the longest. Read off a plot to 1.5 points; its
/// generation is not given and taken for V3.
const ROWS: [(u64, f64); 11] = [
    (32, 1.3),
    (64, 2.7),
    (128, 5.3),
    (256, 10.3),
    (512, 20.6),
    (1024, 42.2),
    (2048, 81.3),
    (4096, 96.6),
    (8192, 98.3),
    (16384, 99.1),
    (32768, 100.0),
];
/// A single transfer is timed from so many instants, so far apart: together the refresh interval of 3.9 us.
const PHASES: u64 = 60;
const PHASE_NS: u64 = 65;
/// The published time from a semaphore's change to the start of a transfer that waits for it.
const SEMAPHORE_TO_START_NS: f64 = 1300.0;
/// How far a simulated point may be from the curve, in points.
const ROWS_WITHIN: f64 = 3.0;
/// Bytes that a stream at full speed moves, so that the latency of its ends counts for two parts in a thousand, and
/// descriptors of one that does not get there.
const STREAM: u64 = 8 << 20;
const STREAM_DESCS: u64 = 2048;
/// Offset in an HBM stack at which data begins.
const DATA: u64 = 1 << 30;
/// Data of different engines or streams lie so far apart in HBM, and a little more, so that they do not
/// march over the channels in step.
const APART: u64 = (16 << 20) + (4 << 10) + 256;

/// A share of the peak, published and simulated.
fn percent_of_peak(what: &str, values: (f64, f64), bound: Bound) -> Figure {
    Figure::new(what, "% of peak", values, bound)
}

/// The transfer whose latency is published.
fn four_rows(published_ns: f64, simulated: Duration) -> Figure {
    Figure::new(
        "32 KiB HBM to State Buffer in four rows, to its semaphore",
        "ns",
        (published_ns, simulated.as_ns_f64()),
        Bound::Within(3.0),
    )
}

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

    /// Share of the peak that `engines` engines reach, from the doorbells until all is done: the latency of both ends
    /// counts, so that no share can be above 100. `work` fills a machine and returns its bytes.
    fn stream(
        &self,
        engines: u32,
        work: impl Fn(&mut Rig) -> Result<u64, CalibrateError>,
    ) -> Result<f64, CalibrateError> {
        let mut rig = Rig::new(self.config)?;
        let bytes = work(&mut rig)?;
        Ok(self.share(engines, bytes, rig.until_idle()?))
    }

    /// Every figure that is published for the generation.
    pub fn figures(&self) -> Result<Vec<Figure>, CalibrateError> {
        let mut figures = self.single_transfers()?;
        figures.extend(self.streams()?);
        figures.push(self.one_stack()?);
        figures.push(self.host_copy()?);
        Ok(figures)
    }

    /// How long something short takes.
    fn single_transfers(&self) -> Result<Vec<Figure>, CalibrateError> {
        let transfers = self.transfers(TRANSFER, TRANSFER_ROW)?;
        // The latency that is published has no room for a refresh: of the times, the shortest meets none.
        let (transfer, typical) = (transfers[0], transfers[transfers.len() / 2]);
        let mut figures = match self.arch() {
            Arch::V2 => {
                let share = self.share(1, TRANSFER, transfer);
                vec![
                    percent_of_peak(
                        "one transfer of 32 KiB to its semaphore (V2 guide: about 85 %)",
                        (85.0, share),
                        Bound::Within(3.0),
                    ),
                    // The two contradict each other: one of them is held.
                    percent_of_peak(
                        "the same, as 17 B/ns (introduction, table of peaks)",
                        (17.0 / self.peak() * 100.0, share),
                        Bound::Any,
                    ),
                ]
            }
            Arch::V3 => vec![four_rows(TRANSFER_NS_V3, transfer)],
            Arch::V4 => vec![four_rows(TRANSFER_NS_V4, transfer)],
        };
        figures.push(Figure::new(
            "the same, when it meets a refresh: median of 60 starts",
            "ns",
            (transfer.as_ns_f64(), typical.as_ns_f64()),
            Bound::Any,
        ));
        figures.push(Figure::new(
            "semaphore to the first byte of a transfer that waits for it",
            "ns",
            (
                SEMAPHORE_TO_START_NS,
                self.semaphore_to_start()?.as_ns_f64(),
            ),
            // Published with descriptors that software makes; what it contains is not said.
            Bound::Any,
        ));
        figures.push(percent_of_peak(
            "one transfer of 32 bytes to its semaphore: mostly gaps",
            (50.0, self.share(1, 32, self.transfers(32, 32)?[0])),
            Bound::AtMost(50.0),
        ));
        Ok(figures)
    }

    /// The shares of the peak that streams reach.
    fn streams(&self) -> Result<Vec<Figure>, CalibrateError> {
        let mut figures = vec![
            percent_of_peak(
                "copy HBM to HBM, 64 KiB descriptors",
                (100.0, self.copy(LONGEST)?),
                Bound::AtLeast(97.0),
            ),
            percent_of_peak(
                "reduction of two bf16 sources in HBM",
                (50.0, self.reduction()?),
                Bound::Within(3.0),
            ),
        ];
        if self.arch() != Arch::V2 {
            figures.push(percent_of_peak(
                "transpose HBM to State Buffer",
                (90.0, self.transpose(false)?),
                Bound::Within(3.0),
            ));
            figures.push(percent_of_peak(
                "transpose State Buffer to State Buffer",
                (50.0, self.transpose(true)?),
                Bound::Within(3.0),
            ));
        }
        figures.push(percent_of_peak(
            "16 engines HBM to one State Buffer, 64 KiB descriptors",
            (100.0, self.many_to_state_buffer()?),
            Bound::AtLeast(95.0),
        ));
        Ok(figures)
    }

    /// From a semaphore's change until the first byte of a copy is there whose doorbells a sequencer rings on it.
    fn semaphore_to_start(&self) -> Result<Duration, CalibrateError> {
        let mut rig = Rig::new(self.config)?;
        let mut vring = Vring::new(self.arch(), "waits")?;
        let (from, to) = (rig.hbm(0, DATA), rig.state_buffer(0, 0));
        vring.add_desc_transfer_with_barrier(from, to, TRANSFER_ROW, BarrierMode::None)?;
        rig.add(0, 0, &vring)?;
        rig.semaphore_to_first_word(from, to)
    }

    /// The times of something short begun at instants spread over a refresh interval, the shortest first: most of them meet a
    /// refresh of some pseudo-channel.
    fn times(
        &self,
        run: impl Fn(Rig) -> Result<Duration, CalibrateError>,
    ) -> Result<Vec<Duration>, CalibrateError> {
        let mut times = (0..PHASES)
            .map(|n| {
                let mut rig = Rig::new(self.config)?;
                rig.wait(Duration::from_ns(n * PHASE_NS));
                run(rig)
            })
            .collect::<Result<Vec<Duration>, CalibrateError>>()?;
        times.sort();
        Ok(times)
    }

    fn transfers(&self, bytes: u64, row: u64) -> Result<Vec<Duration>, CalibrateError> {
        self.times(|rig| self.transfer(rig, bytes, row))
    }

    /// One transfer from HBM into rows of a State Buffer, and the semaphore write that follows it.
    fn transfer(&self, mut rig: Rig, bytes: u64, row: u64) -> Result<Duration, CalibrateError> {
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

    /// Throughput over the bytes of a row, in percent of that of the longest rows: 16 engines, each fills 8 partitions with
    /// a row each, again and again. On V3 beside the published curve.
    pub fn row_curve(&self) -> Result<Curve, CalibrateError> {
        let shares = ROWS.map(|(bytes, _)| self.rows(bytes));
        let shares = shares.into_iter().collect::<Result<Vec<f64>, _>>()?;
        let longest = shares.last().copied().unwrap_or(100.0);
        let points = ROWS
            .into_iter()
            .zip(shares)
            .map(|((bytes, published), share)| {
                let published = (self.arch() == Arch::V3).then_some(published);
                (bytes, published, share / longest * 100.0)
            });
        Ok(Curve::new("row_bytes", "% of 32768 B", ROWS_WITHIN, points))
    }

    fn rows(&self, bytes: u64) -> Result<f64, CalibrateError> {
        let rows = (STREAM / 8 / bytes).clamp(STREAM_DESCS / 8, STREAM_DESCS);
        self.stream(CORE_ENGINES, |rig| {
            for engine in 0..CORE_ENGINES {
                let mut vring = Vring::new(rig.arch(), "rows")?;
                for n in 0..rows {
                    let offset = DATA + u64::from(engine) * APART;
                    let from = rig.spread(engine, offset + n * bytes);
                    let partition =
                        u64::from(engine) * PARTITIONS_PER_ENGINE + n % PARTITIONS_PER_ENGINE;
                    let to = rig.state_buffer(0, partition);
                    vring.add_desc_transfer_with_barrier(from, to, bytes, BarrierMode::None)?;
                }
                rig.add(engine, 0, &vring)?;
            }
            Ok(u64::from(CORE_ENGINES) * rows * bytes)
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
        let times = (STREAM / bytes).min(STREAM_DESCS);
        self.stream(1, |rig| {
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
        self.stream(1, |rig| {
            let mut vring = Vring::new(rig.arch(), "reduction")?;
            for n in 0..STREAM_DESCS {
                let sources = [0, 1].map(|k| rig.hbm(0, DATA + k * APART + n * bytes));
                let destination = [rig.hbm(1, DATA + n * bytes)];
                let packet = CcePacket::new(&sources, &destination, elements, DType::Bfloat16);
                vring.add_dma_packet_cce(KbinOp::Add, &packet)?;
            }
            rig.add(0, 0, &vring)?;
            Ok(STREAM_DESCS * 2 * bytes)
        })
    }

    /// Tiles of 16 rows and 128 columns of 2 bytes.
    fn transpose(&self, from_state_buffer: bool) -> Result<f64, CalibrateError> {
        let (rows, columns, element) = (16, 128, 2);
        let bytes = rows * columns * element;
        self.stream(1, |rig| {
            let mut vring = Vring::new(rig.arch(), "transpose")?;
            for n in 0..STREAM_DESCS {
                let source = match from_state_buffer {
                    true => Addr(rig.state_buffer(0, n % 128).0 + (64 << 10)),
                    false => rig.hbm(0, DATA + n * bytes),
                };
                let buffer = |at| Buffer { at, len: bytes };
                vring.add_dma_packet_transpose(&TransposePacket {
                    source: buffer(source),
                    destination: buffer(Addr(rig.state_buffer(0, 0).0 + n % 1024 * rows * element)),
                    dims: TransposeDims([1, rows as u16, columns as u16, 1]),
                    element_bytes: element as u32,
                    permutation: Permutation::from_name("WYXZ")
                        .ok_or(TransposeError::Element(0))?,
                })?;
            }
            rig.add(0, 0, &vring)?;
            Ok(STREAM_DESCS * bytes)
        })
    }

    fn many_to_state_buffer(&self) -> Result<f64, CalibrateError> {
        // More than a State Buffer holds: it is filled again and again.
        let times = 32;
        self.stream(CORE_ENGINES, |rig| {
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
        let times = 16;
        let share = self.stream(engines, |rig| {
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
            format!("{engines} engines read one HBM stack: at most its bandwidth"),
            "GB/s",
            (stack, reached),
            Bound::Between(0.75 * stack, stack),
        ))
    }

    /// One descriptor of 64 KiB from host to device, as the driver estimates it.
    fn host_copy(&self) -> Result<Figure, CalibrateError> {
        let times = self.times(|mut rig| {
            let mut vring = Vring::new(self.arch(), "host")?;
            let (from, to) = (rig.host(0), rig.hbm(0, DATA));
            vring.add_desc_transfer_with_barrier(from, to, LONGEST, BarrierMode::None)?;
            rig.add(0, 0, &vring)?;
            rig.until_idle()
        })?;
        let time = times[0];
        // The driver divides by the host path's bandwidth; on V3 the engine is slower than that.
        let host_path = self.config.values.fabric.host.bandwidth.0 as f64 / 1e9;
        let published = LONGEST as f64 / host_path.min(self.peak());
        Ok(Figure::new(
            "one 64 KiB descriptor from host memory, against an estimate without latency",
            "ns",
            (published, time.as_ns_f64()),
            // What latency may add to an estimate without it.
            Bound::Between(published, published + 1000.0),
        ))
    }
}
