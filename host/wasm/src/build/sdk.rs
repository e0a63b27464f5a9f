//! Where the SDK of a language is.
//!
//! As named; as `MILLSTREAM_SDK` says; in the checkout that the program is in; in the checkout it was built from.

use std::path::{Path, PathBuf};

use super::{BuildError, Language};

/// The variable that names the SDK.
const VARIABLE: &str = "MILLSTREAM_SDK";

/// Finds the SDK of a language. What is named may be the SDK itself or the folder `guest-sdk` that it is in.
///
/// # Errors
///
/// [`BuildError::WrongSdk`] when what is named is none; [`BuildError::NoSdk`] when nothing is named and none is found.
pub fn find_sdk(language: Language, named: Option<&Path>) -> Result<PathBuf, BuildError> {
    let is_sdk = |folder: PathBuf| language.is_sdk(&folder).then(|| folder.canonicalize().ok()).flatten();
    let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let below = language.sdk_folder();
    if let Some(folder) = named.map(Path::to_owned) {
        return is_sdk(folder.clone())
            .or_else(|| is_sdk(folder.join(below)))
            .ok_or(BuildError::WrongSdk { language, folder });
    }
    // The variable may name another language's SDK: what stands beside it is meant too.
    if let Some(folder) = variable {
        let places = [folder.clone(), folder.join(below), folder.join("..").join(below)];
        return places.into_iter().find_map(is_sdk).ok_or(BuildError::WrongSdk { language, folder });
    }
    let program = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let sdk = Path::new("guest-sdk").join(below);
    let beside = program.iter().flat_map(|program| program.ancestors()).find_map(|folder| is_sdk(folder.join(&sdk)));
    let built_from = || is_sdk(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&sdk));
    beside.or_else(built_from).ok_or(BuildError::NoSdk { language })
}
