//! Types that arguments can have, and how a row's value is read.

use crate::buffers::{Reader, Validity, bit};
use crate::schema::Schema;
use crate::temporal::{Date, Decimal, LocalTimestamp, Timestamp};
use crate::value::Element;

/// A type that an argument of a plugin function can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a plugin function",
    label = "not a type of SQL",
    note = "arguments are bool, i8 to u64, f32, f64, &str, String, &[u8], Vec<u8>, Timestamp, LocalTimestamp, Date, \
            Decimal<P, S>, Vec<T>, structs that derive Row, and Option of these"
)]
pub trait Argument<'a>: Sized {
    /// Whether nulls arrive (`Option`); else the function is not called for them.
    const NULLABLE: bool = false;
    /// The column's buffers.
    type Column: Column;
    /// Appends the field to a schema.
    fn describe(name: &str, nullable: bool, schema: &mut Schema);
    /// Takes the column's buffers.
    fn open(reader: &mut Reader<'a>) -> Self::Column;
    /// The value of a row; `None` where it is null and the type cannot be.
    fn get(column: &Self::Column, row: usize) -> Option<Self>;

    /// As [`Self::open`], where the type stands for whole rows: a row type takes the buffers of its fields.
    fn open_columns(reader: &mut Reader<'a>) -> Self::Column {
        Self::open(reader)
    }
}

/// The buffers of a column.
pub trait Column {
    /// Whether row `row` is not null.
    fn is_valid(&self, row: usize) -> bool;
}

/// Values of `N` bytes.
#[derive(Debug)]
pub struct Fixed<'a, const N: usize> {
    validity: Validity<'a>,
    values: &'a [[u8; N]],
}

impl<const N: usize> Column for Fixed<'_, N> {
    #[inline(always)]
    fn is_valid(&self, row: usize) -> bool {
        self.validity.is_valid(row)
    }
}

macro_rules! fixed_argument {
    ($(($($generics:tt)*) $type:ty, $width:literal, $format:expr, |$bytes:ident| $value:expr;)*) => {$(
        impl<'a, $($generics)*> Argument<'a> for $type {
            type Column = Fixed<'a, $width>;
            fn describe(name: &str, nullable: bool, schema: &mut Schema) {
                schema.push(name, &$format, nullable, 0);
            }
            fn open(reader: &mut Reader<'a>) -> Self::Column {
                Fixed { validity: reader.validity(), values: reader.values() }
            }
            #[inline(always)]
            fn get(column: &Self::Column, row: usize) -> Option<Self> {
                if !column.validity.is_valid(row) {
                    return None;
                }
                let $bytes = column.values[row];
                Some($value)
            }
        }
    )*};
}

fixed_argument! {
    () i8, 1, "c", |b| i8::from_le_bytes(b);
    () u8, 1, "C", |b| u8::from_le_bytes(b);
    () i16, 2, "s", |b| i16::from_le_bytes(b);
    () u16, 2, "S", |b| u16::from_le_bytes(b);
    () i32, 4, "i", |b| i32::from_le_bytes(b);
    () u32, 4, "I", |b| u32::from_le_bytes(b);
    () i64, 8, "l", |b| i64::from_le_bytes(b);
    () u64, 8, "L", |b| u64::from_le_bytes(b);
    () f32, 4, "f", |b| f32::from_le_bytes(b);
    () f64, 8, "g", |b| f64::from_le_bytes(b);
    () Timestamp, 8, "tsu:UTC", |b| Timestamp(i64::from_le_bytes(b));
    () LocalTimestamp, 8, "tsu:", |b| LocalTimestamp(i64::from_le_bytes(b));
    () Date, 4, "tdD", |b| Date(i32::from_le_bytes(b));
    (const P: u8, const S: i8) Decimal<P, S>, 16, format!("d:{P},{S}"), |b| Decimal(i128::from_le_bytes(b));
}

/// Bits.
#[derive(Debug)]
pub struct BoolColumn<'a> {
    validity: Validity<'a>,
    bits: &'a [u8],
}

impl Column for BoolColumn<'_> {
    #[inline(always)]
    fn is_valid(&self, row: usize) -> bool {
        self.validity.is_valid(row)
    }
}

impl<'a> Argument<'a> for bool {
    type Column = BoolColumn<'a>;

    fn describe(name: &str, nullable: bool, schema: &mut Schema) {
        schema.push(name, "b", nullable, 0);
    }

    fn open(reader: &mut Reader<'a>) -> Self::Column {
        BoolColumn { validity: reader.validity(), bits: reader.next_buffer() }
    }

    #[inline(always)]
    fn get(column: &Self::Column, row: usize) -> Option<Self> {
        column.validity.is_valid(row).then(|| bit(column.bits, row))
    }
}

/// Strings and binary.
#[derive(Debug)]
pub struct Bytes<'a> {
    validity: Validity<'a>,
    offsets: &'a [[u8; 4]],
    values: &'a [u8],
}

impl<'a> Bytes<'a> {
    fn open(reader: &mut Reader<'a>) -> Self {
        Self { validity: reader.validity(), offsets: reader.values(), values: reader.next_buffer() }
    }

    #[inline(always)]
    fn get(&self, row: usize) -> Option<&'a [u8]> {
        if !self.validity.is_valid(row) {
            return None;
        }
        let (start, end) = span(self.offsets, row);
        Some(&self.values[start..end])
    }

    #[inline(always)]
    #[allow(unsafe_code, reason = "the host passes only valid UTF-8 as strings; checking it again costs a pass")]
    fn text(&self, row: usize) -> Option<&'a str> {
        // SAFETY: the host is trusted, and a column described as `u` is made from Arrow strings, which are UTF-8 from
        // offset to offset.
        self.get(row).map(|bytes| unsafe { std::str::from_utf8_unchecked(bytes) })
    }
}

#[inline(always)]
fn span(offsets: &[[u8; 4]], row: usize) -> (usize, usize) {
    let offset = |row: usize| u32::from_le_bytes(offsets[row]) as usize;
    (offset(row), offset(row + 1))
}

impl Column for Bytes<'_> {
    #[inline(always)]
    fn is_valid(&self, row: usize) -> bool {
        self.validity.is_valid(row)
    }
}

macro_rules! bytes_argument {
    ($($type:ty, $format:literal, |$column:ident, $row:ident| $value:expr;)*) => {$(
        impl<'a> Argument<'a> for $type {
            type Column = Bytes<'a>;
            fn describe(name: &str, nullable: bool, schema: &mut Schema) {
                schema.push(name, $format, nullable, 0);
            }
            fn open(reader: &mut Reader<'a>) -> Self::Column {
                Bytes::open(reader)
            }
            #[inline(always)]
            fn get($column: &Self::Column, $row: usize) -> Option<Self> {
                $value
            }
        }
    )*};
}

bytes_argument! {
    &'a str, "u", |column, row| column.text(row);
    String, "u", |column, row| column.text(row).map(str::to_owned);
    &'a [u8], "z", |column, row| column.get(row);
    Vec<u8>, "z", |column, row| column.get(row).map(<[u8]>::to_vec);
}

impl<'a, T: Argument<'a>> Argument<'a> for Option<T> {
    const NULLABLE: bool = true;
    type Column = T::Column;

    fn describe(name: &str, _nullable: bool, schema: &mut Schema) {
        T::describe(name, true, schema);
    }

    fn open(reader: &mut Reader<'a>) -> Self::Column {
        T::open(reader)
    }

    #[inline(always)]
    fn get(column: &Self::Column, row: usize) -> Option<Self> {
        if !column.is_valid(row) {
            return Some(None);
        }
        T::get(column, row).map(Some)
    }
}

/// Lists.
#[derive(Debug)]
pub struct ListColumn<'a, C> {
    validity: Validity<'a>,
    offsets: &'a [[u8; 4]],
    child: C,
}

impl<C> Column for ListColumn<'_, C> {
    #[inline(always)]
    fn is_valid(&self, row: usize) -> bool {
        self.validity.is_valid(row)
    }
}

/// A list with a null in it is itself taken for null, unless its elements are `Option`s.
impl<'a, T: Argument<'a> + Element> Argument<'a> for Vec<T> {
    type Column = ListColumn<'a, T::Column>;

    fn describe(name: &str, nullable: bool, schema: &mut Schema) {
        schema.push(name, "+l", nullable, 1);
        T::describe("item", true, schema);
    }

    fn open(reader: &mut Reader<'a>) -> Self::Column {
        ListColumn { validity: reader.validity(), offsets: reader.values(), child: T::open(reader) }
    }

    fn get(column: &Self::Column, row: usize) -> Option<Self> {
        if !column.validity.is_valid(row) {
            return None;
        }
        let (start, end) = span(column.offsets, row);
        (start..end).map(|element| T::get(&column.child, element)).collect()
    }
}
