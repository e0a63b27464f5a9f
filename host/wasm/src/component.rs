//! A component: compiled, looked at from outside, and asked for its functions.
//!
//! `load` is the gate: what passes is a component, exports `describe` with `scalar` or `table` as this host knows
//! them, imports nothing that is not granted, and has described itself sanely. Slots make instances of it.
//!
//! Rule of its life: immutable; identified by the digest of its bytes.
//!
//! It holds no instance and no limits.

use std::collections::BTreeSet;

use millstream_common::Digest;
use wasmtime::component::{ComponentExportIndex, InstancePre};

use crate::account::Held;
use crate::call::Instance;
use crate::description;
use crate::engine::PluginHost;
use crate::error::WasmError;
use crate::limits::{HostState, PluginLimits};
use crate::permissions::Permission;
use crate::signature::FunctionSignature;
use crate::{wasi, wire};

/// A loaded component.
pub struct Component {
    digest: Digest,
    size_bytes: usize,
    wit_version: &'static str,
    functions: Vec<FunctionSignature>,
    imports: Vec<String>,
    exports: Vec<String>,
    pub(crate) entry: Entry,
}

/// How instances of a component are made and entered.
pub(crate) struct Entry {
    pub(crate) pre: InstancePre<HostState>,
    pub(crate) describe: ComponentExportIndex,
    pub(crate) scalar: Option<ComponentExportIndex>,
    pub(crate) table: Option<ComponentExportIndex>,
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Component")
            .field("digest", &self.digest)
            .field("functions", &self.functions)
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
        &self.functions
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
        self.wit_version
    }

    /// The size of its file.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// The number and signature of a function.
    pub fn function(&self, name: &str) -> Option<(u32, &FunctionSignature)> {
        self.functions.iter().zip(0..).find(|(function, _)| function.name == name).map(|(function, i)| (i, function))
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
    let index = |interface: &str, function: &str| {
        let interface = compiled.get_export_index(None, interface)?;
        compiled.get_export_index(Some(&interface), function)
    };
    check_imports(&imports).map_err(foreign)?;
    let newest = wire::VERSIONS[0];
    let described =
        |version: &&'static str| Some((*version, index(&wire::interface(wire::DESCRIBE, version), "describe")?));
    let (wit_version, describe) = wire::VERSIONS
        .iter()
        .find_map(described)
        .ok_or_else(|| foreign(missing(&wire::interface(wire::DESCRIBE, newest), &exports)))?;
    let call = |name: &str| index(&wire::interface(name, wit_version), "call");
    let (scalar, table) = (call(wire::SCALAR), call(wire::TABLE));
    if scalar.is_none() && table.is_none() {
        let [scalar, table] = [wire::SCALAR, wire::TABLE].map(|name| wire::interface(name, wit_version));
        return Err(foreign(missing(&format!("{scalar}` or `{table}"), &exports)));
    }
    let pre = host.linker(&imports)?.instantiate_pre(&compiled).map_err(|e| foreign(format!("{e:#}")))?;

    let entry = Entry { pre, describe, scalar, table };
    let mut instance = Instance::new(engine, &entry, plugin, &PluginLimits::default(), Held::default())?;
    instance.check_types().map_err(foreign)?;
    let functions = instance.describe().map_err(|failure| failure.into_error(plugin, "describe"))?;
    let functions = description::signatures(functions, entry.scalar.is_some(), entry.table.is_some())
        .map_err(|reason| WasmError::BadDescription { plugin: plugin.to_owned(), reason })?;
    Ok(Component { digest, size_bytes: bytes.len(), wit_version, functions, imports, exports, entry })
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

fn missing(wanted: &str, exports: &[String]) -> String {
    let exports = if exports.is_empty() { "nothing".into() } else { format!("`{}`", exports.join("`, `")) };
    format!("it exports {exports}, not `{wanted}`")
}
