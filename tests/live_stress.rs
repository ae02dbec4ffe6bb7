//! Stress of a live device: 8 host threads drive 16 queues of one engine through registers, as a
//! driver does, and check every byte. Queues and the engine are switched off and on in the middle
//! of work, batches are acknowledged late and in lumps. With `--nocapture` it says how much it did.

mod common;

use common::config;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use udma_sim::arch::regs::{ChangeState, Direction, QueueCfg, global, queue};
use udma_sim::arch::{Arch, EngineId, QueueId};
use udma_sim::desc::{BarrierMode, CopyFlags, Descriptor, RingId, build_copy};
use udma_sim::host::{Bus, MARKER};
use udma_sim::live::{LiveDevice, Watchdog};
use udma_sim::sim;
use udma_sim::system::{Condition, System};
use udma_sim::units::Addr;

const ARCH: Arch = Arch::V3;
const HOSTS: u64 = 8;
const QUEUES: u8 = 16;
/// Descriptors of a ring, and those always kept free.
const RING: u32 = 256;
const RESERVED: u32 = 16;
/// Longest copy; each has a slot of its own to read from and one to write to, with room around it.
const MOST: usize = 192;
const SLOT: u64 = 256;
/// What untouched destination bytes hold.
const UNTOUCHED: u8 = 0xee;
/// Long enough for the slowest machine: only a deadlock takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A batch on its way: where its descriptors' slots start, what each copies, and its marker.
struct Batch {
    first: u32,
    copies: Vec<(usize, Vec<u8>)>,
    marker: Addr,
}

/// One queue as its driver sees it.
struct Queue {
    q: u8,
    /// Where its rings, markers, sources and destinations lie.
    base: u64,
    /// Next slot to fill, its phase, and the oldest one not acknowledged.
    next: u32,
    phase: RingId,
    acked: u32,
    batches: VecDeque<Batch>,
    markers: u64,
    done: u64,
}

impl Queue {
    fn new(device: &mut LiveDevice, q: u8) -> Queue {
        let base = (u64::from(q) + 1) << 24;
        let queue = Queue {
            q,
            base,
            next: 0,
            phase: RingId::FIRST_LAP,
            acked: 0,
            batches: VecDeque::new(),
            markers: 0,
            done: 0,
        };
        let destinations = vec![UNTOUCHED; RING as usize * SLOT as usize];
        device.write_mem(Addr(queue.dst(0)), &destinations).unwrap();
        for direction in Direction::ALL {
            let ring = queue.ring(direction, 0).0;
            let mut set = |offset, value| {
                let at = register(direction.queue_reg(QueueId(q), offset));
                device.write_reg(at, value).unwrap();
            };
            set(queue::DRBP_LOW, ring as u32);
            set(queue::DRBP_HIGH, (ring >> 32) as u32);
            set(queue::DRL, RING);
            set(queue::CFG, enables(true));
        }
        queue
    }

    fn ring(&self, direction: Direction, slot: u32) -> Addr {
        Addr(self.base + ((direction as u64) << 16) + u64::from(slot) * 16)
    }

    fn src(&self, slot: u32) -> u64 {
        self.base + 0x10_0000 + u64::from(slot) * SLOT
    }

    fn dst(&self, slot: u32) -> u64 {
        self.base + 0x20_0000 + u64::from(slot) * SLOT
    }

    fn free(&self) -> u32 {
        (self.acked.wrapping_sub(self.next + RESERVED)) % RING
    }

    fn doorbell(&self, device: &mut LiveDevice, direction: Direction, count: u32) {
        let at = register(direction.queue_reg(QueueId(self.q), queue::DRTP_INC));
        device.write_reg(at, count).unwrap();
    }

    fn switch(&self, device: &mut LiveDevice, direction: Direction, on: bool) {
        let at = register(direction.queue_reg(QueueId(self.q), queue::CFG));
        device.write_reg(at, enables(on)).unwrap();
    }

    /// Writes descriptors into a ring, in two pieces where it wraps.
    fn store(&self, device: &mut LiveDevice, direction: Direction, descs: &[Descriptor]) {
        let bytes: Vec<u8> = descs.iter().flat_map(|desc| desc.to_bytes()).collect();
        let first = bytes.len().min((RING - self.next) as usize * 16);
        let (head, rest) = bytes.split_at(first);
        device
            .write_mem(self.ring(direction, self.next), head)
            .unwrap();
        device.write_mem(self.ring(direction, 0), rest).unwrap();
    }

    /// Stages up to `most` copies and a marker, and rings RX, then TX.
    fn submit(&mut self, device: &mut LiveDevice, rng: &mut ChaCha8Rng, most: u64) {
        let room = u64::from(self.free().saturating_sub(1)).min(most);
        if room == 0 {
            return;
        }
        let count = rng.random_range(1..=room.min(48)) as u32;
        let marker = Addr(self.base + 0x30_0000 + self.markers % u64::from(RING) * 8);
        self.markers += 1;
        device
            .write_mem(marker, &u64::from(MARKER).to_le_bytes())
            .unwrap();
        let mut batch = Batch {
            first: self.next,
            copies: Vec::new(),
            marker,
        };
        let (mut tx, mut rx) = (Vec::new(), Vec::new());
        let (mut slot, mut phase) = (self.next, self.phase);
        for n in 0..=count {
            let (src, dst, len, barrier) = match n == count {
                true => (marker.0, marker.0 + 4, 4, BarrierMode::None),
                false => {
                    let into = rng.random_range(0..8usize);
                    let mut data = vec![0; rng.random_range(1..=MOST)];
                    rng.fill_bytes(&mut data);
                    let (src, len) = (self.src(slot), data.len());
                    device.write_mem(Addr(src), &data).unwrap();
                    batch.copies.push((into, data));
                    let last = n + 1 == count;
                    let barrier = if last {
                        BarrierMode::WriteBarrier
                    } else {
                        BarrierMode::None
                    };
                    (src, self.dst(slot) + into as u64, len as u32, barrier)
                }
            };
            let (src, dst, flags) = (Addr(src), Addr(dst), CopyFlags::default());
            let (t, r) = build_copy(ARCH, src, dst, len, phase, barrier, flags).unwrap();
            tx.push(t.into());
            rx.push(r.into());
            slot = (slot + 1) % RING;
            if slot == 0 {
                phase = phase.next();
            }
        }
        self.store(device, Direction::M2s, &tx);
        self.store(device, Direction::S2m, &rx);
        (self.next, self.phase) = (slot, phase);
        self.batches.push_back(batch);
        self.doorbell(device, Direction::S2m, count + 1);
        self.doorbell(device, Direction::M2s, count + 1);
    }

    fn is_done(&self, device: &mut LiveDevice) -> bool {
        let Some(batch) = self.batches.front() else {
            return false;
        };
        let mut word = [0; 4];
        device
            .read_mem(Addr(batch.marker.0 + 4), &mut word)
            .unwrap();
        u32::from_le_bytes(word) == MARKER
    }

    /// Checks every byte of the oldest batch, and those around, and gives its slots back.
    fn acknowledge(&mut self, device: &mut LiveDevice) {
        let batch = self.batches.pop_front().unwrap();
        let mut slot = batch.first;
        for (into, data) in &batch.copies {
            let mut expected = vec![UNTOUCHED; SLOT as usize];
            let mut seen = expected.clone();
            device.read_mem(Addr(self.dst(slot)), &mut seen).unwrap();
            expected[*into..*into + data.len()].copy_from_slice(data);
            assert!(seen == expected, "queue {} slot {slot}", self.q);
            let clean = vec![UNTOUCHED; SLOT as usize];
            device.write_mem(Addr(self.dst(slot)), &clean).unwrap();
            slot = (slot + 1) % RING;
        }
        // The marker's slot.
        self.acked = (slot + 1) % RING;
        self.done += batch.copies.len() as u64 + 1;
    }
}

fn register(offset: u64) -> Addr {
    Addr(ARCH.spec().map.engine_base(EngineId(0)).unwrap().0 + offset)
}

fn enables(on: bool) -> u32 {
    QueueCfg::new()
        .with_en_pref(on)
        .with_en_scheduling(on)
        .into_bits()
}

fn change_state(device: &mut LiveDevice, on: bool) {
    let command = ChangeState::new().with_normal(on).with_dis(!on).into_bits();
    for direction in Direction::ALL {
        let at = register(direction.global_reg(global::CHANGE_STATE));
        device.write_reg(at, command).unwrap();
    }
}

/// One host: two queues, until each has done `quota` descriptors.
fn host(mut device: LiveDevice, number: u64, quota: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(number);
    let mut queues: Vec<Queue> = (0..u64::from(QUEUES) / HOSTS)
        .map(|n| Queue::new(&mut device, (number + n * HOSTS) as u8))
        .collect();
    // The least batch is a copy and its marker.
    while queues.iter().any(|queue| queue.done + 1 < quota) {
        for queue in &mut queues {
            let ahead: u64 = (queue.batches.iter())
                .map(|batch| batch.copies.len() as u64 + 1)
                .sum();
            let left = quota.saturating_sub(queue.done + ahead + 1);
            queue.submit(&mut device, &mut rng, left);
            // Off and on in the middle of work.
            if rng.random_ratio(1, 8) {
                let direction = Direction::ALL[rng.random_range(0..2)];
                queue.switch(&mut device, direction, false);
                device
                    .sleep(sim::Duration::from_ns(rng.random_range(0..2_000)))
                    .unwrap();
                queue.switch(&mut device, direction, true);
            }
            if number == 0 && rng.random_ratio(1, 16) {
                change_state(&mut device, false);
                device
                    .sleep(sim::Duration::from_ns(rng.random_range(0..2_000)))
                    .unwrap();
                change_state(&mut device, true);
            }
            // Acknowledged as they come, now and then all of them, now and then none.
            let finish = left == 0 || queue.free() < RING / 4 || rng.random_ratio(1, 8);
            while let Some(batch) = queue.batches.front() {
                if finish {
                    let until = Condition::Word {
                        at: Addr(batch.marker.0 + 4),
                        value: MARKER,
                    };
                    device.wait(&until, PATIENCE).unwrap();
                } else if rng.random_ratio(1, 3) || !queue.is_done(&mut device) {
                    break;
                }
                queue.acknowledge(&mut device);
            }
        }
    }
}

/// Runs until `descriptors` Tx descriptors, and as many Rx descriptors, are done.
fn stress(descriptors: u64) {
    let system = System::new(config(ARCH, &[]), 0).unwrap();
    let mut device = LiveDevice::start(system, Watchdog::default()).unwrap();
    change_state(&mut device, true);
    let started = Instant::now();
    let quota = descriptors / u64::from(QUEUES);
    std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..HOSTS)
            .map(|number| {
                let device = device.clone();
                let thread = std::thread::Builder::new().name(format!("host {number}"));
                thread
                    .spawn_scoped(scope, move || host(device, number, quota))
                    .unwrap()
            })
            .collect();
        for host in hosts {
            host.join().unwrap();
        }
    });
    device.wait(&Condition::Idle, PATIENCE).unwrap();
    let (counters, status) = device.inspect(|system| {
        let status = system.engine_status(EngineId(0)).unwrap();
        (system.counters(), status)
    });
    assert_eq!(status.causes, [0, 0], "{:?}", status.errors);
    assert_eq!(counters.doorbell_overflow, 0);
    assert_eq!(counters.tx_descriptors, counters.rx_descriptors);
    assert_eq!(counters.bytes_read, counters.bytes_written);
    // A queue stops when no batch of a copy and its marker fits into what is left.
    let short = descriptors - counters.tx_descriptors;
    assert!(short <= 2 * u64::from(QUEUES), "{short} descriptors short");
    println!(
        "{} tx and {} rx descriptors, {} bytes checked, {} doorbells, {} of simulated time, {:?}",
        counters.tx_descriptors,
        counters.rx_descriptors,
        counters.bytes_written,
        counters.doorbells,
        device.now() - sim::Instant::START,
        started.elapsed(),
    );
}

/// 1,000,000 Tx descriptors and as many Rx descriptors.
#[test]
fn eight_hosts_on_sixteen_queues() {
    stress(1_000_016);
}
