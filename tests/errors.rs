//! Every error bit that bad input reaches, provoked: the log, both masks, the abort, the interrupt, and the
//! way back. The bits that no input reaches are in `tests/faults.rs`; `docs/device.md` lists which is
//! which.

mod common;

use common::{DST, MS, Program, Rig, SRC, pattern};
use std::collections::BTreeSet;
use udma_sim::arch::regs::{
    self, ChangeState, CompCfg, DescPrefCfg2, Direction, M2sError, QueueSwCtrl, S2mError,
    UdmaState, general, global, iofic, queue,
};
use udma_sim::arch::{Arch, EngineId, QueueId};
use udma_sim::desc::{BarrierMode, Descriptor};
use udma_sim::device::ErrorBit;
use udma_sim::sim::Duration;
use udma_sim::system::Condition;
use udma_sim::units::Addr;

use Direction::{M2s, S2m};

/// Descriptors of the rings.
const LENGTH: u32 = 256;
const FIRST: u32 = 1 << 26;
const LAST: u32 = 1 << 27;
/// High word of an address at which nothing answers.
const NOWHERE: u32 = 0xffff_0000;
/// An AXI timeout in cycles that HBM keeps, also when it refreshes, and how much longer host memory takes.
const BETWEEN: u32 = 600;
const LONGER: Duration = Duration::from_ns(1_000);

/// What is about to run.
struct Scene {
    rig: Rig,
    program: Program,
    /// Where the rings are, and how many descriptors the doorbells announce, if not as usual.
    rings: [Option<u64>; 2],
    rx_count: Option<u32>,
    /// Registers to be set back afterwards.
    undo: Vec<(u64, u32)>,
}

impl Scene {
    fn set(&mut self, register: u64, value: u32) {
        self.undo.push((register, self.rig.read_reg(0, register)));
        self.rig.reg(0, register, value);
    }

    fn host(&self) -> u64 {
        self.rig.arch.spec().map.host.0
    }

    /// An AXI timeout that host memory does not keep.
    fn axi_timeout(&mut self) {
        self.rig.system.slow_down(Addr(self.host()), LONGER);
        self.set(regs::GEN + general::AXI_CFG_1, BETWEEN);
    }

    /// One copy of 64 bytes and nothing else.
    fn one_copy(&mut self, from: u64, to: u64) {
        self.program = Program::default();
        let arch = self.rig.arch;
        self.program.copy(arch, from, to, 64, BarrierMode::None);
    }

    /// Lets data wait for an Rx descriptor, so many cycles until M2S and S2M report it.
    fn starve(&mut self, timeouts: [u32; 2]) {
        for (direction, cycles) in Direction::ALL.into_iter().zip(timeouts) {
            let timeout = global::comp_ack_timeout(direction);
            self.set(direction.global_reg(timeout), cycles);
        }
        self.rx_count = Some(0);
    }

    /// Moves a ring.
    fn ring_at(&mut self, direction: Direction, at: u64) {
        self.rings[direction as usize] = Some(at);
        let base = |offset| direction.queue_reg(QueueId(0), offset);
        self.rig.reg(0, base(queue::DRBP_LOW), at as u32);
        self.rig.reg(0, base(queue::DRBP_HIGH), (at >> 32) as u32);
    }

    /// A completion ring.
    fn completions_at(&mut self, direction: Direction, at: u64) {
        let register = |offset| direction.queue_reg(QueueId(0), offset);
        self.set(register(queue::CRBP_LOW), at as u32);
        self.set(register(queue::CRBP_HIGH), (at >> 32) as u32);
        let on = CompCfg::new().with_en_comp_ring_update(true).into_bits();
        self.set(register(queue::comp_cfg(direction)), on);
    }
}

/// Which descriptor the error log holds.
#[derive(Clone, Copy)]
enum Log {
    Tx(usize),
    Rx(usize),
    Zeros,
}

struct Case {
    what: &'static str,
    bit: ErrorBit,
    log: Log,
    prepare: fn(&mut Scene),
    /// Done to the running machine.
    meddle: fn(&mut Rig),
}

const fn m2s(what: &'static str, error: M2sError, log: Log, prepare: fn(&mut Scene)) -> Case {
    case(what, ErrorBit::M2s(error), log, prepare)
}

const fn s2m(what: &'static str, error: S2mError, log: Log, prepare: fn(&mut Scene)) -> Case {
    case(what, ErrorBit::S2m(error), log, prepare)
}

const fn case(what: &'static str, bit: ErrorBit, log: Log, prepare: fn(&mut Scene)) -> Case {
    Case {
        what,
        bit,
        log,
        prepare,
        meddle: |_| (),
    }
}

/// Each begins with three copies of 4 KiB, a packet each.
const CASES: &[Case] = &[
    Case {
        meddle: |rig| {
            // When its first bytes have landed.
            let first = Condition::Word {
                at: Addr(DST),
                value: u32::from_le_bytes(rig.peek(SRC, 4).try_into().unwrap_or_default()),
            };
            rig.wait(first);
            let reset = QueueSwCtrl::new().with_rst_q(true).into_bits();
            rig.reg(0, S2m.queue_reg(QueueId(0), queue::S2M_SW_CTRL), reset);
            rig.pass(Duration::from_ns(1_000));
            rig.doorbell(0, 0, S2m, 1);
        },
        ..m2s(
            "the Rx ring reset under a packet",
            M2sError::CompPktMismatch,
            Log::Zeros,
            |scene| {
                scene.program = Program::default();
                let arch = scene.rig.arch;
                scene.program.copy(arch, SRC, DST, 65536, BarrierMode::None);
            },
        )
    },
    m2s(
        "a checksum that is not the expected one",
        M2sError::StreamParity,
        Log::Tx(1),
        |scene| {
            // CRC-32C, validated and copied: exclusive-ors, initial value, expected value, data.
            let word = 0x0120_0003 | 0x8_4000;
            let data = |len, at: u64| [0x0100_0000 | len, word, at as u32, 0];
            let tx = [
                [0x0180_0000 | FIRST, 0, u32::MAX, u32::MAX],
                data(4, 0x5_0000),
                data(4, 0x6_0000),
                data(64 | LAST, SRC),
            ];
            scene.program.tx = tx.map(|words| Descriptor { words }).to_vec();
        },
    ),
    m2s(
        "an operation that there is not",
        M2sError::StreamResponse,
        Log::Tx(1),
        |scene| scene.program.tx[1].words[1] = 0x0280_0000,
    ),
    m2s(
        "no Rx descriptor, and M2S does not wait",
        M2sError::StreamTimeout,
        Log::Zeros,
        |scene| scene.starve([1000, 0]),
    ),
    m2s(
        "completion records at no memory",
        M2sError::CompResponse,
        Log::Zeros,
        |scene| scene.completions_at(M2s, u64::from(NOWHERE) << 32),
    ),
    m2s(
        "completion records on a way that takes longer than the AXI timeout",
        M2sError::CompTimeout,
        Log::Zeros,
        |scene| {
            scene.one_copy(SRC, DST);
            scene.completions_at(M2s, scene.host());
            scene.axi_timeout();
        },
    ),
    m2s(
        "a source at no memory",
        M2sError::DataResponse,
        Log::Tx(1),
        |scene| scene.program.tx[1].words[3] = NOWHERE,
    ),
    m2s(
        "a source in a hole of the State Buffer",
        M2sError::DataResponse,
        Log::Tx(2),
        |scene| {
            let hole = scene.rig.arch.spec().map.tpb[0].0 + 0x3_c000;
            let words = &mut scene.program.tx[2].words;
            (words[2], words[3]) = (hole as u32, (hole >> 32) as u32);
        },
    ),
    m2s(
        "a source that takes longer than the AXI timeout",
        M2sError::DataTimeout,
        Log::Tx(0),
        |scene| {
            scene.one_copy(scene.host(), DST);
            scene.axi_timeout();
        },
    ),
    m2s(
        "a Tx ring at no memory",
        M2sError::PrefetchResponse,
        Log::Zeros,
        |scene| scene.set(M2s.queue_reg(QueueId(0), queue::DRBP_HIGH), NOWHERE),
    ),
    m2s(
        "a Tx ring that takes longer than the AXI timeout",
        M2sError::PrefetchTimeout,
        Log::Zeros,
        |scene| {
            scene.one_copy(SRC, DST);
            scene.ring_at(M2s, scene.host());
            scene.axi_timeout();
        },
    ),
    m2s(
        "a packet of more bytes than the register allows",
        M2sError::PktLenOverflow,
        Log::Tx(0),
        |scene| scene.set(M2s.global_reg(global::M2S_CFG_LEN), 4095),
    ),
    m2s(
        "a length of 0 where that does not mean 65536",
        M2sError::PktLenOverflow,
        Log::Tx(1),
        |scene| {
            scene.set(M2s.global_reg(global::M2S_CFG_LEN), 0xf_ffff);
            scene.program.tx[1].words[0] &= !0xffff;
        },
    ),
    m2s(
        "a packet of more descriptors than the register allows",
        M2sError::MaxDescCount,
        Log::Tx(2),
        |scene| {
            let most = DescPrefCfg2::new().with_max_desc_per_pkt(2).into_bits();
            scene.set(M2s.global_reg(global::DESC_PREF_CFG_2), most);
            let tx = &mut scene.program.tx;
            tx[0].words[0] &= !LAST;
            tx[1].words[0] &= !(FIRST | LAST);
            tx[2].words[0] &= !FIRST;
        },
    ),
    m2s(
        "FIRST inside a packet",
        M2sError::First,
        Log::Tx(1),
        |scene| scene.program.tx[0].words[0] &= !LAST,
    ),
    m2s(
        "a descriptor without FIRST outside a packet",
        M2sError::Last,
        Log::Tx(1),
        |scene| scene.program.tx[1].words[0] &= !FIRST,
    ),
    m2s(
        "a Tx descriptor of another lap",
        M2sError::RingId,
        Log::Tx(1),
        |scene| scene.program.tx[1].words[0] ^= 3 << 24,
    ),
    s2m(
        "a destination at no memory",
        S2mError::DataResponse,
        Log::Rx(1),
        |scene| scene.program.rx[1].words[3] = NOWHERE,
    ),
    s2m(
        "a destination that can only be read",
        S2mError::DataResponse,
        Log::Rx(0),
        |scene| {
            let constant = scene.rig.arch.spec().map.event_clear.0;
            scene.program = Program::default();
            let arch = scene.rig.arch;
            (scene.program).copy(arch, SRC, constant, 4, BarrierMode::None);
        },
    ),
    s2m(
        "a destination that takes longer than the AXI timeout",
        S2mError::DataTimeout,
        Log::Rx(0),
        |scene| {
            scene.one_copy(SRC, scene.host());
            scene.axi_timeout();
        },
    ),
    s2m(
        "no Rx descriptor, and S2M does not wait",
        S2mError::NoDescTimeout,
        Log::Zeros,
        |scene| scene.starve([0, 1000]),
    ),
    s2m(
        "no Rx descriptor",
        S2mError::NoDescHint,
        Log::Zeros,
        |scene| scene.starve([0, 0]),
    ),
    s2m(
        "an Rx ring at no memory",
        S2mError::PrefetchResponse,
        Log::Zeros,
        |scene| scene.set(S2m.queue_reg(QueueId(0), queue::DRBP_HIGH), NOWHERE),
    ),
    s2m(
        "an Rx ring that takes longer than the AXI timeout",
        S2mError::PrefetchTimeout,
        Log::Zeros,
        |scene| {
            scene.one_copy(SRC, DST);
            scene.ring_at(S2m, scene.host());
            scene.axi_timeout();
        },
    ),
    s2m(
        "an Rx descriptor of another lap",
        S2mError::RingId,
        Log::Rx(1),
        |scene| scene.program.rx[1].words[0] ^= 3 << 24,
    ),
    s2m(
        "a packet of too many Rx descriptors",
        S2mError::PrefetchSaturate,
        // The one after the last that is allowed: the log is looked at on V3, which allows 60.
        Log::Rx(60),
        |scene| {
            let arch = scene.rig.arch;
            let most = arch.spec().limits.rx_descs_per_packet;
            scene.program = Program::default();
            let len = 16 * (most + 2);
            scene.program.copy(arch, SRC, DST, len, BarrierMode::None);
            let mut pieces = Program::default();
            for n in 0..u64::from(most + 2) {
                pieces.copy(arch, SRC, DST + 16 * n, 16, BarrierMode::None);
            }
            scene.program.rx = pieces.rx;
        },
    ),
    s2m(
        "completion records at no memory",
        S2mError::CompResponse,
        Log::Zeros,
        |scene| scene.completions_at(S2m, u64::from(NOWHERE) << 32),
    ),
    s2m(
        "completion records on a way that takes longer than the AXI timeout",
        S2mError::CompTimeout,
        Log::Zeros,
        |scene| {
            scene.one_copy(SRC, DST);
            scene.completions_at(S2m, scene.host());
            scene.axi_timeout();
        },
    ),
];

/// How the error is masked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mask {
    None,
    /// By `err_log_mask` of the halves.
    Half,
    /// By `abort_mask` of the error groups.
    Group,
}

/// Offset of a register of the error group of a half.
fn group(direction: Direction, register: u64) -> u64 {
    regs::GEN + general::IOFIC_SECONDARY + direction as u64 * iofic::GROUP_BYTES + register
}

/// Runs a case; the machine is left as the error left it.
fn provoke(case: &Case, arch: Arch, mask: Mask) -> Scene {
    let mut scene = Scene {
        rig: Rig::new(arch),
        program: Program::default(),
        rings: [None; 2],
        rx_count: None,
        undo: Vec::new(),
    };
    for n in 0..3 {
        let to = DST + n * 0x1000;
        scene.program.copy(arch, SRC, to, 4096, BarrierMode::None);
    }
    let rig = &mut scene.rig;
    rig.detect_axi_errors(0);
    rig.poke(SRC, &pattern(65536, 5));
    // The way of the interrupt: the bit, then the half's bit in group D, then D's in A.
    let half = case.bit.direction();
    rig.reg(0, group(half, iofic::MASK_CLEAR), !case.bit.mask());
    for (n, bits) in [(3, 3 << 8), (0, 1 << 2)] {
        let register = regs::GEN + n * iofic::GROUP_BYTES + iofic::MASK_CLEAR;
        rig.reg(0, register, !bits);
    }
    for direction in Direction::ALL {
        let register = match mask {
            Mask::None => continue,
            Mask::Half => direction.global_reg(global::ERR_LOG_MASK),
            Mask::Group => group(direction, iofic::ABORT_MASK),
        };
        rig.reg(0, register, u32::MAX);
    }
    rig.init(0, 0, LENGTH);
    (case.prepare)(&mut scene);
    let (tx, rx) = (scene.program.tx.clone(), scene.program.rx.clone());
    for (direction, descs) in [(S2m, &rx), (M2s, &tx)] {
        match scene.rings[direction as usize] {
            None => scene.rig.write_ring(0, 0, direction, descs),
            Some(at) => {
                let bytes: Vec<u8> = descs.iter().flat_map(|desc| desc.to_bytes()).collect();
                scene.rig.poke(at, &bytes);
            }
        }
    }
    let rig = &mut scene.rig;
    rig.doorbell(0, 0, S2m, scene.rx_count.unwrap_or(rx.len() as u32));
    rig.doorbell(0, 0, M2s, tx.len() as u32);
    (case.meddle)(rig);
    rig.pass(MS);
    scene
}

/// A hint is told and never fatal.
fn is_fatal(bit: ErrorBit) -> bool {
    bit != ErrorBit::S2m(S2mError::NoDescHint)
}

#[test]
fn an_error_sets_its_bit_logs_its_descriptor_and_interrupts() {
    for (case, arch) in CASES
        .iter()
        .flat_map(|case| Arch::ALL.map(|arch| (case, arch)))
    {
        let mut scene = provoke(case, arch, Mask::None);
        let what = format!("{:?} by {} on {arch}", case.bit, case.what);
        let rig = &mut scene.rig;
        let status = rig.system.engine_status(EngineId(0)).unwrap();
        let half = case.bit.direction();
        // A waiting packet is hinted at too.
        let causes = status.causes;
        let hint = S2mError::NoDescHint.mask();
        let alone = [causes[0], causes[1] & !hint];
        let mut expected = [0, 0];
        expected[half as usize] = case.bit.mask() & if is_fatal(case.bit) { !0 } else { !hint };
        assert_eq!(alone, expected, "{what}: {:?}", status.errors);
        assert_ne!(causes[half as usize] & case.bit.mask(), 0, "{what}");
        assert_eq!(
            rig.read_reg(0, group(half, iofic::CAUSE)),
            causes[half as usize]
        );
        let state = if is_fatal(case.bit) {
            UdmaState::Abort
        } else {
            UdmaState::Normal
        };
        assert_eq!(status.states, [state; 2], "{what}");
        let interrupts = std::iter::from_fn(|| rig.system.take_interrupt());
        let groups: BTreeSet<u8> = interrupts.map(|interrupt| interrupt.group).collect();
        assert_eq!(groups, BTreeSet::from([0, 3]), "{what}");
        let words =
            [0, 4, 8, 12].map(|word| rig.read_reg(0, half.global_reg(global::ERR_LOG + word)));
        let logged = match case.log {
            Log::Tx(n) => scene.program.tx[n].words,
            Log::Rx(60) => {
                let most = arch.spec().limits.rx_descs_per_packet;
                scene.program.rx[most as usize].words
            }
            Log::Rx(n) => scene.program.rx[n].words,
            Log::Zeros => [0; 4],
        };
        assert_eq!(words, logged, "{what}");
    }
}

#[test]
fn a_masked_error_aborts_nothing() {
    for (case, arch) in CASES
        .iter()
        .flat_map(|case| Arch::ALL.map(|arch| (case, arch)))
    {
        for mask in [Mask::Half, Mask::Group] {
            let scene = provoke(case, arch, mask);
            let status = scene.rig.system.engine_status(EngineId(0)).unwrap();
            let what = format!("{:?} by {} on {arch}, {mask:?}", case.bit, case.what);
            let half = case.bit.direction() as usize;
            assert_ne!(status.causes[half] & case.bit.mask(), 0, "{what}");
            assert_eq!(status.states, [UdmaState::Normal; 2], "{what}");
            assert!(status.errors.iter().all(|error| !error.fatal), "{what}");
        }
    }
}

/// Whatever went wrong: what was wrong is put right, the engine disabled, its queue reset, causes and logs
/// cleared, the engine enabled; then it copies as if nothing had been.
#[test]
fn every_error_can_be_recovered_from() {
    for (case, arch) in CASES
        .iter()
        .flat_map(|case| Arch::ALL.map(|arch| (case, arch)))
    {
        let scene = provoke(case, arch, Mask::None);
        let what = format!("{:?} by {} on {arch}", case.bit, case.what);
        let mut rig = scene.rig;
        for (register, value) in scene.undo.into_iter().rev() {
            rig.reg(0, register, value);
        }
        // What a hint left waiting is dropped by an abort on command.
        let abort = ChangeState::new().with_abort(true);
        for command in [abort, ChangeState::new().with_dis(true)] {
            for direction in Direction::ALL {
                let register = direction.global_reg(global::CHANGE_STATE);
                rig.reg(0, register, command.into_bits());
            }
        }
        for direction in Direction::ALL {
            rig.reg(0, group(direction, iofic::CAUSE), 0);
            rig.reg(0, direction.global_reg(global::ERR_LOG_CLEAR), 1);
            let reset = QueueSwCtrl::new().with_rst_q(true).into_bits();
            rig.reg(
                0,
                direction.queue_reg(QueueId(0), queue::sw_ctrl(direction)),
                reset,
            );
        }
        let mut good = Program::default();
        for n in 0..20 {
            let at = n * 3000;
            good.copy(arch, SRC + at, DST + at, 3000, BarrierMode::Dmb);
        }
        rig.poke(DST, &[0; 60_000]);
        rig.start(0, 0, &good);
        rig.idle();
        let expected = &pattern(65536, 5)[..60_000];
        assert!(rig.peek(DST, 60_000) == expected, "{what}");
        let status = rig.system.engine_status(EngineId(0)).unwrap();
        assert_eq!(
            (status.causes, status.states),
            ([0; 2], [UdmaState::Normal; 2]),
            "{what}"
        );
        let log = M2s.global_reg(global::ERR_LOG);
        assert_eq!(rig.read_reg(0, log), 0, "{what}");
    }
}

/// The cases are all the bits that `docs/device.md` says input can raise.
#[test]
fn the_cases_are_all_that_the_documentation_lists() {
    let text = std::fs::read_to_string("docs/device.md").unwrap();
    let listed = |table: &str| -> BTreeSet<u32> {
        let (_, rest) = text.split_once(&format!("<!-- table {table} -->")).unwrap();
        let (rows, _) = rest.split_once("<!-- end").unwrap();
        let rows = rows
            .lines()
            .filter(|row| !row.contains("an injected fault only"));
        rows.filter_map(|row| row.split('|').nth(1)?.trim().parse().ok())
            .collect()
    };
    for (direction, table) in [(M2s, "errors-m2s"), (S2m, "errors-s2m")] {
        let of_half = CASES
            .iter()
            .filter(|case| case.bit.direction() == direction);
        let provoked: BTreeSet<u32> = of_half.map(|case| case.bit.mask().ilog2()).collect();
        assert_eq!(provoked, listed(table), "{table}");
    }
}
