//! The host file: what the operator of a machine grants and sets for all queries.
//!
//! ```toml
//! [directories]
//! run = "/run/millstream"                        # control sockets of running queries
//! spill = "/var/tmp"                             # state beyond its memory; default: the system's temporary folder
//!
//! [state]
//! memory = "512 MiB"                             # for the state of each query; without it there is no limit
//!
//! [object_store]                                 # for checkpoints on object stores
//! aws_region = "eu-central-1"
//! aws_secret_access_key = { env = "AWS_SECRET" } # the value of a variable of the environment
//!
//! [plugins]
//! memory = "64 MiB"                              # where a plugin asks for nothing
//! memory_max = "256 MiB"                         # no plugin gets more
//! deadline = "1 second"
//! deadline_max = "10 seconds"
//! cpu_per_call = "500 ms"                        # CPU time of one call; without it only the deadline counts
//! result = "64 MiB"
//! result_max = "64 MiB"
//! log = "64 KiB"                                 # lines of log that one call may write
//! instances = 64                                 # of each plugin at a time; without it as many as there are callers
//! cpu_per_second = "500 ms"                      # of each plugin; without it there is no limit
//! cpu_beyond = "throttle"                        # or reject, terminate
//! component_max = "256 MiB"                      # the file of a component
//! compile_time = "5 minutes"                     # CPU time for compiling one
//! compile_memory = "4 GiB"
//! cache = "/var/cache/millstream"                # compiled components; "off" for none; default: in the user's cache
//! cache_size = "2 GiB"
//! asked_anew = "needs approval"                  # when new code asks for a permission more, and has it; or ok, reject
//!
//! [grants.enrich]                                # what plugins of this name may have; without it: nothing
//! config = true                                  # options of the query, [plugin.enrich.config]
//! clock = true                                   # the time of the batch
//! random = true                                  # random numbers, the same when a batch is run again
//! http = ["api.example.com", "*.example.org:8443"]
//! http_private = false                           # also at addresses of private networks and of this machine
//! http_response = "8 MiB"
//! http_ca = "inside.pem"                          # authorities that are trusted beside those of this machine
//!
//! [tenants.acme]                                 # what all plugins of queries with `tenant = "acme"` spend together
//! cpu_per_second = "2 seconds"
//! cpu_beyond = "throttle"
//! memory = "4 GiB"
//! instances = 500
//!
//! keys = ["acme.pub"]                            # whose signatures count for them, in place of those below
//!
//! [signatures]                                   # without it, no signature is demanded
//! keys = ["cosign.pub"]                          # each component must be signed by one of these
//!
//! [registries]
//! allow = ["registry.example.com"]               # where packages may come from; without it, from anywhere
//! plain_http = ["registry.internal:5000"]        # which of them speak without TLS; this machine's may always
//! time = "5 minutes"                             # for one package
//! store = "/var/cache/millstream/packages"       # pulled packages; "off" for none; default: in the user's cache
//!
//! [settings]
//! spark.sql.shuffle.partitions = 4               # where the query file says nothing
//! ```

use super::accounts::{self, RawTenant};
use super::packaging::{HostPackages, RawRegistries, RawSignatures};
use super::permissions::{self, RawPermissions};
use super::plugins::{self, PluginGrants};
use super::scalar::{DottedScalars, Scalar};
use super::text::SourceText;
use super::{FILE_BYTES, Origin, QueryFileError, compiling, size};
use crate::Settings;
use millstream_wasm::{AskedAnew, Permissions, PluginHostOptions, Tenant};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The least and the most memory that state can be given.
const STATE_MEMORY: (u64, u64) = (1 << 20, 1 << 44);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHost {
    #[serde(default)]
    directories: RawDirectories,
    #[serde(default)]
    state: RawState,
    #[serde(default)]
    object_store: BTreeMap<String, Spanned<RawSecret>>,
    #[serde(default)]
    plugins: RawGrants,
    #[serde(default)]
    grants: BTreeMap<String, RawPermissions>,
    #[serde(default)]
    tenants: BTreeMap<String, RawTenant>,
    #[serde(default)]
    signatures: RawSignatures,
    #[serde(default)]
    registries: RawRegistries,
    #[serde(default)]
    settings: DottedScalars,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDirectories {
    run: Option<Spanned<String>>,
    spill: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawState {
    memory: Option<Spanned<Scalar>>,
}

/// `[plugins]`: what a plugin gets, and the most that it can ask for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGrants {
    pub(super) memory: Option<Spanned<Scalar>>,
    pub(super) memory_max: Option<Spanned<Scalar>>,
    pub(super) deadline: Option<Spanned<Scalar>>,
    pub(super) deadline_max: Option<Spanned<Scalar>>,
    pub(super) result: Option<Spanned<Scalar>>,
    pub(super) result_max: Option<Spanned<Scalar>>,
    pub(super) log: Option<Spanned<Scalar>>,
    pub(super) instances: Option<Spanned<Scalar>>,
    pub(super) cpu_per_call: Option<Spanned<Scalar>>,
    pub(super) cpu_per_second: Option<Spanned<Scalar>>,
    pub(super) cpu_beyond: Option<Spanned<String>>,
    pub(super) component_max: Option<Spanned<Scalar>>,
    pub(super) compile_time: Option<Spanned<Scalar>>,
    pub(super) compile_memory: Option<Spanned<Scalar>>,
    pub(super) cache: Option<Spanned<String>>,
    pub(super) cache_size: Option<Spanned<Scalar>>,
    pub(super) asked_anew: Option<Spanned<String>>,
}

/// A value, or the variable of the environment that has it.
#[derive(Debug)]
enum RawSecret {
    Value(String),
    Variable(String),
}

impl<'de> Deserialize<'de> for RawSecret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a string, a number, true, false, or { env = \"NAME\" } is expected";
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => Ok(Self::Value(text)),
            toml::Value::Integer(number) => Ok(Self::Value(number.to_string())),
            toml::Value::Boolean(flag) => Ok(Self::Value(flag.to_string())),
            toml::Value::Table(table) if table.len() == 1 => match table.get("env") {
                Some(toml::Value::String(name)) => Ok(Self::Variable(name.clone())),
                _ => Err(serde::de::Error::custom(expected)),
            },
            _ => Err(serde::de::Error::custom(expected)),
        }
    }
}

/// The host file, checked; without one everything is at its default.
#[derive(Debug)]
pub(super) struct HostFile {
    pub(super) run_dir: Option<(PathBuf, Origin)>,
    /// Where state goes that has no room in memory.
    pub(super) spill: Option<(PathBuf, Origin)>,
    /// Bytes for the state of a query.
    pub(super) state_memory: Option<(u64, Origin)>,
    /// Name, value, origin.
    pub(super) object_store: Vec<(String, String, Origin)>,
    pub(super) grants: PluginGrants,
    /// By name of plugin.
    pub(super) permissions: BTreeMap<String, Permissions>,
    pub(super) asked_anew: AskedAnew,
    /// By name.
    pub(super) tenants: BTreeMap<String, Tenant>,
    pub(super) compiling: PluginHostOptions,
    pub(super) packages: HostPackages,
    /// Name, value, origin.
    pub(super) settings: Vec<(String, String, Origin)>,
}

impl Default for HostFile {
    fn default() -> Self {
        Self {
            run_dir: None,
            spill: None,
            state_memory: None,
            object_store: Vec::new(),
            grants: PluginGrants::default(),
            permissions: BTreeMap::new(),
            asked_anew: AskedAnew::default(),
            tenants: BTreeMap::new(),
            compiling: compiling::default_options(),
            packages: HostPackages::default(),
            settings: Vec::new(),
        }
    }
}

/// Loads the host file, if there is one.
pub(super) fn load(path: Option<&Path>, env: &[(String, String)]) -> Result<HostFile, QueryFileError> {
    let Some(path) = path else { return Ok(HostFile::default()) };
    let text = SourceText::read(path, FILE_BYTES, "a host file")?;
    let raw: RawHost = text.parse()?;
    let folder = |folder: Spanned<String>| {
        (PathBuf::from(text.resolve(folder.get_ref())), Origin::HostFile(text.place_of(&folder)))
    };
    let run_dir = raw.directories.run.map(folder);
    let spill = raw.directories.spill.map(folder);
    let state_memory = raw.state.memory.map(|memory| {
        let value = &memory.get_ref().0;
        let bytes =
            size::within(value, STATE_MEMORY).map_err(|reason| text.invalid(&memory, "state.memory", value, reason))?;
        Ok::<_, QueryFileError>((bytes, Origin::HostFile(text.place_of(&memory))))
    });
    let state_memory = state_memory.transpose()?;
    let object_store = raw.object_store.iter().map(|(name, secret)| {
        let origin = Origin::HostFile(text.place_of(secret));
        Ok((name.clone(), secret_value(&text, name, secret, env)?, origin))
    });
    let object_store = object_store.collect::<Result<Vec<_>, QueryFileError>>()?;
    let grants = plugins::grants(&text, &raw.plugins)?;
    let permissions = permissions::grants(&text, &raw.grants)?;
    let asked_anew = permissions::asked_anew(&text, &raw.plugins.asked_anew)?;
    let tenants = accounts::tenants(&text, &raw.tenants)?;
    let compiling = compiling::options(&text, &raw.plugins)?;
    let component_bytes = compiling.compile.component_bytes;
    let packages = HostPackages::read(&text, &raw.registries, &raw.signatures, &raw.tenants, component_bytes)?;
    let mut settings = Vec::new();
    for (name, value) in raw.settings.0 {
        Settings::default()
            .set(&name, &value.get_ref().0)
            .map_err(|error| QueryFileError::Syntax { place: text.place_of(&value), message: error.to_string() })?;
        settings.push((name, value.get_ref().0.clone(), Origin::HostFile(text.place_of(&value))));
    }
    Ok(HostFile {
        run_dir,
        spill,
        state_memory,
        object_store,
        grants,
        permissions,
        asked_anew,
        tenants,
        compiling,
        packages,
        settings,
    })
}

fn secret_value(
    text: &SourceText,
    name: &str,
    secret: &Spanned<RawSecret>,
    env: &[(String, String)],
) -> Result<String, QueryFileError> {
    match secret.get_ref() {
        RawSecret::Value(value) => Ok(value.clone()),
        RawSecret::Variable(variable) => {
            let value = env.iter().find(|(name, _)| name == variable).map(|(_, value)| value.clone());
            value.ok_or_else(|| {
                let shown = format!("{{ env = \"{variable}\" }}");
                text.invalid(secret, format!("object_store.{name}"), shown, "the environment has no such variable")
            })
        }
    }
}
