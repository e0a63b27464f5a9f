//! One build, or one run of a plugin's own tests.

use std::path::{Path, PathBuf};

use millstream_common::Digest;

use super::files::{absolute, failed, fingerprint, write};
use super::interface::{interface_texts, write_interface};
use super::{BuildError, Language, Project, c, go, javascript, python, rust, zig};

/// How a plugin is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Optimised.
    #[default]
    Release,
    /// Fast to compile, slow to run; of languages that know no difference the same.
    Dev,
}

/// The shared target folder for plugins: `$MILLSTREAM_TARGET_DIR/guest`, else the user's cache.
pub fn guest_target_dir() -> PathBuf {
    if let Some(folder) = std::env::var_os("MILLSTREAM_TARGET_DIR") {
        return PathBuf::from(folder).join("guest");
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("millstream/guest")
}

/// Builds a plugin and returns the component's file in the target folder. `progress` gets a line per step.
///
/// # Errors
///
/// [`BuildError`], with the compiler's words where it has some.
pub fn build_plugin(
    project: &Project,
    profile: Profile,
    target_dir: &Path,
    progress: &dyn Fn(&str),
) -> Result<PathBuf, BuildError> {
    let job = Job::new(project, profile, target_dir, progress)?;
    match project.language() {
        Language::Rust => rust::build_rust_plugin(project.folder(), profile, target_dir, progress),
        Language::Python => python::build(&job),
        Language::JavaScript | Language::TypeScript => javascript::build(&job),
        Language::C | Language::Cpp => c::build(&job),
        Language::Zig => zig::build(&job),
        Language::Go => go::build(&job),
    }
}

/// Runs a plugin's own tests, without WebAssembly. What they print goes where this program prints.
///
/// # Errors
///
/// [`BuildError::Tests`] when one fails; else as [`build_plugin`].
pub fn test_plugin(project: &Project, target_dir: &Path, progress: &dyn Fn(&str)) -> Result<(), BuildError> {
    let job = Job::new(project, Profile::Dev, target_dir, progress)?;
    match project.language() {
        Language::Rust => rust::test(project.folder()),
        Language::Python => python::test(&job),
        Language::JavaScript | Language::TypeScript => javascript::test(&job),
        Language::C | Language::Cpp => c::test(&job),
        Language::Zig => zig::test(&job),
        Language::Go => go::test(&job),
    }
}

/// What a language's file gets.
pub(super) struct Job<'a> {
    pub(super) project: &'a Project,
    pub(super) profile: Profile,
    /// The shared target folder, absolute.
    pub(super) target_dir: PathBuf,
    pub(super) progress: &'a dyn Fn(&str),
}

impl<'a> Job<'a> {
    fn new(
        project: &'a Project,
        profile: Profile,
        target_dir: &Path,
        progress: &'a dyn Fn(&str),
    ) -> Result<Self, BuildError> {
        Ok(Self { project, profile, target_dir: absolute(target_dir)?, progress })
    }

    /// The plugin's own folder in the target folder.
    pub(super) fn folder(&self) -> Result<PathBuf, BuildError> {
        let plugin = self.project.folder();
        let whole = plugin.canonicalize().map_err(failed(plugin))?;
        let place = Digest::of(whole.as_os_str().as_encoded_bytes()).short();
        let language = self.project.language();
        let folder = self.target_dir.join(format!("{language}/{}-{place}", self.project.name()));
        std::fs::create_dir_all(&folder).map_err(failed(&folder))?;
        Ok(folder)
    }

    /// The interface in a folder of its own, with the plugin's world: what it exports by its manifest, or `all`.
    pub(super) fn write_interface(&self, folder: &Path, all: &[&str]) -> Result<PathBuf, BuildError> {
        let wit = folder.join("wit");
        let exports = match self.project.exports() {
            Some(exports) => exports.iter().map(String::as_str).collect(),
            None => all.to_vec(),
        };
        let imports: Vec<_> = self.project.imports().iter().map(String::as_str).collect();
        write_interface(&wit, &exports, &imports)?;
        Ok(wit)
    }

    /// Makes the component with `make`, which writes it to the file that it gets; or, when nothing changed that it is made
    /// of, takes the one that is there. `tool` is what makes it, by name and version.
    pub(super) fn component(
        &self,
        sources: &[&Path],
        tool: &str,
        make: impl FnOnce(&Path, &Path) -> Result<(), BuildError>,
    ) -> Result<PathBuf, BuildError> {
        let folder = self.folder()?;
        let component = folder.join(self.project.file_name());
        let stamp = component.with_extension("made-of");
        let profile = format!("{:?}", self.profile);
        let mut all = vec![self.project.folder()];
        all.extend(sources);
        let mut texts = vec![tool, &profile, env!("CARGO_PKG_VERSION")];
        for text in interface_texts() {
            texts.push(text);
        }
        let made_of = fingerprint(&all, &texts)?.to_string();
        let is_same = std::fs::read_to_string(&stamp).is_ok_and(|before| before == made_of) && component.is_file();
        if is_same {
            (self.progress)(&format!("nothing changed in {}", self.project.folder().display()));
            return Ok(component);
        }
        (self.progress)(&format!("compiling {} ({tool})", self.project.folder().display()));
        // Two builds at a time do not meet.
        let work = folder.join(format!("build-{}", std::process::id()));
        std::fs::create_dir_all(&work).map_err(failed(&work))?;
        let aside = work.join("component.wasm");
        let made = make(&work, &aside).and_then(|()| {
            // Without a stamp nothing is taken for unchanged, whatever happens from here on.
            if stamp.exists() {
                std::fs::remove_file(&stamp).map_err(failed(&stamp))?;
            }
            std::fs::rename(&aside, &component).map_err(failed(&component))?;
            write(&stamp, made_of.as_bytes())
        });
        // What is left behind is found and removed by whoever cleans the target folder.
        let _ = std::fs::remove_dir_all(&work);
        made?;
        (self.progress)(&format!("component {}", component.display()));
        Ok(component)
    }
}
