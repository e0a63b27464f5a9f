//! `millstream plugin new`: a plugin's folder from the template.

use crate::failure::Failure;
use crate::output;
use clap::{Args, ValueEnum};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const MANIFEST: &str = include_str!("../../../templates/rust/Cargo.toml.template");
const LIBRARY: &str = include_str!("../../../templates/rust/lib.rs.template");
const IGNORED: &str = include_str!("../../../templates/rust/gitignore.template");
/// Where the SDK is in a checkout.
const SDK: &str = "guest-sdk/rust";
/// The variable that names the SDK.
const VARIABLE: &str = "MILLSTREAM_SDK";

/// Makes the folder of a new plugin with two functions and their tests. It builds as it is: `cargo test` runs the tests
/// without any WebAssembly, `millstream plugin build` makes the component.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream plugin new words --lang rust\n  \
    millstream plugin new words --lang rust --dir plugins/words --sdk ~/millstream/guest-sdk/rust")]
pub(crate) struct NewArguments {
    /// The plugin's name: lower-case letters, digits and `-`.
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
    /// The language.
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    lang: Language,
    /// The folder to make; a folder of the plugin's name when left out.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The folder of millstream-sdk; found beside this program's checkout when left out [env: MILLSTREAM_SDK].
    #[arg(long, value_name = "PATH")]
    sdk: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    Rust,
}

/// Does it.
pub(crate) fn run(arguments: &NewArguments) -> Result<(), Failure> {
    let folder = arguments.dir.clone().unwrap_or_else(|| PathBuf::from(&arguments.name));
    let files = match arguments.lang {
        Language::Rust => rust(&arguments.name, &sdk(arguments.sdk.as_deref())?),
    };
    refuse_occupied(&folder)?;
    for (path, text) in files {
        write(&folder.join(path), &text)?;
    }
    let shown = folder.display();
    output::print(&format!(
        "made {shown}\n  cd {shown} && cargo test      runs its tests\n  millstream plugin build {shown}  makes the component\n"
    ))
}

fn rust(name: &str, sdk: &Path) -> [(&'static str, String); 3] {
    // A string of JSON is a string of TOML.
    let sdk = serde_json::Value::from(sdk.to_string_lossy().into_owned()).to_string();
    [
        ("Cargo.toml", MANIFEST.replace("{name}", name).replace("{sdk}", &sdk)),
        ("src/lib.rs", LIBRARY.to_owned()),
        (".gitignore", IGNORED.to_owned()),
    ]
}

/// The SDK: as named, or in the checkout that this program is in or was built from.
fn sdk(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = named.map(Path::to_owned).or(variable) {
        return is_sdk(&path).ok_or_else(|| {
            Failure::query(
                format!("there is no millstream-sdk in `{}`", path.display()),
                Some("name the folder `guest-sdk/rust` of a checkout"),
            )
        });
    }
    let program = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let beside = program.iter().flat_map(|program| program.ancestors()).find_map(|folder| is_sdk(&folder.join(SDK)));
    let built_from = || is_sdk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(SDK));
    beside.or_else(built_from).ok_or_else(|| {
        Failure::query(
            "millstream-sdk is not found: this program stands in no checkout",
            Some("name the folder `guest-sdk/rust` of a checkout with `--sdk`"),
        )
    })
}

fn is_sdk(folder: &Path) -> Option<PathBuf> {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    let is_ours = manifest.contains("name = \"millstream-sdk\"");
    if is_ours { std::fs::canonicalize(folder).ok() } else { None }
}

fn refuse_occupied(folder: &Path) -> Result<(), Failure> {
    let occupied = match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    };
    if occupied {
        let message = format!("cannot make a plugin in `{}`: it is there already", folder.display());
        return Err(Failure::query(message, Some("choose another folder with `--dir`")));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|error| Failure::outside(format!("cannot write `{}`: {error}", path.display()), None))
}

fn name(text: &str) -> Result<String, String> {
    let fits = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && text.len() <= 64;
    if fits { Ok(text.to_owned()) } else { Err("use a lower-case letter, then letters, digits and `-`".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_crates() {
        assert!(name("words-2").is_ok());
        for text in ["", "Words", "2words", "../words", "wörter", "a_b"] {
            assert!(name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn paths_with_quotes_stay_one_string() {
        let [(_, manifest), ..] = rust("words", Path::new("/a \"b\"\\c"));
        assert!(manifest.contains(r#"path = "/a \"b\"\\c""#), "{manifest}");
        assert!(manifest.contains("name = \"words\""), "{manifest}");
    }
}
