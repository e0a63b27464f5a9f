//! From the bytes of a component to code of this machine: out of the cache, or by the compiler under its limits.
//!
//! ```text
//!   bytes ──► known here? ──yes──► cache ─────────────────► code ──► component
//!                 │ no                ▲                       ▲
//!                 └──► compiler ──────┴───────────────────────┘
//!                      in a process of its own that is killed at its limits, or in this one
//! ```
//!
//! `load` asks for every component; nothing else compiles.
//!
//! Rule of its life: machine code is run only if this process's compiler made it, or a cache that only this user can
//! write kept it unchanged. A damaged entry is compiled anew, with a warning.
//!
//! It does not look at what a component imports or exports.

mod cache;
mod child;
mod code;
mod folder;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use millstream_common::Digest;
use wasmtime::Engine;
use wasmtime::component::Component;

pub use cache::CacheFigures;
pub use child::{CompilerProgram, compile_stdin};

use crate::error::WasmError;
use cache::CompiledCache;
use code::Code;

/// Where compiled components are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheOptions {
    /// A folder that belongs to the user of this process, and that nobody else can write to. It is made when it is not
    /// there.
    pub folder: PathBuf,
    /// Bytes that all entries may take; beyond, those that were not used for longest go.
    pub limit_bytes: u64,
}

impl CacheOptions {
    /// Bytes that all entries may take where nobody says otherwise.
    pub const LIMIT_BYTES: u64 = 2 << 30;

    /// `millstream/compiled` in the user's folder for caches, with two gibibytes; `None` when there is no such folder.
    pub fn of_user() -> Option<Self> {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let folder = cache.or_else(home)?.join("millstream/compiled");
        Some(Self { folder, limit_bytes: Self::LIMIT_BYTES })
    }

    /// What is kept there.
    ///
    /// # Errors
    ///
    /// When the folder is there and cannot be read.
    pub fn figures(&self) -> std::io::Result<CacheFigures> {
        cache::figures(&self.folder)
    }

    /// Removes everything that is kept there; it is compiled anew when it is needed.
    ///
    /// # Errors
    ///
    /// When an entry cannot be removed.
    pub fn clear(&self) -> std::io::Result<()> {
        cache::clear(&self.folder)
    }
}

/// What compiling one component may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileLimits {
    /// Bytes of the component's file.
    pub component_bytes: u64,
    /// CPU time, where the compiler has a process of its own.
    pub time: Duration,
    /// Memory, where the compiler has a process of its own.
    pub memory_bytes: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self { component_bytes: 256 << 20, time: Duration::from_secs(300), memory_bytes: 4 << 30 }
    }
}

/// How the components that were asked for came to be code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compilations {
    /// The compiler made it.
    pub compiled: u64,
    /// The cache had it.
    pub from_cache: u64,
    /// The cache had an entry that was not good; the compiler made it then.
    pub refused: u64,
}

/// Compiles components.
#[derive(Debug)]
pub(crate) struct Compiler {
    program: Option<CompilerProgram>,
    limits: CompileLimits,
    cache: Option<CompiledCache>,
    compiled: AtomicU64,
    from_cache: AtomicU64,
    refused: AtomicU64,
}

impl Compiler {
    /// A cache that cannot be used is told and left out.
    pub(crate) fn new(
        engine: &Engine,
        program: Option<CompilerProgram>,
        limits: CompileLimits,
        cache: Option<&CacheOptions>,
    ) -> Self {
        let cache = cache.and_then(|options| match CompiledCache::open(engine, options) {
            Ok(cache) => Some(cache),
            Err(reason) => {
                tracing::warn!("components are compiled at every start: {reason}");
                None
            }
        });
        let none = AtomicU64::default;
        Self { program, limits, cache, compiled: none(), from_cache: none(), refused: none() }
    }

    /// What was asked for so far.
    pub(crate) fn compilations(&self) -> Compilations {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        Compilations {
            compiled: read(&self.compiled),
            from_cache: read(&self.from_cache),
            refused: read(&self.refused),
        }
    }

    /// The component of `bytes`, whose digest is `digest`.
    pub(crate) fn component(
        &self,
        engine: &Engine,
        plugin: &str,
        bytes: &[u8],
        digest: Digest,
    ) -> Result<Component, WasmError> {
        if bytes.len() as u64 > self.limits.component_bytes {
            return Err(WasmError::CompileLimit {
                plugin: plugin.to_owned(),
                what: format!("its file has {} bytes, more than {}", bytes.len(), self.limits.component_bytes),
                key: "component_max",
            });
        }
        if let Some(found) = self.cached(engine, digest) {
            self.from_cache.fetch_add(1, Ordering::Relaxed);
            return Ok(found);
        }
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let no_component =
            |e: wasmtime::Error| WasmError::NotAComponent { plugin: plugin.to_owned(), reason: format!("{e:#}") };
        let code = match &self.program {
            Some(program) => child::compile(program, &self.limits, plugin, bytes)?,
            None if self.cache.is_none() => return Component::from_binary(engine, bytes).map_err(no_component),
            None => Code::compile(engine, bytes).map_err(no_component)?,
        };
        let component = code.load(engine).map_err(|e| WasmError::Engine { reason: format!("{e:#}") })?;
        if let Some(cache) = &self.cache
            && let Err(error) = cache.put(digest, &code)
        {
            tracing::warn!(plugin, "the compiled component is not kept for the next start: {error}");
        }
        Ok(component)
    }

    fn cached(&self, engine: &Engine, digest: Digest) -> Option<Component> {
        let cache = self.cache.as_ref()?;
        let loaded = cache.get(digest).transpose()?.and_then(|code| code.load(engine).map_err(|e| format!("{e:#}")));
        match loaded {
            Ok(component) => Some(component),
            Err(reason) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                tracing::warn!("component {digest} is compiled again, because its entry in the cache {reason}");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
