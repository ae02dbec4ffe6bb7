//! Tables declared as structs: the keys, their types, and the reading of them in one place.

use super::table::Table;
use super::value::FromValue;
use super::{At, NoValue, Read};

/// What a table is read as. `C` is what reading needs to know besides the text.
pub(crate) trait Keys<C>: Sized {
    /// Reads every key of the table, so that one bad key does not hide the next.
    fn read(table: &Table<'_>, context: C) -> Read<Self>;

    /// Adds the keys that reading may ask for.
    fn names(known: &mut Vec<&'static str>);
}

/// What a key of a table is read as.
pub(crate) trait Key<C>: Sized {
    /// Reads the key, and those beside it that belong to the same thing.
    fn read(table: &Table<'_>, key: &'static str, context: C) -> Read<Self>;

    /// Adds the keys that reading may ask for.
    fn names(key: &'static str, known: &mut Vec<&'static str>) {
        known.push(key);
    }
}

impl<C, T: FromValue> Key<C> for T {
    fn read(table: &Table<'_>, key: &'static str, _: C) -> Read<Self> {
        Ok(table.req(key)?.value)
    }
}

impl<C, T: FromValue> Key<C> for At<T> {
    fn read(table: &Table<'_>, key: &'static str, _: C) -> Read<Self> {
        table.req(key)
    }
}

impl<C, T: Key<C>> Key<C> for Option<T> {
    fn read(table: &Table<'_>, key: &'static str, context: C) -> Read<Self> {
        if !table.has(key) {
            table.ask(key);
            return Ok(None);
        }
        T::read(table, key, context).map(Some)
    }

    fn names(key: &'static str, known: &mut Vec<&'static str>) {
        T::names(key, known);
    }
}

/// A table under a key.
#[derive(Debug)]
pub(crate) struct Under<T>(pub T);

impl<C, T: Keys<C>> Key<C> for Under<T> {
    fn read(table: &Table<'_>, key: &'static str, context: C) -> Read<Self> {
        let inner = table.req_table(key)?;
        let value = T::read(&inner, context);
        inner.finish()?;
        value.map(Under)
    }

    fn names(key: &'static str, known: &mut Vec<&'static str>) {
        known.push(key);
        T::names(known);
    }
}

/// An array of tables that must not be empty.
#[derive(Debug)]
pub(crate) struct Tables<T>(pub Vec<T>);

impl<C: Copy, T: Keys<C>> Key<C> for Tables<T> {
    fn read(table: &Table<'_>, key: &'static str, context: C) -> Read<Self> {
        let tables = table.tables(key);
        if tables.is_empty() {
            return Err(table.report(format!("\"{key}\" is missing or empty; write [{{ … }}]")));
        }
        let read = |(_, table): &(usize, Table<'_>)| {
            let value = T::read(table, context);
            table.finish()?;
            value
        };
        let found: Vec<Read<T>> = tables.iter().map(read).collect();
        found.into_iter().collect::<Read<Vec<T>>>().map(Tables)
    }

    fn names(key: &'static str, known: &mut Vec<&'static str>) {
        known.push(key);
        T::names(known);
    }
}

/// An array of tables, none of which is repeated.
#[derive(Debug)]
pub(crate) struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List(Vec::new())
    }
}

impl<C: Copy, T: Keys<C>> Key<C> for List<T> {
    fn read(table: &Table<'_>, key: &'static str, context: C) -> Read<Self> {
        if !table.has(key) {
            table.ask(key);
            return Err(table.report(format!("\"{key}\" is missing; write [[{key}]]")));
        }
        let read = |item: &Option<Table<'_>>| {
            let table = item.as_ref().ok_or(NoValue)?;
            let value = T::read(table, context);
            table.finish()?;
            value
        };
        let found: Vec<Read<T>> = table.items(key).iter().map(read).collect();
        found.into_iter().collect::<Read<Vec<T>>>().map(List)
    }

    fn names(key: &'static str, known: &mut Vec<&'static str>) {
        known.push(key);
        T::names(known);
    }
}

/// A table together with its place.
impl<C, T: Keys<C>> Keys<C> for At<T> {
    fn read(table: &Table<'_>, context: C) -> Read<Self> {
        let mark = table.mark().clone();
        T::read(table, context).map(|value| At { value, mark })
    }

    fn names(known: &mut Vec<&'static str>) {
        T::names(known);
    }
}

/// Makes tables of structs keys of the tables that hold them.
macro_rules! subtables {
    ($($name:ty;)*) => {$(
        impl<C: Copy> $crate::document::Key<C> for $name {
            fn read(
                table: &$crate::document::Table<'_>,
                key: &'static str,
                context: C,
            ) -> $crate::document::Read<Self> {
                let under = <$crate::document::Under<Self> as $crate::document::Key<C>>::read(
                    table, key, context,
                );
                under.map(|under| under.0)
            }

            fn names(key: &'static str, known: &mut Vec<&'static str>) {
                <$crate::document::Under<Self> as $crate::document::Key<C>>::names(key, known);
            }
        }
    )*};
}
pub(crate) use subtables;

/// Declares a struct of the keys of a table. Each field is a key of its name, or of the name in
/// parentheses behind it; one with `= default` may be left out, as may one whose type is an `Option`.
macro_rules! keys {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field:ident $(($key:literal))? : $ty:ty $(= $default:expr)?,)*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name {
            $($(#[$field_meta])* pub $field: $ty,)*
        }

        impl<C: Copy> $crate::document::Keys<C> for $name
        where
            $($ty: $crate::document::Key<C>,)*
        {
            fn read(
                table: &$crate::document::Table<'_>,
                context: C,
            ) -> $crate::document::Read<Self> {
                $(let $field = $crate::document::keys!(
                    @read table, context, $crate::document::keys!(@key $field $($key)?), $ty
                    $(, $default)?
                );)*
                Ok($name { $($field: $field?,)* })
            }

            fn names(known: &mut Vec<&'static str>) {
                $(<$ty as $crate::document::Key<C>>::names(
                    $crate::document::keys!(@key $field $($key)?),
                    known,
                );)*
            }
        }
    )*};
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    (@read $table:ident, $context:ident, $key:expr, $ty:ty) => {
        <$ty as $crate::document::Key<C>>::read($table, $key, $context)
    };
    (@read $table:ident, $context:ident, $key:expr, $ty:ty, $default:expr) => {
        <Option<$ty> as $crate::document::Key<C>>::read($table, $key, $context)
            .map(|given| given.unwrap_or($default))
    };
}
pub(crate) use keys;
