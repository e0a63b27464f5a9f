//! What is let in, and what is turned away with which words.

use std::sync::Arc;
use std::time::{Duration, Instant};

use millstream_common::Digest;
use millstream_wasm::{FunctionKind, Volatility, WasmError};

use crate::components::{bytes, host, load};

#[test]
fn a_plugin_says_what_it_offers() {
    let component = load("text_plugin").unwrap();
    let functions: Vec<String> = component.functions().iter().map(ToString::to_string).collect();
    assert_eq!(
        functions,
        [
            "table words(line Utf8 not null) -> (value Utf8 not null)",
            "table tokens(line Utf8 not null) -> (value Utf8 not null)",
        ]
    );
    assert_eq!(component.digest(), Digest::of(&bytes("text_plugin")));
    assert_eq!(component.wit_version(), "0.2.0");
    assert_eq!(component.size_bytes(), bytes("text_plugin").len());
    assert!(
        component.imports().iter().all(|import| import.starts_with("millstream:plugin/")),
        "{:?}",
        component.imports()
    );
    assert!(component.exports().contains(&"millstream:plugin/table@0.2.0".to_owned()));

    let heat = load("heat_plugin").unwrap();
    let (number, heat) = heat.function("heat").unwrap();
    assert_eq!((number, heat.kind, heat.volatility), (0, FunctionKind::Scalar, Volatility::Immutable));
    let hostile = load("hostile").unwrap();
    assert_eq!(hostile.function("rows_seen").unwrap().1.volatility, Volatility::Volatile);
}

/// The interfaces of 0.1.0 are those of 0.2.0 under other names, so renaming them makes a component of that time.
#[test]
fn a_component_of_the_version_before_goes_on_working() {
    let (now, then) = (b"@0.2.0", b"@0.1.0");
    let mut old = bytes("heat_plugin");
    for at in 0..old.len() - now.len() {
        if &old[at..at + now.len()] == now {
            old[at..at + now.len()].copy_from_slice(then);
        }
    }
    let component = host().load("heat", &old).unwrap();
    assert_eq!(component.wit_version(), "0.1.0");
    assert!(component.imports().iter().chain(component.exports()).all(|name| name.ends_with("@0.1.0")));
    assert_eq!(component.functions(), load("heat_plugin").unwrap().functions());
}

#[test]
fn the_same_bytes_are_compiled_once() {
    let first = load("text_plugin").unwrap();
    let again = host().load("other name", &bytes("text_plugin")).unwrap();
    assert!(Arc::ptr_eq(&first, &again));
}

#[test]
fn other_files_are_no_components() {
    let reason = |bytes: &[u8]| match host().load("p", bytes).unwrap_err() {
        WasmError::NotAComponent { reason, .. } => reason,
        other => panic!("{other}"),
    };
    assert!(reason(b"#!/bin/sh").contains("does not start like WebAssembly"));
    assert!(reason(b"").contains("does not start like WebAssembly"));
    assert!(reason(b"\0asm\x01\0\0\0").contains("core module"));
    let mut torn = bytes("text_plugin");
    torn.truncate(torn.len() / 2);
    assert!(!reason(&torn).is_empty());
}

#[test]
fn foreign_worlds_are_named() {
    let reason = |bytes: &[u8]| match host().load("p", bytes).unwrap_err() {
        WasmError::ForeignWorld { reason, .. } => reason,
        other => panic!("{other}"),
    };
    let empty = reason(b"\0asm\x0d\0\x01\0");
    assert!(empty.contains("exports nothing") && empty.contains("millstream:plugin/describe"), "{empty}");
    let greedy = reason(&bytes("foreign_import"));
    assert!(greedy.contains("imports `foreign:place/files@1.0.0`"), "{greedy}");
}

#[test]
fn a_lie_in_the_description_is_refused() {
    let error = load("bad_description").unwrap_err();
    assert!(matches!(&error, WasmError::BadDescription { reason, .. } if reason.contains("`vu`")), "{error}");
}

#[test]
fn a_description_that_never_comes_ends_at_the_deadline() {
    let start = Instant::now();
    let error = load("spin_in_describe").unwrap_err();
    assert!(matches!(&error, WasmError::Deadline { function, .. } if function == "describe"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(10));
}
