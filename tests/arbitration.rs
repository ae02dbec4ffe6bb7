//! The share that each queue gets of the engine: round robin, classes, weights, rate limiters.

mod common;

use common::{DST, Program, Rig, SRC};
use udma_sim::arch::regs::{
    self, ChangeState, Direction, DwrrCfg, QueueDwrrCfg1, RateLimitCfg1, RateLimitMask,
    RateLimiterCfg, global, queue,
};
use udma_sim::arch::{Arch, QueueId};
use udma_sim::desc::BarrierMode;
use udma_sim::sim::Duration;
use udma_sim::system::Condition;

/// Packets each of four backlogged queues has completed after `ns` nanoseconds, with packets of the
/// given lengths.
fn shares(rig: &mut Rig, lens: [u32; 4], ns: u64) -> [u32; 4] {
    let arch = rig.arch;
    for q in 0..4u8 {
        let mut program = Program::default();
        for _ in 0..1024 {
            program.copy(arch, SRC, DST, lens[usize::from(q)], BarrierMode::None);
        }
        rig.start(0, q, &program);
    }
    rig.pass(Duration::from_ns(ns));
    // Stop, let the packets in flight drain, then read.
    let stop = ChangeState::new().with_dis(true).into_bits();
    rig.reg(0, Direction::M2s.global_reg(global::CHANGE_STATE), stop);
    rig.wait(Condition::Idle);
    [0, 1, 2, 3].map(|q| {
        let packets = Direction::M2s.queue_reg(QueueId(q), queue::M2S_TX_PKT);
        rig.read_reg(0, packets)
    })
}

#[test]
fn round_robin_gives_each_queue_the_same() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        let got = shares(&mut rig, [2048; 4], 40_000);
        assert!(got[0] > 50, "{got:?}");
        assert!(
            got.iter().all(|n| n.abs_diff(got[0]) <= 1),
            "{arch} {got:?}"
        );
    }
}

#[test]
fn deficit_round_robin_follows_the_weights() {
    let arch = Arch::V3;
    for (packets, lens) in [
        (false, [2048u32; 4]),
        (false, [512, 1024, 2048, 4096]),
        (true, [512, 1024, 2048, 4096]),
    ] {
        let mut rig = Rig::new(arch);
        let mode = DwrrCfg::new().with_en_dwrr(true).with_pkt_mode_en(packets);
        rig.reg(
            0,
            Direction::M2s.global_reg(global::M2S_DWRR),
            mode.into_bits(),
        );
        for (q, weight) in [16u32, 32, 48, 64].into_iter().enumerate() {
            rig.reg(
                0,
                Direction::M2s.queue_reg(QueueId(q as u8), queue::M2S_DWRR_CFG_3),
                weight,
            );
        }
        // Eight rounds and more of 160 packets, so that a round cut short does not show.
        let got = shares(&mut rig, lens, 150_000);
        // By bytes, or by packets: 1 : 2 : 3 : 4.
        let units: Vec<f64> = (0..4)
            .map(|q| f64::from(got[q]) * if packets { 1.0 } else { f64::from(lens[q]) })
            .collect();
        let total: f64 = units.iter().sum();
        for (q, part) in [0.1, 0.2, 0.3, 0.4].into_iter().enumerate() {
            let share = units[q] / total;
            assert!(
                (share - part).abs() < 0.04,
                "{packets} {lens:?} {got:?}: queue {q} {share}"
            );
        }
    }
}

/// Strict classes exist on V4; elsewhere the field does nothing.
#[test]
fn qos_classes_go_first_on_v4() {
    for arch in Arch::ALL {
        let mut rig = Rig::new(arch);
        rig.reg(
            0,
            Direction::M2s.queue_reg(QueueId(2), queue::M2S_DWRR_CFG_2),
            3,
        );
        let got = shares(&mut rig, [4096; 4], 30_000);
        if arch == Arch::V4 {
            assert!(got[2] > 4 * (got[0] + got[1] + got[3]).max(1), "{got:?}");
        } else {
            assert!(
                got.iter().all(|n| n.abs_diff(got[0]) <= 1),
                "{arch} {got:?}"
            );
        }
    }
}

/// A machine whose queue 1 has a rate limiter, masked or not: every 10 cycles of 850 MHz 160 bits, so 2
/// bytes a cycle or, counting packets, one in 4 cycles (a packet costs as much as a byte).
fn rate_limited(masked: bool, cfg: RateLimiterCfg, bits: u32) -> Rig {
    let mut rig = Rig::new(Arch::V3);
    let common = Direction::M2s.global_reg(global::M2S_RATE_LIMITER);
    rig.reg(0, common, cfg.with_short_cycle_size(10).into_bits());
    let word = |offset| Direction::M2s.queue_reg(QueueId(1), queue::M2S_RATE_LIMIT) + offset;
    rig.reg(0, word(regs::rate_limit::TOKEN_SIZE_2), bits);
    let bucket = RateLimitCfg1::new().with_max_burst_size(4096).with_en(true);
    rig.reg(0, word(regs::rate_limit::CFG_1), bucket.into_bits());
    rig.mask = RateLimitMask::new()
        .with_internal_pause_dmb(false)
        .with_internal_rate_limiter(masked);
    rig
}

#[test]
fn a_rate_limiter_holds_its_queue_to_its_rate() {
    // At reset the limiter is masked.
    let mut rig = rate_limited(true, RateLimiterCfg::new(), 160);
    assert_eq!(shares(&mut rig, [2048; 4], 400_000), [1024; 4]);
    let mut rig = rate_limited(false, RateLimiterCfg::new(), 160);
    let got = shares(&mut rig, [2048; 4], 400_000);
    assert_eq!([got[0], got[2], got[3]], [1024; 3]);
    // 340,000 cycles at 2 bytes each, a bucket and a packet aside.
    let held = i64::from(got[1]) * 2048;
    assert!((held - 680_000).abs() < 4096 + 3 * 2048, "{held}");
}

/// In packet mode lengths do not matter: one token, 8 bits, in 1000 cycles is a packet in 1000 cycles.
#[test]
fn a_rate_limiter_can_count_packets() {
    for len in [512, 2048] {
        let packets = RateLimiterCfg::new().with_pkt_mode_en(true);
        let mut rig = rate_limited(false, packets, 0);
        // The long cycle is 100 short ones of 10 cycles; the bucket holds 16 packets.
        let word = |offset| Direction::M2s.queue_reg(QueueId(1), queue::M2S_RATE_LIMIT) + offset;
        rig.reg(0, word(regs::rate_limit::CYCLE), 100);
        rig.reg(0, word(regs::rate_limit::TOKEN_SIZE_1), 8);
        let bucket = RateLimitCfg1::new().with_max_burst_size(16).with_en(true);
        rig.reg(0, word(regs::rate_limit::CFG_1), bucket.into_bits());
        let got = shares(&mut rig, [len; 4], 400_000);
        assert_eq!([got[0], got[2], got[3]], [1024; 3]);
        // 340,000 cycles.
        assert!(got[1].abs_diff(340) <= 17, "{got:?}");
    }
}

/// The stream's own limiter holds all queues together.
#[test]
fn the_stream_rate_limiter_holds_all_queues() {
    let arch = Arch::V3;
    let mut rig = Rig::new(arch);
    let word = |offset| Direction::M2s.global_reg(global::M2S_STREAM_RATE_LIMIT + offset);
    // Every cycle 32 bits, and every 100 cycles 400 bits: 4.5 bytes a cycle.
    rig.reg(0, word(regs::rate_limit::CYCLE), 100);
    rig.reg(0, word(regs::rate_limit::TOKEN_SIZE_1), 400);
    rig.reg(0, word(regs::rate_limit::TOKEN_SIZE_2), 32);
    rig.reg(
        0,
        word(regs::rate_limit::CFG_1),
        RateLimitCfg1::new()
            .with_max_burst_size(8192)
            .with_en(true)
            .into_bits(),
    );
    let got = shares(&mut rig, [1024; 4], 200_000);
    let bytes = i64::from(got.iter().sum::<u32>()) * 1024;
    // 170,000 cycles.
    assert!((bytes - 765_000).abs() < 8192 + 4 * 1024, "{bytes}");
}

/// Strict queues go before those that share by weight, and among each other in turn.
#[test]
fn strict_queues_go_before_the_weights() {
    let mut rig = Rig::new(Arch::V3);
    let mode = DwrrCfg::new().with_en_dwrr(true).into_bits();
    rig.reg(0, Direction::M2s.global_reg(global::M2S_DWRR), mode);
    for q in 0..4u8 {
        let bank = |offset| Direction::M2s.queue_reg(QueueId(q), offset);
        rig.reg(0, bank(queue::M2S_DWRR_CFG_3), 16);
        let strict = QueueDwrrCfg1::new().with_strict(q > 1).into_bits();
        rig.reg(0, bank(queue::M2S_DWRR_CFG_1), strict);
    }
    let got = shares(&mut rig, [2048; 4], 60_000);
    assert!(got[2].abs_diff(got[3]) <= 1, "{got:?}");
    assert!(got[2] > 8 * (got[0] + got[1]).max(1), "{got:?}");
}
