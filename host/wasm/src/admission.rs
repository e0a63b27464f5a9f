//! Who may be loaded at all: a question that is asked before a component is compiled.
//!
//! Whoever makes the [`PluginHost`](crate::PluginHost) brings the answer: signatures, for example. It is asked for every
//! component and every time: at a start, at a check, at a swap, and for code out of a checkpoint.
//!
//! Rule of its life: without an answer everything may be loaded; with one, nothing but what it lets in.

use std::fmt;
use std::sync::Arc;

use millstream_common::Digest;

/// Says which components may be loaded.
pub trait Admission: fmt::Debug + Send + Sync {
    /// Whether the component may be loaded as this plugin.
    ///
    /// # Errors
    ///
    /// Why it may not.
    fn admit(&self, plugin: &str, component: &[u8], digest: Digest) -> Result<(), Refusal>;
}

/// Why a component is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong, in a sentence without a stop.
    pub reason: String,
    /// The way out.
    pub hint: String,
}

/// The answer that a host was given. Two are equal when they are the same one.
#[derive(Debug, Clone)]
pub struct Gate(Arc<dyn Admission>);

impl Gate {
    /// Takes an answer.
    pub fn new(admission: Arc<dyn Admission>) -> Self {
        Self(admission)
    }

    pub(crate) fn admit(&self, plugin: &str, component: &[u8], digest: Digest) -> Result<(), Refusal> {
        self.0.admit(plugin, component, digest)
    }
}

impl PartialEq for Gate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Gate {}
