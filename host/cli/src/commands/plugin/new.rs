//! `millstream plugin new`: a plugin's folder from the template.

use super::templates;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use millstream_runtime::inspect::{Language, find_sdk};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where a plugin has its copy of the SDK.
const COPY: &str = "millstream";

/// Makes the folder of a new plugin with two functions and their tests. It builds as it is: `millstream plugin test` runs
/// the tests without any WebAssembly, `millstream plugin build` makes the component.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream plugin new words --lang python\n  \
    millstream plugin new words --lang rust --dir plugins/words --sdk ~/millstream/guest-sdk/rust")]
pub(crate) struct NewArguments {
    /// The plugin's name: lower-case letters, digits and `-`.
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
    /// The language.
    #[arg(long, value_name = "LANGUAGE", default_value = "rust", value_parser = language())]
    lang: Language,
    /// The folder to make; a folder of the plugin's name when left out.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The folder of the language's millstream-sdk; found beside this program's checkout when left out [env: MILLSTREAM_SDK].
    /// Plugins in C, C++, Zig and Go get a copy and need none.
    #[arg(long, value_name = "PATH")]
    sdk: Option<PathBuf>,
}

fn language() -> impl TypedValueParser<Value = Language> {
    PossibleValuesParser::new(Language::ALL.map(Language::name))
        .try_map(|name| Language::of_name(&name).ok_or("there is no such language"))
}

/// Does it.
pub(crate) fn run(arguments: &NewArguments) -> Result<(), Failure> {
    let folder = arguments.dir.clone().unwrap_or_else(|| PathBuf::from(&arguments.name));
    // Languages whose plugins get a copy of the SDK need none from anywhere else.
    let sdk = match arguments.lang.copies_sdk() {
        true => PathBuf::from(COPY),
        false => find_sdk(arguments.lang, arguments.sdk.as_deref())?,
    };
    let files = files(arguments.lang, &arguments.name, &sdk);
    refuse_occupied(&folder)?;
    for (path, text) in templates::copied_sdk(arguments.lang) {
        write(&folder.join(path), text)?;
    }
    for (path, text) in files {
        write(&folder.join(path), &text)?;
    }
    let shown = folder.display();
    output::print(&format!(
        "made {shown}\n  millstream plugin test {shown}   runs its tests\n  millstream plugin build {shown}  makes the \
         component\n"
    ))
}

fn files(language: Language, name: &str, sdk: &Path) -> Vec<(&'static str, String)> {
    // A string of JSON is a string of TOML.
    let sdk = serde_json::Value::from(sdk.to_string_lossy()).to_string();
    let path = sdk.trim_matches('"');
    let fill = |text: &str| text.replace("{name}", name).replace("{sdk}", &sdk).replace("{path}", path);
    templates::files(language).iter().map(|(path, text)| (*path, fill(text))).collect()
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
        for language in Language::ALL.into_iter().filter(|language| !language.copies_sdk()) {
            let files = files(language, "words", Path::new("/a \"b\"\\c"));
            let manifest = files.iter().find(|(path, _)| path.ends_with(".toml")).map(|(_, text)| text);
            let manifest = manifest.expect("every plugin has a manifest");
            assert!(manifest.contains(r#""/a \"b\"\\c""#), "{language}: {manifest}");
            assert!(manifest.contains("name = \"words\""), "{language}: {manifest}");
        }
    }
}
