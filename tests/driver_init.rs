//! The register writes of the public kernel driver's initialisation, replayed on a fresh device, then what the driver
//! does with its queues: copies of all sizes, many laps, memset, the marker, a refused address, the way back, a queue
//! set up again while it works.
//!
//! `tests/driver_init/` holds the writes as they were recorded from a run of the driver (2.26.5) on the C interface:
//! offsets in a UDMA unit, or device addresses for what lies outside, with the values, in order.

mod common;

use common::{MS, Rig, pattern};
use udma_sim::arch::regs::{
    ChangeState, Direction, QueueCfg, QueueSwCtrl, RingPointer, UdmaState, global, queue,
};
use udma_sim::arch::{Arch, EngineId, HostEngine, QueueId};
use udma_sim::desc::{BarrierMode, CopyFlags, Descriptor, RingId, build_copy};
use udma_sim::host::{Bus, MARKER};
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, WaitOutcome};
use udma_sim::units::Addr;

use Direction::{M2s, S2m};

/// Where the rings are, in host memory as the driver has them, and the marker's two words.
const TX_RING: u64 = 0x10_0000;
const RX_RING: u64 = 0x20_0000;
const MARKER_WORDS: u64 = 0x30_0000;
/// Host memory that is copied, and device memory.
const HOST_DATA: u64 = 0x100_0000;
const DEVICE_DATA: u64 = 0x200_0000;
const DEVICE_COPY: u64 = 0x800_0000;
const QUEUE: u8 = 0;

/// The engines that the driver initialises alike.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Core,
    Host,
}

const ALL: [(Arch, Kind); 6] = [
    (Arch::V2, Kind::Core),
    (Arch::V2, Kind::Host),
    (Arch::V3, Kind::Core),
    (Arch::V3, Kind::Host),
    (Arch::V4, Kind::Core),
    (Arch::V4, Kind::Host),
];

/// The writes of a file: what is written to, and the value with its names resolved.
fn writes(text: &str, names: &[(&str, u32)]) -> Vec<(u64, u32)> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    words
        .filter(|words| !words.is_empty())
        .map(|words| {
            let [at, value] = words[..] else {
                panic!("{words:?}");
            };
            let named = names.iter().find(|(name, _)| *name == value);
            let value = match named {
                Some((_, value)) => *value,
                None => u32::from_str_radix(value, 16).unwrap(),
            };
            (u64::from_str_radix(at, 16).unwrap(), value)
        })
        .collect()
}

/// A driver's view of one queue after the initialisation.
struct Driver {
    rig: Rig,
    host: u64,
    engine: EngineId,
    length: u32,
    /// Descriptors staged and rung since the queue was set up.
    staged: u64,
    rung: u64,
}

impl Driver {
    /// A fresh device on which the driver's writes have been replayed.
    fn init(arch: Arch, kind: Kind) -> Driver {
        let rig = Rig::new(arch);
        let map = &arch.spec().map;
        let engine = match kind {
            Kind::Core => EngineId(0),
            Kind::Host => map.host_engine(HostEngine::H2d, 0).unwrap(),
        };
        let mut driver = Driver {
            rig,
            host: map.host.0,
            engine,
            length: 0,
            staged: 0,
            rung: 0,
        };
        let text = match (arch, kind) {
            (Arch::V2, Kind::Core) => include_str!("driver_init/v2-core.txt"),
            (Arch::V2, Kind::Host) => include_str!("driver_init/v2-host.txt"),
            (Arch::V3, Kind::Core) => include_str!("driver_init/v3-core.txt"),
            (Arch::V3, Kind::Host) => include_str!("driver_init/v3-host.txt"),
            (Arch::V4, Kind::Core) => include_str!("driver_init/v4-core.txt"),
            (Arch::V4, Kind::Host) => include_str!("driver_init/v4-host.txt"),
        };
        let [tx, rx] = [TX_RING, RX_RING].map(|at| driver.host + at);
        let names = [
            ("TX_LO", tx as u32),
            ("TX_HI", (tx >> 32) as u32),
            ("RX_LO", rx as u32),
            ("RX_HI", (rx >> 32) as u32),
        ];
        for (offset, value) in writes(text, &names) {
            driver.write(offset, value);
            if offset == M2s.queue_reg(QueueId(QUEUE), queue::DRL) {
                driver.length = value;
            }
        }
        driver
    }

    fn arch(&self) -> Arch {
        self.rig.arch
    }

    fn write(&mut self, offset: u64, value: u32) {
        self.rig.reg(self.engine.0, offset, value);
    }

    fn read(&mut self, offset: u64) -> u32 {
        self.rig.read_reg(self.engine.0, offset)
    }

    /// Puts a copy of at most 64 KiB into the rings.
    fn stage(&mut self, from: u64, to: u64, len: u32, barrier: BarrierMode) {
        let lap = self.staged / u64::from(self.length) % 4;
        let phase = (0..lap).fold(RingId::FIRST_LAP, |id, _| id.next());
        let slot = self.staged % u64::from(self.length) * 16;
        let (from, to) = (Addr(from), Addr(to));
        let flags = CopyFlags::default();
        let (tx, rx) = build_copy(self.arch(), from, to, len, phase, barrier, flags).unwrap();
        for (ring, desc) in [(TX_RING, Descriptor::from(tx)), (RX_RING, rx.into())] {
            self.rig.poke(self.host + ring + slot, &desc.to_bytes());
        }
        self.staged += 1;
    }

    /// Ends a batch with the marker and rings for it.
    fn start(&mut self) {
        let words = self.host + MARKER_WORDS;
        let armed = [MARKER.to_le_bytes(), [0; 4]].concat();
        self.rig.poke(words, &armed);
        self.stage(words, words + 4, 4, BarrierMode::None);
        let count = (self.staged - self.rung) as u32;
        self.rung = self.staged;
        self.write(S2m.queue_reg(QueueId(QUEUE), queue::DRTP_INC), count);
        self.write(M2s.queue_reg(QueueId(QUEUE), queue::DRTP_INC), count);
    }

    fn wait(&mut self) -> WaitOutcome {
        let word = Condition::Word {
            at: Addr(self.host + MARKER_WORDS + 4),
            value: MARKER,
        };
        self.rig
            .system
            .run_until(&word, Duration::from_ns(20_000_000))
    }

    /// Copies in batches, as the driver does: the last data descriptor of a batch has a write barrier.
    fn copy(&mut self, from: u64, to: u64, len: u64) {
        let most = u64::from(self.length) / 2 - 17;
        let mut at = 0;
        while at < len {
            let batch = (len - at).min(most * 65536);
            let end = at + batch;
            while at < end {
                let chunk = (end - at).min(65536);
                let last = at + chunk == end;
                let barrier = if last {
                    BarrierMode::WriteBarrier
                } else {
                    BarrierMode::None
                };
                self.stage(from + at, to + at, chunk as u32, barrier);
                at += chunk;
            }
            self.start();
            let (arch, engine) = (self.arch(), self.engine);
            assert_eq!(self.wait(), WaitOutcome::Met, "{arch} {engine}");
        }
    }

    fn no_errors(&self) {
        let status = self.rig.system.engine_status(self.engine).unwrap();
        assert_eq!(status.causes, [0; 2], "{} {:?}", self.arch(), status.errors);
    }

    /// What the driver does to a queue: off, `rst_q`, bases, length, on; first Tx, then Rx.
    fn set_up_queue(&mut self) {
        for (direction, ring) in [(M2s, TX_RING), (S2m, RX_RING)] {
            let at = |register| direction.queue_reg(QueueId(QUEUE), register);
            let base = self.host + ring;
            let reset = QueueSwCtrl::new().with_rst_q(true).into_bits();
            let off = QueueCfg::new();
            let on = off.with_en_pref(true).with_en_scheduling(true);
            for (register, value) in [
                (queue::CFG, off.into_bits()),
                (queue::sw_ctrl(direction), reset),
                (queue::DRBP_LOW, base as u32),
                (queue::DRBP_HIGH, (base >> 32) as u32),
                (queue::DRL, self.length),
                (queue::comp_cfg(direction), 0),
                (queue::CFG, on.into_bits()),
            ] {
                self.write(at(register), value);
            }
        }
        (self.staged, self.rung) = (0, 0);
    }
}

/// Copies of every size between host and device, within the device, and back.
#[test]
fn copies_of_all_sizes() {
    for (arch, kind) in ALL {
        let mut driver = Driver::init(arch, kind);
        let data = pattern(16 << 20, 9);
        let host = driver.host + HOST_DATA;
        driver.rig.poke(host, &data);
        for len in [
            1,
            2,
            3,
            4,
            63,
            64,
            255,
            4096,
            65535,
            65536,
            65537,
            1 << 20,
            16 << 20,
        ] {
            driver.copy(host, DEVICE_DATA, len);
            driver.copy(DEVICE_DATA, DEVICE_COPY + 1, len);
            let back = host + (32 << 20);
            driver.copy(DEVICE_COPY + 1, back, len);
            for at in [DEVICE_DATA, DEVICE_COPY + 1, back] {
                let found = driver.rig.peek(at, len as usize);
                assert!(
                    found == data[..len as usize],
                    "{arch} {kind:?}: {len} bytes at {at:#x}"
                );
            }
        }
        driver.no_errors();
    }
}

/// Many laps of the ring, and the completion head that counts descriptors without a completion ring.
#[test]
fn many_laps_and_the_completion_head() {
    for (arch, kind) in ALL {
        let mut driver = Driver::init(arch, kind);
        let data = pattern(64 << 10, 4);
        let host = driver.host + HOST_DATA;
        driver.rig.poke(host, &data);
        let laps = if driver.length > 2000 { 3 } else { 9 };
        let batch = u64::from(driver.length) / 4;
        for round in 0..4 * laps {
            for n in 0..batch {
                let at = (n * 16 + round * 64) % 0x8000;
                driver.stage(host + at, DEVICE_DATA + n * 16, 16, BarrierMode::None);
            }
            driver.start();
            assert_eq!(driver.wait(), WaitOutcome::Met, "{arch} {kind:?}");
            driver.rig.idle();
            for direction in Direction::ALL {
                let head = driver.read(direction.queue_reg(QueueId(QUEUE), queue::CRHP));
                let done = driver.staged % u64::from(driver.length);
                let index = RingPointer::from_bits(head).index();
                assert_eq!(u64::from(index), done, "{arch} {kind:?} {direction:?}");
            }
        }
        let last = 4 * laps - 1;
        for n in 0..batch {
            let at = ((n * 16 + last * 64) % 0x8000) as usize;
            let found = driver.rig.peek(DEVICE_DATA + n * 16, 16);
            assert_eq!(found, data[at..at + 16], "{arch} {kind:?} {n}");
        }
        driver.no_errors();
    }
}

/// A memset: one source, many destinations.
#[test]
fn memset() {
    for (arch, kind) in ALL {
        let mut driver = Driver::init(arch, kind);
        let host = driver.host + HOST_DATA;
        driver.rig.poke(host, &[0xa5; 65536]);
        let size = 1_000_001u64;
        for at in (0..size).step_by(65536) {
            let len = (size - at).min(65536) as u32;
            driver.stage(host, DEVICE_DATA + at, len, BarrierMode::None);
        }
        driver.start();
        assert_eq!(driver.wait(), WaitOutcome::Met, "{arch} {kind:?}");
        driver.rig.idle();
        let found = driver.rig.peek(DEVICE_DATA, size as usize + 1);
        assert!(
            found[..size as usize].iter().all(|byte| *byte == 0xa5),
            "{arch} {kind:?}"
        );
        assert_eq!(found[size as usize], 0);
    }
}

/// An address that nothing answers aborts the engine; no message reaches the host, since the driver masks those of the
/// groups of errors. Disabled, reset and running again, the queue copies.
#[test]
fn a_refused_address_and_the_way_back() {
    for (arch, kind) in ALL {
        let mut driver = Driver::init(arch, kind);
        let data = pattern(3 << 20, 2);
        let host = driver.host + HOST_DATA;
        driver.rig.poke(host, &data);
        driver.stage(host, 0xffff_0000_0000_0000, 4096, BarrierMode::None);
        driver.start();
        let outcome = driver.wait();
        assert!(
            matches!(outcome, WaitOutcome::Stuck(_)),
            "{arch} {kind:?}: {outcome:?}"
        );
        let status = driver.rig.system.engine_status(driver.engine).unwrap();
        assert_eq!(status.states, [UdmaState::Abort; 2], "{arch} {kind:?}");
        assert_eq!(driver.rig.system.take_interrupt(), None, "{arch} {kind:?}");
        let command = |dis: bool| {
            ChangeState::new()
                .with_dis(dis)
                .with_normal(!dis)
                .into_bits()
        };
        for direction in Direction::ALL {
            driver.write(direction.global_reg(global::CHANGE_STATE), command(true));
        }
        driver.set_up_queue();
        for direction in Direction::ALL {
            driver.write(direction.global_reg(global::CHANGE_STATE), command(false));
        }
        driver.copy(host, DEVICE_DATA, data.len() as u64);
        assert!(
            driver.rig.peek(DEVICE_DATA, data.len()) == data,
            "{arch} {kind:?}"
        );
    }
}

/// The queue is set up again while it copies, without a change of state, at many points of its work.
#[test]
fn a_queue_is_set_up_again_under_work() {
    for (arch, kind) in ALL {
        let mut driver = Driver::init(arch, kind);
        let data = pattern(1 << 20, 6);
        let host = driver.host + HOST_DATA;
        driver.rig.poke(host, &data);
        for ns in (100..8000).step_by(611) {
            driver.rig.poke(DEVICE_COPY, &vec![0; data.len()]);
            for n in 0..16 {
                let at = n << 16;
                driver.stage(host + at, DEVICE_DATA + at, 65536, BarrierMode::None);
            }
            driver.start();
            driver.rig.pass(Duration::from_ns(ns));
            driver.set_up_queue();
            driver.copy(host, DEVICE_COPY, data.len() as u64);
            let what = format!("{arch} {kind:?} after {ns} ns");
            assert!(driver.rig.peek(DEVICE_COPY, data.len()) == data, "{what}");
            driver.no_errors();
        }
        let status = driver.rig.system.engine_status(driver.engine).unwrap();
        assert!(!status.busy_changes.is_empty(), "{arch} {kind:?}");
    }
}

/// What the driver writes outside of the units: registers that hold their values, and are listed.
#[test]
fn registers_beside_the_units_hold_what_is_written() {
    for (arch, text) in [
        (Arch::V2, include_str!("driver_init/v2-device.txt")),
        (Arch::V3, include_str!("driver_init/v3-device.txt")),
        (Arch::V4, include_str!("driver_init/v3-device.txt")),
    ] {
        let mut rig = Rig::new(arch);
        let names = [("NQ_LO", 0x5000), ("NQ_HI", 0x4000)];
        let mut last = std::collections::BTreeMap::new();
        for (at, value) in writes(text, &names) {
            rig.system.write_reg(Addr(at), value).unwrap();
            last.insert(at, value);
        }
        rig.pass(MS);
        for (at, value) in &last {
            assert_eq!(rig.system.read_reg(Addr(*at)), Ok(*value), "{arch} {at:#x}");
        }
        let listed = rig.system.unmodelled_registers();
        for register in &listed {
            assert_eq!(
                Some(&register.value),
                last.get(&register.at.0),
                "{}",
                register.name
            );
            assert_eq!(register.reads, 1, "{}", register.name);
            assert!(!register.name.is_empty());
        }
        // V4 has the notification queues of its engines.
        let modelled = last.len() - listed.len();
        assert_eq!(
            modelled,
            if arch == Arch::V4 { 16 * 3 } else { 0 },
            "{arch}"
        );
        // Outside of every block it is an error.
        for at in [0xffff_0000_0000_0000, 0x9_0000_0000_0000] {
            assert!(rig.system.write_reg(Addr(at), 0).is_err());
        }
    }
}
