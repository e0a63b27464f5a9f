//! The query file as text has it: names and types are right, nothing else is known.

use super::scalar::{DottedScalars, Scalar};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// `query.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawQuery {
    pub(super) name: Option<Spanned<String>>,
    pub(super) sql: Option<Spanned<String>>,
    pub(super) sql_file: Option<Spanned<String>>,
    pub(super) output_mode: Option<Spanned<String>>,
    pub(super) trigger: Option<Spanned<String>>,
    pub(super) checkpoint: Option<Spanned<String>>,
    pub(super) tenant: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) source: Vec<Spanned<RawSource>>,
    #[serde(default)]
    pub(super) table: Vec<Spanned<RawTable>>,
    #[serde(default)]
    pub(super) plugin: BTreeMap<String, Spanned<RawPlugin>>,
    pub(super) sink: Option<Spanned<RawSink>>,
    pub(super) late_rows: Option<Spanned<RawSink>>,
    #[serde(default)]
    pub(super) settings: DottedScalars,
    #[serde(default)]
    pub(super) uid: BTreeMap<String, Spanned<String>>,
}

/// Options of a connector. A dotted key is a name with dots.
pub(super) type RawOptions = DottedScalars;

/// One `[[source]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSource {
    pub(super) name: Option<Spanned<String>>,
    pub(super) format: Option<Spanned<String>>,
    pub(super) schema: Option<Spanned<String>>,
    pub(super) watermark: Option<Spanned<RawWatermark>>,
    pub(super) drop_duplicates: Option<Spanned<RawDropDuplicates>>,
    #[serde(default)]
    pub(super) options: RawOptions,
}

/// `watermark = { column = "ts", delay = "10 minutes" }`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWatermark {
    pub(super) column: Option<Spanned<String>>,
    pub(super) delay: Option<Spanned<String>>,
}

/// `drop_duplicates = { columns = ["id"], within_watermark = true }`; without columns, all of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDropDuplicates {
    #[serde(default)]
    pub(super) columns: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) within_watermark: bool,
}

/// One `[[table]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTable {
    pub(super) name: Option<Spanned<String>>,
    pub(super) format: Option<Spanned<String>>,
    pub(super) schema: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) options: RawOptions,
}

/// One `[plugin.NAME]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPlugin {
    pub(super) component: Option<Spanned<String>>,
    pub(super) on_fault: Option<Spanned<String>>,
    pub(super) memory: Option<Spanned<Scalar>>,
    pub(super) deadline: Option<Spanned<Scalar>>,
    pub(super) result: Option<Spanned<Scalar>>,
    #[serde(default)]
    pub(super) config: RawOptions,
}

/// `[sink]` and `[late_rows]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSink {
    pub(super) format: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) options: RawOptions,
}
