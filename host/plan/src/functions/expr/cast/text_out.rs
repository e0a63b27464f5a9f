//! Values as text, the way a cast to STRING writes them.
//!
//! Doubles as Java writes them, decimals plain, timestamps without trailing zeros, collections as `[1, 2]`,
//! `{a -> 1}`, `{1, x}`.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::error::ArrowError;

use super::calendar::{MICROS_PER_DAY, civil_from_days};

/// The text of every value, NULL for NULL, with errors as DataFusion's.
pub(crate) fn spark_text(array: &ArrayRef) -> datafusion::error::Result<StringArray> {
    text_array(array).map_err(super::super::fault::raise)
}

/// The text of every value, NULL for NULL.
pub(crate) fn text_array(array: &ArrayRef) -> std::result::Result<StringArray, ArrowError> {
    match array.data_type() {
        DataType::Utf8 => return Ok(array.as_string::<i32>().clone()),
        DataType::LargeUtf8 | DataType::Utf8View => {
            return Ok(cast(array, &DataType::Utf8)?.as_string::<i32>().clone());
        }
        DataType::Null => return Ok(new_null_array(&DataType::Utf8, array.len()).as_string::<i32>().clone()),
        DataType::Dictionary(_, value) => return text_array(&cast(array, value)?),
        _ => {}
    }
    let writer = Writer::new(array)?;
    let mut builder = StringBuilder::with_capacity(array.len(), array.len() * 8);
    for row in 0..array.len() {
        if array.is_null(row) {
            builder.append_null();
        } else {
            writer.write(row, &mut builder).map_err(|_| not_written(array.data_type()))?;
            builder.append_value("");
        }
    }
    Ok(builder.finish())
}

fn not_written(data_type: &DataType) -> ArrowError {
    super::super::fault::fault(format!("a value of type {data_type} could not be written as text"))
}

type WriteValue<'a> = Box<dyn Fn(usize, &mut dyn Write) -> std::fmt::Result + 'a>;

/// Writes one value of an array; the type is looked at once, not per row.
struct Writer<'a> {
    array: ArrayRef,
    value: WriteValue<'a>,
}

macro_rules! plain {
    ($array:expr, $kind:ty, |$value:ident, $out:ident| $body:expr) => {{
        let values = $array.as_primitive::<$kind>().clone();
        Box::new(move |row: usize, $out: &mut dyn Write| {
            let $value = values.value(row);
            $body
        })
    }};
}

impl<'a> Writer<'a> {
    fn new(array: &ArrayRef) -> std::result::Result<Self, ArrowError> {
        let value: WriteValue<'a> = match array.data_type() {
            DataType::Null => Box::new(|_, out| out.write_str("null")),
            DataType::Boolean => {
                let values = array.as_boolean().clone();
                Box::new(move |row, out| out.write_str(if values.value(row) { "true" } else { "false" }))
            }
            DataType::Int8 => plain!(array, Int8Type, |value, out| write!(out, "{value}")),
            DataType::Int16 => plain!(array, Int16Type, |value, out| write!(out, "{value}")),
            DataType::Int32 => plain!(array, Int32Type, |value, out| write!(out, "{value}")),
            DataType::Int64 => plain!(array, Int64Type, |value, out| write!(out, "{value}")),
            DataType::Float32 => plain!(array, Float32Type, |value, out| write_float(out, value)),
            DataType::Float64 => plain!(array, Float64Type, |value, out| write_double(out, value)),
            DataType::Decimal128(_, scale) => {
                let scale = *scale;
                plain!(array, Decimal128Type, |value, out| write_decimal(out, value, scale))
            }
            DataType::Date32 => plain!(array, Date32Type, |value, out| write_date(out, value.into())),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                plain!(array, TimestampMicrosecondType, |value, out| write_timestamp(out, value))
            }
            DataType::Timestamp(_, zone) => {
                return Self::new(&cast(array, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?);
            }
            DataType::Duration(TimeUnit::Microsecond) => {
                plain!(array, DurationMicrosecondType, |value, out| write_day_interval(out, value))
            }
            DataType::Duration(_) => return Self::new(&cast(array, &DataType::Duration(TimeUnit::Microsecond))?),
            DataType::Interval(IntervalUnit::YearMonth) => {
                plain!(array, IntervalYearMonthType, |value, out| write_year_interval(out, value))
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => plain!(array, IntervalMonthDayNanoType, |value, out| {
                write_interval(out, value.months, value.days, value.nanoseconds / 1_000)
            }),
            DataType::Binary => {
                let values = array.as_binary::<i32>().clone();
                Box::new(move |row, out| out.write_str(&String::from_utf8_lossy(values.value(row))))
            }
            DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                return Self::new(&cast(array, &DataType::Binary)?);
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>().clone();
                let items = Self::new(list.values())?;
                Box::new(move |row, out| {
                    let offsets = list.value_offsets();
                    write_separated(out, '[', ']', offsets[row] as usize..offsets[row + 1] as usize, &items)
                })
            }
            DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                return Self::new(&cast(array, &DataType::List(Arc::clone(item)))?);
            }
            DataType::Struct(_) => {
                let columns = array.as_struct().columns();
                let fields: Vec<Writer<'a>> = columns.iter().map(Self::new).collect::<std::result::Result<_, _>>()?;
                Box::new(move |row, out| {
                    out.write_char('{')?;
                    for (index, field) in fields.iter().enumerate() {
                        if index > 0 {
                            out.write_str(", ")?;
                        }
                        field.write_or_null(row, out)?;
                    }
                    out.write_char('}')
                })
            }
            DataType::Map(..) => {
                let map = array.as_map().clone();
                let keys = Self::new(map.keys())?;
                let values = Self::new(map.values())?;
                Box::new(move |row, out| {
                    let offsets = map.value_offsets();
                    out.write_char('{')?;
                    for (index, entry) in (offsets[row] as usize..offsets[row + 1] as usize).enumerate() {
                        if index > 0 {
                            out.write_str(", ")?;
                        }
                        keys.write_or_null(entry, out)?;
                        out.write_str(" -> ")?;
                        values.write_or_null(entry, out)?;
                    }
                    out.write_char('}')
                })
            }
            _ => {
                let text = cast(array, &DataType::Utf8)?.as_string::<i32>().clone();
                Box::new(move |row, out| out.write_str(text.value(row)))
            }
        };
        Ok(Self { array: Arc::clone(array), value })
    }

    fn write(&self, row: usize, out: &mut dyn Write) -> std::fmt::Result {
        (self.value)(row, out)
    }

    fn write_or_null(&self, row: usize, out: &mut dyn Write) -> std::fmt::Result {
        if self.array.is_null(row) { out.write_str("null") } else { self.write(row, out) }
    }
}

fn write_separated(
    out: &mut dyn Write,
    open: char,
    close: char,
    rows: std::ops::Range<usize>,
    items: &Writer<'_>,
) -> std::fmt::Result {
    out.write_char(open)?;
    for (index, row) in rows.enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        items.write_or_null(row, out)?;
    }
    out.write_char(close)
}

/// A double as Java's `Double.toString`: plain between 10^-3 and 10^7, `d.dE±n` outside.
pub(crate) fn write_double(out: &mut dyn Write, value: f64) -> std::fmt::Result {
    if !value.is_finite() {
        return write_special(out, value);
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return write!(out, "{value:?}");
    }
    write_scientific(out, &format!("{value:e}"))
}

/// A float as Java's `Float.toString`.
pub(crate) fn write_float(out: &mut dyn Write, value: f32) -> std::fmt::Result {
    if !value.is_finite() {
        return write_special(out, value.into());
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return write!(out, "{value:?}");
    }
    write_scientific(out, &format!("{value:e}"))
}

fn write_special(out: &mut dyn Write, value: f64) -> std::fmt::Result {
    out.write_str(if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    })
}

/// From Rust's `1e7`, `1.5e-9` to Java's `1.0E7`, `1.5E-9`.
fn write_scientific(out: &mut dyn Write, text: &str) -> std::fmt::Result {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    write!(out, "{mantissa}{point}E{exponent}")
}

/// A decimal with all its digits behind the point.
pub(crate) fn write_decimal(out: &mut dyn Write, value: i128, scale: i8) -> std::fmt::Result {
    if scale <= 0 {
        write!(out, "{value}")?;
        let zeros = if value == 0 { 0 } else { scale.unsigned_abs() };
        return (0..zeros).try_for_each(|_| out.write_char('0'));
    }
    let unit = 10_u128.pow(u32::from(scale.unsigned_abs().min(38)));
    let size = value.unsigned_abs();
    let sign = if value < 0 { "-" } else { "" };
    write!(out, "{sign}{}.{:0width$}", size / unit, size % unit, width = usize::from(scale.unsigned_abs()))
}

fn write_year(out: &mut dyn Write, year: i64) -> std::fmt::Result {
    match year {
        0..=9999 => write!(out, "{year:04}"),
        10_000.. => write!(out, "+{year}"),
        _ => write!(out, "-{:04}", year.unsigned_abs()),
    }
}

/// `yyyy-MM-dd`.
pub(crate) fn write_date(out: &mut dyn Write, days: i64) -> std::fmt::Result {
    let (year, month, day) = civil_from_days(days);
    write_year(out, year)?;
    write!(out, "-{month:02}-{day:02}")
}

/// `yyyy-MM-dd HH:mm:ss[.ffffff]` without trailing zeros.
pub(crate) fn write_timestamp(out: &mut dyn Write, micros: i64) -> std::fmt::Result {
    write_date(out, micros.div_euclid(MICROS_PER_DAY))?;
    out.write_char(' ')?;
    write_clock(out, micros.rem_euclid(MICROS_PER_DAY))
}

fn write_clock(out: &mut dyn Write, micros: i64) -> std::fmt::Result {
    let seconds = micros / 1_000_000;
    write!(out, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)?;
    write_fraction(out, micros % 1_000_000)
}

fn write_fraction(out: &mut dyn Write, micros: i64) -> std::fmt::Result {
    if micros == 0 {
        return Ok(());
    }
    let (mut digits, mut width) = (micros, 6);
    while digits % 10 == 0 {
        digits /= 10;
        width -= 1;
    }
    write!(out, ".{digits:0width$}")
}

fn write_day_interval(out: &mut dyn Write, micros: i64) -> std::fmt::Result {
    let size = micros.unsigned_abs();
    let day = MICROS_PER_DAY.unsigned_abs();
    let sign = if micros < 0 { "-" } else { "" };
    write!(out, "INTERVAL '{sign}{} ", size / day)?;
    write_clock(out, (size % day) as i64)?;
    out.write_str("' DAY TO SECOND")
}

fn write_year_interval(out: &mut dyn Write, months: i32) -> std::fmt::Result {
    let size = months.unsigned_abs();
    let sign = if months < 0 { "-" } else { "" };
    write!(out, "INTERVAL '{sign}{}-{}' YEAR TO MONTH", size / 12, size % 12)
}

fn write_interval(out: &mut dyn Write, months: i32, days: i32, micros: i64) -> std::fmt::Result {
    if days == 0 && micros == 0 && months != 0 {
        return write_year_interval(out, months);
    }
    if months == 0 {
        let total = i64::from(days).saturating_mul(MICROS_PER_DAY).saturating_add(micros);
        return write_day_interval(out, total);
    }
    let parts = [(i64::from(months / 12), "years"), (i64::from(months % 12), "months"), (i64::from(days), "days")];
    let hours = micros / 3_600_000_000;
    let minutes = micros / 60_000_000 % 60;
    let mut first = true;
    for (amount, unit) in parts.into_iter().chain([(hours, "hours"), (minutes, "minutes")]) {
        if amount != 0 {
            write!(out, "{}{amount} {unit}", if first { "" } else { " " })?;
            first = false;
        }
    }
    let rest = micros % 60_000_000;
    if rest != 0 {
        let sign = if rest < 0 { "-" } else { "" };
        write!(out, "{}{sign}{}", if first { "" } else { " " }, rest.abs() / 1_000_000)?;
        write_fraction(out, rest.abs() % 1_000_000)?;
        out.write_str(" seconds")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Date32Array, Float64Array, Int32Array, ListArray, TimestampMicrosecondArray};

    use super::*;

    fn texts(array: ArrayRef) -> Vec<Option<String>> {
        spark_text(&array).unwrap().iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn doubles_are_written_as_java_writes_them() {
        let values = [3.99, 1e7, 9_999_999.0, 0.001, 0.0001, -0.0, 1.0 / 3.0, f64::NAN, f64::NEG_INFINITY, 1.5e300];
        let shown = [
            "3.99",
            "1.0E7",
            "9999999.0",
            "0.001",
            "1.0E-4",
            "-0.0",
            "0.3333333333333333",
            "NaN",
            "-Infinity",
            "1.5E300",
        ];
        for (text, expected) in texts(Arc::new(Float64Array::from(values.to_vec()))).into_iter().zip(shown) {
            assert_eq!(text.as_deref(), Some(expected));
        }
    }

    #[test]
    fn decimals_keep_their_scale() {
        let mut out = String::new();
        write_decimal(&mut out, -5, 2).unwrap();
        write_decimal(&mut out, 12_345, 0).unwrap();
        write_decimal(&mut out, 7, 3).unwrap();
        assert_eq!(out, "-0.05123450.007");
    }

    #[test]
    fn timestamps_lose_trailing_zeros_and_reach_before_1970() {
        let array = TimestampMicrosecondArray::from(vec![0, 250_000, -1]).with_timezone("UTC");
        assert_eq!(
            texts(Arc::new(array)),
            ["1970-01-01 00:00:00", "1970-01-01 00:00:00.25", "1969-12-31 23:59:59.999999"].map(|t| Some(t.to_owned()))
        );
        assert_eq!(texts(Arc::new(Date32Array::from(vec![19_782]))), [Some("2024-02-29".to_owned())]);
    }

    #[test]
    fn collections_show_nulls_inside_and_stay_null_outside() {
        let list =
            ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None, Some(Vec::new())]);
        assert_eq!(texts(Arc::new(list)), [Some("[1, null]".to_owned()), None, Some("[]".to_owned())]);
        assert_eq!(texts(Arc::new(Int32Array::from(vec![Some(-3), None]))), [Some("-3".to_owned()), None]);
    }
}
