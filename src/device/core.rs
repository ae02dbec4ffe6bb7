//! What the stations of an engine share: its queues, limits and halves, what is to happen to it, and its errors.

use super::agenda::Agenda;
use super::compute::Reason;
use super::context::Ctx;
use super::counters::Counters;
use super::error::{DeviceError, ErrorBit, Origin};
use super::fabric::Route;
use super::faults::{FaultKind, Faults, Site};
use super::interrupts::Interrupts;
use super::queue::{Queues, Work};
use super::registers::Registers;
use super::request::{Request, Times};
use super::settings::{HalfLimits, Limits};
use crate::arch::regs::{self, Direction, Halves, UdmaState, general, global};
use crate::arch::{ArchSpec, EngineId, QueueId};
use crate::config::{AxiAbort, Config, EngineConfig};
use crate::desc::{Descriptor, PacketTracker};
use crate::sim::{Clock, Instant};
use crate::units::Addr;

/// What the stations of an engine share.
pub(super) struct Core {
    pub id: EngineId,
    pub spec: &'static ArchSpec,
    pub timing: EngineConfig,
    /// Cycles from one descriptor's first burst to the next one's, in either half: the credit of its header is back.
    pub header_cycles: u64,
    pub registers: Registers,
    pub limits: Limits,
    pub halves: Halves<Half>,
    pub queues: Queues,
    pub work: Work,
    pub agenda: Agenda,
    /// Whether the engine waits for its oldest read's data, and whether some queue of it waits for its
    /// oldest write's acknowledge.
    pub waits_for_read: bool,
    pub waits_for_ack: bool,
    pub interrupts: Interrupts,
    /// The first occurrence of each error, in the order they happened.
    pub errors: Vec<DeviceError>,
    /// Faults to inject; nothing on a machine without any.
    pub faults: Option<Box<Faults>>,
    pub counters: Counters,
}

/// One half of an engine.
pub(super) struct Half {
    pub state: UdmaState,
    pub limits: HalfLimits,
    /// Descriptor of the first error since the log was cleared.
    pub error_log: Option<Descriptor>,
    /// Descriptors in the prefetch FIFO or on their way to it, all queues.
    pub fifo_held: usize,
    /// Bursts of descriptors on their way.
    pub fetches: usize,
}

/// Errors an engine keeps a record of: a host that clears causes for ever must not fill memory.
const MOST_ERRORS: usize = 1024;

impl Core {
    /// Fresh from reset.
    pub fn new(id: EngineId, spec: &'static ArchSpec, config: &Config) -> Core {
        let timing = config.values.engine.clone();
        let header_back = Instant::START + timing.header_credit;
        let state = timing.state_after_reset.into();
        let mut core = Core {
            id,
            spec,
            header_cycles: config.udma_clock().cycle_from(header_back).0,
            timing,
            registers: Registers::new(spec),
            limits: Limits::default(),
            halves: Halves::each(|_| Half {
                state,
                limits: HalfLimits::default(),
                error_log: None,
                fifo_held: 0,
                fetches: 0,
            }),
            queues: Queues::new(spec.limits.queues_per_engine),
            work: Work::default(),
            agenda: Agenda::default(),
            waits_for_read: false,
            waits_for_ack: false,
            interrupts: Interrupts::default(),
            errors: Vec::new(),
            faults: None,
            counters: Counters::default(),
        };
        core.reload();
        core
    }

    /// Does what the registers say from now on.
    pub fn reload(&mut self) {
        self.limits = Limits::read(&self.registers, self.spec, &self.timing);
        for direction in Direction::ALL {
            let limits = HalfLimits::read(&self.registers, direction, &self.timing);
            self.halves[direction].limits = limits;
        }
        for q in self.queues.ids() {
            let queue = &mut self.queues[q];
            if !queue.tracker.inside() {
                queue.tracker = PacketTracker::new(self.limits.packet_descriptors);
            }
            queue.reload(&self.registers, q);
        }
    }

    /// Whether an error or the host has stopped both halves.
    #[inline]
    pub fn aborted(&self) -> bool {
        self.halves.m2s.state == UdmaState::Abort || self.halves.s2m.state == UdmaState::Abort
    }

    /// Puts both halves into a state.
    pub fn set_states(&mut self, state: UdmaState) {
        self.halves.iter_mut().for_each(|half| half.state = state);
    }

    /// Makes sure the engine works at the first clock edge at or after `at`, unless that is never.
    #[inline]
    pub fn wake_by(&mut self, at: Instant, ctx: &Ctx) {
        if at < self.agenda.wakes_at() {
            self.wake_at_edge(at, ctx.clock);
        }
    }

    #[inline(never)]
    fn wake_at_edge(&mut self, at: Instant, clock: &Clock) {
        let cycle = clock.cycle_from(at);
        self.agenda.wake_at(clock.edge(cycle), cycle.0);
    }

    /// Sends an access on its way. Returns its times if they are known now; if not, the engine is told
    /// them.
    // In registers, as all of it down to the memory: a copy of what has just been stored stalls.
    #[inline(always)]
    pub fn send(&self, request: Request, route: Route, ctx: &mut Ctx) -> Option<Times> {
        ctx.fabric.submit(self.id, request, route)
    }

    /// Length of the burst that starts at `at`: up to the next multiple of the burst size, at most
    /// `most` bytes.
    #[inline]
    pub fn burst_len(&self, direction: Direction, at: Addr, most: u32) -> u32 {
        let burst = self.halves[direction].limits.burst_bytes;
        // A power of two.
        let into = (at.0 & u64::from(burst - 1)) as u32;
        most.min(burst - into)
    }

    /// Queue `q` passes a site: the fault that strikes there.
    #[inline]
    pub fn strike(&mut self, site: Site, q: QueueId, now: Instant) -> Option<FaultKind> {
        self.faults.as_mut()?.strike(site, q, now)
    }

    /// Sets an error bit; unless it is masked, aborts the engine: nothing more is issued, what was
    /// issued still lands. Either the half's `err_log_mask` or the abort mask of its error group
    /// masks it: drivers set both.
    pub fn raise(&mut self, bit: ErrorBit, origin: Origin) {
        self.record(bit, origin, None);
    }

    /// As [`Core::raise`], with what the stream processor found wrong.
    pub fn raise_because(&mut self, bit: ErrorBit, origin: Origin, reason: Reason) {
        self.record(bit, origin, Some(reason));
    }

    #[cold]
    fn record(&mut self, bit: ErrorBit, origin: Origin, reason: Option<Reason>) {
        let direction = bit.direction();
        let first = self.interrupts.error_causes(direction) & bit.mask() == 0;
        let abort_masked = self.interrupts.set_error(direction, bit.mask());
        let masked = self.registers.global(direction, global::ERR_LOG_MASK) & bit.mask() != 0;
        let fatal = !masked && !abort_masked && self.detects(bit);
        if fatal {
            self.set_states(UdmaState::Abort);
        }
        self.halves[direction].error_log.get_or_insert(origin.desc);
        if let Some(faults) = &mut self.faults {
            faults.notice(origin.queue, bit);
        }
        if first && self.errors.len() < MOST_ERRORS {
            let error = DeviceError {
                engine: self.id,
                bit,
                queue: origin.queue,
                slot: origin.slot,
                at: origin.at,
                fatal,
                reason,
            };
            tracing::warn!("{error}");
            self.errors.push(error);
        }
    }

    /// Whether the AXI masters report an error. Which word of a master's table decides follows from the name of its
    /// index, {parity, timeout, response} (A); that any value but 0 does is modelled (C).
    fn detects(&self, bit: ErrorBit) -> bool {
        let Some((master, kind)) = bit
            .axi()
            .filter(|_| self.timing.axi_abort == AxiAbort::DetectionTables)
        else {
            return true;
        };
        let table = general::AXI_ERROR_1 + master * general::AXI_MASTER_TABLE_BYTES;
        self.registers.get(regs::GEN + table + 4 * kind) != 0
    }
}
