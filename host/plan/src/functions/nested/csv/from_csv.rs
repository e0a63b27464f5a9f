//! `from_csv(text, schema[, options])`: one record of separated values as a struct.
//!
//! Permissive, as Spark is: a value that does not convert is null and the others stay; values that are missing are null, and those
//! too many are not looked at. With the option `mode` = `FAILFAST`, each of these fails the query, and a field
//! `_corrupt_record STRING` in the schema (the option `columnNameOfCorruptRecord` names another) takes such a text.
//!
//! The records of a batch are taken apart one by one into columns of texts; these are then converted column by column.

use super::super::coercion::mismatch;
use super::super::decimals::unscaled;
use super::super::lists::record as struct_of;
use super::super::prepared::{Asked, PreparedDefinition, Work};
use super::options::{ReadOptions, options};
use super::record::Record;
use crate::ddl::parse_type_or_columns;
use crate::functions::expr::text_in;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BooleanArray, Decimal128Array, PrimitiveArray,
    StringArray, StringBuilder,
};
use arrow::datatypes::{
    DataType, Date32Type, Field, Fields, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_err, plan_datafusion_err, plan_err};
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    vec![PreparedDefinition { name: "from_csv", arguments: (2, 3), coerce, prepare }]
}

fn coerce(name: &str, value: &DataType) -> Result<DataType> {
    match value {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => Ok(DataType::Utf8),
        other => mismatch(name, "a STRING", other),
    }
}

fn prepare(asked: &Asked<'_>) -> Result<Arc<dyn Work>> {
    let name = asked.name;
    let schema = parse_type_or_columns(asked.text(0, "a constant schema")?)
        .map_err(|error| plan_datafusion_err!("[INVALID_SCHEMA] `{name}`: {error}"))?;
    let constants = if asked.constants.len() > 1 { Some(asked.text(1, "a map of constant options")?) } else { None };
    let options = ReadOptions::new(name, &options(name, constants)?)?;
    let DataType::Struct(fields) = &schema else {
        return plan_err!("[INVALID_SCHEMA.NON_STRUCT_TYPE] `{name}` reads a STRUCT, not {schema}");
    };
    let fields: Fields = fields.iter().map(|field| Field::new(field.name(), field.data_type().clone(), true)).collect();
    let corrupt = fields.iter().position(|field| field.name() == &options.corrupt_record);
    for (place, field) in fields.iter().enumerate() {
        match field.data_type() {
            DataType::Utf8 => {}
            other if corrupt == Some(place) => {
                return plan_err!(
                    "[INVALID_CORRUPT_RECORD_TYPE] the field `{}` for corrupt records must be STRING, not {other}",
                    field.name()
                );
            }
            other if !is_supported(other) => return plan_err!("[UNSUPPORTED_DATATYPE] `{name}` does not read {other}"),
            _ => {}
        }
    }
    Ok(Arc::new(FromCsv { name: name.to_owned(), output: DataType::Struct(fields.clone()), fields, corrupt, options }))
}

fn is_supported(data_type: &DataType) -> bool {
    use DataType::{Binary, Boolean, Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Timestamp};
    matches!(
        data_type,
        Boolean | Int8 | Int16 | Int32 | Int64 | Float32 | Float64 | Decimal128(..) | Date32 | Timestamp(..) | Binary
    )
}

/// How the texts of one call are read.
struct FromCsv {
    name: String,
    output: DataType,
    fields: Fields,
    /// The place of the field for corrupt records.
    corrupt: Option<usize>,
    options: ReadOptions,
}

impl Work for FromCsv {
    fn output(&self) -> &DataType {
        &self.output
    }

    fn is_null_for_null_only(&self) -> bool {
        true
    }

    fn run(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = values.as_string::<i32>();
        let (words, mut is_damaged) = self.words(texts);
        let mut words = words.into_iter();
        let mut columns = Vec::with_capacity(self.fields.len());
        for (place, field) in self.fields.iter().enumerate() {
            columns.push(match words.next() {
                Some(words) if self.corrupt != Some(place) => {
                    self.column(&words, field.data_type(), &mut is_damaged)?
                }
                // Which records are corrupt is known when all else is.
                _ => Arc::new(StringArray::new_null(texts.len())),
            });
        }
        if let Some(row) = is_damaged.iter().position(|&is_damaged| is_damaged).filter(|_| self.options.fail_fast) {
            return exec_err!(
                "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] `{}` cannot read the record in mode FAILFAST: {}",
                self.name,
                texts.value(row).chars().take(200).collect::<String>()
            );
        }
        if let Some(place) = self.corrupt {
            let corrupt = is_damaged.iter().enumerate();
            let corrupt = corrupt
                .map(|(row, &is_damaged)| (is_damaged && !texts.value(row).is_empty()).then(|| texts.value(row)));
            columns[place] = Arc::new(corrupt.collect::<StringArray>());
        }
        struct_of(&self.fields, columns, texts.nulls().cloned(), texts.len())
    }
}

impl FromCsv {
    /// The texts of the values, a column per field, and which records have too many or too few.
    fn words(&self, texts: &StringArray) -> (Vec<StringArray>, Vec<bool>) {
        let mut columns: Vec<StringBuilder> = self.fields.iter().map(|_| StringBuilder::new()).collect();
        let mut is_damaged = vec![false; texts.len()];
        let mut record = Record::default();
        let wanted = self.fields.len() - usize::from(self.corrupt.is_some());
        for (found, is_damaged) in texts.iter().zip(&mut is_damaged) {
            let text = found.unwrap_or_default();
            let is_record = !text.is_empty() && !self.options.comment.is_some_and(|comment| text.starts_with(comment));
            if is_record {
                record.split(text, &self.options.shape);
            }
            *is_damaged = found.is_some() && (!is_record || record.len() != wanted);
            let mut place = 0;
            for (at, column) in columns.iter_mut().enumerate() {
                if self.corrupt == Some(at) {
                    column.append_null();
                    continue;
                }
                let value = if is_record { record.value(place) } else { None };
                column.append_option(value.and_then(|(value, is_quoted)| self.word(value, is_quoted)));
                place += 1;
            }
        }
        (columns.into_iter().map(|mut column| column.finish()).collect(), is_damaged)
    }

    /// What a value says; nothing when it is missing or means null.
    fn word<'a>(&'a self, value: &'a str, is_quoted: bool) -> Option<&'a str> {
        let value = match (value, is_quoted) {
            ("", false) => return None,
            ("", true) => &self.options.empty_value,
            (value, _) => value,
        };
        Some(value).filter(|value| *value != self.options.null_value)
    }

    /// The values of a column; what does not convert is null and damages its record.
    fn column(&self, words: &StringArray, data_type: &DataType, is_damaged: &mut [bool]) -> Result<ArrayRef> {
        let times = &self.options.times;
        Ok(match data_type {
            DataType::Utf8 => Arc::new(words.clone()),
            DataType::Binary => Arc::new(words.iter().map(|word| word.map(str::as_bytes)).collect::<BinaryArray>()),
            DataType::Boolean => {
                let values = read(words, is_damaged, |word| match word {
                    word if word.eq_ignore_ascii_case("true") => Some(true),
                    word if word.eq_ignore_ascii_case("false") => Some(false),
                    _ => None,
                });
                Arc::new(values.collect::<BooleanArray>())
            }
            DataType::Int8 => primitive::<Int8Type>(words, is_damaged, |word| word.parse().ok()),
            DataType::Int16 => primitive::<Int16Type>(words, is_damaged, |word| word.parse().ok()),
            DataType::Int32 => primitive::<Int32Type>(words, is_damaged, |word| word.parse().ok()),
            DataType::Int64 => primitive::<Int64Type>(words, is_damaged, |word| word.parse().ok()),
            DataType::Float32 => {
                primitive::<Float32Type>(words, is_damaged, |word| match special(word, &self.options) {
                    Some(value) => Some(value as f32),
                    None => text_in::float(word).filter(|_| has_digit(word)),
                })
            }
            DataType::Float64 => primitive::<Float64Type>(words, is_damaged, |word| double(word, &self.options)),
            DataType::Decimal128(precision, scale) => {
                let values = read(words, is_damaged, |word| match word.contains(',') {
                    true => unscaled(&word.replace(',', ""), *precision, *scale),
                    false => unscaled(word, *precision, *scale),
                });
                Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(*precision, *scale)?)
            }
            DataType::Date32 => primitive::<Date32Type>(words, is_damaged, |word| times.date(word, false)),
            DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) => {
                let values = read(words, is_damaged, |word| times.instant(word));
                Arc::new(values.collect::<PrimitiveArray<TimestampMicrosecondType>>().with_timezone(Arc::clone(zone)))
            }
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                primitive::<TimestampMicrosecondType>(words, is_damaged, |word| times.local(word))
            }
            other => return exec_err!("[UNSUPPORTED_DATATYPE] `{}` does not read {other}", self.name),
        })
    }
}

/// The values of words; a word that is none damages its record.
fn read<'a, T>(
    words: &'a StringArray,
    is_damaged: &'a mut [bool],
    convert: impl Fn(&str) -> Option<T> + 'a,
) -> impl Iterator<Item = Option<T>> + 'a {
    words.iter().zip(is_damaged).map(move |(word, is_damaged)| {
        let value = word.map(&convert);
        *is_damaged |= matches!(value, Some(None));
        value.flatten()
    })
}

fn primitive<T: ArrowPrimitiveType>(
    words: &StringArray,
    is_damaged: &mut [bool],
    convert: impl Fn(&str) -> Option<T::Native>,
) -> ArrayRef {
    Arc::new(read(words, is_damaged, convert).collect::<PrimitiveArray<T>>())
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// A number that is not finite, as the options or Java name it.
fn special(word: &str, options: &ReadOptions) -> Option<f64> {
    let [nan, infinity, negative] = &options.not_finite;
    match word {
        word if word == nan => Some(f64::NAN),
        word if word == infinity => Some(f64::INFINITY),
        word if word == negative => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        "Infinity" | "+Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// A DOUBLE as Java reads it, or by a word of the options.
pub(super) fn double(word: &str, options: &ReadOptions) -> Option<f64> {
    special(word, options).or_else(|| text_in::double(word).filter(|_| has_digit(word)))
}
