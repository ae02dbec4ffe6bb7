//! The ring-cycle driver of one queue: initialisation through registers, doorbells, triggers
//! (`docs/hardware.md`, "Ring cycle", "Registers").

use super::bus::{Bus, BusError};
use super::pring::{Pring, PringError};
use crate::arch::regs::{
    ChangeState, CompCfg, Direction, M2sError, PrefQueueEn, QueueCfg, QueueSwCtrl, RateLimitMask,
    S2mError, global, queue,
};
use crate::arch::{Arch, EngineId, QueueId};
use crate::units::Addr;

/// How a queue is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Leave the ring-id check on. Static rings, which are replayed without changing the phase,
    /// need it masked; the mask is the engine's, so one such queue masks it for all of them.
    pub ring_id_check: bool,
    /// Make DMB work, by clearing the mask of its pause. At reset DMB does nothing.
    pub dmb: bool,
}

impl Default for QueueOptions {
    /// The check on, DMB working.
    fn default() -> QueueOptions {
        QueueOptions {
            ring_id_check: true,
            dmb: true,
        }
    }
}

/// A queue to be set up.
#[derive(Clone, Copy, Debug)]
pub struct QueueSetup<'a> {
    /// Generation of the device.
    pub arch: Arch,
    /// The engine.
    pub engine: EngineId,
    /// The queue's number in the engine.
    pub queue: u32,
    /// Its Tx ring.
    pub tx: &'a Pring,
    /// Its Rx ring.
    pub rx: &'a Pring,
    /// How.
    pub options: QueueOptions,
}

/// Why a queue was not set up or not rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The device has no such engine.
    #[error("{arch} does not have engine {engine}; it has e0 to e{last}")]
    NoEngine {
        /// Generation of the device.
        arch: Arch,
        /// Engine asked for.
        engine: EngineId,
        /// Last engine of the device.
        last: u32,
    },
    /// The engine has no such queue.
    #[error("{engine} does not have queue {queue}; it has queues 0 to {last}")]
    NoQueue {
        /// Engine asked for.
        engine: EngineId,
        /// Queue asked for.
        queue: u32,
        /// Last queue of an engine.
        last: u32,
    },
    /// A pring cannot be the queue's ring.
    #[error("{engine} queue {queue}: {source}")]
    Ring {
        /// Engine of the queue.
        engine: EngineId,
        /// The queue.
        queue: QueueId,
        /// Why not.
        source: PringError,
    },
    /// A doorbell for no descriptors, or for more than the ring has.
    #[error(
        "{engine} queue {queue}: {ring} doorbell of {count} descriptors; the count must be 1 to {size}, the length of the ring"
    )]
    Doorbell {
        /// Engine of the queue.
        engine: EngineId,
        /// The queue.
        queue: QueueId,
        /// `tx` or `rx`.
        ring: &'static str,
        /// Descriptors asked for.
        count: u32,
        /// Descriptors of the ring.
        size: u32,
    },
    /// The bus refused an access.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// A queue that owns a Tx and an Rx ring and is ready for doorbells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePair {
    engine: EngineId,
    queue: QueueId,
    /// Register window of the engine.
    window: Addr,
    tx_size: u32,
    rx_size: u32,
}

impl QueuePair {
    /// Sets a queue up: rings, reset of its pointers, enables; then the engine runs. Completion
    /// rings stay off, as on the production queues of a memory-to-memory engine.
    ///
    /// # Errors
    /// [`QueueError`] for an engine or a queue that does not exist and for prings that are of the
    /// wrong type or unbound, all before the first register is written.
    pub fn init(bus: &mut dyn Bus, setup: QueueSetup<'_>) -> Result<QueuePair, QueueError> {
        let QueueSetup {
            arch,
            engine,
            queue,
            tx,
            rx,
            options,
        } = setup;
        let spec = arch.spec();
        let window = spec.map.engine_base(engine).ok_or(QueueError::NoEngine {
            arch,
            engine,
            last: spec.map.engine_count() - 1,
        })?;
        let queue = match u8::try_from(queue) {
            Ok(small) if queue < spec.limits.queues_per_engine => QueueId(small),
            _ => {
                let last = spec.limits.queues_per_engine - 1;
                return Err(QueueError::NoQueue {
                    engine,
                    queue,
                    last,
                });
            }
        };
        let ring = |pring: &Pring, direction| {
            pring.expect(direction).map_err(|source| QueueError::Ring {
                engine,
                queue,
                source,
            })
        };
        let (tx_base, rx_base) = (ring(tx, Direction::M2s)?, ring(rx, Direction::S2m)?);
        let pair = QueuePair {
            engine,
            queue,
            window,
            tx_size: tx.allocated_desc_count(),
            rx_size: rx.allocated_desc_count(),
        };
        pair.init_half(bus, Direction::M2s, tx_base)?;
        pair.init_half(bus, Direction::S2m, rx_base)?;
        pair.init_dmb(bus, options.dmb)?;
        if !options.ring_id_check {
            pair.mask_ring_id_errors(bus)?;
        }
        for direction in Direction::ALL {
            pair.enable(bus, direction)?;
        }
        tracing::debug!(%engine, queue = queue.0, tx = %tx_base, rx = %rx_base, "queue initialised");
        Ok(pair)
    }

    /// The engine.
    pub fn engine(&self) -> EngineId {
        self.engine
    }

    /// The queue's number in the engine.
    pub fn queue(&self) -> QueueId {
        self.queue
    }

    /// Descriptors of one of the rings.
    pub fn ring_size(&self, direction: Direction) -> u32 {
        match direction {
            Direction::M2s => self.tx_size,
            Direction::S2m => self.rx_size,
        }
    }

    /// Tells the device of `count` more descriptors on one of the rings.
    ///
    /// # Errors
    /// [`QueueError::Doorbell`] for a count outside 1..=ring size; nothing is then written.
    pub fn doorbell(
        &self,
        bus: &mut dyn Bus,
        direction: Direction,
        count: u32,
    ) -> Result<(), QueueError> {
        self.check_count(direction, count)?;
        tracing::debug!(
            engine = %self.engine,
            queue = self.queue.0,
            ring = direction.ring_name(),
            count,
            "doorbell"
        );
        Ok(bus.write_reg(self.queue_reg(direction, queue::DRTP_INC), count)?)
    }

    /// Triggers a batch: the Rx doorbell, then the Tx doorbell, so that the destinations are known
    /// before data flows. With no Tx descriptors it is an Rx prefetch.
    ///
    /// # Errors
    /// [`QueueError::Doorbell`] for a count outside 1..=ring size (0 allowed for Tx); neither
    /// doorbell is then rung.
    pub fn trigger(
        &self,
        bus: &mut dyn Bus,
        tx_count: u32,
        rx_count: u32,
    ) -> Result<(), QueueError> {
        if tx_count > 0 {
            self.check_count(Direction::M2s, tx_count)?;
        }
        self.doorbell(bus, Direction::S2m, rx_count)?;
        if tx_count > 0 {
            self.doorbell(bus, Direction::M2s, tx_count)?;
        }
        Ok(())
    }

    fn check_count(&self, direction: Direction, count: u32) -> Result<(), QueueError> {
        let size = self.ring_size(direction);
        if (1..=size).contains(&count) {
            return Ok(());
        }
        Err(QueueError::Doorbell {
            engine: self.engine,
            queue: self.queue,
            ring: direction.ring_name(),
            count,
            size,
        })
    }

    /// Stops one half of the queue, gives it its ring and resets its pointers.
    fn init_half(
        &self,
        bus: &mut dyn Bus,
        direction: Direction,
        base: Addr,
    ) -> Result<(), BusError> {
        let reg = |offset| self.queue_reg(direction, offset);
        self.switch(bus, direction, false)?;
        let strobes = QueueSwCtrl::new()
            .with_rst_dmb(true)
            .with_rst_tail(true)
            .with_rst_head(true)
            .with_rst_current(true)
            .with_rst_q(true);
        bus.write_reg(reg(queue::sw_ctrl(direction)), strobes.into_bits())?;
        bus.write_reg(reg(queue::DRBP_LOW), base.0 as u32)?;
        bus.write_reg(reg(queue::DRBP_HIGH), (base.0 >> 32) as u32)?;
        bus.write_reg(reg(queue::DRL), self.ring_size(direction))?;
        // A queue may wait for its other ring as long as it likes: the driver does this too (A).
        let timeout = global::comp_ack_timeout(direction);
        bus.write_reg(self.global_reg(direction, timeout), 0)?;
        update(bus, reg(queue::comp_cfg(direction)), |value| {
            CompCfg::from_bits(value)
                .with_en_comp_ring_update(false)
                .into_bits()
        })
    }

    fn init_dmb(&self, bus: &mut dyn Bus, works: bool) -> Result<(), BusError> {
        let mask = self.queue_reg(Direction::M2s, queue::M2S_RATE_LIMIT_MASK);
        update(bus, mask, |value| {
            RateLimitMask::from_bits(value)
                .with_internal_pause_dmb(!works)
                .into_bits()
        })
    }

    fn mask_ring_id_errors(&self, bus: &mut dyn Bus) -> Result<(), BusError> {
        for (direction, bit) in [
            (Direction::M2s, M2sError::RingId.mask()),
            (Direction::S2m, S2mError::RingId.mask()),
        ] {
            let mask = self.global_reg(direction, global::ERR_LOG_MASK);
            update(bus, mask, |value| value | bit)?;
        }
        Ok(())
    }

    /// Starts one half of the queue and of its engine.
    fn enable(&self, bus: &mut dyn Bus, direction: Direction) -> Result<(), BusError> {
        let allowed = self.global_reg(direction, global::pref_queue_en(direction));
        update(bus, allowed, |value| {
            PrefQueueEn::from_bits(value).with(self.queue).into_bits()
        })?;
        self.switch(bus, direction, true)?;
        let run = ChangeState::new().with_normal(true).into_bits();
        bus.write_reg(self.global_reg(direction, global::CHANGE_STATE), run)
    }

    fn switch(&self, bus: &mut dyn Bus, direction: Direction, on: bool) -> Result<(), BusError> {
        update(bus, self.queue_reg(direction, queue::CFG), |value| {
            QueueCfg::from_bits(value)
                .with_en_pref(on)
                .with_en_scheduling(on)
                .into_bits()
        })
    }

    fn queue_reg(&self, direction: Direction, offset: u64) -> Addr {
        Addr(self.window.0 + direction.queue_reg(self.queue, offset))
    }

    fn global_reg(&self, direction: Direction, offset: u64) -> Addr {
        Addr(self.window.0 + direction.global_reg(offset))
    }
}

/// Reads a register, changes the value, writes it back.
fn update(
    bus: &mut dyn Bus,
    register: Addr,
    change: impl FnOnce(u32) -> u32,
) -> Result<(), BusError> {
    let value = bus.read_reg(register)?;
    bus.write_reg(register, change(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::PringType;
    use crate::host::test_bus::TestBus;

    const ENGINE: EngineId = EngineId(1);
    /// Register window of engine 1 on V3.
    const WINDOW: u64 = 0x10_0210_0000;

    fn prings() -> (Pring, Pring) {
        (
            Pring::new(Direction::M2s, Addr(0x8000_0001_2300), 64).unwrap(),
            Pring::new(Direction::S2m, Addr(0x5_6700), 128).unwrap(),
        )
    }

    fn init(bus: &mut TestBus, options: QueueOptions) -> QueuePair {
        let (tx, rx) = prings();
        QueuePair::init(
            bus,
            QueueSetup {
                arch: Arch::V3,
                engine: ENGINE,
                queue: 2,
                tx: &tx,
                rx: &rx,
                options,
            },
        )
        .unwrap()
    }

    fn reg(bus: &mut TestBus, offset: u64) -> u32 {
        bus.read_reg(Addr(WINDOW + offset)).unwrap()
    }

    #[test]
    fn an_initialised_queue_has_its_rings_and_runs() {
        let mut bus = TestBus::default();
        for (offset, reset) in [
            (0x3020, 0x0300_0000),
            (0x23020, 0x0300_0000),
            (0x3074, 0x4),
            (0x23054, 0x1),
            (0x25c, 0xffff),
        ] {
            bus.preset_reg(Addr(WINDOW + offset), reset);
        }
        init(&mut bus, QueueOptions::default());
        for (offset, want) in [
            (0x3028, 0x0001_2300),
            (0x302c, 0x8000),
            (0x3030, 64),
            (0x23028, 0x0005_6700),
            (0x2302c, 0),
            (0x23030, 128),
            (0x3020, 0x0303_0000),
            (0x23020, 0x0303_0000),
            (0x3074, 0),
            (0x23054, 0),
            (0x30a0, 0),
            (0x30b0, 0x10f),
            (0x23064, 0x10f),
            (0x20c, 0),
            (0x2020c, 0),
            (0x204, 1),
            (0x20204, 1),
            (0x25c, 0xffff),
            (0x20254, 0x4),
        ] {
            assert_eq!(reg(&mut bus, offset), want, "register {offset:#x}");
        }
    }

    #[test]
    fn the_enables_come_last() {
        let mut bus = TestBus::default();
        init(&mut bus, QueueOptions::default());
        let last_of = |offset| {
            let at = Addr(WINDOW + offset);
            bus.register_log
                .iter()
                .rposition(|(reg, _)| *reg == at)
                .unwrap()
        };
        for (before, after) in [
            (0x30b0, 0x3028),
            (0x3030, 0x3020),
            (0x3074, 0x3020),
            (0x3020, 0x204),
            (0x23030, 0x23020),
        ] {
            assert!(
                last_of(before) < last_of(after),
                "{before:#x} before {after:#x}"
            );
        }
    }

    #[test]
    fn options_leave_the_rest_alone() {
        let mut bus = TestBus::default();
        bus.preset_reg(Addr(WINDOW + 0x3074), 0x4);
        bus.preset_reg(Addr(WINDOW + 0x20c), 0x1);
        let options = QueueOptions {
            ring_id_check: false,
            dmb: false,
        };
        init(&mut bus, options);
        assert_eq!(reg(&mut bus, 0x3074), 0x4);
        assert_eq!(reg(&mut bus, 0x20c), 0x0002_0001);
        assert_eq!(reg(&mut bus, 0x2020c), 0x0000_0800);
    }

    #[test]
    fn a_trigger_rings_rx_before_tx() {
        let mut bus = TestBus::default();
        let queue = init(&mut bus, QueueOptions::default());
        bus.register_log.clear();
        queue.trigger(&mut bus, 64, 128).unwrap();
        queue.trigger(&mut bus, 0, 1).unwrap();
        assert_eq!(
            bus.register_log,
            [
                (Addr(WINDOW + 0x23038), 128),
                (Addr(WINDOW + 0x3038), 64),
                (Addr(WINDOW + 0x23038), 1),
            ]
        );
    }

    #[test]
    fn doorbells_outside_the_ring_are_not_rung() {
        let mut bus = TestBus::default();
        let queue = init(&mut bus, QueueOptions::default());
        bus.register_log.clear();
        for (tx, rx) in [(65, 1), (1, 0), (1, 129), (0, 0), (u32::MAX, 1)] {
            let refused = queue.trigger(&mut bus, tx, rx);
            assert!(
                matches!(refused, Err(QueueError::Doorbell { .. })),
                "{tx} {rx}"
            );
        }
        let refused = queue.doorbell(&mut bus, Direction::M2s, 0).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "e1 queue 2: tx doorbell of 0 descriptors; the count must be 1 to 64, the length of the ring"
        );
        assert_eq!(bus.register_log, []);
    }

    #[test]
    fn refusals_write_no_register() {
        let mut bus = TestBus::default();
        let (tx, rx) = prings();
        let mut refuse = |engine, queue, rings: (&Pring, &Pring)| {
            let options = QueueOptions::default();
            let error = QueuePair::init(
                &mut bus,
                QueueSetup {
                    arch: Arch::V3,
                    engine: EngineId(engine),
                    queue,
                    tx: rings.0,
                    rx: rings.1,
                    options,
                },
            )
            .unwrap_err();
            assert_eq!(bus.register_log, []);
            error
        };
        assert!(matches!(
            refuse(132, 0, (&tx, &rx)),
            QueueError::NoEngine { last: 131, .. }
        ));
        assert!(matches!(
            refuse(0, 16, (&tx, &rx)),
            QueueError::NoQueue { last: 15, .. }
        ));
        assert!(matches!(
            refuse(0, 256, (&tx, &rx)),
            QueueError::NoQueue { queue: 256, .. }
        ));
        let source = PringError::Type {
            found: PringType::Tx,
            wanted: PringType::Rx,
        };
        let (engine, queue) = (EngineId(0), QueueId(0));
        assert_eq!(
            refuse(0, 0, (&tx, &tx)),
            QueueError::Ring {
                engine,
                queue,
                source
            }
        );
    }
}
