//! `millstream plugin sign`: somebody vouches for a component.

use crate::commands::registry_arguments::RegistryArguments;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use millstream_runtime::package::{ImageSignature, PackageError, PackageReference, SigningKey, signature_file};
use millstream_runtime::query_file::{QueryFileError, read_component};
use std::path::{Path, PathBuf};

/// Signs a component with a private key (ECDSA over P-256, PKCS #8 without a password), in the forms of cosign: of a file
/// beside it as `FILE.sig`, of a package in the registry. A key that cosign protects by a password signs with cosign:
/// `cosign sign --tlog-upload=false --key cosign.key`, `cosign sign-blob`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem\n  \
    openssl pkey -in key.pem -pubout -out key.pub\n  \
    millstream plugin sign words.wasm --key key.pem\n  \
    millstream plugin sign oci://registry.example.com/acme/words:1.2 --key key.pem")]
pub(crate) struct SignArguments {
    /// The component's file, or a reference to its package.
    #[arg(value_name = "FILE|REFERENCE")]
    component: String,
    /// The private key.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    #[command(flatten)]
    registry: RegistryArguments,
}

/// Does it.
pub(crate) fn run(arguments: &SignArguments) -> Result<(), Failure> {
    let key = SigningKey::read(&arguments.key).map_err(QueryFileError::from)?;
    if PackageReference::is_meant(&arguments.component) {
        return sign_package(arguments, &key).map_err(QueryFileError::from)?;
    }
    let file = Path::new(&arguments.component);
    let signature = key.sign(&read_component(file)?).map_err(QueryFileError::from)?;
    let beside = signature_file(file);
    std::fs::write(&beside, signature)
        .map_err(|error| Failure::outside(format!("cannot write `{}`: {error}", beside.display()), None))?;
    output::print(&format!("signed     {}\nsignature  {}\n", file.display(), beside.display()))
}

fn sign_package(arguments: &SignArguments, key: &SigningKey) -> Result<Result<(), Failure>, PackageError> {
    let reference = arguments.component.parse::<PackageReference>()?;
    let places = match arguments.registry.places() {
        Ok(places) => places,
        Err(failure) => return Ok(Err(failure)),
    };
    let registry = arguments.registry.registry(&places, &reference);
    let manifest = registry.resolve(&reference)?.digest;
    let signature = ImageSignature::make(key, &reference.place(), manifest)?;
    registry.push_signature(&reference, manifest, &signature)?;
    Ok(output::print(&format!("signed     {}\n", reference.at(manifest))))
}
