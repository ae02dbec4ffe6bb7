//! Quantities with units, and generations, as files write them.

use super::{FromValue, Value, from_text};
use crate::arch::Arch;
use crate::units::{Bytes, BytesPerSecond, Hertz};

impl FromValue for Bytes {
    const EXPECTED: &'static str = "a size such as 4096 or \"64KiB\"";

    fn from_value(value: &Value<'_>) -> Result<Option<Self>, String> {
        match value.text()? {
            Some(text) => text.parse().map(Some).map_err(|e| format!("{e}")),
            None => Ok(u64::from_value(value)?.map(Bytes)),
        }
    }
}

from_text! {
    Hertz, "a frequency such as \"850MHz\"";
    BytesPerSecond, "a data rate such as \"27GB/s\"";
    Arch, "an arch: \"v2\", \"v3\" or \"v4\"";
}
