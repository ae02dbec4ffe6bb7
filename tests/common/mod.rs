//! A bare machine for tests of the engine: rings written by hand, registers programmed by hand, no
//! help from the vring stack.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod cli;

use udma_sim::arch::regs::{
    self, ChangeState, Direction, QueueCfg, RateLimitMask, general, global, queue,
};
use udma_sim::arch::{Arch, EngineId, EventBlock, QueueId};
use udma_sim::config::Config;
use udma_sim::desc::{BarrierMode, BuiltPacket, CopyFlags, Descriptor, RingId, build_copy};
use udma_sim::host::{Bus, Pring, QueueOptions, QueuePair, QueueSetup};
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, System, WaitOutcome};
use udma_sim::units::Addr;

pub const MS: Duration = Duration::from_ns(1_000_000);

/// What copies read and where they write unless a test says otherwise: HBM, a MiB each.
pub const SRC: u64 = 0x10_0000;
pub const DST: u64 = 0x20_0000;

/// A config with keys replaced: `("jitter = \"0ns\"", "jitter = \"3us\"")`.
pub fn config(arch: Arch, edits: &[(&str, &str)]) -> Config {
    let base = Config::builtin(arch.spec().code_name).unwrap().unwrap();
    let mut text = base.source;
    for (from, to) in edits {
        assert!(text.contains(from), "{from} is in the config");
        text = text.replacen(from, to, 1);
    }
    Config::parse("edited", &text).unwrap()
}

/// A machine with one queue's rings under construction per (engine, queue).
pub struct Rig {
    pub system: System,
    pub arch: Arch,
    /// What [`Rig::init`] writes to a queue's `rate_limit_mask`: by default it lets DMB work.
    pub mask: RateLimitMask,
}

/// Descriptors of one queue, to be written to its rings.
#[derive(Default, Clone)]
pub struct Program {
    pub tx: Vec<Descriptor>,
    pub rx: Vec<Descriptor>,
}

impl Program {
    /// Packets of one copy each, one behind the other from [`SRC`] to [`DST`].
    pub fn copies(arch: Arch, count: u64, len: u32) -> Program {
        let mut program = Program::default();
        for n in 0..count {
            let at = n * u64::from(len);
            program.copy(arch, SRC + at, DST + at, len, BarrierMode::None);
        }
        program
    }

    pub fn packet(&mut self, built: BuiltPacket) -> &mut Self {
        self.tx.extend(built.tx);
        self.rx.extend(built.rx);
        self
    }

    pub fn copy(
        &mut self,
        arch: Arch,
        src: u64,
        dst: u64,
        len: u32,
        barrier: BarrierMode,
    ) -> &mut Self {
        let (tx, rx) = build_copy(
            arch,
            Addr(src),
            Addr(dst),
            len,
            RingId::FIRST_LAP,
            barrier,
            CopyFlags::default(),
        )
        .unwrap();
        self.tx.push(tx.into());
        self.rx.push(rx.into());
        self
    }

    pub fn inc(&mut self, arch: Arch, semaphore: u32, barrier: BarrierMode) -> &mut Self {
        let map = &arch.spec().map;
        let cell = map.semaphore(0, EventBlock::SEM_INC, semaphore).unwrap();
        self.copy(arch, map.event_set.0, cell.0, 4, barrier)
    }
}

/// Where the rings of a queue lie: high in the first HBM stack, 1 MiB each.
pub fn ring_base(engine: u32, q: u8, direction: Direction) -> Addr {
    let index = u64::from(engine) * 32 + u64::from(q) * 2 + direction as u64;
    Addr((8 << 30) + (index << 20))
}

impl Rig {
    pub fn new(arch: Arch) -> Rig {
        Rig::with(config(arch, &[]), 0)
    }

    pub fn with(config: Config, seed: u64) -> Rig {
        let arch = config.arch();
        Rig {
            system: System::new(config, seed).unwrap(),
            arch,
            mask: RateLimitMask::new().with_internal_pause_dmb(false),
        }
    }

    pub fn reg(&mut self, engine: u32, offset: u64, value: u32) {
        let base = self.arch.spec().map.engine_base(EngineId(engine)).unwrap();
        self.system.write_reg(Addr(base.0 + offset), value).unwrap();
    }

    pub fn read_reg(&mut self, engine: u32, offset: u64) -> u32 {
        let base = self.arch.spec().map.engine_base(EngineId(engine)).unwrap();
        self.system.read_reg(Addr(base.0 + offset)).unwrap()
    }

    /// Has every AXI error detected, as the driver does on V2: elsewhere they abort anyway.
    pub fn detect_axi_errors(&mut self, engine: u32) {
        for word in 0..128 {
            self.reg(engine, regs::GEN + general::AXI_ERROR_1 + 4 * word, 0xf);
        }
    }

    /// Programs both rings of a queue and starts the engine.
    pub fn init(&mut self, engine: u32, q: u8, length: u32) {
        for direction in Direction::ALL {
            let base = ring_base(engine, q, direction);
            for (offset, value) in [
                (queue::DRBP_LOW, base.0 as u32),
                (queue::DRBP_HIGH, (base.0 >> 32) as u32),
                (queue::DRL, length),
                (
                    queue::CFG,
                    QueueCfg::new()
                        .with_en_pref(true)
                        .with_en_scheduling(true)
                        .into_bits(),
                ),
            ] {
                self.reg(engine, direction.queue_reg(QueueId(q), offset), value);
            }
            self.reg(
                engine,
                direction.global_reg(global::CHANGE_STATE),
                ChangeState::new().with_normal(true).into_bits(),
            );
        }
        self.reg(
            engine,
            Direction::M2s.queue_reg(QueueId(q), queue::M2S_RATE_LIMIT_MASK),
            self.mask.into_bits(),
        );
    }

    pub fn write_ring(&mut self, engine: u32, q: u8, direction: Direction, descs: &[Descriptor]) {
        let bytes: Vec<u8> = descs.iter().flat_map(|desc| desc.to_bytes()).collect();
        self.poke(ring_base(engine, q, direction).0, &bytes);
    }

    pub fn doorbell(&mut self, engine: u32, q: u8, direction: Direction, count: u32) {
        self.reg(
            engine,
            direction.queue_reg(QueueId(q), queue::DRTP_INC),
            count,
        );
    }

    /// Writes a program to the rings of a queue, initialises it and rings RX, then TX.
    pub fn start(&mut self, engine: u32, q: u8, program: &Program) {
        let most = program.tx.len().max(program.rx.len()) as u32;
        let length = most
            .next_multiple_of(regs::RING_GRANULE_DESCS)
            .max(regs::RING_MIN_DESCS);
        self.init(engine, q, length);
        self.write_ring(engine, q, Direction::M2s, &program.tx);
        self.write_ring(engine, q, Direction::S2m, &program.rx);
        self.doorbell(engine, q, Direction::S2m, program.rx.len() as u32);
        self.doorbell(engine, q, Direction::M2s, program.tx.len() as u32);
    }

    pub fn poke(&mut self, at: u64, bytes: &[u8]) {
        self.system.write_mem(Addr(at), bytes).unwrap();
    }

    pub fn peek(&mut self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.system.read_mem(Addr(at), &mut bytes).unwrap();
        bytes
    }

    pub fn wait(&mut self, until: Condition) -> WaitOutcome {
        self.system.run_until(&until, MS)
    }

    /// Lets time pass, whatever happens meanwhile.
    pub fn pass(&mut self, time: Duration) {
        self.wait(Condition::Until(self.system.now() + time));
    }

    pub fn idle(&mut self) {
        let outcome = self.wait(Condition::Idle);
        let errors: Vec<String> = (self.system.engines_in_use().into_iter())
            .filter_map(|id| self.system.engine_status(id))
            .flat_map(|status| status.errors)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(outcome, WaitOutcome::Met, "{errors:?}");
    }
}

/// A Tx and an Rx ring of so many descriptors.
pub fn prings(tx: u64, rx: u64, descs: u32) -> (Pring, Pring) {
    let ring = |direction, at| Pring::new(direction, Addr(at), descs).unwrap();
    (ring(Direction::M2s, tx), ring(Direction::S2m, rx))
}

/// A queue with these rings, set up by the host side's driver.
pub fn queue_pair(
    bus: &mut dyn Bus,
    arch: Arch,
    engine: EngineId,
    queue: u32,
    (tx, rx): (&Pring, &Pring),
) -> QueuePair {
    let setup = QueueSetup {
        arch,
        engine,
        queue,
        tx,
        rx,
        options: QueueOptions::default(),
    };
    QueuePair::init(bus, setup).unwrap()
}

/// Bytes that differ from their neighbours and from zero.
pub fn pattern(len: usize, salt: u8) -> Vec<u8> {
    (0..len)
        .map(|n| ((n * 7 + n / 251) as u8).wrapping_add(salt) | 1)
        .collect()
}
