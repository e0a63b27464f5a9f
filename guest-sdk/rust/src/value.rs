//! Types that results can have, and how a column is built of them.

use crate::buffers::{Bits, Nulls};
use crate::schema::Schema;
use crate::temporal::{Date, Decimal, LocalTimestamp, Timestamp};

/// A type that a result of a plugin function can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a result of a plugin function",
    label = "not a type of SQL",
    note = "results are bool, i8 to u64, f32, f64, &str, String, &[u8], Vec<u8>, Timestamp, LocalTimestamp, Date, \
            Decimal<P, S>, Vec<T>, structs that derive Row, Option of these, and Result of these"
)]
pub trait Value: Sized {
    /// A column under construction.
    type Builder: Default;
    /// Appends the field to a schema.
    fn describe(name: &str, nullable: bool, schema: &mut Schema);
    /// Appends a row.
    fn append(self, builder: &mut Self::Builder);
    /// Appends a null.
    fn append_null(builder: &mut Self::Builder);
    /// Appends the column's buffers.
    fn finish(builder: Self::Builder, buffers: &mut Vec<Vec<u8>>);

    /// Makes room for `rows` rows.
    fn reserve(_builder: &mut Self::Builder, _rows: usize) {}

    /// As a table function's result: the columns. A row type has its fields, every other type one column.
    fn describe_columns(name: &str, schema: &mut Schema) {
        Self::describe(name, false, schema);
    }

    /// The buffers of [`Self::describe_columns`].
    fn finish_columns(builder: Self::Builder, buffers: &mut Vec<Vec<u8>>) {
        Self::finish(builder, buffers);
    }
}

/// A type that elements of a list can have: all but `u8`, because `Vec<u8>` is binary.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of a list",
    note = "`Vec<u8>` is binary; for a list of small numbers use `Vec<i16>`"
)]
pub trait Element {}

/// Values of `N` bytes under construction.
#[derive(Debug)]
pub struct FixedBuilder<const N: usize> {
    nulls: Nulls,
    values: Vec<[u8; N]>,
}

impl<const N: usize> Default for FixedBuilder<N> {
    fn default() -> Self {
        Self { nulls: Nulls::default(), values: Vec::new() }
    }
}

macro_rules! fixed_value {
    ($(($($generics:tt)*) $type:ty, $width:literal, $format:expr, |$value:ident| $bytes:expr;)*) => {$(
        impl<$($generics)*> Value for $type {
            type Builder = FixedBuilder<$width>;
            fn describe(name: &str, nullable: bool, schema: &mut Schema) {
                schema.push(name, &$format, nullable, 0);
            }
            #[inline(always)]
            fn append(self, builder: &mut Self::Builder) {
                let $value = self;
                builder.values.push($bytes);
                builder.nulls.push(true);
            }
            #[inline(always)]
            fn append_null(builder: &mut Self::Builder) {
                builder.values.push([0; $width]);
                builder.nulls.push(false);
            }
            fn finish(builder: Self::Builder, buffers: &mut Vec<Vec<u8>>) {
                buffers.push(builder.nulls.into_bytes());
                buffers.push(builder.values.into_flattened());
            }
            fn reserve(builder: &mut Self::Builder, rows: usize) {
                builder.values.reserve(rows);
            }
        }
    )*};
}

fixed_value! {
    () i8, 1, "c", |v| v.to_le_bytes();
    () u8, 1, "C", |v| v.to_le_bytes();
    () i16, 2, "s", |v| v.to_le_bytes();
    () u16, 2, "S", |v| v.to_le_bytes();
    () i32, 4, "i", |v| v.to_le_bytes();
    () u32, 4, "I", |v| v.to_le_bytes();
    () i64, 8, "l", |v| v.to_le_bytes();
    () u64, 8, "L", |v| v.to_le_bytes();
    () f32, 4, "f", |v| v.to_le_bytes();
    () f64, 8, "g", |v| v.to_le_bytes();
    () Timestamp, 8, "tsu:UTC", |v| v.0.to_le_bytes();
    () LocalTimestamp, 8, "tsu:", |v| v.0.to_le_bytes();
    () Date, 4, "tdD", |v| v.0.to_le_bytes();
    (const P: u8, const S: i8) Decimal<P, S>, 16, format!("d:{P},{S}"), |v| v.0.to_le_bytes();
}

/// Bits under construction.
#[derive(Debug, Default)]
pub struct BoolBuilder {
    nulls: Nulls,
    bits: Bits,
}

impl Value for bool {
    type Builder = BoolBuilder;

    fn describe(name: &str, nullable: bool, schema: &mut Schema) {
        schema.push(name, "b", nullable, 0);
    }

    #[inline(always)]
    fn append(self, builder: &mut Self::Builder) {
        builder.bits.push(self);
        builder.nulls.push(true);
    }

    #[inline(always)]
    fn append_null(builder: &mut Self::Builder) {
        builder.bits.push(false);
        builder.nulls.push(false);
    }

    fn finish(builder: Self::Builder, buffers: &mut Vec<Vec<u8>>) {
        buffers.push(builder.nulls.into_bytes());
        buffers.push(builder.bits.into_bytes());
    }
}

/// Strings and binary under construction.
#[derive(Debug)]
pub struct BytesBuilder {
    nulls: Nulls,
    offsets: Vec<[u8; 4]>,
    values: Vec<u8>,
}

impl Default for BytesBuilder {
    fn default() -> Self {
        Self { nulls: Nulls::default(), offsets: vec![[0; 4]], values: Vec::new() }
    }
}

/// An offset; the host refuses results far smaller than what would not fit.
#[inline(always)]
fn offset(place: usize) -> [u8; 4] {
    u32::try_from(place).unwrap_or(u32::MAX).to_le_bytes()
}

impl BytesBuilder {
    #[inline(always)]
    fn push(&mut self, bytes: &[u8]) {
        self.values.extend_from_slice(bytes);
        self.offsets.push(offset(self.values.len()));
        self.nulls.push(true);
    }
}

macro_rules! bytes_value {
    ($($type:ty, $format:literal, |$value:ident| $bytes:expr;)*) => {$(
        impl Value for $type {
            type Builder = BytesBuilder;
            fn describe(name: &str, nullable: bool, schema: &mut Schema) {
                schema.push(name, $format, nullable, 0);
            }
            #[inline(always)]
            fn append(self, builder: &mut Self::Builder) {
                let $value = self;
                builder.push($bytes);
            }
            #[inline(always)]
            fn append_null(builder: &mut Self::Builder) {
                builder.offsets.push(offset(builder.values.len()));
                builder.nulls.push(false);
            }
            fn finish(builder: Self::Builder, buffers: &mut Vec<Vec<u8>>) {
                buffers.push(builder.nulls.into_bytes());
                buffers.push(builder.offsets.into_flattened());
                buffers.push(builder.values);
            }
            fn reserve(builder: &mut Self::Builder, rows: usize) {
                builder.offsets.reserve(rows);
            }
        }
    )*};
}

bytes_value! {
    &str, "u", |v| v.as_bytes();
    String, "u", |v| v.as_bytes();
    std::borrow::Cow<'_, str>, "u", |v| v.as_bytes();
    &[u8], "z", |v| v;
    Vec<u8>, "z", |v| &v;
}

impl<T: Value> Value for Option<T> {
    type Builder = T::Builder;

    fn describe(name: &str, _nullable: bool, schema: &mut Schema) {
        T::describe(name, true, schema);
    }

    #[inline(always)]
    fn append(self, builder: &mut Self::Builder) {
        match self {
            Some(value) => value.append(builder),
            None => T::append_null(builder),
        }
    }

    #[inline(always)]
    fn append_null(builder: &mut Self::Builder) {
        T::append_null(builder);
    }

    fn finish(builder: Self::Builder, buffers: &mut Vec<Vec<u8>>) {
        T::finish(builder, buffers);
    }

    fn reserve(builder: &mut Self::Builder, rows: usize) {
        T::reserve(builder, rows);
    }
}

/// Lists under construction.
#[derive(Debug)]
pub struct ListBuilder<B> {
    nulls: Nulls,
    offsets: Vec<[u8; 4]>,
    elements: usize,
    child: B,
}

impl<B: Default> Default for ListBuilder<B> {
    fn default() -> Self {
        Self { nulls: Nulls::default(), offsets: vec![[0; 4]], elements: 0, child: B::default() }
    }
}

impl<T: Value + Element> Value for Vec<T> {
    type Builder = ListBuilder<T::Builder>;

    fn describe(name: &str, nullable: bool, schema: &mut Schema) {
        schema.push(name, "+l", nullable, 1);
        T::describe("item", true, schema);
    }

    fn append(self, builder: &mut Self::Builder) {
        builder.elements += self.len();
        self.into_iter().for_each(|element| element.append(&mut builder.child));
        builder.offsets.push(offset(builder.elements));
        builder.nulls.push(true);
    }

    fn append_null(builder: &mut Self::Builder) {
        builder.offsets.push(offset(builder.elements));
        builder.nulls.push(false);
    }

    fn finish(builder: Self::Builder, buffers: &mut Vec<Vec<u8>>) {
        buffers.push(builder.nulls.into_bytes());
        buffers.push(builder.offsets.into_flattened());
        T::finish(builder.child, buffers);
    }
}

macro_rules! elements {
    ($($type:ty),*) => { $(impl Element for $type {})* };
}

elements!(bool, i8, i16, u16, i32, u32, i64, u64, f32, f64, Timestamp, LocalTimestamp, Date, String, &str, &[u8]);

impl<const P: u8, const S: i8> Element for Decimal<P, S> {}
impl Element for Vec<u8> {}
impl<T: Element> Element for Vec<T> {}
impl<T: Element> Element for Option<T> {}
