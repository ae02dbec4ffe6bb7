//! TOML files read with places: every message carries file, line, column and key, and all problems of a
//! file are told at once.
//!
//! A [`Table`] reads strictly: a key that nobody asks for is an error. What a table holds is declared with
//! [`keys!`], which makes a struct of the keys and their types and reads it.

mod keys;
mod quantities;
mod repeat;
mod table;
mod value;

pub(crate) use keys::{Key, Keys, List, Tables, Under, keys, subtables};
pub(crate) use table::{Table, hint};
pub(crate) use value::{FromValue, Value, from_text, integer, named};

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::de::DeTable;

/// A place in a file: the byte where it starts and the path of keys that leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub offset: usize,
    pub key: Arc<str>,
}

/// A value together with the place it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At<T> {
    pub value: T,
    pub mark: Mark,
}

impl<T> At<T> {
    /// The same place with another value.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> At<U> {
        At {
            value: make(self.value),
            mark: self.mark,
        }
    }
}

impl<T> std::ops::Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// There is no value, and nothing left to say about it: a problem was recorded, or what the value depends
/// on is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoValue;

/// What was read, if there is a value.
pub(crate) type Read<T> = Result<T, NoValue>;

/// A value of the right type that makes no sense.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Dotted key.
    pub key: String,
    pub value: String,
    /// What would be right.
    pub right: String,
}

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file.
    pub file: PathBuf,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Path of the key within the file, such as `step[2].barrier`; empty for the file as a whole.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        write!(f, "{file}:{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// Diagnostics as a message, a line each.
pub(crate) fn lines(diagnostics: &[Diagnostic]) -> String {
    let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A file and the problems found in it so far.
#[derive(Debug)]
pub(crate) struct Document {
    path: PathBuf,
    line_starts: Vec<usize>,
    text: String,
    /// Ordered by offset, so that messages come in file order; one message per place.
    problems: RefCell<BTreeSet<(usize, String, String)>>,
}

impl Document {
    pub fn new(path: &Path, text: String) -> Self {
        let newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Document {
            path: path.to_path_buf(),
            line_starts: std::iter::once(0).chain(newlines).collect(),
            text,
            problems: RefCell::default(),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The folder that relative file names in it start from.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    pub fn report(&self, mark: &Mark, message: impl Into<String>) -> NoValue {
        self.record(mark.offset, &mark.key, message.into());
        NoValue
    }

    /// Records a problem of the file as a whole.
    pub fn report_file(&self, message: impl Into<String>) -> NoValue {
        self.record(0, "", message.into());
        NoValue
    }

    /// Parses the text and reads its table: the result, or everything that is wrong.
    pub fn parse<T>(&self, read: impl FnOnce(&Table<'_>) -> Read<T>) -> Result<T, Vec<Diagnostic>> {
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        for error in &errors {
            let offset = error.span().map_or(0, |span| span.start);
            self.record(offset, "", error.message().to_string());
        }
        self.conclude(Ok(()))?;
        let value = read(&Table::root(self, table.get_ref()));
        self.conclude(value)
    }

    /// A repeated table reports each problem once, under the key of its first repetition.
    fn record(&self, offset: usize, key: &str, message: String) {
        let mut problems = self.problems.borrow_mut();
        let here = problems.range((offset, String::new(), String::new())..);
        let mut here = here.take_while(|(other, ..)| *other == offset);
        if !here.any(|(.., told)| *told == message) {
            problems.insert((offset, key.to_string(), message));
        }
    }

    /// Line and column, both from 1, of a byte offset.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        let before = self.text.get(start..offset).unwrap_or("");
        (line, before.chars().count() + 1)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Line of a place, counted from 1.
    pub fn line(&self, mark: &Mark) -> usize {
        self.line_column(mark.offset).0
    }

    /// `file:line` of a place, for messages that point at a second place.
    pub fn place(&self, mark: &Mark) -> String {
        format!("{}:{}", self.path.display(), self.line(mark))
    }

    /// What came of a pass over the document: the result if nothing was recorded, else everything
    /// recorded, which is then forgotten.
    pub fn conclude<T>(&self, result: Read<T>) -> Result<T, Vec<Diagnostic>> {
        let problems = self.problems.take();
        if let (Ok(value), true) = (result, problems.is_empty()) {
            return Ok(value);
        }
        let diagnostic = |(offset, key, message)| {
            let (line, column) = self.line_column(offset);
            Diagnostic {
                file: self.path.clone(),
                line,
                column,
                key,
                message,
            }
        };
        Err(problems.into_iter().map(diagnostic).collect())
    }
}

/// The text of a file with another value under a dotted key, if it has the key.
pub(crate) fn with_value(text: &str, key: &str, value: &str) -> Option<String> {
    let span = {
        let table = DeTable::parse(text).ok()?;
        table::value_at(table.get_ref(), key)?.span()
    };
    let mut text = text.to_string();
    text.replace_range(span, value);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_from_one() {
        let document = Document::new(Path::new("x.toml"), "a\nµµb\n".to_string());
        assert_eq!(document.line_column(0), (1, 1));
        assert_eq!(document.line_column(2), (2, 1));
        assert_eq!(document.line_column(6), (2, 3));
        assert_eq!(document.line_column(99), (3, 1));
    }

    #[test]
    fn problems_come_in_file_order_and_once() {
        let document = Document::new(Path::new("x.toml"), "ab\ncd".to_string());
        let mark = |offset, key: &str| Mark {
            offset,
            key: key.into(),
        };
        document.report(&mark(3, "later"), "two");
        document.report(&mark(0, "early"), "one");
        document.report(&mark(3, "later again"), "two");
        let text = lines(&document.conclude(Ok(())).unwrap_err());
        assert_eq!(text, "x.toml:1:1: early: one\nx.toml:2:1: later: two");
        assert!(document.conclude(Ok(())).is_ok());
    }
}
