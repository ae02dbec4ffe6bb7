//! A litmus file as its text says it (`docs/ordering.md`, "Litmus files"); unknown keys are errors.

use crate::arch::Arch;
use crate::document::{At, FromValue, Keys, List, Read, Table, Under, Value, integer, keys, named};
use crate::order::outcome::Test;
use crate::order::program::ObserverKind;
use toml::de::DeValue;

pub(super) type Name = At<String>;

keys! {
    pub(super) struct File {
        name: String,
        /// Row of the catalogue.
        row: String,
        about: String,
        /// Generations it is for; all if left out.
        arch: Option<Vec<Arch>>,
        /// Bytes of an atom.
        grain: Option<At<u64>>,
        cells: Under<Cells>,
        queue: List<QueueDecl>,
        observer: List<ObserverDecl> = List::default(),
        /// The outcome asked: one of these.
        outcome: List<OutcomeDecl>,
        expect: List<ExpectDecl>,
    }

    pub(super) struct CellDecl {
        value: i32 = 0,
        bytes: Option<At<u64>>,
        kind: KindDecl = KindDecl::Memory,
        /// The cell that a pointer names.
        names: Option<Name>,
        /// The label of the descriptor whose source address this is.
        descriptor: Option<Name>,
    }

    pub(super) struct QueueDecl {
        name: String,
        engine: u32 = 0,
        rung: bool = true,
        dmb_masked: bool = false,
        start_slot: u32 = 0,
        descs: List<At<DescDecl>>,
    }

    pub(super) struct DescDecl {
        label: String = String::new(),
        copy: Option<Name>,
        add: Option<At<Vec<String>>>,
        inc: Option<Name>,
        through: Option<Name>,
        to: Option<Name>,
        from_at: u64 = 0,
        to_at: u64 = 0,
        /// Bytes; the whole destination if left out.
        size: Option<u64>,
        /// The packet goes on with the next descriptor.
        concat: bool = false,
        repeat: u32 = 1,
        embedded: Option<Name>,
    }

    pub(super) struct ObserverDecl {
        name: String,
        kind: ObserverKind = ObserverKind::Host,
        ops: List<At<OpDecl>>,
    }

    pub(super) struct OpDecl {
        read: Option<Name>,
        register ("as"): Option<String>,
        wait: Option<Name>,
        ge: Option<i32>,
        eq: Option<i32>,
        then: Option<ThenDecl>,
        set: Option<Name>,
        value: Option<i32>,
        add: Option<Name>,
        by: Option<i32>,
        ring: Option<Name>,
        complete: Option<Name>,
        packets: Option<u32>,
    }

    pub(super) struct ExpectDecl {
        mode: Mode,
        /// Labels of the descriptors that carry the barrier.
        on: Option<At<Vec<String>>>,
        answer: Answer,
        arch: Option<Vec<Arch>>,
    }
}

/// Cells by their names.
#[derive(Debug)]
pub(super) struct Cells(pub Vec<(Name, CellDecl)>);

impl Keys<()> for Cells {
    fn read(table: &Table<'_>, context: ()) -> Read<Self> {
        let read = |(name, table): (Name, Read<Table<'_>>)| {
            let table = table?;
            let cell = CellDecl::read(&table, context);
            table.finish()?;
            Ok((name, cell?))
        };
        let cells: Vec<Read<_>> = table.each_table().into_iter().map(read).collect();
        cells.into_iter().collect::<Read<_>>().map(Cells)
    }

    fn names(known: &mut Vec<&'static str>) {
        <CellDecl as Keys<()>>::names(known);
    }
}

/// What registers and cells hold, all at once.
#[derive(Debug)]
pub(super) struct OutcomeDecl(pub Vec<(Name, Wanted)>);

impl Keys<()> for OutcomeDecl {
    fn read(table: &Table<'_>, (): ()) -> Read<Self> {
        let values = table.each_value().into_iter();
        let values: Vec<Read<_>> = values.map(|(name, value)| Ok((name, value?))).collect();
        values.into_iter().collect::<Read<_>>().map(OutcomeDecl)
    }

    fn names(_: &mut Vec<&'static str>) {}
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted(pub Test);

impl FromValue for Wanted {
    const EXPECTED: &'static str = "a number, or \"!= N\"";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let refuse = || format!("write {}", Self::EXPECTED);
        let test = match value.raw {
            DeValue::Integer(number) => {
                Test::All(integer::<i32>(number).map_err(|_| refuse())? as u32)
            }
            DeValue::String(text) => {
                let number = text
                    .strip_prefix("!=")
                    .and_then(|n| n.trim().parse::<i32>().ok());
                Test::NotAll(number.ok_or_else(refuse)? as u32)
            }
            _ => return Ok(None),
        };
        Ok(Some(Wanted(test)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KindDecl {
    Memory,
    Host,
    Semaphore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThenDecl {
    Dec,
    Inc,
    Clear,
}

named! {
    KindDecl, [KindDecl::Memory, KindDecl::Host, KindDecl::Semaphore],
        (|kind| match kind {
            KindDecl::Memory => "memory",
            KindDecl::Host => "host",
            KindDecl::Semaphore => "semaphore",
        }),
        "\"memory\", \"host\" or \"semaphore\"";
    ObserverKind, [ObserverKind::Host, ObserverKind::Sequencer],
        (|kind| match kind {
            ObserverKind::Host => "host",
            ObserverKind::Sequencer => "sequencer",
        }),
        "\"host\" or \"sequencer\"";
    ThenDecl, [ThenDecl::Dec, ThenDecl::Inc, ThenDecl::Clear],
        (|then| match then {
            ThenDecl::Dec => "dec",
            ThenDecl::Inc => "inc",
            ThenDecl::Clear => "clear",
        }),
        "\"dec\", \"inc\" or \"clear\"";
    Mode, [Mode::None, Mode::Dmb, Mode::WriteBarrier, Mode::Sow], Mode::name,
        "\"none\", \"dmb\", \"write_barrier\" or \"sow\"";
    Answer, [Answer::Allowed, Answer::Forbidden],
        (|answer| match answer {
            Answer::Allowed => "allowed",
            Answer::Forbidden => "forbidden",
        }),
        "\"allowed\" or \"forbidden\"";
}

/// A column of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
