//! Where components come from and who must vouch for them: `[registries]` and `[signatures]` of the host file, and the
//! components that a query names, pinned by the lock file beside it.

use super::accounts::RawTenant;
use super::scalar::Scalar;
use super::text::SourceText;
use super::{Overrides, Place, QueryFileError};
use crate::packages::{Kept, Packages, Pin};
use millstream_common::duration;
use millstream_package::{
    LockEntry, LockFile, PackageError, PackageReference, PackageStore, Registry, RegistryOptions, TrustedKeys,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use toml::Spanned;

/// The longest time for one package.
const TIME: Duration = Duration::from_secs(3600);

/// `[registries]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRegistries {
    allow: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    plain_http: Vec<Spanned<String>>,
    time: Option<Spanned<Scalar>>,
    store: Option<Spanned<String>>,
}

/// `[signatures]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSignatures {
    keys: Option<Spanned<Vec<Spanned<String>>>>,
}

/// What the operator says about packages.
#[derive(Debug)]
pub(super) struct HostPackages {
    registry: Registry,
    store: Option<PackageStore>,
    keys: Option<TrustedKeys>,
    /// In place of the host's, by tenant.
    of_tenants: BTreeMap<String, TrustedKeys>,
}

impl Default for HostPackages {
    fn default() -> Self {
        let (registry, store) = (Registry::default(), PackageStore::of_user());
        Self { registry, store, keys: None, of_tenants: BTreeMap::new() }
    }
}

impl HostPackages {
    /// Of a host file.
    pub(super) fn read(
        text: &SourceText,
        raw: &RawRegistries,
        signatures: &RawSignatures,
        tenants: &BTreeMap<String, RawTenant>,
        component_bytes: u64,
    ) -> Result<Self, QueryFileError> {
        let hosts = |key: &str, names: &[Spanned<String>]| {
            let host = |name: &Spanned<String>| match is_host(name.get_ref()) {
                true => Ok(name.get_ref().clone()),
                false => Err(text.invalid(
                    name,
                    format!("registries.{key}"),
                    name.get_ref(),
                    "a host is expected, with a port if it has one: `registry.example.com:5000`",
                )),
            };
            names.iter().map(host).collect::<Result<Vec<_>, _>>()
        };
        let mut options = RegistryOptions { component_bytes, ..RegistryOptions::default() };
        options.plain_http = hosts("plain_http", &raw.plain_http)?;
        options.allow = raw.allow.as_ref().map(|names| hosts("allow", names)).transpose()?;
        if let Some(raw) = &raw.time {
            let value = &raw.get_ref().0;
            let invalid = |reason: String| text.invalid(raw, "registries.time", value, reason);
            let micros = duration::parse_micros(value).map_err(|error| invalid(error.to_string()))?;
            options.time = u64::try_from(micros).map(Duration::from_micros).unwrap_or_default();
            if options.time < Duration::from_millis(100) || options.time > TIME {
                return Err(invalid("a duration from 100 ms to 1 hour is expected".into()));
            }
            options.idle = options.idle.min(options.time);
        }
        let store = match &raw.store {
            None => PackageStore::of_user(),
            Some(folder) if folder.get_ref() == "off" => None,
            Some(folder) => Some(PackageStore::new(text.resolve(folder.get_ref()).into())),
        };
        let keys = |key: &str, raw: &Option<Spanned<Vec<Spanned<String>>>>| {
            raw.as_ref().map(|raw| trusted(text, key, raw)).transpose()
        };
        let mut of_tenants = BTreeMap::new();
        for (name, tenant) in tenants {
            let found = keys(&format!("tenants.{name}.keys"), &tenant.keys)?;
            of_tenants.extend(found.map(|keys| (name.clone(), keys)));
        }
        let keys = keys("signatures.keys", &signatures.keys)?;
        Ok(Self { registry: Registry::new(options), store, keys, of_tenants })
    }

    /// For the queries of a tenant, or of none.
    pub(super) fn of(&self, tenant: Option<&str>) -> Arc<Packages> {
        let keys = tenant.and_then(|tenant| self.of_tenants.get(tenant)).or(self.keys.as_ref());
        Packages::new(self.registry.clone(), self.store.clone(), keys.cloned())
    }
}

/// The keys of files.
fn trusted(text: &SourceText, key: &str, raw: &Spanned<Vec<Spanned<String>>>) -> Result<TrustedKeys, QueryFileError> {
    if raw.get_ref().is_empty() {
        return Err(text.invalid(
            raw,
            key,
            "[]",
            "without a key nothing could run; leave it out to demand no signature",
        ));
    }
    let mut trusted = TrustedKeys::default();
    for file in raw.get_ref() {
        let path = text.resolve(file.get_ref());
        let bad =
            |error: PackageError| text.invalid(file, key, file.get_ref(), millstream_common::describe_chain(&error));
        let read = TrustedKeys::read([Path::new(&path)]).map_err(bad)?;
        trusted.merge(read);
    }
    Ok(trusted)
}

fn is_host(text: &str) -> bool {
    format!("oci://{text}/a:1").parse::<PackageReference>().is_ok_and(|reference| reference.registry() == text)
}

/// The components of one query file.
pub(super) struct Fetching<'a> {
    packages: &'a Packages,
    lock: LockFile,
    /// The lock file may not be changed.
    is_locked: bool,
    /// Plugins whose tags are looked up again; all of them when the list is empty.
    update: Option<&'a [String]>,
    kept: Kept<'a>,
    is_changed: bool,
}

impl<'a> Fetching<'a> {
    /// For a query file.
    pub(super) fn new(
        file: &Path,
        packages: &'a Packages,
        overrides: &'a Overrides,
        kept: Kept<'a>,
    ) -> Result<Self, QueryFileError> {
        let (lock, is_locked) = (LockFile::of_query(file)?, overrides.locked);
        let update = overrides.update.as_deref();
        Ok(Self { packages, lock, is_locked, update, kept, is_changed: false })
    }

    /// The component that a plugin names, and how to show it.
    pub(super) fn component(
        &mut self,
        text: &SourceText,
        plugin: &str,
        named: &Spanned<String>,
    ) -> Result<(Vec<u8>, String), QueryFileError> {
        let place = text.place_of(named);
        if PackageReference::is_meant(named.get_ref()) {
            return self.package(place, plugin, named.get_ref());
        }
        let file = text.resolve(named.get_ref());
        match self.packages.of_file(Path::new(&file)) {
            Ok(bytes) => Ok((bytes, file)),
            Err(QueryFileError::Component(source)) => Err(of_plugin(place, plugin, source)),
            Err(error) => Err(error),
        }
    }

    fn package(&mut self, place: Place, plugin: &str, named: &str) -> Result<(Vec<u8>, String), QueryFileError> {
        let failed = |source| of_plugin(place.clone(), plugin, source);
        let reference: PackageReference = named.parse().map_err(failed)?;
        let is_updated = self.update.is_some_and(|names| names.is_empty() || names.iter().any(|name| name == plugin));
        let entry = self.lock.get(plugin).filter(|entry| entry.reference == named && !is_updated);
        let pin = entry.map(|entry| Pin { manifest: entry.manifest, component: entry.component });
        if pin.is_none() && self.is_locked && reference.digest().is_none() {
            let path = self.lock.path().to_owned();
            return Err(failed(PackageError::NotLocked { plugin: plugin.into(), reference: named.into(), path }));
        }
        // A digest in the reference itself has the last word.
        let pin = pin.filter(|pin| reference.digest().is_none_or(|digest| digest == pin.manifest));
        let fetched = self.packages.fetch(&reference, pin, self.kept).map_err(failed)?;
        if pin != Some(fetched.pin) {
            let Pin { manifest, component } = fetched.pin;
            self.lock.set(plugin, LockEntry { reference: named.to_owned(), manifest, component });
            self.is_changed = true;
        }
        Ok((fetched.bytes, format!("{named}, sha256:{}", fetched.pin.manifest)))
    }

    /// Writes the lock file if something was pinned, or is no longer needed. What has a digest of its own is no reason to
    /// change a file that may not be changed.
    pub(super) fn save(mut self, is_used: impl Fn(&str) -> bool) -> Result<(), QueryFileError> {
        if self.is_locked {
            return Ok(());
        }
        let before = self.lock.entries().count();
        self.lock.retain(is_used);
        if self.is_changed || self.lock.entries().count() != before {
            self.lock.save()?;
        }
        Ok(())
    }
}

fn of_plugin(place: Place, plugin: &str, source: PackageError) -> QueryFileError {
    QueryFileError::Package { place, plugin: plugin.to_owned(), source: Box::new(source) }
}
