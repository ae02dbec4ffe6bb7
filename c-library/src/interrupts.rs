//! The caller's interrupt handler: how time passes on a machine that has one.

use crate::registry::{self, with_device};
use crate::status::Failure;
use crate::{UdmaSimDevice, UdmaSimInterrupt, nanoseconds};
use std::ffi::c_void;
use udma_sim::sim::{Duration, Instant};
use udma_sim::system::{Condition, Interrupt, System, WaitOutcome};

/// A function of the caller's.
pub(crate) type Function = unsafe extern "C" fn(
    device: UdmaSimDevice,
    interrupt: *const UdmaSimInterrupt,
    context: *mut c_void,
);

/// A function of the caller's, and what to call it with.
#[derive(Clone, Copy)]
pub(crate) struct Handler {
    pub function: Function,
    pub context: *mut c_void,
}

// SAFETY: the registry hands it out to the device's own thread only, the one that gave it.
unsafe impl Send for Handler {}

impl From<Interrupt> for UdmaSimInterrupt {
    fn from(interrupt: Interrupt) -> UdmaSimInterrupt {
        UdmaSimInterrupt {
            engine: interrupt.engine.0,
            group: u32::from(interrupt.group),
            at_ns: nanoseconds(interrupt.at),
        }
    }
}

/// Lets time pass until a condition holds, at most `timeout`. Time stands still while the handler is told
/// of an interrupt.
pub(crate) fn run_until(
    device: UdmaSimDevice,
    until: &Condition,
    timeout: Duration,
) -> Result<WaitOutcome, Failure> {
    let deadline = with_device(device, |system| Ok(system.now() + timeout))?;
    while registry::handler(device)?.is_some() {
        let interrupted = with_device(device, |system| {
            Ok(run_to_interrupt(system, until, deadline))
        })?;
        if !interrupted {
            break;
        }
        deliver(device)?;
    }
    // With a handler this only tells how it has ended.
    with_device(device, |system| {
        Ok(system.run_until(until, deadline - system.now()))
    })
}

/// Lets time pass until an interrupt is pending; false if the wait is over before.
fn run_to_interrupt(system: &mut System, until: &Condition, deadline: Instant) -> bool {
    let deadline = deadline.min(System::END);
    loop {
        if system.holds(&Condition::Interrupt) {
            return true;
        }
        let over = system.holds(until) || system.now() >= deadline;
        if over || !system.has_work() {
            return false;
        }
        system.step(deadline);
    }
}

/// Tells the handler of the interrupts that are there, if the device has one. It may use the device, even
/// destroy it; interrupts that come meanwhile wait until it has returned.
pub(crate) fn deliver(device: UdmaSimDevice) -> Result<(), Failure> {
    while let Some(handler) = registry::handler(device)? {
        let Some(interrupt) = with_device(device, |system| Ok(system.take_interrupt()))? else {
            return Ok(());
        };
        registry::set_handling(device, true)?;
        let interrupt = UdmaSimInterrupt::from(interrupt);
        // SAFETY: who set the handler vouches for the function and its context; the interrupt lives as
        // long as the call.
        unsafe { (handler.function)(device, &interrupt, handler.context) };
        registry::set_handling(device, false)?;
    }
    Ok(())
}
