//! Machine code of a component, by its origin fit to be run.
//!
//! Wasmtime cannot tell whether code that it loads does what its compiler would have made; loading foreign code hands
//! the process over. So a value of [`Code`] is made in three places only, each of which says why it may.

use wasmtime::Engine;
use wasmtime::component::Component;

/// What Wasmtime's compiler put out.
pub(super) struct Code(Vec<u8>);

impl Code {
    /// Compiles in this process.
    pub(super) fn compile(engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Self> {
        engine.precompile_component(bytes).map(Self)
    }

    /// What our own program printed, started by us and listened to by nobody else.
    pub(super) fn from_own_compiler(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// What a folder kept that only our user can write to, and whose digest is that of what was put there.
    pub(super) fn from_checked_cache(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A component that runs this code. Code of another engine or release is an error.
    #[allow(unsafe_code, reason = "the one place where code is loaded that was compiled before")]
    pub(super) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: the bytes are what Wasmtime's compiler put out: this process, a child that it started from its own
        // executable, or a cache entry of an owner-only folder whose digest was checked. They are in our memory, so
        // nobody changes them after the check. Other releases and settings of Wasmtime are refused by its own header.
        unsafe { Component::deserialize(engine, &self.0) }
    }
}
