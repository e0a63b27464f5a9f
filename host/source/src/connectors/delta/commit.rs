//! What a version of the table's log does.
//!
//! A commit is lines of JSON, one action each; only what a stream needs of them is read, all else is passed over. The
//! kernel has no call for one commit's added files in their order, and this much of the protocol is plain.

use super::config::DeltaConfig;
use delta_kernel::schema::StructType;
use millstream_client::delta::same_type;
use serde::Deserialize;
use std::collections::HashMap;

/// A data file that a version adds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AddedFile {
    pub(super) path: String,
    #[serde(default)]
    pub(super) partition_values: HashMap<String, Option<String>>,
    pub(super) size: u64,
    #[serde(default = "yes")]
    data_change: bool,
    deletion_vector: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemovedFile {
    #[serde(default = "yes")]
    data_change: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    schema_string: String,
    partition_columns: Option<Vec<String>>,
    configuration: Option<HashMap<String, serde_json::Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Protocol {
    #[serde(default)]
    min_reader_version: u32,
    reader_features: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Action {
    add: Option<AddedFile>,
    remove: Option<RemovedFile>,
    meta_data: Option<Metadata>,
    protocol: Option<Protocol>,
}

fn yes() -> bool {
    true
}

/// Why a stream cannot go on at a version.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hindrance {
    /// The log is damaged.
    Damaged(String),
    /// The version takes rows away, or changes the table in a way that the stream cannot follow.
    Change(String),
}

/// The newest version of the protocol that readers must know.
const READER_VERSION: u32 = 3;
/// The features with which a version's files and their rows are what this module takes them for.
const READER_FEATURES: [&str; 11] = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
];

/// Why tables with mapped names of columns are no streams.
pub(super) const MAPPED: &str = "it maps the names of the table's columns, which is not read here; drop the feature \
                                 `columnMapping` from the table and start a new checkpoint behind that, or write to a \
                                 table without it";

/// The table as the stream has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) columns: &'a StructType,
    /// The partition columns that a version may have; any where it is older than what the stream knows of the table, for
    /// each file says which it has.
    pub(super) partition_columns: Option<&'a [String]>,
}

/// The files whose rows a stream gets of a version.
pub(super) fn added(text: &str, config: &DeltaConfig, known: Known<'_>) -> Result<Vec<AddedFile>, Hindrance> {
    let (mut files, mut removes) = (Vec::new(), false);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let action: Action = serde_json::from_str(line).map_err(|error| Hindrance::Damaged(error.to_string()))?;
        files.extend(action.add.filter(|file| file.data_change));
        removes |= action.remove.is_some_and(|file| file.data_change);
        if let Some(protocol) = action.protocol {
            check_protocol(&protocol)?;
        }
        if let Some(metadata) = action.meta_data {
            check_table(&metadata, known)?;
        }
    }
    if removes && config.skip_change_commits {
        return Ok(Vec::new());
    }
    if removes && !config.ignore_changes && files.is_empty() && !config.ignore_deletes {
        return Err(Hindrance::Change(
            "it deletes rows; set option `ignoreDeletes` to pass over deletes of whole partitions, or `skipChangeCommits`"
                .into(),
        ));
    }
    if removes && !config.ignore_changes && !files.is_empty() {
        return Err(Hindrance::Change(
            "it replaces files, by an update, a merge, a delete or an overwrite; set option `skipChangeCommits` to pass over \
             it, or `ignoreChanges` to read the new files whole, with rows that have come before"
                .into(),
        ));
    }
    if files.iter().any(|file| file.deletion_vector.is_some()) {
        return Err(Hindrance::Change(
            "it marks rows as deleted in files; set option `skipChangeCommits` to pass over it".into(),
        ));
    }
    Ok(files)
}

/// Whether versions of such a protocol can be read.
fn check_protocol(protocol: &Protocol) -> Result<(), Hindrance> {
    let mut features = protocol.reader_features.iter().flatten();
    let unknown = match features.find(|feature| !READER_FEATURES.contains(&feature.as_str())) {
        Some(feature) => format!("the feature `{feature}`"),
        None if protocol.min_reader_version > READER_VERSION => {
            format!("version {} of the protocol", protocol.min_reader_version)
        }
        None => return Ok(()),
    };
    Err(Hindrance::Change(format!(
        "from there on its readers must know {unknown}, which is not known here; drop it from the table and start a new \
         checkpoint, or write to a table without it"
    )))
}

/// Whether rows of a version of such a table fit the stream.
fn check_table(metadata: &Metadata, known: Known<'_>) -> Result<(), Hindrance> {
    check_columns(&metadata.schema_string, known.columns)?;
    let mode = metadata.configuration.as_ref().and_then(|all| all.get("delta.columnMapping.mode")?.as_str());
    if mode.is_some_and(|mode| !mode.eq_ignore_ascii_case("none")) {
        return Err(Hindrance::Change(MAPPED.into()));
    }
    let theirs = metadata.partition_columns.as_deref().unwrap_or_default();
    match known.partition_columns {
        Some(ours) if ours != theirs => Err(Hindrance::Change(format!(
            "it partitions the table by {}, and the stream has it by {}; start the query again, so that it takes the table \
             as it is now",
            names(theirs),
            names(ours)
        ))),
        _ => Ok(()),
    }
}

fn names(columns: &[String]) -> String {
    if columns.is_empty() { "no column".to_owned() } else { format!("`{}`", columns.join(", ")) }
}

/// Whether rows of a version with these columns fit a stream with those of `table`.
fn check_columns(schema: &str, table: &StructType) -> Result<(), Hindrance> {
    let schema: StructType = serde_json::from_str(schema).map_err(|error| Hindrance::Damaged(error.to_string()))?;
    for field in schema.fields() {
        let fits = table.field(field.name()).is_some_and(|ours| same_type(ours.data_type(), field.data_type()));
        if !fits {
            return Err(Hindrance::Change(format!(
                "its column `{}` of type {} is not one of the stream's; start the query again, so that it takes the table's \
                 present columns",
                field.name(),
                field.data_type()
            )));
        }
    }
    Ok(())
}
