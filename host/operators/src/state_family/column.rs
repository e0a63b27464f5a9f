//! Columns as JSON: name, type as the format string of Arrow's C data interface, nullability, children.
//!
//! ```json
//! {"name": "w", "format": "+s", "nullable": false, "children": [{"name": "end", "format": "tsu:UTC"}]}
//! ```
//!
//! `nullable` is true and `children` are none when they are left out. The strings are a published standard, so they
//! outlive the names that a library gives its types.

use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    format: String,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    nullable: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    children: Vec<Column>,
}

fn yes() -> bool {
    true
}

fn is_yes(nullable: &bool) -> bool {
    *nullable
}

pub(super) fn serialize<S: Serializer>(fields: &Fields, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(fields.iter().map(|field| column(field)))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
    let columns = Vec::<Column>::deserialize(deserializer)?;
    columns.iter().map(field).collect::<Result<Fields, String>>().map_err(de::Error::custom)
}

fn column(field: &Field) -> Column {
    let (format, children) = format_of(field.data_type());
    let children = children.into_iter().map(|child| column(child)).collect();
    Column { name: field.name().clone(), format, nullable: field.is_nullable(), children }
}

fn field(column: &Column) -> Result<FieldRef, String> {
    let children = column.children.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let data_type = type_of(&column.format, &children)
        .ok_or_else(|| format!("column `{}` has the unknown type `{}`", column.name, column.format))?;
    Ok(Arc::new(Field::new(&column.name, data_type, column.nullable)))
}

fn unit(unit: TimeUnit) -> char {
    match unit {
        TimeUnit::Second => 's',
        TimeUnit::Millisecond => 'm',
        TimeUnit::Microsecond => 'u',
        TimeUnit::Nanosecond => 'n',
    }
}

/// The format string of a type and its children. A type without one is spelled out; nothing reads that.
fn format_of(data_type: &DataType) -> (String, Vec<&FieldRef>) {
    let leaf = |format: &str| (format.to_owned(), Vec::new());
    match data_type {
        DataType::Timestamp(u, zone) => leaf(&format!("ts{}:{}", unit(*u), zone.as_deref().unwrap_or_default())),
        DataType::Duration(u) => leaf(&format!("tD{}", unit(*u))),
        DataType::Time32(u) | DataType::Time64(u) => leaf(&format!("tt{}", unit(*u))),
        DataType::FixedSizeBinary(bytes) => leaf(&format!("w:{bytes}")),
        DataType::Decimal32(p, s) => leaf(&format!("d:{p},{s},32")),
        DataType::Decimal64(p, s) => leaf(&format!("d:{p},{s},64")),
        DataType::Decimal128(p, s) => leaf(&format!("d:{p},{s}")),
        DataType::Decimal256(p, s) => leaf(&format!("d:{p},{s},256")),
        DataType::List(item) => ("+l".to_owned(), vec![item]),
        DataType::LargeList(item) => ("+L".to_owned(), vec![item]),
        DataType::FixedSizeList(item, length) => (format!("+w:{length}"), vec![item]),
        DataType::Struct(fields) => ("+s".to_owned(), fields.iter().collect()),
        DataType::Map(entries, false) => ("+m".to_owned(), vec![entries]),
        plain => match PLAIN.iter().find(|(_, known)| known == plain) {
            Some((format, _)) => leaf(format),
            None => leaf(&format!("?{plain}")),
        },
    }
}

/// Types without parameters.
const PLAIN: [(&str, DataType); 24] = [
    ("n", DataType::Null),
    ("b", DataType::Boolean),
    ("c", DataType::Int8),
    ("C", DataType::UInt8),
    ("s", DataType::Int16),
    ("S", DataType::UInt16),
    ("i", DataType::Int32),
    ("I", DataType::UInt32),
    ("l", DataType::Int64),
    ("L", DataType::UInt64),
    ("e", DataType::Float16),
    ("f", DataType::Float32),
    ("g", DataType::Float64),
    ("z", DataType::Binary),
    ("Z", DataType::LargeBinary),
    ("vz", DataType::BinaryView),
    ("u", DataType::Utf8),
    ("U", DataType::LargeUtf8),
    ("vu", DataType::Utf8View),
    ("tdD", DataType::Date32),
    ("tdm", DataType::Date64),
    ("tiM", DataType::Interval(IntervalUnit::YearMonth)),
    ("tiD", DataType::Interval(IntervalUnit::DayTime)),
    ("tin", DataType::Interval(IntervalUnit::MonthDayNano)),
];

fn type_of(format: &str, children: &[FieldRef]) -> Option<DataType> {
    let item = || match children {
        [item] => Some(Arc::clone(item)),
        _ => None,
    };
    match format {
        "+l" => return item().map(DataType::List),
        "+L" => return item().map(DataType::LargeList),
        "+s" => return Some(DataType::Struct(children.iter().cloned().collect())),
        "+m" => {
            let entries =
                item().filter(|entries| matches!(entries.data_type(), DataType::Struct(pair) if pair.len() == 2));
            return entries.map(|entries| DataType::Map(entries, false));
        }
        _ => {}
    }
    if let Some(length) = format.strip_prefix("+w:") {
        let length: i32 = length.parse().ok()?;
        return item().filter(|_| length >= 0).map(|item| DataType::FixedSizeList(item, length));
    }
    if !children.is_empty() {
        return None;
    }
    if let Some((_, plain)) = PLAIN.iter().find(|(known, _)| *known == format) {
        return Some(plain.clone());
    }
    if let Some((parameters, decimal)) = format.strip_prefix("d:").map(|rest| (rest, rest.split(',').count())) {
        return decimal_of(parameters, decimal);
    }
    if let Some(bytes) = format.strip_prefix("w:") {
        return bytes.parse().ok().filter(|bytes| *bytes >= 0).map(DataType::FixedSizeBinary);
    }
    time_of(format)
}

fn decimal_of(parameters: &str, count: usize) -> Option<DataType> {
    let mut parameters = parameters.split(',');
    let precision: u8 = parameters.next()?.parse().ok()?;
    let scale: i8 = parameters.next()?.parse().ok()?;
    let (most, make): (u8, fn(u8, i8) -> DataType) = match (count, parameters.next()) {
        (2, None) | (3, Some("128")) => (38, DataType::Decimal128),
        (3, Some("256")) => (76, DataType::Decimal256),
        (3, Some("64")) => (18, DataType::Decimal64),
        (3, Some("32")) => (9, DataType::Decimal32),
        _ => return None,
    };
    ((1..=most).contains(&precision) && scale.unsigned_abs() <= most).then(|| make(precision, scale))
}

fn time_of(format: &str) -> Option<DataType> {
    let unit = |letter: char| match letter {
        's' => Some(TimeUnit::Second),
        'm' => Some(TimeUnit::Millisecond),
        'u' => Some(TimeUnit::Microsecond),
        'n' => Some(TimeUnit::Nanosecond),
        _ => None,
    };
    let mut rest = format.chars();
    let (time, kind, letter) = (rest.next()?, rest.next()?, rest.next()?);
    let (unit, rest) = (unit(letter)?, rest.as_str());
    match (time, kind, unit) {
        ('t', 's', unit) => {
            let zone = rest.strip_prefix(':')?;
            Some(DataType::Timestamp(unit, (!zone.is_empty()).then(|| zone.into())))
        }
        _ if !rest.is_empty() => None,
        ('t', 'D', unit) => Some(DataType::Duration(unit)),
        ('t', 't', unit @ (TimeUnit::Second | TimeUnit::Millisecond)) => Some(DataType::Time32(unit)),
        ('t', 't', unit) => Some(DataType::Time64(unit)),
        _ => None,
    }
}
