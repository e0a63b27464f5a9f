//! The part of the graph that output operations need, in the order in which the program made it.

use crate::context::frame::Frame;
use crate::input::Input;
use crate::output::Output;
use crate::state::Stateful;
use crate::stream::{AnyStream, Role};
use crate::{DStreamError, Refusal};
use millstream_common::OperatorUid;
use millstream_wasm::PluginSlot;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What runs.
pub(crate) struct Plan {
    pub(crate) nodes: BTreeMap<usize, Arc<dyn AnyStream>>,
    pub(crate) inputs: Vec<Arc<dyn Input>>,
    /// With their names.
    pub(crate) stateful: Vec<(OperatorUid, Arc<dyn Stateful>)>,
    pub(crate) plugins: Vec<Arc<PluginSlot>>,
    pub(crate) outputs: Vec<Output>,
}

impl Plan {
    /// Of the output operations of a program; `durable` when it has a checkpoint.
    pub(crate) fn new(outputs: Vec<Output>, durable: bool) -> Result<Self, DStreamError> {
        if outputs.is_empty() {
            return Err(Refusal::NoOutput.into());
        }
        let mut nodes: BTreeMap<usize, Arc<dyn AnyStream>> = BTreeMap::new();
        let mut open: Vec<Arc<dyn AnyStream>> = outputs.iter().map(|output| Arc::clone(&output.stream)).collect();
        while let Some(node) = open.pop() {
            if let Some(refusal) = node.refusal() {
                return Err(refusal.clone().into());
            }
            if let Entry::Vacant(place) = nodes.entry(node.number()) {
                open.extend(node.parents().iter().cloned());
                place.insert(node);
            }
        }
        let (mut inputs, mut stateful, mut plugins) = (Vec::<Arc<dyn Input>>::new(), Vec::new(), Vec::new());
        for node in nodes.values() {
            match node.role() {
                Role::Plain => {}
                Role::Input(input) => inputs.push(Arc::clone(input)),
                Role::Stateful(operation) => stateful.push(Arc::clone(operation)),
                Role::Plugin(used) => plugins.push(Arc::clone(&used.slot)),
            }
        }
        if durable && inputs.iter().any(|input| !input.is_checkpointable()) {
            return Err(Refusal::QueueWithCheckpoint.into());
        }
        let needy = stateful.iter().find(|operation| operation.identity().needs_checkpoint && !durable);
        if let Some(operation) = needy {
            return Err(Refusal::NoCheckpoint { operation: operation.identity().operation }.into());
        }
        let mut names = BTreeSet::new();
        if let Some(input) = inputs.iter().find(|input| !names.insert(input.name().to_owned())) {
            return Err(Refusal::SameName { what: "inputs", name: input.name().to_owned() }.into());
        }
        Ok(Self { nodes, inputs, stateful: named(stateful)?, plugins, outputs })
    }

    /// Fixes names and numbers of partitions; `logged` is how many partitions an operation has in the checkpoint.
    pub(crate) fn resolve(&self, frame: &Frame, logged: impl Fn(&OperatorUid) -> Option<u32>) {
        for (uid, operation) in &self.stateful {
            operation.identity().resolve(uid.clone(), logged(uid), frame.parallelism());
        }
    }
}

/// An operation with state and its name.
type Named = (OperatorUid, Arc<dyn Stateful>);

/// Gives each operation its name: the one that the program gave, or that of the operation, numbered from the second on.
fn named(operations: Vec<Arc<dyn Stateful>>) -> Result<Vec<Named>, DStreamError> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for given in operations.iter().filter_map(|operation| operation.identity().given()) {
        if !taken.insert(given.clone()) {
            return Err(Refusal::SameName { what: "operations with state", name: given }.into());
        }
    }
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut all = Vec::new();
    for operation in operations {
        let name = operation.identity().given().map_or_else(
            || {
                let kind = operation.identity().operation;
                let count = counts.entry(kind).or_default();
                *count += 1;
                let name = kind.replace('_', "-");
                let name = if *count == 1 { name } else { format!("{name}-{count}") };
                // A name that the program gave to something else.
                if taken.insert(name.clone()) {
                    Ok(name)
                } else {
                    Err(Refusal::SameName { what: "operations with state", name })
                }
            },
            Ok,
        )?;
        let uid =
            OperatorUid::new(name.clone()).map_err(|_| Refusal::Name { what: "an operation with state", name })?;
        all.push((uid, operation));
    }
    Ok(all)
}
