//! Writing a recording.

use super::block::{Kind, head};
use super::window::Window;
use super::{FORMAT, Header};
use crate::sim::Instant;
use crate::system::{Activity, Observer};
use crate::telemetry::End;
use serde::Serialize;
use std::fs::File;
use std::io;

/// A block is written once it holds this much: what a crash can lose.
const BLOCK_BYTES: usize = 16 << 10;

/// Records everything it is told.
pub struct Recorder {
    window: Window,
    /// Transactions of the next block.
    payload: Vec<u8>,
    /// Number of the next block.
    number: u32,
    failed: io::Result<()>,
}

impl Recorder {
    /// Begins a recording in a file, opened to be read and written. What was in it is lost.
    ///
    /// # Errors
    /// As the operating system, if the file cannot be locked, extended or mapped.
    pub fn new(file: File, header: &Header) -> io::Result<Recorder> {
        let mut recorder = Recorder {
            window: Window::new(file)?,
            payload: Vec::new(),
            number: 0,
            failed: Ok(()),
        };
        recorder.put(&FORMAT)?;
        recorder.put(header)?;
        recorder.write_block(Kind::Header)?;
        Ok(recorder)
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// The first error that there was.
    pub fn finish(&mut self, end: &End) -> io::Result<()> {
        std::mem::replace(&mut self.failed, Ok(()))?;
        self.write_block(Kind::Transactions)?;
        self.put(end)?;
        self.write_block(Kind::End)?;
        self.window.finish()
    }

    fn put(&mut self, value: &impl Serialize) -> io::Result<()> {
        let payload = std::mem::take(&mut self.payload);
        self.payload = postcard::to_extend(value, payload).map_err(io::Error::other)?;
        Ok(())
    }

    fn write_block(&mut self, kind: Kind) -> io::Result<()> {
        if u32::try_from(self.payload.len()).is_err() {
            let why = "the files that the scenario reads exceed 4 GiB";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        let head = head(kind, self.number, &self.payload);
        self.window.append(&head, &self.payload)?;
        self.number += 1;
        self.payload.clear();
        Ok(())
    }

    fn record(&mut self, at: Instant, activity: &Activity) -> io::Result<()> {
        self.put(&(at, activity))?;
        if self.payload.len() >= BLOCK_BYTES {
            self.write_block(Kind::Transactions)?;
        }
        Ok(())
    }
}

impl Observer for Recorder {
    fn observe(&mut self, at: Instant, activity: &Activity) {
        if self.failed.is_ok() {
            self.failed = self.record(at, activity);
        }
    }
}
