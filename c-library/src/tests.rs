//! No misuse of the C interface does more than return an error code.

use super::*;
use std::ffi::{CStr, CString};
use std::ptr;

fn create(config: &str) -> UdmaSimDevice {
    let (name, mut device) = (CString::new(config).unwrap(), 0);
    // SAFETY: a string and a place of this function's.
    let status = unsafe { udma_sim_create(name.as_ptr(), 0, &mut device) };
    assert_eq!(status, Status::Ok, "{}", last_error());
    device
}

fn last_error() -> String {
    let mut text = [1; 256];
    // SAFETY: an array of this function's.
    unsafe {
        let len = udma_sim_last_error(text.as_mut_ptr(), text.len() as u64);
        let text = CStr::from_ptr(text.as_ptr()).to_str().unwrap().to_string();
        assert_eq!(text.len() as u64, len.min(255));
        text
    }
}

const SUNDA_HOST: u64 = 0x1000_0000_0000;
const SUNDA_ENGINE: u64 = 0xfff_f000_0000;

#[test]
fn configs_that_are_none_are_refused() {
    let mut device = 77;
    let make = |name: &[u8], device: &mut u64| {
        // SAFETY: a string that ends with a zero byte and a place of this function's.
        unsafe { udma_sim_create(name.as_ptr().cast(), 0, device) }
    };
    assert_eq!(make(b"nope\0", &mut device), Status::BadConfig);
    assert!(last_error().contains("sunda, cayman, mariana"));
    assert_eq!(make(b"\xff\0", &mut device), Status::BadArgument);
    assert_eq!(make(b"Cargo.toml\0", &mut device), Status::BadConfig);
    assert_eq!(device, 77);
    assert_eq!(
        make(b"../sim-configs/sunda.toml\0", &mut device),
        Status::Ok
    );
    assert_eq!(udma_sim_destroy(device), Status::Ok);
}

#[test]
fn null_pointers_are_refused() {
    let device = create("sunda");
    let name = c"sunda".as_ptr();
    // SAFETY: NULL is what these are about; the rest are strings and places of this function's.
    let statuses = unsafe {
        [
            udma_sim_create(ptr::null(), 0, &mut 0),
            udma_sim_create(name, 0, ptr::null_mut()),
            udma_sim_map_host_memory(device, SUNDA_HOST, 16, ptr::null_mut()),
            udma_sim_read_reg(device, SUNDA_ENGINE, ptr::null_mut()),
            udma_sim_read_mem(device, 0, ptr::null_mut(), 1),
            udma_sim_write_mem(device, 0, ptr::null(), 1),
            udma_sim_poll_interrupt(device, ptr::null_mut()),
            udma_sim_now_ns(device, ptr::null_mut()),
        ]
    };
    assert_eq!(statuses, [Status::NullPointer; 8]);
    assert_eq!(last_error(), "ns is NULL");
    // SAFETY: no bytes are accessed.
    unsafe {
        assert_eq!(udma_sim_read_mem(device, 0, ptr::null_mut(), 0), Status::Ok);
        assert_eq!(udma_sim_write_mem(device, 0, ptr::null(), 0), Status::Ok);
        assert_eq!(udma_sim_last_error(ptr::null_mut(), 0), 10);
        assert_eq!(udma_sim_last_error(ptr::null_mut(), 5), 10);
        let mut text = [1; 4];
        assert_eq!(udma_sim_last_error(text.as_mut_ptr(), 3), 10);
        assert_eq!(text.map(|c| c as u8), *b"ns\0\x01");
    }
    assert_eq!(udma_sim_destroy(device), Status::Ok);
}

#[test]
fn devices_that_are_gone_or_never_were_are_refused() {
    let device = create("sunda");
    assert_eq!(udma_sim_destroy(device), Status::Ok);
    for device in [device, 0, u64::MAX] {
        assert_eq!(udma_sim_destroy(device), Status::BadDevice);
        assert_eq!(udma_sim_run_ns(device, 1), Status::BadDevice);
        assert_eq!(
            udma_sim_write_reg(device, SUNDA_ENGINE, 1),
            Status::BadDevice
        );
    }
    assert!(last_error().starts_with("device 18446744073709551615 does not exist"));
    // Numbers are not used again.
    let other = create("sunda");
    assert_ne!(other, device);
    assert_eq!(udma_sim_destroy(other), Status::Ok);
}

#[test]
fn another_thread_may_not_use_a_device() {
    let device = create("sunda");
    std::thread::spawn(move || {
        assert_eq!(udma_sim_run_ns(device, 1), Status::WrongThread);
        assert_eq!(udma_sim_destroy(device), Status::WrongThread);
        assert!(last_error().ends_with("belongs to another thread"));
    })
    .join()
    .unwrap();
    assert_eq!(last_error(), "", "texts are each thread's own");
    assert_eq!(udma_sim_run_ns(device, 1), Status::Ok);
    assert_eq!(udma_sim_destroy(device), Status::Ok);
}

/// Registers that nothing models hold their values and are listed; semaphores can be reached as registers.
#[test]
fn registers_that_nothing_models_are_listed() {
    const MISC_RAM: u64 = 0xfff_f0fa_0000;
    const SEMAPHORE: u64 = 0xfff_c000_0000 + 0x270_0000;
    let device = create("sunda");
    let mut found = UdmaSimRegister {
        at: 0,
        reads: 0,
        writes: 0,
        value: 0,
        name: [0; 52],
    };
    let mut value = 0;
    // SAFETY: places of this function's.
    unsafe {
        let none = udma_sim_unmodelled_register(device, 0, &mut found);
        assert_eq!(none, Status::None);
        assert_eq!(udma_sim_write_reg(device, MISC_RAM + 0x1ec, 7), Status::Ok);
        assert_eq!(
            udma_sim_write_reg(device, SUNDA_ENGINE + 0x10, 9),
            Status::Ok
        );
        for (at, expected) in [(MISC_RAM + 0x1ec, 7), (SUNDA_ENGINE + 0x10, 9)] {
            assert_eq!(udma_sim_read_reg(device, at, &mut value), Status::Ok);
            assert_eq!(value, expected, "{at:#x}");
        }
        for (index, at, value, name) in [
            (0, SUNDA_ENGINE + 0x10, 9, "e0 + 0x10"),
            (1, MISC_RAM + 0x1ec, 7, "MISC RAM 0 + 0x1ec"),
        ] {
            let there = udma_sim_unmodelled_register(device, index, &mut found);
            assert_eq!(there, Status::Ok);
            assert_eq!(
                (found.at, found.value, found.reads, found.writes),
                (at, value, 1, 1)
            );
            assert_eq!(CStr::from_ptr(found.name.as_ptr()).to_str(), Ok(name));
        }
        let beyond = udma_sim_unmodelled_register(device, 2, &mut found);
        assert_eq!(beyond, Status::None);
        // Set to 5, then 3 more.
        assert_eq!(
            udma_sim_write_reg(device, SEMAPHORE + 0x1400 + 8, 5),
            Status::Ok
        );
        assert_eq!(
            udma_sim_write_reg(device, SEMAPHORE + 0x1800 + 8, 3),
            Status::Ok
        );
        assert_eq!(
            udma_sim_read_reg(device, SEMAPHORE + 0x1000 + 8, &mut value),
            Status::Ok
        );
        assert_eq!(value, 8);
        // The window to be read cannot be written.
        assert_eq!(
            udma_sim_write_reg(device, SEMAPHORE + 0x1000 + 8, 5),
            Status::Refused
        );
    }
    assert_eq!(udma_sim_destroy(device), Status::Ok);
}

#[test]
fn accesses_that_make_no_sense_are_refused() {
    let device = create("sunda");
    let mut value = 0u32;
    let mut pointer: *mut c_void = ptr::null_mut();
    let mut bytes = [0u8; 16];
    let place: *mut c_void = bytes.as_mut_ptr().cast();
    // SAFETY: places of this function's; lengths beyond them are refused before they are used.
    unsafe {
        for at in [0, SUNDA_ENGINE + 2, SUNDA_HOST, u64::MAX] {
            assert_eq!(
                udma_sim_read_reg(device, at, &mut value),
                Status::Refused,
                "{at:#x}"
            );
            assert_eq!(
                udma_sim_write_reg(device, at, 0),
                Status::Refused,
                "{at:#x}"
            );
        }
        for (at, len) in [
            (u64::MAX, 16),
            (16 << 30, 1),
            (SUNDA_ENGINE, 4),
            (0, u64::MAX),
        ] {
            assert_eq!(
                udma_sim_read_mem(device, at, place, len),
                Status::Refused,
                "{at:#x}"
            );
            assert_eq!(
                udma_sim_write_mem(device, at, place, len),
                Status::Refused,
                "{at:#x}"
            );
            let map = udma_sim_map_host_memory(device, at, len, &mut pointer);
            assert_eq!(map, Status::Refused, "{at:#x}");
        }
        // HBM is memory, but not the host's.
        let map = udma_sim_map_host_memory(device, 0, 16, &mut pointer);
        assert_eq!(map, Status::Refused);
        assert_eq!(
            last_error(),
            "an access of 16 bytes at 0x0 is outside host memory"
        );
    }
    assert!(pointer.is_null());
    assert_eq!(udma_sim_destroy(device), Status::Ok);
}

#[test]
fn mapped_host_memory_is_the_machines() {
    let device = create("sunda");
    let mut pointer: *mut c_void = ptr::null_mut();
    let mut seen = [0u8; 8];
    // SAFETY: places of this function's, and 4096 bytes that the call maps.
    unsafe {
        let map = udma_sim_map_host_memory(device, SUNDA_HOST + 64, 4096, &mut pointer);
        assert_eq!(map, Status::Ok);
        pointer.cast::<[u8; 8]>().write(*b"mapped!!");
        let at = SUNDA_HOST + 64;
        let read = udma_sim_read_mem(device, at, seen.as_mut_ptr().cast(), 8);
        assert_eq!((read, &seen), (Status::Ok, b"mapped!!"));
        // From the mapping to itself, overlapping.
        assert_eq!(udma_sim_write_mem(device, at + 4, pointer, 8), Status::Ok);
        assert_eq!(&pointer.cast::<[u8; 12]>().read(), b"mappmapped!!");
        assert_eq!(udma_sim_read_mem(device, at + 4, pointer, 8), Status::Ok);
        assert_eq!(&pointer.cast::<[u8; 12]>().read(), b"mapped!!ed!!");
    }
    assert_eq!(udma_sim_destroy(device), Status::Ok);
}

/// Time ends; a machine that has come there refuses to go on but does not hang.
#[test]
fn time_runs_out_in_the_end() {
    let device = create("sunda");
    assert_eq!(udma_sim_run_until_idle(device, 0), Status::Ok);
    assert_eq!(udma_sim_run_ns(device, u64::MAX), Status::TimedOut);
    assert_eq!(last_error(), "timed out");
    let mut now = 0;
    // SAFETY: places of this function's.
    unsafe {
        assert_eq!(udma_sim_now_ns(device, &mut now), Status::Ok);
        assert_eq!(now, u64::MAX / 1_000_000);
        assert_eq!(
            udma_sim_write_reg(device, SUNDA_ENGINE + 0x20c, 1),
            Status::Ok
        );
        assert_eq!(udma_sim_run_until_idle(device, 1_000), Status::TimedOut);
        let mut state = 1;
        assert_eq!(
            udma_sim_read_reg(device, SUNDA_ENGINE + 0x20c, &mut state),
            Status::Ok
        );
        assert_eq!(state, 0, "the write never arrives");
    }
    assert_eq!(udma_sim_destroy(device), Status::Ok);
}

/// What a handler saw, and what it is to do.
#[derive(Default)]
struct Isr {
    seen: Vec<(UdmaSimDevice, UdmaSimInterrupt)>,
    statuses: Vec<Status>,
    /// Simulated time when it was called.
    now: Vec<u64>,
    act: Option<fn(UdmaSimDevice, &mut Isr)>,
}

unsafe extern "C" fn isr(
    device: UdmaSimDevice,
    interrupt: *const UdmaSimInterrupt,
    context: *mut c_void,
) {
    // SAFETY: the tests hand over an `Isr` that outlives the device; the interrupt is the call's.
    let (isr, interrupt) = unsafe { (&mut *context.cast::<Isr>(), *interrupt) };
    let mut now = 0;
    // SAFETY: a place of this function's.
    let status = unsafe { udma_sim_now_ns(device, &mut now) };
    isr.statuses.push(status);
    isr.now.push(now);
    isr.seen.push((device, interrupt));
    if let Some(act) = isr.act {
        act(device, isr);
    }
}

fn set_handler(device: UdmaSimDevice, state: &mut Isr) -> Status {
    // SAFETY: the state outlives the device.
    unsafe { udma_sim_set_interrupt_handler(device, Some(isr), ptr::from_mut(state).cast()) }
}

/// Main group 5: mask and the register that sets causes.
const GROUP: u64 = SUNDA_ENGINE + 0x38000 + 5 * 0x40;

fn raise_cause(device: UdmaSimDevice, cause: u32) {
    assert_eq!(udma_sim_write_reg(device, GROUP + 0x10, 0), Status::Ok);
    assert_eq!(udma_sim_write_reg(device, GROUP + 0x08, cause), Status::Ok);
}

fn clear_causes(device: UdmaSimDevice) {
    assert_eq!(udma_sim_write_reg(device, GROUP, 0), Status::Ok);
}

/// It is called where time passes, at the instant of the interrupt, and what it takes is taken.
#[test]
fn a_handler_is_called_for_every_interrupt() {
    let (device, mut state) = (create("sunda"), Isr::default());
    assert_eq!(set_handler(device, &mut state), Status::Ok);
    raise_cause(device, 1);
    assert_eq!(state.seen.len(), 0, "no time has passed");
    assert_eq!(udma_sim_run_ns(device, 10_000), Status::Ok);
    clear_causes(device);
    raise_cause(device, 2);
    assert_eq!(udma_sim_run_until_idle(device, 10_000), Status::Ok);
    clear_causes(device);
    raise_cause(device, 4);
    let (mut value, mut now) = (0, 0);
    let mut taken = state.seen[0].1;
    // SAFETY: places of this function's.
    unsafe {
        assert_eq!(udma_sim_read_reg(device, GROUP, &mut value), Status::Ok);
        assert_eq!(value, 4);
        assert_eq!(udma_sim_now_ns(device, &mut now), Status::Ok);
        let nothing = udma_sim_poll_interrupt(device, &mut taken);
        assert_eq!(nothing, Status::None);
    }
    let groups: Vec<_> = state
        .seen
        .iter()
        .map(|(from, i)| (*from, i.group))
        .collect();
    assert_eq!(groups, [(device, 5); 3]);
    let at: Vec<u64> = state.seen.iter().map(|(_, i)| i.at_ns).collect();
    assert_eq!(state.now[..2], at[..2], "time stands still for it");
    assert!(at[2] <= now && now < at[2] + 1_000);
    // The time asked for passes all the same.
    assert!(at[1] > 10_000 && now > 10_000);
    assert_eq!(udma_sim_destroy(device), Status::Ok);
}

/// A handler uses the device as anybody does; what it provokes is told after it has returned.
#[test]
fn a_handler_may_use_the_device() {
    let (device, mut state) = (create("sunda"), Isr::default());
    state.act = Some(|device, isr| {
        clear_causes(device);
        if isr.seen.len() < 3 {
            raise_cause(device, 1);
        }
        let before = isr.seen.len();
        isr.statuses.push(udma_sim_run_ns(device, 5_000));
        assert_eq!(isr.seen.len(), before, "it is not called while it runs");
    });
    assert_eq!(set_handler(device, &mut state), Status::Ok);
    raise_cause(device, 1);
    assert_eq!(udma_sim_run_ns(device, 2_000), Status::Ok);
    assert_eq!(state.seen.len(), 3);
    assert_eq!(state.statuses, [Status::Ok; 6]);
    // It let more time pass than the call was to.
    assert!(state.now[2] >= state.now[0] + 10_000);
    assert_eq!(udma_sim_destroy(device), Status::Ok);
}

#[test]
fn a_handler_may_destroy_the_device() {
    let (device, mut state) = (create("sunda"), Isr::default());
    state.act = Some(|device, isr| isr.statuses.push(udma_sim_destroy(device)));
    assert_eq!(set_handler(device, &mut state), Status::Ok);
    raise_cause(device, 1);
    assert_eq!(udma_sim_run_until_idle(device, 10_000), Status::BadDevice);
    assert_eq!(state.statuses, [Status::Ok; 2]);
    assert_eq!(udma_sim_destroy(device), Status::BadDevice);
}

#[test]
fn a_handler_can_be_taken_away() {
    let (device, mut state) = (create("sunda"), Isr::default());
    state.act = Some(|device, isr| {
        // SAFETY: none is called any more.
        let status = unsafe { udma_sim_set_interrupt_handler(device, None, ptr::null_mut()) };
        isr.statuses.push(status);
    });
    assert_eq!(set_handler(device, &mut state), Status::Ok);
    raise_cause(device, 1);
    assert_eq!(udma_sim_run_ns(device, 1_000), Status::Ok);
    clear_causes(device);
    raise_cause(device, 1);
    assert_eq!(udma_sim_run_ns(device, 1_000), Status::Ok);
    assert_eq!(state.seen.len(), 1);
    let mut taken = state.seen[0].1;
    // SAFETY: a place of this function's.
    let polled = unsafe { udma_sim_poll_interrupt(device, &mut taken) };
    assert_eq!((polled, taken.group), (Status::Ok, 5));
    let elsewhere = std::thread::spawn(move || {
        // SAFETY: it is refused.
        unsafe { udma_sim_set_interrupt_handler(device, Some(isr), ptr::null_mut()) }
    });
    assert_eq!(elsewhere.join().unwrap(), Status::WrongThread);
    assert_eq!(udma_sim_destroy(device), Status::Ok);
    assert_eq!(set_handler(device, &mut state), Status::BadDevice);
}
