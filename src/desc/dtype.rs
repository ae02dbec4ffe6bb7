//! Data types of the compute and reshaping engines (`docs/hardware.md`, "Data types").

/// An SDMA data type; the discriminant is its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DType {
    /// 64-bit unsigned.
    Uint64 = 1,
    /// 8-bit signed.
    Int8 = 2,
    /// 8-bit unsigned.
    Uint8 = 3,
    /// 16-bit signed.
    Int16 = 4,
    /// 16-bit unsigned.
    Uint16 = 5,
    /// bfloat16.
    Bfloat16 = 6,
    /// IEEE half.
    Fp16 = 7,
    /// 32-bit signed.
    Int32 = 8,
    /// 32-bit unsigned.
    Uint32 = 9,
    /// IEEE single.
    Fp32 = 10,
    /// IEEE single, rounded.
    Fp32r = 11,
    /// 64-bit signed.
    Int64 = 12,
    /// 8-bit float, 3 exponent bits.
    Fp8E3 = 13,
    /// 8-bit float, 4 exponent bits.
    Fp8E4 = 14,
    /// 8-bit float, 5 exponent bits.
    Fp8E5 = 15,
}

/// A data type code nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DTypeError {
    /// Not an SDMA code.
    #[error("{0} is not an SDMA data type; the codes are 1 to 15")]
    Sdma(u8),
    /// Not a kbin code.
    #[error("{0} is not a kbin data type; the codes are 1 to 15")]
    Kbin(u8),
}

/// What a table row says of a type: the type, its size in bytes, its kbin code, its name.
type Row = (DType, u32, u8, &'static str);

/// One row a type, in code order.
const TABLE: [Row; 15] = [
    (DType::Uint64, 8, 11, "uint64"),
    (DType::Int8, 1, 12, "int8"),
    (DType::Uint8, 1, 8, "uint8"),
    (DType::Int16, 2, 13, "int16"),
    (DType::Uint16, 2, 9, "uint16"),
    (DType::Bfloat16, 2, 7, "bfloat16"),
    (DType::Fp16, 2, 4, "fp16"),
    (DType::Int32, 4, 14, "int32"),
    (DType::Uint32, 4, 10, "uint32"),
    (DType::Fp32, 4, 5, "fp32"),
    (DType::Fp32r, 4, 6, "fp32r"),
    (DType::Int64, 8, 15, "int64"),
    (DType::Fp8E3, 1, 1, "fp8_e3"),
    (DType::Fp8E4, 1, 2, "fp8_e4"),
    (DType::Fp8E5, 1, 3, "fp8_e5"),
];

impl DType {
    /// Every type, in code order.
    pub fn all() -> impl Iterator<Item = DType> {
        TABLE.iter().map(|row| row.0)
    }

    const fn row(self) -> &'static Row {
        &TABLE[self as usize - 1]
    }

    /// SDMA code, 1..=15.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Bytes of an element.
    pub const fn bytes(self) -> u32 {
        self.row().1
    }

    /// Bytes of an element in the size table of reduce packets, which has none for fp32r: a packet
    /// of it cannot be sized.
    pub const fn reduce_bytes(self) -> Option<u32> {
        match self {
            DType::Fp32r => None,
            other => Some(other.bytes()),
        }
    }

    /// Code of the type in the compiler's kbin files.
    pub const fn kbin(self) -> u8 {
        self.row().2
    }

    /// Name of the type, lower case.
    pub const fn name(self) -> &'static str {
        self.row().3
    }

    /// The type with a kbin code.
    ///
    /// # Errors
    /// [`DTypeError::Kbin`] outside 1..=15.
    pub fn from_kbin(code: u8) -> Result<DType, DTypeError> {
        DType::all()
            .find(|dtype| dtype.kbin() == code)
            .ok_or(DTypeError::Kbin(code))
    }

    /// Reads a 4-bit field of an op word: `None` for the reserved code 0.
    pub(super) const fn from_field(raw: u8) -> Option<DType> {
        match raw & 0xf {
            0 => None,
            code => Some(TABLE[code as usize - 1].0),
        }
    }

    /// Writes a 4-bit field of an op word.
    pub(super) const fn to_field(dtype: Option<DType>) -> u8 {
        match dtype {
            None => 0,
            Some(dtype) => dtype as u8,
        }
    }
}

impl TryFrom<u8> for DType {
    type Error = DTypeError;

    /// The type with an SDMA code.
    fn try_from(code: u8) -> Result<DType, DTypeError> {
        match code {
            1..=15 => Ok(TABLE[usize::from(code) - 1].0),
            _ => Err(DTypeError::Sdma(code)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_code_order() {
        for (index, dtype) in DType::all().enumerate() {
            assert_eq!(usize::from(dtype.code()), index + 1, "{dtype:?}");
            assert_eq!(DType::try_from(dtype.code()), Ok(dtype));
            assert_eq!(DType::from_kbin(dtype.kbin()), Ok(dtype));
            assert_eq!(DType::from_field(dtype.code()), Some(dtype));
        }
    }

    #[test]
    fn golden_rows() {
        assert_eq!(DType::try_from(10), Ok(DType::Fp32));
        assert_eq!(DType::from_kbin(5), Ok(DType::Fp32));
        assert_eq!(DType::from_kbin(7), Ok(DType::Bfloat16));
        assert_eq!(DType::from_kbin(11), Ok(DType::Uint64));
        assert_eq!(DType::Int64.bytes(), 8);
        assert_eq!(DType::Fp32r.bytes(), 4);
        assert_eq!(DType::Fp32r.reduce_bytes(), None);
        assert_eq!(DType::Fp32.reduce_bytes(), Some(4));
        assert_eq!(DType::Fp8E5.kbin(), 3);
    }

    #[test]
    fn unknown_codes_are_refused() {
        for code in [0, 16, 255] {
            assert_eq!(DType::try_from(code), Err(DTypeError::Sdma(code)));
            assert_eq!(DType::from_kbin(code), Err(DTypeError::Kbin(code)));
        }
    }
}
