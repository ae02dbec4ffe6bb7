//! Accesses through the pointers of a C caller.

use crate::status::{Failure, UdmaSimStatus};
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;

/// Room for one value of the caller's, which a call fills at most once.
pub(crate) struct Out<'a, T> {
    to: *mut T,
    room: PhantomData<&'a mut T>,
}

impl<T> Out<'_, T> {
    /// Gives the caller the value.
    pub fn put(self, value: T) {
        // SAFETY: `out` was promised that the memory is writable until the end of the call.
        // Alignment is not.
        unsafe { self.to.write_unaligned(value) }
    }
}

fn null(name: &str) -> Failure {
    Failure {
        status: UdmaSimStatus::NullPointer,
        text: format!("{name} is NULL"),
    }
}

/// The caller's room for a value; refuses NULL.
///
/// # Safety
/// If not NULL, `to` points to memory that can hold a `T` and is writable while the result lives.
pub(crate) unsafe fn out<'a, T>(name: &str, to: *mut T) -> Result<Out<'a, T>, Failure> {
    match to.is_null() {
        true => Err(null(name)),
        false => Ok(Out {
            to,
            room: PhantomData,
        }),
    }
}

/// The caller's string; refuses NULL and what is not UTF-8.
///
/// # Safety
/// If not NULL, `from` points to a string that ends with a zero byte.
pub(crate) unsafe fn text(name: &str, from: *const c_char) -> Result<String, Failure> {
    if from.is_null() {
        return Err(null(name));
    }
    // SAFETY: not NULL, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map(str::to_string).map_err(|_| Failure {
        status: UdmaSimStatus::BadArgument,
        text: format!("{name} is not UTF-8"),
    })
}

/// Refuses NULL, unless it stands for no bytes at all.
pub(crate) fn check(name: &str, bytes: *const c_void, len: u64) -> Result<(), Failure> {
    match bytes.is_null() && len > 0 {
        true => Err(null(name)),
        false => Ok(()),
    }
}

/// A buffer of `len` bytes. The caller's memory may be the machine's host memory, so bytes are never
/// borrowed from it.
pub(crate) fn buffer(len: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let wanted = usize::try_from(len).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(wanted).map_err(|error| Failure {
        status: UdmaSimStatus::BadArgument,
        text: format!("cannot allocate a buffer of {len} bytes: {error}"),
    })?;
    bytes.resize(wanted, 0);
    Ok(bytes)
}

/// Gives the caller bytes.
///
/// # Safety
/// Unless `bytes` is empty, `to` points to as many writable bytes, none of them part of `bytes`.
pub(crate) unsafe fn copy_out(bytes: &[u8], to: *mut c_void) {
    if !bytes.is_empty() {
        // SAFETY: the caller's promise; `bytes` is a buffer of ours.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len()) }
    }
}

/// Takes bytes from the caller.
///
/// # Safety
/// Unless `bytes` is empty, `from` points to as many readable bytes, none of them part of `bytes`.
pub(crate) unsafe fn copy_in(from: *const c_void, bytes: &mut [u8]) {
    if !bytes.is_empty() {
        // SAFETY: the caller's promise; `bytes` is a buffer of ours.
        unsafe { std::ptr::copy_nonoverlapping(from.cast(), bytes.as_mut_ptr(), bytes.len()) }
    }
}
