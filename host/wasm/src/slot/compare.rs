//! Structure of two components: what would a running plan notice?

use arrow::datatypes::FieldRef;

use crate::component::Component;
use crate::signature::FunctionSignature;

/// Every difference that forbids a swap, one sentence each.
pub(super) fn differences(old: &Component, new: &Component) -> Vec<String> {
    let mut differences = Vec::new();
    for before in old.functions() {
        match new.function(&before.name) {
            None => differences.push(format!("function `{}` is gone", before.name)),
            Some((_, after)) => compare(before, after, &mut differences),
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
