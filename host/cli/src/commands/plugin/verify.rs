//! `millstream plugin verify`: who has signed a component?

use crate::commands::registry_arguments::RegistryArguments;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_common::Digest;
use millstream_runtime::package::{PackageReference, TrustedKeys};
use millstream_runtime::packages::Packages;
use millstream_runtime::query_file::QueryFileError;
use std::path::PathBuf;

/// Says whether a component is signed by one of the keys that are given, or that the host file demands: a file by
/// `FILE.sig` beside it, a package by its signatures in the registry. A good signature is kept, so that the component is
/// let in wherever it is met again, also out of a checkpoint.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream plugin verify words.wasm --key cosign.pub\n  \
    millstream plugin verify oci://registry.example.com/acme/words:1.2 --host-file host.toml\n\n\
    Exit codes: 0 signed, 1 not signed by these keys.")]
pub(crate) struct VerifyArguments {
    /// The component's file, or a reference to its package.
    #[arg(value_name = "FILE|REFERENCE")]
    component: String,
    /// A public key; may be given several times. Those of the host file when left out.
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    #[command(flatten)]
    registry: RegistryArguments,
}

/// Does it.
pub(crate) fn run(arguments: &VerifyArguments) -> Result<(), Failure> {
    let places = arguments.registry.places()?;
    let keys = match arguments.key.as_slice() {
        [] => places.packages.keys().cloned(),
        files => Some(TrustedKeys::read(files.iter().map(PathBuf::as_path)).map_err(QueryFileError::from)?),
    };
    let Some(keys) = keys else {
        let hint = "name one with `--key`, or a host file with [signatures]";
        return Err(Failure::query("no key is given to compare signatures with", Some(hint)));
    };
    let registry = match arguments.component.parse::<PackageReference>() {
        Ok(reference) => arguments.registry.registry(&places, &reference),
        Err(_) => places.packages.registry().clone(),
    };
    let packages = Packages::new(registry, places.packages.store().cloned(), Some(keys));
    let bytes = packages.component(&arguments.component)?;
    output::print(&format!("signed     {}\ncomponent  sha256:{}\n", arguments.component, Digest::of(&bytes)))
}
