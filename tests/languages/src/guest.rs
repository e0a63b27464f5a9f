//! One language's plugin: built, loaded, called.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::{Context, Result};
use arrow::array::ArrayRef;
use millstream_wasm::build::{Profile, Project, build_plugin, guest_target_dir};
use millstream_wasm::{Component, FaultPolicy, PluginHost, PluginLimits, PluginSlot, ScalarOutcome, TableOutcome};

/// Memory of a call: interpreters need some for themselves.
const MEMORY: u64 = 128 << 20;
/// Time of a call: the machine may be busy, and interpreters are slow.
const DEADLINE: Duration = Duration::from_secs(20);

/// The plugin of one language.
#[derive(Debug)]
pub struct Guest {
    /// The language: the name of its folder.
    pub name: String,
    component: Arc<Component>,
}

/// The engine that all guests share.
fn host() -> Result<Arc<PluginHost>> {
    static HOST: LazyLock<Result<Arc<PluginHost>, String>> =
        LazyLock::new(|| PluginHost::new().map_err(|error| error.to_string()));
    HOST.as_ref().map(Arc::clone).map_err(|error| anyhow::anyhow!("{error}"))
}

/// All guests, Rust first: what it answers is the measure.
///
/// # Errors
///
/// When one does not build or load: the language, and the words of its compiler.
pub fn guests() -> Result<&'static [Guest]> {
    static GUESTS: LazyLock<Result<Vec<Guest>, String>> = LazyLock::new(|| all().map_err(|error| format!("{error:#}")));
    GUESTS.as_deref().map_err(|error| anyhow::anyhow!("{error}"))
}

fn all() -> Result<Vec<Guest>> {
    let folder = folder();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    // `MILLSTREAM_LANGUAGES=rust,python` leaves out the others while one works on one.
    if let Ok(wanted) = std::env::var("MILLSTREAM_LANGUAGES") {
        names.retain(|name| name == "rust" || wanted.split(',').any(|wanted| wanted == name));
    }
    names.sort_by_key(|name| (name != "rust", name.clone()));
    let guest = |name: &String| Guest::new(name, &folder.join(name)).with_context(|| format!("the plugin in {name}"));
    names.iter().map(guest).collect()
}

/// Where the guests are.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guests")
}

impl Guest {
    fn new(name: &str, folder: &Path) -> Result<Self> {
        let project = Project::open(folder)?;
        let file = build_plugin(&project, Profile::Release, &guest_target_dir(), &|_| {})?;
        let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
        let component = host()?.load(name, &bytes).map_err(|error| anyhow::anyhow!("{}", chain(&error)))?;
        Ok(Self { name: name.to_owned(), component })
    }

    /// The component.
    pub fn component(&self) -> &Arc<Component> {
        &self.component
    }

    /// The component's bytes, as they are built.
    ///
    /// # Errors
    ///
    /// As [`guests`].
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let project = Project::open(&folder().join(&self.name))?;
        Ok(std::fs::read(build_plugin(&project, Profile::Release, &guest_target_dir(), &|_| {})?)?)
    }

    /// A place for it in a query, with a policy and other limits than the ordinary ones.
    ///
    /// # Errors
    ///
    /// When there is no engine.
    pub fn slot(&self, policy: FaultPolicy, change: impl FnOnce(&mut PluginLimits)) -> Result<Arc<PluginSlot>> {
        let mut limits = PluginLimits { memory_bytes: MEMORY, deadline: DEADLINE, ..PluginLimits::default() };
        change(&mut limits);
        Ok(PluginSlot::new(&self.name, host()?, Arc::clone(&self.component), limits, policy))
    }

    /// Calls a scalar function; rows at fault are skipped.
    ///
    /// # Errors
    ///
    /// Faults that are not a row's.
    pub fn scalar(&self, function: &str, arguments: &[ArrayRef]) -> Result<ScalarOutcome> {
        self.scalar_of(function, arguments.first().map_or(0, |column| column.len()), arguments)
    }

    /// The same for a number of rows that no argument tells.
    ///
    /// # Errors
    ///
    /// As [`Self::scalar`].
    pub fn scalar_of(&self, function: &str, rows: usize, arguments: &[ArrayRef]) -> Result<ScalarOutcome> {
        let slot = self.slot(FaultPolicy::Skip, |_| {})?;
        slot.call_scalar(function, rows, arguments).with_context(|| format!("{function} in {}", self.name))
    }

    /// Calls a table function; rows at fault are skipped.
    ///
    /// # Errors
    ///
    /// As [`Self::scalar`].
    pub fn table(&self, function: &str, arguments: &[ArrayRef]) -> Result<TableOutcome> {
        let slot = self.slot(FaultPolicy::Skip, |_| {})?;
        let rows = arguments.first().map_or(0, |column| column.len());
        slot.call_table(function, rows, arguments).with_context(|| format!("{function} in {}", self.name))
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text
}
