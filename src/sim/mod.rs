//! Time, clocks, events and randomness: what makes a run the same on every machine.
//!
//! * [`Instant`] and [`Duration`] count femtoseconds and are different types.
//! * [`Clock`] maps cycle numbers to instants from the cycle number itself, never by adding up
//!   rounded periods, so a clock whose period is not a whole number of anything does not drift.
//! * [`EventQueue`] orders events by (time, class, component, per-component sequence) and never
//!   looks at what they carry.
//! * [`stream`] gives each consumer of randomness its own named generator.

mod clock;
mod queue;
mod streams;
mod time;

pub use clock::Clock;
pub use queue::{ComponentId, EventClass, EventQueue, Turn};
pub use streams::stream;
pub use time::{Duration, Instant};
