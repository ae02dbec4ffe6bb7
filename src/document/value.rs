//! What single TOML values are read as.

use super::repeat::{Bindings, substitute};
use std::rc::Rc;
use toml::de::{DeInteger, DeValue};

/// A TOML value with the variables that hold where it stands.
pub(crate) struct Value<'a> {
    pub raw: &'a DeValue<'a>,
    pub(crate) variables: Rc<Bindings>,
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

/// A type that one TOML value can be read as.
pub(crate) trait FromValue: Sized {
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
pub(crate) fn integer<T: TryFrom<i128>>(number: &DeInteger<'_>) -> Result<T, String> {
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
        impl crate::document::FromValue for $ty {
            const EXPECTED: &'static str = $expected;

            fn from_value(
                value: &crate::document::Value<'_>,
            ) -> Result<Option<Self>, String> {
                match value.text()? {
                    Some(text) => text.parse().map(Some).map_err(|e| format!("{e}")),
                    None => Ok(None),
                }
            }
        }
    )*};
}
pub(crate) use from_text;

/// Types with a name in a closed list.
macro_rules! named {
    ($($ty:ty, $all:expr, $name:expr, $expected:literal;)*) => {$(
        impl crate::document::FromValue for $ty {
            const EXPECTED: &'static str = $expected;

            fn from_value(
                value: &crate::document::Value<'_>,
            ) -> Result<Option<Self>, String> {
                let Some(text) = value.text()? else {
                    return Ok(None);
                };
                match $all.into_iter().find(|known| $name(*known) == text) {
                    Some(known) => Ok(Some(known)),
                    None => Err(format!("\"{text}\" is not {}", $expected)),
                }
            }
        }
    )*};
}
pub(crate) use named;

impl FromValue for f32 {
    const EXPECTED: &'static str = "a number";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        let text = match value.raw {
            DeValue::Integer(number) => number.as_str().to_string(),
            DeValue::Float(number) => number.as_str().to_string(),
            _ => match value.text()? {
                Some(text) => text,
                None => return Ok(None),
            },
        };
        let parsed = text.replace('_', "").parse().map(Some);
        parsed.map_err(|_| format!("\"{text}\" is not a number"))
    }
}

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

/// The message for a value of another type.
pub(crate) fn wrong_type(expected: &str, raw: &DeValue<'_>, what: &str) -> String {
    let found = raw.type_str();
    format!("{what}expected {expected}, found a TOML {found}")
}
