//! A program on the timing engine: cells at addresses, rings in device memory, latencies drawn from a
//! seed. The engine shows one of the outcomes that the axioms allow.

mod actors;
mod layout;
mod rings;

use super::outcome::Outcome;
use super::program::Program;
use crate::config::Config;
use crate::desc::{BuildError, CceError};
use crate::host::{Bus, BusError, PringError, QueueError};
use crate::sim::{Duration, stream};
use crate::system::{Condition, ProgramError, System, SystemError, WaitOutcome};
use actors::Actors;
use layout::Layout;

/// Longest extra latency of an access unless told otherwise.
pub const JITTER: Duration = Duration::from_ns(3_000);

/// How long a program may run before it counts as stuck.
const PATIENCE: Duration = Duration::from_ns(10_000_000);

/// Why a program cannot be run, or did not end.
#[derive(Debug, thiserror::Error)]
pub enum TimedError {
    /// The engine does not model it.
    #[error("the timing engine does not model {0}")]
    NotModelled(&'static str),
    /// The machine could not be built.
    #[error(transparent)]
    System(#[from] SystemError),
    /// An access was refused.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A descriptor cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A compute packet cannot be built.
    #[error(transparent)]
    Compute(#[from] CceError),
    /// A ring cannot be set up.
    #[error(transparent)]
    Ring(#[from] PringError),
    /// A queue cannot be set up.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A sequencer cannot execute its program.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The program has more of something than the machine.
    #[error("the machine does not have room for {0}")]
    NoRoom(String),
    /// The run did not end, or an engine stopped with an error.
    #[error("seed {seed}: the run did not end: {why}")]
    Stuck {
        /// The seed.
        seed: u64,
        /// Who waits for what, and the errors of engines.
        why: String,
    },
}

/// Runs a program once; the seed decides latencies and when observers and doorbells start.
///
/// # Errors
/// [`TimedError`].
pub fn run(
    program: &Program,
    config: &Config,
    seed: u64,
    jitter: Duration,
) -> Result<Outcome, TimedError> {
    let mut config = config.clone();
    config.values.fabric.jitter = jitter;
    let arch = config.arch();
    let layout = Layout::new(program, arch)?;
    let mut system = System::new(config, seed)?;
    for (cell, bytes) in layout.contents(program) {
        system.write_mem(cell, &bytes)?;
    }
    let mut queues = rings::set_up(program, arch, &layout, &mut system)?;
    settle(&mut system, seed)?;
    for queue in &mut queues {
        queue.author(program, arch, &layout, &mut system)?;
    }
    let mut random = stream(seed, "order/start");
    let mut actors = Actors::new(program, &queues, &layout, jitter, &mut random);
    let sequencers = actors.start_sequencers(program, &layout, &mut system)?;
    let deadline = system.now() + PATIENCE;
    while !actors.done() && system.now() < deadline {
        actors.step(program, &layout, &mut system)?;
    }
    settle(&mut system, seed)?;
    if !actors.done() {
        let why = "an observer is still waiting".to_string();
        return Err(TimedError::Stuck { seed, why });
    }
    let mut registers = actors.registers;
    for seen in system.observations() {
        if let Some((span, first)) = sequencers.get(&seen.name) {
            let values = layout.values(program, *span, &seen.bytes);
            for (register, value) in registers[*first..].iter_mut().zip(values) {
                *register = value;
            }
        }
    }
    let memory = layout.memory(program, &mut system)?;
    Ok(Outcome { registers, memory })
}

/// Lets everything that has been started come to an end.
fn settle(system: &mut System, seed: u64) -> Result<(), TimedError> {
    match system.run_until(&Condition::Idle, PATIENCE) {
        WaitOutcome::Met => Ok(()),
        WaitOutcome::TimedOut(waiters) | WaitOutcome::Stuck(waiters) => {
            let waiters = waiters.iter().map(ToString::to_string);
            let engines = system.engines_in_use();
            let status = engines.iter().filter_map(|id| system.engine_status(*id));
            let errors = status.flat_map(|s| s.errors).map(|error| error.to_string());
            let why = waiters.chain(errors).collect::<Vec<_>>().join("; ");
            Err(TimedError::Stuck { seed, why })
        }
    }
}
