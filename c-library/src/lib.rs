//! The C interface: `include/udma_sim.h` is generated from here.
//!
//! A device is a number, not a pointer: a stale or made-up one is an error code, never undefined
//! behaviour. It belongs to the thread that created it. No panic leaves a call.
//!
//! `unsafe` stands here and in `raw` and `interrupts`: exported names, accesses through the caller's pointers, the
//! caller's interrupt handler.
#![allow(unsafe_code)]

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

/// A simulated machine. 0 is none.
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

/// A register that the model does not have and somebody has touched: it holds what was written and does nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdmaSimRegister {
    /// Its physical address.
    pub at: u64,
    /// How often the host has read it.
    pub reads: u64,
    /// How often host and engines have written it.
    pub writes: u64,
    /// What it holds.
    pub value: u32,
    /// The engine or block it belongs to and its offset there, with a zero byte at the end.
    pub name: [c_char; 52],
}

/// What a machine calls when a UDMA unit interrupts the host, on the thread that the machine belongs to. It
/// may use the machine as anybody does.
pub type UdmaSimInterruptHandler = Option<
    unsafe extern "C" fn(
        device: UdmaSimDevice,
        interrupt: *const UdmaSimInterrupt,
        context: *mut c_void,
    ),
>;

/// Creates a machine fresh from reset, which belongs to the calling thread.
///
/// `config` is the name of a built-in config (sunda, cayman, mariana) or the path of a file; `seed`
/// seeds every random stream; `*device` becomes its number.
///
/// # Safety
/// `config` is NULL or points to a string that ends with a zero byte, `device` is NULL or points to
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

/// Reads the 32-bit register at physical address `at`. Takes a bus round trip of simulated time.
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

/// Lets `ns` nanoseconds of simulated time pass. Time ends after a little over five hours: the rest
/// of `ns` then does not pass, and the call times out.
#[unsafe(no_mangle)]
pub extern "C" fn udma_sim_run_ns(device: UdmaSimDevice, ns: u64) -> UdmaSimStatus {
    guard(|| {
        let length = Duration::from_ns(ns);
        let until = with_device(device, |system| Ok(Condition::Until(system.now() + length)))?;
        outcome(interrupts::run_until(device, &until, length)?)
    })
}

/// Lets simulated time pass until every engine has completed all that its doorbells covered, at most
/// `timeout_ns` nanoseconds.
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
        WaitOutcome::Stuck(waiters) => {
            (Status::Stuck, "nothing is left that could happen", waiters)
        }
    };
    let waiters = waiters.iter().map(|waiter| format!("; {waiter}"));
    Err(Failure {
        status,
        text: format!("{what}{}", waiters.collect::<String>()),
    })
}

/// Sets what is called for every interrupt, or with NULL that nothing is. `context` is handed to each call.
///
/// It is called from within udma_sim_run_ns, udma_sim_run_until_idle and udma_sim_read_reg, for each interrupt
/// in its turn; simulated time stands still meanwhile, but for what the handler itself lets pass. Interrupts that come
/// while it runs wait until it has returned. What it takes is not there for udma_sim_poll_interrupt.
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

/// Takes the oldest interrupt that has not been taken; UDMA_SIM_STATUS_NONE if there is none.
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

/// The register number `index` among those that the model does not have and somebody has touched, engine by
/// engine, then by address; UDMA_SIM_STATUS_NONE if there are not so many.
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

/// What the last call of this thread that did not return UDMA_SIM_STATUS_OK had to say.
///
/// Copies as much of the text as fits into `capacity` bytes, with a zero byte at the end, and returns
/// the length of the whole text without it. `text` may be NULL if `capacity` is 0.
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
