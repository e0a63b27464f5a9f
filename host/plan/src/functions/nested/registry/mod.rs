//! Values that say by number what they are written with: what `from_avro`, `to_avro` and `from_json` share of a schema
//! registry.
//!
//! Where it stands: a function that is called with a subject and an address asks here for a [`Registry`] when its work is
//! prepared, so once for a run of a query. Then it takes from it the schema of the subject that the query reads or writes
//! with, and while the query runs the schema of each number that values bring.
//!
//! The rule: what cannot be asked fails the batch whatever the mode is, since the values may be good; that there is no schema
//! of a number is something wrong with the values.

mod groups;
mod options;
mod references;

pub(super) use groups::{Group, groups};
pub(super) use options::{Meaning, SUBJECT_OPTIONS, call, flag, options};
pub(super) use references::with_references;

use datafusion::common::Result;
use datafusion::error::DataFusionError;
use millstream_client::schema_registry::{RegistryAddress, RegistryError, SchemaRegistry, Subject, Version};
use millstream_common::{Hinted, Options};

/// A registry and the subject that a function works with.
pub(super) struct Registry {
    client: SchemaRegistry,
    /// The subject.
    pub(super) subject: String,
}

impl Registry {
    /// The registry at `address`. Nothing is asked yet.
    pub(super) fn new(subject: &str, address: &str, options: &Options) -> Result<Self> {
        let address = RegistryAddress::new(address, options, |name| std::env::var(name).ok()).map_err(failed)?;
        Ok(Self { client: SchemaRegistry::new(address), subject: subject.to_owned() })
    }

    /// The registry itself.
    pub(super) fn client(&self) -> &SchemaRegistry {
        &self.client
    }

    /// The version of the subject that the options name, by default the newest.
    pub(super) fn version(&self, options: &Options) -> Result<Subject> {
        self.find_version(options)?.map_err(failed)
    }

    /// The same; inside, what the registry has against it.
    pub(super) fn find_version(&self, options: &Options) -> Result<Result<Subject, RegistryError>> {
        let version = match options.get("version") {
            None => Version::Latest,
            Some(text) => Version::named(text).ok_or_else(|| {
                let reason = "write latest, or the number of a version";
                failed(Options::invalid("the schema registry", "version", text, reason).into())
            })?,
        };
        Ok(self.client.version(&self.subject, version))
    }
}

/// An error of a registry, as DataFusion carries it to those who look at its advice.
pub(super) fn failed(error: RegistryError) -> DataFusionError {
    DataFusionError::External(Box::new(Hinted::new(error)))
}
