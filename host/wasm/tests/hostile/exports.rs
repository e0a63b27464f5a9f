//! Plugins of every kind that spin in whatever is called: loading them ends.

use std::fmt::Write;
use std::path::Path;

use millstream_wasm::WasmError;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{Resolve, WorldItem};

use crate::harness::{call, honest, host};

/// A component of a world of `wit/`, whose exports spin; `describes` are those that say at once that there is nothing.
fn spinning(world: &str, describes: &[&str]) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../wit");
    let (package, _) = resolve.push_dir(folder).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut text = String::from(
        r#"(module (memory (export "memory") 1)
             (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))"#,
    );
    for (key, item) in &resolve.worlds[world].exports {
        let WorldItem::Interface { id, .. } = item else { continue };
        for (name, function) in &resolve.interfaces[*id].functions {
            let interface = resolve.name_world_key(key);
            let signature = resolve.wasm_signature(AbiVariant::GuestExport, function);
            let types = |types: &[WasmType]| types.iter().map(|of| core_type(*of)).collect::<Vec<_>>().join(" ");
            let (params, results) = (types(&signature.params), types(&signature.results));
            let is_told = name == "describe" && describes.iter().any(|told| interface.contains(told));
            let body = if is_told { "(i32.const 8)" } else { "(loop $again (br $again)) (unreachable)" };
            // Writing to a string cannot fail.
            let _ = write!(text, r#"(func (export "{interface}#{name}") (param {params}) (result {results}) {body})"#);
        }
    }
    text.push(')');
    let text = text.replace("(param )", "").replace("(result )", "");
    let mut module = wat::parse_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false).unwrap();
    let mut encoder = ComponentEncoder::default();
    encoder.validate(true).module(&module).and_then(|encoder| encoder.encode()).unwrap()
}

fn core_type(of: WasmType) -> &'static str {
    match of {
        WasmType::I64 | WasmType::PointerOrI64 => "i64",
        WasmType::F32 => "f32",
        WasmType::F64 => "f64",
        WasmType::I32 | WasmType::Pointer | WasmType::Length => "i32",
    }
}

#[test]
fn a_plugin_of_any_kind_that_never_describes_itself_is_left_at_the_deadline() {
    for world in
        ["scalar-plugin", "table-plugin", "function-plugin", "aggregate-plugin", "processor-plugin", "source-plugin"]
    {
        let error = host().load("spinning", &spinning(world, &[])).unwrap_err();
        assert!(matches!(error, WasmError::Deadline { .. }), "{world}: {error}");
    }
    // Those that describe no functions are asked for the rest.
    for world in ["aggregate-plugin", "processor-plugin", "source-plugin"] {
        let error = host().load("spinning", &spinning(world, &["/describe@"])).unwrap_err();
        assert!(matches!(error, WasmError::Deadline { .. }), "{world}: {error}");
    }
    assert_eq!(call(&honest(), &[1, 2, 3]).unwrap(), [1, 2, 3]);
}
