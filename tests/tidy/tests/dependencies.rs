//! What the workspace may depend on, and what code may ask the machine for.

use std::collections::BTreeMap;
use tidy::{Violations, files, root};

/// Two versions of one of these in one process do not understand each other's values.
const ONE_VERSION: [&str; 6] = ["arrow", "arrow-array", "parquet", "datafusion", "object_store", "wasmtime"];
/// They need a library of the system; rustls does not. `openssl-sys` is there for Kafka's client alone, which is C.
const NONE: [&str; 2] = ["openssl", "native-tls"];

#[test]
fn there_is_one_version_of_what_values_are_made_of() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock can be read");
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut name = "";
    for line in lock.lines() {
        let value = |key: &str| line.strip_prefix(key).map(|value| value.trim_matches('"'));
        name = value("name = ").unwrap_or(name);
        if let Some(version) = value("version = ") {
            versions.entry(name).or_default().push(version);
        }
    }
    let mut violations = Violations::default();
    for name in ONE_VERSION {
        let found = versions.get(name).map_or(&[] as &[&str], Vec::as_slice);
        if found.len() != 1 {
            violations.add("Cargo.lock", format!("has `{name}` in the versions {found:?}"));
        }
    }
    for name in NONE.iter().filter(|name| versions.contains_key(**name)) {
        violations.add("Cargo.lock", format!("has `{name}`"));
    }
    violations.expect_none(
        "Use the version that DataFusion uses (`cargo tree --invert NAME` tells who wants another), and rustls.",
    );
}

#[test]
fn only_the_clock_asks_what_time_it_is() {
    // The age of a file on this machine is no time of a query.
    const ALLOWED: [&str; 3] = ["host/common/src/clock.rs", "host/wasm/src/build/", "host/wasm/src/compile/"];
    let mut violations = Violations::default();
    let of_host = |path: &str| path.starts_with("host/") && !path.contains("/tests") && !path.contains("/benches/");
    for file in files().iter().filter(|file| file.is_rust_below(&["host/"]) && of_host(&file.path)) {
        if ALLOWED.iter().any(|allowed| file.path.starts_with(allowed)) {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            for call in ["SystemTime::now(", "Utc::now(", "Local::now("] {
                if line.contains(call) {
                    violations.add(format!("{}:{}", file.path, number + 1), line.trim());
                }
            }
        }
    }
    violations.expect_none("Take a `Clock` from whoever calls: then a test can set the time.");
}
