//! What an operator grants to a plugin beyond computing: options of the query, the time, random numbers, requests to
//! named hosts.
//!
//! A component imports what it wants; the slot that it is to run in says what it may have. What it imports and may not
//! have keeps it out of the slot; so nothing is decided during a call, except to which hosts requests go.
//!
//! Rule of its life: nothing is granted that is not named. While a component describes itself, nothing is granted at
//! all.
//!
//! It does not read files: whoever makes the slot knows what the operator wrote.

mod http;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, WasmStr};

pub use http::{HostPattern, HttpGrant, check_authorities};

use crate::limits::HostState;
use crate::wasi::Denied;
use crate::wire;

/// Random bytes that one call of the guest may ask for.
const RANDOM_BYTES: u32 = 64 << 10;

/// What a plugin may have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The options that the query gives to the plugin, if it may see them.
    pub config: Option<BTreeMap<String, String>>,
    /// Whether it may know the time of the batch.
    pub clock: bool,
    /// Whether it may have random numbers.
    pub random: bool,
    /// Where it may send requests to.
    pub http: Option<HttpGrant>,
    /// Certificates, as PEM, of authorities that its requests trust beside those of this machine: for hosts of a network
    /// that has its own.
    pub http_authorities: Option<Arc<[u8]>>,
    /// What follows when new code asks for what the code before it did not ask for.
    pub anew: AskedAnew,
}

/// What follows when new code asks for a permission that the code before it did not ask for, and that is granted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AskedAnew {
    /// A person must want it.
    #[default]
    NeedsApproval,
    /// The grant is enough.
    Ok,
    /// It may not.
    Reject,
}

/// Something that is granted by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Options of the query.
    Config,
    /// The time of the batch.
    Clock,
    /// Random numbers.
    Random,
    /// Requests.
    Http,
}

impl Permission {
    /// What an import asks for, if it asks for something that is granted by name.
    pub(crate) fn of_import(import: &str) -> Option<Self> {
        Some(match wire::known(import)? {
            wire::CONFIG => Self::Config,
            wire::CLOCK => Self::Clock,
            wire::RANDOM => Self::Random,
            wire::HTTP => Self::Http,
            _ => return None,
        })
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Config => wire::CONFIG,
            Self::Clock => wire::CLOCK,
            Self::Random => wire::RANDOM,
            Self::Http => wire::HTTP,
        })
    }
}

impl Permissions {
    /// Whether this is granted.
    pub fn grants(&self, permission: Permission) -> bool {
        match permission {
            Permission::Config => self.config.is_some(),
            Permission::Clock => self.clock,
            Permission::Random => self.random,
            Permission::Http => self.http.is_some(),
        }
    }

    /// What is granted of it, in words, where there is something to say; `None` when it is not granted.
    pub fn scope(&self, permission: Permission) -> Option<String> {
        match permission {
            Permission::Config => {
                self.config.as_ref().map(|options| options.keys().cloned().collect::<Vec<_>>().join(", "))
            }
            Permission::Clock | Permission::Random => self.grants(permission).then(String::new),
            Permission::Http => self.http.as_ref().map(|grant| {
                let hosts = grant.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                if grant.private { format!("{hosts}, also at private addresses") } else { hosts }
            }),
        }
    }
}

/// Links the interfaces that are granted by name. Each asks the store whether it is.
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    // The first version of the package had none of these.
    let version = wire::VERSIONS[0];
    linker.instance(&wire::interface(wire::CONFIG, version))?.func_wrap("get", option)?;
    linker.instance(&wire::interface(wire::CLOCK, version))?.func_wrap("batch-time-ms", batch_time_ms)?;
    linker.instance(&wire::interface(wire::RANDOM, version))?.func_wrap("bytes", random_bytes)?;
    linker.instance(&wire::interface(wire::HTTP, version))?.func_wrap("send", http::send)
}

fn option(store: StoreContextMut<'_, HostState>, (name,): (WasmStr,)) -> wasmtime::Result<(Option<String>,)> {
    let name = name.to_str(&store)?;
    let options = store.data().permissions.config.as_ref();
    let options = options.ok_or(Denied("it asks for options, which it was not granted"))?;
    Ok((options.get(name.as_ref()).cloned(),))
}

fn batch_time_ms(store: StoreContextMut<'_, HostState>, (): ()) -> wasmtime::Result<(i64,)> {
    if !store.data().permissions.clock {
        return Err(Denied("it asks for the time, which it was not granted").into());
    }
    Ok((store.data().stamp.batch.time_ms,))
}

fn random_bytes(mut store: StoreContextMut<'_, HostState>, (length,): (u32,)) -> wasmtime::Result<(Vec<u8>,)> {
    let state = store.data_mut();
    if !state.permissions.random {
        return Err(Denied("it asks for random numbers, which it was not granted").into());
    }
    if length > RANDOM_BYTES {
        return Err(Denied("it asks for more than 64 KiB of random bytes at once").into());
    }
    Ok((state.dice().bytes(length as usize),))
}
