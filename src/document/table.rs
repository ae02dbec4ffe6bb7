//! Strict typed reading of TOML tables: every key asked for is known, every other key is an error,
//! and each value keeps the place it came from.
//!
//! A table may be repeated, over numbers (`repeat = { q = "0..16" }`) or over named values
//! (`repeat = [{ mode = "dmb", q = 1 }, …]`); its strings then have `{q}` replaced by the value of
//! the repetition before anything reads them.

use super::repeat::Bindings;
use super::value::{FromValue, Value, wrong_type};
use super::{At, Document, Mark, NoValue, Read, Refusal};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use toml::de::{DeString, DeTable, DeValue};

/// One table being read.
pub(crate) struct Table<'a> {
    pub(super) document: &'a Document,
    pub(super) table: &'a DeTable<'a>,
    pub(super) mark: Mark,
    variables: Rc<Bindings>,
    pub(super) asked: RefCell<Vec<&'static str>>,
    /// The file chooses the keys.
    open: Cell<bool>,
}

impl<'a> Table<'a> {
    /// The document's own table.
    pub fn root(document: &'a Document, table: &'a DeTable<'a>) -> Self {
        let mark = Mark {
            offset: 0,
            key: "".into(),
        };
        Self::new(document, table, mark, Rc::default())
    }

    pub(super) fn new(
        document: &'a Document,
        table: &'a DeTable<'a>,
        mark: Mark,
        variables: Rc<Bindings>,
    ) -> Self {
        Table {
            document,
            table,
            mark,
            variables,
            asked: RefCell::default(),
            open: Cell::default(),
        }
    }

    /// Where the table stands.
    pub fn mark(&self) -> &Mark {
        &self.mark
    }

    /// Records a problem of the table as a whole.
    pub fn report(&self, message: impl Into<String>) -> NoValue {
        self.document.report(&self.mark, message)
    }

    /// Records a problem of a value read from the table.
    pub fn report_at(&self, mark: &Mark, message: impl Into<String>) -> NoValue {
        self.document.report(mark, message)
    }

    pub(super) fn look_up(&self, key: &'static str) -> Option<(Mark, &'a DeValue<'a>)> {
        self.ask(key);
        let value = self.table.get(key)?;
        Some((self.mark_of(key, value.span().start), value.get_ref()))
    }

    /// The values of a table whose keys are names that the file chooses, sorted by name.
    pub fn each_value<T: FromValue>(&self) -> Vec<(At<String>, Read<T>)> {
        let value = |mark: &Mark, raw| {
            let read = self.value_of(mark, raw, T::EXPECTED, T::from_value);
            read.map(|value| value.value)
        };
        self.each(value)
    }

    /// The tables of a table whose keys are names that the file chooses, sorted by name.
    pub fn each_table(&self) -> Vec<(At<String>, Read<Table<'a>>)> {
        self.each(|mark, raw| self.table_of(mark, raw))
    }

    fn each<T>(
        &self,
        read: impl Fn(&Mark, &'a DeValue<'a>) -> Read<T>,
    ) -> Vec<(At<String>, Read<T>)> {
        self.open.set(true);
        let entry =
            |(key, value): (&toml::Spanned<DeString<'_>>, &'a toml::Spanned<DeValue<'a>>)| {
                let name = key.get_ref().to_string();
                let mark = self.mark_of(&name, value.span().start);
                let read = read(&mark, value.get_ref());
                let mark = self.mark_of(&name, key.span().start);
                (At { value: name, mark }, read)
            };
        self.table.iter().map(entry).collect()
    }

    /// Records that a value, of the right type, is invalid.
    pub fn refuse(&self, refusal: &Refusal) -> NoValue {
        let at = value_at(self.table, &refusal.key);
        let offset = at.map_or(self.mark.offset, |value| value.span().start);
        let mark = self.mark_of(&refusal.key, offset);
        let Refusal { value, right, .. } = refusal;
        self.document
            .report(&mark, format!("{value} is invalid; {right}"))
    }

    /// The place of a key of this table.
    pub fn mark_of(&self, key: &str, offset: usize) -> Mark {
        let key = match &*self.mark.key {
            "" => key.into(),
            path => format!("{path}.{key}").into(),
        };
        Mark { offset, key }
    }

    /// Makes a key known that is not read.
    pub fn ask(&self, key: &'static str) {
        self.asked.borrow_mut().push(key);
    }

    /// Whether the key is there; does not count as reading it.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The value of a key that may be left out.
    pub fn opt<T: FromValue>(&self, key: &'static str) -> Read<Option<At<T>>> {
        self.opt_with(key, T::EXPECTED, T::from_value)
    }

    /// The value of a key that must be there.
    pub fn req<T: FromValue>(&self, key: &'static str) -> Read<At<T>> {
        self.req_with(key, T::EXPECTED, T::from_value)
    }

    fn opt_with<T>(
        &self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&Value<'_>) -> Result<Option<T>, String>,
    ) -> Read<Option<At<T>>> {
        match self.look_up(key) {
            Some((mark, raw)) => self.value_of(&mark, raw, expected, read).map(Some),
            None => Ok(None),
        }
    }

    fn value_of<T>(
        &self,
        mark: &Mark,
        raw: &DeValue<'_>,
        expected: &str,
        read: impl FnOnce(&Value<'_>) -> Result<Option<T>, String>,
    ) -> Read<At<T>> {
        let value = Value {
            raw,
            variables: self.variables.clone(),
        };
        let mark = mark.clone();
        match read(&value) {
            Ok(Some(value)) => Ok(At { value, mark }),
            Ok(None) => Err(self.document.report(&mark, wrong_type(expected, raw, ""))),
            Err(message) => Err(self.document.report(&mark, message)),
        }
    }

    /// [`req`](Self::req) for what is read with more than the value itself at hand.
    pub fn req_with<T>(
        &self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&Value<'_>) -> Result<Option<T>, String>,
    ) -> Read<At<T>> {
        let value = self.opt_with(key, expected, read)?;
        value.ok_or_else(|| self.report(format!("\"{key}\" is missing; write {expected}")))
    }

    /// The one of several keys that a table has; none or several is an error, after which none of them
    /// counts as unknown.
    pub fn exactly_one(&self, what: &str, keys: &[&'static str]) -> Read<&'static str> {
        let mut there = keys.iter().filter(|key| self.has(key));
        match (there.next(), there.next()) {
            (Some(key), None) => Ok(key),
            (first, _) => {
                self.asked.borrow_mut().extend(keys);
                let how = if first.is_some() {
                    "several are"
                } else {
                    "none is"
                };
                let keys = keys.join(", ");
                Err(self.report(format!("{what} needs exactly one of {keys}; {how} given")))
            }
        }
    }

    /// A table under a key that may be left out.
    pub fn table(&self, key: &'static str) -> Read<Option<Table<'a>>> {
        match self.look_up(key) {
            Some((mark, raw)) => self.table_of(&mark, raw).map(Some),
            None => Ok(None),
        }
    }

    fn table_of(&self, mark: &Mark, raw: &'a DeValue<'a>) -> Read<Table<'a>> {
        let (mark, variables) = (mark.clone(), self.variables.clone());
        match raw.as_table() {
            Some(table) => Ok(Table::new(self.document, table, mark, variables)),
            None => {
                let found = raw.type_str();
                let message = format!("expected a table {{ … }}, found a TOML {found}");
                Err(self.document.report(&mark, message))
            }
        }
    }

    /// A table under a key that must be there.
    pub fn req_table(&self, key: &'static str) -> Read<Table<'a>> {
        let table = self.table(key)?;
        table.ok_or_else(|| self.report(format!("\"{key}\" is missing; write a table {{ … }}")))
    }

    /// The tables of an array of tables, repeated ones as often as they say, each with its index in
    /// the file. A key that is left out is an empty array.
    pub fn tables(&self, key: &'static str) -> Vec<(usize, Table<'a>)> {
        let repeated = |(index, table): (usize, Table<'a>)| {
            let tables = table.repeated().unwrap_or_default();
            tables.into_iter().map(move |table| (index, table))
        };
        let items = self.items(key).into_iter().enumerate();
        items
            .filter_map(|(n, table)| Some((n, table?)))
            .flat_map(repeated)
            .collect()
    }

    /// The tables of an array of tables, for each that is not one `None`. A key that is left out is an empty
    /// array.
    pub fn items(&self, key: &'static str) -> Vec<Option<Table<'a>>> {
        let Some((mark, raw)) = self.look_up(key) else {
            return Vec::new();
        };
        let Some(items) = raw.as_array() else {
            let message = format!("expected an array of tables; write [[{key}]]");
            self.document.report(&mark, message);
            return Vec::new();
        };
        let table = |(index, item): (usize, &'a toml::Spanned<DeValue<'a>>)| {
            let mark = Mark {
                offset: item.span().start,
                key: format!("{}[{index}]", mark.key).into(),
            };
            let Some(table) = item.get_ref().as_table() else {
                let found = item.get_ref().type_str();
                let message = format!("expected a table, found a TOML {found}");
                self.document.report(&mark, message);
                return None;
            };
            Some(Table::new(
                self.document,
                table,
                mark,
                self.variables.clone(),
            ))
        };
        items.iter().enumerate().map(table).collect()
    }

    /// Reports every key that nobody asked for.
    pub fn finish(&self) -> Read<()> {
        let asked = self.asked.borrow();
        let mut verdict = Ok(());
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if self.open.get() || asked.contains(&name) {
                continue;
            }
            let mark = self.mark_of(name, key.span().start);
            let hint = hint(name, asked.iter().copied());
            verdict = Err(self.document.report(&mark, format!("unknown key{hint}")));
        }
        verdict
    }
}

/// The value under a dotted key.
pub(super) fn value_at<'t>(
    mut table: &'t DeTable<'t>,
    dotted: &str,
) -> Option<&'t toml::Spanned<DeValue<'t>>> {
    let mut names = dotted.split('.').peekable();
    loop {
        let value = table.get(names.next()?)?;
        match names.peek() {
            None => return Some(value),
            Some(_) => table = value.get_ref().as_table()?,
        }
    }
}

/// What to write in place of an unknown name: the nearest known one, or all of them.
pub(crate) fn hint<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    // Two slips of the pen, or one in a very short name, still count as the same word.
    let close = |known: &&str| strsim::damerau_levenshtein(name, known);
    match known.iter().min_by_key(|known| close(known)) {
        Some(nearest) if close(nearest) <= 2.min(name.len() / 2) => {
            format!("; did you mean \"{nearest}\"?")
        }
        Some(_) => format!("; known: {}", known.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::lines;
    use super::*;
    use std::path::Path;

    /// Reads `text` with `read` and returns what was reported.
    pub(crate) fn problems(text: &str, read: impl Fn(&Table<'_>)) -> String {
        let document = Document::new(Path::new("t.toml"), text.to_string());
        let table = DeTable::parse(document.text()).unwrap();
        read(&Table::root(&document, table.get_ref()));
        match document.conclude(Ok(())) {
            Ok(()) => String::new(),
            Err(found) => lines(&found),
        }
    }

    #[test]
    fn unknown_keys_are_named_with_the_nearest_known_one() {
        let read = |reader: &Table<'_>| {
            let _ = reader.opt::<u32>("queue");
            let _ = reader.finish();
        };
        assert_eq!(
            problems("quue = 1", read),
            "t.toml:1:1: quue: unknown key; did you mean \"queue\"?"
        );
        assert_eq!(
            problems("elephant = 1", read),
            "t.toml:1:1: elephant: unknown key; known: queue"
        );
        assert_eq!(problems("queue = 1", read), "");
    }

    #[test]
    fn wrong_types_and_ranges_name_the_place() {
        let read = |reader: &Table<'_>| {
            let _ = reader.req::<u8>("a");
        };
        for (text, message) in [
            (
                "\na = true",
                "t.toml:2:5: a: expected a whole number, 0 to 255, found a TOML boolean",
            ),
            (
                "a = 256",
                "t.toml:1:5: a: 256 is out of range; write a whole number, 0 to 255",
            ),
            (
                "a = -1",
                "t.toml:1:5: a: -1 is out of range; write a whole number, 0 to 255",
            ),
            (
                "a = \"x\"",
                "t.toml:1:5: a: \"x\" is not a whole number, 0 to 255",
            ),
            (
                "b = 1",
                "t.toml:1:1: \"a\" is missing; write a whole number, 0 to 255",
            ),
            ("a = 0xff", ""),
        ] {
            assert_eq!(problems(text, read), message);
        }
    }
}
