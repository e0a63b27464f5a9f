//! Timestamps of 96 bits in Parquet files, as Spark writes them.
//!
//! Readers take them for nanoseconds in 64 bits, which reach from 1677 to 2262: a time before or behind them, the last day of
//! the year 9999 for one, would come out as some other time, without a word. As microseconds they are right in every year.
//!
//! It reads nothing: whoever does gives the reader the columns that come from here.

use arrow::datatypes::{DataType, FieldRef, Fields, TimeUnit};
use std::sync::Arc;

/// The columns of a file with its timestamps of 96 bits as microseconds. `is_int96` tells of each column that is not nested,
/// in the file's order, whether it is one.
pub fn in_microseconds(fields: &Fields, is_int96: &mut impl Iterator<Item = bool>) -> Fields {
    fields.iter().map(|field| field_in_microseconds(field, is_int96)).collect()
}

fn field_in_microseconds(field: &FieldRef, is_int96: &mut impl Iterator<Item = bool>) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(in_microseconds(fields, is_int96)),
        DataType::Map(entries, sorted) => DataType::Map(field_in_microseconds(entries, is_int96), *sorted),
        DataType::List(item) => DataType::List(field_in_microseconds(item, is_int96)),
        DataType::LargeList(item) => DataType::LargeList(field_in_microseconds(item, is_int96)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field_in_microseconds(item, is_int96), *size),
        DataType::ListView(item) => DataType::ListView(field_in_microseconds(item, is_int96)),
        DataType::LargeListView(item) => DataType::LargeListView(field_in_microseconds(item, is_int96)),
        leaf => match (is_int96.next(), leaf) {
            (Some(true), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
                DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            _ => leaf.clone(),
        },
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}
