//! A core module that knows the canonical ABI by itself → a component.
//!
//! SDKs that are written by hand carry no description of their world; the names of what the module exports and imports
//! say it. What it asks of the first preview of WASI is answered by an adapter in the component, on top of the second
//! preview, of which the host grants next to nothing.

use std::path::Path;

use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

use super::BuildError;
use super::files::{failed, write};
use super::interface::{EXPORTS, IMPORTS, WORLD, write_interface};

/// The module whose imports are WASI's first preview.
const WASI: &str = "wasi_snapshot_preview1";

/// The names that say a module's world.
#[derive(Debug, Default, PartialEq, Eq)]
struct World {
    exports: Vec<&'static str>,
    imports: Vec<&'static str>,
    wasi: bool,
}

/// Where the adapter's own memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AdapterMemory {
    /// It grows the memory: the module's allocator leaves alone what others took.
    Grown,
    /// The module gives it, for good: its runtime takes all memory for its own.
    Given,
}

/// Wraps the core module in a file as a component. `work` is a folder for what is needed on the way.
pub(super) fn wrap(module: &Path, work: &Path, component: &Path, memory: AdapterMemory) -> Result<(), BuildError> {
    let bytes = std::fs::read(module).map_err(failed(module))?;
    let wrong = |reason: String| BuildError::Componentize { module: module.to_owned(), reason };
    let world = world(&bytes).map_err(|error| wrong(error.to_string()))?;
    if world.exports.is_empty() {
        return Err(wrong("it exports no functions of SQL, no aggregates, no processors and no sinks".into()));
    }
    let wit = work.join("wit");
    write_interface(&wit, &world.exports, &world.imports)?;
    let encoded = encode(bytes, &wit, world.wasi.then_some(memory)).map_err(|error| wrong(format!("{error:#}")))?;
    write(component, &encoded)
}

fn world(module: &[u8]) -> wasmparser::Result<World> {
    let mut world = World::default();
    let is = |name: &str, interface: &str| {
        let rest = name.strip_prefix("millstream:plugin/").and_then(|rest| rest.strip_prefix(interface));
        rest.is_some_and(|rest| rest.starts_with('@'))
    };
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ExportSection(section) => {
                let names =
                    section.into_iter().map(|export| Ok(export?.name)).collect::<wasmparser::Result<Vec<_>>>()?;
                world.exports.extend(EXPORTS.into_iter().filter(|known| names.iter().any(|name| is(name, known))));
            }
            Payload::ImportSection(section) => {
                let imports = section.into_imports().map(|import| Ok(import?.module));
                let names = imports.collect::<wasmparser::Result<Vec<_>>>()?;
                world.imports.extend(IMPORTS.into_iter().filter(|known| names.iter().any(|name| is(name, known))));
                world.wasi = names.contains(&WASI);
            }
            _ => {}
        }
    }
    Ok(world)
}

fn encode(
    mut module: Vec<u8>,
    wit: &Path,
    wasi: Option<AdapterMemory>,
) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve.push_dir(wit)?;
    let world = resolve.select_world(&[package], Some(WORLD))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)?;
    let mut encoder = ComponentEncoder::default();
    encoder.validate(true).module(&module)?;
    if let Some(memory) = wasi {
        encoder.realloc_via_memory_grow(memory == AdapterMemory::Grown);
        encoder.adapter(WASI, wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?;
    }
    Ok(encoder.encode()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_without_names_of_ours_has_an_empty_world() {
        assert_eq!(world(b"\0asm\x01\0\0\0").unwrap(), World::default());
        assert!(world(b"\0asm\x01\0\0\0\x07").is_err());
    }
}
