//! The options of `from_csv`, `schema_of_csv` and `to_csv`.
//!
//! Names are Spark's and have no case. All three functions take every name; what means nothing to a function, or to one record
//! (`header`, `lineSep`, `inferSchema`, …), is left. A name that Spark does not have either is refused.

use super::super::registry::{flag as fails_fast, options as map};
use super::super::times::{TimeReader, TimeWriter, flag, refuse};
use datafusion::common::{Result, plan_err};
use millstream_common::Options;

/// The names of Spark's options of CSV that are known here.
const KNOWN: [&str; 38] = [
    "sep",
    "delimiter",
    "quote",
    "escape",
    "comment",
    "nullValue",
    "emptyValue",
    "nanValue",
    "positiveInf",
    "negativeInf",
    "ignoreLeadingWhiteSpace",
    "ignoreTrailingWhiteSpace",
    "mode",
    "columnNameOfCorruptRecord",
    "dateFormat",
    "timestampFormat",
    "timestampNTZFormat",
    "enableDateTimeParsingFallback",
    "preferDate",
    "locale",
    "timeZone",
    "quoteAll",
    "escapeQuotes",
    "header",
    "inferSchema",
    "prefersDecimal",
    "samplingRatio",
    "enforceSchema",
    "columnPruning",
    "multiLine",
    "lineSep",
    "encoding",
    "charset",
    "compression",
    "codec",
    "maxColumns",
    "maxCharsPerColumn",
    "maxMalformedLogPerPartition",
];

/// What a record looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    /// What stands between values.
    pub(super) separator: String,
    /// What stands around values that hold separators; turned off, it is a character that no text has.
    pub(super) quote: char,
    /// What stands before a quote, or before itself, inside of quotes.
    pub(super) escape: char,
    /// Whether blanks before a value do not count.
    pub(super) trims_start: bool,
    /// Whether blanks behind a value do not count.
    pub(super) trims_end: bool,
}

/// How a record is read.
#[derive(Debug, Clone)]
pub(super) struct ReadOptions {
    /// What it looks like.
    pub(super) shape: Shape,
    /// What a record that is none begins with.
    pub(super) comment: Option<char>,
    /// The text that means null.
    pub(super) null_value: String,
    /// What a pair of quotes with nothing inside means.
    pub(super) empty_value: String,
    /// The words for numbers that are not finite: not a number, infinite, negative and infinite.
    pub(super) not_finite: [String; 3],
    /// Whether a record that is not understood in full fails the query.
    pub(super) fail_fast: bool,
    /// The field that takes the records that were not understood.
    pub(super) corrupt_record: String,
    /// How dates and times are read.
    pub(super) times: TimeReader,
    /// The pattern of what is guessed to be a DATE; nothing is when there is none.
    pub(super) date_format: Option<String>,
}

/// How a record is written.
#[derive(Debug, Clone)]
pub(super) struct WriteOptions {
    /// What it looks like.
    pub(super) shape: Shape,
    /// What stands for null.
    pub(super) null_value: String,
    /// What stands for nothing but blanks.
    pub(super) empty_value: String,
    /// Whether every value stands in quotes.
    pub(super) quote_all: bool,
    /// Whether a quote inside of a value asks for quotes around it.
    pub(super) escape_quotes: bool,
    /// How dates and times are written.
    pub(super) times: TimeWriter,
}

/// The options in a map of constants, as the rewrite of syntax leaves it.
///
/// # Errors
/// `INVALID_OPTIONS` for a name that is not known.
pub(super) fn options(name: &str, constants: Option<&str>) -> Result<Options> {
    let options = constants.map_or_else(|| Ok(Options::new()), |text| map(name, text))?;
    match options.only(&format!("`{name}`"), &KNOWN) {
        Ok(()) => Ok(options),
        Err(error) => plan_err!("[INVALID_OPTIONS] {error}"),
    }
}

impl Shape {
    fn new(name: &str, options: &Options, trims: bool) -> Result<Self> {
        let (option, separator) = match options.get("sep") {
            Some(separator) => ("sep", separator),
            None => ("delimiter", options.get("delimiter").unwrap_or(",")),
        };
        let separator = match separator {
            "" => return refuse(name, option, "", "it cannot be empty"),
            "\\t" => "\t".to_owned(),
            "\\\\" => "\\".to_owned(),
            other => other.to_owned(),
        };
        Ok(Self {
            separator,
            quote: character(name, options, "quote", Some('"'))?.unwrap_or('\0'),
            escape: character(name, options, "escape", Some('\\'))?.unwrap_or('\0'),
            trims_start: flag(name, options, "ignoreLeadingWhiteSpace", trims)?,
            trims_end: flag(name, options, "ignoreTrailingWhiteSpace", trims)?,
        })
    }
}

impl ReadOptions {
    /// Reads the options of `from_csv` and `schema_of_csv`.
    ///
    /// # Errors
    /// A value that does not fit; `PARSE_MODE_UNSUPPORTED` for the mode that drops rows.
    pub(super) fn new(name: &str, options: &Options) -> Result<Self> {
        if options.get("mode").is_some_and(|mode| mode.eq_ignore_ascii_case("DROPMALFORMED")) {
            return plan_err!(
                "[PARSE_MODE_UNSUPPORTED] `{name}` does not support the mode DROPMALFORMED; it knows PERMISSIVE and FAILFAST"
            );
        }
        let word = |option: &str, otherwise: &str| options.get(option).unwrap_or(otherwise).to_owned();
        let prefers_date = flag(name, options, "preferDate", true)?;
        Ok(Self {
            shape: Shape::new(name, options, false)?,
            comment: character(name, options, "comment", None)?,
            null_value: word("nullValue", ""),
            empty_value: word("emptyValue", ""),
            not_finite: [word("nanValue", "NaN"), word("positiveInf", "Inf"), word("negativeInf", "-Inf")],
            fail_fast: fails_fast(name, options, false)?,
            corrupt_record: word("columnNameOfCorruptRecord", "_corrupt_record"),
            times: TimeReader::new(name, options)?,
            date_format: prefers_date.then(|| word("dateFormat", "yyyy-MM-dd")),
        })
    }
}

impl WriteOptions {
    /// Reads the options of `to_csv`.
    ///
    /// # Errors
    /// A value that does not fit.
    pub(super) fn new(name: &str, options: &Options) -> Result<Self> {
        Ok(Self {
            shape: Shape::new(name, options, true)?,
            null_value: options.get("nullValue").unwrap_or("").to_owned(),
            empty_value: options.get("emptyValue").unwrap_or("\"\"").to_owned(),
            quote_all: flag(name, options, "quoteAll", false)?,
            escape_quotes: flag(name, options, "escapeQuotes", true)?,
            times: TimeWriter::new(name, options)?,
        })
    }
}

/// One character; none where the option is empty.
fn character(name: &str, options: &Options, option: &str, default: Option<char>) -> Result<Option<char>> {
    let Some(text) = options.get(option) else { return Ok(default) };
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (first, None) => Ok(first),
        _ => refuse(name, option, text, "write one character, or nothing to turn it off"),
    }
}
