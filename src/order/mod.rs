//! The ordering model (`docs/ordering.md`) as a program that can be asked.
//!
//! A [`litmus`] test says what rings and observers do and which outcome is in question. Three
//! implementations answer, which share the abstract [`program`] and how it is cut into [`bursts`]:
//!
//! - [`explore`]: an operational model, searched exhaustively;
//! - [`axiomatic`]: the axioms as relations, all executions enumerated;
//! - [`timed`]: the timing engine, under many random latencies.
//!
//! The first two must allow the same outcomes; the third must stay within them.
//!
//! [`race`] applies the same model to whole programs: it finds accesses that nothing orders.
//!
//! ```
//! use std::path::Path;
//! use udma_sim::order::explore::Options;
//! use udma_sim::order::litmus::{Answer, Litmus, verdict};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let litmus = Litmus::load(Path::new("tests/litmus/mp.toml"))?;
//! for case in &litmus.cases {
//!     let verdict = verdict(case, Options::default())?;
//!     println!("{} with {}: {:?}", case.arch, case.barrier(), verdict.answer);
//!     assert_eq!(verdict.answer, Some(case.expected));
//!     // An outcome that is allowed comes with an execution that ends in it.
//!     assert_eq!(verdict.witness.is_some(), case.expected == Answer::Allowed);
//! }
//! # Ok(())
//! # }
//! ```

pub mod axiomatic;
pub mod axioms;
pub mod bursts;
pub mod explore;
pub mod litmus;
pub mod lowering;
pub mod outcome;
pub mod program;
pub mod race;
pub mod random;
pub mod timed;
