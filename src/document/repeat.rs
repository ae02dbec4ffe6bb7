//! `repeat`: one table of a scenario that stands for many.

use super::table::Table;
use super::value::integer;
use super::{Mark, Read};
use std::rc::Rc;
use toml::de::{DeArray, DeTable, DeValue};

/// Repetitions of one table beyond which a scenario is refused.
const MAX_REPETITIONS: usize = 65_536;

/// Variables of a repeated table and their values, outermost first.
pub(crate) type Bindings = Vec<(String, String)>;

/// Replaces every `{name}`. Outside of repeated tables the text stands as it is.
pub(crate) fn substitute(text: &str, variables: &[(String, String)]) -> Result<String, String> {
    if variables.is_empty() {
        return Ok(text.to_string());
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            return Err(format!("\"{text}\" has an unclosed {{"));
        };
        let Some((_, value)) = variables.iter().find(|(known, _)| known == name) else {
            let known: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
            let known = known.join(", ");
            return Err(format!(
                "unknown variable {{{name}}}; this table repeats over {known}"
            ));
        };
        out.push_str(before);
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

impl<'a> Table<'a> {
    /// One reader per repetition; just this one without `repeat`.
    pub(crate) fn repeated(self) -> Read<Vec<Table<'a>>> {
        let Some((mark, raw)) = self.look_up("repeat") else {
            return Ok(vec![self]);
        };
        let bindings = match raw {
            DeValue::Table(ranges) => self.ranges(&mark, ranges)?,
            DeValue::Array(rows) => self.rows(&mark, rows)?,
            _ => Vec::new(),
        };
        if bindings.is_empty() {
            let message = "has no repetitions; write for example { q = \"0..16\" } or [{ mode = \"none\", q = 0 }, { mode = \"dmb\", q = 1 }]";
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
            let reader = Table::new(self.document, self.table, mark, Rc::new(variables));
            reader.asked.borrow_mut().push("repeat");
            reader
        };
        Ok(bindings.into_iter().map(bind).collect())
    }

    /// Every combination of numbers from several ranges, the first range written being outermost.
    fn ranges(&self, mark: &Mark, ranges: &DeTable<'_>) -> Read<Vec<Bindings>> {
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
                return refuse("expected a non-empty range, such as \"0..16\"".into());
            };
            let outer = match nth {
                0 => vec![Bindings::new()],
                _ => bindings,
            };
            let count = usize::try_from(to - from).unwrap_or(usize::MAX);
            if count.saturating_mul(outer.len()) > MAX_REPETITIONS {
                return refuse(format!(
                    "repeats the table too often; at most {MAX_REPETITIONS} times are allowed"
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
    fn rows(&self, mark: &Mark, rows: &DeArray<'_>) -> Read<Vec<Bindings>> {
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
}

/// `from..to` with from < to.
fn numbers(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.split_once("..")?;
    let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (from < to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use super::super::table::tests::problems;
    use super::*;
    use std::path::Path;

    #[test]
    fn repetition_nests_in_the_order_written() {
        let text =
            "[[s]]\nrepeat = { e = \"0..2\", a = \"1..3\" }\nname = \"{e}/{a}\"\nn = \"{a}\"";
        let document = Document::new(Path::new("t.toml"), text.to_string());
        let table = DeTable::parse(document.text()).unwrap();
        let root = Table::root(&document, table.get_ref());
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
        assert!(document.conclude(Ok(())).is_ok());
    }

    #[test]
    fn repetitions_can_be_written_out() {
        let text =
            "[[s]]\nrepeat = [{ m = \"x\", n = 3 }, { m = \"y\", n = 0x10 }]\nname = \"{m}{n}\"";
        let document = Document::new(Path::new("t.toml"), text.to_string());
        let table = DeTable::parse(document.text()).unwrap();
        let tables = Table::root(&document, table.get_ref()).tables("s");
        let names = tables
            .iter()
            .map(|(_, table)| table.req("name").unwrap().value);
        assert_eq!(names.collect::<Vec<String>>(), ["x3", "y16"]);
    }

    #[test]
    fn bad_repetitions_are_refused_once() {
        let read = |reader: &Table<'_>| {
            for (_, table) in reader.tables("s") {
                let _ = table.opt::<String>("name");
                let _ = table.finish();
            }
        };
        for (text, message) in [
            (
                "[[s]]\nrepeat = { q = \"3..3\" }",
                "t.toml:2:16: s[0].repeat.q: expected a non-empty range, such as \"0..16\"",
            ),
            (
                "[[s]]\nrepeat = { q = \"0..99999\" }",
                "t.toml:2:16: s[0].repeat.q: repeats the table too often; at most 65536 times are allowed",
            ),
            (
                "[[s]]\nrepeat = { q = \"0..4\" }\nname = \"{p}\"",
                "t.toml:3:8: s[0](q=0).name: unknown variable {p}; this table repeats over q",
            ),
            (
                "[[s]]\nrepeat = { q = \"0..4\" }\nname = \"{q\"",
                "t.toml:3:8: s[0](q=0).name: \"{q\" has an unclosed {",
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
                found.starts_with("t.toml:2:10: s[0].repeat: has no repetitions"),
                "{found}"
            );
        }
    }
}
