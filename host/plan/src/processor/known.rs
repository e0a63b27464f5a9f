//! The processors that the plugins of a query have.

use crate::PlanError;
use millstream_operators::ProcessorCode;
use millstream_wasm::processor::ProcessorSignature;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One processor of a plugin.
pub(crate) struct KnownProcessor {
    /// The plugin.
    pub(crate) plugin: String,
    /// What the code says of itself.
    pub(crate) signature: ProcessorSignature,
    /// The code.
    pub(crate) code: Arc<dyn ProcessorCode>,
}

impl fmt::Debug for KnownProcessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.signature, self.plugin)
    }
}

/// The processors, by their names in lower case. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Processors(Arc<BTreeMap<String, Arc<KnownProcessor>>>);

impl Processors {
    /// These.
    ///
    /// # Errors
    /// When two have one name.
    pub(crate) fn new(all: impl IntoIterator<Item = KnownProcessor>) -> Result<Self, PlanError> {
        let mut known = BTreeMap::new();
        for processor in all {
            let name = processor.signature.name.to_ascii_lowercase();
            if known.insert(name.clone(), Arc::new(processor)).is_some() {
                let message = format!("two plugins have a processor `{name}`; leave one of them out");
                return Err(PlanError::Sql { message });
            }
        }
        Ok(Self(Arc::new(known)))
    }

    /// The processor of that name, whatever its case.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<KnownProcessor>> {
        self.0.get(&name.to_ascii_lowercase())
    }

    /// Their names, for messages.
    pub(crate) fn names(&self) -> String {
        if self.0.is_empty() {
            return "no plugin of the query has one".to_owned();
        }
        let names = self.0.values().map(|processor| processor.signature.name.as_str()).collect::<Vec<_>>();
        format!("there are {}", names.join(", "))
    }
}
