//! Strict typed reading of TOML tables: every key asked for is known, every other key is an error,
//! and each value keeps the place it came from.
//!
//! A table may be repeated, over numbers (`repeat = { q = "0..16" }`) or over named values
//! (`repeat = [{ mode = "dmb", q = 1 }, …]`); its strings then have `{q}` replaced by the value of
//! the repetition before anything reads them.

use super::diag::{At, Document, Mark, Reported};
use std::cell::RefCell;
use std::rc::Rc;
use toml::de::{DeArray, DeInteger, DeTable, DeValue};

/// Repetitions of one table beyond which a scenario is refused.
const MAX_REPETITIONS: usize = 65_536;

/// Variables of a repeated table and their values, outermost first.
type Bindings = Vec<(String, String)>;

/// A TOML value with the variables that hold where it stands.
pub(super) struct Value<'a> {
    pub raw: &'a DeValue<'a>,
    variables: Rc<Bindings>,
}

impl Value<'_> {
    /// The text of a string, with variables replaced; `None` if it is no string.
    pub fn text(&self) -> Result<Option<String>, String> {
        match self.raw.as_str() {
            Some(text) => substitute(text, &self.variables).map(Some),
            None => Ok(None),
        }
    }
}

/// Replaces every `{name}`. Outside of repeated tables the text stands as it is.
fn substitute(text: &str, variables: &[(String, String)]) -> Result<String, String> {
    if variables.is_empty() {
        return Ok(text.to_string());
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            return Err(format!("\"{text}\" opens a {{ that is not closed"));
        };
        let Some((_, value)) = variables.iter().find(|(known, _)| known == name) else {
            let known: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
            let known = known.join(", ");
            return Err(format!(
                "no variable {{{name}}}; this table repeats over {known}"
            ));
        };
        out.push_str(before);
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// A type that one TOML value can be read as.
pub(super) trait FromValue: Sized {
    /// What the value must be, as the message for a value of another type says it.
    const EXPECTED: &'static str;

    /// Reads the value; `Ok(None)` if it is of another TOML type.
    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String>;
}

impl FromValue for String {
    const EXPECTED: &'static str = "a string";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        value.text()
    }
}

impl FromValue for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        Ok(value.raw.as_bool())
    }
}

/// An integer of the document, if it fits the type.
pub(super) fn integer<T: TryFrom<i128>>(number: &DeInteger<'_>) -> Result<T, String> {
    i128::from_str_radix(number.as_str(), number.radix())
        .ok()
        .and_then(|wide| T::try_from(wide).ok())
        .ok_or_else(|| format!("{number} is out of range"))
}

/// Whole numbers; a string of digits counts too, so that a repeated table can write `"{q}"`.
macro_rules! whole_number {
    ($($ty:ty, $expected:literal;)*) => {$(
        impl FromValue for $ty {
            const EXPECTED: &'static str = $expected;

            fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
                let wide: i128 = match (value.raw, value.text()?) {
                    (DeValue::Integer(number), _) => integer(number)
                        .map_err(|e| format!("{e}; write {}", $expected))?,
                    (_, Some(text)) => text
                        .parse()
                        .map_err(|_| format!("\"{text}\" is not {}", $expected))?,
                    _ => return Ok(None),
                };
                let narrow = <$ty>::try_from(wide);
                narrow.map(Some).map_err(|_| format!("{wide} is out of range; write {}", $expected))
            }
        }
    )*};
}

whole_number! {
    i32, "a whole number, -2147483648 to 2147483647";
    u8, "a whole number, 0 to 255";
    u32, "a whole number, 0 to 4294967295";
    u64, "a whole number, 0 or more";
}

/// Text types that parse from a string.
macro_rules! from_text {
    ($($ty:ty, $expected:expr;)*) => {$(
        impl crate::scenario::reader::FromValue for $ty {
            const EXPECTED: &'static str = $expected;

            fn from_value(
                value: &crate::scenario::reader::Value<'_>,
            ) -> Result<Option<Self>, String> {
                match value.text()? {
                    Some(text) => text.parse().map(Some).map_err(|e| format!("{e}")),
                    None => Ok(None),
                }
            }
        }
    )*};
}
pub(super) use from_text;

impl<T: FromValue> FromValue for Vec<T> {
    const EXPECTED: &'static str = "an array";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let Some(items) = value.raw.as_array() else {
            return Ok(None);
        };
        let read = |(index, item): (usize, &'_ toml::Spanned<DeValue<'_>>)| {
            let item = Value {
                raw: item.get_ref(),
                variables: value.variables.clone(),
            };
            match T::from_value(&item)? {
                Some(read) => Ok(read),
                None => Err(wrong_type(
                    T::EXPECTED,
                    item.raw,
                    &format!("element {index}: "),
                )),
            }
        };
        let items: Result<Vec<T>, String> = items.iter().enumerate().map(read).collect();
        items.map(Some)
    }
}

fn wrong_type(expected: &str, raw: &DeValue<'_>, what: &str) -> String {
    let found = raw.type_str();
    format!("{what}expected {expected}, found a TOML {found}")
}

/// One table being read.
pub(super) struct Reader<'a> {
    document: &'a Document,
    table: &'a DeTable<'a>,
    mark: Mark,
    variables: Rc<Bindings>,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Reader<'a> {
    /// The document's own table.
    pub fn root(document: &'a Document, table: &'a DeTable<'a>) -> Self {
        let mark = Mark {
            offset: 0,
            key: "".into(),
        };
        Self::new(document, table, mark, Rc::default())
    }

    fn new(
        document: &'a Document,
        table: &'a DeTable<'a>,
        mark: Mark,
        variables: Rc<Bindings>,
    ) -> Self {
        Reader {
            document,
            table,
            mark,
            variables,
            asked: RefCell::default(),
        }
    }

    /// Where the table stands.
    pub fn mark(&self) -> &Mark {
        &self.mark
    }

    /// Records a problem of the table as a whole.
    pub fn report(&self, message: impl Into<String>) -> Reported {
        self.document.report(&self.mark, message)
    }

    /// Records a problem of a value read from the table.
    pub fn report_at(&self, mark: &Mark, message: impl Into<String>) -> Reported {
        self.document.report(mark, message)
    }

    fn look_up(&self, key: &'static str) -> Option<(Mark, &'a DeValue<'a>)> {
        self.asked.borrow_mut().push(key);
        let value = self.table.get(key)?;
        Some((self.mark_of(key, value.span().start), value.get_ref()))
    }

    /// The place of a key of this table.
    pub fn mark_of(&self, key: &str, offset: usize) -> Mark {
        let key = match &*self.mark.key {
            "" => key.into(),
            path => format!("{path}.{key}").into(),
        };
        Mark { offset, key }
    }

    /// Whether the key is there; does not count as reading it.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The value of a key that may be left out.
    pub fn opt<T: FromValue>(&self, key: &'static str) -> Result<Option<At<T>>, Reported> {
        self.opt_with(key, T::EXPECTED, T::from_value)
    }

    /// The value of a key that must be there.
    pub fn req<T: FromValue>(&self, key: &'static str) -> Result<At<T>, Reported> {
        self.req_with(key, T::EXPECTED, T::from_value)
    }

    fn opt_with<T>(
        &self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&Value<'_>) -> Result<Option<T>, String>,
    ) -> Result<Option<At<T>>, Reported> {
        let Some((mark, raw)) = self.look_up(key) else {
            return Ok(None);
        };
        let value = Value {
            raw,
            variables: self.variables.clone(),
        };
        match read(&value) {
            Ok(Some(value)) => Ok(Some(At { value, mark })),
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
    ) -> Result<At<T>, Reported> {
        let value = self.opt_with(key, expected, read)?;
        value.ok_or_else(|| self.report(format!("\"{key}\" is missing; write {expected}")))
    }

    /// The value of a key, or a default when it is left out.
    pub fn or<T: FromValue>(&self, key: &'static str, default: T) -> Result<T, Reported> {
        Ok(self.opt(key)?.map_or(default, |at| at.value))
    }

    /// A table under a key that may be left out.
    pub fn table(&self, key: &'static str) -> Result<Option<Reader<'a>>, Reported> {
        let Some((mark, raw)) = self.look_up(key) else {
            return Ok(None);
        };
        match raw.as_table() {
            Some(table) => Ok(Some(Reader::new(
                self.document,
                table,
                mark,
                self.variables.clone(),
            ))),
            None => {
                let found = raw.type_str();
                let message = format!("expected a table {{ … }}, found a TOML {found}");
                Err(self.document.report(&mark, message))
            }
        }
    }

    /// A table under a key that must be there.
    pub fn req_table(&self, key: &'static str) -> Result<Reader<'a>, Reported> {
        let table = self.table(key)?;
        table.ok_or_else(|| self.report(format!("\"{key}\" is missing; write a table {{ … }}")))
    }

    /// The tables of an array of tables, repeated ones as often as they say, each with its index in
    /// the file. A key that is left out is an empty array.
    pub fn tables(&self, key: &'static str) -> Vec<(usize, Reader<'a>)> {
        let Some((mark, raw)) = self.look_up(key) else {
            return Vec::new();
        };
        let Some(items) = raw.as_array() else {
            let message = format!("expected an array of tables; write [[{key}]]");
            self.document.report(&mark, message);
            return Vec::new();
        };
        let mut readers = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let mark = Mark {
                offset: item.span().start,
                key: format!("{}[{index}]", mark.key).into(),
            };
            let Some(table) = item.get_ref().as_table() else {
                let found = item.get_ref().type_str();
                let message = format!("expected a table, found a TOML {found}");
                self.document.report(&mark, message);
                continue;
            };
            let reader = Reader::new(self.document, table, mark, self.variables.clone());
            if let Ok(repeated) = reader.repeated() {
                readers.extend(repeated.into_iter().map(|reader| (index, reader)));
            }
        }
        readers
    }

    /// One reader per repetition; just this one without `repeat`.
    fn repeated(self) -> Result<Vec<Reader<'a>>, Reported> {
        let Some((mark, raw)) = self.look_up("repeat") else {
            return Ok(vec![self]);
        };
        let bindings = match raw {
            DeValue::Table(ranges) => self.ranges(&mark, ranges)?,
            DeValue::Array(rows) => self.rows(&mark, rows)?,
            _ => Vec::new(),
        };
        if bindings.is_empty() {
            let message = "repeats over nothing; write for instance { q = \"0..16\" }, or \
                           [{ mode = \"none\", q = 0 }, { mode = \"dmb\", q = 1 }]";
            return Err(self.document.report(&mark, message));
        }
        let bind = |variables: Bindings| {
            let shown: Vec<String> = variables
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let mark = Mark {
                offset: self.mark.offset,
                key: format!("{}({})", self.mark.key, shown.join(",")).into(),
            };
            let reader = Reader::new(self.document, self.table, mark, Rc::new(variables));
            reader.asked.borrow_mut().push("repeat");
            reader
        };
        Ok(bindings.into_iter().map(bind).collect())
    }

    /// Every combination of numbers from several ranges, the first range written being outermost.
    fn ranges(&self, mark: &Mark, ranges: &DeTable<'_>) -> Result<Vec<Bindings>, Reported> {
        let mut ranges: Vec<_> = ranges.iter().collect();
        ranges.sort_by_key(|(name, _)| name.span().start);
        let mut bindings = Vec::new();
        for (nth, (name, range)) in ranges.iter().enumerate() {
            let mark = Mark {
                offset: range.span().start,
                key: format!("{}.{}", mark.key, name.get_ref()).into(),
            };
            let refuse = |message: String| Err(self.document.report(&mark, message));
            let Some((from, to)) = range.get_ref().as_str().and_then(numbers) else {
                return refuse("expected a range that holds something, such as \"0..16\"".into());
            };
            let outer = match nth {
                0 => vec![Bindings::new()],
                _ => bindings,
            };
            let count = usize::try_from(to - from).unwrap_or(usize::MAX);
            if count.saturating_mul(outer.len()) > MAX_REPETITIONS {
                return refuse(format!(
                    "repeats the table more than {MAX_REPETITIONS} times"
                ));
            }
            let with = |outer: &Bindings, n: u64| {
                let mut inner = outer.clone();
                inner.push((name.get_ref().to_string(), n.to_string()));
                inner
            };
            bindings = outer
                .iter()
                .flat_map(|outer| (from..to).map(move |n| with(outer, n)))
                .collect();
        }
        Ok(bindings)
    }

    /// Bindings written out one by one.
    fn rows(&self, mark: &Mark, rows: &DeArray<'_>) -> Result<Vec<Bindings>, Reported> {
        let row = |(index, row): (usize, &'_ toml::Spanned<DeValue<'_>>)| {
            let mark = Mark {
                offset: row.span().start,
                key: format!("{}[{index}]", mark.key).into(),
            };
            let refuse = || {
                let message = "expected a table of strings and numbers, such as { mode = \"dmb\" }";
                self.document.report(&mark, message)
            };
            let variables = row.get_ref().as_table().ok_or_else(refuse)?;
            let bound = variables.iter().map(|(name, value)| {
                let value = match value.get_ref() {
                    DeValue::String(text) => text.to_string(),
                    DeValue::Integer(number) => {
                        integer::<i64>(number).map_err(|_| refuse())?.to_string()
                    }
                    _ => return Err(refuse()),
                };
                Ok((name.get_ref().to_string(), value))
            });
            bound.collect()
        };
        rows.iter().enumerate().map(row).collect()
    }

    /// Reports every key that nobody asked for.
    pub fn finish(&self) -> Result<(), Reported> {
        let asked = self.asked.borrow();
        let mut verdict = Ok(());
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if asked.contains(&name) {
                continue;
            }
            let mark = self.mark_of(name, key.span().start);
            let hint = hint(name, asked.iter().copied());
            verdict = Err(self.document.report(&mark, format!("unknown key{hint}")));
        }
        verdict
    }
}

/// `from..to` with from < to.
fn numbers(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.split_once("..")?;
    let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (from < to).then_some((from, to))
}

/// What to write in place of an unknown name: the nearest known one, or all of them.
pub(super) fn hint<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    // Two slips of the pen, or one in a very short name, still count as the same word.
    let close = |known: &&str| strsim::damerau_levenshtein(name, known);
    match known.iter().min_by_key(|known| close(known)) {
        Some(nearest) if close(nearest) <= 2.min(name.len() / 2) => {
            format!("; did you mean \"{nearest}\"?")
        }
        Some(_) => format!("; known here: {}", known.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Reads `text` with `read` and returns what was reported.
    fn problems(text: &str, read: impl Fn(&Reader<'_>)) -> String {
        let document = Document::new(Path::new("t.toml"), text.to_string());
        let table = DeTable::parse(document.text()).unwrap();
        read(&Reader::root(&document, table.get_ref()));
        match document.verdict() {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn unknown_keys_are_named_with_the_nearest_known_one() {
        let read = |reader: &Reader<'_>| {
            let _ = reader.opt::<u32>("queue");
            let _ = reader.finish();
        };
        assert_eq!(
            problems("quue = 1", read),
            "t.toml:1:1: quue: unknown key; did you mean \"queue\"?"
        );
        assert_eq!(
            problems("elephant = 1", read),
            "t.toml:1:1: elephant: unknown key; known here: queue"
        );
        assert_eq!(problems("queue = 1", read), "");
    }

    #[test]
    fn wrong_types_and_ranges_name_the_place() {
        let read = |reader: &Reader<'_>| {
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

    #[test]
    fn repetition_nests_in_the_order_written() {
        let text =
            "[[s]]\nrepeat = { e = \"0..2\", a = \"1..3\" }\nname = \"{e}/{a}\"\nn = \"{a}\"";
        let document = Document::new(Path::new("t.toml"), text.to_string());
        let table = DeTable::parse(document.text()).unwrap();
        let root = Reader::root(&document, table.get_ref());
        let names: Vec<String> = root
            .tables("s")
            .iter()
            .map(|(index, reader)| {
                assert_eq!(*index, 0);
                assert_eq!(reader.req::<u32>("n").unwrap().value / 3, 0);
                let name = reader.req::<String>("name").unwrap();
                assert!(reader.finish().is_ok());
                name.value
            })
            .collect();
        assert_eq!(names, ["0/1", "0/2", "1/1", "1/2"]);
        assert!(document.verdict().is_ok());
    }

    #[test]
    fn repetitions_can_be_written_out() {
        let text =
            "[[s]]\nrepeat = [{ m = \"x\", n = 3 }, { m = \"y\", n = 0x10 }]\nname = \"{m}{n}\"";
        let document = Document::new(Path::new("t.toml"), text.to_string());
        let table = DeTable::parse(document.text()).unwrap();
        let tables = Reader::root(&document, table.get_ref()).tables("s");
        let names = tables
            .iter()
            .map(|(_, table)| table.req("name").unwrap().value);
        assert_eq!(names.collect::<Vec<String>>(), ["x3", "y16"]);
    }

    #[test]
    fn bad_repetitions_are_refused_once() {
        let read = |reader: &Reader<'_>| {
            for (_, table) in reader.tables("s") {
                let _ = table.opt::<String>("name");
                let _ = table.finish();
            }
        };
        for (text, message) in [
            (
                "[[s]]\nrepeat = { q = \"3..3\" }",
                "t.toml:2:16: s[0].repeat.q: expected a range that holds something, such as \"0..16\"",
            ),
            (
                "[[s]]\nrepeat = { q = \"0..99999\" }",
                "t.toml:2:16: s[0].repeat.q: repeats the table more than 65536 times",
            ),
            (
                "[[s]]\nrepeat = { q = \"0..4\" }\nname = \"{p}\"",
                "t.toml:3:8: s[0](q=0).name: no variable {p}; this table repeats over q",
            ),
            (
                "[[s]]\nrepeat = { q = \"0..4\" }\nname = \"{q\"",
                "t.toml:3:8: s[0](q=0).name: \"{q\" opens a { that is not closed",
            ),
            (
                "[[s]]\nrepeat = [1]",
                "t.toml:2:11: s[0].repeat[0]: expected a table of strings and numbers, such as { mode = \"dmb\" }",
            ),
            (
                "[[s]]\nrepeat = [{ q = 1.5 }]",
                "t.toml:2:11: s[0].repeat[0]: expected a table of strings and numbers, such as { mode = \"dmb\" }",
            ),
            (
                "s = 3",
                "t.toml:1:5: s: expected an array of tables; write [[s]]",
            ),
            (
                "s = [3]",
                "t.toml:1:6: s[0]: expected a table, found a TOML integer",
            ),
        ] {
            assert_eq!(problems(text, read), message);
        }
        for text in [
            "[[s]]\nrepeat = { }",
            "[[s]]\nrepeat = []",
            "[[s]]\nrepeat = 3",
        ] {
            let found = problems(text, read);
            assert!(
                found.starts_with("t.toml:2:10: s[0].repeat: repeats over nothing"),
                "{found}"
            );
        }
    }
}
