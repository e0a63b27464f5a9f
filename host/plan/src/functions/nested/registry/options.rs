//! How a call says whether it means a schema or a registry, and its options.

use super::super::prepared::Asked;
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use millstream_client::schema_registry::REGISTRY_OPTIONS;
use millstream_common::Options;
use std::collections::BTreeMap;

/// What may stand before the names of a registry's options, in any case.
const PREFIXES: [&str; 2] = ["confluent.schema.registry.", "schema.registry."];

/// Options that functions with a subject have in common.
pub(in super::super) const SUBJECT_OPTIONS: [&str; 2] = ["mode", "version"];

/// What the constants of a call mean.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Meaning<'a> {
    /// The schema stands in the query.
    Schema(&'a str),
    /// The schemas are in a registry.
    Subject {
        /// Under this name.
        subject: &'a str,
        /// At this address.
        address: &'a str,
    },
}

/// The constants of `f(value, schema[, options])` or `f(value, subject, address[, options])`; the options are checked against
/// those that the one or the other knows.
pub(in super::super) fn call<'a>(
    asked: &'a Asked<'_>,
    with_schema: &[&str],
    with_subject: &[&str],
) -> Result<(Meaning<'a>, Options)> {
    let first = asked.text(0, "a constant schema or subject")?;
    let others =
        (1..asked.constants.len()).map(|place| asked.text(place, "a constant address, or a map of constant options"));
    let others = others.collect::<Result<Vec<_>>>()?;
    let (meaning, text) = match others.as_slice() {
        [] => (Meaning::Schema(first), None),
        [text] if is_map(text) => (Meaning::Schema(first), Some(*text)),
        [address] => (Meaning::Subject { subject: first, address }, None),
        [address, text, ..] => (Meaning::Subject { subject: first, address }, Some(*text)),
    };
    let options = text.map_or_else(|| Ok(Options::new()), |text| options(asked.name, text))?;
    let mut known = match meaning {
        Meaning::Schema(_) => with_schema.to_vec(),
        Meaning::Subject { .. } => [with_subject, &REGISTRY_OPTIONS].concat(),
    };
    // These are refused where they are read, with the reason.
    if matches!(meaning, Meaning::Subject { .. }) {
        known.extend(["basic.auth.user.info", "bearer.auth.token"]);
    }
    if let Err(error) = options.only(&format!("`{}`", asked.name), &known) {
        return plan_err!("[INVALID_OPTIONS] {error}");
    }
    Ok((meaning, options))
}

/// A map of constants, as the rewrite of syntax leaves it.
fn is_map(text: &str) -> bool {
    text.starts_with('{')
}

/// Options as [`rewrite_nested_syntax`](crate::functions::nested::rewrite_nested_syntax) writes them.
pub(in super::super) fn options(name: &str, text: &str) -> Result<Options> {
    let pairs: BTreeMap<String, String> = serde_json::from_str(text)
        .map_err(|_| plan_datafusion_err!("[INVALID_OPTIONS] `{name}` takes a map of constant texts, not `{text}`"))?;
    let mut options = Options::new();
    for (key, value) in pairs {
        let lower = key.to_ascii_lowercase();
        let prefix = PREFIXES.iter().find(|prefix| lower.starts_with(*prefix)).map_or(0, |prefix| prefix.len());
        options.set(&key[prefix..], value);
    }
    Ok(options)
}

/// Whether the mode is FAILFAST; `default` when none is set.
///
/// # Errors
/// When it is neither that nor PERMISSIVE.
pub(in super::super) fn flag(name: &str, options: &Options, default: bool) -> Result<bool> {
    match options.get("mode").map(str::to_ascii_uppercase).as_deref() {
        None => Ok(default),
        Some("FAILFAST") => Ok(true),
        Some("PERMISSIVE") => Ok(false),
        Some(other) => {
            plan_err!("[INVALID_OPTIONS] `{name}` does not know the mode {other}; it knows PERMISSIVE and FAILFAST")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::prepared::Constant;
    use super::*;
    use arrow::datatypes::DataType;

    fn meaning(constants: &[&str]) -> Result<String> {
        let constants: Vec<Constant> = constants.iter().map(|&text| Constant::Text(text.to_owned())).collect();
        let asked = Asked { name: "from_avro", value: &DataType::Binary, constants: &constants };
        call(&asked, &["mode"], &["mode", "version"])
            .map(|(meaning, options)| format!("{meaning:?} {:?}", options.iter().collect::<Vec<_>>()))
    }

    #[test]
    fn an_address_makes_the_first_constant_a_subject() {
        assert_eq!(meaning(&["long"]).unwrap(), r#"Schema("long") []"#);
        assert_eq!(meaning(&["long", r#"{"mode":"x"}"#]).unwrap(), r#"Schema("long") [("mode", "x")]"#);
        let subject = r#"Subject { subject: "s", address: "http://x" }"#;
        assert_eq!(meaning(&["s", "http://x"]).unwrap(), format!("{subject} []"));
        let options = r#"{"confluent.schema.registry.Max.Retries":"1","version":"2"}"#;
        let expected = format!(r#"{subject} [("Max.Retries", "1"), ("version", "2")]"#);
        assert_eq!(meaning(&["s", "http://x", options]).unwrap(), expected);
    }

    #[test]
    fn an_option_that_nobody_reads_is_refused() {
        for constants in [&["long", r#"{"version":"1"}"#][..], &["s", "http://x", r#"{"framing":"1"}"#]] {
            let error = meaning(constants).unwrap_err().to_string();
            assert!(error.contains("INVALID_OPTIONS") && error.contains("mode"), "{error}");
        }
    }
}
