//! How a register is declared: once, with everything about it.

use crate::arch::{Arch, ArchSpec};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads back what was written.
    ReadWrite,
    /// Writes are ignored.
    ReadOnly,
    /// Writes act; reads 0.
    Command,
    /// A write clears the bits that are 0 in it.
    WriteZeroClears,
}

/// What stands behind a register in the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The engine acts on it or answers it from its state.
    Live,
    /// Holds its value and does nothing.
    Inert,
}

/// A register, or a run of them.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name.
    pub name: &'static str,
    /// Offset of the first word in its block or bank.
    pub offset: u64,
    /// Consecutive 32-bit words.
    pub words: u64,
    /// What an access does.
    pub access: Access,
    /// Who acts on it.
    pub model: Model,
    /// Reset value of each word.
    pub reset: Reset,
    /// First generation that has it.
    pub since: Arch,
}

/// A reset value.
#[derive(Clone, Copy, Debug)]
pub enum Reset {
    /// The same on every generation.
    Value(u32),
    /// Differs between generations.
    PerArch(fn(&ArchSpec) -> u32),
}

impl Reset {
    /// The value on one generation.
    pub fn value(self, spec: &ArchSpec) -> u32 {
        match self {
            Reset::Value(value) => value,
            Reset::PerArch(value) => value(spec),
        }
    }
}

/// The kinds of registers that [`registers!`] knows, by name.
pub(super) mod kind {
    use super::{Access, Model};

    /// Holds what is written; the engine acts on it.
    pub const LIVE: (Access, Model) = (Access::ReadWrite, Model::Live);
    /// Holds what is written; nothing acts on it.
    pub const INERT: (Access, Model) = (Access::ReadWrite, Model::Inert);
    /// Shows the engine's state.
    pub const STATUS: (Access, Model) = (Access::ReadOnly, Model::Live);
    /// Acts when it is written.
    pub const COMMAND: (Access, Model) = (Access::Command, Model::Live);
    /// Causes that a write clears.
    pub const CAUSE: (Access, Model) = (Access::WriteZeroClears, Model::Live);
}

/// Declares the registers of a block, each once:
///
/// ```text
/// /// What it is.
/// CONSTANT = "name" @ offset, KIND [words] Fields { layout } = reset, since V4;
/// ```
///
/// From it come the constant of its offset, its row in the block's table and, where a layout is given, the bitfield
/// `Fields`. `KIND` is one of [`kind`](mod@kind). All but constant, name, offset and kind may be omitted: a register is
/// one word, has no fields, exists on every generation, and resets to `Fields::new()`, or to 0 if it has no fields. A
/// layout that several registers share is given at the first of them; the others name it. `per_arch` and a function of
/// the [`ArchSpec`] stand in for `= reset` where the generations differ.
macro_rules! registers {
    (
        $(#[$table_doc:meta])*
        $table:ident {
            $(
                $(#[$doc:meta])*
                $register:ident = $name:literal @ $offset:literal, $kind:ident
                $([$words:expr])?
                $($fields:ident $({ $($layout:tt)* })?)?
                $(= $reset:expr)?
                $(=> per_arch $per_arch:expr)?
                $(, since $since:ident)?;
            )*
        }
    ) => {
        $(
            $(#[$doc])*
            $(#[doc = concat!("\n\nFields: [`", stringify!($fields), "`].")])?
            pub const $register: u64 = $offset;

            registers!(@layout [$(#[$doc])*] $($fields $({ $($layout)* })?)?);
        )*

        $(#[$table_doc])*
        pub const $table: &[$crate::arch::regs::declare::Row] = &[$(
            $crate::arch::regs::declare::Row {
                name: $name,
                offset: $register,
                words: registers!(@or 1 $(, $words)?),
                access: $crate::arch::regs::declare::kind::$kind.0,
                model: $crate::arch::regs::declare::kind::$kind.1,
                reset: registers!(
                    @or $crate::arch::regs::declare::Reset::Value(registers!(
                        @or registers!(@or 0 $(, $fields::new().into_bits())?) $(, $reset)?
                    ))
                    $(, $crate::arch::regs::declare::Reset::PerArch($per_arch))?
                ),
                since: registers!(@or $crate::arch::Arch::V2 $(, $crate::arch::Arch::$since)?),
            },
        )*];
    };
    (@layout [$($doc:tt)*] $($fields:ident)?) => {};
    (@layout [$($doc:tt)*] $fields:ident { $($layout:tt)* }) => {
        $($doc)*
        #[bitfield_struct::bitfield(u32)]
        #[derive(PartialEq, Eq)]
        pub struct $fields { $($layout)* }
    };
    // What is given, else what holds if nothing is.
    (@or $default:expr) => { $default };
    (@or $default:expr, $given:expr) => { $given };
}
pub(super) use registers;
