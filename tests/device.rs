//! Registers, queue life, errors and interrupts, as a driver meets them.

mod common;

use common::{DST, MS, Program, Rig, SRC, config, pattern};
use udma_sim::arch::regs::{
    self, CfgLen, ChangeState, DescPrefCfg3, Direction, OutstandingM2s, QueueSwCtrl, StreamCfg,
    UdmaState, UdmaStateReg, general, global, iofic, queue,
};
use udma_sim::arch::{Arch, EngineId, QueueId};
use udma_sim::desc::BarrierMode;
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, WaitOutcome};

const ERROR_GROUPS: u64 = regs::GEN + general::IOFIC_SECONDARY;

/// Offset of a register of a main interrupt group.
fn main_group(n: u64, register: u64) -> u64 {
    regs::GEN + n * iofic::GROUP_BYTES + register
}

#[test]
fn every_offset_can_be_read_and_written() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        for offset in (0..arch.spec().map.engine_window).step_by(4) {
            rig.reg(0, offset, 0xffff_ffff);
        }
        rig.idle();
        // What nothing models reads back, past the last queue's bank too.
        assert_eq!(rig.read_reg(0, 0x1_1000), 0xffff_ffff);
        rig.reg(0, regs::GEN + general::AXI_CFG_1, 100_000_000);
        assert_eq!(rig.read_reg(0, regs::GEN + general::AXI_CFG_1), 100_000_000);
        // Base registers keep what was written, the ring uses the address bits.
        let base = Direction::M2s.queue_reg(QueueId(2), queue::DRBP_LOW);
        assert_eq!(rig.read_reg(0, base), 0xffff_ffff);
    }
}

#[test]
fn the_error_log_holds_the_descriptor_until_it_is_cleared() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    rig.reg(0, Direction::M2s.global_reg(global::ERR_LOG_MASK), u32::MAX);
    let mut program = Program::copies(arch, 3, 64);
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
    let mut program = Program::copies(arch, 1, 64);
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
    let mut program = Program::copies(arch, 6, 64);
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

fn command(rig: &mut Rig, direction: Direction, command: ChangeState) {
    let register = direction.global_reg(global::CHANGE_STATE);
    rig.reg(0, register, command.into_bits());
}

fn command_both(rig: &mut Rig, change: ChangeState) {
    for direction in Direction::ALL {
        command(rig, direction, change);
    }
}

/// Abort, disable, reset the queues, normal: the engine works again.
#[test]
fn an_aborted_engine_recovers() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        rig.detect_axi_errors(0);
        rig.poke(SRC, &pattern(3 * 4096, 1));
        let good = Program::copies(arch, 3, 4096);
        let mut bad = good.clone();
        bad.rx[1].words[3] = 0xffff_0000;
        rig.start(0, 0, &bad);
        rig.start(0, 1, &good);
        rig.pass(MS);
        for direction in Direction::ALL {
            assert_eq!(state(&mut rig, direction), [UdmaState::Abort; 2]);
        }
        // Normal alone does not lift an abort.
        command_both(&mut rig, ChangeState::new().with_normal(true));
        assert_eq!(state(&mut rig, Direction::M2s), [UdmaState::Abort; 2]);
        command_both(&mut rig, ChangeState::new().with_dis(true));
        assert_eq!(state(&mut rig, Direction::M2s), [UdmaState::Idle; 2]);
        rig.reg(0, ERROR_GROUPS + iofic::GROUP_BYTES + iofic::CAUSE, 0);
        let reset = QueueSwCtrl::new().with_rst_q(true).into_bits();
        for q in 0..2 {
            for direction in Direction::ALL {
                rig.reg(
                    0,
                    direction.queue_reg(QueueId(q), queue::sw_ctrl(direction)),
                    reset,
                );
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
    command_both(&mut rig, ChangeState::new().with_normal(true));
    rig.idle();
    assert_eq!(rig.system.counters().packets, 8);
    assert!(rig.peek(far, data.len()) == data);
}

#[test]
fn statistics_count_what_was_done() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    rig.start(0, 0, &Program::copies(arch, 5, 1000));
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
    let program = Program::copies(arch, 1, 64);
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

/// With the driver's prefetch rules a queue fetches bursts of 8 while its FIFO is well filled, and
/// single descriptors when it runs low: nothing is ever left behind.
#[test]
fn prefetch_rules_never_strand_a_descriptor() {
    let arch = Arch::V3;
    for count in [1u64, 7, 8, 9, 31, 63, 64, 100] {
        let mut rig = Rig::new(arch);
        let rules = DescPrefCfg3::new()
            .with_pref_thr(16)
            .with_min_burst_above_thr(8)
            .with_min_burst_below_thr(1);
        for direction in Direction::ALL {
            rig.reg(0, direction.global_reg(global::DESC_RD_CFG_3), 8);
            rig.reg(
                0,
                direction.global_reg(global::DESC_PREF_CFG_3),
                rules.into_bits(),
            );
        }
        rig.start(0, 0, &Program::copies(arch, count, 64));
        rig.idle();
        assert_eq!(rig.system.counters().packets, count);
    }
}

/// Shorter bursts cost time, never bytes; a register cannot ask for longer ones than the config.
#[test]
fn burst_registers_cut_bursts() {
    let arch = Arch::V3;
    let run = |beats: u32, reads: u8| {
        let mut rig = Rig::new(arch);
        rig.poke(SRC, &pattern(65536, 4));
        rig.reg(0, Direction::M2s.global_reg(global::DATA_BURST_CFG), beats);
        rig.reg(
            0,
            Direction::M2s.global_reg(global::M2S_OSTAND_CFG),
            OutstandingM2s::new()
                .with_data_rd(reads)
                .with_desc_rd(128)
                .into_bits(),
        );
        let mut program = Program::default();
        program.copy(arch, SRC, 0x40_0000, 65536, BarrierMode::None);
        rig.start(0, 0, &program);
        rig.idle();
        assert!(rig.peek(0x40_0000, 65536) == pattern(65536, 4));
        rig.system.cycles().0
    };
    assert!(run(1, 8) > run(4, 8));
    assert_eq!(run(8, 8), run(0, 8));
    assert_eq!(run(0x10008, 8), run(200, 8));
}

/// A static ring is replayed lap after lap with the phase it was authored with: its engine's ring-id
/// check is masked, and each doorbell for its whole length runs it once more.
#[test]
fn a_static_ring_replays_with_the_check_masked() {
    for arch in Arch::ALL {
        for masked in [true, false] {
            let mut rig = Rig::new(arch);
            for (direction, bit) in [(Direction::M2s, 17), (Direction::S2m, 11)] {
                let mask = if masked { 1 << bit } else { 0 };
                rig.reg(0, direction.global_reg(global::ERR_LOG_MASK), mask);
            }
            rig.poke(SRC, &pattern(32 * 64, 8));
            rig.start(0, 0, &Program::copies(arch, 32, 64));
            rig.idle();
            for lap in 2..6u64 {
                rig.poke(DST, &[0; 32 * 64]);
                rig.doorbell(0, 0, Direction::S2m, 32);
                rig.doorbell(0, 0, Direction::M2s, 32);
                rig.pass(Duration::from_ns(100_000));
                let status = rig.system.engine_status(EngineId(0)).unwrap();
                // The phase comes round after four laps; on the way an unmasked check aborts.
                assert_eq!(
                    status.states[0] == UdmaState::Normal,
                    masked,
                    "{arch} lap {lap}"
                );
                let packets = if masked { 32 * lap } else { 32 };
                assert_eq!(status.counters.packets, packets, "{arch} lap {lap}");
                let arrived = rig.peek(DST, 32 * 64) == pattern(32 * 64, 8);
                assert_eq!(arrived, masked);
            }
        }
    }
}

/// V3 and later: once the independent data tail is rung, packets are fetched up to the tail and start
/// up to the data tail.
#[test]
fn the_data_tail_holds_packets_back() {
    for arch in [Arch::V3, Arch::V4] {
        let mut rig = Rig::new(arch);
        rig.poke(SRC, &pattern(8 * 64, 8));
        let data_doorbell = Direction::M2s.queue_reg(QueueId(0), queue::M2S_TDRDTP_INC);
        rig.init(0, 0, 32);
        rig.reg(0, data_doorbell, 3);
        let program = Program::copies(arch, 8, 64);
        rig.write_ring(0, 0, Direction::M2s, &program.tx);
        rig.write_ring(0, 0, Direction::S2m, &program.rx);
        rig.doorbell(0, 0, Direction::S2m, 8);
        rig.doorbell(0, 0, Direction::M2s, 8);
        let WaitOutcome::Stuck(_) = rig.wait(Condition::Idle) else {
            panic!("the data tail was passed");
        };
        assert_eq!(rig.system.counters().packets, 3);
        let head = rig.read_reg(0, Direction::M2s.queue_reg(QueueId(0), queue::DRHP));
        assert_eq!(head, 0x4000_0008, "all were fetched");
        rig.reg(0, data_doorbell, 5);
        rig.idle();
        assert!(rig.peek(DST, 8 * 64) == pattern(8 * 64, 8));
        let tail = rig.read_reg(0, Direction::M2s.queue_reg(QueueId(0), queue::M2S_TDRDTP));
        assert_eq!(tail, 0x4000_0008);
    }
}

/// Closed streams and stopped prefetch hold work back until they are opened again.
#[test]
fn stream_registers_close_and_open() {
    let arch = Arch::V3;
    let close = |direction, cfg: StreamCfg| (direction, cfg.into_bits());
    for (direction, value) in [
        close(Direction::M2s, StreamCfg::new().with_disable(true)),
        close(Direction::S2m, StreamCfg::new().with_disable(true)),
        close(Direction::S2m, StreamCfg::new().with_stop_prefetch(true)),
    ] {
        let mut rig = Rig::new(arch);
        let register = direction.global_reg(global::stream_cfg(direction));
        rig.reg(0, register, value);
        rig.start(0, 0, &Program::copies(arch, 4, 64));
        assert!(
            matches!(rig.wait(Condition::Idle), WaitOutcome::Stuck(_)),
            "{value:#x}"
        );
        assert_eq!(rig.system.counters().packets, 0);
        rig.reg(0, register, 0);
        rig.idle();
        assert_eq!(rig.system.counters().packets, 4);
    }
}

/// With `encode_64k` clear a length of 0 is an error, not 64 KiB.
#[test]
fn a_length_of_zero_needs_encode_64k() {
    let arch = Arch::V3;
    for (encode, causes) in [(true, 0), (false, 1 << 13)] {
        let mut rig = Rig::new(arch);
        let cfg = CfgLen::new()
            .with_max_pkt_size(0xf_ffff)
            .with_encode_64k(encode);
        rig.reg(
            0,
            Direction::M2s.global_reg(global::M2S_CFG_LEN),
            cfg.into_bits(),
        );
        let mut program = Program::default();
        program.copy(arch, SRC, 0x40_0000, 65536, BarrierMode::None);
        rig.start(0, 0, &program);
        rig.pass(MS);
        let status = rig.system.engine_status(EngineId(0)).unwrap();
        assert_eq!(status.causes, [causes, 0]);
    }
}

/// S2M's limit of descriptor reads lies at [7:0], unlike M2S's at [15:8]: with what the driver writes it copies, and
/// with the fields of the twin it is 0, which stops the queue and is said.
#[test]
fn the_limit_of_rx_descriptor_reads_has_its_own_layout() {
    let limit = Direction::S2m.global_reg(global::S2M_OSTAND_CFG_RD);
    for arch in Arch::ALL {
        for value in [0x0040_0080, 0x0040_0008, 0x0040_0001] {
            let mut rig = Rig::new(arch);
            rig.poke(SRC, &pattern(20 * 64, 1));
            rig.reg(0, limit, value);
            rig.start(0, 0, &Program::copies(arch, 20, 64));
            rig.idle();
            assert_eq!(
                rig.peek(DST, 20 * 64),
                pattern(20 * 64, 1),
                "{arch} {value:#x}"
            );
        }
        let mut rig = Rig::new(arch);
        rig.reg(0, limit, 0x8000);
        rig.start(0, 0, &Program::copies(arch, 1, 64));
        let WaitOutcome::Stuck(waiters) = rig.wait(Condition::Idle) else {
            panic!("{arch}: not stuck");
        };
        let said = waiters[0].to_string();
        let expected = "e0 queue 0 is stopped by s2m.ostand_cfg_rd.desc_rd, which is 0, rx slot 0, since cycle ";
        assert!(said.starts_with(expected), "{said}");
    }
}

/// Every limit of 0 that stops a queue for good is named, with the register's own name.
#[test]
fn a_limit_of_zero_is_named() {
    use Direction::{M2s, S2m};
    let wide = |arch| arch == Arch::V4;
    for arch in Arch::ALL {
        for (register, value, name) in [
            (
                M2s.global_reg(global::M2S_OSTAND_CFG),
                0x0080,
                "m2s.ostand_cfg.desc_rd",
            ),
            (
                M2s.global_reg(global::M2S_OSTAND_CFG),
                0x8000,
                "m2s.ostand_cfg.data_rd",
            ),
            (
                M2s.global_reg(global::M2S_DATA_CFG),
                0x400,
                "m2s.data_cfg.max_pkt_limit",
            ),
            (
                S2m.global_reg(global::S2M_OSTAND_CFG_RD),
                0,
                "s2m.ostand_cfg_rd.desc_rd",
            ),
            (
                M2s.queue_reg(QueueId(0), queue::DESC_PREF_CFG),
                0,
                "desc_pref_cfg.fifo_depth of its tx ring",
            ),
            match wide(arch) {
                true => (
                    S2m.global_reg(global::S2M_OSTAND_CFG_WR_2),
                    0,
                    "s2m.ostand_cfg_wr_2.data_wr",
                ),
                false => (
                    S2m.global_reg(global::S2M_OSTAND_CFG_WR),
                    0,
                    "s2m.ostand_cfg_wr.data_wr",
                ),
            },
        ] {
            let mut rig = Rig::new(arch);
            rig.reg(0, register, value);
            rig.start(0, 0, &Program::copies(arch, 1, 64));
            let WaitOutcome::Stuck(waiters) = rig.wait(Condition::Idle) else {
                panic!("{arch} {name}: not stuck");
            };
            let said = waiters[0].to_string();
            assert!(
                said.contains(&format!("is stopped by {name}, which is 0")),
                "{arch}: {said}"
            );
        }
    }
}

/// On V4 the eight bits of `ostand_cfg_wr` limit nothing, the ten of `ostand_cfg_wr_2` do; before, it is the other way
/// round.
#[test]
fn the_limit_of_writes_is_the_wide_one_on_v4() {
    let [narrow, wide] = [global::S2M_OSTAND_CFG_WR, global::S2M_OSTAND_CFG_WR_2]
        .map(|offset| Direction::S2m.global_reg(offset));
    for arch in Arch::ALL {
        let cycles = |writes: &[(u64, u32)]| {
            let mut rig = Rig::new(arch);
            for (register, value) in writes {
                rig.reg(0, *register, *value);
            }
            rig.start(0, 0, &Program::copies(arch, 4, 16384));
            rig.idle();
            rig.system.cycles().0
        };
        let (free, narrowed, widened) = (cycles(&[]), cycles(&[(narrow, 1)]), cycles(&[(wide, 1)]));
        let slower = |cycles: u64| cycles > 2 * free;
        let expected = if arch == Arch::V4 {
            [false, true]
        } else {
            [true, false]
        };
        assert_eq!([slower(narrowed), slower(widened)], expected, "{arch}");
    }
}

/// Bit 5 of a group's control: the group is pending, and no message is sent; when the bit is cleared it is.
#[test]
fn a_group_sends_no_message_while_its_messages_are_masked() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        let group = |n: u64, offset| regs::GEN + n * iofic::GROUP_BYTES + offset;
        rig.reg(0, group(3, iofic::CONTROL), 1 << 5 | 1 << 3);
        rig.reg(0, group(3, iofic::MASK), 0);
        rig.reg(0, group(3, iofic::CAUSE_SET), 1);
        rig.idle();
        assert_eq!(rig.system.take_interrupt(), None, "{arch}");
        assert_eq!(rig.read_reg(0, group(3, iofic::STATUS)), 1);
        rig.reg(0, group(3, iofic::CONTROL), 1 << 3);
        rig.idle();
        assert_eq!(
            rig.system.take_interrupt().map(|interrupt| interrupt.group),
            Some(3)
        );
    }
}

/// The third secondary group is one like the other two; main group D sums it up in bit 10.
#[test]
fn the_third_secondary_group_is_summed_up_in_group_d() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        let third = regs::GEN + general::IOFIC_SECONDARY + 2 * iofic::GROUP_BYTES;
        let misc = regs::GEN + 3 * iofic::GROUP_BYTES;
        rig.reg(0, third + iofic::CAUSE_SET, 1 << 7);
        assert_eq!(rig.read_reg(0, misc + iofic::CAUSE), 0, "{arch}: masked");
        rig.reg(0, third + iofic::MASK_CLEAR, !(1 << 7));
        assert_eq!(rig.read_reg(0, third + iofic::STATUS), 1 << 7);
        assert_eq!(rig.read_reg(0, misc + iofic::CAUSE), 1 << 10);
        rig.reg(0, third + iofic::CAUSE, 0);
        assert_eq!(rig.read_reg(0, misc + iofic::CAUSE), 0);
    }
}

/// Without a completion ring the head counts completed descriptors of either half, unless the spare register says no.
#[test]
fn the_completion_head_counts_without_a_ring() {
    for arch in Arch::ALL {
        for silent in [false, true] {
            let mut rig = Rig::new(arch);
            rig.reg(0, regs::GEN + general::SPARE, u32::from(silent));
            rig.start(0, 0, &Program::copies(arch, 11, 64));
            rig.idle();
            for direction in Direction::ALL {
                let head = rig.read_reg(0, direction.queue_reg(QueueId(0), queue::CRHP));
                let counted = if silent { 0 } else { 11 };
                assert_eq!(head & 0xff_ffff, counted, "{arch} {direction:?}");
            }
        }
    }
}

/// On V2 an AXI error aborts only if the detection table of its master names it; elsewhere always.
#[test]
fn axi_errors_abort_on_v2_only_if_the_tables_say_so() {
    // Data reads of M2S are master 1, error responses index 1.
    let table = regs::GEN + general::AXI_ERROR_1 + general::AXI_MASTER_TABLE_BYTES + 4;
    let other = regs::GEN + general::AXI_ERROR_1 + 4;
    for arch in Arch::ALL {
        for (register, detected) in [(None, false), (Some(other), false), (Some(table), true)] {
            let mut rig = Rig::new(arch);
            if let Some(register) = register {
                rig.reg(0, register, 0xf);
            }
            let mut program = Program::copies(arch, 1, 64);
            program.tx[0].words[3] = 0xffff_0000;
            rig.start(0, 0, &program);
            rig.pass(MS);
            let status = rig.system.engine_status(EngineId(0)).unwrap();
            assert_eq!(status.causes[0], 1 << 8, "{arch}: the bit is set anyhow");
            let aborted = status.states == [UdmaState::Abort; 2];
            assert_eq!(
                aborted,
                detected || arch != Arch::V2,
                "{arch} {register:x?}"
            );
            assert_eq!(status.errors[0].fatal, aborted);
        }
    }
}

/// An engine comes out of reset running, or idle if the config says so: then it waits for `change_state`.
#[test]
fn the_state_after_reset_is_the_configs() {
    for arch in Arch::ALL {
        for (config_says, runs) in [("normal", true), ("idle", false)] {
            let key = (
                "state_after_reset = \"normal\"",
                &*format!("state_after_reset = \"{config_says}\""),
            );
            let mut rig = Rig::with(config(arch, &[key]), 0);
            let expected = if runs {
                UdmaState::Normal
            } else {
                UdmaState::Idle
            };
            for direction in Direction::ALL {
                assert_eq!(
                    state(&mut rig, direction),
                    [expected; 2],
                    "{arch} {config_says}"
                );
            }
        }
    }
}
