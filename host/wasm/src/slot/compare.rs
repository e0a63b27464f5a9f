//! Structure of two components: what would a running query notice?
//!
//! Pure, and the one place that says so: a swap, a restart and a check before either ask here.

use arrow::datatypes::FieldRef;
use std::collections::BTreeSet;

use crate::component::Component;
use crate::signature::FunctionSignature;
use crate::wire;

/// One thing in which a component differs from the one whose place it is to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The function that it is about, if it is about one.
    pub function: Option<String>,
    /// What differs, in a sentence without a stop.
    pub what: String,
    /// Whether a running query cannot go on with it. Otherwise a person must want it.
    pub is_fatal: bool,
}

/// Every difference that a query notices which calls the functions in `used`; every function counts when that is not
/// known. New functions are no difference, and neither is what happens to functions that nobody calls.
pub fn differences(old: &Component, new: &Component, used: Option<&BTreeSet<String>>) -> Vec<Difference> {
    let mut differences = Vec::new();
    let is_used = |function: &&FunctionSignature| used.is_none_or(|used| used.contains(&function.name));
    for before in old.functions().iter().filter(is_used) {
        let mut found = Vec::new();
        match new.function(&before.name) {
            None => found.push(format!("function `{}` is gone", before.name)),
            Some((_, after)) => compare(before, after, &mut found),
        }
        let fatal = |what| Difference { function: Some(before.name.clone()), what, is_fatal: true };
        differences.extend(found.into_iter().map(fatal));
    }
    for import in new.imports() {
        // What needs no grant is no permission.
        let is_free = matches!(wire::known(import), Some(wire::LOG | wire::TYPES));
        if !is_free && !old.imports().contains(import) {
            let what = format!("it asks for a new permission: it imports `{import}`");
            differences.push(Difference { function: None, what, is_fatal: false });
        }
    }
    differences
}

fn compare(before: &FunctionSignature, after: &FunctionSignature, differences: &mut Vec<String>) {
    let name = &before.name;
    if before.kind != after.kind {
        differences.push(format!("function `{name}` was `{before}` and is `{after}`"));
        return;
    }
    columns(name, "argument", &before.arguments, &after.arguments, differences);
    columns(name, "result", &before.results, &after.results, differences);
    for (old, new) in before.results.iter().zip(&after.results) {
        if !old.is_nullable() && new.is_nullable() {
            differences.push(format!("result `{}` of `{name}` was never null and may be null", old.name()));
        }
    }
    if before.volatility != after.volatility {
        let (old, new) = (before.volatility, after.volatility);
        differences.push(format!("function `{name}` was {old:?} and is {new:?}").to_lowercase());
    }
}

fn columns(function: &str, what: &str, before: &[FieldRef], after: &[FieldRef], differences: &mut Vec<String>) {
    if before.len() != after.len() {
        differences.push(format!("function `{function}` had {} {what}s and has {}", before.len(), after.len()));
        return;
    }
    for (i, (old, new)) in before.iter().zip(after).enumerate() {
        if old.name() != new.name() {
            let place = i + 1;
            differences.push(format!("{what} {place} of `{function}` was `{}` and is `{}`", old.name(), new.name()));
        }
        if old.data_type() != new.data_type() {
            let (old_type, new_type) = (old.data_type(), new.data_type());
            differences.push(format!("{what} `{}` of `{function}` was {old_type} and is {new_type}", old.name()));
        }
    }
}
