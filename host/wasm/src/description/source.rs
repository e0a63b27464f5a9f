//! Sources as a component told of them → checked signatures.

use super::fields::{fields, shown};
use crate::signature::{SourceOption, SourceSignature};
use crate::wire::source as told;
use std::collections::HashSet;

/// Options that one source may know.
const OPTIONS: usize = 256;
/// Names of options that are the host's.
const RESERVED: [&str; 3] = ["plugin", "source", "maxRowsPerTrigger"];
/// Bytes that the name of an option may have.
const NAME: usize = 128;

/// Checks one source.
pub(super) fn signature(source: told::SourceType) -> Result<SourceSignature, String> {
    let columns = fields(&source.columns).map_err(|reason| format!("columns: {reason}"))?;
    if columns.is_empty() {
        return Err("it has no columns".into());
    }
    if source.options.len() > OPTIONS {
        return Err(format!("it has {} options, more than {OPTIONS}", source.options.len()));
    }
    let mut names = HashSet::new();
    let mut options = Vec::with_capacity(source.options.len());
    for told::SourceOption { name, required } in source.options {
        let fits = !name.is_empty() && name.len() <= NAME && name.chars().all(|c| !c.is_control() && c != ' ');
        if !fits {
            return Err(format!("option `{}` is empty, too long or has blanks", shown(&name)));
        }
        if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
            return Err(format!("option `{name}` has a name that the host takes for itself"));
        }
        if !names.insert(name.to_ascii_lowercase()) {
            return Err(format!("option `{name}` is there twice"));
        }
        options.push(SourceOption { name, required });
    }
    Ok(SourceSignature { name: source.name, columns, options })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Field;

    fn source(columns: &[(&str, &str)], options: &[&str]) -> told::SourceType {
        let field = |(name, format): &(&str, &str)| Field {
            name: (*name).into(),
            format: (*format).into(),
            nullable: false,
            children: 0,
        };
        let option = |name: &&str| told::SourceOption { name: (*name).into(), required: *name == "url" };
        told::SourceType {
            name: "pages".into(),
            columns: columns.iter().map(field).collect(),
            options: options.iter().map(option).collect(),
        }
    }

    #[test]
    fn a_source_is_its_columns_which_a_query_sees_as_nullable_and_its_options() {
        let signature = signature(source(&[("at", "tsu:UTC"), ("line", "u")], &["url", "pageSize"])).unwrap();
        assert_eq!(
            signature.to_string(),
            "source pages -> (at Timestamp(µs, \"UTC\") not null, line Utf8 not null), options url pageSize?"
        );
        assert!(signature.schema().fields().iter().all(|field| field.is_nullable()));
        assert!(signature.option("URL").is_some_and(|option| option.required));
    }

    #[test]
    fn lies_are_refused_with_their_place() {
        let reason = |columns: &[(&str, &str)], options: &[&str]| signature(source(columns, options)).unwrap_err();
        assert!(reason(&[], &[]).contains("no columns"));
        assert!(reason(&[("n", "vu")], &[]).contains("columns: `n`"));
        assert!(reason(&[("n", "l"), ("n", "l")], &[]).contains("there twice"));
        assert!(reason(&[("n", "l")], &["a b"]).contains("has blanks"));
        assert!(reason(&[("n", "l")], &["maxrowspertrigger"]).contains("takes for itself"));
        assert!(reason(&[("n", "l")], &["Url", "url"]).contains("option `url` is there twice"));
        assert!(reason(&[("n", "l")], &["x"; 300]).contains("more than 256"));
    }
}
