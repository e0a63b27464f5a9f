//! From source to component, and what is said when it does not work.

use millstream_wasm::build::{self, BuildError, Profile};

use crate::components::{host, workspace};

#[test]
fn a_plugin_is_built_and_loads() {
    let steps = std::sync::Mutex::new(Vec::new());
    let progress = |line: &str| steps.lock().unwrap().push(line.to_owned());
    let folder = workspace().join("plugins/heat");
    let file = build::build_rust_plugin(&folder, Profile::Release, &build::guest_target_dir(), &progress).unwrap();
    let component = host().load("heat", &std::fs::read(file).unwrap()).unwrap();
    assert_eq!(component.functions().len(), 1);
    let steps = steps.into_inner().unwrap();
    assert!(steps.iter().any(|step| step.starts_with("compiling")), "{steps:?}");
}

#[test]
fn a_crate_without_a_plugin_is_told_what_to_add() {
    let folder = workspace().join("guest-sdk/rust");
    let error = build::build_rust_plugin(&folder, Profile::Release, &build::guest_target_dir(), &|_| {}).unwrap_err();
    assert!(matches!(error, BuildError::NoCdylib { .. }), "{error}");
}

#[test]
fn a_folder_without_a_crate_fails_with_cargos_words() {
    let folder = workspace().join("wit");
    let error = build::build_rust_plugin(&folder, Profile::Release, &build::guest_target_dir(), &|_| {}).unwrap_err();
    assert!(matches!(&error, BuildError::Compile { output, .. } if output.contains("Cargo.toml")), "{error}");
}
