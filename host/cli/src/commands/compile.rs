//! `millstream compile-component`: a component on standard input, its code on standard output. The program starts itself
//! so; people have no use for it.

use crate::failure::Failure;
use crate::output;
use millstream_common::Fault;

/// Does it.
pub(crate) fn run() -> Result<(), Failure> {
    millstream_runtime::compile_stdin().map_err(|reason| {
        output::note(&reason);
        Failure::said(Fault::Query)
    })
}
