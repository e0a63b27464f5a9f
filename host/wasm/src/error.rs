//! What can go wrong with a plugin.

use millstream_common::{Digest, Fault, Hint};
use std::time::Duration;

use crate::permissions::Permission;

/// A component could not be loaded, or a call into it failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WasmError {
    /// The component may not be loaded here.
    #[error("plugin `{plugin}` is not loaded: {reason}")]
    NotAdmitted {
        /// The plugin.
        plugin: String,
        /// Why not.
        reason: String,
        /// The way out.
        hint: String,
    },
    /// The bytes are no component.
    #[error("plugin `{plugin}` is not a WebAssembly component: {reason}")]
    NotAComponent {
        /// The plugin's name in the query, or its file.
        plugin: String,
        /// What the file is instead.
        reason: String,
    },
    /// The component was not compiled, because that would cost too much.
    #[error("plugin `{plugin}` is not compiled: {what}")]
    CompileLimit {
        /// The plugin.
        plugin: String,
        /// What was too much.
        what: String,
        /// The setting of the host file that limits it.
        key: &'static str,
    },
    /// The component asks for something that the operator did not grant to the plugin.
    #[error("plugin `{plugin}` imports `{permission}`, which is not granted to it")]
    NotGranted {
        /// The plugin.
        plugin: String,
        /// What it asks for.
        permission: Permission,
    },
    /// A component, but not one of ours: exports or imports are those of another world.
    #[error("plugin `{plugin}` is a component of a foreign world: {reason}")]
    ForeignWorld {
        /// The plugin.
        plugin: String,
        /// What is missing or too much.
        reason: String,
    },
    /// What `describe` answered cannot be used.
    #[error("plugin `{plugin}` describes itself wrongly: {reason}")]
    BadDescription {
        /// The plugin.
        plugin: String,
        /// What is wrong.
        reason: String,
    },
    /// A new component cannot take the place of the running one.
    #[error("plugin `{plugin}` cannot be swapped: {reason}")]
    SwapRefused {
        /// The plugin.
        plugin: String,
        /// Every difference, one sentence each.
        reason: String,
    },
    /// The guest trapped: a panic, `unreachable`, a bad memory access.
    #[error("plugin `{plugin}` trapped in `{function}`: {reason}")]
    Trap {
        /// The plugin.
        plugin: String,
        /// The function.
        function: String,
        /// The guest's own words where it logged any, then the trap.
        reason: String,
    },
    /// The guest did not answer in time.
    #[error("plugin `{plugin}` did not return from `{function}` within {limit:?}")]
    Deadline {
        /// The plugin.
        plugin: String,
        /// The function.
        function: String,
        /// The limit.
        limit: Duration,
    },
    /// The guest took more CPU time for a call than it may.
    #[error("plugin `{plugin}` took more than {limit:?} of CPU time in `{function}`")]
    CpuTime {
        /// The plugin.
        plugin: String,
        /// The function.
        function: String,
        /// The limit.
        limit: Duration,
    },
    /// The guest asked for more memory than it may have.
    #[error("plugin `{plugin}` wanted more than {limit_bytes} bytes of memory in `{function}`")]
    Memory {
        /// The plugin.
        plugin: String,
        /// The function.
        function: String,
        /// The limit.
        limit_bytes: u64,
    },
    /// The result is larger than allowed.
    #[error("plugin `{plugin}` returned more than {limit_bytes} bytes from `{function}`")]
    ResultTooLarge {
        /// The plugin.
        plugin: String,
        /// The function.
        function: String,
        /// The limit.
        limit_bytes: u64,
    },
    /// The result is not a batch of the agreed schema.
    #[error("plugin `{plugin}` returned garbage from `{function}`: {reason}")]
    Garbage {
        /// The plugin.
        plugin: String,
        /// The function.
        function: String,
        /// What is wrong: length, offsets, UTF-8, row count.
        reason: String,
    },
    /// The guest refused the call or a row.
    #[error("plugin `{plugin}` refused {what} in `{function}`: {message}")]
    Refused {
        /// The plugin.
        plugin: String,
        /// The function.
        function: String,
        /// `the call` or `row 17 of the batch`.
        what: String,
        /// The guest's words, cut to a sane length.
        message: String,
    },
    /// Something that the plugin needs is not there now.
    #[error("plugin `{plugin}` cannot compute `{function}` now: {message}")]
    Unavailable {
        /// The plugin.
        plugin: String,
        /// The function.
        function: String,
        /// The guest's words, cut to a sane length.
        message: String,
    },
    /// The plugin or its tenant has spent what it may.
    #[error("plugin `{plugin}` is not called, because {reason}")]
    Overdrawn {
        /// The plugin.
        plugin: String,
        /// Who has spent what.
        reason: String,
        /// Whether it will never be called again.
        for_ever: bool,
    },
    /// The candidate of a canary failed where the running code does not: without it the batch can be run.
    #[error("the candidate for plugin `{plugin}` is not taken: {reason}")]
    CanaryFailed {
        /// The plugin.
        plugin: String,
        /// What it did.
        reason: String,
    },
    /// The host called a function in a way that its signature does not allow.
    #[error("cannot call `{function}` of plugin `{plugin}`: {reason}")]
    BadCall {
        /// The plugin.
        plugin: String,
        /// The function.
        function: String,
        /// What does not fit.
        reason: String,
    },
    /// A component that the offset log names is not in the checkpoint.
    #[error("component {digest} of plugin `{plugin}` is not there")]
    Missing {
        /// The plugin.
        plugin: String,
        /// The component.
        digest: Digest,
    },
    /// The engine could not be made or failed on its own.
    #[error("the WebAssembly engine failed: {reason}")]
    Engine {
        /// What it said.
        reason: String,
    },
}

impl Hint for WasmError {
    fn fault(&self) -> Fault {
        match self {
            Self::NotAComponent { .. } | Self::ForeignWorld { .. } | Self::BadDescription { .. } => Fault::Query,
            Self::SwapRefused { .. }
            | Self::CompileLimit { .. }
            | Self::NotGranted { .. }
            | Self::NotAdmitted { .. } => Fault::Query,
            Self::Missing { .. } => Fault::Corrupt,
            Self::Unavailable { .. } | Self::Overdrawn { for_ever: false, .. } => Fault::Outside,
            Self::BadCall { .. } | Self::Engine { .. } => Fault::Bug,
            _ => Fault::Plugin,
        }
    }

    fn hint(&self) -> Option<String> {
        if let Self::CompileLimit { key, .. } = self {
            return Some(format!("make the component smaller, or raise `{key}` in [plugins] of the host file"));
        }
        if let Self::NotAdmitted { hint, .. } = self {
            return Some(hint.clone());
        }
        if let Self::NotGranted { plugin, permission } = self {
            return Some(format!("grant `{permission}` in [grants.{plugin}] of the host file"));
        }
        let text = match self {
            Self::NotAComponent { .. } => "build it with `millstream plugin build`",
            Self::ForeignWorld { .. } => {
                "build it against millstream:plugin@0.2.0; `millstream plugin inspect FILE` shows what it exports and imports"
            }
            Self::Deadline { .. } => {
                "raise `deadline` of the plugin in the query file, or set `on_fault` to skip or dead-letter"
            }
            Self::CpuTime { .. } => {
                "raise `cpu_per_call` in [plugins] of the host file, or set `on_fault` of the plugin in the query file to skip or dead-letter"
            }
            Self::Memory { .. } => {
                "raise `memory` of the plugin in the query file, or set `on_fault` to skip or dead-letter"
            }
            Self::Overdrawn { .. } => {
                "raise the limit in [plugins] or [tenants] of the host file, or let the plugin do less"
            }
            Self::ResultTooLarge { .. } => "raise `result` of the plugin in the query file, or return less per batch",
            Self::Trap { .. } | Self::Garbage { .. } | Self::Refused { .. } => {
                "fix the plugin and swap it, or set `on_fault` of the plugin in the query file to skip or dead-letter"
            }
            _ => return None,
        };
        Some(text.into())
    }
}
