//! The options of `from_json`, `schema_of_json` and `to_json`, as they stand in `map('dateFormat', 'dd/MM/yyyy', …)`.
//!
//! Read once, when a query is planned. Names are Spark's and have no case. All three functions take every name; what means
//! nothing to a function, or to texts in a column (`lineSep`, `multiLine`, `compression`, …), is looked at and left. A name
//! that Spark does not have either is refused, and so is what is not done here.

use super::super::times::{TimeReader, TimeWriter, flag, refuse};
use super::text::Leniency;
use datafusion::common::{Result, plan_err};
use millstream_common::Options;

/// The names of Spark's options of JSON.
pub(super) const KNOWN: [&str; 32] = [
    "mode",
    "columnNameOfCorruptRecord",
    "dateFormat",
    "timestampFormat",
    "timestampNTZFormat",
    "enableDateTimeParsingFallback",
    "locale",
    "timeZone",
    "primitivesAsString",
    "prefersDecimal",
    "inferTimestamp",
    "dropFieldIfAllNull",
    "samplingRatio",
    "allowComments",
    "allowUnquotedFieldNames",
    "allowSingleQuotes",
    "allowNumericLeadingZeros",
    "allowNonNumericNumbers",
    "allowBackslashEscapingAnyCharacter",
    "allowUnquotedControlChars",
    "encoding",
    "charset",
    "lineSep",
    "multiLine",
    "compression",
    "pretty",
    "ignoreNullFields",
    "writeNullIfWithDefaultValue",
    "writeNonAsciiCharacterAsCodePoint",
    "useUnsafeRow",
    "preferDate",
    "maxStringLen",
];

/// The charsets that Spark knows; a text in a column has none.
const CHARSETS: [&str; 7] = ["iso-8859-1", "us-ascii", "utf-8", "utf-16", "utf-16be", "utf-16le", "utf-32"];

/// How texts are read.
#[derive(Debug, Clone)]
pub(super) struct ReadOptions {
    /// Whether a text that is not understood in full fails the query.
    pub(super) fail_fast: bool,
    /// The field that takes the texts that were not understood.
    pub(super) corrupt_record: String,
    /// What texts may have.
    pub(super) leniency: Leniency,
    /// How dates and times are read.
    pub(super) times: TimeReader,
}

/// How a schema is guessed from a text.
#[derive(Debug, Clone)]
pub(super) struct InferOptions {
    /// What texts may have.
    pub(super) leniency: Leniency,
    /// Whether numbers and booleans are STRING.
    pub(super) primitives_as_string: bool,
    /// Whether numbers with a fraction are DECIMAL where they can be.
    pub(super) prefers_decimal: bool,
    /// How strings are recognised as TIMESTAMP, if they are.
    pub(super) times: Option<TimeReader>,
    /// Whether fields that are null everywhere are left out.
    pub(super) drop_null_fields: bool,
}

/// How values are written.
#[derive(Debug, Clone)]
pub(super) struct WriteOptions {
    /// Whether fields that are null are left out.
    pub(super) ignore_null_fields: bool,
    /// Whether lines and blanks make the text readable.
    pub(super) pretty: bool,
    /// Whether characters beyond ASCII are escaped.
    pub(super) ascii: bool,
    /// How dates and times are written.
    pub(super) times: TimeWriter,
}

/// The options in a map of constants, as the rewrite of syntax leaves it; checked as far as every function does.
///
/// # Errors
/// A name that nobody knows (`INVALID_OPTIONS`), or a value that does not fit where it says something in any function.
pub(super) fn options(name: &str, constants: Option<&str>) -> Result<Options> {
    let options = match constants {
        None => Options::new(),
        Some(text) => super::super::registry::options(name, text)?,
    };
    check(name, &options)?;
    Ok(options)
}

/// As [`options`], for options that are read already.
pub(super) fn check(name: &str, options: &Options) -> Result<()> {
    for ignored in ["multiLine", "useUnsafeRow", "preferDate", "writeNullIfWithDefaultValue"] {
        flag(name, options, ignored, false)?;
    }
    for charset in ["encoding", "charset"].iter().filter_map(|option| options.get(option)) {
        if !CHARSETS.iter().any(|known| known.eq_ignore_ascii_case(charset)) {
            return plan_err!(
                "[INVALID_PARAMETER_VALUE.CHARSET] `{name}` does not know the charset {charset}; there are {}",
                CHARSETS.join(", ")
            );
        }
    }
    if let Some("") = options.get("lineSep") {
        return refuse(name, "lineSep", "", "it cannot be empty");
    }
    Ok(())
}

impl ReadOptions {
    /// Reads the options of `from_json`.
    ///
    /// # Errors
    /// A value that does not fit; `PARSE_MODE_UNSUPPORTED` for the mode that drops rows.
    pub(super) fn new(name: &str, options: &Options) -> Result<Self> {
        if options.get("mode").is_some_and(|mode| mode.eq_ignore_ascii_case("DROPMALFORMED")) {
            return plan_err!(
                "[PARSE_MODE_UNSUPPORTED] `{name}` does not support the mode DROPMALFORMED; it knows PERMISSIVE and FAILFAST"
            );
        }
        Ok(Self {
            fail_fast: super::super::registry::flag(name, options, false)?,
            corrupt_record: options.get("columnNameOfCorruptRecord").unwrap_or("_corrupt_record").to_owned(),
            leniency: leniency(name, options)?,
            times: TimeReader::new(name, options)?,
        })
    }
}

impl InferOptions {
    /// Reads the options of `schema_of_json`.
    ///
    /// # Errors
    /// A value that does not fit.
    pub(super) fn new(name: &str, options: &Options) -> Result<Self> {
        let infers = flag(name, options, "inferTimestamp", false)?;
        Ok(Self {
            leniency: leniency(name, options)?,
            primitives_as_string: flag(name, options, "primitivesAsString", false)?,
            prefers_decimal: flag(name, options, "prefersDecimal", false)?,
            times: if infers { Some(TimeReader::new(name, options)?) } else { None },
            drop_null_fields: flag(name, options, "dropFieldIfAllNull", false)?,
        })
    }
}

impl WriteOptions {
    /// Reads the options of `to_json`.
    ///
    /// # Errors
    /// A value that does not fit.
    pub(super) fn new(name: &str, options: &Options) -> Result<Self> {
        Ok(Self {
            ignore_null_fields: flag(name, options, "ignoreNullFields", true)?,
            pretty: flag(name, options, "pretty", false)?,
            ascii: flag(name, options, "writeNonAsciiCharacterAsCodePoint", false)?,
            times: TimeWriter::new(name, options)?,
        })
    }
}

fn leniency(name: &str, options: &Options) -> Result<Leniency> {
    let flag = |option, default| flag(name, options, option, default);
    Ok(Leniency {
        comments: flag("allowComments", false)?,
        unquoted_names: flag("allowUnquotedFieldNames", false)?,
        single_quotes: flag("allowSingleQuotes", true)?,
        leading_zeros: flag("allowNumericLeadingZeros", false)?,
        non_numeric: flag("allowNonNumericNumbers", true)?,
        any_escape: flag("allowBackslashEscapingAnyCharacter", false)?,
        control_characters: flag("allowUnquotedControlChars", false)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(pairs: &[(&str, &str)]) -> String {
        let options = pairs.iter().fold(Options::new(), |options, (key, value)| options.with(*key, *value));
        let read = check("from_json", &options).and_then(|()| ReadOptions::new("from_json", &options));
        read.and_then(|_| WriteOptions::new("to_json", &options))
            .map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn values_that_cannot_be_meant_are_refused_with_their_name() {
        for (pairs, part) in [
            (&[("mode", "dropMalformed")][..], "[PARSE_MODE_UNSUPPORTED]"),
            (&[("allowComments", "1")], "`allowComments`"),
            (&[("locale", "de-DE")], "`locale`"),
            (&[("encoding", "ebcdic")], "[INVALID_PARAMETER_VALUE.CHARSET]"),
            (&[("timeZone", "Mars")], "[INVALID_TIMEZONE]"),
            (&[("dateFormat", "bbb")], "[INVALID_DATETIME_PATTERN"),
            (&[("timestampFormat", "HH:mm VV"), ("timeZone", "Europe/Berlin")], "`timeZone`"),
            (&[("locale", "en-GB"), ("ENCODING", "UTF-8"), ("timezone", "+02:00"), ("pretty", "TRUE")], ""),
        ] {
            let refusal = refusal(pairs);
            assert!(refusal.contains(part) && refusal.is_empty() == part.is_empty(), "{pairs:?}: {refusal}");
        }
    }
}
