//! What watching costs: the same copy unwatched and with each observer, in turns, in one run.

use std::io::BufWriter;
use std::time::{Duration as WallTime, Instant as WallInstant};
use udma_sim::arch::regs::Direction;
use udma_sim::arch::{Arch, EngineId};
use udma_sim::config::Config;
use udma_sim::host::{Pring, QueueOptions, QueuePair, QueueSetup, Vring};
use udma_sim::sim::Duration;
use udma_sim::system::{Condition, System, WaitOutcome};
use udma_sim::telemetry::page::Profile;
use udma_sim::telemetry::recording::{Header, Recorder};
use udma_sim::telemetry::stats::Collector;
use udma_sim::telemetry::timeline::Timeline;
use udma_sim::telemetry::waves::Waves;
use udma_sim::telemetry::{End, Machine, attach};
use udma_sim::units::Addr;

const SRC: Addr = Addr(0x1000_0000);
const DST: Addr = Addr(0x40_1000_0000);
const ROUNDS: usize = 7;

const WATCHERS: [&str; 6] = ["nobody", "stats", "timeline", "vcd", "record", "page"];

/// A machine with copies of 64 KiB and the queue that does them.
fn armed(copies: u32) -> (System, QueuePair) {
    let config = Config::builtin("cayman").expect("built in").expect("valid");
    let mut system = System::new(config, 0).expect("a machine");
    let mut vring = Vring::new(Arch::V3, "bench").expect("a vring");
    for _ in 0..copies {
        vring.add_desc_transfer(SRC, DST, 1 << 16).expect("room");
    }
    let ring = copies.next_multiple_of(16).max(32);
    let mut tx = Pring::new(Direction::M2s, Addr(0), ring).expect("a ring");
    let mut rx = Pring::new(Direction::S2m, Addr(0x800_0000), ring).expect("a ring");
    vring
        .dump_to_pring(&mut system, &mut tx, &mut rx)
        .expect("dumped");
    let options = QueueOptions::default();
    let queue = QueuePair::init(
        &mut system,
        QueueSetup {
            arch: Arch::V3,
            engine: EngineId(0),
            queue: 0,
            tx: &tx,
            rx: &rx,
            options,
        },
    );
    (system, queue.expect("a queue"))
}

/// Wall time of the copies and of writing what there is to write, as somebody watches.
fn watched(copies: u32, watcher: &str) -> WallTime {
    let (mut system, queue) = armed(copies);
    let file = || tempfile::tempfile().expect("a file");
    let machine = Machine::of(&system);
    let started = WallInstant::now();
    let finish: Box<dyn FnOnce(&End)> = match watcher {
        "nobody" => Box::new(|_| ()),
        "stats" => {
            let stats = attach(&mut system, Collector::new(machine));
            Box::new(move |end| drop(stats.with(|stats| stats.stats(end))))
        }
        "timeline" => {
            let timeline = Timeline::new(machine, BufWriter::new(file()));
            let timeline = attach(&mut system, timeline);
            Box::new(move |end| {
                timeline
                    .with(|timeline| timeline.finish(end))
                    .expect("written")
            })
        }
        "vcd" => {
            let waves = Waves::new(machine, BufWriter::new(file())).expect("a file");
            let waves = attach(&mut system, waves);
            Box::new(move |end| waves.with(|waves| waves.finish(end)).expect("written"))
        }
        "record" => {
            let header = Header {
                version: String::new(),
                scenario_path: String::new(),
                scenario: String::new(),
                files: Vec::new(),
                config_name: String::new(),
                config: String::new(),
                seed: 0,
                machine,
            };
            let recorder = Recorder::new(file(), &header).expect("a file");
            let recorder = attach(&mut system, recorder);
            Box::new(move |end| {
                recorder
                    .with(|recorder| recorder.finish(end))
                    .expect("written")
            })
        }
        _ => {
            let profile = attach(&mut system, Profile::new(machine));
            Box::new(move |end| {
                drop(profile.with(|profile| profile.page(end, &Default::default())))
            })
        }
    };
    queue
        .trigger(&mut system, copies, copies)
        .expect("doorbells");
    let outcome = system.run_until(&Condition::Idle, Duration::from_ns(1_000_000_000));
    assert_eq!(outcome, WaitOutcome::Met);
    finish(&End::of(&system));
    started.elapsed()
}

fn main() {
    // `cargo test --benches` and its kin only want to know that it runs.
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let (copies, rounds) = if measuring { (256, ROUNDS) } else { (4, 1) };
    let mut best = [WallTime::MAX; WATCHERS.len()];
    for _ in 0..rounds {
        for (best, watcher) in best.iter_mut().zip(WATCHERS) {
            *best = watched(copies, watcher).min(*best);
        }
    }
    println!("{} MiB in copies of 64 KiB, best of {rounds}", copies / 16);
    for (time, watcher) in best.iter().zip(WATCHERS) {
        let ms = time.as_secs_f64() * 1e3;
        let ratio = time.as_secs_f64() / best[0].as_secs_f64();
        println!("{watcher:>10} {ms:>9.1} ms {ratio:>6.2}");
    }
}
