//! Components that tests and benchmarks run; each example is one.
//!
//! The library is what some share: the plain exports of the world, for those that must misbehave below the SDK, and the
//! forms of the state of the editions of `ledger`.

pub mod ledger;

pub mod web_rows;

/// The plain exports and imports of `function-plugin`.
#[cfg(target_arch = "wasm32")]
#[allow(missing_docs, unsafe_code, reason = "generated")]
pub mod raw {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "function-plugin",
        pub_export_macro: true,
        default_bindings_module: "test_components::raw",
    });

    pub use exports::millstream::plugin::{describe, scalar, table};
    pub use millstream::plugin::types::{Batch, Error, Field, RowError};

    /// A field without children.
    pub fn field(name: &str, format: &str, nullable: bool) -> Field {
        Field { name: name.into(), format: format.into(), nullable, children: 0 }
    }

    /// An immutable function of one argument `x`, a 64-bit integer, with one result.
    pub fn function(name: &str, kind: describe::Kind, result: Field) -> describe::Function {
        describe::Function {
            name: name.into(),
            kind,
            arguments: vec![field("x", "l", true)],
            results: vec![result],
            volatility: describe::Volatility::Immutable,
            nulls: describe::Nulls::Passed,
        }
    }
}
