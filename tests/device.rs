//! Registers, queue life, errors and interrupts, as a driver meets them.

mod common;

use common::{MS, Program, Rig, pattern};
use udma_sim::arch::regs::{
    self, ChangeState, Direction, QueueSwCtrl, UdmaState, UdmaStateReg, general, global, iofic,
    queue,
};
use udma_sim::arch::{Arch, EngineId, UDMA_UNIT_BYTES};
use udma_sim::desc::BarrierMode;
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, WaitOutcome};

const SRC: u64 = 0x10_0000;
const DST: u64 = 0x20_0000;

const ERROR_GROUPS: u64 = regs::GEN + general::IOFIC_SECONDARY;

/// Offset of a register of a main interrupt group.
fn main_group(n: u64, register: u64) -> u64 {
    regs::GEN + n * iofic::GROUP_BYTES + register
}

fn copies(arch: Arch, count: u64, len: u32) -> Program {
    let mut program = Program::default();
    for n in 0..count {
        let at = n * u64::from(len);
        program.copy(arch, SRC + at, DST + at, len, BarrierMode::None);
    }
    program
}

#[test]
fn every_offset_can_be_read_and_written() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        for offset in (0..UDMA_UNIT_BYTES).step_by(4) {
            rig.reg(0, offset, 0xffff_ffff);
        }
        rig.idle();
        // Past the last queue's bank nothing answers.
        assert_eq!(rig.read_reg(0, 0x1_1000), 0);
        // The driver's writes to registers that nothing models read back.
        rig.reg(0, regs::GEN + general::AXI_CFG_1, 100_000_000);
        assert_eq!(rig.read_reg(0, regs::GEN + general::AXI_CFG_1), 100_000_000);
        // Base registers keep what was written, the ring uses the address bits.
        let base = Direction::M2s.queue_reg(2, queue::DRBP_LOW);
        assert_eq!(rig.read_reg(0, base), 0xffff_ffff);
    }
}

#[test]
fn the_error_log_holds_the_descriptor_until_it_is_cleared() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    rig.reg(0, Direction::M2s.global_reg(global::ERR_LOG_MASK), u32::MAX);
    let mut program = copies(arch, 3, 64);
    program.tx[1].words[3] = 0xffff_0000;
    program.tx[2].words[3] = 0xfffe_0000;
    rig.start(0, 0, &program);
    rig.idle();
    let log = |rig: &mut Rig| {
        [0, 4, 8, 12].map(|word| rig.read_reg(0, Direction::M2s.global_reg(global::ERR_LOG + word)))
    };
    assert_eq!(log(&mut rig), program.tx[1].words);
    rig.reg(0, Direction::M2s.global_reg(global::ERR_LOG_CLEAR), 1);
    assert_eq!(log(&mut rig), [0; 4]);
}

/// The way from an error to the host: error group, main group D, main group A, a message.
#[test]
fn an_error_interrupts_through_the_funnel() {
    let arch = Arch::V2;
    let mut rig = Rig::new(arch);
    let s2m_errors = ERROR_GROUPS + iofic::GROUP_BYTES;
    // Unmask the S2M data response error, then bit 9 of D, then bit 2 of A.
    rig.reg(0, s2m_errors + iofic::MASK_CLEAR, !(1 << 1));
    rig.reg(0, main_group(3, iofic::MASK_CLEAR), !(1 << 9));
    rig.reg(0, main_group(0, iofic::MASK_CLEAR), !(1 << 2));
    let mut program = copies(arch, 1, 64);
    program.rx[0].words[3] = 0xffff_0000;
    rig.start(0, 0, &program);
    assert_eq!(rig.wait(Condition::Interrupt), WaitOutcome::Met);
    let first = rig.system.take_interrupt().unwrap();
    let second = rig.system.take_interrupt().unwrap();
    assert_eq!((first.group, second.group), (0, 3));
    assert_eq!(rig.system.take_interrupt(), None);
    assert_eq!(rig.read_reg(0, main_group(0, iofic::CAUSE)), 1 << 2);
    assert_eq!(rig.read_reg(0, main_group(3, iofic::STATUS)), 1 << 9);
    assert_eq!(rig.read_reg(0, s2m_errors + iofic::CAUSE), 1 << 1);
    // Clearing the error clears the funnel: writing 1s keeps, 0s clear.
    rig.reg(0, s2m_errors + iofic::CAUSE, !(1 << 1));
    assert_eq!(rig.read_reg(0, main_group(0, iofic::CAUSE)), 0);
    assert_eq!(rig.read_reg(0, s2m_errors + iofic::CAUSE), 0);
}

#[test]
fn int_en_interrupts_on_completion_once_until_cleared() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    rig.reg(0, main_group(1, iofic::MASK), !(1 << 4));
    rig.reg(0, main_group(2, iofic::MASK), !(1 << 4));
    let mut program = copies(arch, 6, 64);
    for n in [1, 3] {
        program.tx[n].words[0] |= 1 << 28;
    }
    program.rx[5].words[0] |= 1 << 28;
    rig.start(0, 4, &program);
    rig.idle();
    // Two Tx completions while the cause stays set: one message.
    let groups: Vec<u8> = std::iter::from_fn(|| rig.system.take_interrupt())
        .map(|interrupt| interrupt.group)
        .collect();
    assert_eq!(groups, [2, 1]);
    assert_eq!(rig.read_reg(0, main_group(2, iofic::CAUSE)), 1 << 4);
    // Group A is masked, so the summary stays silent; software can set causes.
    rig.reg(0, main_group(2, iofic::CAUSE), 0);
    rig.reg(0, main_group(2, iofic::CAUSE_SET), 1 << 4);
    assert_eq!(rig.wait(Condition::Interrupt), WaitOutcome::Met);
}

#[test]
fn auto_mask_auto_clear_and_clear_on_read() {
    let arch = Arch::V3;
    for (control, cause, mask) in [(0u32, 1, 0), (1 << 1, 1, 1), (1 << 2, 0, 0)] {
        let mut rig = Rig::new(arch);
        rig.reg(0, main_group(5, iofic::MASK), 0);
        rig.reg(0, main_group(5, iofic::CONTROL), control);
        rig.reg(0, main_group(5, iofic::CAUSE_SET), 1);
        assert_eq!(rig.wait(Condition::Interrupt), WaitOutcome::Met);
        assert_eq!(
            rig.read_reg(0, main_group(5, iofic::CAUSE)),
            cause,
            "{control}"
        );
        assert_eq!(
            rig.read_reg(0, main_group(5, iofic::MASK)),
            mask,
            "{control}"
        );
    }
    let mut rig = Rig::new(arch);
    rig.reg(0, main_group(5, iofic::CONTROL), 1);
    rig.reg(0, main_group(5, iofic::CAUSE_SET), 3);
    assert_eq!(rig.read_reg(0, main_group(5, iofic::CAUSE)), 3);
    assert_eq!(rig.read_reg(0, main_group(5, iofic::CAUSE)), 0);
}

fn state(rig: &mut Rig, direction: Direction) -> [UdmaState; 2] {
    let value = rig.read_reg(0, direction.global_reg(global::STATE));
    let state = UdmaStateReg::from_bits(value);
    [state.desc_pref(), state.data()]
}

fn command(rig: &mut Rig, command: ChangeState) {
    for direction in Direction::ALL {
        rig.reg(
            0,
            direction.global_reg(global::CHANGE_STATE),
            command.into_bits(),
        );
    }
}

/// Abort, disable, reset the queues, normal: the engine works again.
#[test]
fn an_aborted_engine_recovers() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        rig.poke(SRC, &pattern(3 * 4096, 1));
        let good = copies(arch, 3, 4096);
        let mut bad = good.clone();
        bad.rx[1].words[3] = 0xffff_0000;
        rig.start(0, 0, &bad);
        rig.start(0, 1, &good);
        rig.wait(Condition::Until(rig.system.now() + MS));
        for direction in Direction::ALL {
            assert_eq!(state(&mut rig, direction), [UdmaState::Abort; 2]);
        }
        // Normal alone does not lift an abort.
        command(&mut rig, ChangeState::new().with_normal(true));
        assert_eq!(state(&mut rig, Direction::M2s), [UdmaState::Abort; 2]);
        command(&mut rig, ChangeState::new().with_dis(true));
        assert_eq!(state(&mut rig, Direction::M2s), [UdmaState::Idle; 2]);
        rig.reg(0, ERROR_GROUPS + iofic::GROUP_BYTES + iofic::CAUSE, 0);
        let reset = QueueSwCtrl::new().with_rst_q(true).into_bits();
        for q in 0..2 {
            for direction in Direction::ALL {
                rig.reg(0, direction.queue_reg(q, queue::sw_ctrl(direction)), reset);
            }
        }
        rig.poke(DST, &[0; 3 * 4096]);
        rig.start(0, 0, &good);
        rig.idle();
        assert!(rig.peek(DST, 3 * 4096) == pattern(3 * 4096, 1), "{arch}");
        let status = rig.system.engine_status(EngineId(0)).unwrap();
        assert_eq!(status.causes, [0, 0]);
    }
}

/// A disabled engine drains the packets it has begun, keeps the rest, and goes on when enabled.
#[test]
fn disable_drains_and_enable_goes_on() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    let data = pattern(8 * 65536, 2);
    rig.poke(SRC, &data);
    let far = 0x40_0000;
    let mut program = Program::default();
    for n in 0..8u64 {
        program.copy(
            arch,
            SRC + n * 65536,
            far + n * 65536,
            65536,
            BarrierMode::None,
        );
    }
    rig.start(0, 0, &program);
    let during = rig.system.now() + Duration::from_ns(4_000);
    rig.wait(Condition::Until(during));
    rig.reg(
        0,
        Direction::M2s.global_reg(global::CHANGE_STATE),
        ChangeState::new().with_dis(true).into_bits(),
    );
    assert_eq!(
        state(&mut rig, Direction::M2s),
        [UdmaState::Idle, UdmaState::Normal]
    );
    let WaitOutcome::Stuck(_) = rig.wait(Condition::Idle) else {
        panic!("a disabled engine with work left is stuck");
    };
    assert_eq!(state(&mut rig, Direction::M2s), [UdmaState::Idle; 2]);
    let done = rig.system.counters().packets;
    assert!((1..8).contains(&done), "{done}");
    assert_eq!(rig.system.counters().bytes_written, done * 65536);
    command(&mut rig, ChangeState::new().with_normal(true));
    rig.idle();
    assert_eq!(rig.system.counters().packets, 8);
    assert!(rig.peek(far, data.len()) == data);
}

#[test]
fn statistics_count_what_was_done() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    rig.start(0, 0, &copies(arch, 5, 1000));
    rig.idle();
    let words = |rig: &mut Rig, direction: Direction| {
        (0..8)
            .map(|n| rig.read_reg(0, direction.global_reg(global::STATISTICS + 4 * n)))
            .collect::<Vec<_>>()
    };
    assert_eq!(words(&mut rig, Direction::M2s), [0, 5, 5000, 0, 5, 5, 5, 5]);
    assert_eq!(words(&mut rig, Direction::S2m), [0, 0, 5000, 0, 5, 5, 5, 5]);
}

#[test]
fn a_full_v3_device_comes_up_and_idles_at_no_cost() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    let program = copies(arch, 1, 64);
    for engine in 0..arch.spec().limits.engines() {
        for q in 0..16 {
            rig.start(engine, q, &program);
        }
    }
    rig.idle();
    let counters = rig.system.counters();
    assert_eq!(counters.packets, 132 * 16);
    // Nothing is left that could happen: the machine does not tick.
    let before = rig.system.now();
    let WaitOutcome::Stuck(waiters) = rig.wait(Condition::Interrupt) else {
        panic!("an idle machine has events");
    };
    assert!(waiters.is_empty());
    assert!(rig.system.now() - before < Duration::from_ns(1_000));
}
