//! From source to component, and what is said when it does not work.

use millstream_wasm::build::{self, BuildError, Part, Profile, Toolchain};

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

#[test]
#[ignore = "compiles the standard library, and needs the packages rustc-web and rust-web-src"]
fn the_distributions_compiler_builds_plugins_too() {
    let toolchain = Toolchain::of_distribution().unwrap();
    let folder = workspace().join("plugins/text");
    let target = build::guest_target_dir().join("distribution");
    let built = build::build_with(&toolchain, &folder, Part::Library, Profile::Release, &target, &|_| {}).unwrap();
    let component = host().load("text", &std::fs::read(&built[0]).unwrap()).unwrap();
    assert_eq!(component.functions().len(), 2);
}
