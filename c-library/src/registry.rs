//! Which number is which machine, and whose.

use crate::UdmaSimDevice;
use crate::interrupts::Handler;
use crate::status::{Failure, UdmaSimStatus};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::thread::{self, ThreadId};
use udma_sim::system::System;

struct Registry {
    /// Numbers given out so far; none is given out twice.
    last: UdmaSimDevice,
    devices: BTreeMap<UdmaSimDevice, Entry>,
}

struct Entry {
    owner: ThreadId,
    /// `None` during a call, and for good after one that panicked.
    system: Option<Box<System>>,
    handler: Option<Handler>,
    /// Whether the handler runs.
    handling: bool,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    last: 0,
    devices: BTreeMap::new(),
});

/// Takes a machine in, for the calling thread; returns its number.
pub(crate) fn add(system: System) -> UdmaSimDevice {
    let mut registry = REGISTRY.lock();
    registry.last += 1;
    let number = registry.last;
    let entry = Entry {
        owner: thread::current().id(),
        system: Some(Box::new(system)),
        handler: None,
        handling: false,
    };
    registry.devices.insert(number, entry);
    number
}

impl Registry {
    /// The calling thread's device of that number.
    fn own(&mut self, device: UdmaSimDevice) -> Result<&mut Entry, Failure> {
        let entry = self.devices.get_mut(&device).ok_or_else(|| Failure {
            status: UdmaSimStatus::BadDevice,
            text: format!("device {device} does not exist or was destroyed"),
        })?;
        if entry.owner != thread::current().id() {
            return Err(Failure {
                status: UdmaSimStatus::WrongThread,
                text: format!("device {device} belongs to another thread"),
            });
        }
        Ok(entry)
    }
}

/// Destroys a machine of the calling thread.
pub(crate) fn remove(device: UdmaSimDevice) -> Result<(), Failure> {
    let mut registry = REGISTRY.lock();
    registry.own(device)?;
    let entry = registry.devices.remove(&device);
    // Unmapping may take a while: not under the lock.
    drop(registry);
    drop(entry);
    Ok(())
}

/// Gives a machine of the calling thread an interrupt handler, or takes it away.
pub(crate) fn set_handler(device: UdmaSimDevice, handler: Option<Handler>) -> Result<(), Failure> {
    REGISTRY.lock().own(device)?.handler = handler;
    Ok(())
}

/// The handler of a machine of the calling thread; `None` while it runs.
pub(crate) fn handler(device: UdmaSimDevice) -> Result<Option<Handler>, Failure> {
    let mut registry = REGISTRY.lock();
    let entry = registry.own(device)?;
    Ok(entry.handler.filter(|_| !entry.handling))
}

/// Notes that the handler of a machine of the calling thread runs, or has returned.
pub(crate) fn set_handling(device: UdmaSimDevice, handling: bool) -> Result<(), Failure> {
    REGISTRY.lock().own(device)?.handling = handling;
    Ok(())
}

/// Does something with a machine of the calling thread. If it panics, the machine is gone: nobody
/// knows what state it would be in.
pub(crate) fn with_device<R>(
    device: UdmaSimDevice,
    call: impl FnOnce(&mut System) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let taken = REGISTRY.lock().own(device)?.system.take();
    let mut system = taken.ok_or_else(|| Failure {
        status: UdmaSimStatus::Failed,
        text: format!("device {device} was lost in an internal failure; it can only be destroyed"),
    })?;
    let result = call(&mut system);
    // Only its own thread, which is here, could have destroyed it.
    REGISTRY.lock().own(device)?.system = Some(system);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::guard;
    use udma_sim::config::Config;

    #[test]
    fn a_panic_loses_the_machine_and_no_other() {
        let config = Config::builtin("sunda").unwrap().unwrap();
        let lost = add(System::new(config.clone(), 0).unwrap());
        let other = add(System::new(config, 0).unwrap());
        let now = |device| with_device(device, |system| Ok(system.now())).map_err(|f| f.status);
        assert!(now(lost).is_ok());
        let status = guard(|| with_device(lost, |_| panic!("broken")));
        assert_eq!(status, UdmaSimStatus::Failed);
        assert_eq!(now(lost), Err(UdmaSimStatus::Failed));
        assert!(now(other).is_ok());
        assert!(remove(lost).is_ok() && remove(other).is_ok());
        assert_eq!(now(lost), Err(UdmaSimStatus::BadDevice));
    }
}
