//! The C interface: `include/udma_sim.h` is generated from here.
//!
//! A device is a number, not a pointer: a stale or made-up one is an error code, never undefined
//! behaviour. It belongs to the thread that created it. No panic leaves a call.
//!
//! `unsafe` stands here and in `raw` and `interrupts`: exported names, accesses through the caller's pointers, the
//! caller's interrupt handler.
#![allow(unsafe_code)]
#![warn(clippy::too_many_lines)]

mod interrupts;
mod raw;
mod registry;
mod status;
#[cfg(test)]
mod tests;

pub use status::UdmaSimStatus;

use std::ffi::{c_char, c_void};
use std::path::Path;
use udma_sim::config::Config;
use udma_sim::host::Bus;
use udma_sim::sim::{Duration, Instant};
use udma_sim::system::{Condition, System, WaitOutcome};
use udma_sim::units::Addr;

use UdmaSimStatus as Status;
use interrupts::Handler;
use registry::with_device;
use status::{Failure, guard};

/// A handle of a simulated machine. 0 is never a valid handle.
pub type UdmaSimDevice = u64;

/// An interrupt that a UDMA unit sent to the host.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdmaSimInterrupt {
    /// The engine: those of the NeuronCores first (core * 16 + n), then the host engines.
    pub engine: u32,
    /// The main interrupt group.
    pub group: u32,
    /// When it was sent, in nanoseconds of simulated time.
    pub at_ns: u64,
}

/// A register that is not modelled and has been accessed: it keeps the written value and has no effect.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdmaSimRegister {
    /// Its physical address.
    pub at: u64,
    /// How often the host has read it.
    pub reads: u64,
    /// How often host and engines have written it.
    pub writes: u64,
    /// Its value.
    pub value: u32,
    /// Its engine or block and its offset there, as a zero-terminated string.
    pub name: [c_char; 52],
}

/// Called when a UDMA unit interrupts the host, on the thread that owns the machine. The handler may call any function on the machine.
pub type UdmaSimInterruptHandler = Option<
    unsafe extern "C" fn(
        device: UdmaSimDevice,
        interrupt: *const UdmaSimInterrupt,
        context: *mut c_void,
    ),
>;

/// Creates a machine in its reset state, owned by the calling thread.
///
/// `config` is the name of a built-in config (sunda, cayman, mariana) or the path of a file; `seed`
/// seeds every random stream; the handle is stored in `*device`.
///
/// # Safety
/// `config` is NULL or points to a zero-terminated string, `device` is NULL or points to
/// writable memory for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udma_sim_create(
    config: *const c_char,
    seed: u64,
    device: *mut UdmaSimDevice,
) -> UdmaSimStatus {
    guard(|| {
        // SAFETY: the caller vouches for both pointers.
        let (name, device) = unsafe { (raw::text("config", config)?, raw::out("device", device)?) };
        let config = Config::load(&name, Path::new(".")).map_err(Failure::config)?;
        let system = System::new(config, seed).map_err(Failure::config)?;
        device.put(registry::add(system));
        Ok(Status::Ok)
    })
}

/// Destroys a machine. Pointers into its host memory are then invalid.
#[unsafe(no_mangle)]
pub extern "C" fn udma_sim_destroy(device: UdmaSimDevice) -> UdmaSimStatus {
    guard(|| registry::remove(device).map(|()| Status::Ok))
}

/// Maps host memory into the caller: `*memory` points to the `len` bytes at physical address `at`,
/// until the machine is destroyed. The caller may access them whenever it is not inside a call.
///
/// # Safety
/// `memory` is NULL or points to writable memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udma_sim_map_host_memory(
    device: UdmaSimDevice,
    at: u64,
    len: u64,
    memory: *mut *mut c_void,
) -> UdmaSimStatus {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let memory = unsafe { raw::out("memory", memory)? };
        with_device(device, |system| {
            let bytes = (system.host_memory_mut(Addr(at), len)).map_err(Failure::refused)?;
            memory.put(bytes.as_mut_ptr().cast());
            Ok(Status::Ok)
        })
    })
}

/// Reads the 32-bit register at physical address `at`. It takes the simulated time of a bus round trip.
///
/// # Safety
/// `value` is NULL or points to writable memory for the value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udma_sim_read_reg(
    device: UdmaSimDevice,
    at: u64,
    value: *mut u32,
) -> UdmaSimStatus {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let value = unsafe { raw::out("value", value)? };
        with_device(device, |system| {
            value.put(system.read_reg(Addr(at)).map_err(Failure::refused)?);
            Ok(Status::Ok)
        })?;
        interrupts::deliver(device)?;
        Ok(Status::Ok)
    })
}

/// Writes the 32-bit register at physical address `at`. The write is posted: it arrives as simulated
/// time passes, after the earlier ones.
#[unsafe(no_mangle)]
pub extern "C" fn udma_sim_write_reg(device: UdmaSimDevice, at: u64, value: u32) -> UdmaSimStatus {
    guard(|| {
        with_device(device, |system| {
            system
                .write_reg(Addr(at), value)
                .map_err(Failure::refused)?;
            Ok(Status::Ok)
        })
    })
}

/// Reads `len` bytes of memory at physical address `at` into `bytes`.
///
/// # Safety
/// `bytes` is NULL or points to `len` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udma_sim_read_mem(
    device: UdmaSimDevice,
    at: u64,
    bytes: *mut c_void,
    len: u64,
) -> UdmaSimStatus {
    guard(|| {
        raw::check("bytes", bytes, len)?;
        with_device(device, |system| {
            check_range(system, at, len)?;
            let mut read = raw::buffer(len)?;
            system
                .read_mem(Addr(at), &mut read)
                .map_err(Failure::refused)?;
            // SAFETY: the caller vouches for `len` bytes at the pointer, which is not NULL if there
            // are any.
            unsafe { raw::copy_out(&read, bytes) };
            Ok(Status::Ok)
        })
    })
}

/// Writes `len` bytes from `bytes` to memory at physical address `at`, at once.
///
/// # Safety
/// `bytes` is NULL or points to `len` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udma_sim_write_mem(
    device: UdmaSimDevice,
    at: u64,
    bytes: *const c_void,
    len: u64,
) -> UdmaSimStatus {
    guard(|| {
        raw::check("bytes", bytes, len)?;
        with_device(device, |system| {
            check_range(system, at, len)?;
            let mut written = raw::buffer(len)?;
            // SAFETY: the caller vouches for `len` bytes at the pointer, which is not NULL if there
            // are any.
            unsafe { raw::copy_in(bytes, &mut written) };
            system
                .write_mem(Addr(at), &written)
                .map_err(Failure::refused)?;
            Ok(Status::Ok)
        })
    })
}

/// Refuses what is no memory, before a buffer of its length is asked for.
fn check_range(system: &System, at: u64, len: u64) -> Result<(), Failure> {
    let place = system.memory().resolve(Addr(at), len);
    place.map(|_| ()).map_err(Failure::refused)
}

/// Advances simulated time by `ns` nanoseconds. Simulated time ends after a little over five hours: a call that would exceed this stops there and times out.
#[unsafe(no_mangle)]
pub extern "C" fn udma_sim_run_ns(device: UdmaSimDevice, ns: u64) -> UdmaSimStatus {
    guard(|| {
        let length = Duration::from_ns(ns);
        let until = with_device(device, |system| Ok(Condition::Until(system.now() + length)))?;
        outcome(interrupts::run_until(device, &until, length)?)
    })
}

/// Advances simulated time until every engine has completed everything that its doorbells announced, by at most `timeout_ns` nanoseconds.
#[unsafe(no_mangle)]
pub extern "C" fn udma_sim_run_until_idle(device: UdmaSimDevice, timeout_ns: u64) -> UdmaSimStatus {
    guard(|| {
        let timeout = Duration::from_ns(timeout_ns);
        outcome(interrupts::run_until(device, &Condition::Idle, timeout)?)
    })
}

/// How a wait ended: if not as hoped, the error text says who waits for what.
fn outcome(outcome: WaitOutcome) -> Result<Status, Failure> {
    let (status, what, waiters) = match outcome {
        WaitOutcome::Met => return Ok(Status::Ok),
        WaitOutcome::TimedOut(waiters) => (Status::TimedOut, "timed out", waiters),
        WaitOutcome::Stuck(waiters) => (
            Status::Stuck,
            "stuck: no work is left and the condition was not met",
            waiters,
        ),
    };
    let waiters = waiters.iter().map(|waiter| format!("; {waiter}"));
    Err(Failure {
        status,
        text: format!("{what}{}", waiters.collect::<String>()),
    })
}

/// Sets the handler that is called for every interrupt; NULL removes it. `context` is passed to each call.
///
/// It is called from within udma_sim_run_ns, udma_sim_run_until_idle and udma_sim_read_reg, once per interrupt and in order. Simulated time stands still during the call unless the handler itself advances it. Interrupts that arrive meanwhile are delivered after it returns. Interrupts passed to the handler are not returned by udma_sim_poll_interrupt.
///
/// # Safety
/// Until another handler is set or the machine is destroyed, `handler` is NULL or may be called with `context`,
/// and returns: it neither throws nor jumps out of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udma_sim_set_interrupt_handler(
    device: UdmaSimDevice,
    handler: UdmaSimInterruptHandler,
    context: *mut c_void,
) -> UdmaSimStatus {
    guard(|| {
        let handler = handler.map(|function| Handler { function, context });
        registry::set_handler(device, handler).map(|()| Status::Ok)
    })
}

/// Removes and returns the oldest pending interrupt; UDMA_SIM_STATUS_NONE if there is none.
///
/// # Safety
/// `interrupt` is NULL or points to writable memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udma_sim_poll_interrupt(
    device: UdmaSimDevice,
    interrupt: *mut UdmaSimInterrupt,
) -> UdmaSimStatus {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let interrupt = unsafe { raw::out("interrupt", interrupt)? };
        with_device(device, |system| {
            let Some(taken) = system.take_interrupt() else {
                return Ok(Status::None);
            };
            interrupt.put(taken.into());
            Ok(Status::Ok)
        })
    })
}

/// Returns entry `index` of the list of accessed registers that are not modelled, ordered by engine, then by address; UDMA_SIM_STATUS_NONE at the end of the list.
///
/// # Safety
/// `found` is NULL or points to writable memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udma_sim_unmodelled_register(
    device: UdmaSimDevice,
    index: u64,
    found: *mut UdmaSimRegister,
) -> UdmaSimStatus {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let found = unsafe { raw::out("found", found)? };
        with_device(device, |system| {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            let Some(register) = system.unmodelled_registers().into_iter().nth(index) else {
                return Ok(Status::None);
            };
            let mut name = [0; 52];
            // Names are ASCII; the last byte stays zero.
            for (to, byte) in name.iter_mut().take(51).zip(register.name.bytes()) {
                *to = byte as c_char;
            }
            found.put(UdmaSimRegister {
                at: register.at.0,
                reads: register.reads,
                writes: register.writes,
                value: register.value,
                name,
            });
            Ok(Status::Ok)
        })
    })
}

/// Simulated time in nanoseconds.
///
/// # Safety
/// `ns` is NULL or points to writable memory for the value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udma_sim_now_ns(device: UdmaSimDevice, ns: *mut u64) -> UdmaSimStatus {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let ns = unsafe { raw::out("ns", ns)? };
        with_device(device, |system| {
            ns.put(nanoseconds(system.now()));
            Ok(Status::Ok)
        })
    })
}

fn nanoseconds(at: Instant) -> u64 {
    at.as_fs() / Duration::from_ns(1).as_fs()
}

/// The message of the last call on this thread that did not return UDMA_SIM_STATUS_OK.
///
/// Copies as much of the text as fits into `capacity` bytes, including a terminating zero byte, and returns the length of the whole text without it. `text` may be NULL if `capacity` is 0.
///
/// # Safety
/// `text` is NULL or points to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udma_sim_last_error(text: *mut c_char, capacity: u64) -> u64 {
    let error = status::last_error();
    if !text.is_null()
        && let Some(room) = capacity.checked_sub(1)
    {
        let fits = error.floor_char_boundary(room.min(error.len() as u64) as usize);
        let mut bytes = error.as_bytes()[..fits].to_vec();
        bytes.push(0);
        // SAFETY: at most `capacity` bytes, for which the caller vouches.
        unsafe { raw::copy_out(&bytes, text.cast()) };
    }
    error.len() as u64
}
