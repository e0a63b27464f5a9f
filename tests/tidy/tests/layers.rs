//! Who may import whom: `ARCHITECTURE.md` draws it, the manifests obey it.

use std::process::Command;
use tidy::{Violations, root};

/// The crates of the host by layer; a crate imports from lower layers only.
const LAYERS: [(&str, usize); 15] = [
    ("millstream-common", 0),
    ("millstream-store", 0),
    ("millstream-wasm", 1),
    ("millstream-package", 1),
    ("millstream-client", 1),
    ("millstream-state", 1),
    ("millstream-checkpoint", 1),
    ("millstream-source", 2),
    ("millstream-operators", 2),
    ("millstream-sink", 2),
    ("millstream-plan", 3),
    ("millstream-runtime", 4),
    ("millstream-dstream", 5),
    ("millstream-server", 5),
    ("millstream-cli", 6),
];

fn layer(package: &str) -> Option<usize> {
    LAYERS.iter().find(|(name, _)| *name == package).map(|(_, layer)| *layer)
}

/// A package of the workspace.
struct Package {
    name: String,
    /// Its folder from the top.
    folder: String,
    /// The packages of this repository that it imports, for any purpose.
    imports: Vec<String>,
}

fn packages() -> Vec<Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let top = metadata["workspace_root"].as_str().expect("a workspace has a root").to_owned();
    let package = |value: &serde_json::Value| {
        let manifest = value["manifest_path"].as_str().expect("a package has a manifest");
        let folder = manifest.trim_start_matches(&top).trim_matches('/').trim_end_matches("/Cargo.toml").to_owned();
        let imports = value["dependencies"].as_array().into_iter().flatten();
        let imports = imports.filter(|dependency| dependency["path"].is_string());
        let imports = imports.filter_map(|dependency| dependency["name"].as_str()).map(str::to_owned).collect();
        Package { name: value["name"].as_str().unwrap_or_default().to_owned(), folder, imports }
    };
    metadata["packages"].as_array().into_iter().flatten().map(package).collect()
}

#[test]
fn a_crate_of_the_host_imports_only_from_lower_layers() {
    let mut violations = Violations::default();
    for package in packages().iter().filter(|package| package.folder.starts_with("host/")) {
        let Some(own) = layer(&package.name) else {
            violations.add(&package.folder, "has no layer: give it one in tests/tidy/tests/layers.rs");
            continue;
        };
        if package.folder != format!("host/{}", package.name.trim_start_matches("millstream-")) {
            violations.add(&package.folder, format!("is called `{}`: name folder and package alike", package.name));
        }
        for import in &package.imports {
            match layer(import) {
                Some(other) if other < own => {}
                Some(_) => violations.add(&package.name, format!("must not import {import}")),
                None => {
                    violations.add(&package.name, format!("must not import {import}, which is no crate of the host"))
                }
            }
        }
    }
    violations.expect_none(
        "Move the shared item down a layer, or pass it in as a value or trait; see \"Who may import whom\" in ARCHITECTURE.md.",
    );
}

#[test]
fn guests_import_no_crate_of_the_host() {
    let mut violations = Violations::default();
    let packages = packages();
    let of_host =
        |name: &str| packages.iter().any(|package| package.name == name && package.folder.starts_with("host/"));
    let is_guest = |package: &&Package| {
        ["guest-sdk/", "plugins/", "examples/"].iter().any(|folder| package.folder.starts_with(folder))
    };
    for package in packages.iter().filter(is_guest) {
        for import in package.imports.iter().filter(|import| of_host(import)) {
            violations.add(&package.name, format!("must not import {import}"));
        }
    }
    violations.expect_none("Guests and host meet only in wit/ and in tests/; take what you need from guest-sdk.");
}
