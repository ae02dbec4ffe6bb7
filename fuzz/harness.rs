//! Random use of a device: bytes become register writes, ring contents, doorbells, faults and time.
//!
//! The fuzz target feeds it what the fuzzer invents, `tests/fuzz_device.rs` what a seeded generator
//! does. It checks that every step ends: a panic shows by itself, a step that takes long is one too.

use std::time::{Duration as WallTime, Instant as WallInstant};
use udma_sim::arch::regs::table::{
    Access, GLOBAL, GLOBAL_M2S, GLOBAL_S2M, NOTIFIC, QUEUE, QUEUE_M2S, QUEUE_S2M, Row,
};
use udma_sim::arch::regs::{
    self, ChangeState, Direction, M2sError, QueueCfg, QueueSwCtrl, RingPointer, S2mError, general,
    global, iofic, notific, queue,
};
use udma_sim::arch::{Arch, EngineId, EventBlock, QueueId, UDMA_UNIT_BYTES};
use udma_sim::config::Config;
use udma_sim::desc::Descriptor;
use udma_sim::device::{ErrorBit, Fault, FaultKind, When};
use udma_sim::host::Bus;
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, System};
use udma_sim::units::Addr;

/// Engines and queues in use; few, so that operations meet.
const ENGINES: u32 = 3;
const QUEUES: u8 = 4;
/// Descriptors of a ring's memory.
const RING_SLOTS: u32 = 128;
/// A step that takes longer than this, by the wall clock, hangs.
const MOST_WALL_TIME: WallTime = WallTime::from_secs(20);
/// Simulated time of one step at most, in nanoseconds.
const MOST_NS: u64 = 20_000;
/// Bytes of each area that buffers lie in: a machine fed for ever stays small.
const AREA: u64 = 1 << 16;
/// Offset of a notification queue in the area of a completion ring.
const NOTIFICATIONS: u32 = 1 << 15;
/// Faults injected into one machine at most.
const MOST_FAULTS: u32 = 64;

/// Base words of operations other than plain copies (`docs/hardware.md`, "Op words"), and of CRC.
const OPERATIONS: [u32; 8] = [
    0x0080_0000,
    0x0090_0000,
    0x00a0_0000,
    0x0200_0000,
    0x0210_0000,
    0x0240_0000,
    0x0250_0000,
    0x0110_0000,
];

/// A machine under random use.
pub struct Machine {
    system: System,
    arch: Arch,
    faults: u32,
    /// Operations done so far.
    pub operations: u64,
}

/// Bytes to draw from; at their end there is nothing more to do.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    /// A number below `end`, which is not 0.
    fn below(&mut self, end: u64) -> Option<u64> {
        Some(u64::from(self.u32()?) % end)
    }

    fn direction(&mut self) -> Option<Direction> {
        Some(Direction::ALL[usize::from(self.u8()? & 1)])
    }

    fn queue(&mut self) -> Option<u8> {
        Some(self.u8()? % QUEUES)
    }
}

impl Machine {
    /// A machine fresh from reset.
    pub fn new(arch: Arch, seed: u64) -> Machine {
        let config = Config::builtin(arch.spec().code_name).unwrap().unwrap();
        Machine {
            system: System::new(config, seed).unwrap(),
            arch,
            faults: 0,
            operations: 0,
        }
    }

    /// What two machines that were fed the same have in common: the time and all counts.
    pub fn summary(&self) -> String {
        format!("{:?} {:?}", self.system.now(), self.system.counters())
    }

    /// Does what the bytes say.
    ///
    /// # Panics
    /// If a step takes too long.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut input = Input(bytes);
        loop {
            let began = WallInstant::now();
            let before = input.0.len();
            if self.operation(&mut input).is_none() {
                break;
            }
            self.operations += 1;
            let took = began.elapsed();
            let used = &bytes[bytes.len() - before..][..before - input.0.len()];
            assert!(took < MOST_WALL_TIME, "{used:x?} took {took:?}");
        }
        // Whatever state that left, the machine can be used, and interrupts are taken.
        self.pass(MOST_NS);
        while self.system.take_interrupt().is_some() {}
    }

    fn operation(&mut self, input: &mut Input) -> Option<()> {
        let kind = input.u8()?;
        let engine = u32::from(input.u8()?) % ENGINES;
        match kind % 20 {
            0 | 1 => self.write_known_register(engine, input),
            2 => {
                let offset = input.below(UDMA_UNIT_BYTES / 4)? * 4;
                let value = input.u32()?;
                self.write(engine, offset, self.tame(offset, value));
                Some(())
            }
            3 => self.set_up_queue(engine, input),
            4..=6 => self.work(engine, input),
            7 => self.store_descriptors(engine, input),
            8 => self.store_garbage(engine, input),
            9 => {
                let (direction, q, count) = (input.direction()?, input.queue()?, input.u32()?);
                // Mostly a few, sometimes anything.
                let count = if count >> 28 == 0 { count } else { count % 40 };
                self.write(
                    engine,
                    direction.queue_reg(QueueId(q), queue::DRTP_INC),
                    count,
                );
                Some(())
            }
            10 => {
                let (direction, command) = (input.direction()?, input.u8()?);
                self.write(
                    engine,
                    direction.global_reg(global::CHANGE_STATE),
                    u32::from(command),
                );
                Some(())
            }
            11 => {
                let (direction, q, strobes) = (input.direction()?, input.queue()?, input.u32()?);
                let register = direction.queue_reg(QueueId(q), queue::sw_ctrl(direction));
                self.write(engine, register, strobes & 0x1ff);
                Some(())
            }
            12 => self.recover(engine, input),
            13 => self.use_interrupts(engine, input),
            14 => {
                let offset = input.below(UDMA_UNIT_BYTES / 4)? * 4;
                self.read(engine, offset);
                Some(())
            }
            15 => self.inject(engine, input),
            16 => {
                let block = input.below(2)? as u32;
                let window = [
                    EventBlock::SEM_SET,
                    EventBlock::SEM_INC,
                    EventBlock::SEM_DEC,
                ][input.below(3)? as usize];
                let cell = (self.arch.spec().map).semaphore(block, window, input.u8()?.into());
                let value = input.u32()?.to_le_bytes();
                self.system.write_mem(cell.unwrap(), &value).unwrap();
                Some(())
            }
            17 => {
                let timeout = Duration::from_ns(input.below(MOST_NS)?);
                self.system.run_until(&Condition::Idle, timeout);
                Some(())
            }
            _ => {
                let ns = input.below(MOST_NS)?;
                self.pass(ns);
                Some(())
            }
        }
    }

    fn pass(&mut self, ns: u64) {
        let length = Duration::from_ns(ns);
        let until = Condition::Until(self.system.now() + length);
        self.system.run_until(&until, length);
    }

    fn register(&self, engine: u32, offset: u64) -> Addr {
        Addr(
            self.arch
                .spec()
                .map
                .engine_base(EngineId(engine))
                .unwrap()
                .0
                + offset,
        )
    }

    fn write(&mut self, engine: u32, offset: u64, value: u32) {
        let at = self.register(engine, offset);
        self.system.write_reg(at, value).unwrap();
    }

    fn read(&mut self, engine: u32, offset: u64) -> u32 {
        let at = self.register(engine, offset);
        self.system.read_reg(at).unwrap()
    }

    /// Where a ring, or a completion ring, lies.
    fn ring(engine: u32, q: u8, direction: Direction, completions: bool) -> u64 {
        let index = (u64::from(engine) * u64::from(QUEUES) + u64::from(q)) * 4
            + direction as u64 * 2
            + u64::from(completions);
        (1 << 30) + index * AREA
    }

    /// A value for a register: bases stay in the first MiBs, or point nowhere at all, so that no
    /// completion ring fills the whole of memory in the long run.
    fn tame(&self, offset: u64, value: u32) -> u32 {
        let within = offset % regs::QUEUE_BANK_BYTES;
        match within {
            notific::NQ_BASE_LO | notific::NQ_SIZE if offset > regs::NOTIFIC => value % (4 << 20),
            notific::NQ_BASE_HI if offset > regs::NOTIFIC && !value.is_multiple_of(4) => 0,
            queue::CRBP_LOW | queue::DRBP_LOW => value % (4 << 20),
            queue::CRBP_HIGH | queue::DRBP_HIGH if value.is_multiple_of(4) => 0xffff_0000 | value,
            queue::CRBP_HIGH | queue::DRBP_HIGH => 0,
            _ => value,
        }
    }

    /// A register that exists, with any value.
    fn write_known_register(&mut self, engine: u32, input: &mut Input) -> Option<()> {
        let (direction, q, scope) = (input.direction()?, input.queue()?, input.u8()?);
        let notific = scope & 0x82 == 0x82 && self.arch == Arch::V4;
        let tables: [&[Row]; 2] = match (direction, scope & 1) {
            _ if notific => [NOTIFIC, &[]],
            (Direction::M2s, 0) => [QUEUE, QUEUE_M2S],
            (Direction::S2m, 0) => [QUEUE, QUEUE_S2M],
            (Direction::M2s, _) => [GLOBAL, GLOBAL_M2S],
            (Direction::S2m, _) => [GLOBAL, GLOBAL_S2M],
        };
        let rows = tables
            .into_iter()
            .flatten()
            .filter(|row| row.access != Access::ReadOnly);
        let rows: Vec<&Row> = rows.collect();
        let row = rows[input.below(rows.len() as u64)? as usize];
        let within = row.offset + 4 * input.below(row.words)?;
        let offset = match scope & 1 {
            _ if notific => regs::NOTIFIC + within,
            0 => direction.queue_reg(QueueId(q), within),
            _ => direction.global_reg(within),
        };
        // Small values reach more than large ones, and the reset value mends what others broke.
        let value = match input.u8()? % 4 {
            0 => row.reset.value(self.arch.spec()),
            1 => u32::from(input.u8()?),
            2 => 1 << input.below(32)?,
            _ => input.u32()?,
        };
        self.write(engine, offset, self.tame(offset, value));
        Some(())
    }

    /// A queue as a driver sets it up, with some of it left to chance.
    fn set_up_queue(&mut self, engine: u32, input: &mut Input) -> Option<()> {
        let (q, options) = (input.queue()?, input.u8()?);
        let length = 16 * input.below(u64::from(RING_SLOTS) / 16 + 1)? as u32;
        if options & 8 == 0 {
            self.restore(engine);
        }
        for direction in Direction::ALL {
            let mut set =
                |within, value| self.write(engine, direction.queue_reg(QueueId(q), within), value);
            set(
                queue::sw_ctrl(direction),
                QueueSwCtrl::new().with_rst_q(true).into_bits(),
            );
            set(
                queue::DRBP_LOW,
                Self::ring(engine, q, direction, false) as u32,
            );
            set(queue::DRBP_HIGH, 0);
            set(queue::DRL, length);
            let records = options & 1 << direction as u32 != 0;
            set(
                queue::CRBP_LOW,
                Self::ring(engine, q, direction, true) as u32,
            );
            set(queue::CRBP_HIGH, 0);
            let together = u32::from(options & 0x20) >> 4;
            set(queue::comp_cfg(direction), u32::from(records) | together);
            let cfg = QueueCfg::new().with_en_pref(true).with_en_scheduling(true);
            set(queue::CFG, cfg.into_bits());
            // Without the masks, the first bad descriptor ends the engine's part in all this.
            let mask = if options & 4 == 0 { u32::MAX } else { 0 };
            self.write(engine, direction.global_reg(global::ERR_LOG_MASK), mask);
            let run = ChangeState::new().with_normal(true).into_bits();
            self.write(engine, direction.global_reg(global::CHANGE_STATE), run);
        }
        if self.arch == Arch::V4 && options & 2 != 0 {
            // A short queue, which the engine can fill.
            let at = Self::ring(engine, q, Direction::M2s, true) as u32 + NOTIFICATIONS;
            self.write(engine, regs::NOTIFIC + notific::NQ_BASE_LO, at);
            self.write(engine, regs::NOTIFIC + notific::NQ_SIZE, 128);
        }
        let mask = u32::from(options >> 4);
        self.write(
            engine,
            Direction::M2s.queue_reg(QueueId(q), queue::M2S_RATE_LIMIT_MASK),
            mask,
        );
        Some(())
    }

    /// Every register of an engine as it came out of reset, and the engine stopped: else one that
    /// random writes have made useless stays so.
    fn restore(&mut self, engine: u32) {
        let spec = self.arch.spec();
        let holds = |row: &&Row| row.access == Access::ReadWrite && row.since <= spec.arch;
        let resets = |tables: [&'static [Row]; 2]| {
            let rows = tables.into_iter().flatten().filter(holds);
            rows.flat_map(|row| {
                (0..row.words).map(|word| (row.offset + 4 * word, row.reset.value(spec)))
            })
            .collect::<Vec<_>>()
        };
        for direction in Direction::ALL {
            let (globals, queues) = match direction {
                Direction::M2s => ([GLOBAL, GLOBAL_M2S], [QUEUE, QUEUE_M2S]),
                Direction::S2m => ([GLOBAL, GLOBAL_S2M], [QUEUE, QUEUE_S2M]),
            };
            for (within, value) in resets(globals) {
                self.write(engine, direction.global_reg(within), value);
            }
            for q in 0..QUEUES {
                for (within, value) in resets(queues) {
                    self.write(engine, direction.queue_reg(QueueId(q), within), value);
                }
            }
            for (within, value) in resets([NOTIFIC, &[]]) {
                self.write(engine, regs::NOTIFIC + within, value);
            }
            let stop = ChangeState::new().with_dis(true).into_bits();
            self.write(engine, direction.global_reg(global::CHANGE_STATE), stop);
        }
    }

    /// Descriptors where the tails are, then both doorbells.
    fn work(&mut self, engine: u32, input: &mut Input) -> Option<()> {
        let q = input.queue()?;
        for direction in Direction::ALL {
            let tail = self.read(engine, direction.queue_reg(QueueId(q), queue::DRTP));
            let tail = RingPointer::from_bits(tail);
            let length = self
                .read(engine, direction.queue_reg(QueueId(q), queue::DRL))
                .max(1);
            let count = 1 + input.u8()? % 24;
            for n in 0..u32::from(count) {
                let slot = (tail.index() + n) % length;
                let lap = tail.ring_id() + u8::from(tail.index() + n >= length);
                self.store_descriptor(engine, q, direction, slot, lap, input)?;
            }
        }
        let (tx, rx) = (u32::from(input.u8()? % 24), u32::from(input.u8()? % 24));
        self.write(
            engine,
            Direction::S2m.queue_reg(QueueId(q), queue::DRTP_INC),
            rx,
        );
        self.write(
            engine,
            Direction::M2s.queue_reg(QueueId(q), queue::DRTP_INC),
            tx,
        );
        Some(())
    }

    fn store_descriptors(&mut self, engine: u32, input: &mut Input) -> Option<()> {
        let (direction, q) = (input.direction()?, input.queue()?);
        let (first, lap, count) = (input.u8()?, input.u8()?, input.u8()? % 64);
        for n in 0..u32::from(count) {
            let slot = u32::from(first) + n;
            self.store_descriptor(engine, q, direction, slot, lap, input)?;
        }
        Some(())
    }

    /// A descriptor that is mostly right: a short buffer that exists, a packet of its own.
    fn store_descriptor(
        &mut self,
        engine: u32,
        q: u8,
        direction: Direction,
        slot: u32,
        lap: u8,
        input: &mut Input,
    ) -> Option<()> {
        let (shape, flags) = (input.u8()?, input.u8()?);
        let len = match shape & 7 {
            0 => input.u32()? & 0xffff,
            1..=3 => 4,
            _ => u32::from(input.u8()?) * 8 + 4,
        };
        // FIRST and LAST, or any flags and META.
        let whole = match shape & 0x38 {
            0 => u32::from(flags) << 24 | u32::from(shape & 0x40) << 17,
            _ => 0x0c00_0000,
        };
        let barriers = u32::from(flags & 0x70) << 24;
        let mut word = match direction {
            Direction::M2s => len | whole | barriers & 0x5000_0000,
            Direction::S2m => len | barriers & 0x7000_0000,
        };
        if shape & 0xc0 != 0xc0 {
            word = word & !(3 << 24) | u32::from(lap & 3) << 24;
        }
        let second = match direction {
            Direction::M2s if shape & 0xf0 == 0x30 => input.u32()?,
            Direction::M2s if shape & 0xf0 == 0x10 => {
                OPERATIONS[usize::from(flags) % OPERATIONS.len()] | input.u32()? & 0xf_ffff
            }
            Direction::M2s => 0x0108_0003 | u32::from(flags & 1) << 26 | u32::from(flags & 2) << 27,
            Direction::S2m => 0,
        };
        let at = self.buffer(input)?;
        let desc = Descriptor {
            words: [word, second, at as u32, (at >> 32) as u32],
        };
        self.store(engine, q, direction, slot, &desc.to_bytes());
        Some(())
    }

    /// An address that a descriptor may name: mostly memory of some kind.
    fn buffer(&mut self, input: &mut Input) -> Option<u64> {
        let map = &self.arch.spec().map;
        let (kind, offset) = (input.u8()?, input.u32()?);
        let within = u64::from(offset) % AREA;
        Some(match kind % 16 {
            0..=6 => map.hbm[usize::from(kind) % 2].base.0 + within,
            7 | 8 => map.host.0 + within,
            9 => map.tpb[0].0 + within,
            10 => map.semaphore(0, EventBlock::SEM_INC, offset % 256)?.0,
            11 => map.event_set.0,
            12 => {
                self.register(offset % ENGINES, within * 4 % UDMA_UNIT_BYTES)
                    .0
            }
            13 => {
                Self::ring(offset % ENGINES, kind >> 4 & 3, Direction::M2s, false) + within % 2048
            }
            // The end of a stack, and anything.
            14 => map.hbm[0].base.0 + map.hbm[0].populated - within % 256,
            _ => u64::from(offset) << 32 | u64::from(offset),
        })
    }

    fn store_garbage(&mut self, engine: u32, input: &mut Input) -> Option<()> {
        let (direction, q, slot) = (input.direction()?, input.queue()?, input.u8()?);
        let count = usize::from(input.u8()?).min(input.0.len());
        let (garbage, rest) = input.0.split_at(count);
        input.0 = rest;
        self.store(engine, q, direction, slot.into(), garbage);
        Some(())
    }

    fn store(&mut self, engine: u32, q: u8, direction: Direction, slot: u32, bytes: &[u8]) {
        let slot = u64::from(slot % RING_SLOTS);
        let at = Self::ring(engine, q, direction, false) + slot * 16;
        self.system.write_mem(Addr(at), bytes).unwrap();
    }

    /// The way back from an abort, with or without what should be done on it.
    fn recover(&mut self, engine: u32, input: &mut Input) -> Option<()> {
        let what = input.u8()?;
        for direction in Direction::ALL {
            let state = direction.global_reg(global::CHANGE_STATE);
            self.write(engine, state, ChangeState::new().with_dis(true).into_bits());
            for q in (0..QUEUES).filter(|q| what >> q & 1 == 1) {
                let reset = QueueSwCtrl::new().with_rst_q(true).into_bits();
                self.write(
                    engine,
                    direction.queue_reg(QueueId(q), queue::sw_ctrl(direction)),
                    reset,
                );
            }
            self.write(
                engine,
                state,
                ChangeState::new().with_normal(true).into_bits(),
            );
        }
        let errors = regs::GEN + general::IOFIC_SECONDARY;
        for group in 0..general::IOFIC_SECONDARY_GROUPS {
            self.write(
                engine,
                errors + group * iofic::GROUP_BYTES + iofic::CAUSE,
                0,
            );
        }
        Some(())
    }

    fn use_interrupts(&mut self, engine: u32, input: &mut Input) -> Option<()> {
        let group = input.below(general::IOFIC_MAIN_GROUPS + 2)?;
        let base = match group.checked_sub(general::IOFIC_MAIN_GROUPS) {
            None => general::IOFIC_MAIN + group * iofic::GROUP_BYTES,
            Some(errors) => general::IOFIC_SECONDARY + errors * iofic::GROUP_BYTES,
        };
        let register = input.below(iofic::GROUP_BYTES / 4)? * 4;
        self.write(engine, regs::GEN + base + register, input.u32()?);
        self.system.take_interrupt();
        Some(())
    }

    fn inject(&mut self, engine: u32, input: &mut Input) -> Option<()> {
        let (queue, nth, detail) = (input.queue()?, input.u8()?, input.u32()?);
        let direction = Direction::ALL[(detail & 1) as usize];
        let kind = match input.u8()? % 10 {
            0 => FaultKind::FetchError(direction),
            1 => FaultKind::FlipDescriptor {
                direction,
                bit: detail as u8,
            },
            2 => FaultKind::ReadError,
            3 => FaultKind::LostRead,
            4 => FaultKind::FlipData { bit: detail },
            5 => FaultKind::WriteError,
            6 => FaultKind::LostAck,
            7 => FaultKind::LateAck(Duration::from_ns(u64::from(detail) % MOST_NS)),
            // Nothing frees it: only now and then.
            8 if detail & 0xff == 0 => FaultKind::StuckQueue,
            _ => FaultKind::Report(match direction {
                Direction::M2s => ErrorBit::M2s(pick(M2sError::ALL, detail)),
                Direction::S2m => ErrorBit::S2m(pick(S2mError::ALL, detail)),
            }),
        };
        // Armed faults are kept until they strike: only so many.
        if self.faults < MOST_FAULTS {
            self.faults += 1;
            let when = When::Nth(nth.into());
            let fault = Fault {
                engine: EngineId(engine),
                queue: QueueId(queue),
                kind,
                when,
            };
            self.system.inject(fault).unwrap();
        }
        Some(())
    }
}

fn pick<T: Copy>(all: &[T], n: u32) -> T {
    all[n as usize % all.len()]
}
