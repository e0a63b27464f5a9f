//! Every type there and back.

use millstream_sdk::prelude::*;

macro_rules! echo {
    ($($name:ident: $type:ty;)*) => {
        $(
            /// The argument.
            #[scalar_function]
            fn $name(x: Option<$type>) -> Option<$type> {
                x
            }
        )*
    };
}

/// A struct of most types, one of them a list, one a struct.
#[derive(Row)]
struct Everything {
    flag: bool,
    small: Option<i8>,
    text: Option<String>,
    numbers: Vec<i64>,
    inner: Inner,
}

/// A struct in a struct.
#[derive(Row)]
struct Inner {
    at: Timestamp,
    bytes: Vec<u8>,
}

echo! {
    echo_bool: bool;
    echo_i8: i8;
    echo_u8: u8;
    echo_i16: i16;
    echo_u16: u16;
    echo_i32: i32;
    echo_u32: u32;
    echo_i64: i64;
    echo_u64: u64;
    echo_f32: f32;
    echo_f64: f64;
    echo_decimal: Decimal<38, 10>;
    echo_utf8: String;
    echo_binary: Vec<u8>;
    echo_date: Date;
    echo_timestamp: Timestamp;
    echo_local_timestamp: LocalTimestamp;
    echo_list: Vec<Option<String>>;
    echo_lists: Vec<Option<Vec<Option<f64>>>>;
    echo_struct: Everything;
    echo_structs: Vec<Option<Everything>>;
}

/// Borrows its argument and its result, and names the lifetime.
#[allow(clippy::needless_lifetimes, reason = "named lifetimes must work too")]
#[scalar_function]
fn echo_str<'a>(x: &'a str) -> &'a str {
    x
}

/// Borrows its argument and its result.
#[scalar_function]
fn echo_bytes(x: &[u8]) -> &[u8] {
    x
}

/// The columns of a row type, of one row each.
#[table_function]
fn echo_rows(x: Everything) -> Vec<Everything> {
    vec![x]
}

/// As many rows as there are elements.
#[table_function(column = "element")]
fn elements(x: Vec<Option<i64>>) -> impl Iterator<Item = Option<i64>> {
    x.into_iter()
}

/// No arguments at all.
#[scalar_function]
fn seven() -> i32 {
    7
}

plugin!(
    echo_bool,
    echo_i8,
    echo_u8,
    echo_i16,
    echo_u16,
    echo_i32,
    echo_u32,
    echo_i64,
    echo_u64,
    echo_f32,
    echo_f64,
    echo_decimal,
    echo_utf8,
    echo_binary,
    echo_date,
    echo_timestamp,
    echo_local_timestamp,
    echo_list,
    echo_lists,
    echo_struct,
    echo_structs,
    echo_str,
    echo_bytes,
    echo_rows,
    elements,
    seven
);
