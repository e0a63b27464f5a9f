//! `millstream plugin pull`: a component out of a registry.

use crate::commands::registry_arguments::RegistryArguments;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_runtime::package::PackageReference;
use millstream_runtime::query_file::QueryFileError;
use std::path::{Path, PathBuf};

/// Gets a component out of a registry. Its bytes are compared with the digests on the way, and its signature is checked
/// where the host file demands one. It is also kept for queries that name it.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream plugin pull oci://registry.example.com/acme/words:1.2\n  \
    millstream plugin pull oci://localhost:5000/acme/words:1.2 --out words.wasm")]
pub(crate) struct PullArguments {
    /// The package.
    #[arg(value_name = "REFERENCE")]
    reference: String,
    /// The component's file; named like the package when left out.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryArguments,
}

/// Does it.
pub(crate) fn run(arguments: &PullArguments) -> Result<(), Failure> {
    let reference = arguments.reference.parse::<PackageReference>().map_err(QueryFileError::from)?;
    let (_, packages) = arguments.registry.packages(&arguments.reference)?;
    let fetched = packages.fetch(&reference, None, &|_| None).map_err(QueryFileError::from)?;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.wasm", reference.name())));
    write(&out, &fetched.bytes)?;
    let (manifest, component) = (fetched.pin.manifest, fetched.pin.component);
    output::print(&format!(
        "pulled     {reference}\nmanifest   sha256:{manifest}\ncomponent  sha256:{component}\nfile       {}\n",
        out.display()
    ))
}

/// Writes aside and renames: whoever reads the file sees the old component or the new one.
fn write(out: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let aside = out.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&aside, bytes)
        .and_then(|()| std::fs::rename(&aside, out))
        .map_err(|error| Failure::outside(format!("cannot write `{}`: {error}", out.display()), None))
}
