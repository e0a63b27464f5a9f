//! The code that a request runs in: a component with its instances, and how the request counts.
//!
//! A slot has the code that runs, and with a canary the candidate's beside it. A request is made for one call of an
//! operator and keeps its code to the end, whatever takes its place meanwhile.

use std::sync::{Arc, Mutex};

use super::canary::Canary;
use super::locked;
use crate::call::Instance;
use crate::component::Component;
use crate::stamp::CallStamp;

/// A component, and the instances of it that are not in use.
pub(super) struct Code {
    pub(super) component: Arc<Component>,
    idle: Mutex<Vec<Instance>>,
}

impl Code {
    pub(super) fn new(component: Arc<Component>) -> Arc<Self> {
        Arc::new(Self { component, idle: Mutex::default() })
    }

    pub(super) fn take_idle(&self) -> Option<Instance> {
        locked(&self.idle).pop()
    }

    /// Keeps an instance for the next call, if there are not so many already.
    pub(super) fn keep(&self, instance: Instance, most: usize) {
        let mut idle = locked(&self.idle);
        if idle.len() < most {
            idle.push(instance);
        }
    }
}

/// How a request counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// What it answers goes on into the query.
    Answer,
    /// It is only compared with another answer: its rows and faults were counted there, and its faulty rows are kept there.
    Check,
}

/// One request: its code, its stamp, and how it counts.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) code: Arc<Code>,
    pub(super) stamp: CallStamp,
    pub(super) role: Role,
    /// The canary whose slice it is about.
    pub(super) canary: Option<Arc<Canary>>,
}

impl Request {
    pub(super) fn component(&self) -> &Arc<Component> {
        &self.code.component
    }
}
