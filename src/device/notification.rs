//! The engine's notification queue (V4): a ring in memory in which every completed packet that asked for it leaves a
//! [`Notification`]. Software tells new ones by their phase, and says with the head register how far
//! it has read. How much of this is modelled (C) is in `docs/device.md`, "Notifications".

use super::agenda::EngineEvent;
use super::context::Ctx;
use super::core::Core;
use super::error::{ErrorBit, Origin};
use super::packet::Packet;
use super::registers::Registers;
use crate::arch::QueueId;
use crate::arch::regs::{self, M2sError, notific};
use crate::desc::{NOTIFICATION_BYTES, Notification};
use crate::sim::Instant;
use crate::units::Addr;
use std::collections::VecDeque;

/// The notification queue of an engine.
#[derive(Default)]
pub(super) struct NotificationQueue {
    /// From the registers: where it lies, how many entries it has (0: it is off), which of them
    /// software reads next.
    base: Addr,
    entries: u32,
    head: u32,
    /// Entries ever given away.
    issued: u64,
    /// Notifications on their way to memory, oldest first, and when the youngest is visible.
    on_the_way: VecDeque<(Addr, Notification)>,
    visible_until: Instant,
}

impl NotificationQueue {
    /// Address and phase of the next entry; `None` if software has not read enough. One entry stays
    /// free, so that a full queue is not taken for an empty one.
    fn next_entry(&mut self) -> Option<(Addr, bool)> {
        let entries = u64::from(self.entries);
        let lap = self.issued.checked_div(entries)?;
        let index = self.issued % entries;
        let unread = (index + entries - u64::from(self.head) % entries) % entries;
        if unread + 1 == entries {
            return None;
        }
        self.issued += 1;
        let at = self.base.0.wrapping_add(index * NOTIFICATION_BYTES as u64);
        Some((Addr(at), lap.is_multiple_of(2)))
    }

    /// Whether nothing of queue `q` is on its way.
    pub fn is_quiet(&self, q: QueueId) -> bool {
        self.on_the_way.iter().all(|(_, sent)| sent.queue != q)
    }

    /// A packet of queue `q` is complete: notifies software if it asked for that.
    pub fn notify(&mut self, core: &mut Core, q: QueueId, packet: &Packet, ctx: &mut Ctx) {
        let Some(slot) = packet.notification.filter(|_| self.entries > 0) else {
            return;
        };
        let Some((at, phase)) = self.next_entry() else {
            core.counters.notifications_lost += 1;
            return;
        };
        let notification = Notification {
            phase,
            queue: q,
            slot,
            packets: core.queues[q].packet_count,
            cycle: ctx.clock.cycle_at(ctx.now).0,
        };
        let route = (ctx.fabric).route(ctx.memory, at, NOTIFICATION_BYTES as u64);
        let times = ctx.fabric.post(ctx.now, route, 1);
        self.visible_until = self.visible_until.max(times.done);
        self.on_the_way.push_back((at, notification));
        (core.agenda).push(self.visible_until, EngineEvent::Notification);
        core.work.records += 1;
    }

    /// The oldest notification reaches memory.
    #[inline(never)]
    pub fn land(&mut self, core: &mut Core, ctx: &mut Ctx) {
        let Some((at, notification)) = self.on_the_way.pop_front() else {
            return;
        };
        core.work.records -= 1;
        ctx.out.progress = true;
        match ctx.memory.write(at, &notification.to_bytes()) {
            Ok(effects) => {
                core.counters.notifications += 1;
                ctx.out.wrote(effects);
            }
            Err(_) => {
                let origin = Origin {
                    slot: notification.slot,
                    at,
                    ..Origin::of(notification.queue)
                };
                core.raise(ErrorBit::M2s(M2sError::CompResponse), origin);
            }
        }
    }

    /// The register `within` of the notification block has changed. Whoever sets the queue up writes all of base
    /// and size: each of them starts it anew (C).
    pub fn reload(&mut self, registers: &Registers, within: u64) {
        let get = |offset| registers.get(regs::NOTIFIC + offset);
        let base = u64::from(get(notific::NQ_BASE_HI)) << 32 | u64::from(get(notific::NQ_BASE_LO));
        self.base = Addr(base);
        self.entries = get(notific::NQ_SIZE) / NOTIFICATION_BYTES as u32;
        self.head = get(notific::NQ_HEAD);
        if within != notific::NQ_HEAD {
            self.issued = 0;
        }
    }
}
