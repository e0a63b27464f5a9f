//! Format strings of the Arrow C data interface, for the types that may cross the boundary.

use arrow::datatypes::{DataType, TimeUnit};

/// What a format string stands for; children come from the nodes that follow.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Format {
    /// A type without children.
    Leaf(DataType),
    /// `+l`: a list, one child.
    List,
    /// `+s`: a struct, any number of children.
    Struct,
}

/// Reads a format string.
pub(crate) fn parse(format: &str) -> Result<Format, String> {
    let leaf = match format {
        "+l" => return Ok(Format::List),
        "+s" => return Ok(Format::Struct),
        "b" => DataType::Boolean,
        "c" => DataType::Int8,
        "C" => DataType::UInt8,
        "s" => DataType::Int16,
        "S" => DataType::UInt16,
        "i" => DataType::Int32,
        "I" => DataType::UInt32,
        "l" => DataType::Int64,
        "L" => DataType::UInt64,
        "f" => DataType::Float32,
        "g" => DataType::Float64,
        "u" => DataType::Utf8,
        "z" => DataType::Binary,
        "tdD" => DataType::Date32,
        "tsu:" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "tsu:UTC" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        _ => return decimal(format),
    };
    Ok(Format::Leaf(leaf))
}

/// The format string of a type; of a list or struct that of the node itself.
pub(crate) fn name(data_type: &DataType) -> Result<String, String> {
    let leaf = match data_type {
        DataType::List(_) => "+l",
        DataType::Struct(_) => "+s",
        DataType::Boolean => "b",
        DataType::Int8 => "c",
        DataType::UInt8 => "C",
        DataType::Int16 => "s",
        DataType::UInt16 => "S",
        DataType::Int32 => "i",
        DataType::UInt32 => "I",
        DataType::Int64 => "l",
        DataType::UInt64 => "L",
        DataType::Float32 => "f",
        DataType::Float64 => "g",
        DataType::Utf8 => "u",
        DataType::Binary => "z",
        DataType::Date32 => "tdD",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "tsu:",
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if &**zone == "UTC" => "tsu:UTC",
        DataType::Decimal128(precision, scale) if *scale >= 0 && scale.unsigned_abs() <= *precision => {
            return Ok(format!("d:{precision},{scale}"));
        }
        other => return Err(format!("type {other} is not one that plugins can use")),
    };
    Ok(leaf.to_owned())
}

/// Whether a type and all that is in it may cross the boundary.
pub(crate) fn check(data_type: &DataType) -> Result<(), String> {
    name(data_type)?;
    match data_type {
        DataType::List(item) => check(item.data_type()),
        DataType::Struct(fields) if fields.is_empty() => Err("a struct without fields is nothing to plugins".into()),
        DataType::Struct(fields) => fields.iter().try_for_each(|field| check(field.data_type())),
        _ => Ok(()),
    }
}

fn decimal(format: &str) -> Result<Format, String> {
    let unknown = || {
        format!(
            "type `{}` is not one that plugins can use: bool `b`, integers `c` to `L`, floats `f` and `g`, `u`, `z`, \
             `tdD`, `tsu:`, `tsu:UTC`, `d:PRECISION,SCALE`, `+l`, `+s`",
            format.chars().take(40).collect::<String>()
        )
    };
    let (precision, scale) = format.strip_prefix("d:").and_then(|rest| rest.split_once(',')).ok_or_else(unknown)?;
    let precision: u8 = precision.parse().map_err(|_| unknown())?;
    let scale: i8 = scale.parse().map_err(|_| unknown())?;
    if precision == 0 || precision > 38 || scale < 0 || scale.unsigned_abs() > precision {
        return Err(format!(
            "decimal({precision}, {scale}) does not exist: precision is 1 to 38, scale 0 to precision"
        ));
    }
    Ok(Format::Leaf(DataType::Decimal128(precision, scale)))
}

/// The bytes of one value of a fixed-width type; `None` for the others.
pub(crate) fn width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Int8 | DataType::UInt8 => Some(1),
        DataType::Int16 | DataType::UInt16 => Some(2),
        DataType::Int32 | DataType::UInt32 | DataType::Float32 | DataType::Date32 => Some(4),
        DataType::Int64 | DataType::UInt64 | DataType::Float64 | DataType::Timestamp(_, _) => Some(8),
        DataType::Decimal128(_, _) => Some(16),
        _ => None,
    }
}
