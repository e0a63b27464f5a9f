//! Python: componentize-py makes one component of the interpreter, the SDK and the plugin.
//!
//! The plugin is imported while the component is made, and the memory after that is what each instance begins with. So
//! a module that is imported inside of a function is not there at run time: imports belong at the top of a file.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{copy_sources, write};
use super::interface::WORLD;
use super::job::Job;
use super::programs::{Tool, run, run_tests};
use super::{BuildError, Language};

const COMPONENTIZE: Tool = Tool {
    language: Language::Python,
    program: "componentize-py",
    below: "python/bin",
    install: "`pip install componentize-py==0.25.1`",
};
const PYTHON: Tool = Tool {
    language: Language::Python,
    program: "python3",
    below: "python/bin",
    install: "install Python 3.10 or later",
};
/// What the SDK exports.
const EXPORTS: [&str; 6] = ["scalar", "table", "aggregate", "processor", "source", "migration"];
/// The module that componentize-py takes for the plugin: the SDK's exports, filled by the plugin's registrations.
const MODULE: &str = "millstream_component";

/// Builds the component.
pub(super) fn build(job: &Job<'_>) -> Result<PathBuf, BuildError> {
    let tool = COMPONENTIZE.find()?;
    let sdk = job.project.sdk()?;
    job.component(&[&sdk], "componentize-py", |work, component| {
        let wit = job.write_interface(work, &EXPORTS)?;
        let exports =
            job.project.exports().map_or_else(|| EXPORTS.to_vec(), |names| names.iter().map(|n| &**n).collect());
        write(&work.join(format!("{MODULE}.py")), module(&stem(&job.project.entry()), &exports).as_bytes())?;
        let mut componentize = Command::new(tool);
        componentize.arg("-d").arg(&wit).args(["-w", WORLD, "-q", "componentize"]);
        // The interpreter writes compiled modules beside their sources.
        let (plugin, library) = (work.join("plugin"), work.join("sdk"));
        copy_sources(job.project.folder(), &plugin)?;
        copy_sources(&sdk.join("millstream"), &library.join("millstream"))?;
        // The plugin's own modules are found beside its entry.
        let entry = job.project.entry();
        let beside = entry.parent().and_then(|folder| folder.strip_prefix(job.project.folder()).ok());
        for folder in [work, &beside.map_or_else(|| plugin.clone(), |below| plugin.join(below)), &library] {
            componentize.arg("-p").arg(folder);
        }
        componentize.arg("--stub-wasi").arg("-o").arg(component).arg(MODULE);
        // A virtual environment of whoever called us is none of the plugin's business.
        componentize.env_remove("VIRTUAL_ENV").env("PYTHONDONTWRITEBYTECODE", "1").env("RUST_BACKTRACE", "0");
        run(&mut componentize, job.project.folder()).map(drop).map_err(|error| error.said(traceback))
    })
}

/// The plugin's own traceback, where the tool puts it into one of its own. Folders are numbered inside of the component.
fn traceback(said: &str) -> String {
    let own = said.split_once("AssertionError: ").map_or(said, |(_, own)| own);
    let own = own.split_once("\n\nCaused by:").map_or(own, |(own, _)| own);
    own.trim().replace("\"/1/", "\"").replace("\"/2/", "\"")
}

/// The text of the module: importing the plugin registers its functions.
fn module(plugin: &str, exports: &[&str]) -> String {
    let class = |name: &&str| name[..1].to_uppercase() + &name[1..];
    let classes: Vec<_> = exports.iter().map(class).collect();
    format!("import {plugin}\nfrom millstream.component import Describe, {}\n", classes.join(", "))
}

fn stem(entry: &Path) -> String {
    entry.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Runs the plugin's tests: files named `test_*.py`.
pub(super) fn test(job: &Job<'_>) -> Result<(), BuildError> {
    let python = PYTHON.find()?;
    let sdk = job.project.sdk()?;
    let mut tests = Command::new(python);
    tests.args(["-m", "unittest", "discover", "--pattern", "test_*.py"]).current_dir(job.project.folder());
    tests.env("PYTHONPATH", sdk).env("PYTHONDONTWRITEBYTECODE", "1");
    run_tests(&mut tests, job.project.folder())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_plugin_that_cannot_be_imported_its_own_traceback_is_told() {
        let said = "Traceback (most recent call last):\n  File \"…/bin/componentize-py\", line 8\nAssertionError: Traceback \
                    (most recent call last):\n  File \"/1/plugin.py\", line 3\nTypeError: no type\n\n\nCaused by:\n    \
                    TypeError: no type";
        let own = "Traceback (most recent call last):\n  File \"plugin.py\", line 3\nTypeError: no type";
        assert_eq!(traceback(said), own);
        assert_eq!(traceback("no such file"), "no such file");
    }

    #[test]
    fn the_component_has_the_exports_that_are_asked_for() {
        let text = "import words\nfrom millstream.component import Describe, Scalar, Table\n";
        assert_eq!(module("words", &["scalar", "table"]), text);
    }
}
