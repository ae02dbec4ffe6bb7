//! The ring-cycle driver against a plain reference device, which executes descriptors one by one and
//! checks each against its own count of laps, and against the simulated machine.

mod common;

use common::{MS, Rig, pattern};
use proptest::prelude::*;
use std::collections::BTreeMap;
use udma_sim::arch::regs::Direction;
use udma_sim::arch::{Arch, EngineId};
use udma_sim::host::{
    Bus, BusError, DmaDriver, DriverError, DriverMemory, GUARD_DESCS, MARKER, PollMode, TimedBus,
};
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, WaitOutcome};
use udma_sim::units::Addr;

const TX_RING: u64 = 0x1_0000;
const RX_RING: u64 = 0x2_0000;
const MEMORY: usize = 8 << 20;
/// Host addresses are an alias of the same memory.
const MEMORY_SPAN: usize = 1 << 32;
const COMPLETION: u64 = 0x3_0000;
const DATA: u64 = 0x10_0000;

const M2S_DRTP_INC: u64 = 0x1038;
const S2M_DRTP_INC: u64 = 0x2_1038;

/// Memory, a queue, and a clock. Written from the description of the rings alone.
struct Reference {
    base: u64,
    memory: Vec<u8>,
    registers: BTreeMap<u64, u32>,
    ring_size: u64,
    /// Descriptors announced and executed since the start, per ring.
    announced: [u64; 2],
    executed: u64,
    /// Descriptors executed per µs of sleep; 0 hangs.
    speed: u64,
    slept: Duration,
    sleeps: Vec<Duration>,
    /// What the doorbells said, in order: (M2S, count).
    doorbells: Vec<(bool, u32)>,
    /// The barrier of each descriptor: `W`rite barrier on Tx, strong `O`rder on Rx, `-` none.
    barriers: String,
    most_in_flight: u64,
}

impl Reference {
    fn new(arch: Arch, ring_size: u32, speed: u64) -> Reference {
        Reference {
            base: arch.spec().map.engine_base(EngineId(0)).unwrap().0,
            memory: vec![0; MEMORY],
            registers: BTreeMap::new(),
            ring_size: ring_size.into(),
            announced: [0; 2],
            executed: 0,
            speed,
            slept: Duration::from_ns(0),
            sleeps: Vec::new(),
            doorbells: Vec::new(),
            barriers: String::new(),
            most_in_flight: 0,
        }
    }

    fn words(&self, ring: u64) -> ([u32; 4], u64) {
        let slot = self.executed % self.ring_size;
        let at = (ring + 16 * slot) as usize;
        let word = |n: usize| {
            let bytes = &self.memory[at + 4 * n..at + 4 * n + 4];
            u32::from_le_bytes(bytes.try_into().unwrap())
        };
        let words = [word(0), word(1), word(2), word(3)];
        (words, u64::from(words[3]) << 32 | u64::from(words[2]))
    }

    fn execute(&mut self, count: u64) {
        for _ in 0..count {
            if self.executed == self.announced[0] || self.executed == self.announced[1] {
                return;
            }
            let (tx, src) = self.words(TX_RING);
            let (rx, dst) = self.words(RX_RING);
            let phase = ((1 + self.executed / self.ring_size) % 4) as u32;
            assert_eq!(
                tx[0] >> 24,
                0x0c | phase,
                "FIRST, LAST and the lap of slot {}",
                self.executed
            );
            assert_eq!(rx[0] >> 24 & !0x20, phase);
            assert_eq!((tx[1] & !0x0400_0000, rx[1]), (0x0108_0003, 0));
            assert_eq!(tx[0] & 0xffff, rx[0] & 0xffff);
            let ordered = (tx[1] & 0x0400_0000 != 0, rx[0] & 0x2000_0000 != 0);
            self.barriers.push(match ordered {
                (false, false) => '-',
                (true, false) => 'W',
                (false, true) => 'O',
                (true, true) => panic!("a barrier on both halves"),
            });
            let len = match tx[0] & 0xffff {
                0 => 65536,
                len => len as usize,
            };
            let (src, dst) = (src as usize % MEMORY_SPAN, dst as usize % MEMORY_SPAN);
            self.memory.copy_within(src..src + len, dst);
            self.executed += 1;
        }
    }
}

impl Bus for Reference {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        let at = at.0 as usize;
        out.copy_from_slice(&self.memory[at..at + out.len()]);
        Ok(())
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        let at = at.0 as usize;
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        Ok(self
            .registers
            .get(&(at.0 - self.base))
            .copied()
            .unwrap_or(0))
    }

    fn write_reg(&mut self, at: Addr, value: u32) -> Result<(), BusError> {
        let offset = at.0 - self.base;
        let m2s = offset == M2S_DRTP_INC;
        if m2s || offset == S2M_DRTP_INC {
            self.announced[usize::from(m2s)] += u64::from(value);
            self.doorbells.push((m2s, value));
            if m2s {
                let in_flight = self.announced[1] - self.executed;
                self.most_in_flight = self.most_in_flight.max(in_flight);
            }
        } else if offset == 0x10b0 {
            // The queue's reset strobes.
            (self.announced, self.executed) = ([0; 2], 0);
        }
        self.registers.insert(offset, value);
        Ok(())
    }
}

impl TimedBus for Reference {
    fn sleep(&mut self, time: Duration) {
        self.slept = self.slept + time;
        self.sleeps.push(time);
        self.execute(self.speed * time.as_fs() / Duration::from_ns(1000).as_fs());
    }
}

fn memory(ring_size: u32) -> DriverMemory {
    DriverMemory {
        tx_ring: Addr(TX_RING),
        rx_ring: Addr(RX_RING),
        completion: Addr(COMPLETION),
        ring_size,
    }
}

fn driver(bus: &mut Reference) -> DmaDriver {
    let size = bus.ring_size as u32;
    DmaDriver::init(bus, Arch::V3, EngineId(0), 0, memory(size)).unwrap()
}

fn fill(bus: &mut Reference, at: u64, bytes: &[u8]) {
    bus.write_mem(Addr(at), bytes).unwrap();
}

fn read(bus: &mut Reference, at: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    bus.read_mem(Addr(at), &mut out).unwrap();
    out
}

#[test]
fn thousands_of_laps_of_a_small_ring() {
    let mut bus = Reference::new(Arch::V3, 64, 1000);
    let mut driver = driver(&mut bus);
    let mut staged = 0u64;
    for n in 0u64.. {
        // One to three batches of at most 15 chunks.
        let (size, period) = (1 + n * 7919 % 1000, 1 + n % 37);
        let bytes = pattern(37, n as u8);
        fill(&mut bus, DATA, &bytes);
        let source = (Addr(DATA), period);
        driver
            .memset(
                &mut bus,
                source,
                Addr(DATA + 0x1000),
                size,
                PollMode::Asynchronous,
            )
            .unwrap();
        let got = read(&mut bus, DATA + 0x1000, size as usize);
        let wanted = bytes[..period as usize].iter().cycle();
        assert!(got.iter().eq(wanted.take(size as usize)));
        staged = bus.executed;
        if staged > 3000 * 64 {
            break;
        }
    }
    assert!(staged / 64 >= 3000, "{staged}");
    let cursor = driver.cursor(Direction::M2s);
    assert_eq!(u64::from(cursor.next_desc_idx()), staged % 64);
    assert_eq!(cursor.next_desc_idx(), cursor.next_cdesc_idx());
    assert_eq!(u64::from(cursor.phase().into_bits()), (1 + staged / 64) % 4);
}

#[test]
fn a_batch_is_rx_then_tx_with_the_barrier_on_the_last_data_descriptor() {
    let mut bus = Reference::new(Arch::V3, 4096, 1000);
    let mut driver = driver(&mut bus);
    let bytes = pattern(3 * 65536 + 5, 1);
    fill(&mut bus, DATA, &bytes);
    driver
        .copy(
            &mut bus,
            Addr(DATA),
            Addr(DATA + 0x10_0001),
            bytes.len() as u64,
            PollMode::Synchronous,
        )
        .unwrap();
    assert_eq!(read(&mut bus, DATA + 0x10_0001, bytes.len()), bytes);
    assert_eq!(bus.doorbells, [(false, 5), (true, 5)]);
    assert_eq!(bus.barriers, "---W-");
    let words = read(&mut bus, COMPLETION, 8);
    assert_eq!(words[..4], MARKER.to_le_bytes());
    assert_eq!(words[4..], [0; 4], "the marker is armed again");
    // est = 2 µs * 4, less 1.
    assert_eq!(bus.sleeps, [Duration::from_ns(7000)]);
}

/// Data for HBM and the marker for the host take different ways: at the end of a zero-copy transfer into the device
/// the driver (2.26.5) orders them, by strong order on the marker where there is one, else by a write barrier on
/// the last data descriptor. A transfer to the host needs nothing.
#[test]
fn zero_copy_orders_the_marker_at_the_end_of_a_transfer_into_the_device() {
    for (arch, barriers) in [(Arch::V2, "-W-"), (Arch::V3, "--O"), (Arch::V4, "--O")] {
        let mut bus = Reference::new(arch, 8192, 1_000_000);
        let mut driver = DmaDriver::init(&mut bus, arch, EngineId(0), 0, memory(8192)).unwrap();
        let (from, to) = (Addr(DATA), Addr(DATA + 0x10_0000));
        (driver.copy(&mut bus, from, to, 65537, PollMode::ZeroCopy)).unwrap();
        assert_eq!(bus.barriers, barriers, "{arch}");

        // The address bits above the memory are the host's.
        bus.barriers.clear();
        let to = Addr(arch.spec().map.host.0 | to.0);
        (driver.copy(&mut bus, from, to, 65537, PollMode::ZeroCopy)).unwrap();
        assert_eq!(bus.barriers, "---", "{arch}");
    }

    // Only the last of several batches has one.
    let mut bus = Reference::new(Arch::V3, 8192, 1_000_000);
    let mut driver = driver(&mut bus);
    let to = Addr(DATA + 0x1000);
    (driver.memset(&mut bus, (Addr(DATA), 1), to, 2033, PollMode::ZeroCopy)).unwrap();
    let marker = |(at, barrier)| (barrier == 'O').then_some(at);
    let ordered: Vec<usize> = bus
        .barriers
        .chars()
        .enumerate()
        .filter_map(marker)
        .collect();
    assert_eq!(ordered, [2034]);
}

#[test]
fn a_batch_holds_at_most_2032_data_descriptors() {
    let mut bus = Reference::new(Arch::V3, 8192, 1_000_000);
    let mut driver = driver(&mut bus);
    assert_eq!(driver.max_batch(), 2032);
    for size in [2032, 2033] {
        let pattern = (Addr(DATA), 1);
        let to = Addr(DATA + 0x1000);
        (driver.memset(&mut bus, pattern, to, size, PollMode::Synchronous)).unwrap();
    }
    assert_eq!(
        bus.doorbells,
        [
            (false, 2033),
            (true, 2033),
            (false, 2033),
            (true, 2033),
            (false, 2),
            (true, 2)
        ]
    );
    // A longer ring allows no longer batch, a shorter one half of it.
    for (ring, most) in [(16384, 2032), (4096, 2031)] {
        bus.ring_size = u64::from(ring);
        let driver = DmaDriver::init(&mut bus, Arch::V3, EngineId(0), 0, memory(ring)).unwrap();
        assert_eq!(driver.max_batch(), most);
    }
}

#[test]
fn asynchronous_transfers_keep_two_batches_in_flight() {
    for (mode, most) in [
        (PollMode::Asynchronous, 32),
        (PollMode::SynchronousDevice, 16),
    ] {
        let mut bus = Reference::new(Arch::V3, 64, 1);
        let mut driver = driver(&mut bus);
        driver
            .memset(
                &mut bus,
                (Addr(DATA), 4),
                Addr(DATA + 0x1000),
                4 * 100,
                mode,
            )
            .unwrap();
        assert_eq!(bus.most_in_flight, most, "{mode:?}");
        assert!(bus.most_in_flight <= 64 - u64::from(GUARD_DESCS));
    }
}

#[test]
fn a_full_driver_is_busy_until_someone_waits() {
    let mut bus = Reference::new(Arch::V3, 64, 1000);
    let mut driver = driver(&mut bus);
    let bytes = pattern(1 << 20, 9);
    fill(&mut bus, DATA, &bytes);
    let start = |driver: &mut DmaDriver, bus: &mut Reference, n: u64| {
        let (src, dst) = (
            Addr(DATA + n * 0x1_0000),
            Addr(DATA + 0x20_0000 + n * 0x1_0000),
        );
        driver.start_copy(bus, src, dst, 0x1_0000, PollMode::Asynchronous)
    };
    let first = start(&mut driver, &mut bus, 0).unwrap();
    let second = start(&mut driver, &mut bus, 1).unwrap();
    let third = start(&mut driver, &mut bus, 2);
    assert!(matches!(third, Err(DriverError::Busy { .. })));
    assert_eq!(bus.announced, [4, 4]);
    driver.wait(&mut bus, second).unwrap();
    let third = start(&mut driver, &mut bus, 2).unwrap();
    driver.wait(&mut bus, first).unwrap();
    driver.wait(&mut bus, third).unwrap();
    assert_eq!(
        read(&mut bus, DATA + 0x20_0000, 0x3_0000),
        bytes[..0x3_0000]
    );
    assert_eq!(driver.cursor(Direction::S2m).free(), 48);
}

#[test]
fn a_hanging_device_times_out_and_a_reset_mends_it() {
    let mut bus = Reference::new(Arch::V2, 64, 0);
    let mut driver = DmaDriver::init(&mut bus, Arch::V2, EngineId(0), 0, memory(64)).unwrap();
    fill(&mut bus, DATA, &pattern(64, 3));
    let copy = |driver: &mut DmaDriver, bus: &mut Reference, mode| {
        driver.copy(bus, Addr(DATA), Addr(DATA + 0x1000), 64, mode)
    };
    let refused = copy(&mut driver, &mut bus, PollMode::Synchronous).unwrap_err();
    // est = 4 µs: sleep 1, then (400 - 1) * 100.
    assert_eq!(
        refused.to_string(),
        "e0 queue 0: a batch of 2 descriptors timed out after 39901us; reset the queue"
    );
    let refused = copy(&mut driver, &mut bus, PollMode::Synchronous).unwrap_err();
    assert!(matches!(refused, DriverError::Wedged { .. }));

    driver.reset(&mut bus).unwrap();
    bus.slept = Duration::from_ns(0);
    assert!(copy(&mut driver, &mut bus, PollMode::SynchronousDevice).is_err());
    // 10 µs, then 1/200 of (400 - 10) * 100, a look behind the last sleep included.
    assert_eq!(bus.slept, Duration::from_ns((10 + 195 + 1) * 1000));

    bus.speed = 1000;
    driver.reset(&mut bus).unwrap();
    copy(&mut driver, &mut bus, PollMode::Synchronous).unwrap();
    assert_eq!(read(&mut bus, DATA + 0x1000, 64), pattern(64, 3));
}

#[test]
fn nothing_to_copy_rings_nothing() {
    let mut bus = Reference::new(Arch::V3, 64, 1000);
    let mut driver = driver(&mut bus);
    driver
        .copy(
            &mut bus,
            Addr(DATA),
            Addr(u64::MAX),
            0,
            PollMode::Synchronous,
        )
        .unwrap();
    driver
        .memset(
            &mut bus,
            (Addr(DATA), 4),
            Addr(DATA),
            0,
            PollMode::Synchronous,
        )
        .unwrap();
    assert_eq!((bus.doorbells.len(), bus.sleeps.len()), (0, 0));
}

#[test]
fn requests_that_cannot_be_are_refused() {
    let mut bus = Reference::new(Arch::V3, 64, 1000);
    for size in [32, 48, 96] {
        assert!(matches!(
            DmaDriver::init(&mut bus, Arch::V3, EngineId(0), 0, memory(size)),
            Err(DriverError::Cursor(_))
        ));
    }
    let unaligned = DriverMemory {
        rx_ring: Addr(RX_RING + 64),
        ..memory(64)
    };
    assert!(matches!(
        DmaDriver::init(&mut bus, Arch::V3, EngineId(0), 0, unaligned),
        Err(DriverError::Pring(_))
    ));
    assert!(matches!(
        DmaDriver::init(&mut bus, Arch::V3, EngineId(132), 0, memory(64)),
        Err(DriverError::Queue(_))
    ));
    let mut driver = driver(&mut bus);
    let past = driver.copy(
        &mut bus,
        Addr(DATA),
        Addr(u64::MAX - 2),
        4,
        PollMode::Synchronous,
    );
    assert!(matches!(past, Err(DriverError::PastEnd { size: 4, .. })));
    for bytes in [0, 65537] {
        let refused = driver.memset(
            &mut bus,
            (Addr(DATA), bytes),
            Addr(DATA),
            4,
            PollMode::Synchronous,
        );
        assert!(matches!(refused, Err(DriverError::Pattern(_))));
    }
    assert!(bus.doorbells.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Whatever is asked for in whatever order, memory ends as plain copies would leave it.
    #[test]
    fn copies_are_copies(
        requests in prop::collection::vec((0usize..0x10_0000, 0usize..0x10_0000, 0usize..300_000, 0u8..3), 1..12),
        ring in prop::sample::select(vec![64u32, 128, 4096]),
        speed in 1u64..64,
    ) {
        let mut bus = Reference::new(Arch::V3, ring, speed);
        let mut driver = driver(&mut bus);
        let mut plain = pattern(0x30_0000, 5);
        fill(&mut bus, DATA, &plain);
        for (src, dst, len, mode) in requests {
            let mode = [PollMode::Synchronous, PollMode::Asynchronous, PollMode::Synchronous][usize::from(mode)];
            // The destinations lie above the sources: no copy overlaps itself.
            let dst = 0x18_0000 + dst;
            driver.copy(&mut bus, Addr(DATA + src as u64), Addr(DATA + dst as u64), len as u64, mode).unwrap();
            plain.copy_within(src..src + len, dst);
        }
        let got = read(&mut bus, DATA, plain.len());
        prop_assert!(got == plain);
    }
}

/// The same driver on the simulated machine: host to device and back, small ring, many laps.
#[test]
fn the_machine_runs_the_cycle() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        let host = arch.spec().map.host.0;
        let engine = arch
            .spec()
            .map
            .host_engine(udma_sim::arch::HostEngine::H2d, 0)
            .unwrap();
        let memory = DriverMemory {
            tx_ring: Addr(host + 0x1_0000),
            rx_ring: Addr(host + 0x2_0000),
            completion: Addr(host + 0x3_0004),
            ring_size: 64,
        };
        let mut driver = DmaDriver::init(&mut rig.system, arch, engine, 3, memory).unwrap();
        let bytes = pattern(1 << 20, 7);
        rig.poke(host + 0x10_0001, &bytes);
        // 16 chunks, 2 batches of up to 15, and again: 8 laps in all.
        for round in 0..15u64 {
            let mode = match round % 2 {
                0 => PollMode::Synchronous,
                _ => PollMode::Asynchronous,
            };
            let device = 0x100_0003 + (round << 21);
            let size = bytes.len() as u64 - round;
            driver
                .copy(
                    &mut rig.system,
                    Addr(host + 0x10_0001),
                    Addr(device),
                    size,
                    mode,
                )
                .unwrap();
            driver
                .copy(
                    &mut rig.system,
                    Addr(device),
                    Addr(host + 0x40_0000),
                    size,
                    mode,
                )
                .unwrap();
            assert_eq!(
                rig.peek(host + 0x40_0000, size as usize),
                bytes[..size as usize]
            );
        }
        driver
            .memset(
                &mut rig.system,
                (Addr(host + 0x10_0001), 5),
                Addr(0x800_0000),
                23,
                PollMode::Asynchronous,
            )
            .unwrap();
        let set: Vec<u8> = (0..23).map(|n| bytes[n % 5]).collect();
        assert_eq!(rig.peek(0x800_0000, 23), set);
        let status = rig.system.engine_status(engine).unwrap();
        assert_eq!(status.errors, [], "{arch}");
        assert!(status.counters.tx_descriptors > 8 * 64);
        assert_eq!(rig.system.run_until(&Condition::Idle, MS), WaitOutcome::Met);
    }
}

/// A destination that nothing answers aborts the engine: the marker never comes, and after a reset
/// of driver and engine the queue works again.
#[test]
fn an_aborted_engine_is_a_timeout() {
    let mut rig = Rig::new(Arch::V3);
    let memory = DriverMemory {
        tx_ring: Addr(TX_RING),
        rx_ring: Addr(RX_RING),
        completion: Addr(COMPLETION),
        ring_size: 64,
    };
    let mut driver = DmaDriver::init(&mut rig.system, Arch::V3, EngineId(0), 0, memory).unwrap();
    let nowhere = Addr(0x7_0000_0000);
    let mode = PollMode::SynchronousDevice;
    let refused = driver
        .copy(&mut rig.system, Addr(DATA), nowhere, 64, mode)
        .unwrap_err();
    assert!(matches!(
        refused,
        DriverError::Timeout { descriptors: 2, .. }
    ));
    let status = rig.system.engine_status(EngineId(0)).unwrap();
    assert!(!status.errors.is_empty());
}
