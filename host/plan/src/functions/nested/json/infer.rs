//! `schema_of_json`: the schema text of a JSON text.
//!
//! Source: Spark's `JsonInferSchema`. Fields are in alphabetical order; those without a name, and structs without fields inside
//! of others, are left out. Where a value tells nothing it is STRING.

use super::options::{InferOptions, options};
use super::text::{Json, Node, parse};
use datafusion::common::{Result, exec_err};

/// The most digits of a DECIMAL.
const MAX_DIGITS: i64 = 38;

/// What is known of a value's type.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Unknown,
    Boolean,
    Long,
    /// Digits in all, and behind the point.
    Decimal(i64, i64),
    Double,
    Timestamp,
    Text,
    Array(Box<Shape>),
    /// In the order of the names; a name may repeat.
    Record(Vec<(String, Shape)>),
}

/// The schema of a JSON text; of an empty one, STRING.
///
/// # Errors
/// When it is malformed (`MALFORMED_RECORD_IN_PARSING`), or a decimal would need a negative scale (`NEGATIVE_SCALE_DISALLOWED`).
pub(super) fn schema_of(text: &str, options: &InferOptions) -> Result<String> {
    if text.trim().is_empty() {
        return Ok("STRING".into());
    }
    let Some(json) = parse(text, options.leniency) else {
        return exec_err!(
            "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] `schema_of_json` cannot read the JSON text: {}",
            text.chars().take(200).collect::<String>()
        );
    };
    let without_fields = || Shape::Record(Vec::new());
    let shape = match shape(&json, options)? {
        record @ Shape::Record(_) => canonical(record, options).unwrap_or_else(without_fields),
        Shape::Array(element) if matches!(*element, Shape::Record(_)) => {
            Shape::Array(Box::new(canonical(*element, options).unwrap_or_else(without_fields)))
        }
        other => canonical(other, options).unwrap_or(Shape::Text),
    };
    let mut schema = String::new();
    write(&shape, &mut schema);
    Ok(schema)
}

/// The same for a constant text and a map of constant options, as the rewrite of syntax needs it; `None` where it fails.
pub(in super::super) fn constant_schema(text: &str, constants: Option<&str>) -> Option<String> {
    let options =
        options("schema_of_json", constants).and_then(|options| InferOptions::new("schema_of_json", &options));
    schema_of(text, &options.ok()?).ok()
}

fn shape(json: &Json<'_>, options: &InferOptions) -> Result<Shape> {
    Ok(match &json.node {
        Node::Null => Shape::Unknown,
        Node::Bool(_) | Node::Integer | Node::Float if options.primitives_as_string => Shape::Text,
        Node::Bool(_) => Shape::Boolean,
        Node::Integer if json.raw.parse::<i64>().is_ok() => Shape::Long,
        Node::Integer => decimal(json.raw).unwrap_or(Shape::Double),
        Node::Float if options.prefers_decimal => match decimal(json.raw) {
            Some(Shape::Decimal(_, scale)) if scale < 0 => {
                return exec_err!(
                    "[NEGATIVE_SCALE_DISALLOWED] a DECIMAL cannot have the scale {scale} of {}",
                    json.raw
                );
            }
            found => found.unwrap_or(Shape::Double),
        },
        Node::Float => Shape::Double,
        Node::Text(text) => of_text(text, options),
        Node::Array(elements) => {
            let mut common = Shape::Unknown;
            for element in elements {
                common = merged(common, shape(element, options)?);
            }
            Shape::Array(Box::new(common))
        }
        Node::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| Ok((name.to_string(), shape(value, options)?)));
            let mut fields = fields.collect::<Result<Vec<_>>>()?;
            fields.sort_by(|(left, _), (right, _)| left.cmp(right));
            Shape::Record(fields)
        }
    })
}

fn of_text(text: &str, options: &InferOptions) -> Shape {
    if options.prefers_decimal
        && let Some(found @ Shape::Decimal(_, 0..)) = decimal(&text.replace(',', ""))
    {
        return found;
    }
    match &options.times {
        Some(times) if times.instant(text).is_some() => Shape::Timestamp,
        _ => Shape::Text,
    }
}

/// The type of a number as it is written; `None` when it has too many digits, or is none.
fn decimal(text: &str) -> Option<Shape> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let mantissa = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = whole.bytes().chain(fraction.bytes());
    if whole.len() + fraction.len() == 0 || !digits.clone().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let zeros = digits.by_ref().take_while(|&digit| digit == b'0').count();
    let scale = i64::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let precision = i64::try_from(whole.len() + fraction.len() - zeros).ok()?.max(1).max(scale);
    (precision <= MAX_DIGITS).then_some(Shape::Decimal(precision, scale))
}

fn merged(left: Shape, right: Shape) -> Shape {
    use Shape::{Array, Decimal, Double, Long, Record, Text, Unknown};
    match (left, right) {
        (left, right) if left == right => left,
        (Unknown, other) | (other, Unknown) => other,
        (Long | Decimal(..) | Double, Double) | (Double, Long | Decimal(..)) => Double,
        (Long, decimal @ Decimal(..)) | (decimal @ Decimal(..), Long) => merged(Decimal(20, 0), decimal),
        (Decimal(left, left_scale), Decimal(right, right_scale)) => {
            let scale = left_scale.max(right_scale);
            let whole = (left - left_scale).max(right - right_scale);
            if whole + scale > MAX_DIGITS { Double } else { Decimal(whole + scale, scale) }
        }
        (Array(left), Array(right)) => Array(Box::new(merged(*left, *right))),
        (Record(left), Record(right)) => Record(merged_fields(left, right)),
        _ => Text,
    }
}

/// The fields of both, in the order of their names.
fn merged_fields(left: Vec<(String, Shape)>, right: Vec<(String, Shape)>) -> Vec<(String, Shape)> {
    let mut merged_fields = Vec::with_capacity(left.len().max(right.len()));
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (Some((left, _)), Some((right, _))) => left.cmp(right),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return merged_fields,
        };
        let from_left = if order.is_le() { left.next() } else { None };
        let from_right = if order.is_ge() { right.next() } else { None };
        merged_fields.extend(match (from_left, from_right) {
            (Some((name, left)), Some((_, right))) => Some((name, merged(left, right))),
            (one, other) => one.or(other),
        });
    }
}

/// The type that a schema can have; `None` for what is left out.
fn canonical(shape: Shape, options: &InferOptions) -> Option<Shape> {
    match shape {
        Shape::Unknown => (!options.drop_null_fields).then_some(Shape::Text),
        Shape::Array(element) => canonical(*element, options).map(|element| Shape::Array(Box::new(element))),
        Shape::Record(fields) => {
            let named = fields.into_iter().filter(|(name, _)| !name.is_empty());
            let fields: Vec<_> =
                named.filter_map(|(name, shape)| canonical(shape, options).map(|shape| (name, shape))).collect();
            (!fields.is_empty()).then_some(Shape::Record(fields))
        }
        other => Some(other),
    }
}

fn write(shape: &Shape, out: &mut String) {
    match shape {
        Shape::Unknown | Shape::Text => out.push_str("STRING"),
        Shape::Boolean => out.push_str("BOOLEAN"),
        Shape::Long => out.push_str("BIGINT"),
        Shape::Decimal(precision, scale) => out.push_str(&format!("DECIMAL({precision},{scale})")),
        Shape::Double => out.push_str("DOUBLE"),
        Shape::Timestamp => out.push_str("TIMESTAMP"),
        Shape::Array(element) => {
            out.push_str("ARRAY<");
            write(element, out);
            out.push('>');
        }
        Shape::Record(fields) => {
            out.push_str("STRUCT<");
            for (position, (name, shape)) in fields.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if plain {
                    out.push_str(name);
                } else {
                    out.push_str(&format!("`{}`", name.replace('`', "``")));
                }
                out.push_str(": ");
                write(shape, out);
            }
            out.push('>');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str, options: &str) -> Option<String> {
        constant_schema(text, Some(options).filter(|options| !options.is_empty()))
    }

    /// Texts, options, and what Spark 4.3 gives.
    #[test]
    fn schemas_are_guessed_as_spark_guesses_them() {
        let decimals = r#"{"prefersDecimal":"true"}"#;
        let times = r#"{"inferTimestamp":"true"}"#;
        for (text, options, expected) in [
            (
                r#"{"b":[1,2.5],"a":{"c d":null},"e":[{"x":1},{"y":"z"}]}"#,
                "",
                "STRUCT<a: STRUCT<`c d`: STRING>, b: ARRAY<DOUBLE>, e: ARRAY<STRUCT<x: BIGINT, y: STRING>>>",
            ),
            (r#"{"a":{}}"#, "", "STRUCT<>"),
            ("[{}]", "", "ARRAY<STRUCT<>>"),
            ("[]", "", "ARRAY<STRING>"),
            ("", "", "STRING"),
            (r#"{"":1,"1a":2}{"c":2}"#, "", "STRUCT<`1a`: BIGINT>"),
            (r#"{"a":1,"a":"x"}"#, "", "STRUCT<a: BIGINT, a: STRING>"),
            (
                r#"{"a":12345678901234567890,"b":1e3,"e":123456789012345678901234567890123456789012}"#,
                "",
                "STRUCT<a: DECIMAL(20,0), b: DOUBLE, e: DOUBLE>",
            ),
            ("[12345678901234567890,1]", "", "ARRAY<DECIMAL(20,0)>"),
            (
                r#"{"a":{"b":1,"c":true},"d":null}"#,
                r#"{"primitivesAsString":"true"}"#,
                "STRUCT<a: STRUCT<b: STRING, c: STRING>, d: STRING>",
            ),
            ("[1.5,100.25]", decimals, "ARRAY<DECIMAL(5,2)>"),
            ("[1.5,1]", decimals, "ARRAY<DECIMAL(21,1)>"),
            (
                r#"{"a":"1.5","b":"x","c":"1,000","d":"1e2","e":0.001,"f":1.5E1}"#,
                decimals,
                "STRUCT<a: DECIMAL(2,1), b: STRING, c: DECIMAL(4,0), d: STRING, e: DECIMAL(3,3), f: DECIMAL(2,0)>",
            ),
            (
                r#"{"a":"2024-05-01T00:00:00Z","b":"2024-05-01","c":"x"}"#,
                times,
                "STRUCT<a: TIMESTAMP, b: TIMESTAMP, c: STRING>",
            ),
            (r#"["2024-05-01","x"]"#, times, "ARRAY<STRING>"),
            (r#"["2024/05/01"]"#, r#"{"inferTimestamp":"true","timestampFormat":"yyyy/MM/dd"}"#, "ARRAY<TIMESTAMP>"),
            (r#"{"a":null,"b":[],"c":{},"d":[null],"e":1}"#, r#"{"dropFieldIfAllNull":"true"}"#, "STRUCT<e: BIGINT>"),
            ("{a:01}", r#"{"allowUnquotedFieldNames":"true","allowNumericLeadingZeros":"true"}"#, "STRUCT<a: BIGINT>"),
        ] {
            assert_eq!(schema(text, options).as_deref(), Some(expected), "{text} {options}");
        }
        for (text, options) in [("{", ""), ("[1e2]", decimals), ("[NaN]", r#"{"allowNonNumericNumbers":"false"}"#)] {
            assert_eq!(schema(text, options), None, "{text}");
        }
    }
}
