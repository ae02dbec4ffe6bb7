//! Where things come from: tags for steps, instructions of sequencers, expectations and dumped rings, and
//! which step built which descriptor of a ring.

use super::machine::Machine;
use crate::arch::regs::Direction;
use crate::desc::DESC_BYTES;
use crate::order::race::Origin;
use crate::scenario::host_side::{HostSide, News, PringPlan};
use crate::scenario::plan::Plan;
use crate::system::SequencerOp;
use std::collections::BTreeMap;

/// Tags of everything in a plan, in a row: steps, expectations, prings, then sequencers.
pub(super) struct Origins<'a> {
    plan: &'a Plan,
}

impl<'a> Origins<'a> {
    pub fn of(plan: &'a Plan) -> Origins<'a> {
        Origins { plan }
    }

    pub fn of_step(&self, index: usize) -> u32 {
        index as u32
    }

    pub fn of_expect(&self, index: usize) -> u32 {
        (self.plan.steps.len() + index) as u32
    }

    pub fn of_pring(&self, index: usize) -> u32 {
        self.of_expect(self.plan.expects.len() + index)
    }

    pub fn of_instruction(&self, sequencer: usize, index: usize) -> u32 {
        let before = self.plan.sequencers[..sequencer].iter();
        let before: usize = before.map(|s| s.program.len()).sum();
        self.of_pring(self.plan.prings.len() + before + index)
    }

    /// What a tag stands for.
    pub fn of_tag(&self, tag: u32) -> Option<Origin> {
        let plan = self.plan;
        let mut index = tag as usize;
        if let Some(step) = plan.steps.get(index) {
            let label = step.label.iter().map(|label| format!(" [{label}]"));
            let label: String = label.collect();
            return Some(Origin {
                line: step.line,
                call: format!("{} {}{label}", step.call, step.detail),
            });
        }
        index -= plan.steps.len();
        if let Some(expect) = plan.expects.get(index) {
            return Some(Origin {
                line: expect.line,
                call: format!("expect {}", expect.text),
            });
        }
        index -= plan.expects.len();
        if let Some(pring) = plan.prings.get(index) {
            return Some(Origin {
                line: pring.line,
                call: format!("pring {}, from its file", pring.name),
            });
        }
        index -= plan.prings.len();
        for sequencer in &plan.sequencers {
            if let Some(op) = sequencer.program.get(index) {
                return Some(Origin {
                    line: sequencer.lines.get(index).copied().unwrap_or(1),
                    call: instruction(op),
                });
            }
            index -= sequencer.program.len();
        }
        None
    }
}

fn instruction(op: &SequencerOp) -> String {
    match op {
        SequencerOp::Read { name, at, len } => format!("read {len} bytes at {at} as \"{name}\""),
        SequencerOp::Write { at, bytes } => format!("write {} bytes at {at}", bytes.len()),
        SequencerOp::Doorbell {
            engine,
            queue,
            direction,
            count,
        } => format!(
            "doorbell {engine} queue {queue} {}: {count}",
            direction.ring_name()
        ),
        SequencerOp::Wait {
            block, semaphore, ..
        } => format!("wait {block}.{semaphore}"),
        SequencerOp::Inc {
            block, semaphore, ..
        } => format!("inc {block}.{semaphore}"),
        SequencerOp::Dec {
            block, semaphore, ..
        } => format!("dec {block}.{semaphore}"),
        SequencerOp::Set {
            block, semaphore, ..
        } => format!("set {block}.{semaphore}"),
        SequencerOp::Delay(cycles) => format!("delay {}", cycles.0),
    }
}

/// Which step built each Tx descriptor of the vrings.
#[derive(Default)]
pub(super) struct Authored {
    builders: BTreeMap<String, Vec<u32>>,
}

impl Authored {
    /// A ring that comes from a file.
    pub fn load(&self, machine: &mut Machine<'_>, pring: &PringPlan, tag: u32) {
        if pring.direction == Direction::M2s && !pring.bytes.is_empty() {
            let tags = vec![tag; pring.bytes.len() / DESC_BYTES];
            machine.builders.insert(pring.at.0, tags);
        }
    }

    /// What a step has added to a vring, or dumped of it.
    pub fn note(&mut self, machine: &mut Machine<'_>, host: &HostSide, news: News, tag: u32) {
        match news {
            News::Authored(vring) => self.grown(host, &vring, tag),
            News::Dumped { vring, tx } => {
                if let (Some(base), Some(tags)) = (host.pring_base(&tx), self.builders.get(&vring))
                {
                    let ring = machine.builders.entry(base.0).or_default();
                    // A shorter dump leaves the descriptors behind its own as they are.
                    let kept = ring.get(tags.len()..).unwrap_or_default();
                    *ring = [tags, kept].concat();
                }
            }
        }
    }

    fn grown(&mut self, host: &HostSide, vring: &str, tag: u32) {
        let count = host.tx_descriptors(vring) as usize;
        match self.builders.get_mut(vring) {
            Some(builders) => builders.resize(count, tag),
            None => {
                self.builders.insert(vring.to_string(), vec![tag; count]);
            }
        }
    }
}
