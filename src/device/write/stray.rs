//! Writes that were on their way when their queue was reset: they land where they were aimed.

use super::Writer;
use crate::arch::QueueId;
use crate::device::context::{Ctx, RegisterWrite, register_window};
use crate::device::core::Core;
use crate::units::Addr;
use std::collections::BTreeMap;

/// The writes whose queue was reset under them, by queue and number.
#[derive(Default)]
pub(super) struct Strays(BTreeMap<(QueueId, u64), Stray>);

/// A write whose queue was reset under it.
struct Stray {
    at: Addr,
    /// None for a transpose flush, which goes nowhere.
    bytes: Vec<u8>,
    channel: usize,
}

impl Strays {
    /// The memory channel of a stray; `None` if there is no such write.
    pub fn channel(&self, q: QueueId, burst: u64) -> Option<usize> {
        Some(self.0.get(&(q, burst))?.channel)
    }

    /// Whether one of them comes before the fence of its queue.
    pub fn any_before(&self, fences: &[u64]) -> bool {
        self.0
            .keys()
            .any(|(q, burst)| fences.get(q.index()).is_some_and(|fence| burst < fence))
    }
}

impl Writer {
    /// Whether writes of a queue are on their way under which it was reset.
    pub fn has_strays(&self, q: QueueId) -> bool {
        let mut of_queue = self.strays.0.range((q, 0)..=(q, u64::MAX));
        of_queue.next().is_some()
    }

    /// Whether there are such writes of any queue.
    pub fn has_any_strays(&self) -> bool {
        !self.strays.0.is_empty()
    }

    /// The writes that queue `q` has issued and that have not landed are on their own.
    pub fn forget(&mut self, core: &mut Core, q: QueueId) {
        let queue = &mut core.queues[q];
        loop {
            let number = queue.writes.first();
            let Some(write) = queue.writes.pop_front() else {
                return;
            };
            if write.burst.has_landed() {
                core.work.writes -= 1;
                continue;
            }
            let (first, rest) = match write.flush {
                true => Default::default(),
                false => queue.bytes(write.data, write.packet, write.burst.len),
            };
            let stray = Stray {
                at: write.burst.at,
                bytes: [first, rest].concat(),
                channel: write.burst.channel as usize,
            };
            self.strays.0.insert((q, number), stray);
        }
    }

    /// A write whose queue has been reset reaches its target. Whether that refuses it, nobody is told (C).
    #[cold]
    pub(super) fn land_stray(&mut self, core: &mut Core, q: QueueId, burst: u64, ctx: &mut Ctx) {
        let Some(Stray { at, bytes, .. }) = self.strays.0.remove(&(q, burst)) else {
            return;
        };
        core.work.writes -= 1;
        core.counters.bytes_written += bytes.len() as u64;
        ctx.out.progress = true;
        if !bytes.is_empty() {
            match ctx.memory.write(at, &bytes) {
                Ok(effects) => ctx.out.wrote(effects),
                Err(error) => match register_window(ctx.memory, at, bytes.len() as u32) {
                    Some((engine, offset)) => {
                        let mut value = [0; 4];
                        value.copy_from_slice(&bytes);
                        ctx.out.register_writes.push(RegisterWrite {
                            engine,
                            offset,
                            value: u32::from_le_bytes(value),
                        });
                    }
                    None => {
                        tracing::warn!(engine = %core.id, queue = q.0, %error, "refused write of a queue that was reset")
                    }
                },
            }
        }
        core.wake_by(ctx.now, ctx);
    }
}
