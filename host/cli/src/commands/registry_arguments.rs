//! What commands that talk to registries have in common.

use crate::environment;
use crate::failure::Failure;
use clap::Args;
use millstream_runtime::package::{PackageReference, Registry};
use millstream_runtime::packages::Packages;
use millstream_runtime::query_file::{HostPlaces, QueryFileError, load_host_places};
use std::path::PathBuf;
use std::sync::Arc;

/// How registries are reached.
#[derive(Args)]
pub(crate) struct RegistryArguments {
    /// The operator's file: registries, keys, limits [env: MILLSTREAM_HOST_FILE].
    #[arg(long, value_name = "FILE")]
    host_file: Option<PathBuf>,
    /// Speaks to the registry without TLS. A registry of this machine is always spoken to so.
    #[arg(long)]
    plain_http: bool,
}

impl RegistryArguments {
    /// What the host file says.
    pub(crate) fn places(&self) -> Result<HostPlaces, Failure> {
        Ok(load_host_places(self.host_file.as_deref(), &environment::variables())?)
    }

    /// What the host file says, and where the package of a reference comes from under it.
    pub(crate) fn packages(&self, reference: &str) -> Result<(HostPlaces, Arc<Packages>), Failure> {
        let reference = reference.parse::<PackageReference>().map_err(QueryFileError::from)?;
        let places = self.places()?;
        let of_host = &places.packages;
        let (store, keys) = (of_host.store().cloned(), of_host.keys().cloned());
        let packages = Packages::new(self.registry(&places, &reference), store, keys);
        Ok((places, packages))
    }

    /// The registries, also that of `reference` without TLS if that was asked for.
    pub(crate) fn registry(&self, places: &HostPlaces, reference: &PackageReference) -> Registry {
        let mut options = places.packages.registry().options().clone();
        if self.plain_http {
            options.plain_http.push(reference.registry().to_owned());
        }
        Registry::new(options)
    }
}
