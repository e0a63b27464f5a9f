//! The plugin interface: a changed interface has a new version.

use sha2::{Digest, Sha256};
use tidy::{TextFile, files, root};

const VERSIONS: &str = "tests/tidy/wit-versions.txt";

fn interface() -> Vec<TextFile> {
    let mut files: Vec<TextFile> =
        files().into_iter().filter(|file| file.path.starts_with("wit/") && file.path.ends_with(".wit")).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Wording of comments and blanks is no change of the interface.
fn digest(files: &[TextFile]) -> String {
    let mut hash = Sha256::new();
    for file in files {
        hash.update(file.path.as_bytes());
        for line in file.text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
            hash.update([b'\n']);
            hash.update(line.as_bytes());
        }
        hash.update([0]);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_changed_interface_has_a_new_version() {
    let files = interface();
    let line =
        files.iter().flat_map(|file| file.text.lines()).find(|line| line.starts_with("package millstream:plugin@"));
    let version =
        line.and_then(|line| line.split('@').nth(1)).expect("the package has a version").trim_end_matches(';');
    let known = std::fs::read_to_string(root().join(VERSIONS)).expect("the list of versions can be read");
    let known = known.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    let known: Vec<(&str, &str)> = known.collect();
    let now = digest(&files);
    match known.iter().find(|(known, _)| *known == version) {
        Some((_, digest)) => assert!(
            *digest == now,
            "\nwit/ changed, and its version is still {version}.\n\
             Components out there were built against {version}: raise the version in wit/, keep an adapter for {version} \
             in host/wasm, and add the line `NEW-VERSION {now}` to {VERSIONS}.\n",
        ),
        None => panic!("\nwit/ has the version {version}. Add the line `{version} {now}` to {VERSIONS}.\n"),
    }
}
