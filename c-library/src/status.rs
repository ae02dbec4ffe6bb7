//! Status codes and the text that goes with them.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a call. Errors are negative; udma_sim_last_error gives the message for every result other than UDMA_SIM_STATUS_OK and UDMA_SIM_STATUS_NONE.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdmaSimStatus {
    /// Success.
    Ok = 0,
    /// Nothing is available.
    None = 1,
    /// The time-out passed first.
    TimedOut = 2,
    /// No work is left and the condition was not met.
    Stuck = 3,
    /// A pointer that must not be NULL is NULL.
    NullPointer = -1,
    /// The device does not exist, or was destroyed.
    BadDevice = -2,
    /// The device belongs to another thread.
    WrongThread = -3,
    /// An argument is invalid.
    BadArgument = -4,
    /// The config does not exist or is invalid, or its memory cannot be mapped.
    BadConfig = -5,
    /// The bus refused the access.
    Refused = -6,
    /// An internal failure. The device is lost and can only be destroyed.
    Failed = -7,
}

/// A status that is not `Ok`, in words.
pub(crate) struct Failure {
    pub status: UdmaSimStatus,
    pub text: String,
}

impl Failure {
    pub fn refused(error: impl Display) -> Failure {
        let (status, text) = (UdmaSimStatus::Refused, error.to_string());
        Failure { status, text }
    }

    pub fn config(error: impl Display) -> Failure {
        let (status, text) = (UdmaSimStatus::BadConfig, error.to_string());
        Failure { status, text }
    }
}

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The text of the last failure of this thread.
pub(crate) fn last_error() -> String {
    LAST_ERROR.with_borrow(String::clone)
}

/// Runs a call: keeps the text of a failure, turns a panic into one.
pub(crate) fn guard(call: impl FnOnce() -> Result<UdmaSimStatus, Failure>) -> UdmaSimStatus {
    // What a panic leaves behind is dropped, or kept out of reach by the registry.
    let failure = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(status)) => return status,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure {
            status: UdmaSimStatus::Failed,
            text: format!("internal failure: {}", message(&*panic)),
        },
    };
    LAST_ERROR.set(failure.text);
    failure.status
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let text = panic.downcast_ref::<&str>().copied();
    owned.or(text).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let status = guard(|| panic!("no {}", "such thing"));
        assert_eq!(status, UdmaSimStatus::Failed);
        assert_eq!(last_error(), "internal failure: no such thing");
        // A later success leaves the text.
        assert_eq!(guard(|| Ok(UdmaSimStatus::Ok)), UdmaSimStatus::Ok);
        assert_eq!(last_error(), "internal failure: no such thing");
    }
}
