//! The program of a plan, executed in order without an engine, for the race detector: host steps, every
//! descriptor of every queue, sequencers, and what the expectations look at in the end.

mod cells;
mod error;
mod machine;
mod origins;
mod packet;
mod superfluous;

pub use error::ExtractError;
pub use superfluous::Superfluous;

use super::expects::{Check, Subject, Wanted};
use super::host_side::{HostError, HostSide};
use super::place::Region;
use super::plan::Plan;
use super::report::RaceVerdict;
use super::stage::{Effect, Stage, WaitOn};
use super::steps::PlannedStep;
use crate::arch::regs::queue;
use crate::host::{Bus, BusError, TimedBus};
use crate::order::race::{Detector, Race, Thread};
use crate::sim::Duration;
use crate::system::{Condition, SequencerOp, WaitOp};
use crate::units::Addr;
use machine::{BarrierUse, Ignored, Machine};
use origins::{Authored, Origins};

/// What the race check of a scenario found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Races {
    /// The races.
    pub races: Vec<Race>,
    /// Further ones that are not listed.
    pub more: u64,
    /// Packets looked at.
    pub packets: u64,
    /// What was left out because the device would refuse it, in words.
    pub left_out: Vec<String>,
}

impl Plan {
    /// Checks the plan's program for races (`docs/ordering.md`, "Races").
    ///
    /// # Errors
    /// [`ExtractError`] for what the check cannot follow: waits that never end when everything is executed
    /// in order.
    pub fn races(&self) -> Result<Races, ExtractError> {
        let (walked, origins) = (self.walk(&Ignored::new())?, Origins::of(self));
        Ok(Races {
            races: walked.detector.races(&|tag| origins.of_tag(tag)),
            more: walked.detector.more(),
            packets: walked.packets,
            left_out: walked.left_out,
        })
    }

    /// Whether the plan's program is race-free, as far as that can be told.
    pub(super) fn race_verdict(&self) -> RaceVerdict {
        match self.races() {
            Err(error) => RaceVerdict::Unchecked {
                why: error.to_string(),
            },
            Ok(found) if !found.races.is_empty() => RaceVerdict::Racy {
                races: found.races.len() as u64 + found.more,
            },
            Ok(found) => match found.left_out.first() {
                Some(why) => RaceVerdict::Unchecked { why: why.clone() },
                None => RaceVerdict::RaceFree,
            },
        }
    }

    /// Executes the program in order, as if the barriers in `ignored` were not there.
    fn walk(&self, ignored: &Ignored) -> Result<Walked, ExtractError> {
        let mut machine = Machine::new(&self.config, ignored)?;
        let host = HostSide::new(self.config.arch(), &self.prings, &mut machine)?;
        let origins = Origins::of(self);
        let authored = Authored::default();
        for (n, pring) in self.prings.iter().enumerate() {
            authored.load(&mut machine, pring, origins.of_pring(n));
        }
        let host_thread = machine.detector.agent("host");
        let sequencers = self.sequencers.iter();
        let named = |name: &str| format!("sequencer {name}");
        let sequencers = sequencers.map(|s| (machine.detector.agent(&named(&s.name)), 0));
        let mut walk = Walk {
            scene: Scene {
                plan: self,
                sequencers: sequencers.collect(),
                machine,
                host_thread,
            },
            host,
            origins,
            authored,
        };
        walk.run_sequencers()?;
        for (index, step) in self.steps.iter().enumerate() {
            let tag = walk.origins.of_step(index);
            walk.act(step, tag)?;
            walk.run_sequencers()?;
        }
        walk.expectations();
        let machine = walk.scene.machine;
        Ok(Walked {
            detector: machine.detector,
            barriers: machine.barriers,
            packets: machine.packets,
            left_out: machine.left_out,
        })
    }
}

/// What an in-order execution leaves behind.
struct Walked {
    detector: Detector,
    /// Every barrier that a packet had, ignored ones too.
    barriers: Vec<BarrierUse>,
    packets: u64,
    left_out: Vec<String>,
}

struct Walk<'a> {
    scene: Scene<'a>,
    host: HostSide,
    origins: Origins<'a>,
    authored: Authored,
}

/// The machine without engines, on which steps are done.
struct Scene<'a> {
    plan: &'a Plan,
    machine: Machine<'a>,
    host_thread: Thread,
    /// Thread and next instruction.
    sequencers: Vec<(Thread, usize)>,
}

impl Bus for Scene<'_> {
    fn read_mem(&mut self, at: Addr, out: &mut [u8]) -> Result<(), BusError> {
        self.machine.read_mem(at, out)
    }

    fn write_mem(&mut self, at: Addr, bytes: &[u8]) -> Result<(), BusError> {
        self.machine.write_mem(at, bytes)
    }

    fn read_reg(&mut self, at: Addr) -> Result<u32, BusError> {
        self.machine.read_reg(at)
    }

    fn write_reg(&mut self, at: Addr, value: u32) -> Result<(), BusError> {
        self.machine.write_reg(at, value)
    }
}

impl TimedBus for Scene<'_> {
    fn sleep(&mut self, time: Duration) {
        self.machine.sleep(time);
    }
}

impl Stage for Scene<'_> {
    fn wait(&mut self, on: &WaitOn, _timeout: Duration) -> Result<(), HostError> {
        self.wait_for(on).map_err(HostError::Stopped)
    }

    fn take_interrupt(&mut self) {}

    fn observe(&mut self, _name: &str, region: Region) -> Result<(), HostError> {
        self.access(region, false);
        Ok(())
    }

    fn observe_register(&mut self, _name: &str, _at: Addr) -> Result<(), HostError> {
        Ok(())
    }
}

impl Scene<'_> {
    /// The host reads or writes a region itself.
    fn access(&mut self, region: Region, write: bool) {
        let bytes = (region.at, region.bytes);
        let (host, tag) = (self.host_thread, self.machine.tag);
        self.machine.detector.access(host, tag, bytes, write);
    }

    /// The host sees what a wait shows; otherwise why it would wait for ever.
    fn wait_for(&mut self, on: &WaitOn) -> Result<(), String> {
        let host = self.host_thread;
        let condition = match on {
            WaitOn::For(_) => return Ok(()),
            WaitOn::Sequencer(index) => {
                if let Some((thread, next)) = self.sequencers.get(*index).copied() {
                    let sequencer = &self.plan.sequencers[*index];
                    if next < sequencer.program.len() {
                        let name = &sequencer.name;
                        return Err(format!(
                            "sequencer \"{name}\" never ends in in-order execution"
                        ));
                    }
                    self.machine.detector.wait_agent(host, thread);
                }
                return Ok(());
            }
            WaitOn::Condition(condition) => condition,
        };
        match condition {
            Condition::Idle => {
                self.machine.wait_queues(host, |_| true);
                for (thread, _) in &self.sequencers {
                    self.machine.detector.wait_agent(host, *thread);
                }
            }
            Condition::QueueIdle { engine, queue } => {
                self.machine
                    .wait_queues(host, |at| at == (*engine, queue.0));
            }
            Condition::Semaphore { block, index, test } => {
                if !self.machine.wait_semaphore(host, (*block, *index), *test) {
                    return Err(format!(
                        "semaphore {block}.{index} never satisfies {test} in in-order execution"
                    ));
                }
            }
            Condition::Word { at, .. } => self.machine.wait_word(host, *at),
            Condition::SequencerDone(_) | Condition::Interrupt | Condition::Until(_) => {}
        }
        Ok(())
    }
}

impl Walk<'_> {
    fn refuse<T>(&self, tag: u32, what: impl Into<String>) -> Result<T, ExtractError> {
        let origin = self.origins.of_tag(tag);
        let (line, call) = origin.map_or((1, String::new()), |origin| (origin.line, origin.call));
        Err(ExtractError::Step {
            path: self.scene.plan.path.clone(),
            line,
            call,
            what: what.into(),
        })
    }

    fn act(&mut self, step: &PlannedStep, tag: u32) -> Result<(), ExtractError> {
        let scene = &mut self.scene;
        scene.machine.acts(scene.host_thread, tag);
        let effect = step.step.effect();
        scene.machine.follows_driver = matches!(effect, Effect::Drives(_));
        let done = step.step.perform(&mut self.host, scene);
        scene.machine.follows_driver = false;
        if let Err(error) = done {
            return self.refuse(tag, error.to_string());
        }
        for news in self.host.take_news() {
            self.authored
                .note(&mut scene.machine, &self.host, news, tag);
        }
        if let Effect::Stores(region) = effect {
            scene.access(region, true);
        }
        Ok(())
    }

    /// What the expectations read, at the end, as the host's.
    fn expectations(&mut self) {
        for (index, expect) in self.scene.plan.expects.iter().enumerate() {
            let Check::Bytes { of, wanted, .. } = &expect.check else {
                continue;
            };
            let subject = match of {
                Subject::Memory(region) => Some(region),
                Subject::Observation(_) => None,
            };
            let other = match wanted {
                Wanted::Region(region) => Some(region),
                Wanted::Fill(_) | Wanted::Sha256(_) => None,
            };
            let tag = self.origins.of_expect(index);
            self.scene.machine.acts(self.scene.host_thread, tag);
            for region in subject.into_iter().chain(other) {
                self.scene.access(*region, false);
            }
        }
    }

    /// Lets every sequencer go as far as it can.
    fn run_sequencers(&mut self) -> Result<(), ExtractError> {
        let mut moved = true;
        while moved {
            moved = false;
            for n in 0..self.scene.sequencers.len() {
                while self.step_sequencer(n)? {
                    moved = true;
                }
            }
        }
        Ok(())
    }

    fn step_sequencer(&mut self, n: usize) -> Result<bool, ExtractError> {
        let (thread, next) = self.scene.sequencers[n];
        let Some(op) = self.scene.plan.sequencers[n].program.get(next) else {
            return Ok(false);
        };
        let tag = self.origins.of_instruction(n, next);
        self.scene.machine.acts(thread, tag);
        let machine = &mut self.scene.machine;
        match op {
            SequencerOp::Wait {
                block,
                semaphore,
                op,
            } => {
                let cell = (*block, *semaphore);
                if !machine.wait_semaphore(thread, cell, op.test()) {
                    return Ok(false);
                }
                match op {
                    WaitOp::Ge(_) | WaitOp::Eq(_) => {}
                    WaitOp::GeAndDec(by) => machine.add(cell, by.wrapping_neg()),
                    WaitOp::EqAndInc(_) => {
                        machine.add(cell, 1);
                        machine.detector.increment(thread, cell, 1);
                    }
                    WaitOp::EqAndClear(_) => machine.set(thread, cell, 0),
                }
            }
            SequencerOp::Inc {
                block,
                semaphore,
                by,
            } => {
                let cell = (*block, *semaphore);
                machine.add(cell, *by);
                let weight = u64::try_from(*by).unwrap_or(0);
                machine.detector.increment(thread, cell, weight);
            }
            SequencerOp::Dec {
                block,
                semaphore,
                by,
            } => machine.add((*block, *semaphore), by.wrapping_neg()),
            SequencerOp::Set {
                block,
                semaphore,
                value,
            } => machine.set(thread, (*block, *semaphore), *value),
            SequencerOp::Doorbell {
                engine,
                queue,
                direction,
                count,
            } => {
                let at = (*engine, queue.0, *direction);
                if let Err(error) = machine.write_bank(at, queue::DRTP_INC, *count) {
                    return self.refuse(tag, error.to_string());
                }
            }
            SequencerOp::Read { at, len, .. } => {
                machine.detector.access(thread, tag, (*at, *len), false);
            }
            SequencerOp::Write { at, bytes } => {
                if let Err(error) = machine.memory.write(*at, bytes) {
                    return self.refuse(tag, error.to_string());
                }
                let len = bytes.len() as u64;
                machine.detector.access(thread, tag, (*at, len), true);
            }
            SequencerOp::Delay(_) => {}
        }
        self.scene.sequencers[n].1 += 1;
        Ok(true)
    }
}
