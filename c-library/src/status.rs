//! Status codes and the text that goes with them.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call ended. Errors are negative; udma_sim_last_error has the text of whatever is not
/// UDMA_SIM_STATUS_OK or UDMA_SIM_STATUS_NONE.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdmaSimStatus {
    /// Done.
    Ok = 0,
    /// There is nothing to take.
    None = 1,
    /// Time ran out first.
    TimedOut = 2,
    /// Nothing is left that could happen, and what was waited for has not.
    Stuck = 3,
    /// A pointer is NULL that must not be.
    NullPointer = -1,
    /// There is no such device, or no longer.
    BadDevice = -2,
    /// The device belongs to another thread.
    WrongThread = -3,
    /// An argument makes no sense.
    BadArgument = -4,
    /// There is no such config, it is not valid, or its memory cannot be mapped.
    BadConfig = -5,
    /// The bus refused the access.
    Refused = -6,
    /// The simulator failed. The device is lost and can only be destroyed.
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
            text: format!("the simulator failed: {}", message(&*panic)),
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
        assert_eq!(last_error(), "the simulator failed: no such thing");
        // A later success leaves the text.
        assert_eq!(guard(|| Ok(UdmaSimStatus::Ok)), UdmaSimStatus::Ok);
        assert_eq!(last_error(), "the simulator failed: no such thing");
    }
}
