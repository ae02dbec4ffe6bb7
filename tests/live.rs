//! Machines that host threads use while they run: free-running and in lockstep.

mod common;

use common::{config, pattern, prings, queue_pair};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use udma_sim::arch::regs::{Direction, iofic, queue};
use udma_sim::arch::{Arch, EngineId, EventBlock, QueueId, regs};
use udma_sim::host::{Bus, BusReason, Pring, QueuePair, UserBar, Vring};
use udma_sim::live::{LiveDevice, LiveError, Lockstep, StallReport, Watchdog};
use udma_sim::sim;
use udma_sim::system::{
    Condition, Interrupt, SemTest, SequencerOp, System, WaitOp, WaitOutcome, Waiter,
};
use udma_sim::units::Addr;

const LONG: Duration = Duration::from_secs(60);
const MS: sim::Duration = sim::Duration::from_ns(1_000_000);

fn system(arch: Arch) -> System {
    System::new(config(arch, &[]), 0).unwrap()
}

fn live(system: System) -> LiveDevice {
    LiveDevice::start(system, Watchdog::default()).unwrap()
}

/// A MiB of HBM for each host.
fn area(host: u64) -> u64 {
    host << 20
}

fn rings_of(host: u64) -> (Pring, Pring) {
    prings(area(host), area(host) + 0x1000, 32)
}

/// A queue of `host`'s own, with rings of 32.
fn queue_of(bus: &mut dyn Bus, arch: Arch, host: u64) -> QueuePair {
    let (tx, rx) = rings_of(host);
    let (engine, queue) = (EngineId(host as u32 / 16), host as u32 % 16);
    queue_pair(bus, arch, engine, queue, (&tx, &rx))
}

/// Stages one copy of `len` bytes in slot 0 of a fresh queue.
fn stage(bus: &mut dyn Bus, arch: Arch, host: u64, len: usize) -> (Vec<u8>, Addr) {
    let (src, dst) = (Addr(area(host) + 0x8_0000), Addr(area(host) + 0xa_0000));
    let data = pattern(len, host as u8);
    bus.write_mem(src, &data).unwrap();
    let mut vring = Vring::new(arch, "copy").unwrap();
    vring.add_desc_transfer(src, dst, len as u64).unwrap();
    let (mut tx, mut rx) = rings_of(host);
    vring.dump_to_pring(bus, &mut tx, &mut rx).unwrap();
    (data, dst)
}

fn idle(queue: &QueuePair) -> Condition {
    Condition::QueueIdle {
        engine: queue.engine(),
        queue: queue.queue(),
    }
}

#[test]
fn hosts_copy_side_by_side() {
    for arch in Arch::ALL {
        let device = live(system(arch));
        thread::scope(|scope| {
            for host in 0..20 {
                let mut device = device.clone();
                scope.spawn(move || {
                    let queue = queue_of(&mut device, arch, host);
                    let (data, dst) = stage(&mut device, arch, host, 10_000);
                    queue.trigger(&mut device, 1, 1).unwrap();
                    device.wait(&idle(&queue), LONG).unwrap();
                    let mut copied = vec![0; data.len()];
                    device.read_mem(dst, &mut copied).unwrap();
                    assert!(copied == data, "{arch} host {host}");
                });
            }
        });
        let counters = device.inspect(System::counters);
        assert_eq!((counters.packets, counters.bytes_written), (20, 200_000));
    }
}

/// A driver that knows nothing of waits: it polls memory, and sleeps in between.
#[test]
fn polling_sees_the_copy_arrive() {
    let arch = Arch::V3;
    let mut device = live(system(arch));
    let queue = queue_of(&mut device, arch, 0);
    let (data, dst) = stage(&mut device, arch, 0, 4096);
    queue.trigger(&mut device, 1, 1).unwrap();
    let mut copied = vec![0; data.len()];
    let mut polls = 0;
    while copied != data {
        device.sleep(sim::Duration::from_ns(1_000)).unwrap();
        device.read_mem(dst, &mut copied).unwrap();
        polls += 1;
        assert!(polls < 1_000);
    }
    // Sleeping passes time though the machine is idle.
    let before = device.now();
    device.sleep(MS).unwrap();
    assert!(device.now() - before >= MS);
}

/// Reads see the writes before them, though those are posted.
#[test]
fn register_reads_follow_writes() {
    let device = live(system(Arch::V3));
    thread::scope(|scope| {
        for host in 0..8u64 {
            let mut device = device.clone();
            scope.spawn(move || {
                let window = Arch::V3
                    .spec()
                    .map
                    .engine_base(EngineId(host as u32 % 3))
                    .unwrap();
                let register = Direction::S2m.queue_reg(QueueId(host as u8), queue::DRL);
                let at = Addr(window.0 + register);
                for value in 0..200 {
                    device.write_reg(at, value).unwrap();
                    assert_eq!(device.read_reg(at), Ok(value));
                }
            });
        }
    });
}

#[test]
fn registers_that_do_not_exist_are_refused_at_once() {
    let mut device = live(system(Arch::V2));
    for (at, reason) in [
        (0x1038, BusReason::NoRegister),
        (0xfff_f0fb_0000, BusReason::NoRegister),
        (0xfff_f000_1039, BusReason::Misaligned),
    ] {
        assert_eq!(
            device.write_reg(Addr(at), 1).unwrap_err().reason,
            reason,
            "{at:#x}"
        );
        assert_eq!(
            device.read_reg(Addr(at)).unwrap_err().reason,
            reason,
            "{at:#x}"
        );
    }
    assert!(device.write_mem(Addr(u64::MAX), &[1]).is_err());
    let mut user = UserBar::new(device.clone(), Arch::V2);
    let refused = user.write_reg(Addr(0xfff_f000_1038), 1).unwrap_err();
    assert_eq!(refused.reason, BusReason::KernelOnly);
}

/// A store by one host is what another waits for, and what wakes a sequencer, while the machine has
/// nothing to do.
#[test]
fn stores_wake_who_waits_for_them() {
    let mut system = system(Arch::V3);
    let program = vec![
        SequencerOp::Wait {
            block: 0,
            semaphore: 5,
            op: WaitOp::Ge(1),
        },
        SequencerOp::Inc {
            block: 0,
            semaphore: 6,
            by: 1,
        },
    ];
    system.start_sequencer("relay", program).unwrap();
    let device = live(system);
    let mut waiter = device.clone();
    let other = thread::spawn(move || {
        let relayed = Condition::Semaphore {
            block: 0,
            index: 6,
            test: SemTest::Ge(1),
        };
        waiter.wait(&relayed, LONG).unwrap();
        waiter.write_mem(Addr(0x100), &7u32.to_le_bytes()).unwrap();
    });
    thread::sleep(Duration::from_millis(50));
    let cell = Arch::V3
        .spec()
        .map
        .semaphore(0, EventBlock::SEM_INC, 5)
        .unwrap();
    device.clone().write_mem(cell, &1u32.to_le_bytes()).unwrap();
    let word = Condition::Word {
        at: Addr(0x100),
        value: 7,
    };
    device.wait(&word, LONG).unwrap();
    other.join().unwrap();
}

#[test]
fn interrupts_go_to_one_host_each() {
    /// A main group that sums up no other.
    const GROUP: u64 = 5;
    let device = live(system(Arch::V3));
    let taken = Arc::new(AtomicUsize::new(0));
    let hosts: Vec<_> = (0..4)
        .map(|_| {
            let (device, taken) = (device.clone(), Arc::clone(&taken));
            thread::spawn(move || {
                while device.next_interrupt(Duration::from_millis(300)).is_ok() {
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for engine in 0..10 {
        let window = Arch::V3.spec().map.engine_base(EngineId(engine)).unwrap();
        let group = |register| Addr(window.0 + regs::GEN + GROUP * iofic::GROUP_BYTES + register);
        let mut device = device.clone();
        device.write_reg(group(iofic::MASK), 0).unwrap();
        device.write_reg(group(iofic::CAUSE_SET), 1).unwrap();
    }
    for host in hosts {
        host.join().unwrap();
    }
    assert_eq!(taken.load(Ordering::Relaxed), 10);
}

#[test]
fn a_wait_that_times_out_says_who_waits_for_what() {
    let arch = Arch::V3;
    let mut device = live(system(arch));
    let queue = queue_of(&mut device, arch, 0);
    stage(&mut device, arch, 0, 64);
    // The Rx doorbell is forgotten.
    queue.doorbell(&mut device, Direction::M2s, 1).unwrap();
    let error = device
        .wait(&idle(&queue), Duration::from_millis(50))
        .unwrap_err();
    let said = error.to_string();
    let waited = "waited 50ms for e0 queue 0 to be idle: e0 queue 0 waits for Rx descriptors, tx slot 0, since cycle ";
    assert!(said.starts_with(waited), "{said}");
    assert!(matches!(error, LiveError::TimedOut { waiters, .. } if waiters.len() == 1));
    queue.doorbell(&mut device, Direction::S2m, 1).unwrap();
    device.wait(&idle(&queue), LONG).unwrap();
}

/// A watchdog that collects its reports.
fn collecting(period: Duration) -> (Watchdog, crossbeam_channel::Receiver<StallReport>) {
    let (send, reports) = crossbeam_channel::unbounded();
    let report = Box::new(move |report: &StallReport| send.send(report.clone()).unwrap());
    (Watchdog { period, report }, reports)
}

#[test]
fn the_watchdog_barks_once_when_nothing_gets_on() {
    let arch = Arch::V3;
    let (watchdog, reports) = collecting(Duration::from_millis(30));
    let mut device = LiveDevice::start(system(arch), watchdog).unwrap();
    let queue = queue_of(&mut device, arch, 3);
    stage(&mut device, arch, 3, 64);
    queue.doorbell(&mut device, Direction::M2s, 1).unwrap();
    let waiter = device.clone();
    let until = idle(&queue);
    let host = thread::Builder::new().name("driver".to_string());
    let host = host.spawn(move || waiter.wait(&until, LONG)).unwrap();
    let report = reports.recv_timeout(LONG).unwrap();
    let text = report.to_string();
    assert!(
        text.starts_with("no progress for 30ms; simulated time is "),
        "{text}"
    );
    assert!(
        text.contains(
            "\n  host driver waits for e0 queue 3 to be idle\n  e0 queue 3 waits for Rx descriptors, tx slot 0, "
        ),
        "{text}"
    );
    thread::sleep(Duration::from_millis(150));
    assert!(reports.try_recv().is_err(), "one report for one stall");
    queue.doorbell(&mut device, Direction::S2m, 1).unwrap();
    host.join().unwrap().unwrap();
}

/// The machine goes with the last handle, whatever it is doing, and its thread has ended by then.
#[test]
fn the_last_handle_takes_the_thread_with_it() {
    let arch = Arch::V3;
    for busy in [false, true] {
        // The watchdog is the machine's thread's own: it goes when that does.
        let guard = Arc::new(());
        let held = Arc::clone(&guard);
        let watchdog = Watchdog {
            period: LONG,
            report: Box::new(move |_| assert!(Arc::strong_count(&held) > 0)),
        };
        let mut device = LiveDevice::start(system(arch), watchdog).unwrap();
        let queue = queue_of(&mut device, arch, 0);
        stage(&mut device, arch, 0, 0x2_0000);
        if busy {
            queue.trigger(&mut device, 2, 2).unwrap();
        }
        let other = device.clone();
        drop(device);
        assert!(other.now() > sim::Instant::START);
        assert_eq!(Arc::strong_count(&guard), 2);
        drop(other);
        assert_eq!(Arc::strong_count(&guard), 1, "the thread has ended");
    }
}

/// Four hosts with work of different lengths, at the mercy of the scheduler: what each saw, when.
fn lockstep_run(jitter: u64) -> Vec<Vec<(u64, String)>> {
    let arch = Arch::V3;
    let hosts = Lockstep::start(system(arch), 4, Watchdog::default());
    let threads: Vec<_> = (hosts.into_iter())
        .map(|mut host| {
            thread::spawn(move || {
                let n = host.number() as u64;
                let mut log = Vec::new();
                let queue = queue_of(&mut host, arch, n);
                for round in 0..4 {
                    thread::sleep(Duration::from_micros((n * 7919 + round * jitter) % 900));
                    stage(&mut host, arch, n, 500 * (n as usize + 1));
                    let ring_id = (round, host.now().unwrap().as_fs());
                    log.push((ring_id.1, format!("{round} staged")));
                    if round == 0 {
                        queue.trigger(&mut host, 1, 1).unwrap();
                    }
                    let outcome = host.wait(&idle(&queue), MS).unwrap();
                    log.push((host.now().unwrap().as_fs(), format!("{outcome:?}")));
                    let window = arch.spec().map.engine_base(EngineId(0)).unwrap();
                    let status = Direction::S2m.queue_reg(QueueId((3 - n) as u8), queue::DCP);
                    let seen = host.read_reg(Addr(window.0 + status)).unwrap();
                    log.push((host.now().unwrap().as_fs(), format!("{seen:#x}")));
                    host.sleep(sim::Duration::from_ns(37 * (n + 1))).unwrap();
                }
                let counters = host.inspect(System::counters).unwrap();
                log.push((host.now().unwrap().as_fs(), format!("{counters:?}")));
                log
            })
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect()
}

#[test]
fn lockstep_runs_are_the_same_however_threads_are_scheduled() {
    let first = lockstep_run(1);
    assert!(first.iter().flatten().any(|(at, _)| *at > 0));
    for jitter in [331, 577, 863] {
        assert_eq!(lockstep_run(jitter), first);
    }
}

#[test]
fn lockstep_serves_hosts_in_order_and_time_stands_still_meanwhile() {
    let hosts = Lockstep::start(system(Arch::V2), 3, Watchdog::default());
    let at = Addr(0x1000);
    let threads: Vec<_> = (hosts.into_iter().rev())
        .map(|mut host| {
            thread::spawn(move || {
                // All in one round: host 0 writes first, host 2 last.
                let value = [host.number() as u8 + 1];
                host.write_mem(at, &value).unwrap();
                let mut seen = [0];
                host.read_mem(at, &mut seen).unwrap();
                (seen, host.now().unwrap())
            })
        })
        .collect();
    for thread in threads {
        let (seen, now) = thread.join().unwrap();
        assert_eq!((seen, now), ([3], sim::Instant::START));
    }
}

#[test]
fn lockstep_hosts_time_out_get_stuck_and_leave() {
    let arch = Arch::V3;
    let mut hosts = Lockstep::start(system(arch), 3, Watchdog::default());
    let leaves = hosts.pop().unwrap();
    let mut sleeps = hosts.pop().unwrap();
    let mut waits = hosts.pop().unwrap();
    let gone = thread::spawn(move || drop(leaves));
    let sleeper = thread::spawn(move || {
        sleeps.sleep(MS).unwrap();
        sleeps.now().unwrap()
    });
    let queue = queue_of(&mut waits, arch, 0);
    stage(&mut waits, arch, 0, 64);
    queue.doorbell(&mut waits, Direction::M2s, 1).unwrap();
    // As long as another host sleeps, time passes.
    let timeout = sim::Duration::from_ns(500_000);
    let outcome = waits.wait(&idle(&queue), timeout).unwrap();
    assert!(
        matches!(&outcome, WaitOutcome::TimedOut(who) if who.len() == 1),
        "{outcome:?}"
    );
    let outcome = waits.wait(&idle(&queue), sim::Duration::MAX).unwrap();
    let WaitOutcome::Stuck(who) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(matches!(who[..], [Waiter::Queue(_)]));
    queue.doorbell(&mut waits, Direction::S2m, 1).unwrap();
    assert_eq!(waits.wait(&idle(&queue), MS), Ok(WaitOutcome::Met));
    assert_eq!(sleeper.join().unwrap() - sim::Instant::START, MS);
    gone.join().unwrap();
}

#[test]
fn lockstep_says_who_holds_up_the_others() {
    let (watchdog, reports) = collecting(Duration::from_millis(30));
    let mut hosts = Lockstep::start(system(Arch::V2), 2, watchdog);
    let mut waits = hosts.remove(0);
    let host = thread::spawn(move || waits.sleep(MS));
    let text = reports.recv_timeout(LONG).unwrap().to_string();
    assert!(
        text.contains("host 1 waits for its own thread, which holds up the others"),
        "{text}"
    );
    drop(hosts);
    host.join().unwrap().unwrap();
}

/// Raises a cause of main group 5 of an engine whose mask lets it through.
fn raise_cause(device: &mut LiveDevice, engine: u32, bit: u32) {
    let window = Arch::V3.spec().map.engine_base(EngineId(engine)).unwrap();
    let register = |offset| Addr(window.0 + regs::GEN + 5 * iofic::GROUP_BYTES + offset);
    device.write_reg(register(iofic::MASK), 0).unwrap();
    device
        .write_reg(register(iofic::CAUSE_SET), 1 << bit)
        .unwrap();
}

/// An interrupt service routine reads the cause, clears it and passes it on; nothing is lost, and what
/// is set again after it was cleared interrupts again.
#[test]
fn a_handler_serves_interrupts() {
    let mut device = live(system(Arch::V3));
    let (served, causes) = std::sync::mpsc::channel();
    let serve = move |device: &mut LiveDevice, interrupt: Interrupt| {
        let window = Arch::V3.spec().map.engine_base(interrupt.engine).unwrap();
        let group = u64::from(interrupt.group) * iofic::GROUP_BYTES;
        let cause = Addr(window.0 + regs::GEN + group + iofic::CAUSE);
        let seen = device.read_reg(cause).unwrap();
        device.write_reg(cause, !seen).unwrap();
        served.send((interrupt.engine.0, seen)).unwrap();
    };
    device.on_interrupt(serve).unwrap();
    for round in 0..50 {
        for engine in 0..3 {
            raise_cause(&mut device, engine, round % 32);
        }
        let mut got: Vec<_> = (0..3).map(|_| causes.recv_timeout(LONG).unwrap()).collect();
        got.sort();
        let expected = [0, 1, 2].map(|engine| (engine, 1 << (round % 32)));
        assert_eq!(got, expected, "round {round}");
    }
    // Nothing is left for anybody else.
    let late = device.next_interrupt(Duration::from_millis(1));
    assert!(matches!(late, Err(LiveError::TimedOut { .. })));
}

/// The completion of a copy, told by its interrupt, as drivers that do not poll learn of it.
#[test]
fn a_copy_ends_in_the_handler() {
    let arch = Arch::V3;
    let mut device = live(system(arch));
    let queue = queue_of(&mut device, arch, 0);
    let (data, dst) = stage(&mut device, arch, 0, 4096);
    // INT_EN on the Rx descriptor, bit 1 of group 1: queue 0.
    let word = Addr(area(0) + 0x1000 + 3);
    let mut byte = [0];
    device.read_mem(word, &mut byte).unwrap();
    device.write_mem(word, &[byte[0] | 0x10]).unwrap();
    let window = arch.spec().map.engine_base(EngineId(0)).unwrap();
    let mask = Addr(window.0 + regs::GEN + iofic::GROUP_BYTES + iofic::MASK);
    device.write_reg(mask, 0).unwrap();
    let (done, copied) = std::sync::mpsc::channel();
    let read_it = move |device: &mut LiveDevice, interrupt: Interrupt| {
        assert_eq!(interrupt.group, 1);
        let mut bytes = vec![0; 4096];
        device.read_mem(dst, &mut bytes).unwrap();
        done.send(bytes).unwrap();
    };
    device.on_interrupt(read_it).unwrap();
    queue.trigger(&mut device, 1, 1).unwrap();
    assert!(copied.recv_timeout(LONG).unwrap() == data);
}

/// A handler may be the last that uses the device; one that is replaced gets nothing more; one that
/// panics takes nobody with it.
#[test]
fn handlers_come_and_go() {
    let mut device = live(system(Arch::V3));
    let (tell, told) = std::sync::mpsc::channel();
    for number in 0..2 {
        let tell = tell.clone();
        let handler = move |_: &mut LiveDevice, _| tell.send(number).unwrap();
        device.on_interrupt(handler).unwrap();
    }
    raise_cause(&mut device, 0, 0);
    assert_eq!(told.recv_timeout(LONG), Ok(1));
    // This one is slow: the device is dropped under it.
    let (begun, begins) = std::sync::mpsc::channel();
    let slow = move |device: &mut LiveDevice, _| {
        begun.send(()).unwrap();
        thread::sleep(Duration::from_millis(20));
        tell.send(device.inspect(System::now).as_fs().min(1) as i32 + 10)
            .unwrap();
    };
    device.on_interrupt(slow).unwrap();
    raise_cause(&mut device, 1, 0);
    begins.recv_timeout(LONG).unwrap();
    drop(device);
    assert_eq!(told.recv_timeout(LONG), Ok(11));
    assert!(told.recv_timeout(LONG).is_err(), "its thread has ended");

    let mut device = live(system(Arch::V3));
    device
        .on_interrupt(|_, _| panic!("broken handler"))
        .unwrap();
    raise_cause(&mut device, 0, 0);
    let sleep = sim::Duration::from_ns(10_000);
    device.sleep(sleep).unwrap();
    // Sooner or later the device notices that nobody takes its interrupts there.
    let taken = (0..1000).any(|_| {
        raise_cause(&mut device, 1, 0);
        device.sleep(sleep).unwrap();
        let clear = Arch::V3.spec().map.engine_base(EngineId(1)).unwrap().0;
        let cause = regs::GEN + 5 * iofic::GROUP_BYTES + iofic::CAUSE;
        device.write_reg(Addr(clear + cause), 0).unwrap();
        device.next_interrupt(Duration::from_millis(1)).is_ok()
    });
    assert!(taken);
}
