//! What an argument may be, and the one form in which a function's body sees it.
//!
//! Where it stands: between the query's types and a function's body; Spark's implicit casts of function arguments.
//!
//! Rule of its life: [`Kind::coerce`] says which given types are taken and leaves them as they are where the engine's
//! own cast would write them differently from Spark; [`Kind::canonical`] converts the column.
//!
//! It does not do explicit casts of the query.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Float32Type, Float64Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_datafusion_err, exec_err};

use super::column::{texts, timestamps, values};
use super::function::{some, timestamp_type};
use super::time::{calendar, format, parse};
use crate::functions::expr::text_in;

/// How a value becomes the kind that is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// ANSI mode: what does not become it is an error, not NULL.
    pub(crate) ansi: bool,
    /// The batch's day, for times without a date.
    pub(crate) today: i64,
}

/// The kind of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// STRING; every atomic value is written out.
    Text,
    /// BINARY; STRING gives its UTF-8 bytes.
    Bytes,
    /// BINARY stays BINARY, all else is STRING.
    TextOrBytes,
    /// INT.
    Int,
    /// BIGINT.
    Long,
    /// DOUBLE.
    Double,
    /// BOOLEAN.
    Bool,
    /// DATE.
    Date,
    /// TIMESTAMP.
    Timestamp,
    /// Any number as it is.
    Number,
    /// DATE or TIMESTAMP as it is; STRING is read as a timestamp.
    DateOrTimestamp,
    /// Anything, as it is.
    Any,
}

fn is_atomic(data_type: &DataType) -> bool {
    data_type.is_numeric()
        || matches!(
            data_type,
            DataType::Boolean
                | DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::Date32
                | DataType::Timestamp(_, _)
        )
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

impl Kind {
    /// The type the planner should hand over for a given type; `None` when it cannot be taken.
    pub(crate) fn coerce(self, given: &DataType) -> Option<DataType> {
        if given.is_null() {
            return Some(match self {
                Kind::Text | Kind::TextOrBytes => DataType::Utf8,
                Kind::Bytes => DataType::Binary,
                Kind::Int => DataType::Int32,
                Kind::Long => DataType::Int64,
                Kind::Double | Kind::Number => DataType::Float64,
                Kind::Bool => DataType::Boolean,
                Kind::Date => DataType::Date32,
                Kind::Timestamp | Kind::DateOrTimestamp => timestamp_type(),
                Kind::Any => DataType::Null,
            });
        }
        let taken = match self {
            Kind::Text | Kind::TextOrBytes => is_atomic(given),
            Kind::Bytes => {
                is_text(given) || matches!(given, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
            }
            Kind::Int | Kind::Long => given.is_integer() || is_text(given),
            Kind::Double | Kind::Number => given.is_numeric() || is_text(given),
            Kind::Bool => *given == DataType::Boolean,
            Kind::Date | Kind::Timestamp | Kind::DateOrTimestamp => {
                is_text(given) || matches!(given, DataType::Date32 | DataType::Timestamp(_, _))
            }
            Kind::Any => true,
        };
        taken.then(|| given.clone())
    }

    /// Whether converting a value to this kind may fail.
    pub(crate) fn may_fail(self) -> bool {
        !matches!(self, Self::Text | Self::Bytes | Self::TextOrBytes | Self::Any)
    }

    /// Whether converting some value of this type to this kind fails in ANSI mode.
    pub(crate) fn may_fail_on(self, given: &DataType) -> bool {
        match self {
            Kind::Int => {
                use DataType::{Int8, Int16, Int32, Null, UInt8, UInt16};
                !matches!(given, Int8 | Int16 | Int32 | UInt8 | UInt16 | Null)
            }
            Kind::Long | Kind::Double | Kind::Number | Kind::Date | Kind::Timestamp | Kind::DateOrTimestamp => {
                is_text(given)
            }
            Kind::Bool | Kind::Text | Kind::Bytes | Kind::TextOrBytes | Kind::Any => false,
        }
    }

    /// The column in the one form that bodies read.
    pub(crate) fn canonical(self, array: &ArrayRef, rules: Rules) -> Result<ArrayRef> {
        let (given, ansi) = (array.data_type(), rules.ansi);
        match self {
            Kind::Text => to_text(array),
            Kind::Bytes => Ok(cast(array, &DataType::Binary)?),
            Kind::TextOrBytes => match given {
                DataType::Binary => Ok(Arc::clone(array)),
                DataType::LargeBinary | DataType::BinaryView => Ok(cast(array, &DataType::Binary)?),
                _ => to_text(array),
            },
            Kind::Int => to_int(array, ansi),
            Kind::Long => to_long(array, ansi),
            Kind::Double => to_double(array, ansi),
            Kind::Number if is_text(given) => to_double(array, ansi),
            Kind::Bool => Ok(cast(array, &DataType::Boolean)?),
            Kind::Date => to_date(array, ansi),
            Kind::Timestamp => to_timestamp(array, rules),
            Kind::DateOrTimestamp if *given != DataType::Date32 => to_timestamp(array, rules),
            Kind::Number | Kind::DateOrTimestamp | Kind::Any => Ok(Arc::clone(array)),
        }
    }
}

fn malformed(value: &str, target: &str) -> datafusion::common::DataFusionError {
    exec_datafusion_err!(
        "[CAST_INVALID_INPUT] the value '{value}' of type STRING cannot be cast to {target} because it is malformed; \
         use try_cast to get NULL instead"
    )
}

/// Any atomic column as Spark writes it.
pub(crate) fn to_text(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Utf8 => Ok(Arc::clone(array)),
        DataType::Float64 => {
            let numbers = array.as_primitive::<Float64Type>();
            texts(array.len(), |row, out| {
                if numbers.is_null(row) {
                    return Ok(None);
                }
                format::write_double(numbers.value(row), out);
                Ok(Some(()))
            })
        }
        DataType::Float32 => {
            let numbers = array.as_primitive::<Float32Type>();
            texts(array.len(), |row, out| {
                if numbers.is_null(row) {
                    return Ok(None);
                }
                format::write_float(numbers.value(row), out);
                Ok(Some(()))
            })
        }
        DataType::Timestamp(_, _) => {
            let array = micros(array)?;
            let instants = array.as_primitive::<TimestampMicrosecondType>();
            texts(array.len(), |row, out| {
                if instants.is_null(row) {
                    return Ok(None);
                }
                format::write_timestamp(instants.value(row), out);
                Ok(Some(()))
            })
        }
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            texts(array.len(), |row, out| {
                if days.is_null(row) {
                    return Ok(None);
                }
                format::write_date(i64::from(days.value(row)), out);
                Ok(Some(()))
            })
        }
        DataType::Boolean => {
            let flags = array.as_boolean();
            texts(array.len(), |row, out| {
                if flags.is_null(row) {
                    return Ok(None);
                }
                write!(out, "{}", flags.value(row)).map_err(|e| exec_datafusion_err!("{e}"))?;
                Ok(Some(()))
            })
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let array = cast(array, &DataType::Binary)?;
            let bytes = array.as_binary::<i32>();
            texts(array.len(), |row, out| {
                if bytes.is_null(row) {
                    return Ok(None);
                }
                out.push_str(&String::from_utf8_lossy(bytes.value(row)));
                Ok(Some(()))
            })
        }
        _ => Ok(cast(array, &DataType::Utf8)?),
    }
}

fn micros(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let instants = array.as_primitive::<TimestampMicrosecondType>();
            Ok(Arc::new(instants.clone().with_timezone("UTC")))
        }
        // Finer units are cut towards the past, as the engine's own clock does.
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let nanos = cast(array, &DataType::Int64)?;
            let nanos = nanos.as_primitive::<Int64Type>();
            let micros: PrimitiveArray<TimestampMicrosecondType> = nanos.unary(|n| n.div_euclid(1000));
            Ok(Arc::new(micros.with_timezone("UTC")))
        }
        _ => Ok(cast(array, &timestamp_type())?),
    }
}

fn to_int(array: &ArrayRef, ansi: bool) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Int32 => Ok(Arc::clone(array)),
        DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16 => Ok(cast(array, &DataType::Int32)?),
        _ => {
            let longs = to_long(array, ansi)?;
            let longs: &Int64Array = longs.as_primitive();
            values::<Int32Type>(longs.len(), |row| {
                if longs.is_null(row) {
                    return Ok(None);
                }
                let value = longs.value(row);
                match i32::try_from(value) {
                    Ok(value) => Ok(Some(value)),
                    Err(_) if ansi => exec_err!(
                        "[CAST_OVERFLOW] the value {value} of type BIGINT cannot be cast to INT because it overflows; \
                         use try_cast to get NULL instead"
                    ),
                    Err(_) => Ok(None),
                }
            })
        }
    }
}

fn to_long(array: &ArrayRef, ansi: bool) -> Result<ArrayRef> {
    if !is_text(array.data_type()) {
        return Ok(cast(array, &DataType::Int64)?);
    }
    let array = to_text(&cast(array, &DataType::Utf8)?)?;
    let strings = array.as_string::<i32>();
    values::<Int64Type>(strings.len(), |row| {
        if strings.is_null(row) {
            return Ok(None);
        }
        let value = strings.value(row);
        match parse::trim(value).parse::<i64>() {
            Ok(value) => Ok(Some(value)),
            Err(_) if ansi => Err(malformed(value, "BIGINT")),
            Err(_) => Ok(None),
        }
    })
}

fn to_double(array: &ArrayRef, ansi: bool) -> Result<ArrayRef> {
    if !is_text(array.data_type()) {
        return Ok(cast(array, &DataType::Float64)?);
    }
    let array = cast(array, &DataType::Utf8)?;
    let strings = array.as_string::<i32>();
    values::<Float64Type>(strings.len(), |row| {
        if strings.is_null(row) {
            return Ok(None);
        }
        let value = strings.value(row);
        match parse::trim(value).parse::<f64>() {
            Ok(value) => Ok(Some(value)),
            Err(_) if ansi => Err(malformed(value, "DOUBLE")),
            Err(_) => Ok(None),
        }
    })
}

fn to_date(array: &ArrayRef, ansi: bool) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Date32 => Ok(Arc::clone(array)),
        DataType::Timestamp(_, _) => {
            let array = micros(array)?;
            let instants = array.as_primitive::<TimestampMicrosecondType>();
            values::<Date32Type>(instants.len(), |row| {
                if instants.is_null(row) {
                    return Ok(None);
                }
                calendar::day_of(instants.value(row)).map(Some)
            })
        }
        _ => {
            let array = cast(array, &DataType::Utf8)?;
            let strings = array.as_string::<i32>();
            values::<Date32Type>(strings.len(), |row| {
                if strings.is_null(row) {
                    return Ok(None);
                }
                let value = strings.value(row);
                match parse::date(value) {
                    Some(days) => Ok(Some(days)),
                    None if ansi => Err(malformed(value, "DATE")),
                    None => Ok(None),
                }
            })
        }
    }
}

fn to_timestamp(array: &ArrayRef, rules: Rules) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Timestamp(_, _) => micros(array),
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            timestamps(days.len(), |row| {
                if days.is_null(row) {
                    return Ok(None);
                }
                calendar::midnight(i64::from(days.value(row))).map(Some)
            })
        }
        _ => {
            let array = cast(array, &DataType::Utf8)?;
            let strings = array.as_string::<i32>();
            timestamps(strings.len(), |row| {
                let value = some!((!strings.is_null(row)).then(|| strings.value(row)));
                match text_in::timestamp(value, rules.today) {
                    Some(instant) => Ok(Some(instant)),
                    None if rules.ansi => Err(malformed(value, "TIMESTAMP")),
                    None => Ok(None),
                }
            })
        }
    }
}
