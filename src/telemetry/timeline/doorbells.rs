//! Which doorbell announced which descriptors.

use crate::arch::{EngineId, QueueId};
use std::collections::{BTreeMap, VecDeque};

/// A doorbell whose descriptors have not all completed.
struct Announced {
    flow: u64,
    left: u64,
}

/// The Tx doorbells of every queue whose descriptors have not all completed, oldest first.
#[derive(Default)]
pub(super) struct Doorbells(BTreeMap<(EngineId, QueueId), VecDeque<Announced>>);

impl Doorbells {
    /// A doorbell announces descriptors; `flow` is the arrow that starts at it.
    pub fn ring(&mut self, queue: (EngineId, QueueId), flow: u64, descriptors: u64) {
        let announced = self.0.entry(queue).or_default();
        announced.push_back(Announced {
            flow,
            left: descriptors,
        });
    }

    /// A queue's next descriptors are completed: the arrow of the doorbell that announced the first.
    pub fn complete(&mut self, queue: (EngineId, QueueId), mut descriptors: u64) -> Option<u64> {
        let announced = self.0.entry(queue).or_default();
        let flow = announced.front().map(|doorbell| doorbell.flow);
        while let Some(doorbell) = announced.front_mut() {
            let taken = doorbell.left.min(descriptors);
            doorbell.left -= taken;
            descriptors -= taken;
            if doorbell.left > 0 {
                break;
            }
            announced.pop_front();
        }
        flow
    }
}
