//! The attribute macros of `millstream-sdk`; its documents say how they are used.
//!
//! Each macro leaves the author's code as it is and adds a description and a loop over rows, both made of calls
//! into `millstream_sdk::private`.

mod aggregate;
mod function;
mod lifetimes;
mod migration;
mod plugin;
mod row;

use proc_macro::TokenStream;

/// Makes a function callable from SQL as a scalar function: one value per row.
///
/// Options: `name = "…"` (default: the function's name), `volatile` (calls are not moved, shared or left out).
#[proc_macro_attribute]
pub fn scalar_function(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(function::Kind::Scalar, options.into(), item.into()).into()
}

/// Makes a function callable from SQL as a table function: any number of rows per row.
///
/// The function returns `impl Iterator<Item = T>`, `Vec<T>` or `Option<T>`, or a `Result` of one of these. `T` may be a
/// `Result` too. Options: `name = "…"`, `volatile`, and `column = "…"`, the column's name (default `value`) where `T` is
/// not a struct that derives `Row`.
#[proc_macro_attribute]
pub fn table_function(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(function::Kind::Table, options.into(), item.into()).into()
}

/// Makes the state of a group an aggregate function: on an `impl` of it with `accumulate(&mut self, …)`,
/// `merge(&mut self, other: Self)`, `evaluate(&self) -> …`, and if rows can be taken back `retract(&mut self, …)`.
///
/// The state derives `Row` and `Default`; its fields are the columns that the host keeps, its default is the state of no
/// rows. Options: `name = "…"` (default: the type's name in snake case), and `state_id = "…"`, the author's name for what
/// the columns mean: write another when they come to mean something else.
#[proc_macro_attribute]
pub fn aggregate_function(options: TokenStream, item: TokenStream) -> TokenStream {
    aggregate::expand(options.into(), item.into()).into()
}

/// Makes a function a step from one meaning of a state to another: it takes the old state and returns the new one, or a
/// `Result` of it; both derive `Row` and `Default`.
///
/// Options: `state = "…"`, the name of the aggregate function (or `processor.variable`), and `from_id = "…"`,
/// `to_id = "…"`, the `state_id`s of both sides (default: none).
#[proc_macro_attribute]
pub fn migration(options: TokenStream, item: TokenStream) -> TokenStream {
    migration::expand(options.into(), item.into()).into()
}

/// Lists what a plugin has, once, in the root of the crate: `plugin!(words, text::tokens);`,
/// `plugin!(heat; aggregates: TopK, GeometricMean);`. Kinds stand between semicolons: functions, which need no word before
/// them, `aggregates`, `processors`, `sources`, and `migrations`.
#[proc_macro]
pub fn plugin(functions: TokenStream) -> TokenStream {
    plugin::expand(functions.into()).into()
}

/// Makes a struct usable as a result, an element of a list, an argument, or the row of a table function.
#[proc_macro_derive(Row)]
pub fn row(item: TokenStream) -> TokenStream {
    row::expand(item.into()).into()
}
