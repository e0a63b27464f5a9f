//! `format_string(format, values…)`, also `printf`: Java's `Formatter` over columns.
//!
//! A format that is a constant is taken apart once. What it says of text (`%s`, `%S`) is written here, with every value as a
//! cast to STRING writes it and widths in UTF-16 units as Java counts, and so are [doubles](double); the other conversions are
//! the engine's, one column at a time. A format that is no constant, or has what is not known here, is the engine's as a whole.

mod double;

use crate::functions::expr::spark_text;
use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use double::DoubleFormat;
use std::sync::Arc;

/// The function over the engine's.
pub(super) fn format_string() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(FormatString { engine: datafusion_spark::function::string::format_string() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FormatString {
    engine: Arc<ScalarUDF>,
}

/// A part of a format.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    /// A value as text.
    Text {
        value: usize,
        is_left: bool,
        is_upper: bool,
        width: usize,
        precision: Option<usize>,
    },
    /// A value by a conversion of the engine, which is written as one of a single value.
    Other {
        value: usize,
        conversion: String,
    },
}

/// The parts of a format; `None` when it has something that is not known here.
fn pieces(format: &str) -> Option<Vec<Piece>> {
    let (mut pieces, mut rest, mut ordinary) = (Vec::new(), format, 0);
    while let Some(at) = rest.find('%') {
        if at > 0 {
            pieces.push(Piece::Literal(rest[..at].to_owned()));
        }
        rest = &rest[at + 1..];
        let literal = match rest.as_bytes().first()? {
            b'%' => "%",
            b'n' => "\n",
            _ => {
                let length = conversion_length(rest)?;
                pieces.push(piece(&rest[..length], &mut ordinary)?);
                rest = &rest[length..];
                continue;
            }
        };
        pieces.push(Piece::Literal(literal.to_owned()));
        rest = &rest[1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.to_owned()));
    }
    Some(pieces)
}

/// How long a conversion is, which ends with its letter; dates and times have two.
fn conversion_length(text: &str) -> Option<usize> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let letters = if matches!(text.as_bytes()[at], b't' | b'T') { 2 } else { 1 };
    (at + letters <= text.len() && text[..at].is_ascii()).then_some(at + letters)
}

/// `[index$][flags][width][.precision]letter`, without the percent sign.
fn piece(conversion: &str, ordinary: &mut usize) -> Option<Piece> {
    let (value, rest) = match conversion.split_once('$') {
        Some((index, rest)) => (index.parse::<usize>().ok()?.checked_sub(1)?, rest),
        None => {
            *ordinary += 1;
            (*ordinary - 1, conversion)
        }
    };
    let is_upper = rest.ends_with('S');
    let Some(options) = rest.strip_suffix(['s', 'S']) else {
        // The value before once more: it depends on more than this conversion.
        return (!rest.starts_with('<')).then(|| Piece::Other { value, conversion: format!("%{rest}") });
    };
    let is_left = options.starts_with('-');
    let options = options.strip_prefix('-').unwrap_or(options);
    let (width, precision) = match options.split_once('.') {
        Some((width, precision)) => (width, Some(precision.parse().ok()?)),
        None => (options, None),
    };
    if width.starts_with('0') {
        return None;
    }
    let width = if width.is_empty() { 0 } else { width.parse().ok()? };
    Some(Piece::Text { value, is_left, is_upper, width, precision })
}

/// A text of a value in its place.
fn placed(text: &str, is_left: bool, is_upper: bool, width: usize, precision: Option<usize>) -> String {
    let mut units = 0;
    let fits = |c: &char| {
        units += c.len_utf16();
        precision.is_none_or(|most| units <= most)
    };
    let mut text: String = text.chars().take_while(fits).collect();
    if is_upper {
        text = text.to_uppercase();
    }
    let missing = width.saturating_sub(text.encode_utf16().count());
    if is_left { text + &" ".repeat(missing) } else { " ".repeat(missing) + &text }
}

/// Whether Java's text of a value is that of a cast to STRING. Spark hands over dates and timestamps as the numbers that it
/// keeps, as the engine does.
fn is_written_here(data_type: &DataType) -> bool {
    data_type.is_numeric() || data_type.is_string() || matches!(data_type, DataType::Boolean | DataType::Null)
}

/// One piece for all rows.
enum Column {
    Literal(String),
    Values(StringArray),
}

impl FormatString {
    fn column(&self, piece: Piece, args: &ScalarFunctionArgs) -> Result<Option<Column>> {
        let argument = |value: usize| args.args.get(value + 1);
        Ok(Some(match piece {
            Piece::Literal(text) => Column::Literal(text),
            Piece::Text { value, is_left, is_upper, width, precision } => {
                let Some(values) = argument(value).filter(|values| is_written_here(&values.data_type())) else {
                    return Ok(None);
                };
                let values = spark_text(&values.to_array(args.number_rows)?)?;
                if width == 0 && precision.is_none() && !is_upper {
                    return Ok(Some(Column::Values(values)));
                }
                let place =
                    |text: Option<&str>| Some(placed(text.unwrap_or("null"), is_left, is_upper, width, precision));
                Column::Values(values.iter().map(place).collect())
            }
            Piece::Other { value, conversion } => {
                let (Some(values), Some(field)) = (argument(value), args.arg_fields.get(value + 1)) else {
                    return Ok(None);
                };
                if let Some(format) = DoubleFormat::parse(&conversion[1..])
                    && matches!(values.data_type(), DataType::Float32 | DataType::Float64)
                {
                    let values = cast(&values.to_array(args.number_rows)?, &DataType::Float64)?;
                    let values = values.as_primitive::<Float64Type>().iter();
                    // NULL has its place as a text.
                    let null = || placed("null", format.is_left(), false, format.width(), None);
                    let written = values.map(|value| Some(value.map_or_else(null, |value| format.write(value))));
                    return Ok(Some(Column::Values(written.collect())));
                }
                let conversion = ColumnarValue::Scalar(ScalarValue::from(conversion.as_str()));
                let single = ScalarFunctionArgs {
                    args: vec![conversion, ColumnarValue::Array(values.to_array(args.number_rows)?)],
                    arg_fields: vec![Arc::clone(&args.arg_fields[0]), Arc::clone(field)],
                    number_rows: args.number_rows,
                    return_field: Arc::clone(&args.return_field),
                    config_options: Arc::clone(&args.config_options),
                };
                let written = self.engine.invoke_with_args(single)?.to_array(args.number_rows)?;
                Column::Values(written.as_string::<i32>().clone())
            }
        }))
    }
}

impl ScalarUDFImpl for FormatString {
    fn name(&self) -> &str {
        "format_string"
    }

    fn aliases(&self) -> &[String] {
        self.engine.aliases()
    }

    fn signature(&self) -> &Signature {
        self.engine.signature()
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        internal_err!("the type of format_string follows from its fields")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.engine.return_field_from_args(args)?;
        Ok(Arc::new(Field::new(self.name(), field.data_type().clone(), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let format = match args.args.first() {
            Some(ColumnarValue::Scalar(ScalarValue::Utf8(Some(format)))) => format.clone(),
            _ => return self.engine.invoke_with_args(args),
        };
        let Some(pieces) = pieces(&format) else { return self.engine.invoke_with_args(args) };
        let mut columns = Vec::with_capacity(pieces.len());
        for piece in pieces {
            match self.column(piece, &args)? {
                Some(column) => columns.push(column),
                // A value is missing, or of another type.
                None => return self.engine.invoke_with_args(args),
            }
        }
        let mut rows = StringBuilder::with_capacity(args.number_rows, args.number_rows * (format.len() + 8));
        for row in 0..args.number_rows {
            for column in &columns {
                let text = match column {
                    Column::Literal(text) => text,
                    Column::Values(values) if values.is_null(row) => "null",
                    Column::Values(values) => values.value(row),
                };
                std::fmt::Write::write_str(&mut rows, text)?;
            }
            rows.append_value("");
        }
        Ok(ColumnarValue::Array(Arc::new(rows.finish()) as ArrayRef))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_taken_apart() {
        let text = |value, width| Piece::Text { value, is_left: false, is_upper: false, width, precision: None };
        let other = |value, conversion: &str| Piece::Other { value, conversion: conversion.into() };
        let literal = |text: &str| Piece::Literal(text.into());
        assert_eq!(
            pieces("%s is %5.2f%%, %2$,d%n%8s"),
            Some(vec![
                text(0, 0),
                literal(" is "),
                other(1, "%5.2f"),
                literal("%"),
                literal(", "),
                other(1, "%,d"),
                literal("\n"),
                text(2, 8)
            ])
        );
        assert_eq!(pieces("%tY"), Some(vec![other(0, "%tY")]));
        for unknown in ["%", "%<s", "%0$s", "%#s", "%08s", "%1", "%-s%."] {
            assert!(pieces(unknown).is_none_or(|pieces| pieces.len() == 1), "{unknown}");
        }
        assert_eq!((pieces("%<s"), pieces("%0$s"), pieces("%#s"), pieces("%")), (None, None, None, None));
    }

    #[test]
    fn widths_count_as_java_counts() {
        assert_eq!(placed("é日x", false, false, 5, None), "  é日x");
        assert_eq!(placed("é日x", true, true, 5, None), "É日X  ");
        assert_eq!(placed("abcdef", false, false, 0, Some(3)), "abc");
        assert_eq!(placed("😀a", false, false, 4, Some(2)), "  😀");
    }
}
