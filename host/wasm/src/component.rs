//! A component: compiled, looked at from outside, and asked for its functions.
//!
//! `load` is the gate: what passes is a component, exports `describe` and at least one kind of plugin as this host knows
//! them, imports nothing that is not granted, and has described itself sanely. Slots make instances of it.
//!
//! Rule of its life: immutable; identified by the digest of its bytes.
//!
//! It holds no instance and no limits.

use std::collections::BTreeSet;

use millstream_common::Digest;
use std::sync::Arc;
use wasmtime::component::InstancePre;

use crate::account::Held;
use crate::call::Instance;
use crate::description::{self, Description};
use crate::engine::PluginHost;
use crate::error::WasmError;
use crate::export::Exports;
use crate::limits::{HostState, PluginLimits};
use crate::permissions::Permission;
use crate::processor::ProcessorSignature;
use crate::signature::{AggregateSignature, FunctionSignature, MigrationStep, SourceSignature};
use crate::{wasi, wire};

/// A loaded component.
pub struct Component {
    digest: Digest,
    size_bytes: usize,
    description: Description,
    imports: Vec<String>,
    exports: Vec<String>,
    pub(crate) entry: Entry,
}

/// How instances of a component are made and entered.
pub(crate) struct Entry {
    pub(crate) pre: InstancePre<HostState>,
    pub(crate) exports: Arc<Exports>,
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Component")
            .field("digest", &self.digest)
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}

impl Component {
    /// The digest of its bytes: its identity.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Its functions, in the order of their numbers.
    pub fn functions(&self) -> &[FunctionSignature] {
        &self.description.functions
    }

    /// Its aggregate functions, in the order of their numbers.
    pub fn aggregates(&self) -> &[AggregateSignature] {
        &self.description.aggregates
    }

    /// Its processors, in the order of their numbers.
    pub fn processors(&self) -> &[ProcessorSignature] {
        &self.description.processors
    }

    /// Its sources, in the order of their numbers.
    pub fn sources(&self) -> &[SourceSignature] {
        &self.description.sources
    }

    /// The steps by which it migrates stored state, in the order of their numbers.
    pub fn migrations(&self) -> &[MigrationStep] {
        &self.description.migrations
    }

    /// The interfaces it imports: what it asks the host for.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// What must be granted to it by name, each once.
    pub fn asks_for(&self) -> BTreeSet<Permission> {
        self.imports.iter().filter_map(|import| Permission::of_import(import)).collect()
    }

    /// The names it exports, ours and others.
    pub fn exports(&self) -> &[String] {
        &self.exports
    }

    /// The version of `millstream:plugin` it was built against.
    pub fn wit_version(&self) -> &str {
        self.entry.exports.version()
    }

    /// The size of its file.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// The number and signature of a function.
    pub fn function(&self, name: &str) -> Option<(u32, &FunctionSignature)> {
        (0..).zip(self.functions()).find(|(_, function)| function.name == name)
    }

    /// The names of all that SQL can call; sources are none of it.
    pub fn names(&self) -> BTreeSet<String> {
        let functions = self.functions().iter().map(|function| &function.name);
        let aggregates = self.aggregates().iter().map(|function| &function.name);
        let processors = self.processors().iter().map(|processor| &processor.name);
        functions.chain(aggregates).chain(processors).cloned().collect()
    }

    /// The number and signature of an aggregate function.
    pub fn aggregate(&self, name: &str) -> Option<(u32, &AggregateSignature)> {
        (0..).zip(self.aggregates()).find(|(_, function)| function.name == name)
    }

    /// The number and signature of a source.
    pub fn source(&self, name: &str) -> Option<(u32, &SourceSignature)> {
        (0..).zip(self.sources()).find(|(_, source)| source.name == name)
    }

    /// The number and signature of a processor.
    pub fn processor(&self, name: &str) -> Option<(u32, &ProcessorSignature)> {
        (0..).zip(self.processors()).find(|(_, processor)| processor.name == name)
    }
}

/// Compiles `bytes` and lets them through the gate.
pub(crate) fn load(host: &PluginHost, plugin: &str, bytes: &[u8], digest: Digest) -> Result<Component, WasmError> {
    let no_component = |reason: String| WasmError::NotAComponent { plugin: plugin.to_owned(), reason };
    if let Some(reason) = not_a_component(bytes) {
        return Err(no_component(reason));
    }
    let engine = host.engine();
    let compiled = host.compiler().component(engine, plugin, bytes, digest)?;
    let component_type = compiled.component_type();
    let names = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let imports = names(component_type.imports(engine).map(|(name, _)| name).collect());
    let exports = names(component_type.exports(engine).map(|(name, _)| name).collect());

    let foreign = |reason: String| WasmError::ForeignWorld { plugin: plugin.to_owned(), reason };
    check_imports(&imports).map_err(foreign)?;
    let found = Exports::of(&compiled, &exports).map_err(foreign)?;
    let pre = host.linker(&imports)?.instantiate_pre(&compiled).map_err(|e| foreign(format!("{e:#}")))?;

    let entry = Entry { pre, exports: Arc::new(found) };
    let mut instance = Instance::new(engine, &entry, plugin, &PluginLimits::default(), Held::default())?;
    instance.check_types().map_err(foreign)?;
    let told = description::ask(&mut instance, &entry.exports);
    let told = told.map_err(|failure| failure.into_error(plugin, "describe"))?;
    let description = Description::check(told, &|interface| entry.exports.has(interface))
        .map_err(|reason| WasmError::BadDescription { plugin: plugin.to_owned(), reason })?;
    Ok(Component { digest, size_bytes: bytes.len(), description, imports, exports, entry })
}

fn not_a_component(bytes: &[u8]) -> Option<String> {
    if wasmparser::Parser::is_core_wasm(bytes) {
        return Some("it is a core module, not yet wrapped as a component".into());
    }
    if !wasmparser::Parser::is_component(bytes) {
        return Some("it does not start like WebAssembly".into());
    }
    None
}

/// Whether this host has what `import` names. What is granted by name is another question, of the slot.
fn is_known(import: &str) -> bool {
    let granted_to_all = matches!(wire::known(import), Some(wire::LOG | wire::TYPES)) || wasi::is_known(import);
    granted_to_all || Permission::of_import(import).is_some()
}

fn check_imports(imports: &[String]) -> Result<(), String> {
    let foreign: Vec<_> = imports.iter().filter(|name| !is_known(name)).map(|name| format!("`{name}`")).collect();
    if foreign.is_empty() {
        return Ok(());
    }
    let version = wire::VERSIONS[0];
    Err(format!(
        "it imports {}, and there is nothing but `log`, `config`, `clock`, `random` and `http` of `millstream:plugin@{version}` \
         and an empty world of WASI 0.2",
        foreign.join(", ")
    ))
}
