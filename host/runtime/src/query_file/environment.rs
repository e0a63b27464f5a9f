//! What the environment says about a query: variables that begin with `MILLSTREAM_`.

use super::{Origin, QueryFileError};
use crate::settings;
use std::path::PathBuf;

const PREFIX: &str = "MILLSTREAM_";
const SETTING: &str = "MILLSTREAM_SETTING_";
/// Variables that the process reads, not the query.
const OF_THE_PROCESS: [&str; 5] =
    ["MILLSTREAM_LOG", "MILLSTREAM_RUN_DIR", "MILLSTREAM_TARGET_DIR", "MILLSTREAM_TOOLCHAINS", "MILLSTREAM_SDK"];

/// What the tests of this project read: servers of the user's own.
const OF_TESTS: &str = "MILLSTREAM_TEST_";

/// The variables, sorted out.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) host_file: Option<PathBuf>,
    /// Value and origin.
    pub(super) trigger: Option<(String, Origin)>,
    /// Value and origin.
    pub(super) checkpoint: Option<(String, Origin)>,
    /// Setting, value, variable.
    pub(super) settings: Vec<(&'static str, String, String)>,
}

impl Environment {
    /// Sorts variables out; those of others are not looked at.
    pub(super) fn read(variables: &[(String, String)]) -> Result<Self, QueryFileError> {
        let mut environment = Self::default();
        for (name, value) in variables.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
            let origin = || Origin::Environment(name.clone());
            match name.as_str() {
                "MILLSTREAM_HOST_FILE" => environment.host_file = Some(PathBuf::from(value)),
                "MILLSTREAM_TRIGGER" => environment.trigger = Some((value.clone(), origin())),
                "MILLSTREAM_CHECKPOINT" => environment.checkpoint = Some((value.clone(), origin())),
                name if name.starts_with(SETTING) => {
                    environment.settings.push((setting(name)?, value.clone(), name.to_owned()));
                }
                name if OF_THE_PROCESS.contains(&name) || name.starts_with(OF_TESTS) => {}
                _ => return Err(unknown(name)),
            }
        }
        Ok(environment)
    }
}

/// The variable of a setting: capitals, `_` for each dot.
fn variable(setting: &str) -> String {
    format!("{SETTING}{}", setting.to_ascii_uppercase().replace('.', "_"))
}

fn setting(name: &str) -> Result<&'static str, QueryFileError> {
    settings::NAMES.into_iter().find(|setting| variable(setting) == name).ok_or_else(|| QueryFileError::Environment {
        name: name.to_owned(),
        reason: "names no setting".into(),
        hint: Some(format!("there are {}", settings::NAMES.map(variable).join(", "))),
    })
}

fn unknown(name: &str) -> QueryFileError {
    let known = "MILLSTREAM_CHECKPOINT, MILLSTREAM_TRIGGER, MILLSTREAM_SETTING_<NAME>, MILLSTREAM_HOST_FILE";
    QueryFileError::Environment {
        name: name.to_owned(),
        reason: "is unknown".into(),
        hint: Some(format!("unset it; there are {known}, {}", OF_THE_PROCESS.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_common::Hint;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, QueryFileError> {
        let variables: Vec<_> = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Environment::read(&variables)
    }

    #[test]
    fn a_setting_is_found_by_its_name_in_capitals() {
        let environment = read(&[
            ("MILLSTREAM_SETTING_SPARK_SQL_STREAMING_MINBATCHESTORETAIN", "7"),
            ("MILLSTREAM_LOG", "debug"),
            ("HOME", "/"),
        ]);
        let settings = environment.unwrap().settings;
        assert_eq!((settings[0].0, settings[0].1.as_str()), ("spark.sql.streaming.minBatchesToRetain", "7"));
    }

    #[test]
    fn unknown_names_of_the_family_are_refused_with_those_that_exist() {
        let error = read(&[("MILLSTREAM_TRIGER", "once")]).unwrap_err();
        assert_eq!(error.to_string(), "environment variable `MILLSTREAM_TRIGER` is unknown");
        assert!(error.hint().unwrap().contains("MILLSTREAM_TRIGGER"));
        let error = read(&[("MILLSTREAM_SETTING_NONSENSE", "1")]).unwrap_err();
        assert!(error.hint().unwrap().contains("MILLSTREAM_SETTING_SPARK_SQL_SHUFFLE_PARTITIONS"));
    }
}
