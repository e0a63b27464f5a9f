//! JSON lines into Arrow, driven by the schema: only projected fields are converted, all others are skipped.
//!
//! Used by the file source, and wherever JSON text meets a schema.
//!
//! Rule of its life: it never fails on data unless the mode says so. Source of the semantics: Spark's JSON
//! reader. Field names are case sensitive; a value of the wrong type or out of range is null, alone; a
//! malformed line is a row of nulls; an array at the top is a row per element; blank lines vanish; what
//! stands behind a complete value is not looked at.

mod record;
mod scanner;
#[cfg(test)]
mod tests;

use super::column::{Column, Values};
use super::error::{check_size, excerpt};
use super::{DecodeError, ParseMode, next_line};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use millstream_common::{OptionError, Options};
use record::{Fit, Names};
use scanner::{Malformed, Scanner};
use std::sync::Arc;

/// How JSON is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonOptions {
    /// What happens to a malformed record.
    pub mode: ParseMode,
    /// The string column that takes the text of malformed records, if the schema has it.
    pub corrupt_column: String,
    /// What ends a line, when it is not one of the usual ends.
    pub line_separator: Option<Vec<u8>>,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self { mode: ParseMode::Permissive, corrupt_column: "_corrupt_record".into(), line_separator: None }
    }
}

impl JsonOptions {
    /// The options that [`from_options`](Self::from_options) reads.
    pub const KNOWN: &'static [&'static str] = &["mode", "columnNameOfCorruptRecord", "multiLine", "lineSep"];

    /// Reads a connector's options.
    ///
    /// # Errors
    /// When a value does not fit; `multiLine` must be false.
    pub fn from_options(owner: &str, options: &Options) -> Result<Self, OptionError> {
        if options.flag(owner, "multiLine", false)? {
            return Err(Options::invalid(owner, "multiLine", "true", "one record must stand on one line"));
        }
        let line_separator = options.get("lineSep");
        if line_separator == Some("") {
            return Err(Options::invalid(owner, "lineSep", "", "it cannot be empty"));
        }
        Ok(Self {
            mode: ParseMode::from_options(owner, options)?,
            corrupt_column: options.get("columnNameOfCorruptRecord").unwrap_or("_corrupt_record").to_owned(),
            line_separator: line_separator.map(|text| text.as_bytes().to_vec()),
        })
    }
}

/// Decodes JSON lines. Immutable: one may serve many threads.
#[derive(Debug, Clone)]
pub struct JsonDecoder {
    schema: SchemaRef,
    corrupt: Option<usize>,
    options: JsonOptions,
}

impl JsonDecoder {
    /// A decoder of the columns `projection` (indexes into `schema`); all columns become nullable.
    ///
    /// # Errors
    /// When a column has a type that JSON cannot give, or the projection points outside the schema.
    pub fn new(schema: &SchemaRef, projection: &[usize], options: JsonOptions) -> Result<Self, DecodeError> {
        let columns = schema.fields().len();
        let fields: Vec<FieldRef> = projection
            .iter()
            .map(|index| schema.fields().get(*index).ok_or(DecodeError::Projection { index: *index, columns }))
            .map(|field| field.map(|field| nullable(field)))
            .collect::<Result<_, _>>()?;
        for field in &fields {
            Column::new(field.name(), field.data_type())?;
        }
        let corrupt = fields
            .iter()
            .position(|field| field.name() == &options.corrupt_column && field.data_type() == &DataType::Utf8);
        Ok(Self { schema: Arc::new(Schema::new(fields)), corrupt, options })
    }

    /// The schema of the batches: the projected columns, all nullable.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What ends a line, when it is not one of the usual ends.
    pub(crate) fn separator(&self) -> Option<&[u8]> {
        self.options.line_separator.as_deref()
    }

    /// Whether a malformed record ends the reading.
    pub(crate) fn fails_fast(&self) -> bool {
        self.options.mode == ParseMode::FailFast
    }

    /// Decodes all lines of `input`.
    ///
    /// # Errors
    /// When a record is malformed in fail-fast mode, or there is too much input for one batch.
    pub fn decode(&self, input: &[u8]) -> Result<RecordBatch, DecodeError> {
        self.decode_some(input, usize::MAX).map(|(batch, _)| batch)
    }

    /// Decodes lines until there are `max_rows` rows or more: the batch, and how many bytes it took.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_some(&self, input: &[u8], max_rows: usize) -> Result<(RecordBatch, usize), DecodeError> {
        check_size(input)?;
        let fields = self.schema.fields();
        let names = Names::of(fields).hide(self.corrupt);
        let mut columns: Vec<Column> =
            fields.iter().map(|field| Column::new(field.name(), field.data_type())).collect::<Result<_, _>>()?;
        let (mut rows, mut taken, mut record) = (0, 0, 0);
        while rows < max_rows
            && let Some((line, bytes)) = next_line(&input[taken..], self.options.line_separator.as_deref())
        {
            taken += bytes;
            record += 1;
            rows = self.push_line(line, record, &names, &mut columns, rows)?;
        }
        let columns = columns.into_iter().map(Column::finish).collect::<Result<Vec<_>, _>>();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        columns
            .and_then(|columns| RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options))
            .map(|batch| (batch, taken))
            .map_err(|source| DecodeError::Batch { source })
    }

    /// Decodes one JSON text as one row per record, as [`decode`](Self::decode), but line ends inside the text
    /// are white space: for values of a column.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_text(&self, texts: &[Option<&str>]) -> Result<RecordBatch, DecodeError> {
        let bytes: usize = texts.iter().flatten().map(|text| text.len()).sum();
        if bytes > super::error::MAX_INPUT {
            return Err(DecodeError::TooLarge { bytes, limit: super::error::MAX_INPUT });
        }
        let fields = self.schema.fields();
        let names = Names::of(fields).hide(self.corrupt);
        let mut columns: Vec<Column> =
            fields.iter().map(|field| Column::new(field.name(), field.data_type())).collect::<Result<_, _>>()?;
        for (row, text) in texts.iter().enumerate() {
            let rows = match text {
                Some(text) => self.push_line(text.as_bytes(), row as u64 + 1, &names, &mut columns, row)?,
                None => row,
            };
            // Exactly one row per text: the first of several, nulls for none.
            columns
                .iter_mut()
                .for_each(|column| if rows == row { column.push_null() } else { column.truncate(row + 1) });
        }
        let columns = columns.into_iter().map(Column::finish).collect::<Result<Vec<_>, _>>();
        let options = RecordBatchOptions::new().with_row_count(Some(texts.len()));
        columns
            .and_then(|columns| RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options))
            .map_err(|source| DecodeError::Batch { source })
    }

    /// Appends the rows of one line; answers how many rows there are then.
    fn push_line(
        &self,
        line: &[u8],
        record: u64,
        names: &Names<'_>,
        columns: &mut [Column],
        rows: usize,
    ) -> Result<usize, DecodeError> {
        let mut scanner = Scanner::new(line);
        if scanner.peek().is_none() {
            return Ok(rows);
        }
        let found = push_root(&mut scanner, names, columns, rows);
        let (end, damaged) = match found {
            Ok((end, Fit::Whole)) => (end, false),
            Ok((end, Fit::Partial)) => (end, true),
            Err(Malformed) => (rows, true),
        };
        if !damaged {
            return Ok(end);
        }
        match self.options.mode {
            ParseMode::FailFast => Err(DecodeError::Malformed { record, text: excerpt(line) }),
            ParseMode::DropMalformed => {
                columns.iter_mut().for_each(|column| column.truncate(rows));
                Ok(rows)
            }
            ParseMode::Permissive => {
                let end = if end == rows {
                    columns.iter_mut().for_each(|column| {
                        column.truncate(rows);
                        column.push_null();
                    });
                    rows + 1
                } else {
                    end
                };
                if let Some(corrupt) = self.corrupt {
                    keep_text(&mut columns[corrupt], line, rows, end);
                }
                Ok(end)
            }
        }
    }
}

/// Appends the rows of one JSON text; answers how many rows there are then.
fn push_root(
    scanner: &mut Scanner<'_>,
    names: &Names<'_>,
    columns: &mut [Column],
    rows: usize,
) -> Result<(usize, Fit), Malformed> {
    if scanner.take(b'{') {
        let fit = record::push_object(scanner, names, columns, rows)?;
        return Ok((rows + 1, fit));
    }
    if !scanner.take(b'[') {
        return Err(Malformed);
    }
    let (mut end, mut fit, mut first) = (rows, Fit::Whole, true);
    while scanner.next_element(&mut first, b']')? {
        if !scanner.take(b'{') {
            return Err(Malformed);
        }
        if record::push_object(scanner, names, columns, end)? == Fit::Partial {
            fit = Fit::Partial;
        }
        end += 1;
    }
    Ok((end, fit))
}

/// Puts the text of a damaged record into its rows.
fn keep_text(column: &mut Column, line: &[u8], start: usize, end: usize) {
    column.truncate(start);
    for _ in start..end {
        if let Values::Text(bytes) = &mut column.values {
            bytes.push(record::lossy(line).as_bytes());
            column.seal();
        }
    }
}

/// The field and all below it, nullable; only the keys of maps stay as they are.
pub(crate) fn nullable(field: &Field) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::List(item) => DataType::List(nullable(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| nullable(field)).collect::<Fields>()),
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(entry) if entry.len() == 2 => {
                let entry: Fields = vec![Arc::clone(&entry[0]), nullable(&entry[1])].into();
                DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(entry))), *sorted)
            }
            _ => field.data_type().clone(),
        },
        other => other.clone(),
    };
    Arc::new(field.clone().with_data_type(data_type).with_nullable(true))
}
