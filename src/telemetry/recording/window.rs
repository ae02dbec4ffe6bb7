//! The end of a file that grows, mapped into memory: what has been stored there is in the file even if
//! the process is killed at the next instruction.

#![allow(
    unsafe_code,
    reason = "a file mapping is unsafe: see the comment in Window::map"
)]

use memmap2::{MmapMut, MmapOptions};
use std::fs::{File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};

/// By how much the file grows at least.
const GROWTH_BYTES: usize = 1 << 20;

/// A file to append to.
pub(super) struct Window {
    file: File,
    map: MmapMut,
    /// Where in the file the mapping begins.
    start: u64,
    /// Bytes of the mapping that are in use.
    used: usize,
}

impl Window {
    /// At the start of a file, opened to be read and written. What was in it is lost, once it is certain
    /// that nobody else has it mapped.
    ///
    /// # Errors
    /// As the operating system; [`io::ErrorKind::WouldBlock`] if somebody else has it locked.
    pub fn new(file: File) -> io::Result<Window> {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {
                let why = "another run is recording to this file";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
            }
        }
        file.set_len(0)?;
        let map = Window::map(&file, 0, GROWTH_BYTES)?;
        Ok(Window {
            file,
            map,
            start: 0,
            used: 0,
        })
    }

    /// Appends a head and a body: the body first, so that a head never stands before less than its
    /// body. A reader checks anyhow.
    ///
    /// # Errors
    /// As the operating system. The file then ends with what was appended last.
    pub fn append(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let len = head.len() + body.len();
        if self.map.len() - self.used < len {
            let start = self.start + self.used as u64;
            self.map = Window::map(&self.file, start, len.max(GROWTH_BYTES))?;
            (self.start, self.used) = (start, 0);
        }
        let room = &mut self.map[self.used..self.used + len];
        let (to_head, to_body) = room.split_at_mut(head.len());
        to_body.copy_from_slice(body);
        to_head.copy_from_slice(head);
        self.used += len;
        Ok(())
    }

    /// Cuts off what was not used.
    ///
    /// # Errors
    /// As the operating system.
    pub fn finish(&self) -> io::Result<()> {
        self.file.set_len(self.start + self.used as u64)
    }

    /// Maps `len` bytes from `start` on, which are in the file or become zeros at its end.
    fn map(mut file: &File, start: u64, len: usize) -> io::Result<MmapMut> {
        // Zeros are written, not left as a hole: a full disk is an error here and not a fault at a
        // store into the mapping.
        let end = file.seek(SeekFrom::End(0))?;
        let zeros = (start + len as u64).saturating_sub(end);
        io::copy(&mut io::Read::take(io::repeat(0), zeros), &mut file)?;
        file.flush()?;
        // SAFETY: the mapping is of a regular file that this process has locked and holds open, and
        // covers bytes that were just written. Nobody else shortens or writes it as long as they heed
        // the lock. No reference into it outlives a copy in `append`.
        unsafe { MmapOptions::new().offset(start).len(len).map_mut(file) }
    }
}
