//! Dates and times in the texts of JSON and CSV, as options say: `dateFormat`, `timestampFormat`, `timestampNTZFormat`,
//! `timeZone`, `enableDateTimeParsingFallback`.
//!
//! Where it stands: between the options of a function and the values of its rows; patterns are compiled when a query is planned.
//! Source: the readers and writers of JSON and CSV in Spark. A text is a value or it is none, and what then happens is the
//! caller's business. Months have English names; another `locale` is refused.

use crate::functions::expr::text_in;
use crate::functions::text::time::format::write_date;
use crate::functions::text::time::pattern::{Pattern, Use};
use crate::functions::text::time::zone::{Zone, zone};
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use millstream_common::Options;
use std::borrow::Cow;

const DAY: i64 = 86_400_000_000;

/// How dates, or times, are read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Format {
    /// The pattern, if the options say one.
    pattern: Option<Pattern>,
    /// Whether a text that does not fit is read as without a pattern.
    fallback: bool,
}

/// How dates and times are read.
#[derive(Debug, Clone)]
pub(super) struct TimeReader {
    dates: Format,
    timestamps: Format,
    local_timestamps: Format,
    zone: Zone,
}

impl TimeReader {
    /// Reads the options of a function.
    ///
    /// # Errors
    /// A pattern that is none (`INVALID_DATETIME_PATTERN`), a zone that is none (`INVALID_TIMEZONE`), another language.
    pub(super) fn new(name: &str, options: &Options) -> Result<Self> {
        check_locale(name, options)?;
        let format = |option: &str| {
            let pattern = options.get(option).map(|text| Pattern::compile(text, Use::Read)).transpose()?;
            // Without a pattern, and only then unless an option says otherwise, older forms are read, too.
            let fallback = flag(name, options, "enableDateTimeParsingFallback", pattern.is_none())?;
            Ok::<_, datafusion::error::DataFusionError>(Format { pattern, fallback })
        };
        Ok(Self {
            dates: format("dateFormat")?,
            timestamps: format("timestampFormat")?,
            local_timestamps: format("timestampNTZFormat")?,
            zone: time_zone(name, options)?,
        })
    }

    /// Days since 1970. `as_number` asks whether a text may also be their number, where older forms are read.
    pub(super) fn date(&self, text: &str, as_number: bool) -> Option<i32> {
        let Format { pattern, fallback } = &self.dates;
        let read = match pattern {
            Some(pattern) => pattern.read(text).and_then(|micros| i32::try_from(micros.div_euclid(DAY)).ok()),
            None => text_in::date(text),
        };
        let again = || text_in::date(&without_gmt(text)).or_else(|| if as_number { text.parse().ok() } else { None });
        read.or_else(|| if *fallback { again() } else { None })
    }

    /// Microseconds since 1970 of an instant; a text without a zone is in that of the options.
    pub(super) fn instant(&self, text: &str) -> Option<i64> {
        let read = |text: &str| match written(text)? {
            (local, None) => self.zone.to_utc(local),
            (_, Some(_)) => text_in::timestamp(text, 0),
        };
        let Format { pattern, fallback } = &self.timestamps;
        let first = match pattern {
            Some(pattern) => pattern.read_in(text, self.zone),
            None => read(text),
        };
        first.or_else(|| if *fallback { read(&without_gmt(text)) } else { None })
    }

    /// Microseconds since 1970 of what clocks show; without a pattern the text may not say a zone.
    pub(super) fn local(&self, text: &str) -> Option<i64> {
        match &self.local_timestamps.pattern {
            Some(pattern) => pattern.read(text),
            None => written(text).filter(|(_, zone)| zone.is_none()).map(|(local, _)| local),
        }
    }
}

/// A time as casts read it, and its zone; a time without a date depends on the day and is none.
fn written(text: &str) -> Option<(i64, Option<&str>)> {
    let begins = text.trim_start();
    let has_date = begins.find(['-', ':']).is_none_or(|at| begins[at..].starts_with('-'));
    if has_date { text_in::local_timestamp(text, 0) } else { None }
}

/// Older texts have `GMT` before an offset.
fn without_gmt(text: &str) -> Cow<'_, str> {
    if text.contains("GMT") { Cow::Owned(text.replace("GMT", "")) } else { Cow::Borrowed(text) }
}

/// How dates and times are written.
#[derive(Debug, Clone)]
pub(super) struct TimeWriter {
    date: Option<Pattern>,
    timestamp: Pattern,
    local_timestamp: Pattern,
    zone: Zone,
}

impl TimeWriter {
    /// Reads the options of a function.
    ///
    /// # Errors
    /// As [`TimeReader::new`]; and a pattern that names the zone when `timeZone` is another than UTC.
    pub(super) fn new(name: &str, options: &Options) -> Result<Self> {
        check_locale(name, options)?;
        let zone = time_zone(name, options)?;
        let pattern =
            |option: &str, otherwise: &str| Pattern::compile(options.get(option).unwrap_or(otherwise), Use::Write);
        let timestamp = pattern("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]")?;
        if timestamp.names_zone() && !matches!(zone, Zone::Fixed(0)) {
            let reason = "with another zone than UTC, the letters V, z and O cannot stand in timestampFormat";
            return refuse(name, "timeZone", options.get("timeZone").unwrap_or_default(), reason);
        }
        Ok(Self {
            date: options.get("dateFormat").map(|text| Pattern::compile(text, Use::Write)).transpose()?,
            timestamp,
            local_timestamp: pattern("timestampNTZFormat", "yyyy-MM-dd'T'HH:mm:ss[.SSS]")?,
            zone,
        })
    }

    /// Appends a DATE.
    pub(super) fn write_date(&self, days: i32, out: &mut String) {
        match &self.date {
            Some(pattern) => pattern.write(i64::from(days) * DAY, out),
            None => write_date(i64::from(days), out),
        }
    }

    /// Appends a TIMESTAMP, as clocks of the zone show it.
    pub(super) fn write_instant(&self, micros: i64, out: &mut String) {
        self.timestamp.write_at(micros, self.zone.offset_at(micros).unwrap_or(0), out);
    }

    /// Appends a TIMESTAMP_NTZ.
    pub(super) fn write_local(&self, micros: i64, out: &mut String) {
        self.local_timestamp.write(micros, out);
    }
}

fn time_zone(name: &str, options: &Options) -> Result<Zone> {
    match options.get("timeZone") {
        None => Ok(Zone::Fixed(0)),
        Some(text) => zone(text).ok_or_else(|| {
            plan_datafusion_err!(
                "[INVALID_TIMEZONE] `{name}` does not know the time zone {text}; write Europe/Berlin or +02:00"
            )
        }),
    }
}

fn check_locale(name: &str, options: &Options) -> Result<()> {
    match options.get("locale") {
        Some(locale) if !locale.split(['-', '_']).next().is_some_and(|word| word.eq_ignore_ascii_case("en")) => {
            refuse(name, "locale", locale, "months and numbers are read and written in English only")
        }
        _ => Ok(()),
    }
}

/// A yes-or-no option.
///
/// # Errors
/// `INVALID_OPTIONS` when it is neither.
pub(super) fn flag(name: &str, options: &Options, option: &str, default: bool) -> Result<bool> {
    options
        .flag(&format!("`{name}`"), option, default)
        .map_err(|error| plan_datafusion_err!("[INVALID_OPTIONS] {error}"))
}

/// The refusal of an option's value.
pub(super) fn refuse<T>(name: &str, option: &str, value: &str, reason: &str) -> Result<T> {
    plan_err!("[INVALID_OPTIONS] {}", Options::invalid(&format!("`{name}`"), option, value, reason))
}
