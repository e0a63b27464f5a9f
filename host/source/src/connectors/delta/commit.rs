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
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Action {
    add: Option<AddedFile>,
    remove: Option<RemovedFile>,
    meta_data: Option<Metadata>,
}

fn yes() -> bool {
    true
}

/// Why a stream cannot go on at a version.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hindrance {
    /// The log is damaged.
    Damaged(String),
    /// The version takes rows away or changes columns.
    Change(String),
}

/// The files whose rows a stream gets of a version.
pub(super) fn added(text: &str, config: &DeltaConfig, table: &StructType) -> Result<Vec<AddedFile>, Hindrance> {
    let (mut files, mut removes) = (Vec::new(), false);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let action: Action = serde_json::from_str(line).map_err(|error| Hindrance::Damaged(error.to_string()))?;
        files.extend(action.add.filter(|file| file.data_change));
        removes |= action.remove.is_some_and(|file| file.data_change);
        if let Some(metadata) = action.meta_data {
            check_columns(&metadata.schema_string, table)?;
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
