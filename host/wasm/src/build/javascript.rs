//! JavaScript and TypeScript: rolldown makes one script of the plugin and the SDK and removes types, componentize-qjs
//! makes a component of the script and the engine QuickJS.
//!
//! The script has run to its end while the component is made, and the memory after that is what each instance begins with.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{absolute, failed, write};
use super::interface::WORLD;
use super::job::Job;
use super::programs::{Tool, run, run_tests};
use super::{BuildError, Language};

const COMPONENTIZE: Tool = Tool {
    language: Language::JavaScript,
    program: "componentize-qjs",
    below: "javascript/node_modules/.bin",
    install: "`npm install --global componentize-qjs@0.4.5`",
};
const BUNDLE: Tool = Tool {
    language: Language::JavaScript,
    program: "rolldown",
    below: "javascript/node_modules/.bin",
    install: "`npm install --global rolldown@1.3.3`",
};
const NODE: Tool = Tool {
    language: Language::JavaScript,
    program: "node",
    below: "javascript/node_modules/.bin",
    install: "install Node.js 20 or later",
};
/// What the SDK exports.
const EXPORTS: [&str; 6] = ["scalar", "table", "aggregate", "processor", "source", "migration"];

/// Builds the component.
pub(super) fn build(job: &Job<'_>) -> Result<PathBuf, BuildError> {
    NODE.find()?;
    let componentize = COMPONENTIZE.find()?;
    let sdk = job.project.sdk()?;
    job.component(&[&sdk], "componentize-qjs", |work, component| {
        let wit = job.write_interface(work, &EXPORTS)?;
        let entry = work.join("entry.js");
        let exports =
            job.project.exports().map_or_else(|| EXPORTS.to_vec(), |names| names.iter().map(|n| &**n).collect());
        write(&entry, entry_text(&absolute(&job.project.entry())?, &exports).as_bytes())?;
        let script = work.join("plugin.js");
        bundle(job, &sdk, &[("plugin", &entry)], work)?;
        let mut command = Command::new(&componentize);
        command.arg("--wit").arg(&wit).args(["--world", WORLD, "--sync", "--stub-wasi"]);
        command.arg("--js").arg(&script).arg("--output").arg(component).current_dir(work);
        run(&mut command, job.project.folder()).map(drop)
    })
}

/// The script's first file: what the plugin exports is registered, what the interface wants is exported.
fn entry_text(plugin: &Path, exports: &[&str]) -> String {
    let plugin = serde_json::Value::from(plugin.to_string_lossy());
    format!(
        "import * as plugin from {plugin};\n\
         import {{ offer }} from \"millstream-sdk/component\";\n\
         offer(plugin);\n\
         export {{ describe, {} }} from \"millstream-sdk/component\";\n",
        exports.join(", ")
    )
}

/// Makes one script of each entry, in `folder`. What the host provides stays an import.
fn bundle(job: &Job<'_>, sdk: &Path, entries: &[(&str, &Path)], folder: &Path) -> Result<(), BuildError> {
    let rolldown = BUNDLE.find()?;
    let input: serde_json::Map<_, _> =
        entries.iter().map(|(name, file)| ((*name).to_owned(), file.to_string_lossy().into())).collect();
    let file = |name: &str| serde_json::Value::from(sdk.join(name).to_string_lossy());
    let config = format!(
        "export default {{\n  input: {},\n  external: [/^millstream:/, /^node:/],\n  tsconfig: false,\n  \
         resolve: {{ alias: {{ \"millstream-sdk/component\": {}, \"millstream-sdk\": {} }} }},\n  \
         output: {{ dir: {}, format: \"esm\", sourcemap: false }},\n}};\n",
        serde_json::Value::from(input),
        file("component.js"),
        file("index.js"),
        serde_json::Value::from(folder.to_string_lossy()),
    );
    let config_file = folder.join("rolldown.config.mjs");
    write(&config_file, config.as_bytes())?;
    let mut command = Command::new(rolldown);
    command.arg("--config").arg(&config_file).current_dir(job.project.folder());
    run(&mut command, job.project.folder()).map(drop).map_err(|error| error.said(without_frames))
}

/// What rolldown says, without where in rolldown it says it.
fn without_frames(said: &str) -> String {
    let lines = said.lines().filter(|line| !(line.trim_start().starts_with("at ") && line.contains("rolldown")));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Runs the plugin's tests: files named `*.test.js` or `*.test.ts`, with node's own test runner.
pub(super) fn test(job: &Job<'_>) -> Result<(), BuildError> {
    let node = NODE.find()?;
    let sdk = job.project.sdk()?;
    let folder = job.folder()?.join(format!("tests-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(failed(&folder))?;
    let done = tests_of(job.project.folder()).and_then(|tests| {
        if tests.is_empty() {
            return Err(BuildError::Manifest {
                path: job.project.folder().to_owned(),
                reason: "it has no tests: no file is named `*.test.js` or `*.test.ts`".into(),
            });
        }
        let entries: Vec<_> = tests.iter().map(|(name, file)| (name.as_str(), file.as_path())).collect();
        bundle(job, &sdk, &entries, &folder)?;
        // Scripts of the bundle are modules.
        write(&folder.join("package.json"), b"{ \"type\": \"module\" }\n")?;
        let scripts = tests.iter().map(|(name, _)| folder.join(format!("{name}.js")));
        run_tests(Command::new(node).arg("--test").args(scripts), job.project.folder())
    });
    // What is left behind is in the target folder.
    let _ = std::fs::remove_dir_all(&folder);
    done
}

/// The tests of a folder, by names without the ending.
fn tests_of(folder: &Path) -> Result<Vec<(String, PathBuf)>, BuildError> {
    let mut tests = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed(folder))? {
        let path = absolute(&entry.map_err(failed(folder))?.path())?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = name.strip_suffix(".js").or_else(|| name.strip_suffix(".ts")).filter(|stem| stem.ends_with(".test"));
        if let Some(stem) = stem {
            tests.push((stem.to_owned(), path));
        }
    }
    tests.sort();
    Ok(tests)
}
