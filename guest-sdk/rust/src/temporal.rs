//! Types of SQL that Rust has not: timestamps, dates, decimals.

/// A moment: microseconds since 1970-01-01 00:00 UTC. SQL's `TIMESTAMP`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// A clock's reading without a time zone, in microseconds since 1970-01-01 00:00. SQL's `TIMESTAMP_NTZ`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalTimestamp(pub i64);

/// A day: days since 1970-01-01. SQL's `DATE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub i32);

/// A decimal number of at most `P` digits, `S` of them after the point: the value times 10^`S`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal<const P: u8, const S: i8>(pub i128);
