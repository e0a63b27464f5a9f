//! Separated values into Arrow: columns by position, a value that does not convert is null, alone.
//!
//! Rule of its life: it never fails on data unless the mode says so. Source of the semantics: Spark's CSV
//! reader with one record per line. Missing values are null, surplus ones are ignored; both make the record
//! malformed for the modes that mind. Nothing between separators is null; quotes around nothing are the empty text, which
//! is null too unless another text means null. The header is the business of whoever opens the file.

use super::column::{Column, Values};
use super::error::{check_size, excerpt};
use super::{DecodeError, ParseMode, next_line, scalar};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use millstream_common::{OptionError, Options};
use std::sync::Arc;

/// How separated values are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOptions {
    /// Whether the first line of each file names the columns.
    pub header: bool,
    /// What stands between values.
    pub separator: Vec<u8>,
    /// What stands around values that hold separators; `None` for nothing.
    pub quote: Option<u8>,
    /// What stands before a quote that is part of a value.
    pub escape: Option<u8>,
    /// The text that means null, besides nothing at all.
    pub null_value: Vec<u8>,
    /// What happens to a malformed record.
    pub mode: ParseMode,
    /// The string column that takes the text of malformed records, if the schema has it.
    pub corrupt_column: String,
    /// What ends a line, when it is not one of the usual ends.
    pub line_separator: Option<Vec<u8>>,
    /// Whether the names in a header do not matter; otherwise they must be those of the schema, in its order.
    pub enforce_schema: bool,
}

/// The patterns that the reader of timestamps understands without being told.
const TIMESTAMP_FORMATS: [&str; 6] = [
    "yyyy-MM-dd HH:mm:ss",
    "yyyy-MM-dd HH:mm:ss.SSS",
    "yyyy-MM-dd'T'HH:mm:ss",
    "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]",
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "yyyy-MM-dd'T'HH:mm:ssXXX",
];

impl CsvOptions {
    /// The options that [`from_options`](Self::from_options) reads.
    pub const KNOWN: &'static [&'static str] = &[
        "header",
        "sep",
        "delimiter",
        "quote",
        "escape",
        "nullValue",
        "mode",
        "columnNameOfCorruptRecord",
        "timestampFormat",
        "multiLine",
        "lineSep",
        "enforceSchema",
    ];

    /// Reads a connector's options.
    ///
    /// # Errors
    /// When a value does not fit; `multiLine` must be false.
    pub fn from_options(owner: &str, options: &Options) -> Result<Self, OptionError> {
        if options.flag(owner, "multiLine", false)? {
            return Err(Options::invalid(owner, "multiLine", "true", "one record must stand on one line"));
        }
        if let Some(format) = options.get("timestampFormat").filter(|format| !TIMESTAMP_FORMATS.contains(format)) {
            let reason = format!("write one of {}", TIMESTAMP_FORMATS.join(", "));
            return Err(Options::invalid(owner, "timestampFormat", format, &reason));
        }
        let (name, separator) = match options.get("sep") {
            Some(separator) => ("sep", separator),
            None => ("delimiter", options.get("delimiter").unwrap_or(",")),
        };
        let separator_bytes = if separator == "\\t" { b"\t".to_vec() } else { separator.as_bytes().to_vec() };
        if separator_bytes.is_empty() {
            return Err(Options::invalid(owner, name, separator, "it cannot be empty"));
        }
        let line_separator = options.get("lineSep");
        if line_separator == Some("") {
            return Err(Options::invalid(owner, "lineSep", "", "it cannot be empty"));
        }
        Ok(Self {
            header: options.flag(owner, "header", false)?,
            separator: separator_bytes,
            quote: one_byte(owner, "quote", options, b'"')?,
            escape: one_byte(owner, "escape", options, b'\\')?,
            null_value: options.get("nullValue").unwrap_or("").as_bytes().to_vec(),
            mode: ParseMode::from_options(owner, options)?,
            corrupt_column: options.get("columnNameOfCorruptRecord").unwrap_or("_corrupt_record").to_owned(),
            line_separator: line_separator.map(|text| text.as_bytes().to_vec()),
            enforce_schema: options.flag(owner, "enforceSchema", true)?,
        })
    }
}

fn one_byte(owner: &str, name: &str, options: &Options, default: u8) -> Result<Option<u8>, OptionError> {
    match options.get(name) {
        None => Ok(Some(default)),
        Some("") => Ok(None),
        Some(text) if text.len() == 1 => Ok(text.bytes().next()),
        Some(text) => Err(Options::invalid(owner, name, text, "write one ASCII character, or nothing to turn it off")),
    }
}

/// Decodes separated values. Immutable: one may serve many threads.
#[derive(Debug, Clone)]
pub struct CsvDecoder {
    schema: SchemaRef,
    /// The place of each projected column in a record; `None` for the column of malformed text.
    places: Vec<Option<usize>>,
    /// How many values a record should have.
    expected: usize,
    /// The names that a header should have.
    names: Vec<String>,
    options: CsvOptions,
}

impl CsvDecoder {
    /// A decoder of the columns `projection` (indexes into `schema`); all columns become nullable.
    ///
    /// # Errors
    /// When a column has a nested type, or the projection points outside the schema.
    pub fn new(schema: &SchemaRef, projection: &[usize], options: CsvOptions) -> Result<Self, DecodeError> {
        let columns = schema.fields().len();
        let corrupt = schema
            .fields()
            .iter()
            .position(|field| field.name() == &options.corrupt_column && field.data_type() == &DataType::Utf8);
        let mut fields: Vec<FieldRef> = Vec::new();
        let mut places = Vec::new();
        for index in projection {
            let field = schema.fields().get(*index).ok_or(DecodeError::Projection { index: *index, columns })?;
            if field.data_type().is_nested() {
                let data_type = field.data_type().to_string();
                return Err(DecodeError::Type { column: field.name().clone(), data_type });
            }
            Column::new(field.name(), field.data_type())?;
            fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
            let before = usize::from(corrupt.is_some_and(|corrupt| corrupt < *index));
            places.push((Some(*index) != corrupt).then_some(index - before));
        }
        let expected = columns - usize::from(corrupt.is_some());
        let names = schema.fields().iter().enumerate().filter(|(at, _)| Some(*at) != corrupt);
        let names = names.map(|(_, field)| field.name().clone()).collect();
        Ok(Self { schema: Arc::new(Schema::new(fields)), places, expected, names, options })
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

    /// Compares the header of a file, if it has one and its names matter, with the names of the schema.
    ///
    /// # Errors
    /// What is different, in words.
    pub(crate) fn check_header(&self, header: &[u8]) -> Result<(), String> {
        if self.options.enforce_schema || !self.options.header || header.is_empty() {
            return Ok(());
        }
        let found = header_names(header, &self.options);
        let is_same = |(found, name): (&String, &String)| found.trim().eq_ignore_ascii_case(name.trim());
        if found.len() == self.names.len() && found.iter().zip(&self.names).all(is_same) {
            return Ok(());
        }
        Err(format!("its header has the columns {}, and the schema {}", found.join(", "), self.names.join(", ")))
    }

    /// How many bytes the header takes at the beginning of a file: blank lines and one more.
    pub fn header_length(&self, input: &[u8]) -> usize {
        let mut taken = 0;
        while self.options.header
            && let Some((line, bytes)) = next_line(&input[taken..], self.options.line_separator.as_deref())
        {
            taken += bytes;
            if !line.trim_ascii().is_empty() {
                break;
            }
        }
        taken
    }

    /// Decodes lines until there are `max_rows` rows: the batch, and how many bytes it took.
    ///
    /// # Errors
    /// When a record is malformed in fail-fast mode, or there is too much input for one batch.
    pub fn decode_some(&self, input: &[u8], max_rows: usize) -> Result<(RecordBatch, usize), DecodeError> {
        check_size(input)?;
        let mut columns: Vec<Column> = self
            .schema
            .fields()
            .iter()
            .map(|field| Column::new(field.name(), field.data_type()))
            .collect::<Result<_, _>>()?;
        let mut record = Record::default();
        let (mut rows, mut taken, mut number) = (0, 0, 0);
        while rows < max_rows
            && let Some((line, bytes)) = next_line(&input[taken..], self.options.line_separator.as_deref())
        {
            taken += bytes;
            number += 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            record.split(line, &self.options);
            rows += usize::from(self.push_record(&record, line, number, &mut columns, rows)?);
        }
        let columns = columns.into_iter().map(Column::finish).collect::<Result<Vec<_>, _>>();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        columns
            .and_then(|columns| RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options))
            .map(|batch| (batch, taken))
            .map_err(|source| DecodeError::Batch { source })
    }

    /// Appends one record; answers whether it made a row.
    fn push_record(
        &self,
        record: &Record,
        line: &[u8],
        number: u64,
        columns: &mut [Column],
        rows: usize,
    ) -> Result<bool, DecodeError> {
        let mut damaged = record.len() != self.expected;
        for (column, place) in columns.iter_mut().zip(&self.places) {
            let value = place.and_then(|place| record.value(place));
            match value.filter(|value| *value != self.options.null_value.as_slice()) {
                None => column.push_null(),
                Some(value) if push_value(&mut column.values, value) => column.seal(),
                Some(_) => {
                    damaged = true;
                    column.push_null();
                }
            }
        }
        if !damaged {
            return Ok(true);
        }
        match self.options.mode {
            ParseMode::FailFast => Err(DecodeError::Malformed { record: number, text: excerpt(line) }),
            ParseMode::DropMalformed => {
                columns.iter_mut().for_each(|column| column.truncate(rows));
                Ok(false)
            }
            ParseMode::Permissive => {
                if let Some(corrupt) = self.places.iter().position(Option::is_none) {
                    columns[corrupt].truncate(rows);
                    if push_value(&mut columns[corrupt].values, line) {
                        columns[corrupt].seal();
                    }
                }
                Ok(true)
            }
        }
    }
}

/// The names in a header line; blank lines before it do not count.
pub(crate) fn header_names(header: &[u8], options: &CsvOptions) -> Vec<String> {
    let (mut record, mut rest) = (Record::default(), header);
    while let Some((line, taken)) = next_line(rest, options.line_separator.as_deref()) {
        rest = &rest[taken..];
        if !line.trim_ascii().is_empty() {
            record.split(line, options);
            break;
        }
    }
    let name = |place| String::from_utf8_lossy(record.value(place).unwrap_or_default()).into_owned();
    (0..record.len()).map(name).collect()
}

/// The values of one line as text; nothing for what is missing, empty or the text that means null.
pub(crate) fn line_values(line: &[u8], options: &CsvOptions) -> Vec<Option<String>> {
    let mut record = Record::default();
    record.split(line, options);
    let has_text = |value: &&[u8]| !value.is_empty() && *value != options.null_value.as_slice();
    let value = |place| record.value(place).filter(has_text);
    (0..record.len()).map(|place| value(place).map(|value| String::from_utf8_lossy(value).into_owned())).collect()
}

/// Text as a column of one value; `None` when it does not convert.
pub(crate) fn one_value(data_type: &DataType, text: &str) -> Option<ArrayRef> {
    let mut column = Column::new("", data_type).ok()?;
    if !push_value(&mut column.values, text.as_bytes()) {
        return None;
    }
    column.seal();
    column.finish().ok()
}

/// Appends a value that converts; `false` when it does not, and nothing was appended.
fn push_value(values: &mut Values, bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let pushed = match values {
        Values::Text(values) => {
            values.push(text.as_bytes());
            Some(())
        }
        Values::Binary(values) => {
            values.push(bytes);
            Some(())
        }
        Values::Bool(values) => {
            let parsed = text.to_ascii_lowercase().parse().ok();
            parsed.map(|value| values.push(value))
        }
        Values::I8(values) => text.parse().ok().map(|value| values.push(value)),
        Values::I16(values) => text.parse().ok().map(|value| values.push(value)),
        Values::I32(values) => text.parse().ok().map(|value| values.push(value)),
        Values::I64(values) => text.parse().ok().map(|value| values.push(value)),
        Values::F32(values) => double(&text).map(|value| values.push(value as f32)),
        Values::F64(values) => double(&text).map(|value| values.push(value)),
        Values::Decimal { values, precision, scale } => {
            scalar::parse_decimal(&text, *precision, *scale).map(|value| values.push(value))
        }
        Values::Date(values) => scalar::parse_date(&text).map(|value| values.push(value)),
        Values::Timestamp { values, zone: Some(_) } => scalar::parse_timestamp(&text).map(|value| values.push(value)),
        Values::Timestamp { values, zone: None } => scalar::parse_timestamp_ntz(&text).map(|value| values.push(value)),
        Values::Nothing | Values::List { .. } | Values::Map { .. } | Values::Struct { .. } => None,
    };
    pushed.is_some()
}

fn double(text: &str) -> Option<f64> {
    let text = text.trim();
    // Rust knows more names of infinity than Java does.
    let is_number = text.bytes().any(|byte| byte.is_ascii_digit());
    if is_number {
        text.parse().ok()
    } else {
        match text {
            "NaN" => Some(f64::NAN),
            "Inf" => Some(f64::INFINITY),
            "-Inf" => Some(f64::NEG_INFINITY),
            _ => scalar::special_double(text),
        }
    }
}

/// One record, split; reused for the next.
#[derive(Default)]
struct Record {
    bytes: Vec<u8>,
    ends: Vec<End>,
}

/// Where a value ends, and whether it stood in quotes.
struct End {
    at: usize,
    is_quoted: bool,
}

impl Record {
    fn len(&self) -> usize {
        self.ends.len()
    }

    /// The value at a place; `None` when the record has none there, or nothing, not even quotes.
    fn value(&self, place: usize) -> Option<&[u8]> {
        let end = self.ends.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before].at);
        (start < end.at || end.is_quoted).then(|| &self.bytes[start..end.at])
    }

    fn split(&mut self, line: &[u8], options: &CsvOptions) {
        self.bytes.clear();
        self.ends.clear();
        let separator = options.separator.as_slice();
        let mut rest = line;
        loop {
            let quoted = options.quote.filter(|quote| rest.first() == Some(quote));
            let quoted = quoted.and_then(|quote| self.take_quoted(rest, quote, options));
            let taken = quoted.unwrap_or_else(|| {
                let end = rest.windows(separator.len()).position(|window| window == separator).unwrap_or(rest.len());
                self.bytes.extend_from_slice(&rest[..end]);
                end
            });
            self.ends.push(End { at: self.bytes.len(), is_quoted: quoted.is_some() });
            if taken == rest.len() {
                return;
            }
            rest = &rest[taken + separator.len()..];
        }
    }

    /// Takes a quoted value; `None`, with nothing taken, when the quotes are not closed right before a
    /// separator or the end: then they are part of a plain value.
    fn take_quoted(&mut self, text: &[u8], quote: u8, options: &CsvOptions) -> Option<usize> {
        let start = self.bytes.len();
        let mut at = 1;
        while let Some(byte) = text.get(at).copied() {
            let next = text.get(at + 1).copied();
            let escapes =
                options.escape == Some(byte) && (next == Some(quote) || (byte != quote && next == Some(byte)));
            if escapes {
                self.bytes.extend(next);
                at += 2;
            } else if byte == quote {
                if next.is_none() || text[at + 1..].starts_with(&options.separator) {
                    return Some(at + 1);
                }
                break;
            } else {
                self.bytes.push(byte);
                at += 1;
            }
        }
        self.bytes.truncate(start);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{Field, TimeUnit};

    fn decoder(fields: &[(&str, DataType)], options: &Options) -> CsvDecoder {
        let schema = Arc::new(Schema::new(
            fields.iter().map(|(name, t)| Field::new(*name, t.clone(), true)).collect::<Vec<_>>(),
        ));
        let all: Vec<usize> = (0..fields.len()).collect();
        CsvDecoder::new(&schema, &all, CsvOptions::from_options("source `t`", options).unwrap()).unwrap()
    }

    fn rows(decoder: &CsvDecoder, input: &str) -> Vec<String> {
        let (batch, taken) = decoder.decode_some(input.as_bytes(), usize::MAX).unwrap();
        assert_eq!(taken, input.len());
        crate::contract::lines(&batch)
    }

    fn strings(count: usize) -> Vec<(&'static str, DataType)> {
        ["a", "b", "c"].into_iter().take(count).map(|name| (name, DataType::Utf8)).collect()
    }

    #[test]
    fn quotes_escapes_and_nulls() {
        let decoder = decoder(&strings(3), &Options::new());
        for (line, row) in [
            ("a,b,c", "a|b|c"),
            ("\"a,b\",c,", "a,b|c|-"),
            (r#""a\"b","c\\",d"#, r#"a"b|c\|d"#),
            ("\"\",x,y", "-|x|y"),
            ("\"open,b,c", "\"open|b|c"),
            ("\"a\"b,c,d", "\"a\"b|c|d"),
            ("a", "a|-|-"),
            ("a,b,c,d", "a|b|c"),
            (" a , b ,c", " a | b |c"),
        ] {
            assert_eq!(rows(&decoder, line), [row], "{line}");
        }
        assert_eq!(rows(&decoder, "\n  \na,b,c\r\n\r\n"), ["a|b|c"]);
    }

    #[test]
    fn other_separators_and_null_texts() {
        let options = Options::new().with("sep", "||").with("nullValue", "NA").with("quote", "").with("escape", "\"");
        assert_eq!(rows(&decoder(&strings(3), &options), "a||NA||\"x\""), ["a|-|\"x\""]);
        let tabs = Options::new().with("delimiter", "\\t").with("escape", "\"");
        assert_eq!(rows(&decoder(&strings(2), &tabs), "\"a\"\"b\"\tc"), ["a\"b|c"]);
    }

    #[test]
    fn quotes_around_nothing_are_the_empty_text_where_another_text_means_null() {
        let options = Options::new().with("nullValue", "NA").with("mode", "FAILFAST");
        assert_eq!(rows(&decoder(&strings(3), &options), "\"\",,NA\n\"NA\",x,\"\"\n"), ["|-|-", "-|x|"]);
        // It is no number.
        let fields = [("i", DataType::Int32), ("_corrupt_record", DataType::Utf8)];
        let numbers = decoder(&fields, &Options::new().with("nullValue", "NA"));
        assert_eq!(rows(&numbers, "1\nNA\n\"\"\n"), ["1|-", "-|-", "-|\"\""]);
        let options = CsvOptions::from_options("source `t`", &options).unwrap();
        assert_eq!(line_values(b"\"\",,NA,1", &options), [None, None, None, Some("1".into())]);
        assert_eq!(header_names(b"\"\",a,", &options), ["", "a", ""]);
    }

    #[test]
    fn values_that_do_not_convert_are_null_alone() {
        let fields = [
            ("i", DataType::Int32),
            ("d", DataType::Float64),
            ("f", DataType::Boolean),
            ("c", DataType::Decimal128(5, 2)),
            ("t", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            ("day", DataType::Date32),
        ];
        let decoder = decoder(&fields, &Options::new());
        assert_eq!(
            rows(&decoder, "1,2.5,TRUE,1.005,2024-05-01 12:00:00,2024-05-01\nx,y,z,1e9,t,u\n 1,infinity,1,,,\n"),
            ["1|2.5|true|1.01|2024-05-01T12:00:00|2024-05-01", "-|-|-|-|-|-", "-|-|-|-|-|-"]
        );
    }

    #[test]
    fn modes_and_the_corrupt_column() {
        let fields = [("i", DataType::Int32), ("_corrupt_record", DataType::Utf8), ("s", DataType::Utf8)];
        let decoder_of = |mode: &str| decoder(&fields, &Options::new().with("mode", mode));
        assert_eq!(rows(&decoder_of("permissive"), "1,a\nx,b\n2"), ["1|-|a", "-|x,b|b", "2|2|-"]);
        assert_eq!(rows(&decoder_of("DropMalformed"), "1,a\nx,b\n2"), ["1|-|a"]);
        let error = decoder_of("FAILFAST").decode_some(b"1,a\n2", 10).unwrap_err();
        assert_eq!(error.to_string(), "record 2 of the input is malformed: `2`");
    }

    #[test]
    fn the_header_is_the_first_line_that_is_not_blank() {
        let options = Options::new().with("header", "true");
        let input = b"\n\na,b\n1,2";
        assert_eq!(&input[decoder(&strings(2), &options).header_length(input)..], b"1,2");
        assert_eq!(decoder(&strings(2), &Options::new()).header_length(input), 0);
    }

    #[test]
    fn options_that_do_not_fit_are_refused() {
        for (name, value) in
            [("sep", ""), ("quote", "ab"), ("multiLine", "true"), ("timestampFormat", "dd.MM.yy"), ("mode", "lenient")]
        {
            let error = CsvOptions::from_options("source `t`", &Options::new().with(name, value)).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
