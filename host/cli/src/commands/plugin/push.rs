//! `millstream plugin push`: a component into a registry.

use crate::commands::registry_arguments::RegistryArguments;
use crate::failure::Failure;
use crate::output;
use crate::session;
use clap::Args;
use millstream_common::Digest;
use millstream_runtime::inspect::component;
use millstream_runtime::package::{NewPackage, PackageReference};
use millstream_runtime::query_file::{QueryFileError, read_component};
use std::path::PathBuf;

/// Puts a component into a registry of containers, in the layout that such registries have for WebAssembly components. The
/// component must be one that queries can use. The same component always makes the same package. Who you are, `docker
/// login` says.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream plugin push words.wasm oci://registry.example.com/acme/words:1.2\n  \
    millstream plugin push words.wasm oci://localhost:5000/acme/words:1.2")]
pub(crate) struct PushArguments {
    /// The component.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where to: a reference with a tag.
    #[arg(value_name = "REFERENCE")]
    reference: String,
    #[command(flatten)]
    registry: RegistryArguments,
}

/// Does it.
pub(crate) fn run(arguments: &PushArguments) -> Result<(), Failure> {
    let reference = arguments.reference.parse::<PackageReference>().map_err(QueryFileError::from)?;
    let bytes = read_component(&arguments.file)?;
    // Nothing is pushed that no query could use.
    let report = component(&session::of_user(), &arguments.file.display().to_string(), &bytes)?;
    let package = NewPackage { component: &bytes, imports: &report.imports, exports: &report.exports };
    let registry = arguments.registry.registry(&arguments.registry.places()?, &reference);
    let manifest = registry.push(&reference, package).map_err(QueryFileError::from)?;
    output::print(&format!(
        "pushed     {reference}\nmanifest   sha256:{manifest}\ncomponent  sha256:{}\n",
        Digest::of(&bytes)
    ))
}
