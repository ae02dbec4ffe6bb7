//! A litmus file as its text says it (`docs/ordering.md`, "Litmus files"); unknown keys are errors.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

pub(super) type Name = Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub name: String,
    /// Row of the catalogue.
    pub row: String,
    pub about: String,
    /// Generations it is for; all if left out.
    pub arch: Option<Vec<Spanned<String>>>,
    /// Bytes of an atom.
    #[serde(default = "word")]
    pub grain: Spanned<u64>,
    pub cells: BTreeMap<String, CellDecl>,
    pub queue: Vec<QueueDecl>,
    #[serde(default)]
    pub observer: Vec<ObserverDecl>,
    /// The outcome asked: one of these.
    pub outcome: Vec<BTreeMap<Name, Wanted>>,
    pub expect: Vec<ExpectDecl>,
}

fn word() -> Spanned<u64> {
    Spanned::new(0..0, 4)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CellDecl {
    #[serde(default)]
    pub value: i32,
    #[serde(default = "word")]
    pub bytes: Spanned<u64>,
    #[serde(default)]
    pub kind: KindDecl,
    /// The cell that a pointer names.
    pub names: Option<Name>,
    /// The label of the descriptor whose source address this is.
    pub descriptor: Option<Name>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KindDecl {
    #[default]
    Memory,
    Host,
    Semaphore,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueueDecl {
    pub name: String,
    #[serde(default)]
    pub engine: u32,
    #[serde(default = "yes")]
    pub rung: bool,
    #[serde(default)]
    pub dmb_masked: bool,
    #[serde(default)]
    pub start_slot: u32,
    pub descs: Vec<Spanned<DescDecl>>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DescDecl {
    #[serde(default)]
    pub label: String,
    pub copy: Option<Name>,
    pub add: Option<Vec<Name>>,
    pub inc: Option<Name>,
    pub through: Option<Name>,
    pub to: Option<Name>,
    #[serde(default)]
    pub from_at: u64,
    #[serde(default)]
    pub to_at: u64,
    /// Bytes; the whole destination if left out.
    pub size: Option<u64>,
    /// The packet goes on with the next descriptor.
    #[serde(default)]
    pub concat: bool,
    #[serde(default = "once")]
    pub repeat: usize,
    pub embedded: Option<Name>,
}

fn once() -> usize {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObserverDecl {
    pub name: String,
    #[serde(default)]
    pub kind: ObserverKindDecl,
    pub ops: Vec<Spanned<OpDecl>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ObserverKindDecl {
    #[default]
    Host,
    Sequencer,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpDecl {
    pub read: Option<Name>,
    #[serde(rename = "as")]
    pub register: Option<String>,
    pub wait: Option<Name>,
    pub ge: Option<i32>,
    pub eq: Option<i32>,
    pub then: Option<ThenDecl>,
    pub set: Option<Name>,
    pub value: Option<i32>,
    pub add: Option<Name>,
    pub by: Option<i32>,
    pub ring: Option<Name>,
    pub complete: Option<Name>,
    pub packets: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ThenDecl {
    Dec,
    Inc,
    Clear,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Wanted {
    Is(i32),
    Not(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectDecl {
    pub mode: Mode,
    /// Labels of the descriptors that carry the barrier.
    #[serde(default)]
    pub on: Vec<Name>,
    pub answer: Answer,
    pub arch: Option<Vec<Spanned<String>>>,
}

/// A column of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// No barrier.
    None,
    /// DMB.
    Dmb,
    /// Write barrier.
    WriteBarrier,
    /// Strong-ordered write.
    Sow,
}

impl Mode {
    /// As files write it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::None => "none",
            Mode::Dmb => "dmb",
            Mode::WriteBarrier => "write_barrier",
            Mode::Sow => "sow",
        }
    }
}

/// Whether an outcome can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It can.
    Allowed,
    /// It cannot.
    Forbidden,
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Answer::Allowed => "Allowed",
            Answer::Forbidden => "Forbidden",
        })
    }
}
